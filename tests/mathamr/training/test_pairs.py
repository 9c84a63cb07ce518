"""Which pairs are trained on."""

import hashlib
from pathlib import Path

import pytest
from tiny_collection import ENCODER, settings

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, TrainingError
from graphs.stores.store import GraphStore
from mathamr.training.graph import trainer
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import PairSplit, posts_of, read_pairs, sample_pairs, split_pairs


def test_training_takes_at_most_max_pairs(store: GraphStore, pairs: list[Pair], tmp_path: Path) -> None:
    """Training and held-out pairs together; pairs without graphs do not count, and seeds share the sample."""
    lost = [Pair("lost", "a0"), *pairs]
    sizes = set()
    for seed in (1, 2):
        config = settings(epochs=1, max_pairs=20, seed=seed, validation_fraction=0.25)
        result = train(config, store, lost, ENCODER, out=tmp_path / str(seed))
        sizes.add((result.train_pairs, result.validation_pairs, result.left_out))
    assert sizes == {(15, 5, 0)}
    everything = train(settings(epochs=1, max_pairs=len(pairs)), store, lost, ENCODER, out=tmp_path / "all")
    assert everything.train_pairs + everything.validation_pairs == len(pairs)
    assert everything.left_out == 1


def test_a_sample_does_not_depend_on_the_order_of_pairs(pairs: list[Pair]) -> None:
    posts = {post_id for pair in pairs for post_id in (pair.question_id, pair.answer_id)}
    there = posts.intersection
    assert set(sample_pairs(pairs, there, 20)) == set(sample_pairs(pairs[::-1], there, 20))
    assert len(sample_pairs([*pairs, *pairs], there, 20)) == 20


