r"""Commands that build: scripts, fractions, roots, accents, arrows, boxes, negations, moduli.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"\sqrt[3]{\bar{x}}").opt.tangent_string()
'[O!root,0[F! ̄,0[V!x]],1[N!3]]'
>>> parse_latex(r"\frac12+\binom{n}{k}").opt.tangent_string()
'[U!plus,0[O!divide,0[N!1],1[N!2]],1[O!binomial,0[V!n],1[V!k]]]'
"""

from __future__ import annotations

from graphs.formulas.latex.compounds import SPLITTING, binomial, joined
from graphs.formulas.latex.grammar.constructs import fence
from graphs.formulas.latex.nodes import (
    Accent,
    Dual,
    Enclosure,
    Fraction,
    Node,
    Prefix,
    Root,
    Row,
    Script,
    ScriptMark,
    Token,
    Wrapped,
)
from graphs.formulas.latex.reader import EMPTY, GROUP_END, Reader, handles
from graphs.formulas.latex.symbols import ACCENTS, LIMIT_ACCENTS, NEGATIONS, SYMBOLS, opt_label, symbol
from graphs.formulas.latex.tokens import bracketed, group

_PRIME = SYMBOLS[r"\prime"]
_BINDING_ROLES = {
    r"\mathbin": ("BINOP", ("ADDOP", "MULOP")),
    r"\mathrel": ("RELOP", ()),
    r"\mathop": ("BIGOP", ("ARROW", "SUMOP", "INTOP", "DIFFOP")),
    r"\mathopen": ("OPEN", ()),
    r"\mathclose": ("CLOSE", ()),
    r"\mathpunct": ("PUNCT", ("PERIOD",)),
    r"\mathord": ("ID", ("NUMBER",)),
}


@handles("{")
def _group(reader: Reader, token: str, out: list[Node]) -> None:
    apart = reader.apart
    items = reader.within(GROUP_END)
    if not items:
        out.append(EMPTY)
    elif out and not apart and type(items[0]) is Fraction and joined(out, items[0], False):  # 29{5 \over 7}
        out.extend(items[1:])
    else:
        out.extend(items)


@handles("^", "_")
def _script(reader: Reader, token: str, out: list[Node]) -> None:
    sup = token == "^"
    display, reader.display = reader.display, False
    items = reader.field_items()
    reader.display = display
    if items:
        reader.script(out, sup, reader.math_list(items, "Superscript" if sup else "Subscript"))


@handles("'")
def _primes(reader: Reader, token: str, out: list[Node]) -> None:
    stack = reader.stack
    items: list[Node] = [_PRIME]
    while stack and stack[-1] == "'":
        stack.pop()
        items.append(_PRIME)
    if reader.next_token() == "^":
        stack.pop()
        items += reader.argument_items()
    reader.script(out, True, reader.math_list(items, "Superscript"))


