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

from graphs.errors import Failure, GraphTooLargeError
from graphs.graph import tensors, virtual_nodes
from graphs.graph.connectivity import auxiliary_count
from graphs.graph.virtual_nodes import VirtualNodeSpec


class GraphSizes:
    """SQL expressions for the sizes of graphs with the virtual nodes of ``spec``.

    Attributes:
        nodes: number of nodes, virtual ones included.
        edges: number of edges, inverses included.
        auxiliary: number of auxiliary edges.
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
        edges = f"2 * (edges + {hierarchy}{auxiliary})"
        bounds = {nodes: tensors.MAX_NODES, edges: tensors.MAX_EDGES, auxiliary: virtual_nodes.MAX_AUXILIARY_EDGES}
        fits = " AND ".join(f"{number} <= {bound}" for number, bound in bounds.items())
        self.nodes, self.edges, self.auxiliary, self.fits = (f"({one})" for one in (nodes, edges, auxiliary, fits))

    def failures(self, connection: sqlite3.Connection) -> Iterator[Failure]:
        """Graphs that are too large with these virtual nodes."""
        columns = f"post_id, {self.nodes}, {self.edges}, formulas + sentences, formulas + roots"
        for post_id, nodes, edges, full, flat in connection.execute(
            f"SELECT {columns} FROM graph WHERE NOT {self.fits} ORDER BY post_id"
        ):
            try:
                members = full if self.spec.structure == "full" else flat
                virtual_nodes.check_auxiliary(self.spec.connectivity, members)
                tensors.check_size(nodes, edges)
            except GraphTooLargeError as error:
                yield Failure(post_id, "tensors", error.kind, str(error))
