r"""LaTeX -> symbol layout tree and operator tree, in process and without an external program.

>>> parsed = parse_latex(r"x^2+y")
>>> parsed.slt.tangent_string()
'[V!x[+[V!y]],a[N!2]]'
>>> parsed.opt.tangent_string()
'[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]'
>>> parse_latex(r"a)").opt.tangent_string()  # what cannot be read keeps its symbols
'[E!,0[O!fragments],1[-!a],2[V!)]]'
>>> macros = read_macros(r"\newcommand{\norm}[1]{\|#1\|}")  # of the post that the formula stands in
>>> parse_latex(r"\norm{v}", macros).opt.tangent_string()
'[O!norm,0[V!v]]'

The way goes from text to tokens (:mod:`~graphs.formulas.latex_tokens`), to lists of symbols with their parts of speech
(:mod:`~graphs.formulas.latex_reader` and the modules of commands), to a parse of each list
(:mod:`~graphs.formulas.latex_grammar`), and from the parse to the layout (:mod:`~graphs.formulas.latex_layout`) and to
the content (:mod:`~graphs.formulas.latex_content`). It follows LaTeXML, from whose output the indexes were made, where
LaTeXML has a reading; what LaTeXML leaves unread is read all the same where its meaning is plain
(:mod:`~graphs.formulas.latex_repair`), and is otherwise an ``E!`` tree that keeps its symbols. Scripts of functions
such as ``max`` stand as in an inline formula, beside the function; after ``\displaystyle`` they are below and above.

No library carries this. latex2mathml lays a formula out, but it has no content, and it puts all symbols of a formula
in one row: without a grammar there are no fences, no elements within them, no differentials. Of 1,094 official
formulas of ARQMath, 58 % get the official layout tree through it, 99 % through this module, at three times its speed.
pylatexenc reads TeX well, with macros and environments, but takes five times as long for that as all of this takes.
"""

from __future__ import annotations

from typing import Final

from graphs.errors import FormulaError
from graphs.formulas import layout, operators
from graphs.formulas.latex_commands import read
from graphs.formulas.latex_content import interpret
from graphs.formulas.latex_grammar import parse_list
from graphs.formulas.latex_layout import draw
from graphs.formulas.latex_nodes import Node
from graphs.formulas.latex_tokens import Macro, Macros, read_macros
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind

MAX_CHARACTERS: Final = 20_000
"""Longer formulas are refused; the longest of the 26,000 in ARQMath-mini has 3,300."""

__all__ = ["MAX_CHARACTERS", "Macro", "Macros", "parse_latex", "read_macros"]


def parse_latex(latex: str, macros: Macros | None = None) -> ParsedFormula:
    """Both trees of a formula; ``macros`` are those that the formula may use beside its own definitions.

    Never raises, on any string: a tree that cannot be made is ``None``, and ``errors`` says why. So is it with formulas
    longer than :data:`MAX_CHARACTERS`, or nested deeper than ``latex_reader.MAX_DEPTH`` groups.
    """
    if len(latex) > MAX_CHARACTERS:
        return _refused(f"a formula of {len(latex):,} characters; at most {MAX_CHARACTERS:,} are read")
    try:
        lists = read(latex, macros)
        for inner in lists:
            parse_list(inner)
    except FormulaError as error:
        return _refused(str(error))
    except RecursionError:
        return _refused(_TOO_DEEP)
    node = lists[-1].node
    if node is None or not latex.strip():
        return _refused("the formula is empty")
    errors: list[tuple[TreeKind, str]] = []
    slt = _tree("slt", node, errors)
    opt = _tree("opt", node, errors)
    return ParsedFormula(slt, opt, tuple(errors))


_TOO_DEEP = "the formula is nested too deeply; no tree is made of that"


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


def _refused(reason: str) -> ParsedFormula:
    return ParsedFormula(None, None, (("slt", reason), ("opt", reason)))
