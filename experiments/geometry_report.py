"""The part of a report that looks into the embedding space: what jobs left in ``geometry.json``, as tables and plots.

The form of the tables is that of Roychowdhury et al. (arXiv:2406.12336), Tables I to III; of the plots, that of its
Figure 2 and of Figures 8 and 13 of the formula-text paper. Plots show the first seed of each condition, tables all.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from experiments.blocks import Block, Figure, Heading, Table, Text
from experiments.figures import canvas, short, svg
from experiments.results import Experiment, content_of
from experiments.tables import p_value, spread
from graphs.errors import AnalysisError, StoreError
from mathamr.analysis import plots
from mathamr.analysis.correlation import FEWEST, correlation
from mathamr.analysis.shift import shift

Content = dict[str, Any]
Contents = Mapping[str, Sequence[Content]]  # condition -> one for each seed
Value = Callable[[Content], float | None]


def blocks(experiment: Experiment) -> list[Block]:
    """Everything that is said of the spaces; nothing where no job was asked for it.

    Raises:
        StoreError: a file is not of the form that :mod:`experiments.geometry` writes.
    """
    found: dict[str, list[Content]] = {}
    distinct: dict[str, Content] = {}  # by key: of a model that no seed changes, seeds have copies
    for condition, rows in experiment.done().items():
        for row in rows:
            path = experiment.place(row) / "geometry.json"
            content = content_of(path)
            if content is not None:
                found.setdefault(condition, []).append(content)
                distinct.setdefault(str(row.get("key", path)), content)
    if not found:
        return []
    try:
        return _blocks(experiment, found, list(distinct.values()))
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        place = Path(experiment.name) / "jobs"
        raise StoreError(f"a geometry.json is not complete ({error!r}); run its job again", path=place) from error


def _blocks(experiment: Experiment, found: Contents, distinct: Sequence[Content]) -> list[Block]:
    whole = {name: mine for name, of in found.items() if (mine := [one for one in of if "run" in one])}
    spaces = {name: mine for name, of in whole.items() if (mine := [one for one in of if "ways" in one])}
    parts: list[tuple[str, list[Block]]] = []
    if whole:
        parts.append(("Accuracy and overlap", _overlaps(experiment, whole, spaces)))
    if spaces:
        parts.append(("Isotropy", _isotropy(experiment, spaces)))
        parts.append(("What goes with accuracy", _correlations([one for one in distinct if "ways" in one])))
        parts.append(("By kind of vector", _kinds(experiment, spaces)))
    parts.append(("Representation collapse", _collapse(experiment, found)))
    if spaces:
        parts.append(("Posts with formulas and without", _words(experiment, spaces)))
        parts.append(("Right answers of some topics", _statements(experiment, spaces)))
    parts = [(title, inside) for title, inside in parts if inside]
    troubles = [
        Text(f"{experiment.label(condition)}: not all of it could be measured: {content['left_out']}")
        for condition, contents in found.items()
        for content in contents[:1]
        if "left_out" in content
    ]
    if len(parts) == 1:
        return [*parts[0][1], *troubles]
    return [*(block for title, inside in parts for block in (Heading(title, 3), *inside)), *troubles]


def _over_seeds(contents: Sequence[Content], value: Value) -> str:
    """Mean ± standard deviation over seeds; seeds that are copies of one another count as one."""
    values = [one for content in contents if (one := value(content)) is not None]
    return spread(values[:1] if len(set(values)) == 1 else values)


def _table(
    experiment: Experiment, found: Contents, columns: Mapping[str, Value], caption: str, note: str = ""
) -> Table:
    rows = [["Condition", *columns]]
    for condition, contents in found.items():
        rows.append([experiment.label(condition), *(_over_seeds(contents, value) for value in columns.values())])
    return Table(rows, caption, note)


def _of_run(name: str, place: int = 0) -> Value:
    return lambda content: content["run"][name][place]


def _width(content: Content) -> float | None:
    _, low, high = content["run"]["accuracy"]
    return None if low is None else high - low


def _own(name: str) -> Value:
    return lambda content: content["ways"][content["own"]][name][0] if "ways" in content else None


def _chosen(value: Value) -> Value:
    return lambda content: value(content["thresholds"][content["chosen"]]) if "thresholds" in content else None


def _overlaps(experiment: Experiment, whole: Contents, spaces: Contents) -> list[Block]:
    settings = next(iter(whole.values()))[0]["settings"]
    k, psi = settings["k"], settings["psi"]
    columns: dict[str, Value] = {
        f"Accuracy@{k}": _of_run("accuracy"),
        "95 % width": _width,
        "MRR": _of_run("mrr"),
        f"nDCG@{k}": _of_run("ndcg"),
        "COE": _own("coe"),
        "ROE": _own("roe"),
        "τ": _chosen(lambda one: one["tau"]),
        "ψ": _chosen(lambda one: one["psi"]),
        f"Accuracy@{k} at τ": _chosen(lambda one: one["metric"][0]),
        "Removed": _chosen(lambda one: one["removed"]),
    }
    size = "as many topics as there are" if settings["size"] is None else f"{settings['size']} topics"
    note = (
        f"Means over {settings['samples']} bootstrap samples of {size}, ± over seeds. A right answer has grade 2 or 3; "
        "an answer that nobody judged is a wrong one. Width: of the interval of accuracy. COE, ROE: share of "
        f"right and of random answers that are more similar than percentile {psi:g} of the first {k}. τ: the highest "
        "threshold at which accuracy is not significantly different; removed: share of the first "
        f"{k} below it.{_sampled(spaces)}"
    )
    table = _table(experiment, whole, columns, "In the form of Table II of the paper", note)
    built: list[Block] = [table]
    if spaces:
        built += [_densities(experiment, spaces), _thresholds(experiment, spaces, k)]
    return built


def _sampled(spaces: Contents) -> str:
    counts = {(of[0]["sampled"]["posts"], of[0]["sampled"]["of_posts"]) for of in spaces.values()}
    parts = [f"{posts:,} of {of:,}" for posts, of in sorted(counts) if posts < of]
    if not parts:
        return ""
    return (
        f" COE, ROE and τ are those of a sample of the posts ({', '.join(parts)}): every right one, and others drawn "
        "at random."
    )


def _isotropy(experiment: Experiment, spaces: Contents) -> list[Block]:
    rows = [["Condition", "Vectors", "Accuracy", "I_A", "I_B"]]
    for condition, contents in spaces.items():
        for move in contents[0]["isotropy"]:
            values = [_over_seeds(contents, _moved(move, name)) for name in ("accuracy", "i_a", "i_b")]
            rows.append([experiment.label(condition), move, *values])
    note = (
        "I_A: second-order approximation of Mu and Viswanath; I_B: IsoScore; both of the vectors of the posts, 1 is "
        "isotropic. Transformations are fitted on the posts and applied to topics as well; accuracy is over the same "
        "posts, searched exactly."
    )
    return [Table(rows, "In the form of Table III of the paper", note)]


def _moved(move: str, name: str) -> Value:
    def value(content: Content) -> float | None:
        one = content["isotropy"].get(move, {}).get(name)
        return one[0] if isinstance(one, list) else one

    return value


def _correlations(contents: Sequence[Content]) -> list[Block]:
    """Table I of the paper, over all models; and isotropy with transformed vectors as further models, as there."""
    if len(contents) < FEWEST:
        return [Text(f"No correlations: {len(contents)} models with vectors, and {FEWEST} are needed.")]
    plain = {
        "Accuracy and COE": [(_own("accuracy")(one), _own("coe")(one)) for one in contents],
        "Accuracy and ROE": [(_own("accuracy")(one), _own("roe")(one)) for one in contents],
        "τ and ROE": [(_chosen(lambda best: best["tau"])(one), _own("roe")(one)) for one in contents],
    }
    for title, name in (("I_A", "i_a"), ("I_B", "i_b")):
        of_models = [(_moved("as they are", "accuracy")(one), _moved("as they are", name)(one)) for one in contents]
        of_all = [
            (_moved(move, "accuracy")(one), _moved(move, name)(one)) for one in contents for move in one["isotropy"]
        ]
        plain[f"Accuracy and {title}"] = of_models
        plain[f"Accuracy and {title}, transformed vectors too"] = of_all
    rows = [["Correlation", "Pearson", "p", "Spearman", "Models"]]
    for title, pairs in plain.items():
        try:
            result = correlation(*zip(*pairs, strict=True))
        except AnalysisError as error:
            rows.append([title, "–", "–", "–", str(error)])
            continue
        numbers = [f"{result.pearson:+.3f}", p_value(result.p), f"{result.spearman:+.3f}", str(result.models)]
        rows.append([title, *numbers])
    note = (
        "Every condition and seed with vectors is a model; p is of Pearson's correlation, not corrected for the number "
        "of these tests. Transformed vectors are counted as models of their own."
    )
    return [Table(rows, "In the form of Table I of the paper", note)]


def _kinds(experiment: Experiment, spaces: Contents) -> list[Block]:
    rows = [["Condition", "Compared by", "Topics", "Accuracy", "MRR", "COE", "ROE"]]
    for condition, contents in spaces.items():
        for way in contents[0]["ways"] if len(contents[0]["ways"]) > 1 else ():
            own = " †" if way == contents[0]["own"] else ""
            line = [experiment.label(condition), f"{_NAMES[way]}{own}", f"{contents[0]['ways'][way]['queries']:,}"]
            for name in ("accuracy", "mrr", "coe", "roe"):
                line.append(_over_seeds(contents, _of_way(way, name)))
            rows.append(line)
    if len(rows) == 1:
        return []
    note = "† as the condition searches. Topics: those that have such vectors, and a right answer that has."
    return [Table(rows, "MaxSim over all vectors, and over those of one kind", note)]


def _of_way(way: str, name: str) -> Value:
    return lambda content: content["ways"].get(way, {}).get(name, [None])[0]


def _of_kind(kind: str, name: str) -> Value:
    return lambda content: content["collapse"].get(kind, {}).get(name)


_NAMES = {
    "maxsim": "all vectors",
    "formula": "formulas",
    "sentence": "sentences",
    "document": "document",
    "token": "tokens",
}


def _collapse(experiment: Experiment, found: Contents) -> list[Block]:
    rows = [["Condition", "Vectors of", "Mean cosine", "Effective rank", "Vectors a post", "Posts"]]
    for condition, contents in found.items():
        for kind, first in (contents[0].get("collapse") or {}).items():
            line = [experiment.label(condition), "all kinds" if kind == "all" else _NAMES[kind]]
            for name in ("cosine", "rank", "vectors"):
                line.append(_over_seeds(contents, _of_kind(kind, name)))
            rows.append([*line, f"{first['documents']:,}"])
    if len(rows) == 1:
        return []
    note = (
        "Within each post that has several such vectors: the mean cosine of two of them, and the effective rank, the "
        "exponential of the entropy of the singular values. Cosine 1 and rank 1 are collapse; the rank of vectors at "
        "right angles is their number."
    )
    return [Table(rows, "How alike the vectors of a post are", note)]


def _words(experiment: Experiment, spaces: Contents) -> list[Block]:
    rows = [["Condition", "Mean distance", "Before", "D", "p"]]
    for condition, contents in spaces.items():
        if contents[0]["words"] is None:
            continue
        mine = [np.asarray(one["words"]["distances"]) for one in contents]
        line = [experiment.label(condition), _over_seeds(contents, lambda one: np.mean(one["words"]["distances"]))]
        before = experiment.baselines[condition]
        if before != condition and before in spaces and spaces[before][0]["words"] is not None:
            moved = shift(np.asarray(spaces[before][0]["words"]["distances"]), mine[0])
            line += [experiment.label(before), f"{moved.statistic:.3f}", p_value(moved.p)]
        else:
            line += ["–", "–", "–"]
        rows.append(line)
    if len(rows) == 1:
        return []
    one = next(of[0]["words"] for of in spaces.values() if of[0]["words"] is not None)
    drawn = len(one["distances"])
    some = "" if drawn == one["with_formulas"] else f" ({drawn:,} of them, drawn at random)"
    note = (
        f"The domain shift of the paper's section II-F, with {one['with_formulas']:,} posts with formulas{some} as the "
        f"domain and {one['without']:,} without as general text: the distance from each of the first to the nearest of "
        "the second, at unit length. D: the largest gap between its distribution and that before training (first "
        "seeds; Kolmogorov and Smirnov)."
    )
    return [Table(rows, "Distance from posts with formulas to posts without", note)]


def _panels(experiment: Experiment, spaces: Contents) -> dict[str, Content]:
    return {experiment.label(condition): contents[0] for condition, contents in spaces.items()}


def _densities(experiment: Experiment, spaces: Contents) -> Figure:
    panels = _panels(experiment, spaces)
    told = []
    for label, content in panels.items():
        way = content["ways"][content["own"]]
        peaks = ", ".join(f"{name} {way['points'][int(np.argmax(of))]:.2f}" for name, of in way["densities"].items())
        told.append(f"{label}: {peaks}")
    alt = f"Densities of similarities of random, correct and top-k answers; where each is highest: {'; '.join(told)}."
    caption = (
        "Similarities of topics to random, to correct and to the first k answers, by the vectors that the condition "
        "searches with. In the form of Figure 2 of the paper."
    )

    def draw(name: str) -> str:
        columns = min(3, len(panels))
        rows = -(-len(panels) // columns)
        with canvas(rows, columns, 2.3 * rows + 0.4) as (figure, axes):
            flat = [ax for line in axes for ax in line]
            for ax, (label, content) in zip(flat, panels.items(), strict=False):
                way = content["ways"][content["own"]]
                plots.densities(ax, way["points"], way["densities"])
                ax.set_xlim(way["points"][0], way["points"][-1])
                ax.set_title(short(label), loc="left")
            for ax in flat[len(panels) :]:
                ax.set_axis_off()
            figure.legend(*flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=3, frameon=False)
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)


def _thresholds(experiment: Experiment, spaces: Contents, k: int) -> Figure:
    panels = _panels(experiment, spaces)
    told = [
        f"{label}: {one['thresholds'][one['chosen']]['tau']:.3f}, which removes "
        f"{one['thresholds'][one['chosen']]['removed']:.0%}"
        for label, one in panels.items()
    ]
    alt = f"Accuracy@{k} over the threshold. The chosen thresholds: {'; '.join(told)}."
    caption = (
        "Results less similar than the threshold are removed. Left: accuracy with its 95 % interval; right: the share "
        f"of the first {k} that is removed. Rings: the chosen threshold (section II-B of the paper)."
    )

    def draw(name: str) -> str:
        with canvas(1, 2, 3.4) as (figure, axes):
            left, right = axes[0]
            for number, (label, one) in enumerate(panels.items()):
                curve = one["thresholds"]
                taus = [point["tau"] for point in curve]
                plots.line_with_interval(left, number, short(label), taus, [point["metric"] for point in curve])
                plots.line_with_interval(right, number, short(label), taus, [[point["removed"]] * 3 for point in curve])
                best = curve[one["chosen"]]
                plots.ring(left, number, best["tau"], best["metric"][0])
                plots.ring(right, number, best["tau"], best["removed"])
            left.set_ylabel(f"Accuracy@{k}")
            right.set_ylabel(f"Removed of the first {k}")
            for ax in (left, right):
                ax.set_xlabel("Threshold τ")
            figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
            return svg(figure, name, alt)

    return Figure(draw, alt, caption)


def _statements(experiment: Experiment, spaces: Contents) -> list[Block]:
    panels = {
        label: one["statements"] for label, one in _panels(experiment, spaces).items() if one["statements"] is not None
    }
    if not panels:
        return []
    lowest = min(float(np.min(one["cosines"])) for one in panels.values())
    told = []
    for label, one in panels.items():
        within, between = _within_and_between(one)
        told.append(f"{label}: {within:.2f} within a topic, {between:.2f} between")
    alt = f"Cosines of right answers of some topics, on average: {'; '.join(told)}."
    caption = (
        "Above: cosines of right answers, topic by topic (Figure 8 of the formula-text paper). Below: the same in the "
        "plane of their first two principal components, a mark for each topic (its Figure 13, there with t-SNE)."
    )

    def draw(name: str) -> str:
        with canvas(2, max(2, len(panels)), 5.4) as (figure, axes):
            for column, (label, one) in enumerate(panels.items()):
                mesh = plots.matrix(axes[0][column], one["cosines"], one["topics"], lowest)
                plots.points(axes[1][column], one["plane"], one["topics"])
                axes[0][column].set_title(short(label), loc="left")
            for line in axes:
                for ax in line[len(panels) :]:
                    ax.set_axis_off()
            bar = figure.colorbar(mesh, ax=axes[0], shrink=0.8, label="Cosine")
            if bar.solids is not None:
                bar.solids.set_rasterized(False)  # a page that stands alone loads no image, not even its own
            figure.legend(*axes[1][0].get_legend_handles_labels(), loc="outside lower center", ncols=4, frameon=False)
            return svg(figure, name, alt)

    return [Text(f"{'; '.join(told)}."), Figure(draw, alt, caption), *_lengths(experiment, spaces)]


def _lengths(experiment: Experiment, spaces: Contents) -> list[Block]:
    panels = {
        label: one["lengths"]
        for label, one in _panels(experiment, spaces).items()
        if one["lengths"] is not None and one["lengths"]["tokens"]
    }
    if not panels:
        return []
    told = [
        f"{label}: tokens {np.median(one['tokens']):.2f}, pooled {np.median(one['pooled']):.2f}"
        for label, one in panels.items()
    ]
    alt = f"Lengths of the vectors of tokens and of pooled vectors; medians: {'; '.join(told)}."
    counts = ", ".join(f"{len(one['tokens']):,} of {one['of_tokens']:,} tokens" for one in panels.values())
    caption = (
        "Lengths, as the encoder makes them, of the vectors of the tokens of these answers, and of the means over each "
        f"answer's tokens; as densities ({counts}). In the form of Figures 4 and 7 of the formula-text paper."
    )

    def draw(name: str) -> str:
        with canvas(1, max(2, len(panels)), 2.8) as (figure, axes):
            for ax, (label, one) in zip(axes[0], panels.items(), strict=False):
                plots.norms(ax, one["tokens"], one["pooled"])
                ax.set_title(short(label), loc="left")
            for ax in axes[0][len(panels) :]:
                ax.set_axis_off()
            figure.legend(*axes[0][0].get_legend_handles_labels(), loc="outside lower center", ncols=2, frameon=False)
            return svg(figure, name, alt)

    return [Figure(draw, alt, caption)]


def _within_and_between(one: Content) -> tuple[float, float]:
    """Mean cosine of two right answers of one topic, and of two topics."""
    cosines, topics = np.array(one["cosines"], dtype=float), np.array(one["topics"])
    same = topics[:, None] == topics[None, :]
    others = ~np.eye(len(topics), dtype=bool)
    return float(cosines[same & others].mean()), float(cosines[~same].mean()) if (~same).any() else float("nan")
