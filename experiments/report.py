"""Job results -> results.csv, the table on the terminal, and report.md.

    condition           nDCG'           MAP'            P'@10           Bpref           time/epoch (s)
    none                0.512 ± 0.004   0.301 ± 0.006   0.201 ± 0.003   0.250 ± 0.004   11.3 ± 0.1

Means and standard deviations (n - 1) are over seeds. The tests follow the thesis (section 4.2): two-sided paired
t-tests over per-topic scores against the baseline, Bonferroni-corrected over all tests of the experiment, Holm beside
it; once on the seeds' mean score of each topic, and once on each condition's best seed, which is chosen on the same
topics and marked for what it is.
"""

from __future__ import annotations

import csv
import io
import statistics
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from experiments.outputs import write_whole
from experiments.plan import Job, failure, finished
from mathamr.evaluation.significance import Comparison, compare

TITLES = {"ndcg_prime": "nDCG'", "map_prime": "MAP'", "p_prime_10": "P'@10", "bpref": "Bpref"}
COSTS = {
    "time_per_epoch_s": ("Time/epoch (s)", 1.0),
    "pairs_per_second": ("Pairs/s", 1.0),
    "parameters": ("Parameters (M)", 1e6),
    "peak_memory_bytes": ("Peak memory (GB)", 1e9),
    "peak_gpu_memory_bytes": ("Peak GPU memory (GB)", 1e9),
    "index_bytes": ("Index (MB)", 1e6),
    "queries_per_second": ("Queries/s", 1.0),
}
_FIRST = ("condition", "seed", "status", *TITLES, "recall_1000", "topics", "regime")


def rows_of(jobs: Sequence[Job], folder: Path) -> list[dict[str, Any]]:
    """One row a job, in the order of the plan: its result, why it failed, or ``missing``."""
    rows = []
    for job in jobs:
        row = {"condition": job.condition, "seed": job.seed}
        if (result := finished(job, folder)) is not None:
            rows.append({**row, "status": "done", **result})
            continue
        reason = failure(job, folder)
        rows.append({**row, "status": "missing" if reason is None else f"failed: {reason}"})
    return rows


def write_csv(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """``results.csv``: a row for each condition x seed with every metric and cost."""
    columns = list(_FIRST)
    for row in rows:
        columns += [key for key in row if key not in columns]
    text = io.StringIO()
    table = csv.DictWriter(text, columns, restval="")
    table.writeheader()
    table.writerows(rows)
    write_whole(path, text.getvalue())


def mean_table(rows: Sequence[dict[str, Any]], columns: dict[str, tuple[str, float]]) -> list[list[str]]:
    """Header and one line a condition: mean ± standard deviation over its finished seeds.

    ``columns`` maps a key of the rows to its title and the unit that it is divided by.
    """
    table = [["Condition", *(title for title, _ in columns.values()), "Seeds"]]
    for condition in dict.fromkeys(row["condition"] for row in rows):
        done = [row for row in rows if row["condition"] == condition and row["status"] == "done"]
        cells = [_spread([row[key] / unit for row in done if key in row]) for key, (_, unit) in columns.items()]
        table.append([condition, *cells, str(len(done))])
    return table


def _spread(values: Sequence[float]) -> str:
    """
    >>> _spread([0.5, 0.52]), _spread([11.26]), _spread([])
    ('0.510 ± 0.014', '11.3', '–')
    """
    if not values:
        return "–"
    mean = statistics.mean(values)
    digits = 3 if abs(mean) < 10 else 1
    if len(values) == 1:
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} ± {statistics.stdev(values):.{digits}f}"


def summary_columns() -> dict[str, tuple[str, float]]:
    """The columns of the table that a run prints."""
    return {**{key: (title, 1.0) for key, title in TITLES.items()}, "time_per_epoch_s": COSTS["time_per_epoch_s"]}


def as_text(table: Sequence[Sequence[str]]) -> str:
    """A table aligned for the terminal."""
    widths = [max(len(line[i]) for line in table) for i in range(len(table[0]))]
    return "\n".join("  ".join(cell.ljust(w) for cell, w in zip(line, widths, strict=True)).rstrip() for line in table)


def as_markdown(table: Sequence[Sequence[str]]) -> str:
    """A table in Markdown.

    >>> print(as_markdown([["Condition", "nDCG'"], ["none", "0.5"]]))
    | Condition | nDCG' |
    |---|---|
    | none | 0.5 |
    """
    lines = [f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in line)} |" for line in table]
    return "\n".join([lines[0], "|" + "---|" * len(table[0]), *lines[1:]])


