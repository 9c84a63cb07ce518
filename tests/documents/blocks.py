"""Code blocks of README and docs, with the marks above them.

    <!-- not run: needs ARQMath -->            the reason why no test runs the block below
    <!-- run by tests/documents/test_x.py -->  the test that runs it with data that is not in the page

A block without a mark is run as it is written (:mod:`tests.documents.test_blocks`). A line such as "`posts.jsonl`:"
above a block makes it a file.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
NOT_CODE = ("mermaid",)  # drawings

_FENCE = re.compile(r"^( *)```(\w*)\s*$")
_MARK = re.compile(r"^ *<!-- (not run: |run by )(\S.*) -->$")
_FILE = re.compile(r"^`([\w./-]+\.\w+)`")


@dataclass(frozen=True)
class Block:
    """A fenced block of a page.

    Attributes:
        page: the document.
        line: number of its first fence, from 1.
        language: word after the fence; empty for printed output.
        text: lines between the fences, without the indentation of the fence.
        reason: why no test runs it; empty if unmarked.
        test: path of the test that runs it; empty if unmarked.
        file: name of the file that the line above names; empty for anything else.
    """

    page: Path
    line: int
    language: str
    text: str
    reason: str = ""
    test: str = ""
    file: str = ""

    @property
    def place(self) -> str:
        """Return page and line."""
        return f"{self.page.relative_to(ROOT).as_posix()}:{self.line}"

    @property
    def is_marked(self) -> bool:
        """Return whether a mark says why it is not run here."""
        return bool(self.reason or self.test)


def blocks_of(page: Path, text: str | None = None) -> list[Block]:
    """Return the fenced blocks of a page.

    >>> text = '''<!-- not run: needs a GPU -->
    ... ```bash
    ... mathamr bench
    ... ```
    ... '''
    >>> [(block.language, block.text, block.reason) for block in blocks_of(ROOT / "README.md", text)]
    [('bash', 'mathamr bench', 'needs a GPU')]
    """
    lines = (page.read_text(encoding="utf-8") if text is None else text).splitlines()
    found, begin = [], None
    for number, line in enumerate(lines):
        fence = _FENCE.match(line)
        if fence and begin is None:
            begin, indentation, language = number, len(fence[1]), fence[2]
        elif begin is not None and line.strip() == "```":
            content = "\n".join(row[indentation:] for row in lines[begin + 1 : number])
            found.append(Block(page, begin + 1, language, content, *_marks(lines[:begin])))
            begin = None
    if begin is not None:
        raise ValueError(f"{page}:{begin + 1}: the block has no end")
    return [block for block in found if block.language not in NOT_CODE]


def _marks(before: list[str]) -> tuple[str, str, str]:
    """Return reason, test and file of a block from the lines above it."""
    reason = test = ""
    if before and (mark := _MARK.match(before[-1])):
        reason, test = ("", mark[2]) if mark[1] == "run by " else (mark[2], "")
        before = before[:-1]
    above = next((line for line in reversed(before) if line.strip()), "")
    named = _FILE.match(above.strip())
    return reason, test, named[1] if named else ""


def indented_blocks(text: str) -> list[int]:
    """Return the lines where an indented block begins: it cannot carry a language.

    >>> indented_blocks('Run\\n\\n    mathamr run\\n\\n- a list\\n\\n      of blocks\\n')
    [3]
    """
    unfenced = re.sub(r"^( *)```.*?^ *```$", lambda block: "\n" * block[0].count("\n"), text, flags=re.DOTALL | re.M)
    lines = unfenced.splitlines()
    return [
        number
        for number, line in enumerate(lines, start=1)
        if re.match(r"^    \S", line) and number > 1 and not lines[number - 2].strip()
    ]
