"""Training on several collections, and in two stages: who is drawn, how often, beside whom, and what stays the same."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tiny_collection import ENCODER, settings

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, TrainingError
from graphs.stores.store import GraphStore
from mathamr.training.graph.curriculum import Curriculum, curriculum
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import PairSplit, split_pairs, with_sources
from mathamr.training.seeds import ORDER, stream


def made(name: str, count: int) -> list[Pair]:
    return [Pair(f"{name}/q{i}", f"{name}/a{i}") for i in range(count)]


def split(own: int = 40, **sources: int) -> PairSplit:
    pairs = {name: made(name, count) for name, count in (("own", own), *sources.items())}
    posts = {post_id for some in pairs.values() for pair in some for post_id in (pair.question_id, pair.answer_id)}
    return with_sources(split_pairs(pairs.pop("own"), posts, validation_fraction=0.25), pairs, posts)


def owners(batches: list[tuple[Pair, ...]]) -> list[str]:
    """The source of each batch; one alone, or this fails."""
    (found,) = zip(*({pair.question_id.split("/")[0] for pair in batch} for batch in batches), strict=True)
    return list(found)


def test_without_sources_an_epoch_is_what_it_was() -> None:
    course = curriculum(settings(batch_size=8), split())
    own = split().train
    order = np.random.default_rng(stream(7, ORDER, 2)).permutation(30)[:24].reshape(3, 8)
    expected = [tuple(own[i] for i in batch) for batch in order]  # the last 6 pairs do not fill a batch
    assert course.epoch(2, seed=7) == expected
    assert (course.epochs, course.num_pairs, course.place(4), course.schedule.patient_from) == (3, 30, (4, 9), 0)


def test_a_batch_holds_pairs_of_one_source_and_an_epoch_its_share() -> None:
    config = settings(batch_size=4, pairs=["own", "math", "titles"], pair_weights=[1.0, 0.5, 2.0])
    course = curriculum(config, split(math=16, titles=6))
    seen: Counter[str] = Counter()
    for epoch in range(4):
        batches = course.epoch(epoch, seed=1)
        assert Counter(owners(batches)) == {"own": 7, "math": 2, "titles": 3}
        assert owners(batches) != sorted(owners(batches))
        assert len({pair for batch in batches for pair in batch if pair.question_id.startswith("own")}) == 28
        seen.update(pair.question_id for batch in batches for pair in batch)
    assert {count for name, count in seen.items() if name.startswith("math")} == {2}  # half of them in each epoch
    assert {count for name, count in seen.items() if name.startswith("titles")} == {8}
    assert course.epoch(1, seed=1) == course.epoch(1, seed=1)
    assert course.epoch(1, seed=2) != course.epoch(1, seed=1) != course.epoch(2, seed=1)


def test_sources_change_nothing_of_what_is_held_out() -> None:
    alone, together = split(), split(math=16)
    assert together.validation == alone.validation
    assert together.train == alone.train
    assert together.fingerprint() != alone.fingerprint()
    assert together.positives["math/q3"] == {"math/a3"}


def test_each_stage_has_its_steps_and_its_learning_rate() -> None:
    config = settings(batch_size=4, epochs=2, pretrain_pairs=["math"], pretrain_epochs=2, accumulate=2)
    course = curriculum(config, split(math=16))
    assert (course.epochs, course.schedule.steps, course.schedule.patient_from) == (4, (2, 2, 3, 3), 2)
    assert [course.place(step) for step in (0, 3, 4, 9)] == [(0, 4), (3, 4), (0, 6), (5, 6)]
    assert {owner for epoch in (0, 1) for owner in owners(course.epoch(epoch, 1))} == {"math"}
    assert {owner for epoch in (2, 3) for owner in owners(course.epoch(epoch, 1))} == {"own"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"pairs": ["own", "math"], "pair_weights": [1.0, 0.4]},
            "batch_size=8 is larger than an epoch's share of math",
        ),
        (
            {"pairs": ["own", "math"], "pair_weights": [1.0, 0.06]},
            r"an epoch's share of math, 1 pair; use more pairs$",
        ),
        ({"pairs": ["own", "titles", "math"]}, "names own and titles: one is the collection itself"),
        ({"pairs": ["own", "math"], "accumulate": 9}, "accumulate=9 batches for a step, but an epoch has 5"),
    ],
)
def test_what_cannot_be_trained_on_is_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        curriculum(settings(**changes), split(math=16))


def test_few_pairs_get_the_settings_for_them() -> None:
    """A smaller batch alone would leave one question held out, which validates nothing."""
    with pytest.raises(ConfigError, match=r"of 4 pairs; use train.batch_size=2 train.validation_fraction=0.4, or more"):
        curriculum(settings(batch_size=8), split(own=5))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"pairs": []}, r"train\.pairs=\[\] has an empty or repeated name"),
        ({"pretrain_pairs": ["a", "a"]}, r"train\.pretrain_pairs=\['a', 'a'\] has an empty or repeated name"),
        ({"pair_weights": [1.0]}, r"pair_weights=\[1.0\] must be one for each of train.pairs=None"),
        ({"pairs": ["math"], "pair_weights": [0.0]}, r"pair_weights=\[0.0\]; each must be a positive number"),
        ({"pretrain_epochs": 0}, r"train\.pretrain_epochs=0 must be at least 1"),
    ],
)
def test_settings_that_make_no_sense_are_refused(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(**changes)


def test_a_source_without_any_graph_is_refused() -> None:
    with pytest.raises(TrainingError, match="none of the 3 pairs of source math has graphs"):
        with_sources(split(), {"math": made("math", 3)}, set())


# Training on them


OTHERS = 16  # of the small collection's questions are another collection here
STAGES = {"pairs": ["own", "more"], "pair_weights": [1.0, 0.5], "pretrain_pairs": ["more"], "epochs": 2}
SOURCES = {"more": [Pair(f"q{i}", f"a{i}") for i in range(OTHERS)]}


def test_pretraining_goes_before_training(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    records: list[dict[str, Any]] = []
    result = train(
        settings(**STAGES), store, pairs[OTHERS:], ENCODER, out=tmp_path, sources=SOURCES, log=records.append
    )
    assert result.train_pairs == OTHERS + 24
    assert result.validation_pairs == 8
    epochs = [record for record in records if record["kind"] == "epoch"]
    assert [(record["stage"], record["step"]) for record in epochs] == [
        ("pretraining", 2),
        ("training", 6),
        ("training", 10),
    ]
    steps = [record for record in records if record["kind"] == "step"]
    rates = [record["learning_rate"] for record in steps]
    assert rates[:3] == [1e-2, 1e-3, 1e-2]  # down, and down once more
    assert rates[-1] == 1e-3
    assert steps[2]["temperature"] != 0.05
    assert len(result.epochs) == 3
    assert records[0]["total_steps"] == 10


class Killed(BaseException):
    """Nothing catches it, so nothing is saved: what is on disk is what a kill leaves."""


@pytest.mark.parametrize(("step", "every"), [(2, 1), (5, 4)])
def test_killed_in_either_stage_it_goes_on_bit_for_bit(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, step: int, every: int
) -> None:
    """At the last step of pretraining, and between two checkpoints after it."""

    def kill(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == step:
            raise Killed

    arguments = settings(**STAGES, checkpoint_every=every), store, pairs[OTHERS:], ENCODER
    with pytest.raises(Killed):
        train(*arguments, out=tmp_path / "killed", sources=SOURCES, log=kill)
    records: list[dict[str, Any]] = []
    resumed = train(*arguments, out=tmp_path / "killed", sources=SOURCES, log=records.append)
    whole = train(*arguments, out=tmp_path / "whole", sources=SOURCES)
    assert records[0]["step"] == step - 1
    assert resumed.loss_curve == whole.loss_curve
    for name in ("best/model.safetensors", "last/model.safetensors", "last/state.safetensors"):
        assert (tmp_path / "killed" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes(), name


def test_patience_is_for_the_last_stage(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    changes = {
        **STAGES,
        "pretrain_epochs": 4,
        "epochs": 1,
        "patience": 1,
        "learning_rate": 1e-9,
        "min_learning_rate": 0,
    }
    result = train(settings(**changes), store, pairs[OTHERS:], ENCODER, out=tmp_path, sources=SOURCES)
    assert len(result.epochs) == 5


def test_a_run_of_other_sources_is_not_gone_on_with(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    arguments = settings(**STAGES), store, pairs[OTHERS:], ENCODER
    train(*arguments, out=tmp_path, sources=SOURCES)
    with pytest.raises(TrainingError, match="pairs, negatives and visual ids"):
        train(*arguments, out=tmp_path, sources={"more": SOURCES["more"][1:]})


def test_a_curriculum_of_one_stage_ends_with_it() -> None:
    assert isinstance(curriculum(settings(), split()), Curriculum)
    assert curriculum(settings(), split()).stage(99).name == "training"
