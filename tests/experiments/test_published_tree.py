"""A small published tree through an experiment: what the console says of judgments, and of results that lie there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from experiments.run import run
from graphs.errors import MathAMRError
from scripts.benchmarks.published_tree import Tree
from tests.experiments.tiny_settings import trial

pytestmark = pytest.mark.usefixtures("without_plots")


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("published")
    Tree(root, 300).write()
    return root


def words(root: Path, outputs: Path, *settings: str) -> Any:
    places = [f"data.root={root}", f"outputs={outputs}", "data.years=[2020]", "track=bm25"]
    return trial(*places, "experiment.tasks=[1]", *settings)


def test_judgments_of_another_edition_are_named(tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Task 1 of 2020 was published in one edition alone."""
    assert run(words(tree, tmp_path, "data.judgments=all"), "command").failed == 0
    said = capsys.readouterr().err
    assert "data.judgments=all: no file has all judgments of Task 1 of 2020; official ones are read" in said
    assert run(words(tree, tmp_path / "again"), "command").failed == 0
    assert "no file has" not in capsys.readouterr().err


def test_a_plan_for_a_year_without_judgments_is_refused(tree: Path, tmp_path: Path) -> None:
    """Else a chain of jobs is submitted, and each fails."""
    judged = tree / "Evaluation"
    (file,) = (path for path in judged.rglob("*") if path.name == "qrel_task1_2021_test.tsv")
    content = file.read_bytes()
    assert run(words(tree, tmp_path, "data.years=[2020,2021]", "job=list"), "command").table
    file.unlink()
    try:
        with pytest.raises(MathAMRError, match="no official qrels of Task 1, 2021"):
            run(words(tree, tmp_path, "data.years=[2020,2021]", "job=list"), "command")
    finally:
        file.write_bytes(content)


def test_results_of_another_collection_move_and_that_is_said(
    tree: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other"
    Tree(other, 200).write()
    outputs = tmp_path / "out"
    assert run(words(tree, outputs), "python -m experiments.run first").failed == 0
    assert "of another configuration" not in capsys.readouterr().err
    (result,) = outputs.glob("trial-alone/jobs/*/result.json")
    first = result.read_text()
    assert run(words(other, outputs), "the second command").failed == 0
    said = capsys.readouterr().err
    assert "results of another configuration (mathamr run first) move to" in said
    assert "experiment.name=NAME" in said
    (kept,) = outputs.glob("trial-alone/earlier/*/result.json")
    assert kept.read_text() == first
    assert run(words(tree, outputs), "python -m experiments.run first").failed == 0
    assert "(the second command)" in capsys.readouterr().err
    assert result.read_text() == first
    plan_of_tree = (outputs / "trial-alone" / "experiment.json").read_text()
    assert run(words(other, outputs), "python -m experiments.run first").failed == 0  # the files have changed
    said = capsys.readouterr().err
    assert "results of this command with other data, files of settings or code move to" in said
    assert "brings them back" not in said
    (outputs / "trial-alone" / "experiment.json").write_text(plan_of_tree)  # the first command was interrupted
    assert run(words(tree, outputs), "python -m experiments.run first").failed == 0
    assert "results of an earlier configuration move to" in capsys.readouterr().err
