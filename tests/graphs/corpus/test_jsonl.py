"""Collections as JSON lines: what is read, and what a broken line costs."""

import gzip
import json
from pathlib import Path

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError, Failure

POSTS: list[dict[str, object]] = [
    {"post_id": "q1", "kind": "question", "title": "Is $x$ odd?", "markup": "text", "tags": ["a"], "score": 3},
    {"post_id": "a1", "kind": "answer", "body": "<p>No.</p>", "parent_id": "q1"},
    {"post_id": "a2", "kind": "answer", "body": "<p>Yes.</p>", "parent_id": "q1"},
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in POSTS))
    (tmp_path / "topics.jsonl").write_text('{"post_id": "t1", "title": "When is $y$ odd?", "markup": "text"}\n')
    (tmp_path / "qrels.tsv").write_text("t1 0 a1 3\nt1 0 a2 0\n")
    return tmp_path


def test_posts_topics_pairs_and_judgments(root: Path) -> None:
    corpus = open_corpus("jsonl", root)
    question, *_ = corpus.posts()
    assert isinstance(question, Post)
    assert extract(question).sentences == ("Is FORMULA_0 odd?",)
    (topic,) = corpus.topics(1, [])
    assert (topic.topic_id, topic.post.kind) == ("t1", "topic")
    assert corpus.judgments(1, []) == [Judgment("t1", "a1", 3), Judgment("t1", "a2", 0)]
    assert list(corpus.pairs()) == [Pair("q1", "a1"), Pair("q1", "a2")]
    assert corpus.formulas() is None


def test_an_accepted_answer_makes_the_only_pair(root: Path) -> None:
    posts = [{**POSTS[0], "accepted_answer_id": "a2"}, *POSTS[1:]]
    (root / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    assert list(JsonLines(root).pairs()) == [Pair("q1", "a2")]


def test_an_answer_that_several_questions_accept_makes_a_pair_with_each(root: Path) -> None:
    questions = [{"post_id": f"q{n}", "kind": "question", "accepted_answer_id": f"a{n % 2 + 1}"} for n in range(4)]
    (root / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in [*questions, *POSTS[1:]]))
    assert list(JsonLines(root).pairs()) == [Pair("q0", "a1"), Pair("q2", "a1"), Pair("q1", "a2"), Pair("q3", "a2")]


def test_accepted_answers_that_are_not_in_the_collection_do_not_count(root: Path) -> None:
    posts = [{**POSTS[0], "accepted_answer_id": "a9"}, *POSTS[1:]]
    (root / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    assert list(JsonLines(root).pairs()) == [Pair("q1", "a1"), Pair("q1", "a2")]


def test_packed_files_are_read_and_cut_ones_are_an_error(root: Path) -> None:
    packed = gzip.compress((root / "posts.jsonl").read_bytes())
    for name, way_out in (("posts.jsonl", "name it posts.jsonl.gz, or unpack it"), ("qrels.tsv", "unpack it")):
        (root / name).write_bytes(packed)
        with pytest.raises(CorpusError, match=rf"{name}: is compressed with gzip; {way_out}"):
            list(JsonLines(root).posts()), JsonLines(root).judgments(1, [])
        (root / name).write_bytes(gzip.decompress(packed))
    (root / "posts.jsonl").unlink()
    (root / "posts.jsonl.gz").write_bytes(packed)
    assert len(list(JsonLines(root).posts())) == 3
    (root / "posts.jsonl.gz").write_bytes(packed[:-20])
    with pytest.raises(CorpusError, match=r"posts\.jsonl\.gz.*is the file complete"):
        list(JsonLines(root).posts())


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        ("{", "bad_json", ":2: not JSON: Expecting property name enclosed in double quotes, at character 3"),
        ("[" * 100_000, "bad_json", ":2: not JSON"),
        ("[1]", "bad_json", ":2: list, not an object"),
        ('{"post_id": "1", "kind": "question", "titel": "t"}', "bad_post", ":2: unknown key 'titel'; known are"),
        ('{"post_id": 1.5, "kind": "question"}', "bad_post", ":2: post_id 1.5 is not a number or a string"),
        ('{"post_id": true, "kind": "question"}', "bad_post", ":2: post_id True"),
        ('{"kind": "question"}', "bad_post", ":2: no post_id"),
        (
            '{"post_id": "1", "knd": "answer"}',
            "bad_post",
            ":2: no kind, question or answer; its keys are ['knd', 'post_id']",
        ),
        ('{"id": 1, "question_id": 1, "kind": "question"}', "bad_post", ":2: question_id 1: post_id is given twice"),
        ('{"post_id": "a b", "kind": "question"}', "bad_post", ":2: post_id 'a b'"),
        (r'{"post_id": "a\ud800", "kind": "question"}', "bad_post", r":2: post_id 'a\ud800'"),
        ('{"post_id": "1", "kind": "comment"}', "bad_post", ":2: kind 'comment'"),
        ('{"post_id": "1", "kind": "topic"}', "bad_post", ":2: kind 'topic': topics stand in topics.jsonl"),
        ('{"post_id": "1", "kind": "answer", "body": 3}', "bad_post", ":2: body is int"),
        ('{"post_id": "1", "kind": "answer", "markup": "md"}', "bad_post", ":2: markup 'md'"),
        ('{"post_id": "1", "kind": "answer", "score": "3"}', "bad_post", ":2: score '3'"),
        ('{"post_id": "1", "kind": "answer", "tags": "a"}', "bad_post", ":2: tags"),
    ],
)
def test_a_broken_line_is_a_failure_and_the_rest_is_read(root: Path, line: str, kind: str, message: str) -> None:
    good = json.dumps(POSTS[0])
    (root / "posts.jsonl").write_text(f"{good}\n{line}\n\n{good}\n")
    first, failure, last = JsonLines(root).posts()
    assert isinstance(first, Post)
    assert isinstance(last, Post)
    assert isinstance(failure, Failure)
    assert failure.kind == kind
    assert f"posts.jsonl{message}" in failure.message


