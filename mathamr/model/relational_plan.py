"""Plan of a relational convolution: which rows are summed and multiplied, computed once for a batch.

The mean is linear, so nodes that share a matrix need not be transformed edge by edge. For every relation the plan
counts the distinct targets and the distinct sources, and takes the smaller set. Either the neighbours of each target
are averaged first and the means transformed, or each source is transformed once and the results averaged. Each such
(relation, node) is a *message row*. Here nodes 0, 1 and 2 point to node 3 along relation 0, and node 3 to each of them
along relation 1: six edges, but two message rows, the mean of three nodes and node 3 itself.

>>> import torch
>>> edge_index = torch.tensor([[0, 1, 2, 3, 3, 3], [3, 3, 3, 0, 1, 2]])
>>> plan = RelationalPlan.build(edge_index, torch.tensor([0, 0, 0, 1, 1, 1]), num_nodes=4, num_relations=2)
>>> plan.num_messages
2
>>> rows = plan.gather.sum(torch.tensor([[1.0], [2.0], [6.0], [7.0]]))
>>> rows[plan.row_offsets[:-1]].tolist()
[[3.0], [7.0]]
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import GraphError

# A relation's rows are padded to the smallest tile that holds them all, or to several tiles of the largest size. Few
# sizes make few products, which keeps the cost of kernel starts (GPU) and of waiting for threads (CPU) low.
# Sizes are multiples of 8, since grouped_mm needs the rows of each relation to start at multiples of 16 bytes.
TILE_SIZES = (8, 24, 64, 192)


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
        order = torch.argsort(bag.int(), stable=True)
        offsets = functional.pad(torch.bincount(bag, minlength=num_bags).cumsum(0), (1, 0))
        return cls(index.index_select(0, order).int(), offsets.int(), weight.index_select(0, order))

    def sum(self, matrix: Tensor) -> Tensor:
        """Sum rows of ``matrix`` (num_rows, d) -> (num_bags, d); an empty bag gives zeros."""
        weight = self.weight.to(matrix.dtype)
        return functional.embedding_bag(
            self.index, matrix, self.offsets, mode="sum", per_sample_weights=weight, include_last_offset=True
        )


def sum_runs(matrix: Tensor, offsets: Tensor) -> Tensor:
    """Sum consecutive rows of ``matrix`` (num_rows, d), from each of the ``offsets`` (K + 1,) int32 to the next."""
    index = torch.arange(len(matrix), dtype=offsets.dtype, device=offsets.device)
    return functional.embedding_bag(index, matrix, offsets, mode="sum", include_last_offset=True)


@dataclass(frozen=True, slots=True)
class TileGroup:
    """Relations with message rows padded to tiles of one size; one matrix product serves them all.

    Attributes:
        size: rows of a tile.
        relations: part of ``plan.relations`` in this group.
        rows: message rows of this group, a whole number of tiles.
        tile_relation: relation of each tile, counted within the group, if relations have several tiles.
        tile_offsets: start of each relation's tiles, and the number of tiles, if relations have several tiles.
    """

    size: int
    relations: slice
    rows: slice
    tile_relation: Tensor | None
    tile_offsets: Tensor | None


@dataclass(frozen=True, slots=True)
class RelationalPlan:
    """Rows that a relational convolution sums and multiplies; made once for a batch and shared by all layers.

    Attributes:
        num_nodes: N, number of nodes that messages come from.
        targets: nodes (T,) that the convolution computes, or None for all N in order.
        relations: relations (P,) that occur, ordered by their number of message rows.
        groups: parts of ``relations`` whose matrix products run together.
        num_rows: M, number of message rows with padding.
        num_messages: number of message rows without padding.
        gather, gather_transposed: bags N -> M and M -> N.
        scatter, scatter_transposed: bags M -> T and T -> M.
        row_offsets: start of each relation's rows (P + 1,) int32, in the order of ``relations``, and M.
    """

    num_nodes: int
    num_relations: int
    targets: Tensor | None
    relations: Tensor
    groups: tuple[TileGroup, ...]
    num_rows: int
    num_messages: int
    gather: WeightedBags
    gather_transposed: WeightedBags
    scatter: WeightedBags
    scatter_transposed: WeightedBags
    row_offsets: Tensor

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
        """Build the plan of the edges ``edge_index`` (2, E) int64, source row first, with ``relation`` (E,) int64.

        With ``targets``, distinct nodes (T,), only these nodes are computed and all other edges are left out, so a
        last layer of which few nodes are read costs little. ``dtype`` is that of the weights 1 / |N_i^r|. A relation
        or a node out of range raises :class:`GraphError`.
        """
        _check_range("relation", relation, num_relations)
        _check_range("edge_index", edge_index, num_nodes)
        source, target = edge_index
        num_targets = num_nodes
        if targets is not None:
            num_targets = targets.numel()
            position = torch.full((num_nodes,), -1, dtype=torch.int64, device=target.device)
            position[targets] = torch.arange(num_targets, device=target.device)
            position_of_target = position.index_select(0, target)
            kept = torch.nonzero(position_of_target >= 0).squeeze(1)
            source, relation = source.index_select(0, kept), relation.index_select(0, kept)
            target = position_of_target.index_select(0, kept)

        # Distinct (relation, target) and (relation, source), ordered by relation.
        by_target, target_row, neighbours = torch.unique(
            relation * num_targets + target, return_inverse=True, return_counts=True
        )
        by_source, source_row = torch.unique(relation * num_nodes + source, return_inverse=True)
        target_relation, source_relation = by_target // max(num_targets, 1), by_source // max(num_nodes, 1)
        target_rows = torch.bincount(target_relation, minlength=num_relations)  # (R,)
        source_rows = torch.bincount(source_relation, minlength=num_relations)  # (R,)
        reduce_first = target_rows < source_rows  # (R,)
        rows = torch.where(reduce_first, target_rows, source_rows)
        relations, starts, groups = _lay_out(rows.cpu().numpy(), relation.device)
        num_rows = groups[-1].rows.stop if groups else 0

        # Message row of each, as if all relations were of its kind: rows are grouped by relation.
        start = torch.zeros(num_relations, dtype=torch.int64, device=relation.device)
        start[relations] = starts
        shift = start - target_rows.cumsum(0) + target_rows
        target_row_id = shift.index_select(0, target_relation)
        target_row_id += torch.arange(by_target.numel(), device=relation.device)
        shift = start - source_rows.cumsum(0) + source_rows
        source_row_id = shift.index_select(0, source_relation)
        source_row_id += torch.arange(by_source.numel(), device=relation.device)

        share = neighbours.to(dtype).reciprocal().index_select(0, target_row)  # (E,), 1 / |N_i^r|
        reduced = reduce_first.index_select(0, relation)  # (E,)
        averaged, spread = torch.nonzero(reduced).squeeze(1), torch.nonzero(~reduced).squeeze(1)  # edges
        means = torch.nonzero(reduce_first.index_select(0, target_relation)).squeeze(1)
        singles = torch.nonzero(~reduce_first.index_select(0, source_relation)).squeeze(1)
        row_of_mean = target_row_id.index_select(0, target_row.index_select(0, averaged))
        row_of_spread = source_row_id.index_select(0, source_row.index_select(0, spread))
        gathered_row = torch.cat([row_of_mean, source_row_id.index_select(0, singles)])
        gathered_node = torch.cat([source.index_select(0, averaged), by_source.index_select(0, singles)])
        gathered_node[averaged.numel() :].remainder_(max(num_nodes, 1))
        gathered_weight = torch.cat([share.index_select(0, averaged), share.new_ones(singles.numel())])
        scattered_row = torch.cat([target_row_id.index_select(0, means), row_of_spread])
        scattered_node = torch.cat([by_target.index_select(0, means), target.index_select(0, spread)])
        scattered_node[: means.numel()].remainder_(max(num_targets, 1))
        scattered_weight = torch.cat([share.new_ones(means.numel()), share.index_select(0, spread)])
        return cls(
            num_nodes=num_nodes,
            num_relations=num_relations,
            targets=targets,
            relations=relations,
            groups=groups,
            num_rows=num_rows,
            num_messages=means.numel() + singles.numel(),
            gather=WeightedBags.build(gathered_row, gathered_node, gathered_weight, num_rows),
            gather_transposed=WeightedBags.build(gathered_node, gathered_row, gathered_weight, num_nodes),
            scatter=WeightedBags.build(scattered_node, scattered_row, scattered_weight, num_targets),
            scatter_transposed=WeightedBags.build(scattered_row, scattered_node, scattered_weight, num_rows),
            row_offsets=functional.pad(starts, (0, 1), value=num_rows).int(),
        )


def _check_range(name: str, values: Tensor, bound: int) -> None:
    if values.numel() == 0:
        return
    low, high = torch.stack(torch.aminmax(values)).tolist()
    if low < 0 or high >= bound:
        raise GraphError(
            f"{name} has the value {low if low < 0 else high}, outside 0..{bound - 1}; "
            "check that the graph was stored with this vocabulary"
        )


def _lay_out(rows: np.ndarray, device: torch.device) -> tuple[Tensor, Tensor, tuple[TileGroup, ...]]:
    """Return the relations with message ``rows`` (R,), the start of each relation's rows, and groups of tiles."""
    relations = np.argsort(rows, kind="stable")
    relations = relations[np.searchsorted(rows[relations], 1) :]  # relations with rows, fewest first
    level = np.minimum(np.searchsorted(TILE_SIZES, rows[relations]), len(TILE_SIZES) - 1)
    tiles = -(-rows[relations] // np.array(TILE_SIZES)[level])
    ends = np.cumsum(tiles * np.array(TILE_SIZES)[level])
    starts = ends - tiles * np.array(TILE_SIZES)[level]
    bounds = np.searchsorted(level, np.arange(len(TILE_SIZES) + 1))
    groups = []
    for size, first, last in zip(TILE_SIZES, bounds[:-1].tolist(), bounds[1:].tolist(), strict=True):
        if first == last:
            continue
        count = tiles[first:last]
        several = count.max() > 1
        offsets = np.append(0, np.cumsum(count)).astype(np.int32)
        groups.append(
            TileGroup(
                size=size,
                relations=slice(first, last),
                rows=slice(int(starts[first]), int(ends[last - 1])),
                tile_relation=_on(device, np.repeat(np.arange(last - first), count)) if several else None,
                tile_offsets=_on(device, offsets) if several else None,
            )
        )
    return _on(device, relations), _on(device, starts), tuple(groups)


def _on(device: torch.device, array: np.ndarray) -> Tensor:
    return torch.from_numpy(array).to(device)
