"""Command-line words -> search settings, shared by mathamr search and mathamr serve.

>>> settings, others = read(["index=outputs/index", "k=3", "strategy=single_vector", "Why is $a=b$?"])
>>> settings.k, settings.strategy.name, settings.task, others
(3, 'single_vector', 'answers', ['Why is $a=b$?'])
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.errors import ConfigError, suggestion
from mathamr.retrieval.index import Strategy
from mathamr.search.answer import RESULTS, check
from mathamr.search.selection import EVERYTHING, Selection

KEYS = ("index", "k", "strategy", "exact", "pool", "ef", "task", "kind", "formulas", "start", "model", "device")


@dataclass(frozen=True, slots=True)
class Settings:
    """``index`` is a folder written by mathamr index; ``model``, if given, must be the checkpoint that made it.

    ``selection`` has the filters that are not typed in the query; ``named`` has the keys that were given.
    """

    index: Path
    strategy: Strategy
    k: int
    task: str
    model: Path | None
    device: str
    selection: Selection = EVERYTHING
    named: frozenset[str] = frozenset()


def read(words: Sequence[str], more: Sequence[str] = ()) -> tuple[Settings, list[str]]:
    """Split the words of a command line into settings ``KEY=VALUE`` and other words, in any order.

    Settings whose keys are in ``more`` stay among the other words. Raises :class:`ConfigError` for an unknown key
    or value, or a key given twice; a word with spaces, or with ``=`` after anything but a name, such as ``$a=b$``, is
    not a setting.
    """
    given: dict[str, str] = {}
    others, known = [], (*KEYS, *more)
    for word in as_settings(words, KEYS):
        key, equals, value = word.partition("=")
        if equals and key in KEYS:
            if key in given:
                also = "; mathamr serve searches several indexes" if key == "index" else ""
                raise ConfigError(f"{key}={given[key]} and {key}={value}: give {key}= once{also}")
            given[key] = value
        elif equals and key in more:
            others.append(word)
        elif equals and _is_name(key, known) and not value.startswith((" ", "=")) and " " not in word:
            choice = suggestion(key.lower(), known) or f"; choose from: {', '.join(known)}"
            raise ConfigError(f"unknown key {key!r}{choice}")
        else:
            others.append(word)
    if not given.get("index"):
        raise ConfigError("index=FOLDER is missing; mathamr index writes one")
    exact = given.get("exact", "true").lower()
    if exact not in ("true", "false"):
        raise ConfigError(f"exact={exact}; give true or false")
    task, k = given.get("task", "answers"), whole(given, "k", RESULTS)
    check(task, k)
    plain = Strategy(given.get("strategy", Strategy().name), exact == "true")
    strategy = Strategy(plain.name, plain.exact, whole(given, "pool", plain.pool), whole(given, "ef", plain.ef))
    model = Path(given["model"]) if given.get("model") else None
    selection = Selection(given.get("kind", ""), given.get("formulas", ""), start=whole(given, "start", 0))
    device, named = given.get("device", "cpu"), frozenset(given)
    return Settings(Path(given["index"]), strategy, k, task, model, device, selection, named), others


def as_settings(words: Sequence[str], keys: Sequence[str]) -> list[str]:
    """Return the words with options of ``keys``, the form of other commands, rewritten as settings.

    >>> as_settings(["--index", "outputs/index", "--k=3", "Why is $2>1$?"], ["index", "k"])
    ['index=outputs/index', 'k=3', 'Why is $2>1$?']
    >>> as_settings(["--workers", "2", "--log", "--k=3"], ["workers"])
    ['workers=2', '--log', '--k=3']
    """
    options = {f"--{key}" for key in keys}
    out: list[str] = []
    for word in words:
        if out and out[-1] in options:
            out[-1] = f"{out[-1][2:]}={word}"
        else:
            out.append(word[2:] if "=" in word and word.partition("=")[0] in options else word)
    return out


def _is_name(key: str, known: Sequence[str]) -> bool:
    """Return whether ``key`` is long enough for the name of a setting, or one in capital letters."""
    return key.isidentifier() and (len(key) > 2 or key.lower() in known)


def whole(given: Mapping[str, str], key: str, default: int) -> int:
    """Return the whole number of ``key``, or ``default``; raise :class:`ConfigError` for anything else."""
    try:
        return int(given.get(key, default))
    except ValueError as error:
        raise ConfigError(f"{key}={given[key]}; a whole number is needed") from error
