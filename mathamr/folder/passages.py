r"""Passages of a document, each with its place: statements, and paragraphs below a heading.

>>> outline = Outline("notes/primes.tex")
>>> outline.heading(1, "Primes")
>>> outline.paragraph("3", "A prime has two divisors.")
>>> outline.paragraph("5", "We count them.")
>>> outline.statement("7", "Theorem (Euclid)", "There are infinitely many primes.")
>>> for passage in outline.close():
...     print(passage.file, passage.place, "|", passage.title, "|", passage.text)
notes/primes.tex 3 | Primes | A prime has two divisors. We count them.
notes/primes.tex 7 | Theorem (Euclid). Primes | There are infinitely many primes.

The id of a post is the file, the place in it, and a digest of the text, so an id never refers to a different text:

>>> passage.post_id
'notes/primes.tex:7~636c8fcf'
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from pathlib import PurePosixPath
from urllib.parse import quote

from graphs.corpus.text.text_formulas import find
from graphs.papers.plain import sentences_of

ROOM = 1_500  # characters of paragraphs that are joined to one passage
MAX_CHARACTERS = 8_000  # of a passage; longer ones are cut between sentences
MAX_TITLE = 200  # characters of a heading
MIN_LETTERS = 8  # of a paragraph without formulas; shorter ones are page numbers and remains of a layout

_SCRIPT = "\u0e00-\u0e7f\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"  # Thai, Japanese, Chinese and Korean
_BEGINS, _ENDS = r"(\[（「『【《“，。、；：", r",.;:!?)\]，。、；：！？）」』】》”"  # before and after formulas
_BESIDE_LETTER = re.compile(  # a dollar sign that begins a formula, or ends one
    rf"\$(?:(?P<first>(?<=[{_SCRIPT}]\$)(?=[^\s{_SCRIPT}{_ENDS}]))|(?<=[^\s{_SCRIPT}{_BEGINS}]\$)(?=[{_SCRIPT}]))"
)


@dataclass(frozen=True, slots=True)
class Passage:
    """Passage with ``$...$`` formulas: ``file`` below the folder, and ``place`` in it, a line or a cell and a line.

    ``title`` has the kind and name of a statement, and the headings above it. Statements, such as theorems, are
    kept separate.
    """

    file: str
    place: str
    title: str
    text: str
    is_statement: bool = False

    @property
    def is_remnant(self) -> bool:
        """Return whether the passage has no formula and fewer than 8 letters, or none in a statement.

        >>> [Passage("a.md", "1", "a", text).is_remnant for text in ("Page 7", "$x=1$", "A few words.")]
        [True, False, False]
        """
        letters = sum(map(str.isalpha, self.text))
        return letters < (1 if self.is_statement else MIN_LETTERS) and not find(self.text)

    @property
    def post_id(self) -> str:
        """Id of the passage; spaces, ``%`` and unprintable characters are percent-encoded.

        >>> Passage("my notes/50%.md", "1", "a", "Let.").post_id
        'my%20notes/50%25.md:1~bc318e33'
        """
        digest = hashlib.sha256(f"{self.title}\0{self.text}".encode(errors="replace")).hexdigest()[:8]
        signs = (one if one.isprintable() and one not in " %" else quote(one, errors="replace") for one in self.file)
        return f"{''.join(signs)}:{self.place}~{digest}"


class Outline:
    """Collector of the passages of ``file``, a path below the folder with ``/``, in their order."""

    def __init__(self, file: str) -> None:
        self._file = file
        self.name = PurePosixPath(file).stem  # heading of a file without any
        self._headings: dict[int, str] = {}  # level -> title
        self._paragraphs: list[str] = []
        self._size = 0  # characters of the paragraphs
        self._place = ""
        self._passages: dict[str, Passage] = {}

    def heading(self, level: int, title: str) -> None:
        """Begin a section; this ends sections of the same or a deeper level."""
        self._end_paragraphs()
        self._headings = {above: name for above, name in self._headings.items() if above < level}
        if title := _shortened(title):
            self._headings[level] = title

    def paragraph(self, place: str, text: str) -> None:
        """Add a paragraph; consecutive short ones become one passage."""
        if not (text := " ".join(text.split())):
            return
        if self._paragraphs and self._size + len(text) > ROOM:
            self._end_paragraphs()
        if not self._paragraphs:
            self._place = place
        self._paragraphs.append(text)
        self._size += len(text)

    def statement(self, place: str, name: str, text: str) -> None:
        """Add a passage that is kept separate, such as a theorem."""
        self._end_paragraphs()
        self._add(place, _shortened(name), " ".join(text.split()), is_statement=True)

    def close(self) -> list[Passage]:
        """Return all passages, remnants included."""
        self._end_paragraphs()
        return list(self._passages.values())

    def _end_paragraphs(self) -> None:
        if self._paragraphs:
            self._add(self._place, "", " ".join(self._paragraphs))
            self._paragraphs, self._size = [], 0

    def _add(self, place: str, name: str, text: str, *, is_statement: bool = False) -> None:
        path = ": ".join(dict.fromkeys(self._headings[level] for level in sorted(self._headings))) or self.name
        title = ". ".join(filter(None, (name, path)))
        for part in [text] if len(text) <= MAX_CHARACTERS else _parts(text):
            if part:
                passage = Passage(self._file, place, title, part, is_statement)
                self._passages.setdefault(passage.post_id, passage)


def _shortened(title: str) -> str:
    """Return at most :data:`MAX_TITLE` characters of a title, cut between words and before a formula.

    >>> len(_shortened("w" * 300)), _shortened("word " * 50)[-8:], _shortened("w " * 90 + "$x" + " + x" * 20 + "$")[-5:]
    (202, 'd word …', 'w w …')
    """
    title = " ".join(title.split())
    if len(title) <= MAX_TITLE:
        return title
    end = max(title.rfind(" ", 0, MAX_TITLE + 1), 0) or MAX_TITLE
    end = next((start for start, stop, _ in find(title) if start < end < stop), end)
    return f"{title[:end].rstrip()} …"


def _parts(text: str) -> list[str]:
    """Cut a text between sentences into parts of at most :data:`MAX_CHARACTERS`; a longer sentence is cut anywhere."""
    parts = [""]
    for sentence in sentences_of(text):
        for start in range(0, len(sentence), MAX_CHARACTERS):
            piece = sentence[start : start + MAX_CHARACTERS]
            if parts[-1] and len(parts[-1]) + len(piece) >= MAX_CHARACTERS:
                parts.append("")
            parts[-1] = f"{parts[-1]} {piece}".strip()
    return parts


def spaced(text: str) -> str:
    """Return a text with spaces between formulas and letters of scripts that are written without spaces.

    A formula between two letters would be taken for prose.

    >>> spaced("设$x=1$是")
    '设 $x=1$ 是'
    >>> spaced("「$甲$」，$x是$。")  # letters of formulas
    '「$甲$」，$x是$。'
    """
    return _BESIDE_LETTER.sub(lambda dollar: "$ " if dollar["first"] is None else " $", text)
