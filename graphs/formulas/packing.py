"""Packing of a formula tree into a few bytes of UTF-8, and back.

>>> from graphs.formulas.presentation import parse_slt
>>> tree = parse_slt("<math><msup><mi>x</mi><mn>2</mn></msup></math>")
>>> pack(tree)
b'10\\x1fa\\x1fV!x\\x1fN!2'
>>> unpack(pack(tree), "slt") == tree
True

First comes the number of children of each node in pre-order, one character each (``0`` for none), which is the whole
shape. Then follow the edge labels of the nodes except the root, one character each, and the labels, separated by
U+001F.
"""

from __future__ import annotations

from graphs.errors import FormulaError
from graphs.formulas.tree import FormulaTree, TreeKind

_SEPARATOR = "\x1f"
_ZERO = ord("0")
_SURROGATES = 0xD800  # code points that UTF-8 has no bytes for: the bound of a node's number of children


def pack(tree: FormulaTree) -> bytes:
    """Return the bytes of a tree.

    Raises FormulaError (kind ``packing``) for a tree that readers of formulas never make: with U+001F in a label, an
    edge label of several characters, or 50,000 children of one node."""
    counts = [0] * len(tree)
    for parent in tree.parents[1:]:
        counts[parent] += 1
    edges = "".join(tree.edge_labels)
    packed = _SEPARATOR.join(("".join([chr(_ZERO + count) for count in counts]), edges, *tree.labels))
    if (
        len(edges) != len(tree) - 1
        or packed.count(_SEPARATOR) != len(tree) + 1
        or max(counts) >= _SURROGATES - _ZERO
        or (_SEPARATOR in edges)
    ):
        raise FormulaError(f"this {tree.kind} of {len(tree):,} nodes cannot be packed", kind="packing")
    return packed.encode()


def unpack(packed: bytes, kind: TreeKind) -> FormulaTree:
    """Return the tree packed in these bytes by :func:`pack`."""
    counts, edges, *labels = packed.decode().split(_SEPARATOR)
    parents = [-1]
    open_parents: list[int] = []  # parents of the nodes to come, the next one last
    for index, count in enumerate(counts):
        if index:
            parents.append(open_parents.pop())
        if count != "0":
            open_parents += [index] * (ord(count) - _ZERO)
    return FormulaTree(kind, tuple(labels), tuple(parents), ("", *edges))
