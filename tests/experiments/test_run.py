"""The main job on a small made-up collection: posts in, a table out; finished jobs rest; bad input is answered."""

import csv
import json
import re
import shutil
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register, validated
from experiments.job import Outcome, run_job
from experiments.plan import LOCK, Job
from experiments.run import run
from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.post import Post
from graphs.errors import ConfigError, MathAMRError, MissingEncoderError
from graphs.shared_files import locked
from graphs.stores.collection import Collection, build
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import qrels_of, read_run
from tests.experiments.tiny_settings import TINY, built
from tests.warm_process import start_experiment

pytestmark = pytest.mark.usefixtures("without_plots")
ROOT = Path(__file__).resolve().parents[2]
TOPICS = 10
SETTINGS = [*TINY, "train.epochs=2", "experiment.seeds=[1,2]"]
TWO = {"none": {"graph": {"connectivity": "none"}}, "circular": {"graph": {"connectivity": "circular"}}}


def composed(collection: Path, outputs: Path, *overrides: str, conditions: dict[str, Any] = TWO) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        places = [f"data.root={collection}", f"outputs={outputs}"]
        config = compose("config", ["+exp=vn_connectivity", *SETTINGS, *places, *overrides])
    config.experiment.conditions = conditions
    return validated(config)


def test_conditions_without_weights_are_left_out(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("sentence_transformers")
    asked = []

    def missing(name: str, **_: Any) -> Any:
        asked.append(name)
        raise MissingEncoderError(f"the encoder {name!r} is not on this machine")

    monkeypatch.setattr("mathamr.systems.text.open_encoder", missing)
    conditions = {
        "none": {"track": "bm25"},
        "gone": {"track": "text", "text": {"encoder": "gone", "epochs": 0}},
        "gone_pt": {"track": "text", "text": {"encoder": "gone", "epochs": 0, "pretraining_epochs": 1}},
        "sum": {"track": "fusion", "fusion": {"of": ["none", "gone"]}},
    }
    config = composed(collection, tmp_path / "out", conditions=conditions)
    ended = run(config, "the command")
    assert ended.failed == 0
    assert ended.table.splitlines()[1].startswith("none")
    assert "not run: gone, gone_pt, sum" in ended.table
    said = "conditions left out: gone, gone_pt, sum; condition gone: the encoder 'gone' is not on this machine"
    assert said in capsys.readouterr().err
    assert asked == ["gone"]
    assert run(config, "the command").failed == 0  # with nothing left to run
    config.experiment.only = ["none", "gone"]
    with pytest.raises(ConfigError, match="condition gone: the encoder 'gone'"):
        run(config, "the command")


def test_posts_to_table_and_finished_jobs_rest(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = composed(collection, tmp_path / "out")
    table = run(config, "the command").table
    assert table.splitlines()[0].split() == [
        "Condition",
        "nDCG'",
        "MAP'",
        "P'@10",
        "Bpref",
        "Time/epoch",
        "(s)",
        "Seeds",
    ]
    folder = tmp_path / "out" / "vn_connectivity"
    with (folder / "results.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [(row["condition"], row["seed"], row["status"]) for row in rows] == [
        (condition, seed, "done") for condition in ("none", "circular") for seed in ("1", "2")
    ]
    assert (
        len({(row["condition"], row["condition_key"]) for row in rows})
        == len({row["condition_key"] for row in rows})
        == 2
    )
    for row in rows:
        assert float(row["ndcg_prime"]) > 0.3
        assert int(row["topics"]) == TOPICS
        assert float(row["parameters"]) > 1000
        job = folder / "jobs" / f"{row['condition']}-seed{row['seed']}"
        judged = open_judgments(collection)
        again = evaluate(read_run(job / "run.tsv", task=1), judged)
        assert again.aggregate["map_prime"] == pytest.approx(float(row["map_prime"]))
        assert (job / "per_topic.csv").read_text().startswith("topic,ndcg_prime")
    assert "`the command`" in (folder / "report.md").read_text()

    shared = next((tmp_path / "out" / "shared").iterdir())
    graphs_file = next(shared.glob("collection-*.db"))
    assert f"{collection / 'posts.jsonl'}:82" in graphs_file.with_suffix(".failures.tsv").read_text()
    with Collection(graphs_file) as graphs:
        assert len(graphs) == 80
        reasons = {(failure.post_id, failure.kind) for failure in graphs.failures()}
        messages = [failure.message for failure in graphs.failures()]
    assert ("empty", "empty") in reasons
    assert len(reasons) == 2
    assert any(f"{collection / 'posts.jsonl'}:82" in message for message in messages)

    capsys.readouterr()
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("jobs/*/result.json")}
    assert run(config, "the command").table == table
    assert {path: path.stat().st_mtime_ns for path in folder.glob("jobs/*/result.json")} == stamps
    assert capsys.readouterr().err == "vn_connectivity: 0 of 4 jobs to run\n"


def open_judgments(collection: Path) -> dict[str, dict[str, int]]:
    from graphs.corpus.corpus import open_corpus

    return qrels_of(open_corpus("jsonl", collection).judgments(1, []))


def test_a_condition_that_fails_is_shown_and_the_others_stand(collection: Path, tmp_path: Path) -> None:
    steep = {"learning_rate": 1e30, "min_learning_rate": 1e30, "grad_clip": 1e30}
    config = composed(
        collection, tmp_path / "out", "experiment.seeds=[1]", conditions={"none": {}, "steep": {"train": steep}}
    )
    outcome = run(config, "command")
    table = outcome.table
    assert outcome.failed == 1
    assert "steep, seed 1: failed: epoch 1, step 2: the loss is" in table
    assert table.splitlines()[1].startswith("none")
    assert table.splitlines()[1].split()[-1] == "1"


def test_ways_to_search_share_a_model_and_experiments_do(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    ways: dict[str, Any] = {
        "qdrant": {},
        "exact": {"index": {"backend": "exact", "location": None}},
        "single": {"retrieval": {"strategy": "single_vector"}},
    }
    one_seed = ("experiment.seeds=[1]", "experiment.baseline=qdrant")
    run(composed(collection, tmp_path / "out", *one_seed, conditions=ways), "command")
    again = composed(collection, tmp_path / "out", *one_seed, "experiment.name=another", conditions={"qdrant": {}})
    run(again, "command")
    said = capsys.readouterr().err
    assert said.count("epoch 1:") == 1
    (model,) = (tmp_path / "out").glob("shared/*/models/*")
    assert sorted(path.name for path in model.iterdir() if path.name != ".lock") == [
        "best",
        "encoded",
        "encoded.digests.json",
        "encoded.json",
        "log.jsonl",
        "source",
        "trained.json",
    ]
    places = [tmp_path / "out" / "vn_connectivity" / "jobs" / f"{way}-seed1" for way in ways]
    results = [json.loads((place / "result.json").read_text()) for place in places]
    assert [result["time_per_epoch_s"] for result in results] == [results[0]["time_per_epoch_s"]] * 3
    assert [result["encode_docs_per_second"] for result in results] == [results[0]["encode_docs_per_second"]] * 3
    assert all(result["index_bytes"] > 0 and result["queries_per_second"] > 0 for result in results)
    # Qdrant ranks as exact search does, but for documents of one score.
    rankings = [read_run(place / "run.tsv", task=1).rankings for place in places]
    assert rankings[0].keys() == rankings[1].keys()
    for topic_id, hits in rankings[0].items():
        assert {hit.doc_id for hit in hits} == {hit.doc_id for hit in rankings[1][topic_id]}
        exact = {hit.doc_id: hit.score for hit in rankings[1][topic_id]}
        assert all(hit.score == pytest.approx(exact[hit.doc_id], abs=1e-5) for hit in hits)
    maps = [json.loads((place / "heat_map.json").read_text()) for place in places]
    assert maps[0] == maps[1] == maps[2]
    assert maps[0]["topic"] == "T.0"
    assert maps[0]["post"] == "a0"
    assert [node["kind"] for node in maps[0]["queries"]][-1] == "document"
    assert {node["text"] for node in maps[0]["documents"] if node["kind"] == "formula"} == {"x^2+1", "n=0"}
    (first, *_) = json.loads((places[0] / "examples.json").read_text())
    assert (first["topic"], first["title"], len(first["results"])) == ("T.0", "Finite ring", 3)
    assert "$" in first["results"][0]["body"]
    assert not list(tmp_path.glob("out/*/jobs/*/index"))


@pytest.mark.parametrize("structure", ["none", "global"])
def test_every_structure_has_a_heat_map(collection: Path, tmp_path: Path, structure: str) -> None:
    config = composed(
        collection,
        tmp_path / "out",
        "experiment.seeds=[1]",
        f"graph.structure={structure}",
        "train.epochs=1",
        "experiment.example.topic=T.3",
        conditions={"none": {}},
    )
    run(config, "command")
    place = tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1"
    shown = json.loads((place / "heat_map.json").read_text())
    assert (shown["topic"], shown["post"], shown["grade"]) == ("T.3", "a3", 3)
    assert len(shown["scores"]) == len(shown["queries"])
    assert len(shown["scores"][0]) == len(shown["documents"])
    assert ("document" in {node["kind"] for node in shown["documents"]}) == (structure == "global")


def test_task_2_finds_formulas_where_there_are_topics_of_it(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("experiment.seeds=[1]", "train.epochs=1", "experiment.tasks=[1,2]")
    run(composed(collection, tmp_path / "out", *one, conditions={"none": {}}), "command")
    assert "has no topics of Task 2: only Task 1 is run" in capsys.readouterr().err
    plan = json.loads((tmp_path / "out" / "vn_connectivity" / "experiment.json").read_text())
    assert plan["tasks"] == [1]

    body = "What about $x^2+1$ and $f(x)=0$?"
    topics = [
        {"post_id": f"F.{i}", "markup": "text", "title": "A formula", "body": body, "formula_id": f"F.{i}:{i}"}
        for i in range(2)
    ]
    (collection / "topics2.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    (collection / "qrels2.tsv").write_text("F.0\t0\ta0:0\t3\nF.0\t0\ta1:0\t0\nF.1\t0\ta3:0\t2\n")
    outcome = run(composed(collection, tmp_path / "out", *one, conditions={"none": {}}), "command")
    assert "nDCG' (Task 2)" in outcome.table
    place = tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1"
    result = json.loads((place / "result.json").read_text())
    assert result["task2_topics"] == 2
    assert result["task2_ndcg_prime"] > 0
    assert result["task2_formulas"] == 6  # of the posts a0, a1 and a3: regime judged
    rankings = read_run(place / "run-task2.tsv", task=2).rankings
    assert rankings["F.0"][0].doc_id.split(":")[0] == rankings["F.0"][0].post_id
    assert (place / "per_topic-task2.csv").read_text().startswith("topic,ndcg_prime")
    with pytest.raises(ConfigError, match=r"graph\.formulas=none leaves no formula to find in Task 2"):
        run(composed(collection, tmp_path / "out", *one, "graph.formulas=none", conditions={"none": {}}), "command")


def test_a_list_of_the_plan_runs_nothing(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """What another version of the code has made is in the list, and said by the first run."""
    listed = run(composed(collection, tmp_path / "out", "job=list"), "command").table.splitlines()
    assert listed[0].split() == ["Job", "State", "Model", "Key", "Model", "key"]
    assert [line.split()[:3] for line in listed[1:5]] == [
        [f"{condition}-seed{seed}", "missing", "missing"] for condition in ("none", "circular") for seed in (1, 2)
    ]
    assert listed[-1] == "4 of 4 jobs to run, 4 models to train"
    assert not (tmp_path / "out").exists()
    run(composed(collection, tmp_path / "out", "job=1/4"), "command")
    listed = run(composed(collection, tmp_path / "out", "job=list"), "command").table.splitlines()
    assert listed[1].split()[:3] == ["none-seed1", "done", "trained"]
    assert listed[-1] == "3 of 4 jobs to run, 3 models to train"
    for module in ("models", "notes", "run"):
        monkeypatch.setattr(f"experiments.{module}.mathamr_version", lambda: "edited")
    listed = run(composed(collection, tmp_path / "out", "job=list"), "command").table.splitlines()
    assert listed[1].split()[:3] == ["none-seed1", "done", "trained"]
    assert re.fullmatch(
        r"made by another version of mathamr/ and used as found: results 1 \(\S+/jobs/JOB/result\.json\), models 1 "
        r"\(\S+/models/KEY\); to train again, remove a model and the results .*",
        listed[-1],
    )
    assert listed[-1] not in capsys.readouterr().err
    for _ in range(2):
        run(composed(collection, tmp_path / "out", "job=1/4"), "command")
    assert capsys.readouterr().err.count("made by another version of mathamr/") == 1


def test_graphs_are_prepared_before_any_model_is_trained(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a node without a GPU, of a Slurm job: only what is trained there gets the warning."""
    monkeypatch.setenv("SLURM_JOB_ID", "1")
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    conditions = {"none": {}, "opt": {"graph": {"formulas": "opt"}}}
    one = ("experiment.seeds=[1]", "train.epochs=1", "train.device=auto")
    prepared = run(composed(collection, tmp_path / "out", *one, "job=prepare", conditions=conditions), "command")
    (shared,) = (tmp_path / "out" / "shared").iterdir()
    assert prepared.table == f"the graphs of 2 jobs are in {shared}"
    assert len(list(shared.glob("preprocessed-*.done"))) == len(list(shared.glob("topics-*.done"))) == 2
    assert not (shared / "models").exists()
    assert "NO GPU" not in capsys.readouterr().err
    assert not run(composed(collection, tmp_path / "out", *one, conditions=conditions), "command").failed
    said = capsys.readouterr().err
    assert said.count("NO GPU IN THIS SLURM JOB") == 1
    assert "graphs to tensors" not in said
    assert "posts to graphs" not in said
    again = run(composed(collection, tmp_path / "out", *one, "job=prepare", conditions=conditions), "command")
    assert again.table == "all jobs of vn_connectivity are finished"


def test_more_topics_leave_tensors_and_models_and_other_graphs_do_not(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one = ("experiment.seeds=[1]", "train.epochs=1")
    conditions = {"none": {}, "few": {"retrieval": {"k": 5}}}
    config = composed(collection, tmp_path / "out", *one, "data.posts=all", conditions=conditions)
    run(config, "command")
    (shared,) = (tmp_path / "out" / "shared").iterdir()
    (graphs,), (topics,) = shared.glob("collection-*.db"), shared.glob("topic-graphs-*.db")
    tensors = {path: path.stat().st_mtime_ns for path in shared.glob("preprocessed-*.db")}
    capsys.readouterr()

    (tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1" / "result.json").unlink()
    extra = [Post("late", "topic", title="Why is a ring?", markup="text")]
    build(topics, extra, EmbeddedParser, source="")
    run(config, "command")
    assert "is there already" in capsys.readouterr().err
    assert {path: path.stat().st_mtime_ns for path in shared.glob("preprocessed-*.db")} == tensors

    (tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1" / "result.json").unlink()
    build(
        graphs,
        [Post("new", "answer", body="A sheaf is $F(U)$.", markup="text")],
        EmbeddedParser,
        source="",
    )
    table = run(config, "command").table
    assert re.search("the graphs have changed since model .* was trained; it moves to", capsys.readouterr().err)
    assert len(list(shared.glob("preprocessed-*.db"))) == 2
    assert "the jobs have different graphs" in table  # the other condition was not run again


def test_an_array_job_runs_only_its_part(collection: Path, tmp_path: Path) -> None:
    run(composed(collection, tmp_path / "out", "job=2/4"), "command")
    done = [path.parent.name for path in (tmp_path / "out" / "vn_connectivity").glob("jobs/*/result.json")]
    assert done == ["none-seed2"]


def test_jobs_of_another_process_are_shown_so_and_its_plan_does_not_matter(collection: Path, tmp_path: Path) -> None:
    """All jobs are locked, as by processes that run them; one of these plans other seeds meanwhile."""
    config = composed(collection, tmp_path / "out", "experiment.seeds=[1]")
    folder = tmp_path / "out" / "vn_connectivity"
    with ExitStack() as others:
        for condition in TWO:
            place = folder / "jobs" / f"{condition}-seed1"
            place.mkdir(parents=True)
            assert others.enter_context(locked(place / LOCK))
        others.enter_context(pytest.MonkeyPatch.context()).setattr("experiments.job.run_job", _plan_others(folder))
        ended = run(config, "command")
    assert "none, seed 1: running elsewhere\ncircular, seed 1: running elsewhere" in ended.table
    assert ended.failed == 0
    with (folder / "results.csv").open(newline="") as file:
        rows = [(row["condition"], row["seed"], row["status"]) for row in csv.DictReader(file)]
    assert rows == [("none", "1", "running elsewhere"), ("circular", "1", "running elsewhere")]


def test_a_job_that_runs_elsewhere_with_other_settings_is_refused(collection: Path, tmp_path: Path) -> None:
    config = composed(collection, tmp_path / "out", "experiment.seeds=[1]")
    folder = tmp_path / "out" / "vn_connectivity"
    place = folder / "jobs" / "none-seed1"
    place.mkdir(parents=True)
    (place / "key").write_text("of other settings")
    with locked(place / LOCK), pytest.raises(ConfigError, match=r"none-seed1 is running .* experiment\.name=NAME"):
        run(config, "command")
    with (folder / "results.csv").open(newline="") as file:
        rows = [(row["condition"], row["status"]) for row in csv.DictReader(file)]
    assert rows == [("none", "running elsewhere"), ("circular", "done")]
    assert run(config, "command").failed == 0
    assert (place / "result.json").exists()


def test_a_job_whose_other_process_ends_while_it_is_asked_for_is_run(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The other process leaves a result of other settings between the attempt at the job and the end of the run."""
    config = composed(collection, tmp_path / "out", "experiment.seeds=[1]", "job=1/2")
    place = tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1"
    place.mkdir(parents=True)
    (place / "key").write_text("of other settings")
    with ExitStack() as other:
        other.enter_context(locked(place / LOCK))

        def run_then_end(*given: Any) -> Outcome:
            outcome = run_job(*given)
            if outcome is Outcome.ELSEWHERE:
                (place / "result.json").write_text('{"key": "of other settings"}')
                other.close()
            return outcome

        monkeypatch.setattr("experiments.job.run_job", run_then_end)
        ended = run(config, "command")
    assert "none, seed 1" not in ended.table
    assert (place.parents[1] / "earlier" / "none-seed1-of other settings").is_dir()


def test_the_key_of_an_unfinished_job_of_other_settings_goes_before_its_files(
    collection: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process with equal settings would take it for the key of the job that runs, and be refused."""
    place = tmp_path / "out" / "vn_connectivity" / "jobs" / "none-seed1"
    place.mkdir(parents=True)
    (place / "key").write_text("of other settings")
    for number in range(50):  # files are listed in any order
        (place / f"index-{number}").mkdir()
    keys: list[bool] = []
    remove = shutil.rmtree

    def rmtree(path: Path, **options: Any) -> None:
        keys.extend((place / "key").exists() for _ in Path(path).parent.glob("index-*"))
        remove(path, **options)

    monkeypatch.setattr("experiments.job_folder.shutil.rmtree", rmtree)
    run(composed(collection, tmp_path / "out", "experiment.seeds=[1]", "job=1/2"), "command")
    assert keys
    assert not any(keys)


def _plan_others(folder: Path) -> Callable[..., Outcome]:
    def run_job(job: Job, *_: Any) -> Outcome:
        plan = json.loads((folder / "experiment.json").read_text())
        (folder / "experiment.json").write_text(json.dumps({**plan, "seeds": [7]}))
        return Outcome.ELSEWHERE

    return run_job


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("graph.connectivity=ring", "connectivity is 'ring'; give one of none, sequential"),
        ("data.regime=all", "data.regime=all is not one of full, judged, mini"),
        ("track=texts", "track=texts is not known"),
        ("train.min_learning_rate=1", "train.min_learning_rate=1.0 must lie between"),
        ("graph.parser=none", "graph.parser=none is unknown"),
        ("retrieval.strategy=best", "unknown strategy 'best'"),
        ("index.backend=lucene", "unknown backend 'lucene'; choose from: exact, approximate, qdrant"),
        ("index=exact index.location=embedded", "location=embedded belongs to the backend qdrant"),
        ("index=exact retrieval.exact=false", "exact cannot do approximate maxsim"),
        ("train.device=cuda:99", "train.device=cuda:99"),
        ("train.batch_size=4000", "train.batch_size=4000 is larger than the training set of 37 pairs"),
        ("train.validation_fraction=0.001", "fraction=[0-9.]+, or use track=bm25, which trains no"),
        ("experiment.tasks=[3]", r"experiment.tasks=\[3\] is not one of"),
        ("experiment.tasks=[2]", "but collection jsonl has no topics of Task 2"),
        (
            "experiment.example.topic=T.99",
            "experiment.example.topic=T.99 is no topic of this collection; did you mean T.9",
        ),
        ("experiment.example.post=a99", "experiment.example.post=a99 is no post of this collection"),
        ("retrieval.k=0", "retrieval.k=0 must be at least 1"),
        ("graph.structure=none retrieval.strategy=single_vector", "have no document vector"),
        ("workers=0", "workers=0 must be at least 1"),
    ],
)
def test_values_that_are_none_are_refused_before_anything_is_built(
    collection: Path, tmp_path: Path, override: str, message: str
) -> None:
    with pytest.raises(MathAMRError, match=message):
        run(composed(collection, tmp_path / "out", *override.split(), conditions={"none": {}}), "command")
    assert built(tmp_path / "out") == set()


def test_what_a_condition_gets_wrong_is_said_once_before_anything_is_built(collection: Path, tmp_path: Path) -> None:
    conditions = {"none": {}, "huge": {"train": {"batch_size": 4000}}}
    with pytest.raises(ConfigError, match=r"condition huge: train\.batch_size=4000 is larger than the training set"):
        run(composed(collection, tmp_path / "out", conditions=conditions), "command")
    assert built(tmp_path / "out") == set()


def test_a_missing_root_names_the_key(tmp_path: Path) -> None:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", ["+exp=vn_connectivity", "data=arqmath"])
    with pytest.raises(ConfigError, match=r"data\.root has no value"):
        validated(config)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["+exp=vn_connectivity", "graph.conectivity=none"], "conectivity"),
        (["+exp=vn_connectivty"], "vn_connectivty"),
        ([], "add +exp=NAME"),
        (["+exp=vn_connectivity", "train.epochs=many"], "many"),
        (
            ["+exp=vn_connectivity", "train.seed=7"],
            "train.seed=7 has no effect: each job has a seed of experiment.seeds",
        ),
        (["+exp=vn_connectivity", "+train.epocs=3"], "train.epocs is not a setting; did you mean train.epochs?"),
        (["+exp=vn_connectivity", "graph.connectivity=sequental"], "connectivity is 'sequental'"),
    ],
)
def test_the_command_line_names_what_is_wrong(
    collection: Path, arguments: list[str], message: str, tmp_path: Path
) -> None:
    data = ["data=jsonl", f"data.root={collection}", f"outputs={tmp_path}"]
    result = start_experiment(tmp_path, *data, *arguments).ended()
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_collection_of_task_2_alone_names_the_setting(collection: Path, tmp_path: Path) -> None:
    (collection / "topics.jsonl").unlink()
    (collection / "topics2.jsonl").write_text('{"topic_id": "F1", "body": "$2k$", "formula_id": "F1:0"}\n')
    with pytest.raises(ConfigError, match=r"topics of Task 2 only; write 'experiment\.tasks=\[2\]'"):
        run(composed(collection, tmp_path / "out", conditions={"none": {"track": "bm25"}}), "command")