def test_an_answer_that_only_a_pair_outside_the_sample_has_is_no_negative(
    store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q0 and q1 are duplicates: the answer of one is right for the other, whether that pair is sampled or not."""
    both = [*pairs, Pair("q0", "a1"), Pair("q1", "a0")]
    seen: list[dict[str, frozenset[str]]] = []
    monkeypatch.setattr(trainer, "with_sources", lambda split, *rest: seen.append(split.positives) or split)
    train(settings(epochs=1, max_pairs=20), store, both, ENCODER, out=tmp_path)
    assert set(sample_pairs(both, None, 20)) < set(both)
    [positives] = seen
    for question in positives.keys() & {"q0", "q1"}:
        assert positives[question] == {"a0", "a1"}
    assert split_pairs(pairs[1:], {f"{kind}{i}" for kind in "qa" for i in range(48)}, validation_fraction=0.2,
        known=both).positives["q1"] == {"a0", "a1"}  # fmt: skip


@pytest.mark.parametrize(
    "header",
    ["query_id\tdocument_id", "Question ID\tAnswer ID ", "qid\tdoc-id", "question_id\tnegative_id", "anchor\tpositive"],
)
def test_a_header_line_is_no_pair(header: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.tsv"
    path.write_text(f"\ufeff{header}\r\nq1\ta1\r\n", encoding="utf-8")
    assert read_pairs(path) == [Pair("q1", "a1")]
    path.write_text(f"q1\ta1\n{header}\n")  # only the first line is a header
    assert len(read_pairs(path)) == 2


def test_fewer_pairs_than_a_batch_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"train\.max_pairs=4 does not fill a batch of train\.batch_size=8"):
        settings(max_pairs=4)


@pytest.mark.parametrize(
    ("questions", "way_out"),
    [
        (15, "train.validation_fraction=0.14"),
        (4, "train.validation_fraction=0.5"),
        (3, "more than 3 answered questions"),
    ],
)
def test_a_single_held_out_question_is_warned_of(questions: int, way_out: str) -> None:
    pairs = [Pair(f"q{number}", f"a{number}") for number in range(questions)]
    split = split_pairs(pairs, posts_of(pairs), validation_fraction=1 / questions)
    assert split.warning() == f"1 question is held out, so its validation loss is always 0; use {way_out}"
    assert questions == 3 or split_pairs(pairs, posts_of(pairs), validation_fraction=2 / questions).warning() is None


def test_the_fraction_that_is_advised_needs_no_other_advice() -> None:
    pairs = [Pair(f"q{number}", f"a{number}") for number in range(14)]
    with pytest.raises(TrainingError, match=r"holds out 0 and leaves 14 .*; set train\.validation_fraction=0\.15$"):
        split_pairs(pairs, posts_of(pairs), validation_fraction=0.01)
    assert split_pairs(pairs, posts_of(pairs), validation_fraction=0.15).warning() is None


def test_no_answer_of_a_held_out_duplicate_is_trained_on() -> None:
    own = [Pair(f"q{number}", f"a{number}") for number in range(30)]
    chain = [Pair(f"q{number}", f"a{number + 1}") for number in range(3)]  # q0 to q3 share answers, over one another
    far = [Pair("q20", "a9"), Pair("q20", "a15")]
    pairs = [*own, *chain, *far]
    for fraction in (0.1, 0.2, 0.5):
        split = split_pairs(pairs, posts_of(pairs), validation_fraction=fraction, positives="duplicates")
        assert not {pair.answer_id for pair in split.train} & {pair.answer_id for pair in split.validation}
        assert len({pair.question_id for pair in split.validation}) == round(30 * fraction)
        accepted = split_pairs(pairs, posts_of(pairs), validation_fraction=fraction)
        alone = split_pairs(own, posts_of(own), validation_fraction=fraction, positives="duplicates")
        assert {pair.question_id for pair in accepted.validation} == {pair.question_id for pair in alone.validation}


@pytest.mark.parametrize("most", [None, 48])
def test_training_holds_out_duplicates_together(
    most: int | None, store: GraphStore, pairs: list[Pair], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """q0 and q1 share an answer, q2 and q3, and so on, also where the pair that says so is outside the sample."""
    borrowed = [Pair(f"q{number}", f"a{number + 1}") for number in range(0, 48, 2)]
    seen: list[PairSplit] = []
    monkeypatch.setattr(trainer, "with_sources", lambda split, *rest: seen.append(split) or split)
    config = settings(epochs=1, positives="duplicates", max_pairs=most, validation_fraction=0.25)
    train(config, store, [*pairs, *borrowed], ENCODER, out=tmp_path)
    trained, held_out = (
        {int(pair.question_id[1:]) // 2 for pair in side} for side in (seen[0].train, seen[0].validation)
    )
    assert held_out
    assert not trained & held_out


def test_duplicates_that_cannot_be_held_out_say_why() -> None:
    pairs = [Pair(f"q{number}", "a") for number in range(8)]
    with pytest.raises(TrainingError, match=r"8 answered questions shares .* higher train\.validation_fraction"):
        split_pairs(pairs, posts_of(pairs), validation_fraction=0.25, positives="all")


@pytest.mark.parametrize("most", [1, 7, 39, 40, 41])
@pytest.mark.parametrize("all_there", [True, False])
def test_a_sample_has_the_pairs_of_the_lowest_hashes(most: int, all_there: bool) -> None:
    given = [Pair(f"q{number * 7 % 40}", f"a{number * 7 % 40}") for number in range(90)]
    available = None if all_there else {f"{kind}{number}" for kind in "qa" for number in range(30)}
    usable = [pair for pair in dict.fromkeys(given) if available is None or pair.question_id in available]

    def hashed(pair: Pair) -> bytes:
        return hashlib.sha256(f"20260\t{pair.question_id}\t{pair.answer_id}".encode()).digest()

    lowest = sorted(usable, key=hashed)[:most]
    expected = given if len(usable) <= most else [pair for pair in usable if pair in lowest]
    assert list(sample_pairs(given, available and available.intersection, most)) == expected
