"""Collections of other packages, which an entry point names:

    [project.entry-points."mathamr.collections"]
    faq = "mathamr_faq:Faq"

>>> opener("faq")  # no package has it

The value is called with the folder of ``data.root``, or None, and gives a collection
(:class:`graphs.corpus.corpus.Documents`). It is imported when it is first used, because an entry point runs code of an
installed package, as an import does.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from graphs.errors import ConfigError

GROUP = "mathamr.collections"
"""The group of entry points."""


def names() -> list[str]:
    """Return the names of the collections that installed packages have."""
    return sorted({point.name for point in points(GROUP)})


def points(group: str) -> tuple[EntryPoint, ...]:
    """Return the entry points of a group; all packages are read again when one is installed or removed."""
    return _points(group, tuple((place, _changed(place)) for place in sys.path))


@lru_cache(maxsize=8)
def _points(group: str, places: tuple[tuple[str, int], ...]) -> tuple[EntryPoint, ...]:
    return tuple(entry_points(group=group))


def _changed(place: str) -> int:
    try:
        return Path(place).stat().st_mtime_ns
    except OSError:
        return 0


def opener(name: str) -> Callable[[Path | None], object] | None:
    """Return what opens the collection ``name``; None where no package has it.

    Raises:
        ConfigError: two packages have it, or the package that has it cannot be imported.
    """
    named = [point for point in points(GROUP) if point.name == name]
    if not named:
        return None
    if len({point.value for point in named}) > 1:
        owners = " and ".join(map(distribution, named))
        raise ConfigError(f"two collections are called {name}: of {owners}; uninstall one")
    first = named[0]
    try:
        loaded = first.load()
    except Exception as error:
        raise ConfigError(
            f"collection {name} of {distribution(first)} ({first.value}) cannot be imported: "
            f"{type(error).__name__}: {error}; mend the package or uninstall it"
        ) from error
    if not callable(loaded):
        raise ConfigError(f"collection {name} of {distribution(first)} ({first.value}) is not a class or a function")
    return loaded


def distribution(point: EntryPoint) -> str:
    """Return name and version of the package that has an entry point."""
    return "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"
