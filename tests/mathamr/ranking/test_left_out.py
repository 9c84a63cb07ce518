"""Weights that other years teach: nothing of a reported year reaches them, and files of weights are checked."""

import copy
import json
from dataclasses import replace
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from graphs.errors import RetrievalError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Run
from mathamr.ranking.judged import JudgedTopic, ndcg
from mathamr.ranking.left_out import LEARNERS, LeftOut, fit_left_out, read_left_out
from mathamr.ranking.trees import fit_lambdamart

NAMES = ["good", "noise"]
BY_LEARNER = [
    pytest.param(
        name,
        marks=pytest.mark.skipif(
            name == "lambdamart" and find_spec("lightgbm") is None, reason="LightGBM, the extra ranking, is missing"
        ),
    )
    for name in LEARNERS
]


def topics(seed: int = 0, documents: int = 30) -> list[JudgedTopic]:
    """Six topics of two years; the first feature follows the grades."""
    draw = np.random.default_rng(seed)
    found = []
    for number in (1, 2, 3, 201, 202, 203):
        grades = draw.integers(0, 4, documents)
        features = np.column_stack([grades + draw.normal(0, 0.8, documents), draw.normal(0, 1, documents)])
        found.append(JudgedTopic(f"A.{number}", "2020" if number < 100 else "2021", features, grades))
    return found


def scores(weights: LeftOut, topic: JudgedTopic) -> list[float]:
    return weights.of(topic.part).ranker.scores(topic.features).tolist()


def test_ndcg_is_that_of_the_evaluation() -> None:
    for topic in topics():
        unfound = np.array([3, 1])
        values = topic.features[:, 0]
        grades = {f"d{i:02}": int(grade) for i, grade in enumerate(topic.grades)}
        run = Run.from_results("run", {topic.topic: [(f"d{i:02}", float(v)) for i, v in enumerate(values)]})
        qrels = {topic.topic: {**grades, "x": 3, "y": 1}}
        expected = evaluate(run, qrels).aggregate["ndcg_prime"]
        assert ndcg(replace(topic, unfound=unfound), values) == pytest.approx(expected)
    assert ndcg(JudgedTopic("A.1", "2020", np.zeros((1, 1)), np.array([0])), np.zeros(1)) == 0


@pytest.mark.parametrize("learner", BY_LEARNER)
def test_weights_find_the_feature_that_counts(learner: str) -> None:
    weights = fit_left_out(topics(documents=60), learner, NAMES)
    for own in weights.rankers:
        good, noise = np.abs(own.ranker.importances())
        assert good > 2 * noise


@pytest.mark.parametrize("learner", BY_LEARNER)
def test_no_judgment_of_a_year_reaches_its_weights(learner: str) -> None:
    known = topics()
    changed = [replace(own, grades=3 - own.grades) if own.part == "2021" else own for own in known]
    before, after = (fit_left_out(some, learner, NAMES) for some in (known, changed))
    for topic in known:
        assert (scores(before, topic) == scores(after, topic)) == (topic.part == "2021")
    assert before.of("2021").setting == after.of("2021").setting


def test_a_year_that_trained_the_weights_is_refused() -> None:
    weights = fit_left_out(topics(), "ridge", NAMES)
    assert weights.of("2020").trained_on == ("2021",)
    assert weights.of("2022").trained_on == ("2020", "2021")
    of_both = replace(weights, rankers=[own for own in weights.rankers if own.left_out is None])
    with pytest.raises(RetrievalError, match="topics of 2020 trained these weights"):
        of_both.of("2020")
    with pytest.raises(RetrievalError, match="all judged topics are of 2020; name two years"):
        fit_left_out(topics()[:3], "ridge", NAMES)


@pytest.mark.parametrize("learner", BY_LEARNER)
def test_weights_are_read_as_they_were_written(learner: str) -> None:
    weights = fit_left_out(topics(), learner, NAMES)
    content = json.loads(json.dumps(weights.record()))
    again = read_left_out(content)
    for topic in topics(1):
        assert scores(again, topic) == scores(weights, topic)
    assert list(content["rankers"][0]["weights"]) == NAMES


def tree_file() -> dict[str, Any]:
    """Weights of one tree: the feature decides between two leaves."""
    tree = {"feature": [0, -1, -1], "threshold": [0.5, 0, 0], "left": [1, 0, 0], "right": [2, 0, 0], "value": [0, 1, 2]}
    ranker = {"kind": "trees", "gains": [1.0], "trees": [tree]}
    own = {"left_out": None, "trained_on": ["2020"], "topics": 2, "setting": {}, "ranker": ranker}
    return {"learner": "lambdamart", "features": ["good"], "rankers": [own]}


def test_a_tree_gives_each_document_its_leaf() -> None:
    ranker = read_left_out(tree_file()).of("2021").ranker
    assert ranker.scores(np.array([[0.4], [0.5], [0.6]])).tolist() == [1, 1, 2]


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        (("tree", "left"), [0, 0, 0], "comes before its parent"),  # would never end
        (("tree", "right"), [9, 0, 0], "comes before its parent"),
        (("tree", "feature"), [1, -1, -1], "does not fit 1 features"),
        (("tree", "value"), [0], "does not fit 1 features"),
        (("tree", "value"), [0, 1, float("inf")], "no finite number"),
        (("tree", "threshold"), [float("nan"), 0, 0], "no finite number"),
        (("tree", "left"), [float("inf"), 0, 0], "lacks numbers"),
        (("ranker", "kind"), "pickle", "ranker 'pickle'; known are linear, trees"),
        (("ranker", "gains"), [float("nan")], "needs 1 finite gains"),
        (("ranker", "trees"), None, "no file of learned weights|lacks numbers"),
    ],
)
def test_files_of_weights_are_checked(place: tuple[str, str], value: Any, message: str) -> None:
    content = copy.deepcopy(tree_file())
    ranker = content["rankers"][0]["ranker"]
    {"ranker": ranker, "tree": ranker["trees"][0]}[place[0]][place[1]] = value
    with pytest.raises(RetrievalError, match=message):
        read_left_out(content)


def test_linear_weights_are_checked() -> None:
    content = fit_left_out(topics(), "ridge", NAMES).record()
    for name, value in (("weights", [1.0]), ("scale", [0.0, 1.0]), ("mean", ["a", "b"]), ("weights", [1.0, 1e999])):
        wrong = copy.deepcopy(content)
        wrong["rankers"][0]["ranker"][name] = value
        with pytest.raises(RetrievalError, match="linear ranker"):
            read_left_out(wrong)


def test_trees_score_as_lightgbm_does(monkeypatch: pytest.MonkeyPatch) -> None:
    lightgbm = pytest.importorskip("lightgbm", reason="LightGBM, the extra ranking, is missing")
    boosters, train = [], lightgbm.train

    def record(*args: Any, **more: Any) -> Any:
        boosters.append(train(*args, **more))
        return boosters[-1]

    monkeypatch.setattr(lightgbm, "train", record)
    ranker = fit_lambdamart(topics(documents=60), leaves=6, trees=20)
    features = np.concatenate([topic.features for topic in topics(1)])
    np.testing.assert_allclose(ranker.scores(features), boosters[0].predict(features))
    assert len(set(ranker.scores(features))) > 20
