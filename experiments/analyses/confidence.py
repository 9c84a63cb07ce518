"""Confidence of single topics: fitted to the topics of some years, tested on those of another.

Success is a relevant document among the first k; documents without a judgment do not count. Part of ``geometry.json``:

    {"evidence": {"top": {"2020": 0.62, "2021": 0.71}, "margin": ...},                  # AUC of each alone
     "tested": [{"on": "2020", "by": "2021", "topics": 45, "succeeded": 0.8, "auc": [0.7, 0.55, 0.84], "error": 0.08,
                 "constant": 0.03, "chance": [0.09, 0.15], "bins": [[0.74, 0.7, 10], ...]}, ...],
     "fitted": {"k": 10, "theta": 0.41, ...}}                                           # to the topics of all years

``auc`` has a 95 % interval. ``error`` is the expected calibration error, ``constant`` that of the share of successes of
the other years as the confidence of every topic, ``chance`` the mean and 95th percentile of the error if the
confidences are exactly the probabilities. Topics without a year are split into five folds by their order, and tested
together.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from experiments.analyses.job_examples import natural
from experiments.configuration.config import GeometryConfig
from graphs.errors import AnalysisError
from mathamr.analysis.confidence import EVIDENCE, Confidence, evidence
from mathamr.evaluation.calibration import auc, auc_interval, calibration_error, error_by_chance, reliability
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.runs import Qrels, Run
from mathamr.ranking.judged import year_of

FOLDS = 5


@dataclass(frozen=True)
class _Asked:
    """Topic with its year or fold, the scores of its results, and its success."""

    part: str
    scores: Sequence[float]
    success: int


def of_run(run: Run, qrels: Qrels, config: GeometryConfig, relevant: int = RELEVANT) -> dict[str, Any]:
    """Return tests of the confidences of a run's topics; topics without a result are left out.

    If topics cannot be fitted or tested (all succeed, one year), ``left_out`` has the reason.
    """
    asked = _asked(run, qrels, config.k, relevant)
    parts = sorted({one.part for one in asked})
    years = not any(part.startswith("fold") for part in parts)
    try:
        if len(asked) < 2:
            raise AnalysisError("fewer than two topics have results")
        if len(parts) < 2:
            raise AnalysisError(f"{len(asked)} topics of {parts[0]}; name two years or more")
        held = {part: _held_out(asked, part, config) for part in parts}
        groups = {part: [part] for part in parts} if years else {"each fold": parts}
        return {
            "evidence": _alone(asked, groups, config),
            "tested": [_tested(name, group, asked, held) for name, group in groups.items()],
            "fitted": _fit(asked, config).record(),
        }
    except AnalysisError as error:
        return {"left_out": str(error)}


def _asked(run: Run, qrels: Qrels, k: int, relevant: int) -> list[_Asked]:
    judged = [topic for topic in sorted(qrels, key=natural) if run.rankings.get(topic)]
    found = []
    for place, topic in enumerate(judged):
        hits, year = run.rankings[topic], year_of(topic)
        success = any(qrels[topic].get(hit.doc_id, 0) >= relevant for hit in hits[:k])
        part = f"fold {place % FOLDS + 1}" if year is None else str(year)
        found.append(_Asked(part, [hit.score for hit in hits], int(success)))
    return found


def _fit(asked: Sequence[_Asked], config: GeometryConfig) -> Confidence:
    success = [one.success for one in asked]
    return Confidence.fit([one.scores for one in asked], success, k=config.k, psi=config.psi)


def _held_out(asked: Sequence[_Asked], part: str, config: GeometryConfig) -> list[float]:
    """Return the confidences of the topics of a part, fitted to all others."""
    fitted = _fit([one for one in asked if one.part != part], config)
    return [fitted(one.scores) for one in asked if one.part == part]


def _tested(name: str, group: Sequence[str], asked: Sequence[_Asked], held: dict[str, list[float]]) -> dict[str, Any]:
    """Return the measures of the confidences of one year, or of all folds."""
    confidences = np.array([value for part in group for value in held[part]])
    mine = [one.success for part in group for one in asked if one.part == part]
    shares = {part: np.mean([one.success for one in asked if one.part != part]) for part in group}
    constant = np.concatenate([np.full(len(held[part]), shares[part]) for part in group])
    chance = error_by_chance(confidences)
    return {
        "on": name,
        "by": ", ".join(sorted({one.part for one in asked} - set(group))) or "the other folds",
        "topics": len(mine),
        "succeeded": _round(np.mean(mine)),
        "auc": [_round(value) for value in (auc(confidences, mine), *auc_interval(confidences, mine))],
        "error": _round(calibration_error(confidences, mine)),
        "constant": _round(calibration_error(constant, mine)),
        "chance": [_round(chance.mean()), _round(np.quantile(chance, 0.95))],
        "bins": [[_round(mean), _round(share), count] for mean, share, count in reliability(confidences, mine)],
    }


def _alone(
    asked: Sequence[_Asked], groups: dict[str, list[str]], config: GeometryConfig
) -> dict[str, dict[str, float]]:
    """Return the AUC of each evidence alone; theta is that of all topics."""
    theta = _fit(asked, config).theta
    table: dict[str, dict[str, float]] = {name: {} for name in EVIDENCE}
    for group, parts in groups.items():
        mine = [one for one in asked if one.part in parts]
        found = np.stack([evidence(one.scores, config.k, theta) for one in mine])
        for name, values in zip(EVIDENCE, found.T, strict=True):
            table[name][group] = _round(auc(values, [one.success for one in mine]))
    return table


def _round(value: Any) -> float:
    return round(float(value), 5)