def test_halves_of_surrogate_pairs_are_replaced(tmp_path: Path) -> None:
    """A program that cuts texts at a length leaves them; no file or database takes them."""
    line = r'{"post_id": "1", "kind": "question", "title": "\ud83d a", "body": "\ud83d\ude00", "tags": ["\udc00"]}'
    (tmp_path / "posts.jsonl").write_text(line + "\n")
    (post,) = JsonLines(tmp_path).posts()
    assert isinstance(post, Post)
    assert (post.title, post.body, post.tags) == ("\ufffd a", "\U0001f600", ("\ufffd",))


def test_files_of_questions_and_of_answers_tell_the_kind_and_may_be_many(tmp_path: Path) -> None:
    def write(name: str, *lines: dict[str, object]) -> None:
        data = "".join(json.dumps(line) + "\n" for line in lines).encode()
        (tmp_path / name).write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    write("answers.jsonl", {"answer_id": 9, "question_id": 7, "body": "<p>No, $x &lt; y$.</p>"})
    write("questions_06.jsonl.gz", {"question_id": 8, "title": "And $y$?"})
    write("questions_03.jsonl.gz", {"id": "7", "title": "Is $x<y$?", "body": "If a<b and b>c", "tags": ["order"]})
    corpus = JsonLines(tmp_path)
    before = corpus.fingerprints()
    posts = [post for post in corpus.posts() if isinstance(post, Post)]
    assert [(post.post_id, post.kind, post.markup) for post in posts] == [
        ("7", "question", "text"),
        ("8", "question", "text"),
        ("9", "answer", "html"),
    ]
    assert extract(posts[0]).sentences == ("Is FORMULA_0?", "If a<b and b>c")
    assert list(corpus.pairs()) == [Pair("7", "9")]
    write("questions_09.jsonl", {"question_id": 10, "title": "Or $z$?", "kind": "comment"})
    assert JsonLines(tmp_path).fingerprints() != before
    failure = list(JsonLines(tmp_path).posts())[2]
    assert isinstance(failure, Failure)
    assert "questions_09.jsonl:1: kind 'comment'" in failure.message
    write("questions_06.jsonl", {"question_id": 8})
    with pytest.raises(CorpusError, match=r"both questions_06\.jsonl and questions_06\.jsonl\.gz"):
        JsonLines(tmp_path)
    write("posts.jsonl", {"post_id": "1", "kind": "question"})
    with pytest.raises(CorpusError, match=r"both posts\.jsonl and questions_03"):
        JsonLines(tmp_path)


