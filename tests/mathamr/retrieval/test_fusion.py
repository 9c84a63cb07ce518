"""Fusion: hand-worked scores, topics that only one run has, and tuning on named topics only."""

from __future__ import annotations

import pytest

from graphs.errors import RetrievalError
from mathamr.evaluation.runs import Hit, Run
from mathamr.retrieval.fusion import interpolate, rankings_of, reciprocal_rank_fusion, standard_sum, tune_weight
from mathamr.retrieval.scores import topic_scores


def test_reciprocal_ranks_by_hand() -> None:
    """b: 1/62 + 1/61, a: 1/61, d: 1/62, c: 1/63; the scores of the runs do not matter."""
    one = {"A.1": [("a", 9.0), ("b", 8.0), ("c", 1.0)]}
    two = {"A.1": [("b", 0.9), ("d", 0.8)], "A.2": [("z", 1.0)]}
    fused = reciprocal_rank_fusion([one, two])
    assert fused["A.1"] == [
        ("b", pytest.approx(1 / 62 + 1 / 61)),
        ("a", pytest.approx(1 / 61)),
        ("d", pytest.approx(1 / 62)),
        ("c", pytest.approx(1 / 63)),
    ]
    assert fused["A.2"] == [("z", pytest.approx(1 / 61))]
    assert [doc for doc, _ in reciprocal_rank_fusion([one, two], limit=1)["A.1"]] == ["b"]


def test_interpolation_by_hand() -> None:
    """Scaled: a 1, b 0.75, c 0 and b 1, d 0.5, e 0. With weights 3 : 1, b: 0.75 * 0.75 + 0.25, a: 0.75, d: 0.125."""
    one = {"A.1": [("a", 9.0), ("b", 7.0), ("c", 1.0)]}
    two = {"A.1": [("b", 0.9), ("d", 0.7), ("e", 0.5)]}
    fused = dict(interpolate([one, two], [3, 1])["A.1"])
    assert fused == pytest.approx({"b": 0.8125, "a": 0.75, "d": 0.125, "c": 0.0, "e": 0.0})
    assert dict(interpolate([{"A.1": [("a", 2.0), ("b", 2.0)]}], [1])["A.1"]) == {"a": 1.0, "b": 1.0}


def test_a_sum_of_standard_scores_is_cut_at_its_limit() -> None:
    part = {"A.1": topic_scores([("a", 3.0), ("b", 2.0), ("c", 1.0)], depth=9)}
    assert [doc for doc, _ in standard_sum([part], limit=2)["A.1"]] == ["a", "b"]


def test_a_run_of_weight_one_keeps_its_order() -> None:
    one = {"A.1": [("a", 3.0), ("b", 2.0), ("c", 1.0)]}
    two = {"A.1": [("c", 3.0), ("b", 2.0), ("a", 1.0)]}
    assert [doc for doc, _ in interpolate([one, two], [1, 0])["A.1"]] == ["a", "b", "c"]
    assert [doc for doc, _ in interpolate([one, two], [0, 1])["A.1"]] == ["c", "b", "a"]


def test_weights_are_tuned_on_the_named_topics_alone() -> None:
    good = {"A.1": [("a", 1.0), ("b", 0.0)], "A.2": [("b", 1.0), ("a", 0.0)]}
    bad = {"A.1": [("b", 1.0), ("a", 0.0)], "A.2": [("a", 1.0), ("b", 0.0)]}
    seen: set[str] = set()

    def first_is_b(fused: dict[str, list[tuple[str, float]]]) -> float:
        seen.update(fused)
        return sum(ranking[0][0] == "b" for ranking in fused.values())

    assert tune_weight(bad, good, ["A.1"], first_is_b) == 0.5  # a tie of "a" and "b" goes to "b" by id
    assert tune_weight(bad, good, ["A.2"], lambda fused: fused["A.2"][0][0] == "a") > 0.5
    assert seen == {"A.1"}


def test_bad_arguments_and_runs_read_from_files() -> None:
    with pytest.raises(RetrievalError, match="weights"):
        interpolate([{}, {}], [1])
    with pytest.raises(RetrievalError, match="weights"):
        interpolate([{}], [-1])
    with pytest.raises(RetrievalError, match="weights"):
        interpolate([{}, {}], [float("nan"), 1])
    with pytest.raises(RetrievalError, match="no runs"):
        reciprocal_rank_fusion([])


def test_a_run_file_is_read_by_its_scores_as_the_evaluation_reads_it() -> None:
    run = Run("me", {"A.1": [Hit("b", 1.5), Hit("a", 2.0), Hit("c", 1.5), Hit("b", 9.0)]})
    assert rankings_of(run) == {"A.1": [("a", 2.0), ("c", 1.5), ("b", 1.5)]}


def test_of_a_repeated_formula_the_last_line_counts_as_in_the_evaluation() -> None:
    hits = [Hit("f1", 1.0, "p"), Hit("f2", 5.0, "p"), Hit("f3", 9.0, "p"), Hit("f1", 9.0, "p")]
    assert rankings_of(Run("me", {"B.1": hits}, task=2)) == {"B.1": [("f1", 9.0), ("f3", 9.0), ("f2", 5.0)]}
