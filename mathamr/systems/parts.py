"""Jobs of other conditions, of the same seed, that a system is made of: their scores and what they cost.

Such a job runs after its parts (:attr:`experiments.plan.Job.needs`). A query costs what all parts take one after the
other and the work of putting them together; the index is all of theirs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from graphs.shared_files import read_json
from mathamr.evaluation.result_names import TestName, column, file_name
from mathamr.evaluation.runs import MAX_PER_TOPIC, Run, Task, read_run
from mathamr.retrieval.fusion import merge_by_visual_id, rankings_of
from mathamr.retrieval.scores import SCORES, TopicScores, read_scores, scores_of_run, with_floor
from mathamr.stages.settings import JobSettings
from mathamr.stages.topic_sets import TopicSet

RANKINGS = "rankings.json"
"""The record beside the run files of a job."""

_SUMMED = ("index_bytes", "vectors", "formulas")


def places_of(settings: JobSettings, conditions: Sequence[str]) -> list[Path]:
    """Return the folders of the jobs of other conditions, of the same seed."""
    jobs = settings.outputs / settings.experiment / "jobs"
    return [jobs / f"{condition}-seed{settings.seed}" for condition in conditions]


def scores_left(place: Path, test_name: TestName, k: int) -> dict[str, TopicScores]:
    """Return the scores that a job has left, by topic: those to its depth, or else those of its run file.

    Args:
        k: most results of a topic in its run file, if the job has not recorded which lists are cut.

    Raises:
        RetrievalError: the file of scores is damaged.
    """
    path = place / file_name(test_name, SCORES)
    found = read_scores(path) if path.exists() else scores_of_run(run_left(place, test_name, 1), k)
    cut = cut_topics(place, test_name)
    return found if cut is None else {topic: with_floor(own.scores, cut=topic in cut) for topic, own in found.items()}


def cut_topics(place: Path, test_name: TestName) -> Collection[str] | None:
    """Return the topics whose list a job has cut; None if an older version of this package ran the job."""
    cut: dict[str, list[str]] = (read_json(place / RANKINGS) or {}).get("cut", {})
    return cut.get(str(test_name))


def run_left(place: Path, test_name: TestName, task: Task) -> Run:
    """Return the run that a job has left; one that found nothing for any topic is empty."""
    path = place / file_name(test_name, "run.tsv")
    return read_run(path, task=task) if path.stat().st_size else Run(place.name, {}, task)


def formula_scores(
    runs: Sequence[Run], k: int, visual_ids: Mapping[str, str], cuts: Sequence[Collection[str] | None]
) -> list[dict[str, TopicScores]]:
    """Return the scores of runs of Task 2 by topic; formulas of one visual id have one name in all of them.

    Args:
        k: most results of a topic in a run whose ``cuts`` are unknown.
        cuts: topics whose list is cut in each run, as :func:`cut_topics` returns them.
    """
    rankings = [rankings_of(run) for run in runs]
    known = [
        {topic for topic, ranking in own.items() if len(ranking) >= min(k, MAX_PER_TOPIC)} if cut is None else cut
        for own, cut in zip(rankings, cuts, strict=True)
    ]
    return [
        {topic: with_floor(dict(ranking), cut=topic in cut) for topic, ranking in own.items()}
        for own, cut in zip(merge_by_visual_id(rankings, visual_ids), known, strict=True)
    ]


def joint_speed(
    settings: JobSettings, conditions: Sequence[str], topic_set: TopicSet, seconds: float
) -> dict[str, float]:
    """Return the queries a second of all parts one after the other; empty where one of them is unknown.

    Args:
        seconds: duration of putting the parts together, for all topics.
    """
    speed = column(topic_set.test_name, "queries_per_second")
    rates = [float((read_json(place / "result.json") or {}).get(speed, 0)) for place in places_of(settings, conditions)]
    if not all(rates):
        return {}
    return {"queries_per_second": 1 / (sum(1 / rate for rate in rates) + seconds / len(topic_set.topics))}


def joint_size(settings: JobSettings, conditions: Sequence[str], topic_set: TopicSet) -> dict[str, float]:
    """Return the sums of the sizes of all parts."""
    results = [read_json(place / "result.json") or {} for place in places_of(settings, conditions)]
    columns = {name: column(topic_set.test_name, name) for name in _SUMMED}
    known = {name: [own[key] for own in results if key in own] for name, key in columns.items()}
    return {name: sum(values) for name, values in known.items() if values}
