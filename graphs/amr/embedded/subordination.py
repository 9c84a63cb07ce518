"""Clauses below nouns and verbs: relative clauses, participles, infinitives, "if", "because", "such that"."""

from __future__ import annotations

from graphs.amr.embedded.clauses import SUBJECTS
from graphs.amr.embedded.draft import Token
from graphs.amr.embedded.lexicon import MATHEMATICAL_NOUNS
from graphs.amr.embedded.reading import FORMULA, IFF, SUCH_THAT
from graphs.amr.embedded.relations import Relations
from graphs.amr.embedded.words import RELATIVE_PRONOUNS, SUBORDINATORS

_OBJECT_CONTROL = frozenset(
    """
    order tell ask help allow let make cause force permit require enable advise teach
    """.split()  # noqa: SIM905
)


class Subordination(Relations):
    """Subordination: attach subordinate clauses."""

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
            cause = draft.node("cause-01")
            reason, result = (token.outer, source) if marks[0] != "so" else (source, token.outer)
            draft.edge(cause, ":ARG0", reason)
            draft.edge(cause, ":ARG1", result)
        elif between == "contrast-01":
            contrast = draft.node(between)
            draft.edge(contrast, ":ARG1", source)
            draft.edge(contrast, ":ARG2", token.outer)
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
