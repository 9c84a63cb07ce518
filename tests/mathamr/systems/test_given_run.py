"""Runs of another system: the file of each task and test, and what is kept of a collection to read them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post, Topic
from graphs.errors import ConfigError, Failure
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import Run, Task, read_run
from mathamr.stages.console import Console
from mathamr.stages.topic_sets import Encoded, Indexed, TopicSet
from mathamr.systems.given_run import GivenRunSystem
from mathamr.systems.settings.built_in import GivenRunConfig, GivenRunSettings
from tests.mathamr.job_settings import shared_fields


def settings(tasks: list[Any], **run: Any) -> GivenRunSettings:
    files = GivenRunConfig(**{"path": None, "task2_path": None, **run})
    return GivenRunSettings(**shared_fields(tasks=tasks), run=files)


def identity(one: GivenRunSettings) -> list[str]:
    found: list[str] = one.result_key_parts()["run"]
    return found


@pytest.fixture
def files(tmp_path: Path) -> dict[str, str]:
    for name in ("easy", "hard", "task1"):
        (tmp_path / f"{name}.tsv").write_text(f"A.1\t{len(name)}\t1\t2.0\t{name}\n")
    return {path.stem: str(path) for path in tmp_path.iterdir()}


def test_every_named_test_has_its_file(files: dict[str, str]) -> None:
    both = settings(["easy", "hard"], paths={"easy": files["easy"], "hard": files["hard"]})
    assert [both.path_of(test).stem for test in ("easy", "hard")] == ["easy", "hard"]
    assert len(set(identity(both))) == 2
    assert settings(["easy"], path=files["easy"]).path_of("easy").stem == "easy"  # as before there were several


@pytest.mark.parametrize(
    ("run", "message"),
    [
        (
            {"path": "easy"},
            "for the tests easy and hard; name one for each: run: {paths: {easy: easy.tsv",
        ),
        ({"paths": {"easy": "easy", "hard": "easy"}}, "is the run file for the tests easy and hard"),
        ({"paths": {"hard": "hard"}}, "track=run needs run.paths.easy, the run file for Easy"),
        ({"paths": {"easy": "nowhere"}}, "run.paths.easy=nowhere is no file"),
    ],
)
def test_one_file_is_not_taken_for_two_tests(files: dict[str, str], run: dict[str, Any], message: str) -> None:
    found = {name: files.get(name, name) for name in ("easy", "hard", "nowhere")}
    if "paths" in run:
        run = {"paths": {test: found[name] for test, name in run["paths"].items()}}
    else:
        run = {"path": found[run["path"]]}
    with pytest.raises(ConfigError, match=re.escape(message)):
        settings(["easy", "hard"], **run).path_of("easy")


def test_a_task_without_a_file_is_refused_only_where_it_is_asked(files: dict[str, str]) -> None:
    """A collection without Task 2 drops it after the keys are made."""
    first = settings([1, 2], path=files["task1"])
    both = settings([1, 2], path=files["task1"], task2_path=files["hard"])
    assert identity(first)[0] == identity(both)[0] == identity(settings([1], path=files["task1"]))[0]
    assert identity(first)[1] == ""
    track = GivenRunSystem(cast(Corpus, SimpleNamespace()), Path(), Console())
    topics = [Topic("A.1", Post("A.1", "topic"))]
    track.check(first, [TopicSet(1, topics, [], "full")])
    with pytest.raises(ConfigError, match=r"track=run needs run\.task2_path=, the run file for Task 2"):
        track.check(first, [TopicSet(2, topics, [], "full")])
    with pytest.raises(ConfigError, match=r"run\.task2_path=nowhere is no file"):
        identity(settings([1, 2], path=files["task1"], task2_path="nowhere"))


def test_only_formulas_of_the_run_are_kept() -> None:
    def posts() -> Iterator[Post | Failure]:
        for number in range(50):
            body = f'<span class="math-container" id="{number}">$x$</span>'
            yield Post(f"p{number}", "answer", body=body)

    track = GivenRunSystem(cast(Corpus, SimpleNamespace(posts=posts)), Path(), Console())
    assert track._posts_of_formulas({"7", "99"}) == {"7": "p7"}


def test_formulas_that_the_collection_lacks_are_counted_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    body = '<span class="math-container" id="f1">$x$</span>'
    corpus = SimpleNamespace(posts=lambda: iter([Post("p", "answer", body=body)]))
    (tmp_path / "run.tsv").write_text("".join(f"B.{topic} f{one} p 1 {one} me\n" for topic in (1, 2) for one in (1, 9)))
    track = GivenRunSystem(cast(Corpus, corpus), tmp_path, Console())
    track._visual_ids = {"f1": "v1"}
    topics = [Topic(f"B.{number}", Post(f"B.{number}", "topic")) for number in (1, 2)]
    own = settings([2], task2_path=str(tmp_path / "run.tsv"))
    found = track.retrieve(own, Encoded(None), Indexed(None), TopicSet(2, topics, [], "full"))
    left = Run.from_results("me", found.results, task=2).rankings
    assert [[hit.doc_id for hit in hits] for hits in left.values()] == [["f1"], ["f1"]]
    assert "Task 2: 1 of 2 formulas of the run are not in the collection, e.g. f9" in capsys.readouterr().err


def test_a_run_is_scored_as_the_official_protocol_scores_its_file(tmp_path: Path) -> None:
    posts = ["x 0 1.0", "a 1 2.0", "b 2 1.5", "x 3 3.0"]  # of a repeated post, the first line counts
    formulas = ["f1 p 1 5.0", "f2 p 2 5.0", "f3 p 3 9.0", "f3 p 4 1.0"]  # of a formula, the last; ties keep their order
    grades = {"x": 0, "a": 3, "b": 1}, {"v1": 3, "v2": 1, "v3": 0}
    assert of_track_and_file(tmp_path / "posts.tsv", posts, grades[0], 1) == pytest.approx((1.0, 1.0))
    assert of_track_and_file(tmp_path / "formulas.tsv", formulas, grades[1], 2) == pytest.approx((1.0, 1.0))


def test_topics_that_a_run_lacks_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.tsv").write_text("A.1\tp\t1\t2.0\tme\n")
    track = GivenRunSystem(cast(Corpus, SimpleNamespace()), tmp_path, Console())
    own = settings([1], path=str(tmp_path / "run.tsv"))
    topics = [Topic(f"A.{number}", Post(f"A.{number}", "topic")) for number in range(1, 9)]
    for few in (1, 2, 8):
        track.retrieve(own, Encoded(None), Indexed(None), TopicSet(1, topics[:few], [], "full"))
    assert [line for line in capsys.readouterr().err.splitlines() if "topics" in line] == [
        "  Task 1: topics that have no result in the run (1): A.2",
        "  Task 1: topics that have no result in the run (7): A.2, A.3, A.4, A.5, A.6 ...",
    ]


def of_track_and_file(path: Path, lines: list[str], grades: dict[str, int], task: Task) -> tuple[float, float]:
    """Return nDCG' of the run as ``track=run`` leaves it, and as ``mathamr evaluate`` reads it."""
    body = " ".join(f'<span class="math-container" id="f{number}">$x$</span>' for number in (1, 2, 3))
    corpus = SimpleNamespace(posts=lambda: iter([Post("p", "answer", body=body)]))
    path.write_text("".join(f"A.1 {line} me\n" for line in lines))
    own = settings([task], **{"path" if task == 1 else "task2_path": str(path)})
    visual_ids = None if task == 1 else {f"f{number}": f"v{number}" for number in (1, 2, 3)}
    track = GivenRunSystem(cast(Corpus, corpus), path.parent, Console())
    track._visual_ids = cast(Any, visual_ids)
    topics = TopicSet(task, [Topic("A.1", Post("A.1", "topic"))], [], "full")
    found = track.retrieve(own, Encoded(None), Indexed(None), topics)
    left = Run.from_results("me", found.results, task=task)
    runs = left, read_run(path, task=task)
    first, second = (evaluate(run, {"A.1": grades}, visual_ids=visual_ids).aggregate["ndcg_prime"] for run in runs)
    return first, second
