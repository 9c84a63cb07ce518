"""The losses of fine-tuning, equal to those of sentence-transformers, as functions of vectors.

    loss = loss_of(config)
    loss(queries, [documents, first_negatives, second_negatives], known)     # each (B, d); bool (B, 3 B) -> scalar

A function of vectors alone can be taken over the joined batch of all ranks, and its gradient be handed back to texts
that were encoded in small parts (:mod:`mathamr.text.finetuning`), whichever loss it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import ConfigError
from mathamr.text.config import TextConfig
from mathamr.training.losses import info_nce

_UNUSED: Any = None  # the library's losses want a model and labels even where they are given vectors


class Loss(Protocol):
    """Queries (B, d), columns of documents (B, d), known answers (B, C) -> scalar."""

    def __call__(self, queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor: ...


def loss_of(config: TextConfig, dimension: int) -> Loss:
    """The loss that ``config`` describes, of float32 vectors of any length -> scalar.

    Its arguments are the queries (B, d), the documents: first the queries' own, then columns of hard negatives, each
    (B, d); and which of all these documents, one column behind the other, are right answers to a query as well, bool
    (B, C) or None: these are no negatives of it.

    Args:
        dimension: of the encoder.

    Raises:
        ConfigError: ``config.matryoshka`` names more dimensions than there are, or leaves out the whole vector.
    """
    one = _LOSSES[config.loss](config)
    cuts = config.matryoshka
    if cuts is None:
        return one
    if max(cuts) != dimension:
        raise ConfigError(
            f"text.matryoshka={list(cuts)} must begin with the encoder's own dimension, {dimension}, and name no larger"
        )

    def cut(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        """Kusupati et al. 2022, with equal weights as in the knowledge-graph paper, section 6."""
        losses = [one(queries[:, :size], [column[:, :size] for column in documents], known) for size in cuts]
        return torch.stack(losses).sum()

    return cut


def _ranking(config: TextConfig, *, symmetric: bool = False) -> Loss:
    """Cross-entropy of the own document among all of the batch (Henderson et al. 2017).

    ModernBERT thesis, section 4 (c). The library's MultipleNegativesRankingLoss knows no further right answers.
    """

    def loss(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        scores = functional.normalize(queries) @ functional.normalize(torch.cat(list(documents))).T  # (B, C)
        temperature = torch.tensor(1 / config.scale, device=scores.device)
        return info_nce(scores, temperature, known_positives=known, symmetric=symmetric)

    return loss


def _symmetric(config: TextConfig) -> Loss:
    """The mean over both directions; formula-text paper, section 3.2."""
    return _ranking(config, symmetric=True)


def _triplet(config: TextConfig) -> Loss:
    """max(0, cos(q, n) - cos(q, d) + margin), the mean over all hard negatives."""
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

    module = TripletLoss(_UNUSED, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=config.margin)

    def loss(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        own, *negatives = documents
        return torch.stack(
            [module.compute_loss_from_embeddings([queries, own, one], _UNUSED) for one in negatives]
        ).mean()

    return loss


def _cosine(config: TextConfig) -> Loss:
    """Mean squared error of the cosine, 1 for the own document and 0 for hard negatives.

    Formula-text paper, section 4.5.
    """
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    module = CosineSimilarityLoss(_UNUSED)

    def loss(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        labels = torch.cat([torch.full((len(column),), float(not k)) for k, column in enumerate(documents)])
        vectors = [queries.repeat(len(documents), 1), torch.cat(list(documents))]
        return module.compute_loss_from_embeddings(vectors, labels.to(queries.device))

    return loss


_LOSSES: dict[str, Callable[[TextConfig], Loss]] = {
    "mnrl": _ranking,
    "symmetric": _symmetric,
    "triplet": _triplet,
    "cosine": _cosine,
}
