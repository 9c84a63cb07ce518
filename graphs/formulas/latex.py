r"""LaTeX -> symbol layout tree and operator tree, in process and without an external program.

>>> parsed = parse_latex(r"x^2+y")
>>> parsed.slt.tangent_string()
'[V!x[+[V!y]],a[N!2]]'
>>> parsed.opt.tangent_string()
'[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]'
>>> parse_latex(r"a)").opt.tangent_string()  # what cannot be read keeps its symbols
'[E!,0[O!fragments],1[-!a],2[V!)]]'
"""

from __future__ import annotations

from typing import Final

from graphs.errors import FormulaError
from graphs.formulas import layout, operators
from graphs.formulas.latex_commands import read
from graphs.formulas.latex_content import interpret
from graphs.formulas.latex_grammar import parse_list
from graphs.formulas.latex_layout import draw
from graphs.formulas.latex_tokens import Macros, read_macros
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind

MAX_CHARACTERS: Final = 20_000
"""Longer formulas are refused."""

__all__ = ["MAX_CHARACTERS", "Macros", "parse_latex", "read_macros"]


def parse_latex(latex: str, macros: Macros | None = None) -> ParsedFormula:
    """Both trees of a formula. Never raises on any string: a tree that cannot be made is ``None``, and ``errors`` says why."""
    if len(latex) > MAX_CHARACTERS:
        return _refused(f"a formula of {len(latex):,} characters; at most {MAX_CHARACTERS:,} are read")
    try:
        lists = read(latex, macros)
        for inner in lists:
            parse_list(inner)
    except FormulaError as error:
        return _refused(str(error))
    except RecursionError:
        return _refused("the formula is nested too deeply")
    errors: list[tuple[TreeKind, str]] = []
    slt: FormulaTree | None = None
    opt: FormulaTree | None = None
    node = lists[-1].node
    assert node is not None
    try:
        symbol = draw(node)
        if symbol is None:
            errors.append(("slt", "the formula shows no symbol"))
        else:
            slt = layout.finish(symbol)
    except RecursionError:
        errors.append(("slt", "the formula is nested too deeply"))
    try:
        opt = operators.finish(interpret(node))
    except FormulaError as error:
        errors.append(("opt", str(error)))
    except RecursionError:
        errors.append(("opt", "the formula is nested too deeply"))
    return ParsedFormula(slt, opt, tuple(errors))


def _refused(reason: str) -> ParsedFormula:
    return ParsedFormula(None, None, (("slt", reason), ("opt", reason)))
