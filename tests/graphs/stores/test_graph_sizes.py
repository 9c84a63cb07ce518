"""Sizes without reading a graph: those of the graphs that are loaded."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from typing import get_args

from hypothesis import given, settings
from hypothesis import strategies as st

from graphs.graph.mathamr_plus import DocumentGraph
from graphs.graph.stored import GraphSize, size_of, to_stored
from graphs.graph.tensors import to_arrays
from graphs.graph.virtual_nodes import AUXILIARY_RELATION, FormulaMode, VirtualNodeSpec
from graphs.graph.vocabulary import Counts, Vocabulary
from graphs.stores.graph_sizes import GraphSizes
from tests.graphs.graph.random_documents import documents, loose_documents

VOCABULARY = Vocabulary.build(Counts(), size=50)


@settings(max_examples=60, deadline=None)
@given(st.one_of(documents(), loose_documents()))
def test_sizes_follow_from_counts(graph: DocumentGraph) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE graph({', '.join(GraphSize._fields)})")
        for mode in get_args(FormulaMode):
            connection.execute("DELETE FROM graph")
            size = size_of(to_stored(graph, mode, VOCABULARY))
            connection.execute("INSERT INTO graph VALUES (?, ?, ?, ?, ?, ?)", size)
            for spec in VirtualNodeSpec.every(formulas=mode, thread="none"):
                sizes, arrays = GraphSizes(spec), to_arrays(graph, spec, VOCABULARY)
                auxiliary = int((arrays.relations == VOCABULARY.relation_id(AUXILIARY_RELATION)).sum())
                found = connection.execute(f"SELECT {sizes.nodes}, {sizes.edges}, {sizes.auxiliary} FROM graph")
                assert found.fetchone() == (arrays.num_nodes, arrays.num_edges, auxiliary), spec
