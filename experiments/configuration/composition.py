"""Groups of ``conf/`` for scripts, changed by ``KEY=VALUE``, and the configuration of an experiment that was run.

>>> [graph] = read_groups(["graph.connectivity=sequential"], "graph")
>>> graph["connectivity"]
'sequential'
>>> configuration_of("python -m experiments.run +exp=vn_connectivity").data.name
'mathdocs'
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from experiments.configuration.config import ExperimentConfig
from experiments.configuration.errors import CONFIGURATION_ERRORS, refusal
from experiments.configuration.registration import compose_words, validated
from experiments.options import CONFIG_DIR, PROGRAM, quoted, setting
from graphs.amr import parsers
from graphs.errors import ConfigError, suggestion
from mathamr.default_settings import values
from mathamr.model.config import EncoderConfig
from mathamr.model.label_vectors import is_hash
from mathamr.stages.settings import GraphConfig
from mathamr.training.config import TrainConfig


def read_groups(overrides: Sequence[str], *groups: str) -> list[dict[str, Any]]:
    """Return groups of ``conf/`` as plain values.

    Raises:
        ConfigError: an unknown key, group or value, or a setting of another group.
    """
    for word in overrides:
        name = word.lstrip("+~/").partition("=")[0]
        if name.partition(".")[0] not in groups:
            known = suggestion(name, [key for key in known_keys() if key.partition(".")[0] in groups])
            raise ConfigError(f"{word} is not a setting of {' or '.join(groups)}, which this command takes{known}")
    try:
        config = compose_words(overrides)
        return [
            cast(dict[str, Any], OmegaConf.to_container(config[group], resolve=True, throw_on_missing=True))
            for group in groups
        ]
    except CONFIGURATION_ERRORS as error:
        raise refusal(error, known_keys) from error


def read_settings(overrides: Sequence[str]) -> tuple[EncoderConfig, TrainConfig]:
    """Return the groups ``model`` and ``train``, with changes like ``train.epochs=3`` or ``model=thesis``.

    Raises:
        ConfigError: an unknown key, group or value, or one that only experiments take.
    """
    model, train = read_groups(overrides, "model", "train")
    if (given := model.pop("checkpoint")) is not None:
        raise ConfigError(f"model.checkpoint={given} is a setting of experiments.run; leave it out")
    vectors = model["label_vectors"]
    if vectors is not None and not is_hash(vectors):
        raise ConfigError(
            f"model.label_vectors={vectors} is no hash; experiments.run takes the name of a text encoder as well, here "
            "vectors are named by their hash (mathamr.model.label_vectors)"
        )
    return EncoderConfig(**model), TrainConfig(**train)


def graph_config() -> GraphConfig:
    """Return the group ``graph`` as ``conf/`` has it."""
    return GraphConfig(**values("graph"))


def parser_options(parser: str, options: Sequence[str] = ()) -> dict[str, object]:
    """Return the options of an AMR parser: those of ``conf/``, changed by ``KEY=VALUE``.

    Raises:
        ConfigError: an unknown parser, or an option that it lacks, does not take, or that is of another type.
    """
    return parsers.read_options(parser, options, values("parsers").get(parser))


def configuration_of(command: str, root: Path | None = None) -> DictConfig:
    """Return the configuration that a command of ``experiment.json`` was run with; ``root`` replaces ``data.root``.

    Raises:
        ConfigError: another command, or one that no longer fits ``conf/``.
    """
    try:
        words = shlex.split(command)
    except ValueError:  # a quotation that does not end
        words = []
    if words[:3] != PROGRAM:
        raise ConfigError(f"experiment.json names the command {command!r}, which is not one of experiments.run")
    folders = [word.removeprefix(CONFIG_DIR) for word in words if word.startswith(CONFIG_DIR)]
    if gone := [folder for folder in folders if not Path(folder).is_dir()]:
        raise ConfigError(f"experiment.json names the command {command!r}: {gone[0]} is no folder; put it back")
    changes = [word for word in words[3:] if not word.startswith(CONFIG_DIR)]
    changes += [f"hydra.searchpath=[{quoted(f'file://{folder}')}]" for folder in folders]
    changes += [] if root is None else [setting("data.root", root)]
    try:
        return compose_settings(changes)
    except ConfigError as error:
        raise ConfigError(f"experiment.json names the command {command!r}: {error}") from error


def compose_settings(words: Sequence[str]) -> DictConfig:
    """Return the configuration of a command line.

    Raises:
        ConfigError: an unknown key, group or value, or a key without a value.
    """
    try:
        return validated(compose_words(words))
    except CONFIGURATION_ERRORS as error:
        raise refusal(error, known_keys) from error


def known_keys() -> list[str]:
    """Return every key of the configuration, with its group: ``train.epochs``."""
    config = cast(dict[str, Any], OmegaConf.to_container(compose_words()))
    groups = {name: values for name, values in config.items() if isinstance(values, dict)}
    groups["experiment"] = dict.fromkeys(one.name for one in fields(ExperimentConfig))  # none is composed here
    return [*config, *(f"{group}.{name}" for group, values in groups.items() for name in values)]
