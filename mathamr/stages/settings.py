"""Groups of the configuration as dataclasses: those that several systems share, and how a group becomes its dataclass.

Dataclasses of the library are used as they are (``EncoderConfig``, ``TrainConfig``), so a setting is described where it
acts.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, field, fields, make_dataclass
from typing import Any, TypeVar, cast, get_type_hints

from omegaconf import MISSING, DictConfig, OmegaConf

from graphs.errors import ConfigError
from mathamr.model.config import EncoderConfig

Settings = TypeVar("Settings")

_REPLACED = {"train.single_vector": "train.beta=0"}


@dataclass
class IndexConfig:
    """Where vectors are kept: ``backend`` exact or qdrant; ``location`` of qdrant: embedded, or a server's URL.

    Of qdrant's HNSW graphs, ``m``: edges a node of the one of document vectors; ``m_all``: of the one of all vectors,
    without which approximate maxsim is refused; ``ef_construct``: breadth of building. A server keeps the index of each
    job under a name of its own.
    ``keep``: leave the index in the job's folder, instead of removing it once it was searched.
    """

    backend: str = MISSING
    location: str | None = MISSING
    m: int | None = None
    m_all: int = MISSING
    ef_construct: int | None = None
    keep: bool = MISSING


@dataclass
class RetrievalConfig:
    """How the index is searched, as in :class:`mathamr.retrieval.Strategy`, and how many results a topic gets."""

    strategy: str = MISSING
    exact: bool = MISSING
    pool: int = MISSING
    ef: int = MISSING
    k: int = MISSING


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


def schema_of(settings: type, **further: type) -> DictConfig:
    """Return the keys and types of a dataclass, to be filled.

    Of a frozen one, which OmegaConf takes as read-only, no default is taken: its values are in ``conf/``.

    Args:
        settings: the dataclass.
        further: keys that the dataclass does not have and that may be absent, with their types.
    """
    if not further and not settings.__dataclass_params__.frozen:  # type: ignore[attr-defined]
        return cast(DictConfig, OmegaConf.structured(settings))
    types = get_type_hints(settings)
    keys: list[Any] = [(key.name, types[key.name], field(default=MISSING)) for key in fields(settings)]
    keys += [(name, kind | None, field(default=None)) for name, kind in further.items()]
    schema: DictConfig = OmegaConf.structured(make_dataclass(settings.__name__, keys))
    return schema
