"""Validation: the loss and the ranks of the held-out pairs, in batches that never change.

    validation = Validation(store, split, config, world)
    validation(encoder, temperature)      # ValidationScore(loss=2.31, mrr=0.41)

Graphs are not augmented, so equal weights give equal scores. Every post is encoded once, shared among the ranks; then
each rank computes the same loss and the same ranks.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch

from graphs.errors import ConfigError
from graphs.processes import batched
from graphs.stores.store import GraphStore
from mathamr import maxsim
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import MAX_EDGES, MAX_NODES, encode
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks, arithmetic
from mathamr.training.graph.loading import hidden_posts
from mathamr.training.graph.step import loss_of
from mathamr.training.losses import Temperature
from mathamr.training.pairs import PairSplit, known_positives
from mathamr.training.result import MRR_PAIRS, QUERIES_AT_ONCE, ValidationScore, rank_of


class Validation:
    """Held-out pairs, ready to be scored after every epoch."""

    def __init__(self, store: GraphStore, split: PairSplit, config: TrainConfig, world: Ranks) -> None:
        self._store, self._config, self._world = store, config, world
        self._positives = split.positives
        self._pairs = split.validation
        ids = (post_id for pair in self._pairs for post_id in (pair.question_id, pair.answer_id))
        self._posts = list(dict.fromkeys(ids))
        if len(self._posts) < world.size:
            raise ConfigError(
                f"{len(self._posts)} held-out posts cannot be shared by {world.size} ranks; use fewer ranks"
            )
        self._hidden = hidden_posts(store, self._pairs, [[] for _ in self._pairs])
        self._place = {post_id: i for i, post_id in enumerate(self._posts)}

    @torch.no_grad()
    def __call__(self, encoder: Encoder, temperature: Temperature) -> ValidationScore:
        """Score the encoder in evaluation mode; its own mode is restored."""
        training = encoder.training
        encoder.eval()
        try:
            sets = self._encoded(encoder)
        finally:
            encoder.train(training)
        return ValidationScore(self._loss(sets, temperature), self._reciprocal_rank(sets))

    def _encoded(self, encoder: Encoder) -> VectorSets:
        """Return the vectors of all held-out posts, on every rank."""
        config, world = self._config, self._world
        own = [self._posts[i] for i in np.array_split(np.arange(len(self._posts)), world.size)[world.rank]]
        with arithmetic(config.precision, world.device):
            sets = encode(
                encoder,
                self._store,
                own,
                max_nodes=min(config.node_budget, MAX_NODES),
                max_edges=min(config.edge_budget, MAX_EDGES),
                hidden=self._hidden,
            )
        return world.gather(sets)[0]

    def _of(self, sets: VectorSets, posts: Sequence[str]) -> VectorSets:
        """Select the vectors of some posts from those of all held-out posts."""
        return sets.select(torch.tensor([self._place[post_id] for post_id in posts], device=sets.ptr.device))

    def _loss(self, sets: VectorSets, temperature: Temperature) -> float:
        """Return the mean loss over pairs, in equal batches of about ``batch_size`` pairs."""
        loss, total = loss_of(self._config), 0.0
        for batch in np.array_split(np.arange(len(self._pairs)), max(1, len(self._pairs) // self._config.batch_size)):
            questions, answers = zip(*(self._pairs[i] for i in batch), strict=True)
            known = known_positives(questions, answers, self._positives).to(sets.ptr.device)
            result = loss(self._of(sets, questions), self._of(sets, answers), temperature(), known_positives=known)
            total += len(batch) * float(result.total)
        return total / len(self._pairs)

    def _reciprocal_rank(self, sets: VectorSets) -> float:
        pairs = self._pairs[:MRR_PAIRS]
        column = {post_id: i for i, post_id in enumerate(dict.fromkeys(pair.answer_id for pair in pairs))}
        answers = self._of(sets, list(column))
        single = self._config.beta == 0
        documents = answers.documents_only() if single else answers
        ranks = []
        for some in batched(pairs, QUERIES_AT_ONCE):
            questions = [pair.question_id for pair in some]
            queries = self._of(sets, questions)
            scores = maxsim.scores(queries.documents_only() if single else queries, documents)
            known = known_positives(questions, list(column), self._positives).to(scores.device)
            own = torch.tensor([column[pair.answer_id] for pair in some], device=scores.device)
            ranks.append(rank_of(scores, own, known))
        return float((1 / torch.cat(ranks)).mean())
