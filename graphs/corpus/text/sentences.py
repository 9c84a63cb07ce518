"""Ends of sentences in mathematical prose.

>>> split("Let FORMULA_0 be a group, i.e. a set with FORMULA_1. By Thm. 3.2 of Dr. G. H. Hardy it is finite! Why?")
['Let FORMULA_0 be a group, i.e. a set with FORMULA_1.', 'By Thm. 3.2 of Dr. G. H. Hardy it is finite!', 'Why?']
>>> split("The value is 3.14 ... or so, cf. Eq. (5). FORMULA_0 holds")
['The value is 3.14 ... or so, cf. Eq. (5).', 'FORMULA_0 holds']

A sentence ends at ``.``, ``!``, ``?`` or ``…`` (with closing quotes and brackets) before white space, unless what
is on either side speaks against it: an abbreviation, an initial, the number of an enumeration, an ellipsis in mid
sentence, a small letter after a factorial. ``FORMULA_i`` counts as a word and as a possible beginning.
``。``, ``！`` and ``？`` end a sentence, with the closing quotes and brackets after them.
No sentence is longer than :data:`MAX_WORDS` words: AMR parsers read a few hundred tokens at most, and a post without
any punctuation should cost one of its cuts, not its graph.
"""

from __future__ import annotations

import re
from itertools import pairwise

#: Characters of the scripts that are written without spaces, Thai to Chinese, in a class of a regular expression.
UNSPACED = r"\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u9fff\uf900-\ufaff\uff00-\uffef\U00020000-\U0003ffff"
#: Characters between two blanks in a sentence of such a script, at most; cut at a comma where there is one.
MAX_RUN = 200
#: Words in a sentence, at most; a longer one is cut at a semicolon, a comma or, failing that, between two words.
MAX_WORDS = 200

# Written with a dot, and followed by the rest of the sentence. Small letters, without the last dot.
_ABBREVIATIONS = frozenset(
    """
    e.g i.e eg ie cf viz resp w.l.o.g wlog w.r.t wrt s.t st a.e a.s a.k.a i.i.d iid q.e q.v i.o w.p r.h.s l.h.s w.h.p
    w.p.1 approx ca et vs al etc incl excl esp max min sup inf lim no nos nr fig figs eq eqs eqn eqns thm thms th
    theor lem lemm cor prop props def defn defs ex exs exer rem rmk conj prob sec sect secs chap ch par para app
    alg algo ref refs pp pg pgs vol vols ed eds edn edit trans univ dept inst proc ann math amer soc bull acad
    sci phys comp jr sr dr mr mrs ms prof rev gen hon messrs mt ave corp inc ltd co jan feb mar apr jun jul aug
    sep sept oct nov dec mon tue wed thu fri sat sun std stat diff deriv const coeff dim deg det tr char var cov
    corr cond indep lin
    """.split()  # noqa: SIM905
)
# Abbreviations that end a sentence as often as not: the next word decides.
_FINAL_TOO = frozenset(
    ["etc", "al", "s.t", "a.e", "a.s", "i.i.d", "iid", "q.e.d", "r.h.s", "l.h.s", "w.p.1", "w.h.p", "i.o"]
)
# Short words that are abbreviations only before a number, a bracket, a formula or a name ("no. 5", "sec. 3").
_WORDS_TOO = frozenset(
    "no max min par ex st in lin co app rem prop ref char const sat sun mar may dim det math inst gen ave th".split()  # noqa: SIM905
)
# A capital after an initial or an abbreviation begins a sentence only with one of these.
_STARTERS = frozenset(
    """
    a also although an and any are as assume at because but by can clearly consider could define did do does each every
    find first for from furthermore given has have hence here how however i if in indeed is it its last let lets like
    may maybe moreover my next no note notice now of on one or our please prove second see similarly since so some
    suppose take thank thanks that the their then there therefore these they this those thus to under use using was
    we what when where which while who why with would yes you your
    """.split()  # noqa: SIM905
)

_CANDIDATE = re.compile(
    r"""(?<![.!?…]) (?P<stop> [.!?…]+ )
        (?P<close> ["'”’»)\]}]*+ )
        (?P<gap> \s+ | (?=[A-Z][a-z]) )
        (?P<open> ["'“‘«(\[{]*+ )
        (?=(?P<next> \S ))""",
    re.VERBOSE,
)
_WIDE_STOP = re.compile(r"[。！？]+[”’」』》）]*")
_RUN = re.compile(rf"[^\s。！？]{{{MAX_RUN + 1},}}")
_PART_OF_RUN = re.compile(rf".{{1,{MAX_RUN}}}(?:(?<=[，；、：])|\Z)|.{{{MAX_RUN}}}")
_UNSPACED = re.compile(f"[{UNSPACED}]")
_LAST_WORD = re.compile(r"[^\s()\[\]{}\"“”‘«»,;:]*\Z")
_NEXT_WORD = re.compile(r"[A-Za-z]+")
_INITIAL = re.compile(r"(?:[A-Za-z]\.)*[A-Za-z]\Z")
_FORMULA = re.compile(r"FORMULA_\d+\Z")
_ENUMERATOR = re.compile(r"\(?(?:\d{1,3}|[a-zA-Z]|[ivxIVX]{1,5})\Z")


