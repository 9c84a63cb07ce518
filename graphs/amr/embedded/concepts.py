"""First step from dependencies to AMR: concepts of words.

>>> from graphs.amr.embedded.parser import EmbeddedParser
>>> EmbeddedParser().parse([["We know the proof of this theorem."]])
['(k / know-01 :ARG0 (w / we) :ARG1 (p / prove-01 :ARG1 (t2 / theorem :mod (t / this))))']
"""

from __future__ import annotations

import re

from graphs.amr.embedded.draft import UNUSED, Draft, Token, name
from graphs.amr.embedded.lexicon import MATHEMATICAL_ADJECTIVES, MATHEMATICAL_NOUNS, Lexicon
from graphs.amr.embedded.reading import FORMULA, IFF, ORDINAL_ENDINGS, SUCH_THAT
from graphs.amr.embedded.words import (
    DETERMINERS,
    DISTANCE_UNITS,
    MODALS,
    MULTIPLES,
    NUMBERS,
    ORDINALS,
    PRONOUNS,
    QUANTITIES,
    RELATIVE_PRONOUNS,
    TIME_UNITS,
    UNKNOWN,
)

_MATHEMATICAL_VERBS = frozenset(
    """
    converge diverge hold exist vanish divide commute intersect contain equal satisfy tend imply depend follow
    belong
    """.split()  # noqa: SIM905
)
_WITH_CONCEPTS = frozenset(
    "VERB AUX NOUN ADJ ADV INTJ PROPN X PRON SYM SCONJ ADP CCONJ PART".split()  # noqa: SIM905
)
_FUNCTIONS = frozenset("prep mark cc case aux auxpass punct expl neg agent".split())  # noqa: SIM905
_NUMBER = re.compile(r"[+-]?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+)(?:\.[0-9]+)?")
_ORDINAL = re.compile(r"([0-9]+)(?:st|nd|rd|th)")
_WORD = re.compile(r"[^\W_]")
_PLAIN = re.compile(r"\w[\w-]*")
# Not the comma of 1,2, nor the sign of n=4 and k+1, which begin or end with what is no expression: n=4..12.
_ODD = re.compile(r"(?:[^\w,=<>+*^]|(?<![0-9]),|,(?![0-9])|(?<!\w)[=<>+*^]|[=<>+*^](?!\w))+")


def place_concepts(draft: Draft, lexicon: Lexicon) -> None:
    """Assign each word its concept or constant, if it has one."""
    pronouns: dict[str, int] = {}
    _mend_verbs(draft, lexicon)
    _join_particles(draft, lexicon)
    _join_names(draft, lexicon)
    for token in draft.tokens:
        if not token.done and token.node < 0:
            _place(draft, lexicon, token, pronouns)


def _place(draft: Draft, lexicon: Lexicon, token: Token, pronouns: dict[str, int]) -> None:
    lower, dep, pos = token.lower, token.dep, token.pos
    if FORMULA.fullmatch(token.text):
        draft.place(token, token.text)
    elif (
        not _WORD.search(token.text)
        or (pos in ("PUNCT", "SPACE", "PART") and dep != "ROOT")
        or lower in (SUCH_THAT, IFF)
        or (lower in ORDINAL_ENDINGS and _follows_formula(draft, token))
        or (lower == "that" and token.tag in ("WDT", "IN"))  # a relative pronoun or a conjunction
    ):
        pass
    elif lower in UNKNOWN and token.tag.startswith("W"):
        _place_question_word(draft, token)
    elif dep in ("aux", "auxpass", "expl", "mark", "cc", "preconj", "prep", "agent", "case", "dative") and (
        pos in ("AUX", "PART", "SCONJ", "CCONJ", "ADP", "PRON") or lower in MODALS
    ):
        pass
    elif lower in PRONOUNS and (pos in ("PRON", "DET") or dep == "poss") and token.tag != "CD":
        _place_pronoun(draft, token, pronouns)
    elif pos == "DET" or token.tag in ("DT", "PDT"):
        _place_determiner(draft, token)
    elif pos == "NUM" or token.tag == "CD" or _NUMBER.fullmatch(token.text):
        _place_number(draft, token)
    elif (lower in ORDINALS or _ORDINAL.fullmatch(lower)) and pos in ("ADJ", "ADV", "NOUN"):
        match = _ORDINAL.fullmatch(lower)
        draft.place(token, "ordinal-entity")
        draft.attribute(token.node, ":value", match[1] if match else str(ORDINALS[lower]))
    elif pos == "ADP" and token.dep in ("ROOT", "advmod", "conj", "pobj", "prt"):
        draft.place(token, lower)
    elif token.lemma == "be" and pos in ("AUX", "VERB"):
        pass  # the clause decides
    elif pos in ("NOUN", "PROPN", "VERB") or (pos in _WITH_CONCEPTS and dep not in _FUNCTIONS):
        _place_word(draft, lexicon, token)


