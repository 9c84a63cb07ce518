"""AMR parsers by name, with their options.

>>> parser = open_parser("embedded")
>>> parser.name
'embedded'
>>> read_options("amrlib", ["model_dir=models/bart"], {"batch_size": 16, "device": None})
{'batch_size': 16, 'model_dir': 'models/bart'}
>>> check("penman_file")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: parser=penman_file needs the option path (docs/amr.md)

A short name identifies what a parser's graphs depend on, so that graphs of two parsers never share a file:

>>> identity("embedded"), identity("transition", {"model": "doc-sen-conll-amr-seed42", "seconds_per_chunk": 60})
('embedded-3', 'transition-doc-sen-conll-amr-seed42')

docs/amr.md explains the setup of each, conf/parsers/default.yaml has the defaults of their options.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from graphs.amr.amrlib import AmrlibParser
from graphs.amr.embedded import EmbeddedParser
from graphs.amr.parser import AMRParser
from graphs.amr.penman_file import PenmanFileParser
from graphs.amr.transition import TransitionParser
from graphs.corpus.files import hash_files
from graphs.errors import ConfigError, CorpusError

_Type = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class _Entry:
    make: Callable[..., AMRParser]
    needs: Mapping[str, _Type] = field(default_factory=dict)
    takes: Mapping[str, _Type] = field(default_factory=dict)
    source: str = "model"  # option that its graphs depend on
    program: str = ""  # option that names a file of code; the graphs depend on its content


PARSERS: Mapping[str, _Entry] = {
    "embedded": _Entry(EmbeddedParser, takes={"model": str}),
    "penman_file": _Entry(PenmanFileParser, needs={"path": str}, source="path"),
    "transition": _Entry(
        TransitionParser,
        needs={"python": str, "model": str, "batch_size": int, "seconds_per_chunk": float, "start_seconds": float},
        takes={"worker": str},
        program="worker",
    ),
    "amrlib": _Entry(
        AmrlibParser,
        needs={"model_dir": str, "batch_size": int},
        takes={"device": str, "tokenizer": str},
        source="model_dir",
    ),
}


def open_parser(name: str, **options: object) -> AMRParser:
    """Open the parser ``name`` with ``options``; raises :class:`ConfigError` as :func:`check` does."""
    check(name, options)
    return PARSERS[name].make(**options)


def check(name: str, options: Iterable[str] = ()) -> None:
    """Raise :class:`ConfigError` for an unknown parser, an unknown option, or a missing one."""
    if name not in PARSERS:
        raise ConfigError(f"parser={name} is unknown. Choose from: {', '.join(PARSERS)}")
    entry, given = PARSERS[name], list(options)
    known = {**entry.needs, **entry.takes}
    for option in given:
        if option not in known:
            raise ConfigError(f"parser={name} has no option {option}. Choose from: {', '.join(known)}")
    missing = [option for option in entry.needs if option not in given]
    if missing:
        raise ConfigError(f"parser={name} needs the option {missing[0]} (docs/amr.md)")


def identity(name: str, options: Mapping[str, object] | None = None) -> str:
    """Return the parser and what its graphs depend on as a file name, without options of speed or place.

    A file of graphs, or a custom worker, adds a hash of its content. Raises :class:`ConfigError` for an unreadable
    file.
    """
    entry, given = PARSERS[name], options or {}
    version = getattr(entry.make, "version", None)
    parts = [name, version if isinstance(version, str) else "", _called(entry, given.get(entry.source))]
    if given.get(entry.program) is not None:
        parts.append(_content(given[entry.program], "program"))
    return "-".join(part for part in parts if part)


def _called(entry: _Entry, source: object) -> str:
    if source is None:
        return ""
    if entry.source == "path":
        return _content(source, "file of graphs")
    return re.sub(r"[^\w.+-]+", "_", Path(str(source)).name)


def _content(file: object, what: str) -> str:
    path = Path(str(file))
    try:
        return hash_files(path.parent, [path])[:10]
    except CorpusError as error:
        raise ConfigError(f"{error}; it should be a {what}") from error


def read_options(name: str, settings: Iterable[str], defaults: Mapping[str, object] | None = None) -> dict[str, object]:
    """Parse options written as ``KEY=VALUE`` over ``defaults``, with values of the defaults' types.

    A default of ``None`` counts as missing. Raises :class:`ConfigError` as :func:`check` does.
    """
    texts = {key: str(value) for key, value in (defaults or {}).items() if value is not None}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or not value:
            raise ConfigError(f"option {setting!r} must have the form KEY=VALUE")
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
