"""Training pairs of a collection: which are held out."""

from dataclasses import replace
from typing import Any, cast

import pytest

from graphs.corpus.leaks import PairsApart
from graphs.corpus.post import Pair
from mathamr.stages import leak_control
from mathamr.stages.console import Console
from mathamr.stages.leak_control import CollectionPairs
from tests.mathamr.tiny_collection import settings


def test_duplicates_are_held_out_together(monkeypatch: pytest.MonkeyPatch) -> None:
    """q0 and q1 share an answer, q2 and q3, and so on, also where the pair that says so is outside the sample."""
    kept = [Pair(f"q{number}", f"a{number}") for number in range(48)]
    kept += [Pair(f"q{number}", f"a{number + 1}") for number in range(0, 48, 2)]
    monkeypatch.setattr(leak_control, "own_pairs", lambda *_: PairsApart(kept, (), ()))
    pairs = CollectionPairs(cast(Any, None), cast(Any, None), Console())
    config = settings(positives="duplicates", validation_fraction=0.25)
    for train in (config, replace(config, max_pairs=48)):
        split = pairs.split(train)
        trained, held_out = (
            {int(pair.question_id[1:]) // 2 for pair in side} for side in (split.train, split.validation)
        )
        assert held_out
        assert not trained & held_out
