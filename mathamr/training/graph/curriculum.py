"""Pairs of each epoch: from one or several sources, in one stage or in two, the first for pretraining.

>>> own, titles = [Pair(f"q{i}", f"a{i}") for i in range(8)], [Pair(f"t{i}", f"t{i}/body") for i in range(9)]
>>> course = Curriculum([Stage("pretraining", (titles,), (9,), 1), Stage("training", (own, titles), (8, 4), 2)], 4)
>>> [course.batches(epoch) for epoch in range(3)], [course.stage(epoch).name for epoch in range(3)]
([2, 3, 3], ['pretraining', 'training', 'training'])
>>> for batch in course.epoch(1, seed=42):  # the second epoch has all of own, and four titles
...     print(*(pair.question_id for pair in batch))
q5 q6 q1 q4
t6 t7 t0 t2
q0 q2 q3 q7

A batch holds pairs of one source, so negatives come from the same source as the question: sources are easy to
recognise (titles have one sentence, solutions a box). An epoch draws from each source by its weight: the next pairs of
a sequence that is shuffled once and repeated. A source of weight 0.5 is covered in two epochs. Everything is a function
of seed and epoch.
"""

from __future__ import annotations

import itertools
import math
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from mathamr.training.config import TrainConfig
from mathamr.training.loop import Schedule
from mathamr.training.pairs import PairSplit
from mathamr.training.seeds import MIXTURE, ORDER, SHARES, stream


@dataclass(frozen=True)
class Stage:
    """Epochs that train on the same pairs: those of each source, and the number that an epoch draws."""

    name: str
    sources: tuple[Sequence[Pair], ...]
    draws: tuple[int, ...]
    epochs: int


class Curriculum:
    """Stages in sequence; epochs and optimizer steps are counted over all of them.

    Attributes:
        schedule: optimizer steps of each epoch; ``patience`` counts the epochs of the last stage.
        num_pairs: number of different pairs of all stages.
    """

    def __init__(self, stages: Sequence[Stage], batch_size: int, accumulate: int = 1) -> None:
        self._batch_size = batch_size
        self._stages = [stage for stage in stages for _ in range(stage.epochs)]
        self.epochs = len(self._stages)
        steps = tuple(self.batches(epoch) // accumulate for epoch in range(self.epochs))
        self.schedule = Schedule(steps, patient_from=self._stages.index(stages[-1]))
        self.num_pairs = len({pair for stage in stages for pairs in stage.sources for pair in pairs})

    def stage(self, epoch: int) -> Stage:
        """Return the stage of an epoch; after the last stage, the last."""
        return self._stages[min(epoch, len(self._stages) - 1)]

    def batches(self, epoch: int) -> int:
        """Return the number of batches of an epoch."""
        return sum(drawn // self._batch_size for drawn in self.stage(epoch).draws)

    def place(self, step: int) -> tuple[int, int]:
        """Return the place of a step in its stage and the stage's steps: each stage has its own learning rate."""
        steps = self.schedule.steps
        stage = self.stage(bisect_right(list(itertools.accumulate(steps)), step))
        before = self.schedule.first_step(self._stages.index(stage))
        return step - before, sum(own for own, each in zip(steps, self._stages, strict=True) if each is stage)

    def epoch(self, epoch: int, seed: int) -> list[tuple[Pair, ...]]:
        """Return the batches of an epoch, in training order."""
        stage = self.stage(epoch)
        if len(stage.sources) == 1 and stage.draws[0] == len(stage.sources[0]):
            (pairs,) = stage.sources
            order = _random(seed, ORDER, epoch).permutation(len(pairs))
            return [tuple(pairs[i] for i in batch) for batch in _whole_batches(order, self._batch_size)]
        batches: list[tuple[Pair, ...]] = []
        for number, (pairs, drawn) in enumerate(zip(stage.sources, stage.draws, strict=True)):
            row = _random(seed, SHARES, number).permutation(len(pairs))
            places = row[(np.arange(drawn) + epoch * drawn) % len(pairs)]
            places = places[_random(seed, ORDER, epoch, 1 + number).permutation(drawn)]
            batches += [tuple(pairs[i] for i in batch) for batch in _whole_batches(places, self._batch_size)]
        return [batches[i] for i in _random(seed, MIXTURE, epoch).permutation(len(batches))]


def curriculum(config: TrainConfig, split: PairSplit) -> Curriculum:
    """Make the curriculum of ``config`` from the training pairs in ``split``.

    Raises:
        ConfigError: a source without pairs in ``split`` or with less than a batch, or an epoch shorter than a step.
    """
    own = [name for name in config.collections if name not in split.sources]
    if len(own) > 1:
        raise ConfigError(
            f"train.pairs names {' and '.join(own)}: one is the collection itself, the others have no pairs; give them"
        )

    def stage(name: str, names: Sequence[str] | None, weights: Sequence[float] | None, epochs: int) -> Stage:
        sources = [split.train] if names is None else [split.sources.get(name, split.train) for name in names]
        shares = weights or [1.0] * len(sources)
        draws = tuple(round(share * len(pairs)) for share, pairs in zip(shares, sources, strict=True))
        for i, drawn in enumerate(draws):
            if drawn < config.batch_size:
                source = "the training set of" if names is None else f"an epoch's share of {names[i]},"
                more = split.more_held_out() if sources[i] is split.train else None
                rest = f" {more}" if more else " or less"
                # a batch has two pairs at least; a third of the pairs makes three batches
                smaller = f"train.batch_size={max(2, drawn // 3)}{rest}, or " if drawn > 1 else ""
                counted = "1 pair" if drawn == 1 else f"{drawn} pairs"
                raise ConfigError(
                    f"train.batch_size={config.batch_size} is larger than {source} {counted}; use {smaller}more pairs"
                )
        return Stage(name, tuple(sources), draws, epochs)

    stages = [stage("training", config.pairs, config.pair_weights, config.epochs)]
    if config.pretrain_pairs is not None:
        stages.insert(0, stage("pretraining", config.pretrain_pairs, None, config.pretrain_epochs))
    plan = Curriculum(stages, config.batch_size, config.accumulate)
    for epoch, steps in enumerate(plan.schedule.steps):
        if steps == 0:
            raise ConfigError(
                f"train.accumulate={config.accumulate} batches for a step, but an epoch has {plan.batches(epoch)}; "
                "use a smaller train.accumulate or train.batch_size, or more pairs"
            )
    return plan


def cosine(step: int, *, total: int, highest: float, lowest: float) -> float:
    """Return the learning rate of ``step`` out of ``total``, from 0: ``highest`` at the first, ``lowest`` at the last.

    Cosine annealing over single steps (thesis, 3.4.5), without restarts.

    >>> [round(cosine(step, total=4, highest=1.0, lowest=0.2), 3) for step in range(4)]
    [1.0, 0.8, 0.4, 0.2]
    """
    done = step / (total - 1) if total > 1 else 0.0
    weight = (1 + math.cos(math.pi * min(done, 1.0))) / 2
    return weight * highest + (1 - weight) * lowest


def _whole_batches(places: npt.NDArray[np.int64], batch_size: int) -> npt.NDArray[np.int64]:
    """Return the places of batches (batches, batch_size); the incomplete last batch is dropped."""
    batches = len(places) // batch_size
    return places[: batches * batch_size].reshape(batches, batch_size)


def _random(*key: int) -> np.random.Generator:
    return np.random.default_rng(stream(*key))
