"""Bootstrap of a mean over queries: the same mean over many samples of the queries, drawn with replacement.

>>> hits = np.array([1.0, 0.0, 1.0, 1.0])  # one value a query: is a right document among its first k?
>>> result = bootstrap(hits, samples=10_000)
>>> result.point, round(result.mean, 2), result.interval()
(0.75, 0.75, (0.25, 1.0))

The interval is the percentile interval (Efron and Tibshirani 1993, chapter 13): at 95 % it lies between the 2.5th and
the 97.5th percentile of the samples' means. A sample is drawn as counts of its queries, a block of samples at a time,
and one matrix product gives all means. Ten thousand samples of five thousand queries take seconds and a few megabytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike, NDArray

from graphs.errors import AnalysisError

BLOCK = 4_000_000  # counts held at once: 32 MB


@dataclass(frozen=True)
class Bootstrapped:
    """Mean over queries: ``point`` over all of them, and ``means`` (m,) over each sample."""

    point: float
    means: NDArray[np.floating]

    @property
    def mean(self) -> float:
        """Mean over the samples."""
        return float(self.means.mean())

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Return the middle ``level`` of the samples' means."""
        low, high = np.quantile(self.means, [(1 - level) / 2, (1 + level) / 2])
        return float(low), float(high)


def bootstrap(values: ArrayLike, *, samples: int = 1000, size: int | None = None, seed: int = 0) -> Bootstrapped:
    """Bootstrap the mean of one value for each query.

    Args:
        values: value of each query (Q,); with one query all samples are equal and the interval has no width.
        samples: m, number of samples.
        size: queries in a sample; default: all queries.
        seed: random seed; equal seeds draw equal samples, so two systems with the same queries use the same samples.

    Raises:
        AnalysisError: no values, or a value that is not a number.
    """
    array = np.asarray(values, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all():
        raise AnalysisError(f"the bootstrap needs one finite value for each query, shape (Q,), not {array.shape}")
    counts = sample_counts(len(array), samples=samples, size=size, seed=seed)
    return Bootstrapped(float(array.mean()), np.concatenate([block @ array / block[0].sum() for block in counts]))


def sample_counts(
    queries: int, *, samples: int, size: int | None = None, seed: int = 0
) -> Iterator[NDArray[np.float64]]:
    """Yield how often each query is in each sample, in blocks (samples of the block, Q); each row adds up to ``size``.

    Raises:
        AnalysisError: fewer than one sample, or an empty sample.
    """
    size = queries if size is None else size
    if samples < 1 or size < 1:
        raise AnalysisError(f"{samples} bootstrap samples of {size} queries: both must be at least 1")
    if samples * max(queries, size) <= BLOCK:
        return iter((_block(queries, samples, size, seed),))
    return _counts(queries, samples, size, seed)


@lru_cache(maxsize=1)  # all comparisons of a table resample the same topics
def _block(queries: int, samples: int, size: int, seed: int) -> NDArray[np.float64]:
    (counts,) = _counts(queries, samples, size, seed)
    counts.flags.writeable = False
    return counts


def _counts(queries: int, samples: int, size: int, seed: int) -> Iterator[NDArray[np.float64]]:
    generator = np.random.default_rng(seed)
    step = max(1, BLOCK // max(queries, size))
    for start in range(0, samples, step):
        rows = min(step, samples - start)
        drawn = generator.integers(queries, size=(rows, size)) + queries * np.arange(rows)[:, None]
        yield np.bincount(drawn.ravel(), minlength=rows * queries).reshape(rows, queries).astype(np.float64)
