"""Task 2: the right vector for the right formula, one result a visual id, a valid run."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch

from graphs.errors import RetrievalError, StoreError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Run, read_run, write_run
from mathamr.maxsim import VectorSets
from mathamr.retrieval.formulas import FormulaIndex, FormulaPoints, formula_points, query_vectors


def unit(*angles: float) -> torch.Tensor:
    radians = torch.deg2rad(torch.tensor(angles))
    return torch.stack([radians.cos(), radians.sin()], dim=1)


def test_formulas_are_the_first_vectors_of_a_post() -> None:
    sets = VectorSets.of([unit(0, 90), unit(10, 20, 30, 90), unit(90)])  # 1, 2 and no formulas
    points = formula_points(["a", "b", "c"], sets, [["f0"], ["f1", "f2"], []], {"f0": "v", "f2": "v"})
    assert (points.formula_ids, points.post_ids) == (["f0", "f1", "f2"], ["a", "b", "b"])
    assert points.visual_ids == ["v", "", "v"]
    assert torch.equal(points.vectors, unit(0, 10, 20))
    queries = query_vectors(sets.select(torch.tensor([1])), [["f1", "f2"]], ["f2"])
    assert torch.equal(queries, unit(20))
    with pytest.raises(RetrievalError, match="the topic of formula f9 has a graph without it"):
        query_vectors(sets.select(torch.tensor([1])), [["f1", "f2"]], ["f9"])
    with pytest.raises(RetrievalError, match="post c has 2 formulas but 1 vectors"):
        formula_points(["a", "b", "c"], sets, [[], [], ["x", "y"]], {})


def test_one_result_a_visual_id_however_often_it_occurs() -> None:
    """300 copies of one formula stand nearest to the query; the 5 best different ones lie behind them."""
    copies, others = 300, 40
    points = FormulaPoints(
        formula_ids=[f"f{i}" for i in range(copies + others)],
        post_ids=["p"] * (copies + others),
        visual_ids=["v"] * copies + [f"w{i // 2}" for i in range(others)],
        vectors=torch.cat([unit(*[1.0] * copies), unit(*[10.0 + i for i in range(others)])]),
    )
    index = FormulaIndex.build(points)
    hits = index.search(unit(0, 180), k=5)
    assert [hit.doc_id for hit in hits[0]] == ["f99", "f300", "f302", "f304", "f306"]
    assert [hit.doc_id for hit in hits[1]] == ["f339", "f337", "f335", "f333", "f331"]
    assert len(index.search(unit(0), k=1000)[0]) == 21


def test_one_formula_too_few_is_searched_for() -> None:
    points = FormulaPoints([*"abcdefg"], ["p"] * 7, ["v"] * 5 + ["w", "x"], unit(*[1.0] * 5, 10, 20))
    assert [hit.doc_id for hit in FormulaIndex.build(points).search(unit(0), k=3)[0]] == ["e", "f", "g"]


def test_of_a_repeated_formula_the_first_place_counts() -> None:
    points = formula_points(["a", "b"], VectorSets.of([unit(0, 90), unit(10, 90)]), [["f1"], ["f1"]], {})
    assert (points.formula_ids, points.post_ids) == (["f1"], ["a"])
    assert torch.equal(points.vectors, unit(0))


@pytest.mark.parametrize("backend", ["exact", "qdrant"])
def test_a_kept_index_gives_a_run_that_scores(backend: str, tmp_path: Path) -> None:
    points = FormulaPoints(["1", "2", "3"], ["a", "a", "b"], ["v", "w", ""], unit(0, 60, 120))
    FormulaIndex.build(points, backend=backend, path=tmp_path / "index", model_hash="m1").close()
    index = FormulaIndex.open(tmp_path / "index", backend=backend, model_hash="m1")
    run = Run.from_results("me", {"B.1": index.search(unit(50))[0]}, task=2)
    index.close()
    write_run(run, tmp_path / "run.tsv")
    assert (tmp_path / "run.tsv").read_text().splitlines()[0].startswith("B.1\t2\ta\t1\t0.98")
    result = evaluate(
        read_run(tmp_path / "run.tsv", task=2), {"B.1": {"w": 3, "v": 0}}, visual_ids={"1": "v", "2": "w"}
    )
    assert result.aggregate["ndcg_prime"] == 1.0
    (tmp_path / "index" / "formulas.tsv").write_text("formula_id\tpost_id\tvisual_id\n")
    with pytest.raises(StoreError, match="0 formulas for 3 vectors"):
        FormulaIndex.open(tmp_path / "index", backend=backend)
