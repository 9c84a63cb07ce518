r"""Words of a node label, for a text encoder: concepts as in a dictionary, symbols by their names.

>>> words("have-org-role-91"), words("amr-unknown"), words("equat"), words("[UNK]")
('have org role', 'what', 'equat', '')
>>> words("V!α"), words("F!sin"), words("O!leq"), words("≤"), words("V!∞"), words("N!2")
('alpha', 'sine', 'less than or equals', 'less than or equals', 'infinity', '2')
>>> words("O!SUP"), words("M!M-2x3"), words("O!interval(C-O)"), words("V!R"), words("→"), words("+!O!limit")
('superscript', 'matrix 2 by 3', 'interval closed open', 'capital R', 'rightwards arrow', 'limit operator')

The vocabulary stems concepts that are not frames (:mod:`graphs.graph.labels`). The counts of the collection tell
which word a stem came from most often:

>>> forms = full_forms(Counts(amr={"equations": 4, "equation": 3, "solve-01": 9}))
>>> forms, words("equat", forms)
({'equat': 'equations'}, 'equations')

Names of symbols are those of :mod:`graphs.formulas.latex.symbols`, shared by both readers of formulas. Other
characters have their Unicode name.
"""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Mapping

from graphs.formulas.latex.symbols import SYMBOLS
from graphs.graph.labels import FORMULA, URL, normalize, number_type
from graphs.graph.mathamr_plus import NodeKind
from graphs.graph.vocabulary import RESERVED_LABELS, Counts

_FRAME_NUMBER = re.compile(r"(?<=[^\W\d])-\d{2,3}$")  # solve-01
_TREE_PREFIX = re.compile(r"^(?:[A-Z]|[-$])!(?=.)")  # V!x, N!2, O!SUP, -!x
_LETTER = re.compile(r"V![A-Za-z]")
_SPACES = re.compile(r"[-_\s]+")
_INTERVAL = re.compile(r"O!interval\(([OC])-([OC])\)")
_BY_LENGTH = re.compile(r"M!([VLS])-(\d+)")
_TABLE = re.compile(r"M!(M-)?(\D*?)(\d+)x(\d+)")
_NAMED = re.compile(
    r"GREEK (SMALL LETTER )?|LATIN SMALL LETTER |HEBREW LETTER | OPERATOR\b| SIGN\b|N-ARY |MATHEMATICAL |"
    r"COMBINING |WHITE |BLACK | SYMBOL\b| ACCENT\b| LETTER\b"
)

_OF_THEIR_OWN = {
    FORMULA: "formula",
    URL: "link",
    "amr-unknown": "what",
    "multi-sentence": "sentences",
    "O!SUP": "superscript",
    "O!SUB": "subscript",
    "O!root": "square root",
    "O!fragments": "fragments",
    "O!form-seq": "sequence of formulas",
    "O!rem": "modulo",
    "W!": "blank",
    "E!": "unreadable",
    "′": "prime mark",
    "+!": "operator",
    "F!": "function",
    "F!abs": "absolute value",
    "M!R!": "matrix row",
    "...": "dots",
    "&": "ampersand",
    "-": "minus",
    ":": "colon",
    ";": "semicolon",
    ",": "comma",
    ".": "point",
    "|": "vertical bar",
    "∣": "vertical bar",
    "∥": "double vertical bar",
    "(": "left parenthesis",
    "[": "left bracket",
    "{": "left brace",
    ")": "right parenthesis",
    "]": "right bracket",
    "}": "right brace",
}
_GROUPS = {"V": "vector", "L": "list", "S": "set"}
_FENCES = {"()": "parentheses", "[]": "brackets", "{}": "braces", "||": "absolute value", "∥∥": "norm", "": "table"}
_ENDS = {"O": "open", "C": "closed"}


def _names() -> dict[str, str]:
    """Return words by label, in either tree, for the symbols with a name; letters and marks name themselves."""
    names: dict[str, str] = {}
    for token in SYMBOLS.values():
        if token.name != token.value and token.name.isascii() and len(token.name) > 1:
            for label in (token.slt, token.opt):
                if not _LETTER.fullmatch(label):  # ℜ usually denotes the real numbers
                    names.setdefault(label, token.name.replace("-", " "))
    return names | _OF_THEIR_OWN


_NAMES = _names()


def words(label: str, forms: Mapping[str, str] | None = None) -> str:
    """Return the words of a label, for a text encoder; "" for labels that represent many.

    Args:
        forms: words of stemmed concepts: see :func:`full_forms`.
    """
    if label in RESERVED_LABELS:
        return ""
    label = (forms or {}).get(label, label)
    if label in _NAMES:
        return _NAMES[label]
    if label.startswith("+!"):
        return f"{words(label[2:])} operator"
    if label.startswith("M!") or label.startswith("O!interval"):
        return _container(label)
    if number_type(label):
        return label.removeprefix("N!")
    is_symbol = _TREE_PREFIX.match(label) is not None
    text = html.unescape(_TREE_PREFIX.sub("", label)).removeprefix("italic-")
    if text in _NAMES:
        return _NAMES[text]
    if f"V!{text}" in _NAMES:  # a function or a mark; the other tree labels it as a variable
        return _NAMES[f"V!{text}"]
    if is_symbol and len(text) == 1 and "A" <= text <= "Z":
        return f"capital {text}"  # encoders ignore case
    text = "".join(_named(character) for character in text)
    return _SPACES.sub(" ", _FRAME_NUMBER.sub("", text)).strip()


def _container(label: str) -> str:
    if match := _INTERVAL.fullmatch(label):
        return f"interval {_ENDS[match[1]]} {_ENDS[match[2]]}"
    if match := _BY_LENGTH.fullmatch(label):
        return f"{_GROUPS[match[1]]} of {match[2]}"
    if match := _TABLE.fullmatch(label):
        fence = html.unescape(match[2])
        name = "matrix" if match[1] else _FENCES.get(fence, f"between {' '.join(map(words, fence))}")
        if match[3] == "1" and not match[1]:
            return name if match[4] == "1" else f"{name} of {match[4]}"
        return f"{name} {match[3]} by {match[4]}"
    return "delimiters"


def _named(character: str) -> str:
    """Return a character itself, or its name if it is neither a Latin letter nor ASCII."""
    if character.isascii():
        return character
    name = unicodedata.name(character, "")
    if not name or (name.startswith("LATIN") and character.isalpha()):
        return character
    if unicodedata.category(character) in ("Pd", "Pi", "Pf"):  # dashes and quotation marks
        return " "
    return f" {_NAMES.get(character) or _NAMED.sub('', name).lower().replace('lamda', 'lambda')} "


def full_forms(counts: Counts) -> dict[str, str]:
    """Return the most frequent concept of each stem; of two equals the first. Typed factorials have none."""
    best: dict[str, tuple[int, str]] = {}
    for concept, number in sorted(counts.amr.items()):
        stem = normalize(concept, NodeKind.AMR)
        if number > best.get(stem, (0, ""))[0]:
            best[stem] = (number, concept)
    plain = {stem: unicodedata.normalize("NFKC", concept).strip('"') for stem, (_, concept) in best.items()}
    return {
        stem: concept
        for stem, concept in plain.items()
        if concept != stem and stem not in (FORMULA, URL) and not _TREE_PREFIX.match(concept)
    }
