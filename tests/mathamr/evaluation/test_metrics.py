"""The measures: a hand-worked topic for each rule of the protocol, and real participants' scores."""

from __future__ import annotations

import json
import math
import shutil
from pathlib import Path

import pytest

from graphs.errors import EvaluationError
from mathamr.evaluation import metrics
from mathamr.evaluation.metrics import RELEVANT, check_measures, evaluate, measure_of, measures_of_grade, restrict
from mathamr.evaluation.runs import Hit, Run, read_qrels, read_run

DATA = Path(__file__).resolve().parents[3] / ".." / "shared" / "data"


def ranked(*docs: str) -> dict[str, list[tuple[str, float]]]:
    return {"A.1": [(doc, float(-place)) for place, doc in enumerate(docs)]}


def test_hand_worked_task_1() -> None:
    """Grades a 3, b 0, c 2, d 1; u is unjudged. Ranking u b a d c, without u: b a d c.

    nDCG' = (0/log2 2 + 3/log2 3 + 1/log2 4 + 2/log2 5) / (3/log2 2 + 2/log2 3 + 1/log2 4), gain = grade.
    MAP': a is the 2nd of which 1 relevant, c the 4th of which 2: (1/2 + 2/4) / 2. P'@10 = 2/10.
    Bpref: R = 2, N = 2; above a 1 irrelevant, above c 2: ((1 - 1/2) + (1 - 2/2)) / 2 = 0.25.
    """
    qrels = {"A.1": {"a": 3, "b": 0, "c": 2, "d": 1}}
    scores = evaluate(Run.from_results("me", ranked("u", "b", "a", "d", "c")), qrels).per_topic["A.1"]
    gain = 3 / math.log2(3) + 1 / 2 + 2 / math.log2(5)
    ideal = 3 + 2 / math.log2(3) + 1 / 2
    assert scores["ndcg_prime"] == pytest.approx(gain / ideal)
    assert scores["map_prime"] == pytest.approx(0.5)
    assert scores["p_prime_10"] == pytest.approx(0.2)
    assert scores["bpref"] == pytest.approx(0.25)
    assert scores["recall_1000"] == pytest.approx(1.0)


def test_cut_at_1000_comes_before_unjudged_posts_are_dropped() -> None:
    qrels = {"A.1": {"a": 3}}
    inside = evaluate(Run("me", {"A.1": [Hit(f"u{i}", -i) for i in range(999)] + [Hit("a", -2000.0)]}), qrels)
    outside = evaluate(Run("me", {"A.1": [Hit(f"u{i}", -i) for i in range(1000)] + [Hit("a", -2000.0)]}), qrels)
    assert inside.aggregate["ndcg_prime"] == inside.aggregate["map_prime"] == 1.0
    assert set(outside.aggregate.values()) == {0.0}


def test_the_first_line_of_a_repeated_post_wins_and_ties_break_by_descending_id() -> None:
    qrels = {"A.1": {"9": 3, "10": 0}}
    repeated = Run("me", {"A.1": [Hit("10", 2.0), Hit("9", 1.0), Hit("9", 3.0)]})
    assert evaluate(repeated, qrels).aggregate["map_prime"] == 0.5
    tied = Run("me", {"A.1": [Hit("10", 1.0), Hit("9", 1.0 + 1e-12)]})  # one and the same float32
    assert evaluate(tied, qrels).aggregate["map_prime"] == 1.0  # "9" > "10" as strings
    assert evaluate(Run("me", {"A.1": [Hit("11", 1.0), Hit("9", 1.0)]}), {"A.1": {"11": 0, "9": 2}}).aggregate[
        "map_prime"
    ] == pytest.approx(1.0)


def test_a_missing_topic_counts_as_zero_and_a_foreign_one_not_at_all() -> None:
    qrels = {"A.1": {"a": 3}, "A.2": {"b": 2}}
    run = Run.from_results("me", {"A.1": [("a", 1.0)], "A.99": [("a", 1.0)]})
    result = evaluate(run, qrels)
    assert result.aggregate == dict.fromkeys(measures_of_grade(RELEVANT), 0.5) | {"p_prime_10": 0.05}
    assert result.topics == 2
    assert {topic: scores["bpref"] for topic, scores in result.per_topic.items()} == {"A.1": 1.0, "A.2": 0.0}


def test_regime_mini_restricts_the_qrels_and_drops_topics() -> None:
    qrels = {"A.1": {"a": 3, "gone": 3}, "A.2": {"a": 1, "gone": 2}}
    assert restrict(qrels, {"a"}) == {"A.1": {"a": 3}}
    run = Run.from_results("me", ranked("a"))
    mini = evaluate(run, qrels, collection={"a"})
    assert (mini.aggregate["ndcg_prime"], mini.topics) == (1.0, 1)
    assert evaluate(run, qrels).aggregate["ndcg_prime"] < 0.5
    with pytest.raises(EvaluationError, match="no topic left in regime 'mini'"):
        evaluate(run, qrels, collection={"b"})


