"""Registry of systems: those of this package, and those of installed packages with an entry point.

>>> find("bm25").__name__
'BM25System'
>>> find("bm52")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: track=bm52 is not known; the tracks are graph, text, bm25, ...; did you mean bm25?

A system of another package is a class with the decorator, and a line in that package's ``pyproject.toml``:

    @system("random")
    class RandomSystem(System[RandomSettings]): ...

    [project.entry-points."mathamr.systems"]
    random = "mathamr_random:RandomSystem"

A system is imported when it is used. Its settings are known earlier: those of this package are in
:mod:`mathamr.systems.settings.built_in`; those of a package are known after the package is imported. Loading an entry
point runs code of the installed package, as an import does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.metadata import EntryPoint
from typing import TYPE_CHECKING, Any, TypeVar

from graphs.errors import ConfigError, suggestion
from graphs.extensions import SYSTEMS, code_identity, described, distribution, loaded, named, points
from mathamr.systems.settings.built_in import BUILT_IN

if TYPE_CHECKING:
    from mathamr.stages.settings import JobSettings
    from mathamr.stages.topic_sets import TopicSet
    from mathamr.systems.system import System

_registered: dict[str, type[System[Any]]] = {}
_checked: set[type[System[Any]]] = set()  # systems of entry points without a fault
Kind = TypeVar("Kind", bound="type[System[Any]]")


def system(name: str) -> Callable[[Kind], Kind]:
    """Register a class as the system that ``track=name`` chooses; raise ConfigError if another one has the name."""

    def register(kind: Kind) -> Kind:
        other = _registered.get(name)
        place = _place(other) if other is not None else BUILT_IN[name].place if name in BUILT_IN else None
        if place not in (None, _place(kind)):
            raise ConfigError(f"two systems are called {name}: {place} and {_place(kind)}; rename one")
        kind.name = name
        _registered[name] = kind
        return kind

    return register


def names() -> list[str]:
    """Return the names of all systems, those of this package first; raise ConfigError if two have one name."""
    return list(dict.fromkeys([*BUILT_IN, *_registered, *_entry_points()]))


def find(name: str) -> type[System[Any]]:
    """Return the system with a name; raise ConfigError if it is unknown, of two systems, or cannot be imported."""
    point = None if name in BUILT_IN else _entry_points().get(name)
    if name in _registered and (point is None or _registered[name] in _checked):
        return _registered[name]
    if name in BUILT_IN:
        module, _, attribute = BUILT_IN[name].place.partition(":")
        return _registered.setdefault(name, getattr(import_module(module), attribute))
    if point is not None:
        return _registered.setdefault(name, _load(point))
    known = names()
    raise ConfigError(f"track={name} is not known; the tracks are {', '.join(known)}{suggestion(name, known)}")


def settings_of(name: str) -> type[JobSettings]:
    """Return the type of a system's settings; a system of this package is not imported for this."""
    return BUILT_IN[name].settings if name in BUILT_IN else find(name).settings


def loadable() -> dict[str, type[JobSettings]]:
    """Return the settings of all systems, except those of packages that cannot be imported (:func:`fault`)."""
    return {name: settings_of(name) for name in names() if fault(name) is None}


def fault(name: str) -> ConfigError | None:
    """Return the reason why :func:`settings_of` gives no settings; None if it gives them."""
    try:
        settings_of(name)
    except ConfigError as error:
        return error
    return None


def key_parts(name: str) -> dict[str, str]:
    """Return a system's name and, for a system of another package, the identity of its code, as parts of keys.

    :func:`graphs.extensions.code_identity` describes which files count.
    """
    code = {"code": code_identity(_registered[name], _entry_points().get(name))} if is_installed(name) else {}
    return {"track": name, **code}


def is_installed(name: str) -> bool:
    """Return whether a system has been imported from outside this package."""
    return name in _registered and name not in BUILT_IN


def owner(name: str) -> str:
    """Return the package of a system as words of a message: " of NAME VERSION"; "" without an entry point."""
    point = _entry_points().get(name)
    return "" if point is None else f" of {distribution(point)}"


def check_abilities(kind: type[System[Any]], topic_sets: Sequence[TopicSet]) -> None:
    """Raise ConfigError for a task or a test that a system does not support; it names systems that do."""
    lacking = {topic_set.task for topic_set in topic_sets} - kind.tasks
    if lacking:
        task = min(lacking)
        others = ", ".join(name for name in loadable() if task in find(name).tasks)
        raise ConfigError(
            f"track={kind.name} cannot do Task {task}: leave Task {task} out with experiment.tasks=, or use one of the "
            f"tracks {others}"
        )
    if not kind.partial and any(topic_set.searched is not None for topic_set in topic_sets):
        others = ", ".join(name for name in loadable() if find(name).partial)
        raise ConfigError(
            f"track={kind.name} searches all answers, and a test here only some of them; use one of the tracks {others}"
        )


def _entry_points() -> dict[str, EntryPoint]:
    """Return the entry points by the names of their systems."""
    found = {point.name: named(SYSTEMS, point.name, BUILT_IN) for point in points(SYSTEMS)}
    return {name: point for name, point in found.items() if point is not None}


def _load(point: EntryPoint) -> type[System[Any]]:
    """Import the system of an entry point; a faulty one does not stay registered."""
    before = dict(_registered)
    try:
        kind = _system_of(point)
    except ConfigError:
        before.pop(point.name, None)  # its module may be that of another system, which is not faulty
        _registered.clear()
        _registered.update(before)
        raise
    _checked.add(kind)
    return kind


def _system_of(point: EntryPoint) -> type[System[Any]]:
    from mathamr.stages.settings import JobSettings
    from mathamr.systems.system import System

    place = described("system", point)
    kind = loaded(point, place)
    if not (isinstance(kind, type) and issubclass(kind, System)):
        raise ConfigError(f"{place} is not a subclass of mathamr.systems.system.System")
    if getattr(kind, "name", None) != point.name:
        raise ConfigError(f'{place} is not registered by this name; write @system("{point.name}") above the class')
    own = vars(kind.settings)
    has_fields = any("ClassVar" not in str(hint) for hint in own.get("__annotations__", {}).values())
    if has_fields and "__dataclass_fields__" not in own:
        raise ConfigError(f"{place}: write @dataclass(frozen=True, kw_only=True) above {kind.settings.__name__}")
    lacking = sorted(getattr(kind, "__abstractmethods__", ()))
    if kind.train is not System.train:  # neither has an error of its own: the model is trained for each job, or never
        lacking += ["best"] if kind.best is System.best else []
        lacking += (
            ["model_key_parts (of its settings)"]
            if kind.settings.model_key_parts is JobSettings.model_key_parts
            else []
        )
    if lacking:
        raise ConfigError(f"{place} lacks the methods {', '.join(lacking)}; write them")
    if not (isinstance(kind.tasks, set | frozenset) and kind.tasks <= {1, 2}):
        raise ConfigError(f"{place} has tasks = {kind.tasks!r}; write e.g. tasks = frozenset({{1}})")
    return kind


def _place(kind: type[System[Any]]) -> str:
    return f"{kind.__module__}:{kind.__qualname__}"
