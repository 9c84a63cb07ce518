"""The folder of an index: a failed or stopped build leaves a whole index, and one from elsewhere is checked."""

from __future__ import annotations

import errno
import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from graphs.errors import StoreError
from mathamr.maxsim import VectorSets
from mathamr.retrieval import folder
from mathamr.retrieval.backends import build, open_index
from tests.mathamr.retrieval.test_exact import giant


@pytest.mark.parametrize("backend", ["exact", "approximate", "qdrant"])
def test_an_index_is_whole_when_its_build_is_stopped_while_the_old_one_is_removed(
    backend: str, collection: Any, make_collection: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(backend, collection.post_ids, collection.documents, path=tmp_path).close()
    other = make_collection(count=20, seed=1)
    (old,) = tmp_path.glob("data-*")
    rmtree, first = shutil.rmtree, [True]

    def stopped(path: Path, **options: Any) -> None:
        if path == old and first.pop():
            raise KeyboardInterrupt
        rmtree(path, **options)

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", stopped)
        with pytest.raises(KeyboardInterrupt):
            build(backend, other.post_ids, other.documents, path=tmp_path)
    index = open_index(backend, path=tmp_path)
    assert len(index) == 20
    index.close()


@pytest.mark.parametrize("backend", ["exact", "approximate"])
@pytest.mark.parametrize("name", ["vectors.npy", "codes.npy"])
def test_a_full_disk_is_a_message_and_leaves_nothing(
    backend: str, name: str, collection: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without reserved room, the process would be killed by SIGBUS."""
    monkeypatch.setattr("mathamr.retrieval.exact.index.CODED_VECTORS", 1)

    def full(file: int, *_: int) -> None:
        if Path(f"/proc/self/fd/{file}").readlink().name == name:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(StoreError, match=r"cannot be written: .*No space left on device; make room"):
        build(backend, collection.post_ids, collection.documents, path=tmp_path)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("backend", ["exact", "approximate", "qdrant"])
def test_an_index_that_is_switched_while_it_is_opened_is_opened_again(
    backend: str, collection: Any, make_collection: Callable[..., Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    build(backend, collection.post_ids, collection.documents, path=tmp_path).close()
    other = make_collection(count=20, seed=1)
    checked, switches = folder._refuse_damage, [1]

    def switched(header: dict[str, Any], place: Path) -> None:
        checked(header, place)
        if place == tmp_path / folder.HEADER and switches[0]:
            switches[0] -= 1
            build(backend, other.post_ids, other.documents, path=tmp_path).close()

    monkeypatch.setattr(folder, "_refuse_damage", switched)
    index = open_index(backend, path=tmp_path)
    assert len(index) == 20
    index.close()


@pytest.mark.parametrize("error", [FileNotFoundError("a file of the index"), StoreError("no index here")])
def test_an_error_is_raised_unless_the_index_has_been_switched(error: Exception, tmp_path: Path) -> None:
    def write() -> None:
        with folder.building(tmp_path) as data:
            folder.switch(tmp_path, data, {})

    switches = [write] * folder.SWITCHES

    def open_() -> str:
        if switches:
            switches.pop()()
            raise error
        return "opened"

    write()
    assert folder.open_current(tmp_path, open_) == "opened"
    switches.append(lambda: None)
    with pytest.raises(type(error), match=str(error)):
        folder.open_current(tmp_path, open_)
    assert not switches


@pytest.mark.parametrize(
    ("backend", "write"),
    [
        pytest.param("qdrant", lambda data: giant(data / "post_ids.npy", (10**13,), "<U2"), id="giant"),
        pytest.param("qdrant", lambda data: np.save(data / "post_ids.npy", np.array(5)), id="one-number-as-ids"),
        pytest.param("qdrant", lambda data: np.save(data / "post_ids.npy", np.array(["a"])), id="fewer-ids"),
        pytest.param("qdrant", lambda data: {"dim": None}, id="no-dim"),
        pytest.param("qdrant", lambda data: {"documents": None}, id="no-number-of-documents"),
        pytest.param("qdrant", lambda data: {"hnsw": {"x": 1}}, id="unknown-setting"),
        pytest.param("qdrant", lambda data: {"hnsw": {"m": -1}}, id="negative-setting"),
        pytest.param("approximate", lambda data: np.save(data / "removed-0.npy", np.array("a")), id="no-list-of-ids"),
        pytest.param(
            "approximate", lambda data: np.save(data / "removed-0.npy", np.array(["a", "b"])), id="all-removed"
        ),
        pytest.param(
            "approximate", lambda data: np.save(data / "removed-0.npy", np.array(["c"])), id="unknown-removed"
        ),
        pytest.param("approximate", lambda data: {"segments": 0}, id="no-segment"),
        pytest.param("approximate", lambda data: {"segments": -1}, id="fewer-than-no-segment"),
        pytest.param("approximate", lambda data: {"segments": "1"}, id="segments-as-text"),
    ],
)
def test_an_index_from_elsewhere_whose_parts_do_not_fit_is_refused(
    backend: str, write: Callable[[Path], dict[str, Any] | None], tmp_path: Path
) -> None:
    """Digests do not help: the author of such an index can compute them."""
    build(backend, ["a", "b"], VectorSets.of([torch.eye(4)[:2], torch.eye(4)[2:]]), path=tmp_path).close()
    header = json.loads((tmp_path / folder.HEADER).read_text())
    data = tmp_path / header["data"]
    changed = header | (write(data) or {})
    left = ("sha256", "data", "files")
    switched = {name: value for name, value in changed.items() if name not in left and value is not None}
    folder.switch(tmp_path, data, switched)
    with pytest.raises(StoreError, match="the index is damaged"):
        open_index(backend, path=tmp_path)
