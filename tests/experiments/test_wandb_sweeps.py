"""conf/sweeps: W&B's agent makes of each a command that this project takes, whatever values it draws."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import yaml
from hydra import compose, initialize_config_dir

from experiments.config import register, validated
from experiments.logbook import measured
from experiments.plan import plan
from graphs.corpus.files import Fingerprints
from mathamr.systems.settings import GraphSettings

ROOT = Path(__file__).resolve().parents[2]
SWEEPS = sorted((ROOT / "conf" / "sweeps").glob("*.yaml"))
EPOCH = {"kind": "epoch", "step": 1, "val_loss": 1.0, "val_mrr": 0.3}


def values_of(parameter: dict[str, Any]) -> list[Any]:
    """The values that a parameter can take; of an interval its ends."""
    return parameter["values"] if "values" in parameter else [parameter["min"], parameter["max"]]


def test_there_are_sweeps() -> None:
    assert len(SWEEPS) >= 3


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_trial_of_a_sweep_is_an_experiment(path: Path) -> None:
    sweep = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert path.read_text(encoding="utf-8").startswith(f"# wandb sweep conf/sweeps/{path.name}\n")
    assert sweep["method"] in ("grid", "random", "bayes")
    assert sweep["metric"]["name"] in measured(EPOCH)
    assert sweep["metric"]["goal"] in ("minimize", "maximize")
    environment, *command, drawn = sweep["command"]
    assert (environment, drawn) == ("${env}", "${args_no_hyphens}")
    assert command[:3] == ["python", "-m", "experiments.run"]
    if sweep["method"] == "grid":
        assert all("values" in parameter for parameter in sweep["parameters"].values())

    register()
    choices = [[f"{key}={value}" for value in values_of(given)] for key, given in sweep["parameters"].items()]
    # Each value once, the others at their first: every combination where that is few.
    trials = list(product(*choices))
    if len(trials) > 20:
        first = [choice[0] for choice in choices]
        trials = [(*first[:i], value, *first[i + 1 :]) for i, choice in enumerate(choices) for value in choice]
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for trial in trials:
            config = validated(compose("config", [*command[3:], *trial]))
            (job,) = plan(config, Fingerprints("posts"))
            assert isinstance(job.settings, GraphSettings)
            assert config.wandb.mode == "online"


def test_trials_of_one_sweep_have_folders_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    register()
    names = []
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        for trial in ("abc", "xyz"):
            monkeypatch.setenv("WANDB_RUN_ID", trial)
            names.append(compose("config", ["+exp=trial"]).experiment.name)
    assert names == ["trial-abc", "trial-xyz"]
