"""Graphs of threads: the fast way equals the plain one, and the posts of a thread are those of the collection."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch
from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.packed import collate_packed
from graphs.graph.stored import encode, to_stored
from graphs.graph.threads import MAX_SIBLINGS, NUM_THREAD_LABELS, Role, ThreadPosts, in_threads, in_threads_reference
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec
from tests.graphs.graph.random_documents import documents
from tests.graphs.graph.test_packed import VOCABULARY, assert_equal

FIRST, RELATION = VOCABULARY.num_labels, VOCABULARY.num_relations
ROLES = [[Role.OWN, Role.QUESTION], [Role.OWN], [Role.OWN, Role.QUESTION, Role.SIBLING], [Role.OWN, Role.SIBLING]]


def loaded(graphs: list[DocumentGraph], structure: str) -> GraphBatch:
    spec = VirtualNodeSpec(structure)  # type: ignore[arg-type]
    return collate_packed([encode(to_stored(graph, "both", VOCABULARY)) for graph in graphs], spec)


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.sampled_from(ROLES), min_size=1, max_size=4),
    st.data(),
    st.sampled_from(["full", "global"]),
)
def test_threads_equal_the_plain_way(roles: list[list[Role]], data: st.DataObject, structure: str) -> None:
    count = sum(map(len, roles))
    batch = loaded(data.draw(st.lists(documents(), min_size=count, max_size=count)), structure)
    found = in_threads(batch, roles, FIRST, RELATION)
    assert_equal(found, in_threads_reference(batch, roles, FIRST, RELATION))
    assert (found.relation.diff() >= 0).all()
    assert int(found.labels.max()) < FIRST + NUM_THREAD_LABELS
    assert found.num_nodes == batch.num_nodes + len(roles)


def test_no_thread_is_an_empty_batch() -> None:
    found = in_threads(loaded([], "full"), [], FIRST, RELATION)
    assert (found.num_graphs, found.num_nodes, found.ptr.tolist()) == (0, 0, [0])


@settings(max_examples=10, deadline=None)
@given(documents(), documents())
def test_nodes_of_a_question_have_labels_of_their_own(answer: DocumentGraph, question: DocumentGraph) -> None:
    """The own virtual nodes come first and stay as they are; the thread node is the last vector, which MaxSim reads."""
    batch = loaded([answer, question], "full")
    found = in_threads(batch, [[Role.OWN, Role.QUESTION]], FIRST, RELATION)
    own, other = int(batch.ptr[1]), int(batch.ptr[2] - batch.ptr[1])
    labels = found.labels[found.representatives]
    assert labels[:own].tolist() == batch.labels[batch.representatives[:own]].tolist()
    kinds = batch.representative_kind[own:]
    assert labels[own : own + other].tolist() == (FIRST + 1 + kinds).tolist()
    assert labels[-1] == FIRST
    assert found.representatives[-1] == found.num_nodes - 1
    down = found.edge_index[:, found.relation == RELATION]
    assert down[0].tolist() == [found.num_nodes - 1] * 2
    assert (found.virtual_kind[down[1]] == VirtualKind.DOCUMENT).all()


def test_a_thread_has_its_question_and_some_siblings() -> None:
    questions = {f"a{number:02}": "q" for number in range(29, -1, -1)} | {"b": "r"}
    threads = ThreadPosts(questions, "siblings")
    found = threads.of("a03")
    assert found[:3] == [("a03", Role.OWN), ("q", Role.QUESTION), ("a00", Role.SIBLING)]
    assert len(found) == 2 + MAX_SIBLINGS
    assert threads.of("b") == [("b", Role.OWN), ("r", Role.QUESTION)]
    assert ThreadPosts(questions, "question").of("a03") == [("a03", Role.OWN), ("q", Role.QUESTION)]
    assert threads.of("a03", hidden={"q", *questions}) == [("a03", Role.OWN)]


def test_graphs_without_document_nodes_have_no_threads() -> None:
    with pytest.raises(ConfigError, match="structure=full or global"):
        VirtualNodeSpec("none", thread="question")


def test_settings_without_threads_are_written_as_before() -> None:
    assert VirtualNodeSpec().content() == {"structure": "full", "connectivity": "none", "formulas": "both"}
    assert VirtualNodeSpec(thread="question").content()["thread"] == "question"
