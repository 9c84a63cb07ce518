"""Nodes of a parsed formula, from which both trees are made.

``2x`` is an :class:`Infix` application of the invisible product to two tokens. Its layout is the two symbols in a row,
its content their product. If the two differ more, as for ``(a,b)``, a :class:`Dual` holds both sides.

Tokens are made once, for the whole process, and shared by all formulas. A node never changes after it is made, except
that a :class:`MathList` receives its parse.
"""

from __future__ import annotations

from collections.abc import Sequence


class Node:
    """Part of a formula: ``role`` is its part of speech in the grammar, ``name`` the identity of an operator."""

    __slots__ = ()
    role = "ATOM"
    name = ""
    value = ""


class Token(Node):
    """Symbol: its label in the SLT (with type), its label in the OPT, and the place of limits for a large operator."""

    __slots__ = ("limits", "name", "opt", "role", "slt", "value")

    def __init__(self, role: str, value: str, slt: str, opt: str, *, name: str = "", limits: bool = False) -> None:
        self.role = role
        self.value = value
        self.slt = slt
        self.opt = opt
        self.name = name or value
        self.limits = limits

    def with_limits(self, limits: bool) -> Token:
        """Return the same symbol with its limits below and above it, or beside it."""
        name = f"{self.name}*" if limits else self.name
        return Token(self.role, self.value, self.slt, self.opt, name=name, limits=limits)

    def __repr__(self) -> str:
        return f"Token({self.role}, {self.slt!r}, {self.opt!r})"


class MathList(Node):
    """A list that is parsed alone, such as a numerator: its items, its rule of the grammar, and its parse."""

    __slots__ = ("items", "node", "rule")

    def __init__(self, items: list[Node], rule: str) -> None:
        self.items = items
        self.rule = rule
        self.node: Node | None = None


class ScriptMark(Node):
    """A script in a list, before the grammar gives it a base.

    ``sup`` marks a superscript, ``floating`` a script without a base before it. ``level`` is the number of braces
    around
    it: only scripts of one level share a place.
    """

    __slots__ = ("floating", "level", "role", "script", "sup")

    def __init__(self, script: Node, sup: bool, floating: bool, level: int) -> None:
        self.script = script
        self.sup = sup
        self.floating = floating
        self.level = level
        self.role = ("FLOAT" if floating else "POST") + ("SUP" if sup else "SUB")


class Script(Node):
    """A script with its base; ``place`` is ``pre``, ``mid`` (over or under) or ``post``."""

    __slots__ = ("base", "floating", "level", "name", "place", "role", "script", "sup", "value")

    def __init__(self, base: Node, mark: ScriptMark, place: str, role: str = "ATOM") -> None:
        self.base = base
        self.script = mark.script
        self.sup = mark.sup
        self.level = mark.level
        self.place = place
        self.floating = mark.floating
        self.role = role
        self.name = base.name
        self.value = base.value


class Infix(Node):
    """An operator between its operands, or before its only one."""

    __slots__ = ("args", "op")

    def __init__(self, op: Node, args: Sequence[Node]) -> None:
        self.op = op
        self.args = args


class Prefix(Node):
    """A function or large operator before its operands."""

    __slots__ = ("args", "op")

    def __init__(self, op: Node, args: Sequence[Node]) -> None:
        self.op = op
        self.args = args


class Postfix(Node):
    """An operator after its operand, such as the factorial."""

    __slots__ = ("arg", "op")

    def __init__(self, op: Node, arg: Node) -> None:
        self.op = op
        self.arg = arg


class Named(Node):
    """Content without a layout: the name of a construct (``set``, ``formulae``) and its parts."""

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: Sequence[Node]) -> None:
        self.name = name
        self.args = args


class Row(Node):
    """Layout without content: parts side by side. In content, it is an unparsed list."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Node]) -> None:
        self.parts = parts


class Dual(Node):
    """Two sides of one part: ``content`` for the OPT, ``layout`` for the SLT."""

    __slots__ = ("content", "layout", "name", "role", "value")

    def __init__(self, content: Node, layout: Node, role: str = "ATOM", name: str = "", value: str = "") -> None:
        self.content = content
        self.layout = layout
        self.role = role
        self.name = name
        self.value = value


class Relations(Node):
    """A chain of relations, ``a < b <= c``: operands and operators in turn."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Node]) -> None:
        self.parts = parts


class Fraction(Node):
    """A numerator over a denominator; ``name`` is the operation."""

    __slots__ = ("denominator", "name", "numerator")

    def __init__(self, numerator: Node, denominator: Node, name: str = "divide") -> None:
        self.numerator = numerator
        self.denominator = denominator
        self.name = name


class Root(Node):
    """A root, with its index if one is written."""

    __slots__ = ("index", "radicand")

    def __init__(self, radicand: Node, index: Node | None = None) -> None:
        self.radicand = radicand
        self.index = index


class Accent(Node):
    """A mark over (or under) a base: hats, bars, braces, arrows. ``mid``: its scripts go over and under it too."""

    __slots__ = ("base", "limits", "mark", "over", "role")

    def __init__(self, mark: Node, base: Node, over: bool, limits: bool = False, role: str = "ATOM") -> None:
        self.mark = mark
        self.base = base
        self.over = over
        self.limits = limits
        self.role = role


class Enclosure(Node):
    """A box around a base, or a strike through it; ``content`` is the operation that it denotes, if any."""

    __slots__ = ("base", "content", "notation")

    def __init__(self, notation: str, base: Node, content: Token | None = None) -> None:
        self.notation = notation
        self.base = base
        self.content = content


class Table(Node):
    """Rows of cells; ``name`` is ``matrix`` or ``cases``."""

    __slots__ = ("name", "role", "rows")

    def __init__(self, rows: Sequence[Sequence[Node]], name: str = "matrix", role: str = "ARRAY") -> None:
        self.rows = rows
        self.name = name
        self.role = role


class Text(Node):
    """Words in a formula: strings, and the formulas among them."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[str | Node]) -> None:
        self.parts = parts


class Wrapped(Node):
    """A part whose role a command gives: ``\\mathop{...}``, ``\\mathrel{...}``."""

    __slots__ = ("inner", "limits", "name", "role")

    def __init__(self, inner: Node, role: str, limits: bool = False) -> None:
        self.inner = inner
        self.role = role
        self.limits = limits
        self.name = inner.name


class Unparsed(Node):
    """A list that the grammar does not read: its parts, with scripts attached and a row for each fence."""

    __slots__ = ("parts",)

    def __init__(self, parts: Sequence[Node]) -> None:
        self.parts = parts
