"""Threads and learned ranking behind the runner: what jobs leave, and what no judgment may reach."""

import json
from pathlib import Path
from typing import Any

import pytest

from experiments import run as runner
from graphs.errors import ConfigError
from mathamr.evaluation.runs import read_run
from mathamr.retrieval.fusion import standard_sum
from mathamr.retrieval.scores import SCORES, read_scores, scores_of_run
from tests.experiments.conftest import with_years
from tests.experiments.test_tracks import configured, planned

pytestmark = pytest.mark.usefixtures("without_plots")

WORDS: dict[str, Any] = {"track": "bm25"}
QUESTION: dict[str, Any] = {"track": "bm25", "thread": {"read": "question"}}
BOTH: dict[str, Any] = {"track": "bm25", "thread": {"read": "both"}}
SUM: dict[str, Any] = {"track": "fusion", "fusion": {"of": ["words", "question"], "how": "standard"}}
LEARNED: dict[str, Any] = {"track": "learned", "learned": {"of": ["words", "question"]}}
CONDITIONS = {"words": WORDS, "question": QUESTION, "both": BOTH, "sum": SUM, "learned": LEARNED}


def run(conditions: dict[str, Any], collection: Path, out: Path, *settings: str) -> Path:
    """Run with one seed; return the folder of the jobs."""
    places = [f"data.root={collection}", f"outputs={out}", "thread.depth=1000", *settings]
    ended = runner.run(configured(conditions, *places, seeds=(1,)), "the command")
    assert ended.failed == 0, ended.table
    return out / "tracks" / "jobs"


@pytest.fixture
def threads(collection: Path) -> Path:
    """The collection with years in the names of its topics."""
    return with_years(collection)


def test_threads_are_learned_across_years(threads: Path, tmp_path: Path) -> None:
    jobs = run(CONDITIONS, threads, tmp_path / "out")
    question = read_run(jobs / "question-seed1" / "run.tsv", task=1)
    assert all(hit.doc_id.startswith("a") for hits in question.rankings.values() for hit in hits)
    left = read_scores(jobs / "question-seed1" / SCORES)
    assert left.keys() == question.rankings.keys()
    weights = json.loads((jobs / "learned-seed1" / "weights.json").read_text())
    assert weights["features"] == ["words", "question"]
    assert [(own["left_out"], own["trained_on"]) for own in weights["rankers"]] == [
        ("2020", ["2021"]),
        ("2021", ["2020"]),
        (None, ["2020", "2021"]),
    ]
    report = (tmp_path / "out" / "tracks" / "report.md").read_text()
    assert "Learned weights" in report
    assert "| question |" in report


def test_a_part_with_fewer_results_is_cut_at_its_own_number(collection: Path, tmp_path: Path) -> None:
    conditions = {"words": {**WORDS, "retrieval": {"k": 3}}, "question": QUESTION, "sum": SUM}
    jobs = run(conditions, collection, tmp_path / "out", "thread.depth=null")
    runs = {name: read_run(jobs / f"{name}-seed1" / "run.tsv", task=1) for name in conditions}
    cut = json.loads((jobs / "words-seed1" / "rankings.json").read_text())["cut"]["1"]
    assert cut == sorted(topic for topic, hits in runs["words"].rankings.items() if len(hits) == 3)
    parts = [scores_of_run(runs["words"], 3), scores_of_run(runs["question"], 1000)]
    for topic, ranking in standard_sum(parts).items():
        found = {hit.doc_id: hit.score for hit in runs["sum"].rankings[topic]}
        assert found == pytest.approx(dict(ranking), abs=1e-4)


def test_no_judgment_of_a_year_reaches_its_rankings(threads: Path, tmp_path: Path) -> None:
    before = run(CONDITIONS, threads, tmp_path / "before")
    qrels = threads / "qrels.tsv"
    lines = [line.split("\t") for line in qrels.read_text().splitlines()]
    for line in lines:
        if line[0] in ("A.206", "A.207", "A.208"):  # of 2021: what was right is wrong
            line[3] = str(3 - int(line[3]))
    qrels.write_text("".join("\t".join(line) + "\n" for line in lines))
    after = run(CONDITIONS, threads, tmp_path / "after")
    old, new = (read_run(jobs / "learned-seed1" / "run.tsv", task=1).rankings for jobs in (before, after))
    keys = [json.loads((jobs / "learned-seed1" / "rankings.json").read_text())["key"] for jobs in (before, after)]
    assert keys[0] != keys[1]
    for topic in old:
        if int(topic[2:]) > 200:
            assert old[topic] == new[topic]
    assert any(old[topic] != new[topic] for topic in old)  # those of 2020 learn from 2021


