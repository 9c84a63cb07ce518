"""Census of a collection: the counts of the thesis's Table 4.2.

    census = take(Collection("collection.db"), vocabulary_size=20_000, number_threshold=5)
    print(table(census))
    census.to_json()

It takes one pass over the graphs, in any number of processes; only the different labels and sizes are in memory.

>>> Spread.of({10: 2, 40: 1})
Spread(mean=20.0, median=10.0, largest=40)
>>> Spread.of({1: 1, 2: 1}).median, Spread.of({})
(1.5, Spread(mean=0.0, median=0.0, largest=0))
"""

from __future__ import annotations

import json
from bisect import bisect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import accumulate

from graphs.errors import MathAMRError
from graphs.graph.graph_maker import StoredGraph
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.vocabulary import Counts, Vocabulary
from graphs.processes import batched, ordered_map
from graphs.stores.collection import Collection

_GRAPHS_PER_TASK = 256


@dataclass(frozen=True, slots=True)
class Spread:
    """Mean, median and maximum of a number of things a graph."""

    mean: float
    median: float
    largest: int

    @classmethod
    def of(cls, histogram: Mapping[int, int]) -> Spread:
        """Summarise how often each number occurs."""
        sizes = sorted(histogram)
        ends = list(accumulate(histogram[size] for size in sizes))
        if not sizes or not ends[-1]:
            return cls(0.0, 0.0, 0)
        middle = (sizes[bisect(ends, place)] for place in ((ends[-1] - 1) // 2, ends[-1] // 2))
        return cls(sum(size * n for size, n in histogram.items()) / ends[-1], sum(middle) / 2, sizes[-1])


@dataclass(frozen=True, slots=True)
class FailureCount:
    """Records of failures of one stage and kind, and how many posts with such a record have no graph."""

    stage: str
    kind: str
    records: int
    posts_without_graph: int


@dataclass(frozen=True, slots=True)
class Census:
    """Counts of one collection (thesis Table 4.2).

    ``posts`` are those with a graph or a record of a failure; ``incomplete`` graphs lack a part, for which there is a
    record; ``undecodable`` ones cannot be read back. Nodes and edges are those of the graphs as stored, constants
    included, without virtual nodes; ``node_kinds`` sums the nodes by kind. ``attachments`` says how formulas came into
    their graphs (:mod:`graphs.graph.mathamr_plus`), ``formulas_without`` how many have no operator tree, no layout tree
    and neither of them; ``reattached_parts`` how many parts of AMRs hung loose, in
    ``reattached_graphs`` graphs.
    ``coverage`` is the share of nodes whose label is among ``labels_kept``, or a rare number.
    """

    source: str
    parser: str
    shard: str
    finished: bool
    posts: int
    graphs: int
    graphs_by_kind: dict[str, int]
    posts_without_graph: int
    incomplete: int
    undecodable: int
    failures: tuple[FailureCount, ...]
    formulas: int
    attachments: dict[str, int]
    formulas_without: dict[str, int]
    reattached_parts: int
    reattached_graphs: int
    nodes: Spread
    edges: Spread
    node_kinds: dict[str, int]
    labels_raw: int
    labels_normalized: int
    labels_kept: int
    coverage: float
    relations: int

    def to_json(self) -> str:
        """Return an indented JSON object."""
        return json.dumps(asdict(self), indent=2, ensure_ascii=False)


def take(
    collection: Collection,
    *,
    vocabulary_size: int,
    number_threshold: int,
    kinds: Iterable[str] = (),
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Census:
    """Count a collection; the graphs of some ``kinds`` only (question, answer, topic), where they are given.

    Args:
        vocabulary_size: labels that a vocabulary of the collection would keep.
        number_threshold: numbers seen less often share a label, as in :class:`graphs.graph.vocabulary.Vocabulary`.
        progress: called with the number of graphs counted since the last call.
    """
    total = _Tally()
    batches = batched(collection.graphs(*kinds), _GRAPHS_PER_TASK)
    for part in ordered_map(partial, (_tally_of,), batches, workers=workers):
        total.merge(part)
        if progress is not None:
            progress(part.kinds.total())
    vocabulary = Vocabulary.build(total.counts, size=vocabulary_size, number_threshold=number_threshold)
    facts, meta = vocabulary.statistics, collection.meta
    lost = collection.without_graph()
    records = Counter((failure.stage, failure.kind) for failure in collection.failures())
    return Census(
        source=str(meta.get("source", "")),
        parser=str(meta.get("parser", "")),
        shard=str(meta.get("shard", "1/1")),
        finished=bool(meta.get("finished", False)),
        posts=len(collection) + lost,
        graphs=total.kinds.total(),
        graphs_by_kind=dict(sorted(total.kinds.items())),
        posts_without_graph=lost,
        incomplete=collection.incomplete(),
        undecodable=total.counts.failures,
        failures=tuple(
            FailureCount(stage, kind, number, collection.without_graph(stage, kind))
            for (stage, kind), number in sorted(records.items(), key=lambda item: (-item[1], item[0]))
        ),
        formulas=total.attachments.total(),
        attachments=dict(sorted(total.attachments.items())),
        formulas_without={tree: total.without[tree] for tree in ("opt", "slt", "both")},
        reattached_parts=total.reattached_parts,
        reattached_graphs=total.reattached_graphs,
        nodes=Spread.of(total.nodes),
        edges=Spread.of(total.edges),
        node_kinds={kind.name.lower(): total.node_kinds[kind] for kind in NodeKind},
        labels_raw=int(facts["raw_labels"]),
        labels_normalized=int(facts["normalized_labels"]),
        labels_kept=vocabulary.num_labels,
        coverage=facts["coverage"],
        relations=int(facts["raw_relations"]),
    )


@dataclass(slots=True)
class _Tally:
    """Counts of some graphs, which add up."""

    kinds: Counter[str] = field(default_factory=Counter)
    attachments: Counter[str] = field(default_factory=Counter)
    nodes: Counter[int] = field(default_factory=Counter)  # number of graphs by number of nodes
    edges: Counter[int] = field(default_factory=Counter)
    node_kinds: Counter[NodeKind] = field(default_factory=Counter)
    without: Counter[str] = field(default_factory=Counter)  # formulas without their tree opt, slt, or both
    reattached_parts: int = 0
    reattached_graphs: int = 0
    counts: Counts = field(default_factory=Counts)

    def add(self, stored: StoredGraph) -> None:
        self.kinds[stored.kind] += 1
        self.attachments.update(stored.attachments.values())
        self.reattached_parts += stored.reattached
        self.reattached_graphs += stored.reattached > 0
        try:
            graph = stored.decode()
        except MathAMRError:
            self.counts.failures += 1
            return
        self.nodes[len(graph.labels)] += 1
        self.edges[len(graph.edges)] += 1
        self.node_kinds.update(graph.kinds)
        self.without.update(_without_trees(graph))
        self.counts.add(graph)

    def merge(self, other: _Tally) -> None:
        for name in ("kinds", "attachments", "nodes", "edges", "node_kinds", "without"):
            getattr(self, name).update(getattr(other, name))
        self.reattached_parts += other.reattached_parts
        self.reattached_graphs += other.reattached_graphs
        self.counts.merge(other.counts)


def _without_trees(graph: DocumentGraph) -> Counter[str]:
    """Count a graph's formulas without operator tree, without layout tree, and without both."""
    opt, slt = (
        set(range(len(graph.formula_ids))) - {graph.formula[i] for i, kind in enumerate(graph.kinds) if kind is of}
        for of in (NodeKind.OPT, NodeKind.SLT)
    )
    return Counter({"opt": len(opt), "slt": len(slt), "both": len(opt & slt)})


def _tally_of(graphs: list[StoredGraph]) -> _Tally:
    tally = _Tally()
    for graph in graphs:
        tally.add(graph)
    return tally


def table(census: Census) -> str:
    """Return the census as lines of text, one count a line."""
    rows: list[tuple[str, str]] = [
        ("source", census.source),
        ("parser", census.parser),
        *([("shard", census.shard)] if census.shard != "1/1" else []),
        *([] if census.finished else [("state", "unfinished: not all posts went through yet")]),
        ("posts", f"{census.posts:,}"),
        ("graphs", f"{census.graphs:,}"),
        *((f"  of {kind}s", f"{number:,}") for kind, number in census.graphs_by_kind.items()),
        ("  lacking a part", f"{census.incomplete:,}"),
        *([("  undecodable", f"{census.undecodable:,}")] if census.undecodable else []),
        ("posts without a graph", f"{census.posts_without_graph:,}{_share(census.posts_without_graph, census.posts)}"),
        *(
            (f"  {count.stage}: {count.kind}", f"{count.records:,}, {count.posts_without_graph:,} without a graph")
            for count in census.failures
        ),
        ("formulas", f"{census.formulas:,}"),
        *((f"  by {how}", f"{n:,}{_share(n, census.formulas)}") for how, n in census.attachments.items()),
        *(
            (f"  without {_TREE_NAMES[tree]}", f"{n:,}{_share(n, census.formulas)}")
            for tree, n in census.formulas_without.items()
        ),
        ("parts reattached", f"{census.reattached_parts:,} in {census.reattached_graphs:,} graphs"),
        ("nodes a graph", _spread(census.nodes)),
        *((f"  {kind}", f"{number:,} in all") for kind, number in census.node_kinds.items()),
        ("edges a graph", _spread(census.edges)),
        ("relations", f"{census.relations:,}"),
        ("labels", f"{census.labels_raw:,}"),
        ("  normalised", f"{census.labels_normalized:,}"),
        ("  kept", f"{census.labels_kept:,} with the reserved ones, for {census.coverage:.2%} of the nodes"),
    ]
    width = max(len(name) for name, _ in rows) + 2
    return "\n".join(f"{name:{width}}{text}" for name, text in rows)


_TREE_NAMES = {"opt": "operator tree", "slt": "layout tree", "both": "any tree"}


def _share(number: int, of: int) -> str:
    return f" ({number / of:.2%})" if of else ""


def _spread(spread: Spread) -> str:
    return f"mean {spread.mean:,.1f}, median {spread.median:,.1f}, largest {spread.largest:,}"
