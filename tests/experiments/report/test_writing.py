"""The tables say what the result files say; what is missing, broken or failed is named, and the rest stands."""

import csv
import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from experiments.report import learning_curves, results, tables, writing
from experiments.report.blocks import Figure, Folded, Table, Text, markdown
from experiments.report.learning_curves import epochs
from experiments.report.topic_scores import of_conditions
from graphs.errors import ConfigError, StoreError
from mathamr.evaluation import completeness
from mathamr.evaluation.result_names import ARQMATH
from tests.experiments.written_experiment import example, fail, finish, write_examples, write_log, write_plan


@pytest.fixture
def rings(tmp_path: Path) -> Path:
    folder = write_plan(tmp_path / "rings", ["none", "ring", "full"], [1, 2])
    for seed, gain in ((1, 0.0), (2, 0.02)):
        finish(folder, "none", seed, 0.4 + gain)
        finish(folder, "ring", seed, 0.5 + gain)
    fail(folder, "full", 1, "loss is not a number | at step 3")
    return folder


def written(folder: Path) -> str:
    """``report.md``; nothing is drawn."""
    return markdown(writing.report_of(results.join([results.read(folder)])[0]))


def test_means_and_deviations(rings: Path) -> None:
    columns = {"ndcg_prime": ("nDCG'", 1.0), "time_per_epoch_s": ("Time/epoch (s)", 1.0)}
    table = tables.mean_table(results.read(rings).rows, columns)
    assert table[0] == ["Condition", "nDCG'", "Time/epoch (s)", "Seeds"]
    # (0.40 + 0.42) / 2 and the sample deviation 0.02 / sqrt(2)
    assert table[1] == ["none", "0.410 ± 0.014", "11.5 ± 0.7", "2"]
    assert table[3] == ["full", "–", "–", "0"]


def test_the_report_counts_gains_and_names_the_last_job_and_what_a_condition_lacks(rings: Path) -> None:
    counts = dict.fromkeys(completeness.COLUMNS, 12) | {"topics_read": 10}
    finish(rings, "ring", 2, 0.52, finished="2026-02-01T00:00:00+00:00", **counts)
    text = written(rings)
    assert "ring against none: 12 better, 0 worse, 0 equal" in text
    assert "last job finished 2026-02-01" in text
    assert "Warning: Task 1: 2 of 12 topics could not be read and score 0 (ring)." in text
    finish(rings, "full", 1, 0.52, **counts)
    assert "could not be read and score 0 (ring; full)." in written(rings)


@pytest.mark.usefixtures("without_rendering")
def test_results_csv_has_a_row_for_each_job(rings: Path) -> None:
    writing.write([results.read(rings)], rings)
    with (rings / "results.csv").open(newline="") as file:
        read = list(csv.DictReader(file))
    assert [(row["condition"], row["seed"]) for row in read] == [(c, s) for c in ("none", "ring", "full") for s in "12"]
    assert read[0]["ndcg_prime"] == "0.4"
    assert read[4]["status"] == "failed: loss is not a number | at step 3"
    assert read[5]["status"] == "missing"


def test_the_report_tests_against_the_baseline_and_names_failures(rings: Path) -> None:
    text = written(rings)
    assert text.startswith("# Rings\n\n`python -m experiments.run +exp=rings`\n")
    assert "| ring | 0.510 ± 0.014* |" in text  # the star stands in the table of means
    assert "| none † | 0.410 ± 0.014 |" in text
    assert "| ring | nDCG' | +0.100* | [" in text
    assert "4 of 4 differences are significant" in text
    assert "| ring | 2 | 0.520* |" in text  # the best seed
    assert "chosen on the reported topics" in text
    assert "Without a result: 2 of 6 jobs" in text
    assert "| full | 1 | failed: loss is not a number \\| at step 3 |" in text
    assert "| full | 2 | missing |" in text
    assert "| full | failed, missing | – | – | – | 0 |" in text  # in place of its scores