def _follows_formula(draft: Draft, token: Token) -> bool:
    return token.index > 0 and FORMULA.fullmatch(draft.tokens[token.index - 1].text) is not None


def _place_word(draft: Draft, lexicon: Lexicon, token: Token) -> None:
    lower, word_class = token.lower, token.word_class
    head = draft.tokens[token.head]
    if (
        lower in MATHEMATICAL_NOUNS
        and token.pos in ("VERB", "ADJ")
        and FORMULA.fullmatch(head.text)
        and token.index < head.index
    ):
        word_class = "N"  # "an open set FORMULA_0"
    if lower in ("not", "n't", "never"):
        if lower == "never":
            draft.place(token, "ever")
        return
    if lower in QUANTITIES:
        draft.place(token, lower)
        return
    if lower == "please" and head is not token:
        return  # the clause takes it up
    if token.pos == "PROPN" and token.text[:1].isupper() and len(token.text) == 1:
        # A letter by itself is a variable of mathematics.
        token.node = token.inner = token.outer = name(draft, "variable", [token.text])
        return
    if word_class == "N" and lower.endswith("s") and token.lemma in TIME_UNITS | DISTANCE_UNITS:
        draft.place(token, token.lemma)
        return
    if lower in MATHEMATICAL_ADJECTIVES and word_class in ("V", "J") and not _has_agent(draft, token):
        draft.place(token, lower)
        return
    concept = lexicon.concept(token.lemma, word_class) if word_class else token.lemma
    if token.pos == "ADJ" and token.tag in ("JJR", "JJS") and not concept:
        concept = token.lemma
    if token.pos == "ADJ" and concept == token.lemma and token.tag == "JJ":
        concept = _participle(lexicon, token) or concept
    if concept == token.lemma:
        concept = _clean(concept)
    if concept:
        draft.place(token, concept)


def _has_agent(draft: Draft, token: Token) -> bool:
    return any(draft.tokens[c].dep in ("agent", "nsubj", "dobj") and token.pos == "VERB" for c in token.children)


def _clean(concept: str) -> str:
    """Return a word as a concept: letters, digits, signs between them, and hyphens for all other characters."""
    return concept if _PLAIN.fullmatch(concept) else _ODD.sub("-", concept).strip("-")


def _participle(lexicon: Lexicon, token: Token) -> str:
    """Return the frame of an adjective that is the participle of a known verb: ``bounded`` -> ``bound-01``."""
    lower = token.lower
    for ending in ("ed", "ing"):
        if lower.endswith(ending) and len(lower) > len(ending) + 2:
            stem = lower[: -len(ending)]
            for verb in (stem, stem + "e", stem[:-1] if stem[-1] == stem[-2] else stem):
                if lexicon.has_verb(verb):
                    return lexicon.concept(verb, "V")
    return ""


def _place_question_word(draft: Draft, token: Token) -> None:
    """Place ``amr-unknown`` for a question word, nothing for a relative pronoun; the clause decides which."""
    head = draft.tokens[token.head]
    clause = head
    while (
        clause.dep not in ("ROOT", "relcl", "ccomp", "advcl", "conj", "pcomp", "acl", "xcomp")
        and clause.head != clause.index
    ):
        clause = draft.tokens[clause.head]
    if clause.dep == "relcl" and token.lower in RELATIVE_PRONOUNS:
        return
    if clause.dep == "advcl" and token.lower in ("when", "where", "how", "why"):
        return
    if (
        token.lower in ("what", "whatever", "which", "who")
        and clause.dep in ("ccomp", "pcomp", "csubj")
        and token.dep in ("nsubj", "dobj", "nsubjpass", "pobj")
    ):
        draft.place(token, "thing" if token.lower != "who" else "person")
        return
    draft.place(token, "amr-unknown")


def _place_pronoun(draft: Draft, token: Token, pronouns: dict[str, int]) -> None:
    """Place the concept of a pronoun once in a sentence; each ``one`` is another."""
    concept = PRONOUNS[token.lower]
    if concept in pronouns:
        token.node = token.inner = token.outer = pronouns[concept]
        return
    node = draft.place(token, concept)
    if concept != "one":
        pronouns[concept] = node


def _place_determiner(draft: Draft, token: Token) -> None:
    lower = token.lower
    if lower in ("the", "a", "an", "no"):
        return
    if lower in DETERMINERS:
        draft.place(token, DETERMINERS[lower][1])
    elif lower not in ("neither",):
        draft.place(token, token.lemma)


def _place_number(draft: Draft, token: Token) -> None:
    """Make a number a constant below what it counts; a dependent of another number belongs to that number."""
    head = draft.tokens[token.head]
    if token.dep == "compound" and head.pos == "NUM" and head.index != token.index:
        return
    value = _value(draft, token)
    if value is None:
        if _clean(token.lower):
            draft.place(token, _clean(token.lower))
        return
    if token.dep in ("ROOT", "nsubj", "nsubjpass", "conj", "ccomp", "advcl", "relcl", "dep", "appos") or any(
        draft.tokens[c].dep in ("prep", "conj", "amod", "relcl", "det") for c in token.children
    ):
        draft.place(token, "one" if token.lower == "one" else "number")
        if token.lower != "one":
            draft.attribute(token.node, ":quant", value)
        return
    token.constant = value


