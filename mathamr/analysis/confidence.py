"""Confidence that a ranking has a right document among its first k, from its scores alone.

Here, questions with a clear first result succeeded, and the others did not:

>>> clear, flat = [[0.9, 0.5, 0.4], [0.8, 0.4, 0.3]], [[0.5, 0.5, 0.4], [0.4, 0.4, 0.4]]
>>> confidence = Confidence.fit([*clear, *flat], [1, 1, 0, 0], k=2)
>>> confidence([0.9, 0.4, 0.3]) > 0.6 > 0.4 > confidence([0.45, 0.44, 0.43])
True

Evidence of a question, computed from its scores s_1 >= s_2 >= ...:

==========  ==============================================================================================
``top``     s_1
``margin``  s_1 - s_2
``gap``     s_1 - s_k
``lead``    mean of the first k minus the mean of all further results, in standard deviations of the latter
``above``   share of the first k above theta, the psi-th percentile of the first k of all fitted questions
==========  ==============================================================================================

``above`` is the paper's overlap (its section II-C) for one question: theta is the threshold of COE. A logistic
regression with an L2 penalty on standardized evidence gives the confidence; the penalty is chosen by leaving out a
tenth of the questions in turn. The confidence is valid for one system and one collection;
:mod:`mathamr.evaluation.calibration` measures it on questions outside the fit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from graphs.errors import AnalysisError
from mathamr.analysis.similarities import Floats

EVIDENCE = ("top", "margin", "gap", "lead", "above")
FOLDS = 10
PENALTIES = (1.0, 10.0, 100.0)  # of half the sum of squared weights, beside the sum of losses

Scores = Sequence[float]


@dataclass(frozen=True)
class Confidence:
    """Logistic regression of success on the evidence of a question.

    Attributes:
        k: number of results among which a right document is a success.
        theta: threshold of ``above``.
        mean: mean of each evidence among the fitted questions.
        scale: standard deviation of each evidence.
        weights: weight of each standardized evidence.
        bias: log odds of a question with mean evidence.
    """

    k: int
    theta: float
    mean: tuple[float, ...]
    scale: tuple[float, ...]
    weights: tuple[float, ...]
    bias: float

    @classmethod
    def fit(
        cls,
        rankings: Sequence[Scores],
        success: ArrayLike,
        *,
        k: int = 10,
        psi: float = 25,
        penalties: Sequence[float] = PENALTIES,
    ) -> Confidence:
        """Fit the confidence to questions whose success is known.

        Args:
            rankings: scores of each question's results, best first.
            success: 1 for each question with a right document among the first k, else 0.
            psi: percentile of all first k scores at which theta is set.
            penalties: candidate L2 penalties of the weights; the one with the smallest log loss is chosen, with a tenth
                of the questions left out in turn.

        Raises:
            AnalysisError: a ranking without results, or without both successes and failures.
        """
        came = np.asarray(success, dtype=np.float64)
        if len(came) != len(rankings) or not 0 < came.sum() < len(came):
            raise AnalysisError(
                f"a confidence is fitted to successes and failures; {int(came.sum())} of {len(rankings)} questions "
                "succeed"
            )
        theta = float(np.percentile(np.concatenate([_checked(scores)[:k] for scores in rankings]), psi))
        found = np.stack([evidence(scores, k, theta) for scores in rankings])
        mean, scale = found.mean(axis=0), found.std(axis=0)
        scale = np.where(scale > 1e-9 * np.maximum(np.abs(mean), 1), scale, 1.0)
        x = np.column_stack([(found - mean) / scale, np.ones(len(found))])  # (Q, evidence + 1)
        signs = 2 * came - 1
        losses = [_loss_left_out(x, signs, one) for one in penalties]
        w = _weights(x, signs, penalties[int(np.argmin(losses))]).tolist()
        return cls(k, theta, tuple(mean.tolist()), tuple(scale.tolist()), tuple(w[:-1]), w[-1])

    def __call__(self, scores: Scores) -> float:
        """Return the probability (0 to 1) of a right document among the first k of a ranking with these scores."""
        standard = (evidence(scores, self.k, self.theta) - np.array(self.mean)) / np.array(self.scale)
        return float(1 / (1 + np.exp(-np.clip(standard @ np.array(self.weights) + self.bias, -500, 500))))

    def record(self) -> dict[str, Any]:
        """Return the names of the evidence and all attributes, to be written as JSON."""
        return {"evidence": list(EVIDENCE), **asdict(self)}


def evidence(scores: Scores, k: int, theta: float) -> Floats:
    """Return the evidence of a question (5,), in the order of :data:`EVIDENCE`.

    A ranking with fewer than ``k`` results has its last result in place of the k-th. ``lead`` is 0 if no further
    results exist or if they are all equal.

    >>> evidence([0.9, 0.7, 0.3, 0.1], k=2, theta=0.8).round(2).tolist()
    [0.9, 0.2, 0.2, 6.0, 0.5]

    Raises:
        AnalysisError: no scores, a score that is not finite, or scores that rise.
    """
    array = _checked(scores)
    first, rest = array[:k], array[k:]
    second = first[1] if len(first) > 1 else first[0]
    spread = float(rest.std()) if len(rest) else 0.0
    lead = (first.mean() - rest.mean()) / spread if spread > 1e-9 else 0.0
    return np.array([first[0], first[0] - second, first[0] - first[-1], lead, (first > theta).mean()])


def _weights(x: Floats, signs: Floats, penalty: float) -> Floats:
    """Return the weights (evidence + 1,) for signs -1 and 1 (Q,); the bias is last and has no penalty."""
    from scipy.optimize import minimize  # slow to import

    def loss(w: Floats) -> tuple[float, Floats]:
        logits = signs * (x @ w)
        slope = -signs / (1 + np.exp(np.clip(logits, -500, 500)))
        ridge = np.append(penalty * w[:-1], 0.0)
        return float(np.logaddexp(0, -logits).sum() + ridge @ w / 2), x.T @ slope + ridge

    return minimize(loss, np.zeros(x.shape[1]), jac=True, method="L-BFGS-B").x


def _loss_left_out(x: Floats, signs: Floats, penalty: float) -> float:
    """Return the log loss of all questions, a tenth of them at a time under the weights of the others."""
    fold, total = np.arange(len(x)) % FOLDS, 0.0
    for mine in (fold == one for one in np.unique(fold)):
        total += float(np.logaddexp(0, -signs[mine] * (x[mine] @ _weights(x[~mine], signs[~mine], penalty))).sum())
    return total


def _checked(scores: Scores) -> Floats:
    array = np.asarray(scores, dtype=np.float64)
    if array.ndim != 1 or not array.size or not np.isfinite(array).all() or (np.diff(array) > 0).any():
        raise AnalysisError(
            f"a confidence needs finite scores of at least one result, best first, not {list(scores)[:3]}"
        )
    return array
