"""AMR parser of a configuration, with its options: ``graph.parser`` and the group ``parsers``.

>>> from types import SimpleNamespace
>>> options = {"embedded": {"model": None}, "amrlib": {"model_dir": "models/bart-large", "batch_size": 16}}
>>> parser_of(SimpleNamespace(graph=SimpleNamespace(parser="embedded"), parsers=options))
('embedded', {})
>>> parser_of(SimpleNamespace(graph=SimpleNamespace(parser="amrlib"), parsers=options))
('amrlib', {'model_dir': 'models/bart-large', 'batch_size': 16})
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING

from graphs.amr import parsers
from graphs.errors import ConfigError
from mathamr.stages.settings import ParsedSettings

if TYPE_CHECKING:
    from graphs.graph.graph_maker import ParserFactory


def parser_of(config: ParsedSettings) -> tuple[str, dict[str, object]]:
    """Return the parser of a job and its options; raise ConfigError if it is unknown or does not take them."""
    parser = config.graph.parser
    try:
        return parser, parsers.read_options(parser, (), config.parsers.get(parser) or {})
    except ConfigError as error:
        hint = f"; the options are parsers.{parser}.*" if parser in parsers.PARSERS else ""
        raise ConfigError(f"graph.{error.message}{hint}") from error


def factory(parser: str = "embedded", options: Mapping[str, object] = MappingProxyType({})) -> ParserFactory:
    """Return what makes the parser in every process that parses."""
    return partial(parsers.open_parser, parser, **options)


def name(config: ParsedSettings) -> str:
    """Return what the graphs of a job depend on by their parser, as :func:`graphs.amr.parsers.identity`."""
    return parsers.identity(*parser_of(config))
