r"""A parsed formula -> operator tree (OPT), by the rules of :mod:`graphs.formulas.operators`.

>>> from graphs.formulas.latex.parser import parse_latex
>>> parse_latex(r"2x<\frac{1}{y}").opt.tangent_string()
'[O!lt,0[U!times,0[N!2],1[V!x]],1[O!divide,0[N!1],1[V!y]]]'
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

import graphs.formulas.latex.nodes as nodes
from graphs.formulas import operators
from graphs.formulas.latex.nodes import Infix, MathList, Node, Script, Token
from graphs.formulas.latex.symbols import ABSENT, opt_label
from graphs.formulas.mathml import clean_plain
from graphs.formulas.operators import Term

_REVERSED = {
    "contains": "O!in",
    "not-contains": "O!notin",
    "superset-of": "O!subset",
    "superset-of-or-equals": "O!subset",
    "superset-of-and-not-equals": "O!prsubset",
}
"""Relations written the other way round in Content MathML."""
_INTERVALS = {
    "open-interval": ("O", "O"),
    "closed-interval": ("C", "C"),
    "open-closed-interval": ("O", "C"),
    "closed-open-interval": ("C", "O"),
}
_GROUPS = {"set": "S", "list": "L", "vector": "V"}


def interpret(node: Node) -> Term:
    """Return the operator tree of a part."""
    kind = type(node)
    if kind is Token:
        return Term(node.opt)  # type: ignore[attr-defined]
    return _INTERPRET[kind](node)


def _infix(node: Infix) -> Term:
    # The left operand of a chain of sums may be deep: go down to it first.
    spine = [node]
    while type(spine[-1].args[0]) is Infix:
        spine.append(spine[-1].args[0])
    left = interpret(spine[-1].args[0])
    for part in reversed(spine):
        left = _applied(part.op, [left, *map(interpret, part.args[1:])])
    return left


def _applied(op: Node, operands: list[Term]) -> Term:
    label = _REVERSED.get(op.name)
    if label is not None and type(op) is Token:
        return operators.apply(Term(label), operands[::-1])
    return operators.apply(interpret(op), operands)


def _prefix(node: nodes.Prefix) -> Term:
    return operators.apply(interpret(node.op), [interpret(arg) for arg in node.args if arg is not ABSENT])


def _named(node: nodes.Named) -> Term:
    name = node.name
    args = [*map(interpret, node.args)]
    ends = _INTERVALS.get(name)
    if ends is not None:
        return operators.interval(ends[0], ends[1], args)  # type: ignore[arg-type]
    group = _GROUPS.get(name)
    if group is not None:
        return operators.group(group, args)  # type: ignore[arg-type]
    return operators.apply(Term(_label_of(name)), args)


@lru_cache(1000)
def _label_of(name: str) -> str:
    return {"formulae": "O!form-seq", "cases": "O!cases"}.get(name) or opt_label(clean_plain(name))


def _unparsed(node: nodes.Row | nodes.Unparsed) -> Term:
    parts = [Term("O!fragments")]
    for part in node.parts:
        while type(part) is MathList and part.node is not None:
            part = part.node
        if type(part) is Token and part.role == "UNKNOWN":
            parts.append(Term(f"-!{part.opt[2:].lower()}"))
        else:
            parts.append(interpret(part))
    return operators.error(parts)


def _relations(node: nodes.Relations) -> Term:
    parts = node.parts
    relations = [operators.apply(interpret(parts[1]), [interpret(parts[0]), interpret(parts[2])])]
    # The left-hand side of each further relation is shared with the one before, and left out.
    relations += [operators.apply(interpret(parts[i]), [interpret(parts[i + 1])]) for i in range(3, len(parts), 2)]
    return operators.apply(Term("U!and"), relations)


def _fraction(node: nodes.Fraction) -> Term:
    label = opt_label(node.name) if node.name else "V!"
    return operators.apply(Term(label), [interpret(node.numerator), interpret(node.denominator)])


def _root(node: nodes.Root) -> Term:
    degree = Term("N!2") if node.index is None else interpret(node.index)
    return Term("O!root", [interpret(node.radicand), degree])


def _script(node: Script) -> Term:
    spine = [node]
    while type(spine[-1].base) is Script:
        spine.append(spine[-1].base)
    result = interpret(spine[-1].base)
    for part in reversed(spine):
        result = Term("O!SUP" if part.sup else "O!SUB", [result, interpret(part.script)])
    return result


def _enclosure(node: nodes.Enclosure) -> Term:
    base = interpret(node.base)
    return base if node.content is None else operators.apply(Term(node.content.opt), [base])


def _cell(node: Node) -> Term:
    return Term("E!", [Term("W!")]) if node is ABSENT else interpret(node)


_INTERPRET: dict[type, Callable[..., Term]] = {
    nodes.Accent: lambda node: operators.apply(interpret(node.mark), [interpret(node.base)]),
    nodes.Dual: lambda node: interpret(node.content),
    nodes.Enclosure: _enclosure,
    nodes.Fraction: _fraction,
    Infix: _infix,
    MathList: lambda node: interpret(node.node) if node.node is not None else Term("W!"),
    nodes.Named: _named,
    nodes.Postfix: lambda node: operators.apply(interpret(node.op), [interpret(node.arg)]),
    nodes.Prefix: _prefix,
    nodes.Relations: _relations,
    nodes.Root: _root,
    nodes.Row: _unparsed,
    Script: _script,
    nodes.ScriptMark: lambda node: operators.apply(interpret(node.script), []),
    nodes.Table: lambda node: operators.matrix([[_cell(cell) for cell in row] for row in node.rows]),
    nodes.Text: lambda node: Term("W!"),
    nodes.Unparsed: _unparsed,
    nodes.Wrapped: lambda node: interpret(node.inner),
}
