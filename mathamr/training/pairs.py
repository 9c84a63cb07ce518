"""Split of pairs into training and validation, without pairs that lack graphs; a question's pairs stay together.

>>> pairs = [Pair("q1", "a1"), Pair("q1", "a2"), Pair("q2", "a3"), Pair("q3", "a4"), Pair("q3", "lost")]
>>> split = split_pairs(pairs, {"q1", "q2", "q3", "a1", "a2", "a3", "a4"}, validation_fraction=0.3)
>>> [pair.question_id for pair in split.train], [pair.question_id for pair in split.validation]
(['q2', 'q3'], ['q1', 'q1'])
>>> sorted(split.positives["q1"]), split.missing, split.left_out
(['a1', 'a2'], ('lost',), 1)
"""

from __future__ import annotations

import hashlib
import math
import os
import re
from array import array
from collections.abc import Callable, Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from graphs.corpus.pairs import question_groups
from graphs.corpus.post import Pair
from graphs.errors import CorpusError, TrainingError
from graphs.processes import batched

# The held-out questions do not depend on a run's seed, so validation losses of several seeds compare.
_SPLIT_SEED = 20260
_AT_ONCE = 10_000  # pairs
FEWEST_QUESTIONS = 3  # two for a batch, one held out
_HEADER = re.compile(
    r" *(?:(q|query|question|topic|anchor|post)[-_ ]?id"
    r" *\t *(doc|document|answer|corpus|post|positive|negative|candidate)[-_ ]?id"
    r"|(query|question|anchor) *\t *(document|answer|post|positive|negative|candidate)) *",
    re.IGNORECASE,
)


@dataclass(frozen=True)
class PairSplit:
    """Training and validation pairs.

    Attributes:
        positives: all known answers of each question, also those without graphs.
        missing: posts of pairs without a graph.
        left_out: number of pairs dropped for them.
        sources: training pairs of further collections, by name; none of them are held out.
    """

    train: tuple[Pair, ...]
    validation: tuple[Pair, ...]
    positives: Mapping[str, frozenset[str]]
    missing: tuple[str, ...]
    left_out: int
    sources: Mapping[str, tuple[Pair, ...]] = field(default_factory=dict)

    def fingerprint(self) -> str:
        """Return a hash of both sides and the sources, order included."""
        digest = hashlib.sha256()
        for side in (self.train, self.validation, *(self.sources[name] for name in sorted(self.sources))):
            digest.update(f"{len(side)}\n".encode())
            for pair in side:
                digest.update(f"{pair.question_id}\t{pair.answer_id}\n".encode())
        return digest.hexdigest()[:16]

    def more_held_out(self) -> str | None:
        """Return the setting that holds out two questions, if there is only one and enough are left; else None."""
        questions = len({pair.question_id for pair in self.train}) + 1
        if self._held_out() > 1 or questions <= FEWEST_QUESTIONS:
            return None
        return f"train.validation_fraction={smallest_fraction(questions)}"

    def warning(self) -> str | None:
        """Return what is wrong with the held-out questions, and the way out; None: nothing."""
        if self._held_out() > 1:
            return None
        fix = self.more_held_out() or f"more than {FEWEST_QUESTIONS} answered questions"
        return f"1 question is held out, so its validation loss is always 0; use {fix}"

    def _held_out(self) -> int:
        return len({pair.question_id for pair in self.validation})


