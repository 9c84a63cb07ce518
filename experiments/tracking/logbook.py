"""Logbook of a run, kept with Weights & Biases (W&B): curves while it trains, scores and tables at its end.

    with open_logbook(config.wandb, folder, name="none-seed42", group="vn_connectivity", run_id=job.key, ...) as book:
        result = train(..., log=book.record)                    # train/loss, val/mrr ... by optimizer step
        book.scores({"ndcg_prime": 0.41})                       # the run's summary
        book.table("topics", ["topic", "ndcg_prime"], rows)

Names are W&B's, so that its panels group them:

>>> measured({"kind": "step", "step": 7, "epoch": 0, "loss": 2.5, "learning_rate": 1e-4, "graphs_per_s": 310.0})
{'step': 7, 'train/loss': 2.5, 'train/learning_rate': 0.0001, 'train/graphs_per_s': 310.0}
>>> measured({"kind": "epoch", "step": 40, "epoch": 0, "val_mrr": 0.31, "seconds": 9.5, "missing": ("q7",)})
{'step': 40, 'epoch': 0, 'val/mrr': 0.31, 'epoch/seconds': 9.5}

Offline (the default) everything lies in ``FOLDER/wandb`` until ``wandb sync`` uploads it. No result depends on a
logbook, and none stops a run: a failure is reported once, and the run continues without it. See docs/wandb.md.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, cast

from experiments.configuration.config import WandbConfig
from graphs.errors import ConfigError

MODES = ("offline", "online", "disabled")

# Seconds that a run waits for a server, at its beginning and at its end; what was not uploaded then is on the disk.
_INIT_TIMEOUT = 20.0
_FINISH_TIMEOUT = 60.0

# Keys of training records, by kind -> W&B's names. Other keys get a prefix.
_NAMES = {
    "step": {"step": "step"},
    "epoch": {
        "step": "step",
        "epoch": "epoch",
        "val_loss": "val/loss",
        "val_mrr": "val/mrr",
        "peak_memory_bytes": "memory/peak_bytes",
    },
}
_PREFIX = {"step": "train/", "epoch": "epoch/"}
_LEFT_OUT = {"step": "epoch", "epoch": "temperature"}


def measured(record: Mapping[str, Any]) -> dict[str, float]:
    """Return the numbers of a training record (:mod:`mathamr.training.graph.trainer`) by W&B's names; none of another
    kind than step and epoch."""
    kind = record.get("kind", "")
    if kind not in _NAMES:
        return {}
    names, left_out = _NAMES[kind], _LEFT_OUT[kind]
    return {
        names.get(key, f"{_PREFIX[kind]}{key}"): value
        for key, value in record.items()
        if key != left_out and isinstance(value, int | float)
    }


class Logbook:
    """Log of a run; ``run`` is the run of W&B, or None if nothing is logged."""

    def __init__(self, run: Any, say: Callable[[str], None]) -> None:
        self._run = run
        self._say = say

    def record(self, record: Mapping[str, Any]) -> None:
        """Log a record of training, see :func:`measured`; of kind ``start`` it belongs to the run's configuration."""
        if record.get("kind") == "start":
            facts = {key: value for key, value in record.items() if key not in ("kind", "step", "missing")}
            self._attempt(lambda run: run.config.update({"training": facts}, allow_val_change=True))
        else:
            self._attempt(lambda run: run.log(measured(record)))

    def scores(self, values: Mapping[str, Any]) -> None:
        """Write the final measures into the run's summary."""
        self._attempt(lambda run: run.summary.update(dict(values)))

    def table(self, name: str, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Log a table, a cell a number, a text or ``None``."""

        def log(run: Any) -> None:
            import wandb

            run.log({name: wandb.Table(columns=list(columns), data=[list(row) for row in rows])})

        self._attempt(log)

    def artifact(self, name: str, paths: Sequence[Path], facts: Mapping[str, Any]) -> None:
        """Log files and folders as an artifact of a model (W&B keeps copies of them), with ``facts`` about them."""

        def log(run: Any) -> None:
            import wandb

            artifact = wandb.Artifact(name, type="model", metadata=dict(facts))
            for path in paths:
                if path.is_dir():
                    artifact.add_dir(str(path), name=path.name)
                else:
                    artifact.add_file(str(path))
            run.log_artifact(artifact)

        self._attempt(log)

    def close(self, exit_code: int) -> None:
        """End the run; 0 means success."""
        self._attempt(lambda run: run.finish(exit_code=exit_code))
        self._run = None

    def _attempt(self, action: Callable[[Any], object]) -> None:
        if self._run is None:
            return
        try:
            action(self._run)
        except Exception as error:  # noqa: BLE001 - nothing that W&B raises, its own errors or others, may stop a run
            self._run = None
            self._say(f"  W&B: {_reason(error)}; this run continues without it, and what was logged so far is kept")


@contextmanager
def open_logbook(
    settings: WandbConfig,
    folder: Path,
    *,
    name: str,
    group: str,
    run_id: str,
    config: Mapping[str, Any],
    say: Callable[[str], None],
) -> Iterator[Logbook]:
    """A logbook in ``FOLDER/wandb``, closed at the end of the block.

    Online without an answer from the server it is kept offline instead. Where a sweep's agent has started the process,
    the agent's run id counts.

    Args:
        settings: the group ``wandb`` of the configuration.
        run_id: the same when an interrupted run goes on: its curves are then one.
        config: what the run was configured with.
        say: told, once, when something is wrong with W&B.
    """
    check(settings)
    described = {"name": name, "group": group, "id": os.environ.get("WANDB_RUN_ID", run_id), "config": dict(config)}
    book = Logbook(None if settings.mode == "disabled" else _start(settings, folder, described, say), say)
    try:
        yield book
    except BaseException:
        book.close(1)
        raise
    book.close(0)


def check(settings: WandbConfig) -> None:
    """Raise a ``ConfigError`` for an unknown mode."""
    if settings.mode not in MODES:
        raise ConfigError(f"wandb.mode={settings.mode} is not one of {', '.join(MODES)}")


def _start(settings: WandbConfig, folder: Path, described: Mapping[str, Any], say: Callable[[str], None]) -> Any:
    """Start W&B's run, ``described`` as ``wandb.init`` wants it; ``None`` if no run can start."""
    place = folder.resolve() / "wandb"
    for variable in ("WANDB_CACHE_DIR", "WANDB_DATA_DIR"):  # else in the home directory, which clusters keep small
        os.environ.setdefault(variable, str(place / ".wandb"))
    for mode in dict.fromkeys((settings.mode, "offline")):
        try:
            place.mkdir(parents=True, exist_ok=True)
            import wandb

            if mode != settings.mode:
                wandb.teardown()  # its service still holds the id of the run that it could not begin
            run = wandb.init(
                mode=cast(Literal["offline", "online", "disabled"], mode),
                project=settings.project,
                entity=settings.entity,
                dir=str(folder.resolve()),
                **described,
                resume="allow",  # offline too: wandb sync then joins the parts of a run
                reinit="finish_previous",
                settings=wandb.Settings(
                    console="off",
                    silent=True,
                    init_timeout=_INIT_TIMEOUT,
                    finish_timeout=_FINISH_TIMEOUT,
                    login_timeout=_INIT_TIMEOUT,
                ),
            )
            run.define_metric("*", step_metric="step")
            return run
        except Exception as error:  # noqa: BLE001 - nothing that W&B raises, its own errors or others, may stop a run
            after = f"the run is kept in {place}, wandb sync uploads it" if mode == "online" else "nothing is logged"
            say(f"  W&B: {_reason(error)}; {after}")
    return None


def _reason(error: Exception) -> str:
    text = str(error).strip()
    return f"{type(error).__name__}: {text.splitlines()[0]}" if text else type(error).__name__
