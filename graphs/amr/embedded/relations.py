"""Third step from dependencies to AMR: the role between a word and its head.

The role tables of the lexicon come first, then what a frame's description says of a preposition, then a rule for the
dependency label.
"""

from __future__ import annotations

from graphs.amr.embedded.clauses import Composer
from graphs.amr.embedded.draft import Draft, Token
from graphs.amr.embedded.lexicon import Lexicon, Link
from graphs.amr.embedded.words import COLLECTIONS, PREPOSITIONS, PRONOUNS, QUANTIFIERS, TIMES

_SPARE = {":ARG1": ":ARG2", ":ARG2": ":ARG3", ":ARG4": ":direction"}  # if the role of a rule is taken


class Relations:
    """Roles, heads and subjects in a composed draft."""

    def __init__(self, draft: Draft, composer: Composer, lexicon: Lexicon) -> None:
        self.draft = draft
        self.composer = composer
        self.lexicon = lexicon
        self.tokens = draft.tokens

    def kind(self, node: int) -> str:
        concept = self.draft.concepts[node]
        if self.draft.is_frame(node):
            return "V"
        if concept.startswith("FORMULA_"):
            return "F"
        if concept in PRONOUNS:
            return "P"
        return "T" if concept in TIMES else "N"

    def role(self, head: int, relation: str, child: int, default: str) -> str:
        """Return the role between two nodes: from the tables, else ``default``. ``draft.links`` keeps the link."""
        link = Link(self.draft.concepts[head], self.kind(head), relation, self.draft.concepts[child], self.kind(child))
        self.draft.links.append((head, child, link))
        taken = {
            role for source, role, _ in self.draft.edges if source == head and role[:4] == ":ARG" and role[-3:] != "-of"
        }
        role = self.lexicon.role(link, taken)
        if role is None:
            role = default if default not in taken or relation[:5] == "nsubj" else _SPARE.get(default, default)
        return role

    def head_of(self, token: Token) -> tuple[Token | None, list[Token]]:
        """Return the nearest word above that is in the graph, and the words between."""
        between: list[Token] = []
        here = token
        while here.head != here.index:
            here = self.tokens[here.head]
            if here.node >= 0 and here.inner != token.inner:
                return here, between
            between.append(here)
        root = self.root_token(here)
        if root is None or root.index == token.index or root.inner == token.inner:
            return None, between
        return root, between

    def root_token(self, token: Token) -> Token | None:
        """Return the token, or the first word below it that is in the graph."""
        queue = [token.index]
        for index in queue:
            found = self.tokens[index]
            if found.node >= 0:
                return found
            queue.extend(found.children)
        return None

    def preposition_role(self, head: Token, lower: str, token: Token) -> str:
        frame = self.draft.is_frame(head.inner)
        if lower == "of" and head.lemma in COLLECTIONS:
            return ":consist-of"
        if lower == "for" and any(d.lower in QUANTIFIERS for d in self.composer.children(token, "det", "predet")):
            return ":condition"
        if frame:
            role = self.lexicon.preposition_role(self.draft.concepts[head.inner], lower)
            if role is not None:
                return role
        if self.kind(token.outer) == "T" and lower in ("in", "on", "at", "for"):
            return ":duration" if lower == "for" else ":time"
        if token.dep == "pcomp" and lower in ("by", "in"):
            return ":manner"
        return PREPOSITIONS.get(lower, (":mod", ":mod"))[0 if frame else 1]

    def attach_subject(self, predicate: Token, subject: int, passive: bool = False) -> None:
        draft, node = self.draft, predicate.inner
        if predicate.index in self.composer.comparisons:
            draft.edge(self.composer.comparisons[predicate.index], ":ARG1", subject)
            if not draft.is_frame(node):
                return
        relation = "nsubjpass" if passive else "nsubj"
        if not draft.is_frame(node):
            draft.edge(predicate.node, ":domain", subject)
            return
        if passive:
            default = ":ARG1"
        elif draft.concepts[node] in ("be-located-at-91", "resemble-01", "equal-01", "be-02"):
            draft.edge(node, ":ARG1", subject)
            return
        elif predicate.pos == "ADJ" or (predicate.lemma == "be" and predicate.pos == "AUX"):
            relation, default = "cop", ":ARG1"
        else:
            default = self.lexicon.subject_role(draft.concepts[node])
        draft.edge(node, self.role(node, relation, subject, default), subject)

    def subject_of(self, token: Token) -> Token | None:
        here = token
        while True:
            subject = self.composer.subject(here)
            if subject is not None or here.dep not in ("xcomp", "conj") or here.head == here.index:
                return subject
            here = self.tokens[here.head]
