r"""Cross-scorer: attention between the virtual nodes of a question and those of an answer, over a trained encoder.

Each vector of the question reads the answer's vectors by attention, and a small network says how well it is answered:

    a_i = softmax_j((W_q q_i) . (W_d d_j) / sqrt(h));  c_i = sum_j a_ij d_j
    score = m + mean_i f([q_i, c_i, q_i * c_i]),  m = MaxSim / number of the question's vectors (thesis, Equation 3.7)

``f`` starts at zero, so an untrained scorer ranks as MaxSim does:

>>> _ = torch.manual_seed(0)
>>> sets = VectorSets.of([torch.eye(3)[:2], torch.eye(3)[1:]])
>>> scorer = CrossScorer(dimension=3, hidden_dim=4)
>>> scorer(sets, sets).tolist()
[1.0, 1.0]

It is trained on questions with one right answer each and mined negatives, by cross-entropy.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.processes import batched
from mathamr import maxsim
from mathamr.maxsim import VectorSets

_QUESTIONS_AT_ONCE = 16
_TEMPERATURE = 0.05  # of cosines, as in training (thesis Table 4.5)


@dataclass(frozen=True)
class Example:
    """A question to learn from: places of its vectors, of its right answer, and of wrong ones."""

    question: int
    answer: int
    negatives: Sequence[int]


class CrossScorer(nn.Module):
    """Score of an answer for a question.

    Args:
        dimension: length of a vector.
        hidden_dim: width of the attention and of the network.

    Shapes:
        two VectorSets of B sets, questions and answers in pairs -> (B,)
    """

    def __init__(self, dimension: int, hidden_dim: int) -> None:
        super().__init__()
        self.query = nn.Linear(dimension, hidden_dim, bias=False)
        self.key = nn.Linear(dimension, hidden_dim, bias=False)
        self.hidden = nn.Linear(3 * dimension, hidden_dim)
        self.output = nn.Linear(hidden_dim, 1)
        nn.init.zeros_(self.output.weight)
        nn.init.zeros_(self.output.bias)

    def forward(self, questions: VectorSets, answers: VectorSets) -> Tensor:
        """Score each question with the answer at its place."""
        q, of_question = padded(questions)  # (B, m, p), (B, m)
        d, of_answer = padded(answers)  # (B, n, p), (B, n)
        similar = (q @ d.transpose(1, 2)).masked_fill(~of_answer.unsqueeze(1), -2.0)  # (B, m, n)
        scores = self.query(q) @ self.key(d).transpose(1, 2) / self.query.out_features**0.5
        weights = scores.masked_fill(~of_answer.unsqueeze(1), float("-inf")).softmax(2)
        context = weights @ d  # (B, m, p)
        answered = self.output(functional.gelu(self.hidden(torch.cat([q, context, q * context], 2)))).squeeze(2)
        each = (similar.amax(2) + answered).masked_fill(~of_question, 0.0)
        return each.sum(1) / of_question.sum(1)


def padded(sets: VectorSets) -> tuple[Tensor, Tensor]:
    """Return sets of vectors as one tensor (B, n, p), and a mask of those that are there (B, n)."""
    parts = torch.split(sets.vectors, sets.sizes.tolist())
    mask = torch.arange(int(sets.sizes.max()), device=sets.ptr.device) < sets.sizes.unsqueeze(1)
    return nn.utils.rnn.pad_sequence(list(parts), batch_first=True), mask


def mine(
    questions: VectorSets, answers: VectorSets, pairs: Sequence[tuple[int, int]], *, count: int, closest: float | None
) -> list[Example]:
    """Return an example for each pair: the answers nearest to its question by MaxSim, without its right ones.

    Args:
        pairs: place of a question and of a right answer.
        count: number of negatives.
        closest: ratio; answers that score above it times the right one are left out. None leaves out nothing.
    """
    right: dict[int, list[int]] = {}
    for question, answer in pairs:
        right.setdefault(question, []).append(answer)
    found: dict[tuple[int, int], list[int]] = {}
    for some in batched(sorted(right), _QUESTIONS_AT_ONCE):
        batch = questions.select(torch.tensor(some, device=questions.ptr.device))
        for question, scores in zip(some, maxsim.scores(batch, answers, normalize=True), strict=True):
            for answer in right[question]:
                row = scores.index_fill(0, torch.tensor(right[question], device=scores.device), -torch.inf)
                if closest is not None:
                    row[row > closest * scores[answer]] = -torch.inf
                best = row.topk(min(count, len(row)))
                found[question, answer] = best.indices[best.values > -torch.inf].tolist()
    return [Example(*pair, found[pair]) for pair in pairs if found[pair]]


def train_cross_scorer(
    questions: VectorSets,
    answers: VectorSets,
    examples: Sequence[Example],
    *,
    hidden_dim: int,
    epochs: int,
    learning_rate: float,
    seed: int,
    report: Callable[[int, float], None] | None = None,
) -> CrossScorer:
    """Return a scorer that was trained on the examples.

    Args:
        examples: places in both.
        learning_rate: learning rate of AdamW.
        seed: seed of weights and order.
        report: function called with the number and the mean loss of each epoch.
    """
    devices = [] if questions.vectors.device.type == "cpu" else [questions.vectors.device]
    with torch.random.fork_rng(devices=devices), torch.enable_grad():
        torch.manual_seed(seed)
        scorer = CrossScorer(questions.vectors.shape[1], hidden_dim).to(questions.vectors.device)
    optimizer = torch.optim.AdamW(scorer.parameters(), lr=learning_rate)
    for epoch in range(epochs):
        total = 0.0
        order = np.random.default_rng([seed, epoch]).permutation(len(examples))
        for places in batched(order, _QUESTIONS_AT_ONCE):
            some = [examples[place] for place in places]
            with torch.enable_grad():
                loss = _loss(scorer, questions, answers, some)
                optimizer.zero_grad()
                loss.backward()
            optimizer.step()
            total += float(loss.detach()) * len(some)
        if report is not None:
            report(epoch, total / len(examples))
    return scorer.eval()


def _loss(scorer: CrossScorer, questions: VectorSets, answers: VectorSets, examples: Sequence[Example]) -> Tensor:
    """Return the mean cross-entropy of the right answers, each among its negatives."""
    sizes = [1 + len(one.negatives) for one in examples]
    question_rows = [one.question for one, size in zip(examples, sizes, strict=True) for _ in range(size)]
    answer_rows = [place for one in examples for place in (one.answer, *one.negatives)]
    device = questions.ptr.device
    scores = scorer(
        questions.select(torch.tensor(question_rows, device=device)),
        answers.select(torch.tensor(answer_rows, device=device)),
    )
    rows = [functional.log_softmax(own / _TEMPERATURE, dim=0)[0] for own in torch.split(scores, sizes)]
    return -torch.stack(rows).mean()


@torch.no_grad()
def rescore(scorer: CrossScorer, question: VectorSets, answers: VectorSets, *, at_once: int = 256) -> Tensor:
    """Return the scores (B,) of B answers for one question."""
    device = answers.ptr.device
    parts = []
    for start in range(0, len(answers), at_once):
        some = answers.select(torch.arange(start, min(start + at_once, len(answers)), device=device))
        parts.append(scorer(question.select(torch.zeros(len(some), dtype=torch.int64, device=device)), some))
    return torch.cat([answers.vectors.new_zeros(0), *parts])
