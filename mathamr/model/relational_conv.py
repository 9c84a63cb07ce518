"""Relational graph convolution of the encoder, computed by the steps of a plan.

Node 2 receives node 0 and node 1 along relation 0, and node 0 along relation 1. With identity weights, no self-loop and
no edge vectors, its new vector is the mean of its neighbours along relation 0 plus the mean along relation 1:
(4 + 8) / 2 + 4 = 10:

>>> import torch
>>> edge_index = torch.tensor([[0, 1, 0], [2, 2, 2]])
>>> relation = torch.tensor([0, 0, 1])
>>> plan = RelationalPlan.build(edge_index, relation, num_nodes=3, num_relations=2)
>>> conv = RelationalConv(1, 1, num_relations=2, num_bases=None, num_blocks=None, edge_vectors=False)
>>> _ = conv.weight.data.fill_(1.0), conv.root.data.zero_(), conv.bias.data.zero_()
>>> conv(torch.tensor([[4.0], [8.0], [0.0]]), plan).tolist()
[[0.0], [0.0], [10.0]]

A layer is three steps over the message rows of a :class:`RelationalPlan`:

    z = gather(x)           weighted sums of node vectors, one for each message row
    y = z W_r + e_r         one matrix product for each relation
    out = scatter(y)        weighted sums of message rows, one for each node

Both sums are bags of weighted rows, forward and backward, so no atomic additions occur and results repeat bit for bit.
The matrix products run over tiles of a few sizes, all tiles of one size at once. A relation with few rows has one small
tile, which keeps padding cheap; a relation with many rows has several large tiles. No matrix is copied.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.errors import ConfigError, GraphError
from mathamr.model.relational_plan import RelationalPlan, TileGroup, sum_runs


def has_grouped_mm(z: Tensor, weight: Tensor) -> bool:
    """Return whether one kernel multiplies all relations: bfloat16, CUDA SM 8.0, dimensions divisible by 8."""
    return (
        z.is_cuda
        and z.dtype == torch.bfloat16
        and weight.shape[1] % 8 == 0
        and weight.shape[2] % 8 == 0
        and torch.cuda.get_device_capability(z.device) >= (8, 0)
    )


def multiply_tiles(z: Tensor, weight: Tensor, edge_vectors: Tensor | None, plan: RelationalPlan) -> Tensor:
    """Compute ``y = z W_r + e_r``: rows ``z`` (M, in), ``weight`` (P, in, out), ``edge_vectors`` (P, out)."""
    y = z.new_empty(plan.num_rows, weight.shape[2])
    for group in plan.groups:
        z_tiles = z[group.rows].view(-1, group.size, z.shape[1])  # (tiles, size, in)
        y_tiles = y[group.rows].view(-1, group.size, y.shape[1])  # (tiles, size, out)
        if edge_vectors is None:
            torch.bmm(z_tiles, _of_tiles(weight, group), out=y_tiles)
        else:
            vector = _of_tiles(edge_vectors, group).unsqueeze(1)  # (tiles, 1, out)
            torch.baddbmm(vector, z_tiles, _of_tiles(weight, group), out=y_tiles)
    return y


def multiply_tiles_backward(dy: Tensor, z: Tensor, weight: Tensor, plan: RelationalPlan) -> tuple[Tensor, Tensor]:
    """Return the gradients of ``z`` (M, in) and ``weight`` (P, in, out), given that of ``y`` (M, out)."""
    dz, dweight = torch.empty_like(z), torch.empty_like(weight)
    for group in plan.groups:
        dy_tiles = dy[group.rows].view(-1, group.size, dy.shape[1])  # (tiles, size, out)
        z_tiles = z[group.rows].view(-1, group.size, z.shape[1])  # (tiles, size, in)
        torch.bmm(dy_tiles, _of_tiles(weight, group).mT, out=dz[group.rows].view_as(z_tiles))
        if group.tile_offsets is None:
            torch.bmm(z_tiles.mT, dy_tiles, out=dweight[group.relations])
        else:
            of_tiles = torch.bmm(z_tiles.mT, dy_tiles)  # (tiles, in, out)
            dweight[group.relations] = sum_runs(of_tiles.flatten(1), group.tile_offsets).view(-1, *weight.shape[1:])
    return dz, dweight


def _of_tiles(of_relations: Tensor, group: TileGroup) -> Tensor:
    """Return the values of each tile of the group, from the values of each relation (P, ...) of the plan."""
    of_group = of_relations[group.relations]
    return of_group if group.tile_relation is None else of_group.index_select(0, group.tile_relation)


def multiply_grouped(z: Tensor, weight: Tensor, edge_vectors: Tensor | None, plan: RelationalPlan) -> Tensor:
    """Compute :func:`multiply_tiles` in one ``grouped_mm``."""
    y = functional.grouped_mm(z, weight, offs=plan.row_offsets[1:])
    return y if edge_vectors is None else y + edge_vectors.repeat_interleave(plan.row_offsets.diff(), 0)


def multiply_grouped_backward(dy: Tensor, z: Tensor, weight: Tensor, plan: RelationalPlan) -> tuple[Tensor, Tensor]:
    """Compute :func:`multiply_tiles_backward` in two ``grouped_mm``."""
    dz = functional.grouped_mm(dy, weight.mT, offs=plan.row_offsets[1:])
    return dz, functional.grouped_mm(z.mT, dy, offs=plan.row_offsets[1:])


class _RelationalMeans(torch.autograd.Function):
    """``sum_r mean_{j in N_i^r} (W_r h_j + e_r)``; the backward pass keeps only message rows and matrices."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, weight: Tensor, edge_vectors: Tensor | None, plan: RelationalPlan) -> Tensor:
        z = plan.gather.sum(x)  # (M, in)
        multiply = multiply_grouped if has_grouped_mm(z, weight) else multiply_tiles
        ctx.save_for_backward(z, weight)
        ctx.plan = plan
        return plan.scatter.sum(multiply(z, weight, edge_vectors, plan))  # (T, out)

    @staticmethod
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor, Tensor, Tensor | None, None]:
        z, weight = ctx.saved_tensors
        plan = ctx.plan
        dy = plan.scatter_transposed.sum(grads[0].contiguous())  # (M, out)
        backward = multiply_grouped_backward if has_grouped_mm(z, weight) else multiply_tiles_backward
        dz, dweight = backward(dy, z, weight, plan)
        dedge = sum_runs(dy, plan.row_offsets) if ctx.needs_input_grad[2] else None
        return plan.gather_transposed.sum(dz), dweight, dedge, None


