"""Learning curves in a report: losses and validation MRR by epoch, and the terms of the training loss."""

from __future__ import annotations

import operator
from pathlib import Path

from experiments.models import LOG, read_log
from experiments.report.blocks import Block, Text
from experiments.report.figures import charts
from experiments.report.results import Experiment, Row
from graphs.errors import StoreError
from mathamr.training.result import loss_terms

_NOTE = (
    "The training loss is the sum of these terms by their weights. The validation loss has only the terms maxsim and "
    "document, so further terms raise the training loss alone."
)


def blocks(experiment: Experiment) -> list[Block]:
    """Return learning curves; conditions that share their models share a line."""
    found = experiment.read_jobs(lambda place: epochs(place) or None)
    logs = {experiment.label(condition): seeds for condition, seeds in found.items()}
    if not logs:
        return []
    labelled = charts.grouped(logs, operator.eq)
    every = (record for seeds in logs.values() for own in seeds for record in own)
    terms = {name: name.replace("_", " ").capitalize() for record in every for name in loss_terms(record)}
    plots: list[Block] = [charts.curves(labelled)]
    if len(terms) > 1:
        plots += [Text(_NOTE), charts.loss_terms(labelled, terms)]
    idle = [
        f"{title.lower()} of {label}"
        for name, title in terms.items()
        for label, seeds in labelled.items()
        if (values := [record[name] for own in seeds for record in own if name in record]) and not any(values)
    ]
    if idle:
        plots.append(Text(f"Warning: 0 in every epoch, so without effect: {'; '.join(idle)}."))
    return plots


def epochs(place: Path) -> list[Row]:
    """Return the records of kind ``epoch`` in ``log.jsonl``, one for each epoch; of a repeated epoch, the last.

    A line that a killed process wrote incompletely is skipped.

    Raises:
        StoreError: a file that cannot be read, or a record of another form.
    """
    path = place / LOG
    found: dict[int, Row] = {}
    try:
        for record in read_log(path):
            if isinstance(record, dict) and record.get("kind") == "epoch":
                curves = {name: float(record[name]) for name in [*charts.CURVES, *loss_terms(record)] if name in record}
                found[int(record["epoch"])] = record | curves
    except (OSError, KeyError, TypeError, ValueError, OverflowError, RecursionError) as error:
        raise StoreError(f"no records of epochs ({error!r}); remove result.json and run again", path=path) from error
    return [found[number] for number in sorted(found)]
