"""MathAMR+ graph: the AMR of a post, with the operator tree and the symbol layout tree of every formula.

The sentence "Solve FORMULA_0." parses to ``(s / solve-01 :ARG1 (f / FORMULA_0))``. With the trees of ``x^2`` it becomes

    (s / solve-01
        :ARG1 (F0 / FORMULA_0
            :opt (F0o0 / O!SUP :opt-0 (F0o1 / V!x) :opt-1 (F0o2 / N!2))
            :slt (F0s0 / V!x :slt-a (F0s1 / N!2))))

>>> import penman
>>> from graphs.formulas.tree import FormulaTree, ParsedFormula
>>> from graphs.corpus.post import FormulaRef
>>> slt = FormulaTree("slt", ("V!x", "N!2"), (-1, 0), ("", "a"))
>>> opt = FormulaTree("opt", ("O!SUP", "V!x", "N!2"), (-1, 0, 0), ("", "0", "1"))
>>> amr = penman.decode("(s / solve-01 :ARG1 (f / FORMULA_0))")
>>> post = build(amr, [FormulaRef("17", "x^2")], [ParsedFormula(slt, opt)])
>>> print(post.penman)
(s / solve-01 :ARG1 (F0 / FORMULA_0 :opt (F0o0 / O!SUP :opt-0 (F0o1 / V!x) :opt-1 (F0o2 / N!2)) \
:slt (F0s0 / V!x :slt-a (F0s1 / N!2))))
>>> post.formula_map, post.attachments
({'FORMULA_0': '17'}, {'FORMULA_0': 'concept'})
>>> graph = decode(post.penman, post.formula_map)
>>> graph.labels[graph.root], graph.kinds.count(NodeKind.OPT), graph.kinds.count(NodeKind.SLT)
('solve-01', 3, 2)

:func:`build` makes such a graph and :func:`decode` reads it back into arrays. Parsers return placeholders in several
forms, or lose them (thesis, section 3.1; a neural parser loses about a fifth). Every formula gets exactly one node, and
``attachments`` states how it was attached:

=============  ========================================================================================
``concept``    the parser made it a concept, in whatever case, perhaps with a suffix (``FORMULA_0-th``)
``string``     it was a constant, such as ``:value "FORMULA_0"`` of a string-entity or ``:op1`` of a name:
               its host has ``:math`` to the formula node
``root``       the parser dropped it: the graph's root has ``:math`` to the formula node
=============  ========================================================================================
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import penman

from graphs.amr.document import sentences_of
from graphs.amr.penman_text import atom, quote
from graphs.amr.penman_text import decode as decode_penman
from graphs.amr.penman_text import encode as encode_penman
from graphs.amr.penman_text import label as label_of
from graphs.corpus.post import FormulaRef
from graphs.errors import GraphError
from graphs.formulas.tree import FormulaTree, ParsedFormula, position_of
from graphs.graph.membership import Edge, NodeKind, mark_trees

__all__ = ["DocumentGraph", "Edge", "MathAMRPlus", "NodeKind", "as_document", "build", "decode"]

Triple = tuple[str, str, str]

# Numbers have no leading zero: ``formula-01`` is a sense of the word.
_PLACEHOLDER = re.compile(r"(?<![A-Za-z0-9])formula[_-]?(0|[1-9]\d*)(?!\d)", re.IGNORECASE)


@dataclass(slots=True)
class DocumentGraph:
    """A MathAMR+ graph as arrays; node 0 is not special, ``root`` names the AMR root.

    Shapes: N nodes, E edges. ``labels``, ``kinds``, ``sentence`` and ``formula`` have length N.
    """

    labels: list[str]
    kinds: list[NodeKind]
    edges: list[Edge]
    root: int
    sentence: list[int]  # number of the sentence of an AMR or FORMULA node, -1 for the document root and tree nodes
    formula: list[int]  # i of FORMULA_i for a formula node and the nodes of its trees, else -1
    sentence_roots: list[int]  # node of each sentence's root, by sentence
    formula_nodes: list[int]  # node of each formula, by i of FORMULA_i
    formula_ids: list[str]  # the collection's id of each formula, by i


@dataclass(frozen=True, slots=True)
class MathAMRPlus:
    """Finished graph, as collections store it.

    ``penman`` is one line of Penman text; ``formula_map`` gives the collection's formula id of every placeholder;
    ``attachments`` how each placeholder is attached (table above).
    """

    penman: str
    formula_map: dict[str, str]
    attachments: dict[str, str]


def build(amr: penman.Graph, formulas: Sequence[FormulaRef], trees: Sequence[ParsedFormula]) -> MathAMRPlus:
    """Attach the trees of ``formulas[i]`` to the AMR at ``FORMULA_i`` (thesis, section 3.1).

    Args:
        amr: the AMR of the whole post, connected.
        formulas: the formulas of the post, by placeholder number.
        trees: their trees, in the same order; a tree that is ``None`` is left out, but its formula node stays.

    Raises:
        GraphError: when the result does not decode to the same triples, or is not connected.
    """
    if len(formulas) != len(trees):
        raise GraphError(f"{len(formulas)} formulas but trees of {len(trees)}: give one ParsedFormula for each formula")
    skeleton, attachments = _attach(_rename_clashes(amr), len(formulas))
    triples: list[Triple] = []
    for triple in skeleton.triples:
        triples.append(triple)
        if triple[1] == ":instance" and (match := _FORMULA_VARIABLE.fullmatch(triple[0])):
            parsed = trees[int(match[1])]
            for tree in (parsed.opt, parsed.slt):
                if tree is not None:
                    triples.extend(_tree_triples(triple[0], tree))
    text = encode_penman(penman.Graph(triples, top=skeleton.top))
    if set(decode_penman(text).triples) != set(triples):
        raise GraphError(f"graph does not round-trip through Penman: {text[:200]}")
    names = [f"FORMULA_{i}" for i in range(len(formulas))]
    return MathAMRPlus(
        penman=text,
        formula_map={name: formula.formula_id for name, formula in zip(names, formulas, strict=True)},
        attachments={name: attachments[f"F{i}"] for i, name in enumerate(names)},
    )


_FORMULA_VARIABLE = re.compile(r"F(\d+)")
_OUR_VARIABLE = re.compile(r"F\d+(?:[os]\d+)?")


def _rename_clashes(amr: penman.Graph) -> penman.Graph:
    """Rename the variables that look like ours, and quote the constants that would become references to our nodes."""
    variables = amr.variables()
    names = {v: v for v in variables if _OUR_VARIABLE.fullmatch(v)}
    for variable in names:
        fresh = f"{variable}_"
        while fresh in variables:
            fresh += "_"
        names[variable] = fresh
    for _, role, target in amr.triples:
        if role != ":instance" and target not in variables and target is not None and _OUR_VARIABLE.fullmatch(target):
            names[target] = quote(target)
    if not names:
        return amr
    triples = [(names.get(s, s), role, t if role == ":instance" else names.get(t, t)) for s, role, t in amr.triples]
    return penman.Graph(triples, top=names.get(amr.top, amr.top))


def _attach(amr: penman.Graph, num_formulas: int) -> tuple[penman.Graph, dict[str, str]]:
    """Make one node ``F{i}`` with concept ``FORMULA_i`` for every formula; return how each node is attached."""
    variables = amr.variables()
    mentions = [
        _mentioned(target or "", num_formulas) if role == ":instance" or target not in variables else []
        for _, role, target in amr.triples
    ]
    how: dict[str, str] = {}
    renamed: dict[str, str] = {}  # variable of a placeholder concept -> formula variable
    hosted: dict[str, list[str]] = {}  # variable -> formulas that its constants, or its mixed concept, mention
    for (source, role, _), mentioned in zip(amr.triples, mentions, strict=True):
        if role == ":instance" and len(mentioned) == 1 and source not in renamed:  # a second concept is a constant
            renamed[source] = mentioned[0]
            how[mentioned[0]] = "concept"
        elif mentioned:
            hosted.setdefault(source, []).extend(mentioned)
            for formula in mentioned:
                how.setdefault(formula, "string")

    triples: dict[Triple, None] = {}  # each once, in order

    def define(formula: str) -> None:
        triples[formula, ":instance", f"FORMULA_{formula[1:]}"] = None

    for (source, role, target), mentioned in zip(amr.triples, mentions, strict=True):
        if role != ":instance":
            source, target = renamed.get(source, source), renamed.get(target, target)
            # The host's :math edge stands for a constant; two mentions of one formula that were joined are no loop.
            if not mentioned and source != target:
                triples[source, role, target] = None
        elif source in renamed:
            define(renamed[source])
        else:  # Penman writes no empty concept
            triples[source, role, "formula" if mentioned else target or "thing"] = None
            for formula in hosted.get(source, ()):
                triples[source, ":math", formula] = None
                define(formula)
    loose = [formula for i in range(num_formulas) if (formula := f"F{i}") not in how]
    # A placeholder concept may have placeholder constants, too.
    below = [(variable, formula) for host, variable in renamed.items() for formula in hosted.get(host, ())]
    top = renamed.get(amr.top, amr.top)
    for variable, formula in below + [(top, formula) for formula in loose]:
        if variable != formula:
            define(formula)
            triples[variable, ":math", formula] = None
    return penman.Graph([*triples], top=top), how | dict.fromkeys(loose, "root")


def _mentioned(text: str, num_formulas: int) -> list[str]:
    """Return variables of this post's placeholders in a concept or constant, in any case: F0 of ``Formula_0-th``."""
    if "ormula" not in text and "ORMULA" not in text:
        return []
    numbers = (int(number) for number in _PLACEHOLDER.findall(text))
    return [f"F{i}" for i in dict.fromkeys(numbers) if i < num_formulas]


