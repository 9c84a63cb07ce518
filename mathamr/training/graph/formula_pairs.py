"""Losses over pairs of formulas: equal formulas, and the two trees of one formula.

Four formulas of a batch; the first and the third are equal:

>>> vectors = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.6, 0.8]]), dim=1)
>>> alike = torch.tensor([7, 8, 7, 9])
>>> near, far = (float(alike_loss(vectors, torch.tensor(0.1), keys)) for keys in (alike, torch.tensor([7, 7, 8, 9])))
>>> near < 0.1 < 5 < far
True

**Alike** (``train.formula_weight``): a formula is to be closer to formulas with the same visual id, in any post, than
to the others of the batch. InfoNCE with several positives, each against the formulas with other visual ids (after
Khosla et al. 2020, "Supervised Contrastive Learning", Eq. 2, without other positives among the negatives).

**Views** (``train.formula_view_weight``): a formula is encoded once from its operator tree and once from its symbol
layout tree, without the text around it. The two vectors are to find each other among those of the batch
(:func:`view_loss`). Both losses have weight 0 by default.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs.errors import GraphError
from graphs.graph.batching import GraphBatch
from graphs.graph.virtual_nodes import VIRTUAL_RELATIONS, VirtualKind
from graphs.graph.vocabulary import Vocabulary
from mathamr.maxsim import VectorSets
from mathamr.training.losses import info_nce

# Largest number of formulas compared in a batch (a similarity matrix of 16 MiB); from more, a sample is drawn.
MOST_FORMULAS = 2_048

_NOTHING = -1e30  # a score without weight; unlike infinity it has a gradient

VisualIds = Mapping[str, Sequence[str]]  # visual ids of each post's formulas, by FORMULA_i; "" if unknown


@dataclass(frozen=True, slots=True)
class FormulasOfBatch:
    """Formulas of a batch (F): place of the ``graph``, ``number`` in the graph, and ``key``; all int64 (F,).

    ``graph`` counts the graphs of all ranks; equal formulas share a ``key``."""

    graph: Tensor
    number: Tensor
    key: Tensor

    def to(self, device: torch.device) -> FormulasOfBatch:
        """Return a copy on ``device``."""
        return FormulasOfBatch(self.graph.to(device), self.number.to(device), self.key.to(device))

    def vectors(self, sets: VectorSets) -> Tensor:
        """Select the vectors of the formulas from the sets of the graphs -> (F, p)."""
        if bool((self.number >= sets.sizes[self.graph]).any()):
            raise GraphError(
                "a post has fewer vectors than visual ids; check that both are of the same collection, "
                "and that the graphs have formulas (graph.formulas)"
            )
        return sets.vectors[sets.ptr[self.graph] + self.number]


def formulas_of(posts: Sequence[str], visual_ids: VisualIds, rng: np.random.Generator) -> FormulasOfBatch:
    """Return the formulas of ``posts`` with known visual ids, at random at most :data:`MOST_FORMULAS` of them.

    >>> found = formulas_of(["a", "b"], {"a": ["v7", "", "v9"], "b": ["v7"]}, np.random.default_rng(0))
    >>> found.graph.tolist(), found.number.tolist(), found.key.tolist()
    ([0, 0, 1], [0, 2, 0], [0, 1, 0])
    """
    keys: dict[str, int] = {}
    rows = [
        (place, number, keys.setdefault(visual_id, len(keys)))
        for place, post_id in enumerate(posts)
        for number, visual_id in enumerate(visual_ids.get(post_id, ()))
        if visual_id
    ]
    if len(rows) > MOST_FORMULAS:
        rows = [rows[i] for i in np.sort(rng.choice(len(rows), MOST_FORMULAS, replace=False))]
    table = torch.tensor(rows, dtype=torch.int64).reshape(-1, 3)
    return FormulasOfBatch(*table.T.contiguous())


def alike_loss(vectors: Tensor, temperature: Tensor, keys: Tensor) -> Tensor:
    """Return the loss of each formula with equal ones against all different ones -> scalar float32; 0 without equals.

    Shapes: unit ``vectors`` (F, p); ``keys`` int64 (F,), equal for equal formulas.
    """
    with torch.autocast(vectors.device.type, enabled=False):
        scores = vectors.float() @ vectors.float().T / temperature.float()  # (F, F)
        alike = keys.unsqueeze(1) == keys
        others = scores.masked_fill(alike, _NOTHING).logsumexp(1, keepdim=True)  # (F, 1)
        alike = alike & ~torch.eye(len(keys), dtype=torch.bool, device=keys.device)
        anchors = alike.any(1)
        if not bool(anchors.any()):
            return scores.sum() * 0
        losses = functional.softplus(others - scores).where(alike, 0.0)  # -log of a positive's share of itself + others
        return (losses[anchors].sum(1) / alike[anchors].sum(1)).mean()


def alike_loss_reference(vectors: Tensor, temperature: Tensor, keys: Tensor) -> Tensor:
    """Compute :func:`alike_loss` formula by formula, as a reference."""
    losses = []
    for i, key in enumerate(keys):
        others = [(vectors[i] @ vectors[k] / temperature).exp() for k in range(len(keys)) if keys[k] != key]
        own = [(vectors[i] @ vectors[k] / temperature).exp() for k in range(len(keys)) if keys[k] == key and k != i]
        if own:
            losses.append(torch.stack([-(score / (score + sum(others))).log() for score in own]).mean())
    return torch.stack(losses).mean()


def view_loss(operators: Tensor, layouts: Tensor, temperature: Tensor, keys: Tensor) -> Tensor:
    """Return the loss of two views of each formula, both (F, p), against different formulas -> scalar float32."""
    if not len(keys):
        return (operators.sum() + layouts.sum()) * 0
    scores = operators.float() @ layouts.float().T
    return info_nce(scores, temperature, known_positives=keys.unsqueeze(1) == keys, symmetric=True)


class FormulaViews:
    """Views of a batch of graphs: one with only operator trees and one with only symbol layout trees.

    All nodes stay, and so do the places of the representatives. Edges stay only within the trees of one kind and
    between these and their formula, so no text reaches a formula's vector.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        names = [vocabulary.relation_name(relation) for relation in range(vocabulary.num_relations)]
        roles = [name.rstrip("*") for name in names]  # without the mark of inverses
        self._virtual = torch.tensor([role == VIRTUAL_RELATIONS[VirtualKind.FORMULA] for role in roles])
        self._trees = [  # to a tree's root (:opt), or in a tree (:opt-0)
            torch.tensor([role == kind or role.startswith(f"{kind}-") for role in roles]) for kind in (":opt", ":slt")
        ]
        self._forward = torch.tensor([not name.endswith("*") for name in names])

    def __call__(self, batch: GraphBatch) -> tuple[GraphBatch, GraphBatch]:
        """Return (graphs with only operator trees, graphs with only symbol layout trees)."""
        first, second = (self._only(batch, of_kind) for of_kind in self._trees)
        return first, second

    def _only(self, batch: GraphBatch, of_kind: Tensor) -> GraphBatch:
        source, target = batch.edge_index
        in_tree = of_kind[batch.relation]
        nodes = torch.zeros(batch.num_nodes, dtype=torch.bool)
        nodes[target[in_tree & self._forward[batch.relation]]] = True
        keep = in_tree | (self._virtual[batch.relation] & (nodes[source] | nodes[target]))
        return replace(batch, edge_index=batch.edge_index[:, keep], relation=batch.relation[keep])
