"""Batches of threads: no document has the question that it is the positive of, and no thread tells a negative."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from tiny_collection import ENCODER, settings

from graphs.corpus.post import Pair
from graphs.errors import ConfigError, StoreError
from graphs.graph.batching import GraphBatch
from graphs.graph.threads import ThreadPosts
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.stores.store import GraphStore
from graphs.stores.thread_store import ThreadStore
from mathamr import maxsim
from mathamr.model.encoder import Encoder
from mathamr.model.encoding import encode
from mathamr.negatives.mining import model_rankings
from mathamr.search.query import QueryEncoder
from mathamr.training.distributed import ranks
from mathamr.training.graph.loading import TrainingBatch, TrainingBatches, hidden_posts
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import split_pairs

PARENTS = {f"a{number}": f"q{number}" for number in range(40)}


@pytest.fixture
def threads(store: GraphStore) -> ThreadStore:
    return ThreadStore(store.path, VirtualNodeSpec(thread="question"), ThreadPosts(PARENTS, "question"))


def question_documents(store: ThreadStore, chunk: GraphBatch) -> torch.Tensor:
    """Graphs of a chunk that have a question beside their own post."""
    label = store.vocabulary.num_labels + 3  # after the thread's: formulas, sentences and documents of questions
    return chunk.node_graph[chunk.labels == label]


def batches(store: ThreadStore, pairs: list[Pair]) -> list[TrainingBatch]:
    split = split_pairs(pairs, frozenset(store.post_ids()), validation_fraction=0.1)
    with ranks("cpu") as world:
        made = TrainingBatches(store, split, settings(batch_size=8, workers=0), world)
        return [made.batch(some, 0, number) for number, some in enumerate(made.curriculum.epoch(0, 1))]


def test_no_document_has_the_question_that_it_is_the_positive_of(threads: ThreadStore, pairs: list[Pair]) -> None:
    assert threads.threads(["a1"]) == [[("a1", 0), ("q1", 1)]]  # as a search reads it
    for batch in batches(threads, pairs):
        assert all(not len(question_documents(threads, chunk)) for chunk in batch.chunks)


def test_a_question_without_a_graph_is_left_out(store: GraphStore) -> None:
    threads = ThreadStore(store.path, VirtualNodeSpec(thread="question"), ThreadPosts({"a1": "lost"}, "question"))
    assert threads.threads(["a1"]) == [[("a1", 0)]]
    assert threads.load(["a1"]).num_graphs == 1
    assert [sizes.tolist() for sizes in threads.sizes([])] == [[], []]


def test_an_answer_of_a_duplicate_has_its_question(threads: ThreadStore) -> None:
    """The question of a positive is read where another question is asked, unless it is in the batch, too."""
    pairs = [Pair("q0", "a1"), Pair("q2", "a3"), Pair("q3", "a5")]
    assert hidden_posts(threads, pairs, [[], [], []]) == {"q0", "a1", "q2", "a3", "q3", "a5"}
    hidden = hidden_posts(threads, pairs, [[], [], []])
    found = threads.load(["q0", "a1", "q2", "a3", "q3", "a5"], hidden)
    assert question_documents(threads, found).tolist() == [1, 5]  # a1 with q1 and a5 with q5, not a3 with q3


def test_a_negative_has_its_question_where_the_positive_has_its_own(threads: ThreadStore) -> None:
    pairs = [Pair("q0", "a0"), Pair("q1", "a2")]
    hidden = hidden_posts(threads, pairs, [["a7"], ["a8"]])
    assert "q7" in hidden
    assert "q8" not in hidden


def test_negatives_of_the_model_are_ranked_without_the_questions_of_the_pairs(threads: ThreadStore) -> None:
    torch.manual_seed(0)
    encoder = Encoder(ENCODER, threads.num_labels, threads.num_relations)
    questions, answers = [f"q{number}" for number in range(5)], [f"a{number}" for number in range(10)]
    found = dict(model_rankings(encoder, threads, questions, answers, k=10)["q0"])
    alone = encode(encoder, threads, answers, hidden=questions)
    expected = maxsim.scores(encode(encoder, threads, ["q0"]), alone, normalize=True)[0]
    assert [found[name] for name in answers] == pytest.approx(expected.tolist(), abs=1e-5)


def test_a_text_alone_is_not_read_as_a_thread(threads: ThreadStore) -> None:
    encoder = Encoder(ENCODER, threads.num_labels, threads.num_relations)
    with pytest.raises(ConfigError, match="this model reads graphs of threads"):
        QueryEncoder(encoder, threads.vocabulary, threads.spec)


def test_nothing_is_hidden_without_threads(store: GraphStore) -> None:
    assert hidden_posts(store, [Pair("q0", "a0")], [[]]) == frozenset()


def test_sizes_are_those_of_threads(threads: ThreadStore) -> None:
    posts = ["a1", "q2", "a3"]
    for hidden in (frozenset[str](), frozenset({"q3"})):
        nodes, edges = threads.sizes(posts, hidden)
        batch = threads.load(posts, hidden)
        assert nodes.tolist() == batch.node_graph.bincount().tolist()
        assert edges.tolist() == batch.node_graph[batch.edge_index[0]].bincount().tolist()


def test_labels_of_questions_are_learned(threads: ThreadStore) -> None:
    encoder = Encoder(ENCODER, threads.num_labels, threads.num_relations)
    sets = encoder(threads.load(["a1", "q2"]))
    assert len(sets) == 2
    sets.vectors[:, 0].sum().backward()
    gradient = encoder.features.labels.weight.grad
    assert gradient is not None
    assert (gradient[threads.vocabulary.num_labels : threads.vocabulary.num_labels + 4].abs().sum(1) > 0).all()


def test_a_model_of_threads_is_trained(threads: ThreadStore, tmp_path: Path) -> None:
    pairs = [Pair(f"q{number}", f"a{(number + 1) % 40}") for number in range(40)]  # of duplicates
    result = train(settings(epochs=1), threads, pairs, ENCODER, out=tmp_path / "model")
    assert result.best_val_loss < 10


def test_posts_alone_are_not_read_as_threads(store: GraphStore) -> None:
    with pytest.raises(StoreError, match="needs the posts of each thread"):
        GraphStore(store.path, VirtualNodeSpec(thread="question")).load(["a1"])


def test_variables_are_renamed_in_training_and_keys_stay(store: GraphStore, pairs: list[Pair]) -> None:
    split = split_pairs(pairs, frozenset(store.post_ids()), validation_fraction=0.1)
    plain, renaming = (settings(workers=0, node_mask=0.0, edge_dropout=0.0, rename=share) for share in (0.0, 1.0))
    assert "rename" not in plain.key_parts()
    assert renaming.key_parts()["rename"] == 1.0
    variables = [place for place, name in enumerate(store.vocabulary.labels) if name.startswith("V!")]
    made = []
    with ranks("cpu") as world:
        for config in (plain, renaming):
            batches = TrainingBatches(store, split, config, world)
            batches._variables = torch.tensor([variables, variables]).T  # this collection has none of one letter
            made.append(batches.batch(tuple(split.train[:8]), 0, 0))
    one, other = made
    labels, changed = one.chunks[0].labels, other.chunks[0].labels
    names = {store.vocabulary.labels[label] for label in labels[labels != changed].tolist()}
    assert len(labels) == len(changed)
    assert names
    assert all(name.startswith("V!") for name in names)
    with pytest.raises(ConfigError, match=r"train.rename=2\.0 must lie in"):
        settings(rename=2.0)
