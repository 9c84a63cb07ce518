"""Incomplete parses: detected by the tokens that a parser reports, split, and parsed again.

A neural parser may read only the first part of a chunk and return a graph of it, without an error. The graph says which
tokens it is of:

>>> tokens_of("# ::tok <ROOT> Is it finite ? [SEP] Why\\n(f / finite)")
['Is', 'it', 'finite', '?', 'Why']
>>> check("# ::tok Is it\\n(f / finite)", sent=5)
Failure(post_id='', stage='amr', kind='clipped', message='the graph is of 2 of the 5 tokens sent')

Such a chunk is divided: between sentences, a single sentence between words.

>>> divided(["Let FORMULA_0 be a group.", "Is it finite?", "Why?"])
[['Let FORMULA_0 be a group.', 'Is it finite?'], ['Why?']]
>>> divided(["Is it finite?"]), divided(["Why?"])
([['Is it'], ['finite?']], [])
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from graphs.errors import Failure

# Kinds of a failure that smaller input may mend: clipped by a limit of the model, merged badly from its windows, or a
# graph for some of the sentences only.
DIVISIBLE = frozenset({"clipped", "merge", "incomplete"})
_TOKENS = re.compile(r"^# ::tok(?:[ \t]+(.*))?$", re.MULTILINE)
_ADDED = frozenset({"<ROOT>", "[SEP]", "<s>", "</s>", "[CLS]"})  # by parsers, to the tokens of the text

Parse = Callable[[Sequence[Sequence[str]]], list[str | Failure]]


def tokens_of(penman_text: str) -> list[str] | None:
    """Return the tokens of the ``# ::tok`` line without those that a parser adds, or None without such a line."""
    match = _TOKENS.search(penman_text)
    return None if match is None else [token for token in (match[1] or "").split() if token not in _ADDED]


def check(penman_text: str, sent: int) -> Failure | None:
    """Return a failure for a graph of fewer than ``sent`` tokens, or of unknown ones; None for a whole graph."""
    tokens = tokens_of(penman_text)
    if tokens is None:
        return Failure("", "amr", "protocol", "the graph has no '# ::tok' line, so it may be of a part of the text")
    if len(tokens) < sent:
        return Failure("", "amr", "clipped", f"the graph is of {len(tokens)} of the {sent} tokens sent")
    return None


def divided(chunk: Sequence[str]) -> list[list[str]]:
    """Return the two halves of a chunk, or nothing for a single word."""
    if len(chunk) > 1:
        middle = (len(chunk) + 1) // 2
        return [list(chunk[:middle]), list(chunk[middle:])]
    words = " ".join(chunk).split()
    middle = (len(words) + 1) // 2
    return [[" ".join(words[:middle])], [" ".join(words[middle:])]] if len(words) > 1 else []


def completed(parse: Parse, chunk: Sequence[str], answer: str | Failure) -> list[str | Failure]:
    """Return the answer of a chunk; if it lacks a part, the failure and the answers of the chunk's parts."""
    parts = _parts(parse, chunk, answer)
    if len(parts) == 1 or not isinstance(answer, Failure):
        return [answer]
    lost = sum(isinstance(part, Failure) for part in parts)
    note = f"{answer.message}; parsed again in {len(parts)} parts, {lost} of which failed"
    return [replace(answer, message=note), *parts]


def _parts(parse: Parse, chunk: Sequence[str], answer: str | Failure) -> list[str | Failure]:
    if not isinstance(answer, Failure) or answer.kind not in DIVISIBLE:
        return [answer]
    halves = divided(chunk)
    if not halves:
        return [answer]
    answers = parse(halves)
    return [part for half, parts in zip(halves, answers, strict=True) for part in _parts(parse, half, parts)]
