"""Train one model from a preprocessed.db and a file of pairs, and print a summary.

    python scripts/train.py --graphs preprocessed.db --pairs pairs.tsv --out model
    python scripts/train.py --graphs preprocessed.db --pairs pairs.tsv --out model train=thesis train.epochs=3
    torchrun --nproc-per-node 4 scripts/train.py --graphs preprocessed.db --pairs pairs.tsv --out model

scripts/preprocess.py makes both files of a collection. The file of pairs has two columns, question id and answer id,
with a tab between; so has that of hard negatives (``--negatives``: question id and the id of a post that does not
answer it; set ``train.negatives`` to how many of them are drawn for each question; with ``train.negative_source=model``
no file is needed). Any key of the groups ``model`` and ``train`` of ``conf/`` can be set. ``model/best`` is
the checkpoint of the lowest validation loss, ``model/log.jsonl`` has a record for every step. The same command goes on
where an interrupted run stopped.

Exit codes: 0 trained; 2 a message says what is wrong; 75 stopped by SIGTERM, SIGUSR1 or Ctrl-C, saved: run it again to
go on; 130 stopped by a second Ctrl-C, which does not wait: what was saved before is gone on from.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

from hydra import compose, initialize_config_dir
from hydra.errors import HydraException
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from experiments.config import register
from graphs.corpus.post import Pair
from graphs.errors import ConfigError, MathAMRError
from graphs.stores.store import GraphStore
from mathamr.model.config import EncoderConfig
from mathamr.model.label_vectors import is_hash
from mathamr.stages.console import Console, duration
from mathamr.training import mining
from mathamr.training.config import TrainConfig
from mathamr.training.graph.trainer import TrainResult, train
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted
from mathamr.training.pairs import read_pairs

EXIT_AT_ONCE = 130  # as shells have it: 128 and the number of SIGINT
CONF = Path(__file__).resolve().parents[1] / "conf"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__.partition("\n\n")[0], epilog="See the head of this file for examples."
    )
    parser.add_argument("--graphs", type=Path, required=True, help="preprocessed.db")
    parser.add_argument("--pairs", type=Path, required=True, help="question id and answer id, a tab between")
    parser.add_argument("--negatives", type=Path, help="hard negatives: question id and post id, a tab between")
    parser.add_argument("--out", type=Path, required=True, help="folder of the checkpoints")
    parser.add_argument("--resume", choices=("auto", "never"), default="auto", help="never: start anew")
    parser.add_argument("settings", nargs="*", metavar="KEY=VALUE", help="e.g. train.epochs=3 model.hidden_dim=128")
    given = parser.parse_args(arguments)
    console = Console()

    def work() -> str:
        encoder_config, config = read_settings(given.settings)
        store, pairs = GraphStore(given.graphs), read_pairs(given.pairs)
        negatives = None if given.negatives is None else by_question(read_pairs(given.negatives))
        result, graphs_per_s = run(config, store, pairs, encoder_config, negatives, given.out, given.resume, console)
        return summary(result, graphs_per_s)

    return ended(work)


def ended(work: Callable[[], str]) -> int:
    """Do what trains and print, on rank 0, what it says; returns the exit code of how it ended."""
    try:
        said = work()
    except Interrupted as stop:
        print(stop, file=sys.stderr)
        return EXIT_INTERRUPTED
    except KeyboardInterrupt:
        print("stopped at once; the same command goes on from what was saved last", file=sys.stderr)
        return EXIT_AT_ONCE
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    if int(os.environ.get("RANK", "0")) == 0:
        print(said)
    return 0


def run(
    config: TrainConfig,
    store: GraphStore,
    pairs: Sequence[Pair],
    encoder_config: EncoderConfig,
    negatives: dict[str, list[str]] | None,
    out: Path,
    resume: str,
    console: Console,
) -> tuple[TrainResult, float | None]:
    """Train with progress on the terminal and records in ``OUT/log.jsonl``; also graphs/s, if anything was trained."""
    graphs = seconds = 0.0
    with console.stage("training", unit="steps") as advance:

        def log(record: dict[str, Any]) -> None:
            nonlocal graphs, seconds
            out.mkdir(parents=True, exist_ok=True)
            if record["kind"] == "start":
                advance.expect(record["total_steps"])
            elif record["kind"] == "step":
                graphs += record["graphs_per_s"] * record["seconds"]
                seconds += record["seconds"]
            elif record["kind"] == "negatives":
                console.say(f"  {mining.as_text(record)}")
            else:
                console.say(
                    f"  epoch {record['epoch'] + 1}: loss {record['train_loss']:.4f}, validation loss "
                    f"{record['val_loss']:.4f}, MRR {record['val_mrr']:.4f}, temperature {record['temperature']:.4f}, "
                    f"{record['seconds']:.1f} s, {record['pairs_per_s']:,.1f} pairs/s"
                )
            with (out / "log.jsonl").open("a", encoding="utf-8") as file:
                file.write(json.dumps(record) + "\n")

        result = train(
            config,
            store,
            pairs,
            encoder_config,
            out=out,
            negatives=negatives,
            resume="never" if resume == "never" else "auto",
            log=log,
            progress=advance,
        )
    return result, graphs / seconds if seconds else None


def read_settings(overrides: Sequence[str]) -> tuple[EncoderConfig, TrainConfig]:
    """The groups ``model`` and ``train`` of ``conf/``, with changes like ``train.epochs=3`` or ``model=thesis``.

    Raises:
        ConfigError: an unknown key, group or value.
    """
    model, settings = read_groups(overrides, "model", "train")
    vectors = model["label_vectors"]
    if vectors is not None and not is_hash(vectors):
        raise ConfigError(
            f"model.label_vectors={vectors} is no hash; experiments.run takes the name of a text encoder as well, here "
            "vectors are named by their hash (mathamr.model.label_vectors)"
        )
    return EncoderConfig(**model), TrainConfig(**settings)


def read_groups(overrides: Sequence[str], *groups: str) -> list[dict[str, Any]]:
    """Groups of ``conf/`` as plain values; raises as :func:`read_settings`."""
    register()
    try:
        with initialize_config_dir(str(CONF), version_base="1.3"):
            config = compose("config", overrides=list(overrides))
        return [
            cast(dict[str, Any], OmegaConf.to_container(config[group], resolve=True, throw_on_missing=True))
            for group in groups
        ]
    except (HydraException, OmegaConfBaseException) as error:
        raise ConfigError(str(error).splitlines()[0]) from error


def by_question(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """The second posts of ``pairs``, in order, by the first."""
    posts: dict[str, list[str]] = {}
    for pair in pairs:
        posts.setdefault(pair.question_id, []).append(pair.answer_id)
    return posts


def summary(result: TrainResult, graphs_per_s: float | None) -> str:
    """What a reader wants to know of a run."""
    parts = ", ".join(f"{name} {count:,}" for name, count in result.parameters.items() if name != "total")
    speed = "" if graphs_per_s is None else f", {graphs_per_s:,.1f} graphs/s"
    stopped = ", stopped early" if result.stopped_early else ""
    lines = {
        "best": f"{result.best}, step {result.best_step}: validation loss {result.best_val_loss:.4f}, "
        f"MRR {result.best_val_mrr:.4f}",
        "pairs": f"{result.train_pairs:,} trained on, {result.validation_pairs:,} held out, {result.left_out:,} left "
        f"out ({len(result.missing):,} posts without graph{_some(result.missing)})",
        "epochs": f"{len(result.epochs)} of {duration(result.time_per_epoch_s)} ({result.time_per_epoch_s:.2f} s) "
        f"on average{stopped}",
        "speed": f"{result.pairs_per_s:,.1f} pairs/s{speed}",
        "peak memory": f"{result.peak_memory_bytes / 2**20:,.0f} MiB",
        "parameters": f"{result.parameters['total']:,} ({parts})",
    }
    return "\n".join(f"{name + ':':13}{text}" for name, text in lines.items())


def _some(missing: Sequence[str]) -> str:
    return f": {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}" if missing else ""


if __name__ == "__main__":
    sys.exit(main())
