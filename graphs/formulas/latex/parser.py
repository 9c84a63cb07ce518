r"""A formula in LaTeX -> both of its trees, or the reason for a missing tree.

>>> parsed = parse_latex(r"\frac{1}{2}")
>>> parsed.slt.tangent_string(), parsed.opt.tangent_string()
('[O!divide,o[N!1],u[N!2]]', '[O!divide,0[N!1],1[N!2]]')
>>> parse_latex("").errors[0]
('slt', 'the formula is empty')
"""

from __future__ import annotations

from typing import Final

from graphs.errors import FormulaError
from graphs.formulas import layout, operators
from graphs.formulas.latex.commands import read
from graphs.formulas.latex.content import interpret
from graphs.formulas.latex.grammar import parse_list
from graphs.formulas.latex.layout import draw
from graphs.formulas.latex.nodes import Node
from graphs.formulas.latex.tokens import Macros
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind

MAX_CHARACTERS: Final = 20_000
"""Longer formulas are refused; the longest of the 26,000 in ARQMath-mini has 3,300."""


def parse_latex(latex: str, macros: Macros | None = None) -> ParsedFormula:
    """Return both trees of a formula; ``macros``, from ``read_macros``, add to the formula's own definitions.

    It never raises, for any string: a missing tree is ``None``, and ``errors`` has the reason. Formulas longer than
    :data:`MAX_CHARACTERS`, or nested deeper than ``reader.MAX_DEPTH`` groups, have no trees.
    """
    if len(latex) > MAX_CHARACTERS:
        return without_trees(f"the formula has {len(latex):,} characters, at most {MAX_CHARACTERS:,} are read")
    try:
        lists = read(latex, macros)
        for inner in lists:
            parse_list(inner)
    except FormulaError as error:
        return without_trees(str(error))
    except RecursionError:
        return without_trees(_TOO_DEEP)
    node = lists[-1].node
    if node is None or not latex.strip():
        return without_trees("the formula is empty")
    errors: list[tuple[TreeKind, str]] = []
    slt = _tree("slt", node, errors)
    opt = _tree("opt", node, errors)
    return ParsedFormula(slt, opt, tuple(errors))


_TOO_DEEP = "the formula is nested too deeply to make a tree of it"


def _tree(kind: TreeKind, node: Node, errors: list[tuple[TreeKind, str]]) -> FormulaTree | None:
    try:
        if kind == "opt":
            return operators.finish(interpret(node))
        symbol = draw(node)
        if symbol is not None:
            return layout.finish(symbol)
        errors.append((kind, "the formula shows no symbol"))
    except FormulaError as error:
        errors.append((kind, str(error)))
    except RecursionError:
        errors.append((kind, _TOO_DEEP))
    return None


def without_trees(reason: str) -> ParsedFormula:
    """Return a formula that has neither tree, for one reason."""
    return ParsedFormula(None, None, (("slt", reason), ("opt", reason)))
