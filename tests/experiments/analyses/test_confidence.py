"""Confidence of single topics in a job's file, and in the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from experiments.analyses import confidence
from experiments.configuration.config import GeometryConfig
from experiments.report import results
from experiments.report.blocks import Figure, markdown
from experiments.report.geometry import embedding_space
from mathamr.analysis.confidence import EVIDENCE
from mathamr.evaluation.runs import Qrels, Run
from mathamr.ranking.judged import year_of
from tests.experiments.written_experiment import finish, write_plan

CONFIG = GeometryConfig(k=3, samples=20, size=None, psi=25, posts=100, topics=3, statements=4, projections=[])


def judged_run(names: list[str]) -> tuple[Run, Qrels]:
    """A run whose first score is the higher the likelier the first result is relevant."""
    generator = np.random.default_rng(0)
    rankings, qrels = {}, {}
    for name in names:
        likely = generator.random()
        scores = [0.5 + likely, *np.sort(0.4 * generator.random(9))[::-1]]
        rankings[name] = [(f"p{rank}", float(score)) for rank, score in enumerate(scores)]
        qrels[name] = {"p0": 3 if generator.random() < likely else 0, "unfound": 3}
    return Run.from_results("demo", rankings), qrels


TWO_YEARS = [f"A.{number}" for number in (*range(1, 61), *range(201, 271))]


def test_each_year_is_tested_with_what_was_fitted_to_the_other() -> None:
    run, qrels = judged_run(TWO_YEARS)
    found = json.loads(json.dumps(confidence.of_run(run, qrels, CONFIG), allow_nan=False))
    first, second = found["tested"]
    assert (first["on"], first["by"], first["topics"]) == ("2020", "2021", 60)
    assert (second["on"], second["by"], second["topics"]) == ("2021", "2020", 70)
    assert min(first["auc"][0], second["auc"][0]) > 0.65
    assert sum(count for _, _, count in first["bins"]) == 60
    assert first["constant"] == pytest.approx(abs(first["succeeded"] - second["succeeded"]), abs=2e-5)
    assert list(found["evidence"]) == list(EVIDENCE)
    assert set(found["evidence"]["top"]) == {"2020", "2021"}
    assert found["fitted"]["k"] == 3
    assert first["chance"][0] < first["chance"][1]
    last = Run.from_results("demo", {"A.1": [("a", 3.0), ("b", 2.0), ("c", 1.0), ("right", 0.5)]})
    assert [one.success for one in confidence._ranked_topics(last, {"A.1": {"right": 3}}, 3, 2)] == [0]


def test_the_tested_year_does_not_change_what_is_fitted() -> None:
    run, qrels = judged_run(TWO_YEARS)
    before = confidences(run, qrels)
    assert confidences(run, turned(qrels, 2020)) == before
    assert confidences(run, turned(qrels, 2021)) != before


def confidences(run: Run, qrels: Qrels) -> list[list[float]]:
    """Mean confidence and number of topics of each bin of 2020."""
    return [[mean, count] for mean, _, count in confidence.of_run(run, qrels, CONFIG)["tested"][0]["bins"]]


def turned(qrels: Qrels, year: int) -> Qrels:
    """Judgments with successes and failures of a year exchanged."""
    return {name: {"p0": 3 - of["p0"]} if year_of(name) == year else of for name, of in qrels.items()}


def test_topics_without_a_year_are_tested_in_folds() -> None:
    run, qrels = judged_run([f"q{number}" for number in range(50)])
    (tested,) = confidence.of_run(run, qrels, CONFIG)["tested"]
    assert (tested["on"], tested["by"], tested["topics"]) == ("each fold", "the other folds", 50)


def test_topics_that_cannot_be_fitted_say_why() -> None:
    run, qrels = judged_run(TWO_YEARS[:60])
    assert "60 topics of 2020; name two years or more" in confidence.of_run(run, qrels, CONFIG)["left_out"]
    run, qrels = judged_run(["q1"])
    assert confidence.of_run(run, qrels, CONFIG)["left_out"] == "fewer than two topics have results"
    run, qrels = judged_run(TWO_YEARS)
    all_right = {name: {"p0": 3} for name in qrels}
    assert "questions succeed" in confidence.of_run(run, all_right, CONFIG)["left_out"]


def content(names: list[str]) -> dict[str, Any]:
    run, qrels = judged_run(names)
    run_part = {name: [0.5, 0.4, 0.6] for name in ("accuracy", "mrr", "ndcg")}
    settings = {"k": 3, "psi": 25, "samples": 20, "size": None}
    return {"settings": settings, "run": run_part, "confidence": confidence.of_run(run, qrels, CONFIG)}


def test_the_report_has_the_tests_and_a_reliability_plot(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "asked", ["words", "few"], [1])
    for condition, names in (("words", TWO_YEARS), ("few", TWO_YEARS[:5])):
        (finish(folder, condition, 1, 0.5) / "geometry.json").write_text(json.dumps(content(names)))
    built = embedding_space.blocks(results.read(folder))
    text = markdown(built)
    assert "*Confidence of single topics, tested on topics outside the fit*" in text
    assert "| words | 2021 | 2020 | 60 |" in text
    assert "few: no confidence: 5 topics of 2020" in text
    assert "Share of successes over confidence. Expected calibration errors: words: 0." in text
    (drawn,) = [block.draw("part") for block in built if isinstance(block, Figure)]
    assert "2021" in drawn
    assert "http" not in drawn


@pytest.mark.parametrize(("errors", "shown"), [((0.05, 0.09), "yes"), ((0.05, 0.2), "no")])
def test_a_confidence_is_shown_if_the_errors_of_all_years_are_small(
    tmp_path: Path, errors: tuple[float, float], shown: str
) -> None:
    folder = write_plan(tmp_path / "asked", ["words"], [1])
    found = content(TWO_YEARS)
    for one, error in zip(found["confidence"]["tested"], errors, strict=True):
        one["error"] = error
    (finish(folder, "words", 1, 0.5) / "geometry.json").write_text(json.dumps(found))
    lines = markdown(embedding_space.blocks(results.read(folder))).splitlines()
    tested = [line for line in lines if line.startswith("| words | 202") and line.endswith(f"| {shown} |")]
    assert len(tested) == 2
