r"""Grammar of sums and products: terms, the signs between them, annotations, and evaluation bars.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex("a-2b").opt.tangent_string()
'[O!minus,0[V!a],1[U!times,0[N!2],1[V!b]]]'
"""

from __future__ import annotations

from graphs.formulas.latex.grammar.constructs import (
    ADDITIVE,
    MULTIPLICATIVE,
    conditional,
    fence,
    listing,
    product,
    same,
)
from graphs.formulas.latex.grammar.cursor import AFTER_IDLE, AFTER_LONE, AFTER_SIGN, RELATIONAL, Exhausted
from graphs.formulas.latex.grammar.factors import Factors
from graphs.formulas.latex.nodes import Dual, Infix, Named, Node, Row, Script, ScriptMark, Token
from graphs.formulas.latex.symbols import ABSENT, INVISIBLE_TIMES, SYMBOLS


class Terms(Factors):
    """Reads one expression."""

    def expression(self) -> Node | None:
        self.steps -= 1
        if self.steps < 0:
            raise Exhausted
        start = self.at
        roles = self.roles
        if roles[start] in ADDITIVE:
            sign = self.operator()
            term = self.term()
            result: Node | None = None if term is None else Infix(sign, [term])
        else:
            result = self.term()
        if result is None:
            self.at = start
            operator = self.any_op()
            if operator is not None and roles[self.at] in self._after_lone(roles[start]):
                return operator
            self.at = start
            return None
        # terms and the operators between them, equal operators run together
        operands: list[Node] = [result]
        last: Node | None = None
        while roles[self.at] in ADDITIVE:
            operator = self.operator()
            term = self.term()
            if term is None:
                limit = Named("limit-from", [operands[-1], operator])
                operands[-1] = Dual(limit, Row([operands[-1], operator]))
                break
            if last is None or not same(last, operator):
                if last is not None:
                    operands = [Infix(last, operands)]
                last = operator
            operands.append(term)
        result = operands[0] if last is None else Infix(last, operands)
        role = roles[self.at]
        return self._modified(result) if role in ("PUNCT", "OPEN", "MODIFIER", "MODIFIEROP") else result

    def _after_lone(self, role: str) -> frozenset[str]:
        """Return the parts of speech that may follow an operator alone at the beginning of an expression."""
        if not self.lenient:
            return AFTER_LONE
        return AFTER_IDLE if role in RELATIONAL else AFTER_SIGN

    def _modified(self, expression: Node) -> Node:
        """Read the annotation after an expression: ``(mod n)``, ``(> 0)``."""
        start = self.at
        roles = self.roles
        role = roles[start]
        if role == "MODIFIER":
            self.at += 1
            note = self.items[start]
            return Dual(Named("annotated", [expression, note]), Row([expression, note]))
        if role == "MODIFIEROP":
            self.at += 1
            operand = self.expression()
            if operand is not None:
                return Infix(self.items[start], [expression, operand])
            self.at = start
            return expression
        opening = start + 1 if role == "PUNCT" else start
        if roles[opening] == "OPEN" and roles[opening + 1] in ("RELOP", "ARROW", "MODIFIEROP"):
            self.at = opening + 1
            if roles[self.at] == "MODIFIEROP":
                operator: Node | None = self.items[self.at]
                self.at += 1
            else:
                operator = self.relop()
            operand = None if operator is None else self.expression()
            if operator is not None and operand is not None and self.closes(self.items[opening]):
                self.at += 1
                inner = Infix(operator, [ABSENT, operand])
                note = fence([self.items[opening], inner, self.items[self.at - 1]])
                shown = [expression, *self.items[start:opening], note]
                return Dual(Named("annotated", [expression, note]), Row(shown))
            self.at = start
        return expression

    def term(self) -> Node | None:
        first = self.factor()
        if first is None:
            return None
        roles = self.roles
        result: Node = first
        fresh = True  # whether result is a factor, not a product to which more factors belong
        while True:
            start = self.at
            role = roles[start]
            if role == "END" or role in _ENDS_TERM:
                return result
            has_sign = role in MULTIPLICATIVE
            operator = self.operator() if has_sign else INVISIBLE_TIMES
            following = self.factor()
            if following is not None and (has_sign or not self.is_relation(start)):
                result = product(operator, result, following, fresh)
                fresh = False
                continue
            self.at = start
            if not self.no_evaluation and not self.no_bars and self._is_evaluation():
                bar = self.items[start]
                self.at = start + 1
                evaluated = self.evaluated(result, bar)
                if evaluated is not None:
                    result = evaluated
                    fresh = True
                    continue
                self.at = start + 1
                if role == "VERTBAR":
                    condition = self._expressions_without_bars()
                    if condition is not None:
                        shown = bar if isinstance(bar, Token) else SYMBOLS["|"]
                        return Infix(conditional(shown), [result, condition])
                self.at = start
            return result

    def _is_evaluation(self) -> bool:
        role = self.roles[self.at]
        return role == "VERTBAR" or (role == "CLOSE" and self.items[self.at].value == "|")

    def evaluated(self, base: Node, bar: Node) -> Node | None:
        roles = self.roles
        marks: list[ScriptMark] = []
        if roles[self.at] == "POSTSUB":
            marks = [self.mark(self.at)]
            if roles[self.at + 1] == "POSTSUP":
                marks.append(self.mark(self.at + 1))
        elif roles[self.at] == "POSTSUP" and roles[self.at + 1] == "POSTSUB":
            marks = [self.mark(self.at + 1), self.mark(self.at)]
        if not marks:
            return None
        self.at += len(marks)
        shown: Node = Row([base, bar])
        for mark in marks:
            shown = Script(shown, mark, "post")
        return Dual(Named("evaluated-at", [base, *(mark.script for mark in marks)]), shown)

    def _expressions_without_bars(self) -> Node | None:
        bars, self.no_bars = self.no_bars, True
        first = self.expression()
        result = None if first is None else listing(self.punctuated([first]))
        self.no_bars = bars
        return result


_ENDS_TERM = (
    (ADDITIVE - MULTIPLICATIVE) | (RELATIONAL - {"RELOP"}) | {"PUNCT", "PERIOD", "METARELOP", "MODIFIER", "MODIFIEROP"}
)
