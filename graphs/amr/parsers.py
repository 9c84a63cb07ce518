"""The AMR parsers by name, with the options that each takes.

>>> parser = open_parser("embedded")
>>> parser.name
'embedded'
>>> read_options("transition", ["python=envs/transition/bin/python", "seconds_per_chunk=60"])
{'python': 'envs/transition/bin/python', 'seconds_per_chunk': 60.0}
>>> check("penman_file")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: parser=penman_file needs the option path (docs/amr.md)

docs/amr.md tells how to set up each of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from graphs.amr.amrlib import AmrlibParser
from graphs.amr.embedded import EmbeddedParser
from graphs.amr.parser import AMRParser
from graphs.amr.penman_file import PenmanFileParser
from graphs.amr.transition import TransitionParser
from graphs.errors import ConfigError

_Type = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Entry:
    make: Callable[..., AMRParser]
    needs: Mapping[str, _Type] = field(default_factory=dict)
    takes: Mapping[str, _Type] = field(default_factory=dict)


PARSERS: Mapping[str, _Entry] = {
    "embedded": _Entry(EmbeddedParser, takes={"model": str}),
    "penman_file": _Entry(PenmanFileParser, needs={"path": str}),
    "transition": _Entry(
        TransitionParser,
        needs={"python": str},
        takes={"model": str, "worker": str, "batch_size": int, "seconds_per_chunk": float, "start_seconds": float},
    ),
    "amrlib": _Entry(AmrlibParser, needs={"model_dir": str}, takes={"device": str, "batch_size": int}),
}


def open_parser(name: str, **options: object) -> AMRParser:
    """The parser ``name``, made with ``options``; raises :class:`ConfigError` as :func:`check` does."""
    check(name, options)
    return PARSERS[name].make(**options)


def check(name: str, options: Iterable[str] = ()) -> None:
    """Raise :class:`ConfigError` for an unknown parser, an option that it does not take, or one that it needs."""
    if name not in PARSERS:
        raise ConfigError(f"parser={name} is not known; the parsers are {', '.join(PARSERS)}")
    entry, given = PARSERS[name], list(options)
    known = {**entry.needs, **entry.takes}
    for option in given:
        if option not in known:
            raise ConfigError(f"parser={name} takes no option {option}; its options are {', '.join(known)}")
    missing = [option for option in entry.needs if option not in given]
    if missing:
        raise ConfigError(f"parser={name} needs the option {missing[0]} (docs/amr.md)")


def read_options(name: str, settings: Iterable[str]) -> dict[str, object]:
    """Options written as ``KEY=VALUE``, with values of their types; raises :class:`ConfigError` as :func:`check`."""
    texts = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not value:
            raise ConfigError(f"option {setting!r} is not of the form KEY=VALUE")
        texts[key] = value
    check(name, texts)
    types = {**PARSERS[name].needs, **PARSERS[name].takes}
    options = {}
    for key, value in texts.items():
        try:
            options[key] = types[key](value)
        except ValueError as error:
            raise ConfigError(f"option {key}={value} of parser {name} is not a number") from error
    return options
