"""The measure of docs/extending.md: in a package, computed by hand, and reported by an experiment."""

import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from experiments.configuration.config import read
from experiments.keys import job_key
from experiments.run import run
from graphs.errors import ConfigError, EvaluationError
from graphs.extensions import MEASURES
from mathamr.evaluation import metrics
from mathamr.evaluation.metrics import check_measures, evaluate, measure_identity, measure_of, own_measure
from mathamr.evaluation.runs import Run
from tests.documents.blocks import blocks_of
from tests.experiments.test_plan import DATA, config
from tests.experiments.test_run import composed

pytestmark = pytest.mark.usefixtures("without_plots", "rank_biased")

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def rank_biased(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make the package of the page; return the folder with its module."""
    page = [block.text for block in blocks_of(ROOT / "docs" / "extending.md")]
    (code,) = [text for text in page if "def rank_biased" in text]
    (points,) = [text for text in page if f'"{MEASURES}"' in text]
    ((group, named),) = tomllib.loads(points)["project"]["entry-points"].items()
    record = tmp_path / "site" / "rbp.dist-info"
    record.mkdir(parents=True)
    lines = [f"[{group}]", *(f"{name} = {place}" for name, place in named.items())]
    (record / "entry_points.txt").write_text("\n".join(lines))
    (record / "METADATA").write_text("Name: mathamr-rbp\nVersion: 1.0\n")
    (record.parent / "mathamr_rbp.py").write_text(code)
    monkeypatch.delitem(sys.modules, "mathamr_rbp", raising=False)
    monkeypatch.syspath_prepend(record.parent)
    monkeypatch.setattr(metrics, "_OWN", {})
    return record.parent


def test_results_come_best_first_and_can_be_cut() -> None:
    measures = {name: measure_of(name) for name in ("RankBiased", "RankBiased@2", "P@2")}
    check_measures(measures)
    found = Run.from_results("demo", {"A.1": [("c", 1.0), ("a", 3.0), ("b", 2.0)]})
    scores = evaluate(found, {"A.1": {"a": 3, "b": 1, "c": 2}, "A.2": {"a": 2}}, measures=measures).per_topic
    assert scores["A.1"] == pytest.approx({"RankBiased": 0.2 + 0.2 * 0.64, "RankBiased@2": 0.2, "P@2": 1.0})
    assert scores["A.2"] == {"RankBiased": 0.0, "RankBiased@2": 0.0, "P@2": 0.0}


def job_key_of(measure: str) -> str:
    return job_key("rankings", read(config(measures={"own": measure})), DATA)


def test_a_changed_measure_gives_other_results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def key(code: str) -> str:
        (tmp_path / "own_module.py").write_text(code)
        monkeypatch.delitem(sys.modules, "own_module", raising=False)
        own_measure("OwnMeasure")(import_module("own_module").measure)
        return job_key_of("OwnMeasure@10")

    monkeypatch.syspath_prepend(tmp_path)
    code = "def measure(qrels, run):\n    return 0"
    assert key(code) == key(code) != key(f"{code}.5")


def test_a_changed_module_of_a_package_gives_other_results(rank_biased: Path) -> None:
    before = job_key_of("RankBiased@10")
    assert measure_identity("RankBiased@10").startswith("RankBiased@10 mathamr-rbp 1.0 ")
    with (rank_biased / "mathamr_rbp.py").open("a") as module:
        module.write("# changed\n")
    assert job_key_of("RankBiased@10") != before


def test_a_faulty_package_is_named_each_time(rank_biased: Path) -> None:
    place = r"^measure RankBiased of mathamr-rbp 1\.0 \(mathamr_rbp:rank_biased\)"
    code = (rank_biased / "mathamr_rbp.py").read_text()
    (rank_biased / "mathamr_rbp.py").write_text(f"{code}\nimport elephants")
    for _ in range(2):
        with pytest.raises(ConfigError, match=f"{place} cannot be imported: ModuleNotFoundError"):
            job_key_of("RankBiased")
    assert job_key_of("nDCG@10")
    (rank_biased / "mathamr_rbp.py").write_text("rank_biased = 0.8")
    with pytest.raises(ConfigError, match=f"{place} is not a function"):
        measure_of("RankBiased")
    points = rank_biased / "rbp.dist-info" / "entry_points.txt"
    (rank_biased / "other.dist-info").mkdir()
    (rank_biased / "other.dist-info" / "METADATA").write_text("Name: mathamr-other\nVersion: 1.0\n")
    (rank_biased / "other.dist-info" / "entry_points.txt").write_text(points.read_text())
    with pytest.raises(
        ConfigError, match=r"two measures are called RankBiased: of mathamr-\w+ 1\.0 and of mathamr-\w+"
    ):
        measure_of("RankBiased")


def test_a_measure_of_a_package_with_the_name_of_an_own_one_is_refused() -> None:
    own_measure("RankBiased")(lambda qrels, run: 0.0)
    message = (
        r"two measures are called RankBiased: own_measure\('RankBiased'\) and measure RankBiased of mathamr-rbp 1\.0"
    )
    with pytest.raises(ConfigError, match=message):
        job_key_of("RankBiased@10")


def test_a_measure_of_a_package_can_be_an_own_one_too(rank_biased: Path) -> None:
    code = (rank_biased / "mathamr_rbp.py").read_text()
    decorator = "from mathamr.evaluation.metrics import own_measure\n\n\n@own_measure('RankBiased')\n"
    (rank_biased / "mathamr_rbp.py").write_text(f"{decorator}{code.lstrip()}")
    for _ in range(2):
        assert measure_identity("RankBiased").startswith("RankBiased mathamr-rbp 1.0 ")


def test_a_name_of_ir_measures_and_a_wrong_cutoff_are_refused() -> None:
    for cutoff in ("ten", "-1", "0", ""):
        with pytest.raises(EvaluationError, match=f"'RankBiased@{cutoff}' is not a measure"):
            measure_of(f"RankBiased@{cutoff}")
    own_measure("RBP")(lambda qrels, run: 0.0)
    with pytest.raises(EvaluationError, match="ir_measures has a measure of this name; choose another"):
        measure_of("RBP@10")


@pytest.mark.parametrize(("body", "reason"), [("1 / 0", "ZeroDivisionError: "), ("'high'", "TypeError: ")])
def test_a_measure_that_cannot_be_computed_is_named_with_its_package(rank_biased: Path, body: str, reason: str) -> None:
    (rank_biased / "mathamr_rbp.py").write_text(f"def rank_biased(qrels, run):\n    return {body}")
    place = r"^measure RankBiased of mathamr-rbp 1\.0 \(mathamr_rbp:rank_biased\) cannot be computed \("
    with pytest.raises(EvaluationError, match=f"{place}{reason}.*let it return a number"):
        check_measures({"RBP": measure_of("RankBiased@10")})


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


def test_a_job_that_fails_names_the_package_at_fault(rank_biased: Path, collection: Path, tmp_path: Path) -> None:
    code = "def rank_biased(qrels, run):\n    return 0.5 if len(run) == 2 else {}['grade']"
    (rank_biased / "mathamr_rbp.py").write_text(code)
    words = ["experiment.seeds=[1]", "+experiment.measures={RBP: RankBiased}"]
    ended = run(composed(collection, tmp_path, *words, conditions={"none": {"track": "bm25"}}), "command")
    assert "failed: a fault of mathamr-rbp 1.0: KeyError: 'grade' (see " in ended.table
