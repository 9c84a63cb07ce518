"""Trees of a post's formulas: from formulas.db or LaTeX, with the macros of the post, within bounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from parrot import Parrot

from graphs.corpus.post import FormulaRef, Post
from graphs.errors import Failure, StoreError
from graphs.formulas.latex import parse_latex
from graphs.formulas.tree import ParsedFormula
from graphs.graph import graph_maker
from graphs.graph.graph_maker import FormulaTrees, GraphMaker


def refs(*latex: str) -> list[FormulaRef]:
    return [FormulaRef(str(number), text) for number, text in enumerate(latex)]


def test_macros_of_one_formula_are_read_in_all() -> None:
    trees = FormulaTrees().of(refs(r"\newcommand{\R}{\mathbb{R}} x", r"\R^n"))
    assert (trees[1].slt, trees[1].opt) == (parse_latex(r"\mathbb{R}^n").slt, parse_latex(r"\mathbb{R}^n").opt)


def test_a_tree_that_formulas_db_lacks_is_made_from_latex(monkeypatch: pytest.MonkeyPatch) -> None:
    published, made = parse_latex("y^2"), parse_latex("x")

    class Store:
        def get_many(self, formula_ids: Sequence[str]) -> dict[str, ParsedFormula]:
            assert formula_ids == ["0", "1", "2"]
            return {"0": ParsedFormula(published.slt, None), "1": ParsedFormula(None, published.opt), "2": published}

    trees = FormulaTrees()
    monkeypatch.setattr(trees, "_store", Store())
    assert [(one.slt, one.opt) for one in trees.of(refs("x", "x", "x"))] == [
        (published.slt, made.opt),
        (made.slt, published.opt),
        (published.slt, published.opt),
    ]


def test_a_formula_that_cannot_be_read_has_a_message_and_an_empty_one_has_none() -> None:
    beyond: list[str] = []
    trees = FormulaTrees().of(refs("{" * 70 + "x" + "}" * 70, " "), beyond)
    assert trees == FormulaTrees().of(refs("{" * 70 + "x" + "}" * 70, " "))
    assert [(one.slt, one.opt) for one in trees] == [(None, None)] * 2
    assert beyond == ["FORMULA_0 (0): groups are nested more than 60 deep, too deep for a tree"]


class Half(Parrot):
    """A parser that fails on some chunks."""

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        return [Failure("", "amr", "lost", "no graph") if "Lose" in chunk[0] else "(s / say-01)" for chunk in chunks]


def test_a_chunk_without_a_graph_is_a_record_beside_the_graph_of_the_others() -> None:
    body = f"Say {'it ' * 400}now. Lose {'it ' * 400}now."  # two chunks
    made = GraphMaker(Half)([Post("1", "answer", body=body, markup="text")])
    assert [graph.penman for graph in made.graphs] == ["(s / say-01)"]
    assert [(one.post_id, one.stage, one.kind) for one in made.failures] == [("1", "amr", "lost")]


def test_a_damaged_formulas_db_is_no_fault_of_a_post(monkeypatch: pytest.MonkeyPatch) -> None:
    def damaged(*_: Any) -> None:
        raise StoreError("a tree is not what was written")

    monkeypatch.setattr(FormulaTrees, "of", damaged)
    with pytest.raises(StoreError, match="a tree is not what was written"):
        GraphMaker(Parrot)([Post("1", "answer", body="Say $x$.", markup="text")])


def test_trees_past_a_bound_are_left_out_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_maker, "MAX_TREE_NODES", 3)
    monkeypatch.setattr(graph_maker, "MAX_POST_NODES", 15)
    beyond: list[str] = []
    trees = FormulaTrees().of(refs("x+y", "x+y+z", "x", "x"), beyond)  # with 3 nodes in each tree, 4 and 5, 1, 1
    assert [one.opt is not None for one in trees] == [True, False, False, False]
    assert beyond == [
        "FORMULA_1 (1): a tree of 5 nodes; at most 3 are kept",
        "FORMULA_2 (2): the trees before it have 15 nodes, the most for a post",
        "FORMULA_3 (3): the trees before it have 15 nodes, the most for a post",
    ]
    within = FormulaTrees().of(refs("x+y", "x+y", "x", "x", "x"))  # 16 nodes after the fourth
    assert [one.slt is not None for one in within] == [True, True, True, True, False]