def test_hand_worked_task_2() -> None:
    """Formulas 1, 2 have visual id v; 3 is w; 4 has no visual id; 5 is u, which nobody judged.

    Last scores: 1: 0.9, 2: 0.8, 3: 0.85 (its first line said 1.0), 4: 0.95, 5: 0.99. Ranking 5 4 1 3 2 ->
    u - v w v -> v w.
    Grades v 0, w 3: MAP' = 1/2; were 3's first score taken, it would be 1.
    """
    lines = [("3", 1.0), ("4", 0.95), ("1", 0.9), ("3", 0.85), ("2", 0.8), ("5", 0.99)]
    run = Run("me", {"B.1": [Hit(formula, score, "255") for formula, score in lines]}, task=2)
    visual_ids = {"1": "v", "2": "v", "3": "w", "5": "u"}
    result = evaluate(run, {"B.1": {"v": 0, "w": 3}}, visual_ids=visual_ids)
    assert result.aggregate["map_prime"] == 0.5
    assert result.aggregate["ndcg_prime"] == pytest.approx(1 / math.log2(3))
    with pytest.raises(EvaluationError, match="has a visual id"):
        evaluate(run, {"B.1": {"v": 0}}, visual_ids={"x": "v"})
    with pytest.raises(EvaluationError, match="without visual ids"):
        evaluate(run, {"B.1": {"v": 0}})


def test_a_run_of_other_topics_is_refused() -> None:
    with pytest.raises(EvaluationError, match="no topic in common"):
        evaluate(Run.from_results("me", ranked("a")), {"A.201": {"a": 1}})


def test_equal_measures_of_several_names_have_equal_scores() -> None:
    names = {"first": "nDCG@10", "second": "nDCG(dcg='log2')@10", "third": "P@1", "fourth": "P(rel=1)@1"}
    measures = {title: measure_of(name) for title, name in names.items()}
    result = evaluate(Run.from_results("me", ranked("a", "b")), {"A.1": {"a": 2, "b": 0}}, measures=measures)
    assert result.aggregate == dict.fromkeys(names, 1.0)


@pytest.mark.shared
def test_published_scores_of_participants_to_four_decimals() -> None:
    if not (DATA / "arqmath-runs").is_dir():
        pytest.skip(f"no participants' runs at {DATA}")
    for row in json.loads((DATA / "arqmath-runs" / "expected.json").read_text()):
        run = read_run(DATA / "arqmath-runs" / row["run"], task=row["task"])
        result = evaluate(run, read_qrels(DATA / "arqmath-mini" / "qrels" / row["qrels"]))
        assert result.topics == row["topics"]
        for measure in ("ndcg_prime", "map_prime", "p_prime_10", "bpref"):
            assert result.aggregate[measure] == pytest.approx(row[measure], abs=5e-5), (row["run"], measure)


@pytest.mark.shared
def test_published_scores_topic_by_topic() -> None:
    published = DATA / "arqmath-runs" / "mathdowsers-2020-task1.ndcg-per-topic.txt"
    if not published.is_file():
        pytest.skip(f"no per-topic scores at {published}")
    rows = [line.split() for line in published.read_text().splitlines()]
    run = read_run(DATA / "arqmath-runs" / "mathdowsers-2020-task1.tsv", task=1)
    result = evaluate(run, read_qrels(DATA / "arqmath-mini" / "qrels" / "qrel_task1_2020.tsv"))
    ours = {topic: scores["ndcg_prime"] for topic, scores in result.per_topic.items()}
    assert {t: round(s, 4) for t, s in ours.items()} == {t: float(s) for _, t, s in rows if t != "all"}


def test_the_reason_of_several_lines_is_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(qrels: object, run: object) -> float:
        raise ValueError("these packages would do:\n - cwl_eval")

    monkeypatch.setattr(metrics, "_OWN", {"Lacking": lacking})
    with pytest.raises(EvaluationError, match=r"\(ValueError: these packages would do: - cwl_eval\); let it"):
        check_measures({"d": measure_of("Lacking")})


def test_a_measure_that_cannot_be_computed_is_refused_by_its_name() -> None:
    check_measures({"a": measure_of("Accuracy"), "b": measure_of("RR(rel=2)")})
    with pytest.raises(EvaluationError, match=r"RBP cannot be computed \(Unsupported .*\); use e\.g\. nDCG@10"):
        check_measures({"c": measure_of("RBP")})
    with pytest.raises(EvaluationError, match="'MMR' is not a measure of ir_measures"):
        measure_of("MMR")


@pytest.mark.skipif(shutil.which("perl") is None, reason="ERR is computed by a program in Perl")
def test_topics_whose_ids_end_in_one_number_have_separate_scores() -> None:
    qrels = {"2020-1": {"a": 4}, "2021-1": {"b": 1}, "first": {"c": 1}}
    run = Run.from_results("demo", {"2020-1": [("a", 1.0)], "2021-1": [("x", 2.0)], "first": [("c", 1.0)]})
    scores = evaluate(run, qrels, measures={"ERR": measure_of("ERR@10")}).per_topic
    assert {topic: own["ERR"] for topic, own in scores.items()} == {"2020-1": 0.9375, "2021-1": 0.0, "first": 0.0625}
