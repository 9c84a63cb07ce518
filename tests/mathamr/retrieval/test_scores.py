"""Scores that a job leaves for others: lists that were cut, and files that are damaged."""

from pathlib import Path

import numpy as np
import pytest

from graphs.errors import RetrievalError
from mathamr.evaluation.runs import MAX_PER_TOPIC, Run
from mathamr.retrieval.scores import SCORES, read_scores, scores_of_run, topic_scores, write_scores


def test_a_run_that_was_cut_at_k_is_not_whole() -> None:
    run = Run.from_results("run", {"A.1": [("a", 0.9), ("b", 0.8)], "A.2": [("a", 0.7)], "A.3": []})
    cut = scores_of_run(run, 2)
    assert cut["A.1"].of(["c"]) == pytest.approx(0.8)  # as low as the last one that was found
    assert cut["A.2"].of(["c"]) == 0
    assert cut["A.3"].of(["c"]) == 0
    assert scores_of_run(run)["A.1"].of(["c"]) == 0


def test_a_run_file_is_cut_at_its_limit_whatever_was_asked_for() -> None:
    run = Run.from_results("run", {"A.1": [(str(i), 2000.0 - i) for i in range(MAX_PER_TOPIC)]})
    assert scores_of_run(run, 2 * MAX_PER_TOPIC)["A.1"].of(["other"]) == 2001 - MAX_PER_TOPIC


def test_of_a_whole_list_with_negative_scores_all_others_are_lowest() -> None:
    assert topic_scores([("a", 0.5), ("b", -0.5)], depth=9).of(["b", "c"]).tolist() == [-0.5, -0.5]


def test_of_a_repeated_document_the_first_score_counts() -> None:
    assert topic_scores([("a", 2.0), ("b", 1.5), ("a", 1.0)], depth=9).of(["a", "b"]).tolist() == [2.0, 1.5]


@pytest.mark.parametrize("results", [{}, {"A.1": []}])
def test_nothing_found_is_read_again(results: dict[str, list[tuple[str, float]]], tmp_path: Path) -> None:
    write_scores(tmp_path / SCORES, results, depth=9)
    assert read_scores(tmp_path / SCORES).keys() == results.keys()


@pytest.mark.parametrize("size", [0, 3, 40, 200, 700])
def test_half_a_file_is_refused(size: int, tmp_path: Path) -> None:
    path = tmp_path / SCORES
    write_scores(path, {"A.1": [(f"a{number}", number / 7) for number in range(99)]}, depth=99)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(RetrievalError, match=r"scores.npz is no file of scores: .*; run its job again"):
        read_scores(path)


def test_objects_are_not_read(tmp_path: Path) -> None:
    np.savez(tmp_path / SCORES, topics=np.array([{"a": 1}], dtype=object))
    with pytest.raises(RetrievalError, match="is no file of scores"):
        read_scores(tmp_path / SCORES)


def test_members_with_a_password_are_not_read(tmp_path: Path) -> None:
    path = tmp_path / SCORES
    write_scores(path, {"A.1": [("a1", 1.0)]}, depth=9)
    content = bytearray(path.read_bytes())
    content[content.index(b"PK\x01\x02") + 8] |= 1  # the flag of encryption, in the directory
    path.write_bytes(content)
    with pytest.raises(RetrievalError, match=r"is no file of scores: .*encrypted"):
        read_scores(path)
