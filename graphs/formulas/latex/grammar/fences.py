r"""Grammar of fences: parentheses, intervals and sets, bars and angles.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex("[0,1)").opt.tangent_string()
'[O!interval(C-O),0[N!0],1[N!1]]'
>>> parse_latex("|x|").opt.tangent_string()
'[F!abs,0[V!x]]'
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Container
from functools import cached_property

from graphs.formulas.latex.grammar.constructs import ADDITIVE, LARGE, fence
from graphs.formulas.latex.grammar.cursor import AFTER_LONE, RELATIONAL, SCRIPTS, Cursor
from graphs.formulas.latex.nodes import Dual, Infix, Named, Node, Prefix, Row
from graphs.formulas.latex.symbols import ABSENT, INVISIBLE_TIMES, symbol

_NORM_OPEN = symbol("OPEN", "||")
_NORM_CLOSE = symbol("CLOSE", "||")
_AFTER_NORM = AFTER_LONE | SCRIPTS | RELATIONAL | {"METARELOP"}
_RIGHT_ANGLES = ("greater-than", "rangle")


class Fences(Cursor):
    """Reads parts that begin with an opening fence or a bar."""

    @abstractmethod
    def extended(self, first: Node) -> Node:
        """Extend an expression by the relations that follow it."""

    @abstractmethod
    def more_formulae(self, first: Node) -> Node:
        """Extend a formula by the formulas that follow it."""

    def more(self, listed: list[Node], signs: Container[str], read: Callable[[], Node | None]) -> list[Node]:
        """Extend the list by each pair of one of the signs and what ``read`` reads after it."""
        while self.roles[self.at] in signs:
            start = self.at
            self.at += 1
            following = read()
            if following is None:
                self.at = start
                break
            listed += [self.items[start], following]
        return listed

    def punctuated(self, listed: list[Node]) -> list[Node]:
        """Extend the list by each pair of punctuation and an expression that follows."""
        return self.more(listed, ("PUNCT",), self.expression)

    def closed(self, opening: Node, *inner: Node) -> Node | None:
        """Read the end of a fence with these contents, and its scripts."""
        if not self.closes(opening):
            return None
        self.at += 1
        return self.scripted(fence([opening, *inner, self.items[self.at - 1]]))

    def open_fence(self, at: int) -> Node | None:
        items, roles = self.items, self.roles
        opening = items[at]
        if roles[at + 1] == "ARRAY":
            if roles[at + 2] == "CLOSE":
                self.at = at + 3
                return self.scripted(fence(items[at : at + 3]))
            if opening.value == "{":
                self.at = at + 2
                return Dual(Named("cases", [items[at + 1]]), Row(items[at : at + 2]))
        self.enter()
        result: Node | None = None
        if opening.value == "{" and self._has_such_that(at):
            result = self._conditional_set(at)
        if result is None:
            self.at = at + 1
            result = self._fenced(at)
        self.nesting -= 1
        if result is None and opening.value == "⟨" and self.quantum:
            result = self.in_angles(at)
        if result is None:
            self.at = at
        return result

    def _fenced(self, at: int) -> Node | None:
        opening = self.items[at]
        if self.roles[at + 1] in ADDITIVE:
            result = self.closed(opening, self.operator())
            if result is not None:
                return result
            self.at = at + 1
        if self._closes_on_operator(at):
            applied = self._fenced_operator(at)
            if applied is not None:
                return applied
            self.at = at + 1
        bars = self.no_bars, self.no_evaluation, self.abs_depth
        first = self.expression()
        self.no_bars, self.no_evaluation, self.abs_depth = bars
        if first is None:
            empty = self.closed(opening)
            if empty is not None:
                return empty
            self.at = at + 1
            first = self.any_op()
            if first is None:
                return None
            return self._rest_of_fence(opening, first) or (
                self._fenced_condition(opening, first) if self.lenient else None
            )
        after = self.at
        result = self._rest_of_fence(opening, first)
        if result is not None:
            return result
        self.at = after
        formula = self.extended(first)
        if self.lenient:
            formula = self.more_formulae(formula)
        return self.closed(opening, formula) if self.at > after else None

    def _rest_of_fence(self, opening: Node, first: Node) -> Node | None:
        roles = self.roles
        if roles[self.at] == "PUNCT":
            start = self.at
            listed = self.punctuated([first])
            if len(listed) > 1 and roles[self.at] == "CLOSE":
                self.at += 1
                return self.scripted(fence([opening, *listed, self.items[self.at - 1]]))
            self.at = start + 1
            operator = self.any_op()
            if operator is not None and self.closes(opening):
                self.at += 1
                shown = [opening, first, self.items[start], operator, self.items[self.at - 1]]
                return self.scripted(Dual(Named("group", [first, operator]), Row(shown)))
            self.at = start
        return self.closed(opening, first)

    def _fenced_condition(self, opening: Node, operator: Node) -> Node | None:
        """Read an operator without its left operand in a fence: ``(\\ge 2)``, ``(\\bmod n)``, ``(*w)``."""
        formula = self.formula()
        if formula is None:
            return None
        return self.closed(opening, self.more_formulae(Infix(operator, [ABSENT, formula])))

    def _closes_on_operator(self, at: int) -> bool:
        """Return whether the last part before the fence's end is a large operator, with or without scripts."""
        depth = 0
        roles = self.roles
        for position in range(at + 1, self.end):
            role = roles[position]
            if role == "OPEN":
                depth += 1
            elif role == "CLOSE":
                if depth:
                    depth -= 1
                    continue
                position -= 1
                while position > at and roles[position] in SCRIPTS:
                    position -= 1
                return roles[position] in LARGE
        return False

    def _fenced_operator(self, at: int) -> Node | None:
        """Read an operator in parentheses, applied to the factor after them: ``(x \\partial) f``."""
        opening = self.items[at]
        before: Node | None = None
        if self.roles[at + 1] not in LARGE:
            before = self.factor()
            if before is None:
                return None
        if self.roles[self.at] not in LARGE:
            return None
        self.at += 1
        operator = self.scripted(self.items[self.at - 1])
        if not self.closes(opening):
            return None
        self.at += 1
        inner: Node = operator if before is None else Infix(INVISIBLE_TIMES, [before, operator])
        whole = self.scripted(fence([opening, inner, self.items[self.at - 1]]))
        following = self.factor()
        return None if following is None else Prefix(whole, [following])

    def _has_such_that(self, at: int) -> bool:
        depth = 0
        for position in range(at + 1, self.end):
            role = self.roles[position]
            if role == "OPEN":
                depth += 1
            elif role == "CLOSE":
                if not depth:
                    return False
                depth -= 1
            elif depth == 0 and (
                role in ("VERTBAR", "MIDDLE") or (role == "METARELOP" and self.items[position].value == ":")
            ):
                return True
        return False

    def _conditional_set(self, at: int) -> Node | None:
        """Read a set given by a condition, with a bar or a colon: ``{ x : p(x) }``."""
        self.at = at + 1
        bars, self.no_bars = self.no_bars, True
        element = self.formula()
        self.no_bars = bars
        if element is None:
            return None
        here = self.at
        role = self.roles[here]
        if role not in ("VERTBAR", "MIDDLE") and not (role == "METARELOP" and self.items[here].value == ":"):
            return None
        self.at = here + 1
        condition = self.formulae()
        if condition is None or not self.closes(self.items[at]):
            return None
        self.at += 1
        shown = [self.items[at], element, self.items[here], condition, self.items[self.at - 1]]
        return self.scripted(Dual(Named("conditional-set", [element, condition]), Row(shown)))

    def within_bars(self) -> Node | None:
        if self.abs_depth <= 0:
            self.abs_failed = True
            return None
        self.enter()
        evaluation, self.no_evaluation = self.no_evaluation, True
        self.abs_depth -= 1
        result = self.expression()
        if self.lenient and result is not None and self.roles[self.at] in ("RELOP", "METARELOP"):
            result = self.more_formulae(self.extended(result))
        self.abs_depth += 1
        self.no_evaluation = evaluation
        self.nesting -= 1
        return result

    def between_bars(self, at: int) -> Node | None:
        items, roles = self.items, self.roles
        if not self.no_bars:
            if roles[at + 1] == "VERTBAR" and items[at].value == items[at + 1].value == "|":
                self.at = at + 2
                inner = self.within_bars()
                if inner is not None and roles[self.at] == roles[self.at + 1] == "VERTBAR":
                    self.at += 2
                    return self.scripted(fence([_NORM_OPEN, inner, _NORM_CLOSE]))
            self.at = at + 1
            inner = self.within_bars()
            if inner is not None and roles[self.at] == "VERTBAR":
                self.at += 1
                return self.scripted(fence([items[at], inner, items[self.at - 1]]))
            if self.lenient and self._is_empty_pair(at):
                self.at = at + 2
                name = "norm" if items[at].value == "∥" else "absolute-value"
                return self.scripted(Dual(Named(name, []), Row(items[at : at + 2])))
            if self.quantum and self._last_angle > at:
                self.at = at + 1
                inner = self._in_ket()
                if inner is not None and self._right_angle():
                    return self._in_quantum("ket", items[at], inner)
        self.at = at
        return None

    def _is_empty_pair(self, at: int) -> bool:
        """Return whether two equal bars enclose nothing and precede no operand: the norm ``\\|\\|_1`` as a name."""
        roles = self.roles
        if roles[at + 1] != "VERTBAR" or roles[at + 2] not in _AFTER_NORM or self.abs_depth != self.abs_limit:
            return False
        return self.items[at].value == self.items[at + 1].value

    def _right_angle(self) -> bool:
        at = self.at
        role = self.roles[at]
        return (role == "RELOP" and self.items[at].name == "greater-than") or (
            role == "CLOSE" and self.items[at].name == "rangle"
        )

    @cached_property
    def _last_angle(self) -> int:
        return max((i for i, item in enumerate(self.items) if item.name in _RIGHT_ANGLES), default=-1)

    @cached_property
    def _last_bar(self) -> int:
        return max((i for i, role in enumerate(self.roles) if role == "VERTBAR"), default=-1)

    def _in_quantum(self, name: str, *shown: Node) -> Node:
        """Read the right angle after ``shown``, of which every second part is an argument, and its scripts."""
        self.at += 1
        self.saw_quantum = True
        return self.scripted(Dual(Named(name, list(shown[1::2])), Row([*shown, self.items[self.at - 1]])))

    def _in_ket(self) -> Node | None:
        self.enter()
        kept = self.no_bars, self.no_angles
        self.no_bars = self.no_angles = True
        result = self.formulae()
        self.no_bars, self.no_angles = kept
        self.nesting -= 1
        if result is None and self.roles[self.at] in ("METARELOP", "MODIFIEROP"):
            self.at += 1
            result = self.items[self.at - 1]
        return result

    def in_angles(self, at: int) -> Node | None:
        """Read a part in angles: ``<a>``, ``<a|b>``, ``<a|H|b>``."""
        items = self.items
        if self._last_angle <= at and self._last_bar <= at:
            return None
        self.at = at + 1
        first = self._in_ket()
        if first is not None and self.roles[self.at] in ("VERTBAR", "MIDDLE"):
            bar = items[self.at]
            self.at += 1
            after_bar = self.at
            second = self._in_ket()
            if second is not None:
                if self._right_angle():
                    return self._in_quantum("inner-product", items[at], first, bar, second)
                if self.roles[self.at] in ("VERTBAR", "MIDDLE"):
                    second_bar = items[self.at]
                    self.at += 1
                    third = self._in_ket()
                    if third is not None and self._right_angle():
                        shown = items[at], first, bar, second, second_bar, third
                        return self._in_quantum("quantum-operator-product", *shown)
            self.at = after_bar
            self.saw_quantum = True
            return self.scripted(Dual(Named("bra", [first]), Row([items[at], first, bar])))
        self.at = at + 1
        inner = self.within_bars()
        if inner is not None and self._right_angle():
            self.at += 1
            return self.scripted(fence([items[at], inner, items[self.at - 1]]))
        if inner is not None and self.lenient and self.roles[self.at] == "PUNCT":
            kept, self.no_angles = self.no_angles, True
            listed = self.punctuated([inner])
            self.no_angles = kept
            if self._right_angle():
                self.at += 1
                return self.scripted(fence([items[at], *listed, items[self.at - 1]]))
        self.at = at
        return None

    def _outward_interval(self, at: int) -> Node | None:
        """Read an interval with brackets turned outwards: ``]a,b[``, ``]a,b]``, ``[a,b[``."""
        self.at = at + 1
        first = self.expression()
        if first is not None and self.roles[self.at] == "PUNCT":
            comma = self.items[self.at]
            self.at += 1
            second = self.expression()
            end = self.items[self.at] if self.at < self.end else None
            if second is not None and end is not None and end.value in ("[", "]"):
                self.at += 1
                left = "closed" if self.items[at].value == "[" else "open"
                right = "open" if end.value == "[" else "closed"
                name = f"{left}-interval" if left == right else f"{left}-{right}-interval"
                shown = Row([self.items[at], first, comma, second, end])
                return self.scripted(Dual(Named(name, [first, second]), shown))
        self.at = at
        return None
