r"""Formulas in running text: between dollars, in ``\(..\)`` and ``\[..\]``, in environments such as ``align``.

>>> text = r"It costs $5, or $10 a pair; let $x<5$ and \(y=\$1\), so $$x+y$$."
>>> [(text[start:end], latex) for start, end, latex in find(text)]
[('$x<5$', 'x<5'), ('\\(y=\\$1\\)', 'y=\\$1'), ('$$x+y$$', 'x+y')]

A dollar that opens no formula stays where it is: nothing is swallowed by an unbalanced one. Whether ``$...$`` is a
formula is decided by what is inside: commands and operators speak for it, plain words against it, and a digit on each
side of the dollars for money. A formula reaches over no :data:`~graphs.corpus.text.markup.FORMULA`, but ``\[..\]`` and
environments may have some in braces, as in ``\text{if $x$}`` where a collection marks the inner formula. Within its
braces it may hold text with formulas:

>>> [latex for _, _, latex in find(r"Let $S=\{x : \text{$x$ is prime}\}$ be infinite.")]
['S=\\{x : \\text{$x$ is prime}\\}']
"""

from __future__ import annotations

import re
from bisect import bisect
from functools import cached_property
from itertools import accumulate

from graphs.corpus.text.markup import FORMULA, strip_delimiters

_OPENING = re.compile(r"\\\\|\\\$|\\\(|\\\[|\\begin\{(?P<environment>[A-Za-z]+\*?)\}|\$\$|\$")
_ENVIRONMENTS = frozenset(
    """equation align aligned alignat alignedat gather gathered multline eqnarray flalign split displaymath math cases
    array matrix pmatrix bmatrix vmatrix Vmatrix Bmatrix smallmatrix subequations IEEEeqnarray dcases CD""".split()  # noqa: SIM905
)
_DOLLAR = re.compile(r"(?<!\\)\$")
_CLOSING = {"$$": "$$", "\\(": "\\)", "\\[": "\\]"}
_OPENING_OF = {"\\)": "\\(", "\\]": "\\["}
_NESTING = re.compile(r"\\.|[{}]|\$\$?|\n[ \t\r]*\n", re.DOTALL)
_COMMAND = re.compile(r"\\(?:[A-Za-z]+|.)", re.DOTALL)
_TEXT_COMMAND = re.compile(
    r"\\(?:text|mbox|textrm|textbf|textit|operatorname|mathrm|mathbf|hbox|rm|bf)\b\*?\s*(?:\{[^{}]*\})?"
)
_WORD = re.compile(r"(?<![A-Za-z])[A-Za-z]{2,}(?![A-Za-z])")
_OPERATOR = re.compile(r"[=^_<>+*/|{}≤≥∈⊂→±×·∀∃∑∫√∞≠≡≈]|[A-Za-z)]\(|\d!|[\u0370-\u03ff]|\([^()]*,[^()]*\)|\w ?- ?\d")
_FUNCTIONS = frozenset(
    """sin cos tan cot sec csc arcsin arccos arctan sinh cosh tanh log ln lg exp lim max min sup inf det dim ker gcd
    lcm mod deg arg dx dy dz dt du dv ds dr im re tr rank span sgn sign var cov pr id ax bx by cx ab bc ac abc
    xy yz xz xyz nx ny kx mx iff""".split()  # noqa: SIM905
)
# Of the words of three letters or less, those that are prose and no product of variables.
_SHORT_WORDS = frozenset(
    """all and any are as at be but by can do for get has i.e if in is it let may my no not of on one or our see set she
    so the to too two up us was we who you""".split()  # noqa: SIM905
)
_ATOM = re.compile(r"[-−]?\s*(?:[A-Za-z]'*|\d+(?:[.,]\d+)?)\s*")
# With a blank at a dollar: lists with a letter or a bracket, and names of polygons.
_PART = r"\s*[-−]?(?:[A-Za-z]'*|\d+(?:\.\d+)?)\s*"
_LIST = re.compile(rf"(?=.*[A-Za-z\[(])[\[(]?{_PART}(?:,{_PART})+[\])]?|[A-Z]{{2,5}}", re.DOTALL)
#: Characters between two dollars, at most: what is longer is text that happens to stand between them.
MAX_INLINE = 4000


