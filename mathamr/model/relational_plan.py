"""The plan of a relational convolution: which rows are summed and multiplied, worked out once for a batch.

The mean is linear, so nodes that share a matrix need not be transformed edge by edge. For every relation the plan
counts its distinct targets and its distinct sources and takes the fewer: either the neighbours of each target are
averaged first and the means transformed, or each source is transformed once and the results averaged. Each such
(relation, node) is a *message row*. Here nodes 0, 1 and 2 point to node 3 along relation 0, and node 3 to each of them
along relation 1: six edges, but two message rows, the mean of three nodes and node 3 itself.

>>> import torch
>>> edge_index = torch.tensor([[0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2]])
>>> plan = RelationalPlan.build(edge_index, torch.tensor([0, 0, 0, 1, 1, 1]), num_nodes=4, num_relations=2)
>>> plan.gather.sum(torch.tensor([[1.0], [2.0], [6.0], [7.0]])).tolist()
[[3.0], [7.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import GraphError


@dataclass(frozen=True, slots=True)
class WeightedBags:
    """Bags of weighted rows: bag ``i`` sums ``weight[k] * matrix[index[k]]`` over ``offsets[i] <= k < offsets[i + 1]``.

    Shapes: ``index`` (K,) int32, ``offsets`` (num_bags + 1,) int32, ``weight`` (K,) float.
    """

    index: Tensor
    offsets: Tensor
    weight: Tensor

    @classmethod
    def build(cls, bag: Tensor, index: Tensor, weight: Tensor, num_bags: int) -> WeightedBags:
        """Sort the triples (bag, index, weight), each of shape (K,), into bags."""
        order = torch.argsort(bag, stable=True)
        offsets = torch.zeros(num_bags + 1, dtype=torch.int64, device=bag.device)
        torch.cumsum(torch.bincount(bag, minlength=num_bags), 0, out=offsets[1:])
        return cls(index[order].int(), offsets.int(), weight[order])

    def sum(self, matrix: Tensor) -> Tensor:
        """Sums of the rows of ``matrix`` (num_rows, d) -> (num_bags, d); an empty bag gives zeros."""
        weight = self.weight.to(matrix.dtype)
        return functional.embedding_bag(
            self.index, matrix, self.offsets, mode="sum", per_sample_weights=weight, include_last_offset=True
        )


@dataclass(frozen=True, slots=True)
class Bucket:
    """``count`` relations from ``first`` on (positions in ``plan.relations``) with ``size`` message rows each."""

    first: int
    count: int
    size: int
    row: int  # the first message row of the bucket


@dataclass(frozen=True, slots=True)
class RelationalPlan:
    """Which rows a relational convolution sums and multiplies; made once for a batch and shared by all layers.

    Attributes:
        num_nodes: N, the nodes that messages come from.
        targets: the nodes (T,) that the convolution computes, or None for all N in their order.
        relations: the relations (P,) that occur, by the number of their message rows.
        buckets: ranges of ``relations`` whose matrix products run together.
        num_rows: M, message rows with padding.
        num_messages: message rows without padding.
        gather, gather_transposed: bags N -> M and M -> N.
        scatter, scatter_transposed: bags M -> T and T -> M.
        row_ends: the end of each relation's rows (P,) int32, in the order of ``relations``.
    """

    num_nodes: int
    num_relations: int
    targets: Tensor | None
    relations: Tensor
    buckets: tuple[Bucket, ...]
    num_rows: int
    num_messages: int
    gather: WeightedBags
    gather_transposed: WeightedBags
    scatter: WeightedBags
    scatter_transposed: WeightedBags
    row_ends: Tensor

    @classmethod
    def build(
        cls,
        edge_index: Tensor,
        relation: Tensor,
        *,
        num_nodes: int,
        num_relations: int,
        targets: Tensor | None = None,
        dtype: torch.dtype = torch.float32,
    ) -> RelationalPlan:
        """The plan of the edges ``edge_index`` (2, E) int64, source row first, with ``relation`` (E,) int64.

        With ``targets``, distinct nodes (T,), only these nodes are computed and all other edges are left out:
        a last layer of which only some nodes are read costs only those. ``dtype`` is that of the weights 1 / |N_i^r|.
        A relation or a node outside its range is a :class:`GraphError`.
        """
        _check_range("relation", relation, num_relations)
        _check_range("edge_index", edge_index, num_nodes)
        source, target = edge_index
        num_targets = num_nodes
        if targets is not None:
            num_targets = targets.numel()
            position = torch.full((num_nodes,), -1, dtype=torch.int64, device=target.device)
            position[targets] = torch.arange(num_targets, device=target.device)
            kept = torch.nonzero(position[target] >= 0).squeeze(1)
            source, target, relation = source[kept], position[target[kept]], relation[kept]

        # The distinct (relation, target) and (relation, source), in the order of their relations.
        by_target, target_row, neighbours = torch.unique(
            relation * num_targets + target, return_inverse=True, return_counts=True
        )
        by_source, source_row = torch.unique(relation * num_nodes + source, return_inverse=True)
        target_relation, source_relation = by_target // max(num_targets, 1), by_source // max(num_nodes, 1)
        target_rows = torch.bincount(target_relation, minlength=num_relations)  # (R,)
        source_rows = torch.bincount(source_relation, minlength=num_relations)  # (R,)
        reduce_first = target_rows < source_rows  # (R,)
        rows = torch.where(reduce_first, target_rows, source_rows)
        relations, starts, row_ends, buckets, num_rows = _lay_out(rows.cpu().numpy())

        start = torch.from_numpy(starts).to(relation.device)
        target_row_id = torch.arange(by_target.numel(), device=relation.device)
        target_row_id += (start - target_rows.cumsum(0) + target_rows)[target_relation]
        source_row_id = torch.arange(by_source.numel(), device=relation.device)
        source_row_id += (start - source_rows.cumsum(0) + source_rows)[source_relation]

        share = neighbours.to(dtype).reciprocal()[target_row]  # (E,), 1 / |N_i^r|
        reduced = reduce_first[relation]  # (E,)
        edges_reduced, edges_spread = torch.nonzero(reduced).squeeze(1), torch.nonzero(~reduced).squeeze(1)
        means = torch.nonzero(reduce_first[target_relation]).squeeze(1)
        singles = torch.nonzero(~reduce_first[source_relation]).squeeze(1)
        one = share.new_ones(max(means.numel(), singles.numel()))
        gathered_row = torch.cat([target_row_id[target_row[edges_reduced]], source_row_id[singles]])
        gathered_node = torch.cat([source[edges_reduced], by_source[singles] % max(num_nodes, 1)])
        gathered_weight = torch.cat([share[edges_reduced], one[: singles.numel()]])
        scattered_row = torch.cat([target_row_id[means], source_row_id[source_row[edges_spread]]])
        scattered_node = torch.cat([by_target[means] % max(num_targets, 1), target[edges_spread]])
        scattered_weight = torch.cat([one[: means.numel()], share[edges_spread]])
        return cls(
            num_nodes=num_nodes,
            num_relations=num_relations,
            targets=targets,
            relations=torch.from_numpy(relations).to(relation.device),
            buckets=buckets,
            num_rows=num_rows,
            num_messages=means.numel() + singles.numel(),
            gather=WeightedBags.build(gathered_row, gathered_node, gathered_weight, num_rows),
            gather_transposed=WeightedBags.build(gathered_node, gathered_row, gathered_weight, num_nodes),
            scatter=WeightedBags.build(scattered_node, scattered_row, scattered_weight, num_targets),
            scatter_transposed=WeightedBags.build(scattered_row, scattered_node, scattered_weight, num_rows),
            row_ends=torch.from_numpy(row_ends).to(relation.device),
        )


def _check_range(name: str, values: Tensor, bound: int) -> None:
    if values.numel() == 0:
        return
    low, high = torch.stack(torch.aminmax(values)).tolist()
    if low < 0 or high >= bound:
        raise GraphError(
            f"{name} has the value {low if low < 0 else high}, it must lie in 0..{bound - 1}; "
            "was the graph stored with another vocabulary?"
        )


def _lay_out(rows: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, tuple[Bucket, ...], int]:
    """Places for the message rows of each relation, ``rows`` (R,), with buckets of equal padded size.

    Padded sizes have at most three binary digits, so padding adds less than a quarter.
    """
    relations = np.flatnonzero(rows)
    digits = np.frexp(rows[relations])[1]  # rows = fraction * 2 ** digits
    step = 2 ** np.maximum(digits - 3, 0)
    sizes = -(-rows[relations] // step) * step
    order = np.argsort(sizes, kind="stable")
    relations, sizes = relations[order], sizes[order]
    ends = np.cumsum(sizes)
    starts = np.zeros(rows.size, dtype=np.int64)
    starts[relations] = ends - sizes
    bucket_sizes, first, count = np.unique(sizes, return_index=True, return_counts=True)
    buckets = tuple(
        Bucket(int(f), int(c), int(s), int(starts[relations[f]]))
        for s, f, c in zip(bucket_sizes, first, count, strict=True)
    )
    num_rows = int(ends[-1]) if ends.size else 0
    return relations.astype(np.int64), starts, ends.astype(np.int32), buckets, num_rows
