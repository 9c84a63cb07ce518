"""Types of all settings, registered with Hydra, and the settings of a job.

>>> config = validated(compose_words(["+exp=vn_connectivity", "track=bm25", "bm25.k1=0.9"]))
>>> job_settings(config).result_key_parts()["bm25"]
{'by': 'text', 'k1': 0.9}

Groups of settings that systems have (``graph``, ``bm25``, ...) are typed by the systems' settings
(:meth:`mathamr.stages.settings.JobSettings.groups`), so a setting is described where it acts. A group with a file
``default.yaml`` needs no line in ``conf/config.yaml``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import field, fields, make_dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments.configuration.config import Config, plain
from experiments.configuration.schema import filled, schema_of
from graphs.errors import ConfigError, suggestion
from mathamr.default_settings import CONF
from mathamr.stages.settings import DataSettings, ExampleSettings, JobSettings
from mathamr.systems import registry
from mathamr.systems.settings.built_in import BUILT_IN


def register() -> None:
    """Register the types with Hydra as the config ``schema``, the first default of ``conf/config.yaml``.

    Raises:
        ConfigError: two systems have the same name. Systems of packages with faulty settings are left out;
            :func:`job_settings` names them.
    """
    _register(tuple(registry.loadable().items()))


@lru_cache(maxsize=1)  # the types are known until there are other systems
def _register(named: tuple[tuple[str, type[JobSettings]], ...]) -> None:
    groups: dict[str, tuple[type, str]] = {}  # with the first track that has the group
    with_files, with_default = ({path.parent.name for path in CONF.glob(f"*/{name}.yaml")} for name in ("*", "default"))
    _faulty.clear()
    for track, kind in named:
        try:
            own, files = _groups(track, kind, groups), _files(kind)
            _check_values(kind, with_files | {group for group, _ in files})
        except Exception as error:
            place = f"settings of track={track}{registry.owner(track)}"
            _faulty[track] = ConfigError(f"{place} are faulty: {str(error) or type(error).__name__}")
            if track in BUILT_IN:
                raise _faulty[track] from error
            continue
        groups |= {name: (group, track) for name, group in own.items()}
        for (group, name), node in files.items():
            ConfigStore.instance().store(group=group, name=name, node=node)
        with_default |= {group for group, name in files if name == "default"}
    lines = OmegaConf.load(CONF / "config.yaml").defaults
    listed = {name for line in lines if not isinstance(line, str) for name in line}
    defaults = ["_self_", *({name: "default"} for name in groups if name in with_default - listed)]
    further: list[Any] = [("defaults", list[Any], field(default_factory=lambda: defaults))]
    further += [(name, Any, field(default_factory=schema_of(kind))) for name, (kind, _) in groups.items()]
    ConfigStore.instance().store(name="schema", node=make_dataclass("Config", further, bases=(schema_of(Config),)))


_faulty: dict[str, ConfigError] = {}  # systems of packages whose settings cannot be used


def fault_of(words: Sequence[str]) -> ConfigError | None:
    """Return the fault of a chosen system, or of its settings; None without one."""
    tracks = [match[1] for word in words if (match := re.match(r"\+*(?:[\w.-]+\.)?track=([\w.-]+)", word))]
    conditions = [track for word in words for track in re.findall(r"[{,]\s*track:\s*([\w.-]+)", word)]
    tracks += [track for track in conditions if track in registry.names()]  # a title may have such a text
    return next((fault for track in tracks if (fault := _faulty.get(track) or registry.fault(track))), None)


def _files(kind: type[JobSettings]) -> dict[tuple[str, str], Any]:
    """Return the contents of the files of a system's groups, by group and name."""
    files = {}
    for path in [] if kind.conf is None else sorted(kind.conf.glob("*/*.yaml")):
        if path.parent.name in kind.groups():
            try:
                files[path.parent.name, path.stem] = loaded = OmegaConf.load(path)
            except Exception as error:
                raise ConfigError(f"not YAML: {error}", path=path) from error
            if not isinstance(loaded, DictConfig):
                raise ConfigError("a list; write a line NAME: VALUE for each setting", path=path)
            try:
                values = cast(dict[str, Any], OmegaConf.to_container(loaded))
                values.pop("defaults", None)  # a list for Hydra
                OmegaConf.merge(OmegaConf.structured(schema_of(kind.groups()[path.parent.name])), values)
            except OmegaConfBaseException as error:
                place = f"{error.full_key}: " if error.full_key else ""
                raise ConfigError(f"{place}{str(error).splitlines()[0]}", path=path) from error
    return files


