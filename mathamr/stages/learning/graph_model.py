"""Training of a graph model: preprocessed.db and pairs -> a checkpoint.

data = TrainingData(GraphStore("preprocessed.db"), read_pairs("pairs.tsv"))
result, _ = train_graph_model(data, TrainConfig(...), EncoderConfig(...), Path("model"), Console())
result.best          # PosixPath('model/best')
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from graphs.corpus.post import Pair, Post
from graphs.counts import counted
from graphs.errors import Failure
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import peak_gpu_memory, peak_memory
from mathamr.model.config import EncoderConfig
from mathamr.negatives import mining
from mathamr.stages.console import Console
from mathamr.stages.learning.reporting import training_stage
from mathamr.stages.topic_sets import Log, Trained
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig
from mathamr.training.graph.checks import Negatives
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import VisualIds
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import sample_pairs
from mathamr.training.result import TrainResult


@dataclass(frozen=True)
class TrainingData:
    """Data that a graph model learns from.

    Args:
        negatives: hard negatives of each question; None: mined where ``train.negatives`` asks for some.
        posts: posts that negatives are mined from; None: only ``train.negative_source=model`` is possible.
        visual_ids: visual ids of each post's formulas, for losses on formulas.
        sources: pairs of further collections, by name.
        teacher: returns the text encoder to follow, once pairs and negatives are known.
    """

    store: GraphStore
    pairs: Sequence[Pair]
    negatives: Mapping[str, Sequence[str]] | None = None
    posts: Callable[[], Iterable[Post | Failure]] | None = None
    visual_ids: VisualIds | None = None
    sources: Mapping[str, Sequence[Pair]] = field(default_factory=dict)
    teacher: Callable[[Sequence[Pair], Negatives | None], Teacher | None] = lambda pairs, negatives: None


def train_graph_model(
    data: TrainingData,
    config: TrainConfig,
    encoder: EncoderConfig,
    out: Path,
    console: Console,
    *,
    log: Log | None = None,
    resume: Literal["auto", "never"] = "auto",
) -> tuple[TrainResult, float | None]:
    """Mine hard negatives if the settings request them, and train; ``OUT/best`` is the checkpoint.

    Returns the result, and the graphs a second, None if no step was trained.

    Args:
        out: folder of the checkpoints.
        resume: ``auto`` resumes from ``OUT/last``, ``never`` starts anew.

    Raises:
        ConfigError, TrainingError, Interrupted: as :func:`mathamr.training.graph.trainer.train`.
    """
    graphs = seconds = 0.0

    def record_of(record: dict[str, Any]) -> None:
        nonlocal graphs, seconds
        if record["kind"] == "step":
            graphs += record["graphs_per_s"] * record["seconds"]
            seconds += record["seconds"]
        if log is not None:
            log(record)

    with training_stage("training", console, record_of) as report:
        negatives, teacher = _negatives_and_teacher(data, config, report)
        result = train(
            config,
            data.store,
            data.pairs,
            encoder,
            out=out,
            negatives=negatives,
            visual_ids=data.visual_ids,
            sources=data.sources,
            teacher=teacher,
            resume=resume,
            log=report,
            progress=report.progress,
        )
    return result, graphs / seconds if seconds else None


def _negatives_and_teacher(
    data: TrainingData, config: TrainConfig, report: Log
) -> tuple[Negatives | None, Teacher | None]:
    """Mine hard negatives and open the teacher, as far as the settings request them."""
    negatives: Negatives | None = data.negatives
    if not config.negatives and config.teacher is None:
        return negatives, None
    pairs = sample_pairs(data.pairs, data.store.having, config.max_pairs)
    if negatives is None and (data.posts is not None or config.negative_source == "model"):
        report_of_rank = report if int(os.environ.get("RANK", "0")) == 0 else None
        negatives = mining.negatives_of(
            config, data.store, pairs, known=data.pairs, posts=data.posts, report=report_of_rank
        )
    return negatives, data.teacher(pairs, negatives)


def as_model(result: TrainResult, device: str) -> Trained:
    """Return a training on ``device`` as the model of a job, with its costs as columns of the results table."""
    parameters = {f"parameters_{part}": count for part, count in result.parameters.items() if part != "total"}
    gpu_memory = peak_gpu_memory(device)
    costs = {
        "time_per_epoch_s": result.time_per_epoch_s,
        "pairs_per_second": result.pairs_per_s,
        "epochs": len(result.epochs),
        "train_pairs": result.train_pairs,
        "best_val_loss": result.best_val_loss,
        "best_val_mrr": result.best_val_mrr,
        "parameters": result.parameters["total"],
        **parameters,
        "peak_memory_bytes": peak_memory(),
        **({"peak_gpu_memory_bytes": gpu_memory} if gpu_memory else {}),
    }
    return Trained(result.best, costs)


def copy_checkpoint(given: Path, best: Path, graphs: GraphStore) -> Trained:
    """Copy a checkpoint that was trained elsewhere to ``best``, and return it as the model of a job.

    Raises:
        TrainingError: it was trained on tensors with another vocabulary or other virtual nodes.
    """
    loaded = checkpoint.load(given, config_hash=graphs.config_hash)
    shutil.copytree(given, best, dirs_exist_ok=True)
    return Trained(best, {"parameters": sum(weights.numel() for weights in loaded.weights.values())})


def by_question(pairs: Sequence[Pair]) -> dict[str, list[str]]:
    """Return the second posts of ``pairs``, in order, by the first.

    >>> by_question([Pair("q", "b"), Pair("p", "c"), Pair("q", "a")])
    {'q': ['b', 'a'], 'p': ['c']}
    """
    posts: dict[str, list[str]] = {}
    for pair in pairs:
        posts.setdefault(pair.question_id, []).append(pair.answer_id)
    return posts


def summary(result: TrainResult, graphs_per_s: float | None) -> str:
    """Return what a reader wants to know of a training, line by line."""
    parts = ", ".join(f"{name} {count:,}" for name, count in result.parameters.items() if name != "total")
    speed = "" if graphs_per_s is None else f", {graphs_per_s:,.1f} graphs/s"
    stopped = ", stopped early" if result.stopped_early else ""
    lines = {
        "best": f"{result.best}, step {result.best_step}: validation loss {result.best_val_loss:.4f}, "
        f"MRR {result.best_val_mrr:.4f}",
        "pairs": f"{result.train_pairs:,} trained on, {result.validation_pairs:,} held out, {result.left_out:,} left "
        f"out ({counted(len(result.missing), 'post')} without graph{_examples_of(result.missing)})",
        "epochs": f"{len(result.epochs)}, {result.time_per_epoch_s:,.2f} s on average{stopped}",
        "speed": f"{result.pairs_per_s:,.1f} pairs/s{speed}",
        "peak memory": f"{result.peak_memory_bytes / 2**20:,.0f} MiB",
        "parameters": f"{result.parameters['total']:,} ({parts})",
    }
    return "\n".join(f"{name + ':':13}{text}" for name, text in lines.items())


def _examples_of(missing: Sequence[str]) -> str:
    return f": {', '.join(missing[:5])}{' ...' if len(missing) > 5 else ''}" if missing else ""
