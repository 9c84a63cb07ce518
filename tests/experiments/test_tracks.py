"""BM25, text and fusions behind the same runner as graphs: keys, what runs first, what is not run twice."""

import csv
import json
import threading
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir
from omegaconf import OmegaConf

from experiments import run as runner
from experiments.configuration.registration import register, validated
from experiments.notes import beaten, unread, without_effect
from experiments.plan import LOCK, Job, plan
from graphs.corpus.files import Fingerprints
from graphs.errors import ConfigError, TrainingError
from graphs.shared_files import locked
from mathamr.evaluation.runs import read_run
from mathamr.stages.console import Console
from mathamr.systems.bm25 import BM25System
from mathamr.systems.fusion import FusionSystem
from tests.experiments.conftest import FORMULAS as FORMULAS_OF_POSTS

pytestmark = pytest.mark.usefixtures("without_plots")

ROOT = Path(__file__).resolve().parents[2]
SMALL = ["data=jsonl", "index=exact", "train.device=cpu", "workers=1", "wandb=disabled", "text=tiny"]
BM25: dict[str, Any] = {"track": "bm25"}
FORMULAS: dict[str, Any] = {"track": "bm25", "bm25": {"by": "formulas"}}
BASE: dict[str, Any] = {"track": "text", "text": {"epochs": 0}}
RRF: dict[str, Any] = {"track": "fusion", "fusion": {"of": ["words", "formulas"]}}
FUSED = {"words": BM25, "formulas": FORMULAS, "fused": RRF}


def configured(conditions: dict[str, Any], *overrides: str, seeds: tuple[int, ...] = (1, 2)) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", ["+exp=trial", *SMALL, *overrides])
    OmegaConf.set_struct(config, False)
    config.experiment.update({"name": "tracks", "baseline": next(iter(conditions)), "seeds": list(seeds), "labels": {}})
    config.experiment.conditions = conditions
    return validated(config)


def planned(conditions: dict[str, Any], *overrides: str) -> dict[str, Job]:
    return {
        job.name: job
        for job in plan(configured(conditions, "data.root=nowhere", *overrides), Fingerprints("fingerprint"))
    }


def test_a_model_depends_on_its_track_alone() -> None:
    conditions = {
        "words": BM25,
        "base": BASE,
        "longer": {"track": "text", "text": {"epochs": 0, "max_length": 32}},
        "tokens": {"track": "text", "text": {"epochs": 0, "late_interaction": True}},
        "tuned": {"track": "text", "text": {"epochs": 1}},
        "tuned_tokens": {"track": "text", "text": {"epochs": 1, "late_interaction": True}},
    }
    jobs = planned(conditions)
    assert jobs["words-seed1"].model_key == ""
    assert jobs["base-seed1"].model_key == jobs["base-seed2"].model_key == jobs["tokens-seed1"].model_key
    assert jobs["longer-seed1"].model_key != jobs["base-seed1"].model_key
    assert jobs["tuned-seed1"].model_key != jobs["tuned-seed2"].model_key
    assert jobs["tuned-seed1"].model_key == jobs["tuned_tokens-seed1"].model_key
    assert jobs["words-seed1"].key == jobs["words-seed2"].key
    assert jobs["base-seed1"].key == jobs["base-seed2"].key != jobs["tokens-seed1"].key
    assert jobs["tuned-seed1"].key != jobs["tuned_tokens-seed1"].key
    other = planned(conditions, "graph.connectivity=none", "model.num_layers=1", "train.epochs=2", "text.scale=10")
    same = {name for name, job in jobs.items() if (job.key, job.model_key) == (other[name].key, other[name].model_key)}
    assert same == {f"{name}-seed{seed}" for name in ("words", "base", "longer", "tokens") for seed in (1, 2)}
    other = planned(conditions, "train.positives=all")
    assert other["tuned-seed1"].model_key != jobs["tuned-seed1"].model_key
    assert other["base-seed1"].key == jobs["base-seed1"].key


