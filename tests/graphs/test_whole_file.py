"""Files that appear whole: errors, kills, two writers at once, permissions."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphs.whole_file import cause_of, whole_file, write_whole

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "run.tsv"
    path.write_text("old")
    return path


@pytest.fixture
def umask() -> Iterator[int]:
    before = os.umask(0o027)
    yield 0o027
    os.umask(before)


def test_lines_end_as_they_are_given(old: Path) -> None:
    write_whole(old, "Möbius\r\nHölder\n")
    assert old.read_bytes() == "Möbius\r\nHölder\n".encode()
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("error", [OSError, KeyboardInterrupt])
def test_an_error_leaves_the_old_file_alone(old: Path, error: type[BaseException]) -> None:
    def write_half() -> None:
        with whole_file(old) as partial:
            partial.write_text("ne")
            raise error

    with pytest.raises(error):
        write_half()
    assert list(old.parent.iterdir()) == [old]
    assert old.read_text() == "old"


def test_what_cannot_be_put_in_place_is_removed(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(OSError, match="folder"):
        write_whole(tmp_path / "folder", "new")
    assert [path.name for path in tmp_path.iterdir()] == ["folder"]


def test_a_kill_leaves_the_old_file_and_one_part(old: Path) -> None:
    program = """
import os, pathlib, signal, sys
from graphs.whole_file import whole_file
with whole_file(pathlib.Path(sys.argv[1])) as partial:
    partial.write_text("ne")
    os.kill(os.getpid(), signal.SIGKILL)
"""
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program, old], env=environment, check=False)
    assert done.returncode == -9
    assert old.read_text() == "old"
    (left,) = set(old.parent.iterdir()) - {old}
    assert (left.name.startswith(".run.tsv."), left.suffix) == (True, ".part")
    write_whole(old, "new")
    assert old.read_text() == "new"


def test_of_two_writers_at_once_the_last_one_stays(old: Path) -> None:
    with whole_file(old) as late:
        late.write_text("la")
        with whole_file(old) as early, early.open("w") as file:
            file.write("early")
        assert old.read_text() == "early"
        with late.open("a") as file:
            file.write("te")
    assert old.read_text() == "late"
    assert list(old.parent.iterdir()) == [old]


def test_the_cause_of_a_failed_copy_names_the_file_that_cannot_be_read(tmp_path: Path) -> None:
    (tmp_path / "model").mkdir()
    weights = tmp_path / "model/weights.safetensors"
    weights.symlink_to(tmp_path / "gone")
    with pytest.raises(shutil.Error) as failed:
        shutil.copytree(weights.parent, tmp_path / "index/model")
    assert str(cause_of(failed.value)) == f"[Errno 2] No such file or directory: '{weights}'"


def test_permissions_are_those_of_the_umask(old: Path, umask: int) -> None:
    old.chmod(0o600)
    write_whole(old, "new")
    assert old.stat().st_mode & 0o777 == 0o666 & ~umask
