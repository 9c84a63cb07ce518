"""Third step from dependencies to AMR: the role between a word and its head, and clauses below nouns and verbs.

>>> from graphs.amr.embedded.parser import EmbeddedParser
>>> EmbeddedParser().parse([["If FORMULA_0 holds, then FORMULA_1 converges."]])
['(c / converge-01 :condition (h / hold-01 :ARG0 (f / FORMULA_0)) :time (t / then) :ARG0 (f2 / FORMULA_1))']

The role tables of the lexicon come first, then what a frame's description says of a preposition, then a rule for the
dependency label. Clauses are relative clauses, participles, infinitives, "if", "because", "such that".
"""

from __future__ import annotations

from graphs.amr.embedded.clauses import SUBJECTS, Composer
from graphs.amr.embedded.draft import Draft, Token
from graphs.amr.embedded.lexicon import MATHEMATICAL_NOUNS, Lexicon, Link
from graphs.amr.embedded.reading import FORMULA, IFF, SUCH_THAT
from graphs.amr.embedded.words import (
    COLLECTIONS,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    RELATIVE_PRONOUNS,
    SUBORDINATORS,
    TIMES,
)

_SPARE = {":ARG1": ":ARG2", ":ARG2": ":ARG3", ":ARG4": ":direction"}  # if the role of a rule is taken
_OBJECT_CONTROL = frozenset(
    """
    order tell ask help allow let make cause force permit require enable advise teach
    """.split()  # noqa: SIM905
)


