"""The official ARQMath layout, on a made-up collection of a few posts."""

import shutil
import subprocess
import sys
from pathlib import Path
from xml.sax.saxutils import quoteattr

import pytest

from graphs.corpus.arqmath import ArqMath, PostLink
from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.qrels import read_qrels
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError, Failure

SPAN = '<span class="math-container" id="{}">${}$</span>'
NAMELESS = '<span class="math-container">${}$</span>'
QUESTION = {
    "Id": "1",
    "PostTypeId": "1",
    "Title": "Why " + SPAN.format(10, "x"),
    "Body": "<p>I ask.</p>",
    "Tags": "<a><b-c>",
}
ANSWER = {
    "Id": "2",
    "PostTypeId": "2",
    "ParentId": "1",
    "Body": "<p>So " + NAMELESS.format("y &lt; 1") + "</p>",
    "Score": "-3",
}
OTHER = {"Id": "3", "PostTypeId": "2", "ParentId": "1", "Body": "<p>No.</p>"}
WIKI = {"Id": "4", "PostTypeId": "5", "Body": "wiki"}
HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"


def rows(*posts: dict[str, str]) -> str:
    lines = ("<row " + " ".join(f"{key}={quoteattr(value)}" for key, value in post.items()) + " />" for post in posts)
    return '<?xml version="1.0" encoding="utf-8"?>\n<posts>\n' + "\n".join(lines) + "\n</posts>\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "Posts.V1.3.xml").write_text(rows(QUESTION, ANSWER, OTHER, WIKI))
    (tmp_path / "PostLinks.V1.3.xml").write_text('<l><row Id="1" PostId="1" RelatedPostId="9" LinkTypeId="3"/></l>')
    for name, formula in (("latex", "y&lt;1"), ("slt", "<math/>"), ("opt", "<math/>")):
        folder = tmp_path / f"{name}_representation_v3"
        folder.mkdir()
        text = HEADER + f"10\t1\t1\ttitle\t\t5\t5\t\tx\n11\t2\t1\tanswer\t\t6\t6\t\t{formula}\n"
        (folder / "1.tsv").write_text(text)
        for number in ("2", "10"):
            (folder / f"{number}.tsv").write_text(HEADER)
    topics = tmp_path / "topics"
    topics.mkdir()
    body = "&lt;p&gt;Is &lt;span class=&quot;math-container&quot; id=&quot;q_1&quot;&gt;$z$&lt;/span&gt; so?&lt;/p&gt;"
    fields = f"<Title>A title</Title><Question>{body}</Question><Tags>sums, limits</Tags>"
    (topics / "Topics_Task1_2020.xml").write_text(f'<Topics><Topic number="A.1">{fields}</Topic></Topics>')
    task2 = f'<Topics><Topic number="B.1"><Formula_Id>q_1</Formula_Id><Latex>z</Latex>{fields}</Topic></Topics>'
    (topics / "Topics_Task2_2020.xml").write_text(task2)
    (topics / "Topics_2020_Formulas_latex.tsv").write_text(
        "id\ttopic_id\tthread_id\ttype\tformula\nq_1\tA.1\t7\ttitle\tz\n"
    )
    qrels = tmp_path / "qrels"
    qrels.mkdir()
    (qrels / "qrel_task1_2020.tsv").write_bytes(b"A.1\t0\t2\t2.0\r\nA.1\t0\t3\t0\r\nA.1\t0\t99\t3")
    (qrels / "qrel_task2_2020_formula_id.tsv").write_bytes(b"B.1\t0\t11\t2\n")
    (qrels / "qrel_task2_2020_visual_id.tsv").write_bytes(b"B.1\t0\t6\t2\n")
    return tmp_path


def posts_of(root: Path) -> list[Post]:
    posts = list(ArqMath(root).posts())
    assert all(isinstance(post, Post) for post in posts)
    return [post for post in posts if isinstance(post, Post)]


