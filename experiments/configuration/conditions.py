"""Conditions of an experiment: the configuration with the changes of each condition.

>>> conditions = {"usual": {}, "flat": {"bm25": {"k1": 0.9}}}
>>> settings = {"track": "bm25", "bm25": {"k1": 1.5}, "train": {"seed": 0}}
>>> config = OmegaConf.create({**settings, "experiment": {"conditions": conditions}})
>>> {name: one["bm25"] for name, one in composed(config, ["usual", "flat"], [42]).items()}
{('usual', 42): {'k1': 1.5}, ('flat', 42): {'k1': 0.9}}
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments.configuration.config import plain
from experiments.configuration.registration import fault_of
from graphs.errors import ConfigError, suggestion
from mathamr.stages.settings import JobSettings
from mathamr.systems import registry


def composed(
    config: DictConfig, conditions: Sequence[str], seeds: Sequence[int]
) -> dict[tuple[str, int], dict[str, Any]]:
    """Return the configurations of jobs by condition and seed, as plain values, without the other conditions.

    Raises:
        ConfigError: a condition changes a setting that is unknown, that its system does not read, or that all
            conditions share.
    """
    kinds = registry.loadable()
    groups = (name for kind in kinds.values() for name in kind.groups())
    changeable = [name for name in dict.fromkeys(["track", *groups]) if name in config]
    # Copying takes longer than all else: conditions are left out, and of the groups each has those that it changes.
    base = deepcopy(config, {id(config.experiment._get_node("conditions")): OmegaConf.create({})})
    OmegaConf.set_struct(base, True)
    mappings = [key for group in changeable for key in _mappings(base.get(group), group)]
    for key in mappings:
        OmegaConf.set_struct(OmegaConf.select(base, key), False)
    known = list(dict.fromkeys(key for group in changeable for key in leaves(config.get(group), group)))
    # A group is converted once, unless it can depend on another.
    is_referring = refers(base)
    shared = {} if is_referring else plain(base)
    composed_values = {}
    for condition in conditions:
        changes = config.experiment.conditions[condition] or OmegaConf.create({})
        place = f"experiment.conditions.{condition}"
        _check_changes(config, changes, place, changeable, known, mappings, {} if is_referring else kinds)
        own = OmegaConf.create({})
        for name in base if is_referring or refers(changes) else changes:
            own[name] = base._get_node(name)  # makes a copy
        OmegaConf.set_struct(own, True)
        try:
            own.merge_with(changes)
            for seed in seeds:
                if "train" in own:
                    own.train.seed = seed
                values = {**shared, **plain(own)}
                composed_values[condition, seed] = {**values, "train": {**values["train"], "seed": seed}}
        except OmegaConfBaseException as error:
            key = f"{place}.{error.full_key}" if error.full_key else place
            raise ConfigError(f"{key}: {str(error).splitlines()[0]}") from error
    return composed_values


def refers(config: DictConfig) -> bool:
    """Return whether a value is given by another setting, which any part of the configuration can hold."""
    return re.search(r"\$\{(?!oc\.env:)", str(OmegaConf.to_container(config))) is not None


def _check_changes(
    config: DictConfig,
    changes: Any,
    place: str,
    changeable: Sequence[str],
    known: Collection[str],
    mappings: Sequence[str],
    kinds: Mapping[str, type[JobSettings]],
) -> None:
    """Check that a condition changes only ``known`` settings that its system reads, and entries of ``mappings``.

    A setting that others may refer to is not known to have no effect: without ``kinds``, each may be changed.
    """
    if not isinstance(changes, DictConfig):
        raise ConfigError(f"{place}={changes} changes no setting; write e.g. {{graph: {{structure: full}}}}")
    if dotted := [str(name) for name in changes if "." in str(name)]:
        raise ConfigError(f"{place}: {dotted[0]} has a dot; write {_nested(dotted[0], changes[dotted[0]])}")
    track = changes.get("track", config.track)
    kind = None if refers(changes) else kinds.get(track)  # None for a missing package, which another error names
    for key in leaves(changes):
        group = key.split(".")[0]
        if key == "train.seed":
            raise ConfigError(f"{place}.{key}: seeds are those of experiment.seeds, for every condition")
        if key in known or any(key.startswith(f"{mapping}.") for mapping in mappings):
            if kind is not None and group not in ("track", *kind.groups()):
                read = ", ".join(kind.groups())
                raise ConfigError(f"{place}.{key} has no effect with track={track}, which reads {read}; remove it")
            continue
        if key in changeable or key in mappings:
            raise ConfigError(f"{place}.{key} is a group of settings; write e.g. {_nested(key, '{...}')}")
        if group in config and group not in changeable:
            raise ConfigError(
                f"{place}.{key}: all conditions share {group}; a condition can change {', '.join(changeable)}"
            )
        if "track" in changes and (fault := fault_of([f"track={changes.track}"])) is not None:
            raise ConfigError(f"{place}: {fault}")  # settings of a package that is missing or faulty
        raise ConfigError(
            f"{place}.{key} is not a setting{suggestion(key, [*known, *mappings]) or f'; see conf/{group}'}"
        )


def _nested(key: str, value: Any) -> str:
    """Return a setting as a condition writes it.

    >>> _nested("graph.connectivity", "none"), _nested("graph", "{...}")
    ('graph: {connectivity: none}', 'graph: {...}')
    """
    group, _, name = key.partition(".")
    return f"{group}: {{{name}: {value}}}" if name else f"{group}: {value}"


def leaves(value: Any, key: str = "") -> Iterator[str]:
    """Yield the dotted names of the settings in a configuration.

    >>> list(leaves(OmegaConf.create({"graph": {"structure": "full"}, "track": "graph"})))
    ['graph.structure', 'track']
    """
    if not isinstance(value, DictConfig) or value._is_none():
        yield key
        return
    for name in value:
        inner = value._get_node(name)  # not value[name]: a setting without a value is one as well
        yield from leaves(inner, f"{key}.{name!s}" if key else str(name))


def _mappings(value: Any, key: str) -> Iterator[str]:
    """Dotted names of the settings that are mappings, whose keys no type names.

    >>> from experiments.configuration.registration import register
    >>> from mathamr.systems.settings.built_in import GivenRunConfig
    >>> list(_mappings(OmegaConf.structured(GivenRunConfig), "run"))
    ['run.paths']
    """
    if not isinstance(value, DictConfig) or value._is_none() or OmegaConf.get_type(value) is dict:
        return
    for name in value:
        inner = value._get_node(name)
        if OmegaConf.get_type(inner) is dict:
            yield f"{key}.{name!s}"
        yield from _mappings(inner, f"{key}.{name!s}")
