"""The tables say what the result files say, and a failed job is shown as failed."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from experiments import report
from experiments.plan import Job

TOPICS = 12


def job(condition: str, seed: int) -> Job:
    return Job(condition, seed, None, f"key-{condition}-{seed}")  # type: ignore[arg-type]


def finish(folder: Path, condition: str, seed: int, gain: float) -> None:
    place = folder / "jobs" / f"{condition}-seed{seed}"
    place.mkdir(parents=True)
    scores = dict.fromkeys(report.TITLES, 0.4 + gain)
    result: dict[str, Any] = {
        "condition": condition,
        "seed": seed,
        "key": f"key-{condition}-{seed}",
        **scores,
        "topics": TOPICS,
        "regime": "mini",
        "time_per_epoch_s": 10.0 + seed,
        "code": "abc",
        "machine": "x86_64, 2 cores",
        "finished": "2026-01-01T00:00:00+00:00",
    }
    (place / "result.json").write_text(json.dumps(result))
    with (place / "per_topic.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["topic", *report.TITLES])
        for topic in range(TOPICS):
            table.writerow([f"A.{topic}", *[f"{0.4 + gain + 0.01 * (topic % 3) * seed:.6f}"] * len(report.TITLES)])


@pytest.fixture
def experiment(tmp_path: Path) -> tuple[list[Job], Path]:
    for seed, gain in ((1, 0.0), (2, 0.02)):
        finish(tmp_path, "none", seed, gain)
        finish(tmp_path, "ring", seed, gain + 0.1)
    failed = tmp_path / "jobs" / "full-seed1"
    failed.mkdir(parents=True)
    (failed / "failed.json").write_text(json.dumps({"key": "key-full-1", "reason": "loss is not a number | at step 3"}))
    return [job(c, s) for c in ("none", "ring") for s in (1, 2)] + [job("full", 1), job("full", 2)], tmp_path


def test_means_and_deviations(experiment: tuple[list[Job], Path]) -> None:
    rows = report.rows_of(*experiment)
    table = report.mean_table(rows, report.summary_columns())
    assert table[0] == ["Condition", "nDCG'", "MAP'", "P'@10", "Bpref", "Time/epoch (s)", "Seeds"]
    # (0.40 + 0.42) / 2 and the sample deviation 0.02 / sqrt(2)
    assert table[1] == ["none", *["0.410 ± 0.014"] * 4, "11.5 ± 0.7", "2"]
    assert table[3] == ["full", *["–"] * 5, "0"]


def test_results_csv_has_a_row_for_each_job(experiment: tuple[list[Job], Path]) -> None:
    rows = report.rows_of(*experiment)
    report.write_csv(rows, experiment[1] / "results.csv")
    with (experiment[1] / "results.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [(row["condition"], row["seed"]) for row in read] == [(j.condition, str(j.seed)) for j in experiment[0]]
    assert read[0]["ndcg_prime"] == "0.4"
    assert read[4]["status"] == "failed: loss is not a number | at step 3"
    assert read[5]["status"] == "missing"


def test_the_report_tests_against_the_baseline_and_names_failures(experiment: tuple[list[Job], Path]) -> None:
    jobs, folder = experiment
    rows = report.rows_of(jobs, folder)
    report.write_report(rows, folder, title="Rings", command="run +exp=rings", baseline="none")
    text = (folder / "report.md").read_text()
    assert text.startswith("# Rings\n\n`run +exp=rings`\n")
    assert "| ring | nDCG' | +0.100* | [+0.100, +0.100] | < 0.001 | < 0.001 | < 0.001 |" in text
    assert "| ring | 2 | 0.520 |" in text  # the best seed
    assert "| full | 1 | failed: loss is not a number \\| at step 3 |" in text


def test_a_failure_of_another_configuration_is_not_this_jobs(experiment: tuple[list[Job], Path]) -> None:
    jobs, folder = experiment
    longer = Job("full", 1, None, "key-with-more-epochs")  # type: ignore[arg-type]
    assert [row["status"] for row in report.rows_of([jobs[4], longer], folder)] == [
        "failed: loss is not a number | at step 3",
        "missing",
    ]


def test_costs_that_no_job_has_are_no_column(experiment: tuple[list[Job], Path]) -> None:
    rows = report.rows_of(*experiment)
    report.write_report(rows, experiment[1], title="Rings", command="run", baseline="none")
    assert "Peak GPU memory" not in (experiment[1] / "report.md").read_text()
    rows[0]["peak_gpu_memory_bytes"] = 5.7e9
    report.write_report(rows, experiment[1], title="Rings", command="run", baseline="none")
    assert "| Peak GPU memory (GB) |" in (experiment[1] / "report.md").read_text()


def test_a_report_without_a_finished_job_is_still_written(tmp_path: Path) -> None:
    rows = report.rows_of([job("none", 1)], tmp_path)
    report.write_report(rows, tmp_path, title="Nothing", command="run", baseline="none")
    assert "| none | 1 | missing |" in (tmp_path / "report.md").read_text()
