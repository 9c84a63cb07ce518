"""A collection of four answers that is indexed and searched, from JSON lines to graphs and two models."""

from __future__ import annotations

import json
from pathlib import Path

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.jsonl import JsonLines
from graphs.graph import mathamr_plus, vocabulary
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores import collection, store
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from tests.mathamr.tiny_model import save_model

ANSWERS = {
    "11": "Suppose $\\sqrt2 = p/q$ in lowest terms. Then $p^2 = 2q^2$.",
    "12": "The integral $\\int_0^1 x\\,dx$ is $1/2$.",
    "13": "No formula here, \x1b[2J only words.",
    "14": "Both $\\sqrt2$ and $\\sqrt3$ are irrational.",
}
TOPICS = {"A.1": "Why is $\\sqrt2$ irrational?", "A.2": "What is $\\int_0^1 x\\,dx$?", "A.3": ""}


def make(path: Path) -> None:
    """Posts, topics and judgments, their graphs, and two models, ``model1`` and ``model2``, in the folder ``path``."""
    records = [{"post_id": "1", "kind": "question", "title": "Is $\\sqrt2$\n odd?", "body": "Well?", "markup": "text"}]
    records += [
        {"post_id": name, "kind": "answer", "body": body, "markup": "text", "parent_id": "1"}
        for name, body in ANSWERS.items()
    ]
    (path / "posts.jsonl").write_text("\n".join(json.dumps(record) for record in records) + "\n")
    topics = [{"post_id": name, "body": body, "markup": "text"} for name, body in TOPICS.items()]
    (path / "topics.jsonl").write_text("\n".join(json.dumps(topic) for topic in topics) + "\n")
    tasks = [
        {**topic, "post_id": f"B{topic['post_id'][1:]}", "formula_id": f"B{topic['post_id'][1:]}:0"}
        for topic in topics[:2]
    ]
    (path / "topics2.jsonl").write_text("\n".join(json.dumps(topic) for topic in tasks) + "\n")
    (path / "qrels.tsv").write_text("A.1\t0\t14\t2\n")
    posts = JsonLines(path)
    source = posts.fingerprints().graphs
    collection.build(path / "collection.db", posts.posts(), EmbeddedParser, source=source)
    with Collection(path / "collection.db") as graphs:
        words = Vocabulary.build(vocabulary.count(graphs.rows(), mathamr_plus.decode), size=300)
        store.build(path / "graphs.db", graphs.rows(), mathamr_plus.decode, VirtualNodeSpec(), words)
    for seed in (1, 2):
        save_model(path / f"model{seed}", GraphStore(path / "graphs.db"), seed)


def index_arguments(work: Path, out: Path, *more: str) -> list[str]:
    """Arguments of scripts/index.py for what :func:`make` left in ``work``."""
    named = {
        "tensors": work / "graphs.db",
        "graphs-db": work / "collection.db",
        "model": work / "model1",
        "corpus": "jsonl",
        "root": work,
        "out": out,
    }
    return [*(str(part) for name, value in named.items() for part in (f"--{name}", value)), *more]
