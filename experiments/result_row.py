"""Row of the results: columns of a job, added part by part, each by one part alone.

>>> row = ResultRow()
>>> row.add("the job", {"condition": "none", "seed": 42})
>>> row.add("the measures", {"mrr": 0.54})
>>> row.add("the costs", {"peak_memory_bytes": 2.0e9})
>>> row.add("the costs", {"peak_memory_bytes": 2.5e9})  # measured again later: the last one counts
>>> row.columns
{'condition': 'none', 'seed': 42, 'mrr': 0.54, 'peak_memory_bytes': 2500000000.0}
>>> row.add("the analyses", {"mrr": 0.50})
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: the column mrr of the results would be of the measures and of the analyses; rename one of \
them: a measure has the column of its title in experiment.measures
"""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from typing import Any

from experiments.models import machine
from experiments.plan import Job
from graphs.errors import ConfigError
from mathamr.training.checkpoint import code_version


class ResultRow:
    """Columns of a result; ``columns`` is the content of ``result.json``."""

    def __init__(self) -> None:
        self.columns: dict[str, Any] = {}
        self._part_of: dict[str, str] = {}

    def add(self, part: str, columns: Mapping[str, Any]) -> None:
        """Add the columns of a part; raise a ``ConfigError`` for a column that another part has."""
        for name in columns:
            if (before := self._part_of.setdefault(name, part)) != part:
                raise ConfigError(
                    f"the column {name} of the results would be of {before} and of {part}; rename one of them: a "
                    "measure has the column of its title in experiment.measures"
                )
        self.columns.update(columns)


def identity(job: Job) -> dict[str, Any]:
    """Return the columns that say which job a result is of, and what made it."""
    return {
        "condition": job.condition,
        "seed": job.seed,
        "key": job.key,
        "condition_key": job.condition_key,
        "model_key": job.model_key,
        "collection_hash": job.collection_hash,
        "code": code_version(),
        "machine": machine(),
        "finished": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
    }