def test_saved_weights_are_refused_for_years_that_trained_them(threads: Path, tmp_path: Path) -> None:
    jobs = run(CONDITIONS, threads, tmp_path / "out")
    file = jobs / "learned-seed1" / "weights.json"
    content = json.loads(file.read_text())
    applied = {**CONDITIONS, "learned": {"track": "learned", "learned": {"of": ["words", "question"]}}}
    again = run(applied, threads, tmp_path / "again", f"learned.weights={file}")
    old, new = (read_run(place / "learned-seed1" / "run.tsv", task=1).rankings for place in (jobs, again))
    assert old == new
    content["rankers"] = [own for own in content["rankers"] if own["left_out"] != "2020"]
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="topics of 2020 trained these weights"):
        run(applied, threads, tmp_path / "refused", f"learned.weights={file}")
    content["features"] = ["words", "other"]
    file.write_text(json.dumps(content))
    with pytest.raises(ConfigError, match="is of the features words, other, and these are words, question"):
        run(applied, threads, tmp_path / "refused", f"learned.weights={file}")


def test_a_question_that_is_the_topic_is_not_searched_by(collection: Path, tmp_path: Path) -> None:
    row = {
        "post_id": "T.0",
        "markup": "text",
        "title": "When is a ring finite?",
        "body": "Let $x^2+1$ be given. Is it?",
    }
    topics = [json.loads(line) for line in (collection / "topics.jsonl").read_text().splitlines()]
    topics[0] = row
    (collection / "topics.jsonl").write_text("".join(json.dumps(one) + "\n" for one in topics))
    jobs = run({"words": WORDS, "question": QUESTION}, collection, tmp_path / "out")
    own = {f"a{i}" for i in (0, 10, 20, 30)}  # their questions have the title of the topic
    found = {
        name: read_run(jobs / f"{name}-seed1" / "run.tsv", task=1).rankings["T.0"] for name in ("words", "question")
    }
    assert own <= {hit.doc_id for hit in found["words"]}
    assert not own & {hit.doc_id for hit in found["question"]}


def test_keys_of_learned_rankings_depend_on_judgments() -> None:
    jobs = planned({"words": WORDS, "question": QUESTION, "learned": LEARNED})
    assert [need.name for need in jobs["learned-seed1"].needs] == ["words-seed1", "question-seed1"]
    other = planned({"words": WORDS, "question": QUESTION, "learned": LEARNED}, "learned.learner=convex")
    assert other["learned-seed1"].run_key != jobs["learned-seed1"].run_key
    assert other["words-seed1"].run_key == jobs["words-seed1"].run_key


@pytest.mark.parametrize(
    ("learned", "message"),
    [
        ({"of": []}, "learning takes one or more different conditions"),
        ({"of": ["words", "words"]}, "learning takes one or more different conditions"),
        ({"of": ["wrods"]}, "did you mean words"),
        ({"of": ["words"], "weights": "nowhere.json"}, "learned.weights=nowhere.json is no file"),
    ],
)
def test_what_cannot_be_learned_is_said(learned: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        planned({"words": WORDS, "learned": {"track": "learned", "learned": learned}})


def test_a_graph_of_a_thread_finds_answers_by_their_questions(collection: Path, tmp_path: Path) -> None:
    """Only the thread's graphs change where the questions do; keys without threads stay what they are."""
    conditions = {"alone": {}, "thread": {"graph": {"thread": "siblings"}}}
    jobs = run(conditions, collection, tmp_path / "out", "train.epochs=1", "data.posts=all")
    runs = {name: (jobs / f"{name}-seed1" / "run.tsv").read_text() for name in conditions}
    assert runs["alone"] != runs["thread"]
    plan = planned(conditions)
    parts = plan["alone-seed1"].settings.model_key_parts()
    assert parts is not None
    assert "thread" not in parts["graph"]
    assert plan["alone-seed1"].model_key != plan["thread-seed1"].model_key


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (["graph.thread=question", "data.posts=all"], "train.positives=accepted read no answer with its question"),
        (
            ["graph.thread=siblings", "data.posts=all", "model.vn_init=mean", "model.vn_learned=none"],
            "use model.vn_init=zero or random",
        ),
        (["graph.thread=siblings", "graph.structure=none"], "use graph.structure=full or global"),
        (["graph.thread=siblings", "data.regime=judged"], "use data.posts=all"),
        (["graph.thread=family"], "thread is 'family'; give one of none, question, siblings"),
    ],
)
def test_graphs_of_threads_that_cannot_be_are_refused(
    collection: Path, tmp_path: Path, overrides: list[str], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        run({"thread": {}}, collection, tmp_path / "out", *overrides)
