"""Formula trees of a collection that publishes MathML: TSV files -> formulas.db.

summary = build_formula_trees(corpus.formulas(), Path("formulas.db"), Console(), workers=16)
summary.formulas, summary.trees
"""

from __future__ import annotations

import json
from collections.abc import Collection as Some
from dataclasses import asdict, replace
from pathlib import Path

from graphs.corpus.files import FormulaFiles
from graphs.counts import counted
from graphs.errors import ConfigError
from graphs.formulas.mathml import Letters
from graphs.formulas.store import DUPLICATE, BuildSummary, FormulaStore, Progress, build
from graphs.formulas.tsv import same_content, source_prints
from mathamr.stages.console import Console, Stage


def build_formula_trees(
    files: FormulaFiles,
    out: Path,
    console: Console,
    posts: Some[str] | None = None,
    *,
    letters: Letters = "plain",
    workers: int = 1,
) -> BuildSummary:
    """Build formulas.db, or resume an interrupted build.

    Args:
        out: output database (resumed if it exists).
        posts: ids of the posts whose formulas are read; None: all.

    Raises:
        MathAMRError: a file that cannot be read, or a database of other files.
    """
    out.parent.mkdir(parents=True, exist_ok=True)
    for file, why in files.unread:
        console.say(f"not read: {file}: {why}")
    wanted = None if posts is None else frozenset(posts)
    with console.stage("formula trees", unit="rows") as stage:
        summary = build(out, files, posts=wanted, letters=letters, workers=workers, progress=_Share(stage))
    console.say(f"  {counted(summary.formulas, 'formula')}, {counted(summary.trees, 'different tree')}")
    again = {key: number for key, number in summary.failures.items() if key[1] == DUPLICATE}
    without = {key: number for key, number in summary.failures.items() if key not in again}
    console.failures("trees missing from MathML (made from LaTeX instead)", without)
    console.failures("rows with another tree than an earlier row of their formula, which counts", again)
    return summary


def check_formulas(path: Path, files: FormulaFiles | None, years: Some[int] | None, named: str) -> None:
    """Refuse a formulas.db that lacks formulas of the posts or topics, because it is unfinished or of other files.

    Args:
        years: years of the topics in use; empty: all; None: no topics.
        named: the file as messages name it, e.g. ``data.formulas=FILE``.

    Raises:
        ConfigError: it lacks a file, or the collection publishes no formulas.
    """
    if files is None:
        raise ConfigError(f"{named}: the collection publishes no formulas; leave formulas.db out")
    with FormulaStore.open(path) as store:
        known = store.sources()
    prefixes = None if years is None else {f"{year}:" for year in years}
    topics = () if prefixes is None else [one for one in files.topics if not prefixes or one.prefix in prefixes]
    wanted = source_prints(replace(files, topics=tuple(topics)))
    if missing := [name for name, (size, found) in wanted.items() if not _is_read(known.get(name), size, found)]:
        raise ConfigError(
            f"{named} was not made from {len(missing)} of {len(wanted)} formula files of the collection, "
            f"e.g. {missing[0]}; run mathamr build formulas to its end: it adds missing files, and changed ones of "
            "topics; for other changed files, delete it first"
        )


def _is_read(known: tuple[int, str] | None, size: int, found: str) -> bool:
    return known is not None and known[0] == size and same_content(known[1], found)


def check_workers(workers: int) -> None:
    """Raise ConfigError for a number of processes below 1."""
    if workers < 1:
        raise ConfigError(f"workers={workers}: at least 1 process is needed")


def write_failures(database: Path, out: Path) -> None:
    """Write every formula or row of ``database`` that has no tree, one JSON object a line."""
    with FormulaStore.open(database) as store, out.open("w", encoding="utf-8") as file:
        for record in store.failure_records():
            file.write(json.dumps(asdict(record), ensure_ascii=False) + "\n")


class _Share:
    """Progress by rows; the total follows from the share of the bytes that are read."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._first: Progress | None = None
        self._rows = 0

    def __call__(self, state: Progress) -> None:
        if self._first is None:
            self._first = state  # an earlier run may have read a part of the bytes
        bytes_read = state.bytes_done - self._first.bytes_done
        if bytes_read > 0:
            left = (state.bytes_total - state.bytes_done) * (state.rows - self._first.rows) / bytes_read
            self._stage.expect(state.rows + round(left))
        self._stage(state.rows - self._rows)
        self._rows = state.rows
