r"""Commands of LaTeX: definitions, commands without output, and the registration of all others.

Importing this module registers the commands of its neighbours with the reader.
"""

from __future__ import annotations

import graphs.formulas.latex.delimiters as delimiters
import graphs.formulas.latex.structures as structures
import graphs.formulas.latex.tables as tables
import graphs.formulas.latex.text as text
from graphs.formulas.latex.nodes import MathList, Node
from graphs.formulas.latex.reader import Reader, handles
from graphs.formulas.latex.spaces import given_space
from graphs.formulas.latex.symbols import SYMBOLS, symbol
from graphs.formulas.latex.tokens import DEFINING, Macros, bracketed, define, group

_MODULES = (delimiters, structures, tables, text)  # imported so that their commands are known


def read(latex: str, macros: Macros | None = None) -> list[MathList]:
    r"""Read a formula into its lists, each after those within it; the last is the whole formula.

    >>> [item.role for item in read(r"2\frac{a}{b}x_1")[-1].items]
    ['NUMBER', 'ATOM', 'UNKNOWN', 'POSTSUB']

    Raises FormulaError for a formula that is too long or too deep.
    """
    reader = Reader(latex, macros)
    reader.formula()
    return reader.lists


@handles(*DEFINING, r"\gdef", r"\edef")
def _define(reader: Reader, token: str, out: list[Node]) -> None:
    define(r"\def" if token in (r"\gdef", r"\edef") else token, reader.stack, reader.macros)


@handles(
    r"\color", r"\label", r"\tag", r"\require", r"\vspace", r"\ref", r"\eqref", r"\cline", r"\class", r"\cssId",
    r"\style", r"\textcolor", r"\href", r"\rule", r"\raise", r"\lower", r"\leftroot", r"\uproot", r"\url",
    r"\pagecolor", r"\raisebox", r"\cite", r"\numberwithin", r"\mathcolor",
)  # fmt: skip
def _leaves_nothing(reader: Reader, token: str, out: list[Node]) -> None:
    reader.star()
    if token in (r"\raise", r"\lower"):
        given_space(reader, token)
        return
    if token in (r"\textcolor", r"\color", r"\rule", r"\raisebox"):
        bracketed(reader.stack)
    group(reader.stack)
    if token == r"\rule":
        group(reader.stack)


@handles("&", "$", r"\(", r"\)", "}")
def _stray(reader: Reader, token: str, out: list[Node]) -> None:
    """Skip an alignment mark outside of a table, a dollar sign, or a closing brace without an opening one."""


@handles(r"\end")
def _stray_end(reader: Reader, token: str, out: list[Node]) -> None:
    reader.name_argument()


@handles(r"\qvar")
def _query_variable(reader: Reader, token: str, out: list[Node]) -> Node:
    return symbol("UNKNOWN", "?")


@handles("...")
def _three_dots(reader: Reader, token: str, out: list[Node]) -> Node:
    return SYMBOLS[r"\ldots"]


@handles(r"\unicode", r"\char", r"\unichar")
def _unicode(reader: Reader, token: str, out: list[Node]) -> Node | None:
    given = (group(reader.stack) or [""])[0:] if token == r"\unicode" else [reader.stack.pop() if reader.stack else ""]
    text = "".join(given).strip()
    try:
        return symbol("UNKNOWN", chr(int(text[1:], 16) if text[:1] in ("x", '"') else int(text)))
    except (ValueError, OverflowError):
        return None
