"""Topics and documents that take no part in a result: counted in its row, and said at the head of the report."""

from __future__ import annotations

import csv
import json
from pathlib import Path

from experiments.run import run
from tests.experiments.tiny_settings import trial


def test_topics_without_a_graph_are_counted_and_the_report_begins_with_a_warning(
    collection: Path, tmp_path: Path
) -> None:
    """Two of ten topics have no words; the only relevant documents of a third are not in the collection."""
    topics = [json.loads(line) for line in (collection / "topics.jsonl").read_text().splitlines()]
    for topic in topics[:2]:
        topic |= {"title": "", "body": ""}
    (collection / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    lines = [line.split("\t") for line in (collection / "qrels.tsv").read_text().splitlines()]
    kept = [line for line in lines if line[0] != "T.5" or line[3] == "0"] + [["T.5", "0", "gone", "3"]]
    (collection / "qrels.tsv").write_text("".join("\t".join(line) + "\n" for line in kept))
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "data.regime=full", "workers=1"]
    small = ["model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2", "train.epochs=1", "train.batch_size=8"]
    run(trial(*places, *small, "train.device=cpu", "index=exact"), "the command")
    (folder,) = [path.parent for path in tmp_path.glob("*/results.csv")]
    with (folder / "results.csv").open() as file:
        (row,) = csv.DictReader(file)
    counts = {name: int(row[name]) for name in row if name.startswith(("topics_", "documents_"))}
    assert counts == {
        "topics_expected": 10,
        "topics_read": 8,
        "topics_with_result": 8,
        "topics_with_relevant": 9,
        "documents_judged": 41,
        "documents_indexed": 40,
    }
    report = (folder / "report.md").read_text()
    first = report.split("\n\n")[1]
    assert first == "Warning: Task 1: 2 of 10 topics could not be read and score 0."
    assert "1 of 10 topics has no relevant document among those that are searched and scores 0" in report
    assert first in (folder / "report.html").read_text()


def test_a_given_run_finds_documents_that_the_collection_lacks(collection: Path, tmp_path: Path) -> None:
    (collection / "qrels.tsv").write_text("T.1\t0\tgone\t3\nT.1\t0\ta1\t0\nT.2\t0\tlost\t3\n")
    (tmp_path / "run.tsv").write_text("T.1\tgone\t1\t2.0\tme\n")
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "data.regime=full", "track=run"]
    assert run(trial(*places, f"run.path={tmp_path / 'run.tsv'}"), "the command").failed == 0
    report = next(tmp_path.glob("*/report.md")).read_text()
    assert "1 of 2 topics has no result and scores 0." in report
    assert "1 of 2 topics has no relevant document among those that are searched" in report  # T.2, but not T.1
    assert "1 of 3 judged documents is not among those that are searched" in report


def test_a_result_records_the_texts_of_its_topics(collection: Path, tmp_path: Path) -> None:
    topics = collection / "topics.jsonl"
    before = text_hash(collection, tmp_path / "before")
    topics.write_text("".join(reversed(topics.read_text().splitlines(keepends=True))))
    assert text_hash(collection, tmp_path / "other_order") == before
    topics.write_text(topics.read_text().replace('"body": "', '"body": "Please: ', 1))
    assert text_hash(collection, tmp_path / "other_text") != before


def text_hash(collection: Path, outputs: Path) -> str:
    places = ["data=jsonl", f"data.root={collection}", f"outputs={outputs}", "track=bm25"]
    assert run(trial(*places), "the command").failed == 0
    (result,) = outputs.glob("*/jobs/*/result.json")
    found: str = json.loads(result.read_text())["topic_texts_hash"]
    return found


def test_judged_posts_that_are_not_in_the_collection_are_named(collection: Path, tmp_path: Path) -> None:
    (collection / "qrels.tsv").write_text("T.1\t0\tgone\t3\nT.2\t0\tlost\t3\n")
    places = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}", "data.regime=judged", "track=bm25"]
    assert run(trial(*places), "the command").failed == 1
    (failed,) = tmp_path.glob("*/jobs/*/failed.json")
    assert "none of the 2 judged posts is in the collection, e.g. gone" in json.loads(failed.read_text())["reason"]
