"""result.json of a job, with digests of itself and of the rankings and scores beside it.

>>> import tempfile
>>> place = Path(tempfile.mkdtemp())
>>> _ = (place / "run.tsv").write_text("A.1\\tQ0\\t7\\t1\\t0.5\\tnone\\n")
>>> write_result(place, {"key": "ab12", "ndcg_prime": 0.5})
>>> read_result(place)
{'key': 'ab12', 'ndcg_prime': 0.5}
>>> _ = (place / "run.tsv").write_text("A.1\\tQ0\\t7\\t1\\t0.4\\tnone\\n")
>>> read_result(place)  # None: the job runs again
>>> checked(place, read_json(place / RESULT))
Traceback (most recent call last):
    ...
graphs.errors.StoreError: ...run.tsv: not what the job has written; run the job again, or remove its folder
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from graphs import digests
from graphs.errors import StoreError
from graphs.shared_files import key, read_json, write_json

RESULT = "result.json"
_FILES, _DIGEST = "files", "digest"
_COVERED = ("run*.tsv", "per_topic*.csv")


def write_result(place: Path, record: Mapping[str, Any]) -> None:
    """Write the result of a job into its folder, after all its other files."""
    files = {path.name: digests.of_file(path) for pattern in _COVERED for path in sorted(place.glob(pattern))}
    whole = {**record, _FILES: files}
    write_json(place / RESULT, {**whole, _DIGEST: key(whole)})


def read_result(place: Path) -> dict[str, Any] | None:
    """Return the result in the folder of a job; None if it is missing, incomplete or damaged."""
    record = read_json(place / RESULT)
    try:
        return None if record is None else checked(place, record)
    except StoreError:
        return None


def checked(place: Path, record: Mapping[str, Any]) -> dict[str, Any]:
    """Return the content of ``place``/result.json without its digests; a file of an earlier version has none.

    Raises:
        StoreError: a digest that differs; names the file.
    """
    content = dict(record)
    digest = content.pop(_DIGEST, None)
    files = content.get(_FILES)
    if digest is not None or any(isinstance(value, dict) for value in content.values()):
        if not isinstance(files, dict) or digest != key(content):
            raise _damage(place / RESULT)
        for name, known in files.items():
            if (path := place / Path(name).name).is_file() and digests.of_file(path) != known:
                raise _damage(path)
    return {name: value for name, value in content.items() if name != _FILES}


def _damage(path: Path) -> StoreError:
    return StoreError("not what the job has written; run the job again, or remove its folder", path=path)
