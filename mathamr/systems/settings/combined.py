"""Settings of the systems that put other conditions together: ``track=fusion`` and ``track=learned``.

>>> list(LearnedSettings.groups())
['retrieval', 'learned']
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from graphs.errors import ConfigError
from mathamr.systems.settings.ranking import RankingSettings

# -- track=fusion ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class FusionConfig:
    """Which conditions are fused, and how, as in :mod:`mathamr.retrieval.fusion`.

    ``of``: two or more conditions of the experiment. ``how``: rrf, by ranks with the constant
    ``k``; weighted, by scores with one of ``weights`` each; or standard, by sums of standard scores. Weights are named
    here, before anything is measured.
    """

    of: list[str]
    how: str
    k: int
    weights: list[float] | None = None


@dataclass(frozen=True, kw_only=True)
class FusionSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.fusion.FusionSystem`."""

    group: ClassVar = "fusion"

    fusion: FusionConfig

    def needs(self) -> Sequence[str]:
        """Return the conditions that are fused."""
        parts = self.fusion.of
        if len(set(parts)) < max(2, len(parts)):
            raise ConfigError(f"fusion.of={parts}; fusing takes two or more different conditions")
        return parts


# -- track=learned ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class LearnedConfig:
    """Conditions whose scores are weighted, and how weights are learned (:mod:`mathamr.systems.learned`).

    Attributes:
        of: conditions of the experiment.
        learner: ridge, logistic, convex or lambdamart.
        features: families of features (:mod:`mathamr.ranking.features`).
        weights: weights.json of a job; None: weights are learned.
    """

    of: list[str]
    learner: str
    features: list[str]
    weights: str | None = None


@dataclass(frozen=True, kw_only=True)
class LearnedSettings(RankingSettings):
    """Settings of :class:`mathamr.systems.learned.LearnedSystem`."""

    group: ClassVar = "learned"

    learned: LearnedConfig

    judged: ClassVar = True

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return its own settings, the number of results, and the content hash of given weights.

        Raises:
            ConfigError: the file of weights does not exist.
        """
        path = self.weights_path
        given = {} if path is None else {"weights": hashlib.sha256(path.read_bytes()).hexdigest()}
        return {"learned": self.key_settings("learned") | given, "k": self.retrieval.k}

    @property
    def weights_path(self) -> Path | None:
        """The file of given weights.

        Raises:
            ConfigError: there is no such file.
        """
        if self.learned.weights is None:
            return None
        path = Path(self.learned.weights)
        if not path.is_file():
            raise ConfigError(f"learned.weights={path} is no file; name the weights.json of a job")
        return path

    def needs(self) -> Sequence[str]:
        """Return the conditions whose scores are weighted."""
        parts = self.learned.of
        if not parts or len(set(parts)) < len(parts):
            raise ConfigError(f"learned.of={parts}; learning takes one or more different conditions")
        return parts
