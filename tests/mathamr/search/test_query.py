"""Queries typed by a person: the same vectors as posts, and clear answers to what cannot be read."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from tiny_collection import ENCODER

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.post import Post
from graphs.errors import Failure, RetrievalError
from graphs.graph import mathamr_plus
from graphs.graph import vocabulary as vocabularies
from graphs.graph.graph_maker import MadeGraphs
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores import collection as collections
from graphs.stores import store as stores
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.retrieval.explanation import explain
from mathamr.search import words
from mathamr.search.query import EncodedQuery, QueryEncoder
from mathamr.search.typed_query import MAX_CHARACTERS, typed_post
from mathamr.systems.searchable.graph import encode_query
from mathamr.training import checkpoint
from tests.mathamr.tiny_model import save_model

POSTS = [
    Post(
        "1", "answer", body="Suppose $\\sqrt2 = p/q$ in lowest terms. Then $p^2 = 2q^2$, so $p$ is even.", markup="text"
    ),
    Post("2", "answer", body="The integral $\\int_0^1 x\\,dx$ is $1/2$.", markup="text"),
    Post("3", "answer", body="No formula here, only words.", markup="text"),
    Post("4", "answer", body="$x^2$", markup="text"),
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("query")
    collections.build(path / "collection.db", POSTS, EmbeddedParser, source="test")
    with Collection(path / "collection.db") as source:
        vocabulary = Vocabulary.build(vocabularies.count(source.rows(), mathamr_plus.decode), size=200)
        for name, spec in SPECS.items():
            stores.build(path / f"{name}.db", source.rows(), mathamr_plus.decode, spec, vocabulary)
    return path


SPECS = {
    "full": VirtualNodeSpec(),
    "global": VirtualNodeSpec(structure="global", connectivity="circular"),
    "none": VirtualNodeSpec(structure="none", formulas="opt"),
    "words": VirtualNodeSpec(formulas="none"),
}


def reader_of(folder: Path, name: str) -> tuple[QueryEncoder, Encoder, GraphStore]:
    store = GraphStore(folder / f"{name}.db")
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations).eval()
    return QueryEncoder(encoder, store.vocabulary, store.spec), encoder, store


@pytest.mark.parametrize("name", SPECS)
def test_a_post_that_is_typed_in_has_the_vectors_that_it_has_in_the_index(folder: Path, name: str) -> None:
    reader, encoder, store = reader_of(folder, name)
    for post in POSTS:
        query = reader.encode(post.body)
        indexed = encode(encoder, store, [post.post_id])
        torch.testing.assert_close(query.vectors.vectors, indexed.vectors)
        assert len(query.nodes) == len(query.vectors.vectors)
        kinds = [node.kind for node in query.nodes]
        assert kinds.count("formula") == len(query.formula_ids)
        assert kinds.count("document") == (store.spec.structure != "none")


def test_virtual_nodes_are_named_by_what_they_stand_for(folder: Path) -> None:
    reader, _, _ = reader_of(folder, "full")
    query = reader.encode("Why is $\\sqrt2$ irrational? I tried $p/q$.")
    assert [(node.kind, node.text) for node in query.nodes] == [
        ("formula", "\\sqrt2"),
        ("formula", "p/q"),
        ("sentence", "Why is $\\sqrt2$ irrational?"),
        ("sentence", "I tried $p/q$."),
        ("document", ""),
    ]


def test_a_query_of_one_formula(folder: Path) -> None:
    reader, _, _ = reader_of(folder, "full")
    query = reader.encode("$x^2$")
    assert [node.kind for node in query.nodes] == ["formula", "sentence", "document"]
    (vectors,) = query.vectors
    why = explain(vectors, query.nodes, vectors, query.nodes)
    assert [match.score for match in why.matches] == pytest.approx([1.0, 1.0, 1.0])
    assert why.matches[0].document == query.nodes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "the query is empty"),
        (f"Invert $x{'+x' * 2_000}$ please", "a formula of the query has 4,001 characters, but at most 4,000 are read"),
        (" \n\t", "the query is empty"),
        ("x" * 100_000, f"100,000 characters, but at most {MAX_CHARACTERS:,}"),
        ("\x00\x01", "the query cannot be read"),
    ],
)
def test_what_cannot_be_read_is_refused(folder: Path, text: str, message: str) -> None:
    reader, _, _ = reader_of(folder, "full")
    with pytest.raises(RetrievalError, match=message):
        reader.encode(text)


@pytest.mark.parametrize(
    "text",
    [
        "?",
        "$",
        "$$",
        "$\\frac{$",
        "a < b & $a<b$",
        "FORMULA_7 is $x$",
        "(((",
        "ü日本語 $\\ß$",
        "$x$ " * 500,
    ],
)
def test_odd_queries_have_vectors(folder: Path, text: str) -> None:
    reader, _, _ = reader_of(folder, "full")
    assert torch.isfinite(reader.encode(text).vectors.vectors).all()


@pytest.fixture(scope="module")
def nouns() -> QueryEncoder:
    """Return a reader whose model has seen ``function`` and ``theorem`` more often as nouns, ``show`` as a verb."""
    counts = {"function": 9, "map": 8, "show-01": 7, "composition": 6, "theorem": 5, "theorem-01": 2, "function-01": 2}
    counts |= {"show": 2, "you": 2}
    vocabulary = Vocabulary.build(vocabularies.Counts(amr=Counter(counts)), size=99)
    torch.manual_seed(0)
    return QueryEncoder(Encoder(ENCODER, vocabulary.num_labels, vocabulary.num_relations), vocabulary, SPECS["full"])


def as_posts_are(reader: QueryEncoder, query: str) -> EncodedQuery:
    (encoded,) = reader.encode_posts([typed_post(query)])
    assert isinstance(encoded, EncodedQuery)
    return encoded


@pytest.mark.parametrize(
    "typed",
    [
        "function",
        "map composition",
        "function and map ",
        "function $f$",
        "prime number theorem",
        "find map and function",  # a command either way
    ],
)
def test_a_noun_without_a_full_stop_is_no_verb(nouns: QueryEncoder, typed: str) -> None:
    query, plain = nouns.encode(typed), as_posts_are(nouns, typed)
    stopped = as_posts_are(nouns, f"{typed.strip()}.")
    torch.testing.assert_close(query.vectors.vectors, stopped.vectors.vectors)
    assert not torch.equal(query.vectors.vectors, plain.vectors.vectors)
    assert (query.text, query.nodes, query.formula_ids) == (plain.text, plain.nodes, plain.formula_ids)
    assert query.words == stopped.words


@pytest.mark.parametrize(
    "typed",
    [
        "show",
        "show $x$",
        "Show that $x$ is a function",
        "map between spaces",
        "search for primes",
        "function!",
        "map;",
        "zebra; show",  # an unknown word either way
    ],
)
def test_other_queries_are_read_as_posts_are(nouns: QueryEncoder, typed: str) -> None:
    query, plain = nouns.encode(typed), as_posts_are(nouns, typed)
    torch.testing.assert_close(query.vectors.vectors, plain.vectors.vectors)


@pytest.mark.parametrize(
    ("typed", "posts"), [("function", 2), ("Show that $x$ is a function", 2), ("Is $x$ odd?", 1), ("map " * 99, 1)]
)
def test_a_short_query_without_a_full_stop_is_parsed_twice_and_any_other_once(
    nouns: QueryEncoder, monkeypatch: pytest.MonkeyPatch, typed: str, posts: int
) -> None:
    parsed, make = [], nouns._make

    def counted(given: list[Post | Failure]) -> MadeGraphs:
        parsed.extend(given)
        return make(given)

    monkeypatch.setattr(nouns, "_make", counted)
    nouns.encode(typed)
    assert len(parsed) == posts


def test_a_kept_model_reads_typed_queries_and_topics_each_in_their_way(folder: Path, tmp_path: Path) -> None:
    store = GraphStore(folder / "full.db")
    save_model(tmp_path / "model", store, seed=0)
    (tmp_path / "vocabulary.json").write_text(store.vocabulary.to_json(), encoding="utf-8")
    record = {
        "model": checkpoint.weights_hash(tmp_path / "model"),
        "config_hash": store.config_hash,
        "virtual_nodes": store.spec.content(),
        "parser": {"name": "embedded", "options": {}},
        "published": False,
    }
    encode_kept = encode_query(record, tmp_path, "cpu")

    def vectors(post: Post) -> torch.Tensor:
        encoded = encode_kept(post)
        assert encoded is not None
        return encoded.vectors

    typed = vectors(typed_post("map"))
    assert torch.equal(typed, vectors(typed_post("map.")))
    assert not torch.equal(typed, vectors(Post("A.1", "topic", body="map", markup="text")))


def test_the_you_of_an_unknown_command_is_not_known(nouns: QueryEncoder) -> None:
    query = nouns.encode("factorise")
    assert query.words.nothing
    assert str(query.words) == "unknown: factorise; 0 formulas"


def test_a_repeated_word_is_compared_once_with_each_concept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Queries may have thousands of words, so comparing every word with every concept takes minutes."""
    compared, as_typed = [], words._as_typed

    def counted(concept: str, typed: Sequence[str]) -> str:
        compared.extend(typed)
        return as_typed(concept, typed)

    monkeypatch.setattr(words, "_as_typed", counted)
    concepts = " ".join(f":op{i} (r{i} / ring)" for i in range(1, 100))
    graph = mathamr_plus.decode(f"(f / field {concepts})", {})
    vocabulary = Vocabulary.build(vocabularies.Counts(amr={"ring": 9}), size=9)
    read = words.read_words(graph, vocabulary, sentences=["Rings " * 99, "and a field"])
    assert (read.known, read.unknown) == (("Rings",), ("field",))
    assert compared == ["field"] + ["Rings"] * 99


def test_topics_are_encoded_in_their_order_and_failures_keep_their_place(folder: Path) -> None:
    reader, _, _ = reader_of(folder, "full")
    empty = Post("5", "topic", body="")
    encoded = reader.encode_posts([POSTS[1], empty, POSTS[0]])
    assert [type(query) is EncodedQuery for query in encoded] == [True, False, True]
    assert [getattr(query, "post_id", None) for query in encoded] == ["2", "5", "1"]
    with Collection(folder / "collection.db") as source:
        stored = reader.encode_posts([replace(POSTS[0], body="another text")], source)[0]
    assert isinstance(stored, EncodedQuery)
    assert isinstance(encoded[2], EncodedQuery)
    torch.testing.assert_close(stored.vectors.vectors, encoded[2].vectors.vectors)
