"""Masking of the names of objects in the questions of :mod:`graphs.corpus.mathdocs.collection`.

>>> found = [Docstring("scipy.special.jv", "function", "Bessel."), Docstring("a.center", "function", "Its center.")]
>>> names = Names(found)
>>> names.masked([Span("code", "jv"), Span("text", " is like jn, and jv(v, z) has a center")], found[0])
[Span(kind='text', text='this function'), Span(kind='text', text=' is like jn, and this function (v, z) has a center')]
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence

from graphs.corpus.mathdocs.docstrings import Docstring
from graphs.corpus.mathdocs.rst import Paragraph, Span

_IDENTIFIER = re.compile(r"[A-Za-z_][\w.]*(?:\([^()]*\))?\Z")
_PARAMETERS = re.compile(r"^\s*([\w*]+(?:,\s*[\w*]+)*)\s*:(?!:)", re.MULTILINE)
_PATHS = frozenset(["scipy", "sympy", "numpy", "networkx", "mpmath", "np", "nx", "sp", "mp"])


class Names:
    """Names of the documented objects, and those that are also everyday words."""

    def __init__(self, found: Sequence[Docstring]) -> None:
        written = {docstring.name.rpartition(".")[2].removesuffix("_gen") for docstring in found}
        self.written = {name for name in written if len(name) > 2}
        self.all = {short_name(docstring.name) for docstring in found}
        spellings = self.all | {f"{name}s" for name in self.all}
        used: Counter[str] = Counter()
        for docstring in found:
            prose = re.sub(r"``.+?``|`[^`]*`|\w+\(|\w*[._]\w+|>>>.*|\$[^$]*\$", " ", docstring.text)
            words = {word.lower() for word in re.findall(r"[A-Za-z]\w+", prose)}
            own = short_name(docstring.name).removesuffix("s")
            used.update(word for word in words & spellings if word.removesuffix("s") != own)
        self.everyday = {name for name in self.all if used[name] + used[f"{name}s"] >= 2}

    def masked(self, paragraph: Paragraph, docstring: Docstring) -> Paragraph:
        """Replace the names of objects in a paragraph; ``docstring`` is that of the paragraph."""
        own = {short_name(docstring.name)}
        if docstring.kind == "method":
            own.add(docstring.name.split(".")[-2].lower())
        parameters = {name for names in _PARAMETERS.findall(docstring.text) for name in re.split(r"[\s,*]+", names)}
        this = f"this {'function' if docstring.kind == 'function' else docstring.kind}"
        out: Paragraph = []
        for span in paragraph:
            shown = span
            if span.kind == "text":
                shown = Span("text", self._masked_text(span.text, own, this))
            elif span.kind == "code":
                called = {name.rpartition(".")[2] for name in re.findall(r"[A-Za-z_][\w.]*", span.text)}
                if {short_name(name) for name in called} & own:
                    shown = Span("text", this)
                elif (called & self.written) - parameters and (_IDENTIFIER.match(span.text) or "(" in span.text):
                    shown = Span("text", "another function")
            out.append(shown)
        return out

    def _masked_text(self, text: str, own: set[str], this: str) -> str:
        def mask(match: re.Match[str]) -> str:
            word = match.group()
            name = short_name(word.rstrip("("))
            if word.partition(".")[0] in _PATHS and "." in word:
                return this if name in own else "another function"
            if name in own and (word.endswith("(") or self.is_code(word)):
                return this + (" (" if word.endswith("(") else "")
            return word

        masked = re.sub(r"[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\(?", mask, text)
        return re.sub(r"\bthis (function|class|method|module) \1\b", r"this \1", masked)

    def is_code(self, word: str) -> bool:
        """Return whether a word in prose is a name and not an English word, such as ``besselj``, ``hyp2f1`` or ``kv``.

        Names that are also words (``center``, ``Maxwell``, ``reciprocity``) carry the meaning of a question.
        """
        name = word.lower()
        if re.search(r"\d|_|[a-z][A-Z]", word):
            return True
        if name in self.everyday:
            return False
        stems = {name[:-1], name[:-2]} - {name.removesuffix("s")}
        return len(name) == 2 or not re.search(r"[aeiouy]", name) or bool(stems & self.everyday)


def short_name(name: str) -> str:
    """Return the last part of a dotted name as prose spells it: ``scipy.stats.alpha_gen`` -> ``alpha``."""
    return name.rpartition(".")[2].lower().strip("_").removesuffix("_gen")
