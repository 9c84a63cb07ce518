"""Compiled weights of alignments: equal to those of numpy in every bit, and searches with equal results."""

import random
from dataclasses import replace

import numpy as np
import pytest

from graphs.formulas.tree import FormulaTree, ParsedFormula
from mathamr.structure import kernel
from mathamr.structure.alignment import Query
from mathamr.structure.forest import Names
from mathamr.structure.index import StructureIndex
from mathamr.structure.scoring import VARIABLE
from tests.mathamr.structure.test_alignment import RULES, forest, grown

pytest.importorskip("numba")
LABELS = ["V!x", "V!y", "V!z", "N!1", "N!2"]


def chain(size: int) -> FormulaTree:
    """A tree with one child below each node."""
    labels = tuple(f"V!{'xy'[node % 2]}" for node in range(size))
    return FormulaTree("slt", labels, tuple(range(-1, size - 1)), ("", *["n"] * (size - 1)))


def star(labels: list[str]) -> FormulaTree:
    """A tree whose nodes are all below its root, by equal edges."""
    return FormulaTree("opt", ("U!plus", *labels), (-1, *[0] * len(labels)), ("", *["0"] * len(labels)))


def assert_equal(query: FormulaTree, trees: list[FormulaTree | None], weights: np.ndarray) -> None:
    names = Names()
    variable = names.symbol(VARIABLE)
    searched = forest(names, *trees)
    credits = np.array([RULES.credit(label) for label in query.labels])
    asked = Query(forest(Names(names), query), weights, credits)
    chosen = np.array([*range(len(trees) - 1, -1, -1), 0, 0])
    totals, equal = kernel.weigh(asked, searched, chosen, variable, RULES)
    expected, whole = kernel.weigh_reference(asked, searched, chosen, variable, RULES)
    np.testing.assert_array_equal(totals, expected)
    np.testing.assert_array_equal(equal, whole)


@pytest.mark.parametrize("seed", range(40))
def test_random_trees_weigh_the_same_in_every_bit(seed: int) -> None:
    generator = random.Random(seed)

    def tree(size: int) -> FormulaTree:
        own = grown(generator, "opt", generator.randint(1, size))
        edges = ("", *(generator.choice("001") for _ in own.parents[1:]))
        return own if seed % 2 else replace(own, edge_labels=edges)

    def relabelled(own: FormulaTree) -> FormulaTree:
        new = dict(zip(LABELS, generator.sample(LABELS[:3], 3) + generator.sample(LABELS[3:], 2), strict=True))
        return replace(own, labels=tuple(new.get(label, label) for label in own.labels))

    query = tree(14)
    trees = [None, *(relabelled(query) for _ in range(10)), *(tree(20) for _ in range(300)), None]
    weights = np.array([generator.choice([0.1, 0.2, 0.3, 0.7]) for _ in range(len(query))])
    assert_equal(query, trees, weights)


def test_trees_of_extreme_shapes_weigh_the_same() -> None:
    generator = random.Random(0)
    leaves = [[generator.choice(LABELS) for _ in range(size)] for size in (1, 40, 300)]
    distinct = [f"V!{number}" for number in range(200)]
    trees = [None, chain(1), chain(2), chain(700), star(distinct), star(distinct[::-1]), *map(star, leaves)]
    for query in filter(None, trees):
        assert_equal(query, trees, np.ones(len(query)))
        assert_equal(query, [None], np.ones(len(query)))
    tie = star(3 * ["V!x"]), star(["V!z", "V!y", "V!y"])  # sums of 0.1 + 0.2 and 0.3
    assert_equal(tie[0], [tie[1]], np.array([1.0, 0.1, 0.2, 0.3]))


@pytest.mark.parametrize("k", [1, 20, 300])
def test_compiled_searches_have_equal_results(monkeypatch: pytest.MonkeyPatch, k: int) -> None:
    generator = random.Random(k)

    def formula() -> ParsedFormula:
        slt, opt = grown(generator, "slt", generator.randint(1, 7)), grown(generator, "opt", generator.randint(1, 7))
        return ParsedFormula(slt if generator.random() < 0.9 else None, opt if generator.random() < 0.9 else None)

    index = StructureIndex.build(2 * [formula() for _ in range(200)], RULES)  # equal scores
    names = np.array([str(number) for number in range(400)])
    queries = [formula() for _ in range(10)]
    found = [(index.search(query, k), index.search(query, k, names=names)) for query in queries]
    assert not index._is_compiled  # the compiler would take longer
    monkeypatch.setattr("mathamr.structure.index.COMPILED_PAIRS", 0)
    assert [(index.search(query, k), index.search(query, k, names=names)) for query in queries] == found
    for module in ("kernel", "postings"):  # as without numba
        monkeypatch.setattr(f"mathamr.structure.{module}.compiled", lambda *_: None)
    assert [(index.search(query, k), index.search(query, k, names=names)) for query in queries] == found
