"""Learned ranking of formulas (Task 2): one document for each visual id, judged by it."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from experiments import run as runner
from graphs.corpus.post import Judgment, Post, Topic
from graphs.errors import ConfigError
from mathamr.evaluation.runs import Hit, Run, read_run
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import TopicSet
from mathamr.systems.learned import LearnedSystem, _judged_topic
from mathamr.systems.parts import formula_scores
from tests.experiments.test_every_experiment import write_collection
from tests.experiments.test_tracks import configured
from tests.mathamr.systems.test_learned import settings

CONDITIONS = {
    "structure": {"track": "structure"},
    "pairs": {"track": "bm25", "bm25": {"by": "formulas"}},
    "learned": {"track": "learned", "learned": {"of": ["structure", "pairs"]}},
}


def test_formulas_are_learned_across_years(tmp_path: Path) -> None:
    root = write_collection(tmp_path / "data")
    for file in ("topics2.jsonl", "qrels2.tsv"):
        text = (root / file).read_text()
        for number in range(5):
            text = text.replace(f"F.{number}", f"B.{number + 1 if number < 2 else number + 201}")
        (root / file).write_text(text)
    config = configured(CONDITIONS, f"data.root={root}", f"outputs={tmp_path / 'out'}", seeds=(1,))
    config.experiment.tasks = [2]
    ended = runner.run(config, "the command")
    assert ended.failed == 0, ended.table
    jobs = tmp_path / "out" / "tracks" / "jobs"
    weights = json.loads((jobs / "learned-seed1" / "weights-task2.json").read_text())
    assert weights["features"] == ["structure", "pairs"]
    assert [(own["left_out"], own["topics"]) for own in weights["rankers"]] == [("2020", 3), ("2021", 2), (None, 5)]
    found, part = (read_run(jobs / f"{name}-seed1" / "run-task2.tsv", task=2) for name in ("learned", "structure"))
    for topic, hits in found.rankings.items():
        assert hits[0].doc_id in {hit.doc_id for hit in part.rankings[topic][:13]}
        assert all(hit.post_id for hit in hits)


def test_formulas_of_one_visual_id_have_one_score_of_each_system() -> None:
    runs = [
        Run("structure", {"B.1": [Hit("f1", 0.9, "p"), Hit("f3", 0.1, "r")]}, 2),
        Run("pairs", {"B.1": [Hit("f2", 7.0, "q")]}, 2),
    ]
    structure, pairs = formula_scores(runs, 10, {"f1": "v", "f2": "v", "f3": "w"}, [None, None])
    assert structure["B.1"].scores == {"f1": 0.9, "f3": 0.1}
    assert pairs["B.1"].scores == {"f1": 7.0}


def test_formulas_are_judged_by_their_visual_ids() -> None:
    topic = _judged_topic(
        "B.1", "2020", ["f1", "f3"], np.array([[1.0], [2.0]]), {"w": 3, "x": 2}, {"f1": "v", "f3": "w"}
    )
    assert topic.features.tolist() == [[2.0]]
    assert (topic.grades.tolist(), topic.unfound.tolist()) == ([3], [2])


def test_features_of_answers_are_refused_for_formulas(tmp_path: Path) -> None:
    topics = [Topic(name, Post(f"query:{name}", "topic"), "f") for name in ("B.1", "B.201")]
    formulas = replace(TopicSet(1, topics, [Judgment("B.1", "v", 3)], "full"), task=2)
    system = LearnedSystem(None, tmp_path, Console())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"learned.features has length, which is of answers"):
        system.check(settings(features=["standard", "length"]), [formulas])
    system.check(settings(features=["standard", "ranks"]), [formulas])


def test_features_without_the_rankings_are_refused(tmp_path: Path) -> None:
    system = LearnedSystem(None, tmp_path, Console())  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match=r"learned.features=\['length'\] ignores the rankings of learned.of; add"):
        system.check(settings(features=["length"]), [])
