"""The main job on a small made-up collection: posts in, a table out; finished jobs rest; bad input is answered."""

import csv
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.config import register, validated
from experiments.run import run
from graphs.collection import Collection
from graphs.errors import ConfigError, MathAMRError
from mathamr.evaluation.metrics import evaluate
from mathamr.evaluation.runs import qrels_of, read_run

ROOT = Path(__file__).resolve().parents[2]
SUBJECTS = ("ring", "group", "field", "lattice", "module", "category", "sheaf", "graph", "tree", "matroid")
FORMULAS = ("x^2+1", r"\frac{a}{b}", r"\sum_{i=1}^n i", "f(x)=0", r"A \subset B")
TINY = [
    "data=jsonl",
    "model.hidden_dim=16",
    "model.projection_dim=8",
    "model.num_layers=2",
    "model.num_bases=4",
    "train.batch_size=8",
    "train.epochs=2",
    "train.device=cpu",
    "workers=1",
    "experiment.seeds=[1,2]",
]
TWO = {"none": {"graph": {"connectivity": "none"}}, "circular": {"graph": {"connectivity": "circular"}}}


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    posts: list[dict[str, Any]] = []
    for i, subject in enumerate(SUBJECTS * 4):
        formula = FORMULAS[i % 5]
        posts.append(
            {"post_id": f"q{i}", "kind": "question", "markup": "text", "title": f"When is a {subject} finite?"}
            | {"body": f"Let ${formula}$ be given. Is the {subject} number {i} finite?"}
        )
        posts.append(
            {"post_id": f"a{i}", "kind": "answer", "markup": "text", "parent_id": f"q{i}"}
            | {"body": f"The {subject} is finite if ${formula}$ holds. See $n={i}$."}
        )
    posts.append({"post_id": "empty", "kind": "answer", "markup": "text", "parent_id": "q0", "body": ""})
    lines = [json.dumps(post) for post in posts] + ['{"post_id": "broken", ']
    (root / "posts.jsonl").write_text("\n".join(lines) + "\n")
    topics = [
        {"post_id": f"T.{i}", "markup": "text", "title": f"Finite {subject}", "body": f"Is every {subject} finite?"}
        for i, subject in enumerate(SUBJECTS)
    ]
    (root / "topics.jsonl").write_text("".join(json.dumps(topic) + "\n" for topic in topics))
    answers = [(f"a{i}", subject) for i, subject in enumerate(SUBJECTS * 4)]
    (root / "qrels.tsv").write_text(
        "".join(
            f"T.{i}\t0\t{answer}\t{3 * (own == subject)}\n"
            for i, subject in enumerate(SUBJECTS)
            for answer, own in answers
        )
    )
    return root


def composed(collection: Path, outputs: Path, *overrides: str, conditions: dict[str, Any] = TWO) -> Any:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        places = [f"data.root={collection}", f"outputs={outputs}"]
        config = compose("config", ["+exp=vn_connectivity", *TINY, *places, *overrides])
    config.experiment.conditions = conditions
    return validated(config)


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
    for row in rows:
        assert float(row["ndcg_prime"]) > 0.3
        assert int(row["topics"]) == len(SUBJECTS)
        assert float(row["parameters"]) > 1000
        job = folder / "jobs" / f"{row['condition']}-seed{row['seed']}"
        judged = open_judgments(collection)
        again = evaluate(read_run(job / "run.tsv", task=1), judged)
        assert again.aggregate["map_prime"] == pytest.approx(float(row["map_prime"]))
        assert (job / "per_topic.csv").read_text().startswith("topic,ndcg_prime")
    assert "`the command`" in (folder / "report.md").read_text()

    shared = next((tmp_path / "out" / "shared").iterdir())
    with Collection(next(shared.glob("collection-*.db"))) as graphs:
        assert len(graphs) == 90
        reasons = {(failure.post_id, failure.kind) for failure in graphs.failures()}
        messages = [failure.message for failure in graphs.failures()]
    assert ("empty", "empty") in reasons
    assert len(reasons) == 2
    assert any(f"{collection / 'posts.jsonl'}:82" in message for message in messages)

    capsys.readouterr()
    stamps = {path: path.stat().st_mtime_ns for path in folder.glob("jobs/*/result.json")}
    assert run(config, "the command").table == table
    assert {path: path.stat().st_mtime_ns for path in folder.glob("jobs/*/result.json")} == stamps
    assert capsys.readouterr().err == "vn_connectivity: 4 jobs, 4 of them done already\n"


def open_judgments(collection: Path) -> dict[str, dict[str, int]]:
    from graphs.corpus.corpus import open_corpus

    return qrels_of(open_corpus("jsonl", collection).judgments(1, []))


def test_a_condition_that_fails_is_shown_and_the_others_stand(collection: Path, tmp_path: Path) -> None:
    conditions = {"none": {}, "huge": {"train": {"batch_size": 4000}}}
    outcome = run(composed(collection, tmp_path / "out", "experiment.seeds=[1]", conditions=conditions), "command")
    table = outcome.table
    assert outcome.failed == 1
    assert "huge, seed 1: failed: train.batch_size=4000 is larger than the training set" in table
    assert table.splitlines()[1].startswith("none")
    assert table.splitlines()[1].split()[-1] == "1"


def test_an_array_job_runs_only_its_part(collection: Path, tmp_path: Path) -> None:
    run(composed(collection, tmp_path / "out", "job=2/4"), "command")
    done = [path.parent.name for path in (tmp_path / "out" / "vn_connectivity").glob("jobs/*/result.json")]
    assert done == ["none-seed2"]


@pytest.mark.parametrize(
    ("override", "message"),
    [
        ("graph.connectivity=ring", "connectivity is 'ring'; give one of none, sequential"),
        ("data.regime=all", "data.regime=all is not one of full, judged, mini"),
        ("track=texts", "track=texts is not known"),
        ("train.min_learning_rate=1", "train.min_learning_rate=1.0 must lie between"),
        ("graph.parser=none", "graph.parser=none is not known"),
        ("retrieval.strategy=best", "strategy 'best' is not known"),
        ("index.backend=lucene", "backend 'lucene' is not known; there are exact, qdrant"),
        ("index.location=embedded", "location=embedded belongs to the backend qdrant"),
        ("retrieval.exact=false", "exact cannot do approximate maxsim"),
        ("index=qdrant retrieval.exact=false", "this qdrant index cannot do approximate maxsim"),
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
    assert not (tmp_path / "out" / "shared").exists()


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
        (["+exp=vn_connectivity", "+train.epocs=3"], "train.epocs is no setting; did you mean train.epochs?"),
        (["+exp=vn_connectivity", "graph.connectivity=sequental"], "connectivity is 'sequental'"),
    ],
)
def test_the_command_line_names_what_is_wrong(arguments: list[str], message: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "experiments.run", f"outputs={tmp_path}", *arguments]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert result.returncode != 0
    assert message in result.stderr
    assert "Traceback" not in result.stderr
