"""The measure of docs/extending.md: registered, computed by hand, and reported by an experiment."""

import re
import sys
from importlib import import_module
from pathlib import Path

import pytest

from experiments.configuration.config import read
from experiments.keys import job_key
from experiments.run import run
from graphs.errors import EvaluationError
from mathamr.evaluation import metrics
from mathamr.evaluation.metrics import check_measures, evaluate, measure_of, own_measure
from mathamr.evaluation.runs import Run
from tests.experiments.test_plan import DATA, config
from tests.experiments.test_run import composed

pytestmark = pytest.mark.usefixtures("without_plots", "rank_biased")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rank_biased(monkeypatch: pytest.MonkeyPatch) -> None:
    text = (ROOT / "docs" / "extending.md").read_text(encoding="utf-8")
    (block,) = [block for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL) if "own_measure" in block]
    monkeypatch.setattr(metrics, "_OWN", {})
    exec(block, {})


def test_results_come_best_first_and_can_be_cut() -> None:
    measures = {name: measure_of(name) for name in ("RankBiased", "RankBiased@2", "P@2")}
    check_measures(measures, "A.1")
    found = Run.from_results("demo", {"A.1": [("c", 1.0), ("a", 3.0), ("b", 2.0)]})
    scores = evaluate(found, {"A.1": {"a": 3, "b": 1, "c": 2}, "A.2": {"a": 2}}, measures=measures).per_topic
    assert scores["A.1"] == pytest.approx({"RankBiased": 0.2 + 0.2 * 0.64, "RankBiased@2": 0.2, "P@2": 1.0})
    assert scores["A.2"] == {"RankBiased": 0.0, "RankBiased@2": 0.0, "P@2": 0.0}


def test_a_changed_measure_gives_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(code: str) -> str:
        (tmp_path / "own_module.py").write_text(code)
        monkeypatch.delitem(sys.modules, "own_module", raising=False)
        own_measure("RankBiased")(import_module("own_module").measure)
        return job_key("rankings", read(config(measures={"RBP": "RankBiased@10"})), DATA)

    monkeypatch.syspath_prepend(tmp_path)
    code = "def measure(qrels, run):\n    return 0"
    assert key(code) == key(code) != key(f"{code}.5")


def test_a_name_of_ir_measures_and_a_wrong_cutoff_are_refused() -> None:
    with pytest.raises(EvaluationError, match="'RankBiased@ten' is not a measure"):
        measure_of("RankBiased@ten")
    own_measure("RBP")(lambda qrels, run: 0.0)
    with pytest.raises(EvaluationError, match="ir_measures has a measure of this name; choose another"):
        measure_of("RBP@10")


def test_a_measure_that_is_not_a_number_is_refused() -> None:
    own_measure("Nothing")(lambda qrels, run: float("nan"))
    with pytest.raises(EvaluationError, match=r"Nothing of topic A\.1 is nan; give a finite number"):
        evaluate(
            Run.from_results("demo", {"A.1": [("a", 1.0)]}), {"A.1": {"a": 3}}, measures={"N": measure_of("Nothing")}
        )


def test_an_experiment_reports_it(collection: Path, tmp_path: Path) -> None:
    conditions = {"none": {"track": "bm25"}, "long": {"track": "bm25", "bm25": {"method": "bm25l"}}}
    measures = ["experiment.seeds=[1]", "+experiment.measures={RBP: RankBiased}"]
    ended = run(composed(collection, tmp_path, *measures, conditions=conditions), "command")
    assert ended.failed == 0, ended.table
    assert "RBP" in ended.table
