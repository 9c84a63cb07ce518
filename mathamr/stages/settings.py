"""A group of the configuration as the library's own dataclass."""

from __future__ import annotations

import difflib
from dataclasses import fields
from typing import Any, TypeVar, cast

from omegaconf import DictConfig, OmegaConf

from graphs.errors import ConfigError
from mathamr.model.encoder import EncoderConfig

Settings = TypeVar("Settings")

_REPLACED = {"train.single_vector": "train.beta=0"}


def settings(kind: type[Settings], group: DictConfig, name: str) -> Settings:
    """The group ``name`` of the configuration as the library's own type.

    Raises:
        ConfigError: a key that the type does not have, with the one that was probably meant, or a value it refuses.
    """
    values = cast(dict[str, Any], OmegaConf.to_container(group, resolve=True))
    known = {key.name for key in fields(cast(Any, kind))}
    for key in values.keys() - known:
        if (other := _REPLACED.get(f"{name}.{key}")) is not None:
            raise ConfigError(f"{name}.{key} is no setting; use {other}")
        near = difflib.get_close_matches(key, known, n=1)
        hint = f"; did you mean {name}.{near[0]}?" if near else f"; the keys are {', '.join(sorted(known))}"
        raise ConfigError(f"{name}.{key} is no setting{hint}")
    return kind(**values)


def encoder_settings(group: DictConfig) -> EncoderConfig:
    """Return the group ``model`` as the library's own type; ``checkpoint`` is no setting of an encoder."""
    return settings(
        EncoderConfig, OmegaConf.masked_copy(group, [str(key) for key in group if key != "checkpoint"]), "model"
    )
