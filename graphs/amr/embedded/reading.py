"""Mathematical English as words that a parser of plain English can read.

>>> [word.shown for word in read(["Prove", "that", "FORMULA_0", "if", "and", "only", "if", "FORMULA_1", "."])]
['Prove', 'that', 'X', 'holds', 'when', 'X', 'holds', '.']
>>> [word.text for word in read(["FORMULA_0", "-", "th"])]
['FORMULA_0', 'th']

A tagger without ``FORMULA_0`` in its training may read it as a verb; it knows ``X``. A formula that is a whole
statement gets the verb ``holds`` as its clause; the node of that verb is again the formula.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

FORMULA = re.compile(r"FORMULA_[0-9]+")
_NEGATIVE = re.compile(r"−([0-9]+(?:\.[0-9]+)?)")
ORDINAL_ENDINGS = frozenset(["th", "st", "nd", "rd"])
STANDS_FOR = ""  # text of a verb inserted after a formula
SUCH_THAT, IFF = "such-that", "iff"

# After these words a formula is a statement, if one of the others follows.
_BEFORE_STATEMENT = frozenset(
    """
    if that then hence thus therefore so since because when whenever where while as iff such-that consequently
    """.split()  # noqa: SIM905
)
_AFTER_STATEMENT = frozenset(
    """
    . , ; : ! ? ) then and or for if iff we there it but hence so where when such-that whenever because since
    """.split()  # noqa: SIM905
)
# Verbs that open an exercise and look like nouns to a tagger: read as "find".
_COMMANDS = frozenset(
    """
    compute evaluate simplify factor factorize differentiate integrate solve calculate determine express sketch
    estimate approximate minimize maximize
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class Word:
    """Word of the sentence, and its replacement for the parser of English."""

    text: str
    shown: str


def read(texts: Sequence[str]) -> list[Word]:
    """Make the words of a sentence from its tokens."""
    words: list[Word] = []
    lower = [text.lower() for text in texts]
    position = 0
    while position < len(texts):
        text = texts[position]
        if lower[position : position + 4] == ["if", "and", "only", "if"]:
            words.append(Word(IFF, "when"))
            position += 4
        elif lower[position] == "iff":
            words.append(Word(IFF, "when"))
            position += 1
        elif lower[position : position + 2] == ["such", "that"]:
            words.append(Word(SUCH_THAT, "where"))
            position += 2
        elif FORMULA.fullmatch(text):
            words.append(Word(text, "X"))
            before = words[-2].text.lower() if len(words) > 1 else ""
            position += 1
            if lower[position : position + 2] in (["-", ending] for ending in ORDINAL_ENDINGS):
                position += 1
            elif position < len(texts) and lower[position].startswith("-") and lower[position][1:] in ORDINAL_ENDINGS:
                words.append(Word(lower[position][1:], "th"))
                position += 1
            after = lower[position] if position < len(texts) else "."
            if before in _BEFORE_STATEMENT and after in _AFTER_STATEMENT:
                words.append(Word(STANDS_FOR, "holds"))
        elif (negative := _NEGATIVE.fullmatch(text)) is not None:
            words.append(Word("-" + negative[1], negative[1]))
            position += 1
        elif (
            lower[position] in _COMMANDS
            and text[0].isupper()
            and (position == 0 or texts[position - 1] in (".", ":", ")"))
        ):
            words.append(Word(text, "Find"))
            position += 1
        else:
            words.append(Word(text, text))
            position += 1
    return words
