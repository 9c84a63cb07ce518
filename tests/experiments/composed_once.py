"""Groups of ``conf/`` that Hydra reads and merges once for all tests of a session, and not anew in each test.

    with composed_once():
        compose("config", ["+exp=trial", "train.epochs=3"])
        compose("config", ["+exp=trial", "train.epochs=4"])  # the same files: only the values are set

Configurations with other files, other choices of groups or other types are composed on their own.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import Any
from unittest.mock import patch

from hydra._internal import config_loader_impl as loading
from hydra._internal.config_repository import CachingConfigRepository
from hydra.core.config_store import ConfigStore
from omegaconf import DictConfig

from mathamr.default_settings import CONF


@contextmanager
def composed_once() -> Iterator[None]:
    """Keep what is composed from the files of the project's ``conf/`` alone."""
    lists: dict[Any, Any] = {}
    merged: dict[int, DictConfig] = {}
    list_anew, merge_anew = loading.create_defaults_list, loading.ConfigLoaderImpl._compose_config_from_defaults_list

    def listed(repo: Any, config_name: Any, overrides_list: Any, **how: Any) -> Any:
        sources = [(one.provider, one.path) for one in repo.get_sources()]
        if sources != [("hydra", "hydra.conf"), ("main", str(CONF)), ("schema", "")]:
            return list_anew(repo=repo, config_name=config_name, overrides_list=overrides_list, **how)
        chosen = [one for one in overrides_list if _is_choice(one, repo)]
        schema = ConfigStore.instance().repo.get("schema.yaml")
        key = (id(schema), config_name, *sorted(how.items()), *(one.input_line for one in chosen))
        if key not in lists:
            made = list_anew(repo=repo, config_name=config_name, overrides_list=chosen, **how)
            lists[key] = (made, schema)  # the schema is kept: its id is not given to another one
        kept: Any = lists[key][0]
        return replace(kept, config_overrides=[one for one in overrides_list if not _is_choice(one, repo)])

    def composed(self: Any, defaults: Any, repo: Any) -> DictConfig:
        if not any(defaults is one.defaults for one, _ in lists.values()):
            return merge_anew(self, defaults=defaults, repo=repo)
        if id(defaults) not in merged:
            merged[id(defaults)] = merge_anew(self, defaults=defaults, repo=repo)
        return copy.deepcopy(merged[id(defaults)])

    def repository(self: Any, delegate: Any) -> None:
        self.delegate, self.cache = copy.copy(delegate), {}  # its own sources, and not a copy of all types

    with (
        patch.object(CachingConfigRepository, "__init__", repository),
        patch.object(loading, "create_defaults_list", listed),
        patch.object(loading.ConfigLoaderImpl, "_compose_config_from_defaults_list", composed),
    ):
        yield


def _is_choice(override: Any, repo: Any) -> bool:
    """Return whether an override chooses a file of a group."""
    if override.is_sweep_override():
        return True
    return repo.group_exists(override.key_or_group) and not isinstance(override.value(), dict)
