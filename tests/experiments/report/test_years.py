"""What would have been chosen on the topics of one year, and what the others say of it."""

import json
import shutil
from pathlib import Path

import pytest

from experiments.report import results, weight_tables, writing, years
from experiments.report.blocks import Table, Text
from tests.experiments.written_experiment import finish, write_plan

TOPICS = [*(f"A.{n}" for n in range(1, 7)), *(f"A.{n}" for n in range(201, 207))]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Wide is better in 2020 alone, deep a little in both; fused has its own baseline."""
    folder = write_plan(
        tmp_path / "quality",
        ["base", "wide", "deep", "text", "fused"],
        [1, 2],
        baselines={"text": "text", "fused": "text"},
    )
    gains = {"base": (0.0, 0.0), "wide": (0.3, -0.1), "deep": (0.1, 0.1), "text": (0.0, 0.0), "fused": (0.2, 0.2)}
    for condition, (first, second) in gains.items():
        for seed in (1, 2):
            place = finish(folder, condition, seed, 0.5, topics=TOPICS)
            score = {topic: 0.4 + 0.01 * n + (second if n >= 6 else first) for n, topic in enumerate(TOPICS)}
            rows = [f"{topic},{value},0,0,0,0" for topic, value in score.items()]
            header = "topic,ndcg_prime,map_prime,p_prime_10,bpref,recall_1000"
            (place / "per_topic.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def tables(folder: Path) -> list[Table]:
    found = years.blocks(results.read(folder), 1)
    return [block for block in found if isinstance(block, Table)]


def test_each_year_has_its_means_and_differences(folder: Path) -> None:
    by_year, _ = tables(folder)
    rows = {row[0]: row[1:] for row in by_year.rows}
    assert rows["Condition"] == ["nDCG' 2020 (6 topics)", "difference", "nDCG' 2021 (6 topics)", "difference"]
    assert rows["base †"] == ["0.425", "", "0.485", ""]
    assert rows["wide"] == ["0.725", "+0.300*", "0.385", "-0.100*"]


def test_a_choice_is_confirmed_where_it_was_not_made(folder: Path) -> None:
    _, choices = tables(folder)
    rows = [row[:7] for row in choices.rows[1:]]
    assert rows == [
        ["2020", "wide", "0.725", "2021", "0.385", "0.485 (base)", "-0.100"],
        ["2021", "deep", "0.585", "2020", "0.525", "0.425 (base)", "+0.100"],
        ["2020", "fused", "0.625", "2021", "0.685", "0.485 (text)", "+0.200"],
        ["2021", "fused", "0.685", "2020", "0.625", "0.425 (text)", "+0.200"],
    ]


def test_a_baseline_with_its_own_baseline_has_rivals(folder: Path) -> None:
    """Text is compared with base, fused with text; base itself may have no result."""
    plan = json.loads((folder / "experiment.json").read_text())
    write_plan(folder, plan["conditions"], plan["seeds"], baselines={"fused": "text"})
    by_year, choices = tables(folder)
    of_text = ["2021", "fused", "0.685", "2020", "0.625", "0.425 (text)", "+0.200"]
    assert of_text in [row[:7] for row in choices.rows]
    assert [row[0] for row in by_year.rows if row[0][0] in "btf"] == ["base †", "text †", "fused"]
    note = years.blocks(results.read(folder), 1)[-1]
    assert isinstance(note, Text)
    assert "each against its own baseline (table of tests)" in note.text

    for seed in (1, 2):
        shutil.rmtree(folder / "jobs" / f"base-seed{seed}")
    by_year, choices = tables(folder)
    assert of_text in [row[:7] for row in choices.rows]
    rows = {row[0]: row[1:] for row in by_year.rows}
    assert rows["fused"] == ["0.625", "+0.200*", "0.685", "+0.200*"]
    assert rows["text †"] == ["0.425", "", "0.485", ""]


def test_nothing_is_chosen_on_the_topics_that_are_reported(folder: Path) -> None:
    for place in (folder / "jobs").iterdir():
        table = (place / "per_topic.csv").read_text()
        (place / "per_topic.csv").write_text(table.replace("A.20", "A.30"))
    by_year, choices = tables(folder)
    assert by_year.rows[0][3] == "nDCG' 2022 (6 topics)"
    assert [(row[0], row[3]) for row in choices.rows[1:]] == [("2020", "2022")] * 2


@pytest.mark.usefixtures("without_rendering")
def test_the_report_has_both_and_is_silent_about_one_year(folder: Path, tmp_path: Path) -> None:
    writing.write([results.read(folder)], tmp_path / "out")
    assert "Chosen on one year, confirmed on another" in (tmp_path / "out" / "report.md").read_text()

    alone = write_plan(tmp_path / "alone", ["base", "wide"], [1])
    for condition in ("base", "wide"):
        finish(alone, condition, 1, 0.5, topics=TOPICS[:6])
    assert years.blocks(results.read(alone), 1) == []


@pytest.mark.usefixtures("without_rendering")
def test_other_weights_stand_in_the_report(folder: Path, tmp_path: Path) -> None:
    for seed, value in ((1, 0.51), (2, 0.53)):
        content = {"as it is": 0.5, "idf, 0.7": value}
        (folder / "jobs" / f"base-seed{seed}" / "weighting.json").write_text(json.dumps(content))
    writing.write([results.read(folder)], tmp_path / "out")
    assert "| idf, 0.7 | 0.520 ± 0.014 (+0.020) |" in (tmp_path / "out" / "report.md").read_text()


def test_learned_weights_are_means_over_seeds(folder: Path) -> None:
    for seed, weight in ((1, 0.2), (2, 0.4)):
        learned = {
            "learner": "ridge",
            "features": ["wide"],
            "rankers": [{"left_out": 2020, "weights": {"wide": weight}}],
        }
        (folder / "jobs" / f"base-seed{seed}" / "weights.json").write_text(json.dumps(learned))
    table, _ = weight_tables.learned_weights(results.read(folder))
    assert isinstance(table, Table)
    assert table.rows == [["Feature", "2020 left out"], ["wide", "+0.300"]]


@pytest.mark.parametrize(("tasks", "files"), [([2], ["weights-task2.json"]), (["easy"], ["weights-easy.json"])])
def test_learned_weights_of_any_task_are_in_the_report(
    tmp_path: Path, tasks: list[int | str], files: list[str]
) -> None:
    folder = write_plan(tmp_path / "learned", ["base", "learned"], [1], tasks=tasks)
    assert captions_of_weights(folder, files) == ["learned: ridge"]


def test_learned_weights_of_several_tasks_have_a_table_each(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "learned", ["base", "learned"], [1], tasks=[1, 2])
    files = ["weights.json", "weights-task2.json"]
    assert captions_of_weights(folder, files) == ["learned, Task 1: ridge", "learned, Task 2: ridge"]


def captions_of_weights(folder: Path, files: list[str]) -> list[str]:
    place = finish(folder, "learned", 1, 0.5)
    for file in files:
        rankers = [{"left_out": None, "weights": {"base": 0.25}}]
        (place / file).write_text(json.dumps({"learner": "ridge", "features": ["base"], "rankers": rankers}))
    found = weight_tables.learned_weights(results.read(folder))
    return [block.caption for block in found if isinstance(block, Table) and block.rows[1] == ["base", "+0.250"]]
