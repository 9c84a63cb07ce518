r"""Sentences of a text with formulas in ``$...$``, which is never split inside a formula.

>>> split(r"Let $f(x) = x. y$ be e.g. a map. Then $f'(x) = \text{1. If $x$}$. It is.")
['Let $f(x) = x. y$ be e.g. a map.', "Then $f'(x) = \\text{1. If $x$}$.", 'It is.']

Formulas become placeholders, the text is split as in the graph track (:mod:`graphs.corpus.text.sentences`), and the
formulas are put back. A dollar without a partner is a plain dollar.
"""

from __future__ import annotations

import re

from graphs.corpus.text import sentences
from mathamr.text.plain import formula_spans

_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")
_JOINER = "\u2060"  # a mark without width, which texts do not need


def split(text: str) -> list[str]:
    """Return the sentences of ``text``, in order; white space outside formulas is folded."""
    pieces: list[str] = []
    formulas: list[str] = []
    position = 0
    for start, end in formula_spans(text):
        pieces += [_PLACEHOLDER.sub(r"FORMULA \1", text[position:start]), f"FORMULA_{len(formulas)}"]
        formulas.append(text[start:end])
        position = end
    pieces.append(_PLACEHOLDER.sub(r"FORMULA \1", text[position:]))
    marked = "".join(_JOINER + piece if piece[:1].isdigit() else piece for piece in pieces)  # FORMULA_1 before 2
    cut = sentences.split(marked)
    return [_PLACEHOLDER.sub(lambda match: formulas[int(match[1])], one).replace(_JOINER, "") for one in cut]