def _tree_triples(formula: str, tree: FormulaTree) -> list[Triple]:
    """Return the triples of one tree below the formula node, in pre-order."""
    prefix = f"{formula}{tree.kind[0]}"
    triples: list[Triple] = [(formula, f":{tree.kind}", f"{prefix}0")]
    for i, label in enumerate(tree.labels):
        if i:
            edge = tree.edge_labels[i]  # Tangent-S's letters of operands become numbers: :opt-12, :slt-n
            role = f":opt-{position_of(edge)}" if tree.kind == "opt" else f":slt-{edge}"
            triples.append((f"{prefix}{tree.parents[i]}", role, f"{prefix}{i}"))
        triples.append((f"{prefix}{i}", ":instance", atom(label)))
    return triples


def decode(text: str, formula_map: Mapping[str, str]) -> DocumentGraph:
    """Read a MathAMR+ graph from Penman text into arrays.

    Constants become separate nodes. This also reads graphs that other programs wrote in the same conventions, such as
    the thesis's published collection; the roles in their trees may have other names (:mod:`graphs.graph.membership`).

    Raises:
        AMRError: when the text is not Penman.
        GraphError: when a formula of ``formula_map`` has no node.
    """
    return as_document(decode_penman(text), formula_map)


def as_document(graph: penman.Graph, formula_map: Mapping[str, str]) -> DocumentGraph:
    """:func:`decode` of a graph; its edges are in the order of the graph's triples that are no ``:instance``."""
    number: dict[str, int] = {}
    labels: list[str] = []
    for source, role, target in graph.triples:
        if role == ":instance":
            number[source] = len(labels)
            labels.append(label_of(target) if target else "thing")
    edges: list[Edge] = []
    constants: list[tuple[int, int]] = []  # (host, node)
    for source, role, target in graph.triples:
        if role == ":instance":
            continue
        host, node = number[source], number.get(target)
        if node is None:
            node = len(labels)
            labels.append(label_of(target) if target else "thing")
            constants.append((host, node))
        edges.append((host, role, node))

    kinds = [NodeKind.AMR] * len(labels)
    formula = [-1] * len(labels)
    names = {name: i for i, name in enumerate(formula_map)}
    formula_nodes = [-1] * len(names)
    for node, label in enumerate(labels):
        i = names.get(label, -1)
        if i >= 0 and formula_nodes[i] < 0:
            kinds[node], formula[node], formula_nodes[i] = NodeKind.FORMULA, i, node
    for name, i in names.items():
        if formula_nodes[i] < 0:
            raise GraphError(f"{name} ({formula_map[name]}) of the formula map has no node; give one this concept")
    mark_trees(edges, kinds, formula, number[graph.top])

    by_variable, roots = sentences_of(graph)
    sentence = [-1] * len(labels)
    for variable, node in number.items():
        if kinds[node] in (NodeKind.AMR, NodeKind.FORMULA):
            sentence[node] = by_variable.get(variable, -1)
    for host, node in constants:
        sentence[node] = sentence[host]
    return DocumentGraph(
        labels=labels,
        kinds=kinds,
        edges=edges,
        root=number[graph.top],
        sentence=sentence,
        formula=formula,
        sentence_roots=[number[v] for v in roots],
        formula_nodes=formula_nodes,
        formula_ids=list(formula_map.values()),
    )
