"""The benchmarks of formula trees, and scripts/build_formulas.py, on a collection of five formulas."""

from __future__ import annotations

import csv
import gzip
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from graphs.formulas.store import FormulaStore
from tests.scripts.in_process import run_script

ROOT = Path(__file__).resolve().parents[2]
HEADER = ["id", "post_id", "thread_id", "type", "comment_id", "old_visual_id", "visual_id", "issue", "formula"]
SQUARE = (
    "<math><msup><mi>x</mi><mn>2</mn></msup></math>",
    '<math><apply><csymbol cd="ambiguous">superscript</csymbol><ci>𝑥</ci><cn>2</cn></apply></math>',
)
LESS = (
    "<math><mrow><mi>a</mi><mo>&lt;</mo><mi>b</mi></mrow></math>",
    "<math><apply><lt/><ci>𝑎</ci><ci>𝑏</ci></apply></math>",
)
SPOILT = (
    "<math><mrow><mi>a</mi><mi mathvariant='normal'>&amp;</mi><mi>b</mi></mrow></math>",
    "<math><apply><times/><ci>𝑎</ci><ci>&amp;</ci><ci>𝑏</ci></apply></math>",
)
FORMULAS = [
    ("x^2", *SQUARE),
    ("a&lt;b", *LESS),
    ("a&lt;b", *SPOILT),
    ("y", "<math><mi>z</mi></math>", ""),
    ("(", "", ""),
]


def bench(*arguments: str | Path) -> dict[str, Any]:
    done = run_script("bench.py", *arguments)
    assert (done.returncode, done.stderr) == (0, "")
    printed: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return printed


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    root = tmp_path / "arqmath"
    for column, name in enumerate(("latex", "slt", "opt")):
        folder = root / f"{name}_representation_v3"
        folder.mkdir(parents=True)
        with (folder / "1.tsv").open("w", encoding="utf-8", newline="") as file:
            rows = [
                [str(number), str(number // 2), "7", "answer", "", "", "", "", formula[column]]
                for number, formula in enumerate(FORMULAS)
            ]
            csv.writer(file, delimiter="\t").writerows([HEADER, *rows])
    (root / "Posts.V1.3.xml").write_text('<posts><row Id="1" PostTypeId="1" Body="b" /></posts>', encoding="utf-8")
    return root


def test_speeds_are_ratios_of_one_run(collection: Path) -> None:
    printed = bench("formula_trees", "--root", collection, "--rounds", "1", "--latexml", "0")
    assert (printed["collection"], printed["formulas"], printed["short_formulas"]) == ("arqmath", 3, 3)
    speed = printed["formulas_per_second"]["all"]
    assert set(speed) == {"mathml_slt", "mathml_opt", "mathml_both", "latex_both", "latex2mathml"}
    ratio = printed["ratios"]["latex_both_vs_latex2mathml"]
    assert ratio == pytest.approx(speed["latex_both"] / speed["latex2mathml"], rel=0.05)


def test_vocabularies_of_the_same_formulas(collection: Path) -> None:
    printed = bench("formula_vocabulary", "--root", collection)
    # Of z, a & b and two good ones, LaTeX gives y, a < b and the same two; z and the spoilt & are not in it.
    assert (printed["all"]["slt"]["formulas"], printed["all"]["slt"]["identical"]) == (4, 0.5)
    assert printed["all"]["slt"]["labels"]["coverage_of_mathml"] == pytest.approx(7 / 9, abs=1e-4)
    assert printed["all"]["slt"]["without_tree_from_mathml"] == 1
    assert printed["intact"]["slt"]["left_out"] == {"escaped for HTML": 1}
    assert printed["intact"]["opt"]["formulas"] == 2
    assert printed["intact"]["opt"]["identical"] == 1.0
    assert printed["intact"]["opt"]["labels"]["jaccard"] == printed["intact"]["opt"]["roles"]["jaccard"] == 1.0
    assert ["V!z", 1, 0] in printed["intact"]["slt"]["differences"]


def test_whole_collections(collection: Path, tmp_path: Path) -> None:
    posts = tmp_path / "posts.jsonl.gz"
    records = [
        {"title": "Is $\\R$ a field?", "parts": [{"body": "With $\\newcommand{\\R}{\\mathbb R}$ and $x)$."}], "id": 3},
        {"body": "$$\\begin{matrix} 1 & \\\\ 2 & 3 \\end{matrix}$$"},
        {"body": "$\\R+1$ is unknown here"},
    ]
    with gzip.open(posts, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(record) + "\n" for record in records)
    printed = bench("formula_corpora", collection, posts)
    assert printed[str(collection)]["formulas"] == 4
    assert printed[str(posts)]["exceptions"] == 0
    assert printed[str(posts)]["formulas"] == 5
    assert printed[str(posts)]["error_share"] == pytest.approx(3 / 5)  # x), the empty cell, the unknown \R
    assert printed[str(posts)]["unread_share"] == pytest.approx(2 / 5)
    assert printed[str(posts)]["why_unread"] == {"fence": 1, "command": 1}
    assert printed["together"] == {"formulas": 9, "error_share": 0.33333, "unread_share": 0.22222}


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["formula_vocabulary", "--root", "nowhere"], "nowhere"),
        (["formula_trees", "--root", "nowhere"], "nowhere"),
        (["formula_corpora", "nowhere.jsonl"], "nowhere.jsonl"),
    ],
)
def test_a_missing_collection_is_a_message(arguments: list[str], message: str) -> None:
    done = run_script("bench.py", *arguments)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr


