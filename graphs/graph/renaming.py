r"""Renaming of variables as augmentation: the same formulas with other letters.

In each graph that is drawn, variables trade their letters by one permutation, so a letter that occurs in several
formulas of a post, or in both trees of one, has one new letter:

>>> names = ["V!x", "V!y", "V!\u03b1", "N!2", "V!sin", "equat"]
>>> variables_of(names).tolist()
[0, 1, 2]
>>> labels, one_graph = torch.tensor([0, 3, 0, 1]), torch.zeros(4, dtype=torch.int64)
>>> rename(labels, one_graph, torch.tensor([[1, 2, 0]]), variables_of(names)).tolist()
[1, 3, 1, 2]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphs.graph.batching import GraphBatch

_PREFIX = "V!"


def variables_of(labels: Sequence[str]) -> Tensor:
    """Return the ids of the labels that are variables of one letter, ascending (L,)."""
    length = len(_PREFIX) + 1
    variables = [place for place, name in enumerate(labels) if name.startswith(_PREFIX) and len(name) == length]
    return torch.tensor([place for place in variables if labels[place][-1].isalpha()], dtype=torch.int64)


def rename(labels: Tensor, node_graph: Tensor, orders: Tensor, variables: Tensor) -> Tensor:
    """Return labels (N,) with the variables of each graph renamed.

    Args:
        labels: label of each node (N,).
        node_graph: graph of each node (N,).
        orders: permutation of the variables for each graph (B, L).
        variables: ids of the variables, ascending (L,).
    """
    if not len(variables):
        return labels
    place = torch.searchsorted(variables, labels).clamp(max=len(variables) - 1)  # (N,)
    is_variable = variables[place] == labels
    return torch.where(is_variable, variables[orders[node_graph, place]], labels)


def rename_variables(
    batch: GraphBatch, variables: Tensor, probability: float, generator: torch.Generator
) -> GraphBatch:
    """Rename the variables of each graph with ``probability``.

    Args:
        batch: graphs on the CPU, B of them.
        variables: ids of the variables, ascending (L,).
        probability: share of the graphs that are changed.
        generator: source of random numbers.
    """
    count = batch.num_graphs
    orders = torch.rand(count, len(variables), generator=generator).argsort(1)  # (B, L)
    kept = torch.rand(count, generator=generator) >= probability
    orders[kept] = torch.arange(len(variables))
    return replace(batch, labels=rename(batch.labels, batch.node_graph, orders, variables))
