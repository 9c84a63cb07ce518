r"""A parsed formula -> symbol layout tree (SLT), by the rules of :mod:`graphs.formulas.layout`.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"2x<\frac{1}{y}").slt.tangent_string()
'[N!2[V!x[<[O!divide,o[N!1],u[V!y]]]]]'
"""

from __future__ import annotations

from collections.abc import Callable

import graphs.formulas.latex.nodes as nodes
from graphs.formulas import layout
from graphs.formulas.latex.nodes import Dual, Infix, MathList, Node, Script, Token
from graphs.formulas.latex.symbols import ABSENT
from graphs.formulas.layout import BLANK, Symbol
from graphs.formulas.mathml import clean_plain

Pair = list["Symbol | None"]


def draw(node: Node) -> Symbol | None:
    """Return the baseline of a part; ``None`` for a part that shows no symbol."""
    kind = type(node)
    if kind is Token:
        return Symbol(node.slt)  # type: ignore[attr-defined]
    return _DRAW[kind](node)


def _infix(node: Infix) -> Symbol | None:
    op = node.op
    if len(node.args) == 1:
        return layout.row([draw(op), draw(node.args[0])])
    # Sums of sums are one row; the leftmost of them may lie deep.
    spine = [node]
    while op.role == "ADDOP" and type(spine[-1].args[0]) is Infix and spine[-1].args[0].op.role == "ADDOP":
        spine.append(spine[-1].args[0])
    innermost = spine[-1]
    parts = [draw(innermost.op)] if len(innermost.args) == 1 else []
    parts.append(draw(innermost.args[0]))
    for part in reversed(spine):
        for arg in part.args[1:]:
            parts += [draw(part.op), draw(arg)]
    return layout.row(parts)


def _row(node: nodes.Row | nodes.Relations | nodes.Unparsed) -> Symbol | None:
    return layout.row([*map(draw, node.parts)])


def _root(node: nodes.Root) -> Symbol:
    index = None if node.index is None else draw(node.index)
    return layout.root(draw(node.radicand), index)


def _script(node: Script) -> Symbol:
    """Draw a base with all its scripts: pairs of one level before it, over and under it, after it."""
    pairs: dict[str, list[Pair]] = {"pre": [], "mid": [], "post": []}  # from the outermost inwards
    levels: dict[str, int] = {}
    at: Node = node
    while True:
        while isinstance(at, MathList | Dual):
            inner = at.node if isinstance(at, MathList) else at.layout
            if not isinstance(inner, Script | MathList | Dual):
                break
            at = inner
        if type(at) is not Script or (at.place == "post" and pairs["mid"]):
            break
        of_place, slot = pairs[at.place], 1 if at.sup else 0
        if levels.get(at.place) != at.level or of_place[-1][slot] is not None:
            of_place.append([None, None])
        of_place[-1][slot] = draw(at.script)
        levels[at.place] = at.level
        at = at.base
    base = draw(at)
    for under, over in reversed(pairs["mid"]):
        base = layout.under_over(base, under, over)
    before, after = pairs["pre"], pairs["post"][::-1]
    if before or len(after) > 1:
        return layout.multiscripts(base, [(sub, sup) for sub, sup in after], [(sub, sup) for sub, sup in before])
    if after:
        sub, sup = after[0]
        return layout.scripts(base, sub, sup)
    return base if base is not None else Symbol(BLANK)


def _script_mark(node: nodes.ScriptMark) -> Symbol:
    script = draw(node.script)
    return layout.scripts(None, None, script) if node.sup else layout.scripts(None, script, None)


def _accent(node: nodes.Accent) -> Symbol:
    base, mark = draw(node.base), draw(node.mark)
    if node.over:
        return layout.under_over(base, None, mark)
    return layout.under_over(base, mark, None)


def _table(node: nodes.Table) -> Symbol:
    return layout.table([[None if cell is ABSENT else draw(cell) for cell in row] for row in node.rows])


def _text(node: nodes.Text) -> Symbol | None:
    parts: list[Symbol | None] = []
    for part in node.parts:
        if isinstance(part, str):
            text = clean_plain(part)
            parts.append(Symbol(f"T!{text}" if text else BLANK))
        else:
            parts.append(draw(part))
    return layout.row(parts)


_DRAW: dict[type, Callable[..., Symbol | None]] = {
    nodes.Accent: _accent,
    Dual: lambda node: draw(node.layout),
    nodes.Enclosure: lambda node: layout.enclosed(node.notation, draw(node.base)),
    nodes.Fraction: lambda node: layout.fraction(draw(node.numerator), draw(node.denominator)),
    Infix: _infix,
    MathList: lambda node: draw(node.node) if node.node is not None else None,
    nodes.Named: lambda node: layout.row([*map(draw, node.args)]),
    nodes.Postfix: lambda node: layout.row([draw(node.arg), draw(node.op)]),
    nodes.Prefix: lambda node: layout.row([draw(node.op), *map(draw, node.args)]),
    nodes.Relations: _row,
    nodes.Root: _root,
    nodes.Row: _row,
    Script: _script,
    nodes.ScriptMark: _script_mark,
    nodes.Table: _table,
    nodes.Text: _text,
    nodes.Unparsed: _row,
    nodes.Wrapped: lambda node: draw(node.inner),
}