def test_formulas_db_is_built_and_gone_on_with(collection: Path, tmp_path: Path) -> None:
    database, failures = tmp_path / "new" / "formulas.db", tmp_path / "failures.jsonl"
    (collection / "opt_representation_v3/2.tsv").write_text("5\t2\tx\n")
    first = run_script("build_formulas.py", "--root", collection, "--out", database, "--failures", failures)
    assert first.returncode == 0
    printed = json.loads(first.stdout)
    assert (printed["formulas"], printed["failures"]) == (5, {"opt missing": 2, "slt missing": 1})
    assert "trees missing from MathML (made from LaTeX instead): 3\n           2  opt: missing" in first.stderr
    assert "not read: opt_representation_v3/2.tsv: its header lacks the columns id and post_id" in first.stderr
    assert [json.loads(line)["kind"] for line in failures.read_text(encoding="utf-8").splitlines()] == ["missing"] * 3
    with FormulaStore.open(database) as store:
        known = store.get("0")
        assert known is not None
        assert known.slt is not None
        assert known.slt.tangent_string() == "[V!x,a[N!2]]"
    named = ("--corpus", "arqmath", "--root", collection)
    again = run_script("build_formulas.py", *named, "--out", database, "--workers", "2")
    assert json.loads(again.stdout) == printed


def test_formulas_db_of_nothing_is_a_message(tmp_path: Path) -> None:
    (tmp_path / "Posts.xml").write_text('<posts><row Id="1" PostTypeId="1" Body="b" /></posts>', encoding="utf-8")
    command = [sys.executable, ROOT / "scripts" / "build_formulas.py", "--root", tmp_path]  # as a user starts it
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [*command, "--out", tmp_path / "formulas.db"], capture_output=True, text=True, check=False, env=environment
    )
    assert done.returncode == 2
    assert "slt_representation" in done.stderr
    assert not (tmp_path / "formulas.db").exists()
    done = run_script("build_formulas.py", "--root", tmp_path, "--out", tmp_path / "formulas.db", "--workers", "0")
    assert (done.returncode, done.stderr) == (2, "workers=0: at least 1 process is needed\n")
    done = run_script("build_formulas.py", "--corpus", "mathdocs", "--out", tmp_path / "formulas.db")
    assert done.returncode == 2
    assert "--corpus mathdocs publishes no formulas" in done.stderr