def comparisons(rows: Sequence[dict[str, Any]], folder: Path, baseline: str, *, best_seed: bool) -> list[Comparison]:
    """Tests of every condition against the baseline on per-topic scores, corrected over the experiment.

    ``best_seed`` takes each condition's seed of highest nDCG' instead of the mean over seeds. Empty while the baseline
    or every other condition has no result.
    """
    scores: dict[str, dict[str, dict[str, float]]] = {}
    for condition, done in _finished_by_condition(rows).items():
        chosen = [max(done, key=lambda row: row["ndcg_prime"])] if best_seed else done
        tables = [_read_per_topic(folder / "jobs" / f"{condition}-seed{row['seed']}") for row in chosen]
        scores[condition] = {
            measure: {topic: statistics.fmean(t[topic][measure] for t in tables) for topic in tables[0]}
            for measure in TITLES
        }
    if baseline not in scores or len(scores) < 2:
        return []
    return compare(scores, baseline)


def _finished_by_condition(rows: Sequence[dict[str, Any]]) -> dict[str, list[dict[str, Any]]]:
    finished_rows: dict[str, list[dict[str, Any]]] = {}
    for row in rows:
        if row["status"] == "done":
            finished_rows.setdefault(row["condition"], []).append(row)
    return finished_rows


def _read_per_topic(place: Path) -> dict[str, dict[str, float]]:
    with (place / "per_topic.csv").open(newline="", encoding="utf-8") as file:
        return {row["topic"]: {key: float(row[key]) for key in TITLES} for row in csv.DictReader(file)}


def write_report(rows: Sequence[dict[str, Any]], folder: Path, *, title: str, command: str, baseline: str) -> None:
    """``report.md``: means over seeds with tests, best seeds, costs, failures."""
    done = [row for row in rows if row["status"] == "done"]
    parts = [f"# {title}", f"`{command}`"]
    if done:
        versions = ", ".join(sorted({str(row["code"]) for row in done}))
        parts.append(
            f"{done[0]['topics']} topics, regime `{done[0]['regime']}`; code {versions}; {done[0]['machine']}; "
            f"last job finished {max(str(row['finished']) for row in done)}. Baseline: {baseline}."
        )
        parts.append(
            "± is the standard deviation over seeds. Tests are two-sided paired t-tests over topics against the "
            "baseline, on every measure; * marks p < 0.05 after Bonferroni's correction over all of them. Intervals "
            "are 95 % bootstrap intervals of the mean difference over topics, not corrected."
        )
        parts += ["## Mean over seeds", as_markdown(mean_table(rows, {k: (t, 1.0) for k, t in TITLES.items()}))]
        parts.append(_tests(comparisons(rows, folder, baseline, best_seed=False)))
        parts += [
            "## Best seed",
            "For each condition the seed of highest nDCG', chosen on the very topics that it is reported on: "
            "an optimistic figure, given because the thesis reports it.",
            as_markdown(_best_table(rows)),
            _tests(comparisons(rows, folder, baseline, best_seed=True)),
            "## Costs",
            as_markdown(mean_table(rows, {k: cost for k, cost in COSTS.items() if any(k in row for row in done)})),
        ]
    troubles = [[row["condition"], str(row["seed"]), row["status"]] for row in rows if row["status"] != "done"]
    if troubles:
        parts += ["## Jobs without a result", as_markdown([["Condition", "Seed", "Status"], *troubles])]
    write_whole(folder / "report.md", "\n\n".join(part for part in parts if part) + "\n")


def _best_table(rows: Sequence[dict[str, Any]]) -> list[list[str]]:
    table = [["Condition", "Seed", *TITLES.values()]]
    for condition, done in _finished_by_condition(rows).items():
        best = max(done, key=lambda row: row["ndcg_prime"])
        table.append([condition, str(best["seed"]), *(f"{best[key]:.3f}" for key in TITLES)])
    return table


def _p(value: float) -> str:
    """
    >>> _p(0.0432), _p(0.00004)
    ('0.043', '< 0.001')
    """
    return "< 0.001" if value < 0.001 else f"{value:.3f}"


def _tests(tests: Sequence[Comparison]) -> str:
    """The tests as a table: difference, interval, p, corrected p; a star where Bonferroni's is below 0.05."""
    if not tests:
        return ""
    table = [["Condition", "Measure", "Difference", "95 % interval", "p", "p (Bonferroni)", "p (Holm)"]]
    for one in tests:
        table.append(
            [
                one.condition,
                TITLES[one.metric],
                f"{one.test.difference:+.3f}{one.stars()}",
                f"[{one.low:+.3f}, {one.high:+.3f}]",
                _p(one.test.p),
                _p(one.p_bonferroni),
                _p(one.p_holm),
            ]
        )
    return as_markdown(table)
