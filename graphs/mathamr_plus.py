"""A MathAMR+ graph: the AMR of a post with the operator tree and the symbol layout tree of every formula hung into it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum


class NodeKind(IntEnum):
    """What a node of a MathAMR+ graph is."""

    AMR = 0  # a concept, or a constant such as a number or a name
    FORMULA = 1  # a FORMULA_i node
    OPT = 2
    SLT = 3


@dataclass(slots=True)
class DocumentGraph:
    """A MathAMR+ graph as arrays; node 0 is not special, ``root`` names the AMR root.

    Shapes: N nodes, E edges. ``labels``, ``kinds``, ``sentence`` and ``formula`` have length N.
    """

    labels: list[str]
    kinds: list[NodeKind]
    edges: list[tuple[int, str, int]]  # (source, role such as ":ARG0" or ":slt-n", target)
    root: int
    sentence: list[int]  # number of the sentence of an AMR or FORMULA node, -1 for the document root and tree nodes
    formula: list[int]  # i of FORMULA_i for a formula node and the nodes of its trees, else -1
    sentence_roots: list[int]  # node of each sentence's root, by sentence
    formula_nodes: list[int]  # node of each formula, by i of FORMULA_i
    formula_ids: list[str]  # the collection's id of each formula, by i
