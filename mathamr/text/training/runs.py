"""Training runs of text encoders on the trainers of transformers and sentence-transformers.

    recorder = Recorder(task, model, config, identity, out=out, world=world, signal=signal)
    state = learn(recorder, lambda: Finetuning(model, arguments(...)), resume="auto", about={})
    state.best_val_loss                                 # 1.42, and the model has the weights of that step

The library's trainer takes the steps: AdamW, learning rate, clipping, bf16, accumulation, and DDP. This module adds the
batches of a :class:`Task`, records, validation, the best weights, and checkpoints that survive kills and full disks.

``OUT/checkpoint-STEP`` is the trainer's checkpoint with ``run.json``: the identity and progress of the run, and digests
of all files. It is written under another name, then renamed. A resumed run reads it only if identity and digests agree:
weights from safetensors; optimizer, schedule and random generators from files of ``torch.save``, which the library
opens with ``weights_only``. ``OUT/best.safetensors`` has the weights of the lowest validation loss.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Protocol

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback
from transformers.utils import logging as library_logging

from graphs.errors import TrainingError
from graphs.whole_file import whole_file
from mathamr.evaluation.efficiency import give_back_memory, peak_device_memory, reset_peak_gpu_memory
from mathamr.text.config import TextConfig
from mathamr.text.training.batches import Rows
from mathamr.text.training.encoder_files import check_files, read_record, write_record
from mathamr.training.distributed import Ranks
from mathamr.training.interruption import Interrupted, StopSignal
from mathamr.training.loop import Log, Progress
from mathamr.training.result import EpochRecord, ValidationScore
from mathamr.training.state import RunState, differences, refuse_another_run

_WEIGHTS, _RUN, _WRITING, _BEST = "model.safetensors", "run.json", ".writing", "best.safetensors"
_OWN = "task."  # prefix of the task's tensors, beside those of the model


class Task(Protocol):
    """Data and objective of a run: batches of ``items`` of the ``unit``, over all ranks, e.g. 32 pairs."""

    unit: str
    items: int
    batches_per_epoch: int

    def __getitem__(self, row: int) -> dict[str, Any]:
        """Return an item, for the trainer's collator."""

    def batches(self, epoch: int) -> Rows:
        """Return the items of each batch of an epoch, int64 (batches_per_epoch, items)."""

    def begin_epoch(self, epoch: int, log: Log) -> None:
        """Prepare the items of an epoch."""

    def validate(self) -> ValidationScore | None:
        """Score the model, equal on every rank; None without held-out data."""

    def tensors(self) -> dict[str, Tensor]:
        """Return the task's own state, for resuming."""

    def restore(self, tensors: Mapping[str, Tensor]) -> None:
        """Restore the state of :meth:`tensors`."""