class RelationalConv(nn.Module):
    r"""Relational graph convolution with a mean and a learned vector for each relation.

    .. math:: h_i' = W_0^\top h_i + b + \sum_r \frac{1}{|N_i^r|} \sum_{j \in N_i^r} (W_r^\top h_j + e_r)

    Thesis Eq. 2.4 (Schlichtkrull et al. 2018), without the activation and with the learned edge vector :math:`e_r` of
    section 3.3.2. Each of several parallel edges counts. A relation without an edge adds nothing.

    Args:
        num_bases: number of bases in ``W_r = sum_b comp[r, b] bases[b]``, or None.
        num_blocks: number of blocks of a block-diagonal ``W_r``; exclusive with ``num_bases``. With neither, every
            relation has a full matrix.
        edge_vectors: add a learned vector of the relation to each message.

    Shapes:
        input (N, in_dim); output (N, out_dim), or (T, out_dim) if the plan names T targets.
    """

    def __init__(
        self,
        in_dim: int,
        out_dim: int,
        num_relations: int,
        *,
        num_bases: int | None,
        num_blocks: int | None,
        edge_vectors: bool,
    ) -> None:
        super().__init__()
        if num_bases is not None and num_blocks is not None:
            raise ConfigError(f"num_bases={num_bases} and num_blocks={num_blocks} exclude each other; set one to null")
        if num_bases is not None and num_bases < 1:
            raise ConfigError(f"num_bases={num_bases} must be at least 1, or null for a full matrix for each relation")
        if num_blocks is not None and (num_blocks < 1 or in_dim % num_blocks or out_dim % num_blocks):
            raise ConfigError(f"num_blocks={num_blocks} must divide the dimensions {in_dim} and {out_dim}")
        self.in_dim, self.out_dim, self.num_relations = in_dim, out_dim, num_relations
        self.num_bases, self.num_blocks = num_bases, num_blocks
        if num_bases is not None:
            self.weight = nn.Parameter(torch.empty(num_bases, in_dim, out_dim))
        elif num_blocks is not None:
            self.weight = nn.Parameter(
                torch.empty(num_relations, num_blocks, in_dim // num_blocks, out_dim // num_blocks)
            )
        else:
            self.weight = nn.Parameter(torch.empty(num_relations, in_dim, out_dim))
        self.comp = nn.Parameter(torch.empty(num_relations, num_bases)) if num_bases is not None else None
        self.root = nn.Parameter(torch.empty(in_dim, out_dim))
        self.bias = nn.Parameter(torch.empty(out_dim))
        self.edge_vectors = nn.Parameter(torch.empty(num_relations, out_dim)) if edge_vectors else None
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Initialise matrices Xavier-uniform (each by its own dimensions) and the bias with zeros."""
        _xavier_uniform(self.weight)
        _xavier_uniform(self.root)
        if self.comp is not None:
            _xavier_uniform(self.comp)
        if self.edge_vectors is not None:
            _xavier_uniform(self.edge_vectors)
        nn.init.zeros_(self.bias)

    def relation_matrices(self, relations: Tensor) -> Tensor:
        """Return ``W_r`` of the relations (P,) -> (P, in_dim, out_dim)."""
        if self.comp is not None:
            return (self.comp.index_select(0, relations) @ self.weight.flatten(1)).view(-1, self.in_dim, self.out_dim)
        if self.num_blocks is not None:
            eye = torch.eye(self.num_blocks, dtype=self.weight.dtype, device=self.weight.device)
            blocks = torch.einsum("rkio,kl->rkilo", self.weight.index_select(0, relations), eye)
            return blocks.reshape(-1, self.in_dim, self.out_dim)  # (P, blocks * in, blocks * out)
        return self.weight.index_select(0, relations)

    def forward(self, x: Tensor, plan: RelationalPlan) -> Tensor:
        if plan.num_relations != self.num_relations:
            raise GraphError(
                f"the plan has {plan.num_relations} relations, the layer {self.num_relations}; use one vocabulary"
            )
        weight = self.relation_matrices(plan.relations)
        edge_vectors = None if self.edge_vectors is None else self.edge_vectors.index_select(0, plan.relations)
        device = x.device.type
        dtype = torch.get_autocast_dtype(device) if torch.is_autocast_enabled(device) else x.dtype
        vectors = None if edge_vectors is None else edge_vectors.to(dtype)
        messages: Tensor = _RelationalMeans.apply(x.to(dtype), weight.to(dtype), vectors, plan)
        target_states = x if plan.targets is None else x[plan.targets]
        return functional.linear(target_states, self.root.T, self.bias) + messages

    def extra_repr(self) -> str:
        return (
            f"{self.in_dim}, {self.out_dim}, num_relations={self.num_relations}, num_bases={self.num_bases}, "
            f"num_blocks={self.num_blocks}, edge_vectors={self.edge_vectors is not None}"
        )


def _xavier_uniform(parameter: Tensor) -> None:
    bound = (6.0 / (parameter.shape[-2] + parameter.shape[-1])) ** 0.5
    nn.init.uniform_(parameter, -bound, bound)


def relational_conv_reference(conv: RelationalConv, x: Tensor, edge_index: Tensor, relation: Tensor) -> Tensor:
    """Compute :class:`RelationalConv` one relation at a time, as a reference: (N, in) -> (N, out)."""
    weight = conv.relation_matrices(torch.arange(conv.num_relations, device=x.device))
    out = x @ conv.root + conv.bias
    for r in range(conv.num_relations):
        source, target = edge_index[:, relation == r]
        message = x[source] @ weight[r]
        if conv.edge_vectors is not None:
            message = message + conv.edge_vectors[r]
        total = torch.zeros_like(out).index_add(0, target, message)
        count = out.new_zeros(len(x), 1).index_add(0, target, out.new_ones(target.numel(), 1))
        out = out + total / count.clamp(min=1)
    return out
