"""Files that several processes share below ``outputs/``: JSON that is replaced whole, keys, and locks.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_json(folder / "result.json", {"seed": 1})
>>> read_json(folder / "result.json"), read_json(folder / "failed.json")
({'seed': 1}, None)
>>> key({"b": 1, "a": 2}) == key({"a": 2, "b": 1})
True
>>> with locked(folder / ".lock") as first, locked(folder / ".lock", patience=0) as second:
...     first, second, is_locked(folder / ".lock")
(True, False, True)
>>> is_locked(folder / ".lock")
False

Locks are ``flock``'s: they hold between machines that share a folder over NFS (Linux 2.6.12 and newer) and end with
their process in any case.
"""

from __future__ import annotations

import fcntl
import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from graphs import digests
from graphs.errors import ConfigError, StoreError
from graphs.whole_file import write_whole

# Seconds to try: :func:`is_locked` holds a lock for an instant, and a finished stage is skipped in some hundredths.
_PATIENCE = 0.3


def write_json(path: Path, content: Any) -> None:
    """Write ``content`` as indented JSON, in one step."""
    write_whole(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")


def key(content: Any) -> str:
    """Return a hash of ``content``, which is JSON, for file names: 16 hexadecimal digits.

    Raises:
        ConfigError: content that is not JSON, e.g. of a package.
    """
    try:
        return digests.of_json(content)[:16]
    except TypeError as error:
        raise ConfigError(f"a part of a key is not JSON: {error}; use numbers, strings, lists and mappings") from error


def joined(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Return the entries of all parts; a name with different values keeps all of them.

    >>> joined({"size": 1, "seed": 2}, {"seed": 2}, {"size": 3})
    {'size': [1, 3], 'seed': 2}
    """
    whole: dict[str, Any] = {}
    for name, value in (entry for part in parts for entry in part.items()):
        whole[name] = [whole[name], value] if name in whole and whole[name] != value else value
    return whole


def read_json(path: Path) -> dict[str, Any] | None:
    """Return the object in ``path``; ``None`` if it is missing or incomplete."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, ValueError):
        return None
    return content if isinstance(content, dict) else None


@contextmanager
def locked(path: Path, *, wait: bool = False, shared: bool = False, patience: float = _PATIENCE) -> Iterator[bool]:
    """Lock ``path`` if it is free, or with ``wait`` when it becomes free; yield whether it is locked.

    Several processes can hold a ``shared`` lock, which keeps others from an exclusive one.

    Raises:
        StoreError: a file system without locks.
    """
    deadline = time.monotonic() + patience
    operation = (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | (0 if wait else fcntl.LOCK_NB)
    with path.open("w+") as lock:  # over NFS a shared lock needs a file that can be read
        while not _taken(lock.fileno(), path, operation):
            if time.monotonic() >= deadline:
                yield False
                return
            time.sleep(0.02)
        yield True


@contextmanager
def only_writer(folder: Path, work: str) -> Iterator[None]:
    """Lock ``folder``, made if missing, for the only process that writes to it.

    Args:
        work: says what two processes must not do at once, e.g. ``building this index``.

    Raises:
        StoreError: another process holds the folder, or it cannot be written to.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        (folder / ".lock").touch()
    except OSError as error:
        raise StoreError(f"cannot be written to ({error.strerror}); choose another folder", path=folder) from error
    with locked(folder / ".lock", patience=0) as held:
        if not held:
            raise StoreError(f"another process is {work}; wait until it has finished, or choose another", path=folder)
        yield


def is_locked(path: Path) -> bool:
    """Return whether a process holds the lock ``path``."""
    try:
        with path.open() as lock:
            # Shared: processes that ask at once do not see each other, and permission to read is enough.
            return not _taken(lock.fileno(), path, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False


def _taken(descriptor: int, path: Path, operation: int) -> bool:
    try:
        fcntl.flock(descriptor, operation)
    except BlockingIOError:
        return False
    except OSError as error:
        message = f"the file system gives no lock ({error.strerror}); choose a folder on another file system"
        raise StoreError(message, path=path) from error
    return True
