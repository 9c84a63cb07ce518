"""Size limits of one post: a longer post is cut at a block, so that no post takes a job's time and memory.

>>> cut("<p>Let <b>all</b> hold.</p><p>Then more.</p>", 30)
'<p>Let <b>all</b> hold.</p>'
>>> cut("One sentence. Another one.", 18)
'One sentence. '

The longest post of 5,194 in ARQMath-mini has 62,805 characters of markup, 641 formulas and 223 sentences; a question of
74,989 on Math Stack Exchange at most 28,215, 384 and 148. The bounds are about eight times as high, or more: what is
past them is a book, a file or an attack.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import replace

from graphs.corpus.post import PlaceholderText

#: Characters of markup of a post, title and body together.
MAX_CHARACTERS = 500_000
MAX_FORMULAS = 5_000
MAX_SENTENCES = 5_000

_WINDOW = 65_536  # characters before the bound in which a boundary is looked for
_ENDS = re.compile(r"</[a-zA-Z][a-zA-Z0-9]*\s*>|<br\s*/?>|\n[ \t]*\n")
_SENTENCE_ENDS = re.compile(r"[.!?]\s+|\n")
_SPACE = re.compile(r"\s+")
_OPEN_FORMULA = re.compile(r"<span\b[^<>]*math-container", re.IGNORECASE)
_TAG = re.compile(r"</?[a-zA-Z]")
_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")


def cut(markup: str, room: int) -> str:
    """Return at most ``room`` characters from the beginning of ``markup``, HTML or plain text.

    It is cut after the last end of an element or paragraph before the bound, else after a sentence, else between two
    words; never within a tag or a ``math-container``.
    """
    if len(markup) <= room:
        return markup
    first = max(0, room - _WINDOW)
    ends = (_last(pattern, markup, first, room) for pattern in (_ENDS, _SENTENCE_ENDS, _SPACE))
    end = next((match.end() for match in ends if match is not None), room)
    start_tag = _last(_OPEN_FORMULA, markup, first, end)
    if start_tag is not None and markup.find("</span", start_tag.end(), end) < 0:
        return markup[: start_tag.start()]
    tag = markup.rfind("<", first, end)
    within = tag >= 0 and _TAG.match(markup, tag, end) is not None and markup.find(">", tag, end) < 0
    return markup[: tag if within else end]


def _last(pattern: re.Pattern[str], text: str, start: int, end: int) -> re.Match[str] | None:
    matches = deque(pattern.finditer(text, start, end), maxlen=1)
    return matches[0] if matches else None


def shortened(text: PlaceholderText) -> PlaceholderText:
    """Return the sentences of ``text`` within the bounds, and their formulas; ``cut`` names what was left out.

    >>> from graphs.corpus.post import FormulaRef
    >>> many = PlaceholderText(("FORMULA_0 is.",) * 5_001, (FormulaRef("7", "x"),))
    >>> len(shortened(many).sentences), shortened(many).cut
    (5000, 'a post of 5,001 sentences; the first 5,000 are read')
    """
    sentences, formulas = text.sentences, text.formulas
    if len(sentences) <= MAX_SENTENCES and len(formulas) <= MAX_FORMULAS:
        return text
    kept = min(len(sentences), MAX_SENTENCES)
    reasons = []
    if len(formulas) > MAX_FORMULAS:
        reasons.append(f"a post of {len(formulas):,} formulas; at most {MAX_FORMULAS:,} are read")
        for number, sentence in enumerate(sentences[:kept]):
            if any(int(i) >= MAX_FORMULAS for i in _PLACEHOLDER.findall(sentence)):
                kept = number
                break
    if len(sentences) > MAX_SENTENCES:
        reasons.append(f"a post of {len(sentences):,} sentences; the first {kept:,} are read")
    dropped = (int(i) for sentence in sentences[kept:] for i in _PLACEHOLDER.findall(sentence))
    first = min(next(dropped, len(formulas)), MAX_FORMULAS)
    return replace(
        text, sentences=sentences[:kept], formulas=formulas[:first], cut="; ".join(filter(None, (text.cut, *reasons)))
    )
