"""Presentation MathML -> symbol layout tree (SLT): the places of the symbols of a formula.

>>> mathml = '<math><mrow><msup><mi>x</mi><mn>2</mn></msup><mo>+</mo><mi>y</mi></mrow></math>'
>>> parse_slt(mathml).tangent_string()
'[V!x[+[V!y]],a[N!2]]'

The trees are those of Tangent-S for the output of LaTeXML; :mod:`graphs.formulas.layout` has the rules of building.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from itertools import zip_longest

from graphs.errors import FormulaError
from graphs.formulas import layout
from graphs.formulas.layout import BLANK, Symbol
from graphs.formulas.mathml import (
    Element,
    Letters,
    Rule,
    Rules,
    cleaner,
    first_child,
    local_name,
    only_child,
    read_mathml,
    walk,
)
from graphs.formulas.tree import FormulaTree

Children = list[Symbol | None]


def parse_slt(mathml: str, *, letters: Letters = "plain") -> FormulaTree:
    """Return the SLT of a formula in Presentation MathML, alone or in parallel with Content MathML.

    ``letters="plain"`` writes every label in plain letters (NFKC), one tree for all versions of LaTeXML; ``"italic"``
    keeps the mathematical alphabets. Raises FormulaError, whose ``kind`` is ``empty``, ``malformed``, ``no_math``,
    ``too_long``, ``too_deep``, ``many_roots`` or ``unknown_tag``.
    """
    symbol = walk(read_mathml(mathml, "MathML-Presentation"), _rules(letters))
    if symbol is None:
        raise FormulaError("the formula shows no symbol", kind="empty")
    return layout.finish(symbol)


def _typed(prefix: str, clean: Callable[[str | None], str]) -> Callable[[Element, Children], Symbol]:
    def rule(element: Element, children: Children) -> Symbol:
        text = clean(element.text)
        return Symbol(prefix + text if text else BLANK)

    return rule


@cache
def _rules(letters: Letters) -> Rules[Symbol]:
    clean = cleaner(letters)

    def fenced(element: Element, children: Children) -> Symbol:
        separators = [clean(separator) for separator in "".join(element.get("separators", ",").split())]
        parts: Children = []
        for child in children:
            if layout.is_blank(child):
                continue
            if parts and separators:
                parts.append(Symbol(separators.pop(0) if len(separators) > 1 else separators[0]))
            parts.append(child)
        return layout.fence(clean(element.get("open", "(")), parts, clean(element.get("close", ")")))

    leaves: dict[str, Rule[Symbol]] = {
        "mi": _typed("V!", clean),
        "mn": _typed("N!", clean),
        "mtext": _typed("T!", clean),
        "mo": lambda element, children: Symbol(clean(element.text)),
        "mspace": _blank,
        "none": _blank,
        "mphantom": _blank,
        "mprescripts": _blank,
        "merror": lambda element, children: Symbol("E!" + clean(element.text)),
        "qvar": lambda element, children: Symbol("?" + (element.get("name") or clean(element.text))),
    }
    inner: dict[str, Rule[Symbol]] = {
        "math": only_child,
        "semantics": first_child,
        "mstyle": first_child,
        "mrow": lambda element, children: layout.row(children),
        "mpadded": lambda element, children: layout.row(children),
        "mfenced": fenced,
        "mfrac": _of(2, layout.fraction),
        "msqrt": lambda element, children: layout.root(layout.chain(children)) if children else Symbol(BLANK),
        "mroot": _of(2, layout.root),
        "msub": _of(2, lambda base, sub: layout.scripts(base, sub, None)),
        "msup": _of(2, lambda base, sup: layout.scripts(base, None, sup)),
        "msubsup": _of(3, layout.scripts),
        "munder": _of(2, lambda base, under: layout.under_over(base, under, None)),
        "mover": _of(2, lambda base, over: layout.under_over(base, None, over)),
        "munderover": _of(3, layout.under_over),
        "mmultiscripts": _multiscripts,
        "mtable": lambda element, children: layout.table([layout.linked(child) for child in children]),
        "mtr": lambda element, children: layout.link(children),
        "mtd": lambda element, children: layout.chain(children) or Symbol(BLANK),
        "menclose": lambda element, children: layout.enclosed(element.get("notation", ""), layout.chain(children)),
    }
    return Rules(leaves, inner)


def _blank(element: Element, children: Children) -> Symbol:
    return Symbol(BLANK)


def _of(number: int, build: Callable[..., Symbol]) -> Rule[Symbol]:
    """Return the rule of an element with a base and what is around it; of another number, a row without fences."""

    def rule(element: Element, children: Children) -> Symbol | None:
        if len(children) == number:
            return build(*children)
        return layout.chain([child for child in children if not layout.is_blank(child)])

    return rule


def _multiscripts(element: Element, children: Children) -> Symbol | None:
    if not children:
        return None
    after: Children = []
    before: Children = []
    side = after
    for part, child in zip(element, children, strict=True):
        if local_name(part) == "mprescripts":
            side = before
        else:
            side.append(child)
    base, *after = after or [None]
    pairs = [list(zip_longest(side[::2], side[1::2])) for side in (after, before)]
    return layout.multiscripts(base, *pairs)