class Relations:
    """Roles, heads, subjects and subordinate clauses in a composed draft."""

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

    def hang_condition(self, token: Token) -> bool:
        """Attach the clause of ``such that CLAUSE`` below the nearest noun before it; return whether there is one."""
        start = next(c for c in token.children if self.tokens[c].lower == SUCH_THAT)
        own = set(self.draft.subtree(token))
        for before in reversed(self.tokens[:start]):
            if before.node >= 0 and before.index not in own and before.word_class == "N":
                self.draft.edge(before.node, ":mod", token.outer)
                return True
        return False

    def hang_relative(self, head: Token, token: Token) -> None:
        draft, subject = self.draft, head.node
        pronoun = next(
            (self.tokens[i] for i in sorted(draft.subtree(token)) if self.tokens[i].lower in RELATIVE_PRONOUNS
             and self.tokens[i].node < 0 and self.tokens[i].tag.startswith("W")), None,
        )  # fmt: skip
        if pronoun is not None and pronoun.dep == "poss":
            owner, _ = self.head_of(pronoun)
            if owner is not None:
                draft.edge(owner.inner, ":poss", subject)
                return
        if pronoun is not None and pronoun.dep in SUBJECTS:
            clause = self.tokens[pronoun.head]
            for predicate in self.composer.members.get(clause.index, [clause]):
                if predicate.node >= 0 and (predicate is clause or self.composer.subject(predicate) is None):
                    self._attach_relative_subject(head, predicate, pronoun.dep == "nsubjpass" and predicate is clause)
            if clause.node >= 0:
                return
        if pronoun is not None and pronoun.dep == "pobj":
            preposition = self.tokens[pronoun.head]
            verb, _ = self.head_of(preposition)
            verb = verb or token
            role = self.preposition_role(verb, preposition.lower, head)
            draft.edge(verb.inner, self.role(verb.inner, f"prep:{preposition.lower}", subject, role), subject)
            return
        if pronoun is not None and pronoun.dep == "advmod" and pronoun.lower in ("where", "when", "why"):
            if pronoun.lower == "where" and (FORMULA.fullmatch(head.text) or head.lower in MATHEMATICAL_NOUNS):
                draft.edge(head.node, ":condition", token.outer)
                return
            draft.edge(token.inner, {"where": ":location", "when": ":time", "why": ":purpose"}[pronoun.lower], subject)
            return
        own = self.composer.subject(token)
        if own is None:
            self._attach_relative_subject(head, token, bool(self.composer.children(token, "auxpass")))
            return
        stranded = next((p for p in self.composer.children(token, "prep") if not p.children), None)
        if stranded is not None:
            role = self.preposition_role(token, stranded.lower, head)
            draft.edge(token.inner, self.role(token.inner, f"prep:{stranded.lower}", subject, role), subject)
            return
        verb = pronoun and self.tokens[pronoun.head]
        node = verb.inner if verb and verb.node >= 0 else token.inner
        draft.edge(node, self.role(node, "dobj", subject, ":ARG1"), subject)

    def _attach_relative_subject(self, head: Token, predicate: Token, passive: bool) -> None:
        if not self.draft.is_frame(predicate.inner):
            self.draft.edge(head.node, ":mod", predicate.outer)
        else:
            self.attach_subject(predicate, head.node, passive)

    def hang_participle(self, head: Token, token: Token) -> None:
        """Attach the clause of ``a set containing``, ``a set called``, ``a way to``, ``the fact that``."""
        draft, composer = self.draft, self.composer
        if not draft.is_frame(token.inner):
            draft.edge(head.inner, self.role(head.inner, "acl", token.outer, ":mod"), token.outer)
        elif token.tag == "VBN" and not composer.children(token, "mark"):
            draft.edge(token.inner, self.role(token.inner, "nsubjpass", head.node, ":ARG1"), head.node)
        elif token.tag == "VBG":
            self.attach_subject(token, head.node)
        elif composer.children(token, *SUBJECTS) or composer.children(token, "mark"):
            default = ":ARG1" if draft.is_frame(head.inner) else ":topic"
            draft.edge(head.inner, self.role(head.inner, "acl:that", token.outer, default), token.outer)
        elif draft.is_frame(head.inner):
            draft.edge(head.inner, self.role(head.inner, "acl:to", token.outer, ":ARG1"), token.outer)
        elif composer.children(token, "dobj", "ccomp", "xcomp"):
            draft.edge(head.inner, self.role(head.inner, "acl:to", token.outer, ":purpose"), token.outer)
        else:
            draft.edge(token.inner, ":ARG1", head.node)

    def hang_adverbial(self, head: Token, token: Token) -> None:
        draft, composer = self.draft, self.composer
        marks = [m.lower for m in composer.children(token, "mark", "advmod") if m.lower in SUBORDINATORS]
        source = composer.over.get(head.index, head.outer)
        if not marks:
            infinitive = any(c.lower == "to" for c in composer.children(token, "aux"))
            relation, default = ("advcl:to", ":purpose") if infinitive else ("advcl", ":manner")
            if not infinitive and token.tag not in ("VBG", "VBN"):
                default = ":mod" if not draft.is_frame(token.inner) else ":ARG1"
            draft.edge(head.inner, self.role(head.inner, relation, token.outer, default), token.outer)
            return
        role, between = SUBORDINATORS[marks[0]]
        if between == "cause-01" and not (marks[0] in ("since", "as") and self.kind(token.outer) == "T"):
            reason, result = (token.outer, source) if marks[0] != "so" else (source, token.outer)
            draft.join("cause-01", ARG0=reason, ARG1=result)
        elif between == "contrast-01":
            draft.join(between, ARG1=source, ARG2=token.outer)
        elif between == "!":
            draft.attribute(token.inner, ":polarity", "-")
            draft.edge(source, role, token.outer)
        elif between:
            place = draft.node(between)
            draft.edge(source, role, place)
            draft.edge(place, ":op1", token.outer)
        else:
            if marks[0] == IFF:
                draft.edge(token.outer, ":mod", draft.node("only"))
            place = source if role in (":condition", ":concession") else head.inner
            draft.edge(place, self.role(place, f"advcl:{marks[0]}", token.outer, role), token.outer)

    def share_subject(self, token: Token) -> None:
        """Set the subject of an infinitive or participle to its head's subject or object (control)."""
        if token.node < 0 or token.dep not in ("xcomp", "advcl") or self.composer.subject(token) is not None:
            return
        if not self.draft.is_frame(token.inner) or self.composer.children(token, *SUBJECTS):
            return
        head, _ = self.head_of(token)
        if head is None or head.inner == token.inner:
            return
        objects = [o for o in self.composer.children(head, "dobj") if o.node >= 0]
        if token.dep == "xcomp" and objects and head.lemma in _OBJECT_CONTROL:
            subject: Token | None = objects[0]
        else:
            subject = self.subject_of(head)
        if subject is not None and subject.node >= 0 and subject.outer != token.inner:
            if token.tag == "VBN":
                self.draft.edge(token.inner, ":ARG1", subject.outer)
            elif not any(s == token.inner and t == subject.outer for s, _, t in self.draft.edges):
                self.attach_subject(token, subject.outer)
