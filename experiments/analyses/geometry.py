"""Geometry of a job's vectors: ``geometry.json``, and columns of the results.

``experiment.analyses=[collapse]`` selects the cheap part (thesis 4.3.3), ``[geometry]`` all of it
(:mod:`mathamr.analysis`). Both analyse the posts of Task 1; a right document is a relevant one (grade 2 or 3 in
ARQMath). For ``[weighting]`` see :mod:`experiments.analyses.weighting`, for ``[failures]``
:mod:`experiments.analyses.failures`.

    {"settings": {"k": 10, "psi": 25, "samples": 1000, "size": null}, "sampled": {"posts": 2863, "of_posts": 2863},
     "collapse": {"formula": {"cosine": 0.48, "rank": 5.8, "vectors": 14.3, "documents": 2399}, ...},
     "run": {"accuracy": [0.88, 0.81, 0.94], "mrr": ..., "ndcg": ...},           # mean and 95 % interval
     "confidence": {"tested": [...], ...},                                # see experiments.analyses.confidence
     "ways": {"maxsim": {"queries": 104, "coe": [...], "roe": [...], "densities": {...}, ...}, "formula": ...},
     "thresholds": [{"psi": 0, "tau": 0.41, "metric": [...], "removed": 0.0}, ...],
     "chosen": 31, "of_paper": 20, "at_threshold": {"coe": [...], "roe": [...]},             # numbers of thresholds
     "isotropy": {"as they are": {"accuracy": [...], "i_a": 0.09, "i_b": 0.3}, "standardized": ...},
     "domain": {"corpora": {...}, ...},                                           # see experiments.analyses.domain
     "words": {"distances": [0.31, ...], "with_formulas": 2480, "without": 383},
     "statements": {"topics": ["A.1", ...], "cosines": [[...]], "plane": [[...]]},
     "lengths": {"tokens": [5.6, ...], "of_tokens": 4120, "pooled": [3.1, ...]},                # of text encoders
     "projection": {"posts": ["7", ...], "places": {...}, ...}}                  # see experiments.analyses.projection

A system without vectors has only ``run`` and ``confidence``. Of a large collection, a sample is analysed (``sampled``).
It has every right document, and others drawn at random, so accuracies in it are higher than those of ``run``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from experiments.analyses import confidence, domain, projection
from experiments.analyses.job_examples import natural
from experiments.analyses.sampling import sampler
from experiments.configuration.config import GeometryConfig
from experiments.plan import Job
from graphs.errors import AnalysisError, ConfigError
from mathamr.analysis import projections
from mathamr.analysis.bootstrap import accuracy, hits_of_run, ndcg, reciprocal_rank
from mathamr.analysis.collapse import KINDS, collapse
from mathamr.analysis.components import plane
from mathamr.analysis.isotropy import AS_THEY_ARE, TRANSFORMATIONS, isoscore, partition_isotropy
from mathamr.analysis.overlap import density, overlap
from mathamr.analysis.shift import nearest_distances
from mathamr.analysis.similarities import Floats, Survey, cosine, maxsim, of_kind, survey, unit_vectors
from mathamr.analysis.thresholds import highest_harmless, of_paper, threshold_curve
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.resampling import Bootstrapped, bootstrap
from mathamr.evaluation.runs import Qrels, Run
from mathamr.maxsim import VectorSets
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, TopicSet
from mathamr.systems.system import System
from mathamr.training.limits import check_bounds

ANALYSES = ("collapse", "geometry", "weighting", "failures")
OWN = "maxsim"
POINTS = 121  # of a density
DRAWN = 2_000  # largest number of nearest distances, or of lengths of tokens, that are kept
FEWEST_STATEMENTS = 3  # of a picture


def check(analyses: Sequence[str], config: GeometryConfig) -> None:
    """Raise a ``ConfigError`` for an unknown analysis or an invalid setting."""
    unknown = [name for name in analyses if name not in ANALYSES]
    if unknown:
        raise ConfigError(f"unknown experiment.analyses={unknown[0]}; choose from: {', '.join(ANALYSES)}")
    least = {"k": 1, "samples": 1, "size": 1, "posts": 1, "topics": 1, "statements": 2}
    check_bounds("geometry", config, at_least=least)
    if not 0 <= config.psi <= 100:
        raise ConfigError(f"geometry.psi={config.psi} is a percentile, from 0 to 100")
    if "geometry" in analyses:
        projections.check(config.projections)
        if config.general is not None:
            domain.read_corpus(Path(config.general))


def measure(
    system: System[Any], job: Job, encoded: Encoded, topic_set: TopicSet, qrels: Qrels, run: Run
) -> dict[str, Any]:
    """Return the content of ``geometry.json`` for one job, with the analyses that the experiment names.

    If something cannot be measured (no right document, a vector of zeros), ``left_out`` has the reason, and the job
    keeps its result.
    """
    whole, config = "geometry" in job.experiment.analyses, job.config.geometry
    content: dict[str, Any] = {}
    try:
        if whole:
            settings = {"k": config.k, "psi": config.psi, "samples": config.samples, "size": config.size}
            content |= {"settings": settings, "run": of_run(run, qrels, config, topic_set.relevant)}
            content |= {"confidence": confidence.of_run(run, qrels, config, topic_set.relevant)}
        select, counts = sampler(qrels, config.posts, topic_set.relevant)
        space = system.embedding_space(job.settings, encoded, topic_set, select)
        if space is not None:
            content |= {"sampled": counts, "collapse": of_collapse(space)}
        if space is not None and whole:
            texts = system.texts(space.posts)
            with_formulas = [post_id in texts and bool(texts[post_id].text.formulas) for post_id in space.posts]
            content |= of_space(space, qrels, with_formulas, config, topic_set.relevant)
            vectors = _one_each(space.documents, space.document_kinds)
            content |= {"domain": domain.of_space(space, vectors, texts, config.general)}
            if config.projections:
                tags = system.tags(space.posts)
                content |= {"projection": projection.of_posts(space.posts, vectors, texts, tags, config.projections)}
    except AnalysisError as error:
        content["left_out"] = str(error)
    return content


def of_run(run: Run, qrels: Qrels, config: GeometryConfig, relevant: int = RELEVANT) -> dict[str, Any]:
    """Return accuracy@k, MRR and nDCG@k of the results, with bootstrap intervals over topics."""
    found = hits_of_run(run, qrels, config.k, relevant=relevant)
    return _scores(config, accuracy(found, config.k), reciprocal_rank(found), ndcg(found, config.k))


def of_collapse(space: EmbeddingSpace) -> dict[str, Any]:
    """Measure the similarity of vectors within a document, by kind; empty for single-vector models."""
    if len(space.documents.vectors) == len(space.documents):
        return {}
    table = collapse(space.documents.vectors.numpy(), space.documents.ptr.numpy(), space.document_kinds)
    return {
        name: {key: _round(value) for key, value in asdict(one).items()} | {"documents": one.documents}
        for name, one in table.items()
    }


def of_space(
    space: EmbeddingSpace, qrels: Qrels, with_formulas: Sequence[bool], config: GeometryConfig, relevant: int = RELEVANT
) -> dict[str, Any]:
    """Return all measures except collapse.

    Args:
        with_formulas: True for each of the space's posts that has a formula.

    Raises:
        AnalysisError: no topic has a right document among the posts.
    """
    number = {post_id: place for place, post_id in enumerate(space.posts)}
    judged = {
        place: sorted(
            number[post] for post, grade in qrels.get(topic, {}).items() if grade >= relevant and post in number
        )
        for place, topic in enumerate(space.topics)
    }
    judged = {topic: right for topic, right in judged.items() if right}
    if not judged:
        raise AnalysisError("no topic has a right document among the posts with vectors: nothing to measure")
    ways = _ways(space)
    own = next(iter(ways))
    surveys = {name: _survey(way, judged, config) for name, way in ways.items()}
    found = {name: one for name, one in surveys.items() if one is not None}
    if own not in found:
        raise AnalysisError(f"no topic can be compared with a right document by the vectors of {own}")
    mine, k = found[own], config.k
    curve = threshold_curve(mine, min(k, mine.top.shape[1]), samples=config.samples, size=config.size)
    best = highest_harmless(curve)
    above = overlap(mine, psi=100 * best.removed, samples=config.samples, size=config.size)
    return {
        "own": own,
        "judged": len(judged),
        "ways": {name: _way(one, config) for name, one in found.items()},
        "thresholds": [
            {"psi": one.psi, "tau": _round(one.tau), "metric": _interval(one.metric), "removed": _round(one.removed)}
            for one in curve
        ],
        "chosen": curve.index(best),
        "of_paper": curve.index(of_paper(curve)),
        "at_threshold": {"coe": _interval(above.coe), "roe": _interval(above.roe)},
        "isotropy": _isotropy(ways[own], judged, config),
        "words": _words(_one_each(space.documents, space.document_kinds), with_formulas),
        "statements": (statements := _statements(space, qrels, config, relevant)),
        "lengths": _lengths(space, statements),
    }


def columns(content: dict[str, Any]) -> dict[str, float]:
    """Return the scalars of ``geometry.json``, for a row of the results."""
    collapsed = content.get("collapse", {}).items()
    row = {f"collapse_{kind}_{key}": one[key] for kind, one in collapsed for key in ("cosine", "rank")}
    for name, (mean, low, high) in content.get("run", {}).items():
        row |= {f"{name}_at_k": mean, f"{name}_interval": _round(high - low)}
    if "ways" in content:
        own = content["ways"][content["own"]]
        best = content["thresholds"][content["chosen"]]
        plain = content["isotropy"][AS_THEY_ARE]
        row |= {"coe": own["coe"][0], "roe": own["roe"][0], "i_a": plain["i_a"], "i_b": plain["i_b"]}
        row |= {"threshold": best["tau"], "threshold_psi": best["psi"], "threshold_removed": best["removed"]}
        row |= {"threshold_accuracy": best["metric"][0]}
    return {name: value for name, value in row.items() if value is not None}


_Judged = dict[int, list[int]]  # topics with a right document among the posts, and these, as numbers in the space


@dataclass(frozen=True)
class _Way:
    """A comparison: sets of vectors, and the topics and posts (numbers in the space) that have any."""

    queries: VectorSets
    topics: NDArray[np.int64]
    documents: VectorSets
    posts: NDArray[np.int64]


def _ways(space: EmbeddingSpace) -> dict[str, _Way]:
    """Return the ways to compare: the model's own way first, then each kind of vectors alone.

    Its own way is MaxSim over all vectors, or the comparison of document vectors.
    """
    both = [set(np.unique(kinds).tolist()) for kinds in (space.query_kinds, space.document_kinds)]
    kinds = sorted(both[0] & both[1])
    alone = {
        KINDS[kind]: _Way(
            *of_kind(space.queries, space.query_kinds, kind), *of_kind(space.documents, space.document_kinds, kind)
        )
        for kind in kinds
    }
    every = [np.arange(len(sets)) for sets in (space.queries, space.documents)]
    ways = {OWN: _Way(space.queries, every[0], space.documents, every[1]), **alone}
    if space.single_vector and "document" in alone:
        return {"document": alone["document"], **ways}
    return alone if len(kinds) == 1 and both[0] == both[1] else ways


def _survey(way: _Way, judged: _Judged, config: GeometryConfig) -> Survey | None:
    """Return all similarities of a comparison, for topics with vectors and a right document with vectors."""
    place = {int(post): number for number, post in enumerate(way.posts)}
    row = {int(topic): number for number, topic in enumerate(way.topics)}
    pairs = [
        (row[topic], [place[post] for post in right if post in place])
        for topic, right in judged.items()
        if topic in row
    ]
    pairs = [(number, right) for number, right in pairs if right]
    if not pairs:
        return None
    some = way.queries.select(torch.tensor([number for number, _ in pairs]))
    return survey(maxsim(some, way.documents), [right for _, right in pairs], config.k)


def _way(found: Survey, config: GeometryConfig) -> dict[str, Any]:
    """Return accuracies, overlaps and the three distributions of a comparison."""
    k = min(config.k, found.top.shape[1])
    estimates = overlap(found, psi=config.psi, samples=config.samples, size=config.size)
    distributions = {"random": found.random, "correct": found.correct, "top-k": found.top}
    every = np.concatenate([values.ravel() for values in distributions.values()])
    margin = max(0.05 * float(np.ptp(every)), 0.01)  # the density goes beyond the values
    points = np.linspace(every.min() - margin, every.max() + margin, POINTS).round(5).tolist()
    return {
        "queries": len(found),
        **_scores(config, accuracy(found, k), reciprocal_rank(found), ndcg(found, k)),
        "coe": _interval(estimates.coe),
        "roe": _interval(estimates.roe),
        "points": points,
        "densities": {
            name: [_round(value) for value in density(values, points)] for name, values in distributions.items()
        },
    }


def _isotropy(way: _Way, judged: _Judged, config: GeometryConfig) -> dict[str, Any]:
    """Return accuracy and both measures of the vectors, as they are and transformed; fits use the posts."""
    vectors = way.documents.vectors.float().numpy()
    moves: dict[str, Callable[[Floats], Floats]] = {AS_THEY_ARE: lambda array: array}
    if len(vectors) > 1:
        moves |= {name: fit(vectors) for name, fit in TRANSFORMATIONS.items()}
    table = {}
    for name, move in moves.items():
        moved = move(vectors)
        documents = VectorSets(torch.from_numpy(moved), way.documents.ptr)
        queries = VectorSets(torch.from_numpy(move(way.queries.vectors.float().numpy())), way.queries.ptr)
        found = _survey(_Way(queries, way.topics, documents, way.posts), judged, config)
        assert found is not None  # the same topics and posts as of the vectors as they are
        values = accuracy(found, min(config.k, found.top.shape[1]))
        table[name] = {
            "accuracy": _mean(values, config),
            "i_a": _round(partition_isotropy(moved)),
            "i_b": _round(isoscore(moved)),
        }
    return table


def _words(vectors: Floats, with_formulas: Sequence[bool]) -> dict[str, Any] | None:
    """Measure distances from posts with formulas to the nearest without; None if all posts are of one kind."""
    among = np.asarray(with_formulas, dtype=bool)
    domain, general = np.flatnonzero(among), np.flatnonzero(~among)
    if not domain.size or not general.size:
        return None
    if domain.size > DRAWN:
        domain = np.sort(np.random.default_rng(0).choice(domain, DRAWN, replace=False))
    distances = nearest_distances(vectors[domain], vectors[general])
    return {
        "distances": [_round(value) for value in distances],
        "with_formulas": int(among.sum()),
        "without": int(general.size),
    }


def _statements(space: EmbeddingSpace, qrels: Qrels, config: GeometryConfig, relevant: int) -> dict[str, Any] | None:
    """Return cosines of the right documents of the topics that have most, and their places in a plane."""
    number = {post_id: place for place, post_id in enumerate(space.posts)}
    taken: set[str] = set()
    groups: list[tuple[str, list[str]]] = []
    right = {
        topic: sorted(
            (post for post, grade in grades.items() if grade >= relevant and post in number),
            key=lambda post: (-grades[post], natural(post)),
        )
        for topic, grades in ((topic, qrels.get(topic, {})) for topic in space.topics)
    }
    for topic in sorted(right, key=lambda name: (-len(right[name]), natural(name))):
        mine = [post for post in right[topic] if post not in taken][: config.statements]
        if len(groups) < config.topics and len(mine) > 1:
            groups.append((topic, mine))
            taken |= set(mine)
    posts = [post for _, mine in groups for post in mine]
    if len(posts) < FEWEST_STATEMENTS:
        return None
    vectors = _one_each(space.documents, space.document_kinds)[[number[post] for post in posts]]
    return {
        "topics": [topic for topic, mine in groups for _ in mine],
        "posts": posts,
        "cosines": [[_round(value) for value in row] for row in cosine(vectors, vectors).rows(0, len(posts))],
        "plane": [[_round(value) for value in row] for row in plane(unit_vectors(vectors))],
    }


def _lengths(space: EmbeddingSpace, statements: dict[str, Any] | None) -> dict[str, Any] | None:
    """Measure the lengths of the statements' token vectors; None for a model without tokens."""
    if space.lengths is None or statements is None:
        return None
    tokens, pooled = space.lengths(statements["posts"])
    some = tokens if len(tokens) <= DRAWN else np.random.default_rng(0).choice(tokens, DRAWN, replace=False)
    return {
        "tokens": [_round(value) for value in some],
        "of_tokens": len(tokens),
        "pooled": [_round(value) for value in pooled],
    }


