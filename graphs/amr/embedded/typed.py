r"""Mathematics typed without dollars: ``n+1``, ``x < 1``, ``f(x)``; each expression gets the name of a formula.

>>> text, concepts = name_expressions("If n + 1 > k, the and/or of a p-group FORMULA_0 is (n-1)/2.")
>>> text
'If  FORMULA_1000000000 , the and/or of a p-group  FORMULA_0  is  FORMULA_1000000001 .'
>>> concepts
{'FORMULA_1000000000': 'n+1>k', 'FORMULA_1000000001': '(n-1)/2'}

An expression alternates operands and operators. A word is an operand only beside an operator that no English word has
(``axis=0``). Text that may also be English, a date or a label is left to spaCy (``and/or``, ``K-12``, ``x-y``,
``person(s)``, ``11/2016``, ``(3)``), and so is an expression that touches other characters. A negative number keeps its
place in the text, with a true minus, which spaCy does not split off.
"""

from __future__ import annotations

import re

from graphs.amr.embedded.reading import FORMULA

_PLACEHOLDER = re.compile(f"({FORMULA.pattern})")
_FIRST = 1_000_000_000  # number of the first name; no post has as many formulas

# Brackets are replaced from inside to outside, each of their characters by one of two marks. Then an expression has
# no brackets: they may be English, as (s) and (3), or are certainly mathematics, as (n+1) and (x, y).
_ENGLISH, _CERTAIN = "\ue000", "\ue001"
_BRACKETS = f"[{_ENGLISH}{_CERTAIN}]"
_DEPTH = 8  # of brackets in brackets
_PARTS = 40  # of an expression; without a bound, long texts take quadratic time

_NUMBER = r"\d+(?:,\d{3}(?!\d))*(?:\.\d+)?"
_FUNCTION = (
    r"(?:arc)?(?:sin|cos|tan)h?|cot|sec|csc|log|ln|exp|max|min|sup|inf|gcd|lcm|det|dim|ker|deg|sqrt|abs|sgn|alpha|beta"
    r"|gamma|delta|epsilon|lambda|mu|nu|phi|pi|psi|rho|sigma|tau|theta|zeta|omega"
)
_LETTER = r"[^\W\d_](?:\d+|_\w*)?['′²³]*(?![^\W_])|[∞∅]"
_PREFIX = r"(?:[-−+±√∂∑∏∫¬∀∃]|~(?=[A-Za-z(]))*"
_FACTORIAL = r"(?:!(?=\s*[a-z+*/^=<>)\]},-]))?"
# An operand: x, 2x, -x_1, 3, sin; with brackets f(x), (n+1)(n-1); n!, if the sentence does not end with it.
_SYMBOL = rf"{_PREFIX}(?:(?:{_NUMBER})?(?:{_FUNCTION}(?![^\W\d_])|{_LETTER})|{_NUMBER}(?!\w)|{_BRACKETS})"
_OPERAND = rf"{_SYMBOL}(?:{_BRACKETS}+(?:{_LETTER})?)*{_FACTORIAL}"
_WORD = rf"{_PREFIX}(?!the\b)\w+{_BRACKETS}*"
# An operator that no English word has.
_SIGN = (
    r"(?::=|[<>=!]=+|<?[-=]+>|[<>=+^]|\*\*?|[×÷±·•\u2190-\u21ff\u2208-\u220e\u2213-\u221d\u221f-\u22ff\u2a00-\u2aff])"
)
_ARTICLE = r"(?:[aAI]|the)\s[^\W\d_]{2}"  # "x = a number"
_EXPRESSION = (
    rf"(?>{_OPERAND}|{_WORD}(?=(?!\^){_SIGN}))"
    rf"(?>{_SIGN}(?:{_OPERAND}|{_WORD})|[-−/|:&,]{_OPERAND}"
    rf"|(?:\s(?:{_SIGN}|[-−/%])\s|\s?(?=[<>=≤≥≠]){_SIGN}\s?)(?!{_ARTICLE}){_OPERAND}){{0,{_PARTS}}}+"
)
_GROUP = re.compile(rf"[(\[{{]\s?{_EXPRESSION}(?:,\s?{_EXPRESSION})*\s?[)\]}}]|(?<!\w)\|(?:{_EXPRESSION}|\w\w)\|")
# The expression begins after a blank, a bracket or a quotation mark, and ends before one or a word's "-th".
_TYPED = re.compile(
    rf"(?:(?<=[\s(\[{{\"“‘«—–])|\A)(?=[^+±])(?P<expression>{_EXPRESSION})"
    r"(?:(?=\s|\Z|[)\]}\"'”’»—–]|--|[.,;:?!…]+(?:[\s)\]}\"'”’»]|\Z))|-(?=[^\W\d_]{2}))"
)
_MATHEMATICAL = re.compile(rf"{_CERTAIN}|[^\W\d](?:\d+|['′]*){_BRACKETS}|(?!\A){_SIGN}|[√∂∑∏∫¬∀∃~∞∅]|!")
_NEGATIVE = re.compile(r"[-−][0-9]+(?:\.[0-9]+)?")
_PART = r"(?:[0-9]{1,3}|[A-Za-zα-ω])"
# Mathematics although nothing in it is certain: n-1, a_n, a|b, 1/2, -x, 1,2.
_SHORT = re.compile(
    rf"[a-zα-ω]-[0-9]+|[A-Za-zα-ω]_[^\W_]{{1,2}}(?<!_th)|[A-Za-z]\|[A-Za-z]|-?{_PART}/{_PART}|-[a-zα-ω]"
    rf"|(?!{_NUMBER}\Z)[0-9]+(?:,[0-9]+)+"
)
# An expression of which such a neighbour is left out would be another: x mod 3=1, sin x=0, f of 2-1=0.
_OPERATOR = "[+*/^=<>≤≥≠·×÷∘]"
_CUT_BEFORE = re.compile(
    rf"(?:{_OPERATOR}|[\d)\]}}{_ENGLISH}{_CERTAIN}]\s[-−]|\b(?:mod|lim|{_FUNCTION})|(?<![^\s(\[{{])[b-zB-HJ-Z]'*)\s\Z"
)
_CUT_AFTER = re.compile(rf"\s(?:{_OPERATOR}|mod)\s")
# A statement with such a neighbour would be another: "Let A x = b" (this A is no article), "x = k m.", "x = y sin z".
_STATEMENT = re.compile("[=<>≤≥≠]")
_FACTOR_BEFORE = re.compile(r"(?:[^\s.?!:]\s|[(\[{])A\s\Z|(?:\A|[-−+*/]\s)[0-9]+\s\Z")
_FACTOR_AFTER = re.compile(
    r"\s(?:sin|cos|tan|log|ln|exp)\b"
    r"|\s[b-zB-HJ-Z](?:[.?!]?\Z|[,;]|\s(?:[-−+*/]\s|(?:mod|and|or|for|where|[b-zB-HJ-Z])(?![\w'’-])))"
)
_CUT_END = re.compile(rf"(?<![^\W_])(?:lim|{_FUNCTION})\Z")
_WORDS = re.compile(r"\s?[^\W\d_]{3,}(?:,\s?[^\W\d_]{3,})+\s?")  # (epsilon, delta), (min, max)
_OPEN = re.compile(r"[(),]")
_ABBREVIATIONS = frozenset(["a(n)", "w/o", "w/e", "n/a", "N/A", "i/o", "I/O", "y/n", "Y/N", "m/s"])
_SPELLINGS = str.maketrans({"−": "-", "≤": "<=", "≥": ">=", "≠": "!=", "²": "^2", "³": "^3"})