def split(text: str) -> list[str]:
    """Cut ``text`` into sentences, in order; white space is normalised, nothing else is changed or lost.

    Linear in the length of ``text``. An empty text has no sentences.
    """
    text = " ".join(text.split())
    sentences: list[str] = []
    start = 0
    for match in _CANDIDATE.finditer(text):
        if match.start() > start and _ends_sentence(text, start, match):
            end = match.start("gap")
            sentences.append(text[start:end])
            start = match.end("gap")
    if start < len(text):
        sentences.append(text[start:])
    if _UNSPACED.search(text):
        sentences = [part for sentence in sentences for part in _without_blanks(sentence)]
    return [piece for sentence in sentences for piece in _bounded(sentence)]


def _ends_sentence(text: str, start: int, match: re.Match[str]) -> bool:
    """Return whether the punctuation of ``match`` ends the sentence that began at ``start``."""
    stop, following = match["stop"], match["next"]
    at = match.start("stop")
    last_word = _LAST_WORD.search(text, max(start, at - 40), at)
    word = "" if last_word is None else last_word.group()
    lower = word.lower()
    next_is_small = following.islower()
    if not match["gap"]:  # "is zero.Then": only between a plain word and a word that begins sentences
        plain = word.isalpha() and word.islower() and len(word) > 2 and lower not in _ABBREVIATIONS
        return stop == "." and plain and _next_word(text, match) in _STARTERS
    if ".." in stop or "…" in stop:
        return following.isupper() and _next_word(text, match) != "i"
    if stop != ".":  # "n! is", "why? because": a small letter goes on
        return not next_is_small and (following.isalnum() or bool(match["open"]))
    if _FORMULA.match(word):
        return following.isalnum() or bool(match["open"]) or following in "\\-+"
    if at - len(word) <= start and _ENUMERATOR.match(word):  # "1. Let x be ...": the number of a list's item
        return False
    if lower in _ABBREVIATIONS:
        if match["close"] and next_is_small:
            return False
        if lower in _WORDS_TOO and word == lower:
            return following.isupper() and text[match.end("open") : match.end("open") + 8] != "FORMULA_"
        return lower in _FINAL_TOO and _next_word(text, match) in _STARTERS and not next_is_small
    if _INITIAL.match(word):  # "G. H. Hardy", "U.S. law"; "for all x in A. Then"
        return not next_is_small and following.isalnum() and _next_word(text, match) in _STARTERS
    if next_is_small:  # careless writing, not an abbreviation we have never seen
        return word.isalpha() and word.islower() and len(word) > 3 and any(c in "aeiouy" for c in word)
    return following.isalnum() or bool(match["open"]) or following in "\\$-+*•–—"


def _next_word(text: str, match: re.Match[str]) -> str:
    next_word = _NEXT_WORD.match(text, match.end("open"))
    return "" if next_word is None else next_word.group().lower()


def _without_blanks(text: str) -> list[str]:
    """Return the sentences of ``text`` in a script without spaces; none has a longer run than :data:`MAX_RUN`."""
    ends = {match.end() for match in _WIDE_STOP.finditer(text)} | {len(text)}
    for run in _RUN.finditer(text):
        if _UNSPACED.search(text, *run.span()):
            ends |= {part.end() for part in _PART_OF_RUN.finditer(text, *run.span()) if part.end() < run.end()}
    cuts = [0, *sorted(ends)]
    return [part for start, end in pairwise(cuts) if (part := text[start:end].strip())]


def _bounded(sentence: str) -> list[str]:
    """``sentence`` itself, or its parts of at most :data:`MAX_WORDS` words."""
    if sentence.count(" ") < MAX_WORDS:
        return [sentence]
    words = sentence.split(" ")
    parts: list[str] = []
    start = 0
    while len(words) - start > MAX_WORDS:
        end = start + MAX_WORDS
        floor = start + MAX_WORDS // 2
        for marks in (";", ",:"):
            cut = next((i for i in range(end, floor, -1) if words[i - 1][-1] in marks), None)
            if cut is not None:
                end = cut
                break
        parts.append(" ".join(words[start:end]))
        start = end
    parts.append(" ".join(words[start:]))
    return parts
