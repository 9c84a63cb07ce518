"""Nodes of a parsed formula, from which both trees are made.

``2x`` is an :class:`Infix` application of the invisible product to two tokens. Its layout is the two symbols in a row,
its content their product. If the two differ more, as for ``(a,b)``, a :class:`Dual` holds both sides.

Tokens are made once, for the whole process, and shared by all formulas. A node never changes after it is made, except
that a :class:`MathList` receives its parse.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field


class Node:
    """Part of a formula: ``role`` is its part of speech in the grammar, ``name`` the identity of an operator."""

    __slots__ = ()
    role = "ATOM"
    name = ""
    value = ""


@dataclass(slots=True, eq=False)
class Token(Node):
    """Symbol: its label in the SLT (with type), its label in the OPT, and the place of limits for a large operator."""

    role: str = field()
    value: str = field()
    slt: str
    opt: str
    name: str = ""
    limits: bool = False

    def __post_init__(self) -> None:
        self.name = self.name or self.value

    def with_limits(self, limits: bool) -> Token:
        """Return the same symbol with its limits below and above it, or beside it."""
        name = f"{self.name}*" if limits else self.name
        return Token(self.role, self.value, self.slt, self.opt, name=name, limits=limits)

    def __repr__(self) -> str:
        return f"Token({self.role}, {self.slt!r}, {self.opt!r})"


@dataclass(slots=True, eq=False)
class MathList(Node):
    """A list that is parsed alone, such as a numerator: its items, its rule of the grammar, and its parse."""

    items: list[Node]
    rule: str
    node: Node | None = None


class ScriptMark(Node):
    """A script in a list, before the grammar gives it a base.

    ``sup`` marks a superscript, ``floating`` a script without a base before it. ``level`` is the number of braces
    around it: only scripts of one level share a place.
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


def place_of_scripts(base: Node) -> str:
    """Return the place of a further script of a base: over and under one with limits, after any other."""
    while type(base) is Script:
        base = base.base
    return "mid" if getattr(base, "limits", False) else "post"


@dataclass(slots=True, eq=False)
class Infix(Node):
    """An operator between its operands, or before its only one."""

    op: Node
    args: Sequence[Node]


@dataclass(slots=True, eq=False)
class Prefix(Node):
    """A function or large operator before its operands."""

    op: Node
    args: Sequence[Node]


@dataclass(slots=True, eq=False)
class Postfix(Node):
    """An operator after its operand, such as the factorial."""

    op: Node
    arg: Node


@dataclass(slots=True, eq=False)
class Named(Node):
    """Content without a layout: the name of a construct (``set``, ``formulae``) and its parts."""

    name: str = field()
    args: Sequence[Node]


@dataclass(slots=True, eq=False)
class Row(Node):
    """Layout without content: parts side by side. In content, it is an unparsed list."""

    parts: Sequence[Node]


@dataclass(slots=True, eq=False)
class Dual(Node):
    """Two sides of one part: ``content`` for the OPT, ``layout`` for the SLT."""

    content: Node
    layout: Node
    role: str = "ATOM"
    name: str = ""
    value: str = ""


@dataclass(slots=True, eq=False)
class Relations(Node):
    """A chain of relations, ``a < b <= c``: operands and operators in turn."""

    parts: Sequence[Node]


@dataclass(slots=True, eq=False)
class Fraction(Node):
    """A numerator over a denominator; ``name`` is the operation."""

    numerator: Node
    denominator: Node
    name: str = "divide"


@dataclass(slots=True, eq=False)
class Root(Node):
    """A root, with its index if one is written."""

    radicand: Node
    index: Node | None = None


@dataclass(slots=True, eq=False)
class Accent(Node):
    """A mark over (or under) a base: hats, bars, braces, arrows. ``limits``: its scripts go over and under it too."""

    mark: Node
    base: Node
    over: bool
    limits: bool = False
    role: str = "ATOM"


@dataclass(slots=True, eq=False)
class Enclosure(Node):
    """A box around a base, or a strike through it; ``content`` is the operation that it denotes, if any."""

    notation: str
    base: Node
    content: Token | None = None


@dataclass(slots=True, eq=False)
class Table(Node):
    """Rows of cells."""

    rows: Sequence[Sequence[Node]]
    name: str = "matrix"
    role: str = "ARRAY"


@dataclass(slots=True, eq=False)
class Text(Node):
    """Words in a formula: strings, and the formulas among them."""

    parts: Sequence[str | Node]


class Wrapped(Node):
    """A part whose role a command gives: ``\\mathop{...}``, ``\\mathrel{...}``."""

    __slots__ = ("inner", "limits", "name", "role")

    def __init__(self, inner: Node, role: str, limits: bool = False) -> None:
        self.inner = inner
        self.role = role
        self.limits = limits
        self.name = inner.name


@dataclass(slots=True, eq=False)
class Unparsed(Node):
    """A list that the grammar does not read: its parts, with scripts attached and a row for each fence."""

    parts: Sequence[Node]
