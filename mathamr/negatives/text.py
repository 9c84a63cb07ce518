"""Hard negatives of text queries: documents that BM25 or the encoder ranks high and that do not answer the query.

>>> import tempfile
>>> from pathlib import Path
>>> from mathamr.text.pairs import TextPair, write_pairs
>>> texts = [("largest prime", "no largest prime exists", "p1", "NT"), ("ideal", "a prime ideal", "p2", "AC"),
...          ("prime numbers", "prime numbers are numbers", "p3", "NT"), ("a", "another prime", "p3", "NT")]
>>> pairs = write_pairs(Path(tempfile.mkdtemp()) / "pairs.jsonl", (
...     TextPair(query, document, f"q{i}", f"d{i}", group=paper, categories=(category,))
...     for i, (query, document, paper, category) in enumerate(texts)))
>>> found = Shortlist(pairs, np.arange(4), count=10)
>>> [document for document, score in found.ranking("q0")]  # not d1, which is of another category
['d0', 'd3', 'd2']
>>> [document for document, score in found.ranking("q2")]  # nor d3, of the same paper
['d2', 'd0']

A document may be a negative of a query if it shares a category with the query's own document and belongs to another
paper (or thread); rare categories count as one. The encoder ranks the results of BM25 again. Source: ModernBERT thesis,
section 3, "Hard Negative Mining". Documents that score nearly as high as the own document are then dropped, as for
graphs (:func:`mathamr.negatives.mining.mine`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.errors import ConfigError
from graphs.processes import batched
from mathamr.negatives.mining import mine, record_of
from mathamr.retrieval.bm25 import BM25Index, tokens_of_latex
from mathamr.retrieval.index import Ranking
from mathamr.text.config import TextConfig
from mathamr.text.encoder import Side, TextEncoder
from mathamr.text.pairs import PairFile
from mathamr.text.training.batches import Rows

RARE = 0.01  # categories with a smaller share of the documents count as one
_AT_ONCE = 1_000  # texts encoded at once, queries mined at once


class Shortlist:
    """Hard negatives: up to ``count`` documents of ``train`` for each query, by BM25 of words and LaTeX.

    The query's own documents are ranked too, and count.

    Attributes:
        positives: documents of each query, by query id.
        queries: first pair of each query, by query id; ``documents`` the same by document id.
    """

    def __init__(self, pairs: PairFile, train: Rows, *, count: int) -> None:
        self.queries: dict[str, int] = {}
        self.documents: dict[str, int] = {}
        own: dict[str, set[str]] = {}
        own_groups: dict[str, set[int]] = {}
        categories: list[tuple[str, ...]] = []
        for row in train.tolist():
            pair = pairs[row]
            self.queries.setdefault(pair.query_id, row)
            own.setdefault(pair.query_id, set()).add(pair.document_id)
            own_groups.setdefault(pair.query_id, set()).add(int(pairs.groups[row]))
            if pair.document_id not in self.documents:
                self.documents[pair.document_id] = row
                categories.append(pair.categories)
        self.positives = {query: frozenset(documents) for query, documents in own.items()}
        self._ids = list(self.documents)
        self._place = {document: place for place, document in enumerate(self._ids)}
        self._found: dict[str, tuple[npt.NDArray[np.int32], npt.NDArray[np.float32]]] = {}
        has = _categories_of(categories)
        groups = pairs.groups[list(self.documents.values())]
        index = BM25Index.build(self._ids, (tokens_of_latex(pairs[row].document) for row in self.documents.values()))
        for query, row in self.queries.items():
            mine_too = self.places(self.positives[query])
            allowed = has[:, has[mine_too].any(axis=0)].any(axis=1)  # documents that share a category
            allowed &= ~np.isin(groups, list(own_groups[query]))
            allowed[mine_too] = True
            [ranking] = index.search([tokens_of_latex(pairs[row].query)], count, allowed=[allowed])
            found = [self._place[document] for document, _ in ranking]
            self._found[query] = np.array(found, np.int32), np.array([score for _, score in ranking], np.float32)

    def ranking(self, query: str) -> Ranking:
        """Return the BM25 ranking of the query with this id, best first."""
        places, scores = self._found[query]
        return [(self._ids[place], float(score)) for place, score in zip(places, scores, strict=True)]

    def ranking_by(self, query: str, vector: npt.NDArray[np.float32], documents: npt.NDArray[np.float32]) -> Ranking:
        """Rank the same documents and the query's own by cosine, from unit vectors (d,) and (documents, d)."""
        places = np.union1d(self._found[query][0], self.places(self.positives[query]))
        scores = documents[places] @ vector
        return [(self._ids[places[i]], float(scores[i])) for i in np.argsort(-scores, kind="stable")]

    def places(self, documents: Iterable[str]) -> list[int]:
        """Return the places of documents in ``self.documents``."""
        return [self._place[document] for document in sorted(documents)]