def _value(draft: Draft, token: Token) -> str | None:
    if _NUMBER.fullmatch(token.text):
        return token.text.replace(",", "").lstrip("+")
    value = _of_word(token.lower)
    if value is None:
        return None
    for child in token.children:
        other = draft.tokens[child]
        if other.dep == "compound" and child < token.index:
            factor = int(other.text) if other.text.isdecimal() else _of_word(other.lower)
            if factor is not None:
                value = value * factor if token.lower in MULTIPLES else value + factor
    return str(value)


def _of_word(word: str) -> int | None:
    if word in NUMBERS or word in MULTIPLES:
        return NUMBERS.get(word) or MULTIPLES.get(word) or 0
    tens, _, ones = word.partition("-")
    if tens in NUMBERS and ones in NUMBERS:
        return NUMBERS[tens] + NUMBERS[ones]
    return None


def _mend_verbs(draft: Draft, lexicon: Lexicon) -> None:
    """Make a verb with the formula as its subject of ``FORMULA_0 converges``, tagged as a plural noun."""
    for token in draft.tokens:
        if (
            token.tag == "NNS"
            and token.index > 0
            and token.dep in ("ROOT", "ccomp", "conj", "advcl", "relcl", "dobj", "pobj")
        ):
            formula = draft.tokens[token.index - 1]
            alone = formula.dep in ("compound", "nmod", "nummod") and formula.head == token.index
            if (
                alone
                and FORMULA.fullmatch(formula.text)
                and token.lemma in _MATHEMATICAL_VERBS
                and lexicon.has_verb(token.lemma)
            ):
                token.pos, token.tag, formula.dep = "VERB", "VBZ", "nsubj"


def _join_particles(draft: Draft, lexicon: Lexicon) -> None:
    """Join ``carry ... out`` to one verb where the lists have it."""
    for token in draft.tokens:
        if token.dep == "prt":
            verb = draft.tokens[token.head]
            joined = f"{verb.lemma} {token.lower}"
            if verb.pos in ("VERB", "AUX") and lexicon.has_verb(joined):
                verb.lemma = joined
                token.done = True


def _join_names(draft: Draft, lexicon: Lexicon) -> None:
    """Join adjacent proper nouns to a name, of a person in most cases: mathematics names things after persons."""
    tokens = draft.tokens
    last_part: dict[int, int] = {}  # of the name that a word was joined to
    for token in tokens:
        if token.pos != "PROPN" or token.done or len(token.text) == 1 or not token.text[:1].isupper():
            continue
        if FORMULA.fullmatch(token.text) or not token.text[0].isalpha():
            continue
        if (
            token.dep == "compound"
            and tokens[token.head].pos == "PROPN"
            and not FORMULA.fullmatch(tokens[token.head].text)
        ):
            continue
        if lexicon.is_common(token.text):
            token.pos = "NOUN"  # of a title or a heading
            token.lemma = token.lower[:-1] if token.tag == "NNPS" and token.lower.endswith("s") else token.lower
            continue
        first = token.index
        while first > 0:
            if _same_name(tokens[first - 1], tokens[first], token):
                first -= 1
            elif (
                first > 1
                and tokens[first - 1].text in ("-", "–")
                and (_capitalized(tokens[first - 2]) or last_part.get(first - 2) == first)
            ):
                first -= 2  # Cauchy-Schwarz
            else:
                break
        words = [t.text for t in tokens[first : token.index + 1] if t.text not in ("-", "–")]
        token.node = token.inner = token.outer = name(draft, "thing" if words[0].isupper() else "person", words)
        for other in tokens[first : token.index]:
            other.done = True
            last_part[other.index] = token.index
            if other.node >= 0:  # a name so far, and now the first part of this one
                draft.concepts[other.node] = draft.concepts[other.node + 1] = UNUSED
                other.node = other.inner = other.outer = token.node


def _capitalized(token: Token) -> bool:
    return token.text[:1].isupper() and token.text.isalpha() and len(token.text) > 1 and not token.done


def _same_name(left: Token, right: Token, last: Token) -> bool:
    return (
        left.pos == "PROPN"
        and left.dep == "compound"
        and left.head in (right.index, last.index)
        and not FORMULA.fullmatch(left.text)
        and not left.children
    )


def quantity(draft: Draft, token: Token, value: str) -> None:
    """Make a quantity with a value and a unit of ``six years``, in place of the plain noun."""
    kind = "temporal-quantity" if token.lemma in TIME_UNITS else "distance-quantity"
    unit = token.node
    node = draft.node(kind)
    draft.attribute(node, ":quant", value)
    draft.edge(node, ":unit", unit)
    token.node = token.inner = token.outer = node