def test_a_job_that_was_begun_is_unfinished(rings: Path) -> None:
    (rings / "jobs" / "full-seed2").mkdir()
    (rings / "jobs" / "full-seed2" / "key").write_text("key-full-2")
    assert "| full | 2 | unfinished |" in written(rings)


def test_what_another_configuration_left_does_not_count(rings: Path) -> None:
    keys = {f"{c}-seed{s}": f"key-{c}-{s}" for c in ("none", "ring", "full") for s in (1, 2)}
    write_plan(rings, ["none", "ring", "full"], [1, 2], keys=keys | {"ring-seed2": "more epochs", "full-seed1": "new"})
    status = {(row["condition"], row["seed"]): row["status"] for row in results.read(rings).rows}
    assert status["ring", 1] == "done"
    assert status["ring", 2] == status["full", 1] == "missing"


def test_one_seed_has_no_best_one(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1])
    finish(folder, "none", 1, 0.4)
    finish(folder, "ring", 1, 0.5)
    text = written(folder)
    assert "Best seed" not in text
    assert "## Results of one seed" in text
    assert "| ring | 0.500* |" in text


def test_copies_for_several_seeds_have_no_best_one(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2])
    for seed in (1, 2):
        finish(folder, "none", seed, 0.4, key="same")
        finish(folder, "ring", seed, 0.5, key="other")
    text = written(folder)
    assert "Best seed" not in text
    assert "## Results of one seed" in text
    assert "against the baseline, of one seed;" in text


def test_a_failed_baseline_leaves_the_others_standing(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2])
    fail(folder, "none", 1, "out of memory")
    finish(folder, "ring", 1, 0.5)
    finish(folder, "ring", 2, 0.5)
    text = written(folder)
    assert "No tests: the baseline has no result" in text
    assert "| none † | failed, missing | – |" in text
    assert "| done |" not in text  # the last table has the other jobs
    assert "| ring | 0.500 ± 0.000 |" in text


def test_nothing_to_compare_the_baseline_with(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1])
    finish(folder, "none", 1, 0.4)
    text = written(folder)
    assert "No tests: only the baseline has a result." in text
    assert "Differences by topic" not in text


def test_a_condition_that_was_not_run_is_named_without_a_row_of_dashes(tmp_path: Path) -> None:
    """``experiment.only`` leaves the others out."""
    folder = write_plan(tmp_path / "rings", ["none", "ring", "full"], [1, 2])
    for seed in (1, 2):
        finish(folder, "none", seed, 0.4)
        finish(folder, "ring", seed, 0.5)
    text = written(folder)
    assert "; not run: full." in text
    assert "| full | all | not run |" in text
    assert [line for line in text.splitlines() if line.startswith("| full")] == ["| full | all | not run |"]
    lines = tables.mean_table(results.read(folder).rows, {"ndcg_prime": ("nDCG'", 1.0)})
    assert [line[0] for line in lines] == ["Condition", "none", "ring"]
    write_plan(folder, ["none", "full", "star"], [1, 2], labels={"full": "Graph, full", "star": "Graph, star"})
    assert "; not run: Graph, full; Graph, star." in written(folder)


@pytest.mark.usefixtures("without_rendering")
def test_seeds_that_share_a_result_count_once(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2])
    for seed, score in ((1, 0.5), (2, 0.6)):
        finish(folder, "none", seed, 0.4, key="same")
        finish(folder, "ring", seed, score)
    found = results.read(folder)
    assert tables.mean_table(found.rows, {"ndcg_prime": ("nDCG'", 1.0)})[1:] == [
        ["none", "0.400", "1"],
        ["ring", "0.550 ± 0.071", "2"],
    ]
    writing.write([found], folder)
    means = (folder / "report.md").read_text().split("## Mean over seeds")[1]
    assert re.search(r"\| none † \|.* 0\.400 \|.* 1 \|\n\| ring \| 0\.550 ± 0\.071.* 2 \|", means)


def test_without_a_finished_job_the_report_says_so(tmp_path: Path) -> None:
    text = written(write_plan(tmp_path / "rings", ["none"], [1]))
    assert "No job has finished." in text
    assert "| none | 1 | missing |" in text


