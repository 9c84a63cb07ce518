"""Node labels and relations brought to the form that the vocabulary counts (thesis, section 3.3.1).

>>> normalize("equations", NodeKind.AMR), normalize("solve-01", NodeKind.AMR), normalize("FORMULA_3", NodeKind.FORMULA)
('equat', 'solve-01', 'FORMULA')
>>> normalize("V!𝑥", NodeKind.OPT), normalize("http://arxiv.org/abs/1", NodeKind.AMR)
('V!x', '[URL]')
>>> number_type("N!1729"), number_type("6.02e23"), number_type("N!3/8"), number_type("N!x")
('[UNKNUM_INT]', '[UNKNUM_DEC]', '[UNKNUM_RAT]', None)

Rare numbers share one of three labels; the vocabulary decides by its counts which numbers are rare.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import cache, lru_cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

from graphs.graph.mathamr_plus import NodeKind

if TYPE_CHECKING:
    from nltk.stem.porter import PorterStemmer

URL = "[URL]"
FORMULA = "FORMULA"
UNKNOWN_NUMBERS = ("[UNKNUM_INT]", "[UNKNUM_DEC]", "[UNKNUM_RAT]")

_FRAME = re.compile(r".+-\d{2,3}")  # solve-01, have-org-role-91
_LONGEST_WORD = 64  # characters; longer concepts are no words, and the stemmer recurses over runs of y
# Of typed mathematics, which is no word: P(A), n^s, Z_0, n!
_TYPED = re.compile(r"[+*/^=<>(){}\[\]|~_±×÷·•√∞∅\u2190-\u22ff\u2a00-\u2aff]|[!'′]\Z")
_OF_TREES = re.compile(r"[A-Z$+-]!")  # how labels of trees begin: V!x, N!2, but also typed factorials
_SIGN = "[+\\-\u2212]?"
_INTEGER = re.compile(rf"{_SIGN}(\d+|\d{{1,3}}((,|&comma;)\d{{3}})+)", re.ASCII)
_DECIMAL = re.compile(rf"{_SIGN}(\d+\.\d*|\.\d+|\d+(?=[eE]))([eE]{_SIGN}\d+)?", re.ASCII)
_RATIONAL = re.compile(rf"{_SIGN}\d+[/\u2044]\d+", re.ASCII)
_NUMBERED = re.compile(r"(:op|:snt|:opt-)(\d{1,18})", re.ASCII)  # int() refuses thousands of digits


@cache
def porter_stemmer() -> PorterStemmer:
    """Return nltk's Porter stemmer.

    Its module is imported alone: the rest of nltk takes a second and imports scikit-learn, pandas and scipy.stats.

    >>> porter_stemmer().stem("equations")
    'equat'
    """
    spec = find_spec("nltk")
    if "nltk" in sys.modules or spec is None or spec.origin is None:
        return import_module("nltk.stem.porter").PorterStemmer()
    before = set(sys.modules)
    package, stem = ModuleType("nltk"), ModuleType("nltk.stem")  # in place of packages that import all of nltk
    package.__path__, stem.__path__ = [str(Path(spec.origin).parent)], [str(Path(spec.origin).parent / "stem")]
    sys.modules |= {"nltk": package, "nltk.stem": stem}
    try:
        return import_module("nltk.stem.porter").PorterStemmer()
    finally:
        for name in [name for name in sys.modules if name.partition(".")[0] == "nltk" and name not in before]:
            del sys.modules[name]  # the next import of nltk finds the whole


@lru_cache(maxsize=1 << 18)
def normalize(label: str, kind: NodeKind) -> str:
    """Return the vocabulary's label for ``label``.

    NFKC first, which unites compatibility variants (𝑥 and x, ℝ and R); addresses become ``[URL]``, all placeholders
    ``FORMULA``; AMR concepts are Porter-stemmed, apart from PropBank frames, numbers and typed mathematics. A blank
    separates typed factorials from labels of trees.

    >>> normalize("Sets", NodeKind.AMR), normalize("P(A)", NodeKind.AMR), normalize("N!+1", NodeKind.AMR)
    ('set', 'P(A)', 'N !+1')
    """
    if kind is NodeKind.FORMULA:
        return FORMULA
    label = unicodedata.normalize("NFKC", label)
    if "http" in label or "www." in label:
        return URL
    if kind is not NodeKind.AMR:
        return label
    if len(label) > 2 and label[0] == label[-1] == '"':
        label = label[1:-1]
    if len(label) > _LONGEST_WORD or _FRAME.fullmatch(label) or number_type(label) or _TYPED.search(label):
        return f"{label[0]} {label[1:]}" if _OF_TREES.match(label) else label
    return str(porter_stemmer().stem(label))


def number_type(label: str) -> str | None:
    """Return the token of a rare number like ``label``, also after ``N!``; ``None`` for other labels."""
    value = label[2:] if label.startswith("N!") else label
    for token, pattern in zip(UNKNOWN_NUMBERS, (_INTEGER, _DECIMAL, _RATIONAL), strict=True):
        if pattern.fullmatch(value):
            return token
    return None


def numbered(role: str) -> tuple[str, int] | None:
    """Family and index of a role that numbers its targets: ``:op12``, ``:snt3``, ``:opt-7``; ``None`` for other roles.

    >>> numbered(":snt3"), numbered(":opt-12"), numbered(":ARG1"), numbered(":opt")
    ((':snt', 3), (':opt-', 12), None, None)
    """
    match = _NUMBERED.fullmatch(role)
    return None if match is None else (match[1], int(match[2]))
