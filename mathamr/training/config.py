"""Settings of training: types and meanings. The values and their sources are in ``conf/train``.

Contradictory settings are refused before anything is loaded:

>>> from mathamr.default_settings import values
>>> settings = values("train", "laptop")
>>> TrainConfig(**settings).batch_size
32
>>> TrainConfig(**settings | {"min_learning_rate": 0.01})
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: train.min_learning_rate=0.01 must lie between 0 and train.learning_rate=0.001
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any

from graphs.corpus.pairs import POSITIVES
from graphs.errors import ConfigError
from mathamr.training.limits import check_bounds, check_negatives

PRECISIONS = ("fp32", "bf16")
NEGATIVE_SOURCES = ("bm25", "tags", "model")


@dataclass(frozen=True, kw_only=True)
class LearningConfig:
    """Settings of training that graph models (``train``) and text encoders (``text``) share.

    Attributes:
        batch_size: pairs in a batch, over all ranks; each question is compared with all answers of the batch.
        epochs: largest number of passes over the training pairs.
        learning_rate: highest learning rate of AdamW.
        weight_decay: L2 penalty of AdamW.
        grad_clip: largest norm of the gradient.
        patience: epochs in a row without a lower validation loss before training stops.
        validation_fraction: share of the questions (``text``: of threads or papers) held out, with all their pairs.
        negatives: hard negatives drawn for each question, in addition to the other answers of the batch.
        negative_source: ranking that hard negatives are drawn from: ``bm25``, ``tags`` (``train``), or ``model``, the
            model under training (``text``: of the results of BM25, by one vector for each text). Without ``negatives``
            this and the next four settings have no effect.
        negative_candidates: number of answers ranked for each question.
        negative_pool: number of candidates to keep, best first; each batch draws from them.
        negative_closest: largest ratio of a candidate's score to the positive's; closer candidates are dropped, because
            they may be unmarked answers. ``None`` drops nothing. Shared tags have no such score.
        negative_refresh: epochs after which ``model`` ranks again.
        precision: ``fp32`` or ``bf16``, arithmetic of the model; scores and loss are always float32.
        checkpoint_every: optimizer steps between checkpoints within an epoch; 0 saves only at the ends of epochs.
    """

    batch_size: int
    epochs: int
    learning_rate: float
    weight_decay: float
    grad_clip: float
    patience: int
    validation_fraction: float
    negatives: int
    negative_source: str
    negative_candidates: int
    negative_pool: int
    negative_closest: float | None
    negative_refresh: int
    precision: str
    checkpoint_every: int


LEAST = {
    "batch_size": 2,  # a single pair has no negatives
    "weight_decay": 0,
    "patience": 1,
    "negatives": 0,
    "negative_candidates": 1,
    "negative_pool": 1,
    "negative_refresh": 1,
    "checkpoint_every": 0,
}
"""Lower bounds of settings in :class:`LearningConfig`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(LearningConfig):
    """Settings of the training of a graph model, with those of :class:`LearningConfig`.

    Attributes:
        positives: answers that form a pair with a question (:data:`graphs.corpus.pairs.POSITIVES`): ``accepted``,
            ``answers`` (all with ``least_score``), ``duplicates`` (accepted ones, also those of duplicate questions),
            ``all``, or ``related`` (in a knowledge graph, also over edges).
        least_score: lowest number of votes of an answer; see ``positives``.
        max_pairs: largest number of pairs (training and validation together); if there are more, a
            random sample is used, the same for every seed. None: all. Pairs of further collections do not count.
        pairs: names of the collections with training pairs; None: only the searched collection. Only pairs of the
            searched collection are held out.
        pair_weights: share of the pairs of each collection in ``pairs`` that an epoch uses, e.g. 0.5; None: all pairs.
        pretrain_pairs: collections of a first stage, which uses each pair once in an epoch. Training starts with the
            last weights, temperature and optimizer moments of this stage; the learning rate falls in both. None: no
            such stage.
        pretrain_epochs: epochs of the first stage, in addition to ``epochs``; ``patience`` does not apply to it.
        accumulate: batches whose gradients are averaged for one optimizer step.
        node_budget: largest number of nodes encoded at once on one device. A larger batch is encoded in chunks, twice
            (first without gradient, then with it), which bounds memory and does not change the gradient. Augmentation
            is drawn for each chunk, so another budget masks other nodes.
        edge_budget: largest number of edges encoded at once, including inverse edges; see ``node_budget``.
        min_learning_rate: learning rate at the last step, to which ``learning_rate`` falls along a cosine.
        temperature: initial temperature of InfoNCE; it is learned, without weight decay.
        node_mask: probability that a node's label is masked.
        edge_dropout: probability that an edge is dropped.
        rename: probability that the variables of a graph swap letters (:mod:`graphs.graph.renaming`).
        beta: weight of the MaxSim loss; 1 - beta is the weight of the loss of the document vectors.
        symmetric: add the loss in the other direction, of finding the question of each answer.
        normalize: divide MaxSim scores by the number of query vectors.
        formula_weight: weight of a contrastive loss between equal formulas
            (:mod:`mathamr.training.graph.formula_pairs`); 0 switches it off.
        formula_view_weight: weight of a contrastive loss between the two trees of a formula; 0 switches it off.
        teacher: text encoder (:mod:`mathamr.text.encoder`) whose ranking of the documents is a further target
            (:mod:`mathamr.training.graph.distillation`), or None. Without it the next two settings have no effect.
        distill_weight: weight of the distillation loss.
        distill_temperature: divisor of the teacher's cosines.
        seed: seed of weights, order and augmentation. The held-out questions do not depend on it.
        device: ``auto`` (a GPU if there is one), ``cpu``, ``cuda`` or ``cuda:N``.
        processes: ranks that train together on this machine, each in its own process; ``auto``: one for each GPU.
            Losses are equal up to the order of sums and the augmentation, which each rank draws for its own part.
            ``track=text`` shares the encoding of texts in fp32 among as many devices.
        workers: threads that prepare batches ahead; 0 prepares each on demand. Results do not depend on it.
    """

    positives: str
    least_score: int
    max_pairs: int | None
    pairs: list[str] | None
    pair_weights: list[float] | None
    pretrain_pairs: list[str] | None
    pretrain_epochs: int
    accumulate: int
    node_budget: int
    edge_budget: int
    min_learning_rate: float
    temperature: float
    node_mask: float
    edge_dropout: float
    beta: float
    symmetric: bool
    normalize: bool
    formula_weight: float
    formula_view_weight: float
    teacher: str | None
    distill_weight: float
    distill_temperature: float
    seed: int
    device: str
    workers: int
    processes: int | str = 1
    rename: float = 0.0

    def key_parts(self) -> dict[str, Any]:
        """Return the settings that models depend on; ``rename`` only above 0, so that older keys stay valid."""
        values = asdict(self)
        if not self.rename:
            del values["rename"]
        return values

    def __post_init__(self) -> None:
        check_bounds("train", self, at_least=_AT_LEAST, positive=_POSITIVE, one_of=_ONE_OF)
        for name in ("node_mask", "edge_dropout"):
            if not 0 <= getattr(self, name) < 1:
                raise ConfigError(f"train.{name}={getattr(self, name)} must be at least 0 and less than 1")
        if not 0 <= self.rename <= 1:
            raise ConfigError(f"train.rename={self.rename} must lie in 0..1, a share of the graphs")
        if self.processes != "auto" and not (isinstance(self.processes, int) and self.processes >= 1):
            raise ConfigError(f"train.processes={self.processes} is not a number of processes; use auto, or 1 or more")
        self._check_sources()
        if self.max_pairs is not None and self.max_pairs < self.batch_size:
            raise ConfigError(
                f"train.max_pairs={self.max_pairs} does not fill a batch of train.batch_size={self.batch_size}; use "
                "more pairs, or null for all"
            )
        check_negatives("train", self)
        if not 0 < self.validation_fraction < 1:
            raise ConfigError(
                f"train.validation_fraction={self.validation_fraction} must lie between 0 and 1, both excluded: "
                "the lowest validation loss selects the best checkpoint"
            )
        if not 0 <= self.min_learning_rate <= self.learning_rate:
            highest = f"train.learning_rate={self.learning_rate}"
            raise ConfigError(f"train.min_learning_rate={self.min_learning_rate} must lie between 0 and {highest}")
        if not 0 <= self.beta <= 1:
            raise ConfigError(f"train.beta={self.beta} must lie in 0..1 (1: only MaxSim, 0: only document vectors)")

    def _check_sources(self) -> None:
        for name in ("pairs", "pretrain_pairs"):
            found = getattr(self, name)
            if found is not None and (not found or len(set(found)) < len(found)):
                raise ConfigError(f"train.{name}={found} has an empty or repeated name; use null for no collection")
        if self.pair_weights is not None:
            if len(self.pair_weights) != len(self.pairs or ()):
                raise ConfigError(
                    f"train.pair_weights={self.pair_weights} must be one for each of train.pairs={self.pairs}"
                )
            if not all(0 < weight < math.inf for weight in self.pair_weights):
                raise ConfigError(f"train.pair_weights={self.pair_weights}; each must be a positive number")

    @property
    def collections(self) -> tuple[str, ...]:
        """Names in ``pairs`` and ``pretrain_pairs``."""
        return tuple(dict.fromkeys([*(self.pairs or ()), *(self.pretrain_pairs or ())]))

    @property
    def compares_formulas(self) -> bool:
        """True if a loss over formulas has weight."""
        return self.formula_weight > 0 or self.formula_view_weight > 0


_ONE_OF = {"positives": POSITIVES, "negative_source": NEGATIVE_SOURCES, "precision": PRECISIONS}
_POSITIVE = ("learning_rate", "temperature", "grad_clip", "distill_weight", "distill_temperature")
_AT_LEAST = {
    **LEAST,
    "pretrain_epochs": 1,
    "accumulate": 1,
    "node_budget": 1,
    "edge_budget": 1,
    "epochs": 1,
    "formula_weight": 0,
    "formula_view_weight": 0,
    "seed": 0,
    "workers": 0,
}
