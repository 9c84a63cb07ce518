"""Collections of others from files to results: BEIR with colliding ids and binary grades, the documented example."""

import csv
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ir_measures
import pytest
from ir_measures import AP, Bpref, P, R, nDCG
from omegaconf import OmegaConf

from experiments.run import run
from graphs.errors import ConfigError
from mathamr.evaluation.runs import read_run
from scripts import data
from tests.experiments.conftest import FORMULAS, SUBJECTS
from tests.experiments.tiny_settings import TINY, trial

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
THREADS = ROOT / ".." / "shared" / "data" / "mse-threads" / "threads.jsonl"
MEASURES = {
    "ndcg_prime": nDCG(judged_only=True) @ 1000,
    "map_prime": AP(rel=1, judged_only=True),
    "p_prime_10": P(rel=1, judged_only=True) @ 10,
    "bpref": Bpref(rel=1),
    "recall_1000": R(rel=1) @ 1000,
}


def write(path: Path, records: list[dict[str, Any]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def judge(path: Path, rows: list[tuple[str, str, int]]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("query-id\tcorpus-id\tscore\n" + "".join(f"{q}\t{d}\t{g}\n" for q, d, g in rows))


@pytest.fixture
def beir(tmp_path: Path) -> Path:
    """40 documents on ten subjects; queries 0 to 9 are tested, 100 to 139 are learned from."""
    root = tmp_path / "beir"
    subjects = list(enumerate(SUBJECTS * 4))
    documents = [
        {"_id": str(i), "title": subject, "text": f"The {subject} is finite if ${FORMULAS[i % 5]}$. See $n={i}$."}
        for i, subject in subjects
    ]
    write(root / "corpus.jsonl", documents)
    queries = [{"_id": str(i), "text": f"Is every {subject} finite?"} for i, subject in enumerate(SUBJECTS)]
    queries += [{"_id": str(100 + i), "text": f"Is {subject} number {i} finite for ${i}$?"} for i, subject in subjects]
    write(root / "queries.jsonl", queries)
    rows = [(str(q), str(i), int(own == subject)) for q, own in enumerate(SUBJECTS) for i, subject in subjects[:30]]
    judge(root / "qrels" / "test.tsv", rows)
    judge(root / "qrels" / "train.tsv", [(str(100 + i), str(i), 1) for i, _ in subjects])
    return root


def configured(root: Path, out: Path, *settings: str, **conditions: Any) -> Any:
    settings = (*TINY, "data=beir", f"data.root={root}", f"outputs={out}", "train.epochs=1", *settings)
    config = trial("experiment.name=demo", *settings)
    if conditions:
        OmegaConf.set_struct(config, False)
        config.experiment.conditions = conditions
        config.experiment.baseline = next(iter(conditions))
    return config


def results(out: Path) -> Iterator[tuple[dict[str, str], Path]]:
    with (out / "demo" / "results.csv").open(newline="") as file:
        for row in csv.DictReader(file):
            assert row["status"] == "done", row["status"]
            yield row, out / "demo" / "jobs" / f"{row['condition']}-seed{row['seed']}"


def test_judgments_without_irrelevant_documents_are_named(
    beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Unjudged documents are dropped, so every ranking of relevant documents has nDCG' 1."""
    judge(beir / "qrels" / "test.tsv", [("0", "0", 1), ("1", "1", 1)])
    config = configured(beir, tmp_path / "out", bm25={"track": "bm25"})
    assert run(config, "command").failed == 0
    assert "do not depend on their order" in capsys.readouterr().err
    config.experiment.measures = {"MRR": "RR"}
    assert run(config, "command").failed == 0
    assert "do not depend on their order" not in capsys.readouterr().err


def test_binary_grades_and_colliding_ids(beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The scores are those of ir_measures for the same run file, from grade 1; of words and of graphs."""
    out = tmp_path / "out"
    assert run(configured(beir, out, bm25={"track": "bm25"}, graph={}), "command").failed == 0
    said = capsys.readouterr().err
    assert "no grade is above 1, so documents of grade 1 count as relevant" in said
    assert "do not depend on their order" not in said
    with (beir / "qrels" / "test.tsv").open() as file:
        qrels = [ir_measures.Qrel(q, d, int(g)) for q, d, g in list(csv.reader(file, delimiter="\t"))[1:]]
    found = dict.fromkeys(["bm25", "graph"], False)
    for row, place in results(out):
        rankings = read_run(place / "run.tsv", task=1).rankings
        assert rankings.keys() == {str(number) for number in range(10)}
        scored = [ir_measures.ScoredDoc(q, hit.doc_id, hit.score) for q, hits in rankings.items() for hit in hits]
        expected = ir_measures.calc_aggregate(list(MEASURES.values()), qrels, scored)
        for name, measure in MEASURES.items():
            assert float(row[name]) == pytest.approx(expected[measure], abs=1e-6)
        assert float(row["map_prime"]) > 0.1
        assert row["relevant_grade"] == "1"
        found[row["condition"]] = True
    assert all(found.values())
    assert "relevant from grade 1" in (out / "demo" / "report.md").read_text()


def test_a_given_grade_wins(beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    judge(beir / "qrels" / "test.tsv", [("0", "0", 4), ("0", "10", 3), ("0", "20", 2), ("1", "1", 4)])
    scores = {}
    for grade in ("null", "4"):
        out = tmp_path / f"out{grade}"
        run(configured(beir, out, "track=bm25", f"data.relevant_grade={grade}"), "command")
        ((row, _),) = results(out)
        scores[row["relevant_grade"]] = float(row["p_prime_10"])
    assert scores == {"2": pytest.approx(0.2), "4": pytest.approx(0.1)}
    assert "grade" not in capsys.readouterr().err
    with pytest.raises(ConfigError, match=r"data.relevant_grade=0 must be at least 1"):
        run(configured(beir, tmp_path / "no", "track=bm25", "data.relevant_grade=0"), "command")


def test_benchmarks_that_share_a_corpus(beir: Path, tmp_path: Path) -> None:
    for name in ("easy", "hard"):
        (beir / name).mkdir()
        (beir / "queries.jsonl").rename(beir / name / "queries.jsonl") if name == "hard" else None
        (beir / name / "queries.jsonl").write_text('{"_id": "0", "text": "Is every ring finite?"}\n')
        judge(beir / name / "qrels" / "test.tsv", [("0", "0" if name == "easy" else "1", 1)])
    (beir / "qrels" / "test.tsv").unlink()
    (beir / "qrels" / "train.tsv").unlink()
    out = tmp_path / "out"
    run(configured(beir, out, "track=bm25", "experiment.tasks=[easy,hard]"), "command")
    ((row, place),) = results(out)
    assert float(row["easy_map_prime"]) == 1.0
    assert row["easy_relevant_grade"] == row["hard_relevant_grade"] == "1"
    assert (place / "run-easy.tsv").read_text().startswith("0\t30\t1\t")  # of equal scores the highest id
    with pytest.raises(ConfigError, match="the tests of this collection are easy, hard"):
        run(configured(beir, out, "track=bm25"), "command")


def test_without_a_split_to_learn_from(beir: Path, tmp_path: Path) -> None:
    (beir / "qrels" / "train.tsv").unlink()
    run(configured(beir, tmp_path / "out", "track=bm25"), "command")
    message = r"has no training pairs; use a track that trains nothing.*accepted_answer_id.*train\.positives"
    with pytest.raises(ConfigError, match=message):
        run(configured(beir, tmp_path / "out", "track=graph"), "command")


@pytest.mark.parametrize("track", ["bm25", "text", "graph"])
def test_every_track_reports_broken_documents(
    track: str, beir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (beir / "corpus.jsonl").open("a") as file:
        file.write('{"_id": "bro ken", "text": "An id with a blank."}\n')
    out = tmp_path / "out"
    tiny = ("text=tiny", "text.epochs=0") if track == "text" else ()
    assert run(configured(beir, out, f"track={track}", *tiny), "command").failed == 0
    said = capsys.readouterr().err
    assert f"left out: 1 post that cannot be read, the first: {beir}/corpus.jsonl:41: _id 'bro ken'" in said
    (listed,) = out.glob("shared/*/posts.failures.tsv")
    assert listed.read_text().count("\n") == 2


def test_a_topic_that_is_a_post_is_not_learned(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with (collection / "topics.jsonl").open("a") as file:
        file.write('{"topic_id": "q3", "title": "When is a lattice finite?", "body": "Is it?"}\n')
    with (collection / "qrels.tsv").open("a") as file:
        file.write("q3\t0\ta3\t3\n")
    settings = ("data=jsonl", "data.regime=full")
    run(configured(collection, tmp_path / "out", *settings), "command")
    assert "training pairs left out, because their questions are topics: 4 of 41, e.g. q3" in capsys.readouterr().err


def test_the_example_of_the_documentation_runs(tmp_path: Path) -> None:
    text = (ROOT / "docs" / "your-collection.md").read_text()
    blocks = re.findall(r"`(posts\.jsonl|topics\.jsonl|qrels\.tsv)`[^\n]*\n\n```\w+\n(.*?)```", text, re.DOTALL)
    assert [name for name, _ in blocks] == ["posts.jsonl", "topics.jsonl", "qrels.tsv"]
    root = tmp_path / "example"
    root.mkdir()
    for name, content in blocks:
        (root / name).write_text(content)
    assert blocks[0][1].count("\n") == 6
    run(configured(root, tmp_path / "out", "data=jsonl", "track=bm25"), "command")
    ((row, _),) = results(tmp_path / "out")
    assert float(row["ndcg_prime"]) == 1.0
    assert row["relevant_grade"] == "2"


@pytest.mark.shared
@pytest.mark.skipif(not THREADS.is_file(), reason="data/mse-threads is not beside the repository")
def test_threads_exported_to_beir_run_with_words_and_graphs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Real threads: every fourth question is a query, whose answers are relevant; the others are learned from.

    No thread is marked as a duplicate of another: of 85 threads one links to another, as related.
    """
    threads = [json.loads(line) for line in THREADS.read_text().splitlines()]
    assert not [thread for thread in threads if re.search("(?i)possible duplicate", json.dumps(thread))]
    own, exported = tmp_path / "own", tmp_path / "exported"
    write(own / "posts.jsonl", [post for thread in threads for post in posts_of(thread)])
    asked = [thread["question"] for thread in threads[::4]]
    topics = [
        {"topic_id": f"T.{one['id']}", "topic_of": str(one["id"]), "title": one["title"], "body": one["body_html"]}
        for one in asked
    ]
    write(own / "topics.jsonl", topics)
    rows = [(f"T.{thread['question']['id']}", str(one["id"])) for thread in threads[::4] for one in thread["answers"]]
    (own / "qrels.tsv").write_text("".join(f"{topic} 0 {answer} 1\n" for topic, answer in rows))
    assert data.main(["export", "--corpus", "jsonl", "--root", str(own), "--to", str(exported)]) == 0
    assert data.main(["check", "--root", str(exported)]) == 0
    learned = (exported / "qrels" / "train.tsv").read_text()
    assert not {query for query, _ in rows} & set(learned.split())
    assert not {answer for _, answer in rows} & set(learned.split())
    out = tmp_path / "out"
    assert run(configured(exported, out, bm25={"track": "bm25"}, graph={}), "command").failed == 0
    assert "posts that failed" not in capsys.readouterr().err
    for row, place in results(out):
        assert int(row["topics"]) == len(threads[::4])
        assert float(row["recall_1000"]) > 0.9
        assert len((place / "run.tsv").read_text().splitlines()) > len(rows)
        if row["condition"] == "bm25":
            assert float(row["ndcg_prime"]) > 0.5


def posts_of(thread: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The posts of a thread as lines of posts.jsonl."""
    for kind, one in [("question", thread["question"]), *(("answer", answer) for answer in thread["answers"])]:
        post = {"post_id": one["id"], "kind": kind, "body": one["body_html"], "markup": "html", "score": one["score"]}
        if kind == "question":
            post |= {"title": one["title"], "tags": one["tags"], "accepted_answer_id": one["accepted_answer_id"]}
        else:
            post["parent_id"] = thread["question"]["id"]
        yield post
