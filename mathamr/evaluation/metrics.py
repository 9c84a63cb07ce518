"""ARQMath measures: nDCG', MAP', P'@10 and Bpref, with the official protocol.

Five posts are judged for a topic; the run returns four of them and ``x``, a post without a judgment:

>>> qrels = {"A.1": {"a": 3, "b": 0, "c": 2, "d": 1, "e": 0}, "A.2": {"f": 2}}
>>> run = Run.from_results("demo", {"A.1": [("b", 5.0), ("x", 4.0), ("a", 3.0), ("d", 2.0), ("c", 1.0)]})
>>> result = evaluate(run, qrels)
>>> {name: round(value, 4) for name, value in result.per_topic["A.1"].items()}
{'ndcg_prime': 0.6834, 'map_prime': 0.5, 'p_prime_10': 0.2, 'bpref': 0.25, 'recall_1000': 1.0}
>>> round(result.aggregate["ndcg_prime"], 4), result.topics  # A.2 is missing from the run: it counts as 0
(0.3417, 2)

By hand, A.1: without ``x`` the ranking is b a d c. DCG = 0 + 3/log2(3) + 1/log2(4) + 2/log2(5) = 3.2541 over the ideal
3 + 2/log2(3) + 1/log2(4) = 4.7619, hence 0.6834; the grade is the gain (not 2^grade - 1). MAP' = (1/2 + 2/4)/2.
Bpref = ((1 - 1/2) + (1 - 2/2))/2: one irrelevant post ranks above a, two above c, of min(2 relevant, 3 irrelevant).

Protocol (the organisers' scripts and trec_eval): repeated posts dropped, cut at 1,000, unjudged documents dropped (the
prime), linear gains, relevance from grade 2 for MAP', P'@10 and Bpref, mean over all topics of the qrels. Other
collections may have another lowest relevant grade, e.g. 1 if grades are 0 and 1:

>>> binary = evaluate(run, {"A.1": {"a": 1, "b": 0}}, measures=measures_of_grade(1), relevant=1)
>>> binary.aggregate["map_prime"], evaluate(run, {"A.1": {"a": 1, "b": 0}}).aggregate["map_prime"]
(0.5, 0.0)

Other collections can use other measures, by their names in ir_measures. With these gains, nDCG has gains of
2^grade - 1: (7/2 + 1/log2(5) + 3/log2(6)) / (7 + 3/log2(3) + 1/2):

>>> papers = {name: measure_of(name) for name in ("Success@1", "RR(rel=2)@10", "nDCG(gains={2:3,3:7})@10")}
>>> {name: round(value, 4) for name, value in evaluate(run, qrels, measures=papers).per_topic["A.1"].items()}
{'Success@1': 0.0, 'RR(rel=2)@10': 0.3333, 'nDCG(gains={2:3,3:7})@10': 0.542}
"""

from __future__ import annotations

import math
from collections.abc import Callable, Container, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from graphs.corpus.qrels import RELEVANT as RELEVANT
from graphs.corpus.qrels import relevant_grade as relevant_grade
from graphs.errors import ConfigError, EvaluationError
from graphs.extensions import MEASURES, code_identity, described, loaded, named
from mathamr.evaluation.runs import MAX_PER_TOPIC, Hit, Qrels, Run, Task, official_order

if TYPE_CHECKING:
    from ir_measures import Measure

Regime = Literal["full", "judged", "mini"]
"""Indexed documents: all answers, only judged posts, or a part of the collection with qrels restricted to it."""


TopicMeasure = Callable[[Any, Any], float]
"""Function of the judgments and the results of a topic, both tables of pandas, which returns its score."""
_OWN: dict[str, TopicMeasure] = {}


def measures_of_grade(relevant: int) -> dict[str, Measure]:
    """Return the ARQMath measures by name, with ``relevant`` as the lowest relevant grade.

    ``recall_1000`` (relevant judged posts among the first 1,000) is for development only.

    >>> str(measures_of_grade(1)["bpref"]), str(measures_of_grade(2)["bpref"])
    ('Bpref', 'Bpref(rel=2)')
    """
    from ir_measures import AP, Bpref, P, R, nDCG  # slow to import

    return {
        "ndcg_prime": nDCG(judged_only=True) @ MAX_PER_TOPIC,
        "map_prime": AP(rel=relevant, judged_only=True),
        "p_prime_10": P(rel=relevant, judged_only=True) @ 10,
        "bpref": Bpref(rel=relevant),
        "recall_1000": R(rel=relevant) @ MAX_PER_TOPIC,
    }


