"""Rules by which two formulas are scored, and the class of a symbol.

>>> symbol_class("V!x"), symbol_class("N!2"), symbol_class("U!plus")
('V!', 'N!', 'U!plus')

Only symbols of one class can be aligned: any variable with any variable, any number with any number, any other
symbol with itself alone. The values are in ``conf/structure/default.yaml``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

from graphs.errors import ConfigError
from mathamr.default_settings import values

VARIABLE, NUMBER = "V!", "N!"


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """Scoring rules of :class:`mathamr.structure.index.StructureIndex`, each from 0 to 1 but ``k1``.

    Attributes:
        equal: credit of a renamed variable where both trees are equal under one renaming; at least ``renamed``.
        renamed: credit of a variable that is aligned with another one, under one renaming of the whole formula;
            also of the pairs of a formula that equals the query under one renaming.
        inconsistent: credit of a variable that is aligned against this renaming; at most ``renamed``.
        number: credit of a number that is aligned with another number.
        size: exponent of the found formula's share in the aligned part; 0: only the query's share counts.
        layout: weight of symbol layout trees; operator trees have the rest.
        pairs: weight of symbol pairs; aligned trees have the rest.
        k1: saturation of a pair that occurs again, from 0, as in BM25.
        b: correction for the length of the formula, as in BM25.
    """

    equal: float
    renamed: float
    inconsistent: float
    number: float
    size: float
    layout: float
    pairs: float
    k1: float
    b: float

    @classmethod
    def by_default(cls) -> Scoring:
        """Return the rules of ``conf/structure``."""
        own = values("structure")
        return cls(**{one.name: own[one.name] for one in fields(cls)})

    def check(self) -> None:
        """Raise ConfigError for a value out of its range."""
        for one in fields(Scoring):
            value = getattr(self, one.name)
            if one.name == "k1":
                if not 0 <= value < math.inf:
                    raise ConfigError(f"structure.k1={value} must be a finite number from 0")
            elif not 0 <= value <= 1:
                raise ConfigError(f"structure.{one.name}={value} must be from 0 to 1")
        if self.inconsistent > self.renamed:
            raise ConfigError(
                f"structure.inconsistent={self.inconsistent} is above structure.renamed={self.renamed}; "
                "a broken renaming cannot earn more than a kept one"
            )
        if self.renamed > self.equal:
            raise ConfigError(
                f"structure.renamed={self.renamed} is above structure.equal={self.equal}; "
                "a part cannot earn more than the whole"
            )

    def credit(self, symbol: str) -> float:
        """Return the credit of a symbol that is aligned with another one of its class."""
        kind = symbol_class(symbol)
        return self.renamed if kind == VARIABLE else self.number if kind == NUMBER else 1.0


@dataclass(frozen=True, kw_only=True)
class StructureConfig(Scoring):
    """Scoring rules, and how many of the last places go to formulas of posts like the topic's (``context``)."""

    context: int


def symbol_class(symbol: str) -> str:
    """Return the class of a symbol: all variables, all numbers, or the symbol itself."""
    return symbol[:2] if symbol[:2] in (VARIABLE, NUMBER) else symbol


def may_be_renamed(variable: str, other: str) -> bool:
    """Return whether a variable may be shown as a renamed other one: both are letters, or they are equal.

    >>> [may_be_renamed("V!x", other) for other in ("V!y", "V!sin", "V!∞")], may_be_renamed("V!sin", "V!sin")
    ([True, False, False], True)
    """
    names = variable[len(VARIABLE) :], other[len(VARIABLE) :]
    return variable == other or all(len(name) == 1 and name.isalpha() for name in names)
