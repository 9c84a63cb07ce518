"""Writes what experiments leave in ``outputs/EXP``, without running any."""

from __future__ import annotations

import csv
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MEASURES = ("ndcg_prime", "map_prime", "p_prime_10", "bpref", "recall_1000")
TOPICS = 12


def write_plan(folder: Path, conditions: Sequence[str], seeds: Sequence[int], **more: Any) -> Path:
    """``experiment.json`` of the experiment that the folder is called after."""
    folder.mkdir(parents=True, exist_ok=True)
    plan = {
        "name": folder.name,
        "title": "Rings",
        "command": "python -m experiments.run +exp=rings",
        "baseline": conditions[0],
        "conditions": list(conditions),
        "seeds": list(seeds),
        "tasks": [1],
        "labels": {},
    }
    (folder / "experiment.json").write_text(json.dumps(plan | more))
    return folder


def finish(
    folder: Path,
    condition: str,
    seed: int,
    score: float,
    *,
    shown: bool = True,
    tasks: Sequence[int] = (1,),
    topics: Sequence[str] | None = None,
    **more: Any,
) -> Path:
    """A finished job: every measure is ``score`` in the mean; single topics differ a little, by seed and condition.

    ``shown``: with the records of training, heat map and examples.
    """
    place = folder / "jobs" / f"{condition}-seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    names = list(topics or (f"A.{number}" for number in range(TOPICS)))
    result: dict[str, Any] = {
        "condition": condition,
        "seed": seed,
        "key": f"key-{condition}-{seed}",
        "topics": len(names),
        "regime": "mini",
        "years": [2020, 2021],
        "train_pairs": 900,
        "best_val_mrr": 0.3,
        "time_per_epoch_s": 10.0 + seed,
        "pairs_per_second": 90.0,
        "peak_memory_bytes": 2.5e9,
        "parameters": 1_987_361,
        "parameters_encoder": 1_987_361,
        "index_bytes": 7_813_825,
        "vectors": 60_325,
        "queries_per_second": 120.0,
        "code": "0.1.0+abc",
        "machine": "x86_64, 2 cores",
        "finished": "2026-01-01T00:00:00+00:00",
    }
    for task in tasks:
        prefix = "" if task == 1 else f"task{task}_"
        result |= {f"{prefix}{measure}": score for measure in MEASURES}
        if task == 2:
            result["task2_topics"] = len(names)
        _write_per_topic(place / ("per_topic.csv" if task == 1 else f"per_topic-task{task}.csv"), names, score, seed)
    (place / "result.json").write_text(json.dumps(result | more))
    if shown:
        write_log(place, [(3.0 - score, 2.5 - score, 0.2 + score / 2), (2.0 - score, 2.2 - score, 0.3 + score / 2)])
        write_heat_map(place, [[score, 0.1, 0.2], [0.3, score, 0.1]])
        write_examples(place, [example("A.1", [("17", 3), ("18", None), ("19", 0)])])
    return place


def _write_per_topic(path: Path, topics: Sequence[str], score: float, seed: int) -> None:
    with path.open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["topic", *MEASURES])
        middle = (len(topics) - 1) / 2
        for number, topic in enumerate(topics):
            own = score + 0.001 * (number - middle) * (1 + seed % 3) * (1 + score)
            table.writerow([topic, *[f"{own:.6f}"] * len(MEASURES)])


def fail(folder: Path, condition: str, seed: int, reason: str) -> None:
    place = folder / "jobs" / f"{condition}-seed{seed}"
    place.mkdir(parents=True, exist_ok=True)
    (place / "failed.json").write_text(json.dumps({"key": f"key-{condition}-{seed}", "reason": reason}))


def write_log(place: Path, epochs: Sequence[tuple[float, float, float]]) -> None:
    records: list[Mapping[str, Any]] = [{"kind": "start", "total_steps": 10}, {"kind": "step", "loss": 3.0}]
    records += [
        {"kind": "epoch", "epoch": number, "train_loss": loss, "val_loss": held_out, "val_mrr": mrr}
        for number, (loss, held_out, mrr) in enumerate(epochs)
    ]
    (place / "log.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))


def write_heat_map(
    place: Path, scores: Sequence[Sequence[float]], formula: str = "x^2", sentence: str = "Let it"
) -> None:
    queries = [{"kind": "formula", "text": formula}, {"kind": "document", "text": ""}]
    documents = [{"kind": "formula", "text": formula}, {"kind": "sentence", "text": sentence}, queries[1]]
    content = {"topic": "A.1", "post": "17", "grade": 3, "score": 1.25, "scores": scores}
    (place / "heat_map.json").write_text(json.dumps(content | {"queries": queries, "documents": documents}))


def example(
    topic: str, found: Sequence[tuple[str, int | None]], title: str = "A question", body: str = "Is $x^2 = 2$?"
) -> dict[str, Any]:
    results = [
        {"rank": rank, "post": post, "score": 2.0 / rank, "grade": grade, "title": "", "body": f"Post {post}: $y$"}
        for rank, (post, grade) in enumerate(found, 1)
    ]
    return {"topic": topic, "title": title, "body": body, "results": results}


def write_examples(place: Path, examples: Sequence[Mapping[str, Any]]) -> None:
    (place / "examples.json").write_text(json.dumps(examples))
