"""Words and formulas of a query: those that a model knows, and those that it has never seen.

>>> from graphs.graph.mathamr_plus import decode
>>> from graphs.graph.vocabulary import Counts
>>> vocabulary = Vocabulary.build(Counts(amr={"prove-01": 9, "number": 3}, formula={"V!x": 6}), size=12)
>>> graph = decode("(p / prove-01 :ARG1 (z / zzzqqq) :mod (n / numbers))", {})
>>> read = read_words(graph, vocabulary)
>>> read.known, read.unknown, read.formulas
(('prove', 'numbers'), ('zzzqqq',), 0)
>>> str(read)
'known: prove, numbers; unknown: zzzqqq; 0 formulas'

All unknown labels have one vector, so a query of them alone would find the same posts whatever it asks.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.vocabulary import UNK, Vocabulary

_SENSE = re.compile(r"-\d{2,3}$")  # of a frame: prove-01
# Concepts that stand for no word of a subject: of the form of a sentence, and what joins words.
_STRUCTURE = frozenset(
    [
        "amr-empty",
        "amr-unknown",
        "document",
        "multi-sentence",
        "interrogative",
        "imperative",
        "expressive",
        "and",
        "or",
        "name",
        "+",
        "-",
    ]
)
_SHOWN = 20  # words of each kind in a line


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Contents of a query, each word once.

    Attributes:
        known: words that the vocabulary has.
        unknown: words that it lacks; all of them have one vector.
        formulas: formulas with a symbol that the vocabulary has.
        unread: formulas without one.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...]
    formulas: int
    unread: int = 0

    @property
    def nothing(self) -> bool:
        """Return whether the model knows no word and no formula of the query."""
        return not self.known and not self.formulas

    def __str__(self) -> str:
        words = [f"known: {_some(self.known)}"] if self.known else []
        words += [f"unknown: {_some(self.unknown)}"] if self.unknown else []
        unread = f", {self.unread} more without a known symbol" if self.unread else ""
        return "; ".join([*words, f"{self.formulas} formula{'' if self.formulas == 1 else 's'}{unread}"])


def read_words(graph: DocumentGraph, vocabulary: Vocabulary, *, with_formulas: bool = True) -> QueryWords:
    """Return the words and formulas of a graph, by whether ``vocabulary`` has them.

    Args:
        with_formulas: whether the model reads the trees of formulas.
    """
    known: list[str] = []
    unknown: list[str] = []
    read: set[int] = set()
    for label, kind, formula in zip(graph.labels, graph.kinds, graph.formula, strict=True):
        there = kind is not NodeKind.FORMULA and vocabulary.label_id(label, kind) != UNK
        if kind is NodeKind.AMR and label not in _STRUCTURE:
            (known if there else unknown).append(_SENSE.sub("", label).strip('"'))
        elif there and formula >= 0:
            read.add(formula)
    count = len(read) if with_formulas else 0
    unread = len(graph.formula_nodes) - count
    return QueryWords(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)), count, unread)


def _some(words: Sequence[str]) -> str:
    return ", ".join([*words[:_SHOWN], *(["..."] if len(words) > _SHOWN else [])])
