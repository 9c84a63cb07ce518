"""Alignment of many trees at once, against the plain alignment of two."""

import random

import numpy as np
import pytest

from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import FormulaTree, TreeKind
from mathamr.structure.alignment import Query, align, aligned_weights
from mathamr.structure.forest import Forest, ForestBuilder, Names
from mathamr.structure.reference import align_plainly
from mathamr.structure.scoring import VARIABLE, Scoring

RULES = Scoring(equal=0.9, renamed=0.8, inconsistent=0.3, number=0.4, size=0.1, layout=0.7, pairs=0.5, k1=0.5, b=0.5)


def forest(names: Names, *trees: FormulaTree | None) -> Forest:
    builder = ForestBuilder(names)
    for tree in trees:
        builder.add(tree)
    return builder.finish()


def opt(latex: str) -> FormulaTree:
    tree = parse_latex(latex).opt
    assert tree is not None
    return tree


def aligned(query: FormulaTree, *trees: FormulaTree | None, weights: np.ndarray | None = None) -> list:
    """Nodes and weight for each tree, by the fast path."""
    names = Names()
    variable = names.symbol(VARIABLE)
    searched = forest(names, *trees)
    weights = np.ones(len(query)) if weights is None else weights
    credits = np.array([RULES.credit(label) for label in query.labels])
    asked = Query(forest(Names(names), query), weights, credits)
    matches = align(asked, searched)
    totals, _, _ = aligned_weights(asked, searched, matches, variable, RULES)
    found = []
    for place, start in enumerate(searched.bounds[:-1]):
        nodes = {node: int(match - start) for node, match in enumerate(matches[:, place]) if match >= 0}
        found.append((nodes, float(totals[place])))
    return found


def grown(random_: random.Random, kind: TreeKind, size: int) -> FormulaTree:
    """Random tree with few symbols, so that much of it can be aligned; below ``U!`` all edges are equal."""
    labels = [random_.choice(["U!plus", "U!times", "O!minus"])]
    parents, edges, children = [-1], [""], [0]
    while len(labels) < size:
        parent = random_.choice([i for i, label in enumerate(labels) if label[:2] in ("U!", "O!")])
        labels.append(random_.choice(["U!plus", "U!times", "O!minus", "V!x", "V!y", "V!z", "N!1", "N!2"]))
        parents.append(parent)
        edges.append("0" if labels[parent][0] == "U" else str(children[parent]))
        children.append(0)
        children[parent] += 1
    return preorder(FormulaTree(kind, tuple(labels), tuple(parents), tuple(edges)))


def preorder(tree: FormulaTree) -> FormulaTree:
    """The same tree, numbered in pre-order as readers of formulas number trees."""
    order, stack = [], [0]
    while stack:
        node = stack.pop()
        order.append(node)
        stack.extend(reversed([child for child in range(len(tree)) if tree.parents[child] == node]))
    place = {node: i for i, node in enumerate(order)}
    parents = tuple(place.get(tree.parents[node], -1) for node in order)
    return FormulaTree(
        tree.kind, tuple(tree.labels[n] for n in order), parents, tuple(tree.edge_labels[n] for n in order)
    )


@pytest.mark.parametrize("seed", range(20))
def test_alignment_of_random_trees_is_the_plain_one(seed: int) -> None:
    generator = random.Random(seed)
    query = grown(generator, "opt", generator.randint(1, 9))
    trees = [grown(generator, "opt", generator.randint(1, 12)) for _ in range(15)]
    weights = np.array([generator.choice([0.5, 1.0, 2.0, 0.7]) for _ in range(len(query))])
    for tree, (nodes, weight) in zip(trees, aligned(query, *trees, weights=weights), strict=True):
        expected, plain = align_plainly(query, tree, weights.tolist(), RULES)
        assert nodes == expected
        assert weight == pytest.approx(plain)


def test_a_formula_is_aligned_whole_with_itself_and_with_a_larger_one() -> None:
    query = opt("x^2+1")
    (same, whole), (_, inside) = aligned(query, query, opt(r"\sqrt{x^2+1}=y"))
    assert same == {node: node for node in range(len(query))}
    assert whole == inside == len(query)


def test_operands_are_aligned_in_any_order_where_the_operator_commutes() -> None:
    ((_, sums), (_, differences)) = aligned(opt("x+y^2"), opt("y^2+x"), opt("y^2-x"))
    assert sums == len(opt("x+y^2"))
    assert differences < sums


def test_a_consistent_renaming_counts_more_than_a_broken_one() -> None:
    ((_, equal), (_, kept), (_, broken)) = aligned(opt("x+x^2"), opt("y+y^2"), opt("y+y^2+1"), opt("y+z^2"))
    assert equal == pytest.approx(len(opt("x+x^2")) - 2 * (1 - RULES.equal))
    assert kept == pytest.approx(len(opt("x+x^2")) - 2 * (1 - RULES.renamed))
    assert broken < kept


def test_a_formula_without_a_tree_is_not_aligned() -> None:
    assert aligned(opt("x"), None, opt("y"), None) == [({}, 0.0), ({0: 0}, RULES.equal), ({}, 0.0)]


def test_a_query_of_unknown_symbols_is_not_aligned() -> None:
    assert aligned(opt(r"\infty"), opt("1+2")) == [({}, 0.0)]
