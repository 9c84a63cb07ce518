"""Distillation: a text encoder, the teacher, scores the documents of a batch for each question.

Two questions and two documents. The teacher prefers the first document for the first question, and neither for the
second. A student with the same scores has no loss; a student with the opposite scores has one:

>>> teacher = torch.tensor([[1.0, 0.0], [0.5, 0.5]])
>>> tau = torch.tensor(0.1)
>>> round(float(distillation_loss(torch.tensor([[1.0, 0.0], [0.2, 0.2]]), tau, teacher, 0.1)), 4)
0.0
>>> float(distillation_loss(torch.tensor([[0.0, 1.0], [0.2, 0.2]]), tau, teacher, 0.1)) > 4
True

InfoNCE has one right answer and treats all others as equally wrong. The teacher grades them: an answer to a similar
question of the batch is less wrong. The student learns the order of the documents of a question (listwise, as in Cao et
al. 2007 for learning to rank), not the teacher's scale.
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
    """Vectors of a text encoder, by post.

    ``identity`` names the encoder and its weights. ``vectors_of`` returns the sets of training posts, each with one
    unit vector; threads call it concurrently.
    """

    identity: str
    vectors_of: Callable[[Sequence[str]], VectorSets]

    def scores(self, questions: Sequence[str], documents: Sequence[str]) -> Tensor:
        """Return cosines of B questions and C documents -> float32 (B, C)."""
        vectors = self.vectors_of([*questions, *documents]).document_vectors().float()
        return vectors[: len(questions)] @ vectors[len(questions) :].T


def distillation_loss(scores: Tensor, temperature: Tensor, teacher: Tensor, teacher_temperature: float) -> Tensor:
    """Return the Kullback-Leibler divergence of the student's shares from the teacher's -> scalar float32.

    Shapes: ``scores`` and ``teacher`` (B, C), each divided by its temperature. Differentiable in the scores and in
    the student's temperature.
    """
    with torch.autocast(scores.device.type, enabled=False):
        wanted = functional.log_softmax(teacher.float() / teacher_temperature, dim=1)
        shares = functional.log_softmax(scores.float() / temperature.float(), dim=1)
        return functional.kl_div(shares, wanted, reduction="batchmean", log_target=True)
