"""Domain-adaptive pretraining: masked language modelling over the texts of a collection, before fine-tuning.

    encoder = open_encoder("modernbert")
    result = pretrain(TextConfig(...), encoder, texts, out=Path("pretrained"), seed=42, log=print)
    result.losses[0], result.losses[-1]      # (3.1, 1.4)
    finetune(config, encoder, pairs, ...)    # or later, open_encoder("pretrained/best")

Texts become windows of tokens that overlap by some tokens. A share of the tokens of a window is hidden, drawn again in
every epoch, and the model predicts them. Its head is the published one if the encoder's folder has it, as ModernBERT's
does, and a new one otherwise; the head is not kept. Source: ModernBERT thesis, section 4 (b): windows of 1,024 tokens,
126 shared, 15 % hidden, three epochs.

Windows are in ``OUT/windows-RANK.arrow`` and are read on demand. Interruption and ranks work as in
:mod:`mathamr.text.finetuning`.
"""

from __future__ import annotations

import dataclasses
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, cast

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from graphs import digests
from graphs.errors import ConfigError, TrainingError
from mathamr.evaluation.efficiency import peak_device_memory
from mathamr.text import finetuning
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder
from mathamr.text.training.adapting import check_length, fingerprint, own_randomness, transformers_of, world_of
from mathamr.text.training.batches import Rows
from mathamr.text.training.tasks import Task
from mathamr.training.interruption import listen
from mathamr.training.loop import Log, Progress
from mathamr.training.seeds import AUGMENTATION, ORDER, drawn_from, stream

_NO_LABEL = -100  # label of visible tokens, as in the library
_BATCHES_A_POOL = 64  # batches whose windows are sorted by length together
_MIN_TOKENS = 8  # fewest tokens of a window: fewer predict nothing


@dataclass(frozen=True)
class Pretrained:
    """Result of pretraining.

    Attributes:
        best: folder of the encoder.
        losses: loss of every step, mean over hidden tokens.
        windows: number of training windows.
        costs: columns of a table: pretraining_seconds, pretraining_windows_per_second, peak_memory_bytes.
    """

    best: Path
    losses: tuple[float, ...]
    windows: int
    costs: Mapping[str, float]


def pretrain(
    config: TextConfig,
    encoder: TextEncoder,
    texts: Iterable[str],
    *,
    out: Path,
    seed: int,
    log: Log | None = None,
    resume: Literal["auto", "never"] = "auto",
    progress: Progress | None = None,
) -> Pretrained:
    """Train ``encoder`` in place for ``config.pretraining_epochs``; ``OUT/best`` is the same on disk.

    Raises:
        ConfigError: a window longer than the encoder's limit, two encoders in one, no epochs.
        TrainingError: texts that do not fill a batch, a gradient that is not finite, a checkpoint of another run.
        Interrupted: a signal; the same call resumes.
    """
    if not config.pretraining_epochs:
        raise ConfigError("text.pretraining_epochs=0 trains nothing; use at least 1")
    transformers = transformers_of(encoder)
    if len(transformers) > 1:
        raise ConfigError(
            f"{encoder.name} has two encoders, for queries and documents; pretrain it before separating them"
        )
    from mathamr.text.training.runs import learn  # slow to import

    encoder.model.float()  # steps of training are too small for a checkpoint in bf16
    came_as = fingerprint(encoder)
    [transformer] = transformers
    check_length(encoder, config.pretraining_window, "text.pretraining_window")
    with world_of(encoder.model) as world, listen() as signal, own_randomness(world):
        torch.manual_seed(stream(seed, ORDER))
        model = _with_head(transformer)
        out.mkdir(parents=True, exist_ok=True)
        place = out / f"windows-{world.rank}.arrow"  # ranks may be on different machines
        if config.pretraining_texts is not None:
            texts = sample_texts(texts, config.pretraining_texts)
        windows = windows_of(transformer.tokenizer, texts, config.pretraining_window, config.pretraining_overlap, place)
        training = {"seed": seed, "texts": digests.of_file(place)[:16], "encoder": came_as}
        stage = dataclasses.replace(
            config,
            epochs=config.pretraining_epochs,
            learning_rate=config.pretraining_learning_rate,
            patience=config.pretraining_epochs,
            gradient_accumulation=1,
            lora=0,
        )
        task = _Masked(stage, encoder, model.to(world.device), seed, world, transformer.tokenizer, windows)
        state = learn(
            task,
            {"text": depends_on(config), "training": training},
            out=out,
            signal=signal,
            resume=resume,
            about={"windows": len(windows)},
            log=log,
            progress=progress,
        )
        encoder.model.eval()
        seconds = max(state.train_seconds, 1e-9)
        costs = {
            "pretraining_seconds": seconds,
            "pretraining_windows_per_second": state.step * task.items / seconds,
            "peak_memory_bytes": peak_device_memory(world.device),
        }
        return Pretrained(out / "best", tuple(state.losses), len(windows), costs)


def depends_on(config: TextConfig) -> dict[str, Any]:
    """Return the settings that a pretrained encoder depends on."""
    return {
        key: value
        for key, value in dataclasses.asdict(config).items()
        if key.startswith("pretraining_") or key in ("precision", "warmup", "weight_decay", "grad_clip")
        if (key, value) != ("pretraining_texts", None)  # keys stay unchanged without a limit
    }


def sample_texts(texts: Iterable[str], most: int) -> list[str]:
    """Return at most ``most`` of the texts, drawn at random in one pass; the same for equal texts.

    >>> sample_texts(["a", "b"], 3), len(sample_texts(map(str, range(100)), 3))
    (['a', 'b'], 3)
    """
    generator, kept = random.Random(0), list[str]()
    for number, text in enumerate(texts):
        if number < most:
            kept.append(text)
        elif (place := generator.randrange(number + 1)) < most:
            kept[place] = text
    return kept


