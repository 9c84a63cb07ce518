"""Distillation: a text encoder, the teacher, says how near the documents of a batch are to each question.

Two questions and two documents. The teacher holds the first document for the answer of the first question, and for
the second cannot tell; a student that scores them so is told nothing, one that has them the other way round is:

>>> teacher = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
>>> tau = torch.tensor(0.1)
>>> round(float(distillation_loss(torch.tensor([[1.0, 0.0], [0.2, 0.2]]), tau, teacher, 0.1)), 4)
0.0
>>> float(distillation_loss(torch.tensor([[0.0, 1.0], [0.2, 0.2]]), tau, teacher, 0.1)) > 4
True

Where InfoNCE knows one right answer and calls all others equally wrong, the teacher grades them: an answer to a similar
question of the batch is less wrong. The student takes over the order of the documents of one question (listwise, as
Cao et al. 2007 have it for learning to rank), not the teacher's scale.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from mathamr.maxsim import VectorSets


@dataclass(frozen=True)
class Teacher:
    """The vectors of a text encoder, by post.

    ``identity`` is of the encoder and its weights. ``vectors_of`` gives the sets of posts that are trained on, each of
    one unit vector; threads call it at once.
    """

    identity: str
    vectors_of: Callable[[Sequence[str]], VectorSets]

    def scores(self, questions: Sequence[str], documents: Sequence[str]) -> Tensor:
        """Cosine of B questions and C documents -> float32 (B, C)."""
        vectors = self.vectors_of([*questions, *documents]).document_vectors().float()
        return vectors[: len(questions)] @ vectors[len(questions) :].T


def distillation_loss(scores: Tensor, temperature: Tensor, teacher: Tensor, teacher_temperature: float) -> Tensor:
    """Divergence of the student's shares of each question from the teacher's, Kullback-Leibler -> scalar float32.

    Shapes: ``scores`` and ``teacher`` (B, C), divided each by its own temperature. Differentiable in the scores and in
    the temperature of the student.
    """
    with torch.autocast(scores.device.type, enabled=False):
        wanted = functional.log_softmax(teacher.float() / teacher_temperature, dim=1)
        shares = functional.log_softmax(scores.float() / temperature.float(), dim=1)
        return functional.kl_div(shares, wanted, reduction="batchmean", log_target=True)
