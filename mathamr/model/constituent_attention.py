"""Attention of a virtual node over its constituents, in place of the mean of the relational convolution.

Nodes 0 and 1 are below the formula node 2, nodes 0 and 3 below the sentence node 4 (relations 1 and 3, see
:data:`graphs.graph.vocabulary.CONSTITUENT_RELATIONS`). With scores of zero the attention is the mean:

>>> import torch
>>> edge_index, relation = torch.tensor([[0, 1, 0, 3], [2, 2, 4, 4]]), torch.tensor([1, 1, 3, 3])
>>> plan = ConstituentPlan.build(edge_index, relation, num_nodes=5)
>>> plan.target.tolist(), plan.kind.tolist()
([2, 4], [0, 1])
>>> attend(torch.zeros(2, 1), torch.tensor([[1.0], [3.0], [0.0], [5.0], [0.0]]), plan).tolist()
[[2.0], [3.0]]

Like the mean, attention is linear in the vectors, and its weights sum to one. So vectors are weighted first and only
the few sums are multiplied by the matrix of their relation. The weighted sums are bags of rows, forward and backward,
as in :mod:`mathamr.model.relational_conv`: no atomic additions, and results repeat bit for bit.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.graph.vocabulary import CONSTITUENT_RELATIONS
from mathamr.model.relational_conv import RelationalConv
from mathamr.model.relational_plan import WeightedBags, sum_runs


@dataclass(frozen=True, slots=True)
class ConstituentPlan:
    """Constituents (C edges) of the attending virtual nodes (S), made once for a batch and shared by all layers.

    Attributes:
        source: int64 (C,), constituents, grouped by virtual node.
        segment: int64 (C,), virtual node (0 to S - 1) of each constituent.
        offsets: int32 (S + 1,), start of each virtual node's constituents.
        node: int64 (S,), virtual nodes.
        target: int64 (S,), their output rows: the nodes themselves, or their places among the plan's targets.
        kind: int64 (S,), place of each node's relation in ``CONSTITUENT_RELATIONS``.
        by_source: int64 (C,), edges ordered by source; ``source_offsets`` int32 (N + 1,).
        num_rows: number of output rows.
    """

    source: Tensor
    segment: Tensor
    offsets: Tensor
    node: Tensor
    target: Tensor
    kind: Tensor
    by_source: Tensor
    source_offsets: Tensor
    num_rows: int

    @classmethod
    def build(
        cls, edge_index: Tensor, relation: Tensor, *, num_nodes: int, targets: Tensor | None = None
    ) -> ConstituentPlan:
        """Plan attention for the edges (2, E), ``relation`` (E,), that lead from constituents to virtual nodes.

        With ``targets``, distinct nodes (T,), only these attend, and the output has one row for each.
        """
        kept = torch.nonzero(leads_up(relation)).squeeze(1)
        source, target = edge_index.index_select(1, kept)
        kind = torch.bucketize(relation.index_select(0, kept), _relations(relation.device))
        num_rows, row = num_nodes, torch.arange(num_nodes, device=source.device)
        if targets is not None:
            num_rows = targets.numel()
            row = torch.full((num_nodes,), -1, dtype=torch.int64, device=source.device)
            row[targets] = torch.arange(num_rows, device=source.device)
            kept = torch.nonzero(row.index_select(0, target) >= 0).squeeze(1)
            source, target, kind = source[kept], target[kept], kind[kept]
        group = target * len(CONSTITUENT_RELATIONS) + kind
        order = torch.argsort(group, stable=True)
        source = source.index_select(0, order)
        distinct, segment, count = torch.unique_consecutive(group[order], return_inverse=True, return_counts=True)
        node = distinct // len(CONSTITUENT_RELATIONS)
        return cls(
            source=source,
            segment=segment,
            offsets=functional.pad(count.cumsum(0), (1, 0)).int(),
            node=node,
            target=row.index_select(0, node),
            kind=distinct % len(CONSTITUENT_RELATIONS),
            by_source=torch.argsort(source, stable=True),
            source_offsets=functional.pad(torch.bincount(source, minlength=num_nodes).cumsum(0), (1, 0)).int(),
            num_rows=num_rows,
        )


def leads_up(relation: Tensor) -> Tensor:
    """Mark the edges that lead from a constituent to its virtual node: ``relation`` (E,) -> bool (E,)."""
    return torch.isin(relation, _relations(relation.device))


def _relations(device: torch.device) -> Tensor:
    return torch.tensor(CONSTITUENT_RELATIONS, device=device)


def attend(query: Tensor, x: Tensor, plan: ConstituentPlan) -> Tensor:
    r"""Sum constituents weighted by attention: ``query`` (S, d), ``x`` (N, d) -> (S, d).

    .. math:: z_s = \sum_j \alpha_{sj} x_j, \quad \alpha_{sj} = \mathrm{softmax}_j (q_s \cdot x_j / \sqrt d)
    """
    return _Attention.apply(query, x, plan)


def attend_reference(query: Tensor, x: Tensor, plan: ConstituentPlan) -> Tensor:
    """Compute :func:`attend` one virtual node at a time, as a reference."""
    weighted = []
    for s in range(len(query)):
        below = x[plan.source[plan.segment == s]]  # (constituents, d)
        weight = torch.softmax(below @ query[s] / x.shape[1] ** 0.5, dim=0)
        weighted.append(weight @ below)
    return torch.stack(weighted) if weighted else x[:0] + query[:0]


class _Attention(torch.autograd.Function):
    """Attention that keeps the inputs and the weights (C,) for the backward pass, and no row for a constituent."""

    @staticmethod
    def forward(ctx: Any, query: Tensor, x: Tensor, plan: ConstituentPlan) -> Tensor:
        score = _products(query, x, plan) / x.shape[1] ** 0.5
        highest = score.new_full((len(query),), -torch.inf).scatter_reduce(0, plan.segment, score, "amax")
        share = torch.exp(score - highest.index_select(0, plan.segment))
        weight = share / _sum_segments(share, plan)
        ctx.save_for_backward(query, x, weight)
        ctx.plan = plan
        return WeightedBags(plan.source.int(), plan.offsets, weight).sum(x)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, None]:
        query, x, weight = ctx.saved_tensors
        plan, dz = ctx.plan, grads[0].contiguous()
        dweight = _products(dz, x, plan)
        dscore = weight * (dweight - _sum_segments(weight * dweight, plan)) / x.shape[1] ** 0.5
        segment = plan.segment.index_select(0, plan.by_source).int()
        dx = WeightedBags(segment, plan.source_offsets, weight.index_select(0, plan.by_source)).sum(dz)
        dx += WeightedBags(segment, plan.source_offsets, dscore.index_select(0, plan.by_source)).sum(query)
        return WeightedBags(plan.source.int(), plan.offsets, dscore).sum(x), dx, None


def _products(of_segments: Tensor, x: Tensor, plan: ConstituentPlan) -> Tensor:
    """Multiply each constituent with its virtual node's row: (S, d), (N, d) -> float (C,), not in half precision."""
    rows = of_segments.index_select(0, plan.segment) * x.index_select(0, plan.source)
    return rows.sum(1, dtype=torch.promote_types(x.dtype, torch.float32))


