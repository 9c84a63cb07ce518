"""Task 2: search for formulas similar to a formula of a question. Each formula of each post is a separate point.

One post of two formulas; the query is the second formula of a topic:

>>> import torch
>>> post = torch.tensor([[1.0, 0.0], [0.6, 0.8], [0.0, 1.0]])  # two formulas, and the document
>>> points = formula_points(["255"], VectorSets.of([post]), [["2618", "2619"]], {"2618": "v7", "2619": "v9"})
>>> index = FormulaIndex.build(points)
>>> topic = torch.tensor([[0.8, 0.6], [0.0, 1.0], [0.6, 0.8]])
>>> queries = query_vectors(VectorSets.of([topic]), [["2020:q_1", "2020:q_2"]], ["2020:q_2"])
>>> index.search(queries, k=10)
[[Hit(doc_id='2619', score=0.800000011920929, post_id='255'), Hit(doc_id='2618', score=0.0, post_id='255')]]

Formulas come first in a post's set of vectors, in the order of its formula map (FORMULA_0, FORMULA_1 ...); so the i-th
formula of the map has the i-th vector. Formulas with the same appearance share a visual id and are judged once. Only
the best of them is returned, because the evaluation would drop the others.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from graphs.errors import RetrievalError, StoreError
from graphs.whole_file import write_whole
from mathamr import maxsim
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit
from mathamr.maxsim import VectorSets
from mathamr.retrieval.backends import build, open_index
from mathamr.retrieval.folder import FORMULA_TABLE
from mathamr.retrieval.index import Index, Strategy

INDEX = "vectors"


@dataclass(frozen=True, slots=True)
class FormulaPoints:
    """F formulas: their ids, the post and visual id of each ("" if unknown), and vectors (F, p)."""

    formula_ids: list[str]
    post_ids: list[str]
    visual_ids: list[str]
    vectors: Tensor

    def __len__(self) -> int:
        return len(self.formula_ids)


def formula_points(
    post_ids: Sequence[str], documents: VectorSets, formula_ids: Sequence[Sequence[str]], visual_ids: Mapping[str, str]
) -> FormulaPoints:
    """Collect the formulas of posts. ``formula_ids[d]`` are the formula map's values of post ``d``, by FORMULA_i.

    A formula id that occurs again is left out: an id names one occurrence of a formula in a collection. Raises
    :class:`RetrievalError` for a post with more formulas than vectors, as from graphs without formulas.
    """
    points: dict[str, tuple[str, int]] = {}
    bounds = pairwise(documents.ptr.tolist())
    for post_id, (start, end), formulas in zip(post_ids, bounds, formula_ids, strict=True):
        _check_formulas(f"post {post_id}", end - start, formulas)
        for i, formula_id in enumerate(formulas):
            points.setdefault(formula_id, (post_id, start + i))
    rows = torch.tensor([row for _, row in points.values()], dtype=torch.int64, device=documents.vectors.device)
    return FormulaPoints(
        formula_ids=list(points),
        post_ids=[post_id for post_id, _ in points.values()],
        visual_ids=[visual_ids.get(formula_id, "") for formula_id in points],
        vectors=documents.vectors.detach()[rows],
    )


def query_vectors(topics: VectorSets, formula_ids: Sequence[Sequence[str]], query_formulas: Sequence[str]) -> Tensor:
    """Return the query formula's vector for each topic, by the topic's formula map -> (num_topics, p).

    Raises :class:`RetrievalError` for a topic whose formula map lacks the query formula.
    """
    rows = []
    bounds = pairwise(topics.ptr.tolist())
    for (start, end), formulas, wanted in zip(bounds, formula_ids, query_formulas, strict=True):
        _check_formulas(f"the topic of formula {wanted}", end - start, formulas)
        if wanted not in formulas:
            raise RetrievalError(f"the topic of formula {wanted} has a graph without it; leave the topic out")
        rows.append(start + list(formulas).index(wanted))
    return topics.vectors.detach()[torch.tensor(rows, dtype=torch.int64, device=topics.vectors.device)]


def rerank_by_context(
    hits: Sequence[Hit], topic: VectorSets, vectors_of: Callable[[Sequence[str]], VectorSets], weight: float
) -> list[Hit]:
    """Return hits by ``(1 - weight) * score + weight * context``, best first; equal ones keep their order.

    ``context`` is MaxSim of the whole topic (a single set) with the whole post of the hit, divided by the number of
    the topic's vectors, so that both parts are cosines. ``vectors_of`` gives the sets of posts by id.
    """
    if not 0 <= weight <= 1:
        raise RetrievalError(f"context={weight}; the weight of the posts is from 0 to 1")
    if not hits:
        return []
    post_ids = list(dict.fromkeys(hit.post_id or "" for hit in hits))
    (scores,) = maxsim.scores(topic, vectors_of(post_ids), normalize=True).tolist()
    context = dict(zip(post_ids, scores, strict=True))
    mixed = [replace(h, score=(1 - weight) * h.score + weight * context[h.post_id or ""]) for h in hits]
    return sorted(mixed, key=lambda hit: -hit.score)


class FormulaIndex:
    """Formulas, one vector each, in an index of any backend."""

    def __init__(self, index: Index, table: dict[str, tuple[str, str]]) -> None:
        self._index = index
        self._table = table  # formula id -> post id, visual id

    @classmethod
    def build(
        cls,
        points: FormulaPoints,
        *,
        backend: str = "exact",
        path: Path | None = None,
        name: str = "mathamr-formulas",
        **options: Any,
    ) -> FormulaIndex:
        """Index ``points`` with :func:`mathamr.retrieval.backends.build`; with ``path``, keep index and table there."""
        sets = VectorSets(points.vectors, torch.arange(len(points) + 1, device=points.vectors.device))
        rows = zip(points.formula_ids, points.post_ids, points.visual_ids, strict=True)
        table = {formula_id: (post_id, visual_id) for formula_id, post_id, visual_id in rows}
        folder = None if path is None else path / INDEX
        fields = {"formula_id": points.formula_ids, "post_id": points.post_ids, "visual_id": points.visual_ids}
        index = build(backend, points.formula_ids, sets, path=folder, name=name, fields=fields, **options)
        if path is not None:
            path.mkdir(parents=True, exist_ok=True)  # where a server keeps the vectors, nothing has made it
            lines = ["formula_id\tpost_id\tvisual_id", *("\t".join((f, p, v)) for f, (p, v) in table.items())]
            write_whole(path / FORMULA_TABLE, "\n".join(lines) + "\n")
        return cls(index, table)

    @classmethod
    def open(
        cls, path: Path, *, backend: str = "exact", name: str = "mathamr-formulas", **options: Any
    ) -> FormulaIndex:
        """Open what :meth:`build` has written to ``path``; ``options`` are further ones of :func:`open_index`."""
        index = open_index(backend, path=path / INDEX, name=name, **options)
        try:
            lines = (path / FORMULA_TABLE).read_text(encoding="utf-8").splitlines()[1:]
            table = {formula_id: (post_id, visual) for formula_id, post_id, visual in (x.split("\t") for x in lines)}
        except (OSError, ValueError) as error:
            index.close()
            raise StoreError(f"cannot be read as the table of formulas: {error}", path=path / FORMULA_TABLE) from error
        size = len(index)
        if len(table) != size:
            index.close()
            raise StoreError(
                f"{len(table)} formulas for {size} vectors; build the index again", path=path / FORMULA_TABLE
            )
        return cls(index, table)

    def __len__(self) -> int:
        return len(self._index)

    def search(self, queries: Tensor, k: int = MAX_PER_TOPIC, *, exact: bool = True) -> list[list[Hit]]:
        """Return at most ``k`` formulas with different visual ids for each query vector (num_queries, p), best first.

        A formula without a visual id counts as different from all others. The search continues beyond ``k`` formulas
        until enough of them differ.
        """
        found: list[list[Hit]] = [[] for _ in range(len(queries))]
        open_queries = list(range(len(queries)))
        depth = 2 * k
        while open_queries:
            rows = torch.tensor(open_queries, device=queries.device)
            sets = VectorSets(queries[rows], torch.arange(len(rows) + 1, device=queries.device))
            rankings = self._index.search(sets, Strategy("single_vector", exact=exact), min(depth, len(self)))
            for number, ranking in zip(open_queries, rankings, strict=True):
                found[number] = self._distinct(ranking, k)
            # What a backend has no more of (an approximate one may stop early) cannot be asked for again.
            complete = depth >= len(self)
            open_queries = [
                number
                for number, ranking in zip(open_queries, rankings, strict=True)
                if not complete and len(found[number]) < k and len(ranking) >= depth
            ]
            depth *= 4
        return found

    def close(self) -> None:
        """Close the index below."""
        self._index.close()

    def _distinct(self, ranking: Sequence[tuple[str, float]], k: int) -> list[Hit]:
        best: dict[str, Hit] = {}
        for formula_id, score in ranking:
            post_id, visual_id = self._table[formula_id]
            best.setdefault(visual_id or f"formula {formula_id}", Hit(formula_id, score, post_id))
        return list(best.values())[:k]


def _check_formulas(place: str, size: int, formulas: Sequence[str]) -> None:
    if len(formulas) > size:
        raise RetrievalError(
            f"{place} has {len(formulas)} formulas but {size} vectors; was it encoded from graphs without formulas "
            "(formulas=none)?"
        )
