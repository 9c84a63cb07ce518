"""Scores by labels of topics: category, difficulty, dependency."""

from pathlib import Path

import pytest

from experiments.report import breakdowns, results, writing
from experiments.report.blocks import Table
from graphs.errors import ConfigError
from tests.experiments.written_experiment import finish, write_plan

TOPICS = ["A.301", "A.302", "A.303"]
LABELS = {
    "difficulty": {"A.301": "easy", "A.302": "hard", "A.303": "hard", "A.399": "none of ours"},
    "dependency": {"A.301": "both"},
    "category": {"A.1": "proof"},
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = write_plan(tmp_path / "rings", ["base", "ring"], [1], topic_labels=LABELS)
    for condition, scores in (("base", (0.2, 0.4, 0.6)), ("ring", (0.3, 0.4, 0.4))):
        place = finish(folder, condition, 1, 0.5, topics=TOPICS)
        rows = [f"{topic},{value},0,0,0,0" for topic, value in zip(TOPICS, scores, strict=True)]
        header = "topic,ndcg_prime,map_prime,p_prime_10,bpref,recall_1000"
        (place / "per_topic.csv").write_text("\n".join([header, *rows]) + "\n")
    return folder


def test_a_table_for_each_label_that_topics_have(folder: Path) -> None:
    tables = [block for block in breakdowns.blocks(results.read(folder), 1) if isinstance(block, Table)]
    assert [table.caption for table in tables] == ["nDCG' by difficulty", "nDCG' by dependency"]
    assert tables[0].rows == [
        ["Condition", "easy (1 topic)", "difference", "hard (2 topics)", "difference"],
        ["base †", "0.200", "", "0.500", ""],
        ["ring", "0.300", "+0.100", "0.400", "-0.100"],
    ]


def test_a_group_that_the_baseline_has_not_whole_has_no_difference(folder: Path) -> None:
    scores = folder / "jobs" / "base-seed1" / "per_topic.csv"
    scores.write_text("\n".join(scores.read_text().splitlines()[:-1]) + "\n")
    table = breakdowns.blocks(results.read(folder), 1)[0]
    assert isinstance(table, Table)
    assert table.rows[1:] == [
        ["base †", "0.200", "", "0.400", ""],
        ["ring", "0.300", "+0.100", "0.400", ""],
    ]


@pytest.mark.usefixtures("without_rendering")
def test_the_report_has_them(folder: Path, tmp_path: Path) -> None:
    writing.write([results.read(folder)], tmp_path / "report")
    assert "By groups of topics" in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")
    (folder / "experiment.json").write_text(
        (folder / "experiment.json").read_text().replace('"topic_labels"', '"other"'), encoding="utf-8"
    )
    writing.write([results.read(folder)], tmp_path / "report")
    assert "By groups of topics" not in (tmp_path / "report" / "report.md").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the first line must be"),
        ("topic\n", "the first line must be"),
        ("A.301\teasy\nA.302\thard\n", "the first line must be topic, a tab"),
        ("topic\tlevel\nA.301\n", "has 1 columns, not 2"),
        (
            "topic\tlevel\nA.301\teasy\nA.302\teasy\nA.301\thard\n",
            r"labels\.tsv:4: topic A\.301 has the label 'hard' in the column level here, and 'easy' in an earlier line",
        ),
        (None, "cannot be read"),
    ],
)
def test_what_is_no_table_of_labels_is_refused(tmp_path: Path, text: str | None, said: str) -> None:
    path = tmp_path / "labels.tsv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        breakdowns.read_labels(path)


def test_quotes_are_a_part_of_a_label(tmp_path: Path) -> None:
    path = tmp_path / "labels.tsv"
    path.write_text('topic\tlevel\nA.301\t"easy" one\nA.302\t"hard\nA.303\thard\nA.303\thard\n', encoding="utf-8")
    assert breakdowns.read_labels(path) == {"level": {"A.301": '"easy" one', "A.302": '"hard', "A.303": "hard"}}
