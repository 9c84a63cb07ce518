"""Docstrings: sections, paragraphs, and what of reStructuredText is kept."""

import pytest

from graphs.corpus.mathdocs.rst import Span, paragraphs, sections

DOC = """Compute it.

    First paragraph
    of two lines.

    Parameters
    ----------
    x : float
        The :math:`x`.

    Explanation
    ===========

    Because.

    **Examples**

    >>> 1
    1
    """


def shown(text: str, **options: bool) -> list[str]:
    """Paragraphs with formulas in <> and code in []."""
    marks = {"formula": "<{}>", "code": "[{}]", "text": "{}"}
    return ["".join(marks[span.kind].format(span.text) for span in p) for p in paragraphs(text, **options)]


def test_sections_by_underlines_and_bold_lines() -> None:
    text = DOC.replace("\n    ", "\n")
    assert [section.title for section in sections(text)] == ["", "Parameters", "Explanation", "Examples"]
    assert sections(text)[2].text == "Because."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a :math:`x_1` b", ["a <x_1> b"]),
        ("a $x_1$ b, $5 and $6", ["a <x_1> b, $5 and $6"]),
        ("``code`` and `name`", ["[code] and [name]"]),
        (":func:`~scipy.special.jv` and :ref:`this text <target>`", ["[jv] and this text"]),
        ("`text <http://x>`_ and `t`_ and **bold** and *it*", ["text and t and bold and it"]),
        ("the method [1]_ is. See [2]_ for more", ["the method is. See a reference for more"]),
        (".. math:: a = b\n\n   c = d\n\nend", ["<a = b>", "<c = d>", "end"]),
        (".. math::\n   :label: e\n\n   a &= b \\\\\n   c &= d", [r"<\begin{aligned} a &= b \\ c &= d \end{aligned}>"]),
        (".. note::\n\n   Kept.\n\nend", ["Kept.", "end"]),
        (".. versionadded:: 1.0\n   Gone.\n\n.. [1] Gone.\n   Gone.\n\nend", ["end"]),
        ("Keep. As in this example::\n\n    code\n\nend", ["Keep.", "end"]),
        ("Is :math:`x`::\n\n    code", ["Is <x>:"]),
        ("The values are:\n\n>>> f(1)\n2\n\nend", ["end"]),
        ("* one\n  more\n* two (a) x\n\n1. three", ["one more", "two (a) x", "three"]),
        ("====  ====\nA     B\n====  ====\n1     2\n====  ====\n\nend", ["end"]),
        ("both continuous- or\ndiscrete-time", ["both continuous- or discrete-time"]),
        ("such as d(x,\ny) holds", ["such as d(x, y) holds"]),
    ],
)
def test_paragraphs(text: str, expected: list[str]) -> None:
    assert shown(text) == expected


def test_backticks_are_formulas_in_packages_that_say_so() -> None:
    assert shown("`x^2` of `~.Poly`", backticks_are_math=True) == ["<x^2> of [~.Poly]"]
    assert shown("`x^2`") == ["[x^2]"]


def test_backslashes_that_python_has_read_are_put_back() -> None:
    assert paragraphs(sections("a :math:`\alpha \beta \times \frac{1}{2}`")[0].text)[0][1] == Span(
        "formula", r"\alpha \beta \times \frac{1}{2}"
    )


def test_an_empty_docstring() -> None:
    assert [section.title for section in sections("")] == [""]
    assert paragraphs("") == []
