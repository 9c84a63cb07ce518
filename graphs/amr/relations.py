"""The third step from dependencies to AMR: how each word hangs below its head.

The role tables of the lexicon come first, then what a frame's description says of a preposition, then a rule for the
dependency label.
"""

from __future__ import annotations

import re

from graphs.amr.clauses import Composer
from graphs.amr.concepts import quantity
from graphs.amr.draft import Draft, Token
from graphs.amr.lexicon import Lexicon, Link
from graphs.amr.reading import FORMULA, IFF, ORDINAL_ENDINGS, SUCH_THAT
from graphs.amr.words import (
    COLLECTIONS,
    DETERMINERS,
    DISTANCE_UNITS,
    PREPOSITIONS,
    PRONOUNS,
    QUANTIFIERS,
    QUANTITIES,
    RELATIONS,
    RELATIVE_PRONOUNS,
    SUBORDINATORS,
    TIME_UNITS,
    TIMES,
)

_YEAR = re.compile(r"1[0-9]{3}|20[0-9]{2}")
_SPARE = {":ARG1": ":ARG2", ":ARG2": ":ARG3", ":ARG4": ":direction"}  # where the role of a rule is taken
_SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_OBJECT_CONTROL = frozenset(
    """
    order tell ask help allow let make cause force permit require enable advise teach
    """.split()  # noqa: SIM905
)
_PARTITIVES = frozenset(["one", "some", "many", "most", "all", "each", "any", "none", "few", "several", "both", "half"])


