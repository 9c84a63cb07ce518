"""The page of found formulas: the topics of a job, their grades, and text that is escaped."""

from pathlib import Path

import pytest

import scripts.development.formula_matches as formula_matches
from experiments.run import run
from mathamr.evaluation.runs import Hit
from scripts.development.formula_matches import FoundFormula, ShownTopic, page
from tests.experiments.test_every_experiment import write_collection
from tests.mathamr.structure.test_matching import matched
from tests.mathamr.systems.test_structure import configured


def test_a_row_has_the_rank_the_grade_and_both_formulas() -> None:
    found = [
        FoundFormula(1, Hit("7", 0.9, "p"), "3", matched("x^2", "y^2")),
        FoundFormula(2, Hit("<b>", 0.1, "p"), "", None),
    ]
    shown = page([ShownTopic("B.<1>", 0.5, found)], "a&b")
    assert "<h1>a&amp;b</h1>" in shown
    assert "<h2>B.&lt;1&gt;: nDCG' 0.500</h2>" in shown
    assert 'grade 3</span><br>score 0.900</td><td><math><msup><mi class="renamed">x</mi>' in shown
    assert "formula &lt;b&gt;, not drawn" in shown


def test_missing_scores_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = [str(tmp_path), "--corpus", "jsonl", "--root", str(tmp_path)]
    arguments += ["--formulas", str(tmp_path / "formulas.db"), "--out", str(tmp_path / "page.html")]
    assert formula_matches.main(arguments) == 2
    assert "no scores of a finished job of Task 2" in capsys.readouterr().err


def test_a_finished_job_is_shown(tmp_path: Path) -> None:
    """Without published formulas trees come from the LaTeX, and a formula's id is its visual id."""
    write_collection(tmp_path / "data")
    assert run(configured(tmp_path), "command").failed == 0
    (job,) = (tmp_path / "out" / "found" / "jobs").glob("*")
    out = tmp_path / "page.html"
    arguments = [str(job), "--corpus", "jsonl", "--root", str(tmp_path / "data"), "--topics", "3", "--out", str(out)]
    assert formula_matches.main(arguments) == 0
    shown = out.read_text()
    assert (shown.count("<h2>"), shown.count("grade 3")) == (3, 15)
    assert 'class="equal"' in shown
