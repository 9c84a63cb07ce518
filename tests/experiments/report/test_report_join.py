"""Several machines, several experiments: one report, made from copies of their folders."""

import csv
import shutil
from pathlib import Path

import pytest

from experiments.report import results, taking_part
from experiments.report.__main__ import main as report_main
from graphs.errors import ConfigError
from tests.experiments.written_experiment import fail, finish, write_plan


@pytest.fixture
def machines(tmp_path: Path) -> tuple[Path, Path]:
    """Each ran one seed of the same experiment; the first failed at a job that the second finished."""
    one = write_plan(tmp_path / "gpu1" / "rings", ["none", "ring"], [1, 2], command="run on gpu1")
    two = write_plan(tmp_path / "gpu2" / "rings", ["none", "ring"], [2, 3], command="run on gpu2")
    finish(one, "none", 1, 0.4)
    finish(one, "ring", 1, 0.5)
    fail(one, "none", 2, "out of memory")
    finish(two, "none", 2, 0.42)
    finish(two, "ring", 2, 0.52)
    return one.parent, two.parent


def joined(*folders: Path) -> list[results.Experiment]:
    return results.join([results.read(folder) for folder in results.find(folders)])


def test_the_jobs_of_two_machines_are_one_experiment(machines: tuple[Path, Path]) -> None:
    (rings,) = joined(*machines)
    stands = {(row["condition"], row["seed"]): row["status"] for row in rings.rows}
    assert stands == {
        ("none", 1): "done",
        ("none", 2): "done",
        ("none", 3): "missing",
        ("ring", 1): "done",
        ("ring", 2): "done",
        ("ring", 3): "missing",
    }
    assert rings.commands == ("run on gpu1", "run on gpu2")
    assert rings.places["none", 2].is_relative_to(machines[1])


def test_a_job_that_both_have_counts_once(machines: tuple[Path, Path]) -> None:
    shutil.copytree(machines[0] / "rings" / "jobs" / "none-seed1", machines[1] / "rings" / "jobs" / "none-seed1")
    write_plan(machines[1] / "rings", ["none", "ring"], [1, 2])
    (rings,) = joined(*machines)
    assert len(rings.done()["none"]) == 2


def test_one_job_with_two_configurations_is_refused(machines: tuple[Path, Path]) -> None:
    finish(machines[0] / "rings", "none", 2, 0.6, key="other")
    with pytest.raises(ConfigError, match=r"none-seed2 was run with two configurations: its key is other in .*gpu1.*"):
        joined(*machines)


def test_two_baselines_are_refused(machines: tuple[Path, Path]) -> None:
    write_plan(machines[1] / "rings", ["none", "ring"], [2, 3], baseline="ring")
    with pytest.raises(ConfigError, match="rings: one folder compares with none, another with ring"):
        joined(*machines)


def test_machines_with_other_topics_are_refused(machines: tuple[Path, Path]) -> None:
    finish(machines[1] / "rings", "none", 2, 0.42, topics=["A.1", "A.2"])
    with pytest.raises(ConfigError, match=r"topics is 12 in .*none-seed1 and 2 in .*none-seed2; such scores cannot"):
        joined(*machines)


def test_seeds_of_two_configurations_are_refused(machines: tuple[Path, Path]) -> None:
    finish(machines[0] / "rings", "none", 1, 0.4, condition_key="one epoch")
    joined(*machines)  # results of earlier versions have no such key
    finish(machines[1] / "rings", "none", 2, 0.9, condition_key="fifty epochs")
    message = r"rings: the seeds of none have different settings or data in .*none-seed1 and .*none-seed2; run one"
    with pytest.raises(ConfigError, match=message):
        joined(*machines)


@pytest.mark.parametrize("column", ["judgments", "judgments_hash", "topic_texts_hash"])
def test_scores_by_other_judgments_or_topics_are_refused(machines: tuple[Path, Path], column: str) -> None:
    finish(machines[0] / "rings", "none", 1, 0.4, **{column: "of-2021"})
    joined(*machines)
    finish(machines[1] / "rings", "ring", 2, 0.5, **{column: "of-2022"})
    with pytest.raises(ConfigError, match=rf"{column} is of-2021 in .* and of-2022 in .*; such scores"):
        joined(*machines)


