"""Sizes of stored graphs with their virtual nodes, as SQL over the counts in the table ``graph``: no graph is read.

>>> sizes = GraphSizes(VirtualNodeSpec(structure="global"))
>>> sizes.nodes, sizes.edges
('(nodes + 1)', '(2 * (edges + nodes + (0)))')
>>> GraphSizes(VirtualNodeSpec(structure="none", connectivity="sequential")).edges
'(2 * (edges + (max((formulas + roots) - 1, 0))))'
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, fields

from graphs.errors import Failure, GraphTooLargeError
from graphs.graph import tensors, virtual_nodes
from graphs.graph.connectivity import auxiliary_count
from graphs.graph.stored import GraphSize
from graphs.graph.virtual_nodes import VirtualNodeSpec


class GraphSizes:
    """SQL expressions for the sizes of graphs with the virtual nodes of ``spec``.

    Attributes:
        nodes: number of nodes, virtual ones included.
        edges: number of edges, inverses included.
        fits: whether a graph can be encoded; others have no tensors with these virtual nodes.
    """

    def __init__(self, spec: VirtualNodeSpec) -> None:
        self.spec = spec
        members = f"formulas + {'sentences' if spec.structure == 'full' else 'roots'}"
        auxiliary = auxiliary_count(spec.connectivity, members)
        nodes, hierarchy = {
            "full": (f"nodes + {members} + 1", f"constituents + {members} + 1 + "),
            "global": ("nodes + 1", "nodes + "),
            "none": ("nodes", ""),
        }[spec.structure]
        self.nodes, self.edges = f"({nodes})", f"(2 * (edges + {hierarchy}{auxiliary}))"
        bounds = {
            self.nodes: tensors.MAX_NODES,
            self.edges: tensors.MAX_EDGES,
            auxiliary: virtual_nodes.MAX_AUXILIARY_EDGES,
        }
        self.fits = f"({' AND '.join(f'{number} <= {bound}' for number, bound in bounds.items())})"

    def check(self, size: GraphSize) -> None:
        """Refuse a graph that is too large with these virtual nodes.

        Raises:
            GraphTooLargeError: with the numbers.
        """
        members = size.formulas + (size.sentences if self.spec.structure == "full" else size.roots)
        virtual_nodes.check_auxiliary(self.spec.connectivity, members)
        counts = ", ".join(f"{number} AS {name}" for name, number in asdict(size).items())
        with closing(sqlite3.connect(":memory:")) as connection:
            row = connection.execute(f"SELECT {self.nodes}, {self.edges} FROM (SELECT {counts})").fetchone()
        tensors.check_size(*row)

    def failures(self, connection: sqlite3.Connection) -> Iterator[Failure]:
        """Graphs that are too large with these virtual nodes."""
        columns = ", ".join(count.name for count in fields(GraphSize))
        query = f"SELECT post_id, {columns} FROM graph WHERE NOT {self.fits} ORDER BY post_id"
        for post_id, *counts in connection.execute(query):
            try:
                self.check(GraphSize(*counts))
            except GraphTooLargeError as error:
                yield Failure(post_id, "tensors", error.kind, str(error))
