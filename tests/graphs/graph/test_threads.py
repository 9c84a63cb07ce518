"""Graphs of threads: the fast way equals the plain one, and the posts of a thread are those of the collection."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.errors import ConfigError
from graphs.graph.batching import GraphBatch
from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.packed import collate_packed
from graphs.graph.stored import encode, to_stored
from graphs.graph.threads import MAX_SIBLINGS, NUM_THREAD_LABELS, Role, ThreadPosts, in_threads
from graphs.graph.virtual_nodes import VirtualKind, VirtualNodeSpec
from tests.graphs.graph.random_documents import documents
from tests.graphs.graph.test_packed import VOCABULARY, assert_equal

FIRST, RELATION = VOCABULARY.num_labels, VOCABULARY.num_relations
ROLES = [[Role.OWN, Role.QUESTION], [Role.OWN], [Role.OWN, Role.QUESTION, Role.SIBLING], [Role.OWN, Role.SIBLING]]


def loaded(graphs: list[DocumentGraph], structure: str) -> GraphBatch:
    spec = VirtualNodeSpec(structure)  # type: ignore[arg-type]
    return collate_packed([encode(to_stored(graph, "both", VOCABULARY)) for graph in graphs], spec)


def plain_threads(batch: GraphBatch, roles: Sequence[Sequence[Role]], first_label: int, relation: int) -> GraphBatch:
    """Compute :func:`in_threads` node by node."""
    nodes, vectors, down = list[tuple[int, int, bool, int]](), list[tuple[int, int]](), list[tuple[int, int]]()
    place, ptr, post = dict[int, int](), [0], 0
    for thread, some in enumerate(roles):
        documents = []
        for role in some:
            for node in (batch.node_graph == post).nonzero().flatten().tolist():
                kind, place[node] = int(batch.virtual_kind[node]), len(nodes)
                other = role > 0 and kind >= 0
                label = first_label + 1 + 3 * (role - 1) + kind if other else int(batch.labels[node])
                nodes.append((label, thread, kind >= 0, kind))  # a node's label, thread, mask and kind
                documents += [place[node]] if kind == VirtualKind.DOCUMENT else []
            span = slice(int(batch.ptr[post]), int(batch.ptr[post + 1]))
            kinds = batch.representative_kind[span].tolist()
            vectors += zip([place[node] for node in batch.representatives[span].tolist()], kinds, strict=True)
            post += 1
        down += [(len(nodes), document) for document in documents]
        vectors.append((len(nodes), VirtualKind.DOCUMENT))
        nodes.append((first_label, thread, True, VirtualKind.DOCUMENT))
        ptr.append(len(vectors))
    edges = [(place[s], place[t]) for s, t in batch.edge_index.T.tolist()] + down + [(t, s) for s, t in down]
    relations = batch.relation.tolist() + [relation] * len(down) + [relation + 1] * len(down)
    columns = [torch.tensor(column) for column in zip(*nodes, strict=True)]
    rows = [torch.tensor(column) for column in zip(*vectors, strict=True)]
    return GraphBatch(
        labels=columns[0],
        edge_index=torch.tensor(edges).T,
        relation=torch.tensor(relations),
        node_graph=columns[1],
        is_virtual=columns[2],
        virtual_kind=columns[3],
        representatives=rows[0],
        representative_kind=rows[1],
        ptr=torch.tensor(ptr),
        num_graphs=len(roles),
        has_threads=True,
    )


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
    assert_equal(found, plain_threads(batch, roles, FIRST, RELATION))
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