def test_posts_are_read_with_their_attributes(root: Path) -> None:
    question, answer, other = posts_of(root)
    assert (question.post_id, question.kind, question.tags) == ("1", "question", ("a", "b-c"))
    assert (answer.kind, answer.parent_id, answer.score) == ("answer", "1", -3)
    assert (other.score, other.title) == (None, "")


def test_a_nameless_span_gets_the_id_that_the_tsv_lists(root: Path) -> None:
    _, answer, _ = posts_of(root)
    assert [(f.formula_id, f.latex) for f in extract(answer).formulas] == [("11", "y < 1")]


@pytest.mark.parametrize("entry", ["comment\t77\t6\t6\t", "answer\t\t6\t6\td", "answer\t\t6\t6\tdv"])
def test_formulas_of_comments_and_missing_ones_give_no_id(root: Path, entry: str) -> None:
    listed = root / "latex_representation_v3/1.tsv"
    listed.write_text(f"{HEADER}900\t2\t1\t{entry}\ty&lt;1\n11\t2\t1\tanswer\t\t6\t6\tv\ty&lt;1\n")
    assert [formula.formula_id for formula in extract(posts_of(root)[1]).formulas] == ["11"]
    listed.write_text(f"{HEADER}900\t2\t1\t{entry}\ty&lt;1\n")
    assert [formula.formula_id for formula in extract(posts_of(root)[1]).formulas] == ["2:0"]


@pytest.mark.parametrize(("header", "end"), [(HEADER, ""), (HEADER.replace("formula", "formula\tnote"), "\ta note")])
def test_an_id_is_found_for_a_formula_of_several_lines(root: Path, header: str, end: str) -> None:
    answer = ANSWER | {"Body": NAMELESS.format("y &lt;\n1")}
    (root / "Posts.V1.3.xml").write_text(rows(QUESTION, answer))
    for name, formula in (("latex", '"y\n<1"'), ("slt", "<math><mi>y</mi></math>"), ("opt", "<math><ci>y</ci></math>")):
        row = f"11\t2\t1\tanswer\t\t6\t6\t\t{formula}{end}\n"
        (root / f"{name}_representation_v3/1.tsv").write_text(header + row)
    _, found = posts_of(root)
    assert [formula.formula_id for formula in extract(found).formulas] == ["11"]


def test_pairs_without_and_with_accepted_answers(root: Path) -> None:
    assert list(ArqMath(root).pairs()) == [Pair("1", "2"), Pair("1", "3")]
    missing = {"Id": "5", "PostTypeId": "1", "AcceptedAnswerId": "6"}
    (root / "Posts.V1.3.xml").write_text(rows({**QUESTION, "AcceptedAnswerId": "3"}, ANSWER, OTHER, missing))
    assert list(ArqMath(root).pairs()) == [Pair("1", "3")]


def test_an_answer_to_a_question_that_is_missing_makes_no_pair(root: Path) -> None:
    (root / "Posts.V1.3.xml").write_text(rows(QUESTION, {**OTHER, "ParentId": "77"}))
    assert list(ArqMath(root).pairs()) == []


def test_a_topic_that_is_there_twice_is_an_error(root: Path) -> None:
    path = root / "topics/Topics_Task1_2020.xml"
    topic = path.read_text().removeprefix("<Topics>").removesuffix("</Topics>")
    path.write_text(f"<Topics>{topic}\n{topic}</Topics>")
    with pytest.raises(CorpusError, match=r"Topics_Task1_2020\.xml:2: topic A\.1 is there twice"):
        ArqMath(root).topics(1, [2020])


def test_links(root: Path) -> None:
    assert list(ArqMath(root).links()) == [PostLink("1", "9", 3)]


def test_topics_are_posts_with_the_prefix_of_their_year(root: Path) -> None:
    (topic,) = ArqMath(root).topics(1, [2020])
    assert (topic.topic_id, topic.post.kind, topic.post.tags, topic.formula_id) == (
        "A.1",
        "topic",
        ("sums", "limits"),
        None,
    )
    assert [f.formula_id for f in extract(topic.post).formulas] == ["2020:q_1"]
    (topic,) = ArqMath(root).topics(2, [2020])
    assert (topic.topic_id, topic.formula_id) == ("B.1", "2020:q_1")


