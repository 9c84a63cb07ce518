"""Examples in a report: the first results for some topics in each condition, side by side."""

from __future__ import annotations

from typing import Any

from experiments.report import results
from experiments.report.blocks import Block, Examples, Found, Heading, Table
from experiments.report.results import Experiment
from graphs.errors import StoreError
from mathamr.evaluation.metrics import RELEVANT
from mathamr.evaluation.result_names import ARQMATH


def blocks(experiment: Experiment, file: str) -> list[Block]:
    """Return the first results for some topics in each condition, from its first seed that has them."""
    topics: dict[str, tuple[str, str]] = {}  # title and body
    found: dict[str, dict[str, list[Found]]] = {}  # topic -> condition -> results
    rows = experiment.finished()
    for row in rows:
        path = experiment.place(row) / file
        try:
            for record in results.content_of(path) or []:
                topic = str(record["topic"])
                topics.setdefault(topic, (str(record.get("title") or ""), str(record.get("body") or "")))
                by_condition = found.setdefault(topic, {})
                by_condition.setdefault(row["condition"], [_found(one) for one in record["results"]])
        except (KeyError, TypeError, ValueError, AttributeError) as error:
            raise StoreError(f"no examples ({error!r}); remove result.json and run again", path=path) from error
    if not topics:
        return []
    done = dict.fromkeys(row["condition"] for row in rows)
    table = [["Topic", *(experiment.label(name) for name in done)]]
    for topic, by_condition in found.items():
        grades = [["–" if one.grade is None else str(one.grade) for one in by_condition.get(name, [])] for name in done]
        table.append([topic, *(" ".join(line) for line in grades)])
    lowest = {row.get("relevant_grade", RELEVANT) for row in rows}
    grades_of = "3 high, 2 medium, 1 low, 0 not relevant"
    if experiment.measures != ARQMATH:
        grades_of = "grades of the collection"
    elif lowest != {RELEVANT}:
        grades_of = f"grades of the collection, relevant from {', '.join(sorted(map(str, lowest)))}"
    note = f"Relevance: {grades_of}, – not judged. The first seed of each condition."
    built: list[Block] = [Table(table, "Relevance of the first results", note)]
    for topic, (title, body) in topics.items():
        same: dict[tuple[str, ...], list[str]] = {}  # posts -> the conditions that found them
        for name, one in found[topic].items():
            same.setdefault(tuple(result.post for result in one), []).append(name)
        lists = [
            ("; ".join(experiment.label(name) for name in names), found[topic][names[0]]) for names in same.values()
        ]
        built += [Heading(f"Topic {topic}", 3), Examples(topic, title, body, lists)]
    return built


def _found(record: Any) -> Found:
    grade = record.get("grade")
    return Found(
        rank=int(record["rank"]),
        post=str(record["post"]),
        score=float(record["score"]),
        grade=None if grade is None else int(grade),
        title=str(record.get("title") or ""),
        body=str(record.get("body") or ""),
    )
