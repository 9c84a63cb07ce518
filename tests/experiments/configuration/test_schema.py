"""Composed values as dataclasses: what is refused, and what the message says."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass, field

import pytest
from omegaconf import OmegaConf

from experiments.configuration.config import ExperimentConfig
from experiments.configuration.schema import filled, schema_of
from graphs.errors import ConfigError
from mathamr.stages.settings import DataSettings, SourceSettings
from mathamr.training.config import TrainConfig

DATA = {"name": "jsonl", "root": "/data", "years": [2022], "regime": "full", "judgments": "all"}


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("single_vector", r"train\.single_vector is not a setting; use train\.beta=0"),
        ("epocs", r"train\.epocs is not a setting; did you mean train\.epochs\?"),
    ],
)
def test_a_key_without_a_setting_is_refused_with_the_one_to_use(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        filled(TrainConfig, {key: True}, "train")


def test_a_missing_value_is_named() -> None:
    with pytest.raises(ConfigError, match=r"data\.split has no value; give data\.split="):
        filled(DataSettings, DATA, "data")


def test_nested_settings_are_dataclasses() -> None:
    nothing = {"split": None, "id": None, "relevant_grade": None}
    settings = filled(DataSettings, {**DATA, **nothing, "sources": {"math": {"name": "problems"}}}, "data")
    assert settings.sources == {"math": SourceSettings("problems", None, None)}
    with pytest.raises(
        ConfigError, match=r"data\.sources\.math\.nmae is not a setting; did you mean data\.sources\.math\.name"
    ):
        filled(DataSettings, {**DATA, **nothing, "sources": {"math": {"nmae": "problems"}}}, "data")


@dataclass(frozen=True)
class Inner:
    size: int = 3


@dataclass(frozen=True)
class Outer:
    name: str
    inner: Inner = field(default_factory=Inner)
    others: dict[str, Inner] = field(default_factory=dict)
    note: str | None = None


def test_a_schema_can_be_filled_and_holds_the_types() -> None:
    config = OmegaConf.merge(
        OmegaConf.structured(schema_of(Outer)), {"name": "a", "inner": {"size": "4"}, "others": {"b": {}}}
    )
    assert filled(Outer, OmegaConf.to_container(config), "outer") == Outer("a", Inner(4), {"b": Inner(3)})  # type: ignore[arg-type]
    assert OmegaConf.missing_keys(OmegaConf.structured(schema_of(Outer))) == {"name"}


def test_a_schema_stays_one_in_another_process() -> None:
    cloudpickle = pytest.importorskip("cloudpickle")  # with which launchers send what they know to jobs
    command = "import pickle, sys, omegaconf; print(omegaconf.OmegaConf.structured(pickle.load(sys.stdin.buffer)))"
    sent = cloudpickle.dumps(schema_of(ExperimentConfig))
    done = subprocess.run([sys.executable, "-c", command], input=sent, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr.decode()
    assert b"'conditions': {}" in done.stdout
