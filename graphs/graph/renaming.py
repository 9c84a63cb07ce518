r"""Renaming of variables as augmentation: the same formulas with other letters.

In each graph that is drawn, variables trade their letters by one permutation, so a letter that occurs in several
formulas of a post, or in both trees of one, has one new letter. A letter may have a second label in operator trees,
such as ``V!italic-ε``:

>>> names = ["V!x", "V!y", "V!ε", "N!2", "V!sin", "V!italic-ε"]
>>> variables_of(names).tolist()
[[0, 0], [1, 1], [2, 5]]
>>> labels, one_graph = torch.tensor([0, 3, 2, 5]), torch.zeros(4, dtype=torch.int64)
>>> rename(labels, one_graph, torch.tensor([[1, 2, 0]]), variables_of(names)).tolist()
[1, 3, 0, 0]
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import torch
from torch import Tensor

from graphs.graph.batching import GraphBatch

_PREFIX = "V!"


def variables_of(labels: Sequence[str]) -> Tensor:
    """Return two ids for each variable of one letter, ascending (L, 2): of its label and of its italic one.

    Without an italic label, both ids are equal.
    """
    places = {name: place for place, name in enumerate(labels)}
    letters = [name for name in places if name.startswith(_PREFIX) and len(name) == len(_PREFIX) + 1]
    pairs = [
        (places[name], places.get(f"{_PREFIX}italic-{name[-1]}", places[name]))
        for name in letters
        if name[-1].isalpha()
    ]
    return torch.tensor(pairs, dtype=torch.int64).reshape(-1, 2)


def rename(labels: Tensor, node_graph: Tensor, orders: Tensor, variables: Tensor) -> Tensor:
    """Return labels (N,) with the variables of each graph renamed.

    Args:
        labels: label of each node (N,).
        node_graph: graph of each node (N,).
        orders: permutation of the variables for each graph (B, L).
        variables: ids of the two labels of each variable (L, 2), see :func:`variables_of`.
    """
    if not len(variables):
        return labels
    ids, order = variables.flatten().sort()  # (2 L,)
    place = torch.searchsorted(ids, labels).clamp(max=len(ids) - 1)  # (N,)
    variable = order[place] // 2
    new = orders[node_graph, variable]
    renamed = (ids[place] == labels) & (new != variable)
    return torch.where(renamed, variables[new, 0], labels)


def rename_variables(
    batch: GraphBatch, variables: Tensor, probability: float, generator: torch.Generator
) -> GraphBatch:
    """Rename the variables of each graph with ``probability``.

    Args:
        batch: graphs on the CPU, B of them.
        variables: ids of the two labels of each variable (L, 2), see :func:`variables_of`.
        probability: share of the graphs that are changed.
        generator: source of random numbers.
    """
    count = batch.num_graphs
    orders = torch.rand(count, len(variables), generator=generator).argsort(1)  # (B, L)
    kept = torch.rand(count, generator=generator) >= probability
    orders[kept] = torch.arange(len(variables))
    return replace(batch, labels=rename(batch.labels, batch.node_graph, orders, variables))
