"""Formula trees: labels, typed edges, the Tangent string form and the packed form, the same for SLT and OPT.

``x^2+y`` as a symbol layout tree (SLT): the ``+`` comes next (``n``) to the ``x``, the 2 is above (``a``) it:

>>> slt = FormulaTree("slt", labels=("V!x", "+", "V!y", "N!2"), parents=(-1, 0, 1, 0), edge_labels=("", "n", "n", "a"))
>>> slt.tangent_string()
'[V!x[+[V!y]],a[N!2]]'
>>> slt.edges()
[(0, 'n', 1), (1, 'n', 2), (0, 'a', 3)]

Nodes are numbered in pre-order, so node 0 is the root and a parent's number is below its children's. Nothing here
recurses, so a chain of 100,000 symbols is possible.

In a database, a tree is a few bytes of UTF-8. First comes the number of children of each node, one character each
(``0`` for none), which is the whole shape. Then follow the edge labels of the nodes except the root, one character
each, and the labels, separated by U+001F:

>>> pack(slt)
b'2100\\x1fnna\\x1fV!x\\x1f+\\x1fV!y\\x1fN!2'
>>> unpack(pack(slt), "slt") == slt
True
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from graphs.errors import FormulaError

TreeKind = Literal["slt", "opt"]

_SLT_PRINT_ORDER = {edge: rank for rank, edge in enumerate("naboucdwe")}


def position_label(position: int) -> str:
    """Return the one-character label of an operand's position: ``0`` to ``9``, ``A`` to ``Z``, then from ``a`` on.

    >>> [position_label(position) for position in (0, 9, 10, 35, 36, 61)]
    ['0', '9', 'A', 'Z', 'a', 'z']
    """
    return chr(position + (48 if position < 10 else 55 if position < 36 else 61))


def position_of(label: str) -> int:
    """Return the position of a label: the inverse of :func:`position_label`.

    >>> [position_of(label) for label in "09AZaz~"]
    [0, 9, 10, 35, 36, 61, 65]
    """
    code = ord(label)
    return code - (48 if code < 58 else 55 if code < 91 else 61)


@dataclass(frozen=True, slots=True)
class FormulaTree:
    """Finished tree: node ``i`` has ``labels[i]``, parent ``parents[i]`` (-1: root) and edge ``edge_labels[i]``."""

    kind: TreeKind
    labels: tuple[str, ...]
    parents: tuple[int, ...]
    edge_labels: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.labels)

    def edges(self) -> list[tuple[int, str, int]]:
        """Yield ``(source, label, target)`` for every node but the root, by target."""
        return [(self.parents[i], self.edge_labels[i], i) for i in range(1, len(self.labels))]

    def tangent_string(self) -> str:
        """Return the string form of Tangent-S: ``[label,edge[...],...]``.

        In an SLT the next symbol comes first, without label, then the others in the order ``a b o u c d w e``. In an
        OPT children show their position, also below an unordered operator, where all edges are labelled ``0``.
        """
        children: list[list[int]] = [[] for _ in self.labels]
        for target in range(1, len(self.labels)):
            children[self.parents[target]].append(target)
        out: list[str] = []
        stack: list[str | int] = [0] if self.labels else []
        while stack:
            item = stack.pop()
            if isinstance(item, str):
                out.append(item)
                continue
            out.append(f"[{self.labels[item]}")
            following: list[str | int] = []
            if self.kind == "slt":
                for child in sorted(children[item], key=lambda child: _SLT_PRINT_ORDER[self.edge_labels[child]]):
                    edge = self.edge_labels[child]
                    following += [child] if edge == "n" else [f",{edge}", child]
            else:
                for position, child in enumerate(children[item]):
                    following += [f",{position_label(position)}", child]
            stack.append("]")
            stack.extend(reversed(following))
        return "".join(out)


@dataclass(frozen=True, slots=True)
class ParsedFormula:
    """Both trees of a formula; a missing tree is ``None`` and ``errors`` has the reason, by kind of tree."""

    slt: FormulaTree | None
    opt: FormulaTree | None
    errors: tuple[tuple[TreeKind, str], ...] = ()


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
