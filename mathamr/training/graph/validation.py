"""Validation: the loss on the held-out pairs, in batches that never change, and how well they are ranked.

    validation = Validation(store, split, config, world)
    validation(encoder, temperature)      # ValidationScore(loss=2.31, mrr=0.41)

Graphs are not augmented, so equal weights give equal scores. Every post is encoded once, ranks sharing the work; then
each rank computes the same loss and the same ranks.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr import maxsim
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks
from mathamr.training.graph.step import arithmetic, loss_of
from mathamr.training.losses import Temperature
from mathamr.training.pairs import PairSplit, known_positives

# The reciprocal rank is taken over the first so many pairs (as many as the thesis holds out, section 4.3.1): ranking
# all pairs against all would take longer than an epoch where there are ten times as many.
MRR_PAIRS = 5_000
_QUERIES_AT_ONCE = 256


@dataclass(frozen=True, slots=True)
class ValidationScore:
    """``loss``: mean over held-out pairs. ``mrr``: mean reciprocal rank of a question's answer among all answers."""

    loss: float
    mrr: float


class Validation:
    """The held-out pairs, ready to be scored after every epoch."""

    def __init__(self, store: GraphStore, split: PairSplit, config: TrainConfig, world: Ranks) -> None:
        self._store, self._config, self._world = store, config, world
        self._positives = split.positives
        self._pairs = split.validation
        ids = (post_id for pair in self._pairs for post_id in (pair.question_id, pair.answer_id))
        self._posts = list(dict.fromkeys(ids))
        if len(self._posts) < world.size:
            raise ConfigError(f"{len(self._posts)} held-out posts cannot be shared by {world.size} ranks; use fewer")
        place = {post_id: i for i, post_id in enumerate(self._posts)}
        self._queries = torch.tensor([place[pair.question_id] for pair in self._pairs])
        self._answers = torch.tensor([place[pair.answer_id] for pair in self._pairs])

    @torch.no_grad()
    def __call__(self, encoder: Encoder, temperature: Temperature) -> ValidationScore:
        """Score the encoder, in evaluation mode; it is left in the mode it came in."""
        training = encoder.training
        encoder.eval()
        try:
            sets = self._encoded(encoder)
        finally:
            encoder.train(training)
        return ValidationScore(self._loss(sets, temperature), self._reciprocal_rank(sets))

    def _encoded(self, encoder: Encoder) -> VectorSets:
        """The vectors of all held-out posts, on every rank."""
        config, world = self._config, self._world
        own = [self._posts[i] for i in np.array_split(np.arange(len(self._posts)), world.size)[world.rank]]
        with arithmetic(config, world.device):
            sets = encode(encoder, self._store, own, max_nodes=config.node_budget, max_edges=config.edge_budget)
        return world.gather(sets)[0]

    def _loss(self, sets: VectorSets, temperature: Temperature) -> float:
        """Mean over pairs of the loss in batches of ``batch_size`` pairs, or as near to it as divides them evenly."""
        loss = loss_of(self._config)
        total = 0.0
        batches = np.array_split(np.arange(len(self._pairs)), max(1, len(self._pairs) // self._config.batch_size))
        for batch in batches:
            rows = torch.from_numpy(batch)
            pairs = [self._pairs[i] for i in batch]
            known = known_positives(
                [pair.question_id for pair in pairs], [pair.answer_id for pair in pairs], self._positives
            )
            queries, answers = self._queries[rows].to(sets.ptr.device), self._answers[rows].to(sets.ptr.device)
            result = loss(
                sets.select(queries), sets.select(answers), temperature(), known_positives=known.to(sets.ptr.device)
            )
            total += len(batch) * float(result.total)
        return total / len(self._pairs)

    def _reciprocal_rank(self, sets: VectorSets) -> float:
        pairs = self._pairs[:MRR_PAIRS]
        answer_ids = list(dict.fromkeys(pair.answer_id for pair in pairs))
        column = {post_id: i for i, post_id in enumerate(answer_ids)}
        place = dict(zip((pair.answer_id for pair in pairs), self._answers.tolist(), strict=False))
        answers = sets.select(torch.tensor([place[post_id] for post_id in answer_ids], device=sets.ptr.device))
        single = self._config.maxsim_weight == 0
        documents = answers.documents_only() if single else answers
        ranks = []
        for start in range(0, len(pairs), _QUERIES_AT_ONCE):
            some = pairs[start : start + _QUERIES_AT_ONCE]
            queries = sets.select(self._queries[start : start + len(some)].to(sets.ptr.device))
            scores = maxsim.scores(queries.documents_only() if single else queries, documents)
            known = known_positives([pair.question_id for pair in some], answer_ids, self._positives)
            own = torch.tensor([column[pair.answer_id] for pair in some], device=scores.device)
            ranks.append(rank_of(scores, own, known.to(scores.device)))
        return float((1 / torch.cat(ranks)).mean())


def rank_of(scores: Tensor, own: Tensor, known_positives: Tensor) -> Tensor:
    """Rank of each query's own document, 1 for the best -> float (B,).

    Other known answers do not count. Of documents with equal scores half stand before it: vectors that have all become
    the same rank in the middle, not at the top.

    Args:
        scores: (B, C).
        own: int64 (B,), the column of each query's own document.
        known_positives: bool (B, C).

    >>> scores = torch.tensor([[0.3, 0.9, 0.1], [0.5, 0.5, 0.5]])
    >>> rank_of(scores, torch.tensor([0, 1]), torch.zeros(2, 3, dtype=torch.bool))
    tensor([2., 2.])
    """
    score = scores.gather(1, own.unsqueeze(1))  # (B, 1)
    others = ~known_positives.scatter(1, own.unsqueeze(1), True)
    better = ((scores > score) & others).sum(1)
    equal = ((scores == score) & others).sum(1)
    return 1 + better + equal / 2
