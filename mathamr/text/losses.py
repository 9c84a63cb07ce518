"""The losses of fine-tuning, those of sentence-transformers, as functions of vectors.

    loss = loss_of(config)
    loss(queries, [documents, first_negatives, second_negatives])     # each (B, d) -> scalar

A function of vectors alone can be taken over the joined batch of all ranks, and its gradient be handed back to texts
that were encoded in small parts (:mod:`mathamr.text.finetuning`), whichever loss it is.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from graphs.errors import ConfigError
from mathamr.text.config import TextConfig

Loss = Callable[[Tensor, Sequence[Tensor]], Tensor]
_UNUSED: Any = None  # the library's losses want a model and labels even where they are given vectors


def loss_of(config: TextConfig, dimension: int) -> Loss:
    """The loss that ``config`` describes, of float32 vectors of any length -> scalar.

    Its arguments are the queries (B, d), and the documents: first the queries' own, then columns of hard negatives,
    each (B, d).

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

    def cut(queries: Tensor, documents: Sequence[Tensor]) -> Tensor:
        """Kusupati et al. 2022, with equal weights as in the knowledge-graph paper, section 6."""
        losses = [one(queries[:, :size], [column[:, :size] for column in documents]) for size in cuts]
        return torch.stack(losses).sum()

    return cut


def _ranking(config: TextConfig, **options: Any) -> Loss:
    """Cross-entropy of the own document among all of the batch (Henderson et al. 2017).

    ModernBERT thesis, section 4 (c).
    """
    from sentence_transformers.sentence_transformer.losses import MultipleNegativesRankingLoss

    module = MultipleNegativesRankingLoss(_UNUSED, scale=config.scale, **options)
    return lambda queries, documents: module.compute_loss_from_embeddings([queries, *documents], _UNUSED)


def _symmetric(config: TextConfig) -> Loss:
    """The mean over both directions; formula-text paper, section 3.2."""
    return _ranking(config, directions=("query_to_doc", "doc_to_query"), partition_mode="per_direction")


def _triplet(config: TextConfig) -> Loss:
    """max(0, cos(q, n) - cos(q, d) + margin), the mean over all hard negatives."""
    from sentence_transformers.sentence_transformer.losses import TripletDistanceMetric, TripletLoss

    module = TripletLoss(_UNUSED, distance_metric=TripletDistanceMetric.COSINE, triplet_margin=config.margin)

    def loss(queries: Tensor, documents: Sequence[Tensor]) -> Tensor:
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

    def loss(queries: Tensor, documents: Sequence[Tensor]) -> Tensor:
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
