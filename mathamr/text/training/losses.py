"""Losses of fine-tuning: those of sentence-transformers, with known answers and any number of hard negatives.

    loss = loss_of(config, model, KnownPairs(pairs.keys, pairs.groups))
    loss(features, labels)     # columns: queries, documents, hard negatives; labels int64 (B, 1 + negatives): pairs

The labels are numbers of pairs: that of a query and its document, then those of its hard negatives. With
``text.mini_batch`` texts are encoded in small parts, twice (gradient caching, Gao et al. 2021), for any loss of single
vectors.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from sentence_transformers.base.losses import CachedLossMixin
from sentence_transformers.sentence_transformer.losses import (
    CosineSimilarityLoss,
    MatryoshkaLoss,
    MultipleNegativesRankingLoss,
    TripletDistanceMetric,
    TripletLoss,
)
from sentence_transformers.util import all_gather, cos_sim
from torch import Tensor, nn
from torch.nn import functional

from graphs.errors import ConfigError
from mathamr import maxsim
from mathamr.maxsim import VectorSets
from mathamr.text.config import TextConfig
from mathamr.text.encoder import Side, TextEncoder, open_encoder
from mathamr.text.pairs import PairFile
from mathamr.text.training.adapting import limit_length
from mathamr.text.training.batches import KnownPairs, Rows
from mathamr.training.losses import info_nce


def loss_of(config: TextConfig, model: Any, known: KnownPairs, *, gather: bool = False) -> nn.Module:
    """Return the loss of ``config`` for a SentenceTransformer.

    Args:
        known: documents that are no negatives of a query.
        gather: compare queries with the documents of all ranks.

    Raises:
        ConfigError: ``config.matryoshka`` has dimensions above the encoder's, or lacks the whole vector.
    """
    loss: Any
    if config.loss == "triplet":
        loss = Triplets(model, TripletDistanceMetric.COSINE, config.margin)
    elif config.loss == "cosine":
        loss = Cosines(model)
    elif config.learns_tokens:
        return TokenRanking(model, known, scale=config.scale)
    else:
        loss = KnownRanking(model, known, scale=config.scale, symmetric=config.loss == "symmetric", gather=gather)
    if config.mini_batch is not None:
        loss = Cached(loss, config.mini_batch)
    if config.matryoshka is None:
        return loss
    dimension = int(model.get_embedding_dimension())
    shares = max(config.matryoshka) <= 1
    cuts = [round(size * dimension) if shares else int(size) for size in config.matryoshka]
    if max(cuts) != dimension or min(cuts) < 1:
        raise ConfigError(
            f"text.matryoshka={list(config.matryoshka)} must begin with the encoder's own dimension, {dimension} (or "
            "1.0), and have no larger one"
        )
    return MatryoshkaLoss(model, loss, cuts)  # weighted equally, as in the knowledge-graph paper


class KnownRanking(MultipleNegativesRankingLoss):
    """Cross-entropy of the own document among all of the batch (Henderson et al. 2017), without other answers.

    ModernBERT thesis, section 4 (c). ``symmetric``: the mean over both directions (formula-text paper, section 3.2).
    """

    def __init__(self, model: Any, known: KnownPairs, *, scale: float, symmetric: bool, gather: bool) -> None:
        directions: Any = ("query_to_doc", "doc_to_query") if symmetric else ("query_to_doc",)
        super().__init__(
            model, scale, gather_across_devices=gather, directions=directions, partition_mode="per_direction"
        )
        self._known = known

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of queries, documents and columns of hard negatives, each (B, d)."""
        every = all_gather(labels) if self.gather_across_devices else labels  # (ranks * B, 1 + negatives)
        own, queries, documents = labels[:, 0], every[:, 0], every.T.flatten()
        # The library compares own queries with all documents, then all queries with own documents.
        masks = [self._mask(own, documents, len(every))]
        if "doc_to_query" in self.directions:
            masks.append(self._mask(queries, own, len(own)))
        self.similarity_fct = lambda one, other: cos_sim(one, other).masked_fill(masks.pop(0), -torch.inf)
        return super().compute_loss_from_embeddings(embeddings, labels)

    def _mask(self, queries: Tensor, documents: Tensor, columns: int) -> Tensor:
        """Mark other answers of queries, bool (B, C), from pairs (B,) and (C,); after ``columns``: hard negatives."""
        known = torch.from_numpy(self._known.mask(queries.cpu().numpy(), documents.cpu().numpy()))
        own = queries[:, None] == documents[None]
        own[:, columns:] = False  # a hard negative of another query may be the own document again
        return known.to(queries.device) & ~own


class TokenRanking(nn.Module):
    """Cross-entropy of the own document among all of the batch by MaxSim over the vectors of tokens.

    ColBERT's objective (Khattab & Zaharia 2020) with in-batch negatives; the vectors are those that late interaction
    searches (:meth:`mathamr.text.encoder.TextEncoder.encode_tokens`). Scores are divided by the number of vectors of a
    query, so that they have the range of a cosine.
    """

    def __init__(self, model: Any, known: KnownPairs, *, scale: float) -> None:
        super().__init__()
        self.model, self._known, self._scale = model, known, scale

    def forward(self, features: list[dict[str, Tensor]], labels: Tensor) -> Tensor:
        """Encode the columns of texts, and compute the loss; ``labels`` int64 (B, 1 + negatives)."""
        queries, *documents = (_token_sets(self.model(column)) for column in features)
        scores = maxsim.scores(queries, VectorSets.concatenated(documents), normalize=True)
        known = self._known.mask(labels[:, 0].cpu().numpy(), labels.T.flatten().cpu().numpy())
        temperature = torch.tensor(1 / self._scale, device=scores.device)
        return info_nce(scores, temperature, known_positives=torch.from_numpy(known).to(scores.device))