def sample_pairs(
    pairs: Sequence[Pair], having: Callable[[set[str]], Iterable[str]] | None, most: int | None
) -> Sequence[Pair]:
    """Sample at most ``most`` distinct pairs whose posts are available, in their order.

    Without ``most``, and where no more are available, the pairs are returned as they were given. The choice depends
    only on the ids, so a sample of a sample of the same size is the same. Of millions of pairs only hashes are held.
    ``having`` is :meth:`graphs.stores.store.GraphStore.having`; None: all posts are available.

    >>> pairs = [Pair(f"q{i}", f"a{i}") for i in range(9)]
    >>> posts = {f"{kind}{i}" for kind in "qa" for i in range(1, 9)}  # q0 and a0 have no graphs
    >>> kept = sample_pairs(pairs, posts.intersection, 3)
    >>> [pair.question_id for pair in kept], sample_pairs(kept, None, 3) == kept, len(sample_pairs(pairs, None, None))
    (['q2', 'q3', 'q6'], True, 9)
    """
    if most is None or len(pairs) <= most:
        return pairs
    places, digests = array("Q"), bytearray()
    for some in batched(enumerate(pairs), _AT_ONCE):
        posts = posts_of(pair for _, pair in some)
        available = posts if having is None else frozenset(having(set(posts)))
        for place, pair in some:
            if pair.question_id in available and pair.answer_id in available:
                places.append(place)
                digests += hashlib.sha256(f"{_SPLIT_SEED}\t{pair.question_id}\t{pair.answer_id}".encode()).digest()
    drawn = np.frombuffer(digests, ">u8").reshape(-1, 4)
    order = np.lexsort(drawn.T[::-1])  # by digest; of equal pairs the first one comes first
    repeated = (drawn[order[1:]] == drawn[order[:-1]]).all(axis=1)
    distinct = order[np.flatnonzero(np.concatenate([[True], ~repeated])[: len(order)])]
    if len(distinct) <= most:
        return pairs
    return [pairs[places[number]] for number in np.sort(distinct[:most]).tolist()]


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """Read pairs of posts from a file with two columns; its first line may name them, e.g. query_id and document_id.

    Raises:
        CorpusError: a missing file, a line without two columns, or a pair of a post with itself.
    """
    pairs, path = [], Path(path)
    try:
        with path.open(encoding="utf-8-sig") as file:
            for number, line in enumerate(file, 1):
                line = line.rstrip("\r\n")
                if number == 1 and _HEADER.fullmatch(line):
                    continue
                columns = line.split("\t")
                if len(columns) != 2 or not all(columns):
                    message = f"{len(columns)} columns, 2 are needed: question id and post id with a tab between"
                    raise CorpusError(message, path=path, line=number)
                if columns[0] == columns[1]:
                    message = f"post {columns[0]} is paired with itself; remove this line"
                    raise CorpusError(message, path=path, line=number)
                pairs.append(Pair(*columns))
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", path=path) from error
    return pairs


def further_pairs(sample: Iterable[Pair], pairs: Iterable[Pair]) -> list[Pair]:
    """Return those of ``pairs`` that are not in the sample, but whose posts both are.

    >>> further_pairs([Pair("q1", "a1"), Pair("q2", "a2")], [Pair("q1", "a1"), Pair("q1", "a2"), Pair("q3", "a2")])
    [Pair(question_id='q1', answer_id='a2')]
    """
    kept = set(sample)
    questions, answers = {pair.question_id for pair in kept}, {pair.answer_id for pair in kept}
    return [pair for pair in pairs if pair.question_id in questions and pair.answer_id in answers and pair not in kept]


def posts_of(pairs: Iterable[Pair]) -> frozenset[str]:
    """Return the ids of the posts of pairs."""
    return frozenset(post_id for pair in pairs for post_id in (pair.question_id, pair.answer_id))


def answers_of(pairs: Iterable[tuple[str, str]], known: Iterable[tuple[str, str]] = ()) -> dict[str, frozenset[str]]:
    """Return the answers of each question of ``pairs``, ids or texts, also those that only ``known`` pairs have.

    >>> answers = answers_of([Pair("q1", "a1")], known=[Pair("q1", "a2"), Pair("q2", "a3")])
    >>> {question: sorted(own) for question, own in answers.items()}
    {'q1': ['a1', 'a2']}
    """
    answers: dict[str, set[str]] = {}
    for question, answer in pairs:
        answers.setdefault(question, set()).add(answer)
    for question, answer in known:
        if question in answers:
            answers[question].add(answer)
    return {question: frozenset(own) for question, own in answers.items()}


def _usable(pairs: Iterable[Pair], available: Container[str]) -> tuple[list[Pair], tuple[str, ...]]:
    """Return the pairs with graphs of both posts, and the posts without one."""
    pairs = list(pairs)
    posts = dict.fromkeys(post_id for pair in pairs for post_id in (pair.question_id, pair.answer_id))
    missing = dict.fromkeys(post_id for post_id in posts if post_id not in available)
    usable = [pair for pair in pairs if pair.question_id not in missing and pair.answer_id not in missing]
    return usable, tuple(missing)