def find(text: str) -> list[tuple[int, int, str]]:
    """``(start, end, latex)`` of the formulas in ``text``, in order and without overlap; linear in its length."""
    formulas: list[tuple[int, int, str]] = []
    if "$" not in text and "\\" not in text:
        return formulas
    nearest = _Nearest(text)
    closes = closings(text)
    held = _Held(text)
    position = 0
    while (opening := _OPENING.search(text, position)) is not None:
        start, position = opening.span()
        token = opening.group()
        if token == "$":
            close = _inline_end(text, start, closes["$"].get(start, _NOWHERE), nearest(FORMULA, position))
            if close < 0:
                continue
            end, latex = close + 1, text[position:close].strip()
        elif token in _CLOSING:
            close = closes[token].get(start, _NOWHERE)
            if close == _NOWHERE:
                close = nearest(_CLOSING[token], position)
            if close == _NOWHERE:
                continue
            if nearest(FORMULA, position) < close and not (token == "\\[" and held(start, close)):
                continue
            end = close + len(token)
            latex = text[position:close].strip()
        elif opening["environment"] and opening["environment"].rstrip("*") in _ENVIRONMENTS:
            end = _environment_end(text, opening["environment"], position, nearest)
            if end < 0 or (nearest(FORMULA, position) < end and not held(start, end)):
                continue
            latex = strip_delimiters(text[start:end])
        else:
            continue
        if latex:
            formulas.append((start, end, latex))
            position = end
    return formulas


def closings(text: str, *, across_paragraphs: bool = False) -> dict[str, dict[int, int]]:
    r"""Find the end of each formula outside of the braces that open in it, in linear time.

    >>> closes = closings(r"$x_{\text{$y$}}$ or \(z\)")
    >>> closes["$"][0], closes["\\("][20]
    (15, 23)

    Args:
        text: text with formulas.
        across_paragraphs: whether a formula may have empty lines; in sources of papers, what was there is removed.

    Returns:
        For ``$``, ``$$``, ``\(`` and ``\[``: place of the opening delimiter -> place of the closing one. A formula
        without such an end, or with an odd number of dollars in it, is missing.
    """
    closes: dict[str, dict[int, int]] = {opening: {} for opening in ("$", *_CLOSING)}
    waiting: dict[str, list[tuple[int, int, int]]] = {opening: [] for opening in closes}  # place, depth, dollars
    depth = dollars = 0

    def close(opening: str, end: int) -> None:
        while waiting[opening] and waiting[opening][-1][1] >= depth:
            place, _, before = waiting[opening].pop()
            if (dollars - before) % 2 == 0:
                closes[opening][place] = end

    for match in _NESTING.finditer(text):
        token, place = match.group(), match.start()
        if token in "{}":
            depth += 1 if token == "{" else -1
        elif token[0] == "$":
            for opening in {"$", token}:
                close(opening, place)
            dollars += len(token)
            for opening in {"$", token}:
                waiting[opening].append((match.end() - len(opening), depth, dollars))
        elif token[0] == "\n":
            for places in () if across_paragraphs else waiting.values():
                places.clear()
        elif token in waiting:
            waiting[token].append((place, depth, dollars))
        elif token in _OPENING_OF:
            close(_OPENING_OF[token], place)
    return closes


