"""Files of pairs that mathamr train reads."""

import json
from pathlib import Path

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.jsonl import JsonLines
from graphs.stores import collection
from mathamr.default_settings import values
from mathamr.stages.console import Console
from mathamr.stages.learning.training_files import prepare_training
from mathamr.stages.settings import GraphConfig
from tests.mathamr.tiny_collection import settings


def test_the_choice_of_pairs_is_written_beside_them(tmp_path: Path) -> None:
    posts = [{"post_id": f"q{i}", "kind": "question", "markup": "text", "body": "Is it odd?"} for i in range(2)]
    posts += [
        {"post_id": f"a{i}{j}", "kind": "answer", "markup": "text", "parent_id": "q0", "body": "Yes.", "score": j}
        for i in range(2)
        for j in range(2)
    ]
    (tmp_path / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    corpus, graphs, out = JsonLines(tmp_path), tmp_path / "collection.db", tmp_path / "out"
    collection.build(graphs, corpus.posts(), EmbeddedParser, source=corpus.fingerprints().graphs)
    graph = GraphConfig(**values("graph"))
    for positives in ("answers", "accepted"):
        prepare_training(corpus, graphs, out, graph, settings(positives=positives), Console())
        assert (out / "pairs.positives").read_text() == positives
