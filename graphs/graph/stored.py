"""Graph without virtual nodes, as integer arrays and as the compact bytes of preprocessed.db.

"Solve FORMULA_0." has the concepts ``solve-01`` and ``FORMULA_0``; the operator tree of the formula is ``V!x``. Node 2
is of formula 0, nodes 0 and 1 are of sentence 0, whose root is node 0:

>>> arrays = StoredArrays.from_edges(
...     labels=[8, 9, 10], edges=[(1, 12, 2), (0, 10, 1)], root=0,
...     formulas=[(1, 0)], trees=[[2]], sentence_roots=[0], concepts=[[0, 1]])
>>> arrays.relations.tolist(), arrays.edges.tolist(), arrays.formulas.tolist(), arrays.sentences.tolist()
([10, 12], [[0, 1], [1, 2]], [[1, 0, 1]], [[0, 2]])
>>> blob = encode(arrays)
>>> len(blob), decode(blob, "255") == arrays
(80, True)
>>> decode(blob[:-2], "255")
Traceback (most recent call last):
    ...
graphs.errors.GraphError: post 255: stored graph has 78 bytes, its header says 80; preprocess the collection again

Virtual nodes, their edges and all inverse edges follow from this, and are added when graphs are loaded
(:mod:`graphs.graph.packed`); so one file serves every structure and connectivity. Edges are sorted by relation, and
relations are stored as runs. All numbers are little-endian:

======================  ==========================================================================
header, 10 of 4 bytes   magic and format; bytes a number (2 or 4); nodes; edges; runs; formulas;
                        sentences; tree nodes; concepts; root
body, 2 or 4 bytes      labels;
                        source and target of each edge;
                        tree nodes of formula 0, 1, ...; concepts of sentence 0, 1, ...; node of
                        each formula; root of each sentence;
                        relation and length of each run;
                        place, and number of tree nodes or concepts, of each formula and sentence
======================  ==========================================================================

The place of a formula is the sentence that it is read after (:func:`graphs.graph.virtual_nodes.places`); that of a
sentence is its number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from itertools import chain
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from graphs.errors import Failure, GraphError, MathAMRError, encodable
from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.tensors import check_size
from graphs.graph.virtual_nodes import FormulaMode, constituents, places, select_formulas
from graphs.graph.vocabulary import NUM_VIRTUAL_RELATIONS, Decode, Row, Vocabulary, formula_map_of, own_roles

Int32 = npt.NDArray[np.int32]

MAGIC = 0x4D410002  # "MA", format 2
HEADER_FIELDS = (
    "magic", "width", "nodes", "edges", "runs", "formulas", "sentences", "tree_nodes", "concepts", "root",
)  # fmt: skip
HEADER_BYTES = 4 * len(HEADER_FIELDS)
BODY = np.array(
    [
        #  nodes, edges, runs, formulas, sentences, tree nodes, concepts
        [1, 0, 0, 0, 0, 0, 0],  # labels
        [0, 2, 0, 0, 0, 0, 0],  # edges
        [0, 0, 0, 0, 0, 1, 0],  # tree nodes
        [0, 0, 0, 0, 0, 0, 1],  # concepts
        [0, 0, 0, 1, 1, 0, 0],  # nodes of formulas, roots of sentences
        [0, 0, 2, 0, 0, 0, 0],  # runs
        [0, 0, 0, 2, 2, 0, 0],  # places and sizes
    ]
)
"""Numbers in each part of the body, for each count of the header."""


@dataclass(frozen=True, slots=True, eq=False)
class StoredArrays:
    """A graph without virtual nodes: N nodes, E edges, F formulas, S sentences, T tree nodes, C concepts.

    Attributes:
        labels: int32 (N,), ids of the vocabulary.
        edges: int32 (E, 2), source and target, sorted by relation; no inverses.
        relations: int32 (E,), even, ascending.
        formulas: int32 (F, 3), node, place, and number of tree nodes of each formula.
        sentences: int32 (S, 2), root, and number of concepts of each sentence.
        trees: int32 (T,), tree nodes of formula 0, of formula 1, ...; of a formula without trees its own node.
        concepts: int32 (C,), concepts of sentence 0, of sentence 1, ...
        root: root of the AMR.
    """

    labels: Int32
    edges: Int32
    relations: Int32
    formulas: Int32
    sentences: Int32
    trees: Int32
    concepts: Int32
    root: int

    @classmethod
    def from_edges(
        cls,
        labels: Sequence[int],
        edges: Sequence[tuple[int, int, int]],
        root: int,
        *,
        formulas: Sequence[tuple[int, int]] = (),
        trees: Sequence[Sequence[int]] = (),
        sentence_roots: Sequence[int] = (),
        concepts: Sequence[Sequence[int]] = (),
    ) -> StoredArrays:
        """Return the stored form of edges (source, even relation, target), stably sorted by relation.

        Args:
            formulas: node and place of each formula.
            trees: tree nodes of each formula.
            concepts: concepts of each sentence.
        """
        forward = np.asarray(edges, dtype=np.int32).reshape(-1, 3)  # (E, 3)
        forward = forward[np.argsort(forward[:, 1], kind="stable")]
        of_formulas = [(*formula, len(nodes)) for formula, nodes in zip(formulas, trees, strict=True)]
        of_sentences = [(node, len(nodes)) for node, nodes in zip(sentence_roots, concepts, strict=True)]
        return cls(
            labels=np.asarray(labels, dtype=np.int32),
            edges=forward[:, ::2].copy(),  # (E, 2)
            relations=forward[:, 1].copy(),
            formulas=np.asarray(of_formulas, dtype=np.int32).reshape(-1, 3),
            sentences=np.asarray(of_sentences, dtype=np.int32).reshape(-1, 2),
            trees=np.fromiter(chain.from_iterable(trees), dtype=np.int32),
            concepts=np.fromiter(chain.from_iterable(concepts), dtype=np.int32),
            root=root,
        )

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, StoredArrays):
            return NotImplemented
        return all(np.array_equal(getattr(self, f.name), getattr(other, f.name)) for f in fields(self))

    __hash__ = None  # type: ignore[assignment]


class GraphSize(NamedTuple):
    """Counts of a graph, in the order of their columns in a database; they determine its size with virtual nodes.

    Attributes:
        nodes: nodes without virtual ones.
        edges: edges without inverses and without those of virtual nodes.
        sentences: sentences with a concept.
        roots: roots of sentences that are no formula nodes.
        constituents: tree nodes of formulas and concepts of sentences.
    """

    nodes: int
    edges: int
    formulas: int
    sentences: int
    roots: int
    constituents: int


def size_of(arrays: StoredArrays) -> GraphSize:
    """Return the counts of a graph."""
    roots, number_of_concepts = arrays.sentences.T
    return GraphSize(
        nodes=len(arrays.labels),
        edges=len(arrays.relations),
        formulas=len(arrays.formulas),
        sentences=int((number_of_concepts > 0).sum()),
        roots=int((~np.isin(roots, arrays.formulas[:, 0])).sum()),
        constituents=len(arrays.trees) + len(arrays.concepts),
    )


def to_stored(graph: DocumentGraph, formulas: FormulaMode, vocabulary: Vocabulary) -> StoredArrays:
    """Keep the formula trees of the mode, and give labels and relations their ids.

    Raises:
        GraphTooLargeError: when there are too many nodes or edges.
    """
    check_size(len(graph.labels), 2 * len(graph.edges))
    graph = select_formulas(own_roles(graph), formulas)
    trees, concepts = constituents(graph)
    label_id, relation_id = vocabulary.label_id, vocabulary.relation_id
    return StoredArrays.from_edges(
        labels=[label_id(label, kind) for label, kind in zip(graph.labels, graph.kinds, strict=True)],
        edges=[(source, relation_id(role), target) for source, role, target in graph.edges],
        root=graph.root,
        formulas=list(zip(graph.formula_nodes, places(graph), strict=True)),
        trees=trees,
        sentence_roots=graph.sentence_roots,
        concepts=concepts,
    )


def encode(arrays: StoredArrays) -> bytes:
    """Return the stored form of a graph.

    Raises:
        GraphError: when its edges are not sorted by relation, have virtual relations, or something names a node that
            does not exist.
    """
    relations = arrays.relations
    if (np.diff(relations, prepend=NUM_VIRTUAL_RELATIONS) < 0).any() or (relations % 2).any():
        raise GraphError("edges are not sorted by even relations of a graph; use StoredArrays.from_edges")
    for what, nodes in _named_nodes(arrays):
        if (worst := _outside(nodes, len(arrays.labels))) is not None:
            raise GraphError(f"{what} node {worst}, but the graph has the nodes 0..{len(arrays.labels) - 1}")
    starts = np.flatnonzero(np.diff(relations, prepend=-1))
    runs = np.stack([relations[starts], np.diff(starts, append=len(relations))], axis=1)  # (R, 2)
    roots, number_of_concepts = arrays.sentences.T
    references = (arrays.edges.ravel(), arrays.trees, arrays.concepts, arrays.formulas[:, 0], roots)
    sizes = np.stack([np.arange(len(roots)), number_of_concepts], axis=1)  # (S, 2)
    body = np.concatenate([arrays.labels, *references, runs.ravel(), arrays.formulas[:, 1:].ravel(), sizes.ravel()])
    width = 2 if body.max(initial=0) < 1 << 16 else 4
    counted = (arrays.labels, arrays.edges, runs, arrays.formulas, arrays.sentences, arrays.trees, arrays.concepts)
    header = (MAGIC, width, *map(len, counted), arrays.root)
    return np.asarray(header, dtype="<u4").tobytes() + body.astype(f"<u{width}").tobytes()


def decode(blob: bytes, post_id: str) -> StoredArrays:
    """Invert :func:`encode`; errors name ``post_id``.

    Raises:
        GraphError: when the bytes are cut off, are no stored graph of this format, or contradict each other.
    """
    _, width, *lengths, root = check_header(blob, post_id)
    nodes, edges, _, formulas, _, tree_nodes, number_of_concepts = lengths
    numbers = np.frombuffer(blob, dtype=f"<u{width}", offset=HEADER_BYTES)
    damage = "the file is damaged, preprocess the collection again"
    if numbers.max(initial=0) >= 1 << 31:
        raise GraphError(f"post {post_id}: a number of {numbers.max()}; {damage}")
    parts = np.split(numbers.astype(np.int32), np.cumsum(BODY @ lengths)[:-1])
    labels, ends, trees, concepts, members, runs, sizes = parts
    relation, run_lengths = runs.reshape(-1, 2).T
    places, sizes = sizes.reshape(-1, 2).T
    arrays = StoredArrays(
        labels=labels,
        edges=ends.reshape(-1, 2),
        relations=np.repeat(relation, run_lengths) if run_lengths.sum() == edges else relation,
        formulas=np.stack([members[:formulas], places[:formulas], sizes[:formulas]], axis=1),
        sentences=np.stack([members[formulas:], sizes[formulas:]], axis=1),
        trees=trees,
        concepts=concepts,
        root=root,
    )
    of_trees, of_sentences = arrays.formulas[:, 2], arrays.sentences[:, 1]
    for what, found, expected in (
        ("runs of {} edges", run_lengths.sum(), edges),
        ("formulas of {} tree nodes", of_trees.sum(), tree_nodes),
        ("sentences of {} concepts", of_sentences.sum(), number_of_concepts),
    ):
        if found != expected:
            raise GraphError(f"post {post_id}: {what.format(found)}, header says {expected}; preprocess again")
    for what, named in _named_nodes(arrays):
        if (worst := _outside(named, nodes)) is not None:
            message = f"{what} node {worst}, but the graph has the nodes 0..{nodes - 1}"
            raise GraphError(f"post {post_id}: {message}; {damage}")
    if relation.min(initial=NUM_VIRTUAL_RELATIONS) < NUM_VIRTUAL_RELATIONS:
        raise GraphError(f"post {post_id}: edges of relation {relation.min()}, which virtual nodes have; {damage}")
    return arrays


def _named_nodes(arrays: StoredArrays) -> list[tuple[str, Int32]]:
    return [
        ("an edge joins", arrays.edges),
        ("a formula is", arrays.formulas[:, 0]),
        ("the root of a sentence is", arrays.sentences[:, 0]),
        ("a formula has the", arrays.trees),
        ("a sentence has the", arrays.concepts),
        ("the root is", np.array([arrays.root], dtype=np.int32)),
    ]


def _outside(numbers: Int32, bound: int) -> int | None:
    """Return the worst of the numbers outside 0 to ``bound`` - 1."""
    if not numbers.size or 0 <= numbers.min() <= numbers.max() < bound:
        return None
    return int(numbers.min() if numbers.min() < 0 else numbers.max())


def check_header(blob: bytes, post_id: str) -> tuple[int, ...]:
    """Return the numbers of the header (``HEADER_FIELDS``); raise GraphError if they do not fit the blob's length."""
    if len(blob) < HEADER_BYTES:
        raise GraphError(f"post {post_id}: stored graph has {len(blob)} bytes, less than a header; preprocess again")
    header = tuple(np.frombuffer(blob, dtype="<u4", count=len(HEADER_FIELDS)).tolist())
    magic, width, *lengths, _ = header
    if magic != MAGIC or width not in (2, 4):
        raise GraphError(
            f"post {post_id}: not a stored graph of this version (begins {blob[:8].hex()}); preprocess again"
        )
    expected = HEADER_BYTES + width * int((BODY @ lengths).sum())
    if len(blob) != expected:
        raise GraphError(
            f"post {post_id}: stored graph has {len(blob)} bytes, its header says {expected};"
            " preprocess the collection again"
        )
    return header


Converted = tuple[str, GraphSize, bytes]
"""Post id, counts and stored form of a graph."""


def convert(
    decode: Decode, formulas: FormulaMode, vocabulary: Vocabulary, rows: list[Row]
) -> list[Converted | Failure]:
    """Return what preprocessed.db holds of rows.

    It is here because this module, unlike the store, needs no torch, which takes each worker seconds to import.
    """
    converted: list[Converted | Failure] = []
    for post_id, text, formula_map in rows:
        try:
            check_size(text.count(" / "), 0)  # of each node that is no constant: reading a million takes a minute
            arrays = to_stored(decode(text, formula_map_of(formula_map)), formulas, vocabulary)
            converted.append((post_id, size_of(arrays), encode(arrays)))
        except MathAMRError as error:
            kind = getattr(error, "kind", type(error).__name__)
            converted.append(Failure(post_id, "tensors", kind, encodable(str(error))))
    return converted


def worker_died(rows: list[Row]) -> list[Converted | Failure]:
    """Return the records of rows whose process died."""
    message = "the process that converted this graph died, out of memory perhaps"
    return [Failure(post_id, "tensors", "worker_died", message) for post_id, _, _ in rows]
