"""Scores under other weights of virtual nodes (``experiment.analyses=[weighting]``): nDCG' of each way.

    outputs/weighting/jobs/base-seed42/weighting.json      {"as it is": 0.709, "idf, 0.7": 0.704, ...}

The ways are those of :mod:`mathamr.analysis.weighting`. Of a large collection, the judged posts are scored, and others
drawn at random, from which the frequency of a vector follows; nDCG' ignores posts without a judgment. "As it is" is
normalised MaxSim, also if the job searches by another strategy.
"""

from __future__ import annotations

import numpy as np

from mathamr.analysis.weighting import weighted
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import MAX_PER_TOPIC, Qrels, Run
from mathamr.stages.topic_sets import EmbeddingSpace

FILE = "weighting.json"


def weighted_scores(space: EmbeddingSpace, qrels: Qrels) -> dict[str, float]:
    """Return nDCG' of each way for a space of :func:`experiments.analyses.sampling.judged_space`."""
    found = {}
    for name, scores in weighted(space.queries, space.query_kinds, space.documents).items():
        rankings = {}
        for topic, row in zip(space.topics, scores, strict=True):
            order = np.argsort(-row, kind="stable")[:MAX_PER_TOPIC]
            rankings[topic] = [(space.posts[place], float(row[place])) for place in order]
        found[name] = evaluate(Run.from_results("weighting", rankings), qrels).aggregate["ndcg_prime"]
    return found
