"""Settings of the encoder: types and meanings. The values and their sources are in ``conf/model``.

>>> from mathamr.default_settings import values
>>> EncoderConfig(**values("model", "thesis") | {"num_layers": 0})
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: num_layers=0 must be at least 1

This module does not import torch, so experiments can be planned without it.
"""

from __future__ import annotations

from dataclasses import dataclass

from graphs.errors import ConfigError

VN_AGGREGATIONS = ("mean", "attention")
VIRTUAL_NODE_STARTS = frozenset(
    {
        ("zero", "none"),
        ("zero", "embedding"),
        ("random", "embedding"),
        ("mean", "none"),
        ("mean", "projection"),
        ("mean", "typed_projection"),
    }
)
"""Pairs of ``vn_init`` and ``vn_learned`` (thesis Table 4.13)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EncoderConfig:
    """Settings of an encoder.

    Attributes:
        hidden_dim: d, size of node vectors.
        projection_dim: p, size of the vectors that MaxSim compares.
        num_layers: number of relational layers, at least 1.
        num_bases: number of matrices that relations share, or None; exclusive with ``num_blocks``.
        num_blocks: number of blocks in block-diagonal relation matrices, or None.
        edge_vectors: add a learned vector of the relation to each message, one for each layer.
        vn_init: initial value of virtual nodes: zero, random or mean.
        vn_learned: learned part of this initial value: none, embedding, projection or typed_projection.
        vn_aggregation: aggregation of constituents in a virtual node: their mean, or attention over them
            (:mod:`mathamr.model.constituent_attention`, beyond the thesis).
        label_vectors: hash of frozen text vectors of labels, which are projected and added to the learned embeddings
            (:mod:`mathamr.model.label_vectors`, beyond the thesis), or None. Experiments also accept the name of a text
            encoder.
        sentence_vectors: identity of a text encoder, or None. Its frozen vectors of sentences are projected and added
            to the initial vectors of sentence nodes (:mod:`mathamr.model.sentence_text`, beyond the thesis): a hybrid
            of graph and text. Experiments accept the encoder's name.
    """

    hidden_dim: int
    projection_dim: int
    num_layers: int
    num_bases: int | None
    num_blocks: int | None
    edge_vectors: bool
    vn_init: str
    vn_learned: str
    vn_aggregation: str
    label_vectors: str | None
    sentence_vectors: str | None

    def __post_init__(self) -> None:
        if (self.vn_init, self.vn_learned) not in VIRTUAL_NODE_STARTS:
            start, known = f"{self.vn_init}/{self.vn_learned}", ", ".join(map("/".join, sorted(VIRTUAL_NODE_STARTS)))
            raise ConfigError(f"vn_init/vn_learned={start} is unknown. Choose from: {known} (thesis Table 4.13)")
        if self.vn_aggregation not in VN_AGGREGATIONS:
            known = " or ".join(VN_AGGREGATIONS)
            raise ConfigError(f"vn_aggregation={self.vn_aggregation} must be {known}")
        for name in ("hidden_dim", "projection_dim", "num_layers"):
            value = getattr(self, name)
            if value < 1:
                raise ConfigError(f"{name}={value} must be at least 1")
