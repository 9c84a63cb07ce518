"""SHA-256 of files, and of values that JSON can hold.

>>> of_json({"b": 1, "a": 2}) == of_json({"a": 2, "b": 1})
True
"""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from pathlib import Path
from typing import Any


def of_json(content: Any) -> str:
    """Return the digest of ``content``, whatever the order of its keys: 64 hexadecimal digits."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()


def of_file(path: Path) -> str:
    """Return the digest of a file: 64 hexadecimal digits.

    Raises:
        OSError: a file that cannot be read.
    """
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def of_file_once(path: Path) -> str:
    """Return the digest of a file, from memory if its size and its time are unchanged.

    Raises:
        OSError: a file that cannot be read.
    """
    stamp = path.stat()
    return _of_stamped(path, stamp.st_size, stamp.st_mtime_ns)


@lru_cache(maxsize=1024)
def _of_stamped(path: Path, size: int, mtime_ns: int) -> str:
    return of_file(path)
