"""The dashboard of a sweep, as W&B reads it; nothing is sent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.tracking import sweeps
from experiments.tracking.logbook import measured
from graphs.errors import ConfigError

SWEEPS = sorted((Path(__file__).resolve().parents[3] / "conf" / "sweeps").glob("*.yaml"))
EPOCH = {"kind": "epoch", "step": 1, "epoch": 0, "train_loss": 2.0, "val_loss": 1.0, "val_mrr": 0.3, "seconds": 9.0}


@pytest.mark.filterwarnings("ignore:Pydantic V1 style:DeprecationWarning")  # in wandb_workspaces
@pytest.mark.parametrize("path", SWEEPS, ids=lambda path: path.stem)
def test_every_parameter_is_drawn_against_the_metric(path: Path) -> None:
    pytest.importorskip("wandb_workspaces", reason="the extra wandb is not installed")
    sweep = sweeps.read(path)
    view = sweeps.dashboard(sweep, "x1y2", entity="me", project="p")
    spec = view._to_model().model_dump(by_alias=True, exclude_none=True)["spec"]
    first, curves, results = (part["panels"] for part in spec["section"]["panelBankConfig"]["sections"])
    accessors = [column["accessor"] for column in first[0]["config"]["columns"]]
    parameters = [f"config:{name.replace('.', '.value.', 1)}" for name in sweep["parameters"]]  # of a group of settings
    assert accessors == [*parameters, f"summary:{sweep['metric']['name']}"]
    assert len(first) == 2 + len(sweep["parameters"])
    assert [panel["config"]["metrics"] for panel in curves] == [[name] for name in sweeps.CURVES]
    assert len(results) == len(sweeps.ARQMATH) + len(sweeps.COSTS)
    assert "x1y2" in str(spec["section"]["runSets"][0]["filters"])


def test_curves_are_logged_under_these_names() -> None:
    assert set(sweeps.CURVES) <= set(measured(EPOCH))


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> Any:
        return None

    monkeypatch.setattr(sweeps, "find_spec", missing)
    with pytest.raises(ConfigError, match="wandb-workspaces"):
        sweeps.check_installed()
