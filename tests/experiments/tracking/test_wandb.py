"""The logbook: what W&B is told, that it stays in its folder, and that no failure of it stops a run."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import DictConfig, OmegaConf

from experiments.configuration.registration import register
from experiments.plan import plan
from experiments.tracking.logbook import Logbook, open_logbook
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
STEP = {"kind": "step", "step": 1, "epoch": 0, "loss": 2.0, "temperature": 0.05, "grad_norm": 0.8}


class Run:
    """Stands for W&B's run; raises at the ``fails``-th call."""

    def __init__(self, fails: int = 0) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.fails = fails
        self.config = SimpleNamespace(update=lambda facts, **_: self._call("config", facts))
        self.summary = SimpleNamespace(update=lambda values: self._call("summary", values))

    def _call(self, name: str, value: Any) -> None:
        self.calls.append((name, value))
        if len(self.calls) == self.fails:
            raise ConnectionError("connection lost\nand more")

    def log(self, values: dict[str, Any]) -> None:
        self._call("log", values)

    def define_metric(self, name: str, step_metric: str) -> None: ...

    def finish(self, exit_code: int) -> None:
        self._call("finish", exit_code)


def settings(mode: str) -> DictConfig:
    return OmegaConf.create({"mode": mode, "project": "p", "entity": None, "artifacts": False})


def composed(*overrides: str) -> DictConfig:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        return compose("config", ["+exp=vn_connectivity", *overrides])


def small_logbook(mode: str, folder: Path, said: list[str]) -> Any:
    return open_logbook(settings(mode), folder, name="n", group="g", run_id="i", config={"a": 1}, say=said.append)


