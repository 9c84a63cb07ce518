"""Analyses of a job that its experiment names, in files beside its result.

columns = write(job, place, system, encoded, topic_set, run)  # geometry.json, weighting.json, failures.md
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

from experiments.analyses import failures, geometry, sampling, weighting
from experiments.plan import Job
from graphs.shared_files import write_json
from graphs.whole_file import write_whole
from mathamr.evaluation.runs import Run
from mathamr.stages.topic_sets import Encoded, TopicSet
from mathamr.systems.judging import judged
from mathamr.systems.system import System


def write(
    job: Job, place: Path, system: System[Any], encoded: Encoded, topic_set: TopicSet, run: Run
) -> dict[str, float]:
    """Run the experiment's analyses; return their columns of the results."""
    analyses = set(job.experiment.analyses)
    qrels = judged(topic_set)
    if analyses & {"weighting", "failures"}:
        space = sampling.judged_space(system, job, encoded, topic_set, qrels)
        if "weighting" in analyses:
            write_json(place / weighting.FILE, {} if space is None else weighting.weighted_scores(space, qrels))
        if "failures" in analyses and space is not None:
            explain = partial(system.explain, job.settings, encoded)
            text = failures.describe(space, topic_set, qrels, run, explain, system.texts)
            write_whole(place / failures.FILE, text)
    if not analyses & {"collapse", "geometry"}:
        return {}
    content = geometry.measure(system, job, encoded, topic_set, qrels, run)
    write_json(place / "geometry.json", content)
    return geometry.columns(content)
