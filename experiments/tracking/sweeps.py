"""Sweeps of Weights & Biases: trials that are checked before a sweep is made, and a dashboard of its results.

An agent draws a value for each parameter without knowledge of the others. A pair that the model refuses would end a
trial after its data was made, so a sweep that holds one is refused:

    check(read(find("encoder")))     # ConfigError: 2 of 12 trials are refused; model.vn_init=random ...
    make(read(find("encoder")))      # "ENTITY/mathamr-plus/x1y2z3"
    dashboard(read(find("encoder")), "x1y2z3", entity="ENTITY", project="mathamr-plus").save()       # a view of them
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from importlib.util import find_spec
from itertools import combinations, product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from omegaconf import OmegaConf

from experiments.configuration.errors import CONFIGURATION_ERRORS, refusal
from experiments.configuration.registration import compose_words, job_settings, validated
from experiments.options import PROGRAM
from graphs.errors import ConfigError
from mathamr.default_settings import CONF
from mathamr.evaluation.result_names import ARQMATH

if TYPE_CHECKING:
    from wandb_workspaces.workspaces import Workspace


SWEEPS = CONF / "sweeps"
MOST_TRIALS = 300  # above, the values of every two parameters are combined, the others at their first
_DRAWN = "${args_no_hyphens}"


def find(path: Path) -> Path:
    """Return the file of a sweep; a path without a file may name a sweep of :data:`SWEEPS`.

    >>> find(Path("encoder")).name, find(Path("conf/sweeps/encoder.yaml")).name
    ('encoder.yaml', 'encoder.yaml')

    Raises:
        ConfigError: neither; names the sweeps.
    """
    if path.is_file():
        return path
    known = {one.stem: one for one in sorted(SWEEPS.glob("*.yaml"))}
    own = known.get(path.stem)
    if own is None or path not in (Path(own.stem), Path(own.name), own.relative_to(CONF.parent)):
        what = "a folder" if path.is_dir() else "no such file"
        raise ConfigError(f"{what}; give the file of a sweep, or choose from: {', '.join(known)}", path=path)
    return own


def read(path: Path) -> dict[str, Any]:
    """Return the sweep in a file.

    Raises:
        ConfigError: a file that is no sweep of this project, or cannot be read.
    """
    try:
        sweep = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"cannot be read as a sweep: {error}", path=path) from error
    command = sweep.get("command") if isinstance(sweep, dict) else None
    if not isinstance(command, list) or command[1:4] != PROGRAM or command[-1:] != [_DRAWN]:
        raise ConfigError(f"no sweep: its command must be [..., {', '.join(PROGRAM)}, ..., {_DRAWN!r}]", path=path)
    parameters = sweep.get("parameters")
    if not isinstance(parameters, dict) or not all(map(_is_parameter, parameters.values())):
        raise ConfigError("no sweep: each parameter must have values, a value, or min and max", path=path)
    return sweep


def _is_parameter(given: object) -> bool:
    return isinstance(given, dict) and ("value" in given or {"min", "max"} <= set(given) or bool(given.get("values")))


def trials(sweep: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the trials to check, as values by key; of an interval its ends.

    >>> sweep = {"parameters": {"a": {"values": [1, 2]}, "b": {"min": 0.1, "max": 0.3}, "c": {"value": 7}}}
    >>> len(list(trials(sweep))), next(trials(sweep))
    (4, {'a': 1, 'b': 0.1, 'c': 7})
    """
    choices: dict[str, list[Any]] = {}
    for key, given in sweep["parameters"].items():
        choices[key] = given.get("values") or [given[name] for name in ("value", "min", "max") if name in given]
    if math.prod(map(len, choices.values())) <= MOST_TRIALS:
        yield from (dict(zip(choices, values, strict=True)) for values in product(*choices.values()))
        return
    first = {key: choice[0] for key, choice in choices.items()}
    for one, other in combinations(choices, 2):
        for values in product(choices[one], choices[other]):
            yield {**first, one: values[0], other: values[1]}


