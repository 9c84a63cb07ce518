"""Fine-tune a text encoder on a file of pairs, and print a summary.

    python scripts/finetune_text.py --pairs pairs.jsonl --out model
    python scripts/finetune_text.py --pairs pairs.jsonl --out model text=thesis text.epochs=1
    python scripts/finetune_text.py --pairs pairs.jsonl --out model text.pretraining_epochs=3 --texts texts.txt
    torchrun --nproc-per-node 4 scripts/finetune_text.py --pairs pairs.jsonl --out model

scripts/text_pairs.py makes the file of pairs. Any key of the group ``text`` of ``conf/`` can be set. ``model/best`` is
the encoder of the lowest validation loss, a folder of sentence-transformers; ``model/log.jsonl`` has a record for every
step. With ``text.pretraining_epochs`` the encoder is pretrained first, into ``model/pretrained``, on ``--texts`` (one a
line) or the documents of the pairs. The encoder ``tiny`` is made of the pairs' texts, in ``model/tiny-RANK``. The same
command goes on where an interrupted run stopped.

Exit codes: 0 trained; 2 a message says what is wrong; 75 stopped by SIGTERM, SIGUSR1 or Ctrl-C, saved: run it again to
go on; 130 stopped by a second Ctrl-C, which does not wait.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from train import ended, read_groups  # type: ignore[import-not-found]  # a neighbour: scripts are no package

from graphs.errors import CorpusError
from mathamr.negatives import mining
from mathamr.negatives.text import Mining
from mathamr.stages.console import Console, Stage
from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder, make_tiny, open_encoder
from mathamr.text.finetuning import Finetuned, finetune
from mathamr.text.pairs import PairFile
from mathamr.text.pretraining import pretrain


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n\n")[0], epilog="The head of this file has more.")
    parser.add_argument("--pairs", type=Path, required=True, help="JSON lines of scripts/text_pairs.py")
    parser.add_argument("--validation", type=Path, help="other pairs to choose the best epoch by; default: a part")
    parser.add_argument("--texts", type=Path, help="texts to pretrain on, one a line; default: the pairs' documents")
    parser.add_argument("--out", type=Path, required=True, help="folder of the encoder")
    parser.add_argument("--seed", type=int, default=42, help="of order, negatives and dropout")
    parser.add_argument("--resume", choices=("auto", "never"), default="auto", help="never: start anew")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="e.g. text=thesis text.epochs=3")
    given = parser.parse_args(arguments)

    def work() -> str:
        [settings] = read_groups(given.settings, "text")
        return summary(run(TextConfig(**settings), given))

    return ended(work)


def run(config: TextConfig, given: argparse.Namespace) -> Finetuned:
    """Pretrain where that is asked for, then fine-tune, with progress on the terminal and records in ``log.jsonl``."""
    console, out = Console(), given.out
    out.mkdir(parents=True, exist_ok=True)
    pairs = PairFile(given.pairs)
    validation = None if given.validation is None else PairFile(given.validation)
    encoder = _encoder(config, pairs, out)
    shared: dict[str, Any] = {"seed": given.seed, "resume": given.resume}
    if config.pretraining_epochs:
        texts = (pair.document for pair in pairs) if given.texts is None else _lines(given.texts)
        with console.stage("pretraining", unit="steps") as advance:
            log = _log(console, advance, out)
            pretrain(config, encoder, texts, out=out / "pretrained", log=log, progress=advance, **shared)
    with console.stage("fine-tuning", unit="steps") as advance:
        log = _log(console, advance, out)
        shared |= {"validation": validation, "mining": Mining}
        return finetune(config, encoder, pairs, out=out, log=log, progress=advance, **shared)


def _encoder(config: TextConfig, pairs: PairFile, out: Path) -> TextEncoder:
    if config.encoder != "tiny":
        return open_encoder(config.encoder)
    folder = out / f"tiny-{_rank()}"
    if folder.exists():
        return open_encoder(str(folder))
    return make_tiny((text for pair in pairs for text in (pair.query, pair.document)), folder)


def _log(console: Console, advance: Stage, out: Path) -> Callable[[dict[str, Any]], None]:
    def log(record: dict[str, Any]) -> None:
        if record["kind"] == "start":
            advance.expect(record["total_steps"])
        elif record["kind"] == "negatives":
            console.say(f"  {mining.as_text(record)}")
        elif record["kind"] == "epoch":
            scores = [f"loss {record['train_loss']:.4f}", f"{record['seconds']:.1f} s"]
            if "val_loss" in record:  # pretraining holds nothing out
                scores[1:1] = [f"validation loss {record['val_loss']:.4f}", f"MRR {record['val_mrr']:.4f}"]
            console.say(f"  epoch {record['epoch'] + 1}: {', '.join(scores)}")
        with (out / "log.jsonl").open("a", encoding="utf-8") as file:
            file.write(json.dumps(record) + "\n")

    return log


def summary(result: Finetuned) -> str:
    """What a reader wants to know of a run."""
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


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8") as lines:
            yield from (line.strip() for line in lines)
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", path=path) from error


def _rank() -> int:
    return int(os.environ.get("RANK", "0"))


if __name__ == "__main__":
    sys.exit(main())