def test_older_jobs_have_fewer_files(tmp_path: Path) -> None:
    """Neither training records nor heat map nor examples: those parts are left out, the tables are there."""
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1])
    for condition in ("none", "ring"):
        finish(folder, condition, 1, 0.4, shown=False)
    text = written(folder)
    for title in ("Learning curves", "MaxSim between virtual nodes", "First results"):
        assert title not in text
    assert "## Efficiency" in text


@pytest.mark.parametrize("lacking", [("none", "ring"), ("ring",)])
@pytest.mark.parametrize("first", [True, False])
def test_a_measure_that_older_jobs_lack_is_left_out_of_the_tests_alone(
    tmp_path: Path, lacking: Sequence[str], first: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1])
    for condition, score in (("none", 0.4), ("ring", 0.5)):
        more: dict[str, Any] = {} if condition in lacking else {"rbp_prime": score}
        place = finish(folder, condition, 1, score, **more)
        if more:
            scores = (place / "per_topic.csv").read_text().replace(",bpref", ",rbp_prime")
            (place / "per_topic.csv").write_text(scores.replace("recall_1000", "bpref"))
    own = {"rbp_prime": "RBP'"}
    monkeypatch.setattr(results, "ARQMATH", own | ARQMATH if first else ARQMATH | own)
    text = written(folder)
    assert "4 of 4 differences are significant" in text
    assert "## Differences by topic" in text
    names = f"{' and '.join(lacking)} lack{'s' * (len(lacking) == 1)}"
    assert f"Not tested: RBP', which {names}: another version of the code has measured them." in text
    assert "remove the result.json of their jobs, and run again" in text


def test_a_broken_file_is_named_in_its_place(rings: Path) -> None:
    (rings / "jobs" / "ring-seed1" / "heat_map.json").write_text('{"topic": "A.1"}')
    (rings / "jobs" / "none-seed1" / "examples.json").write_text("[{")
    (rings / "jobs" / "none-seed2" / "per_topic.csv").write_text("topic,ndcg_prime\nA.1,high\n")
    text = written(rings)
    assert "Left out: " in text
    assert "heat_map.json: no heat map (KeyError('scores')); remove result.json and run again" in text
    assert "examples.json: not JSON" in text
    assert "No tests: " in text
    assert "| ring | 0.510 ± 0.014 |" in text  # without a star: nothing could be tested


@pytest.mark.parametrize(
    ("name", "content", "title", "why"),
    [
        ("weights.json", '{"a": 1}', "Learned weights", "no learned weights (KeyError('features'))"),
        ("weighting.json", "[1]", "Other weights of virtual nodes", "no scores of ways (AttributeError("),
        ("log.jsonl", '{"kind": "epoch"}', "Learning curves", "no records of epochs (KeyError('epoch'))"),
        (
            "log.jsonl",
            '{"kind": "epoch", "epoch": 0, "val_loss": [1]}',
            "Learning curves",
            "no records of epochs (TypeError(",
        ),
        ("log.jsonl", "[" * 100_000, "Learning curves", "no records of epochs (RecursionError("),
    ],
)
def test_a_file_of_another_form_leaves_out_its_part_alone(
    rings: Path, name: str, content: str, title: str, why: str
) -> None:
    path = rings / "jobs" / "ring-seed1" / name
    path.write_text(content)
    text = written(rings)
    assert f"## {title}\n\nLeft out: {path}: {why}" in text
    assert text.count("Left out: ") == 1
    assert "| ring | 0.510 ± 0.014* |" in text


