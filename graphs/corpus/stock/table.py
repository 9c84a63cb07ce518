"""Table of a collection's holdings, as text.

>>> from graphs.corpus.stock.holdings import Missing
>>> counts = {"posts.answer": 1200, "topics.task1": 2, "judgments.task1": 9}
>>> print(table(Holdings("jsonl", counts, (Missing("formulas", "graphs have sentences alone"),), {}, ""), "faq"))
faq, data=jsonl
  answers                                      1,200
<BLANKLINE>
                                              Task 1
  topics                                           2
  judgments                                        9
<BLANKLINE>
missing:
  formulas: graphs have sentences alone
<BLANKLINE>
Experiments can run.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence

from graphs.corpus import installed
from graphs.corpus.download import PARTS
from graphs.corpus.forms import SOURCES
from graphs.corpus.stock.holdings import Holdings

_TOTALS = (
    ("questions", "posts.question"),
    ("  with an accepted answer", "accepted"),
    ("answers", "posts.answer"),
    ("posts with formulas", "posts.with_formulas"),
    ("formulas", "formulas"),
    ("posts of other kinds", "posts.other"),
    ("rows without id or kind", "posts.broken"),
    ("damaged rows", "posts.damaged"),
    ("posts with the id of another", "posts.repeated"),
    ("training pairs", "pairs"),
    ("links between posts", "links"),
    ("formulas, LaTeX", "formulas.latex"),
    ("formulas, Presentation MathML", "formulas.slt"),
    ("  without a tree", "formulas.slt.empty"),
    ("formulas, Content MathML", "formulas.opt"),
    ("  without a tree", "formulas.opt.empty"),
)
_BY_YEAR = [
    ("topics of Task 1", "topics.task1.{}"),
    ("topics of Task 2", "topics.task2.{}"),
    ("formulas of topics", "topic_formulas.{}"),
    ("  with published trees", "topic_trees.{}"),
    *(
        (title.format(task, edition), f"judgments.task{task}.{{}}.{edition}{of}")
        for task in (1, 2)
        for edition in ("official", "all", "additional")
        for title, of in (("judgments of Task {}, {}", ""), ("  topics", ".topics"), ("  relevant", ".relevant"))
    ),
]
_BY_TEST = [
    ("topics", "topics.{}"),
    ("judgments", "judgments.{}"),
    ("  topics", "judgments.{}.topics"),
    ("  documents", "judgments.{}.documents"),
    ("  relevant", "judgments.{}.relevant"),
    ("  lowest relevant grade", "relevant_grade.{}"),
]
_TITLES = {"task1": "Task 1", "task2": "Task 2"}


def table(holdings: Holdings, place: str) -> str:
    """Return what the collection at ``place``, or with this id, has and lacks."""
    counts = holdings.counts
    broken = "broken posts" if holdings.name != "arqmath" else ""
    lines = [place if holdings.name == "arqmath" else f"{place}, {_setting(holdings.name)}"]
    lines += [
        _row(broken if broken and key == "posts.broken" else title, [counts[key]])
        for title, key in _TOTALS
        if counts.get(key) or (key in counts and not (broken and key == "posts.broken"))
    ]
    if holdings.name == "arqmath":
        columns = sorted({key.split(".")[2] for key in counts if key.startswith(("topics.", "judgments."))})
        lines += _columns(counts, columns, columns, _BY_YEAR)
    else:
        columns = list(dict.fromkeys(key.split(".")[1] for key in counts if key.startswith("topics.")))
        lines += _columns(counts, columns, [_TITLES.get(name, name) for name in columns], _BY_TEST)
    if holdings.missing:
        lines += ["", "missing:"]
        lines += [f"  {one.what}: {one.consequence}" for one in holdings.missing]
    parts = [part for part in PARTS if any(one.part == part for one in holdings.missing)]
    if parts:
        lines += ["get it:", f"  mathamr data get arqmath --to {shlex.quote(place)} --only {' '.join(parts)}"]
    if holdings.unread:
        lines += ["", "not read:"]
        lines += [f"  {file}: {note}" for file, note in holdings.unread.items()]
    return "\n".join([*lines, "", _verdict(holdings)])


def _columns(
    counts: Mapping[str, int], names: Sequence[str], titles: Sequence[str], rows: Sequence[tuple[str, str]]
) -> list[str]:
    """Return the rows that have a number in one of the columns, below their titles."""
    if not names:
        return []
    lines = ["", _row("", titles)]
    for title, row in rows:
        keys = [row.format(name) for name in names]
        if any(key in counts for key in keys):
            lines.append(_row(title, [counts.get(key, "-") for key in keys]))
    return lines


def _row(title: str, cells: Sequence[int | str]) -> str:
    written = (f"{cell:,}" if isinstance(cell, int) else cell for cell in cells)
    return f"  {title:<36}" + "".join(f"{cell:>14}" for cell in written)


def _verdict(holdings: Holdings) -> str:
    if holdings.reason:
        return f"No experiment can run: {holdings.reason}."
    if holdings.name in SOURCES:
        return "Experiments can learn from it, as one of data.sources; it has no topics."
    except_on = f", but not on {', '.join(holdings.failed)}" if holdings.failed else ""
    return f"Experiments can run{except_on}."


def _setting(name: str) -> str:
    if name in installed.names():
        return f"data=jsonl data.name={name}"
    return f"data.sources.NAME.name={name}" if name in SOURCES else f"data={name}"
