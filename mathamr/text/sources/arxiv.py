"""Metadata of papers on arXiv: title, categories and date, joined to papers by their ids.

>>> import json, tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> kaggle = {"id": "math/0301001", "title": "On\\n  primes", "categories": "math.NT math.CO",
...           "versions": [{"version": "v1", "created": "Wed, 1 Jan 2003 10:00:00 GMT"}]}
>>> _ = (folder / "kaggle.json").write_text(json.dumps(kaggle) + "\\n")
>>> _ = (folder / "categories.tsv").write_text("2501.00001v2\\tmath.CO\\n")
>>> found = read_metadata([folder / "kaggle.json", folder / "categories.tsv"])
>>> found[joined_id("math.NT_0301001v3")]
Metadata(title='On primes', categories=('math.NT', 'math.CO'), date='2003-01-01')
>>> found[joined_id("2501.00001")].categories
('math.CO',)

A file has one of three forms, which are recognised by their first character, and may be compressed with gzip:

- XML of arXiv's OAI-PMH server, with the prefix ``arXivRaw`` or ``arXiv``;
- JSON lines, as of the data set that arXiv keeps on Kaggle;
- lines of a paper id, a tab, and categories.

All versions of a paper have one id. The date is that of the first version.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from email.utils import parsedate_to_datetime
from pathlib import Path
from typing import Any

from lxml import etree

from graphs.corpus.arqmath.xml_rows import elements
from graphs.corpus.jsonl import MAX_LINE, read_lines
from graphs.corpus.packed import PackedFile
from graphs.errors import CorpusError, Failure

# Papers and their versions: 2501.00001, arXiv-2501.00001v2, math0301001v1, cond-mat.str-el/9901001v1.
PAPER = re.compile(
    r"(?i:arxiv[-:_]?)?(?P<paper>\d{4}\.\d{4,5}|[a-z][a-z-]*(?:\.[A-Za-z-]+)?[_/-]?\d{7})(?:v(?P<version>\d{1,3}))?"
)
_BEFORE_2007 = re.compile(r"(?P<archive>[a-z]+(?:-[a-z]+)?)(?:\.[A-Za-z-]+)?[_/-]?(?P<number>\d{7})")
_FORMATS = ("{http://arxiv.org/OAI/arXivRaw/}arXivRaw", "{http://arxiv.org/OAI/arXiv/}arXiv")


@dataclass(frozen=True, slots=True)
class Metadata:
    """Title, subject categories, and date of the first version as YYYY-MM-DD; each may be empty."""

    title: str = ""
    categories: tuple[str, ...] = ()
    date: str = ""


def without_version(name: str) -> str:
    """Return the id of a paper on arXiv without its version and without "arXiv"; other names are returned unchanged."""
    found = PAPER.fullmatch(name)
    return name if found is None else found["paper"]


def joined_id(name: str) -> str:
    """Return the common form of all ids of a paper.

    >>> joined_id("hep-th/9901001v2"), joined_id("math.GT/0301001"), joined_id("arXiv:math/0301001"), joined_id("notes")
    ('hep-th9901001', 'math0301001', 'math0301001', 'notes')
    """
    name = without_version(name)
    found = _BEFORE_2007.fullmatch(name)
    return name if found is None else found["archive"] + found["number"]


def read_metadata(paths: Iterable[Path], wanted: Collection[str] | None = None) -> dict[str, Metadata]:
    """Return the metadata of papers by :func:`joined_id`; of several records of a paper the last one counts.

    Args:
        wanted: ids of the papers to keep; None: all.

    Raises:
        CorpusError: a file that cannot be read, or a record without an id, with file and line.
    """
    known = None if wanted is None else {joined_id(name) for name in wanted}
    found: dict[str, Metadata] = {}
    for path in paths:
        first = PackedFile(path).head(1024).lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
        read = _oai if first == b"<" else _kaggle if first == b"{" else _table
        for name, metadata in read(path):
            if known is None or joined_id(name) in known:
                found[joined_id(name)] = metadata
    return found


def _oai(path: Path) -> Iterator[tuple[str, Metadata]]:
    """Yield ids and metadata of the records of OAI-PMH; deleted records have none."""
    for line, record in elements(path, "{*}record"):
        for one in record.iter(*_FORMATS):
            fields = {etree.QName(child).localname: str(child.xpath("normalize-space()")) for child in reversed(one)}
            if not fields.get("id"):
                raise CorpusError("is a record without an id", path=path, line=line)
            versions = [child.findtext("{*}date") for child in one.iterfind("{*}version")]
            created = versions[0] if versions else fields.get("created")
            yield fields["id"], _metadata(fields | {"created": created})


def _kaggle(path: Path) -> Iterator[tuple[str, Metadata]]:
    """Yield ids and metadata of JSON lines."""
    for line, record in read_lines(path):
        if isinstance(record, Failure) or not isinstance(record.get("id"), str):
            raise CorpusError("is not a JSON object with the id of a paper", path=path, line=line)
        versions = record.get("versions")
        first = versions[0] if isinstance(versions, list) and versions else None
        yield record["id"], _metadata(record | {"created": first.get("created") if isinstance(first, dict) else None})


def _table(path: Path) -> Iterator[tuple[str, Metadata]]:
    """Yield ids and categories of lines with a tab."""
    with PackedFile(path).open() as file:
        for number, line in enumerate(iter(lambda: file.readline(MAX_LINE + 1), b""), 1):
            paper, tab, rest = line.decode("utf-8", "replace").rstrip("\r\n").partition("\t")
            if len(line) > MAX_LINE:
                raise CorpusError(f"is a line of more than {MAX_LINE} bytes; is this a table?", path=path, line=number)
            if not tab:
                message = "has no tab; a line is a paper id, a tab, and categories; other forms are XML and JSON lines"
                raise CorpusError(message, path=path, line=number)
            yield paper, Metadata(categories=tuple(rest.replace(",", " ").split()))


def _metadata(fields: Mapping[str, Any]) -> Metadata:
    title, categories = (fields[name] if isinstance(fields.get(name), str) else "" for name in ("title", "categories"))
    return Metadata(_printable(title), tuple(_printable(categories).split()), _day(fields.get("created")))


def _printable(text: str) -> str:
    """Return a text with single spaces and without lone surrogates, which no file can hold."""
    return " ".join(text.encode("utf-8", "ignore").decode().split())


def _day(written: object) -> str:
    """Return the day of a date as arXiv writes it, "" for anything else.

    >>> _day("Mon, 2 Apr 2007 19:18:42 GMT"), _day("2007-04-02"), _day("soon"), _day(None)
    ('2007-04-02', '2007-04-02', '', '')
    """
    for read in (date.fromisoformat, parsedate_to_datetime):
        try:
            return read(str(written)).isoformat()[:10]
        except (ValueError, TypeError, OverflowError, IndexError):
            continue
    return ""
