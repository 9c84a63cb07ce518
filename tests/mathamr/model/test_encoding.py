"""Posts are encoded alike in whatever batches they travel."""

import pytest
import torch
from tiny_collection import ENCODER

from graphs.errors import StoreError
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode


@pytest.fixture
def encoder(store: GraphStore) -> Encoder:
    torch.manual_seed(0)
    return Encoder(ENCODER, store.vocabulary.num_labels, store.vocabulary.num_relations)


@pytest.mark.parametrize("max_nodes", [1, 50, 100_000])
def test_the_budget_changes_no_vector_and_no_order(encoder: Encoder, store: GraphStore, max_nodes: int) -> None:
    posts = ["a3", "q0", "a11", "q7", "q0"]
    progress: list[int] = []
    found = encode(encoder, store, posts, max_nodes=max_nodes, progress=progress.append)
    with torch.no_grad():
        alone = [encoder.eval()(store.load([post_id])) for post_id in posts]
    assert [len(vectors) for vectors in found] == [len(sets.vectors) for sets in alone]
    for vectors, sets in zip(found, alone, strict=True):
        torch.testing.assert_close(vectors, sets.vectors, rtol=1e-5, atol=1e-6)
    assert sum(progress) == len(posts)


def test_the_document_vector_is_the_last_of_each_set(encoder: Encoder, store: GraphStore) -> None:
    found = encode(encoder, store, ["a3", "q0"])
    assert torch.equal(found.document_vectors()[0], next(iter(found))[-1])


def test_a_post_without_a_graph_is_named(encoder: Encoder, store: GraphStore) -> None:
    with pytest.raises(StoreError, match="no graph of post nobody"):
        encode(encoder, store, ["a3", "nobody"])


def test_no_posts_are_no_sets(encoder: Encoder, store: GraphStore) -> None:
    found = encode(encoder, store, [])
    assert len(found) == 0
    assert found.vectors.shape == (0, ENCODER.projection_dim)