class Recorder(TrainerCallback):
    """Records, validation and checkpoints of one run; ``state`` is its progress.

    Args:
        identity: settings and data by name and key, equal whenever the run resumes.
        epochs: number of epochs; ``accumulation`` of batches for each optimizer step.
        log: function that receives records of the kinds start, step and epoch, on rank 0 only.
        progress: function called on each rank with the number of steps done since its last call.
    """

    def __init__(
        self,
        task: Task,
        model: nn.Module,
        config: TextConfig,
        identity: Mapping[str, Mapping[str, Any]],
        *,
        epochs: int,
        accumulation: int,
        out: Path,
        world: Ranks,
        signal: StopSignal,
        log: Log | None = None,
        progress: Progress | None = None,
    ) -> None:
        self.task, self._model, self._config, self._identity = task, model, config, identity
        self._epochs, self._accumulation, self._steps = epochs, accumulation, -(-task.batches_per_epoch // accumulation)
        self.out, self.world, self._signal = out, world, signal
        self.tell: Log = log if log is not None and world.is_main else lambda record: None
        self._advance: Progress = progress if progress is not None else lambda steps: None
        self.state = RunState()
        self._stopping, self._start = False, 0.0

    def begin(self, resume: str, about: Mapping[str, Any]) -> Path | None:
        """Return the checkpoint to resume from, after checking it; without one remove older files and score the model.

        Raises:
            TrainingError: a checkpoint of another run, or a damaged one.
        """
        found = None if resume == "never" else _newest(self.out)
        if found is not None:
            self._restore(found)
        else:
            if self.world.is_main:
                (self.out / _BEST).unlink(missing_ok=True)
                for folder in (*self.out.glob("checkpoint-*"), self.out / "best"):
                    shutil.rmtree(folder, ignore_errors=True)
                self.out.mkdir(parents=True, exist_ok=True)
            self.state.before = self.task.validate()
        before = self.state.before
        self.tell(
            {
                "kind": "start",
                "step": self.state.step,
                "total_steps": self._steps * self._epochs,
                "steps_per_epoch": self._steps,
                "ranks": self.world.size,
                "device": str(self.world.device),
                **({} if before is None else {"val_loss": before.loss, "val_mrr": before.mrr}),
                "parameters": sum(weight.numel() for weight in _trained(self._model).values()),
                **about,
            }
        )
        self._advance(self.state.step)
        return found

    @property
    def is_finished(self) -> bool:
        """True after the last epoch, or if the validation loss has stopped falling."""
        done, impatient = len(self.state.epochs), self.state.epochs_without_improvement >= self._config.patience
        return done >= self._epochs or impatient

    # Checkpoints

    def _restore(self, found: Path) -> None:
        record = read_record(found, _RUN)
        differing = [
            change
            for name, values in self._identity.items()
            for change in differences(name, record["identity"].get(name, {}), values)
        ]
        refuse_another_run(differing, found)
        check_files(found, _RUN)
        before = None if record["before"] is None else ValidationScore(**record["before"])
        self.state = RunState.of(record["progress"], torch.tensor(record["losses"], dtype=torch.float64), before)

    def check_weights(self) -> None:
        """Raise for weights that are not finite: they are not worth a checkpoint."""
        for name, weight in _trained(self._model).items():
            if not torch.isfinite(weight).all():
                raise TrainingError(f"{name} is not finite; resume with a lower learning rate", path=self.out)

    def seal(self, written: Path) -> None:
        """Give a complete checkpoint its record and its name, and remove older ones."""
        before = self.state.before
        record = {
            "identity": self._identity,
            "progress": self.state.scalars(),
            "losses": self.state.losses,
            "before": None if before is None else dataclasses.asdict(before),
        }
        write_record(written, record, _RUN)
        for path in written.iterdir():
            with path.open("r+b") as file:
                os.fsync(file.fileno())
        place = self.out / written.name
        shutil.rmtree(place, ignore_errors=True)
        written.rename(place)
        for older in self.out.glob("checkpoint-*"):
            if older != place:
                shutil.rmtree(older, ignore_errors=True)

    def write_weights(self, path: Path, *, own: bool) -> None:
        """Write the trained weights, and with ``own`` the task's tensors."""
        tensors = {name: weight.detach().cpu().contiguous() for name, weight in _trained(self._model).items()}
        if own:
            tensors |= {f"{_OWN}{name}": tensor for name, tensor in self.task.tensors().items()}
        save_file(tensors, path)

    def read_weights(self, path: Path) -> None:
        """Read the weights, and the task's tensors if there are any.

        Raises:
            TrainingError: a damaged file.
        """
        try:
            with safe_open(path, "pt") as file, torch.no_grad():
                for name, weight in _trained(self._model).items():
                    weight.copy_(file.get_tensor(name))
                own = [name for name in file.keys() if name.startswith(_OWN)]  # noqa: SIM118 -- no mapping
                self.task.restore({name.removeprefix(_OWN): file.get_tensor(name) for name in own})
        except (OSError, SafetensorError) as error:
            raise TrainingError(
                f"damaged or unreadable ({error}); start anew with resume='never'", path=path
            ) from error

    def load_best(self) -> None:
        """Load the weights of the best epoch into the model."""
        self.read_weights(self.out / _BEST)

    # Events of the trainer

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Prepare the items of an epoch."""
        self.task.begin_epoch(len(self.state.epochs), self.tell)
        self._start = time.perf_counter()

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """Record an optimizer step; save if told to stop, or if a checkpoint is due within an epoch."""
        if "loss" not in logs:
            return
        run, seconds = self.state, time.perf_counter() - self._start
        run.step = state.global_step
        run.losses.append(logs["loss"])
        run.epoch_seconds += seconds
        record = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")}
        self.tell({"kind": "step", "step": run.step, "epoch": len(run.epochs), **record, "seconds": seconds})
        self._advance(1)
        ends = run.step % self._steps == 0  # the end of an epoch is saved after scoring
        self._stopping = self.world.any(self._signal.received is not None)
        due = bool(self._config.checkpoint_every) and run.step % self._config.checkpoint_every == 0
        control.should_save = (self._stopping or due) and not ends
        self._start = time.perf_counter()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Score the model, keep the best weights, and stop early."""
        run, start, epoch = self.state, time.perf_counter(), len(self.state.epochs)
        score = self.task.validate()
        losses = run.losses[epoch * self._steps :]
        train_loss = sum(losses) / len(losses)
        val_loss, val_mrr = (train_loss, 0.0) if score is None else (score.loss, score.mrr)
        record = EpochRecord(epoch, run.step, train_loss, val_loss, val_mrr, run.epoch_seconds)
        run.epochs.append(record)
        run.train_seconds += run.epoch_seconds
        run.epoch_seconds = 0.0
        improved = score is None or run.best_val_loss is None or val_loss < run.best_val_loss
        improved |= val_loss == 0  # one held-out pair has no negatives: its loss is always 0, so the last epoch counts
        if improved:
            run.best_step, run.best_val_loss, run.best_val_mrr = run.step, val_loss, val_mrr
            if self.world.is_main:  # before the record and the checkpoint: a kill between repeats this epoch's end
                with writing(self.out / _BEST), whole_file(self.out / _BEST) as partial:
                    self.write_weights(partial, own=False)
        run.epochs_without_improvement = 0 if improved else run.epochs_without_improvement + 1
        items = len(losses) * self._accumulation * self.task.items
        self.tell(
            {
                "kind": "epoch",
                **{k: v for k, v in dataclasses.asdict(record).items() if score is not None or not k.startswith("val")},
                "validation_seconds": time.perf_counter() - start,
                f"{self.task.unit}_per_s": items / max(record.seconds, 1e-9),
                "best": improved,
                "peak_memory_bytes": peak_device_memory(self.world.device),
            }
        )
        self._stopping = self.world.any(self._signal.received is not None)
        control.should_save = True
        control.should_training_stop = self.is_finished
        give_back_memory()

    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Stop after a checkpoint, if told to."""
        self.world.any(False)  # no rank exits before rank 0 has saved
        if self._stopping:
            raise Interrupted(self._signal.received, self.state.step, self.out / f"checkpoint-{self.state.step}")
        self._start = time.perf_counter()


class Recorded(Trainer):
    """A trainer of transformers with the batches and the checkpoints of a :class:`Recorder`."""

    recorder: Recorder

    def get_train_dataloader(self) -> Any:
        """Return the batches of the task, of which each rank takes its part."""
        self.accelerator.even_batches = False
        sampler = _Batches(self.recorder)
        task: Any = self.recorder.task
        return self.accelerator.prepare(DataLoader(task, batch_sampler=sampler, collate_fn=self.data_collator))

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        norm = super()._clip_grad_norm(model)
        if not torch.isfinite(norm):
            state = self.recorder.state
            raise TrainingError(
                f"epoch {len(state.epochs) + 1}, step {state.step + 1}: the gradient is not finite: norm {float(norm)},"
                f" loss {float(self._tr_loss):.4g}; resume with a lower learning rate or with text.precision=fp32",
                path=self.recorder.out,
            )
        return norm

    def _save_checkpoint(self, model: nn.Module, trial: Any) -> None:
        recorder = self.recorder
        recorder.check_weights()
        written = Path(str(self.args.output_dir)) / f"checkpoint-{recorder.state.step}"
        with writing(written):
            super()._save_checkpoint(model, trial)
            recorder.world.any(False)  # every rank has written its part
            if recorder.world.is_main:
                recorder.seal(written)

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        folder = Path(str(output_dir))
        folder.mkdir(parents=True, exist_ok=True)
        self.recorder.write_weights(folder / _WEIGHTS, own=True)

    def _load_from_checkpoint(self, checkpoint: str, model: Any = None) -> None:
        self.recorder.read_weights(Path(checkpoint) / _WEIGHTS)


class _Batches(BatchSampler):
    """Batches of the epoch that a run is in; accelerate gives each rank its slice of every batch."""

    def __init__(self, recorder: Recorder) -> None:
        self._recorder, self.batch_size, self.drop_last = recorder, recorder.task.items, True
        self.sampler = range(0)  # accelerate looks for the random generator of this attribute

    def __len__(self) -> int:
        return self._recorder.task.batches_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._recorder.task.batches(len(self._recorder.state.epochs)).tolist()


def arguments(
    config: TextConfig, recorder: Recorder, kind: Any, *, seed: int, epochs: int, rate: float, accumulation: int
) -> Any:
    """Return the trainer's arguments, of the class ``kind``."""
    world = recorder.world
    made = kind(
        output_dir=str(recorder.out / _WRITING),
        num_train_epochs=epochs,
        per_device_train_batch_size=recorder.task.items // world.size,
        gradient_accumulation_steps=accumulation,
        learning_rate=rate,
        warmup_steps=config.warmup,  # below 1: a share of all steps
        weight_decay=config.weight_decay,
        max_grad_norm=config.grad_clip,
        bf16=config.precision == "bf16",
        use_cpu=world.device.type == "cpu",
        seed=seed % 2**32,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="epoch",
        dataloader_drop_last=True,
        accelerator_config={"split_batches": True},
        report_to="none",
        disable_tqdm=True,
    )
    if world.size == 1 and world.device.type == "cuda":
        made._n_gpu = 1  # without ranks one GPU is used, the model's own, not all of them
        vars(made)["__cached__setup_devices"] = world.device
        torch.cuda.set_device(world.device)
    return made


def learn(recorder: Recorder, trainer: Callable[[], Recorded], *, resume: str, about: Mapping[str, Any]) -> RunState:
    """Train, or resume; leave the model with its best weights.

    Args:
        trainer: returns the trainer; not called for a finished run.
        about: entries of the first record.

    Raises:
        TrainingError: a checkpoint of another run, a gradient that is not finite, a full disk.
        Interrupted: a signal; the state is saved.
    """
    reset_peak_gpu_memory(recorder.world.device)
    found = recorder.begin(resume, about)
    if not recorder.is_finished:
        with _quiet():
            running = trainer()
            running.recorder = recorder
            running.remove_callback(PrinterCallback)
            running.add_callback(recorder)
            try:
                running.train(resume_from_checkpoint=None if found is None else str(found))
            finally:
                for name in ("forward", "_original_forward"):  # accelerate wraps the method of the instance
                    vars(running.model).pop(name, None)
    shutil.rmtree(recorder.out / _WRITING, ignore_errors=True)
    if recorder.state.epochs:
        recorder.world.any(False)  # no rank reads before rank 0 has written
        recorder.load_best()
    return recorder.state


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Turn the failures of writing in the block into an error with a fix."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:  # torch.save raises RuntimeError on a full disk
        if isinstance(error, TrainingError):
            raise
        raise TrainingError(
            f"cannot be written ({error}); the earlier checkpoint is intact. Free space or choose another folder, then "
            "repeat the call to resume",
            path=path,
        ) from error


def _newest(out: Path) -> Path | None:
    found = [path for path in out.glob("checkpoint-*") if path.name.partition("-")[2].isdigit()]
    return max(found, key=lambda path: int(path.name.partition("-")[2]), default=None)


def _trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence the libraries' notes; errors remain."""
    loggers = [logging.getLogger(name) for name in ("sentence_transformers", "accelerate")]
    before, level = [logger.level for logger in loggers], library_logging.get_verbosity()
    library_logging.set_verbosity_error()
    for logger in loggers:
        logger.setLevel(logging.ERROR)
    try:
        yield
    finally:
        library_logging.set_verbosity(level)
        for logger, old in zip(loggers, before, strict=True):
            logger.setLevel(old)
