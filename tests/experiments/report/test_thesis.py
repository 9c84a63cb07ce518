"""The typed tables of the thesis hold together: with one another, and with its text and the arithmetic in it."""

import math
import re
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hydra import compose, initialize_config_dir

from experiments.configuration.registration import register
from experiments.report.thesis import COLUMNS, ThesisTable, Value, all_tables, read, tables
from graphs.errors import ConfigError

ROOT = Path(__file__).resolve().parents[3]
TEXT = ROOT.parent / "shared" / "papers" / "001_ceb257e047fe4d6e.txt"
ALL = {table.number: table for of_experiment in all_tables().values() for table in of_experiment}
MEASURES = ["nDCG'", "MAP'", "P'@10", "Bpref"]


def means(number: str, column: str) -> dict[str, float]:
    return {condition: row[column].mean for condition, row in ALL[number].rows.items()}


def test_every_table_of_results_is_there() -> None:
    assert list(ALL) == [f"4.{n}" for n in (*range(6, 18), *range(19, 23))]


@pytest.mark.parametrize("table", ALL.values(), ids=list(ALL))
def test_a_table_is_whole(table: ThesisTable) -> None:
    assert table.baseline in table.rows
    assert table.statistic in ("best_seed", "mean", "single")
    assert table.caption
    for column in table.columns:
        assert column in COLUMNS
    for row in table.rows.values():
        assert list(row) == table.columns
    for row in table.others.values():
        assert set(row) <= set(table.columns)
    for column, cell in ((c, v) for row in table.rows.values() for c, v in row.items()):
        if column in MEASURES:
            assert 0 < cell.mean < 1
            assert (cell.sd is not None) == (table.statistic == "mean")
        assert table.statistic == "best_seed" or not cell.significant
        assert not (cell.significant and table.rows[table.baseline][column] is cell)


@pytest.mark.parametrize(("best", "mean"), [("4.6", "4.7"), ("4.10", "4.11"), ("4.15", "4.16")])
def test_the_best_seed_is_not_below_the_mean_of_its_five_nor_beyond_their_spread(best: str, mean: str) -> None:
    """Of n values none is further than (n - 1) / sqrt(n) standard deviations from their mean."""
    for condition, row in ALL[best].rows.items():
        cell, average = row["nDCG'"].mean, ALL[mean].rows[condition]["nDCG'"]
        assert average.sd is not None
        assert 0 <= cell - average.mean <= 4 / math.sqrt(5) * (average.sd + 0.0005) + 0.001


def test_tables_of_the_same_runs_agree() -> None:
    """4.17 with beta 1 repeats 4.15; the structure of the thesis's other experiments is not that of the same runs."""
    for strategy in ("maxsim", "doc_vn_maxsim", "single_vector"):
        with_pool = f"{strategy}_1000_hnsw" if strategy == "doc_vn_maxsim" else f"{strategy}_hnsw"
        for column in ("nDCG'", "P'@10"):
            assert ALL["4.17"].rows[f"beta1_{strategy}"][column].mean == ALL["4.15"].rows[with_pool][column].mean


def test_exact_and_approximate_search_differ_only_for_maxsim() -> None:
    rows = ALL["4.16"].rows
    for strategy in ("doc_vn_maxsim_5000", "doc_vn_maxsim_1000", "single_vector"):
        for measure in MEASURES:
            assert rows[f"{strategy}_exact"][measure] == rows[f"{strategy}_hnsw"][measure]


@pytest.mark.parametrize(
    ("number", "column", "condition", "other", "difference"),
    [
        ("4.6", "nDCG'", "both", "none", 0.093),  # thesis, section 4.3.1
        ("4.13", "nDCG'", "zero_embedding", "zero", 0.016),  # 4.3.4
        ("4.15", "nDCG'", "doc_vn_maxsim_5000_hnsw", "doc_vn_maxsim_1000_hnsw", 0.099),  # 4.4.1
        ("4.15", "QPS", "doc_vn_maxsim_1000_hnsw", "doc_vn_maxsim_5000_hnsw", 31.9),  # 4.4.1
        ("4.15", "QPS", "single_vector_hnsw", "maxsim_hnsw", 41.9),  # 4.4.1
        ("4.17", "nDCG'", "beta1_maxsim", "beta1_doc_vn_maxsim", 0.102),  # 4.4.2
        ("4.17", "nDCG'", "beta0.3_single_vector", "beta1_single_vector", 0.081),  # 4.4.2
        ("4.17", "nDCG'", "beta1_maxsim", "beta0_maxsim", 0.089),  # 4.4.2
    ],
)
def test_differences_that_the_text_of_the_thesis_gives(
    number: str, column: str, condition: str, other: str, difference: float
) -> None:
    values = means(number, column)
    assert values[condition] - values[other] == pytest.approx(difference, abs=1e-9)


