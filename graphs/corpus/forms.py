r"""Recognition of a folder's form by the names of its files, for messages: nothing is read but one line.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> _ = (root / "posts.jsonl").write_text("{}\n")
>>> forms_of(root)
['jsonl']
>>> hint(root, "beir")
'this looks like data=jsonl'
>>> hint(root.parent / root.name, "jsonl")  # it is what was asked for
''

A folder may hold folders that each are a collection; then these are named.
"""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from graphs.corpus.files import open_packed
from graphs.errors import MathAMRError

SOURCES = ("problems", "titles")
"""Forms that are learned from and have no topics."""

_MOST_FOLDERS = 200  # folders that are looked into, at most: the root may be anything
_MOST_FILES = 2_000  # entries of a folder, at most
_LINE = 1 << 20  # bytes of a line that is looked at, at most


def forms_of(root: Path) -> list[str]:
    """Return the names of the collections (:data:`graphs.corpus.corpus.NAMES`) that the folder looks like, best first.

    Questions without answers are titles with their bodies.
    """
    names = _names(root)
    forms = []
    if any(_is_posts(name) for name in names) or _has_published_posts(root):
        forms.append("arqmath")
    if "corpus.jsonl" in names or ("queries.jsonl" in names and {"qrels", "qrels.tsv", "qrels.jsonl"} & names):
        forms.append("beir")
    if "train.jsonl" in names and any(name.startswith("topics-") for name in names):
        forms.append("pairs")
        return forms
    questions = any(name.startswith("questions") and name.endswith(".jsonl") for name in names)
    answers = any(name.startswith("answers") and name.endswith(".jsonl") for name in names)
    if "posts.jsonl" in names or questions or answers:
        forms += ["titles", "jsonl"] if questions and not answers else ["jsonl"]
    elif not forms and any({"problem", "solution"} <= keys for keys in _keys(root)):
        forms.append("problems")
    return forms


def hint(root: Path, name: str) -> str:
    """Return what the folder looks like where that is not ``name``; "" where nothing is recognised."""
    found = forms_of(root)
    if name in found:
        return ""
    if found:
        return f"this looks like {_choices(found)}"
    inside = [(folder, forms) for folder in _folders(root) if (forms := forms_of(folder))]
    if inside:
        named = [f"{folder.name} ({_choices(forms[:1])})" for folder, forms in inside[:5]]
        return f"these folders in it look like collections: {', '.join(named)}"
    for keys in _keys(root):
        return (
            f"a .jsonl file here has lines with {', '.join(sorted(keys)[:8])}; docs/your-collection.md has the names "
            "of files and fields that are read"
        )
    return ""


def _choices(names: list[str]) -> str:
    """Return how an experiment names collections of these forms.

    >>> _choices(["titles", "jsonl"])
    'data.sources.NAME.name=titles or data=jsonl'
    """
    return " or ".join(f"data.sources.NAME.name={name}" if name in SOURCES else f"data={name}" for name in names)


def _is_posts(name: str) -> bool:
    return name.startswith("Posts") and name.endswith((".xml", ".xml.gz", ".zip"))


def _has_published_posts(root: Path) -> bool:
    """Return whether ``Collection/`` has the posts of ARQMath, here or in the only folder that is here."""
    folders = list(_folders(root))
    places = [root / "Collection", *((folders[0], folders[0] / "Collection") if len(folders) == 1 else ())]
    return any(_is_posts(name) for place in places for name in _names(place))


def _names(folder: Path) -> set[str]:
    """Return the names of the entries of a folder, without ``.gz`` where JSON lines are packed."""
    return {
        path.name.removesuffix(".gz") if path.name.endswith(".jsonl.gz") else path.name for path in _entries(folder)
    }


def _entries(folder: Path) -> list[Path]:
    try:
        return sorted(islice(folder.iterdir(), _MOST_FILES))
    except OSError:
        return []


def _folders(root: Path) -> Iterator[Path]:
    return islice((path for path in _entries(root) if path.is_dir()), _MOST_FOLDERS)


def _keys(root: Path) -> Iterator[set[str]]:
    """Yield the keys of the first line of each file with JSON lines."""
    for path in _entries(root):
        if path.name.endswith((".jsonl", ".jsonl.gz")) and path.is_file() and (fields := _first_object(path)):
            yield set(fields)


def _first_object(path: Path) -> dict[str, Any]:
    """Return the object of a file's first line; empty where it has none."""
    try:
        with open_packed(path) as file:
            content = json.loads(file.readline(_LINE).decode("utf-8-sig"))
    except (OSError, EOFError, zlib.error, ValueError, RecursionError, MathAMRError):
        return {}
    return content if isinstance(content, dict) else {}
