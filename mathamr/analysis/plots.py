"""Plots of a space, on given axes: densities, thresholds, norms, cosine matrices, vectors in a plane.

>>> from matplotlib.figure import Figure
>>> axes = Figure().subplots(1, 2)
>>> points = np.linspace(-1, 1, 5)
>>> densities(axes[0], points, {"random": [0, 1, 2, 1, 0], "correct": [0, 0, 1, 2, 1], "top-k": [0, 0, 0, 1, 3]})
>>> matrix(axes[1], [[1.0, 0.2], [0.2, 1.0]]).get_clim()
(-1.0, 1.0)

Each function draws on matplotlib axes of any style. Conditions differ in dash, hatch or marker and in colour.
The same values give the same plot.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from mathamr.analysis.plot_styles import COLOURS, MARKERS, plot_style
from mathamr.analysis.thresholds import Threshold, highest_harmless

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.collections import QuadMesh

_DENSITIES = {"random": (COLOURS[5], ":"), "correct": (COLOURS[3], "-"), "top-k": (COLOURS[4], "--")}
"""Colours of the curves: red, green and blue, as in Figure 2 of the paper."""


def densities(ax: Axes, points: ArrayLike, curves: Mapping[str, ArrayLike]) -> None:
    """Draw distributions of similarities to ``random``, ``correct`` and ``top-k`` documents (the paper's Figure 2).

    Each has a density (m,) at the similarities ``points`` (m,); other names get other styles.
    """
    at = np.asarray(points)
    for number, (name, curve) in enumerate(curves.items()):
        style = plot_style(number)
        colour, dash = _DENSITIES.get(name, (style.colour, style.dash))
        ax.plot(at, np.asarray(curve), color=colour, linestyle=dash, linewidth=1.6, label=name)
        ax.fill_between(at, np.asarray(curve), color=colour, alpha=0.12, linewidth=0)
    ax.set_ylim(bottom=0)
    ax.set_xlabel("Similarity")
    ax.set_ylabel("Density")


def threshold_lines(ax: Axes, curves: Mapping[str, Sequence[Threshold]]) -> None:
    """Draw the metric of each model over the threshold with its 95 % interval, and a ring at the chosen one (II-B)."""
    for number, (name, curve) in enumerate(curves.items()):
        line_with_interval(
            ax, number, name, [one.tau for one in curve], [(one.metric.mean, *one.metric.interval()) for one in curve]
        )
        best = highest_harmless(curve)
        ring(ax, number, best.tau, best.metric.mean)
    ax.set_xlabel("Threshold τ")


def line_with_interval(ax: Axes, number: int, name: str, at: Sequence[float], values: ArrayLike) -> None:
    """Draw a line in the style of this ``number``, and a band around it.

    ``at`` are positions (m,) in any order; ``values`` (m, 3) have the value, lower and upper end of its interval.
    """
    style = plot_style(number)
    order = np.argsort(np.asarray(at), kind="stable")
    x, (middle, low, high) = np.asarray(at)[order], np.asarray(values, dtype=float)[order].T
    ax.fill_between(x, low, high, color=style.colour, alpha=0.12, linewidth=0)
    ax.plot(x, middle, color=style.colour, linestyle=style.dash, marker=style.marker, markersize=3, label=name)


def ring(ax: Axes, number: int, x: float, y: float) -> None:
    """Draw a ring around a point of the line of this ``number``."""
    ax.plot(x, y, "o", markersize=10, markerfacecolor="none", color=plot_style(number).colour)


def norms(ax: Axes, tokens: ArrayLike, pooled: ArrayLike) -> None:
    """Draw densities of the lengths of token vectors (T,), as bars, and of the pooled vectors of texts (S,).

    ModernBERT thesis, Figures 4 and 7.
    """
    values = {"tokens": np.asarray(tokens, dtype=float), "pooled": np.asarray(pooled, dtype=float)}
    low, high = (bound(one for array in values.values() for one in array) for bound in (min, max))
    edges = np.linspace(low, high if high > low else low + 1, 41).tolist()
    for name, colour, hatch in (("tokens", COLOURS[2], ""), ("pooled", COLOURS[5], "////")):
        face = colour if name == "tokens" else "none"
        ax.hist(
            values[name], edges, density=True, facecolor=face, edgecolor=colour, hatch=hatch, linewidth=0.6, label=name
        )
    ax.set_xlabel("Vector length")
    ax.set_ylabel("Density")


def matrix(ax: Axes, cosines: ArrayLike, groups: Sequence[str] = (), low: float = -1.0) -> QuadMesh:
    """Draw cosines (n, n) of statements (ModernBERT thesis, Figure 8), dark where they are low; return the image.

    Args:
        groups: group of each statement, in order; lines separate the groups.
        low: cosine of the darkest colour; give all panels of a figure the same value.
    """
    array = np.asarray(cosines)
    mesh = ax.pcolormesh(array, cmap="cividis", vmin=low, vmax=1, edgecolors="face", linewidth=0.2)
    for at in (place for place, (one, other) in enumerate(pairwise(groups), 1) if one != other):
        ax.axhline(at, color="white", linewidth=1.0)
        ax.axvline(at, color="white", linewidth=1.0)
    ax.invert_yaxis()
    ax.set_aspect("equal")
    ax.set_xticks([])
    ax.set_yticks([])
    return mesh


def points(ax: Axes, coordinates: ArrayLike, groups: Sequence[str]) -> None:
    """Draw statements at ``coordinates`` (n, 2), with a colour and a marker for each group.

    ModernBERT thesis, Figure 13, with the places of :func:`mathamr.analysis.components.plane`.
    """
    array = np.asarray(coordinates)
    for number, group in enumerate(dict.fromkeys(groups)):
        mine = array[[one == group for one in groups]]
        ax.plot(
            mine[:, 0],
            mine[:, 1],
            linestyle="none",
            marker=MARKERS[number % len(MARKERS)],
            color=COLOURS[(number + 1) % len(COLOURS)],
            markeredgecolor="black",
            markeredgewidth=0.4,
            markersize=5,
            label=group,
        )
    ax.set_xticks([])
    ax.set_yticks([])


def reliability(ax: Axes, curves: Mapping[str, Sequence[Sequence[float]]]) -> None:
    """Draw the share of successes over the confidence, with a marker as large as its bin, beside the diagonal.

    The bins of a curve have confidence, share of successes and number of questions.
    """
    ax.plot([0, 1], [0, 1], color="0.6", linewidth=0.8, linestyle=":")
    for number, (name, bins) in enumerate(curves.items()):
        style = plot_style(number)
        confidences, shares, counts = np.array(bins, dtype=float).reshape(-1, 3).T
        ax.plot(confidences, shares, color=style.colour, linestyle=style.dash, linewidth=1.0, label=name)
        ax.scatter(confidences, shares, 6 * counts, color=style.colour, marker=style.marker, alpha=0.7)
    ax.set_xlim(0, 1)
    ax.set_ylim(-0.03, 1.03)
    ax.set_xlabel("Confidence")
