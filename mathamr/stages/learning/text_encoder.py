"""Training of a text encoder: texts and pairs -> a folder of sentence-transformers.

encoder = encoder_for(TextConfig(...), pairs, Path("model"))
pretrain_encoder(config, encoder, texts, Path("model/pretrained"), Console(), seed=42)
finetune_encoder(config, encoder, pairs, Path("model"), Console(), seed=42).best      # PosixPath('model/best')
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from mathamr.stages.console import Console
from mathamr.stages.learning.reporting import Log, training_stage
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder, make_tiny, open_encoder
from mathamr.text.finetuning import Finetuned, finetune
from mathamr.text.pairs import PairFile
from mathamr.text.pretraining import Pretrained, pretrain


def pretrain_encoder(
    config: TextConfig,
    encoder: TextEncoder,
    texts: Iterable[str],
    out: Path,
    console: Console,
    *,
    seed: int,
    log: Log | None = None,
    resume: Literal["auto", "never"] = "auto",
) -> Pretrained:
    """Pretrain ``encoder`` in place on texts; ``OUT/best`` is the same on disk.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.text.pretraining.pretrain`.
    """
    with training_stage("pretraining", console, log) as report:
        return pretrain(config, encoder, texts, out=out, seed=seed, log=report, resume=resume, progress=report.progress)


def finetune_encoder(
    config: TextConfig,
    encoder: TextEncoder,
    pairs: PairFile,
    out: Path,
    console: Console,
    *,
    seed: int,
    validation: PairFile | None = None,
    log: Log | None = None,
    resume: Literal["auto", "never"] = "auto",
) -> Finetuned:
    """Fine-tune ``encoder`` on pairs; ``OUT/best`` has the weights of the lowest validation loss.

    Args:
        validation: pairs to choose the best epoch by; None: a part of ``pairs``.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.text.finetuning.finetune`.
    """
    with training_stage("fine-tuning", console, log) as report:
        return finetune(
            config,
            encoder,
            pairs,
            validation=validation,
            out=out,
            seed=seed,
            log=report,
            resume=resume,
            progress=report.progress,
        )


def encoder_for(config: TextConfig, pairs: PairFile, out: Path) -> TextEncoder:
    """Open the encoder of a configuration; ``tiny`` is made of the texts of ``pairs``, in ``OUT/tiny-RANK``."""
    if config.encoder != "tiny":
        return open_encoder(config.encoder)
    folder = out / f"tiny-{os.environ.get('RANK', '0')}"
    if folder.exists():
        return open_encoder(str(folder))
    return make_tiny((text for pair in pairs for text in (pair.query, pair.document)), folder)


def summary(result: Finetuned) -> str:
    """Return what a reader wants to know of a training, line by line."""
    costs = result.costs
    lines = {
        "best": f"{result.best}: validation loss {result.best_val_loss:.4f}, MRR {result.best_val_mrr:.4f}",
        "before": f"validation loss {result.before.loss:.4f}, MRR {result.before.mrr:.4f}",
        "pairs": f"{costs['train_pairs']:,} trained on",
        "epochs": f"{costs['epochs']}{', stopped early' if result.stopped_early else ''}",
        "peak memory": f"{costs['peak_memory_bytes'] / 2**20:,.0f} MiB",
        "parameters": f"{costs['parameters']:,}",
    }
    if "pairs_per_second" in costs:
        lines["speed"] = f"{costs['pairs_per_second']:,.1f} pairs/s"
    return "\n".join(f"{name + ':':13}{text}" for name, text in lines.items())