@dataclass(frozen=True, slots=True)
class Evaluation:
    """Scores of one run by measure: the mean over topics, and the score of each topic."""

    aggregate: dict[str, float]
    per_topic: dict[str, dict[str, float]]

    @property
    def topics(self) -> int:
        """Number of topics in the mean: all topics of the qrels."""
        return len(self.per_topic)


def evaluate(
    run: Run,
    qrels: Qrels,
    *,
    task: Task | None = None,
    collection: Container[str] | None = None,
    visual_ids: Mapping[str, str] | None = None,
    measures: Mapping[str, Measure] | None = None,
    relevant: int = RELEVANT,
) -> Evaluation:
    """Score ``run`` against ``qrels`` by ``measures``, by default ARQMath's, with the lowest relevant grade.

    ``task`` defaults to the run's. ``visual_ids`` (formula id -> visual id) is needed for Task 2 only.
    ``collection`` (the indexed post ids, in Task 2 visual ids) restricts the qrels in the regime ``mini``: see
    :func:`restrict`. Raises :class:`EvaluationError` if run and qrels share no topic, or no formula of the run has a
    visual id, or a measure is not a finite number.
    """
    task = run.task if task is None else task
    measures = measures_of_grade(relevant) if measures is None else measures
    if (task == 2) != (visual_ids is not None):
        raise EvaluationError(
            f"Task {task} with{'out' if visual_ids is None else ''} visual ids: Task 2 is judged by visual id and "
            "needs the map from formula ids, Task 1 takes none"
        )
    if collection is not None:
        qrels = restrict(qrels, collection, relevant)
    if not qrels:
        raise EvaluationError("the qrels have no topic" + ("" if collection is None else " left in regime 'mini'"))
    if not run.rankings:
        raise EvaluationError(f"run {run.name!r} has no result for any topic; none of the topics could be read")
    if not run.rankings.keys() & qrels.keys():
        raise EvaluationError(
            f"run {run.name!r} and qrels have no topic in common: {min(run.rankings)} ... against {min(qrels)} ...; "
            "give a run of the topics that these qrels judge, with the same ids"
        )
    rankings = {topic_id: official_order(hits, task) for topic_id, hits in run.rankings.items() if topic_id in qrels}
    ordered = {topic_id: _documents(hits, visual_ids) for topic_id, hits in rankings.items()}
    if visual_ids is not None and not any(ordered.values()):
        raise EvaluationError(f"no formula of run {run.name!r} has a visual id; give the map of its collection")
    import ir_measures  # slow to import

    # Ranks replace scores: the order, ties included, is settled above and must not change. Numbers replace the ids of
    # topics: a program behind some measures reads only numbers, and 2020-1 and 2021-1 as the same one.
    numbers = {topic_id: str(number) for number, topic_id in enumerate(qrels, 1)}
    topics = {number: topic_id for topic_id, number in numbers.items()}
    places = {
        numbers[t]: {doc_id: float(len(docs) - i) for i, doc_id in enumerate(docs)} for t, docs in ordered.items()
    }
    judged = {numbers[t]: grades for t, grades in qrels.items()}
    per_topic = {topic_id: dict.fromkeys(measures, 0.0) for topic_id in qrels}
    names: dict[Measure, list[str]] = {}  # equal measures may have several names
    for name, measure in measures.items():
        names.setdefault(measure, []).append(name)
    for metric in ir_measures.iter_calc(list(names), judged, places):
        topic_id = topics[metric.query_id]
        if not math.isfinite(metric.value):
            raise EvaluationError(f"{metric.measure} of topic {topic_id} is {metric.value}; give a finite number")
        per_topic[topic_id] |= dict.fromkeys(names[metric.measure], float(metric.value))
    aggregate = {name: float(np.mean([scores[name] for scores in per_topic.values()])) for name in measures}
    return Evaluation(aggregate, per_topic)


def own_measure(name: str) -> Callable[[TopicMeasure], TopicMeasure]:
    """Register a function as the measure ``name``, or ``name@10`` of the first ten results (docs/extending.md).

    The function takes two pandas tables of a topic and returns its score: the judgments (``doc_id``, ``relevance``),
    and the results, best first (``doc_id``, ``score``, which is higher for better ranks).
    """

    def register(function: TopicMeasure) -> TopicMeasure:
        _OWN[name] = function
        return function

    return register


