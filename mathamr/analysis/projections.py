"""Projections of vectors to a plane: PCA, t-SNE and UMAP.

>>> corners = np.eye(4)[[0, 0, 1, 1, 2, 3]] + 0.01 * np.arange(24).reshape(6, 4)
>>> project(corners, "pca").shape
(6, 2)
>>> check(["pca", "lda"])
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: Unknown projection 'lda'. Choose from: pca, tsne, umap.

PCA keeps distances between groups as far as a plane can. t-SNE (van der Maaten and Hinton 2008) and UMAP (McInnes et
al. 2018) keep neighbours, and distances between their groups mean nothing. Both need the extra ``projection``.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.util import find_spec

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError, ConfigError
from mathamr.analysis.components import plane
from mathamr.analysis.similarities import Floats, unit_vectors

METHODS = {"pca": "PCA", "tsne": "t-SNE", "umap": "UMAP"}
FEWEST = 4
"""Smallest number of vectors that t-SNE and UMAP place."""
_PACKAGES = {"tsne": ("sklearn", "scikit-learn"), "umap": ("umap", "umap-learn")}
_PERPLEXITY = 30  # scikit-learn's default
_NEIGHBOURS = 15  # umap-learn's default


def check(methods: Iterable[str]) -> None:
    """Raise ConfigError for an unknown method of projection, or one whose package is not installed."""
    for method in methods:
        if method not in METHODS:
            raise ConfigError(f"Unknown projection {method!r}. Choose from: {', '.join(METHODS)}.")
        module, package = _PACKAGES.get(method, (None, ""))
        if module is not None and find_spec(module) is None:
            raise ConfigError(f"The projection {method} needs {package}: pip install 'mathamr-plus[projection]'")


def project(vectors: ArrayLike, method: str) -> Floats:
    """Return places (n, 2) of vectors (n, d), d >= 2, compared by their directions.

    Args:
        method: key of :data:`METHODS`; t-SNE and UMAP start from the same random numbers at each call.

    Raises:
        AnalysisError: fewer than two vectors (t-SNE and UMAP: four), equal vectors, a vector of zeros.
        ConfigError: the errors of :func:`check`.
    """
    check([method])
    array = unit_vectors(vectors)
    first = plane(array)
    if method == "pca":
        return first
    if len(array) < FEWEST:
        raise AnalysisError(f"{METHODS[method]} places at least {FEWEST} vectors, not {len(array)}")
    return _tsne(array) if method == "tsne" else _umap(array)


def _tsne(array: Floats) -> Floats:
    from sklearn.manifold import TSNE

    perplexity = min(_PERPLEXITY, (len(array) - 1) / 3)
    places = TSNE(init="pca", perplexity=perplexity, random_state=0).fit_transform(array.astype(np.float32))
    return np.asarray(places, dtype=np.float64)


def _umap(array: Floats) -> Floats:
    import umap

    neighbours = min(_NEIGHBOURS, len(array) - 1)
    start = plane(array)
    start *= 10 / np.abs(start).max()  # the range that umap-learn starts from
    reducer = umap.UMAP(n_neighbors=neighbours, metric="cosine", init=start, random_state=0, n_jobs=1)
    return np.asarray(reducer.fit_transform(array.astype(np.float32)), dtype=np.float64)
