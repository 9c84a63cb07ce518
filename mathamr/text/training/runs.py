"""Training runs of text encoders on the trainers of transformers and sentence-transformers.

    state = learn(task, identity, out=out, signal=signal)
    state.best_val_loss                                 # 1.42, and the encoder has the weights of that step

The library's trainer takes the steps: AdamW, learning rate, clipping, bf16, accumulation, and DDP. It reports to a
:class:`mathamr.training.loop.Run`, which has the records, validation, early stopping and signals.

``OUT/checkpoint-STEP`` is the trainer's checkpoint with ``run.json``: identity and progress of the run, and digests of
all files. It is written elsewhere, then renamed. A resumed run reads it only if identity and digests agree: weights
from safetensors; optimizer, schedule and random generators from files of ``torch.save``, which the library opens with
``weights_only``. ``OUT/best.safetensors`` has the weights of the lowest validation loss.
"""

from __future__ import annotations

import dataclasses
import logging
import os
import shutil
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor, nn
from torch.utils.data import BatchSampler, DataLoader
from transformers import PrinterCallback, Trainer, TrainerCallback

from graphs.errors import TrainingError
from graphs.whole_file import whole_file
from mathamr.text.training.adapting import export, prepared
from mathamr.text.training.encoder_files import check_files, read_record, write_record
from mathamr.text.training.tasks import Task
from mathamr.training.interruption import StopSignal
from mathamr.training.loop import Log, Progress, Run
from mathamr.training.result import RunState, ValidationScore, differences, refuse_another_run
from mathamr.training.seeds import AUGMENTATION, stream

_WEIGHTS, _RUN, _WRITING = "model.safetensors", "run.json", ".writing"
_OWN = "task."  # prefix of the task's tensors, beside those of the model


def learn(
    task: Task,
    identity: Mapping[str, Mapping[str, Any]],
    *,
    out: Path,
    signal: StopSignal,
    resume: str,
    about: Mapping[str, Any],
    log: Log | None,
    progress: Progress | None,
    tokens: bool = False,
) -> RunState:
    """Train the model of ``task``, or resume a run of the same ``identity``; its best weights are also in ``OUT/best``.

    Args:
        identity: settings and data by name and key, equal whenever the run resumes.
        about: entries of the first record; ``log`` and ``progress`` as of :meth:`mathamr.training.loop.Run.start`.
        tokens: the encoder is trained for late interaction, as the card of ``OUT/best`` then says.

    Raises:
        TrainingError: a checkpoint of another run, a gradient that is not finite, a full disk.
        Interrupted: a signal; the state is saved.
    """
    config, world = task.config, task.world
    with prepared(task.encoder, config):
        checkpoints = _Checkpoints(task, identity, out)
        run = Run(task, checkpoints, config, world, signal)
        run.begin(resume)
        if run.state.before is None:
            run.state.before = task.validate()
        parameters = sum(weight.numel() for weight in _trained(task.model).values())
        run.start({"parameters": parameters, **about}, log, progress)
        if not run.is_finished:
            with _without_notes():
                trainer: Recorded = task.trainer(partial(_arguments, task, out))
                trainer.recorded(run, task, checkpoints)
                try:
                    trainer.train(resume_from_checkpoint=str(checkpoints.last) if run.state.step else None)
                finally:
                    for name in ("forward", "_original_forward"):  # accelerate wraps the method of the instance
                        vars(trainer.model).pop(name, None)
        if run.state.epochs:
            world.any(False)  # no rank reads before rank 0 has written
            checkpoints.read(checkpoints.best)
    if world.is_main and not (out / "best").exists():
        export(task.encoder, out / "best", linearize=config.linearize, tokens=tokens)
    world.any(False)  # no rank opens the folder before it exists
    return run.state


