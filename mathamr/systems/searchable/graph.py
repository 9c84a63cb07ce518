"""Graph model kept for search: parser, vocabulary and encoder of a query, as posts were encoded.

record = keep_model(settings, Path("model/best"), GraphStore(Path("topics-3fe0.db")), None, Path("index/graph"))
encode_query(record, Path("index/graph"), "cpu")(Post("query", "topic", body="Is $x$ odd?"))        # VectorSets

The embedded parser reads queries as it read posts. Queries to posts of any other parser are read by the embedded one.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, Failure, StoreError, faults_as
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.search.query import QueryEncoder
from mathamr.search.typed_query import TYPED
from mathamr.stages import parsers
from mathamr.systems.searchable.kept import entry, keep_formulas
from mathamr.systems.searchable.vectors import EncodeQuery
from mathamr.systems.settings.trained import GraphSettings
from mathamr.training import checkpoint

_MODEL, _VOCABULARY, _FORMULAS = "model", "vocabulary.json", "formulas.db"
_EMBEDDED = "embedded"


def keep_model(
    settings: GraphSettings,
    model: Path,
    graphs: GraphStore,
    formulas_db: Path | None,
    folder: Path,
    topics: Sequence[Topic] = (),
) -> dict[str, Any]:
    """Keep the model of a job; return the record that :func:`encode_query` reads.

    Args:
        graphs: tensors of the topics, for the vocabulary and the virtual nodes.
        formulas_db: published trees of the formulas of topics; None: trees come from LaTeX.
        topics: topics whose published trees are kept.

    Raises:
        ConfigError: a model that reads more than the graph of one post.
    """
    if settings.model.sentence_vectors is not None or settings.graph.thread != "none":
        raise ConfigError(
            "a model that reads vectors of sentences or graphs of threads cannot be searched outside its experiment; "
            "index a condition without model.sentence_vectors and graph.thread"
        )
    shutil.copytree(model, folder / _MODEL, ignore=shutil.ignore_patterns("state.*"))
    (folder / _VOCABULARY).write_text(graphs.vocabulary.to_json(), encoding="utf-8")
    if formulas_db is not None:
        keep_formulas(formulas_db, topics, folder / _FORMULAS)
    parser, options = parsers.parser_of(settings)
    return {
        "virtual_nodes": graphs.spec.content(),
        "config_hash": graphs.config_hash,
        "parser": {"name": parser, "options": options} if parser == _EMBEDDED else {"name": _EMBEDDED, "options": {}},
        "published": formulas_db is not None,
    }


def encode_query(record: Mapping[str, Any], folder: Path, device: str) -> EncodeQuery:
    """Open the model of a record; return the function that encodes a query.

    Raises:
        StoreError: files that are missing, or of another model than the vectors; a parser that runs a program.
    """
    parser = entry(record, "parser")
    spacy_model = parser["options"].get("model")
    if parser["name"] != _EMBEDDED or not (spacy_model is None or str(spacy_model).isidentifier()):
        message = "names another program than the embedded parser, and an index may come from anywhere; build it again"
        raise StoreError(message, path=folder)
    found, expected = checkpoint.weights_hash(folder / _MODEL), entry(record, "model")
    if found != expected:
        raise StoreError(f"is the model {found}, and the vectors were made with {expected}", path=folder / _MODEL)
    with faults_as(StoreError, "cannot be read as a vocabulary: {}", folder / _VOCABULARY):
        vocabulary = Vocabulary.from_json((folder / _VOCABULARY).read_text(encoding="utf-8"))
    reader = QueryEncoder(
        checkpoint.load_encoder(folder / _MODEL, config_hash=entry(record, "config_hash"), device=device),
        vocabulary,
        VirtualNodeSpec(**entry(record, "virtual_nodes")),
        parser=parsers.factory(parser["name"], parser["options"]),
        formulas_db=folder / _FORMULAS if entry(record, "published") else None,
    )

    def encode(post: Post) -> VectorSets | None:
        encoded = reader.encode_typed(post) if post.post_id == TYPED else reader.encode_posts([post])[0]
        return None if isinstance(encoded, Failure) else encoded.vectors

    return encode