def name_expressions(sentence: str) -> tuple[str, dict[str, str]]:
    """Return the sentence with a name for each typed expression, and the concept of each name.

    A concept is the expression without blanks. Names and placeholders become separate words.
    """
    concepts: dict[str, str] = {}
    parts = _PLACEHOLDER.split(sentence)
    parts[::2] = [_name_in(text, concepts) for text in parts[::2]]
    return " ".join(parts), concepts


def _name_in(text: str, concepts: dict[str, str]) -> str:
    masked = _without_brackets(text)
    pieces: list[str] = []
    position = 0
    for match in _TYPED.finditer(masked):
        start, end = match.span("expression")
        if _is_cut(masked, start, end):
            continue
        concept = "".join(text[start:end].split()).translate(_SPELLINGS)
        certain = _MATHEMATICAL.search(masked, start, end)
        inner = _without_brackets(concept[1:-1]) if concept[0] + concept[-1] == "()" else ","
        if not _OPEN.search(inner):  # all of it is in one pair of brackets
            concept, certain = concept[1:-1], _MATHEMATICAL.search(inner)
        if _NEGATIVE.fullmatch(concept):
            name = "−" + concept[1:]
        elif (certain or _SHORT.fullmatch(concept)) and concept not in _ABBREVIATIONS:
            name = f"FORMULA_{_FIRST + len(concepts)}"
            concepts[name] = concept
        else:
            continue
        pieces += [text[position:start], f" {name} "]
        position = match.end()
    return "".join([*pieces, text[position:]])


def _is_cut(text: str, start: int, end: int) -> bool:
    """Return whether the expression is a part of a longer one, which cannot be read."""
    before, after = text[max(0, start - 12) : start], text[end : end + 10]
    if _CUT_BEFORE.search(before) or _CUT_AFTER.match(after):
        return True
    if _STATEMENT.search(text, start, end) and (_FACTOR_BEFORE.search(before) or _FACTOR_AFTER.match(after)):
        return True
    return bool(_CUT_END.search(text, start, end)) and after[:1].isspace()


def _without_brackets(text: str) -> str:
    for _ in range(_DEPTH):
        text, count = _GROUP.subn(_mask, text)
        if not count:
            break
    return text


def _mask(match: re.Match[str]) -> str:
    group = match[0]
    inner = group[1:-1]
    comma = "," in re.sub(_NUMBER, "", inner) and not _WORDS.fullmatch(inner)
    certain = group[0] == "|" or comma or _MATHEMATICAL.search(inner) or _SHORT.fullmatch(inner)
    return (_CERTAIN if certain else _ENGLISH) * len(group)
