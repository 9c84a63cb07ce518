r"""Preambles of LaTeX files: the macros and environments that a chapter uses and another file declares.

>>> preambles = Preambles({"book.tex": r"\documentclass{book}\input{macros}\begin{document}\include{ch/one}",
...                        "macros.tex": r"\newcommand{\R}{\mathbb{R}}", "ch/one.tex": r"Let $x\in\R$."})
>>> preambles.of("ch/one.tex")
'\\newcommand{\\R}{\\mathbb{R}}\n\\documentclass{book}\\input{macros}'

A file without a preamble has that of the file that includes it, or else of a main file in its folder or the closest one
above.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Mapping

from graphs.papers.latex_source import STYLES, find_included, included_names, strip_comments

MAX_CHARACTERS = 2_000_000  # of one preamble
MAX_DEPTH = 20  # files that include each other

_BEGIN = r"\begin{document}"
_CLASS = re.compile(
    r"\\documentclass\s*(?:\[(?P<options>[^\]]{0,500})\]\s*)?\{(?P<name>[^{}\n]{1,200})\}"
    r"|\\(?:usepackage|RequirePackage|LoadClass)\s*(?:\[[^\]]{0,500}\]\s*)?\{(?P<packages>[^{}]{1,1000})\}"
)


class Preambles:
    """Preambles of the LaTeX files of a folder or an archive; ``files`` are texts by name, with style files."""

    def __init__(self, files: Mapping[str, str]) -> None:
        self._files = {name: strip_comments(text) for name, text in files.items()}
        self._styles: dict[str, list[str]] = {}  # name without folder -> names
        self._mains: dict[str, list[str]] = {}  # folder -> main files
        self._above: dict[str, str] = {}  # included file -> first file that includes it
        for name in sorted(self._files):
            if name.endswith(STYLES):
                self._styles.setdefault(posixpath.basename(name), []).append(name)
                continue
            if _BEGIN in self._files[name]:
                self._mains.setdefault(posixpath.dirname(name), []).append(name)
            for included in included_names(self._files[name]):
                found = find_included(self._files, included, "", posixpath.dirname(name))
                if found is not None and found != name:
                    self._above.setdefault(found, name)
        self._known: dict[str, str] = {}

    def of(self, name: str) -> str:
        """Return the declarations that apply to a file; empty without any."""
        main = self._main(name)
        if main is None:
            return ""
        if main not in self._known:
            self._known[main] = "\n".join(self._collected(main, set()))[:MAX_CHARACTERS]
        return self._known[main]

    def _main(self, name: str) -> str | None:
        seen = {name}
        while _BEGIN not in self._files[name]:
            if name not in self._above or self._above[name] in seen or len(seen) > MAX_DEPTH:
                return self._nearest(posixpath.dirname(name))
            seen.add(name := self._above[name])
        return name

    def _nearest(self, folder: str) -> str | None:
        while folder not in self._mains and folder:
            folder = posixpath.dirname(folder)
        return self._mains.get(folder, [None])[0]

    def _collected(self, name: str, seen: set[str]) -> Iterator[str]:
        """Yield the preamble of a file after those of the files that it includes."""
        seen.add(name)
        head = self._files[name].partition(_BEGIN)[0]
        here = posixpath.dirname(name)
        for included in [*self._declaring(head), *included_names(head)]:
            found = find_included(self._files, included, here, "") or self._style(included, here)
            if found is not None and found not in seen and len(seen) < 100:
                yield from self._collected(found, seen)
        yield head

    def _declaring(self, head: str) -> Iterator[str]:
        """Yield the names of the class and the packages of a preamble; for a subfile, its main file."""
        for match in _CLASS.finditer(head):
            if match["packages"]:
                yield from (f"{name.strip()}.sty" for name in match["packages"].split(","))
            elif match["name"] == "subfiles":
                yield match["options"] or ""
            else:
                yield f"{match['name'].strip()}.cls"

    def _style(self, included: str, here: str) -> str | None:
        """Return the style file of this name that is closest to ``here``, in any folder."""
        found = self._styles.get(posixpath.basename(included), [])
        return max(found, key=lambda name: len(posixpath.commonprefix([name, f"{here}/"])), default=None)
