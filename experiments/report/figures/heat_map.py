"""Heat maps as in Figure 4.1 of the thesis: similarities of the virtual nodes of a topic and a document, by condition.

A job writes ``heat_map.json``:

    {"topic": "A.301", "post": "591846", "grade": 3, "score": 0.81,
     "queries": [{"kind": "formula", "text": "\\\\|A\\\\|_2"}, {"kind": "sentence", "text": "Suppose ..."}, ...],
     "documents": [...], "scores": [[0.91, 0.12, ...], ...]}                 # a row for each query node

Rows are the topic's nodes, columns the document's: formulas F1, F2 ..., sentences S1 ..., the document D. A circle
marks the best column of each row, which MaxSim selects.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from experiments.report.blocks import Block, Figure, Legend, Text
from experiments.report.figures.charts import grouped, panels, shortened, svg
from experiments.report.results import Experiment, content_of
from graphs.errors import StoreError

_LETTERS = {"formula": "F", "sentence": "S", "document": "D"}
Node = tuple[str, str, int]  # kind, text, and number among nodes of equal text


@dataclass(frozen=True)
class HeatMap:
    """Similarities of one condition, ``scores`` of shape ``(queries, documents)``."""

    topic: str
    post: str
    grade: int | None
    score: float
    queries: tuple[Node, ...]
    documents: tuple[Node, ...]
    scores: np.ndarray

    @property
    def spread(self) -> float:
        """Standard deviation of all similarities: small if nodes have become equal."""
        return float(self.scores.std())


def read(path: Path) -> HeatMap | None:
    """Read the file of a job; None if it has none.

    Raises:
        StoreError: a file that does not have the form above.
    """
    record = content_of(path)
    if record is None:
        return None
    try:
        scores = np.array(record["scores"], dtype=float)
        grade = None if record.get("grade") is None else int(record["grade"])
        queries, documents = _nodes(record["queries"]), _nodes(record["documents"])
        topic, post, score = str(record["topic"]), str(record["post"]), float(record["score"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise StoreError(f"no heat map ({error!r}); remove result.json and run again", path=path) from error
    if scores.shape != (len(queries), len(documents)) or not scores.size or not np.isfinite(scores).all():
        form = f"{len(queries)} x {len(documents)}"
        raise StoreError(f"{form} nodes, and not as many finite scores; remove result.json and run again", path=path)
    return HeatMap(topic, post, grade, score, queries, documents, scores)


def _nodes(records: Sequence[Mapping[str, Any]]) -> tuple[Node, ...]:
    seen: Counter[tuple[str, str]] = Counter()
    nodes = []
    for record in records:
        kind, text = str(record["kind"]), str(record["text"])
        seen[kind, text] += 1
        nodes.append((kind, text, seen[kind, text]))
    return tuple(nodes)


def blocks(experiment: Experiment) -> list[Block]:
    """Return one figure for each topic and document with the heat maps of all conditions, and a legend of the nodes.

    The first seed with a map is shown: the best seed would be a choice. Conditions that share their model have the same
    map, shown once.
    """
    by_pair: dict[tuple[str, str], dict[str, tuple[int, HeatMap]]] = {}
    for condition, rows in experiment.done().items():
        for row in rows:
            found = read(experiment.place(row) / "heat_map.json")
            if found is not None:
                maps = by_pair.setdefault((found.topic, found.post), {})
                maps.setdefault(condition, (row["seed"], found))
    built: list[Block] = []
    for of_conditions in by_pair.values():
        labelled = {experiment.label(name): one for name, one in of_conditions.items()}
        maps = grouped(labelled, lambda one, other: np.array_equal(one[1].scores, other[1].scores))
        one = next(iter(maps.values()))[1]
        grade = "without a judgment" if one.grade is None else f"of grade {one.grade}"
        built.append(Text(f"Topic {one.topic} and document {one.post}, {grade}."))
        query_names = names([found.queries for _, found in maps.values()])
        document_names = names([found.documents for _, found in maps.values()])
        built.append(figure(maps, query_names, document_names))
        built.append(Legend("The topic's nodes (rows)", _entries(query_names)))
        built.append(Legend("The document's nodes (columns)", _entries(document_names)))
    return built


def _entries(names: Mapping[Node, str]) -> list[tuple[str, str, str]]:
    """Return the text of each name; sentences that a parser split otherwise are not named."""
    unnamed = {"document": "the whole post"}
    return [
        (name, kind if text else "", text or unnamed.get(kind, f"a {kind}")) for (kind, text, _), name in names.items()
    ]


def names(lists: Sequence[Sequence[Node]]) -> dict[Node, str]:
    """Return a short name for each node of any condition: some conditions have nodes that others lack.

    >>> names([[("formula", "x", 1), ("formula", "x", 2), ("document", "", 1)], [("sentence", "Let", 1)]])
    {('formula', 'x', 1): 'F1', ('formula', 'x', 2): 'F2', ('document', '', 1): 'D', ('sentence', 'Let', 1): 'S1'}
    """
    found: dict[Node, str] = {}
    counts: Counter[str] = Counter()
    for nodes in lists:
        for node in nodes:
            if node not in found:
                counts[node[0]] += 1
                letter = _LETTERS.get(node[0], node[0][:1].upper())
                found[node] = letter if node[0] == "document" and counts[node[0]] == 1 else f"{letter}{counts[node[0]]}"
    return found


def figure(
    maps: Mapping[str, tuple[int, HeatMap]], queries: Mapping[Node, str], documents: Mapping[Node, str]
) -> Figure:
    """Draw a panel for each label, all on one scale, with the seed of each map."""
    summaries = [
        f"{label} (seed {seed}): MaxSim {found.score:.3f}, spread {found.spread:.3f}"
        for label, (seed, found) in maps.items()
    ]
    alt = f"Similarities of virtual nodes of a topic and a document. {'; '.join(summaries)}."
    seeds = {seed for seed, _ in maps.values()}
    shown = (
        f"Seed {seeds.pop()}" if len(seeds) == 1 else f"Seeds: {'; '.join(f'{m}, {s}' for m, (s, _) in maps.items())}"
    )
    caption = (
        "Similarities of the topic's virtual nodes (rows) and the document's (columns), all panels on one scale: F "
        "formulas, S sentences, D the document. Circles: the best column of each row, which MaxSim takes. Spread: "
        f"standard deviation of all similarities; a small one means nodes that are nearly equal. {shown}. In the "
        "form of Figure 4.1 of the thesis."
    )

    def draw(name: str) -> str:
        titles = shortened(maps)
        columns = min(2, len(maps))
        tallest = max(len(found.queries) for _, found in maps.values())
        low = min(found.scores.min() for _, found in maps.values())
        high = max(found.scores.max() for _, found in maps.values())
        with panels(len(maps), columns, min(6.0, max(1.9, 1.0 + 0.15 * tallest)), 0.7) as (drawing, axes):
            for ax, (label, (_, found)) in zip(axes, maps.items(), strict=True):
                image = ax.pcolormesh(
                    found.scores, cmap="cividis", vmin=low, vmax=high, edgecolors="face", linewidth=0.2
                )
                best = found.scores.argmax(axis=1)
                places = best + 0.5, np.arange(len(best)) + 0.5
                ax.plot(*places, "o", markersize=3.5, color="white", markeredgecolor="black", markeredgewidth=0.7)
                for at in _borders(found.queries):
                    ax.axhline(at, color="white", linewidth=1.2)
                for at in _borders(found.documents):
                    ax.axvline(at, color="white", linewidth=1.2)
                _ticks(ax.yaxis, [queries[node] for node in found.queries], 30)
                _ticks(ax.xaxis, [documents[node] for node in found.documents], 40 // columns)
                ax.invert_yaxis()
                ax.set_title(f"{titles[label]}\nMaxSim {found.score:.3f}, spread {found.spread:.3f}", loc="left")
            bar = drawing.colorbar(
                image,
                ax=drawing.axes,
                location="top",
                shrink=0.4,
                aspect=40,
                pad=0.1 / drawing.get_figheight(),
                label="Similarity",
            )
            if bar.solids is not None:
                bar.solids.set_rasterized(False)  # a self-contained page loads no images
            return svg(drawing, name, alt)

    return Figure(draw, alt, caption)


def _borders(nodes: Sequence[Node]) -> list[int]:
    """Return the places between kinds of nodes."""
    return [place for place, (one, other) in enumerate(pairwise(nodes), 1) if one[0] != other[0]]


def _ticks(axis: Any, labels: Sequence[str], room: int) -> None:
    """Return names of the nodes, every n-th if there is no room for all."""
    step = -(-len(labels) // room)
    shown = range(0, len(labels), step)
    axis.set_ticks([place + 0.5 for place in shown], [labels[place] for place in shown], fontsize=7)
    axis.set_tick_params(length=0)