@pytest.fixture
def wandb(monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """In place of the package: notes how runs were opened; online there is no answer."""
    package = SimpleNamespace(asked=[], run=Run(), Settings=lambda **given: given, Table=lambda **given: given)

    def init(**given: Any) -> Run:
        package.asked.append(given)
        if given["mode"] == "online":
            raise TimeoutError("no answer")
        return package.run

    package.init, package.teardown = init, lambda: None
    monkeypatch.setitem(sys.modules, "wandb", package)
    monkeypatch.setenv("WANDB_CACHE_DIR", "/nowhere")
    monkeypatch.setenv("WANDB_DATA_DIR", "/nowhere")
    monkeypatch.delenv("WANDB_RUN_ID", raising=False)
    return package


def test_curves_scores_and_tables_under_the_names_of_the_docs(wandb: SimpleNamespace, tmp_path: Path) -> None:
    said: list[str] = []
    with small_logbook("offline", tmp_path, said) as book:
        book.record({"kind": "start", "step": 0, "train_pairs": 10, "missing": ("q1",)})
        book.record(STEP)
        book.record({"kind": "epoch", "step": 1, "epoch": 0, "val_mrr": 0.3, "peak_memory_bytes": 5, "best": True})
        book.scores({"ndcg_prime": 0.4})
        book.table("topics", ["topic", "map_prime"], [("A.1", 0.5)])
    assert wandb.run.calls == [
        ("config", {"training": {"train_pairs": 10}}),
        ("log", {"step": 1, "train/loss": 2.0, "train/temperature": 0.05, "train/grad_norm": 0.8}),
        ("log", {"step": 1, "epoch": 0, "val/mrr": 0.3, "memory/peak_bytes": 5, "epoch/best": True}),
        ("summary", {"ndcg_prime": 0.4}),
        ("log", {"topics": {"columns": ["topic", "map_prime"], "data": [["A.1", 0.5]]}}),
        ("finish", 0),
    ]
    assert (wandb.asked[0]["id"], wandb.asked[0]["dir"]) == ("i", str(tmp_path))
    assert said == []


def test_a_run_that_fails_is_closed_as_failed_and_its_error_stands(wandb: SimpleNamespace, tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), small_logbook("offline", tmp_path, []):
        raise ZeroDivisionError
    assert wandb.run.calls == [("finish", 1)]


def test_a_lost_connection_is_said_once_and_stops_nothing() -> None:
    said: list[str] = []
    run = Run(fails=2)
    book = Logbook(run, said.append)
    for _ in range(5):
        book.record(STEP)
    book.scores({"ndcg_prime": 0.4})
    book.close(0)
    assert len(run.calls) == 2
    assert len(said) == 1
    assert "ConnectionError: connection lost; this run continues without it" in said[0]


def test_without_an_answer_an_online_run_is_kept_offline(wandb: SimpleNamespace, tmp_path: Path) -> None:
    said: list[str] = []
    with small_logbook("online", tmp_path, said) as book:
        book.record(STEP)
    assert [asked["mode"] for asked in wandb.asked] == ["online", "offline"]
    assert [name for name, _ in wandb.run.calls] == ["log", "finish"]
    assert len(said) == 1
    assert "TimeoutError: no answer" in said[0]
    assert f"kept in {tmp_path / 'wandb'}" in said[0]


@pytest.mark.parametrize("mode", ["offline", "online"])
def test_a_restarted_job_goes_on_in_its_run(wandb: SimpleNamespace, tmp_path: Path, mode: str) -> None:
    """Each start has its own folder; wandb sync joins those with one id in the order of their start."""
    for _ in range(2):
        with small_logbook(mode, tmp_path, []):
            pass
    kept = [asked for asked in wandb.asked if asked["mode"] == "offline"]
    assert [(asked["id"], asked["resume"]) for asked in kept] == [("i", "allow")] * 2


def test_a_sweep_names_its_runs(wandb: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_RUN_ID", "trial7")
    with small_logbook("offline", tmp_path, []):
        pass
    assert wandb.asked[0]["id"] == "trial7"


def test_disabled_opens_nothing(wandb: SimpleNamespace, tmp_path: Path) -> None:
    with small_logbook("disabled", tmp_path, []) as book:
        book.record(STEP)
        book.scores({"ndcg_prime": 0.4})
    assert wandb.asked == []
    assert list(tmp_path.iterdir()) == []


def test_another_mode_is_refused(tmp_path: Path) -> None:
    with (
        pytest.raises(ConfigError, match=r"wandb\.mode=of is not one of offline, online, disabled"),
        small_logbook("of", tmp_path, []),
    ):
        pass


def test_offline_is_the_default_the_environment_may_say_otherwise_and_no_key_depends_on_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert composed().wandb.mode == "disabled"  # WANDB_MODE of all tests here
    monkeypatch.delenv("WANDB_MODE")
    assert composed().wandb.mode == "offline"
    configs = [composed(), composed("wandb=online", "wandb.project=mine", "wandb.artifacts=true")]
    keys = [[job.key for job in plan(config, Fingerprints("posts"))] for config in configs]
    assert keys[0] == keys[1]


OFFLINE = """
from omegaconf import OmegaConf
from pathlib import Path
import sys
from experiments.tracking import logbook
from experiments.tracking.logbook import open_logbook
logbook._INIT_TIMEOUT = 2.0  # nobody answers, however long it waits
settings = OmegaConf.create({"mode": sys.argv[2], "project": "p", "entity": None, "artifacts": True})
folder = Path(sys.argv[1])
with open_logbook(settings, folder, name="n", group="g", run_id="i", config={"a": {"b": 1}}, say=print) as book:
    book.record({"kind": "start", "step": 0, "train_pairs": 3, "missing": ()})
    for step in range(3):
        book.record({"kind": "step", "step": step, "epoch": 0, "loss": 1.0})
    book.scores({"ndcg_prime": 0.4, "code": "x"})
    book.table("topics", ["topic", "map_prime"], [["A.1", 0.5], ["A.2", 0.0]])
    book.artifact("g-n", [folder / "model", folder / "run.tsv"], {"ndcg_prime": 0.4})
print("went on")
"""


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["offline", "online"])
def test_wandb_itself_writes_below_its_folder_alone(tmp_path: Path, mode: str) -> None:
    """Online with a server that does not answer, at a port where nothing listens."""
    home, out = tmp_path / "home", tmp_path / "out"
    home.mkdir()
    (out / "model").mkdir(parents=True)
    (out / "model" / "model.safetensors").write_bytes(b"weights")
    (out / "run.tsv").write_text("A.1\ta\t1\t1.0\tme\n")
    clean = {key: value for key, value in os.environ.items() if not key.startswith("WANDB_")}
    server = {"WANDB_BASE_URL": "http://127.0.0.1:9", "WANDB_API_KEY": "0" * 40}
    done = subprocess.run(
        [sys.executable, "-c", OFFLINE, str(out), mode],
        cwd=ROOT,
        env={**clean, "HOME": str(home), "PYTHONPATH": str(ROOT), **server},
        capture_output=True,
        text=True,
        check=False,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    lines = done.stdout.splitlines()
    assert lines[-1] == "went on"
    assert len(lines) == (1 if mode == "offline" else 2)
    if mode == "online":
        assert "wandb sync uploads it" in lines[0]
    (log,) = (out / "wandb").glob("offline-run-*/run-i.wandb")
    assert log.stat().st_size > 500
    assert not list(home.rglob("*"))
