"""Sentences of a post with LaTeX in place of ``FORMULA_i``: the form that people and text encoders read.

>>> text = PlaceholderText(("Take FORMULA_0.", "Is it so?"), (FormulaRef("7", "x^2"),))
>>> with_latex(text.sentences[0], text), as_text(text)
('Take $x^2$.', 'Take $x^2$. Is it so?')
"""

from __future__ import annotations

import re

from graphs.corpus.post import FormulaRef, PlaceholderText

_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")


def with_latex(sentence: str, text: PlaceholderText) -> str:
    """Replace ``FORMULA_i`` in ``sentence`` by the LaTeX of its formula, between dollars."""
    return "".join(f"${part.latex}$" if isinstance(part, FormulaRef) else part for part in parts(sentence, text))


def as_text(text: PlaceholderText) -> str:
    """Return sentences with the LaTeX of their formulas between dollars."""
    return " ".join(with_latex(sentence, text) for sentence in text.sentences)


def parts(sentence: str, text: PlaceholderText) -> list[str | FormulaRef]:
    """Split ``sentence`` into words and the formulas of ``FORMULA_i``.

    >>> parts("Take FORMULA_0.", PlaceholderText((), (FormulaRef("7", "x^2"),)))
    ['Take ', FormulaRef(formula_id='7', latex='x^2'), '.']
    """
    pieces: list[str | FormulaRef] = []
    end = 0
    for match in _PLACEHOLDER.finditer(sentence):
        if int(match[1]) < len(text.formulas):
            pieces += [sentence[end : match.start()], text.formulas[int(match[1])]]
            end = match.end()
    return [part for part in (*pieces, sentence[end:]) if part]
