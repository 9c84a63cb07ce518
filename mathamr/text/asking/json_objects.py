r"""JSON objects in answers of language models, which write prose around them and make mistakes in them.

Single backslashes, trailing commas and a missing end are repaired; of an answer that ends too early the whole values
remain. Thoughts up to ``</think>`` are skipped, and objects that repeat the form of the answer with dots for texts:

>>> first_object(r'Sure! {"questions": ["Is $c \in (a, b)$?",]} That is all.', ("questions",))
{'questions': ['Is $c \\in (a, b)$?']}
>>> first_object('{"concepts": [{"name": "ring"}, {"name": "fie', ("concepts", "edges"))
{'concepts': [{'name': 'ring'}]}
>>> first_object('As {"questions": ["..."]}: {"questions": ["Is 7 prime?"]}', ("questions",))
{'questions': ['Is 7 prime?']}
>>> first_object("I do not know.", ("questions",))
{}
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import islice
from typing import Any

from graphs.formulas.latex.symbols import SYMBOLS

LONGEST_ANSWER = 20_000
"""Characters of an answer that are read."""
_MOST_OBJECTS = 20  # places where an object may begin
_LAST_COMMA = re.compile(r",(\s*[\]}])")
_JSON = json.JSONDecoder(strict=False)  # allow line ends inside strings
_BACKSLASH = re.compile(r'\\\\|\\"|\\u[0-9A-Fa-f]{4}|\\n(?P<word>[A-Za-z]*)(?P<brace>\{?)|\\')
# Commands with n: \nu, \nabla, \neq and other symbols, and those that are no symbols.
_COMMANDS = frozenset(SYMBOLS) | {r"\newline", r"\nolimits", r"\nonumber", r"\norm", r"\not", r"\notag"}
_PLACE = re.compile(r'[\[\]{}]|"(?:[^"\\]|\\.)*+(?P<whole>"?)', re.DOTALL)  # brackets and strings
_DOTS = frozenset(("...", "…"))
_SURROGATE = re.compile(r"[\ud800-\udfff]")  # half of a character, which no file can hold


def first_object(answer: str, keys: Sequence[str]) -> dict[str, Any]:
    """Return the first readable object of an answer that begins with one of the ``keys``; empty without one."""
    answer = answer.rpartition("</think>")[2][:LONGEST_ANSWER]
    begin = re.compile(r"\{\s*\"(?:" + "|".join(map(re.escape, keys)) + r")\"\s*:")
    for match in islice(begin.finditer(answer), _MOST_OBJECTS):
        content = _BACKSLASH.sub(_escaped, answer[match.start() :])
        for form in (content, _LAST_COMMA.sub(r"\1", content), _closed(content)):
            try:
                found, _ = _JSON.raw_decode(form)
            except (ValueError, RecursionError):
                continue
            if _is_form(found):
                break
            return dict(found)
    return {}


def _is_form(found: object) -> bool:
    """Return whether a value has texts, and all of them are dots."""
    values, strings = [found], set[str]()
    for one in values:  # grows within the loop
        if isinstance(one, str):
            strings.add(one.strip())
        elif isinstance(one, (dict, list)):
            values += one.values() if isinstance(one, dict) else one
    return bool(strings) and strings <= _DOTS


def texts(values: object) -> list[str]:
    """Return the texts among the values of an answer, or the only one, with single spaces.

    >>> texts(["Is  7 prime?", 7, "", None]), texts("Is 7 prime?"), texts({"a": 1})
    (['Is 7 prime?'], ['Is 7 prime?'], [])
    """
    strings = [one for one in (values if isinstance(values, list) else [values]) if isinstance(one, str)]
    return [text for one in strings if not _SURROGATE.search(one) and (text := " ".join(one.split()))]


def _escaped(match: re.Match[str]) -> str:
    r"""Escape the backslashes of LaTeX, and keep those of JSON: ``\\``, ``\"``, ``\u00e9``, ``\n`` for a line break.

    ``\n`` is LaTeX if the letters after it make a known command, or end before a brace.

    >>> print(_BACKSLASH.sub(_escaped, r"\nu, \norm{x}, \underline{x}; \u00e9tale\nmaps"))
    \\nu, \\norm{x}, \\underline{x}; \u00e9tale\nmaps
    """
    if (word := match["word"]) is None:
        is_latex = len(match.group()) == 1
    else:
        is_latex = rf"\n{word}" in _COMMANDS or bool(word and match["brace"])
    return "\\" + match.group() if is_latex else match.group()


def _closed(content: str) -> str:
    """Return the whole elements of lists at the beginning of JSON that ends too early, with brackets closed."""
    open_brackets: list[str] = []
    end, closing = 0, ""
    for match in _PLACE.finditer(content):
        sign = match.group()
        if sign in "[{":
            open_brackets.append("]" if sign == "[" else "}")
        elif sign in "]}" and (not open_brackets or open_brackets.pop() != sign):
            break
        if sign in "]}" or (match["whole"] and open_brackets[-1:] == ["]"]):
            end, closing = match.end(), "".join(reversed(open_brackets))
    return content[:end] + closing
