"""The AMR parser that a configuration chooses, with its options: ``graph.parser`` and the group ``parsers``.

>>> config = OmegaConf.create({"graph": {"parser": "embedded"}, "parsers": defaults()})
>>> chosen(config)
('embedded', {})
>>> config.graph.parser, config.parsers.amrlib.model_dir = "amrlib", "models/bart-large"
>>> chosen(config)
('amrlib', {'model_dir': 'models/bart-large', 'batch_size': 16})
>>> name(config)
'amrlib-bart-large'
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from graphs.amr import parsers
from graphs.errors import ConfigError
from graphs.graph.graph_maker import ParserFactory

_DEFAULTS = Path(__file__).resolve().parents[2] / "conf" / "parsers" / "default.yaml"


def defaults() -> DictConfig:
    """What ``conf/parsers/default.yaml`` says of every parser."""
    return cast(DictConfig, OmegaConf.load(_DEFAULTS))


def options_of(parser: str, settings: Iterable[str] = ()) -> dict[str, object]:
    """The default options of a parser, changed by settings ``KEY=VALUE``; raises ConfigError for a wrong one."""
    return parsers.read_options(parser, settings, _plain(defaults().get(parser)))


def chosen(config: DictConfig) -> tuple[str, dict[str, object]]:
    """The parser of a configuration and its options.

    Raises:
        ConfigError: an unknown parser, or an option that it lacks, does not take, or that is of another type.
    """
    parser = config.graph.parser
    try:
        return parser, parsers.read_options(parser, (), _plain(config.parsers.get(parser)))
    except ConfigError as error:
        hint = f"; the options are parsers.{parser}.*" if parser in parsers.PARSERS else ""
        raise ConfigError(f"graph.{error.message}{hint}") from error


def factory(parser: str, options: Mapping[str, object]) -> ParserFactory:
    """What makes the parser in every process that parses."""
    return ParserFactory(parsers.open_parser, {"name": parser, **options})


def name(config: DictConfig) -> str:
    """What the graphs of a configuration depend on by their parser, as :func:`graphs.amr.parsers.identity`."""
    return parsers.identity(*chosen(config))


def _plain(options: Any) -> dict[str, object]:
    return cast(dict[str, object], OmegaConf.to_container(options)) if options is not None else {}
