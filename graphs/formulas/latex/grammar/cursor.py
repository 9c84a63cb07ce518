r"""Position of the grammar in a list of symbols, with the rules for scripts and for lone operators.

Each method of the grammar reads from ``at`` on and returns a node, or ``None`` without having moved.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Final

from graphs.formulas.latex.grammar.constructs import ADDITIVE, LARGE, MULTIPLICATIVE
from graphs.formulas.latex.nodes import Node, Postfix, Script, ScriptMark, place_of_scripts
from graphs.formulas.latex.symbols import symbol

MAX_NESTING: Final = 40
"""Fences nested deeper than this in one list are not parsed."""
STEPS_PER_ITEM: Final = 60
"""Trials of the grammar, by the length of a list; beyond them the list counts as unparsed."""

RELATIONAL = frozenset(("RELOP", "ARROW"))
FUNCTIONS = frozenset(("FUNCTION", "OPFUNCTION", "TRIGFUNCTION"))
ATOMS = frozenset(("ATOM", "ID", "ARRAY"))
NAMED = FUNCTIONS | ATOMS | {"UNKNOWN"}
SCRIPTS = frozenset(("POSTSUP", "POSTSUB"))
FLOATS = frozenset(("FLOATSUP", "FLOATSUB"))
STOPS = frozenset(("PUNCT", "PERIOD"))
OPERATORS = RELATIONAL | ADDITIVE | MULTIPLICATIVE | LARGE | {"METARELOP", "MODIFIEROP", "OPERATOR"}
AFTER_LONE = frozenset(("END", "PUNCT", "CLOSE"))
"""Parts of speech that may follow an operator without operands."""
AFTER_IDLE = AFTER_LONE | {"VERTBAR", "PERIOD", "METARELOP"}
"""Parts of speech that may follow an operator without operands, if the grammar is lenient."""
AFTER_SIGN = AFTER_IDLE | RELATIONAL
"""Parts of speech that may follow a lone sign at the beginning of an expression, if the grammar is lenient."""
MATCHING = {
    "(": ")", "[": "]", "{": "}", "|": "|", "∥": "∥", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩",
}  # fmt: skip
"""End of a fence by its beginning."""


class Exhausted(Exception):
    """Raised when the grammar has made too many trials."""


class Cursor(ABC):
    """Reading position in one list. ``lenient``: also read forms that LaTeXML's grammar does not have.

    Rules that refer to one another across modules are abstract methods here and in the classes between;
    :class:`~graphs.formulas.latex.grammar.statements.Grammar` has them all.
    """

    def __init__(self, items: list[Node], *, lenient: bool = False) -> None:
        self.items = items
        self.lenient = lenient
        roles = [item.role for item in items]
        roles += ("END", "END", "END")
        self.roles = roles
        self.end = len(items)
        self.at = 0
        self.nesting = 0
        self.steps = STEPS_PER_ITEM * self.end + 500
        self.no_bars = False
        self.no_evaluation = False
        self.no_angles = False
        self.quantum = True
        self.saw_quantum = False
        self.abs_limit = 1
        self.abs_depth = 1
        self.abs_failed = False

    @abstractmethod
    def formulae(self) -> Node | None:
        """Read formulas with punctuation between them."""

    @abstractmethod
    def formula(self) -> Node | None:
        """Read an expression, or expressions in relation."""

    @abstractmethod
    def expression(self) -> Node | None:
        """Read a sum of terms."""

    @abstractmethod
    def factor(self) -> Node | None:
        """Read a part of a product."""

    def enter(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise Exhausted

    def closes(self, opening: Node) -> bool:
        return self.roles[self.at] == "CLOSE" and MATCHING.get(opening.value) == self.items[self.at].value

    def mark(self, at: int) -> ScriptMark:
        mark = self.items[at]
        assert isinstance(mark, ScriptMark)
        return mark

    def scripted(self, base: Node) -> Node:
        roles = self.roles
        while True:
            role = roles[self.at]
            if role in SCRIPTS:
                base = self.script(base, self.mark(self.at), "ATOM")
            elif role == "POSTFIX":
                base = Postfix(self.items[self.at], base)
            else:
                return base
            self.at += 1

    def script(self, base: Node, mark: ScriptMark, role: str) -> Node:
        return Script(base, mark, place_of_scripts(base), role)

    def operator(self) -> Node:
        token = self.items[self.at]
        self.at += 1
        return self.decorated(token) if self.roles[self.at] in SCRIPTS else token

    def decorated(self, token: Node) -> Node:
        while self.roles[self.at] in SCRIPTS:
            token = self.script(token, self.mark(self.at), token.role)
            self.at += 1
        return token

    def relop(self) -> Node | None:
        at = self.at
        if self.roles[at] not in RELATIONAL:
            return None
        token = self.items[at]
        self.at = at + 1
        name = token.name
        if name == "less-than" or name == "greater-than":
            if self.no_angles:
                self.at = at
                return None
            following = self.items[at + 1] if at + 1 < self.end else None
            if following is not None and following.role == "RELOP":
                if following.name == name:
                    self.at = at + 2
                    return symbol("RELOP", token.value * 2, f"much-{name}")
                if following.name == "equals":
                    self.at = at + 2
                    return symbol("RELOP", f"{token.value}=", f"{name}-or-equals")
        return self.decorated(token)

    def any_op(self) -> Node | None:
        at = self.at
        role = self.roles[at]
        if role not in OPERATORS:
            return None
        if role in RELATIONAL:
            return self.relop()
        self.at = at + 1
        if role in ("METARELOP", "MODIFIEROP"):
            return self.items[at]
        if role in ADDITIVE or role in MULTIPLICATIVE:
            return self.decorated(self.items[at])
        return self.scripted(self.items[at])