class Recorded(Trainer):
    """A trainer of transformers with the batches of a :class:`Task`, the records of a run and its checkpoints."""

    def recorded(self, run: Run, task: Task, checkpoints: _Checkpoints) -> None:
        """Report to ``run``, and nowhere else."""
        self.run, self.task, self.checkpoints = run, task, checkpoints
        checkpoints.trainer = self
        self.remove_callback(PrinterCallback)
        self.add_callback(_Reports(run, task))

    def get_train_dataloader(self) -> Any:
        """Return the batches of the task, of which each rank takes its part."""
        self.accelerator.even_batches = False
        items: Any = self.task
        return self.accelerator.prepare(
            DataLoader(items, batch_sampler=_Batches(self.task), collate_fn=self.data_collator)
        )

    def store_flos(self) -> None:
        """Count no operations: ranks would add theirs up, and rank 0 saves alone."""

    def _clip_grad_norm(self, model: nn.Module) -> Tensor:
        norm = super()._clip_grad_norm(model)
        if not torch.isfinite(norm):
            state = self.run.state
            raise TrainingError(
                f"epoch {len(state.epochs) + 1}, step {state.step + 1}: the gradient is not finite: norm {float(norm)},"
                f" loss {float(self._tr_loss):.4g}; start anew (--resume never) with a lower learning rate or "
                "text.precision=fp32",
                path=self.checkpoints.last,
            )
        return norm

    def _save(self, output_dir: str | None = None, state_dict: Any = None) -> None:
        self.checkpoints.write(Path(str(output_dir), _WEIGHTS), self.task.tensors())

    def _load_from_checkpoint(self, checkpoint: str, model: Any = None) -> None:
        self.checkpoints.read(Path(checkpoint, _WEIGHTS))


class _Reports(TrainerCallback):
    """Calls of a run between the steps of a trainer."""

    def __init__(self, run: Run, task: Task) -> None:
        self._run, self._task, self._start = run, task, 0.0

    def on_epoch_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._task.begin_epoch(len(self._run.state.epochs), self._run.tell)
        self._start = time.perf_counter()

    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        done = self._run.state  # dropout depends on the step and the rank: only rank 0 saves random generators
        torch.manual_seed(stream(args.seed, AUGMENTATION, len(done.epochs), done.step, args.process_index))

    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        if "loss" not in logs:
            return  # the trainer's own summary
        record = {name: logs[name] for name in ("loss", "grad_norm", "learning_rate")}
        self._run.count_step({**record, "seconds": time.perf_counter() - self._start})
        if self._run.state.step < self._run.end_of_epoch:  # the trainer resumes behind the end of an epoch
            self._run.stop_if_told()
            self._run.save_if_due()
        self._start = time.perf_counter()

    def on_epoch_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        self._run.end_epoch()
        self._run.stop_if_told()
        control.should_training_stop = self._run.is_finished


class _Batches(BatchSampler):
    """Batches of the epoch that a task is in; accelerate gives each rank its slice of every batch."""

    def __init__(self, task: Task) -> None:
        self._task, self.batch_size, self.drop_last = task, task.batch_size, True
        self.sampler = range(0)  # accelerate looks for the random generator of this attribute

    def __len__(self) -> int:
        return self._task.batches_per_epoch

    def __iter__(self) -> Iterator[list[int]]:
        yield from self._task.batches(self._task.epoch).tolist()


