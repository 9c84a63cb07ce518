r"""The trees from LaTeX against the official ones, as ``scripts/benchmarks/formulas/agreement.py`` measures them."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from scripts.benchmarks.formulas import agreement

ROOT = Path(__file__).resolve().parents[4]
ORACLE = ROOT / ".." / "shared" / "data" / "tangent" / "oracle_2020_2021.jsonl"


def test_edges_of_a_string() -> None:
    assert agreement.edges_of_string("[V!x[+[V!y]],a[N!2]]") == Counter(
        {("", "", "V!x"): 1, ("V!x", "n", "+"): 1, ("+", "n", "V!y"): 1, ("V!x", "a", "N!2"): 1}
    )


def test_a_file_of_two_formulas(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows: list[dict[str, Any]] = [
        {
            "formula_id": "1",
            "year": 2021,
            "latex": "x^2",
            "slt_string": "[V!x,a[N!2]]",
            "opt_string": "[O!SUP,0[V!𝑥],1[N!2]]",
        },
        {"formula_id": "2", "year": 2021, "latex": "x+y", "slt_string": "[V!x[+[V!z]]]", "opt_string": None},
        {"formula_id": "3", "year": 2021, "latex": "a &lt; b", "slt_string": "[V!a]", "opt_string": "[V!a]"},
        {"formula_id": "4", "year": 2020, "latex": r"\mathbb R", "slt_string": "[E![V!R]]", "opt_string": None},
    ]
    oracle = tmp_path / "oracle.jsonl"
    oracle.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    summary = agreement.main(["--oracle", str(oracle), "--part", "all"])
    assert summary["slt"] == {"compared": 2, "identical": 0.5, "edge_f1": 0.8}
    assert summary["opt"] == {"compared": 1, "identical": 1.0, "edge_f1": 1.0}
    assert sum(summary["left_out"].values()) == 2


@pytest.mark.shared
@pytest.mark.parametrize("part", ["dev", "heldout"])
def test_agreement_with_official_trees(part: str) -> None:
    if not ORACLE.exists():
        pytest.skip(f"no official trees at {ORACLE}")
    figures = agreement.measure(ORACLE, part)
    assert figures["slt"].share >= 0.95
    assert figures["opt"].share >= 0.88
    assert figures["slt"].edge_f1 >= 0.985
    assert figures["opt"].edge_f1 >= 0.95
