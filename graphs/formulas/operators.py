"""Building of an operator tree (OPT): operators applied to operands, groups, matrices, intervals and errors.

``x^2 + y``:

>>> power = apply(Term("O!SUP"), [Term("V!x"), Term("N!2")])
>>> finish(apply(Term("U!plus"), [power, Term("V!y")])).tangent_string()
'[U!plus,0[O!SUP,0[V!x],1[N!2]],1[V!y]]'

The rules are those of Tangent-S in MathAMR's copy; the readers of Content MathML and of LaTeX both use them. Operands
are numbered, but below an unordered operator (``U!``) every edge is ``0``, since the order of a sum has no meaning.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from graphs.errors import FormulaError
from graphs.formulas.tree import FormulaTree, position_label

Bound = Literal["O", "C"]
MAX_OPERANDS = 500
"""Largest number of operands; more are split in halves below unordered operators, and refused below others."""


class Term:
    """Node of an operator tree: its label and its operands."""

    __slots__ = ("label", "operands")

    def __init__(self, label: str, operands: list[Term] | None = None) -> None:
        self.label = label
        self.operands = [] if operands is None else operands

    def __repr__(self) -> str:
        return f"Term({self.label!r}, {self.operands!r})" if self.operands else f"Term({self.label!r})"


def apply(operator: Term, operands: Sequence[Term]) -> Term:
    """Apply an operator to operands; the operator's term is used up.

    A variable becomes a function, and an operator with operands a compound operator ``+!``:

    >>> apply(Term("V!f"), [Term("V!x")])
    Term('F!f', [Term('V!x')])
    >>> apply(apply(Term("O!SUP"), [Term("F!sin"), Term("N!2")]), [Term("V!x")]).label
    '+!F!sin'

    Raises FormulaError (kind ``operands``) for a root or an integral with more or fewer operands than one.
    """
    label = operator.label
    if operator.operands:
        head = operator.operands[0].label if label in ("O!SUB", "O!SUP") else ""
        return _checked(Term(f"+!{head}", [operator, *operands]))
    if label == "O!root":
        return _root(operands)
    if label == "O!int":
        return Term(label, [_only(operands, "an integral"), Term("W!"), Term("W!")])
    if label == "E!":
        return error(operands)
    if label.startswith("V!"):
        label = f"F!{label[2:]}"
    return _checked(Term(label, list(operands)))


def _root(operands: Sequence[Term]) -> Term:
    """Build a root with a radicand and a degree, 2 if none is given by a term ``$!degree``."""
    degree = Term("N!2")
    radicands = []
    for operand in operands:
        if operand.label == "$!degree":
            degree = _only(operand.operands, "the degree of a root")
        else:
            radicands.append(operand)
    return Term("O!root", [_only(radicands, "a root"), degree])


def _only(operands: Sequence[Term], what: str) -> Term:
    if len(operands) != 1:
        raise FormulaError(f"{what} has {len(operands)} operands, one is needed", kind="operands")
    return operands[0]


def group(kind: Literal["V", "L", "S"], items: Sequence[Term]) -> Term:
    """Build a vector, list or set, with its length in the label: ``M!S-3`` for ``{1,2,3}``."""
    return _checked(Term(f"M!{kind}-{len(items)}", list(items)))


def matrix(rows: Sequence[Sequence[Term]]) -> Term:
    """Build a matrix, ``M!M-2x3``, of rows ``M!R!``; short rows are filled up with ``E!``."""
    columns = max(map(len, rows), default=0)
    filled = [_checked(Term("M!R!", [*row, *(Term("E!") for _ in range(columns - len(row)))])) for row in rows]
    return _checked(Term(f"M!M-{len(rows)}x{columns}", filled))


def interval(left: Bound, right: Bound, bounds: Sequence[Term]) -> Term:
    """Build an interval, open (``O``) or closed (``C``) at either end: ``O!interval(O-C)`` for ``(0,1]``."""
    return _checked(Term(f"O!interval({left}-{right})", list(bounds)))


def error(parts: Sequence[Term]) -> Term:
    """Build ``E!`` of parts that could not be read; adjacent unknown symbols are joined to one text.

    >>> error([Term("-!x"), Term("-!y"), Term("V!)")])
    Term('E!', [Term('T!xy'), Term('V!)')])
    """
    fused: list[Term] = []
    for part in parts:
        before = fused[-1] if fused else None
        if (
            before is not None
            and not before.operands
            and before.label.startswith(("-!", "T!"))
            and part.label.startswith("-!")
            and not part.operands
        ):
            fused[-1] = Term(f"T!{before.label[2:]}{part.label[2:]}")
        else:
            fused.append(part)
    return _checked(Term("E!", fused))


def _checked(term: Term) -> Term:
    """Halve the operands repeatedly, until no node has too many; refuse this for an ordered operator."""
    if len(term.operands) <= MAX_OPERANDS:
        return term
    if not term.label.startswith(("U!", "E!")):
        message = f"{term.label} has {len(term.operands):,} operands, at most {MAX_OPERANDS} are possible"
        raise FormulaError(message, kind="operands")
    middle = (len(term.operands) + 1) // 2
    halves = (term.operands[:middle], term.operands[middle:])
    return Term(term.label, [_checked(Term(term.label, half)) for half in halves])


def finish(term: Term) -> FormulaTree:
    """Return the finished tree below ``term``."""
    labels: list[str] = []
    parents: list[int] = []
    edges: list[str] = []
    stack: list[tuple[Term, int, str]] = [(term, -1, "")]
    while stack:
        term, parent, edge = stack.pop()
        index = len(labels)
        labels.append(term.label)
        parents.append(parent)
        edges.append(edge)
        operands = term.operands
        if not operands:
            continue
        if term.label[0] == "U":
            stack.extend([(operand, index, "0") for operand in reversed(operands)])
        else:
            position = len(operands)
            while position:
                position -= 1
                stack.append((operands[position], index, position_label(position)))
    return FormulaTree("opt", tuple(labels), tuple(parents), tuple(edges))
