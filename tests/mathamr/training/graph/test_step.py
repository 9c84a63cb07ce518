"""The gradient of a step is that of its loss, in one piece or in chunks, with or without hard negatives."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from tiny_collection import ENCODER, settings, teacher_of
from torch import Tensor

from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks
from mathamr.training.graph.loading import TrainingBatch, TrainingBatches
from mathamr.training.graph.step import backward, backward_reference
from mathamr.training.losses import Temperature
from mathamr.training.pairs import known_positives, split_pairs

ALONE = Ranks(0, 1, torch.device("cpu"))
EVERY_NEGATIVE = {f"q{i}": [f"a{k}" for k in range(48)] for i in range(48)}


VISUAL_IDS = {f"{kind}{i}": [f"v{i % 16}"] for i in range(48) for kind in "qa"}


def first_batch(store: GraphStore, pairs: list[Pair], config: TrainConfig) -> TrainingBatch:
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.25)
    batches = TrainingBatches(store, split, config, ALONE)
    batches.negatives = EVERY_NEGATIVE
    batches.visual_ids = VISUAL_IDS
    return batches.batch(split.train[: config.batch_size], 0, 0)


def gradients(
    store: GraphStore, batch: TrainingBatch, config: TrainConfig, how: Callable[..., object]
) -> tuple[float, dict[str, Tensor]]:
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations)
    temperature = Temperature(0.05)
    extra = (ALONE,) if how is backward else ()
    result = how(encoder, temperature, batch, config, *extra)
    loss = float(getattr(result, "total", result).detach())  # type: ignore[attr-defined]
    named = [*encoder.named_parameters(), ("temperature", temperature.log)]
    return loss, {name: parameter.grad for name, parameter in named if parameter.grad is not None}


def assert_close(found: dict[str, Tensor], wanted: dict[str, Tensor]) -> None:
    assert found.keys() == wanted.keys()
    scale = max(float(gradient.abs().max()) for gradient in wanted.values())
    for name, gradient in wanted.items():
        torch.testing.assert_close(found[name], gradient, rtol=1e-4, atol=1e-6 * scale, msg=name)


@pytest.mark.parametrize("negatives", [0, 1, 3])
@pytest.mark.parametrize("node_budget", [1, 60, 100_000])
def test_chunks_change_neither_loss_nor_gradient(
    store: GraphStore, pairs: list[Pair], negatives: int, node_budget: int
) -> None:
    config = settings(
        node_budget=node_budget, negatives=negatives, beta=0.6, symmetric=True, node_mask=0.0, edge_dropout=0.0
    )
    batch = first_batch(store, pairs, config)
    assert len(batch.chunks) == {1: 16 + 8 * negatives, 100_000: 1}.get(node_budget, len(batch.chunks))
    assert batch.known_positives.shape == (8, 8 + 8 * negatives)
    loss, found = gradients(store, batch, config, backward)
    reference_loss, wanted = gradients(store, batch, config, backward_reference)
    assert loss == pytest.approx(reference_loss, abs=1e-6)
    assert_close(found, wanted)


@pytest.mark.parametrize("node_budget", [1, 60, 100_000])
@pytest.mark.parametrize("weights", [(0.5, 0.0), (0.0, 0.5), (0.3, 0.2)])
def test_losses_of_formulas_have_the_same_gradient_in_chunks(
    store: GraphStore, pairs: list[Pair], node_budget: int, weights: tuple[float, float]
) -> None:
    alike, views = weights
    config = settings(node_budget=node_budget, formula_weight=alike, formula_view_weight=views, negatives=1)
    batch = first_batch(store, pairs, config)
    assert batch.formulas is not None
    assert len(batch.formulas.graph) == 8 + 8 + 8
    assert [len(view) for view in batch.views] == ([len(batch.chunks)] * 2 if views else [])
    loss, found = gradients(store, batch, config, backward)
    reference_loss, wanted = gradients(store, batch, config, backward_reference)
    assert loss == pytest.approx(reference_loss, abs=1e-6)
    assert_close(found, wanted)
    plain = settings(node_budget=node_budget, negatives=1)
    plain_loss, without = gradients(store, first_batch(store, pairs, plain), plain, backward)
    assert loss > plain_loss + 0.01
    assert any(not torch.allclose(found[name], without[name], rtol=0.01) for name in found)


@pytest.mark.parametrize("node_budget", [60, 100_000])
def test_the_loss_of_a_teacher_has_the_same_gradient_in_chunks(
    store: GraphStore, pairs: list[Pair], node_budget: int
) -> None:
    config = settings(node_budget=node_budget, teacher="any", distill_weight=2.0)
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.25)
    batches = TrainingBatches(store, split, config, ALONE)
    plain = batches.batch(split.train[:8], 0, 0)
    batches.teacher = teacher = teacher_of()
    batch = batches.batch(split.train[:8], 0, 0)
    assert plain.teacher is None
    assert batch.teacher is not None
    own = teacher.vectors_of([pair.question_id for pair in batch.pairs]).vectors
    answers = teacher.vectors_of([pair.answer_id for pair in batch.pairs]).vectors
    torch.testing.assert_close(batch.teacher, own @ answers.T)
    loss, found = gradients(store, batch, config, backward)
    reference_loss, wanted = gradients(store, batch, config, backward_reference)
    assert loss == pytest.approx(reference_loss, abs=1e-5)
    assert_close(found, wanted)
    assert loss > gradients(store, plain, config, backward)[0] + 0.01


def test_augmentation_is_the_same_in_both_passes_over_a_chunk(store: GraphStore, pairs: list[Pair]) -> None:
    config = settings(node_budget=60, node_mask=0.5, edge_dropout=0.5)
    batch = first_batch(store, pairs, config)
    assert len(batch.chunks) > 2
    loss, found = gradients(store, batch, config, backward)
    reference_loss, wanted = gradients(store, batch, config, backward_reference)
    assert loss == pytest.approx(reference_loss, abs=1e-6)
    assert_close(found, wanted)


def test_a_batch_is_a_function_of_its_place(store: GraphStore, pairs: list[Pair]) -> None:
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.25)
    batches = TrainingBatches(store, split, settings(), ALONE)
    some = split.train[:8]
    chunk = batches.batch(some, 1, 2).chunks[0]
    assert torch.equal(batches.batch(some, 1, 2).chunks[0].labels, chunk.labels)
    for epoch, number in ((1, 3), (2, 2)):
        assert not torch.equal(batches.batch(some, epoch, number).chunks[0].labels, chunk.labels)


def test_other_answers_of_a_question_are_no_negatives(store: GraphStore) -> None:
    pairs = [Pair("q0", "a0"), Pair("q0", "a1"), Pair("q2", "a1"), Pair("q3", "a3"), Pair("q3", "not stored")]
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.4)
    questions, answers = ["q0", "q0", "q2", "q3"], ["a0", "a1", "a1", "a3", "a0"]
    known = known_positives(questions, answers, split.positives)
    assert known.int().tolist() == [[1, 1, 1, 0, 1], [1, 1, 1, 0, 1], [0, 1, 1, 0, 0], [0, 0, 0, 1, 0]]
    assert known.tolist() == [[answer in split.positives[question] for answer in answers] for question in questions]


def test_hard_negatives_are_never_known_answers(store: GraphStore, pairs: list[Pair]) -> None:
    config = settings(negatives=3)
    split = split_pairs(
        [*pairs, *(Pair(f"q{i}", f"a{(i + 3) % 48}") for i in range(48))],
        set(store.post_ids()),
        validation_fraction=0.25,
    )
    batches = TrainingBatches(store, split, config, ALONE)
    batches.negatives = EVERY_NEGATIVE
    batch = batches.batch(split.train[:8], 0, 0)
    assert batch.known_positives.shape == (8, 8 + 8 * 3)
    for row in range(8):
        own = slice(8 + 3 * row, 8 + 3 * row + 3)
        assert not batch.known_positives[row, own].any()
    again = batches.batch(split.train[:8], 0, 0)
    assert torch.equal(again.chunks[0].labels, batch.chunks[0].labels)
    assert batch.queries.tolist() == list(range(8))
    assert batch.documents.tolist() == list(range(8, 40))


def test_no_answer_of_a_question_straddles_the_split(store: GraphStore) -> None:
    pairs = [Pair(f"q{i}", f"a{(i * k) % 48}") for i in range(48) for k in (1, 5, 7)]
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.2)
    sides = [{pair.question_id for pair in side} for side in (split.train, split.validation)]
    assert not sides[0] & sides[1]
    assert len(sides[1]) == 10
    again = split_pairs(list(reversed(pairs)), set(store.post_ids()), validation_fraction=0.2)
    assert {pair.question_id for pair in again.validation} == sides[1]
