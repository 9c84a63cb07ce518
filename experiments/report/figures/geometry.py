"""Plots of the embedding space for a page, from ``geometry.json`` of jobs, with a panel or a line for each condition.

Input: labels of conditions -> contents of their files. :mod:`mathamr.analysis.plots` draws; this module adds panels,
words and captions.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from experiments.report.blocks import Figure
from experiments.report.figures import charts
from experiments.report.figures.charts import canvas, short, shortened, svg
from mathamr.analysis import plots

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Content = dict[str, Any]


def densities(panels: Mapping[str, Content]) -> Figure:
    """Plot similarities to random, correct and top-k answers, one panel each (Figure 2 of the paper)."""
    ways = {label: content["ways"][content["own"]] for label, content in panels.items()}
    summaries = []
    for label, way in ways.items():
        peaks = ", ".join(f"{name} {way['points'][int(np.argmax(of))]:.2f}" for name, of in way["densities"].items())
        summaries.append(f"{label}: {peaks}")
    peaks_of_all = "; ".join(summaries)
    alt = f"Densities of similarities of random, correct and top-k answers; where each is highest: {peaks_of_all}."
    caption = (
        "Similarities of topics to random, to correct and to the first k answers, by the vectors that the condition "
        "searches with. In the form of Figure 2 of the paper."
    )

    def plot(ax: Axes, way: Content) -> None:
        plots.densities(ax, way["points"], way["densities"])
        ax.set_xlim(way["points"][0], way["points"][-1])

    return _grid(ways, plot, (alt, caption), columns=min(3, len(ways)), height=2.3)


def _grid(
    panels: Mapping[str, Any],
    plot: Callable[[Axes, Any], None],
    words: tuple[str, str],
    *,
    columns: int,
    height: float,
    ylabel: str | None = None,
) -> Figure:
    """Return a figure with a panel for each label, drawn by ``plot``, and one legend; ``words``: its alt and caption.

    ``height`` is that of a row in inches; ``ylabel`` names the axis of the first panel.
    """

    def draw(name: str) -> str:
        names = shortened(panels)
        with charts.panels(len(panels), columns, height, 0.4) as (figure, axes):
            for ax, (label, one) in zip(axes, panels.items(), strict=True):
                plot(ax, one)
                ax.set_title(names[label], loc="left")
            if ylabel is not None:
                axes[0].set_ylabel(ylabel)
            marks, labels = axes[0].get_legend_handles_labels()
            figure.legend(marks, labels, loc="outside lower center", ncols=min(3, len(labels)), frameon=False)
            return svg(figure, name, words[0])

    return Figure(draw, *words)


def thresholds(panels: Mapping[str, Content], k: int) -> Figure:
    """Plot accuracy over the threshold, and the share removed, one line for each condition."""
    best_thresholds = {label: one["thresholds"][one["chosen"]] for label, one in panels.items()}
    summaries = [
        f"{label}: {best['tau']:.3f}, which removes {best['removed']:.0%}" for label, best in best_thresholds.items()
    ]
    alt = f"Accuracy@{k} over the threshold. The chosen thresholds: {'; '.join(summaries)}."
    caption = (
        "Results less similar than the threshold are removed. Left: accuracy with its 95 % interval; right: the share "
        f"of the first {k} that is removed. Rings: the chosen threshold (section II-B of the paper)."
    )

    def draw(name: str) -> str:
        names = shortened(panels)
        with canvas(1, 2, 3.4) as (figure, axes):
            left, right = axes[0]
            for number, (label, one) in enumerate(panels.items()):
                curve = one["thresholds"]
                taus = [point["tau"] for point in curve]
                plots.line_with_interval(left, number, names[label], taus, [point["metric"] for point in curve])
                plots.line_with_interval(right, number, names[label], taus, [[point["removed"]] * 3 for point in curve])
                plots.ring(left, number, best_thresholds[label]["tau"], best_thresholds[label]["metric"][0])
                plots.ring(right, number, best_thresholds[label]["tau"], best_thresholds[label]["removed"])
            left.set_ylabel(f"Accuracy@{k}")
            right.set_ylabel(f"Removed of the first {k}")
            for ax in (left, right):
                ax.set_xlabel("Threshold τ")
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)


def statements(panels: Mapping[str, Content]) -> Figure:
    """Plot cosines of some right answers, and the answers in a plane; ``panels``: ``statements`` of geometry.json."""
    lowest = min(float(np.min(one["cosines"])) for one in panels.values())
    summaries = []
    for label, one in panels.items():
        within, between = _within_and_between(one)
        summaries.append(f"{label}: {within:.2f} within a topic, {between:.2f} between")
    alt = f"Cosines of right answers of some topics, on average: {'; '.join(summaries)}."
    caption = (
        "Above: cosines of right answers, topic by topic (Figure 8 of the ModernBERT thesis). Below: the same in the "
        "plane of their first two principal components, a mark for each topic (its Figure 13, there with t-SNE). On "
        f"average {'; '.join(summaries)}."
    )

    def draw(name: str) -> str:
        names = shortened(panels)
        columns = min(5, max(2, len(panels)))
        rows = -(-len(panels) // columns)  # of pairs: a matrix above its plane
        with canvas(2 * rows, columns, 5.4 * rows) as (figure, axes):
            matrices, planes = ([ax for line in axes[start::2] for ax in line] for start in (0, 1))
            for place, (label, one) in enumerate(panels.items()):
                mesh = plots.matrix(matrices[place], one["cosines"], one["topics"], lowest)
                plots.points(planes[place], one["plane"], one["topics"])
                matrices[place].set_title(names[label], loc="left")
            for ax in matrices[len(panels) :] + planes[len(panels) :]:
                ax.set_axis_off()
            bar = figure.colorbar(mesh, ax=axes[0], shrink=0.8, label="Cosine")
            if bar.solids is not None:
                bar.solids.set_rasterized(False)  # a self-contained page loads no images
            marks, topics = axes[1][0].get_legend_handles_labels()
            topics = [short(topic, 25) for topic in topics]
            figure.legend(marks, topics, loc="outside lower center", ncols=4, frameon=False)
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)


def lengths(panels: Mapping[str, Content]) -> Figure:
    """Plot lengths of token vectors and of pooled ones; ``panels`` hold ``lengths`` of geometry.json."""
    summaries = [
        f"{label}: tokens {np.median(one['tokens']):.2f}, pooled {np.median(one['pooled']):.2f}"
        for label, one in panels.items()
    ]
    alt = f"Lengths of the vectors of tokens and of pooled vectors; medians: {'; '.join(summaries)}."
    counts = ", ".join(f"{len(one['tokens']):,} of {one['of_tokens']:,} tokens" for one in panels.values())
    caption = (
        "Lengths, as the encoder makes them, of the vectors of the tokens of these answers, and of the means over each "
        f"answer's tokens; as densities ({counts}). In the form of Figures 4 and 7 of the ModernBERT thesis."
    )

    def plot(ax: Axes, one: Content) -> None:
        plots.norms(ax, one["tokens"], one["pooled"])

    return _grid(panels, plot, (alt, caption), columns=min(4, max(2, len(panels))), height=2.4)


def reliability(panels: Mapping[str, list[Content]]) -> Figure:
    """Plot the share of successes over the confidence; ``panels``: ``tested`` of the confidence of geometry.json."""
    summaries = []
    for label, tested in panels.items():
        errors = [f"{one['error']:.3f} on {one['on']}" for one in tested]
        summaries.append(f"{label}: {', '.join(errors)}")
    alt = f"Share of successes over confidence. Expected calibration errors: {'; '.join(summaries)}."
    caption = (
        "Topics of similar confidence, and the share of them that succeeds; on the dotted line both are equal. A line "
        "for each year, or for all folds, outside the fit; a marker as large as its number of topics."
    )

    def plot(ax: Axes, tested: list[Content]) -> None:
        plots.reliability(ax, {one["on"]: one["bins"] for one in tested})

    columns = min(4, max(2, len(panels)))
    return _grid(panels, plot, (alt, caption), columns=columns, height=2.5, ylabel="Share of successes")


def _within_and_between(one: Content) -> tuple[float, float]:
    """Return the mean cosine of two right answers of one topic, and of two topics."""
    cosines, topics = np.array(one["cosines"], dtype=float), np.array(one["topics"])
    same = topics[:, None] == topics[None, :]
    others = ~np.eye(len(topics), dtype=bool)
    return float(cosines[same & others].mean()), float(cosines[~same].mean()) if (~same).any() else float("nan")
