"""conf/sweeps: W&B's agent makes of each a command that this project takes, whatever values it draws."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import pytest
import wandb
import yaml
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.plan import plan
from experiments.tracking import sweeps
from experiments.tracking.logbook import measured
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError
from mathamr.systems.settings.trained import GraphSettings

ROOT = Path(__file__).resolve().parents[3]
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
    assert path.read_text(encoding="utf-8").startswith(f"# mathamr sweep conf/sweeps/{path.name}\n")
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


@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_trial_of_a_sweep_can_run(path: Path) -> None:
    assert sweeps.check(sweeps.read(path)) >= 12


def test_a_sweep_with_trials_that_the_model_refuses_is_not_made(tmp_path: Path) -> None:
    sweep = yaml.safe_load((ROOT / "conf" / "sweeps" / "encoder.yaml").read_text(encoding="utf-8"))
    learned = ["none", "embedding", "projection", "typed_projection"]
    sweep["parameters"] = {
        "model.vn_init": {"values": ["zero", "random", "mean"]},
        "model.vn_learned": {"values": learned},
    }
    path = tmp_path / "sweep.yaml"
    path.write_text(yaml.safe_dump(sweep), encoding="utf-8")
    message = r"6 of 12 trials are refused; the first: model\.vn_init=zero model\.vn_learned=projection: .*Table 4\.13"
    with pytest.raises(ConfigError, match=message):
        sweeps.check(sweeps.read(path))
    sweep["parameters"] = {"index": {"values": ["exact", "approximate"]}}
    with pytest.raises(ConfigError, match=r"the parameter index is a group of settings; give single ones, e"):
        sweeps.check(sweep)
    sweep["parameters"] = {"train.batch": {"values": [8]}}
    with pytest.raises(ConfigError, match=r"refused: unknown key train\.batch; did you mean train\.batch_size\?"):
        sweeps.check(sweep)


def test_a_sweep_of_the_package_is_found_from_any_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("encoder", "encoder.yaml", "conf/sweeps/encoder.yaml"):
        assert sweeps.find(Path(name)) == ROOT / "conf" / "sweeps" / "encoder.yaml"
    own = Path("conf/sweeps/encoder.yaml")
    own.parent.mkdir(parents=True)
    own.touch()
    assert sweeps.find(own) == own
    for name in ("encode", "conf/sweeps/encode.yaml", "elsewhere/encoder.yaml"):
        with pytest.raises(ConfigError, match=f"{name}: no such file; .*choose from: encoder, optimizer, temperature"):
            sweeps.find(Path(name))
    with pytest.raises(ConfigError, match="conf/sweeps: a folder; give the file of a sweep"):
        sweeps.find(own.parent)


@pytest.mark.parametrize("text", ["[]", "command: [a, b]", "program: train.py"])
def test_what_is_no_sweep_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "sweep.yaml"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"sweep\.yaml: no sweep"):
        sweeps.read(path)


def test_a_sweep_without_a_login_is_no_fault_of_the_program(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*given: object, **named: object) -> None:
        raise wandb.errors.UsageError("No API key configured.")

    monkeypatch.setattr(wandb, "sweep", refuse)
    with pytest.raises(ConfigError, match=r"W&B did not make the sweep: No API key configured\."):
        sweeps.make({})


def test_many_trials_are_checked_by_pairs() -> None:
    many = {"parameters": {name: {"values": list(range(7))} for name in "abc"}}
    found = list(sweeps.trials(many))
    assert len(found) == 3 * 49
    assert {"a": 0, "b": 6, "c": 6} in found
