"""Settings of systems that rank words and formulas, and train nothing.

>>> list(StructureSettings.groups())
['retrieval', 'structure', 'thread']
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, ClassVar

from graphs.errors import ConfigError
from mathamr.stages.settings import JobSettings, RetrievalConfig, ThreadConfig, thread_of
from mathamr.structure.latent_config import LatentConfig
from mathamr.structure.scoring import StructureConfig
from mathamr.text.encoder import identity


@dataclass(frozen=True, kw_only=True)
class RankingSettings(JobSettings):
    """Settings of a system that trains nothing: those of a ``group``, and the number of results.

    Rankings of another ``version`` are made again.
    """

    group: ClassVar[str]
    version: ClassVar[int] = 1

    retrieval: RetrievalConfig

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the settings of the group, the number of results, a version above 1, and how threads are read."""
        own = {self.group: self.key_settings(self.group), "k": self.retrieval.k}
        version = {} if self.version == 1 else {"version": self.version}
        return {**own, **version, **thread_of(self).key_parts()}


@dataclass(frozen=True, kw_only=True)
class BM25Config:
    """Settings of BM25: compare ``by`` text, words and LaTeX; or by formulas, pairs of symbols in their trees.

    ``k1`` bounds what repetitions of a word add, ``b`` from 0 to 1 is how much long posts are marked down. ``stem``
    replaces words by their stems (porter, snowball), or by words without accents (accents). ``method`` is a variant of
    BM25 (:data:`mathamr.retrieval.bm25.METHODS`).
    """

    by: str
    k1: float = 1.5
    b: float = 0.75
    stem: str = "none"
    method: str = "lucene"

    def __post_init__(self) -> None:
        if not (math.isfinite(self.k1) and self.k1 >= 0 and 0 <= self.b <= 1):
            raise ConfigError(f"bm25.k1={self.k1} must be at least 0, and bm25.b={self.b} from 0 to 1")


@dataclass(frozen=True, kw_only=True)
class BM25Settings(RankingSettings):
    """Settings of :class:`mathamr.systems.bm25.BM25System`."""

    group: ClassVar = "bm25"

    bm25: BM25Config
    thread: ThreadConfig = field(default_factory=ThreadConfig)

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the parts of every ranking; keys stay unchanged at the defaults of this group."""
        own = {one.name: value for one in fields(self.bm25) if (value := getattr(self.bm25, one.name)) != one.default}
        return {**super().result_key_parts(), "bm25": own}


@dataclass(frozen=True, kw_only=True)
class StructureSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.structure.StructureSystem`."""

    group: ClassVar = "structure"
    version: ClassVar = 3

    structure: StructureConfig
    thread: ThreadConfig = field(default_factory=ThreadConfig)


@dataclass(frozen=True, kw_only=True)
class LatentSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.latent.LatentSystem`."""

    group: ClassVar = "latent"
    version: ClassVar = 2

    latent: LatentConfig


@dataclass(frozen=True, kw_only=True)
class SparseConfig:
    """Learned sparse encoder, and how it reads (:mod:`mathamr.ranking.text_models`).

    Attributes:
        encoder: folder or name of a SparseEncoder.
        max_length: tokens that it reads of a text.
        most_words: words of the vocabulary kept of each text; None: all with a weight.
        batch_size: texts encoded at once.
        device: auto, cpu, cuda or cuda:N.
    """

    encoder: str | None
    max_length: int
    most_words: int | None
    batch_size: int
    device: str


@dataclass(frozen=True, kw_only=True)
class SparseSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.sparse.SparseSystem`."""

    group: ClassVar = "sparse"
    free: ClassVar = {"sparse": ("batch_size", "device")}

    sparse: SparseConfig
    thread: ThreadConfig = field(default_factory=ThreadConfig)

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings that change scores, with the encoder's weights, and how threads are read."""
        own = self.key_settings("sparse")
        if self.sparse.encoder is not None:
            own["encoder"] = identity(self.sparse.encoder)
        return {**super().result_key_parts(), "sparse": own}
