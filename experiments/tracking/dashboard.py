"""Dashboard of a sweep: its panels as code, saved as a view of the project in Weights & Biases.

    view = dashboard(sweep, "SWEEP", entity="ENTITY", project="mathamr-plus")     # needs no network
    view.save()                                                                   # does; prints the address of the view

The first section answers the question of the sweep: each parameter against its metric. The second has the learning
curves of the trials, the third their scores and costs, under the names of docs/wandb.md.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from graphs.errors import ConfigError
from mathamr.evaluation.result_names import ARQMATH

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace

CURVES = ("val/mrr", "val/loss", "epoch/train_loss", "epoch/seconds")
COSTS = ("time_per_epoch_s", "peak_memory_bytes", "queries_per_second", "parameters")


def check_installed() -> None:
    """Raise a ``ConfigError`` where the package that describes panels is missing."""
    if find_spec("wandb_workspaces") is None:
        raise ConfigError(
            "a dashboard needs wandb-workspaces; pip install 'mathamr-plus[wandb]', or leave out --dashboard"
        )


def dashboard(sweep: Mapping[str, Any], sweep_id: str, *, entity: str, project: str) -> Workspace:
    """Return the view of a sweep's trials.

    Args:
        sweep: content of its file, as :func:`experiments.tracking.sweeps.read` returns it.
        sweep_id: id that W&B has given to it; the view shows runs of this sweep only.
    """
    import wandb_workspaces.expr as expr
    import wandb_workspaces.reports.v2 as panels
    import wandb_workspaces.workspaces as views

    goal, parameters = str(sweep["metric"]["name"]), list(sweep["parameters"])
    axes: list[Any] = [*map(panels.Config, parameters), panels.SummaryMetric(goal)]
    columns = [panels.ParallelCoordinatesPlotColumn(metric=axis) for axis in axes]
    chosen: list[Any] = [
        panels.ParallelCoordinatesPlot(columns=columns),
        panels.ParameterImportancePlot(with_respect_to=goal),
    ]
    chosen += [
        panels.ScatterPlot(
            x=panels.Config(name),
            y=panels.SummaryMetric(goal),
            log_x="log" in str(sweep["parameters"][name].get("distribution", "")),
        )
        for name in parameters
    ]
    curves: list[Any] = [panels.LinePlot(x="epoch", y=[name]) for name in CURVES]
    results: list[Any] = [panels.BarPlot(metrics=[name]) for name in (*ARQMATH, *COSTS)]
    return views.Workspace(
        entity=entity,
        project=project,
        name=f"Sweep {sweep.get('name', sweep_id)} ({sweep_id})",
        sections=[
            views.Section(name="Parameters", panels=chosen, is_open=True),
            views.Section(name="Learning curves", panels=curves, is_open=True),
            views.Section(name="Scores and costs", panels=results),
        ],
        runset_settings=views.RunsetSettings(filters=expr.And(expr.Metric("Sweep") == sweep_id)),
    )
