"""Finished stages: a ``.done`` file beside a file says that it is complete, and which version of the code made it."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

import graphs
from mathamr.stages.console import Console


def is_done(done: Path, path: Path, console: Console) -> bool:
    """Return whether a stage is finished; say once where another version of the code has made it."""
    if not (done.exists() and path.exists()):
        return False
    if done.read_text(encoding="utf-8") != graphs_version():
        console.once(f"  {path} was made by another version of graphs/; delete {done} and it to make it anew")
    return True


@cache
def graphs_version() -> str:
    """Return a hash of the code that makes graphs: what another version has made is not passed off as this one's."""
    digest = hashlib.sha256()
    assert graphs.__file__ is not None
    root = Path(graphs.__file__).parent
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]
