"""The encoder: a batch of graphs becomes a set of unit vectors for each document.

Two graphs of two nodes each; in the first both nodes represent the document, in the second only the last, a document
virtual node. A stand-in for :class:`graphs.batching.GraphBatch` shows which fields are read:

>>> import torch
>>> from types import SimpleNamespace
>>> batch = SimpleNamespace(
...     labels=torch.tensor([3, 4, 3, 2]), edge_index=torch.tensor([[0, 2], [1, 3]]), relation=torch.tensor([0, 1]),
...     node_graph=torch.tensor([0, 0, 1, 1]), is_virtual=torch.tensor([False, False, False, True]),
...     virtual_kind=torch.tensor([-1, -1, -1, 2]), representatives=torch.tensor([0, 1, 3]),
...     ptr=torch.tensor([0, 2, 3]), num_graphs=2)
>>> config = EncoderConfig(hidden_dim=8, projection_dim=4, num_layers=2, num_bases=2, num_blocks=None,
...                        edge_vectors=True, vn_init="zero", vn_learned="embedding")
>>> documents = Encoder(config, num_labels=5, num_relations=2)(batch)
>>> documents.vectors.shape, documents.ptr.tolist()
(torch.Size([3, 4]), [0, 2, 3])
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.errors import ConfigError
from mathamr.maxsim import VectorSets
from mathamr.model.node_features import NodeFeatures
from mathamr.model.projection import ProjectionHead
from mathamr.model.relational_conv import RelationalConv
from mathamr.model.relational_plan import RelationalPlan

if TYPE_CHECKING:
    from graphs.batching import GraphBatch


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Types and meanings; the values and their sources stand in ``conf/model``.

    Attributes:
        hidden_dim: d, the size of node vectors.
        projection_dim: p, the size of the vectors that are compared.
        num_layers: relational layers, at least 1.
        num_bases: matrices that relations share, or None; exclusive with ``num_blocks``.
        num_blocks: blocks of block-diagonal relation matrices, or None.
        edge_vectors: whether messages carry a learned vector of their relation, in each layer its own.
        vn_init: value that virtual nodes start from: zero, random or mean.
        vn_learned: what is learned about it: none, embedding, projection or typed_projection.
    """

    hidden_dim: int
    projection_dim: int
    num_layers: int
    num_bases: int | None
    num_blocks: int | None
    edge_vectors: bool
    vn_init: str
    vn_learned: str

    def __post_init__(self) -> None:
        for name in ("hidden_dim", "projection_dim", "num_layers"):
            value = getattr(self, name)
            if value < 1:
                raise ConfigError(f"{name}={value} must be at least 1")


class EncoderLayer(nn.Module):
    r"""A pre-norm residual relational layer, thesis Eq. 3.1, with the exact GELU of Eq. 3.2.

    .. math:: h_i' = h_i + \mathrm{GELU}(\mathrm{RGCN}(\mathrm{LayerNorm}(h_i), N_i, R))

    Shapes:
        (N, hidden_dim) -> (N, hidden_dim), or (T, hidden_dim) where the plan names T targets.
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

    def forward(self, hidden: Tensor, plan: RelationalPlan) -> Tensor:
        update = functional.gelu(self.conv(self.norm(hidden), plan))
        residual = hidden if plan.targets is None else hidden[plan.targets]
        return residual + update


class Encoder(nn.Module):
    """Node features, relational layers, projection head, normalisation to unit length (thesis 3.3).

    Args:
        num_labels: size of the label vocabulary.
        num_relations: size of the relation vocabulary, inverses and virtual relations included.

    Shapes:
        GraphBatch of B graphs with V representatives -> VectorSets of vectors (V, projection_dim) float32, ptr (B + 1,)
    """

    def __init__(self, config: EncoderConfig, num_labels: int, num_relations: int) -> None:
        super().__init__()
        self.config, self.num_relations = config, num_relations
        self.features = NodeFeatures(
            num_labels, config.hidden_dim, vn_init=config.vn_init, vn_learned=config.vn_learned
        )
        self.layers = nn.ModuleList(EncoderLayer(config, num_relations) for _ in range(config.num_layers))
        self.projection = ProjectionHead(config.hidden_dim, config.projection_dim)

    def forward(self, batch: GraphBatch) -> VectorSets:
        hidden = self.features(batch)  # (N, hidden_dim)
        *layers, last_layer = self.layers
        if layers:
            plan = self._plan(batch, None)
            for layer in layers:
                hidden = layer(hidden, plan)
        # Only representatives are read from the last layer, so only they are computed; one node may stand for two.
        nodes, position = torch.unique(batch.representatives, return_inverse=True)
        hidden = last_layer(hidden, self._plan(batch, nodes))  # (distinct representatives, hidden_dim)
        projected = self.projection(hidden)[position]  # (V, projection_dim)
        return VectorSets(functional.normalize(projected.float(), dim=-1), batch.ptr)

    def _plan(self, batch: GraphBatch, targets: Tensor | None) -> RelationalPlan:
        return RelationalPlan.build(
            batch.edge_index,
            batch.relation,
            num_nodes=batch.labels.numel(),
            num_relations=self.num_relations,
            targets=targets,
            dtype=self.features.labels.weight.dtype,
        )

    def parameters_by_group(self) -> dict[str, int]:
        """Numbers of parameters: label embedding, virtual nodes, relational layers, projection head, and the total."""
        count = {
            "labels": sum(p.numel() for p in self.features.labels.parameters()),
            "relational_layers": sum(p.numel() for p in self.layers.parameters()),
            "projection": sum(p.numel() for p in self.projection.parameters()),
        }
        total = sum(p.numel() for p in self.parameters())
        return {**count, "virtual_nodes": total - sum(count.values()), "total": total}
