"""Graphs of threads: a post and the posts around it as one graph, with one more level of virtual nodes.

An answer ``a2`` is read with its question and with the other answers to it; a question is alone in its thread:

>>> threads = ThreadPosts({"a1": "q", "a2": "q"}, "siblings")
>>> [(post_id, role.name) for post_id, role in threads.of("a2")]
[('a2', 'OWN'), ('q', 'QUESTION'), ('a1', 'SIBLING')]
>>> [(post_id, role.name) for post_id, role in threads.of("a2", hidden={"q"})]
[('a2', 'OWN'), ('a1', 'SIBLING')]
>>> [post_id for post_id, _ in threads.of("q")]
['q']

Each post keeps its hierarchy of virtual nodes (:mod:`graphs.graph.hierarchy`). A thread node above has an edge
``:virtual_thread`` to the document node of each post. It is the last representative, and MaxSim treats it like the
others. Virtual nodes of a question and of siblings have separate labels. The ids of these labels and of the relation
follow those of the vocabulary, which is not changed.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from enum import IntEnum

import torch
from torch import Tensor

from graphs.graph.batching import GraphBatch
from graphs.graph.virtual_nodes import ThreadMode, VirtualKind

MAX_SIBLINGS = 8
"""Other answers in a thread; some questions have a hundred."""


class Role(IntEnum):
    """Role of a post in the thread of another one."""

    OWN = 0
    QUESTION = 1
    SIBLING = 2


Thread = list[tuple[str, Role]]
"""Posts of a thread, its own post first."""

NUM_THREAD_LABELS = 1 + (len(Role) - 1) * len(VirtualKind)
"""Labels after those of the vocabulary: the thread node, then each kind of virtual node of a question, of a sibling."""

NUM_THREAD_RELATIONS = 2
"""Relations after those of the vocabulary: ``:virtual_thread`` and its inverse."""


class ThreadPosts:
    """Posts that are read together.

    Args:
        questions: question of each answer.
        mode: question: an answer is read with its question; siblings: also with other answers to it, at most
            :data:`MAX_SIBLINGS`, by id.
    """

    def __init__(self, questions: Mapping[str, str], mode: ThreadMode) -> None:
        self._questions = questions
        self._answers: dict[str, list[str]] = {}
        if mode == "siblings":
            for answer, question in sorted(questions.items()):
                self._answers.setdefault(question, []).append(answer)

    def question_of(self, post_id: str) -> str | None:
        """Return the question that a post answers."""
        return self._questions.get(post_id)

    def of(self, post_id: str, hidden: Collection[str] = ()) -> Thread:
        """Return the thread of a post; posts that are ``hidden`` appear only in their own thread."""
        thread: Thread = [(post_id, Role.OWN)]
        question = self._questions.get(post_id)
        if question is None:
            return thread
        if question not in hidden:
            thread.append((question, Role.QUESTION))
        others = [one for one in self._answers.get(question, ()) if one != post_id and one not in hidden]
        return thread + [(one, Role.SIBLING) for one in others[:MAX_SIBLINGS]]


def in_threads(batch: GraphBatch, roles: Sequence[Sequence[Role]], first_label: int, relation: int) -> GraphBatch:
    """Join the posts of a batch to threads.

    Args:
        batch: P graphs with a document node each.
        roles: roles of the posts of each thread, P in all, in the order of ``batch``.
        first_label: id of the thread node's label; the other labels follow it.
        relation: id of ``:virtual_thread``, above all relations of ``batch``; its inverse follows it.
    """
    sizes = torch.tensor([len(some) for some in roles], dtype=torch.int64)  # (T,)
    thread_of_post = torch.repeat_interleave(torch.arange(len(roles)), sizes)  # (P,)
    role_of_post = torch.tensor([role for some in roles for role in some], dtype=torch.int64)
    thread_of_node = thread_of_post[batch.node_graph]  # (N,)
    place = torch.arange(batch.num_nodes) + thread_of_node  # each thread before adds one node
    top = _ends(thread_of_node, len(roles))  # (T,), places of the thread nodes
    role = role_of_post[batch.node_graph]
    of_others = batch.is_virtual & (role > 0)
    labels_of_others = first_label + 1 + len(VirtualKind) * (role - 1) + batch.virtual_kind
    labels = torch.where(of_others, labels_of_others, batch.labels)
    documents = torch.nonzero(batch.virtual_kind == VirtualKind.DOCUMENT).squeeze(1)  # (P,)
    above, below = top[thread_of_node[documents]], place[documents]
    edges = torch.stack([torch.cat([above, below]), torch.cat([below, above])])  # (2, 2P)
    ones = torch.ones(len(documents), dtype=torch.int64)
    owner = thread_of_post[torch.repeat_interleave(batch.ptr.diff())]  # (V,)
    row, last = torch.arange(len(owner)) + owner, _ends(owner, len(roles))

    def joined(values: Tensor, places: Tensor, tops: Tensor, of_tops: Tensor) -> Tensor:
        joint = values.new_empty(len(values) + len(roles))
        joint[places], joint[tops] = values, of_tops.to(values.dtype)
        return joint

    each = torch.ones(len(roles), dtype=torch.int64)
    return replace(
        batch,
        labels=joined(labels, place, top, first_label * each),
        edge_index=torch.cat([place[batch.edge_index], edges], dim=1),
        relation=torch.cat([batch.relation, relation * ones, (relation + 1) * ones]),
        node_graph=joined(thread_of_node, place, top, torch.arange(len(roles))),
        is_virtual=joined(batch.is_virtual, place, top, each),
        virtual_kind=joined(batch.virtual_kind, place, top, VirtualKind.DOCUMENT * each),
        representatives=joined(place[batch.representatives], row, last, top),
        representative_kind=joined(batch.representative_kind, row, last, VirtualKind.DOCUMENT * each),
        ptr=torch.cat([torch.zeros(1, dtype=torch.int64), last + 1]),
        num_graphs=len(roles),
        has_threads=True,
    )


def in_threads_reference(
    batch: GraphBatch, roles: Sequence[Sequence[Role]], first_label: int, relation: int
) -> GraphBatch:
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


def _ends(owner: Tensor, count: int) -> Tensor:
    """Return the place after the last item of each of ``count`` owners, where each has one more item than before.

    >>> _ends(torch.tensor([0, 0, 1]), 2).tolist()
    [2, 4]
    """
    return torch.bincount(owner, minlength=count).cumsum(0) + torch.arange(count)
