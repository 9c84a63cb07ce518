"""Installed packages that extend MathAMR+: entry points, the identity of their code, and their faults.

>>> points("mathamr.elephants")
()
>>> code_identity(ValueError)  # a class without a source file
''

Results depend on the code of an extension as they do on settings, so its identity is part of keys
(:mod:`mathamr.systems.registry`) and of fingerprints (:mod:`graphs.corpus.installed`).
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Container
from contextlib import suppress
from functools import lru_cache, partial
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any

from graphs import digests
from graphs.errors import ConfigError

COLLECTIONS, CONNECTIVITIES = "mathamr.collections", "mathamr.connectivities"
MEASURES, SYSTEMS = "mathamr.measures", "mathamr.systems"
"""Groups of entry points."""

_BUILT_IN = ("experiments", "graphs", "mathamr")
"""Packages of MathAMR+."""


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


def named(group: str, name: str, built_in: Container[str] = ()) -> EntryPoint | None:
    """Return the entry point with a name; None without one.

    Raises:
        ConfigError: two packages have it, or a package and ``built_in``.
    """
    found = [point for point in points(group) if point.name == name]
    owners = [*(["mathamr-plus"] if found and name in built_in else []), *map(distribution, found)]
    if len(owners) > 1:
        kinds = group.removeprefix("mathamr.")
        raise ConfigError(f"two {kinds} are called {name}: of {' and of '.join(owners)}; uninstall one")
    return found[0] if found else None


def described(kind: str, point: EntryPoint) -> str:
    """Return the place that a message about an entry point begins with."""
    return f"{kind} {point.name} of {distribution(point)} ({point.value})"


def loaded(point: EntryPoint, place: str) -> Any:
    """Import what an entry point names.

    Raises:
        ConfigError: it cannot be imported.
    """
    try:
        return point.load()
    except Exception as error:
        reason = f"{type(error).__name__}: {error}"
        raise ConfigError(f"{place} cannot be imported: {reason}; mend the package or uninstall it") from error


def distribution(point: EntryPoint) -> str:
    """Return name and version of the package that has an entry point."""
    return "an unknown distribution" if point.dist is None else f"{point.dist.name} {point.dist.version}"


def code_identity(loaded: object, point: EntryPoint | None = None) -> str:
    """Return a hash of the code of a class or function, after the version of its package; "" without a source file.

    The code is the module of the class and that of its entry point. If a module is in a package, all modules in its
    folder and below count.
    """
    while isinstance(loaded, partial):
        loaded = loaded.func
    modules = [getattr(loaded, "__module__", None) or ""]
    if point is not None:  # which may open a built-in form
        modules = [name for name in {point.module, *modules} if name.partition(".")[0] not in _BUILT_IN]
    hashes = {name: digest for module in modules for name, digest in _hashes(module).items()}
    whole = digests.of_json(hashes) if len(hashes) > 1 else "".join(hashes.values())
    return " ".join(filter(None, [distribution(point) if point is not None else "", whole[:16]]))


def _hashes(name: str) -> dict[str, str]:
    """Return a hash of each file of an imported module, by package and path in its folder."""
    module = sys.modules.get(name)
    if (place := getattr(module, "__file__", None)) is None:
        return {}
    path, package = Path(place), getattr(module, "__package__", None) or ""
    hashes = {}
    for file in {path, *(path.parent.rglob("*.py") if package else ())}:
        below = file.parts[len(path.parent.parts) :]
        if file == path or all(part.isidentifier() for part in (*below[:-1], file.stem)):  # not a .venv below
            with suppress(OSError):  # e.g. a file that an editor has removed again
                hashes["/".join([*package.split("."), *below])] = digests.of_file_once(file)
    return hashes


def package_at_fault(error: BaseException) -> str | None:
    """Return name and version of the extension whose code an exception went through; None without one."""
    owners = {
        point.module.partition(".")[0]: distribution(point)
        for group in (COLLECTIONS, CONNECTIVITIES, MEASURES, SYSTEMS)
        for point in points(group)
    }
    modules = [str(frame.f_globals.get("__name__")) for frame, _ in traceback.walk_tb(error.__traceback__)]
    return next((owners[top] for name in reversed(modules) if (top := name.partition(".")[0]) in owners), None)