def test_a_fault_of_the_program_is_no_damaged_file(
    rings: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def faulty(*_: object, **__: object) -> Table:
        raise KeyError("typo")

    monkeypatch.setattr(writing, "plain_table", faulty)
    text = written(rings)
    assert "## Efficiency\n\nLeft out: a fault of the program, or jobs of different versions (KeyError('typo'))" in text
    assert "| ring | 0.510 ± 0.014* |" in text
    assert 'raise KeyError("typo")' in capsys.readouterr().err


@pytest.mark.parametrize("value", ["fast", float("nan"), [1], 10**400])
def test_a_cost_that_is_no_number_leaves_out_costs_alone(rings: Path, value: object) -> None:
    finish(rings, "ring", 2, 0.52, time_per_epoch_s=value)
    text = written(rings)
    assert f"Left out: time_per_epoch_s of ring-seed2 is {value!r}, no number" in text
    assert text.count("Left out: ") == 1
    assert "| ring | 0.510 ± 0.014* |" in text
    columns = {"ndcg_prime": ("nDCG'", 1.0), "time_per_epoch_s": ("Time/epoch (s)", 1.0)}  # of the terminal's table
    table = tables.mean_table(results.read(rings).rows, columns)
    assert table[1:3] == [["none", "0.410 ± 0.014", "11.5 ± 0.7", "2"], ["ring", "0.510 ± 0.014", "–", "2"]]


def test_a_cost_that_is_no_number_has_no_value_in_tables_of_scores(tmp_path: Path) -> None:
    """The thesis's tables of this experiment have a cost beside the scores: QPS."""
    folder = write_plan(tmp_path / "retrieval_strategy", ["maxsim_hnsw", "single_vector_hnsw"], [1, 2])
    for seed, gain in ((1, 0.0), (2, 0.02)):
        finish(folder, "maxsim_hnsw", seed, 0.4 + gain)
        finish(folder, "single_vector_hnsw", seed, 0.5 + gain, queries_per_second="fast" if seed == 2 else 120.0)
    text = written(folder)
    means = text.split("## Mean over seeds")[1].split("##")[0]
    assert re.search(r"\n\| maxsim_hnsw † \| 0\.410 ± 0\.014 \|.*\| 120 \| 87\.2 ± 6\.7 \|\n", means)
    assert re.search(r"\n\| single_vector_hnsw \| 0\.510 ± 0\.014\* \|.*\| – \| 131\.7 ± 1\.4 \|\n", means)
    assert "differences are significant" in means
    assert text.count("Left out: queries_per_second of single_vector_hnsw-seed2 is 'fast', no number") == 1


def test_a_result_that_cannot_be_read_is_named(rings: Path) -> None:
    (rings / "jobs" / "ring-seed2" / "result.json").unlink()
    (rings / "jobs" / "ring-seed2" / "result.json").mkdir()
    text = written(rings)
    assert "| ring | 0.500* |" in text
    assert "result.json: cannot be read (Is a directory); remove it and run its job again" in text


def test_a_result_that_was_cut_short_is_named(rings: Path) -> None:
    (rings / "jobs" / "ring-seed2" / "result.json").write_text('{"key": "key-ri')
    text = written(rings)
    assert "| ring | 0.500* |" in text
    assert "result.json: not JSON" in text


def test_conditions_on_other_topics_are_not_tested(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1])
    finish(folder, "none", 1, 0.4, topics=["A.1", "A.2", "A.3"])
    finish(folder, "ring", 1, 0.5, topics=["A.1", "A.2", "A.4"])
    assert "No tests: 2 topics, e.g. " in written(folder)


def test_seeds_are_averaged_over_the_topics_that_all_of_them_have(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2])
    for seed, names in ((1, ["A.1", "A.2", "A.3"]), (2, ["A.1", "A.2", "A.4"])):
        finish(folder, "none", seed, 0.4, topics=names)
        finish(folder, "ring", seed, 0.5, topics=names)
    experiment = results.read(folder)
    assert list(of_conditions(experiment, 1)["ring"]["ndcg_prime"]) == ["A.1", "A.2"]
    assert "| ring | nDCG' | +0.100* |" in written(folder)


def test_jobs_of_different_graphs_are_named(tmp_path: Path) -> None:
    """A later report of the folder says it, too, not the terminal of one run alone."""
    folder = write_plan(tmp_path / "rings", ["none", "ring", "bm25"], [1])
    finish(folder, "none", 1, 0.4, source="configuration-graphs1-more")
    finish(folder, "bm25", 1, 0.4, source="words")
    finish(folder, "ring", 1, 0.5, source="other-graphs1-more")
    assert "different graphs" not in written(folder)
    finish(folder, "ring", 1, 0.5, source="configuration-graphs2-more")
    warning = "Warning: the jobs have different graphs (results.csv, column source: graphs1, graphs2); unless"
    assert warning in written(folder)