def _check_values(kind: type[JobSettings], with_files: Set[str]) -> None:
    """Raise if a setting has no value in a group without a file."""
    for name, group in kind.groups().items():
        keys = [] if name in with_files else sorted(OmegaConf.missing_keys(OmegaConf.structured(schema_of(group))))
        if keys:
            found = "" if kind.conf else f", or set {kind.__name__}.conf to the folder conf of your package"
            raise ConfigError(f"{name}.{keys[0]} has no value; write {kind.conf or 'conf'}/{name}/default.yaml{found}")


def _groups(track: str, kind: type[JobSettings], known: Mapping[str, tuple[type, str]]) -> Mapping[str, type]:
    """Return the types of a system's groups by name, which no other system types differently."""
    for name, group in kind.groups().items():
        if name in {base.name for base in (*fields(Config), *fields(JobSettings))}:
            raise ConfigError(f"track={track} has a group {name}, which is not a group of a system; rename it")
        other, owner = known.get(name, (group, track))
        if other is not group:
            raise ConfigError(f"tracks {owner} and {track} type the group {name} differently; rename one")
    return kind.groups()


def compose_words(words: Sequence[str] = ()) -> DictConfig:
    """Return the configuration of a command line, as Hydra composes it."""
    register()
    with initialize_config_dir(str(CONF), version_base="1.3"):
        return compose("config", list(words))


def validated(config: DictConfig) -> DictConfig:
    """Return the configuration after a check for missing and unknown keys.

    Raises:
        ConfigError: names the first key without a value, or the first unknown key of ``++KEY=VALUE``.
    """
    try:
        missing = sorted(OmegaConf.missing_keys(config))
    except OmegaConfBaseException as error:
        raise ConfigError(str(error).splitlines()[0]) from error
    if missing:
        raise ConfigError(f"{missing[0]} has no value; give {missing[0]}=... on the command line")
    known = set(ConfigStore.instance().repo["schema.yaml"].node) - {"defaults"}  # load() would copy all
    if unknown := sorted(str(name) for name in set(config) - known):
        raise ConfigError(f"unknown key {unknown[0]}{suggestion(unknown[0], [str(name) for name in known])}")
    if config.workers < 1:
        raise ConfigError(f"workers={config.workers} must be at least 1")
    return config


def job_settings(config: DictConfig | dict[str, Any]) -> JobSettings:
    """Return the settings of a job's system.

    Args:
        config: composed configuration with the changes of a condition, or its plain values.

    Raises:
        ConfigError: an unknown track, a key without a setting, or values that a system refuses.
    """
    values = cast(dict[str, Any], plain(config))
    kind = registry.settings_of(values["track"])
    if (fault := _faulty.get(values["track"])) is not None:
        raise fault
    experiment = values["experiment"]
    return kind(
        track=values["track"],
        experiment=experiment["name"],
        outputs=Path(values["outputs"]),
        seed=values["train"]["seed"],
        workers=values["workers"],
        data=filled(DataSettings, values["data"], "data"),
        parsers=values["parsers"],
        tasks=experiment["tasks"],
        example=filled(ExampleSettings, experiment["example"], "experiment.example"),
        **{name: filled(group, values[name], name) for name, group in kind.groups().items()},
    )
