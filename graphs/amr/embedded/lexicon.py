"""Lexicon of the embedded parser: concepts of lemmas, roles of frames, roles of dependencies.

>>> words = Lexicon.load()
>>> words.concept("solve", "V"), words.concept("proof", "N"), words.concept("theorem", "N")
('solve-01', 'prove-01', 'theorem')
>>> words.subject_role("prove-01"), words.subject_role("exist-01")
(':ARG0', ':ARG1')

``frames.json`` is derived by scripts/development/derive_amr_frames.py. Each table is written as value -> its keys,
joined by ``;``:

- ``verbs``: a verb's first sense, the numbers of its roles, and prepositions that go with a role (``01:012:to2``), of
  lemmas (``prove``, ``carry out``);
- ``adjectives``: the sense (``02``) of adjectives that have a frame of their name;
- ``nouns``: the frame of nouns made from a verb: ``solve-01`` of ``solution N``, ``person<ARG0-of<solve-01`` of
  ``solver N``;
- ``words``: what a lemma of a word class became in gold graphs most often: ``happy-01`` of ``happy J``, or nothing;
- ``roles``: which role a dependency became in gold graphs most often, of particular keys and of general ones.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Iterator, Set
from dataclasses import dataclass
from importlib import resources

#: Nouns of mathematics for things, although a list may derive them from a verb or a tagger read them as names.
MATHEMATICAL_NOUNS = frozenset(
    """
    algebra algorithm angle answer approach argument axiom axis base basis body bound boundary bracket calculus
    cardinal case category center chain chapter circle claim class closure coefficient cofactor collection comment
    complement component composition condition cone conjecture conjugate constant continuity contour convergence
    coordinate corollary coset counterexample cover curvature curve cycle datum degree denominator density
    derivative determinant diagram digit dimension disc discriminant disk distance distribution divisor domain edge
    edit eigenvalue eigenvector element entry epsilon equality equation equivalence error estimate event example
    exercise expectation exponent expression extension factor factorial factorization family fiber field figure form
    formula formulation fraction framework function functor gcd generator geometry gradient graph group hint
    homomorphism hyperplane hypothesis ideal identity image index inequality infimum infinity infinum injection
    integral interval intuition invariant isomorphism kernel lattice lcm lemma length limit line linear list
    logarithm map mapping matrix maximum mean measure method metric minimum minor mode model module modulus monoid
    morphism neighborhood norm notation number numerator object operation operator optimum order ordinal orientation
    origin parameter parity part partition path period permutation plane point pole polygon polynomial population
    power prime probability process product projection property proposition ps quantifier question quotient radical
    radius random range rank rate ratio rectangle recurrence reference region remainder representation residue
    result ring root row rule sample scalar scheme segment sequence series set sheaf side sign slope space sphere
    square state step strip subgroup submodule subsequence subset subspace sum supremum surface symbol system table
    tail tangent tensor term theorem topic topology trace transform tree triangle trigonometry tuple union unit
    update value variable variance vector vertex volume wlog
    """.split()  # noqa: SIM905
)
#: Adjectives of mathematics that are no form of a verb there.
MATHEMATICAL_ADJECTIVES = frozenset(
    """
    bounded closed compact complete continuous countable dependent differentiable discontinuous fixed
    independent integrable integral measurable normal open perfect prime regular simple uncountable unbounded
    """.split()  # noqa: SIM905
)
#: Words with another meaning in mathematics than in the gold graphs.
_MATHEMATICAL_WORDS = {"solution N": "thing<ARG2-of<solve-01", "people N": "person", "mathematic N": "mathematics"}
_COMMON_ENDINGS = (
    "tion", "tions", "sion", "sions", "ment", "ments", "ness", "ity", "ities", "ism", "isms", "ing", "ings", "ed", "ly",
    "ance", "ence", "ances", "ences", "ical", "ular", "able", "ible", "ous", "ive", "ics", "metic", "onal", "tial",
    "ents",
)  # fmt: skip
#: Dependencies whose role depends on the dependent only: ``very`` is a degree, ``today`` a time.
_BY_CHILD = frozenset(["advmod", "amod", "npadvmod"])
#: Dependencies whose role comes from gold graphs with the same frame only, else from the frame's description.
_BY_HEAD = frozenset(["nsubj", "nsubjpass", "dobj"])


@dataclass(frozen=True, slots=True)
class Frame:
    """First sense of a lemma. ``roles``: numbers of its ARGs; ``prepositions``: ARG number of each preposition."""

    sense: str
    roles: str
    prepositions: dict[str, str]


@dataclass(frozen=True)
class Link:
    """A dependency between two concepts, in the form of the role tables.

    ``relation`` is the dependency label with the preposition on the way, ``nsubj`` or ``prep:of``; kinds are ``V`` (a
    frame), ``N`` (another concept), ``P`` (a pronoun), ``T`` (a time), ``F`` (a formula), ``C`` (a constant).
    """

    head: str
    head_kind: str
    relation: str
    child: str
    child_kind: str

    def backoff(self) -> Iterator[str]:
        """Yield the keys in the role table, the most specific first."""
        yield f"{self.head} {self.relation} {self.child}"
        if self.relation in _BY_CHILD:
            yield f"{self.head_kind} {self.relation} {self.child}"
            return
        yield f"{self.head} {self.relation} {self.child_kind}"
        yield f"{self.head} {self.relation}"
        if self.relation in _BY_HEAD:
            return
        yield f"{self.head_kind} {self.relation} {self.child}"
        yield f"{self.head_kind} {self.relation} {self.child_kind}"
        yield f"{self.head_kind} {self.relation}"


class Lexicon:
    """Tables of ``frames.json``, each from key to value."""

    def __init__(self, tables: dict[str, dict[str, str]]) -> None:
        self._verbs = tables["verbs"]
        self._nouns = tables["nouns"] | {f"{a} J": f"{a}-{sense}" for a, sense in tables["adjectives"].items()}
        self._words = tables["words"]
        self._roles = tables["roles"]
        self.frame = functools.lru_cache(20_000)(self._frame)

    @staticmethod
    @functools.cache
    def load() -> Lexicon:
        """Return the lexicon of the package, read once in a process."""
        return Lexicon.read((resources.files("graphs.amr.embedded") / "frames.json").read_text(encoding="utf-8"))

    @staticmethod
    def read(text: str) -> Lexicon:
        """Read a lexicon in the form of ``frames.json``."""
        return Lexicon(
            {
                name: {key: value for value, keys in table.items() for key in keys.split(";")}
                for name, table in json.loads(text).items()
            }
        )

    def has_verb(self, lemma: str) -> bool:
        return lemma in self._verbs

    def is_common(self, word: str) -> bool:
        """Return whether a capitalised word is an ordinary one: known, or with an ending that is rare in names."""
        lower = word.lower()
        singular = lower[:-1] if lower.endswith("s") else lower
        return (
            singular in MATHEMATICAL_NOUNS
            or lower in self._verbs
            or f"{singular} N" in self._nouns
            or f"{lower} J" in self._nouns
            or (len(lower) > 5 and lower.endswith(_COMMON_ENDINGS))
        )

    def concept(self, lemma: str, word_class: str) -> str:
        """Return the concept of a lemma of class ``V``, ``N``, ``J`` or ``R``; ``""`` where gold graphs leave it out.

        A pattern ``person<ARG0-of<solve-01`` is a concept with a frame below it; ``!`` at the end means ``:polarity
        -``.
        """
        if (word_class == "N" and lemma in MATHEMATICAL_NOUNS) or (
            word_class == "J" and lemma in MATHEMATICAL_ADJECTIVES
        ):
            return lemma
        if f"{lemma} {word_class}" in _MATHEMATICAL_WORDS:
            return _MATHEMATICAL_WORDS[f"{lemma} {word_class}"]
        known = self._words.get(f"{lemma} {word_class}")
        if known is not None:
            return known
        if word_class == "V":
            frame = self.frame(lemma)
            return f"{lemma.replace(' ', '-')}-{frame.sense if frame else '01'}"
        if word_class == "R" and lemma.endswith("ly"):
            return self._of_adverb(lemma)
        return self._nouns.get(f"{lemma} {word_class}", lemma)

    def _of_adverb(self, lemma: str) -> str:
        for base in (lemma[:-2], lemma[:-4], lemma[:-3] + "y", lemma[:-1] + "e", lemma[:-2] + "le"):
            known = self._words.get(f"{base} J") or self._nouns.get(f"{base} J")
            if known and "<" not in known:
                return known
        if lemma.endswith(("ably", "ibly")):
            return lemma[:-1] + "e"
        return lemma[:-2] if len(lemma) > 4 else lemma

    def _frame(self, lemma: str) -> Frame | None:
        """Return the frame of a verb, ``None`` for a verb that the lists do not have."""
        coded = self._verbs.get(lemma)
        if coded is None:
            return None
        sense, _, rest = coded.partition(":")
        roles, _, hints = rest.partition(":")
        return Frame(sense, roles, {hint[:-1]: hint[-1] for hint in hints.split(",") if hint})

    def subject_role(self, concept: str) -> str:
        """Return the role of a frame's subject: ``:ARG0`` where the frame has it."""
        frame = self.frame(concept[:-3].replace("-", " ")) or self.frame(concept[:-3])
        if frame is not None and "0" not in frame.roles and frame.sense == concept[-2:] and frame.roles:
            return f":ARG{frame.roles[0]}"
        return ":ARG0"

    def role(self, link: Link, taken: Set[str] = frozenset()) -> str | None:
        """Return the role of a dependency in gold graphs, except ``taken``; ``None`` without an example."""
        for key in link.backoff():
            role = self._roles.get(key)
            if role is not None and role not in taken:
                return role
        return None

    def preposition_role(self, concept: str, preposition: str) -> str | None:
        """Return the role of a frame that goes with a preposition, by the frame's description."""
        frame = self.frame(concept[:-3].replace("-", " "))
        if frame is None or frame.sense != concept[-2:]:
            return None
        number = frame.prepositions.get(preposition)
        return None if number is None else f":ARG{number}"
