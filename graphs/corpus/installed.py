"""Collections of other packages, which an entry point names:

    [project.entry-points."mathamr.collections"]
    faq = "mathamr_faq:Faq"

>>> opener("faq")  # no package has it

The value is called with the folder of ``data.root``, or None, and gives a collection
(:class:`graphs.corpus.corpus.Documents`). It is imported when it is first used, because an entry point runs code of an
installed package, as an import does.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path

from graphs.errors import ConfigError

GROUP = "mathamr.collections"
"""The group of entry points."""


def names() -> list[str]:
    """Return the names of the collections that installed packages have."""
    return sorted({point.name for point in entry_points(group=GROUP)})


def opener(name: str) -> Callable[[Path | None], object] | None:
    """Return what opens the collection ``name``; None where no package has it.

    Raises:
        ConfigError: two packages have it, or the package that has it cannot be imported.
    """
    points = list(entry_points(group=GROUP, name=name))
    if not points:
        return None
    if len({point.value for point in points}) > 1:
        owners = " and ".join(map(distribution, points))
        raise ConfigError(f"two collections are called {name}: of {owners}; uninstall one")
    try:
        loaded = points[0].load()
    except Exception as error:
        raise ConfigError(
            f"collection {name} of {distribution(points[0])} ({points[0].value}) cannot be imported: "
            f"{type(error).__name__}: {error}; mend the package or uninstall it"
        ) from error
    if not callable(loaded):
        raise ConfigError(
            f"collection {name} of {distribution(points[0])} ({points[0].value}) is not a class or a function"
        )
    return loaded


def distribution(point: EntryPoint) -> str:
    """Return name and version of the package that has an entry point."""
    return "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"
