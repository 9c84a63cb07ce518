r"""Layout tree of a formula as MathML, with a role for each symbol: how an alignment is shown.

>>> from graphs.formulas.latex import parse_latex
>>> tree = parse_latex(r"\frac{x^2}{y}").slt
>>> drawn = draw(tree, {0: "equal", 1: "renamed", 2: "changed"})
>>> drawn.children[0].tag, drawn.children[0].role
('mfrac', 'equal')
>>> as_text(drawn)                       # symbols without a role are in brackets
'(x^2)/(⟨y⟩)'
>>> as_markup(draw(parse_latex("a<b").slt, {0: "equal"}))
'<math><mi class="equal">a</mi><mo>&lt;</mo><mi>b</mi></math>'

A drawing shows what the tree has: the fonts and the spaces of the LaTeX are not in it.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from html import escape
from itertools import groupby
from typing import Any, Literal

from graphs.formulas.tree import FormulaTree

Role = Literal["", "equal", "renamed", "changed"]
MAX_DEPTH = 100  # levels of scripts, fractions, roots and fences that are drawn
_LEAVES = {"V!": "mi", "N!": "mn", "T!": "mtext", "E!": "mtext"}
_BOX = re.compile(r"M!(.*?)(?:(\d{1,4})x(\d{1,4}))?")
_FENCE = re.compile(r"&\w+;|.", re.DOTALL)
_NAMED = {"&comma;": ",", "&lsqb;": "[", "&rsqb;": "]", "&quest;": "?", "\\t": " ", "\\n": " ", "\\r": " "}
_NAMES = re.compile("|".join(re.escape(name) for name in _NAMED))


@dataclass(frozen=True)
class Drawn:
    """Element of a drawing.

    Attributes:
        tag: name of the MathML element.
        role: how the symbol was aligned; "" where it was not.
        text: text of a leaf.
    """

    tag: str
    role: Role = ""
    text: str = ""
    children: tuple[Drawn, ...] = ()

    @property
    def leaves(self) -> int:
        """Number of elements without others within."""
        return sum(child.leaves for child in self.children) if self.children else 1

    def record(self) -> dict[str, Any]:
        """Return the drawing as JSON."""
        own: dict[str, Any] = {"tag": self.tag}
        if self.role:
            own["role"] = self.role
        if self.children:
            own["children"] = [child.record() for child in self.children]
        elif self.text:
            own["text"] = self.text
        return own


def draw(tree: FormulaTree, roles: Mapping[int, Role]) -> Drawn:
    """Return the drawing of a layout tree with roles of aligned nodes; parts beyond :data:`MAX_DEPTH` are dots."""
    return Drawn("math", children=_Drawing(tree, roles).row(0, 0) if len(tree) else ())


class _Drawing:
    def __init__(self, tree: FormulaTree, roles: Mapping[int, Role]) -> None:
        self._labels, self._roles = tree.labels, roles
        self._below: list[dict[str, int]] = [{} for _ in tree.labels]
        for node in range(1, len(tree)):
            self._below[tree.parents[node]].setdefault(tree.edge_labels[node], node)

    def row(self, node: int | None, depth: int) -> tuple[Drawn, ...]:
        """Return the symbols of a baseline, from ``node`` on."""
        if depth > MAX_DEPTH:
            return (Drawn("mo", text="…"),)
        found: list[Drawn] = []
        while node is not None:
            found.append(self._scripted(node, depth))
            node = self._below[node].get("n")
        return tuple(found)

    def _part(self, node: int, edge: str, depth: int) -> Drawn:
        """Return the baseline that hangs on an edge as one element."""
        return _one(self.row(self._below[node].get(edge), depth + 1))

    def _scripted(self, node: int, depth: int) -> Drawn:
        """Return a symbol with what is around it."""
        edges, base = self._below[node], self._symbol(node, depth)
        if base.tag != "mfrac":
            limits = [edge for edge in ("u", "o") if edge in edges]
            if limits:
                tag = "munderover" if len(limits) == 2 else "munder" if limits == ["u"] else "mover"
                base = Drawn(tag, children=(base, *(self._part(node, edge, depth) for edge in limits)))
        before = [edge for edge in ("d", "c") if edge in edges and self._labels[node] != "O!root"]
        after = [edge for edge in ("b", "a") if edge in edges]
        if before:
            scripts = [self._part(node, edge, depth) if edge in edges else Drawn("mrow") for edge in ("b", "a")]
            fore = [self._part(node, edge, depth) if edge in edges else Drawn("mrow") for edge in ("d", "c")]
            return Drawn("mmultiscripts", children=(base, *scripts, Drawn("mprescripts"), *fore))
        if after:
            tag = "msubsup" if len(after) == 2 else "msub" if after == ["b"] else "msup"
            return Drawn(tag, children=(base, *(self._part(node, edge, depth) for edge in after)))
        return base

    def _symbol(self, node: int, depth: int) -> Drawn:
        label, role = self._labels[node], self._roles.get(node, "")
        if label == "O!divide":
            return Drawn("mfrac", role, children=(self._part(node, "o", depth), self._part(node, "u", depth)))
        if label == "O!root":
            radicand = self._part(node, "w", depth)
            if "c" in self._below[node]:
                return Drawn("mroot", role, children=(radicand, self._part(node, "c", depth)))
            return Drawn("msqrt", role, children=(radicand,))
        if label.startswith("M!"):
            return self._box(node, label, role, depth)
        if "w" in self._below[node]:  # a box, a strike
            return Drawn("mrow", role, children=self.row(self._below[node]["w"], depth + 1))
        if label == "W!":
            return Drawn("mrow")
        text = plain(label[2:] if label[:2] in _LEAVES else label)
        return Drawn(_LEAVES.get(label[:2], "mi" if label[:1] == "?" else "mo"), role, text)

    def _box(self, node: int, label: str, role: Role, depth: int) -> Drawn:
        """Return a fenced row, a table, or both."""
        found = _BOX.fullmatch(label)
        signs, rows, columns = (found[1], int(found[2] or 1), int(found[3] or 1)) if found else (label, 1, 1)
        fences = [plain(sign) for sign in _FENCE.findall(signs)]
        cells: list[tuple[Drawn, ...]] = []
        cell = self._below[node].get("w")
        while cell is not None:
            cells.append(self.row(cell, depth + 1))
            cell = self._below[cell].get("e")
        inner = tuple(element for own in cells for element in own)
        if rows > 1:
            width = max(columns, 1)
            lines = [cells[start : start + width] for start in range(0, len(cells), width)]
            table_rows = [Drawn("mtr", children=tuple(Drawn("mtd", children=own) for own in line)) for line in lines]
            inner = (Drawn("mtable", children=tuple(table_rows)),)
        opening = [Drawn("mo", role, sign) for sign in fences[:1]]
        closing = [Drawn("mo", role, sign) for sign in fences[1:]]
        return Drawn("mrow", children=(*opening, *inner, *closing))


def plain(label: str) -> str:
    """Return a label with the characters that Tangent names.

    >>> plain("&quest;")
    '?'
    """
    return _NAMES.sub(lambda found: _NAMED[found[0]], label)


def _one(elements: tuple[Drawn, ...]) -> Drawn:
    return elements[0] if len(elements) == 1 else Drawn("mrow", children=elements)


def as_markup(drawn: Drawn) -> str:
    """Return the drawing as MathML; all text is escaped."""
    role = f' class="{drawn.role}"' if drawn.role else ""
    inner = "".join(as_markup(child) for child in drawn.children) or escape(drawn.text)
    return f"<{drawn.tag}{role}>{inner}</{drawn.tag}>"


def as_text(drawn: Drawn) -> str:
    """Return the drawing in one line; symbols that are not aligned are in brackets: ``x+⟨y⟩``."""
    parts = groupby(_pieces(drawn), key=lambda piece: piece[1])
    shown = "".join(f"⟨{text}⟩" if loose else text for loose, own in parts if (text := "".join(p for p, _ in own)))
    return re.sub(r" +(?=[_^)}⟩])", "", " ".join(shown.split()))


_JOINED = {
    "msub": ("", "_", ""),
    "msup": ("", "^", ""),
    "msubsup": ("", "_", "^", ""),
    "munder": ("", "_", ""),
    "mover": ("", "^", ""),
    "munderover": ("", "_", "^", ""),
    "mfrac": ("(", ")/(", ")"),
    "msqrt": ("√(", ")"),
    "mroot": ("√(", ") of index (", ")"),
}


def _pieces(drawn: Drawn) -> list[tuple[str, bool | None]]:
    """Return the text piece by piece, and whether each is a symbol that is not aligned; None for signs between."""
    if not drawn.children:
        word = drawn.tag in ("mi", "mo", "mtext") and len(drawn.text) > 1 and drawn.text.isalpha()
        return [(f" {drawn.text} " if word else drawn.text, not drawn.role)] if drawn.text else []
    if drawn.tag == "mmultiscripts":  # a symbol, two scripts after it, mprescripts, two before it
        symbol, *scripts = (child for child in drawn.children if child.tag != "mprescripts")
        before = _pieces(_with_scripts(Drawn("mrow"), *scripts[2:]))
        return [("{}", None), *before, *_pieces(_with_scripts(symbol, *scripts[:2]))]
    inner = [_pieces(child) for child in drawn.children]
    signs = _JOINED.get(drawn.tag)
    if signs is None:
        between = "; " if drawn.tag == "mtable" else ", " if drawn.tag == "mtr" else ""
        found: list[tuple[str, bool | None]] = []
        for number, own in enumerate(inner):
            found += [(between, None)] if between and number else []
            found += own
        return found
    loose = None if drawn.tag not in ("mfrac", "msqrt", "mroot") else not drawn.role
    found = [(signs[0], loose)] if signs[0] else []
    for number, own in enumerate(inner):
        if loose is None:  # a bracket ends with a script
            braces = number > 0 or (drawn.children[0].leaves > 1 and drawn.tag.startswith(("mover", "munder")))
            long = braces and sum(len(text) for text, _ in own) > 1
            own = [("{", None), *own, ("}", None)] if long else [*own, ("", None)]
        found += own
        sign = signs[number + 1]
        found += [(sign, loose)] if sign else []
    return found


def _with_scripts(base: Drawn, below: Drawn, above: Drawn) -> Drawn:
    scripts = [(tag, script) for tag, script in (("sub", below), ("sup", above)) if script.children or script.text]
    tag = "m" + "".join(name for name, _ in scripts)
    return Drawn(tag, children=(base, *(script for _, script in scripts))) if scripts else base
