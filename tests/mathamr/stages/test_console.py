"""Messages of stages."""

from itertools import count

import pytest

from mathamr.stages import console


@pytest.mark.parametrize(
    ("done", "unit", "said"), [(1, "posts", "1 post"), (2_500, "posts", "2,500 posts"), (120, "MB", "120 MB")]
)
def test_a_stage_ends_with_what_it_has_done(
    done: int, unit: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(console.time, "monotonic", count(0, 2).__next__)
    with console.Console().stage("reading", unit=unit) as advance:
        advance(done)
    assert f"  reading: {said} in " in capsys.readouterr().err
