"""Plots of a report as ``<svg>`` elements: learning curves, bars with intervals, differences by topic.

    curves({"none": [[{"epoch": 0, "train_loss": 3.1, "val_loss": 2.8, "val_mrr": 0.21}, ...], ...]})   # a Figure

They are legible in grey and to the colour-blind (:mod:`mathamr.analysis.plot_styles`). The same input gives the same
bytes. An element refers to nothing outside it, and text stays text, so that readers of a page can search it.
"""

from __future__ import annotations

import html
import io
import re
import statistics
import warnings
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from experiments.report.blocks import Figure
from experiments.report.results import Row
from mathamr.analysis.plot_styles import COLOURS, plot_style
from mathamr.evaluation.significance import Comparison, TopicScores, bootstrap_interval

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure as Canvas

_Shown = TypeVar("_Shown")

CURVES = {"train_loss": "Training loss", "val_loss": "Validation loss", "val_mrr": "Validation MRR"}
"""Learning curves: key in the records of epochs -> title."""

WIDTH = 10.0
"""Size in inches; a page scales plots to its width."""

_STYLE: dict[Any, Any] = {
    "font.family": "DejaVu Sans",  # part of matplotlib: all machines make the same plot
    "font.size": 9.0,
    "axes.titlesize": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "text.parse_math": False,  # dollars in a label are plain text
    "hatch.linewidth": 0.6,
    "svg.fonttype": "none",
    "svg.hashsalt": "mathamr",
}


