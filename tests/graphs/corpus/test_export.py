"""Export to the form of BEIR: what is read back is what was there."""

import json
from pathlib import Path

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.export import export_beir, plain_text
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.queries.beir import open_beir
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError

BODIES = [
    "<p>It costs $5 or 6$. "
    r"Let <span class='math-container'>x<5</span> and <span class='math-container'>\$y</span>.</p>",
    "No formula; a lonely \\( opens none, <b>nor</b> does &lt;b&gt;.",
    r"<span class='math-container'>\text{if $x$}</span> or <span class='math-container'>the word alone</span>",
    r"<span class='math-container'>\text{\(a\)}</span>: see $$\sum_i x_i$$ and <math alttext='c^2'></math>.",
    r"$\begin{matrix} a &amp; b \\ c &amp; d \end{matrix}$, and &lt;/b&gt; is no tag, "
    "7 <span class='math-container'></span>",
    "",
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "own"
    place.mkdir()
    posts: list[dict[str, object]] = [
        {"post_id": "1", "kind": "question", "title": "Is $x$ odd?", "body": "I ask."},
        {"post_id": "2", "kind": "question", "title": "Another", "body": "Is $y$ odd?"},
    ]
    for number, body in enumerate(BODIES):
        posts.append({"post_id": f"a/{number}", "kind": "answer", "title": "$T$", "body": body, "markup": "html"})
        posts[-1]["parent_id"] = str(number % 2 + 1)
    (place / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts) + "{\n")
    topics = [
        {"post_id": "2", "topic_of": "2", "body": "What is $z$?"},
        {"post_id": "t", "title": "IS $x$ odd!", "body": "Help."},
    ]
    (place / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (place / "qrels.tsv").write_text("2 0 a/0 4\n2 0 a/1 0\nt 0 a/2 1\n")
    return place


def latex(post: Post) -> list[str]:
    return [formula.latex for formula in extract(post).formulas if formula.latex]


def test_a_round_trip_keeps_ids_grades_and_formulas(root: Path, tmp_path: Path) -> None:
    corpus, out = open_corpus("jsonl", root), tmp_path / "out"
    exported = export_beir(corpus, out)
    assert (exported.documents, exported.judgments, exported.failures) == (6, 3, 1)
    again = open_beir(out)
    assert again.judgments(1) == corpus.judgments(1, [])
    before = {post.post_id: post for post in corpus.posts() if isinstance(post, Post) and post.kind == "answer"}
    after = {post.post_id: post for post in again.posts() if isinstance(post, Post) and post.kind == "answer"}
    assert list(after) == list(before)
    assert [latex(after[name]) for name in before] == [latex(post) for post in before.values()]
    assert [latex(topic.post) for topic in again.topics(1)] == [["z"], ["x"]]
    assert [topic.topic_id for topic in again.topics(1)] == ["2", "t"]
    assert extract(after["a/0"]).sentences[1:] == ("It costs $5 or 6$.", "Let FORMULA_1 and FORMULA_2.")
    assert not [path for path in out.rglob("*") if path.name.endswith(".part")]


def test_documents_of_another_part_are_not_judged(root: Path, tmp_path: Path) -> None:
    with (root / "qrels.tsv").open("a") as qrels:
        qrels.write("t 0 elsewhere 3\n2 0 1 3\n")  # the latter is a question
    exported = export_beir(open_corpus("jsonl", root), tmp_path / "out")
    assert (exported.judgments, exported.judgments_left_out) == (3, 2)
    assert {one.doc_id for one in open_beir(tmp_path / "out").judgments(1)} == {"a/0", "a/1", "a/2"}


def test_topics_without_a_relevant_document_are_left_out(root: Path, tmp_path: Path) -> None:
    """BEIR's capped recall divides by the number of relevant documents of a query."""
    (root / "qrels.tsv").write_text("2 0 a/0 0\n2 0 elsewhere 3\nt 0 a/2 1\nt 0 a/3 0\n")
    exported = export_beir(open_corpus("jsonl", root), tmp_path / "out")
    assert (exported.queries, exported.judgments) == (1, 2)
    assert (exported.topics_left_out, exported.judgments_left_out) == (1, 2)
    queries = (tmp_path / "out" / "queries.jsonl").read_text().splitlines()
    assert [json.loads(line)["_id"] for line in queries] == ["t"]
    (root / "qrels.tsv").write_text("2 0 a/0 0\nt 0 elsewhere 1\n")
    with pytest.raises(CorpusError, match="no topic of collection jsonl has a relevant document among those to export"):
        export_beir(open_corpus("jsonl", root), tmp_path / "out")
    assert (tmp_path / "out" / "queries.jsonl").read_text().splitlines() == queries


def test_training_pairs_leave_topics_out(root: Path, tmp_path: Path) -> None:
    """Question 1 has the text of topic t, question 2 is named by topic 2."""
    out = tmp_path / "out"
    assert export_beir(open_corpus("jsonl", root), out).train_pairs == 0
    assert not (out / "qrels" / "train.tsv").exists()
    (root / "topics.jsonl").write_text('{"post_id": "t", "body": "What is $z$?"}\n')
    (root / "qrels.tsv").write_text("t 0 a/0 4\n")
    other_parent = '{"post_id": "a/0", "kind": "answer", "parent_id": "2"}\n'
    (root / "posts.jsonl").write_text((root / "posts.jsonl").read_text() * 2 + other_parent)  # each post twice
    assert export_beir(open_corpus("jsonl", root), out, split="dev").train_pairs == 6
    pairs = list(open_beir(out, "dev").pairs())
    assert pairs[:2] == [Pair("query:1", "a/0"), Pair("query:2", "a/1")]
    assert open_beir(out, "dev").judgments(1) == [Judgment("t", "a/0", 4)]


@pytest.mark.parametrize(("test", "kept"), [("back", ["q2"]), ("trained", ["q1", "q2"])])
def test_a_document_that_a_test_asks_with_is_not_learned_from(test: str, kept: list[str], tmp_path: Path) -> None:
    """The queries of ``trained`` are learned from on purpose."""
    documents = {"d1": "The sum of two odd numbers is even.", "d2": "Each finite group has a composition series."}
    lines: dict[str, list[dict[str, object]]] = {
        "answers.jsonl": [{"post_id": name, "body": text} for name, text in documents.items()],
        "train.jsonl": [
            {"query": f"Question {name[1]}", "document": text, "query_id": f"q{name[1]}", "document_id": name}
            for name, text in documents.items()
        ],
        f"topics-{test}.jsonl": [{"post_id": "t", "body": documents["d1"], "tags": ["document"]}],
    }
    for name, rows in lines.items():
        (tmp_path / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (tmp_path / f"qrels-{test}.tsv").write_text("t 0 d2 2\n")
    export_beir(open_corpus("pairs", tmp_path), tmp_path / "out", task=test)
    train = (tmp_path / "out" / "qrels" / "train.tsv").read_text().splitlines()[1:]
    assert [line.split("\t")[0] for line in train] == kept


def test_each_id_is_exported_once(root: Path, tmp_path: Path) -> None:
    """The first of several posts with one id counts, as in an experiment; a topic may be repeated."""
    with (root / "posts.jsonl").open("a") as posts:
        for number, kind in (("a/1", "answer"), ("1", "answer"), ("1", "question"), ("b", "answer"), ("b", "answer")):
            posts.write(json.dumps({"post_id": number, "kind": kind, "body": f"Another {kind}."}) + "\n")
    topics = root / "topics.jsonl"
    topics.write_text(topics.read_text() * 2)
    exported = export_beir(open_corpus("jsonl", root), tmp_path / "out")
    assert (exported.documents, exported.queries, exported.failures) == (7, 2, 5)
    for name, ids in (("corpus", {*(f"a/{i}" for i in range(6)), "b"}), ("queries", {"2", "t"})):
        lines = [json.loads(line) for line in (tmp_path / "out" / f"{name}.jsonl").read_text().splitlines()]
        assert (len(lines), {line["_id"] for line in lines}) == (len(ids), ids)
        assert [line["text"] for line in lines if line["_id"] == "b"] == ["Another answer."] * ("b" in ids)
    with topics.open("a") as file:
        file.write('{"post_id": "t", "body": "What else?"}\n')
    before = (tmp_path / "out" / "queries.jsonl").read_bytes()
    with pytest.raises(CorpusError, match="two topics of collection jsonl have the id 't' and different texts"):
        export_beir(open_corpus("jsonl", root), tmp_path / "out")
    assert (tmp_path / "out" / "queries.jsonl").read_bytes() == before


def test_nothing_is_half_written(root: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    export_beir(open_corpus("jsonl", root), out)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    corpus = open_corpus("jsonl", root)
    (root / "posts.jsonl").write_text('{"post_id": "1", "kind": "answer", "body": "new"}\n')

    def stop(count: int) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export_beir(corpus, out, progress=stop)
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_what_cannot_be_exported(root: Path, tmp_path: Path) -> None:
    corpus = open_corpus("jsonl", root)
    with pytest.raises(ConfigError, match="task 2 finds formulas"):
        export_beir(corpus, tmp_path, task=2)
    for split in ("train", "../x", ""):
        with pytest.raises(ConfigError, match="is no name for the test"):
            export_beir(corpus, tmp_path, split=split)
    (root / "qrels.tsv").write_text("")
    with pytest.raises(CorpusError, match="no judged topics"):
        export_beir(corpus, tmp_path)


def test_plain_text_has_no_markup() -> None:
    post = Post("1", "answer", "Title", "<p>a &lt; b, <b>bold</b></p><p>Let $x$.</p>", markup="html")
    assert plain_text(post) == "Title a < b, bold Let $x$."
