"""Hard negatives: what is kept and why, and training on them."""

from __future__ import annotations

import os
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tiny_collection import ENCODER, settings

from graphs.corpus.post import Pair
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.negatives.mining import MinedNegatives, mine, model_negatives, shared_tag_rankings
from mathamr.training.graph.loading import TrainingBatches
from mathamr.training.graph.trainer import train
from mathamr.training.interruption import Interrupted
from mathamr.training.pairs import split_pairs

POSITIVES = {"q": frozenset({"right", "also right"})}
RANKING = [("near", 0.99), ("right", 1.0), ("also right", 0.5), ("far", 0.9), ("farther", 0.1), ("lost", 0.05)]
AVAILABLE = {"near", "right", "also right", "far", "farther"}


def test_the_filter_keeps_what_is_well_below_the_answer_and_counts_the_rest() -> None:
    mined = mine([("q", RANKING)], POSITIVES, available=AVAILABLE, keep=5, closest=0.95)
    assert mined.by_question == {"q": ("far", "farther")}
    assert mined.counts == {"kept": 2, "known answer": 2, "too close to the answer": 1, "no graph": 1}
    assert sum(mined.counts.values()) == len(RANKING)
    unfiltered = mine([("q", RANKING)], POSITIVES, available=AVAILABLE, keep=2, closest=None)
    assert unfiltered.by_question == {"q": ("near", "far")}
    assert unfiltered.counts["beyond the first kept"] == 1


def test_nothing_is_kept_where_the_answer_is_not_ranked() -> None:
    mined = mine([("q", [("far", 0.9)]), ("p", [])], POSITIVES, available=AVAILABLE, keep=2, closest=0.95)
    assert (mined.by_question, mined.counts, mined.without) == ({}, {"answer not ranked": 1}, 2)


def test_tags_rank_answers() -> None:
    answers = {"a1": ["sum", "series"], "a2": ["group"], "a3": ["series"]}
    tagged = shared_tag_rankings({"q": ["sum", "series"], "p": []}, answers, k=5, seed=1)
    assert tagged == {"q": [("a1", 2.0), ("a3", 1.0)], "p": []}


def test_posts_of_held_out_pairs_are_no_negatives(store: GraphStore, pairs: list[Pair]) -> None:
    split = split_pairs(pairs, set(store.post_ids()), validation_fraction=0.25)
    batches = TrainingBatches(store, split, settings(negatives=40), _alone())
    batches.negatives = {pair.question_id: [f"a{i}" for i in range(48)] for pair in pairs}
    batch = batches.batch(split.train[:2], 0, 0)
    assert len(batch.documents) == 2 + 2 * 35  # 36 training answers, all but the own


def _alone() -> Any:
    import torch

    from mathamr.training.distributed import Ranks

    return Ranks(0, 1, torch.device("cpu"))


def test_training_mines_its_own_negatives_and_goes_on_with_them(
    store: GraphStore, pairs: list[Pair], tmp_path: Path
) -> None:
    """Interrupted in the middle of an epoch, long after mining, it continues with what was mined."""
    positives = {pair.question_id: frozenset({pair.answer_id}) for pair in pairs}
    reports: list[MinedNegatives] = []
    config = settings(epochs=3, negatives=2, negative_refresh=2)
    mining = settings(negatives=2, negative_candidates=20, negative_pool=5, negative_closest=None)

    def source(encoder: Encoder) -> Mapping[str, Sequence[str]]:
        reports.append(model_negatives(encoder, store, positives, mining))
        return reports[-1].by_question

    def stop_at_6(record: dict[str, Any]) -> None:
        if record["kind"] == "step" and record["step"] == 6:
            os.kill(os.getpid(), signal.SIGTERM)

    whole = train(config, store, pairs, ENCODER, out=tmp_path / "whole", negatives=source)
    assert len(reports) == 2  # before epochs 0 and 2
    assert all(len(found) == 5 for report in reports for found in report.by_question.values())
    with pytest.raises(Interrupted):
        train(config, store, pairs, ENCODER, out=tmp_path / "out", negatives=source, log=stop_at_6)
    resumed = train(config, store, pairs, ENCODER, out=tmp_path / "out", negatives=source)
    assert resumed.loss_curve == whole.loss_curve
    assert len(reports) == 4
    mined = {question: list(found) for question, found in reports[0].by_question.items()}
    static = train(config, store, pairs, ENCODER, out=tmp_path / "static", negatives=mined)
    assert static.loss_curve[:8] == whole.loss_curve[:8]
    assert static.loss_curve != whole.loss_curve


def test_the_filter_is_as_strict_below_zero_as_above() -> None:
    ranking = [("q", [("own", -0.2), ("near", -0.205), ("far", -0.4)])]
    mined = mine(ranking, {"q": frozenset({"own"})}, available={"own", "near", "far"}, keep=5, closest=0.95)
    assert mined.by_question == {"q": ("far",)}
