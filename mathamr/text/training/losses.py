"""Losses of fine-tuning, equal to those of sentence-transformers, as functions of vectors.

    loss = loss_of(config)
    loss(queries, [documents, first_negatives, second_negatives], known)     # each (B, d); bool (B, 3 B) -> scalar

A function of vectors can be computed over the joined batch of all ranks, and its gradient passed back to texts that
were encoded in small parts (:mod:`mathamr.text.finetuning`), for any loss.
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

_UNUSED: Any = None  # the library's losses require a model and labels even when given vectors


class Loss(Protocol):
    """Loss of queries (B, d), columns of documents (B, d), known answers (B, C) -> scalar."""

    def __call__(self, queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor: ...


def loss_of(config: TextConfig, dimension: int) -> Loss:
    """Return the loss of ``config``, a function of float32 vectors of any length -> scalar.

    Its arguments are the queries (B, d); the documents, each (B, d): the queries' own first, then columns of hard
    negatives; and a mask of the documents, column after column, that also answer a query, bool (B, C) or None. These
    are not negatives of it.

    Args:
        dimension: vector length of the encoder.

    Raises:
        ConfigError: ``config.matryoshka`` has dimensions above the encoder's, or lacks the whole vector.
    """
    one = _LOSSES[config.loss](config)
    if config.matryoshka is None:
        return one
    shares = max(config.matryoshka) == 1 or any(isinstance(size, float) for size in config.matryoshka)
    cuts = [round(size * dimension) if shares else int(size) for size in config.matryoshka]
    if max(cuts) != dimension or min(cuts) < 1:
        raise ConfigError(
            f"text.matryoshka={list(config.matryoshka)} must begin with the encoder's own dimension, {dimension} (or "
            "1.0), and have no larger one"
        )

    def cut(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        """Sum losses of shortened vectors (Kusupati et al. 2022), weighted equally (knowledge-graph paper)."""
        losses = [one(queries[:, :size], [column[:, :size] for column in documents], known) for size in cuts]
        return torch.stack(losses).sum()

    return cut


def _ranking(config: TextConfig, *, symmetric: bool = False) -> Loss:
    """Return cross-entropy of the own document among all of the batch (Henderson et al. 2017).

    ModernBERT thesis, section 4 (c). The library's MultipleNegativesRankingLoss has no mask of further answers.
    """

    def loss(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        scores = functional.normalize(queries) @ functional.normalize(torch.cat(list(documents))).T  # (B, C)
        temperature = torch.tensor(1 / config.scale, device=scores.device)
        return info_nce(scores, temperature, known_positives=known, symmetric=symmetric)

    return loss


def _symmetric(config: TextConfig) -> Loss:
    """Return the mean over both directions; formula-text paper, section 3.2."""
    return _ranking(config, symmetric=True)


def _triplet(config: TextConfig) -> Loss:
    """Return max(0, cos(q, n) - cos(q, d) + margin), the mean over all hard negatives."""
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

    module = TripletLoss(_UNUSED, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=config.margin)

    def loss(queries: Tensor, documents: Sequence[Tensor], known: Tensor | None = None) -> Tensor:
        own, *negatives = documents
        return torch.stack(
            [module.compute_loss_from_embeddings([queries, own, one], _UNUSED) for one in negatives]
        ).mean()

    return loss


def _cosine(config: TextConfig) -> Loss:
    """Return the mean squared error of the cosine, 1 for the own document and 0 for hard negatives.

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
