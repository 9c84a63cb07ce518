"""A stage of another version of the code is used, and said once."""

from pathlib import Path

import pytest

from mathamr.stages.console import Console
from mathamr.stages.data import versions
from mathamr.stages.data.versions import graphs_version, is_done


def test_another_version_is_said_once_in_all_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    monkeypatch.setattr(Console, "say", lambda _, message: said.append(message))
    done, path = tmp_path / "posts.done", tmp_path / "posts.db"
    path.touch()
    assert not is_done(done, path, Console())
    done.write_text(graphs_version())
    assert is_done(done, path, Console())
    assert said == []
    done.write_text("of before")
    for _ in range(2):  # two runs
        assert is_done(done, path, Console())
    assert len(said) == 1
    assert f"to make it again, delete it and {done}" in said[0]
    monkeypatch.setattr(versions, "graphs_version", lambda: "of tomorrow")
    assert is_done(done, path, Console())
    assert len(said) == 2
