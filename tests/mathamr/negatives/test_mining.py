"""The hard negatives that a configuration asks for: where they come from, what is left out, and what is said of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tiny_collection import ENCODER, settings

from graphs.corpus.post import Pair, Post
from graphs.errors import ConfigError, Failure
from graphs.stores.store import GraphStore
from mathamr.negatives.mining import as_text, negatives_of
from mathamr.training.graph.trainer import train

WORDS = ["ring", "group", "field", "series"]


def posts() -> Iterator[Post | Failure]:
    """``q`` and ``a`` of a number are about ``WORDS[number % 4]``; ``a24`` to ``a27`` also answer ``q0`` to ``q3``."""
    yield Failure("x", "read", "bad_row", "broken")
    for i in range(24):
        yield Post(
            f"q{i}", "question", body=f"Is every {WORDS[i % 4]} number{i} finite?", tags=(WORDS[i % 4], "algebra")
        )
        yield Post(f"a{i}", "answer", body=f"The {WORDS[i % 4]} {WORDS[i % 4]} number{i} is.", parent_id=f"q{i}")
    for i in range(4):
        yield Post(f"a{24 + i}", "answer", body=f"Each {WORDS[i]} is.", parent_id=f"q{i}")
    yield Post("none", "answer", body="The ring, the group and the field.", parent_id="q0")


@pytest.fixture
def some_pairs() -> list[Pair]:
    return [Pair(f"q{i}", f"a{i}") for i in range(20)]


@pytest.mark.parametrize("source", ["bm25", "tags"])
def test_answers_that_look_right_are_mined_and_counted(store: GraphStore, some_pairs: list[Pair], source: str) -> None:
    records: list[dict[str, Any]] = []
    config = settings(negatives=2, negative_source=source, negative_pool=4)
    mined = negatives_of(config, store, some_pairs, posts=posts, report=records.append)
    assert isinstance(mined, dict)
    assert set(mined) == {f"q{i}" for i in range(20)}
    for question, kept in mined.items():
        number = int(question[1:])
        assert len(kept) == 4
        assert not {f"a{number}", f"a{24 + number}", "none"} & set(kept)
        assert all(int(answer[1:]) % 4 == number % 4 for answer in kept)
    (record,) = records
    assert (record["kind"], record["source"], record["questions"], record["without"]) == ("negatives", source, 20, 0)
    assert record["posts"]["kept"] == 80
    assert record["posts"]["known answer"] == 20
    assert record["posts"]["answers the same question"] == 4
    assert as_text(record).startswith(f"hard negatives by {source}: of 20 questions, 0 have none; posts: 80 kept, ")
    assert negatives_of(config, store, some_pairs, posts=posts) == mined


@pytest.mark.parametrize("source", ["bm25", "tags"])
def test_an_answer_outside_the_sample_of_pairs_is_no_negative(
    store: GraphStore, some_pairs: list[Pair], source: str
) -> None:
    config = settings(negatives=2, negative_source=source, negative_pool=40, negative_closest=None)
    mined = negatives_of(config, store, some_pairs, posts=posts)
    assert isinstance(mined, dict)
    taken = mined["q0"][0]
    again = negatives_of(config, store, some_pairs, known=[Pair("q0", taken), Pair("q1", taken)], posts=posts)
    assert isinstance(again, dict)
    assert set(again["q0"]) == set(mined["q0"]) - {taken}
    assert taken not in again["q1"]


def test_the_filter_leaves_out_what_is_as_good_as_the_answer(store: GraphStore) -> None:
    """Answers of equal words have equal scores; only the number tells the own answer from them."""

    def equal() -> Iterator[Post]:
        yield Post("q0", "question", body="Is every ring finite?")
        for i in range(6):
            yield Post(f"a{i}", "answer", body="The ring is." if i < 4 else "The ring, as it is, was and will be so.")

    config = settings(negatives=1, negative_pool=10)
    mined = negatives_of(config, store, [Pair("q0", "a0")], posts=equal)
    assert mined == {"q0": ("a5", "a4")}  # equal scores by id, descending
    with pytest.raises(ConfigError, match=r"leaves 1 questions without hard negatives \(1 known answer, 5 too close"):
        negatives_of(settings(negatives=1, negative_closest=0.01), store, [Pair("q0", "a0")], posts=equal)


def test_without_posts_only_the_model_mines(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    assert negatives_of(settings(), store, pairs, posts=posts) is None
    with pytest.raises(ConfigError, match=r"train\.negative_source=tags ranks the posts of a collection; give posts"):
        negatives_of(settings(negatives=1, negative_source="tags"), store, pairs)
    records: list[dict[str, Any]] = []
    config = settings(negatives=1, negative_source="model", negative_closest=None, negative_refresh=2, epochs=3)
    negatives = negatives_of(config, store, pairs, report=records.append)
    train(config, store, pairs, ENCODER, out=tmp_path / "model", negatives=negatives, log=records.append)
    kinds = [record["kind"] for record in records if record["kind"] != "step"]
    assert kinds == ["start", "negatives", "epoch", "epoch", "negatives", "epoch"]


def test_the_same_negatives_are_mined_when_a_run_goes_on(
    store: GraphStore, some_pairs: list[Pair], tmp_path: Path
) -> None:
    config = settings(negatives=2, negative_pool=4, epochs=2, batch_size=4)
    negatives = negatives_of(config, store, some_pairs, posts=posts)
    first = train(config, store, some_pairs, ENCODER, out=tmp_path / "model", negatives=negatives)
    again = negatives_of(config, store, some_pairs, posts=posts)
    steps: list[int] = []
    result = train(config, store, some_pairs, ENCODER, out=tmp_path / "model", negatives=again, progress=steps.append)
    assert (result.loss_curve, steps) == (first.loss_curve, [])  # it was finished
