"""Files that mathamr train learns from: collection.db -> preprocessed.db, pairs.tsv, pairs.positives, negatives.tsv.

made = prepare_training(corpus, Path("collection.db"), Path("work"), graph, TrainConfig(...), Console())
print(made)         # work/preprocessed.db: 1,024 graphs, 1,003 labels, 40 relations ...
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from graphs.corpus.corpus import Corpus
from graphs.corpus.pairs import training_pairs
from graphs.counts import counted
from graphs.errors import ConfigError
from graphs.shared_files import only_writer
from graphs.stores.collection import Collection
from graphs.whole_file import write_whole
from mathamr.negatives import mining
from mathamr.stages.console import Console
from mathamr.stages.data.formulas import check_workers
from mathamr.stages.data.graphs import POSTS
from mathamr.stages.data.identity import check_same_posts, check_whole
from mathamr.stages.data.tensors import build_tensors, build_vocabulary, count_labels
from mathamr.stages.settings import GraphConfig
from mathamr.training.config import TrainConfig


def prepare_training(
    corpus: Corpus,
    collection: Path,
    out: Path,
    graph: GraphConfig,
    train: TrainConfig,
    console: Console,
    *,
    workers: int = 1,
) -> str:
    """Make tensors, pairs and, where ``train.negatives`` asks for them, hard negatives; return a line on each file.

    Args:
        collection: graphs of the posts and topics.
        out: folder of the files; finished work is kept.

    Raises:
        ConfigError: no process, or graphs of threads, which only experiments train on.
        MathAMRError: a shard, a collection without such pairs, files of other settings, or another process in this
            folder.
    """
    check_workers(workers)
    spec = graph.spec()
    if (thread := spec.thread) != "none":
        raise ConfigError(
            f"graph.thread={thread} joins the graphs of posts, and mathamr train reads the graph of each post alone; "
            "leave graph.thread at none, or run an experiment (mathamr run)"
        )
    pairs = training_pairs(corpus, train.positives, train.least_score)
    tensors, pair_file, negative_file = (out / name for name in ("preprocessed.db", "pairs.tsv", "negatives.tsv"))
    with only_writer(out, "preparing files in this folder"), Collection(collection) as source:
        check_same_posts(source, corpus)
        check_whole(source, console)
        rows = source.rows(*POSTS)
        total = len(source)
        counts = count_labels(rows, spec.formulas, console, total=total, workers=workers)
        labels = build_vocabulary([counts], graph, console)
        identity = str(source.meta["source"])
        graphs = build_tensors(
            source.rows(), tensors, labels, spec, console, source=identity, total=total, workers=workers
        )
        positives_file(pair_file).unlink(missing_ok=True)  # of other pairs
        write_pairs(pair_file, ((pair.question_id, pair.answer_id) for pair in pairs))
        write_whole(positives_file(pair_file), train.positives)
        lines = [
            f"{tensors}: {counted(len(graphs), 'graph')}, {labels.num_labels:,} labels, "
            f"{labels.num_relations} relations",
            f"{pair_file}: {counted(len(pairs), 'pair')} of "
            f"{counted(len({pair.question_id for pair in pairs}), 'question')}",
        ]
        negative_file.unlink(missing_ok=True)  # of other settings
        if train.negatives and train.negative_source != "model":
            mined = mining.negatives_of(
                train, graphs, pairs, posts=corpus.posts, report=lambda record: lines.append(mining.as_text(record))
            )
            assert isinstance(mined, dict)
            mined_pairs = [(question, post_id) for question, kept in mined.items() for post_id in kept]
            write_pairs(negative_file, mined_pairs)
            lines.append(
                f"{negative_file}: {counted(len(mined_pairs), 'hard negative')} of {counted(len(mined), 'question')}"
            )
    return "\n".join(lines)


def positives_file(pairs: Path) -> Path:
    """Return the file beside a file of pairs that names their ``train.positives``; only pairs made here have one."""
    return pairs.with_suffix(".positives")


def write_pairs(path: Path, pairs: Iterable[tuple[str, str]]) -> None:
    """Write two columns with a tab between, as mathamr train reads them."""
    write_whole(path, "".join(f"{first}\t{second}\n" for first, second in pairs))
