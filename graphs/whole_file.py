"""Files that are written atomically: a reader sees the old file or the new one.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> write_whole(folder / "results.csv", "condition,seed\\n")
>>> try:
...     with whole_file(folder / "results.csv") as partial, partial.open("w") as file:
...         _ = file.write("condi")
...         raise OSError("no space left on device")
... except OSError:
...     (folder / "results.csv").read_text(), [path.name for path in folder.iterdir()]
('condition,seed\\n', ['results.csv'])

A killed writer leaves at most its ``.NAME.HEX.part``, which is never read. Databases use ``graphs.database`` instead.
"""

from __future__ import annotations

import errno
import os
import re
import shutil
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Yield a path beside ``path`` to write to; at the end of the block that file replaces ``path``.

    The file is synced to disk before that. Of several writers the last one's file stays. If the block raises, ``path``
    is unchanged. Permissions are those of the file in the block: with ``open`` as the umask says.
    """
    if not path.name or path.is_dir():  # said before the work is done, not after it
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    partial = path.with_name(f".{path.name}.{uuid.uuid4().hex}.part")
    try:
        yield partial
        with partial.open("r+b") as file:
            os.fsync(file.fileno())
        partial.replace(path)
    except OSError as error:
        if error.filename is None:  # a full disk is met by a write, which names no file
            error.filename = str(path)
        raise
    finally:
        partial.unlink(missing_ok=True)


def write_whole(path: Path, text: str) -> None:
    """Write ``text`` to the file ``path``, UTF-8, line ends unchanged."""
    with whole_file(path) as partial:
        partial.write_text(text, encoding="utf-8", newline="")


def cause_of(error: OSError) -> OSError:
    """Return the error of the first file that could not be copied with its folder; any other error is its own cause.

    The error names the target, unless its reason ends with the source.

    >>> failed = shutil.Error([("old/a", "new/a", "[Errno 28] No space left on device")])
    >>> str(cause_of(failed)), str(cause_of(OSError("no disk")))
    ("[Errno 28] No space left on device: 'new/a'", 'no disk')
    """
    if not isinstance(error, shutil.Error) or not isinstance(error.args[0], list):
        return error
    source, target, reason = error.args[0][0]
    place = source if reason.endswith(f": {str(source)!r}") else target
    number = re.match(r"\[Errno (\d+)\]", reason)
    return OSError(reason) if number is None else OSError(int(number[1]), os.strerror(int(number[1])), str(place))
