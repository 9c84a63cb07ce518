"""A step of contrastive training: encode, compare over all ranks, and take the gradient back through the encoder.

The loss is a function of the vectors of the joined batch, so the step has two halves:

    encode the own graphs -> vectors -> gather -> joined vectors -> loss
    gradient of the loss by the joined vectors -> the own part of it -> encoder -> gradients of the parameters

If the graphs are in one chunk, the first half keeps what the second needs. If the budget needs several chunks, the
first half encodes without gradient, and the second encodes each chunk again (gradient caching, Gao et al. 2021,
"Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"). This needs the memory of one chunk and gives
the same gradient.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial

import torch
from torch import Tensor, nn

from graphs.graph.batching import GraphBatch
from mathamr.maxsim import VectorSets
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks, arithmetic
from mathamr.training.graph.distillation import distillation_loss
from mathamr.training.graph.formula_pairs import alike_loss, view_loss
from mathamr.training.graph.loading import TrainingBatch
from mathamr.training.losses import RetrievalLoss, Temperature, retrieval_loss

Encode = Callable[[GraphBatch], VectorSets]
Loss = Callable[..., RetrievalLoss]


def loss_of(config: TrainConfig) -> Loss:
    """Return the loss of ``config``, a function of queries, documents, temperature and ``known_positives``."""
    return partial(retrieval_loss, beta=config.beta, normalize=config.normalize, symmetric=config.symmetric)


def step_loss(
    config: TrainConfig, batch: TrainingBatch, forms: Sequence[VectorSets], temperature: Tensor
) -> RetrievalLoss:
    """Return the loss of a batch: that of retrieval, plus the weighted losses of formulas and of a teacher.

    Args:
        forms: vectors of the graphs of all ranks. With ``train.formula_view_weight`` also from only operator trees and
            from only symbol layout trees.
    """
    sets = forms[0]
    found = loss_of(config)(
        sets.select(batch.queries), sets.select(batch.documents), temperature, known_positives=batch.known_positives
    )
    total, parts = found.total, found.parts
    if batch.formulas is not None and config.formula_weight > 0:
        loss = alike_loss(batch.formulas.vectors(sets), temperature, batch.formulas.key)
        parts["formula_loss"], total = loss.detach(), total + config.formula_weight * loss
    if batch.formulas is not None and config.formula_view_weight > 0:
        operators, layouts = (batch.formulas.vectors(view) for view in forms[1:])
        loss = view_loss(operators, layouts, temperature, batch.formulas.key)
        parts["formula_view_loss"], total = loss.detach(), total + config.formula_view_weight * loss
    if batch.teacher is not None:
        loss = distillation_loss(found.scores, temperature, batch.teacher, config.distill_temperature)
        parts["distill_loss"], total = loss.detach(), total + config.distill_weight * loss
    return replace(found, total=total)


def backward(
    encoder: nn.Module,
    temperature: Temperature,
    batch: TrainingBatch,
    config: TrainConfig,
    world: Ranks,
    weight: float = 1.0,
) -> RetrievalLoss:
    """Add the gradients of ``weight`` times the loss of the joined batch to the parameters of this rank.

    With several ranks the gradients are complete after ``world.sum_gradients``.
    """
    cached = len(batch.chunks) > 1
    forms = (batch.chunks, *batch.views)  # the graphs and their views, all chunk by chunk
    with torch.set_grad_enabled(not cached), arithmetic(config.precision, world.device):
        encoded = [[encoder(chunk) for chunk in chunks] for chunks in forms]
    joined, owned = zip(*(world.gather(VectorSets.concatenated(parts)) for parts in encoded), strict=True)
    for sets in joined:
        sets.vectors.requires_grad_()
    result = step_loss(config, batch, joined, temperature())
    (weight * result.total).backward()
    for chunks, parts, sets, own in zip(forms, encoded, joined, owned, strict=True):
        assert sets.vectors.grad is not None
        gradients = sets.vectors.grad[own].split([len(part.vectors) for part in parts])
        for chunk, part, gradient in zip(chunks, parts, gradients, strict=True):
            if cached:
                with arithmetic(config.precision, world.device):
                    part = encoder(chunk)
            part.vectors.backward(gradient)
    return result


def backward_reference(encoder: Encode, temperature: Temperature, batch: TrainingBatch, config: TrainConfig) -> Tensor:
    """Compute :func:`backward` on one rank, in one piece, as a reference."""
    forms = (batch.chunks, *batch.views)
    joined = [VectorSets.concatenated([encoder(chunk) for chunk in chunks]) for chunks in forms]
    loss = step_loss(config, batch, joined, temperature()).total
    loss.backward()
    return loss.detach()