def tidy(out: Path) -> None:
    """Remove files from ``out`` that only unfinished pretraining needs."""
    finetuning.tidy(out)
    for windows in out.glob("windows-*.arrow"):
        windows.unlink()


def windows_of(tokenizer: Any, texts: Iterable[str], size: int, overlap: int, path: Path) -> Any:
    """Return windows of token ids, each between the tokenizer's marks, as a data set that is read from ``path``."""
    from datasets import Dataset, Features, List, Value
    from datasets.arrow_writer import ArrowWriter

    features = Features({"input_ids": List(Value("int32")), "length": Value("int32")})
    with ArrowWriter(features=features, path=str(path)) as writer:
        for text in texts:
            found = tokenizer(text, truncation=True, max_length=size, stride=overlap, return_overflowing_tokens=True)
            for ids in found["input_ids"]:
                if len(ids) >= _MIN_TOKENS:
                    writer.write({"input_ids": ids, "length": len(ids)})
        writer.finalize()
    return Dataset.from_file(str(path))


@dataclass(eq=False)
class _Masked(Task):
    """Windows with hidden tokens, for a model with a head."""

    tokenizer: Any
    windows: Any

    unit, setting = "windows", "pretraining_batch_size"

    def __post_init__(self) -> None:
        from transformers import DataCollatorForLanguageModeling

        super().__post_init__()
        self._lengths = self.windows.data.column("length").to_numpy()
        self._hide = DataCollatorForLanguageModeling(self.tokenizer, mlm_probability=self.config.pretraining_mask)

    def count_batches(self) -> int:
        if len(self.windows) < self.batch_size:
            raise TrainingError(
                f"{len(self.windows)} windows of text do not fill a batch of text.pretraining_batch_size="
                f"{self.batch_size}; use more texts, or smaller batches"
            )
        return len(self.windows) // self.batch_size

    def __getitem__(self, row: int) -> dict[str, Any]:
        return {"input_ids": self.windows[row]["input_ids"], "row": row}

    def _collated(self, items: Sequence[dict[str, Any]]) -> Any:
        """Return a batch of windows; the hidden tokens depend only on the epoch and the first window."""
        rows = [item.pop("row") for item in items]
        with drawn_from(stream(self.seed, AUGMENTATION, self.epoch, rows[0])):
            return self._hide(list(items))

    def batches(self, epoch: int) -> Rows:
        """Shuffle the windows, keeping windows of similar length together, which saves padding."""
        generator = np.random.default_rng(stream(self.seed, ORDER, epoch))
        order = generator.permutation(len(self.windows))[: self.batches_per_epoch * self.batch_size]
        pool = _BATCHES_A_POOL * self.batch_size
        for start in range(0, len(order), pool):
            part = order[start : start + pool]
            order[start : start + pool] = part[np.argsort(self._lengths[part], kind="stable")]
        return generator.permutation(order.reshape(self.batches_per_epoch, self.batch_size))

    def trainer(self, arguments: Callable[[type], Any]) -> Any:
        """Return the trainer of transformers, with logits of hidden tokens only."""
        from transformers import TrainingArguments

        from mathamr.text.training.runs import Recorded

        class Pretraining(Recorded):
            def compute_loss(
                self, model: Any, inputs: dict[str, Any], return_outputs: bool = False, num_items_in_batch: Any = None
            ) -> Tensor:
                """Compute the mean over the hidden tokens of all ranks."""
                labels, inner = inputs.pop("labels"), cast(Any, self.model)
                hidden = labels != _NO_LABEL
                logits = logits_at(model, inputs, hidden, inner.get_output_embeddings())
                every = self.accelerator.reduce(hidden.sum(), "sum").clamp(min=1)
                total = functional.cross_entropy(logits.float(), labels[hidden], reduction="sum")
                return total / every * self.args.world_size  # gradients are averaged over ranks

        return Pretraining(model=self.model, args=arguments(TrainingArguments), data_collator=self._collated)


def logits_at(model: Any, inputs: Mapping[str, Tensor], positions: Tensor, decoder: Any) -> Tensor:
    """Compute ``model(**inputs).logits[asked]`` (asked tokens, vocabulary) only there, which halves MiniLM's products.

    Args:
        positions: mask of these tokens (texts, tokens).
        decoder: last module of the model, which makes the logits.
    """

    def those(module: torch.nn.Module, states: tuple[Tensor]) -> tuple[Tensor]:
        [state] = states
        return (state[positions],) if state.shape[:-1] == positions.shape else states

    hook = decoder.register_forward_pre_hook(those)
    try:
        logits: Tensor = model(**inputs).logits
    finally:
        hook.remove()
    return logits[positions] if logits.shape[:-1] == positions.shape else logits


def _with_head(transformer: Any) -> Any:
    """Return the encoder's own weights under a head that predicts hidden tokens."""
    from transformers import AutoModelForMaskedLM, logging

    body, level = transformer.auto_model, logging.get_verbosity()
    commit = getattr(body.config, "_commit_hash", None)  # of a model of the hub: text.revision, or the newest then
    place = {} if commit is None else {"revision": commit}
    logging.set_verbosity_error()  # without a published head: suppress the table of missing weights
    try:
        model = AutoModelForMaskedLM.from_pretrained(body.config._name_or_path, dtype=torch.float32, **place)
    finally:
        logging.set_verbosity(level)
    setattr(model, model.base_model_prefix, body)
    model.tie_weights()
    return model
