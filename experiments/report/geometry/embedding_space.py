"""Part of a report about the embedding space: tables and plots from ``geometry.json`` of jobs.

The tables follow Roychowdhury et al. (arXiv:2406.12336), "the paper". Plots
(:mod:`experiments.report.figures.geometry`) show the first seed of each condition, tables all seeds.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

import numpy as np

from experiments.report.blocks import Block, Heading, Table, Text
from experiments.report.figures import geometry as geometry_figures
from experiments.report.figures.geometry import Content
from experiments.report.figures.post_map import map_of
from experiments.report.geometry import confidence, domains
from experiments.report.results import Experiment, content_of
from experiments.report.tables import p_value, spread
from graphs.errors import AnalysisError, StoreError
from mathamr.analysis.correlation import FEWEST, correlation
from mathamr.analysis.isotropy import AS_THEY_ARE
from mathamr.analysis.shift import shift

Contents = Mapping[str, Sequence[Content]]  # condition -> content for each seed
Value = Callable[[Content], float | None]


def blocks(experiment: Experiment) -> list[Block]:
    """Return the blocks about the spaces; empty if no job has the analysis.

    Raises:
        StoreError: a file that does not have the form of :mod:`experiments.analyses.geometry`.
    """
    found = experiment.read_jobs(lambda place: content_of(place / "geometry.json"))
    if not found:
        return []
    try:
        return _blocks(experiment, found)
    except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
        place = Path(experiment.name) / "jobs"
        raise StoreError(f"a geometry.json is not complete ({error!r}); run its job again", path=place) from error


def _blocks(experiment: Experiment, found: Contents) -> list[Block]:
    whole = {name: mine for name, of in found.items() if (mine := [one for one in of if "run" in one])}
    spaces = {name: mine for name, of in whole.items() if (mine := [one for one in of if "ways" in one])}
    parts: list[tuple[str, list[Block]]] = []
    if whole:
        parts.append(("Accuracy and overlap", _overlaps(experiment, whole, spaces)))
        of_topics = {name: of[0]["confidence"] for name, of in whole.items() if "confidence" in of[0]}
        parts.append(("Confidence of single topics", confidence.blocks(experiment, of_topics)))
    if spaces:
        parts.append(("Isotropy", _isotropy(experiment, spaces)))
        parts.append(("Correlations with accuracy", _correlations(spaces)))
        parts.append(("By kind of vector", _kinds(experiment, spaces)))
    parts.append(("Representation collapse", _collapse(experiment, found)))
    if spaces:
        parts.append(("Posts with formulas and without", _words(experiment, spaces)))
        general = {name: of[0]["domain"] for name, of in spaces.items() if of[0].get("domain")}
        parts.append(("Mathematical posts and other text", domains.blocks(experiment, general)))
        parts.append(("Right answers of some topics", _statements(experiment, spaces)))
        parts.append(("Map of posts", _map(experiment, spaces)))
    parts = [(title, inside) for title, inside in parts if inside]
    troubles = [
        Text(f"{experiment.label(condition)}: not everything could be measured: {content['left_out']}")
        for condition, contents in found.items()
        for content in contents[:1]
        if "left_out" in content
    ]
    if len(parts) == 1:
        return [*parts[0][1], *troubles]
    return [*(block for title, inside in parts for block in (Heading(title, 3), *inside)), *troubles]


def _over_seeds(contents: Sequence[Content], value: Value) -> str:
    """Return mean ± standard deviation over seeds; seeds with equal content count as one."""
    values = [one for content in contents if (one := value(content)) is not None]
    return spread(values[:1] if len(set(values)) == 1 else values)


def _mean(contents: Sequence[Content], value: Value) -> float:
    return float(np.mean([one for content in contents if (one := value(content)) is not None]))


def _table(
    experiment: Experiment, found: Contents, columns: Mapping[str, Value], caption: str, note: str = ""
) -> Table:
    seeds = {name: 1 if all(one == of[0] for one in of) else len(of) for name, of in found.items()}
    differ = len(set(seeds.values())) > 1
    rows = [["Condition", *columns, *(["Seeds"] if differ else [])]]
    for condition, contents in found.items():
        line = [experiment.label(condition), *(_over_seeds(contents, value) for value in columns.values())]
        rows.append([*line, str(seeds[condition])] if differ else line)
    return Table(rows, caption, note)


def _of(part: str, name: str) -> Value:
    """Return the mean of a measure over samples, in one part of the contents."""
    return lambda content: content[part][name][0]


def _of_one(part: str, one: str, name: str) -> Value:
    """Return a measure, or its mean over samples, of a transformation, a way or a kind; None without such a one."""

    def value(content: Content) -> float | None:
        found = content[part].get(one, {}).get(name)
        return found[0] if isinstance(found, list) else found

    return value


def _width(content: Content) -> float | None:
    _, low, high = content["run"]["accuracy"]
    return None if low is None else high - low


def _own(name: str) -> Value:
    return lambda content: content["ways"][content["own"]][name][0] if "ways" in content else None


def _at(name: str, value: Value) -> Value:
    """Return the value of a threshold: ``chosen``, or ``of_paper``."""
    return lambda content: value(content["thresholds"][content[name]])


def _lossless(name: str) -> Value:
    """Return ``tau`` or ``removed`` of the highest threshold at which no topic loses its right answer."""

    def value(content: Content) -> float | None:
        first, *_ = curve = content["thresholds"]
        return max((one for one in curve if one["metric"][0] >= first["metric"][0]), key=lambda one: one["tau"])[name]

    return value


def _overlaps(experiment: Experiment, whole: Contents, spaces: Contents) -> list[Block]:
    settings = next(iter(whole.values()))[0]["settings"]
    k, psi = settings["k"], settings["psi"]
    columns: dict[str, Value] = {
        f"Accuracy@{k}": _of("run", "accuracy"),
        "95 % width": _width,
        "MRR": _of("run", "mrr"),
        f"nDCG@{k}": _of("run", "ndcg"),
        "COE": _own("coe"),
        "ROE": _own("roe"),
    }
    size = "all topics" if settings["size"] is None else f"{settings['size']} topics"
    note = (
        f"Means over {settings['samples']} bootstrap samples of {size}, ± over seeds. A right answer is "
        "relevant; an unjudged one is wrong. Width: that of the interval of accuracy. COE, ROE: share of "
        f"right and of random answers that are more similar than percentile {psi:g} of the first {k}.{_sampled(spaces)}"
        " The paper: Roychowdhury et al., arXiv:2406.12336."
    )
    table = _table(experiment, whole, columns, "In the form of Table II of the paper", note)
    built: list[Block] = [table]
    if spaces:
        panels = _panels(experiment, spaces)
        built.append(_thresholds(experiment, spaces, k))
        built += [geometry_figures.densities(panels), geometry_figures.thresholds(panels, k)]
    return built


def _thresholds(experiment: Experiment, spaces: Contents, k: int) -> Table:
    columns: dict[str, Value] = {}
    for rule, name in (("paper", "of_paper"), ("best", "chosen")):
        columns |= {
            f"τ, {rule}": _at(name, lambda one: one["tau"]),
            f"Accuracy@{k}, {rule}": _at(name, lambda one: one["metric"][0]),
            f"Removed, {rule}": _at(name, lambda one: one["removed"]),
        }
        if name == "of_paper":
            columns["ψ"] = _at(name, lambda one: one["psi"])
    columns |= {"τ, lossless": _lossless("tau"), "Removed, lossless": _lossless("removed")}
    columns |= {"COE, best": _of("at_threshold", "coe"), "ROE, best": _of("at_threshold", "roe")}
    note = (
        f"Removed: share of the first {k} below τ. Paper: its rule (section II-B), the highest τ(ψ) at which accuracy "
        f"is not significantly different. Best: the highest such threshold among all percentiles of the first {k}. "
        "Lossless: the highest at which accuracy is the same. COE and ROE: above the best, so at each model's own "
        "percentile instead of a common one."
    )
    return _table(experiment, spaces, columns, "Thresholds by the paper's rule, and the best of all", note)


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
            values = [_over_seeds(contents, _of_one("isotropy", move, name)) for name in ("accuracy", "i_a", "i_b")]
            rows.append([experiment.label(condition), move, *values])
    note = (
        "I_A: second-order approximation of Mu and Viswanath; I_B: IsoScore; both of the vectors of the posts, 1 is "
        "isotropic. Transformations are fitted on the posts and applied to topics as well; accuracy is over the same "
        "posts, searched exactly."
    )
    return [Table(rows, "In the form of Table III of the paper", note)]


def _correlations(spaces: Contents) -> list[Block]:
    """Return Table I of the paper, over conditions; isotropy also with transformed vectors as further models."""
    if len(spaces) < FEWEST:
        return [Text(f"No correlations: {len(spaces)} conditions with vectors, and {FEWEST} are needed.")]
    models = list(spaces.values())
    moves = [(of, move) for of in models for move in of[0]["isotropy"]]
    accuracy, tau = _own("accuracy"), _at("chosen", lambda best: best["tau"])
    compared = {
        "Accuracy and COE": (accuracy, _own("coe")),
        "Accuracy and ROE": (accuracy, _own("roe")),
        "Accuracy and COE above τ": (accuracy, _of("at_threshold", "coe")),
        "τ and ROE": (tau, _own("roe")),
    }
    plain = {title: [(_mean(of, one), _mean(of, other)) for of in models] for title, (one, other) in compared.items()}
    for title, name in (("I_A", "i_a"), ("I_B", "i_b")):
        pairs = [
            (_mean(of, _of_one("isotropy", move, "accuracy")), _mean(of, _of_one("isotropy", move, name)))
            for of, move in moves
        ]
        plain[f"Accuracy and {title}"] = [
            pair for pair, (_, move) in zip(pairs, moves, strict=True) if move == AS_THEY_ARE
        ]
        plain[f"Accuracy and {title}, transformed vectors too"] = pairs
    rows = [["Correlation", "Pearson", "95 %", "p", "Spearman", "p", "Models"]]
    for title, pairs in plain.items():
        try:
            result = correlation(*zip(*pairs, strict=True))
        except AnalysisError as error:
            rows.append([title, *["–"] * 5, str(error)])
            continue
        low, high = result.interval
        numbers = [f"{result.pearson:+.3f}", f"{low:+.2f} to {high:+.2f}", p_value(result.permuted)]
        rows.append([title, *numbers, f"{result.spearman:+.3f}", p_value(result.spearman_permuted), str(result.models)])
    note = (
        "Every condition with vectors is a model, with its means over seeds. The interval is by Fisher's "
        "transformation, p by permutation of the models, not corrected for the number of these tests. Rows with "
        "transformed vectors count them as further models, although they depend on each other: their intervals are too "
        "narrow."
    )
    return [Table(rows, "In the form of Table I of the paper", note)]


def _kinds(experiment: Experiment, spaces: Contents) -> list[Block]:
    rows = [["Condition", "Compared by", "Topics", "Accuracy", "MRR", "COE", "ROE"]]
    for condition, contents in spaces.items():
        for way in contents[0]["ways"] if len(contents[0]["ways"]) > 1 else ():
            own = " †" if way == contents[0]["own"] else ""
            first = [experiment.label(condition), f"{_NAMES[way]}{own}", f"{contents[0]['ways'][way]['queries']:,}"]
            names = ("accuracy", "mrr", "coe", "roe")
            rows.append([*first, *(_over_seeds(contents, _of_one("ways", way, name)) for name in names)])
    if len(rows) == 1:
        return []
    note = "† as the condition searches. Topics: those that have such vectors, and a right answer that has."
    return [Table(rows, "MaxSim over all vectors, and over those of one kind", note)]


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
            values = [_over_seeds(contents, _of_one("collapse", kind, name)) for name in ("cosine", "rank", "vectors")]
            rows.append([*line, *values, f"{first['documents']:,}"])
    if len(rows) == 1:
        return []
    note = (
        "Within each post that has several such vectors: the mean cosine of two of them, and the effective rank, the "
        "exponential of the entropy of the singular values. Cosine 1 and rank 1 are collapse; the rank of vectors at "
        "right angles is their number."
    )
    return [Table(rows, "How alike the vectors of a post are", note)]


def _words(experiment: Experiment, spaces: Contents) -> list[Block]:
    rows = [["Condition", "Mean distance", "Baseline", "D", "p"]]
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
        "the second, at unit length. D: the largest gap between its distribution and that of the baseline (first "
        "seeds; Kolmogorov and Smirnov)."
    )
    return [Table(rows, "Distance from posts with formulas to posts without", note)]


def _panels(experiment: Experiment, spaces: Contents) -> dict[str, Content]:
    return {experiment.label(condition): contents[0] for condition, contents in spaces.items()}


def _map(experiment: Experiment, spaces: Contents) -> list[Block]:
    of = {name: one["projection"] for name, one in _panels(experiment, spaces).items() if one.get("projection")}
    if not of:
        return []
    return [map_of(of, max((own[0]["sampled"] for own in spaces.values()), key=lambda one: one["of_posts"]))]


def _statements(experiment: Experiment, spaces: Contents) -> list[Block]:
    built: list[Block] = []
    panels = _panels(experiment, spaces)
    for name, figure in (("statements", geometry_figures.statements), ("lengths", geometry_figures.lengths)):
        if shown := {label: one[name] for label, one in panels.items() if one[name] is not None}:
            built.append(figure(shown))
    return built