class Mining:
    """Hard negatives of pairs ``train``, a :class:`mathamr.text.finetuning.Miner`; BM25 ranks at the first call."""

    def __init__(self, config: TextConfig, pairs: PairFile, train: Rows) -> None:
        self._config, self._pairs, self._train = config, pairs, train
        self._shortlist: Shortlist | None = None

    def __call__(self, encoder: TextEncoder) -> tuple[Rows, dict[str, Any]]:
        """Return the pairs whose documents are negatives of each pair, and the record of what was kept.

        Shapes:
            int64 (n, negative_pool), -1 after the last.

        Raises:
            ConfigError: no negatives left.
        """
        config, pairs = self._config, self._pairs
        if self._shortlist is None:
            self._shortlist = Shortlist(pairs, self._train, count=config.negative_candidates)
        found = self._shortlist
        mined = mine(
            self._rankings(found, encoder),
            found.positives,
            available=found.documents,
            keep=config.negative_pool,
            closest=config.negative_closest,
        )
        if not mined.by_question:
            fates = ", ".join(f"{count:,} {fate}" for fate, count in mined.counts.items()) or "nothing was ranked"
            raise ConfigError(
                f"text.negative_source={config.negative_source} leaves no hard negatives for {len(found.queries):,} "
                f"queries ({fates}); rank more with text.negative_candidates, or set text.negative_closest=null"
            )
        pool = np.full((len(pairs), config.negative_pool), -1, np.int64)
        for row in self._train.tolist():
            rows = [found.documents[document] for document in mined.by_question.get(pairs[row].query_id, ())]
            pool[row, : len(rows)] = rows
        return pool, record_of(config.negative_source, mined)

    def _rankings(self, found: Shortlist, encoder: TextEncoder) -> Iterator[tuple[str, Ranking]]:
        """Yield the queries with the ranking of BM25, or of the encoder, if it ranks again."""
        if self._config.negative_source != "model":
            yield from ((query, found.ranking(query)) for query in found.queries)
            return
        documents = _encoded(encoder, self._pairs, list(found.documents.values()), "document")
        for queries in batched(found.queries, _AT_ONCE):
            vectors = _encoded(encoder, self._pairs, [found.queries[query] for query in queries], "query")
            for query, vector in zip(queries, vectors, strict=True):
                yield query, found.ranking_by(query, vector, documents)


def _categories_of(categories: Sequence[Sequence[str]]) -> npt.NDArray[np.bool_]:
    """Mark the common categories of n documents, bool (n, categories + 1); the last column: a rare one, or none."""
    counts = Counter(name for own in categories for name in set(own))
    common = [name for name, count in sorted(counts.items()) if count >= RARE * len(categories)]
    column = {name: i for i, name in enumerate(common)}
    has = np.zeros((len(categories), len(common) + 1), np.bool_)
    for row, own in enumerate(categories):
        has[row, [column.get(name, len(common)) for name in own] or [len(common)]] = True
    return has


def _encoded(encoder: TextEncoder, pairs: PairFile, rows: Sequence[int], side: Side) -> npt.NDArray[np.float32]:
    """Encode one side of pairs into unit vectors (n, d); the texts are never in memory all at once."""
    parts = batched(rows, _AT_ONCE)
    return np.concatenate([encoder.encode([getattr(pairs[row], side) for row in some], side) for some in parts])
