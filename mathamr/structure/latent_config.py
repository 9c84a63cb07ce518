"""Settings of dense formula vectors (:mod:`mathamr.structure.latent`); values are in ``conf/latent/default.yaml``."""

from __future__ import annotations

import math
from dataclasses import dataclass

from graphs.errors import ConfigError


@dataclass(frozen=True, kw_only=True)
class LatentConfig:
    """Settings for making vectors of formulas.

    Attributes:
        dimensions: size of a vector.
        rarity: exponent of the inverse document frequency, from 0 to 1.
        spectrum: exponent of the singular values, from -1 to 1; below 0 frequent patterns count less.
        k1: saturation of a pair that occurs again, from 0, as in BM25.
    """

    dimensions: int
    rarity: float
    spectrum: float
    k1: float

    def check(self) -> None:
        """Raise ConfigError for a value out of its range."""
        if self.dimensions < 1:
            raise ConfigError(f"latent.dimensions={self.dimensions} must be 1 or more")
        for name, low, high in (("rarity", 0.0, 1.0), ("spectrum", -1.0, 1.0)):
            value = getattr(self, name)
            if not low <= value <= high:
                raise ConfigError(f"latent.{name}={value} must be from {low:g} to {high:g}")
        if not 0 <= self.k1 < math.inf:
            raise ConfigError(f"latent.k1={self.k1} must be a finite number from 0")
