"""Bounds that settings of a group have to keep, for every configuration that is a dataclass.

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
    """Refuse a setting that is too small, no positive finite number, or none of its choices; None is not looked at.

    Raises:
        ConfigError: naming the setting as ``GROUP.NAME=VALUE``.
    """
    for name, least in (at_least or {}).items():
        value = getattr(settings, name)
        if value is not None and value < least:
            raise ConfigError(f"{group}.{name}={value} must be at least {least}")
    for name in positive:
        value = getattr(settings, name)
        if not (value > 0 and math.isfinite(value)):
            raise ConfigError(f"{group}.{name}={value} must be a positive number")
    for name, choices in (one_of or {}).items():
        if getattr(settings, name) not in choices:
            raise ConfigError(f"{group}.{name}={getattr(settings, name)} is not one of {', '.join(choices)}")


def check_negatives(group: str, settings: Any) -> None:
    """Refuse hard negatives that their pool cannot give, or a bound of similarity that is no part of one.

    >>> from types import SimpleNamespace
    >>> check_negatives("text", SimpleNamespace(negatives=9, negative_pool=3, negative_closest=None))
    Traceback (most recent call last):
        ...
    graphs.errors.ConfigError: text.negatives=9 cannot be drawn from text.negative_pool=3 a question; use a larger pool
    """
    if settings.negatives > settings.negative_pool:
        raise ConfigError(
            f"{group}.negatives={settings.negatives} cannot be drawn from {group}.negative_pool="
            f"{settings.negative_pool} a question; use a larger pool"
        )
    if settings.negative_closest is not None and not 0 < settings.negative_closest <= 1:
        raise ConfigError(
            f"{group}.negative_closest={settings.negative_closest} must lie between 0 and 1, e.g. 0.95, or be null"
        )
