"""Versions of the code, and finished stages: a ``.done`` file beside a file says that it is complete, and which version
of ``graphs/`` made it."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from functools import cache
from pathlib import Path
from types import ModuleType

import graphs
import mathamr
from mathamr.stages.console import Console


def is_done(done: Path, path: Path, console: Console) -> bool:
    """Return whether a stage is finished; say once for each version of the code that another one has made it.

    ``DONE.told`` has the version that it was said for.
    """
    if not (done.exists() and path.exists()):
        return False
    version = graphs_version()
    if done.read_text(encoding="utf-8") != version and is_news(done.with_name(f"{done.name}.told"), version):
        console.once(
            f"  {path} was made by another version of graphs/ and is used as it is (not said again); "
            f"to make it again, delete it and {done}"
        )
    return True


def is_news(record: Path, version: str) -> bool:
    """Return whether the file ``record`` names another version than ``version``, and write this one into it."""
    with suppress(OSError):  # in a folder that may only be read, it is said each time
        if record.exists() and record.read_text(encoding="utf-8") == version:
            return False
        record.write_text(version, encoding="utf-8")
    return True


@cache
def graphs_version() -> str:
    """Return a hash of the code that makes graphs: what another version has made is not passed off as this one's."""
    return _hash_of(graphs)


@cache
def mathamr_version() -> str:
    """Return a hash of the code that trains and ranks, also of changes that are not committed."""
    return _hash_of(mathamr)


def _hash_of(package: ModuleType) -> str:
    digest = hashlib.sha256()
    assert package.__file__ is not None
    root = Path(package.__file__).parent
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]
