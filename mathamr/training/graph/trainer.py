"""Training of the graph encoder: from pairs and graphs to a checkpoint of the lowest validation loss.

    from graphs.stores.store import GraphStore
    from mathamr.training.config import TrainConfig
    from mathamr.training.graph.trainer import train

    store = GraphStore("preprocessed.db")
    result = train(TrainConfig(...), store, pairs, EncoderConfig(...), out="model", log=print)
    result.best_val_loss, result.time_per_epoch_s     # (2.31, 94.2)
    encoder = checkpoint.load_encoder(result.best, config_hash=store.config_hash)

The same call resumes an interrupted run, and returns at once if the run has finished. On the CPU the weights equal
those of an uninterrupted run bit for bit, because all that a step depends on is in the checkpoint or a function of the
step's number.

``log`` receives dictionaries, on rank 0 only. Their ``kind`` is ``start`` (training data, perhaps a ``warning``),
``step`` (``loss``, ``temperature``, ``learning_rate``, ``grad_norm``, ``graphs_per_s``, ``waited_s``: time without data
...), ``epoch`` (``stage``, ``train_loss``, the means of its terms, such as ``maxsim_loss``, ``val_loss``, ``val_mrr``,
``seconds``, ``pairs_per_s``, ``peak_memory_bytes`` ...) or ``negatives`` (the kept hard negatives, and the reasons for
others: :mod:`mathamr.negatives.mining`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import torch

import mathamr.training.checkpoint as checkpoint
from graphs.corpus.post import Pair
from graphs.errors import RetrievalError, TrainingError
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch, peak_device_memory
from mathamr.model import sentence_text
from mathamr.model.config import EncoderConfig
from mathamr.model.encoding import out_of_memory
from mathamr.training.checkpoint import CheckpointInfo, TrainingState
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks, ranks
from mathamr.training.graph.checks import Negatives, NegativeSource, check, check_precision
from mathamr.training.graph.curriculum import cosine
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import VisualIds
from mathamr.training.graph.learner import Learner
from mathamr.training.graph.loading import TrainingBatch, TrainingBatches
from mathamr.training.graph.validation import Validation
from mathamr.training.interruption import Interrupted, listen
from mathamr.training.loop import Log, Progress, Run
from mathamr.training.pairs import PairSplit, posts_of, sample_pairs, split_pairs, with_sources
from mathamr.training.result import RunState, TrainResult, ValidationScore, differences, refuse_another_run

# Settings that results do not depend on; a run may resume with other values.
_FREE = frozenset({"device", "processes", "workers", "checkpoint_every"})


def train(
    config: TrainConfig,
    store: GraphStore,
    pairs: Sequence[Pair],
    encoder_config: EncoderConfig,
    *,
    out: str | os.PathLike[str],
    resume: Literal["auto", "never"] = "auto",
    negatives: Negatives | None = None,
    visual_ids: VisualIds | None = None,
    sources: Mapping[str, Sequence[Pair]] | None = None,
    teacher: Teacher | None = None,
    log: Log | None = None,
    progress: Progress | None = None,
) -> TrainResult:
    """Train an encoder. ``OUT/best`` is the result; an interrupted run resumes from ``OUT/last``.

    Under ``torchrun`` every rank makes the same call.

    Args:
        pairs: questions and their answers. Pairs without graphs are skipped, counted and listed.
        resume: ``auto`` resumes from ``OUT/last`` if it exists; ``never`` removes both checkpoints and starts anew.
        negatives: posts that are no answers, for each question, of which ``config.negatives`` are drawn each time; or a
            source that mines them during training. :func:`mathamr.negatives.mining.negatives_of` makes either.
        visual_ids: visual ids of each post's formulas, by FORMULA_i, "" if unknown; ``config.formula_weight`` and
            ``config.formula_view_weight`` need them.
        sources: pairs of further collections, by their names in ``config.pairs`` and ``config.pretrain_pairs``; any
            other name means ``pairs``. They are never held out and get no hard negatives.
        teacher: vectors of all posts of pairs and negatives; ``config.teacher`` names it.
        log: function that receives the record of each step and epoch.
        progress: function called with the number of optimizer steps done since its last call.

    Raises:
        ConfigError: settings that contradict each other, the data or the machine.
        TrainingError: no usable pairs, a loss that is not finite, a checkpoint of another run, a full disk, or a
            dead rank. ``OUT/last`` is valid, and the message names its step.
        Interrupted: SIGTERM, SIGUSR1 or Ctrl-C; ``OUT/last`` holds the last step.
        KeyboardInterrupt: a second Ctrl-C; ``OUT/last`` holds the last saved step.
    """
    check(config, store, negatives, visual_ids, teacher, resume)
    sentence_text.check(encoder_config.sentence_vectors, store)
    with ranks(config.device) as world, listen() as signal:
        check_precision(config, world.device)
        further = sources or {}
        sample = sample_pairs(pairs, store.having, config.max_pairs)
        available = frozenset(store.having(posts_of(chain(sample, *further.values()))))
        fraction, positives = config.validation_fraction, config.positives
        own = split_pairs(sample, available, validation_fraction=fraction, known=pairs, positives=positives)
        split = with_sources(own, further, available)
        learning = _GraphLearning(config, encoder_config, store, split, negatives, visual_ids or {}, teacher, world)
        checkpoints = _Checkpoints(learning, last=Path(out, "last"), best=Path(out, "best"))
        run = Run(learning, checkpoints, config, world, signal)
        run.begin(resume)
        about = {
            "train_pairs": learning.curriculum.num_pairs,
            "validation_pairs": len(split.validation),
            "left_out": split.left_out,
            "missing": split.missing,
            "parameters": learning.learner.parameter_counts(),
        }
        if (warning := split.warning()) is not None:
            about["warning"] = warning
        with _placed(run, checkpoints.last, config, world), closing(learning.batches):
            run.start(about, log, progress)
            _take_steps(run, learning)
        return _result(checkpoints.best, run.state, learning, split, world)


def _take_steps(run: Run, learning: _GraphLearning) -> None:
    """Train to the end of the run; save and raise :class:`Interrupted` after a signal."""
    while not run.is_finished:
        epoch, end = len(run.state.epochs), run.end_of_epoch
        with learning.epoch(epoch, run.state.step - learning.schedule.first_step(epoch)) as take_step:
            while run.state.step < end:
                run.count_step(take_step(run.state.step))
                run.stop_if_told()
                run.save_if_due()
        run.end_epoch()
        run.stop_if_told()  # also after the last validation: the caller may have more to do


class _GraphLearning:
    """Graph encoder with its data: a :class:`mathamr.training.loop.Learner`."""

    unit = "pairs"

    def __init__(
        self,
        config: TrainConfig,
        encoder_config: EncoderConfig,
        store: GraphStore,
        split: PairSplit,
        negatives: Negatives | None,
        visual_ids: VisualIds,
        teacher: Teacher | None,
        world: Ranks,
    ) -> None:
        self.config, self.encoder_config, self.store, self._world = config, encoder_config, store, world
        self.items = config.batch_size * config.accumulate
        self.batches = TrainingBatches(store, split, config, world)
        self.batches.visual_ids = visual_ids
        self.batches.teacher = teacher
        self.source: NegativeSource | None = None
        if callable(negatives):
            self.source = negatives
        elif negatives is not None:
            self.batches.negatives = negatives
        compared = visual_ids if config.compares_formulas else None
        self.data_hash = _data_hash(store, split, self.batches.negatives, teacher, compared)
        self._validation = Validation(store, split, config, world)
        self.curriculum = self.batches.curriculum
        self.schedule = self.curriculum.schedule
        self.learner = Learner(config, encoder_config, store, world)

    @contextmanager
    def epoch(self, epoch: int, done: int) -> Iterator[Callable[[int], dict[str, Any]]]:
        """Mine hard negatives if due, and prepare the batches after ``done`` steps; yield what takes a step."""
        accumulate = self.config.accumulate
        if self.source is not None and done == 0 and epoch % self.config.negative_refresh == 0:
            # One rank mines for all: near ties could differ on another.
            mined = self.source(self.learner.encoder) if self._world.is_main else {}
            self.batches.negatives = json.loads(self._world.shared_text(json.dumps(mined)))
        left = self.schedule.steps[epoch] - done
        with closing(self.batches.epoch(epoch, done * accumulate, left * accumulate)) as batches:
            yield lambda step: self._step(batches, step)

    def _step(self, batches: Iterator[TrainingBatch], step: int) -> dict[str, Any]:
        config, (place, total) = self.config, self.curriculum.place(step)
        with Stopwatch() as watch:
            group = [next(batches) for _ in range(config.accumulate)]
            waited = watch.seconds
            rate = cosine(place, total=total, highest=config.learning_rate, lowest=config.min_learning_rate)
            record = self.learner.step(group, rate)
        return {
            **record,
            "learning_rate": rate,
            "seconds": watch.seconds,
            "waited_s": waited,
            "graphs_per_s": sum(batch.num_graphs for batch in group) / watch.seconds,
        }

    def validate(self) -> ValidationScore:
        return self._validation(self.learner.encoder, self.learner.temperature)

    def epoch_record(self, epoch: int) -> dict[str, Any]:
        return {"stage": self.curriculum.stage(epoch).name, "temperature": self.temperature}

    @property
    def temperature(self) -> float:
        return float(self.learner.temperature().detach())


@dataclass
class _Checkpoints:
    """``OUT/last`` and ``OUT/best``: a :class:`mathamr.training.loop.Checkpoints`."""

    learning: _GraphLearning
    last: Path
    best: Path

    def restore(self) -> RunState | None:
        """Load ``last`` if it exists; raise for a checkpoint of another run."""
        if not checkpoint.exists(self.last):
            return None
        learning = self.learning
        store, wanted = learning.store, self._info(RunState())
        loaded = checkpoint.load(self.last, vocabulary_hash=store.vocabulary.hash, config_hash=store.config_hash)
        state = checkpoint.load_state(self.last)
        data, own_data = {"hash": state.scalars["data_hash"]}, {"hash": learning.data_hash}
        differing = [
            *differences("train", loaded.info.train, wanted.train, free=_FREE),
            *differences("model", loaded.info.encoder, wanted.encoder),
            *differences("pairs, negatives and visual ids", data, own_data),
        ]
        refuse_another_run(differing, self.last)
        learning.learner.restore(loaded.weights, state.tensors)
        if learning.source is not None:
            learning.batches.negatives = state.scalars["mined"]
        return RunState.of(state.scalars["progress"], state.tensors["losses"])

    def remove(self) -> None:
        checkpoint.remove(self.last)
        checkpoint.remove(self.best)

    def save_last(self, state: RunState) -> None:
        """Write weights, moments, mined negatives and the state."""
        learning = self.learning
        learning.learner.check_finite()
        tensors = {**learning.learner.tensors(), "losses": torch.tensor(state.losses, dtype=torch.float64)}
        scalars = {"progress": state.scalars(), "data_hash": learning.data_hash}
        if learning.source is not None:
            scalars["mined"] = dict(learning.batches.negatives)
        weights = learning.learner.encoder.state_dict()
        checkpoint.save(self.last, self._info(state), weights, TrainingState(tensors, scalars))

    def save_best(self, state: RunState) -> None:
        checkpoint.save(self.best, self._info(state), self.learning.learner.encoder.state_dict())

    def _info(self, state: RunState) -> CheckpointInfo:
        learning, store = self.learning, self.learning.store
        return CheckpointInfo(
            encoder=dataclasses.asdict(learning.encoder_config),
            train=learning.config.key_parts(),
            vocabulary_hash=store.vocabulary.hash,
            config_hash=store.config_hash,
            num_labels=store.num_labels,
            num_relations=store.num_relations,
            code_version=checkpoint.code_version(),
            seed=learning.config.seed,
            step=state.step,
            epoch=len(state.epochs),
            best_step=state.best_step,
            best_val_loss=state.best_val_loss,
            temperature=learning.temperature,
        )


@contextmanager
def _placed(run: Run, last: Path, config: TrainConfig, world: Ranks) -> Iterator[None]:
    """Add the place and the last checkpoint to an error; out of memory becomes a TrainingError with a fix."""
    try:
        yield
        return
    except Interrupted:
        raise
    except (TrainingError, RetrievalError) as error:
        cause: Exception = error
        message, path = error.message, error.path
    except RuntimeError as error:
        if not out_of_memory(error):
            raise
        cause, path = error, None
        message = (
            f"out of memory on {world.device} ({str(error).splitlines()[0]}); lower "
            f"train.node_budget={config.node_budget} and train.edge_budget={config.edge_budget}, so that a batch is "
            "encoded in smaller chunks, and start anew (--resume never)"
        )
    saved = f"no checkpoint in {last} yet"
    if checkpoint.exists(last):
        saved = f"{last} holds step {checkpoint.load(last).info.step}"
    where = f"epoch {len(run.state.epochs) + 1}, step {run.state.step + 1}"
    raise TrainingError(f"{where}: {message} ({saved})", path=path) from cause


def _result(best: Path, state: RunState, learning: _GraphLearning, split: PairSplit, world: Ranks) -> TrainResult:
    assert state.best_step is not None
    assert state.best_val_loss is not None
    assert state.best_val_mrr is not None
    seconds = max(state.train_seconds, 1e-9)
    return TrainResult(
        best=best,
        best_step=state.best_step,
        best_val_loss=state.best_val_loss,
        best_val_mrr=state.best_val_mrr,
        epochs=tuple(state.epochs),
        stopped_early=len(state.epochs) < learning.curriculum.epochs,
        loss_curve=tuple(state.losses),
        time_per_epoch_s=seconds / len(state.epochs),
        pairs_per_s=state.step * learning.items / seconds,
        peak_memory_bytes=peak_device_memory(world.device),
        parameters=learning.learner.parameter_counts(),
        train_pairs=learning.curriculum.num_pairs,
        validation_pairs=len(split.validation),
        left_out=split.left_out,
        missing=split.missing,
    )


def _data_hash(
    store: GraphStore,
    split: PairSplit,
    negatives: Mapping[str, Sequence[str]],
    teacher: Teacher | None,
    visual_ids: VisualIds | None,
) -> str:
    given = {key: list(value) for key, value in negatives.items()}
    content: list[object] = [store.source, split.fingerprint(), given]
    if teacher is not None:
        content.append(teacher.identity)
    if visual_ids is not None:
        posts = posts_of(chain(split.train, *split.sources.values())).union(*negatives.values())
        digest = hashlib.sha256()
        for post_id in sorted(posts & visual_ids.keys()):
            digest.update(json.dumps([post_id, *visual_ids[post_id]]).encode())
        content.append(digest.hexdigest())
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