def test_ratios_and_sums_that_the_text_of_the_thesis_gives() -> None:
    time, memory = means("4.8", "Time/Epoch (s)"), means("4.8", "GPU Mem (GB)")
    assert memory["both"] / memory["slt"] == pytest.approx(1.44, abs=0.005)
    assert time["both"] / time["opt"] == pytest.approx(1.30, abs=0.005)
    assert memory["both"] / memory["opt"] == pytest.approx(1.27, abs=0.005)
    gain = means("4.17", "nDCG'")
    deficit = gain["beta1_maxsim"] - gain["beta1_doc_vn_maxsim"]
    assert (gain["beta0.3_doc_vn_maxsim"] - gain["beta1_doc_vn_maxsim"]) / deficit == pytest.approx(0.78, abs=0.005)
    parameters = means("4.14", "Params (M)")
    linear = (64 * 64 + 64) / 1e6  # a projection of the hidden dimension; one for each of three kinds where typed
    assert parameters["mean_projection"] - parameters["mean"] == pytest.approx(linear, abs=0.001)
    assert parameters["mean_typed_projection"] - parameters["mean"] == pytest.approx(3 * linear, abs=0.001)
    ours, amr = ALL["4.19"].rows["mathamr_plus"]["nDCG'"], ALL["4.19"].others["DPRL / QQ-QA-AMR"]["nDCG'"]
    assert ours.mean - amr.mean == pytest.approx(0.149, abs=1e-9)


def test_every_row_stands_in_the_text_of_the_thesis() -> None:
    if not TEXT.is_file():
        pytest.skip(f"needs the text of the thesis, {TEXT.name}")
    text = TEXT.read_text(encoding="utf-8").replace(r" \pm ", " ± ")
    for number, table in ALL.items():
        lines = re.split(rf"^Table {re.escape(number)}:", text, flags=re.MULTILINE)[1].splitlines()[:40]
        if number == "4.17":
            strategies, betas = ("maxsim", "doc_vn_maxsim", "single_vector"), ("1", "0.7", "0.5", "0.3", "0")
            assert {f"beta{beta}_{strategy}" for beta, strategy in product(betas, strategies)} == set(table.rows)
            sides = [[table.rows[f"beta{beta}_{s}"][c] for s in strategies for c in table.columns] for beta in betas]
            found = [line for line in lines if line.startswith("$\\beta")]
            assert [line.split("\t")[1:] for line in found] == [[cell.printed for cell in row] for row in sides]
            continue
        for name, row in {**table.rows, **table.others}.items():
            cells = [row[c].printed + ("M" if c == "Params (M)" else "") if c in row else "–" for c in table.columns]
            if number in ("4.20", "4.22"):  # a line for each value
                assert all(any(re.search(rf"\t{re.escape(cell)}\b", line) for line in lines) for cell in cells)
            else:
                assert any(line.split("\t")[-len(cells) :] == cells for line in lines), f"{number}, {name}"


def test_a_cell_is_read() -> None:
    assert read("21,947,328").mean == 21_947_328
    assert read("83.3*") == Value("83.3*", 83.3, None, True)
    with pytest.raises(ConfigError, match=r"'0.5 \+- 0.1' is not a value of a table"):
        read("0.5 +- 0.1")


def test_an_experiment_that_the_thesis_does_not_have_has_no_table() -> None:
    assert tables("trial") == []


def test_task_2_is_compared_with_columns_of_its_own() -> None:
    assert ALL["4.21"].column_of_results("nDCG'") == ("task2_ndcg_prime", 1.0)
    assert not ALL["4.21"].is_setting_of({"regime": "full", "topics": 76}, years=[2022])
    assert ALL["4.21"].is_setting_of({"regime": "full", "topics": 78, "task2_topics": "76"}, years=[2022])


TABLE_4_5 = {
    "model": {"hidden_dim": 64, "projection_dim": 32, "num_layers": 4, "num_bases": 64, "vn_init": "zero"},
    "train": {
        "batch_size": 32,
        "epochs": 7,
        "learning_rate": 1e-4,
        "min_learning_rate": 1e-5,
        "weight_decay": 1e-3,
        "temperature": 0.05,
        "grad_clip": 1.0,
        "patience": 3,
        "node_mask": 0.1,
        "edge_dropout": 0.1,
        "normalize": True,
        "validation_fraction": 0.1,
    },
    "graph": {"formulas": "both", "connectivity": "none"},
    "retrieval": {"strategy": "maxsim"},
}
TABLE_4_18 = {"model": {"num_bases": 256}, "train": {"batch_size": 16, "learning_rate": 5e-4, "beta": 0.3}}


@pytest.mark.parametrize(
    ("chosen", "tables_of_settings"),
    [
        (["+exp=trial", "train=thesis"], [TABLE_4_5]),
        (["+exp=arqmath3_benchmark"], [TABLE_4_5, TABLE_4_18]),
    ],
)
def test_settings_are_those_of_tables_4_5_and_4_18(chosen: list[str], tables_of_settings: list[dict[str, Any]]) -> None:
    register()
    with initialize_config_dir(str(ROOT / "conf"), version_base="1.3"):
        config = compose("config", chosen)
    for group in ("model", "train", "graph", "retrieval"):
        wanted = {key: value for table in tables_of_settings for key, value in table.get(group, {}).items()}
        assert {key: config[group][key] for key in wanted} == wanted
    # Section 4.3.1 draws 50,000 pairs; the benchmark of 4.5 takes all of the collection.
    assert config.train.max_pairs == (None if TABLE_4_18 in tables_of_settings else 50_000)
