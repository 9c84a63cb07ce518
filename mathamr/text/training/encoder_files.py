"""encoder.json beside a text encoder: what its vectors depend on, and digests of the files that it consists of.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "model.safetensors").write_bytes(b"weights")
>>> write_record(folder, {"encoder": "minilm", "identity": "ab12"})
>>> read_record(folder)["identity"]
'ab12'
>>> check_files(folder)
>>> _ = (folder / "model.safetensors").write_bytes(b"weighty")
>>> check_files(folder)
Traceback (most recent call last):
    ...
graphs.errors.TrainingError: ...model.safetensors: not what training has written; remove its folder and train again
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphs import digests
from graphs.errors import TrainingError
from graphs.shared_files import key, read_json, write_json

RECORD = "encoder.json"


def write_record(folder: Path, content: Mapping[str, Any], name: str = RECORD) -> None:
    """Write encoder.json, or ``name``, with digests of itself and of all other files below ``folder``."""
    files = sorted(path for path in folder.rglob("*") if path.is_file() and path.name != name)
    whole = {**content, "files": {path.relative_to(folder).as_posix(): digests.of_file(path) for path in files}}
    write_json(folder / name, {**whole, "digest": key(whole)})


def read_record(folder: Path, name: str = RECORD) -> dict[str, Any]:
    """Return the content of encoder.json, or ``name``; raise TrainingError for a file that is not what was written."""
    found = read_json(folder / name) or {}
    digest = found.pop("digest", None)
    whole = digest == key(found) if digest is not None else found.keys() == {"encoder", "identity"}  # earlier files
    if not whole:
        raise _damage(folder / name)
    return found


def check_files(folder: Path, record: str = RECORD) -> None:
    """Raise TrainingError for a file of an encoder that is missing, or differs from its digest in ``record``."""
    for name, known in read_record(folder, record).get("files", {}).items():
        path = folder / name
        if not path.is_file() or digests.of_file(path) != known:
            raise _damage(path)


def _damage(path: Path) -> TrainingError:
    return TrainingError("not what training has written; remove its folder and train again", path=path)