def _one_each(sets: VectorSets, kinds: NDArray[np.integer]) -> Floats:
    """Return a vector for each set: that of the document, or the mean for virtual nodes of structure none."""
    last = (sets.ptr[1:] - 1).numpy()
    if (np.asarray(kinds)[last] == KINDS.index("document")).all():
        return sets.document_vectors().float().numpy()
    owner = np.repeat(np.arange(len(sets)), sets.sizes.numpy())
    sums = np.zeros((len(sets), sets.vectors.shape[1]))
    np.add.at(sums, owner, sets.vectors.float().numpy())
    return sums / sets.sizes.numpy()[:, None]


def _scores(config: GeometryConfig, right: Floats, ranks: Floats, gains: Floats) -> dict[str, list[float | None]]:
    values = {"accuracy": right, "mrr": ranks, "ndcg": gains}
    return {name: _mean(one, config) for name, one in values.items()}


def _mean(values: Floats, config: GeometryConfig) -> list[float | None]:
    return _interval(bootstrap(values, samples=config.samples, size=config.size))


def _interval(sampled: Bootstrapped) -> list[float | None]:
    """Return the mean over the samples, and the lower and upper end of the 95 % interval."""
    return [_round(value) for value in (sampled.mean, *sampled.interval())]


def _round(value: float) -> float | None:
    """Round to five digits; None for a value that is not finite, which JSON cannot hold."""
    return round(float(value), 5) if np.isfinite(value) else None
