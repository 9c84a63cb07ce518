"""Tensors of graphs: collection.db -> counts -> vocabulary -> preprocessed.db.

counts = count_labels(rows, "both", Console(), total=5194)
vocabulary = build_vocabulary([counts], graph, Console())                                    # graph: GraphConfig
build_tensors(rows, Path("preprocessed.db"), vocabulary, graph.spec(), Console(), source="c2cab975a849")
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path

from graphs.graph import mathamr_plus, vocabulary
from graphs.graph.virtual_nodes import FormulaMode, VirtualNodeSpec
from graphs.graph.vocabulary import Counts, Row, Vocabulary
from graphs.stores import store
from graphs.stores.store import GraphStore
from mathamr.stages.console import Console
from mathamr.stages.data.formulas import check_workers
from mathamr.stages.settings import GraphConfig


def count_labels(
    rows: Iterable[Row], formulas: FormulaMode, console: Console, *, total: int | None = None, workers: int = 1
) -> Counts:
    """Count labels and relations of ``rows``, graphs that models learn from, with the ``formulas`` that they keep."""
    with console.stage("vocabulary", total=total, unit="graphs") as advance:
        return vocabulary.count(rows, mathamr_plus.decode, formulas, workers=workers, progress=advance)


def build_vocabulary(counted: Sequence[Counts], graph: GraphConfig, console: Console) -> Vocabulary:
    """Return the vocabulary of several collections together, and say how much of them it covers."""
    vocabulary = Vocabulary.build(
        together(counted), size=graph.vocabulary_size, number_threshold=graph.number_threshold
    )
    facts = vocabulary.statistics
    console.say(
        f"  vocabulary: {facts['raw_labels']:,} labels, {facts['normalized_labels']:,} normalised, "
        f"{vocabulary.num_labels:,} kept with the reserved ones, {facts['coverage']:.2%} of nodes; "
        f"{vocabulary.num_relations} relations"
    )
    return vocabulary


def together(counted: Sequence[Counts]) -> Counts:
    """Return the sum of counts."""
    total = Counts()
    for counts in counted:
        total.merge(counts)
    return total


def build_tensors(
    rows: Iterable[Row],
    out: Path,
    labels: Vocabulary,
    spec: VirtualNodeSpec,
    console: Console,
    *,
    source: str,
    total: int | None = None,
    workers: int = 1,
) -> GraphStore:
    """Convert the graphs that ``out`` does not hold yet, and say which have no tensors.

    Args:
        out: preprocessed.db (resumed if it exists).
        labels: vocabulary of the graphs that models learn from.
        spec: virtual nodes, and which formula trees the graphs have.
        source: identity of the graphs.

    Raises:
        ConfigError: no process.
    """
    check_workers(workers)
    with console.stage("graphs to tensors", total=total, unit="graphs") as advance:
        store.build(out, rows, mathamr_plus.decode, spec, labels, source=source, workers=workers, progress=advance)
    tensors = GraphStore(out)
    console.failures("graphs without tensors", Counter((lost.stage, lost.kind) for lost in tensors.failures()))
    return tensors
