"""Submission files: written from a job, checked against the collection, and broken ones named by file and line."""

import json
import shutil
from pathlib import Path

import pytest

from experiments import submissions
from graphs.corpus.files import FormulaFiles
from graphs.corpus.jsonl import JsonLines
from mathamr.evaluation.runs import Hit, Run, write_run
from scripts import submit

POSTS = [
    {"post_id": "q1", "kind": "question", "markup": "text", "title": "Rings", "body": "Is $x^2$ a ring?"},
    {"post_id": "a1", "kind": "answer", "markup": "text", "body": "No: $x$ and $y$.", "parent_id": "q1"},
    {"post_id": "a2", "kind": "answer", "markup": "text", "body": "Yes, if $x=y$.", "parent_id": "q1"},
]


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    root = tmp_path / "data"
    root.mkdir()
    topics = [{"post_id": "T.1", "body": "What is $x$?"}, {"post_id": "T.2", "body": "Why?"}]
    topics2 = [{"post_id": "F.1", "body": "Where is $x$?", "formula_id": "F.1:0"}]
    for name, rows in (("posts", POSTS), ("topics", topics), ("topics2", topics2)):
        (root / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    (root / "qrels.tsv").write_text("T.1\t0\ta1\t3\nT.1\t0\ta2\t0\nT.2\t0\ta2\t2\n")
    (root / "qrels2.tsv").write_text("F.1\t0\tv1\t3\n")
    (root / "visual.tsv").write_text("id\tvisual_id\na1:0\tv1\nq1:0\tv2\n")
    return root


@pytest.fixture
def experiment(collection: Path, tmp_path: Path) -> Path:
    """Two finished jobs, the second with the better held-out pairs, and one that was never run."""
    folder = tmp_path / "out" / "arqmath3_benchmark"
    command = f"python -m experiments.run +exp=arqmath3_benchmark data=jsonl data.root={collection}"
    plan = {"name": "arqmath3_benchmark", "title": "Benchmark", "command": command, "baseline": "mathamr_plus"}
    plan |= {"conditions": ["mathamr_plus"], "seeds": [1, 2, 3], "tasks": [1, 2]}
    folder.mkdir(parents=True)
    (folder / "experiment.json").write_text(json.dumps(plan))
    for seed, mrr in ((1, 0.3), (2, 0.4)):
        job = folder / "jobs" / f"mathamr_plus-seed{seed}"
        job.mkdir(parents=True)
        result = {"key": "k", "best_val_mrr": mrr, "ndcg_prime": 0.9 - mrr, "regime": "judged"}
        (job / "result.json").write_text(json.dumps(result))
        write_run(Run.from_results("job", {"T.1": [("a1", 0.5 + seed), ("a2", 0.5)]}), job / "run.tsv")
        hits = [Hit("a1:0", 0.9, "a1"), Hit("q1:0", 0.9, "q1")]
        write_run(Run.from_results("job", {"F.1": hits}, task=2), job / "run-task2.tsv")
    return folder


def arguments(experiment: Path, out: Path, *more: str) -> list[str]:
    return [str(experiment), "--team", "Lab", "--run", "plus", "--out", str(out), *more]


def test_own_measures_are_named(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    plan = json.loads((experiment / "experiment.json").read_text())
    (experiment / "experiment.json").write_text(json.dumps(plan | {"measures": {"mrr": "MRR"}}))
    result = experiment / "jobs" / "mathamr_plus-seed2" / "result.json"
    result.write_text(json.dumps(json.loads(result.read_text()) | {"mrr": 0.25}))
    submit.main(arguments(experiment, tmp_path / "submission"))
    assert "seed 2 (regime judged: MRR 0.2500)" in capsys.readouterr().out


def test_both_files_of_the_job_with_the_best_held_out_pairs(
    experiment: Path, collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "submission"
    scored = ["--qrels", str(collection / "qrels.tsv"), str(collection / "qrels2.tsv")]
    scored += ["--visual-ids", str(collection / "visual.tsv")]
    assert submit.main(arguments(experiment, out, *scored)) == 0
    assert sorted(path.name for path in out.iterdir()) == [
        "Lab-task1-plus-auto-both-P.tsv",
        "Lab-task2-plus-auto-both-P.tsv",
    ]
    lines = (out / "Lab-task1-plus-auto-both-P.tsv").read_text().splitlines()
    assert lines == ["T.1\ta1\t1\t2.5\tplus", "T.1\ta2\t2\t0.5\tplus"]
    assert (out / "Lab-task2-plus-auto-both-P.tsv").read_text().startswith("F.1\tq1:0\tq1\t1\t0.9\tplus\n")
    printed = capsys.readouterr().out
    assert "mathamr_plus, seed 2 (regime judged: nDCG' 0.5000)" in printed
    assert "Task 1, 2 results for 1 topic: valid" in printed
    assert "topics without a result, which score 0 (1): T.2" in printed
    assert "all judgments, regime full: nDCG' 0.5000, MAP' 0.5000, P'@10 0.0500, Bpref 0.5000 (2 topics)" in printed
    assert "nDCG' 1.0000, MAP' 1.0000, P'@10 0.1000" in printed
    assert submit.main(arguments(experiment, out, *scored, "--json")) == 0
    content = json.loads(capsys.readouterr().out)
    assert content["job"] == "mathamr_plus-seed2"
    first, second = content["files"]
    assert [first["task"], first["valid"], first["missing_topics"]] == [1, True, ["T.2"]]
    assert [second["task"], second["valid"], second["missing_topics"]] == [2, True, []]
    assert first["scores"] == {"nDCG'": 0.5, "MAP'": 0.5, "P'@10": 0.05, "Bpref": 0.5, "topics": 2}
    assert submit.main(["--check", str(out / "Lab-task1-plus-auto-both-P.tsv")]) == 0
    assert "not looked up (give --corpus)" in capsys.readouterr().out


def test_jobs_without_held_out_pairs_are_chosen_by_name(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = json.loads((experiment / "experiment.json").read_text())
    (experiment / "experiment.json").write_text(json.dumps({**plan, "conditions": ["bm25", "mathamr_plus"]}))
    shutil.copytree(experiment / "jobs" / "mathamr_plus-seed1", experiment / "jobs" / "bm25-seed1")
    result = {"key": "words", "ndcg_prime": 0.9, "regime": "judged"}
    (experiment / "jobs" / "bm25-seed1" / "result.json").write_text(json.dumps(result))
    out = tmp_path / "submission"
    assert submit.main(arguments(experiment, out)) == 0
    printed = capsys.readouterr().out
    assert "mathamr_plus, seed 2 (" in printed
    assert "not considered, because they rank no held-out training pairs: bm25; --job names one" in printed
    assert submit.main(arguments(experiment, out, "--job", "bm25-seed1")) == 0
    assert "not considered" not in capsys.readouterr().out
    for place in experiment.glob("jobs/mathamr_plus-*"):
        (place / "result.json").write_text(json.dumps({**result, "key": place.name}))
    assert submit.main(arguments(experiment, out)) == 2
    assert "so none is the best; name one with --job CONDITION-seedN, e.g. --job bm25-seed1" in capsys.readouterr().err
    for place in experiment.glob("jobs/mathamr_plus-*"):
        shutil.rmtree(place)
    assert submit.main(arguments(experiment, out)) == 0  # the only result


def test_a_named_job_as_an_alternate_run(experiment: Path, tmp_path: Path) -> None:
    out = tmp_path / "submission"
    assert submit.main(arguments(experiment, out, "--job", "mathamr_plus-seed1", "--alternate")) == 0
    assert (out / "Lab-task1-plus-auto-both-A.tsv").read_text().startswith("T.1\ta1\t1\t1.5\tplus\n")


def test_ids_that_the_collection_lacks_are_named_by_line(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    one, two = tmp_path / "one.tsv", tmp_path / "two.tsv"
    one.write_text("T.1\ta1\t1\t2\tme\nT.1\tq1\t2\t1\tme\nT.9\tnone\t1\t1\tme\n")
    two.write_text("F.1\ta1:1\ta1\t1\t2\tme\nF.1\ta1:7\ta1\t2\t1\tme\n")
    data = ["--corpus", "jsonl", "--root", str(collection)]
    assert submit.main(["--check", str(one), str(two), *data]) == 1
    printed = capsys.readouterr().out
    for line in (
        f"{one}:2: post q1 is a question; Task 1 finds answers",
        f"{one}:3: topic T.9 is not one of the task's topics",
        f"{one}:3: post none is not in the collection",
        f"{two}:2: post a1 has no formula a1:7",
        f"{two}: Task 2, 2 results for 1 topic: 1 problem",
    ):
        assert line in printed
    assert "the labs name files TEAM-task1-RUN-auto-both-P.tsv" in printed


def test_formulas_without_an_id_of_the_collection_are_left_out(
    experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(JsonLines, "formulas", lambda self: FormulaFiles((), (), (), ()))
    for seed in (1, 2):
        hits = [Hit("17", 0.9, "a1"), Hit("a1:0", 0.8, "a1"), Hit("18", 0.7, "q1")]
        path = experiment / f"jobs/mathamr_plus-seed{seed}/run-task2.tsv"
        write_run(Run.from_results("job", {"F.1": hits}, task=2), path)
    submit.main(arguments(experiment, tmp_path / "submission"))
    assert "left out, because their formulas have no id in the collection: 1 result\n" in capsys.readouterr().out
    written = (tmp_path / "submission/Lab-task2-plus-auto-both-P.tsv").read_text().splitlines()
    assert [line.split("\t")[1:4] for line in written] == [["17", "a1", "1"], ["18", "q1", "2"]]


def test_judgments_with_other_ids_are_named_instead_of_a_score_of_0(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path, qrels = tmp_path / "run.tsv", tmp_path / "qrels.tsv"
    path.write_text("F.1\ta1:0\ta1\t1\t2\tme\n")
    command = ["--check", str(path), "--qrels", str(qrels), "--visual-ids", str(collection / "visual.tsv")]
    qrels.write_text("F.1\t0\tother\t3\n")
    assert submit.main(command) == 0
    assert "no scores: no result is judged" in capsys.readouterr().out
    qrels.write_text("F.1\t0\ta1:0\t3\n")  # by formula id
    assert submit.main(command) == 0
    printed = capsys.readouterr().out
    assert "  judgments by formula id are converted to visual ids: 1\n" in printed
    assert "nDCG' 1.0000" in printed


def test_a_judged_topic_without_a_result_scores_0_and_other_judgments_do_not_count(
    collection: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """T.2 is judged beside T.1; F.1 is judged in another file, that of another task."""
    path = tmp_path / "run.tsv"
    path.write_text("T.1\ta1\t1\t2\tme\n")
    qrels = [str(collection / "qrels.tsv"), str(collection / "qrels2.tsv")]
    assert submit.main(["--check", str(path), "--qrels", *qrels]) == 0
    assert "nDCG' 0.5000, MAP' 0.5000, P'@10 0.0500, Bpref 0.5000 (2 topics)" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("rm -rf data", "which is not one of experiments.run"),
        ("python -m experiments.run 'data=jsonl", "which is not one of experiments.run"),
        ("python -m experiments.run +exp=nothing", "conf/exp has no nothing.yaml"),
        (
            "python -m experiments.run --multirun",
            "names the command 'python -m experiments.run --multirun': '--multirun'",
        ),
    ],
)
def test_a_plan_with_a_command_that_cannot_be_read(
    experiment: Path, tmp_path: Path, command: str, message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    plan = json.loads((experiment / "experiment.json").read_text())
    (experiment / "experiment.json").write_text(json.dumps({**plan, "command": command}))
    assert submit.main(arguments(experiment, tmp_path / "submission")) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "submission").exists()


def test_many_problems_of_a_kind_are_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "run.tsv"
    path.write_text("".join(f"T.1\tp{n}\t7\t{-n}\tme\n" for n in range(30)) + "broken\n")
    qrels = tmp_path / "qrels.tsv"
    qrels.write_text("T.1\t0\tp1\t2\n")
    assert submit.main(["--check", str(path), "--qrels", str(qrels)]) == 1
    printed = capsys.readouterr().out
    assert printed.count("should be") == submissions.SHOWN
    assert "and 24 more of kind rank" in printed
    assert "no scores: there are lines that cannot be read" in printed


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (["--job", "mathamr_plus-seed3"], "job=mathamr_plus-seed3 is not among the finished ones: mathamr_plus-seed1"),
        (["--run", "my run"], "is no valid file name"),
        (["--team", "../up"], "is no valid file name"),
        (["--root", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_submitted(
    experiment: Path, tmp_path: Path, change: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert submit.main(arguments(experiment, tmp_path / "submission", *change)) == 2
    assert message in capsys.readouterr().err


def test_an_experiment_without_results(experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for path in experiment.glob("jobs/*/result.json"):
        path.unlink()
    assert submit.main(arguments(experiment, tmp_path)) == 2
    assert "no job of arqmath3_benchmark is finished; run it: python -m experiments.run" in capsys.readouterr().err
    assert submit.main(arguments(tmp_path / "data", tmp_path)) == 2
    assert "no experiment.json here" in capsys.readouterr().err


@pytest.mark.parametrize(
    "given",
    [
        [],
        ["out", "--check", "file"],
        ["out"],
        ["out", "--team", "x", "--run", "y", "--out", "z", "--corpus", "jsonl"],
        ["--check", "file", "--years", "2022"],
        ["--check", "file", "--root", "nowhere"],
    ],
)
def test_arguments_that_do_not_go_together(given: list[str]) -> None:
    with pytest.raises(SystemExit):
        submit.main(given)


def test_hostile_files_end_with_a_message(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    empty, binary, trec = (tmp_path / name for name in ("empty.tsv", "binary.tsv", "trec.tsv"))
    empty.touch()
    binary.write_bytes(bytes(range(256)) * 500)
    trec.write_text("T.1\tQ0\ta1\t1\t2\tme\n")
    for path, message in ((empty, "is empty"), (binary, f"{binary}:1:"), (trec, "TREC's form"), (tmp_path, "cannot")):
        assert submit.main(["--check", str(path)]) == 2
        assert message in capsys.readouterr().err
    assert submit.main(["--check", str(binary), "--task", "1"]) == 1
    assert f"{binary}:2: is not UTF-8" in capsys.readouterr().out
