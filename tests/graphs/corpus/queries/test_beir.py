"""Collections in the form of BEIR: what is read of folders as people have them, and what broken files cost."""

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from graphs.corpus.corpus import Benchmark, benchmark, open_corpus
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.queries.beir import Beir, BeirSuite, open_beir
from graphs.corpus.queries.collection import NamedTests
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError, Failure

DOCUMENTS = [
    {"_id": "1", "title": "Parity", "text": "An odd number is $2k+1$."},
    {"_id": "2", "title": "", "text": "Rings, without any formula."},
    {"_id": 3, "text": r"Let \(x<y\) and \[z\] hold."},
    {"_id": "4", "title": None, "text": '<p>So <math alttext="a^2"><mi>a</mi></math>.</p>'},
]
QUERIES = [{"_id": name, "text": f"Question ${name}x$?"} for name in ("1", "2", "7", "8")]


def lines(path: Path, records: list[dict[str, object]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def judged(path: Path, *rows: str, header: bool = True) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    head = ["query-id\tcorpus-id\tscore"] if header else []
    path.write_text("\n".join([*head, *("\t".join(row.split()) for row in rows)]) + "\n")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    place = tmp_path / "beir"
    lines(place / "corpus.jsonl", [dict(one) for one in DOCUMENTS])
    lines(place / "queries.jsonl", [dict(one) for one in QUERIES])
    judged(place / "qrels" / "test.tsv", "1 2 1", "2 1 1", "2 3 0")
    judged(place / "qrels" / "train.tsv", "7 1 1", "7 2 0", "8 99 1", "1 1 1")
    return place


def test_ids_of_queries_and_documents_are_two_name_spaces(root: Path) -> None:
    corpus = open_corpus("beir", root)
    posts = [post for post in corpus.posts() if isinstance(post, Post)]
    assert [(post.post_id, post.kind) for post in posts] == [
        *[(name, "answer") for name in ("1", "2", "3", "4")],
        *[("query:7", "question"), ("query:8", "question")],
    ]
    topics = corpus.topics(1, [])
    assert [(topic.topic_id, topic.post.post_id) for topic in topics] == [("1", "query:1"), ("2", "query:2")]
    assert [formula.formula_id for formula in extract(topics[0].post).formulas] == ["query:1:0"]
    assert [[f.latex for f in extract(post).formulas] for post in posts[:4]] == [["2k+1"], [], ["x<y", "z"], ["a^2"]]
    # Query 1 is tested, and document 99 is not there.
    assert list(corpus.pairs()) == [Pair("query:7", "1")]


def test_the_grade_of_training_pairs(root: Path) -> None:
    judged(root / "qrels" / "train.tsv", "7 1 4", "7 2 1", "8 3 2", "8 4 -1")
    assert list(Beir(root).pairs()) == [Pair("query:7", "1"), Pair("query:8", "3")]
    assert list(Beir(root, relevant=4).pairs()) == [Pair("query:7", "1")]
    assert len(list(Beir(root, relevant=1).pairs())) == 3
    assert Beir(root).fingerprints() != Beir(root, relevant=4).fingerprints()


@pytest.mark.parametrize("form", ["headless", "trec", "jsonl", "gz", "single", "other order"])
def test_forms_of_judgments(root: Path, form: str) -> None:
    path = root / "qrels" / "test.tsv"
    if form == "headless":
        judged(path, "1 2 1", "1 2 1", "2 1 1.0", "2 3 -2", header=False)
    elif form == "trec":
        judged(path, "1 0 2 1", "2 0 1 1", "2 0 3 0", header=False)
    elif form == "jsonl":
        path.unlink()
        rows = (("1", "2", 1), ("2", "1", 1.0), ("2", "3", 0))
        lines(path.with_suffix(".jsonl"), [{"query-id": q, "corpus-id": d, "score": s} for q, d, s in rows])
    elif form == "gz":
        path.with_name("test.tsv.gz").write_bytes(gzip.compress(path.read_bytes()))
        path.unlink()
    elif form == "single":
        path.rename(root / "qrels.tsv")
        shutil.rmtree(root / "qrels")
    else:
        path.write_text("score\tcorpus-id\tquery-id\n1\t2\t1\n1\t1\t2\n0\t3\t2\n")
    corpus = open_corpus("beir", root)
    assert corpus.judgments(1, []) == [Judgment("1", "2", 1), Judgment("2", "1", 1), Judgment("2", "3", 0)]


def test_packed_files_are_read(root: Path) -> None:
    for name in ("corpus.jsonl", "queries.jsonl"):
        (root / f"{name}.gz").write_bytes(gzip.compress((root / name).read_bytes()))
        with pytest.raises(CorpusError, match=f"both {name} and {name}.gz"):
            open_beir(root)
        (root / name).unlink()
    assert len(list(open_beir(root).posts())) == 6


def test_splits(root: Path) -> None:
    with pytest.raises(CorpusError, match=r"no judgments of data.split=dev here; choose from: test, train"):
        open_corpus("beir", root, split="dev")
    for name in ("../test", "", "a b"):
        with pytest.raises(ConfigError, match=r"data.split="):
            open_beir(root, name)
    train = open_corpus("beir", root, split="train")
    assert not list(train.pairs())
    assert train.fingerprints().posts != open_corpus("beir", root).fingerprints().posts
    with pytest.raises(ConfigError, match=r"leave data\.root out, or name its form, e\.g\. data=jsonl"):
        open_corpus("mathdocs", root)
    with pytest.raises(ConfigError, match=r"data.split=dev: collection 'jsonl' has no such choice, only 'beir'"):
        open_corpus("jsonl", root, split="dev")


def test_benchmarks_that_share_a_corpus_are_tests_with_names(root: Path) -> None:
    for name in ("easy", "hard"):
        lines(root / name / "queries.jsonl", [{"_id": "1", "text": f"An {name} one?"}, {"_id": "2", "text": "Same?"}])
        judged(root / name / "qrels" / "test.tsv", "1 1 1")
        judged(root / name / "qrels" / "train.tsv", "2 2 1")
    shutil.rmtree(root / "qrels")
    suite = open_corpus("beir", root)
    assert isinstance(suite, BeirSuite)
    assert isinstance(suite, NamedTests)
    assert suite.tests() == ("easy", "hard")
    (topic,) = suite.test("hard").topics
    assert (topic.topic_id, topic.post.post_id, topic.post.body) == ("1", "query:hard/1", "An hard one?")
    assert list(suite.pairs()) == [Pair("query:easy/2", "2"), Pair("query:hard/2", "2")]
    assert [post.post_id for post in suite.posts() if isinstance(post, Post)][-2:] == ["query:easy/2", "query:hard/2"]
    with pytest.raises(ConfigError, match=r"'middle' is no test of .*; known are easy, hard"):
        suite.test("middle")
    assert not isinstance(suite, Benchmark)
    with pytest.raises(CorpusError, match="the tests of collection beir have names; name one or more of easy, hard"):
        benchmark(suite)
    alone = open_corpus("beir", root / "easy")
    assert [post.post_id for post in alone.posts() if isinstance(post, Post)] == ["1", "2", "3", "4", "query:2"]
    lines(root / "easy" / "corpus.jsonl", [{"_id": "1", "text": "own"}])
    with pytest.raises(CorpusError, match=r"easy has its own corpus; open it alone: data.root=.*easy"):
        open_beir(root)


def test_a_judgment_changes_neither_graphs_nor_searches(root: Path) -> None:
    before = open_beir(root).fingerprints()
    judged(root / "qrels" / "test.tsv", "1 2 1", "2 1 1", "2 3 0", "2 4 1")
    after = open_beir(root).fingerprints()
    assert (after.graphs, after.searches) == (before.graphs, before.searches)
    assert after.judgments != before.judgments
    lines(root / "queries.jsonl", [*map(dict, QUERIES), {"_id": "99", "text": "Never asked?"}])
    assert open_beir(root).fingerprints() == after
    judged(root / "qrels" / "test.tsv", "1 2 1", "2 1 1", "7 4 1")  # a topic more, and a training pair less
    further = open_beir(root).fingerprints()
    assert further.graphs != after.graphs
    assert further.topics != after.topics
    (root / "qrels" / "train.tsv").unlink()
    judged(root / "qrels" / "test.tsv", "1 2 1", "2 1 1", "2 3 0")
    bare = open_beir(root).fingerprints()
    assert bare.topics == after.topics
    lines(root / "queries.jsonl", [{**one, "text": f"Is {one['text']}"} for one in QUERIES])
    assert open_beir(root).fingerprints().topics != bare.topics
    assert open_beir(root).fingerprints().graphs == bare.graphs


def test_the_place_of_the_files_is_not_in_the_fingerprint(root: Path, tmp_path: Path) -> None:
    shutil.copytree(root, tmp_path / "moved")
    assert open_beir(tmp_path / "moved").fingerprints() == open_beir(root).fingerprints()


@pytest.mark.parametrize(
    ("line", "kind", "message"),
    [
        (b'{"_id": "a b", "text": "t"}', "bad_post", ":5: _id 'a b'"),
        (b'{"_id": "query:1", "text": "t"}', "bad_id", ":5: post_id 'query:1': ids that begin with 'query:'"),
        (rb'{"_id": "a\u0000", "text": "t"}', "bad_post", ":5: _id 'a\\x00'"),
        (b'{"text": "t"}', "bad_post", ":5: no _id"),
        (b'{"_id": "5", "text": ["t"]}', "bad_post", ":5: text is list"),
        (b'{"_id": "5", "text": "\xff\xfe"}', "bad_json", ":5: not JSON"),
        (b'{"_id": "5", "text": "\x00"}', "bad_json", ":5: not JSON"),
        (b'["_id"]', "bad_json", ":5: list"),
    ],
)
def test_a_broken_document_is_a_counted_failure(root: Path, line: bytes, kind: str, message: str) -> None:
    path = root / "corpus.jsonl"
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes() + line + b'\n{"_id": "../a/b", "text": "\\u0000 last"}\n')
    found = [one for one in open_beir(root).posts() if not (isinstance(one, Post) and one.kind == "question")]
    assert len(found) == 6
    failure, last = found[4:]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.post_id) == (kind, "")
    assert f"corpus.jsonl{message}" in failure.message
    assert isinstance(last, Post)  # an id is no path
    assert last.post_id == "../a/b"