def test_a_fusion_depends_on_its_parts_and_comes_last() -> None:
    conditions = {"fused": RRF, "words": BM25, "formulas": FORMULAS}
    jobs = planned(conditions)
    assert list(jobs)[-2:] == ["fused-seed1", "fused-seed2"]
    assert [need.name for need in jobs["fused-seed2"].needs] == ["words-seed2", "formulas-seed2"]
    assert jobs["fused-seed1"].key == jobs["fused-seed2"].key  # as no part of it depends on the seed
    assert planned({**conditions, "words": FORMULAS, "formulas": BM25})["fused-seed1"].key != jobs["fused-seed1"].key
    assert planned(conditions, "retrieval.k=10")["fused-seed1"].key != jobs["fused-seed1"].key
    assert planned(conditions, "fusion.k=10")["fused-seed1"].key != jobs["fused-seed1"].key


def test_a_setting_that_no_job_reads_is_noted() -> None:
    tuned = {"track": "text", "text": {"epochs": 1}}
    words = ["+exp=trial", "train.epochs=99", "train.seed=3", "train.validation_fraction=0.2", "text.max_length=8"]
    words += ["train.device=cpu", "model.hidden_dim=8", "data.root=a.b"]
    jobs = list(planned({"tuned": tuned, "words": BM25}).values())
    assert without_effect(words, jobs) == ["  train.epochs=99 has no effect with track=text; use text.epochs"]
    with_graphs = planned({"tuned": tuned, "words": BM25, "graph": {}}).values()
    assert without_effect(words, list(with_graphs)) == []


def test_a_setting_of_a_group_that_no_condition_reads_is_noted() -> None:
    jobs = list(planned({"words": BM25, "graph": {}}).values())
    config = configured({"words": BM25}, "data.root=nowhere")
    words = ["+exp=trial", "bm25.k1=2", "++latent.size=8", "sparse=default", "train=best", "data.root=a.b", "workers=1"]
    assert unread(words, jobs, config) == [
        "  ++latent.size=8 is read by no condition of this experiment, only by track=latent; leave it out",
        "  sparse=default is read by no condition of this experiment, only by track=sparse; leave it out",
    ]
    config.bm25.k1 = "${latent.size}"
    assert unread(words, [], config) == []


@pytest.mark.parametrize(("condition", "key"), [({"track": None}, "track"), ({"bm25": {"k1": None}}, "bm25.k1")])
def test_a_condition_with_a_value_of_another_type_names_the_setting(condition: dict[str, Any], key: str) -> None:
    with pytest.raises(ConfigError, match=rf"experiment\.conditions\.words\.{key}: Incompatible value 'None'"):
        planned({"words": {**BM25, **condition}})


def test_a_setting_that_conditions_set_themselves_is_noted() -> None:
    longer = {"train": {"epochs": 7}}
    conditions = {"base": {}, "none": None, "longer": longer, "wide": {**longer, "model": {"hidden_dim": 8}}}
    assert beaten(["++train.epochs=1", "train.beta=1", "model.hidden_dim=8", "train=best"], conditions) == [
        "  ++train.epochs=1 has no effect on conditions that set it: longer, wide; "
        "use experiment.conditions.NAME.train.epochs=1"
    ]
    [note] = beaten(["train.epochs=1"], dict.fromkeys("abcde", longer))
    assert "that set it: a, b, c and 2 more; use" in note


def test_jobs_come_after_those_that_they_need() -> None:
    twice = {"track": "fusion", "fusion": {"of": ["fused", "words"]}}
    jobs = planned({"twice": twice, "fused": RRF, "words": BM25, "formulas": FORMULAS})
    assert list(dict.fromkeys(job.condition for job in jobs.values())) == ["words", "formulas", "fused", "twice"]
    assert [need.name for need in jobs["twice-seed1"].needs] == ["fused-seed1", "words-seed1"]
    other = planned(
        {
            "twice": twice,
            "fused": {**RRF, "fusion": {"of": ["words", "formulas"], "k": 9}},
            "words": BM25,
            "formulas": FORMULAS,
        }
    )
    assert other["twice-seed1"].run_key != jobs["twice-seed1"].run_key  # a part of a part has changed
    with pytest.raises(ConfigError, match=r"conditions need each other: (fused, twice|twice, fused)"):
        planned({"twice": twice, "fused": {"track": "fusion", "fusion": {"of": ["twice", "words"]}}, "words": BM25})


