"""Renamed variables: one permutation a graph, in all its formulas, and nothing else changes."""

from __future__ import annotations

import torch

from graphs.graph.batching import GraphBatch, collate
from graphs.graph.renaming import rename_variables, variables_of
from graphs.graph.tensors import GraphArrays

LABELS = ["[UNK]", "V!a", "V!b", "N!2", "V!c", "V!sin", "V!d", "[M]"]
VARIABLES = variables_of(LABELS)


def batch_of(*graphs: list[int]) -> GraphBatch:
    return collate([GraphArrays.from_edges(labels, [], [0], [0], 0) for labels in graphs])


def renamed(batch: GraphBatch, probability: float, seed: int = 0) -> GraphBatch:
    return rename_variables(batch, VARIABLES, probability, torch.Generator().manual_seed(seed))


def test_variables_are_single_letters() -> None:
    assert VARIABLES.tolist() == [[1, 1], [2, 2], [4, 4], [6, 6]]


def test_renaming_is_consistent_and_changes_variables_alone() -> None:
    graph = [1, 3, 2, 1, 5, 6, 1, 0]
    seen = set()
    for seed in range(8):
        found = renamed(batch_of(graph, graph), 1.0, seed)
        for labels in found.labels.reshape(2, -1).tolist():
            pairs = set(zip(graph, labels, strict=True))
            assert len(pairs) == len(set(graph)) == len({new for _, new in pairs})  # one to one
            assert [labels[place] for place in (1, 4, 7)] == [3, 5, 0]
            seen.add(tuple(labels))
        assert found.edge_index.shape == (2, 0)
    assert len(seen) > 8  # graphs of one batch have permutations of their own


def test_a_letter_is_renamed_in_both_trees() -> None:
    labels = ["V!italic-ε", "V!a", "V!ε", "V!italic-sin"]
    variables = variables_of(labels)
    batch = batch_of(*([[0, 2, 1, 3]] * 20))
    found = rename_variables(batch, variables, 1.0, torch.Generator().manual_seed(0)).labels.reshape(20, 4)
    assert {tuple(row) for row in found.tolist()} == {(0, 2, 1, 3), (1, 1, 2, 3)}
    assert rename_variables(batch, variables, 0.0, torch.Generator()).labels.tolist() == batch.labels.tolist()


def test_some_graphs_are_renamed_or_none() -> None:
    batch = batch_of(*([[1, 2, 4, 6]] * 200))
    assert renamed(batch, 0.0).labels.tolist() == batch.labels.tolist()
    changed = (renamed(batch, 0.5).labels != batch.labels).reshape(200, 4).any(1).float().mean()
    assert 0.35 < float(changed) < 0.6  # one permutation in 24 changes nothing


def test_a_vocabulary_without_variables_is_left_as_it_is() -> None:
    batch = batch_of([0, 1])
    found = rename_variables(batch, variables_of(["[UNK]", "equat"]), 1.0, torch.Generator())
    assert found.labels.tolist() == [0, 1]
