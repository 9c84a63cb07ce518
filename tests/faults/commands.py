"""Commands that write, with the artifact that each leaves and how it is read: equal artifacts are equal when read."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from graphs.stores.collection import Collection
from graphs.stores.posts import PostTexts
from graphs.stores.store import GraphStore
from mathamr.retrieval.exact.index import ExactIndex
from mathamr.search.catalog import Catalog
from mathamr.training import checkpoint
from tests.experiments.tiny_settings import SMALL
from tests.scripts.small_collection import index_arguments, make


def ids_and_vectors(index: ExactIndex | Catalog) -> tuple[Any, ...]:
    vectors = index if isinstance(index, ExactIndex) else index.vectors
    ids = sorted(vectors.post_ids())
    try:
        found = (ids, vectors.vectors_of(ids).vectors.tolist())
        if isinstance(index, Catalog):
            posts = index.texts.get(ids)
            formulas = index.formulas.search(vectors.vectors_of(ids[:1]).vectors[:1], 3)[0]
            return (*found, [(post.title, post.text) for post in posts.values()], formulas, index.vocabulary.labels)
        return found
    finally:
        index.close()


def weights(folder: Path) -> Any:
    found = checkpoint.load(folder)
    return found.info, {name: tensor.tolist() for name, tensor in found.weights.items()}


def tensors(path: Path) -> Any:
    store = GraphStore(path)
    found = [arrays.labels.tolist() for arrays in store.get_arrays(store.post_ids())]
    store.close()
    return found


def graphs(path: Path) -> Any:
    with Collection(path) as collection:
        return [graph.penman for graph in collection]


def texts(path: Path) -> Any:
    with PostTexts(path) as posts:
        return posts.get(list(posts.all_ids()))


def scores(outputs: Path) -> Any:
    """Return rankings and scores of the only job; costs differ from run to run."""
    (place,) = outputs.glob("*/jobs/*")
    result = json.loads((place / "result.json").read_text())
    kept = {name: value for name, value in result.items() if name.startswith(("ndcg", "map", "p_prime", "topics"))}
    return kept, (place / "run.tsv").read_text()


@dataclass(frozen=True)
class Command:
    """A command of the fault kit.

    Attributes:
        script: module of ``scripts``, or ``experiment``.
        arguments: takes the folder of :func:`inputs` and the folder to write to.
        read: takes that folder, and returns what the artifact holds.
        seconds: processor time that it takes, about: it is killed within that.
    """

    script: str
    arguments: Callable[[Path, Path], list[str]]
    read: Callable[[Path], Any]
    seconds: float


def inputs(folder: Path) -> Path:
    """Make the small collection, pairs to train on, and twenty threads with a topic in ``threads``."""
    make(folder)
    (folder / "pairs.tsv").write_text("1\t11\n12\t14\n13\t11\n14\t12\n")
    threads = folder / "threads"
    threads.mkdir()
    posts: list[dict[str, str]] = []
    for number in range(20):
        text = f"Is the ring number {number} with $x^{number} = 1$ finite?"
        posts.append({"post_id": f"q{number}", "kind": "question", "body": text, "markup": "text"})
        answer = {"post_id": f"a{number}", "kind": "answer", "parent_id": f"q{number}", "markup": "text"}
        posts.append({**answer, "body": f"The ring is, for $x = {number}$."})
    (threads / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    (threads / "topics.jsonl").write_text('{"post_id": "T.1", "body": "Which ring with $x = 1$ is finite?"}\n')
    (threads / "qrels.tsv").write_text("T.1\t0\ta1\t3\nT.1\t0\ta2\t0\n")
    return folder


def experiment(work: Path, out: Path) -> list[str]:
    """Return the words of an experiment on the threads."""
    places = ["data=jsonl", f"data.root={work / 'threads'}", f"outputs={out}", "data.regime=full", "index=exact"]
    return ["+exp=trial", *places, *SMALL, "train.device=cpu", "workers=1"]


_TINY = ["train.epochs=2", "train.batch_size=2", "model.hidden_dim=16", "model.num_layers=1", "model.num_bases=2"]
_TINY += ["train.validation_fraction=0.25", "train.device=cpu", "train.checkpoint_every=1"]


def _data(work: Path) -> list[str]:
    return ["--corpus", "jsonl", "--root", str(work)]


COMMANDS = {
    "graphs": Command(
        "build_collection",
        lambda work, out: [*_data(work), "--out", str(out / "collection.db")],
        lambda out: graphs(out / "collection.db"),
        0.4,
    ),
    "index": Command(
        "index", lambda work, out: index_arguments(work, out), lambda out: ids_and_vectors(Catalog.open(out)), 0.3
    ),
    "model": Command(
        "train",
        lambda work, out: [
            *("--tensors", str(work / "graphs.db"), "--pairs", str(work / "pairs.tsv")),
            *("--out", str(out)),
            *_TINY,
        ],
        lambda out: weights(out / "best")[1],
        0.5,
    ),
    "experiment": Command("experiment", experiment, scores, 2.5),
}
