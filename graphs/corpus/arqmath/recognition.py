r"""Recognition of a file of ARQMath by its first bytes: its part of the collection, its task and its year.

>>> import tempfile; from pathlib import Path; path = Path(tempfile.mkdtemp()) / "Topics_V1.1.xml"
>>> _ = path.write_text('<Topics><Topic number="B.201"><Formula_Id>q_1</Formula_Id></Topic></Topics>')
>>> found = recognise(PackedFile(path), ("Topics_V1.1.xml",))
>>> found.kind, found.task, found.year, found.version
('topics', 2, 2021, (1, 1))

- XML files by their root element, or by the attributes of their first row.
- Topics and qrels by their numbers: ``A.n`` is Task 1, ``B.n`` Task 2; 1 to 100 are of 2020, 201 to 300 of 2021, 301 to
  400 of 2022. Of several years in one qrels file the latest counts.
- TSVs of formulas by their header. Their representation shows in the first rows: LaTeX, Presentation MathML (``slt``:
  ``mrow``, ``mi`` ...) or Content MathML (``opt``: ``apply``, ``ci`` ...).
- Names decide what content leaves open: the representation of an empty TSV, the edition of qrels and, in Task 2, the
  kind of their ids.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from graphs.corpus.arqmath.tsv_rows import columns_of, formula_column
from graphs.corpus.arqmath.xml_rows import decoded, root_of
from graphs.corpus.packed import PackedFile

Kind = Literal["posts", "links", "topics", "topic formulas", "formulas", "judgments", "run", "other XML", "unknown"]
Edition = Literal["official", "all", "additional"]
Representation = Literal["latex", "slt", "opt"]
Ids = Literal["post id", "visual id", "formula id"]

HEAD_BYTES = 1 << 16
WHOLE_BYTES = 1 << 26  # of topics and qrels, which are read whole
_BOM = b"\xef\xbb\xbf"
_ROWS = 50  # of a TSV that its representation is seen from

_ROOTS: dict[str, Kind] = {"posts": "posts", "postlinks": "links", "topics": "topics"}
_OTHER_ROOTS = {"comments", "tags", "users", "votes", "badges", "posthistory"}
_FIRST_ROW = re.compile(r"<row\s[^>]*")
_TOPIC = re.compile(r"<Topic\s[^>]*?\bnumber\s*=\s*[\"']\s*([A-Z])\.(\d{1,4})\b")
_JUDGMENT = re.compile(rb"^([AB])\.(\d{1,4})[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]*\r?$", re.MULTILINE)
_RUN = re.compile(rb"^[AB]\.\d{1,4}[ \t]+\S+[ \t]+\S+[ \t]+\S+[ \t]+\S+")
_TASKS = {"A": 1, "B": 2}
_ELEMENT = re.compile(r"<(?:[A-Za-z]\w*:)?(?!math\b|semantics\b)([A-Za-z][\w-]*)")
_PRESENTATION = re.compile(
    r"mi|mn|mo|ms|mtext|mspace|mglyph|mrow|mfrac|msqrt|mroot|mstyle|merror|mpadded|mphantom|mfenced|menclose|msub|msup"
    r"|msubsup|munder|mover|munderover|mmultiscripts|mtable|mtr|mtd|mlabeledtr|maction|none|mprescripts"
)
_NAMED: dict[str, Representation] = {
    "latex": "latex", "slt": "slt", "presentation": "slt", "opt": "opt", "content": "opt",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Recognised:
    """A file below the root of a collection, and its part of it.

    Attributes:
        task: 1 or 2; 0 where that is not known or does not matter.
        year: year of the lab; 0 where that is not known or does not matter.
        edition: of judgments.
        representation: of formulas.
        ids: name space of the documents in judgments.
        version: version in its name, ``(1, 3)`` of ``Posts.V1.3.xml``; ``()`` without one.
        other_years: judgments of earlier years, which are not read from this file.
        tasks: tasks of a topic file's topics, or the task in its name.
        note: reason why the file has no place in the collection; empty where it has one.
    """

    file: PackedFile
    kind: Kind
    task: int = 0
    year: int = 0
    edition: Edition | None = None
    representation: Representation | None = None
    ids: Ids | None = None
    version: tuple[int, ...] = ()
    other_years: int = 0
    tasks: frozenset[int] = frozenset()
    note: str = ""


def recognise(file: PackedFile, parts: Sequence[str]) -> Recognised:
    """Inspect a file; ``parts`` are its folders below the root, and its name.

    Raises CorpusError where not a single byte can be read.
    """
    head = file.head(HEAD_BYTES)
    names = [part.lower() for part in reversed(parts)]  # the nearest first
    text = decoded(head)
    if text.lstrip().startswith("<") or names[0].endswith(".xml"):
        return _xml(file, head, text, names)
    has_formulas = names[0].endswith(".tsv") and _named_representation(names[:2]) is not None
    table = has_formulas or re.fullmatch(r"\d+\.tsv|qrel.*", names[0]) is not None
    if b"\0" in head[:1024]:
        return Recognised(file, "unknown", note="is not UTF-8; save it as UTF-8" if table else "")
    header = columns_of(head.split(b"\n", 1)[0])
    if "id" in header and len(header) > 2 and ("post_id" in header or "topic_id" in header):
        return _formulas(file, head, header, names)
    lines = [line for line in head.removeprefix(_BOM).split(b"\n") if line.strip()]
    if lines and (_JUDGMENT.match(lines[0]) or names[0].startswith("qrel")):
        return _judgments(file, names)
    if lines and _RUN.match(lines[0]):
        return Recognised(file, "run")
    note = "its header lacks the columns id and post_id (or topic_id)" if lines else "is empty"
    return Recognised(file, "unknown", note=note if table else "")


def year_of(number: int) -> int:
    """Return the year that has topics of this number; 0 where none has.

    >>> [year_of(number) for number in (1, 100, 150, 201, 400)]
    [2020, 2020, 0, 2021, 2022]
    """
    years = {range(1, 101): 2020, range(201, 301): 2021, range(301, 401): 2022}
    return next((year for numbers, year in years.items() if number in numbers), 0)


def topic_year(topic_id: str) -> int:
    """Return the year of a topic; 0 for an id that no topic has.

    >>> topic_year("A.201"), topic_year("demo")
    (2021, 0)
    """
    number = topic_id.rpartition(".")[2]
    return year_of(int(number)) if number.isdecimal() else 0


def version_of(names: Sequence[str]) -> tuple[int, ...]:
    """Return the version in the first of ``names`` that has one.

    >>> version_of(["1.tsv", "latex_representation_v3"]), version_of(["Topics_Formulas_OPT.V0.1.tsv"])
    ((3,), (0, 1))
    """
    matches = (re.search(r"(?<![A-Za-z])[vV](\d{1,6}(?:\.\d{1,6})*)", name) for name in names)
    return next((tuple(map(int, match[1].split("."))) for match in matches if match), ())


# -- XML ---------------------------------------------------------------------------------------------------------------


def _xml(file: PackedFile, head: bytes, text: str, names: Sequence[str]) -> Recognised:
    root = root_of(head).lower()
    version = _version(file, names)
    kind = _ROOTS.get(root)
    if kind is None and root not in _OTHER_ROOTS:
        row = _FIRST_ROW.search(text)
        if row and " PostTypeId=" in row[0]:
            kind = "posts"
        elif row and " RelatedPostId=" in row[0]:
            kind = "links"
        elif names[0].endswith(".xml"):  # broken, or refused for its document type: reading it says so
            kind = next((kind for name, kind in _ROOTS.items() if re.match(rf"{name}(?![a-z])", names[0])), None)
    if kind is None:
        return Recognised(file, "other XML" if root in _OTHER_ROOTS else "unknown")
    return _topics(file, names, version) if kind == "topics" else Recognised(file, kind, version=version)


def _topics(file: PackedFile, names: Sequence[str], version: tuple[int, ...]) -> Recognised:
    numbers = {(letter, year_of(int(number))) for letter, number in _TOPIC.findall(decoded(file.head(WHOLE_BYTES)))}
    tasks = {_TASKS.get(letter, 0) for letter, _ in numbers} or {_named_task(names)}
    years = {year for _, year in numbers if year} or {_named_year(names)}
    task, year = (next(iter(found)) if len(found) == 1 else 0 for found in (tasks, years))
    note = "" if task and year else "its topics are not all of one task and year (A.1 or B.1 to 100, 201 to 400)"
    return Recognised(file, "topics", task, year, version=version, tasks=frozenset(tasks - {0}), note=note)


# -- tables ------------------------------------------------------------------------------------------------------------


def _formulas(file: PackedFile, head: bytes, header: Sequence[str], names: Sequence[str]) -> Recognised:
    rows = _first_rows(head, len(header))
    at = formula_column(header)
    representation = _seen([row[at] for row in rows]) or _named_representation(names)
    version = _version(file, names)
    if "post_id" in header:
        version = version_of(names[1:2]) or version
        return Recognised(file, "formulas", representation=representation, version=version)
    owners = [re.fullmatch(r"([AB])\.(\d{1,4})", row[header.index("topic_id")].strip()) for row in rows]
    letters = Counter(match[1] for match in owners if match)
    years = {year_of(int(match[2])) for match in owners if match} - {0} or {_named_year(names)}
    task = _named_task(names) or (_TASKS[letters.most_common(1)[0][0]] if letters else 0)
    year = years.pop() if len(years) == 1 else 0
    note = "" if year else "its topics are not all of one year"
    return Recognised(file, "topic formulas", task, year, representation=representation, version=version, note=note)


def _first_rows(head: bytes, columns: int) -> list[list[str]]:
    """Rows that the start of a TSV holds whole."""
    lines = head.decode("utf-8-sig", errors="replace").split("\n")
    rows: list[list[str]] = []
    try:
        for row in csv.reader((line + "\n" for line in lines[1:]), delimiter="\t"):
            rows += [row] if len(row) == columns else []
            if len(rows) > _ROWS:
                break
    except csv.Error:
        pass
    return rows if len(head) < HEAD_BYTES else rows[:-1]  # the last one may be cut off


def _seen(formulas: Sequence[str]) -> Representation | None:
    """Representation of the formulas, where they show it."""
    votes: Counter[Representation] = Counter()
    mathml = latex = 0
    for formula in formulas:
        if "<math" in formula or "<m:math" in formula:
            mathml += 1
            if element := _ELEMENT.search(formula):
                votes["slt" if _PRESENTATION.fullmatch(element[1]) else "opt"] += 1
        elif formula.strip():
            latex += 1
    if mathml:
        return None if votes["slt"] == votes["opt"] else "slt" if votes["slt"] > votes["opt"] else "opt"
    return "latex" if latex else None


def _judgments(file: PackedFile, names: Sequence[str]) -> Recognised:
    content = file.head(WHOLE_BYTES).removeprefix(_BOM)
    judged: Counter[tuple[str, int]] = Counter()
    for (letter, number), count in Counter(_JUDGMENT.findall(content)).items():
        judged[letter.decode(), year_of(int(number))] += count
    tasks = {_TASKS[letter] for letter, _ in judged} or {_named_task(names)}
    year = max((year for _, year in judged), default=0) or _named_year(names)
    task = tasks.pop() if len(tasks) == 1 else 0
    words = set(re.split(r"[^a-z]+", names[0]))
    edition: Edition = "additional" if "additional" in words else "all" if "all" in words else "official"
    return Recognised(
        file,
        "judgments",
        task,
        year,
        edition,
        ids="post id" if task == 1 else _named_ids(names, year),
        version=_version(file, names),
        other_years=sum(count for (_, other), count in judged.items() if other != year and other),
        note="" if task and year else "its topics are not of one task and a known year (A.1 or B.1 to 100, 201 to 400)",
    )


# -- names -------------------------------------------------------------------------------------------------------------


def _version(file: PackedFile, names: Sequence[str]) -> tuple[int, ...]:
    return version_of([names[0], *([file.path.stem] if file.member else [])])


def _named_task(names: Sequence[str]) -> int:
    matches = (re.search(r"task[ _-]?([12])(?!\d)", name) for name in names)
    return next((int(match[1]) for match in matches if match), 0)


def _named_year(names: Sequence[str]) -> int:
    for name in names:
        if match := re.search(r"(?<!\d)(202[0-2])(?!\d)", name):
            return int(match[1])
        if match := re.search(r"arqmath[ _-]?([1-3])(?!\d)", name):
            return 2019 + int(match[1])
    return 0


def _named_representation(names: Sequence[str]) -> Representation | None:
    matches = (re.search(rf"(?<![a-z])({'|'.join(_NAMED)})(?![a-z])", name) for name in names)
    return next((_NAMED[match[1]] for match in matches if match), None)


def _named_ids(names: Sequence[str], year: int) -> Ids:
    """Kind of the ids in qrels of Task 2. Where no name says it: formula ids in 2020, visual ids later."""
    for name in names[:2]:
        if "visual" in name:
            return "visual id"
        if re.search(r"formulas?[ _-]?id", name):
            return "formula id"
    return "formula id" if year == 2020 else "visual id"
