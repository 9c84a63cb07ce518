"""Bounds of settings, for every configuration that is a dataclass.

>>> from types import SimpleNamespace
>>> check_bounds("train", SimpleNamespace(epochs=0), at_least={"epochs": 1})
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: train.epochs=0 must be at least 1
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from graphs.errors import ConfigError


def check_bounds(
    group: str,
    settings: Any,
    *,
    at_least: Mapping[str, float] | None = None,
    positive: Sequence[str] = (),
    one_of: Mapping[str, Sequence[str]] | None = None,
) -> None:
    """Raise ConfigError for a setting below its bound, not finite, not positive or not a choice; None is skipped."""
    for name, least in (at_least or {}).items():
        value = getattr(settings, name)
        if value is not None and not least <= value < math.inf:
            raise ConfigError(
                f"{group}.{name}={value} must be at least {least}{'' if value < least else ' and finite'}"
            )
    for name in positive:
        value = getattr(settings, name)
        if not (value > 0 and math.isfinite(value)):
            raise ConfigError(f"{group}.{name}={value} must be a positive number")
    for name, choices in (one_of or {}).items():
        if getattr(settings, name) not in choices:
            raise ConfigError(f"{group}.{name}={getattr(settings, name)} is not one of {', '.join(choices)}")


def check_negatives(group: str, settings: Any) -> None:
    """Raise for more hard negatives than their pool, or a bound of similarity outside 0 to 1.

    >>> from types import SimpleNamespace
    >>> check_negatives("text", SimpleNamespace(negatives=9, negative_pool=3))  # doctest: +ELLIPSIS
    Traceback (most recent call last):
        ...
    graphs.errors.ConfigError: text.negatives=9 cannot be drawn from text.negative_pool=3 ... larger pool
    """
    if settings.negatives > settings.negative_pool:
        raise ConfigError(
            f"{group}.negatives={settings.negatives} cannot be drawn from {group}.negative_pool="
            f"{settings.negative_pool} for each question; use a larger pool"
        )
    if settings.negative_closest is not None and not 0 < settings.negative_closest <= 1:
        raise ConfigError(
            f"{group}.negative_closest={settings.negative_closest} must lie between 0 and 1, e.g. 0.95, or be null"
        )