def test_a_broken_query_is_an_error_if_it_is_judged(root: Path) -> None:
    path = root / "queries.jsonl"
    path.write_bytes(path.read_bytes() + b'{"_id": "nine"\n')
    assert len(open_corpus("beir", root).topics(1, [])) == 2
    judged(root / "qrels" / "test.tsv", "1 2 1", "nine 1 1")
    with pytest.raises(CorpusError, match=r"1 judged queries are missing, 'nine' .* cannot be read, .*queries.jsonl:5"):
        open_corpus("beir", root).topics(1, [])
    lines(path, [{"_id": "1", "text": "one"}, {"_id": "1", "text": "another"}, {"_id": "nine", "text": "n"}])
    with pytest.raises(CorpusError, match=r"query '1' .* twice, as two texts"):
        open_corpus("beir", root).topics(1, [])


def cut(path: Path) -> None:
    path.with_name(f"{path.name}.gz").write_bytes(gzip.compress(path.read_bytes())[:-12])
    path.unlink()


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda root: judged(root / "qrels" / "test.tsv", "1 2"), r"test\.tsv:2: 2 columns; a line has query-id"),
        (lambda root: judged(root / "qrels" / "test.tsv", "1 2 0.5"), r"test\.tsv:2: grade '0\.5'"),
        (lambda root: judged(root / "qrels" / "test.tsv", "1 2 1", "1 2 0"), r"test\.tsv:3: 2 has grade 0 here and 1"),
        (
            lambda root: (root / "qrels" / "test.tsv").write_bytes(b"1\t2\t1\n\xff\t1\t1\n"),
            r"test\.tsv:2: is not UTF",
        ),
        (lambda root: cut(root / "qrels" / "test.tsv"), r"test\.tsv\.gz.*is the file complete"),
        (lambda root: cut(root / "queries.jsonl"), r"queries\.jsonl\.gz.*is the file complete"),
        (lambda root: (root / "qrels" / "test.jsonl").write_text("{}\n"), "both test.jsonl and test.tsv"),
        (lambda root: shutil.rmtree(root / "qrels"), "no judgments here"),
        (lambda root: (root / "corpus.jsonl").unlink(), "no corpus.jsonl"),
    ],
)
def test_what_cannot_be_read_is_one_error(root: Path, spoil: Callable[[Path], object], message: str) -> None:
    spoil(root)
    with pytest.raises(CorpusError, match=message):
        open_beir(root).topics(1)


def test_years_and_task_2(root: Path) -> None:
    corpus = open_corpus("beir", root)
    with pytest.raises(ConfigError, match="knows no years"):
        corpus.topics(1, [2020])
    with pytest.raises(CorpusError, match="no topics of Task 2"):
        corpus.topics(2, [])
