"""Rows of tables: what is run, how it is judged, and what is said where data is missing."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser

from experiments.report import reproduction, results, thesis
from experiments.report.reproduction import judge, rows, table_names
from experiments.run import start
from graphs.corpus.download.published_files import published_files
from graphs.errors import ConfigError
from scripts import reproduce

SETTING = {"regime": "judged", "topics": 78, "train_pairs": 45000}


def leave(outputs: Path, row: reproduction.Expectation, **conditions: Any) -> None:
    """What a run would leave: for each condition the results of its seeds."""
    folder = reproduce.place_of(row, outputs) / row.experiment
    folder.mkdir(parents=True, exist_ok=True)
    seeds = max(len(found) for found in conditions.values())
    plan = {"name": row.experiment, "baseline": "none", "conditions": list(conditions), "seeds": list(range(seeds))}
    (folder / "experiment.json").write_text(json.dumps(plan))
    for condition, found in conditions.items():
        for seed, result in enumerate(found):
            job = folder / "jobs" / f"{condition}-seed{seed}"
            job.mkdir(parents=True, exist_ok=True)
            name = "failed.json" if "reason" in result else "result.json"
            (job / name).write_text(json.dumps({"key": "k", **result}))


def scored(ndcg: float, **more: Any) -> dict[str, Any]:
    return {"ndcg_prime": ndcg, "map_prime": 0.131, "p_prime_10": 0.212, "bpref": 0.229, **SETTING, **more}


def verdict(table: str, name: str, tmp_path: Path, **conditions: Any) -> reproduction.Verdict:
    row = next(row for row in rows(table) if row.name == name)
    leave(tmp_path, row, **conditions)
    return judge(row, results.read(reproduce.place_of(row, tmp_path) / row.experiment))


def test_every_table_of_the_thesis_has_its_rows() -> None:
    numbers = [table.number for name in thesis.all_tables() for table in thesis.tables(name)]
    assert [name for name in table_names() if name.startswith("4.")] == numbers
    for number in numbers:
        table = next(t for name in thesis.all_tables() for t in thesis.tables(name) if t.number == number)
        found = rows(number)
        assert {row.name: row.expected for row in found} == table.rows
        for row in found:
            assert row.tolerance > 0 or set(table.columns).isdisjoint(reproduction.SCORES)
            assert row.relative > 0 or set(table.columns) <= set(reproduction.SCORES)
            assert row.data.name == "arqmath"
    assert {row.table for row in rows("mini")} == {name for name in table_names() if name.startswith("mini-")}
    assert len(rows("all")) > len(numbers)


@pytest.mark.parametrize(
    ("ndcg", "status"), [(0.431, "ok"), (0.401, "ok"), (0.40, "drift"), (0.342, "drift"), (0.34, "fail")]
)
def test_the_best_seed_is_judged_by_its_distance(ndcg: float, status: str, tmp_path: Path) -> None:
    """Expected 0.431, tolerance 0.03, and half a printed digit."""
    found = verdict("4.10", "none", tmp_path, none=[scored(ndcg), scored(ndcg - 0.2)])
    assert found.status == status
    assert found.cells[0].measured == ndcg
    assert [cell.status for cell in found.cells[1:]] == ["ok"] * 3


def test_the_best_seed_of_task_2_is_that_of_its_own_score() -> None:
    row = replace(reproduction.rows("4.10")[0], task=2)
    done = [{"task2_ndcg_prime": 0.2, "task2_bpref": 0.9}, {"task2_ndcg_prime": 0.3, "task2_bpref": 0.1}]
    assert reproduction._statistic(row, done, "task2_bpref") == 0.1


def test_means_are_over_seeds(tmp_path: Path) -> None:
    found = verdict("4.11", "none", tmp_path, none=[scored(0.40), scored(0.44)])
    assert found.cells[0].measured == pytest.approx(0.42)
    assert str(found.cells[0]) == "nDCG' 0.420 (0.421 ± 0.008)"


@pytest.mark.parametrize(("seconds", "status"), [(139, "ok"), (115, "ok"), (90, "drift"), (50, "fail")])
def test_times_are_judged_by_their_ratio_to_the_baseline(seconds: float, status: str, tmp_path: Path) -> None:
    """In the thesis fully connected edges take 1.385 times as long, and 1.281 times the memory."""
    memory = {"peak_gpu_memory_bytes": 5e9}
    base = [scored(0.4, time_per_epoch_s=100.0, **memory)]
    more = [scored(0.4, time_per_epoch_s=seconds, peak_gpu_memory_bytes=6.4e9)]
    assert verdict("4.12", "fully_connected", tmp_path, none=base, fully_connected=more).status == status
    assert verdict("4.12", "none", tmp_path, none=base, fully_connected=more).status == "measured"


def test_what_has_not_been_seen_is_measured(tmp_path: Path) -> None:
    entry = {"experiment": "arqmath3_benchmark", "arguments": [], "data": "arqmath-mini", "expected": "unknown"}
    for task, prefix in ((1, ""), (2, "task2_")):
        (row,) = reproduction._rows("unseen", entry | {"task": task})
        leave(tmp_path, row, mathamr_plus=[{f"{prefix}{k}": v for k, v in scored(0.5).items()}])
        found = judge(row, results.read(reproduce.place_of(row, tmp_path) / row.experiment))
        assert (found.status, len(found.cells)) == ("measured", 4)
        assert found.cells[0].measured == 0.5


@pytest.mark.parametrize(
    ("conditions", "reason"),
    [
        ({"none": [{"reason": "out of memory"}]}, "failed: out of memory"),
        ({"none": [scored(0.4), {"reason": "out of memory"}]}, "failed: out of memory"),
        ({"sequential": [scored(0.4)]}, "vn_connectivity has no condition"),
        ({"none": [{**scored(0.4), "train_pairs": 2576}]}, "train_pairs is 2576, in the thesis 45000"),
        (
            {"none": [{**scored(0.4), "regime": "mini", "topics": 104}]},
            "topics is 104, in the thesis 78; regime is mini",
        ),
        ({"none": [SETTING | {"map_prime": 0.1, "ndcg_prime": 0.43}]}, "no result has the column p_prime_10"),
    ],
)
def test_a_row_without_a_comparable_result_fails(conditions: Any, reason: str, tmp_path: Path) -> None:
    found = verdict("4.10", "none", tmp_path, **conditions)
    assert found.status == "fail"
    assert reason in found.reason


def test_a_published_tree_is_enough_for_the_thesis_tables(tmp_path: Path) -> None:
    data = rows("4.11")[0].data
    assert data.missing(tmp_path) == list(data.files)
    for file in published_files(["collection", "formulas", "topics", "qrels"]):
        path = tmp_path / file.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    assert data.missing(tmp_path) == []


def test_rows_without_data_say_what_to_get(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.delenv("ARQMATH", raising=False)
    assert reproduce.main(["4.10", "--outputs", str(tmp_path)]) == 2
    printed = capsys.readouterr().out
    assert printed.count("no data") == 4
    assert "ARQMATH is not set; its folder needs Posts*" in printed
    assert "mathamr data get arqmath --to FOLDER" in " ".join(printed.split())
    assert "mathamr collection import" in " ".join(printed.split())
    (tmp_path / "data").mkdir()
    for name in ("Posts.V1.3.xml", "PostLinks.V1.3.xml"):
        (tmp_path / "data" / name).touch()
    monkeypatch.setenv("ARQMATH", str(tmp_path / "data"))
    assert reproduce.main(["4.10", "--outputs", str(tmp_path)]) == 2
    printed = " ".join(capsys.readouterr().out.split())
    assert f"ARQMATH={tmp_path / 'data'} has no latex_representation_v3*" in printed


def test_a_table_is_run_once_and_its_rows_are_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    commands = []

    def pretend(command: list[str]) -> None:
        commands.append(command)
        good = {"ndcg_prime": 0.70, "map_prime": 0.51, "p_prime_10": 0.266, "bpref": 0.365}
        bad = good | {"ndcg_prime": 0.66}
        leave(tmp_path, mini[0], none=[good], sequential=[good], circular=[bad], fully_connected=[{"reason": "killed"}])

    mini = [replace(row, data=reproduction.Data("arqmath-mini", "a part")) for row in rows("mini-4.11")]
    monkeypatch.setattr(reproduce, "_run", pretend)
    assert reproduce.reproduce(mini, tmp_path, ["workers=4"]) == 1
    lines = [line.split()[1:3] for line in capsys.readouterr().out.splitlines() if line.startswith("mini")]
    assert lines == [["none", "ok"], ["sequential", "ok"], ["circular", "drift"], ["fully_connected", "fail"]]
    ((*_, only, setting),) = commands
    assert reproduce.reproduce(mini, tmp_path, ["workers=4"], as_json=True) == 1
    objects = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["status"] for one in objects] == ["ok", "ok", "drift", "fail"]
    assert objects[0]["measured"]["nDCG'"] == 0.70
    assert objects[3]["reason"] == "failed: killed"
    assert only == "experiment.only=[none,sequential,circular,fully_connected]"
    assert setting == "workers=4"


def test_the_list_tells_commands(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ARQMATH_MINI", raising=False)
    assert reproduce.main(["mini-4.11", "--list"]) == 0
    printed = capsys.readouterr().out
    assert reproduce.main(["mini-4.11", "--list", "--json"]) == 0
    listed = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [one["status"] for one in listed] == ["no data"] * 4
    assert listed[2]["expected"]["nDCG'"] == 0.691
    assert "circular: mean, nDCG' 0.691 ± 0.005, MAP' 0.506 ± 0.009, P'@10 0.267 ± 0.007, Bpref 0.361" in printed
    assert "seen in commit 680aedf" in printed
    command = "python -m experiments.run +exp=vn_connectivity data=arqmath train.epochs=3 'experiment.seeds=[42,43,44]'"
    assert command in printed
    assert "needs arqmath-mini, not there: Posts*" in printed


def test_folders_of_any_name_reach_hydra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ARQMATH_MINI", "/tmp/mäth")
    words = reproduce.command_of(rows("mini-4.11")[0], Path("/tmp/a(b, 'c'"))
    read = {one.key_or_group: one.value() for one in OverridesParser.create().parse_overrides(words[3:])}
    assert read["data.root"] == "/tmp/mäth"
    assert read["outputs"] == "/tmp/a(b, 'c'/arqmath-mini"


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (["4.18"], "Unknown table 4.18. Choose from"),
        (["4.18"], "docs-4.11, mini, docs, all"),
        (["4.1"], "Unknown table 4.1. Choose from"),
        (["4.10", "train.epochs=1"], "train.epochs=1 would change what is reproduced"),
    ],
)
def test_what_cannot_be_reproduced(given: list[str], message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert reproduce.main(given) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({"experiment": "vn_connectivity", "arguments": [], "data": "mathdocs"}, "expected is missing"),
        ({"experiment": "vn_connectivity", "arguments": [], "data": "moon", "expected": "unknown"}, "data moon"),
        ({"experiment": "trial", "arguments": [], "data": "mathdocs", "expected": "thesis"}, "no such table of trial"),
        ({"experiment": "trial", "arguments": [], "data": "mathdocs", "expected": "unknown", "seeds": 3}, "seeds is"),
    ],
)
def test_an_entry_that_is_not_complete_is_named(
    entry: dict[str, Any], message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reproduction, "_content", lambda: {"tables": {"t": entry}, "data": {"mathdocs": {"about": ""}}})
    with pytest.raises(ConfigError, match=message):
        rows("t")


def test_an_experiment_that_cannot_start_ends_with_its_command(tmp_path: Path) -> None:
    wrong = ["python", "-m", "experiments.run", "+exp=trial", "data=arqmath", f"outputs={tmp_path}"]
    with pytest.raises(ConfigError, match=r"ended with exit code 2: python -m experiments.run \+exp=trial"):
        reproduce._run(wrong)


@pytest.mark.slow
def test_rows_are_run_and_judged(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """On a made-up collection. The command runs in this process; the test above starts one."""
    root = tmp_path / "data"
    root.mkdir()
    posts, judged = [], []
    for i in range(20):
        posts.append({"post_id": f"q{i}", "kind": "question", "markup": "text", "body": f"Is $x^{i}$ odd?"})
        posts.append({"post_id": f"a{i}", "kind": "answer", "markup": "text", "body": "Yes.", "parent_id": f"q{i}"})
        judged.append(f"T.1\t0\ta{i}\t{3 * (i % 2)}\n")
    (root / "posts.jsonl").write_text("".join(json.dumps(post) + "\n" for post in posts))
    (root / "topics.jsonl").write_text('{"post_id": "T.1", "body": "What is odd?"}\n')
    (root / "qrels.tsv").write_text("".join(judged))
    small = ["model.hidden_dim=8", "model.projection_dim=4", "model.num_bases=2", "train.epochs=1"]
    entry = {
        "experiment": "vn_structure",
        "arguments": ["data=jsonl", *small, "train.batch_size=4", "train.device=cpu", "experiment.seeds=[1]"],
        "data": "tiny",
        "tolerance": 1.0,
        "expected": {"none": {"nDCG'": "0.5"}, "full": {"nDCG'": "0.5"}},
    }
    data = {"about": "made up", "variable": "TINY", "files": ["posts.jsonl"]}
    monkeypatch.setattr(reproduction, "_content", lambda: {"tables": {"t": entry}, "data": {"tiny": data}})
    monkeypatch.setenv("TINY", str(root))

    def run(command: list[str]) -> None:
        assert command[:4] == ["python", "-m", "experiments.run", "+exp=vn_structure"]
        assert start(command[3:]) == 0

    monkeypatch.setattr(reproduce, "_run", run)
    assert reproduce.main(["t", "--outputs", str(tmp_path / "out"), "workers=1", "wandb=disabled"]) == 0
    printed = [line.split()[:3] for line in capsys.readouterr().out.splitlines() if line.startswith("t ")]
    assert printed == [["t", "none", "ok"], ["t", "full", "ok"]]
    done = sorted(path.parent.name for path in (tmp_path / "out").glob("tiny/vn_structure/jobs/*/result.json"))
    assert done == ["full-seed1", "none-seed1"]
