"""Encoder: from a batch of graphs to a set of unit vectors for each document.

Two graphs of two nodes each. In the first, both nodes represent the document; in the second only the last one, a
document virtual node. A stand-in for :class:`graphs.graph.batching.GraphBatch` shows which fields are read:

>>> import torch
>>> from types import SimpleNamespace
>>> batch = SimpleNamespace(
...     labels=torch.tensor([3, 4, 3, 2]), edge_index=torch.tensor([[0, 2], [1, 3]]), relation=torch.tensor([0, 1]),
...     node_graph=torch.tensor([0, 0, 1, 1]), is_virtual=torch.tensor([False, False, False, True]),
...     virtual_kind=torch.tensor([-1, -1, -1, 2]), representatives=torch.tensor([0, 1, 3]),
...     ptr=torch.tensor([0, 2, 3]), num_graphs=2, has_threads=False)
>>> from mathamr.default_settings import values
>>> config = EncoderConfig(**values("model", "thesis") | {"hidden_dim": 8, "projection_dim": 4})
>>> documents = Encoder(config, num_labels=5, num_relations=2)(batch)
>>> documents.vectors.shape, documents.ptr.tolist()
(torch.Size([3, 4]), [0, 2, 3])
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.errors import ConfigError
from mathamr.maxsim import VectorSets
from mathamr.model.config import EncoderConfig
from mathamr.model.constituent_attention import ConstituentAttention, ConstituentPlan, leads_up
from mathamr.model.node_features import NodeFeatures
from mathamr.model.projection import ProjectionHead
from mathamr.model.relational_conv import RelationalConv
from mathamr.model.relational_plan import RelationalPlan

if TYPE_CHECKING:
    from graphs.graph.batching import GraphBatch


class EncoderLayer(nn.Module):
    r"""A pre-norm residual relational layer, thesis Eq. 3.1, with the exact GELU of Eq. 3.2.

    .. math:: h_i' = h_i + \mathrm{GELU}(\mathrm{RGCN}(\mathrm{LayerNorm}(h_i), N_i, R))

    Shapes:
        (N, hidden_dim) -> (N, hidden_dim), or (T, hidden_dim) if the plan names T targets.
    """

    def __init__(self, config: EncoderConfig, num_relations: int) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(config.hidden_dim)
        self.conv = RelationalConv(
            config.hidden_dim,
            config.hidden_dim,
            num_relations,
            num_bases=config.num_bases,
            num_blocks=config.num_blocks,
            edge_vectors=config.edge_vectors,
        )
        self.attention = ConstituentAttention(config.hidden_dim) if config.vn_aggregation == "attention" else None

    def forward(self, hidden: Tensor, plan: RelationalPlan, constituents: ConstituentPlan | None = None) -> Tensor:
        """Apply the layer. With attention, ``plan`` lacks the edges from constituents; ``constituents`` holds them."""
        normed = self.norm(hidden)
        messages = self.conv(normed, plan)
        if self.attention is not None and constituents is not None:
            messages = messages + self.attention(normed, constituents, self.conv)
        residual = hidden if plan.targets is None else hidden[plan.targets]
        return residual + functional.gelu(messages)


class Encoder(nn.Module):
    """Node features, relational layers, projection head, normalisation to unit length (thesis 3.3).

    Args:
        num_labels: size of the label vocabulary.
        num_relations: size of the relation vocabulary, inverses and virtual relations included.
        label_vectors: frozen vectors, float (num_labels, k), with the hash ``config.label_vectors``. They are saved
            with the weights, so they are not needed if weights will be loaded.
        sentence_dim: k of the sentence vectors (S, k) in each batch, if the configuration names a text encoder. Not
            needed if weights will be loaded.

    Raises:
        ConfigError: label vectors other than the configured ones.

    Shapes:
        GraphBatch of B graphs with V representatives -> VectorSets of vectors (V, projection_dim) float32, ptr (B + 1,)
    """

    def __init__(
        self,
        config: EncoderConfig,
        num_labels: int,
        num_relations: int,
        *,
        label_vectors: Tensor | None = None,
        sentence_dim: int | None = None,
    ) -> None:
        super().__init__()
        self.config, self.num_relations = config, num_relations
        self.features = NodeFeatures(config, num_labels)
        text, sentences = self.features.text, self.features.sentences
        if label_vectors is not None:
            if text is None:
                raise ConfigError("label vectors are given, but model.label_vectors is null; set it to their hash")
            text.take(label_vectors)
        self.layers = nn.ModuleList(EncoderLayer(config, num_relations) for _ in range(config.num_layers))
        self.projection = ProjectionHead(config.hidden_dim, config.projection_dim)
        if sentences is not None and sentence_dim is not None:
            sentences.begin(sentence_dim)  # last, so that all other weights start from the same random numbers

    def forward(self, batch: GraphBatch) -> VectorSets:
        hidden = self.features(batch)  # (N, hidden_dim)
        *layers, last_layer = self.layers
        if layers:
            plans = self._plans(batch, None)
            for layer in layers:
                hidden = layer(hidden, *plans)
        # Only representatives are read from the last layer, so only these are computed. One node may represent two.
        nodes, position = torch.unique(batch.representatives, return_inverse=True)
        hidden = last_layer(hidden, *self._plans(batch, nodes))  # (distinct representatives, hidden_dim)
        projected = self.projection(hidden)[position]  # (V, projection_dim)
        return VectorSets(functional.normalize(projected.float(), dim=-1), batch.ptr)

    def _plans(self, batch: GraphBatch, targets: Tensor | None) -> tuple[RelationalPlan, ConstituentPlan | None]:
        edge_index, relation, num_nodes = batch.edge_index, batch.relation, batch.labels.numel()
        constituents = None
        if self.config.vn_aggregation == "attention":
            constituents = ConstituentPlan.build(edge_index, relation, num_nodes=num_nodes, targets=targets)
            others = torch.nonzero(~leads_up(relation)).squeeze(1)
            edge_index, relation = edge_index.index_select(1, others), relation.index_select(0, others)
        plan = RelationalPlan.build(
            edge_index,
            relation,
            num_nodes=num_nodes,
            num_relations=self.num_relations,
            targets=targets,
            dtype=self.features.labels.weight.dtype,
        )
        return plan, constituents

    def parameters_by_group(self) -> dict[str, int]:
        """Return the number of parameters: label embedding, virtual nodes, relational layers, projection head, total.

        With label or sentence vectors, their projection is counted too; the vectors themselves are frozen.
        """
        parts = {
            "labels": self.features.labels,
            "relational_layers": self.layers,
            "projection": self.projection,
            "label_vectors": self.features.text,
            "sentence_vectors": self.features.sentences,
        }
        count = {name: sum(p.numel() for p in part.parameters()) for name, part in parts.items() if part is not None}
        total = sum(p.numel() for p in self.parameters())
        return {**count, "virtual_nodes": total - sum(count.values()), "total": total}
