r"""Dense vectors of formulas: symbols and pairs of symbols, made few dimensions by a singular value decomposition.

>>> from graphs.formulas.latex import parse_latex
>>> formulas = ["x^2+y^2", r"\sqrt{2}", "a^2+b^2", r"\sum_{n=1}^\infty n", r"\sum_{k=1}^\infty k^2", r"\sqrt{3}"]
>>> rules = LatentConfig(dimensions=3, rarity=0.5, spectrum=-0.5, k1=0.5)
>>> index = LatentIndex.build([parse_latex(latex) for latex in formulas], rules)
>>> index.vectors.shape
(6, 3)
>>> sorted(number for number, _ in index.search(parse_latex("p^2+q^2"), k=2))
[0, 2]

Each formula has a row with its symbols, pairs and pairs of classes of both trees, as the inverted index has them
(:mod:`mathamr.structure.postings`). An entry is ``tf (1 + k1) / (tf + k1) * idf ** rarity``; rows have length 1. With
the decomposition ``U S V'`` of all rows, the vector of a row ``x`` is ``x V S ** spectrum``, at length 1. Two formulas
are compared by the cosine. This is latent semantic indexing (Deerwester et al., 1990); class pairs let formulas in
other letters meet. No judgment takes part, and new formulas get vectors as well. The decomposition is that of Halko,
Martinsson and Tropp (SIAM Review 2011), which begins with random numbers, here always the same.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt
from scipy import sparse

from graphs.errors import RetrievalError
from graphs.formulas.tree import ParsedFormula
from mathamr.evaluation.order import best_numbers
from mathamr.structure.forest import Names, forests_of
from mathamr.structure.latent_config import LatentConfig
from mathamr.structure.postings import Keyed, all_keys, rarity

Vectors = npt.NDArray[np.float32]
LEAST_FORMULAS = 2  # that a pair occurs in; rarer ones say nothing about other formulas
_FURTHER, _ROUNDS, _START = 32, 3, 42  # of the decomposition: more dimensions than are kept, rounds, random numbers


class LatentIndex:
    """Formulas as dense vectors. Formulas have numbers, in the order they were indexed in.

    Attributes:
        vectors: vectors of the formulas, each of length 1, or 0 where it shares nothing with another (F, dimensions).
    """

    def __init__(self, names: Names, keys: Keyed, weights: Vectors, projection: Vectors, config: LatentConfig) -> None:
        self._names, self._keys, self._weights = names, keys, weights
        self._projection, self._config = projection, config
        self.vectors: Vectors = np.zeros((0, config.dimensions), dtype=np.float32)

    @classmethod
    def build(cls, formulas: Iterable[ParsedFormula], config: LatentConfig) -> LatentIndex:
        """Index formulas; there are at most as many dimensions as formulas.

        Raises:
            RetrievalError: no formulas, or none that shares a symbol with another.
        """
        names = Names()
        forests = forests_of(formulas, names)
        size = len(forests[0])
        keys, owners = all_keys(forests)
        known, places = np.unique(keys, return_inverse=True)
        counts = sparse.csr_array((np.ones(len(keys), dtype=np.float32), (owners, places)), shape=(size, len(known)))
        counts.sum_duplicates()
        frequencies = np.bincount(counts.indices, minlength=len(known))
        shared = frequencies >= LEAST_FORMULAS
        if not shared.any():
            raise RetrievalError(f"{size:,} formulas to index, and no symbol that two of them have")
        weights = (rarity(frequencies, size) ** config.rarity).astype(np.float32)[shared]
        index = cls(names, known[shared], weights, np.zeros((0, 0), dtype=np.float32), config)
        rows = index._weighted(counts[:, shared])
        index._projection = _projection(rows, config)
        index.vectors = _unit(rows @ index._projection)
        return index

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays in memory, without the dictionary of symbols."""
        return self.vectors.nbytes + self._projection.nbytes + self._keys.nbytes + self._weights.nbytes

    def vectors_of(self, formulas: Iterable[ParsedFormula]) -> Vectors:
        """Return the vectors of any formulas (formulas, dimensions)."""
        return _unit(self._weighted_rows(formulas) @ self._projection)

    def search(
        self, formula: ParsedFormula, k: int = 1000, *, names: npt.NDArray[np.str_] | None = None
    ) -> list[tuple[int, float]]:
        """Return the numbers and cosines of the best ``k`` formulas, as :meth:`StructureIndex.search` does."""
        if k < 1:
            raise RetrievalError(f"k={k}; at least 1 result must be asked for")
        scores = self.vectors @ self.vectors_of([formula])[0]
        able = np.flatnonzero(scores >= np.partition(scores, -k)[-k]) if k < len(scores) else np.arange(len(scores))
        return best_numbers(able, scores[able], k, names)

    def _weighted_rows(self, formulas: Iterable[ParsedFormula]) -> sparse.csr_array:
        """Return the rows of any formulas; keys that are not known are left out."""
        forests = forests_of(formulas, Names(self._names))
        keys, owners = all_keys(forests)
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        found = self._keys[places] == keys
        entries = np.ones(int(found.sum()), dtype=np.float32), (owners[found], places[found])
        counts = sparse.csr_array(entries, shape=(len(forests[0]), len(self._keys)))
        counts.sum_duplicates()
        return self._weighted(counts)

    def _weighted(self, counts: sparse.csr_array) -> sparse.csr_array:
        """Return the rows of counts (formulas, keys) as weights, each row of length 1."""
        rows = counts.copy()
        rows.data = rows.data * (1 + self._config.k1) / (rows.data + self._config.k1) * self._weights[rows.indices]
        lengths = np.sqrt(np.asarray(rows.multiply(rows).sum(axis=1)).ravel())
        rows.data = rows.data / np.repeat(np.maximum(lengths, 1e-9), np.diff(rows.indptr)).astype(np.float32)
        return rows


def _projection(rows: sparse.csr_array, config: LatentConfig) -> Vectors:
    """Return ``V S ** spectrum`` of rows (formulas, keys) as (keys, dimensions)."""
    size = min(config.dimensions + _FURTHER, *rows.shape)
    start = np.random.default_rng(_START).standard_normal((rows.shape[1], size), dtype=np.float32)
    basis = np.linalg.qr(rows @ start)[0]
    for _ in range(_ROUNDS):
        basis = np.linalg.qr(rows @ np.linalg.qr(rows.T @ basis)[0])[0]
    _, values, right = np.linalg.svd((rows.T @ basis).T, full_matrices=False)
    kept = min(config.dimensions, int((values > 1e-4 * values[0]).sum()))
    projection = np.zeros((rows.shape[1], config.dimensions), dtype=np.float32)
    projection[:, :kept] = right[:kept].T * values[:kept] ** config.spectrum
    return projection


def _unit(vectors: npt.NDArray[np.floating]) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    found: Vectors = (vectors / np.maximum(lengths, 1e-9)).astype(np.float32)
    return found