def _inline_end(text: str, start: int, outside: int, limit: int) -> int:
    """Return the dollar that closes the formula opened at ``start``, or -1: ``outside`` its braces, or the next."""
    following = _DOLLAR.search(text, start + 1, start + 1 + MAX_INLINE)
    for close in (outside, following.start() if following is not None else _NOWHERE):
        if close <= min(limit, start + MAX_INLINE) and is_formula(
            text[start + 1 : close], text[start - 1 : start], text[close + 1 : close + 2]
        ):
            return close
    return -1


def is_formula(inner: str, before: str, after: str) -> bool:
    """Return whether ``inner``, between two dollars, is a formula; ``before`` and ``after`` are the characters around.

    >>> is_formula("x", " ", " "), is_formula("5 and ", " ", "1"), is_formula(" is odd and ", "x", "y")
    (True, False, False)
    """
    if not inner.strip():
        return False
    loose = inner[0].isspace() or inner[-1].isspace()
    if after.isdigit() and (inner[0].isdigit() or loose or inner[-1] in "-–/(,;"):
        return False  # "$5-$10", "from $5 to $10"
    if _ATOM.fullmatch(inner):
        return not (loose and inner.strip().isdigit())
    rest = _TEXT_COMMAND.sub(" ", inner)
    has_command = "\\" in inner
    bare = _COMMAND.sub(" ", rest)
    evidence = has_command or _OPERATOR.search(bare) is not None
    found = {word.lower() for word in _WORD.findall(bare)} - _FUNCTIONS
    words = [word for word in found if len(word) > 3 or word in _SHORT_WORDS]
    if loose and _LIST.fullmatch(inner.strip()):
        return inner.strip().lower() not in _SHORT_WORDS
    if loose:  # "$ x+1 $" is a formula; between "$a$, and $b$" the middle is not
        if not evidence or (inner[0] in ",.;:?!)" and not has_command):
            return False
        return len(words) <= (1 if has_command else 0)
    if evidence:
        return len(words) <= (8 if has_command else 3) and not (before.isalnum() and after.isalnum())
    if inner[0].isdigit() or inner[0] in ",.;:?!)":
        return not words and inner[0].isdigit()
    return len(words) <= 1


_NOWHERE = 1 << 62
_MOST_HELD = 64  # more would take quadratic time


class _Nearest:
    """Next occurrence of a string at or after a position, each search done once."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.found: dict[str, int] = {}

    def __call__(self, string: str, position: int) -> int:
        known = self.found.get(string, -1)
        if known < position:
            known = self.text.find(string, position)
            known = self.found[string] = _NOWHERE if known < 0 else known
        return known


class _Held:
    """Test of a part of a text: all formulas that a collection marks in it are in braces that open there."""

    def __init__(self, text: str) -> None:
        self.text = text

    @cached_property
    def _depths(self) -> tuple[list[int], list[int]]:
        """Places of braces, and the depth before the first and after each."""
        braces = [match for match in _NESTING.finditer(self.text) if match[0] in "{}"]
        steps = (1 if match[0] == "{" else -1 for match in braces)
        return [match.start() for match in braces], list(accumulate(steps, initial=0))

    def __call__(self, start: int, end: int) -> bool:
        places, depths = self._depths
        outside = depths[bisect(places, start)]
        at = self.text.find(FORMULA, start, end)
        for _ in range(_MOST_HELD):
            if at < 0:
                return True
            if depths[bisect(places, at)] <= outside:
                return False
            at = self.text.find(FORMULA, at + 1, end)
        return False


def _environment_end(text: str, environment: str, position: int, nearest: _Nearest) -> int:
    """Return the end of the environment whose ``\\begin{..}`` ends at ``position`` (nested ones count), or -1."""
    closing = f"\\end{{{environment}}}"
    opening = f"\\begin{{{environment}}}"
    close = nearest(closing, position)
    for _ in range(16 if close != _NOWHERE else 0):
        inside = text.find(opening, position, close)
        if inside < 0:
            return close + len(closing)
        position = inside + len(opening)
        close = text.find(closing, close + len(closing))
        if close < 0:
            return -1
    return -1
