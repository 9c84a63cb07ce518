r"""Match of a query with a found formula, ready to be shown: roles of the symbols of both, and the renaming.

>>> from graphs.formulas.latex import parse_latex
>>> from mathamr.structure.drawing import as_text
>>> from mathamr.structure.scoring import Scoring
>>> rules = Scoring.by_default()
>>> index = StructureIndex.build([parse_latex(r"y^3+\sin y")], rules)
>>> match = match_of(index, parse_latex("x^2+1"), 0)
>>> as_text(match.query), as_text(match.formula)
('x^2+⟨1⟩', 'y^3+⟨ sin y⟩')
>>> match.matched, match.symbols, match.renaming
(3, 4, (('x', 'y'),))
>>> str(match)
'3 of 4 symbols, x is y, 2 is changed to 3'
>>> [drawn.role for drawn in match.query.children[0].children]
['renamed', 'changed']
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from graphs.formulas.tree import FormulaTree, ParsedFormula
from mathamr.structure.drawing import Drawn, Role, draw, plain
from mathamr.structure.index import Alignment, StructureIndex

MAX_NODES = 1000  # of a layout tree that is drawn


@dataclass(frozen=True)
class Match:
    """Aligned parts of the layout trees of a query and a formula.

    Attributes:
        matched: number of symbols of the query that are aligned.
        symbols: number of symbols of the query.
        renaming: variables of the query, and their names in the formula where these differ.
        changed: other symbols of the query that differ from their partners in the formula, with these partners.
    """

    query: Drawn
    formula: Drawn
    matched: int
    symbols: int
    renaming: tuple[tuple[str, str], ...]
    changed: tuple[tuple[str, str], ...] = ()

    def __str__(self) -> str:
        renamed = "".join(f", {own} is {other}" for own, other in self.renaming)
        changed = "".join(f", {own} is changed to {other}" for own, other in self.changed)
        return f"{self.matched} of {self.symbols} symbols{renamed}{changed}"


def match_of(index: StructureIndex, formula: ParsedFormula, number: int) -> Match | None:
    """Return the match of a query with an indexed formula; None where a layout tree is missing or too large."""
    query, tree = formula.slt, index.tree(number, "slt")
    if query is None or tree is None or max(len(query), len(tree)) > MAX_NODES:
        return None
    alignment = index.alignments(formula, number)["slt"]
    roles = roles_of(alignment, query, tree)
    others: dict[int, Role] = {alignment.nodes[node]: role for node, role in roles.items()}
    pairs = {plain(own[2:]): plain(other[2:]) for own, other in alignment.renaming.items() if own != other}
    drawings = draw(query, roles), draw(tree, others)
    changed = [(query.labels[own], tree.labels[alignment.nodes[own]]) for own in roles if roles[own] == "changed"]
    named = dict.fromkeys((plain(own[2:]), plain(other[2:])) for own, other in changed if own != other)
    return Match(*drawings, len(roles), len(query), tuple(sorted(pairs.items())), tuple(named))


def roles_of(alignment: Alignment, query: FormulaTree, tree: FormulaTree) -> Mapping[int, Role]:
    """Return the role of each aligned node of the query.

    It is ``equal``, or ``renamed`` under the renaming, or ``changed``: another number, the name of a function, or a
    variable against the renaming.
    """
    roles: dict[int, Role] = {}
    for node, other in alignment.nodes.items():
        same = query.labels[node] == tree.labels[other]
        roles[node] = "changed" if node not in alignment.kept else "equal" if same else "renamed"
    return roles
