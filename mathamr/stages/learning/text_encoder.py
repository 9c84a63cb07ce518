"""Training of a text encoder: texts and pairs -> a folder of sentence-transformers.

train_text_encoder(TextConfig(...), pairs, Path("model"), Console(), seed=42).best      # PosixPath('model/best')
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Literal

from graphs.shared_files import key, locked, read_json, write_json
from mathamr.negatives.text import Mining
from mathamr.stages.console import Console
from mathamr.stages.learning.passages import text_lines
from mathamr.stages.learning.reporting import JsonLines, training_stage
from mathamr.text import linearize
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder, open_encoder
from mathamr.text.finetuning import Finetuned, finetune
from mathamr.text.pairs import PairFile
from mathamr.text.pretraining import depends_on, pretrain, tidy
from mathamr.text.training import batches
from mathamr.text.training.adapting import fingerprint
from mathamr.text.training.encoder_files import write_record
from mathamr.text.training.tiny import make_tiny


def train_text_encoder(
    config: TextConfig,
    pairs: PairFile,
    out: Path,
    console: Console,
    *,
    seed: int,
    validation: PairFile | None = None,
    texts: Path | None = None,
    resume: Literal["auto", "never"] = "auto",
) -> Finetuned:
    """Pretrain where the configuration asks for it, then fine-tune; ``OUT/log.jsonl`` has the records.

    Args:
        out: folder of the encoder; pretraining goes to ``OUT/pretrained``.
        texts: texts to pretrain on, one a line; None: the documents of ``pairs``.
        validation: pairs to choose the best epoch by; None: a part of ``pairs``.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.text.finetuning.finetune`.
        CorpusError: ``texts`` cannot be read.
    """
    out.mkdir(parents=True, exist_ok=True)
    encoder, log = encoder_for(config, pairs, out, anew=resume == "never"), JsonLines(out / "log.jsonl")
    if encoder.notice and config.encoder != "tiny":
        console.say(f"  {encoder.notice}")
    if config.pretraining_epochs:
        read = (pair.document for pair in pairs) if texts is None else text_lines(texts)
        place = out / "pretrained"
        with training_stage("pretraining", console, log) as report:
            pretrain(config, encoder, read, out=place, seed=seed, log=report, resume=resume, progress=report.progress)
    with training_stage("fine-tuning", console, log) as report:
        return finetune(
            config,
            encoder,
            pairs,
            validation=validation,
            out=out,
            seed=seed,
            log=report,
            mining=Mining,
            resume=resume,
            progress=report.progress,
        )


def encoder_for(config: TextConfig, pairs: PairFile, out: Path, *, anew: bool = False) -> TextEncoder:
    """Open the encoder of a configuration; ``tiny`` is made of ``pairs``, in ``OUT/tiny-RANK``, again if ``anew``."""
    if config.encoder != "tiny":
        return open_encoder(config.encoder, opening=config.opening)
    folder = out / f"tiny-{os.environ.get('RANK', '0')}"
    if anew and folder.exists():
        shutil.rmtree(folder)
    if not folder.exists():
        make_tiny((text for pair in pairs for text in (pair.query, pair.document)), folder)
    encoder = open_encoder(str(folder), opening=config.opening)
    encoder.name = config.encoder
    return encoder


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


def pretrained(
    config: TextConfig,
    encoder: TextEncoder,
    texts: Callable[[], Iterable[str]],
    places: Path,
    *,
    seed: int,
    console: Console,
    texts_hash: str | None = None,
) -> tuple[Path, Mapping[str, float]]:
    """Return the folder of ``encoder`` after pretraining, and its costs, whichever process has done it.

    All models that begin with the same encoder share it: pretraining is the longer part, and is done once a seed, in
    ``places/KEY``, by one process while others wait, and goes on where it was interrupted. KEY is a hash of the
    encoder's weights, of the settings and of the way formulas are written.

    Args:
        texts: returns the texts of the collection, each time anew.
        places: folder of all pretrained encoders of the collection.
        texts_hash: hash of the texts, if they are not those of the collection.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.text.pretraining.pretrain`.
    """
    written = linearize.VERSION if config.linearize else False
    known = {"encoder": fingerprint(encoder), "seed": seed, "linearize": written, "batches": batches.VERSION}
    known |= depends_on(config)
    known |= {} if texts_hash is None else {"texts": texts_hash}
    place = places / key(known)
    place.mkdir(parents=True, exist_ok=True)
    with locked(place / ".lock", wait=True):
        if (costs := read_json(place / "costs.json")) is not None:
            console.say(f"  pretrained encoder {place.name} is there already")
            return place / "best", costs
        with training_stage("pretraining", console) as report:
            done = pretrain(config, encoder, texts(), out=place, seed=seed, log=report, progress=report.progress)
        tidy(place)
        write_record(done.best, {"encoder": config.encoder, "identity": place.name})
        write_json(place / "costs.json", done.costs)
    return done.best, done.costs
