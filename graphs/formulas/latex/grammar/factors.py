r"""Grammar of factors: names and numbers with their scripts, functions with their arguments, large operators.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"\sin^2 x").opt.tangent_string()
'[+!F!sin,0[O!SUP,0[F!sin],1[N!2]],1[V!x]]'
>>> parse_latex(r"\sum_i x_i").opt.tangent_string()
'[+!O!sum,0[O!SUB,0[O!sum],1[V!i]],1[O!SUB,0[V!x],1[V!i]]]'
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable

from graphs.formulas.latex.grammar.constructs import ADDITIVE, LARGE, MULTIPLICATIVE, fence, product, relation
from graphs.formulas.latex.grammar.cursor import (
    AFTER_IDLE,
    AFTER_LONE,
    ATOMS,
    FLOATS,
    FUNCTIONS,
    NAMED,
    OPERATORS,
    RELATIONAL,
    SCRIPTS,
)
from graphs.formulas.latex.grammar.fences import Fences
from graphs.formulas.latex.nodes import Dual, Infix, Named, Node, Postfix, Prefix, Row, Script, ScriptMark, Token
from graphs.formulas.latex.symbols import ABSENT, INVISIBLE_TIMES, opt_label


class Factors(Fences):
    """Reads one factor of a product."""

    @abstractmethod
    def relation_chain(self, chain: list[Node]) -> list[Node]:
        """Extend the chain by each pair of a relation and an expression that follows."""

    def factor(self) -> Node | None:
        at = self.at
        role = self.roles[at]
        if role == "NUMBER":
            self.at = at + 1
            return self.scripted(self.items[at])
        if role in NAMED:
            if role == "ARRAY" and self.roles[at + 1] == "CLOSE" and self.items[at + 1].value == "}":
                self.at = at + 2
                return Dual(Named("cases", [self.items[at]]), Row(self.items[at : at + 2]))
            return self.named()
        if role == "OPEN":
            return self.open_fence(at) or (self._odd_factor(at) if self.lenient else None)
        if role in LARGE:
            self.at = at + 1
            return self._large_applied(self.scripted(self.items[at]), role == "INTOP")
        if role in FLOATS:
            return self._prescripted(at, ())
        if role == "VERTBAR":
            return self.between_bars(at)
        if role == "OPERATOR":
            self.at = at + 1
            operator = self.scripted(self.items[at])
            return self._operator_arguments(self._nested([operator]), trig=True)
        if role == "RELOP" and self.items[at].name == "less-than" and self.quantum:
            return self.in_angles(at)
        return self._odd_factor(at) if self.lenient else None

    def is_relation(self, start: int) -> bool:
        r"""Return whether ``<`` at ``start``, after an operand, is a relation: an operand follows the supposed angle.

        In ``x<-1 \text{ or } x>4`` both are relations, in ``k<x,y>`` both are angles.
        """
        return self.items[start].name == "less-than" and self.roles[self.at] not in _AFTER_ANGLE

    def _odd_factor(self, at: int) -> Node | None:
        """Read a factor that LaTeXML's grammar does not have: a signed factor, an operator alone, ``]a,b[``."""
        role = self.roles[at]
        if role in ("OPEN", "CLOSE") and self.items[at].value in "[]":
            return self._outward_interval(at)
        if role == "SUPOP":
            self.at = at + 1
            return self.items[at]
        if role not in OPERATORS:
            return None
        operator = self.any_op()
        if operator is None:
            return None
        following = self.roles[self.at]
        if following in AFTER_IDLE and (self.nesting or following != "CLOSE") and not self._opens_bars(role):
            return operator
        if role in MULTIPLICATIVE or role in ADDITIVE:  # ``\\bigcirc + \\bigcirc``, ``+ \\subseteq G``
            if following in RELATIONAL or (following in ADDITIVE and role not in ADDITIVE):
                return operator
        elif role in RELATIONAL and following in RELATIONAL and at and self.roles[at - 1] in MULTIPLICATIVE:
            return operator  # ``X/\\sim \\to Y``
        if role in ADDITIVE:
            operand = self.factor()
            if operand is not None:
                return Infix(operator, [operand])
        self.at = at
        return None

    def _opens_bars(self, role: str) -> bool:
        """Return whether the bar after a relation opens a pair, so that the relation has a right-hand side."""
        return role in RELATIONAL and self.roles[self.at] == "VERTBAR" and self.abs_depth == self.abs_limit

    def named(self, trig: bool = True) -> Node | None:
        """Read a variable or a function with its scripts, and a function's arguments."""
        at = self.at
        role = self.roles[at]
        if role in FLOATS:
            return self._prescripted(at, NAMED if trig else NAMED - {"TRIGFUNCTION"})
        if role not in NAMED or (role == "TRIGFUNCTION" and not trig):
            return None
        self.at = at + 1
        base = self.items[at]
        if self.roles[at + 1] in _AFTER_BASE:
            base = self.scripted(base)
        if role in FUNCTIONS:
            return self._function_arguments(base, role)
        return base

    def _function_arguments(self, function: Node, role: str) -> Node:
        if role == "FUNCTION":
            return self._easy_arguments(function) or function
        return self._operator_arguments(function, trig=role != "TRIGFUNCTION")

    def _operator_arguments(self, function: Node, *, trig: bool) -> Node:
        """Apply a function to arguments in parentheses, or bare: ``sin x``. ``trig``: they may be trigonometric."""
        applied = self._easy_arguments(function)
        if applied is not None:
            return applied
        argument = self._product_of(self._bare_argument, trig)
        return function if argument is None else Prefix(function, [argument])

    def _easy_arguments(self, function: Node) -> Node | None:
        start = self.at
        if self.roles[start] != "OPEN":
            return None
        opening = self.items[start]
        self.at += 1
        self.enter()
        first = self.one_argument()
        if first is not None:
            listed = self.more([first], ("PUNCT", "MIDDLE", "VERTBAR"), self.one_argument)
            if self.closes(opening):
                self.at += 1
                self.nesting -= 1
                shown: Node = Row([opening, *listed, self.items[self.at - 1]])
                content: Node = Prefix(function, listed[::2])
                if self.lenient:
                    while self.roles[self.at] in SCRIPTS or self.roles[self.at] == "POSTFIX":
                        sign = self.items[self.at]
                        if isinstance(sign, ScriptMark):
                            content, shown = Script(content, sign, "post"), Script(shown, sign, "post")
                        else:
                            content, shown = Postfix(sign, content), Postfix(sign, shown)
                        self.at += 1
                return Dual(content, Prefix(function, [shown]))
        self.nesting -= 1
        self.at = start
        return None

    def one_argument(self) -> Node | None:
        argument = self.expression()
        while argument is not None and self.at < self.end:
            chain = self.relation_chain([argument])
            if len(chain) > 1:
                argument = relation(chain)
                continue
            if self.roles[self.at] != "METARELOP":
                break
            start = self.at
            self.at += 1
            following = self.formula()
            if following is None:
                self.at = start
                break
            argument = Infix(self.items[start], [argument, following])
        return argument

    def _product_of(self, read: Callable[[bool], Node | None], choice: bool) -> Node | None:
        """Multiply everything that ``read(choice)`` reads, with signs of multiplication or by juxtaposition."""
        result = read(choice)
        if result is None:
            return None
        fresh = True
        while self.at < self.end:
            start = self.at
            operator = self.operator() if self.roles[start] in MULTIPLICATIVE else INVISIBLE_TIMES
            following = read(choice)
            if following is None or self.is_relation(start):
                self.at = start
                break
            result = product(operator, result, following, fresh)
            fresh = False
        return result

    def _bare_argument(self, trig: bool) -> Node | None:
        start = self.at
        role = self.roles[start]
        if role == "NUMBER":
            self.at = start + 1
            return self.scripted(self.items[start])
        if role == "VERTBAR":
            self.at = start + 1
            inner = self.within_bars()
            if inner is not None and self.roles[self.at] == "VERTBAR":
                self.at += 1
                return self.scripted(fence([self.items[start], inner, self.items[self.at - 1]]))
            self.at = start
            return None
        return self.named(trig)

    def _large_applied(self, operator: Node, integral: bool) -> Node:
        """Apply a large operator to all factors that follow it; after an integral, ``d x`` is a differential."""
        operand = self._product_of(self._integrand_factor, integral)
        return operator if operand is None else Prefix(operator, [operand])

    def _integrand_factor(self, integral: bool) -> Node | None:
        at = self.at
        if integral and self.roles[at] in ("UNKNOWN", "ID") and self.items[at].value == "d":
            following = self.roles[at + 1]
            if following in ATOMS or following == "UNKNOWN":
                self.at = at + 2
                return Prefix(_DIFFERENTIAL, [self.scripted(self.items[at + 1])])
        return self.factor()

    def _nested(self, operators: list[Node]) -> Node:
        while True:
            at = self.at
            role = self.roles[at]
            if role == "OPERATOR" or role in FUNCTIONS:
                self.at = at + 1
                operators.append(self.scripted(self.items[at]))
                if role == "OPERATOR":
                    continue
            elif role == "OPEN":
                self.at = at + 1
                self.enter()
                inner = self.expression()
                self.nesting -= 1
                if inner is not None and self.closes(self.items[at]):
                    self.at += 1
                    shown = Row([self.items[at], inner, self.items[self.at - 1]])
                    operators[-1] = Dual(Prefix(operators[-1], [inner]), Prefix(operators[-1], [shown]))
                else:
                    self.at = at
            break
        result = operators.pop()
        while operators:
            result = Prefix(operators.pop(), [result])
        return result

    def _prescripted(self, at: int, roles: frozenset[str] | tuple[()]) -> Node | None:
        """Read scripts before their base: ``{}_2F_1``."""
        marks = [self.mark(at)]
        self.at = at + 1
        while self.roles[self.at] in SCRIPTS or self.roles[self.at] in FLOATS:
            marks.append(self.mark(self.at))
            self.at += 1
        role = self.roles[self.at]
        allowed = (role in roles) if roles else (role in NAMED or role in LARGE)
        if not allowed:
            if self.lenient:
                base: Node = ABSENT
                for mark in marks:
                    base = Script(base, mark, "post")
                return base
            self.at = at
            return None
        start = self.at
        self.at = start + 1
        base = self.scripted(self.items[start])
        for mark in reversed(marks):
            base = Script(base, mark, "pre")
        if role in FUNCTIONS:
            return self._function_arguments(base, role)
        if role in LARGE:
            return self._large_applied(base, role == "INTOP")
        return base


_AFTER_ANGLE = AFTER_LONE | RELATIONAL | MULTIPLICATIVE | {"PERIOD", "METARELOP"}
_AFTER_BASE = SCRIPTS | {"POSTFIX"}
_DIFFERENTIAL = Token("DIFFOP", "d", "d", opt_label("differential-d"), name="differential-d")