def measure_identity(name: str) -> str:
    """Return the name of a measure and, unless it is of ir_measures, the identity of its code, for keys.

    >>> measure_identity("nDCG@10")
    'nDCG@10'

    Raises:
        ConfigError: two packages, or a package and own_measure, have the measure; or its package is faulty.
    """
    own, point = _own(name)
    return name if own is None else f"{name} {code_identity(own, point)}"


def _own(name: str) -> tuple[TopicMeasure | None, EntryPoint | None]:
    """Return the function of a measure, and the entry point of its package; None for each that it does not have."""
    own = name.partition("@")[0]
    if (point := named(MEASURES, own)) is None:
        return _OWN.get(own), None
    place = described("measure", point)
    if not callable(function := loaded(point, place)):
        raise ConfigError(f"{place} is not a function of the judgments and the results of a topic; name one")
    if _OWN.get(own, function) is not function:
        raise ConfigError(f"two measures are called {own}: own_measure({own!r}) and {place}; rename one")
    return function, point


def _place(own: str, point: EntryPoint | None) -> str:
    """Return the place that a message about a measure begins with, which is no measure of ir_measures."""
    return f"own_measure({own!r})" if point is None else described("measure", point)


def measure_of(name: str) -> Measure:
    """Return the measure with this name in ir_measures, e.g. ``Success(rel=2)@1``, of a package or of own_measure.

    Raises:
        EvaluationError: an unknown measure, or a name of both.
        ConfigError: as :func:`measure_identity`.
    """
    import ir_measures

    own, is_cut, cutoff = name.partition("@")
    function, point = _own(name)
    if function is not None and own in ir_measures.measures.registry:
        raise EvaluationError(f"{_place(own, point)}: ir_measures has a measure of this name; choose another")
    try:
        if function is not None:
            measure = ir_measures.define_byquery(function, name=own)
            if is_cut and int(cutoff) < 1:
                raise ValueError(cutoff)  # it would cut results from the end
            return measure @ int(cutoff) if is_cut else measure
        return ir_measures.parse_measure(name)
    except (ValueError, NameError, KeyError) as error:
        raise EvaluationError(f"{name!r} is not a measure of ir_measures; use e.g. nDCG@10 or RR(rel=2)") from error


def check_measures(measures: Mapping[str, Measure]) -> None:
    """Compute measures for a topic with two results; raise EvaluationError, which names the first that fails."""
    import ir_measures

    judged = [ir_measures.Qrel("1", doc, grade) for doc, grade in (("1", 2), ("2", 0))]
    found = [ir_measures.ScoredDoc("1", doc, score) for doc, score in (("1", 2.0), ("2", 1.0))]
    for measure in measures.values():
        try:
            ir_measures.calc_aggregate([measure], judged, found)
        except Exception as error:  # of programs and packages behind a measure
            reason = " ".join(str(error).split()) or type(error).__name__
            place, way_out = str(measure), "use e.g. nDCG@10 or RR(rel=2)"
            function, point = _own(place)
            if function is not None:
                place = _place(place.partition("@")[0], point)
                reason, way_out = f"{type(error).__name__}: {reason}", "let it return a number"
            raise EvaluationError(f"{place} cannot be computed ({reason}); {way_out}") from error


def judged_results(run: Run, qrels: Qrels, visual_ids: Mapping[str, str] | None = None) -> int:
    """Return the number of results that have a judgment.

    >>> judged_results(Run("r", {"A.1": [Hit("a", 2.0), Hit("b", 1.0)]}), {"A.1": {"b": 0}, "A.2": {"a": 3}})
    1
    """
    judged = 0
    for topic, hits in run.rankings.items():
        judged += len(qrels.get(topic, {}).keys() & _documents(hits, visual_ids))
    return judged


def restrict(qrels: Qrels, collection: Container[str], relevant: int = RELEVANT) -> Qrels:
    """Return the qrels of the regime ``mini``: only documents of the collection and topics with a relevant one.

    >>> restrict({"A.1": {"a": 2, "b": 3}, "A.2": {"a": 1, "c": 2}}, {"a"})
    {'A.1': {'a': 2}}
    """
    inside = {t: {doc: grade for doc, grade in docs.items() if doc in collection} for t, docs in qrels.items()}
    return {t: docs for t, docs in inside.items() if max(docs.values(), default=0) >= relevant}


def _documents(hits: Sequence[Hit], visual_ids: Mapping[str, str] | None) -> list[str]:
    """Return the ids of results; in Task 2 their visual ids, each once, without formulas that have none."""
    if visual_ids is None:
        return [hit.doc_id for hit in hits]
    return list(dict.fromkeys(visual_ids[hit.doc_id] for hit in hits if hit.doc_id in visual_ids))
