"""Dataclasses of settings as Hydra takes them, and composed values as dataclasses.

>>> @dataclasses.dataclass(frozen=True)
... class Salt:
...     grains: int
...     kind: str | None = None
>>> schema_of(Salt)()
Salt(grains='???', kind=None)
>>> filled(Salt, {"grains": 3, "kind": "sea"}, "salt")
Salt(grains=3, kind='sea')
>>> filled(Salt, {"grians": 3}, "salt")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: salt.grians is not a setting; did you mean salt.grains?

Nested dataclasses are read alike. The dataclass gives types; a value that it has no default for comes from ``conf/``.
"""

from __future__ import annotations

import copyreg
import dataclasses
import difflib
from collections.abc import Callable, Mapping
from dataclasses import MISSING, field, fields, is_dataclass, make_dataclass
from functools import cache, reduce
from operator import or_
from types import NoneType, UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from omegaconf import MISSING as UNSET

from graphs.errors import ConfigError

Settings = TypeVar("Settings")

# Hydra's launchers send schemas to jobs by cloudpickle, which would make another object of the mark of "no default".
copyreg.pickle(type(MISSING), lambda _: "MISSING")

_hints: Callable[[Any], dict[str, Any]] = cache(get_type_hints)
_REPLACED = {"train.single_vector": "train.beta=0"}


@cache
def schema_of(kind: type) -> type:
    """Return a dataclass with the keys, types and defaults of ``kind``, that Hydra can fill.

    OmegaConf takes a frozen dataclass as read-only; the returned one is not frozen.
    """
    hints = _hints(kind)
    keys = [(one.name, _writable(hints[one.name]), _default(one, hints[one.name])) for one in fields(kind)]
    return make_dataclass(kind.__name__, keys)


def _writable(hint: Any) -> Any:
    """Return a type with the schema of each dataclass in its place."""
    if _is_settings(hint):
        return schema_of(hint)
    arguments = tuple(_writable(one) for one in get_args(hint))
    if not arguments:
        return hint
    origin = get_origin(hint)
    return reduce(or_, arguments) if origin in (Union, UnionType) else origin[arguments]


def _default(one: dataclasses.Field[Any], hint: Any) -> Any:
    if one.default is not MISSING:
        return field(default=one.default)
    if _is_settings(hint):
        return field(default_factory=schema_of(hint))
    return field(default=UNSET) if one.default_factory is MISSING else field(default_factory=one.default_factory)


def filled(kind: type[Settings], values: Mapping[str, Any], place: str) -> Settings:
    """Return plain values as a dataclass.

    Args:
        place: name of the group, for messages; "" of the whole configuration.

    Raises:
        ConfigError: a key that the type does not have, with the one that was probably meant; a missing value, or one
            that the type refuses.
    """
    keys: Any = fields(kind)  # type: ignore[arg-type]
    known = {key.name for key in keys}
    for key in values.keys() - known:
        if (other := _REPLACED.get(f"{place}.{key}")) is not None:
            raise ConfigError(f"{place}.{key} is not a setting; use {other}")
        similar = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {place}.{similar[0]}?" if similar else f"; the keys are {', '.join(sorted(known))}"
        raise ConfigError(f"{place}.{key} is not a setting{hint}")
    for key in keys:
        if key.name not in values and key.default is MISSING and key.default_factory is MISSING:
            raise ConfigError(f"{place}.{key.name} has no value; give {place}.{key.name}=...")
    hints = _hints(kind)
    return kind(
        **{
            str(name): _value(hints[name], value, f"{place}.{name}" if place else str(name))
            for name, value in values.items()
        }
    )


def _value(hint: Any, value: Any, place: str) -> Any:
    """Return a plain value as its type has it."""
    if value is None:
        return None
    if _is_settings(hint):
        return filled(hint, value, place)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        one, *more = (other for other in arguments if other is not NoneType)
        if more:  # such as int | str: OmegaConf has made it one of them
            return value
        return _value(one, value, place)
    if origin is dict:
        return {name: _value(arguments[1], inner, f"{place}.{name}") for name, inner in value.items()}
    return value


def _is_settings(hint: Any) -> bool:
    return isinstance(hint, type) and is_dataclass(hint)