def test_broken_topics_are_errors(root: Path) -> None:
    (root / "topics.jsonl").write_text('{"post_id": "t1"}\n{"post_id": "t2", "formula_id": "f"}\n')
    with pytest.raises(CorpusError, match=r"topics\.jsonl:2: a topic of Task 2"):
        JsonLines(root).topics(1)
    with pytest.raises(CorpusError, match=r"no topics2\.jsonl"):
        JsonLines(root).topics(2)
    (root / "topics2.jsonl").write_text('{"post_id": "t2", "formula_id": "f", "formula_prefix": "x:"}\n')
    assert JsonLines(root).topics(2)[0].formula_id == "x:f"
    (root / "topics.jsonl").write_text('{"qid": "t1"}\n')
    with pytest.raises(CorpusError, match=r"topics\.jsonl:1: unknown key 'qid'; known are .*, topic_id"):
        JsonLines(root).topics(1)


def test_years_and_missing_files(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="years"):
        JsonLines(root).topics(1, [2020])
    (root / "qrels.tsv").unlink()
    with pytest.raises(CorpusError, match=r"no qrels\.tsv"):
        JsonLines(root).judgments(1)
    (root / "posts.jsonl").unlink()
    with pytest.raises(CorpusError, match=r"no posts\.jsonl"):
        JsonLines(root)


@pytest.mark.parametrize("name", ["topic_id", "post_id", "id"])
def test_the_id_of_a_topic_has_three_names(root: Path, name: str) -> None:
    (root / "topics.jsonl").write_text(json.dumps({name: "t9", "body": "Is $y$ odd?"}) + "\n")
    assert [topic.topic_id for topic in JsonLines(root).topics(1)] == ["t9"]


def test_ids_of_topics_are_apart_from_those_of_posts(root: Path) -> None:
    """A topic may have the id of a post; its formulas have ids of their own."""
    topic = {"post_id": "a1", "body": "Is $y$ odd?", "markup": "text"}
    (root / "topics.jsonl").write_text(json.dumps(topic) + "\n")
    (root / "topics2.jsonl").write_text(json.dumps({**topic, "formula_id": "a1:0"}) + "\n")
    (one,), (two,) = (JsonLines(root).topics(task) for task in (1, 2))
    assert (one.topic_id, one.post.post_id) == ("a1", "query:a1")
    assert two.formula_id == extract(two.post).formulas[0].formula_id == "query:a1:0"
    (root / "posts.jsonl").write_text('{"post_id": "query:a1", "kind": "answer", "body": "b"}\n')
    (failure,) = JsonLines(root).posts()
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.post_id) == ("bad_id", "")


@pytest.mark.parametrize("packed", [False, True])
def test_an_endless_line_is_a_failure_and_the_rest_is_read(
    root: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr("graphs.corpus.jsonl.MAX_LINE", 1000)
    good = json.dumps(POSTS[0])
    content = f"{good}\n{'x' * 5000}\n{good}\n{'y' * 999}\n{'z' * 3000}".encode()
    (root / "posts.jsonl").unlink()
    (root / f"posts.jsonl{'.gz' * packed}").write_bytes(gzip.compress(content) if packed else content)
    found = list(JsonLines(root).posts())
    assert [one.kind for one in found] == ["question", "long_line", "question", "bad_json", "long_line"]
    assert isinstance(found[4], Failure)
    assert ":5: a line of more than 1000 bytes" in found[4].message


def test_a_topic_without_an_id_and_judgments_in_utf_16_name_the_fix(root: Path) -> None:
    (root / "topics.jsonl").write_text('{"body": "Is $x$ odd?"}\n')
    with pytest.raises(CorpusError, match=r"topics\.jsonl:1: no topic_id; every topic needs one"):
        JsonLines(root).topics(1)
    (root / "qrels.tsv").write_text("1 0 a1 3\n", encoding="utf-16")
    with pytest.raises(CorpusError, match=r"qrels\.tsv: is not UTF-8: invalid start byte; save it as UTF-8"):
        JsonLines(root).judgments(1)