def test_latex_of_topics_that_the_xml_cuts_is_that_of_the_tsv(root: Path) -> None:
    table = root / "topics" / "Topics_2020_Formulas_latex.tsv"
    for published, latex in (("z&lt;1 \\implies z", "z<1 \\implies z"), ("y<1", "z")):
        table.write_text(f"id\ttopic_id\tthread_id\ttype\tformula\nq_1\tA.1\t7\ttitle\t{published}\n")
        (topic,) = ArqMath(root).topics(2, [2020])
        assert [(f.formula_id, f.latex) for f in extract(topic.post).formulas] == [("2020:q_1", latex)]


def test_judgments_read_every_form_of_qrels_and_task_2_by_visual_id(root: Path) -> None:
    corpus = ArqMath(root)
    assert corpus.judgments(1, [2020]) == [Judgment("A.1", "2", 2), Judgment("A.1", "3", 0), Judgment("A.1", "99", 3)]
    assert corpus.judgments(2, [2020]) == [Judgment("B.1", "6", 2)]


def test_topics_and_judgments_of_several_years_are_those_of_each_year(root: Path) -> None:
    topics = (root / "topics" / "Topics_Task1_2020.xml").read_text()
    (root / "topics" / "Topics_Task1_2021.xml").write_text(topics.replace("A.1", "A.201"))
    (root / "qrels" / "qrel_task1_2021.tsv").write_text("A.201\t0\t3\t1\n")
    corpus = ArqMath(root)
    assert corpus.judgments(1, [2021]) == [Judgment("A.201", "3", 1)]
    assert corpus.judgments(1, [2020, 2021]) == [*corpus.judgments(1, [2020]), Judgment("A.201", "3", 1)]
    assert [topic.topic_id for topic in corpus.topics(1, [2020, 2021])] == ["A.1", "A.201"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("A.1 0 2 1\nA.1 0 2\n", r"q\.tsv:2: 3 columns"),
        ("A.1 0 2 high\n", r"q\.tsv:1: grade 'high'"),
        ("A.1 0 2 1.5\n", r"q\.tsv:1: grade '1\.5'"),
        ("A.1 0 2 1\n\nA.1 0 2 0\n", r"q\.tsv:3: 2 has grade 0 here and 1 before"),
    ],
)
def test_bad_qrels_name_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "q.tsv").write_text(text)
    with pytest.raises(CorpusError, match=message):
        read_qrels(tmp_path / "q.tsv")


def test_formula_files_are_in_the_order_of_their_numbers(root: Path) -> None:
    files = ArqMath(root).formulas()
    assert [path.name for path in files.slt] == ["1.tsv", "2.tsv", "10.tsv"]
    (topics,) = files.topics
    assert (topics.prefix, topics.slt) == ("2020:", None)
    assert topics.latex is not None


def test_the_newest_version_of_a_file_counts(root: Path) -> None:
    (root / "Posts.V1.10.xml").write_text(rows(QUESTION))
    assert len(posts_of(root)) == 1
    (root / "old").mkdir()
    (root / "old" / "Posts.V1.10.xml").write_text(rows(ANSWER))
    with pytest.raises(CorpusError, match="cannot tell which of"):
        ArqMath(root)