def check(sweep: Mapping[str, Any]) -> int:
    """Return the number of trials checked.

    Raises:
        ConfigError: trials that the model, the training or the plan refuses, with the reason of the first.
    """
    number, refused = 0, []
    first = [f"{key}={value}" for key, value in next(trials(sweep)).items()]  # as wandb writes them
    try:
        base = validated(compose_words([*sweep["command"][4:-1], *first]))
    except (*CONFIGURATION_ERRORS, ConfigError) as error:
        from experiments.configuration.composition import known_keys  # imports torch

        raise ConfigError(f"the command of the sweep is refused: {refusal(error, known_keys)}") from error
    for key in sweep["parameters"]:
        if OmegaConf.is_dict(group := OmegaConf.select(base, key)):
            raise ConfigError(f"the parameter {key} is a group of settings; give single ones, e.g. {key}.{min(group)}")
    for trial in trials(sweep):
        number += 1
        config = base.copy()
        try:
            for key, value in trial.items():
                OmegaConf.update(config, key, value, merge=False)
            job_settings(validated(config))
        except (*CONFIGURATION_ERRORS, ConfigError) as error:
            refused.append((trial, str(error).splitlines()[0]))
    if refused:
        trial, why = refused[0]
        words = " ".join(f"{key}={value}" for key, value in trial.items())
        raise ConfigError(f"{len(refused)} of {number} trials are refused; the first: {words}: {why}")
    return number


def make(sweep: Mapping[str, Any], *, project: str | None = None, entity: str | None = None) -> str:
    """Register a checked sweep with W&B; return the name that an agent takes: ``ENTITY/PROJECT/ID``.

    Raises:
        ConfigError: no login, no such project, or a server that does not answer.
    """
    import wandb

    project = project or str(sweep.get("project", "mathamr-plus"))
    try:
        sweep_id = wandb.sweep(dict(sweep), project=project, entity=entity)
    except wandb.Error as error:
        raise ConfigError(f"W&B did not make the sweep: {error}") from error
    return "/".join(part for part in (entity, project, sweep_id) if part)


CURVES = ("val/mrr", "val/loss", "epoch/train_loss", "epoch/seconds")
COSTS = ("time_per_epoch_s", "peak_memory_bytes", "queries_per_second", "parameters")


def check_installed() -> None:
    """Raise a ``ConfigError`` where the package that describes panels is missing."""
    if find_spec("wandb_workspaces") is None:
        raise ConfigError(
            "a dashboard needs wandb-workspaces; pip install 'mathamr-plus[wandb]', or leave out --dashboard"
        )


def dashboard(sweep: Mapping[str, Any], sweep_id: str, *, entity: str, project: str) -> Workspace:
    """Return the view of a sweep's trials, which needs no network until it is saved.

    The first section answers the question of the sweep: each parameter against its metric. The second has the learning
    curves of the trials, the third their scores and costs, under the names of docs/wandb.md.

    Args:
        sweep: content of its file, as :func:`read` returns it.
        sweep_id: id that W&B has given to it; the view shows runs of this sweep only.
    """
    import wandb_workspaces.expr as expr
    import wandb_workspaces.reports.v2 as panels
    import wandb_workspaces.workspaces as views

    goal, parameters = str(sweep["metric"]["name"]), list(sweep["parameters"])
    axes: list[Any] = [*map(panels.Config, parameters), panels.SummaryMetric(goal)]
    columns = [panels.ParallelCoordinatesPlotColumn(metric=axis) for axis in axes]
    parameter_panels: list[Any] = [
        panels.ParallelCoordinatesPlot(columns=columns),
        panels.ParameterImportancePlot(with_respect_to=goal),
    ]
    parameter_panels += [
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
            views.Section(name="Parameters", panels=parameter_panels, is_open=True),
            views.Section(name="Learning curves", panels=curves, is_open=True),
            views.Section(name="Scores and costs", panels=results),
        ],
        runset_settings=views.RunsetSettings(filters=expr.And(expr.Metric("Sweep") == sweep_id)),
    )
