"""A small index, from posts to a catalog, of which some try to get a script into the page."""

from __future__ import annotations

from pathlib import Path

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.post import Post
from graphs.graph import mathamr_plus, vocabulary
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores import collection, store
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.model.encoding import encode
from mathamr.search import catalog
from mathamr.search.catalog import CatalogContent
from mathamr.search.structured import StructuredFormulas
from mathamr.training import checkpoint
from tests.mathamr.structure.test_alignment import RULES
from tests.mathamr.tiny_model import save_model

BREAK_IN = """<script>document.title = "owned"</script><img src=x onerror="document.title = 'owned'">"""
ANSWERS = {
    "11": "Suppose $\\sqrt2 = p/q$ in lowest terms. Then $p^2 = 2q^2$. This is a contradiction.",
    "12": "The integral $\\int_0^1 x\\,dx$ is $1/2$.",
    "13": "No formula here, only words.",
    "14": "Both $\\sqrt2$ and $\\sqrt3$ are irrational.",
    "15": f"Look {BREAK_IN} at $x<script>alert(1)</script>$ and $\\href{{javascript:alert(1)}}{{y^2}}$.",
}
QUESTION = Post("1", "question", title="Is $\\sqrt2$\n odd?", body="Well?", markup="text")
ATTACK = Post("2", "question", title=f"Title {BREAK_IN} $z$", body="Well?", markup="text")


def posts() -> list[Post]:
    answers = [
        Post(name, "answer", body=body, markup="text", parent_id="2" if name == "15" else "1")
        for name, body in ANSWERS.items()
    ]
    return [QUESTION, ATTACK, *answers]


def build(path: Path) -> Path:
    """Write an index to a folder below ``path``; returns the folder."""
    collection.build(path / "collection.db", posts(), EmbeddedParser, source="test")
    with Collection(path / "collection.db") as source:
        words = Vocabulary.build(vocabulary.count(source.rows(), mathamr_plus.decode), size=300)
        store.build(path / "graphs.db", source.rows(), mathamr_plus.decode, VirtualNodeSpec(), words)
        formula_ids = {name: list(source.get(name).formula_map.values()) for name in ANSWERS}
        parser = str(source.meta.get("parser", ""))
    graphs = GraphStore(path / "graphs.db")
    encoder = save_model(path / "model", graphs, seed=0)
    names = list(ANSWERS)
    content = CatalogContent(
        model=path / "model",
        model_hash=checkpoint.weights_hash(path / "model"),
        vocabulary=words,
        spec=graphs.spec,
        config_hash=graphs.config_hash,
        parser=parser,
        formula_ids=formula_ids,
        texts=posts(),
        structured=StructuredFormulas.build([post for post in posts() if post.kind == "answer"], RULES),
    )
    catalog.build(path / "index", names, encode(encoder, graphs, names), content)
    return path / "index"
