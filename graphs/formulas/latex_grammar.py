r"""A list of symbols -> its parse: what is applied to what.

>>> from graphs.formulas.latex_reader import Reader
>>> parsed = parse_list(Reader("2x+1").formula())
>>> type(parsed).__name__, parsed.op.name, len(parsed.args)
('Infix', 'plus', 2)

The grammar is that of LaTeXML's mathematics parser, whose trees the indexes were made of, in its own order of trial:
relations and lists of formulas, sums, products by juxtaposition, functions with and without parentheses, large
operators, fences. It is a recursive descent that commits: an alternative that succeeds is kept, even where the rest of
the formula then fails. What it leaves unread is :class:`~graphs.formulas.latex_nodes.Unparsed`.

Each method reads from ``self.at`` on and returns a node, or ``None`` without having moved.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from graphs.formulas.latex_nodes import (
    Dual,
    Infix,
    MathList,
    Named,
    Node,
    Postfix,
    Prefix,
    Relations,
    Row,
    Script,
    ScriptMark,
    Token,
    Unparsed,
)
from graphs.formulas.latex_repair import mended
from graphs.formulas.latex_symbols import (
    ABSENT,
    CONDITIONAL,
    INVISIBLE_COMMA,
    INVISIBLE_TIMES,
    SYMBOLS,
    opt_label,
    symbol,
)

MAX_NESTING: Final = 40
"""Fences nested deeper than this in one list are not parsed."""
STEPS_PER_ITEM: Final = 60
"""Trials of the grammar, by the length of a list; beyond them the list counts as unparsed."""

_BIGOPS = frozenset(("BIGOP", "SUMOP", "INTOP", "LIMITOP", "DIFFOP"))
_ADDITIVE = frozenset(("ADDOP", "BINOP"))
_MULTIPLICATIVE = frozenset(("MULOP", "BINOP"))
_RELATIONAL = frozenset(("RELOP", "ARROW"))
_FUNCTIONS = frozenset(("FUNCTION", "OPFUNCTION", "TRIGFUNCTION"))
_ATOMS = frozenset(("ATOM", "ID", "ARRAY"))
_NAMED = _FUNCTIONS | _ATOMS | {"UNKNOWN"}
_SCRIPTS = frozenset(("POSTSUP", "POSTSUB"))
_FLOATS = frozenset(("FLOATSUP", "FLOATSUB"))
_ENDS = frozenset(("PUNCT", "PERIOD"))
_ANY_OP = _RELATIONAL | _ADDITIVE | _MULTIPLICATIVE | _BIGOPS | {"METARELOP", "MODIFIEROP", "OPERATOR"}
_MATCHING = {
    "(": ")", "[": "]", "{": "}", "|": "|", "∥": "∥", "⌊": "⌋", "⌈": "⌉", "⟨": "⟩",
}  # fmt: skip
_ONE_WITHIN = {
    "{}": "set", "||": "absolute-value", "∥∥": "norm", "||||": "norm", "⌊⌋": "floor", "⌈⌉": "ceiling", "<>": "expectation",
    "<|": "bra", "|>": "ket",
}  # fmt: skip
_TWO_WITHIN = {
    "(,)": "open-interval", "[,]": "closed-interval", "(,]": "open-closed-interval", "[,)": "closed-open-interval",
    "{,}": "set",
}  # fmt: skip
_MANY_WITHIN = {"(,)": "vector", "{,}": "set"}
_NORM_OPEN = symbol("OPEN", "||")
_NORM_CLOSE = symbol("CLOSE", "||")


class _Failed(Exception):
    """The grammar has tried for too long."""


def parse_list(whole: MathList) -> Node:
    """Parse a list whose inner lists are parsed, and note the result in it."""
    items = whole.items
    trailing: list[Node] = []
    rule = whole.rule
    if rule == "Anything,":
        rule = "Anything"
        end = len(items)
        while end and items[end - 1].role in _ENDS:
            end -= 1
        if end < len(items):
            trailing = items[end:]
            items = items[:end]
    if len(items) < 2:
        result: Node | None = items[0] if items else ABSENT
    else:
        result = _Parse(items).whole(rule)
        if result is None:
            repaired = mended(items)
            result = repaired[0] if len(repaired) == 1 else _Parse(repaired, lenient=True).whole(rule)
    if result is None:
        node: Node = Unparsed(kludge(whole.items))
    elif trailing:
        node = Dual(result, Row([result, *trailing])) if items else Row(trailing) if len(trailing) > 1 else trailing[0]
    else:
        node = result
    whole.node = node
    return node


class _Parse:
    """One list, and how far it is read."""

    __slots__ = (
        "abs_depth",
        "abs_failed",
        "abs_limit",
        "at",
        "end",
        "items",
        "lenient",
        "nesting",
        "no_angles",
        "no_bars",
        "no_evaluation",
        "quantum",
        "roles",
        "saw_quantum",
        "steps",
    )

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

    def whole(self, rule: str) -> Node | None:
        """The parse of the whole list, or ``None``."""
        try:
            result = self._attempt(rule)
            if result is None and self.saw_quantum:
                self.quantum = False
                result = self._attempt(rule)
            while result is None and self.abs_failed and self.abs_limit < 3:
                self.abs_limit += 1
                result = self._attempt(rule)
        except _Failed:
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

    # ---- the whole list ------------------------------------------------------------------------------------------

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
                return self._fence([self.items[0], result, self.items[self.at - 1]])
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
                return Infix(self.items[0], [ABSENT, result])
            self.at = 0
        operator = self.any_op()
        if operator is not None:
            listed: list[Node] = [operator]
            while self.at < self.end:
                start = self.at
                comma: Node = INVISIBLE_COMMA
                if roles[start] == "PUNCT":
                    comma = self.items[start]
                    self.at += 1
                following = self.any_op()
                if following is None:
                    self.at = start
                    break
                listed += [comma, following]
            if len(listed) > 1:
                return self._list(listed)
        self.at = 0
        if role in _FLOATS:
            script = Script(ABSENT, self._mark(0), "post")
            self.at = 1
            if roles[1] in _SCRIPTS or roles[1] in _FLOATS:
                script = Script(script, self._mark(1), "post")
                self.at = 2
            return script
        operator = self.any_op()
        if operator is not None:
            operand = self.expression()
            if operand is not None:
                return self._applied(operator, [ABSENT, operand])
        self.at = 0
        return self._restriction() if self.lenient else None

    def _restriction(self) -> Node | None:
        """``|_U`` or the ``|U`` of a script: a bar with what it restricts to."""
        start = self.at
        if self.roles[start] != "VERTBAR":
            return None
        bar = self.items[start]
        self.at += 1
        evaluated = self._evaluated(ABSENT, bar)
        if evaluated is not None:
            return evaluated
        operand = self.formulae()
        if operand is not None:
            return Infix(_conditional(bar if isinstance(bar, Token) else SYMBOLS["|"]), [ABSENT, operand])
        self.at = start
        return None

    def script_list(self, sup: bool) -> Node | None:
        first = self.one_script(sup)
        if first is None:
            return None
        listed: list[Node] = [first]
        while self.at < self.end:
            start = self.at
            comma: Node = INVISIBLE_COMMA
            if self.roles[start] == "PUNCT":
                comma = self.items[start]
                self.at += 1
            following = self.one_script(sup)
            if following is None:
                self.at = start
                break
            listed += [comma, following]
        if self.at < self.end and self.roles[self.at] in _ENDS:
            listed.append(self.items[self.at])
            self.at += 1
        return self._list(listed)

    def one_script(self, sup: bool) -> Node | None:
        start = self.at
        if sup and self.roles[start] == "SUPOP":
            while self.roles[self.at] == "SUPOP":
                self.at += 1
            primes = "".join(item.value for item in self.items[start : self.at])
            return _primes(primes)
        result = self.formulae()
        if result is not None:
            return result
        operator = self.any_op()
        if operator is not None:
            operand = self.expression()
            return operator if operand is None else self._applied(operator, [ABSENT, operand])
        if self.lenient and self.roles[start] == "VERTBAR":
            return self._restriction()
        if self.roles[start] == "OPEN":
            self.at = start + 1
            result = self.one_script(sup)
            if result is not None and self.roles[self.at] == "CLOSE":
                self.at += 1
                return self._fence([self.items[start], result, self.items[self.at - 1]])
        self.at = start
        return None

    # ---- formulas and relations ----------------------------------------------------------------------------------

    def formulae(self) -> Node | None:
        first = self.formula()
        return None if first is None else self._more_formulae(first)

    def _more_formulae(self, first: Node) -> Node:
        roles = self.roles
        role = roles[self.at]
        if role in _ENDS:
            listed: list[Node] = [first]
            while roles[self.at] in _ENDS:
                start = self.at
                self.at += 1
                following = self.formula()
                if following is None:
                    self.at = start
                    break
                listed += [self.items[start], following]
            if len(listed) > 1:
                return Dual(Named("formulae", listed[::2]), Row(listed))
            role = roles[self.at]
        if role == "METARELOP":
            chain: list[Node] = [first]
            while roles[self.at] == "METARELOP":
                start = self.at
                self.at += 1
                following = self.formula() if self.at < self.end else ABSENT
                if following is None:
                    self.at = start
                    break
                chain += [self.items[start], following]
            return self._relation(chain)
        return first

    def modifier_formulae(self) -> Node | None:
        start = self.at
        operator = self.relop()
        if operator is not None:
            operand = self.expression()
            if operand is not None:
                return self._more_formulae(self._more_right(ABSENT, operator, operand))
        self.at = start
        return None

    def formula(self) -> Node | None:
        first = self.expression()
        return None if first is None else self._extend_formula(first)

    def _extend_formula(self, first: Node) -> Node:
        role = self.roles[self.at]
        if role == "END":
            return first
        start = self.at
        if role == "PUNCT":
            listed = self._punctuated([first])
            if len(listed) > 1:
                left = self._list(listed)
                chain = self._relop_expressions([left])
                return self._relation(chain) if len(chain) > 1 else left
        operator = self.relop()
        if operator is not None:
            if self.at == self.end:
                return Infix(operator, [first, ABSENT])
            right = self.expression()
            if right is not None:
                return self._more_right(first, operator, right)
        self.at = start
        return first

    def _punctuated(self, listed: list[Node]) -> list[Node]:
        """The list with what follows: punctuation and an expression, as often as there are both."""
        while self.roles[self.at] == "PUNCT":
            start = self.at
            self.at += 1
            following = self.expression()
            if following is None:
                self.at = start
                break
            listed += [self.items[start], following]
        return listed

    def _relop_expressions(self, chain: list[Node]) -> list[Node]:
        """The chain with what follows: a relation and an expression, as often as there are both."""
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
        """What follows a relation: punctuation and more on the right-hand side, or more relations."""
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
        return self._relation(self._relop_expressions([left, operator, right]))

    def _collected_right(self, left: Node, operator: Node, listed: list[Node]) -> Node:
        while True:
            start = self.at
            following_operator = self.relop() if start < self.end else None
            if following_operator is not None:
                right = self.expression()
                if right is not None:
                    rest = self._more_right(listed[-1], following_operator, right)
                    first = Infix(operator, [left, self._list(listed[:-2])])
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
            return Infix(operator, [left, self._list(listed)])

    def relop(self) -> Node | None:
        at = self.at
        if self.roles[at] not in _RELATIONAL:
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
        return self._decorated(token)

    def _decorated(self, token: Node) -> Node:
        while self.roles[self.at] in _SCRIPTS:
            token = self._script(token, self._mark(self.at), token.role)
            self.at += 1
        return token

    # ---- sums and products ---------------------------------------------------------------------------------------

    def expression(self) -> Node | None:
        self.steps -= 1
        if self.steps < 0:
            raise _Failed
        start = self.at
        roles = self.roles
        if roles[start] in _ADDITIVE or (self.lenient and roles[start] == "MULOP"):
            sign = self._operator()
            term = self.term()
            result: Node | None = None if term is None else Infix(sign, [term])
        else:
            result = self.term()
        if result is None:
            self.at = start
            operator = self.any_op()
            if operator is not None and roles[self.at] in (_AFTER_IDLE if self.lenient else _AFTER_LONE):
                return operator
            self.at = start
            return None
        # terms and the operators between them, equal operators run together
        operands: list[Node] = [result]
        last: Node | None = None
        while roles[self.at] in _ADDITIVE:
            operator = self._operator()
            term = self.term()
            if term is None:
                limit = Named("limit-from", [operands[-1], operator])
                operands[-1] = Dual(limit, Row([operands[-1], operator]))
                break
            if last is None or not _same(last, operator):
                if last is not None:
                    operands = [Infix(last, operands)]
                last = operator
            operands.append(term)
        result = operands[0] if last is None else Infix(last, operands)
        role = roles[self.at]
        if role == "END" or role not in ("PUNCT", "OPEN", "MODIFIER", "MODIFIEROP"):
            return result
        return self._modified(result)

    def _operator(self) -> Node:
        token = self.items[self.at]
        self.at += 1
        return self._decorated(token) if self.roles[self.at] in _SCRIPTS else token

    def _modified(self, expression: Node) -> Node:
        """An expression with an annotation: ``(mod n)``, ``(> 0)``."""
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
            operator = self.items[self.at] if roles[self.at] == "MODIFIEROP" else None
            if operator is None:
                operator = self.relop()
            else:
                self.at += 1
            operand = None if operator is None else self.expression()
            if operator is not None and operand is not None and self._closes(self.items[opening]):
                self.at += 1
                inner = Infix(operator, [ABSENT, operand])
                note = self._fence([self.items[opening], inner, self.items[self.at - 1]])
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
            if role == "END" or role in _STOPS:
                return result
            if role in _MULTIPLICATIVE:
                operator = self._operator()
                following = self.factor()
                if following is not None:
                    result = self._product(operator, result, following, fresh)
                    fresh = False
                    continue
                self.at = start
                return result
            following = self.factor()
            if following is not None:
                result = self._product(INVISIBLE_TIMES, result, following, fresh)
                fresh = False
                continue
            self.at = start
            if not self.no_evaluation and not self.no_bars and self._is_evaluation():
                bar = self.items[start]
                self.at = start + 1
                evaluated = self._evaluated(result, bar)
                if evaluated is not None:
                    result = evaluated
                    fresh = True
                    continue
                self.at = start + 1
                if role == "VERTBAR":
                    condition = self._expressions_without_bars()
                    if condition is not None:
                        shown = bar if isinstance(bar, Token) else SYMBOLS["|"]
                        return Infix(_conditional(shown), [result, condition])
                self.at = start
            return result

    def _product(self, operator: Node, left: Node, right: Node, fresh: bool) -> Node:
        if (
            type(left) is Infix
            and (not fresh or left.op.role in _MULTIPLICATIVE)
            and _same(left.op, operator)
            and len(left.args) > 1
        ):
            return Infix(operator, [*left.args, right]) if fresh else _extended(left, right)
        return Infix(operator, [left, right])

    def _is_evaluation(self) -> bool:
        role = self.roles[self.at]
        return role == "VERTBAR" or (role == "CLOSE" and self.items[self.at].value == "|")

    def _evaluated(self, base: Node, bar: Node) -> Node | None:
        roles = self.roles
        marks: list[ScriptMark] = []
        if roles[self.at] == "POSTSUB":
            marks = [self._mark(self.at)]
            if roles[self.at + 1] == "POSTSUP":
                marks.append(self._mark(self.at + 1))
        elif roles[self.at] == "POSTSUP" and roles[self.at + 1] == "POSTSUB":
            marks = [self._mark(self.at + 1), self._mark(self.at)]
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
        result = None if first is None else self._list(self._punctuated([first]))
        self.no_bars = bars
        return result

    # ---- factors -------------------------------------------------------------------------------------------------

    def factor(self) -> Node | None:
        at = self.at
        role = self.roles[at]
        if role == "NUMBER":
            self.at = at + 1
            return self._scripted(self.items[at])
        if role in _NAMED:
            if role == "ARRAY" and self.roles[at + 1] == "CLOSE" and self.items[at + 1].value == "}":
                self.at = at + 2
                return Dual(Named("cases", [self.items[at]]), Row(self.items[at : at + 2]))
            return self.named()
        if role == "OPEN":
            return self._opened(at) or (self._odd_factor(at) if self.lenient else None)
        if role in _BIGOPS:
            return self._large(at)
        if role in _FLOATS:
            return self._prescripted(at, ())
        if role == "VERTBAR":
            return self._between_bars(at)
        if role == "OPERATOR":
            self.at = at + 1
            operator = self._scripted(self.items[at])
            return self._operator_arguments(self._nested([operator]), trig=True)
        if role == "RELOP" and self.items[at].name == "less-than" and self.quantum:
            return self._in_angles(at)
        return self._odd_factor(at) if self.lenient else None

    def _odd_factor(self, at: int) -> Node | None:
        """What no grammar has, read nevertheless: a signed factor, an operator for itself, ``]a,b[``."""
        role = self.roles[at]
        if role in ("OPEN", "CLOSE") and self.items[at].value in "[]":
            return self._outward_interval(at)
        if role == "SUPOP":
            self.at = at + 1
            return self.items[at]
        if role not in _ANY_OP:
            return None
        operator = self.any_op()
        if operator is None:
            return None
        if self.roles[self.at] in _AFTER_IDLE:
            return operator
        if role in _ADDITIVE:
            operand = self.factor()
            if operand is not None:
                return Infix(operator, [operand])
        self.at = at
        return None

    def _outward_interval(self, at: int) -> Node | None:
        """``]a,b[``, ``]a,b]`` and ``[a,b[``: intervals with brackets turned outwards."""
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
                return self._scripted(Dual(Named(name, [first, second]), shown))
        self.at = at
        return None

    def named(self, trig: bool = True) -> Node | None:
        """A variable or a function with its scripts, and a function's arguments."""
        at = self.at
        role = self.roles[at]
        if role in _FLOATS:
            return self._prescripted(at, _NAMED if trig else _NAMED - {"TRIGFUNCTION"})
        if role not in _NAMED or (role == "TRIGFUNCTION" and not trig):
            return None
        self.at = at + 1
        base = self.items[at]
        if self.roles[at + 1] in _AFTER_BASE:
            base = self._scripted(base)
        if role in _FUNCTIONS:
            return self._function_arguments(base, role)
        return base

    def _function_arguments(self, function: Node, role: str) -> Node:
        if role == "FUNCTION":
            return self._easy_arguments(function) or function
        return self._operator_arguments(function, trig=role != "TRIGFUNCTION")

    def _operator_arguments(self, function: Node, *, trig: bool) -> Node:
        """A function with its arguments in parentheses, or without: ``sin x``; ``trig``: these may be trigonometric."""
        applied = self._easy_arguments(function)
        if applied is not None:
            return applied
        argument = self._bare_arguments(trig)
        return function if argument is None else Prefix(function, [argument])

    def _easy_arguments(self, function: Node) -> Node | None:
        start = self.at
        if self.roles[start] != "OPEN":
            return None
        opening = self.items[start]
        self.at += 1
        self._enter()
        first = self.one_argument()
        if first is not None:
            listed: list[Node] = [first]
            while self.roles[self.at] in ("PUNCT", "MIDDLE", "VERTBAR"):
                here = self.at
                self.at += 1
                following = self.one_argument()
                if following is None:
                    self.at = here
                    break
                listed += [self.items[here], following]
            if self._closes(opening):
                self.at += 1
                self.nesting -= 1
                shown: Node = Row([opening, *listed, self.items[self.at - 1]])
                content: Node = Prefix(function, listed[::2])
                if self.lenient:
                    while self.roles[self.at] in _SCRIPTS:
                        mark = self._mark(self.at)
                        content, shown = Script(content, mark, "post"), Script(shown, mark, "post")
                        self.at += 1
                return Dual(content, Prefix(function, [shown]))
        self.nesting -= 1
        self.at = start
        return None

    def one_argument(self) -> Node | None:
        argument = self.expression()
        while argument is not None and self.at < self.end:
            chain = self._relop_expressions([argument])
            if len(chain) > 1:
                argument = self._relation(chain)
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

    def _bare_arguments(self, trig: bool) -> Node | None:
        first = self._bare_argument(trig)
        if first is None:
            return None
        result: Node = first
        fresh = True
        while self.at < self.end:
            start = self.at
            if self.roles[start] in _MULTIPLICATIVE:
                operator = self._operator()
                following = self._bare_argument(trig)
            else:
                operator = INVISIBLE_TIMES
                following = self._bare_argument(trig)
            if following is None:
                self.at = start
                break
            result = self._product(operator, result, following, fresh)
            fresh = False
        return result

    def _bare_argument(self, trig: bool) -> Node | None:
        start = self.at
        role = self.roles[start]
        if role == "NUMBER":
            self.at = start + 1
            return self._scripted(self.items[start])
        if role == "VERTBAR":
            self.at = start + 1
            inner = self._within_bars()
            if inner is not None and self.roles[self.at] == "VERTBAR":
                self.at += 1
                return self._scripted(self._fence([self.items[start], inner, self.items[self.at - 1]]))
            self.at = start
            return None
        return self.named(trig)

    def _large(self, at: int) -> Node:
        """A large operator with all factors that follow it; after an integral, ``d x`` is a differential."""
        self.at = at + 1
        return self._large_applied(self._scripted(self.items[at]), self.roles[at] == "INTOP")

    def _large_applied(self, operator: Node, integral: bool) -> Node:
        first = self._integrand_factor(integral)
        if first is None:
            return operator
        result: Node = first
        fresh = True
        while self.at < self.end:
            start = self.at
            if self.roles[start] in _MULTIPLICATIVE:
                sign = self._operator()
                following = self._integrand_factor(integral)
            else:
                sign = INVISIBLE_TIMES
                following = self._integrand_factor(integral)
            if following is None:
                self.at = start
                break
            result = self._product(sign, result, following, fresh)
            fresh = False
        return Prefix(operator, [result])

    def _integrand_factor(self, integral: bool) -> Node | None:
        at = self.at
        if integral and self.roles[at] in ("UNKNOWN", "ID") and self.items[at].value == "d":
            following = self.roles[at + 1]
            if following in _ATOMS or following == "UNKNOWN":
                self.at = at + 2
                return Prefix(_DIFFERENTIAL, [self._scripted(self.items[at + 1])])
        return self.factor()

    def _nested(self, operators: list[Node]) -> Node:
        while True:
            at = self.at
            role = self.roles[at]
            if role == "OPERATOR" or role in _FUNCTIONS:
                self.at = at + 1
                operators.append(self._scripted(self.items[at]))
                if role == "OPERATOR":
                    continue
            elif role == "OPEN":
                self.at = at + 1
                self._enter()
                inner = self.expression()
                self.nesting -= 1
                if inner is not None and self._closes(self.items[at]):
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

    # ---- scripts -------------------------------------------------------------------------------------------------

    def _mark(self, at: int) -> ScriptMark:
        mark = self.items[at]
        assert isinstance(mark, ScriptMark)
        return mark

    def _scripted(self, base: Node) -> Node:
        roles = self.roles
        while True:
            role = roles[self.at]
            if role in _SCRIPTS:
                base = self._script(base, self._mark(self.at), "ATOM")
            elif role == "POSTFIX":
                base = Postfix(self.items[self.at], base)
            else:
                return base
            self.at += 1

    def _script(self, base: Node, mark: ScriptMark, role: str) -> Node:
        inner = base
        while type(inner) is Script:
            inner = inner.base
        place = "mid" if getattr(inner, "limits", False) else "post"
        return Script(base, mark, place, role)

    def _prescripted(self, at: int, roles: frozenset[str] | tuple[()]) -> Node | None:
        """Scripts before their base: ``{}_2F_1``."""
        marks = [self._mark(at)]
        self.at = at + 1
        while self.roles[self.at] in _SCRIPTS or self.roles[self.at] in _FLOATS:
            marks.append(self._mark(self.at))
            self.at += 1
        role = self.roles[self.at]
        allowed = (role in roles) if roles else (role in _NAMED or role in _BIGOPS)
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
        base = self._scripted(self.items[start])
        for mark in reversed(marks):
            base = Script(base, mark, "pre")
        if role in _FUNCTIONS:
            return self._function_arguments(base, role)
        if role in _BIGOPS:
            return self._large_applied(base, role == "INTOP")
        return base

    # ---- fences --------------------------------------------------------------------------------------------------

    def _enter(self) -> None:
        self.nesting += 1
        if self.nesting > MAX_NESTING:
            raise _Failed

    def _closes(self, opening: Node) -> bool:
        return self.roles[self.at] == "CLOSE" and _MATCHING.get(opening.value) == self.items[self.at].value

    def _opened(self, at: int) -> Node | None:
        items, roles = self.items, self.roles
        opening = items[at]
        if roles[at + 1] == "ARRAY":
            if roles[at + 2] == "CLOSE":
                self.at = at + 3
                return self._scripted(self._fence(items[at : at + 3]))
            if opening.value == "{":
                self.at = at + 2
                return Dual(Named("cases", [items[at + 1]]), Row(items[at : at + 2]))
        self._enter()
        result: Node | None = None
        if opening.value == "{" and self._has_such_that(at):
            result = self._conditional_set(at)
        if result is None:
            self.at = at + 1
            result = self._fenced(at)
        self.nesting -= 1
        if result is None and opening.value == "⟨" and self.quantum:
            result = self._in_angles(at)
        if result is None:
            self.at = at
        return result

    def _fenced(self, at: int) -> Node | None:
        items, roles = self.items, self.roles
        opening = items[at]
        first_role = roles[at + 1]
        if first_role in _ADDITIVE:
            operator = self._operator()
            if self._closes(opening):
                self.at += 1
                return self._scripted(self._fence([opening, operator, items[self.at - 1]]))
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
            if self._closes(opening):
                self.at += 1
                return self._scripted(self._fence([opening, items[self.at - 1]]))
            self.at = at + 1
            first = self.any_op()
            if first is None:
                return None
            return self._rest_of_fence(opening, first)
        after = self.at
        result = self._rest_of_fence(opening, first)
        if result is not None:
            return result
        self.at = after
        formula = self._extend_formula(first)
        if self.lenient:
            formula = self._more_formulae(formula)
        if self.at > after and self._closes(opening):
            self.at += 1
            return self._scripted(self._fence([opening, formula, items[self.at - 1]]))
        return None

    def _rest_of_fence(self, opening: Node, first: Node) -> Node | None:
        roles = self.roles
        if roles[self.at] == "PUNCT":
            start = self.at
            listed = self._punctuated([first])
            if len(listed) > 1 and roles[self.at] == "CLOSE":
                self.at += 1
                return self._scripted(self._fence([opening, *listed, self.items[self.at - 1]]))
            self.at = start + 1
            operator = self.any_op()
            if operator is not None and self._closes(opening):
                self.at += 1
                shown = [opening, first, self.items[start], operator, self.items[self.at - 1]]
                return self._scripted(Dual(Named("group", [first, operator]), Row(shown)))
            self.at = start
        if self._closes(opening):
            self.at += 1
            return self._scripted(self._fence([opening, first, self.items[self.at - 1]]))
        return None

    def _closes_on_operator(self, at: int) -> bool:
        """Whether what stands before the fence's end is a large operator, with or without scripts."""
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
                while position > at and roles[position] in _SCRIPTS:
                    position -= 1
                return roles[position] in _BIGOPS
        return False

    def _fenced_operator(self, at: int) -> Node | None:
        """``(x \\partial) f``: an operator in parentheses, with or without a factor, applied to what follows."""
        opening = self.items[at]
        before: Node | None = None
        if self.roles[at + 1] not in _BIGOPS:
            before = self.factor()
            if before is None:
                return None
        if self.roles[self.at] not in _BIGOPS:
            return None
        self.at += 1
        operator = self._scripted(self.items[self.at - 1])
        if not self._closes(opening):
            return None
        self.at += 1
        inner: Node = operator if before is None else Infix(INVISIBLE_TIMES, [before, operator])
        whole = self._scripted(self._fence([opening, inner, self.items[self.at - 1]]))
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
        """``{ x : p(x) }``, with a bar or a colon."""
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
        if condition is None or not self._closes(self.items[at]):
            return None
        self.at += 1
        shown = [self.items[at], element, self.items[here], condition, self.items[self.at - 1]]
        return self._scripted(Dual(Named("conditional-set", [element, condition]), Row(shown)))

    def _within_bars(self) -> Node | None:
        if self.abs_depth <= 0:
            self.abs_failed = True
            return None
        self._enter()
        evaluation, self.no_evaluation = self.no_evaluation, True
        self.abs_depth -= 1
        result = self.expression()
        self.abs_depth += 1
        self.no_evaluation = evaluation
        self.nesting -= 1
        return result

    def _between_bars(self, at: int) -> Node | None:
        items, roles = self.items, self.roles
        if not self.no_bars:
            if roles[at + 1] == "VERTBAR" and items[at].value == items[at + 1].value == "|":
                self.at = at + 2
                inner = self._within_bars()
                if inner is not None and roles[self.at] == roles[self.at + 1] == "VERTBAR":
                    self.at += 2
                    return self._scripted(self._fence([_NORM_OPEN, inner, _NORM_CLOSE]))
            self.at = at + 1
            inner = self._within_bars()
            if inner is not None and roles[self.at] == "VERTBAR":
                self.at += 1
                return self._scripted(self._fence([items[at], inner, items[self.at - 1]]))
            if self.quantum and self._has_right_angle(at):
                self.at = at + 1
                inner = self._in_ket()
                if inner is not None and self._right_angle():
                    self.at += 1
                    self.saw_quantum = True
                    shown = [items[at], inner, items[self.at - 1]]
                    return self._scripted(Dual(Named("ket", [inner]), Row(shown)))
        self.at = at
        return None

    def _right_angle(self) -> bool:
        at = self.at
        role = self.roles[at]
        return (role == "RELOP" and self.items[at].name == "greater-than") or (
            role == "CLOSE" and self.items[at].name == "rangle"
        )

    def _has_right_angle(self, at: int) -> bool:
        return any(item.name in ("greater-than", "rangle") for item in self.items[at + 1 :])

    def _in_ket(self) -> Node | None:
        self._enter()
        kept = self.no_bars, self.no_angles
        self.no_bars = self.no_angles = True
        result = self.formulae()
        self.no_bars, self.no_angles = kept
        self.nesting -= 1
        if result is None and self.roles[self.at] in ("METARELOP", "MODIFIEROP"):
            self.at += 1
            result = self.items[self.at - 1]
        return result

    def _in_angles(self, at: int) -> Node | None:
        """``<a>``, ``<a|b>``, ``<a|H|b>``."""
        items = self.items
        if not self._has_right_angle(at) and "VERTBAR" not in self.roles[at + 1 :]:
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
                    self.at += 1
                    self.saw_quantum = True
                    shown = [items[at], first, bar, second, items[self.at - 1]]
                    return self._scripted(Dual(Named("inner-product", [first, second]), Row(shown)))
                if self.roles[self.at] in ("VERTBAR", "MIDDLE"):
                    second_bar = items[self.at]
                    self.at += 1
                    third = self._in_ket()
                    if third is not None and self._right_angle():
                        self.at += 1
                        self.saw_quantum = True
                        shown = [items[at], first, bar, second, second_bar, third, items[self.at - 1]]
                        return self._scripted(
                            Dual(Named("quantum-operator-product", [first, second, third]), Row(shown))
                        )
            self.at = after_bar
            self.saw_quantum = True
            return self._scripted(Dual(Named("bra", [first]), Row([items[at], first, bar])))
        self.at = at + 1
        inner = self._within_bars()
        if inner is not None and self._right_angle():
            self.at += 1
            return self._scripted(self._fence([items[at], inner, items[self.at - 1]]))
        if inner is not None and self.lenient and self.roles[self.at] == "PUNCT":
            kept, self.no_angles = self.no_angles, True
            listed = self._punctuated([inner])
            self.no_angles = kept
            if self._right_angle():
                self.at += 1
                return self._scripted(self._fence([items[at], *listed, items[self.at - 1]]))
        self.at = at
        return None

    # ---- operators -----------------------------------------------------------------------------------------------

    def any_op(self) -> Node | None:
        at = self.at
        role = self.roles[at]
        if role not in _ANY_OP:
            return None
        if role in _RELATIONAL:
            return self.relop()
        self.at = at + 1
        if role in ("METARELOP", "MODIFIEROP"):
            return self.items[at]
        if role in _ADDITIVE or role in _MULTIPLICATIVE:
            return self._decorated(self.items[at])
        return self._scripted(self.items[at])

    # ---- making nodes --------------------------------------------------------------------------------------------

    @staticmethod
    def _applied(operator: Node, args: list[Node]) -> Node:
        role = operator.role
        if role in _BIGOPS or role == "OPERATOR":
            return Prefix(operator, args)
        return Infix(operator, args)

    @staticmethod
    def _relation(chain: list[Node]) -> Node:
        if len(chain) == 1:
            return chain[0]
        if len(chain) == 3:
            return Infix(chain[1], [chain[0], chain[2]])
        return Relations(chain)

    @staticmethod
    def _list(listed: list[Node]) -> Node:
        if len(listed) == 1:
            return listed[0]
        return Dual(Named("list", listed[::2]), Row(listed))

    @staticmethod
    def _fence(shown: Sequence[Node]) -> Node:
        """What a fence with its contents means, by its two ends and by how many elements it has."""
        opening, closing = shown[0].value, shown[-1].value
        args = shown[1:-1:2]
        if len(args) == 1:
            name = _ONE_WITHIN.get(opening + closing)
            if name is None or shown[0].name == "lVert":
                if opening == "(" and closing == ")":
                    return Dual(args[0], Row(shown))
                name = f"delimited-{opening}{closing}"
        elif not args:
            name = "list"
        else:
            key = f"{opening}{shown[2].value}{closing}"
            name = (_TWO_WITHIN if len(args) == 2 else _MANY_WITHIN).get(key, "list")
        return Dual(Named(name, args), Row(shown))


_AFTER_BASE = _SCRIPTS | {"POSTFIX"}
_STOPS = (
    _ADDITIVE - _MULTIPLICATIVE | _RELATIONAL - {"RELOP"} | {"PUNCT", "PERIOD", "METARELOP", "MODIFIER", "MODIFIEROP"}
)
_AFTER_LONE = frozenset(("END", "PUNCT", "CLOSE"))
_AFTER_IDLE = _AFTER_LONE | {"VERTBAR", "PERIOD", "METARELOP"}
_DIFFERENTIAL = Token("DIFFOP", "d", "d", opt_label("differential-d"), name="differential-d")
_PRIMES: dict[int, Token] = {}


def _primes(primes: str) -> Token:
    found = _PRIMES.get(len(primes))
    if found is None:
        found = symbol("SUPOP", primes)
        if len(_PRIMES) < 100:
            _PRIMES[len(primes)] = found
    return found


def _conditional(bar: Token) -> Token:
    return Token(
        "MODIFIEROP", bar.value, bar.slt if bar.slt[1:2] != "!" else bar.slt[2:], CONDITIONAL, name="conditional"
    )


def _same(first: Node, second: Node) -> bool:
    """Whether two operators are the same, and their operands may stand side by side."""
    if first is second:
        return True
    if type(first) is not type(second) or first.name != second.name or first.value != second.value:
        return False
    return type(first) is Token or type(first) is Script


def _extended(product: Infix, factor: Node) -> Infix:
    assert isinstance(product.args, list)
    product.args.append(factor)
    return product


def kludge(items: Sequence[Node]) -> list[Node]:
    """What the grammar could not read: scripts put on what stands before them, fenced stretches as parts of their own.

    An end of a fence without a beginning ends the row that began at the left; what follows it stays as it is.
    """
    rows: list[list[Node]] = [[], []]  # the last is the row in work
    for item in items:
        if item.role == "OPEN" and len(rows) < MAX_NESTING:
            rows.append([item])
        elif item.role == "CLOSE" and rows:
            _close_row(rows, [item])
        elif rows:
            rows[-1].append(item)
        else:
            rows.append([item])
    while len(rows) > 1:
        _close_row(rows, [])
    parts: list[Node] = []
    for part in rows[0] if rows else []:
        parts += part.parts if type(part) is Unparsed else [part]
    return parts


def _close_row(rows: list[list[Node]], end: list[Node]) -> None:
    attached = _attach(rows.pop() + end)
    if not rows:
        rows.append([])
    if attached:
        rows[-1].append(Unparsed(attached) if len(attached) > 1 else attached[0])


def _attach(items: Sequence[Node]) -> list[Node]:
    out: list[Node] = []
    before: list[ScriptMark] = []
    for item in items:
        if type(item) is ScriptMark:
            if item.floating or before:
                before.append(item)
            elif out:
                base = out[-1]
                inner = base
                while type(inner) is Script:
                    inner = inner.base
                out[-1] = Script(base, item, "mid" if getattr(inner, "limits", False) else "post")
            else:
                before.append(item)
            continue
        for mark in reversed(before):
            item = Script(item, mark, "pre")
        before = []
        out.append(item)
    if before:
        base = ABSENT
        for mark in before:
            base = Script(base, mark, "post")
        out.append(base)
    return out
