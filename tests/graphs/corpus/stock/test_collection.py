"""Holdings of collections as experiments open them: what is counted, what is missing, and what stops a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from graphs.corpus.corpus import open_corpus
from graphs.corpus.stock.collection import CollectionStock
from graphs.corpus.stock.holdings import Holdings
from graphs.corpus.stock.table import table
from tests.graphs.corpus.small_forms import write_form


def holdings(name: str, root: Path) -> Holdings:
    stock = CollectionStock(open_corpus(name, root))
    for step in stock.steps():
        step.run(lambda number: None)
    return stock.holdings()


def missing(found: Holdings) -> list[str]:
    return [one.what for one in found.missing]


def add(path: Path, line: str) -> None:
    path.write_text(path.read_text() + line + "\n")


def test_a_collection_of_json_lines(tmp_path: Path) -> None:
    found = holdings("jsonl", write_form("jsonl", tmp_path))
    assert found.counts == {
        "topics.task1": 1,
        "judgments.task1": 2,
        "judgments.task1.topics": 1,
        "judgments.task1.relevant": 1,
        "judgments.task1.documents": 2,
        "relevant_grade.task1": 2,
        "posts.question": 1,
        "posts.answer": 2,
        "posts.with_formulas": 2,
        "posts.broken": 0,
        "formulas": 4,
        "accepted": 0,
        "pairs": 2,
    }
    assert missing(found) == ["accepted answers"]
    assert found.reason == ""


def test_accepted_answers_that_are_not_in_the_collection_are_missing(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    add(root / "posts.jsonl", '{"post_id": "q8", "kind": "question", "accepted_answer_id": "a8"}')
    found = holdings("jsonl", root)
    assert (found.counts["accepted"], found.counts["pairs"]) == (1, 2)
    assert missing(found) == ["accepted answers: none of 1 is in the collection"]
    assert found.missing[0].consequence == "every answer makes a training pair with its question"
    add(root / "posts.jsonl", '{"post_id": "q9", "kind": "question", "accepted_answer_id": "a1"}')
    found = holdings("jsonl", root)
    assert (found.counts["accepted"], found.counts["pairs"]) == (2, 1)
    assert missing(found) == ["1 of 2 accepted answers"]


def test_questions_that_are_not_in_the_collection_are_missing(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    add(root / "posts.jsonl", '{"post_id": "a8", "kind": "answer", "parent_id": "q8", "body": "Yes."}')
    assert missing(holdings("jsonl", root)) == ["questions of 1 answer", "accepted answers"]


def test_broken_and_repeated_posts_are_counted(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    add(root / "posts.jsonl", '{"post_id": "a1", "kind": "answer", "body": "Again."}')
    add(root / "posts.jsonl", '{"post_id": "a3", "kind": "answr"}')
    found = holdings("jsonl", root)
    assert (found.counts["posts.broken"], found.counts["posts.repeated"]) == (1, 1)
    assert missing(found)[0].startswith(f"1 broken post (the first: {root}/posts.jsonl:5: kind 'answr' is not")
    assert missing(found)[1] == "distinct ids: 1 post has the id of an earlier one"
    assert found.reason == ""
    assert "broken posts                                     1" in table(found, "here")


@pytest.mark.parametrize(
    ("name", "file", "text", "lost", "reason"),
    [
        ("jsonl", "topics.jsonl", "{\n", "topics and judgments of Task 1 (", "no test can be"),
        ("jsonl", "qrels.tsv", "", "judgments of Task 1", "no test can be"),
        ("jsonl", "qrels.tsv", "9 0 a1 1\n", "texts of 1 judged topics of Task 1, e.g. 9", "no test can be"),
        ("jsonl", "qrels.tsv", "1 0 b1 1\n", "all 1 judged answers of Task 1, e.g. b1", "no test can be"),
        ("jsonl", "posts.jsonl", "", "answers", "answers are missing: nothing can be searched"),
        ("beir", "qrels/test.tsv", "9\t1\t1\n", "topics and judgments of Task 1 (", "no test can be"),
        ("pairs", "qrels-regular.tsv", "q1 0 t9 2\n", "topics and judgments of test regular (", "no test can be"),
        ("problems", "train.jsonl", "{}\n", "answers", "answers are missing: nothing can be learned"),
    ],
)
def test_what_stops_every_experiment(name: str, file: str, text: str, lost: str, reason: str, tmp_path: Path) -> None:
    root = write_form(name, tmp_path)
    (root / file).write_text(text)
    found = holdings(name, root)
    assert any(what.startswith(lost) for what in missing(found))
    assert found.reason.startswith(reason)
    assert lost in found.reason
    assert table(found, "here").endswith(f"No experiment can run: {found.reason}.")


def test_pairs_are_those_of_the_first_posts_of_their_ids(tmp_path: Path) -> None:
    """As in an experiment, where a later post with the id of an earlier one is a failure."""
    root = write_form("jsonl", tmp_path)
    add(root / "posts.jsonl", '{"post_id": "q1", "kind": "answer", "parent_id": "q1"}')
    add(root / "posts.jsonl", '{"post_id": "a1", "kind": "answer", "parent_id": "q1"}')
    add(root / "posts.jsonl", '{"post_id": "a9", "kind": "answer", "parent_id": "q1"}')
    found = holdings("jsonl", root)
    assert (found.counts["pairs"], found.counts["posts.repeated"]) == (3, 2)
    assert (found.counts["posts.question"], found.counts["posts.answer"]) == (1, 3)


def test_posts_with_the_id_of_an_earlier_one_add_to_no_other_number(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    (root / "posts.jsonl").write_text("")
    for answer in ("a1", "a2"):
        question = {"post_id": "q1", "kind": "question", "body": "Is $x$ odd?", "accepted_answer_id": answer}
        add(root / "posts.jsonl", json.dumps(question))
        add(root / "posts.jsonl", json.dumps({"post_id": answer, "kind": "answer", "parent_id": "q1", "body": "No."}))
    counts = holdings("jsonl", root).counts
    assert (counts["posts.question"], counts["accepted"], counts["pairs"], counts["posts.repeated"]) == (1, 1, 1, 1)
    assert (counts["posts.with_formulas"], counts["formulas"]) == (1, 1)


def test_a_test_that_cannot_be_scored_is_named_in_the_last_line(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    (root / "topics2.jsonl").write_text('{"topic_id": "B", "body": "Is $k$ odd?", "formula_id": "B:0"}\n')
    (root / "qrels2.tsv").write_text("B 0 q1:0 2\n")
    assert table(holdings("jsonl", root), "here").endswith("\nExperiments can run.")
    add(root / "qrels.tsv", "9 0 a1 1")
    assert table(holdings("jsonl", root), "here").endswith("\nExperiments can run, but not on Task 1.")


def test_a_query_formula_that_is_in_no_topic_is_missing(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    topics = root / "topics2.jsonl"
    topics.write_text('{"topic_id": "B", "body": "Is $k$ odd?", "formula_id": "B:7"}\n')
    (root / "qrels2.tsv").write_text("B 0 q1:0 2\n")
    found = holdings("jsonl", root)
    assert "query formulas of 1 of 1 topics of Task 2, e.g. B" in missing(found)
    assert found.failed == ("Task 2",)
    add(topics, '{"topic_id": "C", "body": "Is $m$ odd?", "formula_id": "C:0"}')
    found = holdings("jsonl", root)
    assert "query formulas of 1 of 2 topics of Task 2, e.g. B" in missing(found)
    assert found.failed == ()


def test_a_topic_with_another_text_in_another_task_is_missing(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    topic = json.loads((root / "topics.jsonl").read_text())
    other = {"topic_id": topic["topic_id"], "body": "Another $k$?", "formula_id": f"{topic['topic_id']}:0"}
    (root / "topics2.jsonl").write_text(json.dumps(other) + "\n")
    (root / "qrels2.tsv").write_text(f"{topic['topic_id']} 0 q1:0 2\n")
    found = holdings("jsonl", root)
    assert f"one text for topic {topic['topic_id']} of Task 1 and Task 2 instead of two" in missing(found)
    assert found.counts["judgments.task2.documents"] == 1
    assert table(found, "here").endswith("\nExperiments can run.")
    (root / "qrels2.tsv").write_text(f"{topic['topic_id']} 0 q9:0 2\n")
    assert holdings("jsonl", root).failed == ("Task 2",)
    (root / "qrels2.tsv").write_text(f"{topic['topic_id']} 0 q1:0 2\n")
    add(root / "topics2.jsonl", json.dumps(other | {"body": "A third $k$?"}))
    assert f"one text for topic {topic['topic_id']} of Task 2 instead of two" in missing(holdings("jsonl", root))


def test_queries_with_the_ids_of_documents_and_judged_documents_that_are_missing(tmp_path: Path) -> None:
    found = holdings("beir", write_form("beir", tmp_path))
    counts = found.counts
    assert (counts["posts.answer"], counts["posts.question"], counts["pairs"]) == (2, 1, 1)
    assert (counts["topics.task1"], counts["relevant_grade.task1"], counts["judgments.task1.relevant"]) == (1, 1, 2)
    assert missing(found) == ["1 of 2 judged answers of Task 1, e.g. 9"]
    assert found.reason == ""


def test_tests_with_names_are_columns(tmp_path: Path) -> None:
    root = write_form("pairs", tmp_path)
    (root / "topics-unseen.jsonl").write_text('{"post_id": "q3", "body": "Odd?"}\n')
    (root / "qrels-unseen.tsv").write_text("q3 0 t2 2\nq3 0 t1 0\n")
    found = holdings("pairs", root)
    assert (found.counts["judgments.regular"], found.counts["judgments.unseen"]) == (1, 2)
    rows = [line.split() for line in table(found, "here").splitlines()]
    assert ["regular", "unseen"] in rows
    assert ["judgments", "1", "2"] in rows
    assert missing(found) == ["formulas"]


def test_formulas_are_the_documents_of_task_2(tmp_path: Path) -> None:
    root = write_form("jsonl", tmp_path)
    (root / "topics2.jsonl").write_text('{"topic_id": "B", "body": "Is $k$ odd?", "formula_id": "B:0"}\n')
    (root / "qrels2.tsv").write_text("B 0 q1:0 2\n")
    assert missing(holdings("jsonl", root)) == ["accepted answers"]
    add(root / "qrels2.tsv", "B 0 zz:0 1")
    assert "1 of 2 judged formulas of Task 2, e.g. zz:0" in missing(holdings("jsonl", root))


@pytest.mark.parametrize(("name", "pairs"), [("problems", 1), ("titles", 1)])
def test_collections_that_are_learned_from(name: str, pairs: int, tmp_path: Path) -> None:
    found = holdings(name, write_form(name, tmp_path))
    assert (found.counts["pairs"], found.missing, found.reason) == (pairs, (), "")
    assert "as one of data.sources" in table(found, "here")
