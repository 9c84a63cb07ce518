"""Words and formulas of a query, known and unknown to a model.

>>> from graphs.graph.mathamr_plus import decode
>>> from graphs.graph.vocabulary import Counts
>>> vocabulary = Vocabulary.build(Counts(amr={"prove-01": 9, "number": 3}, formula={"V!x": 6}), size=12)
>>> graph = decode("(p / prove-01 :ARG1 (z / zzzqqq) :mod (n / numbers))", {})
>>> read = read_words(graph, vocabulary)
>>> read.known, read.unknown, read.formulas
(('prove', 'numbers'), ('zzzqqq',), 0)
>>> str(read)
'known: prove, numbers; unknown: zzzqqq; 0 formulas'
>>> str(read_words(graph, vocabulary, sentences=["Proof of zzzqqqs, by Numbers"]))
'known: Proof, Numbers; unknown: zzzqqqs; 0 formulas'

With the sentences, words are shown as the query has them. A concept that the parser adds, such as ``possible`` for
"can", is not shown; a known one is counted in ``added``, because the model reads it, but not the ``you`` of a command.

>>> graph = decode("(p / prove-01 :ARG1 (n / number) :mod (m / zzzqqq))", {})
>>> read = read_words(graph, vocabulary, sentences=["Proof"])
>>> read.known, read.unknown, read.added
(('Proof',), (), 1)

All unknown labels have one vector, so a query of them alone would find the same posts whatever it asks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

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
_WORD = re.compile(r"[^\W_]+(?:['’-][^\W_]+)*")
_PLACEHOLDER = re.compile(r"FORMULA_\d+")
_SHARE = 0.6  # of the letters of a concept, with which a word that it comes of begins: proof, prove
_LEAST = 3  # letters, at least, of that beginning
_SHOWN = 20  # words of each kind in a line


@dataclass(frozen=True, slots=True)
class QueryWords:
    """Contents of a query, each word once.

    Attributes:
        known: words that the vocabulary has.
        unknown: words that it lacks; all of them have one vector.
        formulas: formulas with a symbol that the vocabulary has.
        unread: formulas without one.
        added: known concepts that the parser added to the words.
    """

    known: tuple[str, ...]
    unknown: tuple[str, ...]
    formulas: int
    unread: int = 0
    added: int = 0

    @property
    def nothing(self) -> bool:
        """Return whether the model knows no word, no added concept and no formula of the query."""
        return not self.known and not self.added and not self.formulas

    def __str__(self) -> str:
        words = [f"known: {_some(self.known)}"] if self.known else []
        words += [f"unknown: {_some(self.unknown)}"] if self.unknown else []
        unread = f", {self.unread} more without a known symbol" if self.unread else ""
        return "; ".join([*words, f"{self.formulas} formula{'' if self.formulas == 1 else 's'}{unread}"])


def read_words(
    graph: DocumentGraph, vocabulary: Vocabulary, *, sentences: Sequence[str] = (), with_formulas: bool = True
) -> QueryWords:
    """Return the words and formulas of a graph, by whether ``vocabulary`` has them.

    Args:
        sentences: the query with placeholders, whose words are shown in place of concepts.
        with_formulas: whether the model reads the trees of formulas.
    """
    found = [word for sentence in sentences for word in _WORD.findall(_PLACEHOLDER.sub(" ", sentence))]
    typed: dict[str, list[str]] = {}
    for word in dict.fromkeys(found):
        typed.setdefault(_start(word), []).append(word)
    known: list[str] = []
    unknown: list[str] = []
    added: set[str] = set()
    read: set[int] = set()
    for label, kind, formula in zip(graph.labels, graph.kinds, graph.formula, strict=True):
        is_known = kind is not NodeKind.FORMULA and vocabulary.label_id(label, kind) != UNK
        if kind is NodeKind.AMR and label not in _STRUCTURE:
            concept = _SENSE.sub("", label).strip('"')
            word = _as_typed(concept, typed.get(_start(concept), ())) if typed else concept
            if word:
                (known if is_known else unknown).append(word)
            elif is_known and concept != "you":
                added.add(concept)
        elif is_known and formula >= 0:
            read.add(formula)
    count = len(read) if with_formulas else 0
    unread = len(graph.formula_nodes) - count
    return QueryWords(tuple(dict.fromkeys(known)), tuple(dict.fromkeys(unknown)), count, unread, len(added))


def _start(word: str) -> str:
    """Return the first letters of a word, which a concept and its word have in common."""
    return word.casefold()[:_LEAST]


def _as_typed(concept: str, typed: Sequence[str]) -> str:
    """Return the word of the query that a concept comes of; "" without one."""
    name = concept.casefold()
    least = max(_LEAST, math.ceil(_SHARE * len(name)))
    best, length = "", 0
    for word in typed:
        equal = takewhile(lambda letters: letters[0] == letters[1], zip(name, word.casefold(), strict=False))
        common = sum(1 for _ in equal)
        if common > length and (common >= least or name == word.casefold()):
            best, length = word, common
    return best


def _some(words: Sequence[str]) -> str:
    return ", ".join([*words[:_SHOWN], *(["..."] if len(words) > _SHOWN else [])])