def _token_sets(output: dict[str, Tensor]) -> VectorSets:
    """Return a set for each text: a unit vector for each token, and last the pooled vector."""
    vectors = torch.cat([output["token_embeddings"], output["sentence_embedding"][:, None]], dim=1)  # (B, L + 1, d)
    inside = functional.pad(output["attention_mask"].bool(), (0, 1), value=True)  # (B, L + 1)
    return VectorSets.of_sizes(functional.normalize(vectors[inside].float(), dim=1), inside.sum(dim=1))


class Triplets(TripletLoss):
    """max(0, cos(q, n) - cos(q, d) + margin), the mean over all hard negatives."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of queries, documents and columns of hard negatives, each (B, d)."""
        queries, own, *negatives = embeddings
        losses = [super(Triplets, self).compute_loss_from_embeddings([queries, own, one], labels) for one in negatives]
        return torch.stack(losses).mean()


class Cosines(CosineSimilarityLoss):
    """Mean squared error of the cosine: 1 for the own document, 0 for hard negatives (formula-text paper, 4.5)."""

    def compute_loss_from_embeddings(self, embeddings: list[Tensor], labels: Tensor) -> Tensor:
        """Compute the loss of queries, documents and columns of hard negatives, each (B, d)."""
        queries, *documents = embeddings
        wanted = torch.zeros(len(documents), len(queries), device=queries.device)
        wanted[0] = 1
        vectors = [queries.repeat(len(documents), 1), torch.cat(documents)]
        return super().compute_loss_from_embeddings(vectors, wanted.flatten())


class Cached(CachedLossMixin, nn.Module):
    """A loss of vectors whose texts are encoded in parts; it bounds memory and does not change the gradient."""

    def __init__(self, loss: Any, mini_batch: int) -> None:
        super().__init__()
        self.model, self.loss, self.mini_batch_size = loss.model, loss, mini_batch

    def calculate_loss(
        self, reps: list[list[Tensor]], labels: Tensor | None = None, *, with_backward: bool = False
    ) -> Tensor:
        """Compute the loss from the vectors of all parts."""
        loss: Tensor = self.loss.compute_loss_from_embeddings([torch.cat(parts) for parts in reps], labels)
        if with_backward:
            loss.backward()
            loss = loss.detach()
        return loss

    def forward(self, features: Any, labels: Tensor) -> Any:
        """Encode the columns in parts, and compute the loss."""
        return self.forward_cached(features, labels)


_ROUNDING = 1e-5  # a text has slightly different vectors in different batches
_TEXTS = 10_000  # whose vectors are kept: a loss over several dimensions or directions uses those of a batch again


def open_guide(name: str, max_length: int | None, device: torch.device) -> TextEncoder:
    """Open the encoder ``name``, whose texts are cut at ``max_length`` tokens if its own limit is not lower."""
    guide = open_encoder(name, device=str(device))
    limits = [limit for limit in (guide.model.max_seq_length, max_length) if limit is not None]
    limit_length(guide, min(limits, default=None))
    return guide


class GuidedPairs(KnownPairs):
    """Known answers, and documents that a frozen encoder, the guide, scores above the query's own document (GISTEmbed).

    In-batch negatives are drawn by chance, and some of them answer the query although no pair says so: such a document
    is not used as a negative (Solatorio 2024, arXiv:2402.16829, section 3).
    """

    def __init__(self, pairs: PairFile, guide: TextEncoder) -> None:
        super().__init__(pairs.keys, pairs.groups)
        self._pairs, self._guide = pairs, guide
        self._vectors: dict[tuple[int, Side], npt.NDArray[np.float32]] = {}

    def mask(self, queries: Rows, documents: Rows) -> npt.NDArray[np.bool_]:
        """Return a mask of false negatives, bool (B, C), for queries of pairs (B,) and documents of pairs (C,)."""
        if len(self._vectors) > _TEXTS:
            self._vectors.clear()
        self._encode(queries, "query")
        self._encode(np.union1d(queries, documents), "document")
        query_vectors, own = self._stacked(queries, "query"), self._stacked(queries, "document")
        above = (
            query_vectors @ self._stacked(documents, "document").T
            > (query_vectors * own).sum(axis=1, keepdims=True) + _ROUNDING
        )
        return super().mask(queries, documents) | above

    def _encode(self, rows: Rows, side: Side) -> None:
        missing = [row for row in rows.tolist() if (row, side) not in self._vectors]
        vectors = self._guide.encode([getattr(self._pairs[row], side) for row in missing], side)
        self._vectors |= {(row, side): vector for row, vector in zip(missing, vectors, strict=True)}

    def _stacked(self, rows: Rows, side: Side) -> npt.NDArray[np.float32]:
        return np.stack([self._vectors[row, side] for row in rows.tolist()])
