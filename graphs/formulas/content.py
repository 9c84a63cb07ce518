"""Content MathML -> operator tree (OPT): the operators of a formula with their operands.

>>> power = '<apply><csymbol cd="ambiguous">superscript</csymbol><ci>𝑥</ci><cn>2</cn></apply>'
>>> mathml = f"<math><apply><plus/>{power}<ci>𝑦</ci></apply></math>"
>>> parse_opt(mathml).tangent_string()
'[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]'

The trees are those of Tangent-S, in MathAMR's copy, for the output of LaTeXML. :mod:`graphs.formulas.operators` has the
rules of building and :mod:`graphs.formulas.meanings` the names. Two cases go beyond the original, which fails on them:

- ``share``, a second use of an earlier operand (``b`` in ``a < b <= c``), is left out, as in the official files of 2021
  and 2022, from which all shares were removed; so are the query variables that LaTeXML made of question marks;
- the matrices of LaTeXML 0.8.6 and later, ``apply(csymbol matrix, matrix)``, become the matrix, as in earlier versions.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache, partial
from typing import Literal

from graphs.errors import FormulaError
from graphs.formulas import operators
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
from graphs.formulas.meanings import AMBIGUOUS, ELEMENTS, meaning_label
from graphs.formulas.operators import Term
from graphs.formulas.tree import FormulaTree

Children = list[Term | None]

_CLOSURES: dict[str, tuple[operators.Bound, operators.Bound]] = {
    "open": ("O", "O"),
    "closed": ("C", "C"),
    "open-closed": ("O", "C"),
    "closed-open": ("C", "O"),
}
_MATRIX_OPERATOR = "O!matrix"


def parse_opt(mathml: str, *, letters: Letters = "plain") -> FormulaTree:
    """Return the OPT of a formula in Content MathML, alone or in parallel with Presentation MathML.

    ``letters`` as in :func:`graphs.formulas.presentation.parse_slt`: LaTeXML writes the letters of Content MathML in
    mathematical italics, which ``"italic"`` keeps. Raises FormulaError, whose ``kind`` is ``empty``, ``malformed``,
    ``no_math``, ``too_long``, ``too_deep``, ``many_roots``, ``unknown_tag``, ``unknown_symbol`` or ``operands``.
    """
    term = walk(read_mathml(mathml, "MathML-Content"), _rules(letters))
    if term is None:
        raise FormulaError("the formula has no operator and no operand", kind="empty")
    return operators.finish(term)


@cache
def _rules(letters: Letters) -> Rules[Term]:
    clean = cleaner(letters)

    def typed(prefix: str) -> Rule[Term]:
        def rule(element: Element, children: Children) -> Term:
            text = clean(element.text)
            return Term(prefix + text if text else "W!")

        return rule

    text = typed("N!")

    def number(element: Element, children: Children) -> Term | None:
        if len(element):
            raise FormulaError(f"<cn> has the element <{local_name(element[0])}>, not text alone", kind="unknown_tag")
        return text(element, children)

    leaves: dict[str, Rule[Term]] = {
        "ci": typed("V!"),
        "cn": number,
        "mtext": typed("T!"),
        "csymbol": partial(_symbol, clean),
        "qvar": lambda element, children: Term("?" + (element.get("name") or clean(element.text))),
        "share": lambda element, children: None,
        **{name: _constant(label) for name, label in ELEMENTS.items()},
    }
    inner: dict[str, Rule[Term]] = {
        "math": only_child,
        "semantics": first_child,
        "mstyle": first_child,
        "apply": _apply,
        "cerror": lambda element, children: operators.error(_given(children)),
        "vector": _group("V"),
        "list": _group("L"),
        "set": _group("S"),
        "matrix": _matrix,
        "matrixrow": _with_operands("M!R!"),
        "interval": _interval,
        **{name: _with_operands(f"$!{name}") for name in ("degree", "bvar", "lowlimit", "uplimit")},
    }
    return Rules(leaves, inner)


def _constant(label: str) -> Rule[Term]:
    return lambda element, children: Term(label)


def _with_operands(label: str) -> Rule[Term]:
    return lambda element, children: Term(label, _given(children))


def _group(kind: Literal["V", "L", "S"]) -> Rule[Term]:
    return lambda element, children: operators.group(kind, _given(children))


def _given(children: Children) -> list[Term]:
    return [child for child in children if child is not None]


def _symbol(clean: Callable[[str | None], str], element: Element, children: Children) -> Term | None:
    name = clean(element.text).lower()
    dictionary = element.get("cd", "")
    label: str | None = None
    if dictionary == "ambiguous":
        label = AMBIGUOUS.get(name)
    elif dictionary == "latexml":
        label = _MATRIX_OPERATOR if name == "matrix" else meaning_label(name)
    elif dictionary == "unknown":
        label = f"-!{name}"
    elif dictionary == "mws":
        if name != "qvar_":
            return None  # LaTeXML's output for a question mark at the end of a formula
        label = "?"
    if label is None:
        raise FormulaError(f"the symbol {name!r} of dictionary {dictionary!r} has no label", kind="unknown_symbol")
    return Term(label)


def _apply(element: Element, children: Children) -> Term:
    terms = _given(children)
    if not terms:
        raise FormulaError("<apply> without an operator", kind="operands")
    operator, *operands = terms
    if operator.label == _MATRIX_OPERATOR and len(operands) == 1 and operands[0].label.startswith("M!M-"):
        return operands[0]
    return operators.apply(operator, operands)


def _matrix(element: Element, children: Children) -> Term:
    return operators.matrix([child.operands if child.label == "M!R!" else [child] for child in _given(children)])


def _interval(element: Element, children: Children) -> Term:
    closure = element.get("closure", "closed").strip().lower()
    if closure not in _CLOSURES:
        raise FormulaError(
            f"closure={closure!r} of an interval is unknown. Choose from: {', '.join(_CLOSURES)}", kind="operands"
        )
    return operators.interval(*_CLOSURES[closure], _given(children))
