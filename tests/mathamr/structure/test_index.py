"""Structure search: the search with bounds against scores of all formulas, and what is found."""

import math
import random
from dataclasses import replace

import numpy as np
import pytest

from graphs.errors import ConfigError, RetrievalError
from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind
from mathamr.structure import index as index_module
from mathamr.structure import kernel
from mathamr.structure.alignment import Integers, Query, align
from mathamr.structure.forest import Forest
from mathamr.structure.index import StructureIndex
from mathamr.structure.scoring import Scoring
from tests.mathamr.structure.test_alignment import RULES, grown

FORMULAS = (
    r"f(f(x))=\sin x",
    r"\sqrt{2}",
    r"\sum_{n=1}^{\infty} n x^n",
    r"\sum_{k=1}^{\infty} k a^k = \frac{a}{(1-a)^2}",
    r"x^2+y^2=z^2",
    r"a^2+b^2=c^2",
    r"a^2+b^2=d^3",
    "n",
)


def index_of(*latex: str, rules: Scoring = RULES) -> StructureIndex:
    return StructureIndex.build([parse_latex(one) for one in latex], rules)


def test_renamed_formulas_are_found() -> None:
    index = index_of(*FORMULAS)
    assert [number for number, _ in index.search(parse_latex(r"\sum_{j=1}^{\infty} j t^j"), 2)] == [2, 3]
    assert {number for number, _ in index.search(parse_latex("p^2+q^2=r^2"), 2)} == {4, 5}


def test_a_formula_has_the_highest_score_for_itself() -> None:
    index = index_of(*FORMULAS)
    for number, latex in enumerate(FORMULAS):
        assert index.search(parse_latex(latex), 1)[0][0] == number


@pytest.mark.parametrize("k", [1, 7, 400])
@pytest.mark.parametrize("seed", range(4))
def test_the_search_finds_what_scores_of_all_formulas_find(seed: int, k: int) -> None:
    generator = random.Random(seed)

    def formula() -> ParsedFormula:
        slt, opt = grown(generator, "slt", generator.randint(1, 9)), grown(generator, "opt", generator.randint(1, 9))
        return ParsedFormula(slt if generator.random() < 0.9 else None, opt if generator.random() < 0.9 else None)

    index = StructureIndex.build([formula() for _ in range(600)], RULES)
    for _ in range(4):
        query = formula()
        scores = index.scores(query)
        best = [int(number) for number in np.lexsort((np.arange(600), -scores)) if scores[number] > 0][:k]
        assert [number for number, _ in index.search(query, k)] == best
        trees, able = index._read(query), np.flatnonzero(scores > 0)
        bounds = index._bounds(trees, index._pairs(trees), able).sum(axis=0)
        assert (bounds * (1 + index_module._ROOM) >= scores[able]).all()


def test_an_equal_formula_in_other_letters_precedes_another_one_in_the_same_letters() -> None:
    common = [f"a_{{{n}}}=b^{{{m}}}" for n in (1, 2) for m in range(20)]  # numbers weigh little
    index = index_of("h(x)=1", "g(z)=0", *common)
    assert [number for number, _ in index.search(parse_latex("h(x)=0"), 2)] == [1, 0]


@pytest.mark.parametrize(("layout", "kind"), [(1.0, "slt"), (0.0, "opt")])
def test_a_larger_formula_has_the_share_that_the_query_has_of_its_weight(layout: float, kind: TreeKind) -> None:
    latex = ("x+1", "x+1=x", "y", "2y")
    trees = [getattr(parse_latex(one), kind) for one in latex]
    index = index_of(*latex, rules=replace(RULES, layout=layout, pairs=0.0, size=1.0))

    def weight(tree: FormulaTree) -> float:
        frequencies = [sum(label in other.labels for other in trees) for label in tree.labels]
        return sum(math.log(1 + (len(trees) - n + 0.5) / (n + 0.5)) for n in frequencies)

    scores = index.scores(parse_latex("x+1"))
    assert scores[:2] == pytest.approx([1.0, weight(trees[0]) / weight(trees[1])])


@pytest.mark.parametrize("k", [1, 3, 5, 9])
def test_equal_scores_go_by_id_also_where_results_end(k: int) -> None:
    names = np.array(["7", "10", "9", "8", "95", "1", "20"])
    index = index_of("a+b", "c+d", "x^2", "f+g", r"\sqrt2", "p+q", "u+v")
    found = [(str(names[number]), score) for number, score in index.search(parse_latex("s+t"), k, names=names)]
    assert [name for name, _ in found] == ["8", "7", "20", "10", "1"][:k]
    assert len({score for _, score in found}) == 1


def test_many_and_large_formulas_are_aligned_part_by_part(monkeypatch: pytest.MonkeyPatch) -> None:
    together = index_of(*FORMULAS)
    query = parse_latex("p^2+q^2=r^2")
    expected = together.search(query, 8), together.scores(query).tolist()
    sizes: list[int] = []

    def counted(asked: Query, trees: Forest) -> Integers:
        sizes.append(len(trees))
        return align(asked, trees)

    monkeypatch.setattr(kernel, "align", counted)
    monkeypatch.setattr(index_module, "LARGEST_BATCH", 3)
    assert (together.search(query, 8), together.scores(query).tolist()) == expected
    assert max(sizes) == 3
    sizes.clear()
    monkeypatch.setattr(index_module, "MOST_PAIRS", 1)
    assert together.search(query, 8) == expected[0]
    assert set(sizes) == {1}


def test_an_alignment_names_nodes_and_renaming() -> None:
    index = index_of(*FORMULAS)
    query = parse_latex("p^2+q^2=r^2")
    found = index.alignments(query, 6)["opt"]
    assert found.renaming == {"V!p": "V!a", "V!q": "V!b", "V!r": "V!d"}
    assert query.opt is not None
    changed = {query.opt.labels[node] for node in found.nodes.keys() - found.kept}
    assert changed == {"N!2"}  # aligned with 3


def test_a_formula_without_trees_is_never_found() -> None:
    index = StructureIndex.build([ParsedFormula(None, None), parse_latex("x")], RULES)
    assert [number for number, _ in index.search(parse_latex("x"))] == [1]
    assert index.search(ParsedFormula(None, None)) == []
    assert index.alignments(parse_latex("x"), 0) == {}


def test_a_query_does_not_change_the_index() -> None:
    index = index_of(*FORMULAS)
    query = parse_latex("x^2+y^2")
    before = index.search(query)
    index.search(parse_latex(r"\heartsuit\clubsuit"))
    assert index.search(query) == before


def test_refusals() -> None:
    with pytest.raises(RetrievalError, match="no formulas"):
        StructureIndex.build([], RULES)
    with pytest.raises(RetrievalError, match="k=0"):
        index_of("x").search(parse_latex("x"), 0)
    with pytest.raises(ConfigError, match=r"structure.number=2"):
        replace(RULES, number=2).check()
    with pytest.raises(ConfigError, match=r"structure.k1=inf must be a finite number from 0"):
        replace(RULES, k1=float("inf")).check()
    with pytest.raises(ConfigError, match=r"inconsistent=0.9 is above"):
        replace(RULES, inconsistent=0.9).check()