def split_pairs(
    pairs: Iterable[Pair],
    available: Container[str],
    *,
    validation_fraction: float,
    known: Sequence[Pair] = (),
    positives: str = "accepted",
) -> PairSplit:
    """Hold out a part of the questions, by a shuffle that depends only on the question ids.

    Duplicates that share answers are on one side; groups that are larger than the part are trained on.

    Args:
        pairs: pairs of posts; repeated pairs count once.
        validation_fraction: share of the questions, rounded to whole questions.
        known: pairs that ``pairs`` were sampled from; answers in them are right and shared, too.
        positives: choice of the pairs (:data:`graphs.corpus.pairs.POSITIVES`).

    Raises:
        TrainingError: no pairs, no pair with graphs, or an empty side.
    """
    distinct = list(dict.fromkeys(pairs))
    if not distinct:
        raise TrainingError("the list of training pairs is empty; give at least three answered questions")
    usable, missing = _usable(distinct, available)
    if not usable:
        raise TrainingError(
            f"none of the {len(distinct)} pairs has graphs of both posts, e.g. post {missing[0]} has none; "
            "build preprocessed.db from the same collection"
        )
    questions = sorted({pair.question_id for pair in usable})
    num_held_out = round(len(questions) * validation_fraction)
    if not 0 < num_held_out < len(questions):
        fix = (
            f"set train.validation_fraction={smallest_fraction(len(questions))}"
            if len(questions) >= FEWEST_QUESTIONS
            else f"give at least {FEWEST_QUESTIONS} answered questions"
        )
        raise TrainingError(
            f"answered questions: {len(questions)}; train.validation_fraction={validation_fraction} holds out "
            f"{num_held_out} and leaves {len(questions) - num_held_out} for training; {fix}"
        )
    shuffled = np.random.default_rng(_SPLIT_SEED).permutation(len(questions))
    groups = question_groups(chain(usable, known), positives)
    members: dict[str, list[str]] = {}
    for question in questions:
        members.setdefault(groups.get(question, question), []).append(question)
    held_out: set[str] = set()
    for i in shuffled:
        together = members.pop(groups.get(questions[i], questions[i]), [])
        if len(held_out) + len(together) <= num_held_out:
            held_out.update(together)
    if not held_out:
        raise TrainingError(
            f"each of the {len(questions)} answered questions shares answers with others, too many to hold out "
            f"{num_held_out} questions; use a higher train.validation_fraction or train.positives=accepted"
        )
    return PairSplit(
        train=tuple(pair for pair in usable if pair.question_id not in held_out),
        validation=tuple(pair for pair in usable if pair.question_id in held_out),
        positives=answers_of(distinct, known),
        missing=missing,
        left_out=len(distinct) - len(usable),
    )


def smallest_fraction(questions: int) -> float:
    """Return a fraction with two digits that holds out at least two of the questions, or one of three.

    >>> [round(questions * smallest_fraction(questions)) for questions in (3, 4, 5, 12, 15, 99)]
    [1, 2, 2, 2, 2, 3]
    """
    held_out = 1 if questions <= FEWEST_QUESTIONS else 2  # the loss of a single question is always 0
    return math.ceil(100 * held_out / questions) / 100


def with_sources(split: PairSplit, sources: Mapping[str, Sequence[Pair]], available: Container[str]) -> PairSplit:
    """Return ``split`` with the pairs of further collections, without pairs that lack graphs.

    >>> own = split_pairs([Pair("q1", "a1"), Pair("q2", "a2")], {"q1", "a1", "q2", "a2"}, validation_fraction=0.5)
    >>> more = with_sources(own, {"math": [Pair("math/1", "math/1s"), Pair("math/2", "lost")]}, {"math/1", "math/1s"})
    >>> more.sources, more.missing, more.left_out, more.validation == own.validation
    ({'math': (Pair(question_id='math/1', answer_id='math/1s'),)}, ('math/2', 'lost'), 1, True)

    Raises:
        TrainingError: a source without a pair of two graphs.
    """
    positives, missing, left_out = dict(split.positives), split.missing, split.left_out
    kept: dict[str, tuple[Pair, ...]] = {}
    for name, pairs in sources.items():
        distinct = list(dict.fromkeys(pairs))
        usable, absent = _usable(distinct, available)
        if not usable:
            raise TrainingError(f"none of the {len(distinct)} pairs of source {name} has graphs of both posts")
        kept[name] = tuple(usable)
        positives |= answers_of(distinct)
        missing += absent
        left_out += len(distinct) - len(usable)
    return replace(split, positives=positives, missing=missing, left_out=left_out, sources=kept)


def known_positives(
    questions: Sequence[str], documents: Sequence[str], positives: Mapping[str, frozenset[str]]
) -> Tensor:
    """Return a mask of the documents (C,) that are known answers of the questions (B,), for ``info_nce``: bool (B, C).

    >>> known_positives(["p", "q"], ["a", "b", "c"], {"p": frozenset("ab"), "q": frozenset("b")}).tolist()
    [[True, True, False], [False, True, False]]
    """
    columns: dict[str, list[int]] = {}
    for column, post_id in enumerate(documents):
        columns.setdefault(post_id, []).append(column)
    mask = np.zeros((len(questions), len(documents)), dtype=np.bool_)
    for row, question in enumerate(questions):
        for answer in positives[question]:
            mask[row, columns.get(answer, [])] = True
    return torch.from_numpy(mask)
