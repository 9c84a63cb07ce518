"""Last step from dependencies to AMR: edges from heads to their words.

>>> from graphs.amr.embedded.parser import EmbeddedParser
>>> EmbeddedParser().parse([["Every continuous function on FORMULA_0 is bounded."]])
['(b / bounded :domain (f / function :mod (e / every) :mod (c / continuous) :location (f2 / FORMULA_0)))']
"""

from __future__ import annotations

import re

from graphs.amr.embedded.clauses import SUBJECTS
from graphs.amr.embedded.concepts import quantity
from graphs.amr.embedded.draft import Token
from graphs.amr.embedded.reading import FORMULA, ORDINAL_ENDINGS, SUCH_THAT
from graphs.amr.embedded.relations import Relations
from graphs.amr.embedded.words import (
    DETERMINERS,
    DISTANCE_UNITS,
    PREPOSITIONS,
    QUANTITIES,
    RELATIONS,
    TIME_UNITS,
    TIMES,
)

_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_PREPOSITIONAL = frozenset(["pobj", "pcomp", "prep", "advmod", "amod", "nummod", "attr", "dobj"])
_PARTITIVES = frozenset(["one", "some", "many", "most", "all", "each", "any", "none", "few", "several", "both", "half"])


class Relater(Relations):
    """Relations of a composed draft: attach words below their heads."""

    def relate(self) -> None:
        for token in self.tokens:
            if token.dep == "nummod" and token.constant:
                self._count(token)
        for token in self.tokens:
            if not token.done and token.head != token.index and (token.node >= 0 or token.constant):
                self._hang(token)
        for token in self.tokens:
            self.share_subject(token)

    def _count(self, token: Token) -> None:
        head = self.tokens[token.head]
        if head.node >= 0 and (head.lemma in TIME_UNITS or head.lemma in DISTANCE_UNITS) and head.node == head.outer:
            quantity(self.draft, head, token.constant)
            token.done = True

    def _hang(self, token: Token) -> None:
        if any(self.tokens[c].lower == SUCH_THAT for c in token.children) and self.hang_condition(token):
            return
        head, between = self.head_of(token)
        if head is None:
            return
        preposition = next((t for t in between if t.dep in ("prep", "agent", "dative") or t.pos == "ADP"), None)
        if token.node < 0:
            self._hang_constant(head, token, preposition)
        elif preposition is not None and token.dep in _PREPOSITIONAL:
            self._hang_prepositional(head, preposition, token)
        else:
            self._hang_plain(head, token)

    def _hang_constant(self, head: Token, token: Token, preposition: Token | None) -> None:
        if (
            preposition is not None
            and preposition.lower in ("in", "since", "by", "of", "until")
            and _YEAR.fullmatch(token.constant)
        ):
            date = self.draft.node("date-entity")
            self.draft.attribute(date, ":year", token.constant)
            self.draft.edge(head.inner, ":time", date)
            return
        role = ":quant" if token.dep in ("nummod", "quantmod", "npadvmod") else ":mod"
        if preposition is not None and self.draft.is_frame(head.inner):
            role = PREPOSITIONS.get(preposition.lower, (":ARG2", ""))[0]
        elif token.dep in ("dobj", "nsubj", "attr", "oprd"):
            role = {"nsubj": ":ARG0", "dobj": ":ARG1"}.get(token.dep, ":ARG2")
        self.draft.attribute(head.node if role == ":quant" else head.inner, role, token.constant)

    def _hang_prepositional(self, head: Token, preposition: Token, token: Token) -> None:
        draft, lower = self.draft, preposition.lower
        source = head.inner
        if preposition.dep == "agent":
            draft.edge(source, self.role(source, "agent", token.outer, ":ARG0"), token.outer)
        elif lower == "of" and head.lower in _PARTITIVES and not draft.is_frame(head.node):
            draft.join("include-91", ARG1=head.node, ARG2=token.outer)
        elif lower == "because":
            draft.join("cause-01", ARG0=token.outer, ARG1=source)
        elif lower == "like" and self.tokens[preposition.head] is head:
            draft.join("resemble-01", ARG1=source, ARG2=token.outer)
        elif lower in RELATIONS and lower not in PREPOSITIONS:
            link = self.role(source, f"prep:{lower}", token.outer, "")
            if link:
                draft.edge(source, link, token.outer)
                return
            place = draft.node(lower)
            draft.edge(source, RELATIONS[lower], place)
            draft.edge(place, ":op1", token.outer)
        else:
            if lower == "without":
                draft.attribute(token.inner, ":polarity", "-")
            role = self.preposition_role(head, lower, token)
            if role not in (":consist-of", ":condition"):
                role = self.role(source, f"prep:{lower}", token.outer, role)
            draft.edge(source if role != ":consist-of" else head.node, role, token.outer)

    def _hang_plain(self, head: Token, token: Token) -> None:
        draft, dep, source, target = self.draft, token.dep, head.inner, token.outer
        frame = draft.is_frame(source)
        clauses = {"relcl": self.hang_relative, "acl": self.hang_participle, "advcl": self.hang_adverbial}
        if dep in SUBJECTS:
            self._hang_subject(head, token)
        elif dep in clauses:
            clauses[dep](head, token)
        elif dep == "det" or dep == "predet":
            role = DETERMINERS.get(token.lower, (":mod", ""))[0]
            draft.edge(source if dep == "predet" else head.node, role, target)
        elif dep in ("amod", "nummod", "quantmod") and draft.concepts[token.node] == "ordinal-entity":
            draft.edge(head.node, ":ord", target)
        elif dep == "amod" and token.lower in QUANTITIES:
            draft.edge(head.node, self.role(head.node, "amod", target, ":quant"), target)
        elif dep in ("amod", "compound", "nmod", "appos", "nummod") and FORMULA.fullmatch(token.text):
            following = self.tokens[token.index + 1].lower if token.index + 1 < len(self.tokens) else ""
            draft.edge(head.node, ":ord" if following in ORDINAL_ENDINGS else ":mod", target)
        elif dep == "amod" and self.composer.degree(token):
            self._hang_compared(head, token)
        elif dep == "amod":
            self._hang_adjective(head, token)
        elif dep == "advmod":
            self._hang_adverb(head, token)
        elif dep == "xcomp" and not frame and not draft.is_frame(token.inner):
            draft.edge(source, ":mod", target)
        else:
            default = {
                "dobj": ":ARG1", "dative": ":ARG2", "attr": ":ARG2", "oprd": ":ARG2", "acomp": ":ARG1", "xcomp":
                ":ARG1", "ccomp": ":ARG1", "poss": ":ARG0" if frame else ":poss", "compound": ":ARG1" if frame else
                ":mod", "npadvmod": ":time" if self.kind(target) == "T" else ":mod", "intj": ":mod", "appos": ":mod",
                "pobj": ":op1", "pcomp": ":op1", "prep": ":mod", "parataxis": ":mod", "nmod": ":mod", "agent":
                ":ARG0",
            }.get(dep, ":mod")  # fmt: skip
            node = source if dep not in ("compound", "poss", "nmod") or frame else head.node
            if dep == "ccomp" and any(c.lower in ("whether", "if") for c in self.composer.children(token, "mark")):
                draft.attribute(token.inner, ":mode", "interrogative")
            draft.edge(node, self.role(node, dep, target, default), target)

    def _hang_adjective(self, head: Token, token: Token) -> None:
        """Attach an adjective below its noun; the noun is what the participle of a frame acts on, or what acts."""
        draft, inner = self.draft, token.inner
        default = ":mod" if not draft.is_frame(inner) else ":ARG0-of" if token.tag == "VBG" else ":ARG1-of"
        draft.edge(head.node, self.role(head.node, "amod", inner, default), inner)
        if token.outer != inner:
            draft.edge(head.node, ":mod", token.outer)

    def _hang_compared(self, head: Token, token: Token) -> None:
        """Relate noun and adjective by have-degree-91: ``the largest number``, ``a larger number``."""
        draft = self.draft
        comparison = draft.join("have-degree-91", ARG1=head.node, ARG2=token.outer)
        draft.edge(comparison, ":ARG3", draft.node(self.composer.degree(token)))
        for adverb in self.composer.children(token, "advmod"):
            if adverb.lower in ("more", "most", "less", "least") and adverb.node >= 0:
                adverb.done = True
                draft.optional.add(adverb.node)
        other = self.composer.compared(token)
        if other is not None:
            draft.edge(comparison, ":ARG4", other.outer)
            other.done = True

    def _hang_subject(self, head: Token, token: Token) -> None:
        """Attach the subject below its predicate, or below each of several joined ones."""
        passive = token.dep.endswith("pass")
        for predicate in self.composer.members.get(head.index, [head]):
            shared = predicate is not head
            if predicate.node < 0 or (shared and self.composer.children(predicate, "expl", *SUBJECTS)):
                continue
            self.attach_subject(predicate, token.outer, passive and predicate is head)

    def _hang_adverb(self, head: Token, token: Token) -> None:
        draft, lower, source, target = self.draft, token.lower, head.inner, token.outer
        if draft.concepts[token.node] == "amr-unknown":
            role = {"where": ":location", "when": ":time", "why": "cause", "how": ":manner"}.get(lower, ":mod")
            if role == "cause":
                draft.join("cause-01", ARG0=target, ARG1=self.composer.over.get(head.index, head.outer))
                return
            if lower == "how" and head.pos in ("ADJ", "ADV"):
                role = ":quant" if head.lower in QUANTITIES else ":degree"
            draft.edge(source, role, target)
            return
        default = ":mod"
        if lower in TIMES:
            default = ":time"
        elif head.pos in ("ADJ", "ADV") or lower in QUANTITIES:
            default = ":degree"
        elif lower.endswith("ly") and draft.is_frame(source):
            default = ":manner"
        elif lower in ("here", "there", "everywhere", "somewhere", "nowhere", "anywhere"):
            default = ":location"
        draft.edge(source, self.role(source, "advmod", target, default), target)
