"""Settings of a job that a test makes without Hydra: what every system reads."""

from pathlib import Path
from typing import Any

from mathamr.stages.settings import DataSettings, ExampleSettings

DATA = DataSettings(
    name="jsonl",
    root=None,
    years=[],
    regime="judged",
    judgments="official",
    split=None,
    id=None,
    relevant_grade=None,
)


def shared_fields(**changes: Any) -> dict[str, Any]:
    """The fields of ``JobSettings``, with changes."""
    return {
        "track": "test",
        "experiment": "demo",
        "outputs": Path("outputs"),
        "seed": 1,
        "workers": 1,
        "data": DATA,
        "parsers": {},
        "tasks": [1],
        "example": ExampleSettings(),
        **changes,
    }
