"""One step of contrastive training: encode, compare over all ranks, and take the gradient back through the encoder.

The loss is a function of the vectors of the joined batch, so the step goes through them in two halves:

    encode the own graphs -> vectors -> gather -> joined vectors -> loss
    gradient of the loss by the joined vectors -> the own part of it -> encoder -> gradients of the parameters

Where the graphs stand in one chunk, the first half keeps what the second needs. Where the budget makes several chunks
of them, the first half encodes without gradient, and the second encodes chunk by chunk again (gradient caching, Gao et
al. 2021, "Scaling Deep Contrastive Learning Batch Size under Memory Limited Setup"): the memory is that of one chunk,
the gradient is the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from functools import partial

import torch
from torch import Tensor, nn

from graphs.batching import GraphBatch
from mathamr.maxsim import VectorSets
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks
from mathamr.training.loading import TrainingBatch
from mathamr.training.losses import RetrievalLoss, Temperature, retrieval_loss

Encode = Callable[[GraphBatch], VectorSets]
Loss = Callable[..., RetrievalLoss]


def loss_of(config: TrainConfig) -> Loss:
    """The loss that ``config`` describes: called with queries, documents, temperature and ``known_positives``."""
    return partial(retrieval_loss, beta=config.maxsim_weight, normalize=config.normalize, symmetric=config.symmetric)


def arithmetic(config: TrainConfig, device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 where ``config`` asks for it."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=config.precision == "bf16")


def backward(
    encoder: nn.Module,
    temperature: Temperature,
    batch: TrainingBatch,
    config: TrainConfig,
    world: Ranks,
    weight: float = 1.0,
) -> RetrievalLoss:
    """Add the gradients of ``weight`` times the loss of the joined batch to the parameters of this rank.

    With several ranks they are complete after ``world.sum_gradients``.
    """
    cached = len(batch.chunks) > 1
    with torch.set_grad_enabled(not cached), arithmetic(config, world.device):
        encoded = [encoder(chunk) for chunk in batch.chunks]
    joined, own = world.gather(concatenated(encoded))
    vectors = joined.vectors.requires_grad_()
    result = loss_of(config)(
        joined.select(batch.queries),
        joined.select(batch.documents),
        temperature(),
        known_positives=batch.known_positives,
    )
    (weight * result.total).backward()
    assert vectors.grad is not None
    gradients = vectors.grad[own].split([len(sets.vectors) for sets in encoded])
    for chunk, sets, gradient in zip(batch.chunks, encoded, gradients, strict=True):
        if cached:
            with arithmetic(config, world.device):
                sets = encoder(chunk)
        sets.vectors.backward(gradient)
    return result


def backward_reference(encoder: Encode, temperature: Temperature, batch: TrainingBatch, config: TrainConfig) -> Tensor:
    """What :func:`backward` computes on one rank, in one piece, to hold it against."""
    joined = concatenated([encoder(chunk) for chunk in batch.chunks])
    queries, documents = joined.select(batch.queries), joined.select(batch.documents)
    loss = loss_of(config)(queries, documents, temperature(), known_positives=batch.known_positives).total
    loss.backward()
    return loss.detach()


def concatenated(parts: Iterable[VectorSets]) -> VectorSets:
    """The sets of all ``parts``, in order."""
    parts = list(parts)
    sizes = torch.cat([part.sizes for part in parts])
    return VectorSets(torch.cat([part.vectors for part in parts]), torch.nn.functional.pad(sizes.cumsum(0), (1, 0)))
