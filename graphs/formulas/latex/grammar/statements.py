r"""A list of symbols -> its parse: operators with their operands.

>>> from graphs.formulas.latex.reader import Reader
>>> parsed = parse_list(Reader("2x+1").formula())
>>> type(parsed).__name__, parsed.op.name, len(parsed.args)
('Infix', 'plus', 2)

The grammar is that of LaTeXML's mathematics parser, which made the trees of the indexes, in its order of trial:
relations and lists of formulas, sums, products by juxtaposition, functions with and without parentheses, large
operators, fences. It is a recursive descent that commits: a successful alternative is kept, even if the rest of the
formula then fails. Unread lists become :class:`~graphs.formulas.latex.nodes.Unparsed`.

Each method reads from ``self.at`` and returns a node, or ``None`` without having moved.
"""

from __future__ import annotations

from collections.abc import Callable

from graphs.formulas.latex.grammar.constructs import applied, fence, listing, primes, relation
from graphs.formulas.latex.grammar.cursor import FLOATS, SCRIPTS, STOPS, Exhausted
from graphs.formulas.latex.grammar.repair import kludge, mended
from graphs.formulas.latex.grammar.terms import Terms
from graphs.formulas.latex.nodes import Dual, Infix, MathList, Named, Node, Row, Script, Unparsed
from graphs.formulas.latex.symbols import ABSENT, INVISIBLE_COMMA


def parse_list(whole: MathList) -> Node:
    """Parse a list whose inner lists are parsed; the result is also kept in the list."""
    items = whole.items
    trailing: list[Node] = []
    rule = whole.rule
    if rule == "Anything,":
        rule = "Anything"
        end = len(items)
        while end and items[end - 1].role in STOPS:
            end -= 1
        if end < len(items):
            trailing = items[end:]
            items = items[:end]
    if len(items) < 2:
        result: Node | None = items[0] if items else ABSENT
    else:
        result = Grammar(items).whole(rule)
        if result is None:
            end = len(items)
            while end > 1 and items[end - 1].role in STOPS:
                end -= 1
            items, trailing = items[:end], items[end:] + trailing
            repaired = mended(items)
            result = repaired[0] if len(repaired) == 1 else Grammar(repaired, lenient=True).whole(rule)
    if result is None:
        node: Node = Unparsed(kludge(whole.items))
    elif trailing:
        node = Dual(result, Row([result, *trailing])) if items else Row(trailing) if len(trailing) > 1 else trailing[0]
    else:
        node = result
    whole.node = node
    return node


