"""The folder that an index is kept in: a header, and the data it names, switched in one step.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp()) / "index"
>>> data = new_data(folder)
>>> _ = (data / "vectors").write_text("...")
>>> switch(folder, data, {"format": "demo", "version": 1, "model_hash": "abc"})
>>> header, data = read_header(folder, "demo", 1)
>>> header["model_hash"], (data / "vectors").exists()
('abc', True)

Whoever opens the folder gets the old index or the new one, whole; whoever has the old one open keeps it, as the system
keeps an open file until it is closed. What a killed build has left is removed by the next. One process builds at a
time.
"""

from __future__ import annotations

import json
import shutil
import uuid
from pathlib import Path
from typing import Any

from graphs.errors import StoreError
from graphs.whole_file import write_whole

HEADER = "index.json"


def new_data(path: Path) -> Path:
    """An empty folder below ``path`` to write a new index to; :func:`switch` makes it the index."""
    data = path / f"data-{uuid.uuid4().hex}"
    data.mkdir(parents=True)
    return data


def switch(path: Path, data: Path, header: dict[str, Any]) -> None:
    """Make ``data`` the index of ``path``, described by ``header``, and remove what was there before."""
    write_whole(path / HEADER, json.dumps({**header, "data": data.name}, indent=1) + "\n")
    for old in path.glob("data-*"):
        if old != data:
            shutil.rmtree(old, ignore_errors=True)
    for unfinished in path.glob(f".{HEADER}.*"):  # of a build that was killed just before its switch
        unfinished.unlink(missing_ok=True)


def read_header(
    path: Path, index_format: str, version: int, *, model_hash: str | None = None
) -> tuple[dict[str, Any], Path]:
    """The header of the index in ``path`` and its data folder.

    Raises :class:`StoreError` where there is none, or it is damaged, of another format, or (with ``model_hash``) of
    another model.
    """
    place = path / HEADER
    try:
        header = json.loads(place.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise StoreError(f"there is no index: {HEADER} is missing; build it first", path=path) from None
    except (OSError, ValueError) as error:
        raise StoreError(f"cannot be read as the header of an index: {error}", path=place) from error
    if not isinstance(header, dict) or (header.get("format"), header.get("version")) != (index_format, version):
        raise StoreError(f"is not of format {index_format} {version}; build the index again", path=place)
    if model_hash is not None and header["model_hash"] != model_hash:
        raise StoreError(
            f"the index was built by model {header['model_hash']}, not by {model_hash}; build it again", path=path
        )
    return header, path / header["data"]