def test_jobs_of_two_collections_are_a_warning(machines: tuple[Path, Path]) -> None:
    finish(machines[0] / "rings", "none", 1, 0.4, collection_hash="0a1b")
    (rings,) = joined(*machines)
    assert not taking_part.warnings(rings)  # results of earlier versions have no such hash
    finish(machines[1] / "rings", "ring", 2, 0.5, collection_hash="2c3d")
    (rings,) = joined(*machines)
    (warning,) = taking_part.warnings(rings)
    assert "the jobs searched different posts (results.csv, column collection_hash: 0a1b, 2c3d)" in str(warning)


@pytest.mark.usefixtures("without_rendering")
def test_the_command_joins_experiments_on_one_page(
    machines: tuple[Path, Path], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = write_plan(machines[1] / "strategies", ["exact", "hnsw"], [1], title="Strategies")
    finish(other, "exact", 1, 0.4)
    finish(other, "hnsw", 1, 0.3)
    out = tmp_path / "together"
    assert report_main([str(machines[0]), str(machines[1]), "--out", str(out)]) == 0
    assert capsys.readouterr().out == f"{out}/report.html, {out}/report.md, {out}/results.csv\n"
    text = (out / "report.md").read_text()
    assert text.index("# Rings") < text.index("# Strategies")
    assert "| ring | 0.510 ± 0.014* |" in text
    page = (out / "report.html").read_text()
    assert "<title>2 experiments</title>" in page
    assert ">Strategies</a></li></ul>" in page
    with (out / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["experiment"] for row in rows] == ["rings"] * 6 + ["strategies"] * 2


@pytest.mark.usefixtures("without_rendering")
def test_experiments_with_one_title_are_told_by_their_names(tmp_path: Path) -> None:
    folders = [write_plan(tmp_path / name, ["none"], [1], title="One trial") for name in ("bm25", "text")]
    for folder in folders:
        finish(folder, "none", 1, 0.4)
    assert report_main([*map(str, folders), "--out", str(tmp_path / "out")]) == 0
    lines = (tmp_path / "out" / "report.md").read_text().splitlines()
    assert [line for line in lines if line.startswith("# ")] == ["# One trial (bm25)", "# One trial (text)"]


@pytest.mark.usefixtures("without_rendering")
def test_the_command_needs_the_folders_alone(machines: tuple[Path, Path], tmp_path: Path) -> None:
    """Without anything else that a run writes, and read-only: as from a copy."""
    copy = tmp_path / "copy"
    shutil.copytree(machines[0] / "rings", copy)
    for path in [*copy.rglob("*"), copy]:
        path.chmod(0o555 if path.is_dir() else 0o444)
    try:
        assert report_main([str(copy), "--out", str(tmp_path / "out")]) == 0
    finally:
        for path in [copy, *copy.rglob("*")]:
            path.chmod(0o755)
    assert "| ring | 0.500" in (tmp_path / "out" / "report.md").read_text()


def test_the_command_says_what_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert report_main([str(tmp_path / "nowhere")]) == 2
    error = capsys.readouterr().err
    assert "nowhere: no experiment.json here, nor in a folder right below" in error


def test_a_folder_named_twice_counts_once(machines: tuple[Path, Path]) -> None:
    assert results.find([machines[0], machines[0] / "rings"]) == [machines[0] / "rings"]


def test_labels_of_topics_are_joined(machines: tuple[Path, Path]) -> None:
    first, second = ({"A.1": "hard"}, {"A.1": "easy", "A.2": "easy"})
    write_plan(machines[0] / "rings", ["none", "ring"], [1, 2], topic_labels={"level": first})
    write_plan(
        machines[1] / "rings", ["none", "ring"], [2, 3], topic_labels={"level": second, "kind": {"A.1": "proof"}}
    )
    (rings,) = joined(*machines)
    assert rings.topic_labels == {"level": {"A.1": "hard", "A.2": "easy"}, "kind": {"A.1": "proof"}}
