"""A text encoder's frozen vectors of sentences, added to the starts of their virtual nodes: a hybrid of graph and text.

Two sentences with vectors of three numbers, projected to two:

>>> text = SentenceText("minilm-0a1b", hidden_dim=2)
>>> text.begin(3)
>>> text(torch.eye(3)[:2]).equal(text.weight[:2])
True
>>> text(None)  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: this model is a hybrid: beside graphs it reads vectors of sentences by minilm-0a1b, and ...

The vectors come with the graphs (:mod:`mathamr.text.sentence_vectors`); only their projection is learned. A model
names its text encoder by identity, so that vectors of another one are refused. Beyond the thesis, whose models see
graphs alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from graphs.errors import ConfigError

if TYPE_CHECKING:
    from graphs.stores.store import GraphStore


def check(wanted: str | None, graphs: GraphStore) -> None:
    """Refuse graphs that come without the vectors of the text encoder ``wanted``, if any is.

    Raises:
        ConfigError: see :func:`refusal`.
    """
    found = None if graphs.sentence_vectors is None else graphs.sentence_vectors.encoder
    if wanted is not None and found != wanted:
        raise refusal(wanted, found)


def refusal(wanted: str, found: str | None = None) -> ConfigError:
    """What to raise where graphs have vectors of ``found``, or none, and not of the text encoder ``wanted``."""
    return ConfigError(
        f"this model is a hybrid: beside graphs it reads vectors of sentences by {wanted}, and these graphs have "
        f"{'none' if found is None else f'those of {found}'}; experiments (experiments.run) make them for their posts "
        "and topics, nothing else does; use it there, or a model with model.sentence_vectors=null"
    )


class SentenceText(nn.Module):
    """The learned projection of the vectors of sentences.

    Args:
        wanted: identity of their text encoder.

    Shapes:
        (S, k) -> (S, hidden_dim)
    """

    def __init__(self, wanted: str, hidden_dim: int) -> None:
        super().__init__()
        self._wanted, self._hidden_dim = wanted, hidden_dim
        self.weight = nn.Parameter(torch.empty(0, hidden_dim))

    def begin(self, dimension: int) -> None:
        """Begin the projection (dimension, hidden_dim) Xavier-uniform."""
        self.weight = nn.Parameter(self.weight.new_empty(dimension, self._hidden_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, vectors: Tensor | None) -> Tensor:
        """``vectors`` are those of a batch, None where its graphs have none, which is refused."""
        if vectors is None:
            raise refusal(self._wanted)
        if vectors.size(1) != len(self.weight):
            raise ConfigError(
                f"vectors of sentences of length {vectors.size(1)} are given, model.sentence_vectors={self._wanted} "
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
    """Starts of virtual nodes of these ``kinds`` with the vectors of sentences added, a node at a time."""
    sums, number = [], 0
    for start, kind in zip(starts, kinds, strict=True):
        if kind == sentence:
            start = start + vectors[number] @ text.weight
            number += 1
        sums.append(start)
    return sums