def test_judgments_teach_no_scores_whose_weights_they_teach(tmp_path: Path) -> None:
    taught = {"words": BM25, "formulas": FORMULAS, "taught": {"track": "learned", "learned": {"of": ["words"]}}}
    through = {"track": "fusion", "fusion": {"of": ["taught", "formulas"]}}
    for part in ("taught", "fused"):
        again = {"track": "learned", "learned": {"of": [part, "words"]}}
        with pytest.raises(ConfigError, match=r"conditions\.again: .* reaches taught, .* that taught needs"):
            planned({**taught, "fused": through, "again": again})
    (tmp_path / "weights.json").write_text("{}")
    saved = {"of": ["taught"], "weights": str(tmp_path / "weights.json")}
    planned({**taught, "again": {"track": "learned", "learned": saved}})


@pytest.mark.parametrize(
    ("parts", "message"),
    [
        (
            ["words", "formula"],
            "needs formula, which is not among the conditions: words, formulas, fused; did you mean formulas",
        ),
        (["words"], "fusing takes two or more different conditions"),
        (["words", "words"], "fusing takes two or more different conditions"),
        (["words", "fused"], "condition fused needs itself"),
    ],
)
def test_what_cannot_be_fused_is_said(parts: list[str], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        planned({"words": BM25, "formulas": FORMULAS, "fused": {"track": "fusion", "fusion": {"of": parts}}})


@pytest.mark.parametrize(
    ("conditions", "overrides", "message"),
    [
        ({"words": {"track": "bm25", "bm25": {"by": "letters"}}}, [], "bm25.by=letters is not one of text, formulas"),
        (
            {"words": {"track": "bm25", "bm25": {"stem": "lovins"}}},
            [],
            "bm25.stem=lovins is not one of none, accents, porter",
        ),
        ({"words": FORMULAS}, ["bm25.stem=porter"], "bm25.stem=porter needs by=text"),
        ({"words": {"track": "bm25", "bm25": {"method": "okapi"}}}, [], "bm25.method=okapi is not one of lucene"),
        ({"words": {"track": "words"}}, [], "track=words is not known; the tracks are graph, text, bm25, sparse"),
        ({"words": BM25}, ["retrieval.k=0"], "retrieval.k=0 must be"),
    ],
)
def test_settings_that_cannot_be_are_refused_before_anything_runs(
    conditions: dict[str, Any], overrides: list[str], message: str, collection: Path, tmp_path: Path
) -> None:
    config = configured(conditions, f"data.root={collection}", f"outputs={tmp_path / 'out'}", *overrides)
    with pytest.raises(ConfigError, match=message):
        runner.run(config, "command")
    assert not list((tmp_path / "out").rglob("result.json"))


@pytest.mark.parametrize(
    ("conditions", "overrides", "message"),
    [
        ({"words": BM25, "theirs": {"track": "run"}}, ["run.path=FILE"], r"condition theirs: .* run\.task2_path="),
        (
            FUSED,
            ["fusion.how=standard"],
            r"condition fused: fusion\.how=standard is for answers; use rrf or weighted in Task 2",
        ),
        (FUSED, ["fusion.how=sum"], "fusion.how=sum is not one of rrf"),
        (FUSED, ["fusion.how=weighted"], "weighted needs weights"),
        (FUSED, ["fusion.weights=[1,2]"], "rrf takes none"),
        (FUSED, ["fusion.how=weighted", "fusion.weights=[1]"], "for 2 conditions; one is needed for each"),
        (FUSED, ["fusion.how=standard", "fusion.weights=[1]"], "for 2 conditions; one is needed for each"),
        (FUSED, ["fusion.how=weighted", "fusion.weights=[-1,2]"], "weights are at least 0"),
        (FUSED, ["fusion.how=weighted", "fusion.weights=[0,0]"], "not all 0"),
        (FUSED, ["fusion.how=weighted", "fusion.weights=[nan,1]"], "weights are numbers"),
        (FUSED, ["fusion.k=-1"], "takes k from 0"),
        ({"words": BM25}, ["experiment.topic_labels=nowhere.tsv"], r"nowhere\.tsv: labels of topics cannot be read"),
    ],
)
def test_settings_and_labels_are_checked_before_posts_and_topics_are_read(
    conditions: dict[str, Any],
    overrides: list[str],
    message: str,
    collection: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    (tmp_path / "their.tsv").touch()
    overrides = [override.replace("FILE", str(tmp_path / "their.tsv")) for override in overrides]
    monkeypatch.setattr(runner, "tasks_of", lambda *_: [1, 2])
    monkeypatch.setattr(runner, "read_topic_sets", lambda *_: pytest.fail("topics are read"))
    config = configured(conditions, f"data.root={collection}", f"outputs={tmp_path / 'out'}", *overrides)
    with pytest.raises(ConfigError, match=message):
        runner.run(config, "command")


@pytest.fixture
def asked(collection: Path) -> Path:
    """The collection with a formula in each topic but the last."""
    path = collection / "topics.jsonl"
    topics = [json.loads(line) for line in path.read_text().splitlines()]
    for number, topic in enumerate(topics[:-1]):
        topic["body"] += f" Let ${FORMULAS_OF_POSTS[number % 5]}$ be given."
    path.write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    return collection


def rows_of(folder: Path) -> dict[tuple[str, str], dict[str, str]]:
    with (folder / "results.csv").open(newline="") as file:
        return {(row["condition"], row["seed"]): row for row in csv.DictReader(file)}


def test_a_fusion_is_the_hand_computation(asked: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    weighted = {"track": "fusion", "fusion": {"of": ["words", "formulas"], "how": "weighted", "weights": [3, 1]}}
    conditions = {"words": BM25, "formulas": FORMULAS, "fused": RRF, "weighted": weighted}
    config = configured(conditions, f"data.root={asked}", f"outputs={tmp_path / 'out'}")
    ended = runner.run(config, "command")
    assert ended.failed == 0, ended.table
    folder = tmp_path / "out" / "tracks"
    ranked = {}
    for name in conditions:
        run = read_run(folder / "jobs" / f"{name}-seed1" / "run.tsv", task=1)
        ranked[name] = {topic: {hit.doc_id: hit.score for hit in hits} for topic, hits in run.rankings.items()}
    for topic in ("T.0", "T.9"):
        expected: dict[str, float] = {}
        mixed: dict[str, float] = {}
        for name, weight in (("words", 0.75), ("formulas", 0.25)):
            scores = ranked[name].get(topic, {})
            low, high = min(scores.values(), default=0), max(scores.values(), default=0)
            for rank, (post, score) in enumerate(scores.items(), 1):
                expected[post] = expected.get(post, 0) + 1 / (60 + rank)
                mixed[post] = mixed.get(post, 0) + weight * ((score - low) / (high - low) if high > low else 1)
        assert ranked["fused"][topic] == pytest.approx(expected, abs=1e-4)
        assert ranked["weighted"][topic] == pytest.approx(mixed, abs=1e-4)
    rows = rows_of(folder)
    one, two = rows["words", "1"], rows["words", "2"]
    assert {name for name in one if one[name] != two[name]} == {"seed"}  # run once, copied
    index = [float(rows[name, "1"]["index_bytes"]) for name in ("words", "formulas", "fused")]
    assert index[2] == index[0] + index[1]
    speeds = [float(rows[name, "1"]["queries_per_second"]) for name in ("words", "formulas", "fused")]
    assert speeds[2] < 1 / (1 / speeds[0] + 1 / speeds[1])
    assert json.loads((folder / "jobs" / "fused-seed1" / "examples.json").read_text())[0]["results"]
    assert not list(folder.rglob("heat_map.json"))
    assert "8 jobs" in capsys.readouterr().err
    before = {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")}
    assert len(before) == 8
    runner.run(config, "command")
    assert "0 of 8 jobs to run" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in folder.rglob("result.json")} == before


def test_a_fusion_keeps_its_rankings_as_long_as_those_of_its_parts(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """New judgments alone repeat the evaluation; parts of other graphs also repeat the fusion."""
    config = configured(
        {"words": BM25, "formulas": FORMULAS, "fused": RRF},
        f"data.root={collection}",
        f"outputs={tmp_path / 'out'}",
        "data.regime=full",
        seeds=(1,),
    )
    retrieve, fused = FusionSystem.retrieve, list[str]()

    def counted(*given: Any) -> Any:
        fused.append("fused")
        return retrieve(*given)

    monkeypatch.setattr(FusionSystem, "retrieve", counted)
    assert runner.run(config, "command").failed == 0
    qrels = collection / "qrels.tsv"
    for times, source in ((1, "same"), (2, "other graphs")):
        qrels.write_text(qrels.read_text() + f"T.0\t0\tunknown{times}\t1\n")
        if source == "other graphs":
            monkeypatch.setattr(BM25System, "rankings_source", lambda system, settings: "other graphs")
        assert runner.run(config, "command").failed == 0
        assert len(fused) == times


def test_a_fusion_fails_with_its_part_and_runs_when_that_is_mended(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    from mathamr.retrieval.lexical import LexicalIndex

    conditions = {"words": BM25, "formulas": FORMULAS, "fused": RRF}
    config = configured(conditions, f"data.root={collection}", f"outputs={tmp_path / 'out'}", seeds=(1,))
    config.experiment.only = ["fused"]
    ended = runner.run(config, "command")
    assert ended.failed == 1
    assert "words-seed1, which it needs, has no result; run it first" in ended.table
    assert "conditions without a result that others need: words, formulas; " in capsys.readouterr().err
    config.experiment.only = None

    def broken(*_: Any, **__: Any) -> None:
        raise TrainingError("no room")

    with monkeypatch.context() as patch:
        patch.setattr(LexicalIndex, "build", broken)
        ended = runner.run(config, "command")
    assert ended.failed == 3
    assert "fused, seed 1: failed: words-seed1, which it needs, failed: no room" in ended.table
    assert runner.run(config, "command").failed == 0
    assert "without a result" not in capsys.readouterr().err


@pytest.mark.parametrize("part_of_array", ["null", "3/3"])  # the third element has the fusion alone
def test_a_fusion_waits_for_a_part_that_another_process_has_in_work(
    collection: Path, tmp_path: Path, part_of_array: str, capsys: pytest.CaptureFixture[str]
) -> None:
    config = configured(
        {"words": BM25, "formulas": FORMULAS, "fused": RRF},
        f"data.root={collection}",
        f"outputs={tmp_path / 'out'}",
        f"job={part_of_array}",
        seeds=(1,),
    )
    part = tmp_path / "out" / "tracks" / "jobs" / "words-seed1"
    part.mkdir(parents=True)
    held, waited = threading.Event(), threading.Event()

    def other_process() -> None:  # it dies without a result
        with locked(part / LOCK):
            held.set()
            waited.wait(60)

    other = threading.Thread(target=other_process)
    other.start()
    assert held.wait(60)
    said = Console.say

    def say(console: Console, line: str) -> None:
        said(console, line)
        if "waiting for a dependency of fused-seed1" in line:
            waited.set()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Console, "say", say)
        ended = runner.run(config, "command")
    other.join()
    assert ended.failed == 0, ended.table
    told = capsys.readouterr().err
    assert told.index("formulas-seed1: nDCG'") < told.index("waiting for") < told.index("words-seed1: nDCG'")
    assert told.index("words-seed1: nDCG'") < told.index("fused-seed1: nDCG'")


def test_both_tasks_by_words_and_fused(tmp_path: Path) -> None:
    from tests.experiments.test_every_experiment import FORMULAS as LATEX
    from tests.experiments.test_every_experiment import write_collection

    root = write_collection(tmp_path / "data")
    conditions = {"words": BM25, "formulas": FORMULAS, "fused": RRF}
    config = configured(conditions, f"data.root={root}", f"outputs={tmp_path / 'out'}", seeds=(1,))
    config.experiment.tasks = [1, 2]
    ended = runner.run(config, "command")
    assert ended.failed == 0, ended.table
    for row in rows_of(tmp_path / "out" / "tracks").values():
        assert int(row["task2_topics"]) == len(LATEX)
        assert float(row["task2_p_prime_10"]) > 0.5
        assert float(row["task2_formulas"]) > 0
        assert float(row["task2_queries_per_second"]) > 0