def _sum_segments(values: Tensor, plan: ConstituentPlan) -> Tensor:
    """Return, for each constituent, the sum of ``values`` (C,) over its virtual node."""
    return sum_runs(values.unsqueeze(1), plan.offsets).squeeze(1).index_select(0, plan.segment)


class ConstituentAttention(nn.Module):
    r"""Messages from constituents to virtual nodes, single-head; other messages are unchanged.

    .. math:: m_i = W_r^\top \sum_{j \in N_i^r} \alpha_{ij} h_j + e_r, \quad
              \alpha_{ij} = \mathrm{softmax}_j \big( (A h_i + a_r) \cdot h_j / \sqrt d \big)

    :math:`W_r` and :math:`e_r` are the convolution's own; :math:`A` and, for each kind of virtual node, :math:`a_r` are
    learned here. Beyond the thesis, whose virtual nodes take the mean, :math:`\alpha_{ij} = 1 / |N_i^r|`.

    Shapes:
        (N, hidden_dim) -> (N, hidden_dim), or (T, hidden_dim) if the plan names T targets; zeros for other nodes.
    """

    def __init__(self, hidden_dim: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(hidden_dim, hidden_dim))
        self.bias = nn.Parameter(torch.zeros(len(CONSTITUENT_RELATIONS), hidden_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, x: Tensor, plan: ConstituentPlan, conv: RelationalConv) -> Tensor:
        dtype = torch.get_autocast_dtype(x.device.type) if torch.is_autocast_enabled(x.device.type) else x.dtype
        x = x.to(dtype)
        query = functional.linear(x.index_select(0, plan.node), self.weight.to(dtype))
        query = query + functional.embedding(plan.kind, self.bias).to(dtype)
        weighted = attend(query, x, plan)  # (S, d)
        relations = _relations(x.device)
        transformed = weighted @ conv.relation_matrices(relations).to(dtype)  # (kinds, S, d)
        if conv.edge_vectors is not None:
            transformed = transformed + conv.edge_vectors.index_select(0, relations).to(dtype).unsqueeze(1)
        messages = transformed[plan.kind, torch.arange(plan.kind.numel(), device=x.device)]
        return messages.new_zeros(plan.num_rows, messages.shape[1]).index_add(0, plan.target, messages)
