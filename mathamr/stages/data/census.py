"""Count a collection: what its graphs hold, and the vocabulary that experiments make of it.

counted = count(Path("collection.db"), graph_config(), Console(), workers=8)
print(graphs.stores.census.table(counted))
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from graphs.stores.census import Census, take
from graphs.stores.collection import Collection
from mathamr.stages.console import Console
from mathamr.stages.settings import GraphConfig


def count(path: Path, graph: GraphConfig, console: Console, *, kinds: Sequence[str] = (), workers: int = 1) -> Census:
    """Return the counts of the thesis's Table 4.2.

    Args:
        path: collection.db.
        graph: size of the vocabulary, and occurrences that a number needs to keep its own label.
        kinds: kinds of posts whose graphs are counted; empty: all.
        workers: processes that count.
    """
    with Collection(path) as graphs, console.stage("counting", total=len(graphs), unit="graphs") as advance:
        return take(
            graphs,
            vocabulary_size=graph.vocabulary_size,
            number_threshold=graph.number_threshold,
            kinds=kinds,
            workers=workers,
            progress=advance,
        )
