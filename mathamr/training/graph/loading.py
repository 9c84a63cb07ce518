"""Training batches: pairs with their graphs in chunks within a budget, prepared ahead by threads.

>>> with ThreadPoolExecutor(1) as first, ThreadPoolExecutor(1) as second:
...     list(ahead(str, range(5), threads=[first, second]))
['0', '1', '2', '3', '4']

:mod:`mathamr.training.graph.curriculum` chooses the pairs of a batch. Everything random is a function of the seed and
of the batch's place in training (:mod:`mathamr.training.seeds`). The order depends on (seed, epoch); hard negatives and
augmentation on (seed, epoch, batch), the latter also on the rank. So a batch does not depend on the thread that
prepares it, nor on interruptions, and no state of a random generator is saved.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from graphs.corpus.post import Pair
from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch, drop_edges, mask_nodes, within_budget
from graphs.graph.renaming import rename_variables, variables_of
from graphs.stores.store import GraphStore
from graphs.stores.thread_store import ThreadStore
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks
from mathamr.training.graph.curriculum import curriculum
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import FormulasOfBatch, FormulaViews, VisualIds, formulas_of
from mathamr.training.pairs import PairSplit, known_positives, posts_of
from mathamr.training.seeds import AUGMENTATION, FORMULAS, NEGATIVES, stream

Item = TypeVar("Item")
Result = TypeVar("Result")


@dataclass(frozen=True, slots=True)
class TrainingBatch:
    """B pairs with C >= B documents: the graphs of one rank, and places in the joined vectors of all ranks.

    Attributes:
        pairs: pairs of all ranks.
        chunks: graphs of this rank, ordered questions, answers, hard negatives.
        queries: int64 (B,), places of the questions among the graphs of all ranks, rank by rank.
        documents: int64 (C,), places of the answers, then of the hard negatives.
        known_positives: bool (B, C), documents known to answer a question, its own answer included.
        formulas: formulas of the graphs of all ranks, if a loss compares formulas.
        views: chunks with only operator trees and with only symbol layout trees, if a loss compares these.
        teacher: float32 (B, C), the teacher's scores of the documents, if there is a teacher.
    """

    pairs: tuple[Pair, ...]
    chunks: tuple[GraphBatch, ...]
    queries: Tensor
    documents: Tensor
    known_positives: Tensor
    formulas: FormulasOfBatch | None = None
    views: tuple[tuple[GraphBatch, ...], ...] = ()
    teacher: Tensor | None = None

    @property
    def num_graphs(self) -> int:
        """Number of graphs of all ranks."""
        return len(self.queries) + len(self.documents)

    def to(self, device: torch.device) -> TrainingBatch:
        """Return a copy on ``device``."""

        def moved(chunks: tuple[GraphBatch, ...]) -> tuple[GraphBatch, ...]:
            return tuple(chunk.to(device, non_blocking=True) for chunk in chunks)

        return replace(
            self,
            chunks=moved(self.chunks),
            formulas=None if self.formulas is None else self.formulas.to(device),
            views=tuple(moved(view) for view in self.views),
            queries=self.queries.to(device),
            documents=self.documents.to(device),
            known_positives=self.known_positives.to(device),
            teacher=None if self.teacher is None else self.teacher.to(device),
        )


class TrainingBatches:
    """Batches of every epoch; ``close`` ends the threads that prepare them.

    The threads are the same in all epochs: when memory is short, CPython may wait forever for a thread that it starts.

    Attributes:
        negatives: posts that resemble answers, by question. ``config.negatives`` of them, or
            all if there are fewer, are drawn for each question of a batch. Known answers and posts of the held-out
            pairs are skipped.
        visual_ids: visual ids of each post's formulas, if ``config`` compares formulas.

    Raises:
        ConfigError: a source with less than a batch of pairs, or more ranks than pairs in a batch.
    """

    def __init__(self, store: GraphStore, split: PairSplit, config: TrainConfig, world: Ranks) -> None:
        self.curriculum = curriculum(config, split)
        if config.batch_size < world.size:
            raise ConfigError(
                f"train.batch_size={config.batch_size} pairs cannot be shared by {world.size} ranks; use fewer ranks"
            )
        self._store, self._split, self._config, self._world = store, split, config, world
        self.negatives: Mapping[str, Sequence[str]] = {}
        self.visual_ids: VisualIds = {}
        self.teacher: Teacher | None = None
        self._threads: list[ThreadPoolExecutor] = []
        self._views = FormulaViews(store.vocabulary) if config.formula_view_weight > 0 else None
        self._variables = variables_of(store.vocabulary.labels)
        self._held_out = posts_of(split.validation) - posts_of(split.train)

    def epoch(self, epoch: int, first: int, count: int) -> Generator[TrainingBatch]:
        """Yield ``count`` batches of an epoch from number ``first``, prepared ahead by ``config.workers`` threads."""
        batches = self.curriculum.epoch(epoch, self._config.seed)
        for _ in range(len(self._threads), min(self._config.workers, count)):
            self._threads.append(ThreadPoolExecutor(1, thread_name_prefix="loading"))

        def prepare(number: int) -> TrainingBatch:
            return self.batch(batches[number], epoch, number)

        return ahead(prepare, range(first, first + count), self._threads)

    def close(self) -> None:
        """End the threads; each first closes its files of the store."""
        while self._threads:
            thread = self._threads.pop()
            try:
                thread.submit(self._store.close).result()
            finally:
                thread.shutdown()

    def batch(self, pairs: tuple[Pair, ...], epoch: int, number: int) -> TrainingBatch:
        """Return the batch of ``pairs``, augmented as batch ``number`` of ``epoch``."""
        world = self._world
        questions = [pair.question_id for pair in pairs]
        answers = [pair.answer_id for pair in pairs]
        negatives = self._draw_negatives(questions, epoch, number)
        owners = [part.tolist() for part in np.array_split(np.arange(len(pairs)), world.size)]
        kept_by_rank = [[negative for i in owner for negative in negatives[i]] for owner in owners]
        # Order: rank by rank, its questions, answers and hard negatives.
        posts_by_rank, roles = [], list[int]()
        for owner, kept in zip(owners, kept_by_rank, strict=True):
            posts_by_rank.append([questions[i] for i in owner] + [answers[i] for i in owner] + kept)
            roles += [0] * len(owner) + [1] * len(owner) + [2] * len(kept)
        places = [np.flatnonzero(np.equal(roles, role)) for role in range(3)]
        documents = answers + [post_id for kept in kept_by_rank for post_id in kept]
        formulas = None
        if self._config.compares_formulas:
            rng = np.random.default_rng(stream(self._config.seed, FORMULAS, epoch, number))
            formulas = formulas_of([post_id for posts in posts_by_rank for post_id in posts], self.visual_ids, rng)
        hidden = hidden_posts(self._store, pairs, negatives) | self._held_out
        prepared = list(self._chunks(posts_by_rank[world.rank], hidden, epoch, number))
        return TrainingBatch(
            pairs=pairs,
            chunks=tuple(chunk for chunk, _ in prepared),
            queries=torch.from_numpy(places[0]),
            documents=torch.from_numpy(np.concatenate(places[1:])),
            known_positives=known_positives(questions, documents, self._split.positives),
            formulas=formulas,
            views=tuple(zip(*(views for _, views in prepared), strict=True)),
            teacher=None if self.teacher is None else self.teacher.scores(questions, documents),
        )

    def _chunks(
        self, posts: list[str], hidden: frozenset[str], epoch: int, number: int
    ) -> Iterator[tuple[GraphBatch, tuple[GraphBatch, ...]]]:
        """Return the graphs of ``posts`` in chunks, each with its views of formulas, if needed."""
        config = self._config
        generator = torch.Generator()
        generator.manual_seed(stream(config.seed, AUGMENTATION, epoch, number, self._world.rank))
        nodes, edges = self._store.sizes(posts, hidden)
        for places in within_budget(nodes, edges, max_nodes=config.node_budget, max_edges=config.edge_budget):
            chunk = self._store.load([posts[i] for i in places], hidden)
            if config.rename:
                chunk = rename_variables(chunk, self._variables, config.rename, generator)
            if config.node_mask:
                chunk = mask_nodes(chunk, config.node_mask, generator)
            views: tuple[GraphBatch, ...] = () if self._views is None else self._views(chunk)
            if config.edge_dropout:
                chunk = drop_edges(chunk, config.edge_dropout, generator)
            if self._world.device.type == "cuda":
                chunk, views = chunk.pin_memory(), tuple(view.pin_memory() for view in views)
            yield chunk, views

    def _draw_negatives(self, questions: list[str], epoch: int, number: int) -> list[list[str]]:
        wanted = self._config.negatives
        if not wanted:
            return [[] for _ in questions]
        rng = np.random.default_rng(stream(self._config.seed, NEGATIVES, epoch, number))
        drawn = []
        for question in questions:
            passed_over = self._split.positives[question] | self._held_out
            candidates = [post_id for post_id in self.negatives.get(question, ()) if post_id not in passed_over]
            sample = rng.choice(len(candidates), size=min(wanted, len(candidates)), replace=False)
            drawn.append([candidates[i] for i in sample])
        return drawn


def hidden_posts(store: GraphStore, pairs: Sequence[Pair], negatives: Sequence[Sequence[str]]) -> frozenset[str]:
    """Return the posts that are left out of all threads of a batch, so that no thread reveals the pairs.

    No post of the batch is in the thread of another one, so an answer is never read with the question that it is paired
    with. A hard negative is read without its question if the positive is; otherwise its thread would reveal that it is
    a negative. Nothing is hidden unless graphs are threads. ``negatives`` are the hard negatives of each pair.
    """
    if not isinstance(store, ThreadStore):
        return frozenset()
    of_pairs = posts_of(pairs)
    hidden = set(of_pairs.union(*negatives))
    question_of = store.thread_posts.question_of
    for pair, own in zip(pairs, negatives, strict=True):
        question = question_of(pair.answer_id)
        if question is None or question in of_pairs:
            hidden.update(filter(None, map(question_of, own)))
    return frozenset(hidden)


def ahead(
    prepare: Callable[[Item], Result], items: Iterable[Item], threads: Sequence[ThreadPoolExecutor]
) -> Generator[Result]:
    """Yield ``map(prepare, items)``, computed by threads in turn, in order, two results for each thread ahead.

    ``threads`` are executors of one thread each; without any, each result is computed on demand.
    """
    if not threads:
        yield from map(prepare, items)
        return
    pending: deque[Future[Result]] = deque()
    try:
        for number, item in enumerate(items):
            pending.append(threads[number % len(threads)].submit(prepare, item))
            if len(pending) > 2 * len(threads):
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()
    finally:
        for future in pending:
            future.cancel()
