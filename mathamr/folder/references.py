r"""References of LaTeX as words: the kind of the target that they print, or a sign for its number; keys of sources.

>>> from graphs.papers.plain import plain
>>> references = References({"thm": "theorem", "lem": "lemma"})
>>> latex = r"By \cref{thm:a}, \eqref{b}, Lemma~\ref{c} and \cite[p.~5]{d}, $x \text{ is \eqref{b}}$."
>>> without_rests(plain(references.marked(latex)))
'By Theorem, (⋯), Lemma and [d, p. 5], $x \\text{ is \\eqref{b}}$.'

The number of a target is unknown, because a file is read without the rest of its book. Formulas stay as they are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from graphs.papers.plain import formula_spans

# References print a kind, which begins the label or the command (\cref{lem:zorn}, \lemref{zorn}), a number or a source
_REFERENCE = re.compile(
    r"\\(?!h|MRh)(?P<own>[a-zA-Z]{0,20}?)ref\*?\s*(?:\[[^\]]{0,500}\]\s*){0,3}\{\s*+(?P<kind>[a-zA-Z]*+)[^{}]*\}"
    r"|\\(?P<cite>cite|(?!no|foot)[a-zA-Z]{1,8}cite)[a-zA-Z]*\*?\s*"
    r"(?:\[(?P<first>[^\]]{0,500})\]\s*)?(?:\[(?P<note>[^\]]{0,500})\]\s*)?\{(?P<keys>[^{}]*)\}"
)
_WORD_BEFORE = re.compile(r"([^\W\d_]+)[~\s]*\Z|\}\Z")  # a kind, or another reference: \olref{lem:a}\olref{item}
_SHOWN = re.compile("\x02[^\x03]*\x03")  # the words for a reference, which formulas have as it is
_OUTSIDE = str.maketrans({"&": " ", "\x01": "&", "\x02": None, "\x03": None})
_INSIDE = str.maketrans({"\x01": r"\&", "\x02": None, "\x03": None})
_TARGETS = {
    name: kind
    for kind, names in {
        "part": "part", "chapter": "ch cha chap chapter", "section": "sec subsec section", "appendix": "app",
        "equation": "eq eqn", "figure": "fig figure", "table": "tab tbl table", "algorithm": "alg",
    }.items()
    for name in names.split()
}  # fmt: skip
_REST = re.compile(r"(?<! ) +(?=[.,)](?:\s|\Z))|(?:\A| )(?:\( ?\)|\[ ?\])")  # Lemma~\ref{a}, (\ref{b}) and [\cite{c}].
_RESTS = re.compile(r"[&\x01\x02]| [.,)](?:[\s$]|\Z)|(?:\A|[ $])(?:\( ?\)|\[ ?\])")  # all of them, also in formulas


class References:
    """References of a text to statements by the ``names`` of their environments, to sections, formulas and sources."""

    def __init__(self, names: Mapping[str, str]) -> None:
        self._names = names
        self._kinds = {kind.lower() for kind in (*names.values(), *_TARGETS.values())}

    def marked(self, latex: str) -> str:
        """Return LaTeX with kinds in place of references, or with marked words before them."""
        return _REFERENCE.sub(self._shown, latex)

    def _shown(self, reference: re.Match[str]) -> str:
        """Return the printed kind of a target or, in marks before the reference, signs for its number or its source."""
        own, keys, text = reference["own"], reference["keys"], reference.string
        if keys is not None:
            first, note = reference["first"], reference["note"]
            before, after = (first, note) if note is not None else ("", first)
            shown = ", ".join(
                filter(None, (f"{before} {', '.join(key.strip() for key in keys.split(','))}".strip(), after))
            )
            if text[reference.start() - 1 : reference.start()] + text[reference.end() : reference.end() + 1] != "[]":
                shown = f"[{shown}]"
            return f"\x02{shown}\x03" + reference[0] * (reference["cite"] == "cite")
        name = (reference["kind"] if own in ("c", "C", "auto") else own).lower()
        if kind := self._kind(name) if name not in ("eq", "page") else "":
            return kind
        word = _WORD_BEFORE.search(text, max(0, reference.start() - 40), reference.start())
        if word is not None and (word[1] is None or word[1].lower() in self._kinds):
            return reference[0]
        shown = "(⋯)" if own == "eq" else (own and own != "page" and self._kind(reference["kind"].lower())) or "⋯"
        return f"\x02{shown}\x03{reference[0]}"

    def _kind(self, name: str) -> str:
        """Return the kind of statement, section or formula with this name; empty if it is unknown."""
        return (self._names.get(name) or _TARGETS.get(name, "")).capitalize()


def without_rests(text: str) -> str:
    r"""Remove what references leave around them, and the signs between cells of tables, outside of formulas.

    >>> without_rests("A \x01 B & see Lemma . $x & \x01$")
    'A & B   see Lemma. $x & \\&$'
    >>> without_rests("Lemma ,$x$[ ], see.")
    'Lemma,$x$, see.'
    """
    if _RESTS.search(text) is None:  # most paragraphs; to find formulas takes longer
        return text
    pieces, position = list[str](), 0
    for start, end in [*formula_spans(text), (len(text), len(text))]:
        pieces.append(_REST.sub("", text[position:start].translate(_OUTSIDE)))
        pieces.append(_SHOWN.sub("", text[start:end]).translate(_INSIDE))
        position = end
    return "".join(pieces)
