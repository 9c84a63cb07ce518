"""Leak control: topics that are also questions of training pairs, in the collection or in a source, in other words."""

import csv
import json
import random
from pathlib import Path
from typing import Any

import pytest

from experiments.run import run
from tests.experiments.tiny_settings import TINY, trial

pytestmark = pytest.mark.usefixtures("without_plots")

WORDS = [
    f"{first}{second}" for first in ("alpha", "beta", "gam", "del", "eps") for second in ("tor", "nid", "sim", "lux")
]
QUESTIONS = 24
TOPICS = 4


def text(number: int) -> str:
    draw = random.Random(number)
    return f"Take the {' '.join(draw.choices(WORDS, k=18))} with $x^{number} = {number}$ and tell."


def edited(number: int) -> str:
    """The question as people ask it again."""
    return f"{text(number)} Thanks!"


def write(folder: Path, posts: list[dict[str, Any]]) -> None:
    folder.mkdir()
    (folder / "posts.jsonl").write_text("".join(json.dumps({**post, "markup": "text"}) + "\n" for post in posts))


def threads(prefix: str, numbers: range) -> list[dict[str, Any]]:
    posts: list[dict[str, Any]] = []
    for number in numbers:
        posts.append({"post_id": f"{prefix}{number}", "kind": "question", "title": "A question", "body": text(number)})
        answer = {"post_id": f"{prefix}{number}a", "kind": "answer", "parent_id": f"{prefix}{number}"}
        posts.append({**answer, "body": f"The {WORDS[number % 20]} of ${number}$ is $x = {number}$."})
    return posts


@pytest.fixture
def leaking(tmp_path: Path) -> Path:
    """Questions with answers; the first four are asked again by topics. A source has two of them, too."""
    write(tmp_path / "data", threads("q", range(QUESTIONS)))
    write(tmp_path / "source", threads("s", range(TOPICS - 2, QUESTIONS)))
    topics = [{"post_id": f"T.{n}", "title": "A question", "body": edited(n), "markup": "text"} for n in range(TOPICS)]
    topics = [{**topic, "title": f"Number {n}"} for n, topic in enumerate(topics)]
    (tmp_path / "data" / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (tmp_path / "data" / "qrels.tsv").write_text("".join(f"T.{n}\t0\tq{n}a\t3\n" for n in range(TOPICS)))
    return tmp_path


def test_pairs_of_topics_are_left_out_listed_and_reported(leaking: Path, capsys: pytest.CaptureFixture[str]) -> None:
    places = [f"data.root={leaking / 'data'}", f"outputs={leaking / 'out'}", "data.regime=full", "index=exact"]
    source = f"+data.sources={{other: {{name: jsonl, root: {leaking / 'source'}}}}}"
    learned = ["train.pairs=[jsonl,other]", "train.epochs=1", "train.validation_fraction=0.1"]
    run(trial("experiment.name=demo", *TINY, *places, source, *learned), "command")
    said = capsys.readouterr().err
    assert "training pairs left out, because their questions are topics: 4 of 24, e.g. q0" in said
    assert "source other: 22 pairs; left out, because their questions are topics: 2, e.g. s2" in said
    (place,) = (leaking / "out" / "demo" / "jobs").iterdir()
    result = json.loads((place / "result.json").read_text())
    assert (result["pairs_left_out"], result["questions_left_out"]) == (6, 6)
    assert result["train_pairs"] == 18 + 20  # two of the collection are held out
    rows = list(csv.DictReader((place / "leaks.tsv").read_text().splitlines(), delimiter="\t"))
    found = [(row["source"], row["question"], row["topic"], row["reason"], row["pairs"]) for row in rows]
    own = [("", f"q{n}", f"T.{n}", "near", "1") for n in range(TOPICS)]
    assert found == [*own, ("other", "other/s2", "T.2", "near", "1"), ("other", "other/s3", "T.3", "near", "1")]
    assert all(0.7 <= float(row["similarity"]) < 1 for row in rows)
    report = (leaking / "out" / "demo" / "report.md").read_text()
    assert "Leak control: left out, because their questions are topics: 6 training pairs (6 questions)" in report
    ((header, row),) = [list(csv.reader((leaking / "out" / "demo" / "results.csv").read_text().splitlines()))]
    assert dict(zip(header, row, strict=True))["pairs_left_out"] == "6"


def test_a_report_says_that_nothing_leaks(leaking: Path) -> None:
    lines = (leaking / "data" / "topics.jsonl").read_text().splitlines()
    topics = [{**json.loads(line), "body": f"Which {WORDS[n]} is it?"} for n, line in enumerate(lines)]
    (leaking / "data" / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    places = [f"data.root={leaking / 'data'}", f"outputs={leaking / 'out'}", "data.regime=full", "index=exact"]
    run(trial("experiment.name=demo", *TINY, *places, "train.epochs=1", "train.validation_fraction=0.1"), "command")
    assert "no question of a training pair is a topic" in (leaking / "out" / "demo" / "report.md").read_text()