class Relater:
    """Hangs the words of a composed draft below their heads."""

    def __init__(self, draft: Draft, composer: Composer, lexicon: Lexicon) -> None:
        self.draft = draft
        self.composer = composer
        self.lexicon = lexicon
        self.tokens = draft.tokens

    def relate(self) -> None:
        for token in self.tokens:
            if token.dep == "nummod" and token.constant:
                self._count(token)
        for token in self.tokens:
            if not token.done and token.head != token.index and (token.node >= 0 or token.constant):
                self._hang(token)
        for token in self.tokens:
            self._share_subject(token)

    def _count(self, token: Token) -> None:
        head = self.tokens[token.head]
        if head.node >= 0 and (head.lemma in TIME_UNITS or head.lemma in DISTANCE_UNITS) and head.node == head.outer:
            quantity(self.draft, head, token.constant)
            token.done = True

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
        """The role between two nodes: from the tables, else ``default``; the question is kept in ``draft.links``."""
        link = Link(self.draft.concepts[head], self.kind(head), relation, self.draft.concepts[child], self.kind(child))
        self.draft.links.append((head, child, link))
        taken = {
            role for source, role, _ in self.draft.edges if source == head and role[:4] == ":ARG" and role[-3:] != "-of"
        }
        role = self.lexicon.role(link, taken)
        if role is None:
            role = default if default not in taken or relation[:5] == "nsubj" else _SPARE.get(default, default)
        return role

    def _hang(self, token: Token) -> None:
        if any(self.tokens[c].lower == SUCH_THAT for c in token.children) and self._hang_condition(token):
            return
        head, between = self._head(token)
        if head is None:
            return
        preposition = next((t for t in between if t.dep in ("prep", "agent", "dative") or t.pos == "ADP"), None)
        if token.node < 0:
            self._hang_constant(head, token, preposition)
        elif preposition is not None and token.dep in (
            "pobj",
            "pcomp",
            "prep",
            "advmod",
            "amod",
            "nummod",
            "attr",
            "dobj",
        ):
            self._hang_prepositional(head, preposition, token)
        else:
            self._hang_plain(head, token)

    def _hang_condition(self, token: Token) -> bool:
        """``... such that CLAUSE``: the clause modifies what stands before."""
        start = next(c for c in token.children if self.tokens[c].lower == SUCH_THAT)
        own = set(self.draft.subtree(token))
        for before in reversed(self.tokens[:start]):
            if before.node >= 0 and before.index not in own and before.word_class == "N":
                self.draft.edge(before.node, ":mod", token.outer)
                return True
        return False

    def _head(self, token: Token) -> tuple[Token | None, list[Token]]:
        """The nearest word above that is in the graph, and the words between."""
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
        """The token, or the first word below it that is in the graph."""
        queue = [token.index]
        for index in queue:
            found = self.tokens[index]
            if found.node >= 0:
                return found
            queue.extend(found.children)
        return None

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
        elif token.dep in ("pobj", "npadvmod", "appos") and token.dep != "npadvmod":
            role = ":mod"
        self.draft.attribute(head.node if role == ":quant" else head.inner, role, token.constant)

    def _hang_prepositional(self, head: Token, preposition: Token, token: Token) -> None:
        draft, lower = self.draft, preposition.lower
        source = head.inner
        if preposition.dep == "agent":
            draft.edge(source, self.role(source, "agent", token.outer, ":ARG0"), token.outer)
        elif lower == "of" and head.lower in _PARTITIVES and not draft.is_frame(head.node):
            included = draft.node("include-91")
            draft.edge(included, ":ARG1", head.node)
            draft.edge(included, ":ARG2", token.outer)
        elif lower == "because":
            cause = draft.node("cause-01")
            draft.edge(cause, ":ARG0", token.outer)
            draft.edge(cause, ":ARG1", source)
        elif lower == "like" and self.tokens[preposition.head] is head:
            likeness = draft.node("resemble-01")
            draft.edge(likeness, ":ARG1", source)
            draft.edge(likeness, ":ARG2", token.outer)
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
            role = self._of_preposition(head, lower, token)
            if role not in (":consist-of", ":condition"):
                role = self.role(source, f"prep:{lower}", token.outer, role)
            draft.edge(source if role != ":consist-of" else head.node, role, token.outer)

    def _of_preposition(self, head: Token, lower: str, token: Token) -> str:
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

    def _hang_plain(self, head: Token, token: Token) -> None:
        draft, dep, source, target = self.draft, token.dep, head.inner, token.outer
        frame = draft.is_frame(source)
        if dep in _SUBJECTS:
            self._hang_subject(head, token)
        elif dep == "relcl":
            self._hang_relative(head, token)
        elif dep == "acl":
            self._hang_participle(head, token)
        elif dep == "advcl":
            self._hang_adverbial(head, token)
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
            node = head.node if not frame or head.node != head.inner else source
            default = ":mod"
            if draft.is_frame(token.inner):
                default = ":ARG1-of" if token.tag != "VBG" else ":ARG0-of"
            draft.edge(node, self.role(node, "amod", token.inner, default), token.inner)
            if token.outer != token.inner:
                draft.edge(node, ":mod", token.outer)
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

    def _hang_compared(self, head: Token, token: Token) -> None:
        """``the largest number``, ``a larger number``."""
        draft = self.draft
        comparison = draft.node("have-degree-91")
        draft.edge(comparison, ":ARG1", head.node)
        draft.edge(comparison, ":ARG2", token.outer)
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
        """The subject below its predicate, and below all of them where several are joined."""
        passive = token.dep.endswith("pass")
        for predicate in self.composer.members.get(head.index, [head]):
            shared = predicate is not head
            if predicate.node < 0 or (shared and self.composer.children(predicate, "expl", *_SUBJECTS)):
                continue
            self._attach_subject(
                predicate if predicate is not head else head, token.outer, passive and predicate is head
            )

    def _attach_subject(self, predicate: Token, subject: int, passive: bool = False) -> None:
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

    def _hang_relative(self, head: Token, token: Token) -> None:
        draft, subject = self.draft, head.node
        pronoun = next(
            (self.tokens[i] for i in sorted(draft.subtree(token)) if self.tokens[i].lower in RELATIVE_PRONOUNS
             and self.tokens[i].node < 0 and self.tokens[i].tag.startswith("W")), None,
        )  # fmt: skip
        if pronoun is not None and pronoun.dep == "poss":
            owner, _ = self._head(pronoun)
            if owner is not None:
                draft.edge(owner.inner, ":poss", subject)
                return
        if pronoun is not None and pronoun.dep in _SUBJECTS:
            clause = self.tokens[pronoun.head]
            for predicate in self.composer.members.get(clause.index, [clause]):
                if predicate.node >= 0 and (predicate is clause or self.composer.subject(predicate) is None):
                    self._attach_relative_subject(head, predicate, pronoun.dep == "nsubjpass" and predicate is clause)
            if clause.node >= 0:
                return
        if pronoun is not None and pronoun.dep == "pobj":
            preposition = self.tokens[pronoun.head]
            verb, _ = self._head(preposition)
            verb = verb or token
            role = self._of_preposition(verb, preposition.lower, head)
            draft.edge(verb.inner, self.role(verb.inner, f"prep:{preposition.lower}", subject, role), subject)
            return
        if pronoun is not None and pronoun.dep == "advmod" and pronoun.lower in ("where", "when", "why"):
            draft.edge(token.inner, {"where": ":location", "when": ":time", "why": ":purpose"}[pronoun.lower], subject)
            return
        own = self.composer.subject(token)
        if own is None:
            self._attach_relative_subject(head, token, bool(self.composer.children(token, "auxpass")))
            return
        stranded = next((p for p in self.composer.children(token, "prep") if not p.children), None)
        if stranded is not None:
            role = self._of_preposition(token, stranded.lower, head)
            draft.edge(token.inner, self.role(token.inner, f"prep:{stranded.lower}", subject, role), subject)
            return
        verb = pronoun and self.tokens[pronoun.head]
        node = verb.inner if verb and verb.node >= 0 else token.inner
        draft.edge(node, self.role(node, "dobj", subject, ":ARG1"), subject)

    def _attach_relative_subject(self, head: Token, predicate: Token, passive: bool) -> None:
        if not self.draft.is_frame(predicate.inner):
            self.draft.edge(head.node, ":mod", predicate.outer)
        else:
            self._attach_subject(predicate, head.node, passive)

    def _hang_participle(self, head: Token, token: Token) -> None:
        """``a set containing ...``, ``a set called ...``, ``a way to ...``, ``the fact that ...``."""
        draft, composer = self.draft, self.composer
        if not draft.is_frame(token.inner):
            draft.edge(head.inner, self.role(head.inner, "acl", token.outer, ":mod"), token.outer)
        elif token.tag == "VBN" and not composer.children(token, "mark"):
            draft.edge(token.inner, self.role(token.inner, "nsubjpass", head.node, ":ARG1"), head.node)
        elif token.tag == "VBG":
            self._attach_subject(token, head.node)
        elif composer.children(token, *_SUBJECTS) or composer.children(token, "mark"):
            default = ":ARG1" if draft.is_frame(head.inner) else ":topic"
            draft.edge(head.inner, self.role(head.inner, "acl:that", token.outer, default), token.outer)
        elif draft.is_frame(head.inner):
            draft.edge(head.inner, self.role(head.inner, "acl:to", token.outer, ":ARG1"), token.outer)
        elif composer.children(token, "dobj", "ccomp", "xcomp"):
            draft.edge(head.inner, self.role(head.inner, "acl:to", token.outer, ":purpose"), token.outer)
        else:
            draft.edge(token.inner, ":ARG1", head.node)

    def _hang_adverbial(self, head: Token, token: Token) -> None:
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

    def _hang_adverb(self, head: Token, token: Token) -> None:
        draft, lower, source, target = self.draft, token.lower, head.inner, token.outer
        if draft.concepts[token.node] == "amr-unknown":
            role = {"where": ":location", "when": ":time", "why": "cause", "how": ":manner"}.get(lower, ":mod")
            if role == "cause":
                cause = draft.node("cause-01")
                draft.edge(cause, ":ARG0", target)
                draft.edge(cause, ":ARG1", self.composer.over.get(head.index, head.outer))
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

    def _share_subject(self, token: Token) -> None:
        """Control: the unspoken subject of an infinitive or participle is the subject, or the object, of its head."""
        if token.node < 0 or token.dep not in ("xcomp", "advcl") or self.composer.subject(token) is not None:
            return
        if not self.draft.is_frame(token.inner) or self.composer.children(token, *_SUBJECTS):
            return
        head, _ = self._head(token)
        if head is None or head.inner == token.inner:
            return
        objects = [o for o in self.composer.children(head, "dobj") if o.node >= 0]
        if token.dep == "xcomp" and objects and head.lemma in _OBJECT_CONTROL:
            subject: Token | None = objects[0]
        else:
            subject = self._subject_of(head)
        if subject is not None and subject.node >= 0 and subject.outer != token.inner:
            if token.tag == "VBN":
                self.draft.edge(token.inner, ":ARG1", subject.outer)
            elif not any(s == token.inner and t == subject.outer for s, _, t in self.draft.edges):
                self._attach_subject(token, subject.outer)

    def _subject_of(self, token: Token) -> Token | None:
        here = token
        while True:
            subject = self.composer.subject(here)
            if subject is not None or here.dep not in ("xcomp", "conj") or here.head == here.index:
                return subject
            here = self.tokens[here.head]