def test_a_condition_without_a_seed_of_its_baseline_is_named(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2])
    finish(folder, "none", 1, 0.4)
    finish(folder, "ring", 2, 0.5)
    assert "Warning: ring has seed 2 and its baseline none seed 1, so the difference" in written(folder)
    finish(folder, "ring", 1, 0.5)
    assert "its baseline none" not in written(folder)


def test_regimes_are_never_in_one_table(rings: Path) -> None:
    finish(rings, "full", 2, 0.4, regime="judged")
    with pytest.raises(ConfigError, match=r"rings: regime is mini in .*none-seed1 and judged in .*full-seed2"):
        written(rings)


def test_years_are_never_in_one_table(rings: Path) -> None:
    """Of equally many topics, too."""
    finish(rings, "full", 2, 0.4, years=[2022])
    with pytest.raises(ConfigError, match=r"years is \[2020, 2021\] in .*none-seed1 and \[2022\] in .*full-seed2"):
        written(rings)


@pytest.mark.parametrize("value", ["high", float("nan"), [0.5], True])
def test_a_score_that_is_no_number_is_named(rings: Path, value: object) -> None:
    finish(rings, "ring", 2, 0.5, bpref=value)
    text = written(rings)
    assert "| ring | 0.500* |" in text
    assert f"result.json: bpref is {value!r}; remove it and run its job again" in text


def test_a_result_of_endless_depth_is_named(rings: Path) -> None:
    (rings / "jobs" / "ring-seed2" / "result.json").write_text("[" * 100_000)
    assert "result.json: not JSON" in written(rings)


def test_costs_that_no_job_has_are_no_column(rings: Path) -> None:
    assert "Peak GPU memory" not in written(rings)
    finish(rings, "none", 1, 0.4, peak_gpu_memory_bytes=5.7e9)
    assert "| Peak GPU memory (GB) |" in written(rings)


def test_costs_and_parameters(rings: Path) -> None:
    text = written(rings)
    costs = "Time/epoch (s) | Pairs/s | Peak memory (GB) | Parameters (M) | Index (MB) | Vectors | Queries/s"
    assert f"| Condition | {costs} | Seeds |" in text
    assert "| none | 11.5 ± 0.7 | 90 | 2.500 | 1.987 | 7.814 | 60,325 | 120 | 2 |" in text
    assert "*Parameters by group*\n\n| Condition | encoder | Seeds |\n|---|---|---|\n| none | 1,987,361 | 2 |" in text
    assert "| ring | 1,987,361 | 2 |" in text
    for seed in (1, 2):
        finish(rings, "ring", seed, 0.5, parameters_encoder=None)
    assert "| ring | – | 2 |" not in written(rings)