def test_the_fingerprint_follows_the_content_and_nothing_else(
    root: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    copy = tmp_path_factory.mktemp("copy") / "elsewhere"
    shutil.copytree(root, copy)
    assert ArqMath(copy).fingerprints() == ArqMath(root).fingerprints()
    (copy / "qrels" / "qrel_task1_2020.tsv").write_text("A.1\t0\t2\t1\n")
    assert ArqMath(copy).fingerprints() != ArqMath(root).fingerprints()


def test_missing_files_say_what_is_there(root: Path, tmp_path: Path) -> None:
    corpus = ArqMath(root)
    with pytest.raises(CorpusError, match=r"no topics of Task 1, 2021, .*Topics_Task1_2020\.xml"):
        corpus.topics(1, [2021])
    with pytest.raises(CorpusError, match=r"qrels of Task 1, 2022.*qrel_task1_2020\.tsv"):
        corpus.judgments(1, [2022])
    with pytest.raises(ConfigError, match="no years"):
        corpus.topics(1, [])
    with pytest.raises(ConfigError, match="task 3"):
        corpus.judgments(3, [2020])
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(CorpusError, match=r"no Posts\*\.xml"):
        open_corpus("arqmath", empty)


def test_xml_that_breaks_late_keeps_what_came_before(root: Path) -> None:
    path = root / "Posts.V1.3.xml"
    text = rows(QUESTION, ANSWER, OTHER)
    path.write_text(text[: text.index('<row Id="3"') + 20])
    *kept, failure = ArqMath(root).posts()
    assert [post.post_id for post in kept] == ["1", "2"]
    assert isinstance(failure, Failure)
    assert (failure.stage, failure.kind) == ("read", "broken_xml")
    assert f"{path}:5:" in failure.message
    assert list(ArqMath(root).pairs()) == [Pair("1", "2")]


@pytest.mark.parametrize(
    "text", ["", "posts", "<posts><row Id=", "<posts></posts>", '<posts><row Id="1" PostTypeId="5"/></posts>']
)
def test_xml_without_any_post_is_an_error(root: Path, text: str) -> None:
    (root / "Posts.V1.3.xml").write_text(text)
    with pytest.raises(CorpusError, match=r"Posts\.V1\.3\.xml"):
        list(ArqMath(root).posts())


def test_a_row_without_id_is_a_failure_and_the_rest_is_read(root: Path) -> None:
    (root / "Posts.V1.3.xml").write_text(rows({"PostTypeId": "1"}, QUESTION))
    failure, post = ArqMath(root).posts()
    assert isinstance(failure, Failure)
    assert failure.kind == "bad_row"
    assert "Posts.V1.3.xml:3: row without Id" in failure.message
    assert isinstance(post, Post)


@pytest.mark.parametrize("post_id", ["1 2", "1&#9;2", " 7", "7&#10;", "7&#x200B;"])
def test_an_id_with_blanks_is_a_failure_and_the_rest_is_read(root: Path, post_id: str) -> None:
    """A line of a run file has fields between blanks."""
    text = rows(QUESTION).replace("<row ", f'<row Id="{post_id}" PostTypeId="2" Body="x"/>\n<row ', 1)
    (root / "Posts.V1.3.xml").write_text(text)
    failure, post = ArqMath(root).posts()
    assert isinstance(failure, Failure)
    assert (failure.kind, post.post_id) == ("bad_row", QUESTION["Id"])
    assert "has blanks or control characters, which no run file can hold" in failure.message


BOMB = """<?xml version="1.0"?>
<!-- a comment -->
<!DOCTYPE posts [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c SYSTEM "file:///etc/passwd">]>
<posts><row Id="1" PostTypeId="1" Body="&b;"/></posts>"""


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
def test_a_document_type_declaration_is_refused(root: Path, encoding: str) -> None:
    (root / "Posts.V1.3.xml").write_text(BOMB, encoding=encoding)
    with pytest.raises(CorpusError, match="document type declaration"):
        list(ArqMath(root).posts())


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    body = quoteattr("<p>" + "word " * 400 + "</p>")
    with (tmp_path / "Posts.V1.xml").open("w") as file:
        file.write("<posts>\n")
        for number in range(20_000):  # 40 MB
            file.write(f'<row Id="{number}" PostTypeId="1" Title="t" Body={body} />\n')
        file.write("</posts>\n")
    script = (
        "import sys; from pathlib import Path; from graphs.corpus.arqmath import ArqMath\n"
        "from mathamr.evaluation.efficiency import peak_memory\n"
        "posts = ArqMath(Path(sys.argv[1])).posts(); next(posts); before = peak_memory()\n"
        "print(sum(1 for _ in posts), peak_memory() - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    count, grown = map(int, done.stdout.split())
    assert count == 19_999
    assert grown < 8_000_000