class Grammar(Terms):
    """Reads a whole list: formulas and relations."""

    def whole(self, rule: str) -> Node | None:
        """Parse the whole list; ``None`` if the grammar does not read it."""
        try:
            result = self._attempt(rule)
            if result is None and self.saw_quantum:
                self.quantum = False
                result = self._attempt(rule)
            while result is None and self.abs_failed and self.abs_limit < 3:
                self.abs_limit += 1
                result = self._attempt(rule)
        except Exhausted:
            return None
        return result

    def _attempt(self, rule: str) -> Node | None:
        self.at = 0
        self.nesting = 0
        self.abs_failed = False
        self.abs_depth = self.abs_limit
        self.no_bars = self.no_evaluation = self.no_angles = False
        result = self.anything() if rule == "Anything" else self.script_list(rule == "Superscript")
        return result if self.at == self.end else None

    def anything(self) -> Node | None:
        result = self.formulae()
        if result is not None:
            return result
        roles = self.roles
        role = roles[0]
        if role == "OPEN":
            self.at = 1
            result = self.formulae()
            if result is not None and roles[self.at] == "CLOSE":
                self.at += 1
                return fence([self.items[0], result, self.items[self.at - 1]])
        self.at = 0
        result = self.modifier_formulae()
        if result is not None:
            return result
        if role == "MODIFIER":
            self.at = 1
            return self.items[0]
        if role in ("MODIFIEROP", "METARELOP"):
            self.at = 1
            result = self.expression() if role == "MODIFIEROP" else self.formula()
            if result is not None:
                result = Infix(self.items[0], [ABSENT, result])
                return self.more_formulae(result) if self.lenient else result
            self.at = 0
        operator = self.any_op()
        if operator is not None and len(listed := self._side_by_side(operator, self.any_op)) > 1:
            return listing(listed)
        self.at = 0
        if role in FLOATS:
            script = Script(ABSENT, self.mark(0), "post")
            self.at = 1
            if roles[1] in SCRIPTS or roles[1] in FLOATS:
                script = Script(script, self.mark(1), "post")
                self.at = 2
            return script
        operator = self.any_op()
        if operator is not None and (operand := self.expression()) is not None:
            return applied(operator, [ABSENT, operand])
        self.at = 0
        return None

    def script_list(self, sup: bool) -> Node | None:
        first = self.one_script(sup)
        if first is None:
            return None
        listed = self._side_by_side(first, lambda: self.one_script(sup))
        if self.at < self.end and self.roles[self.at] in STOPS:
            listed.append(self.items[self.at])
            self.at += 1
        return listing(listed)

    def _side_by_side(self, first: Node, read: Callable[[], Node | None]) -> list[Node]:
        """Return the parts that ``read`` reads one after the other, with their commas, written or not."""
        listed: list[Node] = [first]
        while self.at < self.end:
            start = self.at
            comma: Node = INVISIBLE_COMMA
            if self.roles[start] == "PUNCT":
                comma = self.items[start]
                self.at += 1
            following = read()
            if following is None:
                self.at = start
                break
            listed += [comma, following]
        return listed

    def one_script(self, sup: bool) -> Node | None:
        start = self.at
        if sup and self.roles[start] == "SUPOP":
            while self.roles[self.at] == "SUPOP":
                self.at += 1
            return primes("".join(item.value for item in self.items[start : self.at]))
        result = self.formulae()
        if result is not None:
            return result
        operator = self.any_op()
        if operator is not None:
            operand = self.expression()
            return operator if operand is None else applied(operator, [ABSENT, operand])
        if self.roles[start] == "OPEN":
            self.at = start + 1
            result = self.one_script(sup)
            if result is not None and self.roles[self.at] == "CLOSE":
                self.at += 1
                return fence([self.items[start], result, self.items[self.at - 1]])
        self.at = start
        return None

    def formulae(self) -> Node | None:
        first = self.formula()
        return None if first is None else self.more_formulae(first)

    def more_formulae(self, first: Node) -> Node:
        """Extend a formula by those that follow it after punctuation or a sign such as a colon or an arrow."""
        result = self._more_formulae(first)
        while self.lenient and result is not first:  # ``a : b, c : d``
            first, result = result, self._more_formulae(result)
        return result

    def _more_formulae(self, first: Node) -> Node:
        roles = self.roles
        role = roles[self.at]
        if role in STOPS:
            listed = self.more([first], STOPS, self.formula)
            if len(listed) > 1:
                return Dual(Named("formulae", listed[::2]), Row(listed))
            role = roles[self.at]
        if role == "METARELOP":
            chain = self.more([first], ("METARELOP",), lambda: self.formula() if self.at < self.end else ABSENT)
            return relation(chain)
        return first

    def modifier_formulae(self) -> Node | None:
        start = self.at
        operator = self.relop()
        if operator is not None:
            operand = self.expression()
            if operand is not None:
                return self.more_formulae(self._more_right(ABSENT, operator, operand))
        self.at = start
        return None

    def formula(self) -> Node | None:
        first = self.expression()
        return None if first is None else self.extended(first)

    def extended(self, first: Node) -> Node:
        role = self.roles[self.at]
        if role == "END":
            return first
        start = self.at
        if role == "PUNCT":
            listed = self.punctuated([first])
            if len(listed) > 1:
                left = listing(listed)
                chain = self.relation_chain([left])
                return relation(chain) if len(chain) > 1 else left
        operator = self.relop()
        if operator is not None:
            if self.at == self.end:
                return Infix(operator, [first, ABSENT])
            right = self.expression()
            if right is not None:
                return self._more_right(first, operator, right)
        self.at = start
        return first

    def relation_chain(self, chain: list[Node]) -> list[Node]:
        while True:
            start = self.at
            operator = self.relop()
            if operator is None:
                return chain
            if self.at == self.end:
                return [*chain, operator, ABSENT]
            right = self.expression()
            if right is None:
                self.at = start
                return chain
            chain += [operator, right]

    def _more_right(self, left: Node, operator: Node, right: Node) -> Node:
        """Extend a relation by more on its right-hand side after punctuation, or by more relations."""
        role = self.roles[self.at]
        if role == "PUNCT":
            start = self.at
            self.at += 1
            following = self.expression()
            if following is not None:
                return self._collected_right(left, operator, [right, self.items[start], following])
            self.at = start
        if role == "END":
            return Infix(operator, [left, right])
        return relation(self.relation_chain([left, operator, right]))

    def _collected_right(self, left: Node, operator: Node, listed: list[Node]) -> Node:
        while True:
            start = self.at
            following_operator = self.relop() if start < self.end else None
            if following_operator is not None:
                right = self.expression()
                if right is not None:
                    rest = self._more_right(listed[-1], following_operator, right)
                    first = Infix(operator, [left, listing(listed[:-2])])
                    return Dual(Named("formulae", [first, rest]), Row([first, listed[-2], rest]))
                self.at = start
            if self.roles[self.at] == "PUNCT":
                comma = self.items[self.at]
                self.at += 1
                following = self.expression()
                if following is not None:
                    listed += [comma, following]
                    continue
                self.at = start
            return Infix(operator, [left, listing(listed)])