def test_task_2_has_tables_and_tests_of_its_own(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none", "ring"], [1, 2], tasks=[1, 2])
    for seed in (1, 2):
        finish(folder, "none", seed, 0.4, tasks=(1, 2), task2_bpref=0.111)
        finish(folder, "ring", seed, 0.5, tasks=(1, 2), task2_bpref=0.222)
    text = written(folder)
    first, second = text.split("## Task 2: mean over seeds")
    assert "## Task 1: mean over seeds" in first
    assert "0.222" not in first
    assert "| ring | 0.500 ± 0.000* | 0.500 ± 0.000* | 0.500 ± 0.000* | 0.222 ± 0.000* |" in second
    assert second.count("4 of 4 differences") == 2


def test_conditions_with_baselines_of_their_own(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["a", "a_new", "b", "b_new"], [1], baselines={"b": "b", "b_new": "b"})
    for condition, score in (("a", 0.6), ("a_new", 0.7), ("b", 0.2), ("b_new", 0.1)):
        finish(folder, condition, 1, score)
    text = written(folder)
    assert "| b_new | b | nDCG' | -0.100* |" in text  # the test names its baseline
    assert "| b † |" in text
    assert "| b | b | nDCG' |" not in text  # a baseline is not tested against another
    assert "8 of 8 differences" in text


def chain(tmp_path: Path, conditions: list[str], scores: dict[str, float], **described: Any) -> Path:
    """Return the folder of an experiment in which full is compared with ring, and ring with none."""
    folder = write_plan(tmp_path / "rings", conditions, [1], baselines={"full": "ring", "star": "none"}, **described)
    for condition, score in scores.items():
        finish(folder, condition, 1, score)
    return folder


def test_in_a_chain_each_star_names_its_baseline(tmp_path: Path) -> None:
    scores = {"none": 0.4, "ring": 0.5, "full": 0.7}
    text = written(chain(tmp_path, list(scores), scores, topic_labels={"level": {"A.1": "easy", "A.2": "easy"}}))
    assert "| ring † | 0.500* |" in text
    assert "| full | 0.700* |" in text
    assert "† baseline; \\* p < 0.05 after Bonferroni's correction, each against its own baseline (table of" in text
    assert "| Condition | Against | Measure |" in text
    assert "| ring | none | nDCG' | +0.100* |" in text
    assert "| full | ring | nDCG' | +0.200* |" in text
    groups = text.split("## By groups of topics")[1]
    assert re.search(r"\| none † \| [\d.]+ \|  \|\n\| ring † \| [\d.]+ \| \+0\.\d+ \|\n\| full \|", groups)
    assert "difference to its own baseline (†; table of tests)" in groups


def test_without_the_root_of_a_chain_the_others_are_compared(tmp_path: Path) -> None:
    folder = chain(tmp_path, ["none", "ring", "full", "star"], {"ring": 0.5, "full": 0.7, "star": 0.6})
    text = written(folder)
    assert "| full | 0.700* |" in text
    assert "| full | ring | nDCG' | +0.200* |" in text
    assert "4 of 4 differences are significant" in text
    assert "Not compared, because the baseline has no result: ring and star (baseline none)." in text
    assert "## Differences by topic" in text
    assert "Left out" not in text

    finish(folder, "none", 1, 0.4)
    assert "Not compared" not in written(folder)


@pytest.mark.parametrize("same", [True, False])
def test_numbers_of_the_thesis_stand_beside(tmp_path: Path, same: bool) -> None:
    """The head says ``thesis`` alone where topics, posts and training pairs are the thesis's own."""
    conditions = ["none", "sequential", "circular", "fully_connected"]
    folder = write_plan(tmp_path / "vn_connectivity", conditions, [1, 2])
    setting = {"regime": "judged", "years": [2022], "train_pairs": 45000} if same else {}
    for condition in conditions:
        for seed in (1, 2):
            finish(folder, condition, seed, 0.4, topics=[f"A.{number}" for number in range(301, 379)], **setting)
    text = written(folder)
    head = "thesis" if same else "thesis, other setting"
    assert f"| Condition | nDCG' | {head} | MAP' | {head} |" in text
    assert "| sequential | 0.400 ± 0.000 | 0.409 ± 0.011 |" in text  # Table 4.11
    assert "| sequential | 1 | 0.400 | 0.423 |" in text  # Table 4.10
    assert "| sequential | 0.192 ± 0.012 | 10.767 ± 0.011 | – | 5.848 ± 0.705 |" in text  # Table 4.12, minutes
    assert ("in the same setting" in text) == same
    assert ("regime judged, here mini; training pairs 45000, here 900" in text) != same


def test_systems_of_others_stand_below(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "arqmath3_benchmark", ["mathamr_plus"], [1], tasks=[1, 2])
    finish(folder, "mathamr_plus", 1, 0.4, tasks=(1, 2))
    text = written(folder)
    assert "| mathamr_plus | 0.400 | 0.334 |" in text
    assert "| DPRL / QQ-QA-AMR | – | 0.185 | – | 0.040 | – | 0.091 | – | – |" in text
    assert "| L2L / All (Unweighted) | – | 0.849 |" in text.split("## Task 2")[1]
    assert "†" not in text  # one condition: there is nothing to compare


def test_development_measures_are_not_tested(rings: Path) -> None:
    text = written(rings)
    part = text.split("## Development measures")[1]
    assert "| Condition | Recall@1000 | Validation MRR | Training pairs | Seeds |" in part
    assert "no test is made on them" in part


def test_models_that_are_shared_share_a_learning_curve(tmp_path: Path) -> None:
    """Conditions that differ in retrieval alone have the same records of training."""
    folder = write_plan(tmp_path / "rings", ["exact", "hnsw", "other"], [1])
    for condition in ("exact", "hnsw", "other"):
        write_log(
            finish(folder, condition, 1, 0.4), [(3.0, 2.0, 0.2), (2.0, 1.0, 0.7 if condition == "other" else 0.4)]
        )
    text = written(folder)
    assert "Validation MRR after the last epoch: exact and hnsw 0.400; other 0.700." in text


def test_terms_of_the_loss_have_a_plot(tmp_path: Path) -> None:
    place = finish(write_plan(tmp_path / "rings", ["none"], [1]), "none", 1, 0.4)
    log = place / "log.jsonl"
    log.write_text(json.dumps({"kind": "epoch", "epoch": 0, "train_loss": 2.0, "maxsim_loss": 2.0}))
    assert "Terms of the training loss" not in written(tmp_path / "rings")
    terms = {"maxsim_loss": 2.0, "formula_loss": 1.0}
    records = [{"kind": "epoch", "epoch": number, "train_loss": 2.5, **terms} for number in range(2)]
    log.write_text("".join(json.dumps(record) + "\n" for record in records))
    text = written(tmp_path / "rings")
    assert "Terms of the training loss by epoch: Maxsim loss, Formula loss." in text
    assert "Warning: 0 in every epoch" not in text
    figures = [block for block in learning_curves.blocks(results.read(tmp_path / "rings")) if isinstance(block, Figure)]
    assert "Formula loss" in figures[1].draw("p")
    log.write_text(log.read_text().replace('"formula_loss": 1.0', '"formula_loss": 0.0'))
    assert "Warning: 0 in every epoch, so without effect: formula loss of none." in written(tmp_path / "rings")


def test_only_a_term_that_is_0_in_every_epoch_of_every_seed_has_a_warning(tmp_path: Path) -> None:
    labels = {"idle": "Graph, PT", "never": "Graph, PT-FT"}
    folder = write_plan(tmp_path / "rings", ["none", "late", "one", "idle", "never"], [1, 2], labels=labels)
    losses = {
        "none": [[None, None]] * 2,  # without the term
        "late": [[0.0, 1.0]] * 2,
        "one": [[0.0, 0.0], [1.0, 1.0]],
        "idle": [[0.0, 0.0]] * 2,
        "never": [[0.0, 0.0]] * 2,
    }
    for number, (condition, seeds) in enumerate(losses.items()):
        for seed, epochs_of_seed in enumerate(seeds, start=1):
            records = [
                {"kind": "epoch", "epoch": epoch, "train_loss": 2.0 + number, "maxsim_loss": 2.0}
                | ({} if loss is None else {"formula_loss": loss})
                for epoch, loss in enumerate(epochs_of_seed)
            ]
            log = finish(folder, condition, seed, 0.4) / "log.jsonl"
            log.write_text("".join(json.dumps(record) + "\n" for record in records))
    words = "Warning: 0 in every epoch, so without effect: formula loss of Graph, PT; formula loss of Graph, PT-FT."
    assert words in written(folder)


def test_a_training_that_was_resumed_has_each_epoch_once(tmp_path: Path) -> None:
    place = finish(write_plan(tmp_path / "rings", ["none"], [1]), "none", 1, 0.4)
    write_log(place, [(3.0, 2.0, 0.2), (2.0, 1.0, 0.4)])
    with (place / "log.jsonl").open("a") as log:
        log.write(json.dumps({"kind": "epoch", "epoch": 1, "train_loss": 1.5, "val_loss": 0.9, "val_mrr": 0.5}))
        log.write('\n{"kind": "epoch", "epo')
    assert [(record["epoch"], record["val_mrr"]) for record in epochs(place)] == [(0, 0.2), (1, 0.5)]


def test_the_first_results_of_each_condition(rings: Path) -> None:
    write_examples(rings / "jobs" / "ring-seed1", [example("A.1", [("21", 2)]), example("A.2", [("22", 1)])])
    text = written(rings)
    assert "| A.1 | 3 – 0 | 2 |" in text
    assert "| A.2 |  | 1 |" in text
    assert "| none | 17 (relevance 3) | 18 (relevance –) | 19 (relevance 0) |" in text
    assert "| ring | 21 (relevance 2) | – | – |" in text
    assert "Relevance: 3 high, 2 medium, 1 low, 0 not relevant, – not judged." in text


def test_examples_of_a_collection_with_other_grades_name_the_lowest_relevant_one(tmp_path: Path) -> None:
    finish(write_plan(tmp_path / "rings", ["none"], [1]), "none", 1, 0.4, relevant_grade=1)
    text = written(tmp_path / "rings")
    assert "Relevance: grades of the collection, relevant from 1, – not judged." in text


def test_grades_under_own_measures_have_no_other_names(tmp_path: Path) -> None:
    folder = write_plan(tmp_path / "rings", ["none"], [1], measures={"ndcg_prime": "nDCG"})
    finish(folder, "none", 1, 0.4)
    assert "Relevance: grades of the collection, – not judged." in written(folder)


def test_many_tests_are_folded(tmp_path: Path) -> None:
    conditions = ["none", *(f"c{number}" for number in range(5))]
    folder = write_plan(tmp_path / "rings", conditions, [1])
    for condition in conditions:
        finish(folder, condition, 1, 0.4)
    blocks = writing.report_of(results.read(folder))
    folded = [block for block in blocks if isinstance(block, Folded)]
    assert [block.summary for block in folded] == ["All 20 tests"]
    assert isinstance(folded[0].blocks[0], Table)


def test_the_same_input_gives_the_same_bytes(rings: Path, tmp_path: Path) -> None:
    for name in ("once", "twice"):
        writing.write([results.read(rings)], tmp_path / name)
    for file in ("report.html", "report.md", "results.csv"):
        assert (tmp_path / "once" / file).read_bytes() == (tmp_path / "twice" / file).read_bytes()


def test_every_plot_has_words(rings: Path) -> None:
    blocks = writing.report_of(results.read(rings))
    plots = [block for block in blocks if isinstance(block, Figure)]
    assert len(plots) == 4
    assert all(len(plot.alt) > 40 and plot.caption for plot in plots)
    assert "ring 0.510" in plots[0].alt
    assert any(isinstance(block, Text) and "of grade 3" in block.text for block in blocks)


def test_an_incomplete_plan_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"no experiment\.json here"):
        results.read(tmp_path)
    (tmp_path / "experiment.json").write_text('{"name": "rings", "conditions": ["none"]}')
    with pytest.raises(ConfigError, match=r"incomplete: KeyError\('seeds'\)"):
        results.read(tmp_path)
    (tmp_path / "experiment.json").write_text('{"name": ')
    with pytest.raises(StoreError, match="not JSON"):
        results.read(tmp_path)
    for more in (
        {"labels": ["a"]},
        {"tasks": []},
        {"tasks": None},
        {"topic_labels": {"level": ["A.1"]}},
        {"keys": ["a"]},
    ):
        write_plan(tmp_path, ["none"], [1], **more)
        with pytest.raises(ConfigError, match=r"experiment\.json: incomplete: .*run the experiment again"):
            results.read(tmp_path)
    write_plan(tmp_path, ["../../etc"], [1])
    with pytest.raises(ConfigError, match="cannot be the name of a folder"):
        results.read(tmp_path)
