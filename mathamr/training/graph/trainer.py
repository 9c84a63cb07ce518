"""Training: pairs and graphs in, a checkpoint of the lowest validation loss out.

    from graphs.stores.store import GraphStore
    from mathamr.training.graph.trainer import TrainConfig, train

    store = GraphStore("preprocessed.db")
    result = train(TrainConfig(...), store, pairs, EncoderConfig(...), out="model", log=print)
    result.best_val_loss, result.time_per_epoch_s     # (2.31, 94.2)
    encoder = checkpoint.load_encoder(result.best, config_hash=store.config_hash)

The same call goes on where an interrupted one stopped, and returns at once when it had finished. On the CPU the weights
are bit for bit those of a run that was never interrupted, because all that a step depends on is in the checkpoint or a
function of the step's number.

``log`` receives dictionaries, on rank 0 alone. Their ``kind`` is ``start`` (what is trained on), ``step`` (``loss``,
``temperature``, ``learning_rate``, ``grad_norm``, ``graphs_per_s``, ``waited_s``: time without data ...), ``epoch``
(``stage``, ``train_loss``, ``val_loss``, ``val_mrr``, ``seconds``, ``pairs_per_s``, ``peak_memory_bytes`` ...) or
``negatives`` (which hard negatives were kept, and why not others: :mod:`mathamr.negatives.mining`).
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Literal

import torch

import mathamr.training.checkpoint as checkpoint
from graphs.corpus.post import Pair
from graphs.errors import MathAMRError, RetrievalError, TrainingError
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch, give_back_memory, peak_device_memory, reset_peak_gpu_memory
from mathamr.model import label_vectors, sentence_text
from mathamr.model.config import EncoderConfig
from mathamr.model.encoding import out_of_memory
from mathamr.training.checkpoint import CheckpointInfo, TrainingState
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks, ranks
from mathamr.training.graph.checks import Negatives, NegativeSource, check, check_precision
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import VisualIds
from mathamr.training.graph.learner import Learner
from mathamr.training.graph.loading import TrainingBatches
from mathamr.training.graph.validation import Validation
from mathamr.training.interruption import Interrupted, StopSignal, listen
from mathamr.training.pairs import PairSplit, sample_pairs, split_pairs, with_sources
from mathamr.training.result import EpochRecord, TrainResult
from mathamr.training.schedule import cosine
from mathamr.training.state import RunState, differences

__all__ = ["EpochRecord", "Interrupted", "TrainConfig", "TrainResult", "train"]

Log = Callable[[dict[str, Any]], None]
Progress = Callable[[int], None]

# Settings that no result depends on: a run may go on with others.
_FREE = frozenset({"device", "workers", "checkpoint_every"})


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
    """Train an encoder; ``OUT/best`` is the result, ``OUT/last`` what an interrupted run goes on from.

    Under ``torchrun`` every rank makes the same call.

    Args:
        pairs: questions and their answers. Those without graphs are left out, counted and listed.
        resume: ``auto`` goes on from ``OUT/last`` where it exists, ``never`` removes both
            checkpoints and starts anew.
        negatives: for each question posts that are no answers, of which ``config.negatives`` are drawn each time; or a
            source that mines them anew as training goes on. :func:`mathamr.negatives.mining.negatives_of` makes either.
        visual_ids: of the formulas of each post, by FORMULA_i, "" where unknown; ``config.formula_weight`` and
            ``config.formula_view_weight`` need them to know which formulas look alike.
        sources: pairs of further collections, by the names that ``config.pairs`` and ``config.pretrain_pairs`` give
            them; any other name stands for ``pairs``. None of theirs is held out, and they get no hard negatives.
        teacher: has vectors of all posts of pairs and negatives; ``config.teacher`` names it.
        log: receives records, see above.
        progress: called with the number of optimizer steps done since the last call.

    Raises:
        ConfigError: settings that contradict each other, the data or the machine.
        TrainingError: no usable pairs, a loss that is not finite, a checkpoint of another run, a full disk, a rank that
            died. ``OUT/last`` is valid, and the message says which step it is of.
        Interrupted: SIGTERM, SIGUSR1 or Ctrl-C came; ``OUT/last`` is of the step at which training stopped.
        KeyboardInterrupt: Ctrl-C came twice; ``OUT/last`` is what was saved before.
    """
    check(config, store, negatives, visual_ids, teacher, resume)
    sentence_text.check(encoder_config.sentence_vectors, store)
    with ranks(config.device) as world, listen() as signal:
        check_precision(config, world.device)
        available = frozenset(store.post_ids())
        pairs = sample_pairs(pairs, available, config.max_pairs)
        split = split_pairs(pairs, available, validation_fraction=config.validation_fraction)
        split = with_sources(split, sources or {}, available)
        run = _Run(config, store, split, encoder_config, Path(out), negatives, visual_ids or {}, teacher, world, signal)
        if resume == "auto" and checkpoint.exists(run.last):
            run.restore()
        elif world.is_main:
            checkpoint.remove(run.last)
            checkpoint.remove(run.best)
        return run.finish(log if world.is_main else None, progress if world.is_main else None)


class _Run:
    """One training run: its model, its data, and where it stands."""

    def __init__(
        self,
        config: TrainConfig,
        store: GraphStore,
        split: PairSplit,
        encoder_config: EncoderConfig,
        out: Path,
        negatives: Negatives | None,
        visual_ids: VisualIds,
        teacher: Teacher | None,
        world: Ranks,
        signal: StopSignal,
    ) -> None:
        self.config, self.store, self.split, self.world, self.signal = config, store, split, world, signal
        self.best, self.last = out / "best", out / "last"
        self.encoder_config = encoder_config
        self.batches = TrainingBatches(store, split, config, world)
        self.batches.visual_ids = visual_ids
        self.batches.teacher = teacher
        self.source: NegativeSource | None = None
        if callable(negatives):
            self.source = negatives
        elif negatives is not None:
            self.batches.negatives = negatives
        self.validation = Validation(store, split, config, world)
        self.curriculum = self.batches.curriculum
        self.data_hash = _data_hash(split, self.batches.negatives, teacher)
        vectors = None
        if encoder_config.label_vectors is not None:
            vectors = label_vectors.read(store.path.parent, encoder_config.label_vectors, store.vocabulary)
        self.learner = Learner(
            config,
            encoder_config,
            num_labels=store.vocabulary.num_labels,
            num_relations=store.vocabulary.num_relations,
            world=world,
            label_vectors=vectors,
            sentence_dim=None if store.sentence_vectors is None else store.sentence_vectors.dimension,
        )
        self.state = RunState()

    # Checkpoints

    def restore(self) -> None:
        """Go on from ``OUT/last``; refuses a checkpoint of another run."""
        found = checkpoint.load(
            self.last, vocabulary_hash=self.store.vocabulary.hash, config_hash=self.store.config_hash
        )
        state = checkpoint.load_state(self.last)
        wanted = self._info()
        differing = [
            *differences("train", found.info.train, wanted.train, free=_FREE),
            *differences("model", found.info.encoder, wanted.encoder),
            *differences("pairs and negatives", {"hash": state.scalars["data_hash"]}, {"hash": self.data_hash}),
        ]
        if differing:
            raise TrainingError(
                f"this run was begun with other settings ({'; '.join(differing)}); "
                "go on with those, start anew with resume='never', or train into another folder",
                path=self.last,
            )
        self.learner.restore(found.weights, state.tensors)
        self.state = RunState.of(state.scalars["progress"], state.tensors["losses"])
        if self.source is not None:
            self.batches.negatives = state.scalars["mined"]

    def _info(self) -> CheckpointInfo:
        return CheckpointInfo(
            encoder=dataclasses.asdict(self.encoder_config),
            train=dataclasses.asdict(self.config),
            vocabulary_hash=self.store.vocabulary.hash,
            config_hash=self.store.config_hash,
            num_labels=self.store.vocabulary.num_labels,
            num_relations=self.store.vocabulary.num_relations,
            code_version=checkpoint.code_version(),
            seed=self.config.seed,
            step=self.state.step,
            epoch=len(self.state.epochs),
            best_step=self.state.best_step,
            best_val_loss=self.state.best_val_loss,
            temperature=float(self.learner.temperature().detach()),
        )

    def _save_last(self) -> None:
        if not self.world.is_main:
            return
        self.learner.check_finite()
        tensors = {**self.learner.tensors(), "losses": torch.tensor(self.state.losses, dtype=torch.float64)}
        scalars = {"progress": self.state.scalars(), "data_hash": self.data_hash}
        if self.source is not None:
            scalars["mined"] = dict(self.batches.negatives)
        checkpoint.save(self.last, self._info(), self.learner.encoder.state_dict(), TrainingState(tensors, scalars))

    def _save_best(self) -> None:
        if self.world.is_main:
            checkpoint.save(self.best, self._info(), self.learner.encoder.state_dict())

    # Training

    def finish(self, log: Log | None, progress: Progress | None) -> TrainResult:
        """Train from where the run stands to its end."""
        log, progress = log or (lambda record: None), progress or (lambda steps: None)
        reset_peak_gpu_memory(self.world.device)
        log(self._start_record())
        progress(self.state.step)
        try:
            while not self._finished():
                self._train_epoch(log, progress)
                self._end_epoch(log)
                self._stop_if_told()  # also in the last validation: the caller is to stop, there may be more to come
        except Interrupted:
            raise
        except (TrainingError, RetrievalError) as error:
            raise self._placed(error) from error
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            nodes, edges = self.config.node_budget, self.config.edge_budget
            message = (
                f"out of memory on {self.world.device} ({str(error).splitlines()[0]}); lower "
                f"train.node_budget={nodes} and train.edge_budget={edges}, so that a batch goes in smaller chunks, and "
                "start anew with resume='never'"
            )
            raise self._placed(TrainingError(message)) from error
        return self._result()

    def _finished(self) -> bool:
        return len(self.state.epochs) == self.curriculum.epochs or self._out_of_patience()

    def _out_of_patience(self) -> bool:
        return self.state.epochs_without_improvement >= self.config.patience

    def _train_epoch(self, log: Log, progress: Progress) -> None:
        state, accumulate = self.state, self.config.accumulate
        epoch = len(state.epochs)
        done = state.step - self.curriculum.first_step(epoch)
        left = self.curriculum.steps(epoch) - done
        if self.source is not None and done == 0 and epoch % self.source.every == 0:
            # One rank mines for all: near ties could fall differently on another.
            mined = self.source(self.learner.encoder) if self.world.is_main else {}
            self.batches.negatives = json.loads(self.world.shared_text(json.dumps(mined)))
        with closing(self.batches.epoch(epoch, done * accumulate, left * accumulate)) as batches:
            for _ in range(left):
                with Stopwatch() as watch:
                    group = [next(batches) for _ in range(accumulate)]
                    waited = watch.seconds
                    rate = self._learning_rate()
                    record = self.learner.step(group, rate)
                seconds = watch.seconds
                state.step += 1
                state.losses.append(record["loss"])
                state.epoch_seconds += seconds
                log(
                    {
                        "kind": "step",
                        "step": state.step,
                        "epoch": epoch,
                        **record,
                        "learning_rate": rate,
                        "seconds": seconds,
                        "waited_s": waited,
                        "graphs_per_s": sum(batch.num_graphs for batch in group) / seconds,
                    }
                )
                progress(1)
                self._between_steps()

    def _learning_rate(self) -> float:
        config, (step, total) = self.config, self.curriculum.place(self.state.step)
        return cosine(step, total=total, highest=config.learning_rate, lowest=config.min_learning_rate)

    def _between_steps(self) -> None:
        """Stop when told to; save when it is time, but at the end of an epoch only once it is validated."""
        step, every = self.state.step, self.config.checkpoint_every
        self._stop_if_told()
        if every and step % every == 0 and step < self.curriculum.first_step(len(self.state.epochs) + 1):
            self._save_last()

    def _stop_if_told(self) -> None:
        if self.world.any(self.signal.received is not None):
            self._save_last()
            self.world.any(False)  # no rank leaves, and takes the others with it, before rank 0 has saved
            raise Interrupted(self.signal.received, self.state.step, self.last)

    def _end_epoch(self, log: Log) -> None:
        state = self.state
        start = time.perf_counter()
        score = self.validation(self.learner.encoder, self.learner.temperature)
        epoch = len(state.epochs)
        losses = state.losses[self.curriculum.first_step(epoch) :]
        record = EpochRecord(epoch, state.step, sum(losses) / len(losses), score.loss, score.mrr, state.epoch_seconds)
        state.epochs.append(record)
        state.train_seconds += state.epoch_seconds
        state.epoch_seconds = 0.0
        improved = state.best_val_loss is None or score.loss < state.best_val_loss
        if improved:
            state.best_step, state.best_val_loss, state.best_val_mrr = state.step, score.loss, score.mrr
        impatient = not improved and self.curriculum.is_last(epoch)
        state.epochs_without_improvement = state.epochs_without_improvement + 1 if impatient else 0
        if improved:
            self._save_best()  # first: a kill before the next line repeats this epoch's end and writes the same
        self._save_last()
        log(
            {
                "kind": "epoch",
                **dataclasses.asdict(record),
                "stage": self.curriculum.stage(epoch).name,
                "validation_seconds": time.perf_counter() - start,
                "pairs_per_s": len(losses) * self._pairs_per_step / max(record.seconds, 1e-9),
                "temperature": float(self.learner.temperature().detach()),
                "best": improved,
                "peak_memory_bytes": peak_device_memory(self.world.device),
            }
        )
        give_back_memory()

    @property
    def _pairs_per_step(self) -> int:
        return self.config.batch_size * self.config.accumulate

    def _placed(self, error: MathAMRError) -> TrainingError:
        """The same error, with where it happened and what is left."""
        saved = (
            f"{self.last} is of step {checkpoint.load(self.last).info.step}"
            if checkpoint.exists(self.last)
            else (f"there is no checkpoint in {self.last} yet")
        )
        where = f"epoch {len(self.state.epochs) + 1}, step {self.state.step + 1}"
        return TrainingError(f"{where}: {error.message} ({saved})", path=error.path)

    # What is reported

    def _start_record(self) -> dict[str, Any]:
        return {
            "kind": "start",
            "step": self.state.step,
            "total_steps": self.curriculum.first_step(self.curriculum.epochs),
            "steps_per_epoch": self.curriculum.steps(self.curriculum.epochs - 1),
            "train_pairs": self.curriculum.num_pairs,
            "validation_pairs": len(self.split.validation),
            "left_out": self.split.left_out,
            "missing": self.split.missing,
            "parameters": self.learner.parameter_counts(),
            "ranks": self.world.size,
            "device": str(self.world.device),
        }

    def _result(self) -> TrainResult:
        state = self.state
        assert state.best_step is not None
        assert state.best_val_loss is not None
        assert state.best_val_mrr is not None
        seconds = max(state.train_seconds, 1e-9)
        return TrainResult(
            best=self.best,
            best_step=state.best_step,
            best_val_loss=state.best_val_loss,
            best_val_mrr=state.best_val_mrr,
            epochs=tuple(state.epochs),
            stopped_early=len(state.epochs) < self.curriculum.epochs,
            loss_curve=tuple(state.losses),
            time_per_epoch_s=seconds / len(state.epochs),
            pairs_per_s=state.step * self._pairs_per_step / seconds,
            peak_memory_bytes=peak_device_memory(self.world.device),
            parameters=self.learner.parameter_counts(),
            train_pairs=self.curriculum.num_pairs,
            validation_pairs=len(self.split.validation),
            left_out=self.split.left_out,
            missing=self.split.missing,
        )


def _data_hash(split: PairSplit, negatives: Mapping[str, Sequence[str]], teacher: Teacher | None) -> str:
    content: list[object] = [split.fingerprint(), {key: list(value) for key, value in negatives.items()}]
    if teacher is not None:
        content.append(teacher.identity)
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]
