"""Projections keep groups apart, are reproducible, and name what is missing."""

from __future__ import annotations

import numpy as np
import pytest

from graphs.errors import AnalysisError, ConfigError
from mathamr.analysis import projections
from mathamr.analysis.projections import project

GROUP = np.repeat(np.arange(3), 20)
VECTORS = np.random.default_rng(0).normal(size=(3, 12))[GROUP] + 0.1 * np.random.default_rng(1).normal(size=(60, 12))
PACKAGES = {"pca": "numpy", "tsne": "sklearn", "umap": "umap"}


@pytest.mark.filterwarnings("ignore")  # of numba and scikit-learn
@pytest.mark.parametrize("method", projections.METHODS)
def test_neighbours_in_the_plane_are_of_one_group(method: str) -> None:
    pytest.importorskip(PACKAGES[method])
    places = project(VECTORS, method)
    assert places.shape == (60, 2)
    distances = np.linalg.norm(places[:, None] - places[None], axis=2)
    np.fill_diagonal(distances, np.inf)
    assert (GROUP[distances.argmin(axis=1)] == GROUP).all()
    np.testing.assert_array_equal(places, project(VECTORS, method))


def test_lengths_of_vectors_do_not_matter() -> None:
    lengths = np.linspace(1, 5, 60)[:, None]
    np.testing.assert_allclose(project(VECTORS * lengths, "pca"), project(VECTORS, "pca"), atol=1e-9)


def test_too_few_or_equal_vectors_have_no_place() -> None:
    pytest.importorskip("sklearn")
    with pytest.raises(AnalysisError, match="t-SNE places at least 4 vectors, not 3"):
        project(VECTORS[:3], "tsne")
    with pytest.raises(AnalysisError, match="all vectors are equal"):
        project(np.ones((5, 3)), "pca")


def test_a_missing_package_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(projections, "find_spec", lambda name: None)
    projections.check(["pca"])
    with pytest.raises(ConfigError, match=r"umap needs umap-learn: pip install 'mathamr-plus\[projection\]'"):
        projections.check(["pca", "umap"])
