"""Pairs of formulas, as a further loss: those that look alike, and the two trees of one formula.

Four formulas of a batch; the first and the third look alike:

>>> vectors = torch.nn.functional.normalize(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 0.1], [0.6, 0.8]]), dim=1)
>>> alike = torch.tensor([7, 8, 7, 9])
>>> near, far = (float(alike_loss(vectors, torch.tensor(0.1), keys)) for keys in (alike, torch.tensor([7, 7, 8, 9])))
>>> near < 0.1 < 5 < far
True

**Alike** (``train.formula_weight``): a formula is to be told apart from the other formulas of the batch, by those of
the same visual id in whatever post. InfoNCE with several positives, each against the formulas that look different
(after Khosla et al. 2020, "Supervised Contrastive Learning", Eq. 2, without other positives among the negatives).

**Views** (``train.formula_view_weight``): a formula is encoded once from its operator tree alone and once from its
symbol layout tree alone, without the text around it, and the two are to find each other among those of the batch
(:func:`views`). Both losses have the weight 0 unless they are asked for.
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

# Formulas of a batch that are compared: their similarities are a square matrix, 16 MiB. Of more, some are drawn.
MOST_FORMULAS = 2_048

_NOTHING = -1e30  # a score that counts for nothing, and unlike infinity has a gradient

VisualIds = Mapping[str, Sequence[str]]  # of the formulas of each post, by FORMULA_i; "" where unknown


@dataclass(frozen=True, slots=True)
class FormulasOfBatch:
    """F formulas: the place of the ``graph`` of each among the graphs of all ranks, its ``number`` in the graph, and a
    ``key`` that formulas which look alike share; all int64 (F,)."""

    graph: Tensor
    number: Tensor
    key: Tensor

    def __len__(self) -> int:
        return len(self.graph)

    def to(self, device: torch.device) -> FormulasOfBatch:
        """The same on ``device``."""
        return FormulasOfBatch(self.graph.to(device), self.number.to(device), self.key.to(device))

    def vectors(self, sets: VectorSets) -> Tensor:
        """The vectors of the formulas, from the sets of the graphs -> (F, p)."""
        if bool((self.number >= sets.sizes[self.graph]).any()):
            raise GraphError(
                "a post has fewer vectors than the visual ids that are given for its formulas; are they of the same "
                "collection, and do the graphs have formulas (graph.formulas)?"
            )
        return sets.vectors[sets.ptr[self.graph] + self.number]


def formulas_of(posts: Sequence[str], visual_ids: VisualIds, rng: np.random.Generator) -> FormulasOfBatch:
    """The formulas of ``posts`` with known visual ids, at most :data:`MOST_FORMULAS` of them, drawn at random.

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
    """Each formula with one that looks alike, against all that do not -> scalar float32; 0 where none look alike.

    Args:
        vectors: (F, p), of unit length.
        temperature: scalar.
        keys: int64 (F,), equal for formulas that look alike.
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
    """What :func:`alike_loss` computes, formula by formula, to hold it against."""
    losses = []
    for i, key in enumerate(keys):
        others = [(vectors[i] @ vectors[k] / temperature).exp() for k in range(len(keys)) if keys[k] != key]
        own = [(vectors[i] @ vectors[k] / temperature).exp() for k in range(len(keys)) if keys[k] == key and k != i]
        if own:
            losses.append(torch.stack([-(score / (score + sum(others))).log() for score in own]).mean())
    return torch.stack(losses).mean()


def view_loss(operators: Tensor, layouts: Tensor, temperature: Tensor, keys: Tensor) -> Tensor:
    """The two views of each formula, both (F, p), find each other among those that look different -> scalar float32."""
    if not len(keys):
        return (operators.sum() + layouts.sum()) * 0
    scores = operators.float() @ layouts.float().T
    return info_nce(scores, temperature, known_positives=keys.unsqueeze(1) == keys, symmetric=True)


class FormulaViews:
    """Makes of a batch of graphs one with operator trees alone and one with symbol layout trees alone.

    All nodes stay, and so do the places of the representatives; but edges stay only within the trees of the one kind
    and between them and the formula that they belong to. So nothing of the text reaches a formula's vector.
    """

    def __init__(self, vocabulary: Vocabulary) -> None:
        names = [vocabulary.relation_name(relation) for relation in range(vocabulary.num_relations)]
        virtual = VIRTUAL_RELATIONS[VirtualKind.FORMULA]
        self._virtual = torch.tensor([name.rstrip("*") == virtual for name in names])
        self._trees = [torch.tensor([_is_of(name, kind) for name in names]) for kind in (":opt", ":slt")]
        self._forward = torch.tensor([not name.endswith("*") for name in names])

    def __call__(self, batch: GraphBatch) -> tuple[GraphBatch, GraphBatch]:
        """(operator trees alone, symbol layout trees alone)."""
        first, second = (self._only(batch, of_kind) for of_kind in self._trees)
        return first, second

    def _only(self, batch: GraphBatch, of_kind: Tensor) -> GraphBatch:
        source, target = batch.edge_index
        in_tree = of_kind[batch.relation]
        nodes = torch.zeros(batch.num_nodes, dtype=torch.bool)
        nodes[target[in_tree & self._forward[batch.relation]]] = True
        keep = in_tree | (self._virtual[batch.relation] & (nodes[source] | nodes[target]))
        return replace(batch, edge_index=batch.edge_index[:, keep], relation=batch.relation[keep])


def _is_of(name: str, kind: str) -> bool:
    """Whether a relation leads to the root of a tree (``:opt``) or is in one (``:opt-0``), or is inverse to such."""
    role = name.rstrip("*")
    return role == kind or role.startswith(f"{kind}-")
