"""Count a collection as experiments see it: with the vocabulary that ``conf/graph/default.yaml`` makes of it.

counted = count(Path("collection.db"), Console(), workers=8)
print(graphs.stores.census.table(counted))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from omegaconf import OmegaConf

from graphs.stores.census import Census, take
from graphs.stores.collection import Collection
from mathamr.stages.console import Console

_DEFAULTS = Path(__file__).resolve().parents[2] / "conf" / "graph" / "default.yaml"


def count(path: Path, console: Console, *, kinds: Sequence[str] = (), workers: int = 1) -> Census:
    """The counts of the thesis's Table 4.2 for ``path``; for the graphs of some ``kinds`` only, where given."""
    defaults = OmegaConf.load(_DEFAULTS)
    with Collection(path) as graphs, console.stage("counting", total=len(graphs), unit="graphs") as advance:
        return take(
            graphs,
            vocabulary_size=defaults.vocabulary_size,
            number_threshold=defaults.number_threshold,
            kinds=kinds,
            workers=workers,
            progress=advance,
        )
