"""What the plots draw, by their artists: everything that is distinguished differs in more than colour."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from mathamr.analysis import plots
from mathamr.analysis.similarities import cosine, survey
from mathamr.analysis.thresholds import highest_harmless, threshold_curve


def places(line: Line2D) -> np.ndarray:
    return np.asarray(line.get_xydata())


@pytest.fixture
def ax() -> Axes:
    return Figure().subplots()


def test_densities_differ_in_their_dashes(ax: Axes) -> None:
    at = np.linspace(0, 1, 5)
    plots.densities(ax, at, {"random": at, "correct": at * 2, "top-k": at * 3, "another": at})
    assert [line.get_label() for line in ax.lines] == ["random", "correct", "top-k", "another"]
    assert [line.get_linestyle() for line in ax.lines[:3]] == [":", "-", "--"]
    assert (ax.get_ylim()[0], ax.get_ylabel()) == (0, "Density")


def test_a_ring_stands_at_the_chosen_threshold(ax: Axes) -> None:
    generator = np.random.default_rng(0)
    found = survey(cosine(generator.normal(size=(30, 4)), generator.normal(size=(50, 4))), [[i] for i in range(30)], 5)
    curve = threshold_curve(found, 5, samples=50)
    plots.threshold_lines(ax, {"one": curve, "other": curve})
    best = highest_harmless(curve)
    rings = [line for line in ax.lines if line.get_marker() == "o" and line.get_markersize() == 10]
    assert [places(ring).tolist() for ring in rings] == [[[best.tau, best.metric.mean]]] * 2
    lines = [line for line in ax.lines if line not in rings]
    assert len({line.get_linestyle() for line in lines}) == 2
    assert places(lines[0])[:, 0].tolist() == sorted(one.tau for one in curve)
    plots.line_with_interval(ax, 0, "turned", [2.0, 1.0], [[0.2, 0, 1], [0.1, 0, 1]])
    assert places(ax.lines[-1]).tolist() == [[1.0, 0.1], [2.0, 0.2]]


def test_a_matrix_parts_its_groups(ax: Axes) -> None:
    mesh = plots.matrix(ax, np.eye(5), ["a", "a", "b", "b", "c"], low=0.0)
    assert mesh.get_clim() == (0.0, 1.0)
    across = [places(line) for line in ax.lines if len({y for _, y in places(line)}) == 1]
    assert [ends[0, 1] for ends in across] == [2.0, 4.0]
    assert ax.yaxis_inverted()


def test_groups_in_a_plane_differ_in_their_markers(ax: Axes) -> None:
    plots.points(ax, np.arange(12.0).reshape(6, 2), ["b", "a", "b", "c", "a", "b"])
    assert [(line.get_label(), len(places(line))) for line in ax.lines] == [("b", 3), ("a", 2), ("c", 1)]
    assert len({line.get_marker() for line in ax.lines}) == 3


def test_norms_bear_vectors_that_are_all_of_one_length(ax: Axes) -> None:
    plots.norms(ax, [1.0, 1.0], [1.0])
    assert len(ax.patches) == 80  # 40 bars of tokens, 40 of pooled
    assert ax.patches[0].get_hatch() != ax.patches[-1].get_hatch()
