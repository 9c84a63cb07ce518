"""Attention between two sets of vectors: as by hand, learned from pairs, and mined negatives that are wrong answers."""

from __future__ import annotations

import weakref
from typing import Any

import pytest
import torch
from torch.nn import functional

from mathamr import maxsim
from mathamr.maxsim import VectorSets, scores
from mathamr.ranking.cross_scorer import CrossScorer, Example, mine, rescore, train_cross_scorer


def sets_of(sizes: list[int], seed: int, dimension: int = 6) -> VectorSets:
    generator = torch.Generator().manual_seed(seed)
    return VectorSets.of(
        [functional.normalize(torch.randn(size, dimension, generator=generator), dim=1) for size in sizes]
    )


def by_hand(scorer: CrossScorer, question: torch.Tensor, answer: torch.Tensor) -> torch.Tensor:
    total = torch.zeros(())
    for vector in question:
        products = answer @ scorer.key.weight.T @ (scorer.query.weight @ vector)
        weights = (products / scorer.query.out_features**0.5).softmax(0)
        context = weights @ answer
        hidden = functional.gelu(scorer.hidden(torch.cat([vector, context, vector * context])))
        total = total + (answer @ vector).max() + scorer.output(hidden)[0]
    return total / len(question)


def test_scores_are_those_of_the_equation() -> None:
    torch.manual_seed(0)
    scorer = CrossScorer(6, 8)
    torch.nn.init.normal_(scorer.output.weight)
    questions, answers = sets_of([3, 1, 2], 1), sets_of([1, 4, 2], 2)
    found = scorer(questions, answers)
    expected = torch.stack([by_hand(scorer, q, d) for q, d in zip(questions, answers, strict=True)])
    torch.testing.assert_close(found, expected)
    one = rescore(scorer, questions.select(torch.tensor([0])), answers, at_once=2)
    torch.testing.assert_close(one, torch.stack([by_hand(scorer, next(iter(questions)), d) for d in answers]))


def test_an_untrained_scorer_is_maxsim() -> None:
    questions, answers = sets_of([3, 1], 1), sets_of([1, 4], 2)
    expected = scores(questions, answers, normalize=True).diagonal()
    torch.testing.assert_close(CrossScorer(6, 8)(questions, answers), expected)


def test_no_answers_have_no_scores() -> None:
    empty = VectorSets(torch.zeros(0, 6), torch.zeros(1, dtype=torch.int64))
    assert rescore(CrossScorer(6, 8), sets_of([2], 1), empty).tolist() == []


def test_negatives_are_near_and_wrong() -> None:
    axes = torch.eye(4)
    near = functional.normalize(axes[0] + 0.5 * axes[1], dim=0)
    questions = VectorSets.of([axes[:1]])
    answers = VectorSets.of([one.unsqueeze(0) for one in (axes[0], near, axes[2], axes[3])])
    assert mine(questions, answers, [(0, 1)], count=2, closest=None) == [Example(0, 1, [0, 2])]
    far_enough = mine(questions, answers, [(0, 1)], count=1, closest=0.95)
    assert far_enough == [Example(0, 1, [2])]  # the first answer is closer than the right one
    both = mine(questions, answers, [(0, 0), (0, 1)], count=1, closest=None)
    assert [example.negatives for example in both] == [[2], [2]]


def test_scores_of_questions_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """All questions with all answers are gigabytes."""
    kept: list[weakref.ref[torch.Tensor]] = []

    def watched(*given: Any, **options: Any) -> list[torch.Tensor]:
        assert sum(row() is not None for row in kept) <= 16
        rows = [row.clone() for row in scores(*given, **options)]
        kept.extend(map(weakref.ref, rows))
        return rows

    monkeypatch.setattr(maxsim, "scores", watched)
    found = mine(sets_of([2] * 50, 1), sets_of([3] * 50, 2), [(n, n) for n in range(50)], count=3, closest=None)
    assert [(one.question, one.answer, len(one.negatives)) for one in found] == [(n, n, 3) for n in range(50)]


def test_training_finds_what_maxsim_cannot() -> None:
    """Right answers have the question's vector and its mirror; wrong ones have the vector alone, so MaxSim is equal."""
    generator = torch.Generator().manual_seed(3)
    own = functional.normalize(torch.randn(60, 6, generator=generator), dim=1)
    questions = VectorSets.of([vector.unsqueeze(0) for vector in own])
    mark = torch.eye(6)[0]
    right = [torch.stack([vector, mark]) for vector in own]
    wrong = [torch.stack([vector, -mark]) for vector in own]
    answers = VectorSets.of([*right, *wrong])
    examples = [Example(place, place, [60 + place]) for place in range(60)]
    learned: list[float] = []
    options = {"hidden_dim": 16, "epochs": 8, "learning_rate": 0.01, "seed": 1}
    scorer = train_cross_scorer(questions, answers, examples, report=lambda _, loss: learned.append(loss), **options)  # type: ignore[arg-type]
    assert learned[-1] < 0.3 * learned[0]
    again = train_cross_scorer(questions, answers, examples, **options)  # type: ignore[arg-type]
    found = rescore(scorer, questions.select(torch.tensor([7])), answers.select(torch.tensor([7, 67])))
    assert found[0] > found[1]
    torch.testing.assert_close(scorer.output.weight, again.output.weight, rtol=0, atol=0)