@handles(r"\frac", r"\tfrac", r"\dfrac", r"\cfrac", r"\nicefrac", r"\sfrac", r"\flatfrac", r"\lfrac")
def _fraction(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\cfrac":
        bracketed(reader.stack)
    display, reader.display = reader.display, False
    numerator = reader.argument()
    denominator = reader.argument()
    reader.display = display
    return Fraction(numerator, denominator, "continued-fraction" if token == r"\cfrac" else "divide")


@handles(r"\binom", r"\dbinom", r"\tbinom")
def _binomial_command(reader: Reader, token: str, out: list[Node]) -> Node:
    return binomial(reader.argument(), reader.argument())


@handles(r"\genfrac")
def _general_fraction(reader: Reader, token: str, out: list[Node]) -> Node:
    left, right, thickness, _ = (reader.name_argument() for _ in range(4))
    above, below = reader.argument(), reader.argument()
    if (left, right) == ("(", ")") and thickness.startswith("0"):
        return binomial(above, below)
    bare = Fraction(above, below, "divide" if not thickness.startswith("0") else "")
    return fence([SYMBOLS[left], bare, SYMBOLS[right]]) if left in SYMBOLS and right in SYMBOLS else bare


@handles(*SPLITTING)
def _fraction_of_all(reader: Reader, token: str, out: list[Node]) -> None:
    """Leave the fraction to :meth:`Reader.items`: it spans everything before and after the command."""


@handles(r"\sqrt")
def _root(reader: Reader, token: str, out: list[Node]) -> Node:
    index = reader.optional()
    return Root(reader.field(), index)


@handles(r"\root")
def _root_of(reader: Reader, token: str, out: list[Node]) -> Node:
    index = _up_to(reader, r"\of")
    return Root(reader.argument(), reader.math_list(reader.of_tokens(index)))


def _up_to(reader: Reader, end: str) -> list[str]:
    """Use up the tokens before ``end``, and this; return those before it."""
    given: list[str] = []
    while reader.stack and (token := reader.stack.pop()) != end:
        given.append(token)
    return given


@handles(*ACCENTS)
def _accent(reader: Reader, token: str, out: list[Node]) -> Node:
    mark, over = ACCENTS[token]
    base = reader.field() if token.lower() in _FIELD_ACCENTS else reader.argument()
    return Accent(mark, base, over, token in LIMIT_ACCENTS)


_FIELD_ACCENTS = frozenset((
    r"\hat", r"\check", r"\breve", r"\acute", r"\grave", r"\tilde", r"\bar", r"\vec", r"\dot", r"\ddot",
    r"\widehat", r"\widetilde", r"\overline",
))  # fmt: skip


_LIM = symbol("OPFUNCTION", "lim")
_LIMIT_MARKS = {
    r"\varinjlim": (SYMBOLS[r"\to"], False, "injective-limit"),
    r"\varprojlim": (SYMBOLS[r"\gets"], False, "projective-limit"),
    r"\varliminf": (ACCENTS[r"\underline"][0], False, "limit-infimum"),
    r"\varlimsup": (ACCENTS[r"\overline"][0], True, "limit-supremum"),
}


@handles(*_LIMIT_MARKS)
def _marked_limit(reader: Reader, token: str, out: list[Node]) -> Node:
    mark, over, meaning = _LIMIT_MARKS[token]
    return Dual(symbol("LIMITOP", "lim", meaning), Accent(mark, _LIM, over), role="LIMITOP")


@handles(r"\overset", r"\stackrel", r"\underset", r"\buildrel")
def _set_over(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\buildrel":
        above = reader.math_list(reader.of_tokens(_up_to(reader, r"\over")), "Anything,")
    else:
        above = reader.argument("Anything,")
    items = [item for item in reader.argument_items() if item is not EMPTY]
    base = reader.math_list(items)
    if token in (r"\overset", r"\underset"):
        return Accent(_mark(above), base, token == r"\overset")
    if items and all(item.role in _OPERANDS for item in items):
        return Accent(above, base, True)
    return Script(base, ScriptMark(above, True, False, reader.depth), "mid", "RELOP")


_OPERANDS = frozenset(("ID", "NUMBER", "UNKNOWN"))


def _mark(node: Node) -> Node:
    """Return the mark over or under a base: a single symbol is drawn as an operator, like a hat."""
    if type(node) is Token:
        return Token(node.role, node.value, _without_type(node.slt), node.opt, name=node.name)
    return node


def _without_type(label: str) -> str:
    """Return the label that a symbol has in the SLT if it is an operator."""
    return label[2:] if label.startswith(("V!", "N!")) else label


_LONG_ARROWS = {
    r"\xrightarrow": SYMBOLS[r"\to"],
    r"\xleftarrow": SYMBOLS[r"\gets"],
    r"\xmapsto": SYMBOLS[r"\mapsto"],
    r"\xrightleftharpoons": SYMBOLS[r"\rightleftharpoons"],
    r"\xhookrightarrow": SYMBOLS[r"\hookrightarrow"],
    r"\xleftrightarrow": SYMBOLS[r"\leftrightarrow"],
    r"\xRightarrow": SYMBOLS[r"\Rightarrow"],
    r"\xlongequal": SYMBOLS["="],
}


@handles(*_LONG_ARROWS)
def _long_arrow(reader: Reader, token: str, out: list[Node]) -> Node:
    below = reader.optional("Anything,")
    above = reader.argument("Anything,")
    arrow = _LONG_ARROWS[token]
    over = Accent(_mark(above), arrow, True, role="ARROW")
    return over if below is None else Accent(_mark(below), over, False, role="ARROW")


@handles(*_BINDING_ROLES)
def _binding(reader: Reader, token: str, out: list[Node]) -> Node | None:
    role, kept = _BINDING_ROLES[token]
    items = reader.field_items()
    limits = token == r"\mathop" and reader.display
    if len(items) == 1 and isinstance(items[0], Token):
        only = items[0]
        if only.role in kept:
            return only
        slt = only.slt if role == "ID" else _without_type(only.slt)
        return Token(role, only.value, slt, only.opt, name=only.name, limits=limits)
    if not items:
        return None
    return Wrapped(reader.math_list(items), role, limits)


@handles(
    r"\mathinner", r"\ensuremath", r"\mathrlap", r"\mathllap", r"\mathclap", r"\rlap", r"\llap", r"\smash", r"\vcenter",
    r"\mathchoice",
)  # fmt: skip
def _transparent(reader: Reader, token: str, out: list[Node]) -> None:
    if token == r"\mathchoice":
        choices = [group(reader.stack) or [] for _ in range(4)]
        out.extend(reader.of_tokens(choices[1]))
        return
    if token == r"\smash":
        bracketed(reader.stack)
    out.extend(reader.argument_items())


@handles(r"\boxed", r"\bbox", r"\framebox", r"\fcolorbox", r"\colorbox")
def _box(reader: Reader, token: str, out: list[Node]) -> Node:
    bracketed(reader.stack)
    for _ in range({r"\fcolorbox": 2, r"\colorbox": 1}.get(token, 0)):
        reader.name_argument()
    return Enclosure("box", reader.argument())


@handles(r"\cancel", r"\bcancel", r"\xcancel", r"\enclose")
def _cancel(reader: Reader, token: str, out: list[Node]) -> Node:
    if token == r"\enclose":
        notation = reader.name_argument()
        bracketed(reader.stack)
        return Enclosure(notation, reader.argument())
    notation = {r"\cancel": "updiagonalstrike", r"\bcancel": "downdiagonalstrike"}.get(
        token, "updiagonalstrike downdiagonalstrike"
    )
    return Enclosure(notation, reader.argument(), _CANCEL)


_CANCEL = Token("ENCLOSE", "", "", opt_label("cancel"))
_NOT = Token("ENCLOSE", "", "", opt_label("not"))


@handles(r"\not", r"\centernot")
def _not(reader: Reader, token: str, out: list[Node]) -> Node | None:
    items = reader.field_items()
    if not items:
        return None
    first, *rest = items
    if rest:
        return Enclosure("updiagonalstrike", reader.math_list(items), _NOT)
    if isinstance(first, Token) and len(first.value) == 1:
        text = NEGATIONS.get(first.value, first.value + "\u0338")
        meaning = first.name if first.opt[:2] != "V!" else ""
        return symbol(first.role, text, f"not-{meaning}" if meaning else "", limits=first.limits)
    return Enclosure("updiagonalstrike", first, _NOT)


@handles(r"\limits", r"\nolimits", r"\displaylimits")
def _limits(reader: Reader, token: str, out: list[Node]) -> None:
    if out and token != r"\displaylimits":
        last = out[-1]
        if isinstance(last, Token) and last.role in ("OPFUNCTION", "BIGOP"):
            out[-1] = last.with_limits(token == r"\limits")
        elif isinstance(last, Wrapped):
            out[-1] = Wrapped(last.inner, last.role, token == r"\limits")


@handles(r"\pmod", r"\pod")
def _parenthesized_mod(reader: Reader, token: str, out: list[Node]) -> Node:
    number = reader.argument()
    shown: list[Node] = [SYMBOLS["("], Row([_MOD, number] if token == r"\pmod" else [number]), SYMBOLS[")"]]
    return Dual(Prefix(_PMOD, [number]), Row(shown), role="MODIFIER")


_MOD = Token("MODIFIEROP", "mod", "mod", "V!mod")
_PMOD = Token("FUNCTION", "pmod", "V!pmod", "V!pmod")


@handles(r"\dots")
def _dots(reader: Reader, token: str, out: list[Node]) -> Node:
    """Raise dots before an operator, also if a macro begins with it."""
    token = reader.next_token()
    for _ in range(_MACROS_IN_MACROS):
        if not reader.is_macro(token):
            break
        token = next((part for part in reader.macros[token].body if not part.isspace()), "")
    following = SYMBOLS.get(token)
    raised = following is not None and following.role in ("ADDOP", "MULOP", "RELOP")
    return SYMBOLS[r"\cdots" if raised else r"\ldots"]


_MACROS_IN_MACROS = 10  # that dots look into


@handles(r"\sideset")
def _sideset(reader: Reader, token: str, out: list[Node]) -> None:
    before = group(reader.stack) or []
    after = group(reader.stack) or []
    operator = reader.argument_items()
    out.append(EMPTY)
    out.extend(reader.of_tokens(["{", "}", *before]))
    out.extend(operator)
    reader.stack.extend(reversed(after))


@handles(r"\prescript")
def _prescript(reader: Reader, token: str, out: list[Node]) -> None:
    above = group(reader.stack) or []
    below = group(reader.stack) or []
    base = group(reader.stack) or []
    reader.stack.extend(reversed(["{", "}", "^", "{", *above, "}", "_", "{", *below, "}", *base]))


@handles(r"\cancelto")
def _cancel_to(reader: Reader, token: str, out: list[Node]) -> None:
    value = reader.argument()
    out.append(Enclosure("updiagonalstrike", reader.argument(), _CANCEL))
    reader.script(out, True, value)