class _Checkpoints:
    """``OUT/checkpoint-STEP`` and ``OUT/best.safetensors``: a :class:`mathamr.training.loop.Checkpoints`."""

    trainer: Recorded

    def __init__(self, task: Task, identity: Mapping[str, Mapping[str, Any]], out: Path) -> None:
        self._task, self._model, self._identity, self._out = task, task.model, identity, out
        self.best = out / "best.safetensors"

    @property
    def last(self) -> Path:
        return max(self._all(), key=lambda path: int(path.name.removeprefix("checkpoint-")), default=self._out)

    def _all(self) -> list[Path]:
        return [path for path in self._out.glob("checkpoint-*") if path.name.removeprefix("checkpoint-").isdecimal()]

    def restore(self) -> RunState | None:
        """Read the progress of ``last``, after checking it; the trainer reads the rest."""
        last = self.last
        if last == self._out:
            return None
        record = read_record(last, _RUN)
        differing = [
            change
            for name, values in self._identity.items()
            for change in differences(name, record["identity"].get(name, {}), values)
        ]
        refuse_another_run(differing, last)
        check_files(last, _RUN)
        before = None if record["before"] is None else ValidationScore(**record["before"])
        return RunState.of(record["progress"], torch.tensor(record["losses"], dtype=torch.float64), before)

    def remove(self) -> None:
        """Delete both, and the encoder exported from them."""
        self._out.mkdir(parents=True, exist_ok=True)
        self.best.unlink(missing_ok=True)
        for folder in (*self._all(), self._out / "best"):
            shutil.rmtree(folder, ignore_errors=True)

    def save_last(self, state: RunState) -> None:
        """Write a checkpoint, and remove older ones; a step that is saved is not saved again."""
        written = self._out / _WRITING / f"checkpoint-{state.step}"
        place = self._out / written.name
        if place.exists():
            return
        record = {
            "identity": self._identity,
            "progress": state.scalars(),
            "losses": state.losses,
            "before": None if state.before is None else dataclasses.asdict(state.before),
        }
        with _writing(written):
            shutil.rmtree(written.parent, ignore_errors=True)
            self.trainer._save_checkpoint(self._model, None)
            write_record(written, record, _RUN)
            for path in written.iterdir():
                with path.open("r+b") as file:
                    os.fsync(file.fileno())
            written.rename(place)
            shutil.rmtree(written.parent)
        for older in self._all():
            if older != place:
                shutil.rmtree(older, ignore_errors=True)

    def save_best(self, state: RunState) -> None:
        with _writing(self.best), whole_file(self.best) as partial_file:
            self.write(partial_file, {})

    def write(self, path: Path, own: Mapping[str, Tensor]) -> None:
        """Write the trained weights, and the task's ``own`` tensors."""
        path.parent.mkdir(parents=True, exist_ok=True)
        tensors = {name: weight.detach().cpu().contiguous() for name, weight in _trained(self._model).items()}
        save_file({**tensors, **{f"{_OWN}{name}": tensor for name, tensor in own.items()}}, path)

    def read(self, path: Path) -> None:
        """Read what :meth:`write` has written; raise TrainingError for a damaged file."""
        try:
            with safe_open(path, "pt") as file, torch.no_grad():
                for name, weight in _trained(self._model).items():
                    weight.copy_(file.get_tensor(name))
                own = [name for name in list(file.keys()) if name.startswith(_OWN)]
                self._task.restore({name.removeprefix(_OWN): file.get_tensor(name) for name in own})
        except (OSError, SafetensorError) as error:
            raise TrainingError(f"damaged or unreadable ({error}); start anew (--resume never)", path=path) from error


def _arguments(task: Task, out: Path, kind: Callable[..., Any]) -> Any:
    """Return the trainer's arguments, of the class ``kind``."""
    config, world = task.config, task.world
    arguments = kind(
        output_dir=str(out / _WRITING),
        num_train_epochs=config.epochs,
        per_device_train_batch_size=task.batch_size // world.size,
        gradient_accumulation_steps=config.gradient_accumulation,
        learning_rate=config.learning_rate,
        warmup_steps=config.warmup,  # below 1: a share of all steps
        weight_decay=config.weight_decay,
        max_grad_norm=config.grad_clip,
        bf16=config.precision == "bf16",
        use_cpu=world.device.type == "cpu",
        seed=task.seed % 2**32,
        logging_steps=1,
        logging_nan_inf_filter=False,
        save_strategy="no",
        dataloader_drop_last=True,
        accelerator_config={"split_batches": True},
        ddp_find_unused_parameters=True,  # such as BERT's pooler, also with checkpointing
        report_to="none",
        disable_tqdm=True,
    )
    arguments.mixed_precision = "bf16" if arguments.bf16 else "no"  # overrides ACCELERATE_MIXED_PRECISION
    if world.size == 1 and world.device.type == "cuda":
        arguments._n_gpu = 1  # without ranks one GPU is used, the model's own, not all of them
        vars(arguments)["__cached__setup_devices"] = world.device
        torch.cuda.set_device(world.device)
    return arguments


def _trained(model: nn.Module) -> dict[str, nn.Parameter]:
    return {name: weight for name, weight in model.named_parameters() if weight.requires_grad}


@contextmanager
def _writing(path: Path) -> Iterator[None]:
    """Turn the failures of writing in the block into an error with a fix."""
    try:
        yield
    except (OSError, RuntimeError, SafetensorError) as error:  # torch.save raises RuntimeError on a full disk
        raise TrainingError(
            f"cannot be written ({error}); the earlier checkpoint is intact. Free space or choose another folder, then "
            "repeat the call to resume",
            path=path,
        ) from error


@contextmanager
def _without_notes() -> Iterator[None]:
    """Silence the libraries' notes and warnings."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", ".*all_gather is deprecated", FutureWarning)
            yield
    finally:
        logging.disable(before)
