"""Frozen sentence vectors of a text encoder, added to the initial vectors of sentence nodes (graph-text hybrid).

Two sentences with vectors of size three, projected to size two:

>>> text = SentenceText("minilm-0a1b", hidden_dim=2)
>>> text.begin(3)
>>> text(torch.eye(3)[:2]).equal(text.weight[:2])
True
>>> text(None)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: this model is a hybrid: beside graphs it reads sentence vectors of minilm-0a1b; these ...

The vectors come with the graphs (:mod:`mathamr.text.sentence_vectors`); only their projection is learned. A model names
its text encoder by identity, so vectors of another encoder are refused. Beyond the thesis, whose models read only
graphs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from graphs.errors import ConfigError

if TYPE_CHECKING:
    from graphs.stores.store import GraphStore


def check(wanted: str | None, graphs: GraphStore) -> None:
    """Raise ConfigError (:func:`refusal`) for graphs without the vectors of the text encoder ``wanted``, if given."""
    found = None if graphs.sentence_vectors is None else graphs.sentence_vectors.encoder
    if wanted is not None and found != wanted:
        raise refusal(wanted, found)


def refusal(wanted: str, found: str | None = None) -> ConfigError:
    """Return the error for graphs with vectors of ``found`` (or None) instead of ``wanted``."""
    return ConfigError(
        f"this model is a hybrid: beside graphs it reads sentence vectors of {wanted}; these graphs have "
        f"{'none' if found is None else f'those of {found}'}. Only experiments (experiments.run) make them, for posts "
        "and topics; run one, or use a model with model.sentence_vectors=null"
    )


class SentenceText(nn.Module):
    """Learned projection (S, k) -> (S, hidden_dim) of the sentence vectors of the text encoder ``wanted``."""

    def __init__(self, wanted: str, hidden_dim: int) -> None:
        super().__init__()
        self._wanted, self._hidden_dim = wanted, hidden_dim
        self.weight = nn.Parameter(torch.empty(0, hidden_dim))

    def begin(self, dimension: int) -> None:
        """Initialise the projection (dimension, hidden_dim) Xavier-uniform."""
        self.weight = nn.Parameter(self.weight.new_empty(dimension, self._hidden_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, vectors: Tensor | None) -> Tensor:
        """Project the ``vectors`` of a batch; raise for None (graphs without vectors)."""
        if vectors is None:
            raise refusal(self._wanted)
        if vectors.size(1) != len(self.weight):
            raise ConfigError(
                f"sentence vectors of length {vectors.size(1)} are given, model.sentence_vectors={self._wanted} "
                f"takes {len(self.weight)}; use those of that text encoder"
            )
        return vectors @ self.weight

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = state_dict.get(f"{prefix}weight")
        if found is not None and not len(self.weight):
            self.begin(len(found))
        super()._load_from_state_dict(state_dict, prefix, *rest)


def starts_reference(
    starts: Tensor, kinds: list[int], sentence: int, vectors: Tensor, text: SentenceText
) -> list[Tensor]:
    """Initialise virtual nodes of these ``kinds`` with sentence vectors added, one node at a time, as a reference."""
    sums, number = [], 0
    for start, kind in zip(starts, kinds, strict=True):
        if kind == sentence:
            start = start + vectors[number] @ text.weight
            number += 1
        sums.append(start)
    return sums