@contextmanager
def canvas(rows: int, columns: int, height: float, **grid: Any) -> Iterator[tuple[Canvas, list[list[Axes]]]]:
    """Yield a figure of ``rows`` x ``columns`` axes in the house style, not the user's."""
    import matplotlib  # slow to import
    from matplotlib.backends.backend_svg import FigureCanvasSVG
    from matplotlib.figure import Figure as Canvas

    with matplotlib.rc_context(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", r"Glyph .* missing from font", UserWarning)  # browsers have other fonts
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(_STYLE)
        figure = Canvas(figsize=(WIDTH, height), layout="constrained")
        FigureCanvasSVG(figure)
        yield figure, figure.subplots(rows, columns, squeeze=False, **grid).tolist()


@contextmanager
def panels(
    count: int, columns: int, row_height: float, margin: float = 0.0, **grid: Any
) -> Iterator[tuple[Canvas, list[Axes]]]:
    """Yield a figure of ``count`` axes in rows of at most ``columns``; ``margin`` inches are beside the rows."""
    rows = -(-count // columns)
    with canvas(rows, columns, row_height * rows + margin, **grid) as (figure, lines):
        axes = [ax for line in lines for ax in line]
        for ax in axes[count:]:
            ax.set_axis_off()
        yield figure, axes[:count]


def svg(figure: Canvas, name: str, alt: str) -> str:
    """Return the figure as an ``<svg>`` element for a page; call it within :func:`canvas`.

    ``name`` separates its ids from those of the page's other plots.
    """
    file = io.StringIO()
    layout = figure.get_layout_engine()
    if layout is not None:
        layout.execute(figure)
        figure.set_layout_engine(None)  # else savefig draws the whole figure once more, to place its axes
    figure.savefig(file, format="svg", metadata={"Date": None})
    text = file.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.DOTALL)
    text = re.sub(r'\s+xmlns(:\w+)?="[^"]*"', "", text).replace("xlink:href", "href")
    text = re.sub(r'\bid="([^"]+)"', rf'id="{name}-\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{name}-\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{name}-\1"', text)
    return text.replace("<svg", f'<svg role="img" aria-label="{html.escape(alt)}"', 1).strip()


def short(label: str, length: int = 36) -> str:
    """Shorten a label to leave room for its plot, and so that matplotlib shows it: it hides labels with a leading _.

    >>> short("Doc-VN + MaxSim (k = 5000), approximate search"), short("_old")
    ('Doc-VN + MaxSim (k =…proximate search', ' _old')
    """
    label = re.sub(r"[\x00-\x1f\x7f]+", " ", label)
    label = label if len(label) <= length else f"{label[: length - 16]}…{label[-16:]}"
    return f" {label}" if label.startswith("_") else label


def shortened(labels: Collection[str]) -> dict[str, str]:
    """Shorten the labels of a plot, and those that would be equal by less.

    >>> shortened(["Learned, trees, vectors and BM25 over pairs", "Learned, trees, vectors, BM25 over pairs"]).values()
    dict_values(['Learned, trees, vectors and BM25 over pairs', 'Learned, trees, vectors, BM25 over pairs'])
    """
    names = {}
    for label in labels:
        for length in (36, 48, 72, len(label)):
            names[label] = short(label, length)
            if [short(other, length) for other in labels].count(names[label]) == 1:
                break
    return names


def _named(topics: Sequence[str]) -> str:
    """Name topics below a plot, in lines no wider than the plot.

    >>> print(_named(["A.12", "scipy.stats.qmc.discrepancy", "sympy.polys.domains.field"]))
    A.12,
      scipy.st…screpancy, sympy.po…ins.field
    >>> _named([])
    'none'
    """
    if not topics:
        return "none"
    names = [topic if len(topic) <= 18 else f"{topic[:8]}…{topic[-9:]}" for topic in topics]
    first, rest = names[0], ", ".join(names[1:])
    return f"{first}, {rest}" if len(first) + len(rest) <= 20 else f"{first},\n  {rest}" if rest else first


def grouped(shown: Mapping[str, _Shown], are_equal: Callable[[_Shown, _Shown], bool]) -> dict[str, _Shown]:
    """Return curves or maps by the labels of their conditions; conditions with equal ones share one.

    >>> grouped({"exact": 1, "a": 2, "hnsw": 1, "b": 2, "c": 2}, int.__eq__)
    {'exact and hnsw': 1, 'a and 2 more': 2}
    """
    groups: list[tuple[list[str], _Shown]] = []
    for label, one in shown.items():
        same = next((labels for labels, other in groups if are_equal(other, one)), None)
        if same is None:
            groups.append(([label], one))
        else:
            same.append(label)
    return {
        " and ".join(labels) if len(labels) < 3 else f"{labels[0]} and {len(labels) - 1} more": one
        for labels, one in groups
    }


def curves(logs: Mapping[str, Sequence[Sequence[Row]]]) -> Figure:
    """Plot training loss, validation loss and validation MRR by epoch: the mean over seeds, and thin lines for seeds.

    ``logs`` has the records of kind ``epoch`` for each seed of a condition.
    """
    means = {condition: _means(seeds, "val_mrr")[1] for condition, seeds in logs.items()}
    ends = [f"{condition} {own[-1]:.3f}" for condition, own in means.items() if own]
    alt = f"Loss and validation MRR by epoch. Validation MRR after the last epoch: {'; '.join(ends) or 'none'}."
    caption = "Thick lines: mean over the seeds that reached the epoch; thin lines: single seeds."
    return Figure(lambda name: _draw_curves(logs, CURVES, name, alt), alt, caption)


def loss_terms(logs: Mapping[str, Sequence[Sequence[Row]]], terms: Mapping[str, str]) -> Figure:
    """Plot terms of the training loss (key in the records -> title) by epoch, as :func:`curves` does."""
    alt = f"Terms of the training loss by epoch: {', '.join(terms.values())}."
    return Figure(lambda name: _draw_curves(logs, terms, name, alt), alt, "Terms of the training loss, lines as above.")


def _draw_curves(logs: Mapping[str, Sequence[Sequence[Row]]], panels: Mapping[str, str], name: str, alt: str) -> str:
    from matplotlib.ticker import MaxNLocator

    names = shortened(logs)
    last = max((epoch for seeds in logs.values() for epoch in _means(seeds, "train_loss")[0]), default=1)
    with canvas(1, len(panels), 3.4 + 0.2 * (len(logs) // 4)) as (figure, axes):
        for ax, (key, title) in zip(axes[0], panels.items(), strict=True):
            for number, (condition, seeds) in enumerate(logs.items()):
                style = plot_style(number)
                if len(seeds) > 1:
                    for records in seeds:
                        ax.plot(*_means([records], key), color=style.colour, linewidth=0.6, alpha=0.45)
                ax.plot(
                    *_means(seeds, key),
                    color=style.colour,
                    linestyle=style.dash,
                    marker=style.marker,
                    markersize=4.5,
                    markeredgecolor="black",
                    markeredgewidth=0.4,
                    linewidth=1.6,
                    label=names[condition],
                )
            ax.set_title(title)
            ax.set_xlabel("Epoch")
            if last <= 12:
                ax.set_xticks(range(1, last + 1))
            else:
                ax.xaxis.set_major_locator(MaxNLocator(integer=True))
            ax.grid(axis="y", color="#dddddd", linewidth=0.6)
        handles, labels = axes[0][0].get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
        return svg(figure, name, alt)


def _means(seeds: Sequence[Sequence[Row]], key: str) -> tuple[list[int], list[float]]:
    """Return epochs, counted from 1, and the mean over the seeds that have each."""
    by_epoch: dict[int, list[float]] = {}
    for records in seeds:
        for record in records:
            if key in record:
                by_epoch.setdefault(int(record["epoch"]) + 1, []).append(float(record[key]))
    epochs = sorted(by_epoch)
    return epochs, [statistics.fmean(by_epoch[epoch]) for epoch in epochs]


def bars(
    scores: Mapping[str, Mapping[str, TopicScores]],
    seeds: Mapping[str, Mapping[str, Sequence[float]]],
    titles: Mapping[str, str],
    stars: Mapping[tuple[str, str], str],
) -> Figure:
    """Plot a bar for each condition and measure, with 95 % bootstrap interval over topics and a dot for each seed.

    Args:
        scores: condition -> measure -> topic -> mean over seeds.
        seeds: condition -> measure -> score of each seed.
        titles: measure -> title of its panel.
        stars: (condition, measure) -> mark after its bar.
    """
    first = next(iter(titles))
    values = [f"{condition} {statistics.fmean(of[first].values()):.3f}" for condition, of in scores.items()]
    alt = f"Bars of {', '.join(titles.values())}. {titles[first]}: {'; '.join(values)}."
    caption = (
        "Bars: mean over topics and seeds; whiskers: 95 % bootstrap interval over topics; circles: single seeds. "
        "Whiskers of two conditions may overlap where their difference on the same topics is significant (*)."
    )

    def draw(name: str) -> str:
        with canvas(1, len(titles), 0.9 + 0.34 * len(scores), sharey=True) as (figure, axes):
            numbers, styles = range(len(scores)), [plot_style(number) for number in range(len(scores))]
            # Black bars would hide dots and whiskers.
            light = [one.colour if number % len(COLOURS) else "#bbbbbb" for number, one in enumerate(styles)]
            hatches = [one.hatch for one in styles]
            for ax, (measure, title) in zip(axes[0], titles.items(), strict=True):
                means = np.array([statistics.fmean(of[measure].values()) for of in scores.values()])
                ends = np.array([_interval(of[measure]) for of in scores.values()]).T
                whiskers = np.abs(ends - means)
                ax.barh(numbers, means, height=0.72, color=light, hatch=hatches, edgecolor="black", linewidth=0.6)
                ax.errorbar(means, numbers, xerr=whiskers, fmt="none", ecolor="black", capsize=3, linewidth=1.1)
                several = [seeds[condition][measure] for condition in scores]
                dots = [(score, number) for number, own in enumerate(several) if len(own) > 1 for score in own]
                places = [score for score, _ in dots], [number for _, number in dots]
                ax.plot(*places, "o", markersize=4, markerfacecolor="white", color="black")
                for number, condition in enumerate(scores):
                    if star := stars.get((condition, measure)):
                        ax.text(ends[1][number], number, f" {star}", va="center", fontsize=12)
                ax.set_title(title)
                ax.set_xlim(left=0)
                ax.grid(axis="x", color="#dddddd", linewidth=0.6)
                ax.set_axisbelow(True)
            axes[0][0].set_yticks(range(len(scores)), shortened(scores).values())
            axes[0][0].set_ylim(len(scores) - 0.45, -0.55)
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)


def _interval(scores: TopicScores) -> tuple[float, float]:
    """Return the bootstrap interval of the mean over topics; the mean itself for a single topic."""
    if len(scores) < 2:
        return (next(iter(scores.values())),) * 2
    return bootstrap_interval(dict.fromkeys(scores, 0.0), scores)


@dataclass(frozen=True)
class Difference:
    """Comparison of a condition with its baseline: test of the mean difference, and differences by topic."""

    condition: str
    baseline: str
    test: Comparison
    by_topic: dict[str, float]

    @property
    def words(self) -> str:
        """Return the numbers of topics that gained and lost."""
        better = sum(value > 0 for value in self.by_topic.values())
        worse = sum(value < 0 for value in self.by_topic.values())
        return f"{better} better, {worse} worse, {len(self.by_topic) - better - worse} equal"

    @property
    def mean(self) -> str:
        """Return the mean difference and its interval."""
        return f"mean {self.test.test.difference:+.3f}{self.test.stars()} [{self.test.low:+.3f}, {self.test.high:+.3f}]"


def differences(found: Sequence[Difference], measure: str) -> Figure:
    """Plot each condition's differences to the baseline by topic, sorted; ``measure`` is the measure's title."""
    summaries = [f"{one.condition} against {one.baseline}: {one.words}, {one.mean}" for one in found]
    alt = f"Differences in {measure} topic by topic. {'; '.join(summaries)}."
    caption = (
        f"Difference to the baseline in {measure} on each topic, mean over seeds, topics sorted by it. Dashed: the "
        "mean difference; in brackets its 95 % bootstrap interval over topics."
    )

    def draw(name: str) -> str:
        from matplotlib.collections import PolyCollection  # thousands of bars, each of which would be slow to add

        columns = min(3, len(found))
        names = shortened({label for one in found for label in (one.condition, one.baseline)})
        with panels(len(found), columns, 2.7, sharey=True) as (figure, axes):
            for ax, one in zip(axes, found, strict=True):
                ordered = sorted(one.by_topic, key=lambda topic: (-one.by_topic[topic], topic))
                values = [one.by_topic[topic] for topic in ordered]
                colours = ["#56B4E9" if value > 0 else "#D55E00" for value in values]
                bars = [((x - 0.5, 0), (x - 0.5, y), (x + 0.5, y), (x + 0.5, 0)) for x, y in enumerate(values)]
                ax.add_collection(PolyCollection(bars, facecolors=colours, edgecolors="black", linewidths=0.2))
                ax.autoscale_view()
                ax.axhline(0, color="black", linewidth=0.8)
                ax.axhline(one.test.test.difference, color="black", linestyle="--", linewidth=0.9)
                ax.set_title(f"{names[one.condition]}\nagainst {names[one.baseline]}", loc="left")
                gained = [topic for topic in ordered[:3] if one.by_topic[topic] > 0]
                lost = [topic for topic in ordered[:-4:-1] if one.by_topic[topic] < 0]
                ends = f"most gained: {_named(gained)}\nmost lost: {_named(lost)}"
                ax.set_xlabel(f"{one.mean}\n{one.words}\n{ends}", loc="left", fontsize=8)
                ax.set_xticks([])
            for ax in axes[::columns]:
                ax.set_ylabel(f"Difference in {measure}")
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)
