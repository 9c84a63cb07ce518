"""Groups of settings that commands other than experiments read."""

from __future__ import annotations

import pytest

from experiments.configuration.composition import read_groups
from graphs.errors import ConfigError


@pytest.mark.parametrize(
    ("word", "way_out"),
    [
        ("train.epochs=3", "; did you mean text.epochs?"),
        ("epochs=3", "; did you mean text.epochs?"),
        ("+exp=trial", ""),
        ("outputs=x", ""),
    ],
)
def test_settings_of_other_groups_are_refused(word: str, way_out: str) -> None:
    """Without effect, they would look as if they had one."""
    assert read_groups(["text=tiny", "text.epochs=3"], "text")[0]["epochs"] == 3
    with pytest.raises(ConfigError) as refused:
        read_groups(["text=tiny", word], "text")
    assert str(refused.value) == f"{word} is not a setting of text, which this command takes{way_out}"
