"""Second step from dependencies to AMR: nodes over a word, before its head attaches it.

>>> from graphs.amr.embedded.parser import EmbeddedParser
>>> EmbeddedParser().parse([["Why is this set not compact?"]])
['(c / compact :polarity - :ARG1-of (c2 / cause-01 :ARG0 (a / amr-unknown)) :domain (s / set :mod (t / this)))']

Copulas give way to their complements; modal verbs, negation, moods and connectives go over their verb;
conjunctions join. Words are taken deepest first, so that the node of a word is known when its head is read.
"""

from __future__ import annotations

from graphs.amr.embedded.draft import UNUSED, Draft, Token
from graphs.amr.embedded.reading import FORMULA, STANDS_FOR
from graphs.amr.embedded.words import CONSEQUENCES, CONTRASTS, MODALS, PRONOUNS, QUANTITIES

LOCATIVES = frozenset(
    """
    in on at under near above below behind between beyond within inside outside around among over beside by
    """.split()  # noqa: SIM905
)
_IMPERSONAL = frozenset(["follow", "seem", "appear", "happen", "suffice", "hold", "result"])
SUBJECTS = ("nsubj", "nsubjpass", "csubj", "csubjpass")
_DEGREES = frozenset(["more", "most", "less", "least", "as"])
_SEMIMODALS = {
    "have": ("obligate-01", ":ARG2"), "ought": ("recommend-01", ":ARG1"), "able": ("possible-01", ":ARG1"),
}  # fmt: skip
_NO_EXCLAMATION = frozenset(["yes", "no", "well", "please", "ok", "okay", "thanks", "hi", "hello"])


class Composer:
    """Composer of a draft's words; ``members`` are the words that a conjunction joins, by the index of the first."""

    def __init__(self, draft: Draft) -> None:
        self.draft = draft
        self.tokens = draft.tokens
        self.members: dict[int, list[Token]] = {}
        self.comparisons: dict[int, int] = {}  # the have-degree-91 over a compared word
        self.over: dict[int, int] = {}  # the outermost node over a word before conjunction

    def compose(self) -> None:
        depth = self._depths()
        for token in sorted(self.tokens, key=lambda t: -depth[t.index]):
            self._compose(token)

    def _depths(self) -> list[int]:
        depth = [0] * len(self.tokens)
        stack = [token.index for token in self.tokens if token.head == token.index]
        while stack:
            here = stack.pop()
            for child in self.tokens[here].children:
                depth[child] = depth[here] + 1
                stack.append(child)
        return depth

    def children(self, token: Token, *deps: str) -> list[Token]:
        """Return the token's dependents with one of these labels."""
        return [self.tokens[c] for c in token.children if self.tokens[c].dep in deps]

    def subject(self, token: Token) -> Token | None:
        """Return the token's subject, if it is in the graph."""
        return next((s for s in self.children(token, *SUBJECTS) if s.node >= 0 or s.constant), None)

    def _compose(self, token: Token) -> None:
        if token.text == STANDS_FOR:
            statement = next(
                (s for s in self.children(token, "nsubj", "compound", "nmod") if FORMULA.fullmatch(s.text)), None
            )
            if statement is not None:
                self._stand_for(token, statement)
        elif token.lemma == "be" and token.pos in ("AUX", "VERB") and token.dep not in ("aux", "auxpass"):
            self._compose_copula(token)
        elif token.lemma in ("have", "ought", "able", "go") and token.node >= 0:
            self._compose_semimodal(token)
        elif token.lemma in _IMPERSONAL:
            self._drop_impersonal_subject(token)
        if token.node >= 0:
            self._put_over(token)
            self.over[token.index] = token.outer
        if token.dep != "conj" and (token.node >= 0 or token.constant):
            self._join(token)

    def _drop_impersonal_subject(self, token: Token) -> None:
        """Drop the subject of ``it follows that ...``, ``it seems that ...``."""
        subject = self.subject(token)
        if subject is not None and subject.lower == "it" and self.children(token, "ccomp"):
            subject.done = True
            subject.dep = "expl"
            self.draft.optional.add(subject.node)

    def _stand_for(self, token: Token, other: Token) -> None:
        token.node, token.inner, token.outer = other.node, other.inner, other.outer
        other.done = True
        if other.index in self.comparisons:
            self.comparisons[token.index] = self.comparisons[other.index]
        if other.index in self.members:
            self.members[token.index] = [token, *self.members[other.index][1:]]

    def _compose_copula(self, token: Token) -> None:
        draft = self.draft
        complements = self.children(token, "acomp", "attr", "oprd", "xcomp", "ccomp", "advmod", "prep")
        complement = next(
            (c for c in complements if c.dep in ("acomp", "attr", "oprd") and (c.node >= 0 or c.constant)), None
        )
        subject = self.subject(token)
        if complement is not None and subject is not None and subject.lower == "it":
            self._extrapose(token, subject, complement)
            subject = self.subject(token)
        if complement is None:
            self._compose_location(token, complements)
        elif subject is not None and (complement.constant or FORMULA.fullmatch(complement.text)):
            self._equate(token, complement)
        elif subject is not None and draft.concepts[complement.node] == "amr-unknown" and subject.node >= 0:
            # "What is a group?": the group is what is asked about.
            draft.edge(subject.inner, ":domain", complement.outer)
            complement.done = True
            self._stand_for(token, subject)
        else:
            self._stand_for(token, complement)

    def _extrapose(self, token: Token, subject: Token, complement: Token) -> None:
        """Make the clause the subject in ``it is true that ...``."""
        clauses = self.children(token, "ccomp", "xcomp", "advcl") + self.children(complement, "ccomp", "xcomp")
        for clause in clauses:
            infinitive = any(c.lower == "to" for c in self.children(clause, "aux"))
            that = any(c.lower in ("that", "whether") for c in self.children(clause, "mark"))
            if clause.index > complement.index and clause.node >= 0 and (infinitive or that):
                subject.done = True
                subject.dep = "expl"
                self.draft.optional.add(subject.node)
                clause.dep = "csubj"
                if clause.head != token.index:
                    self.tokens[clause.head].children.remove(clause.index)
                    token.children.append(clause.index)
                    clause.head = token.index
                return

    def _compose_location(self, token: Token, complements: list[Token]) -> None:
        """Compose ``It is in the set``, ``It is here``, ``It is like a circle``, ``It is that ...``."""
        draft = self.draft
        for child in complements:
            if child.dep == "prep":
                objects = [o for o in self.children(child, "pobj", "pcomp") if o.node >= 0]
                if not objects:
                    continue
                place = objects[0]
                if child.lower == "like":
                    draft.place(token, "resemble-01")
                elif child.lower in LOCATIVES:
                    draft.place(token, "be-located-at-91")
                else:
                    continue
                draft.edge(token.node, ":ARG2", place.outer)
                place.done = True
                return
            if child.dep == "advmod" and child.lower in ("here", "there", "where") and child.node >= 0:
                draft.place(token, "be-located-at-91")
                draft.edge(token.node, ":ARG2", child.outer)
                child.done = True
                return
        clause = next((c for c in complements if c.dep in ("ccomp", "xcomp") and c.node >= 0), None)
        if clause is not None:
            self._stand_for(token, clause)
        elif (subject := self.subject(token)) is not None:
            if token.dep != "ROOT":
                draft.place(token, "be-02")
            elif subject.node >= 0:
                self._stand_for(token, subject)

    def _equate(self, token: Token, complement: Token) -> None:
        """Compose ``The sum is FORMULA_0``, ``the sum is 3``."""
        draft = self.draft
        draft.place(token, "equal-01")
        if complement.constant:
            draft.attribute(token.node, ":ARG2", complement.constant)
        else:
            draft.edge(token.node, ":ARG2", complement.outer)
        complement.done = True

    def _compose_semimodal(self, token: Token) -> None:
        """Compose ``have to``, ``ought to``, ``able to``, ``going to`` as modal verbs."""
        verbs = [v for v in self.children(token, "xcomp") if v.node >= 0]
        if not verbs or self.children(token, "dobj"):
            return
        verb = verbs[0]
        if not any(c.lower == "to" for c in self.children(verb, "aux")):
            return
        if token.lemma == "go" and not (token.tag == "VBG" and self.children(token, "aux")):
            return
        self.draft.concepts[token.node] = UNUSED
        self._stand_for(token, verb)
        if token.lemma in _SEMIMODALS:
            self.draft.wrap(token, *_SEMIMODALS[token.lemma])

    def _put_over(self, token: Token) -> None:
        draft = self.draft
        modal = -1
        for child in self.children(token, "aux"):
            if child.lower in MODALS:
                modal = draft.wrap(token, *MODALS[child.lower])
        for child in self.children(token, "neg", "advmod", "det", "preconj"):
            if child.dep == "neg" or child.lower in ("never", "not"):
                able = modal >= 0 and draft.concepts[modal] == "possible-01"
                draft.attribute(modal if able else token.inner, ":polarity", "-")
            elif child.dep == "det" and child.lower in ("no", "neither"):
                draft.attribute(token.inner, ":polarity", "-")
        if token.word_class in ("J", "R") and token.dep in ("acomp", "advmod", "attr", "conj", "ROOT", "ccomp", "oprd"):
            self._compare(token)
        if token.word_class == "V" or token.dep in ("ROOT", "ccomp"):
            self._put_connectives_over(token)
            self._set_mood(token)
        if token.pos == "INTJ" and token.lower not in _NO_EXCLAMATION and token.node == token.outer:
            draft.attribute(token.node, ":mode", "expressive")

    def degree(self, token: Token) -> str:
        """Return ``more``, ``most``, ``less``, ``least`` or ``equal`` for a compared word, else ``""``."""
        adverb = next((a.lower for a in self.children(token, "advmod") if a.lower in _DEGREES), "")
        if adverb == "as":
            return "equal" if any(p.lower == "as" for p in self.children(token, "prep", "advcl", "mark")) else ""
        return adverb or {"JJR": "more", "RBR": "more", "JJS": "most", "RBS": "most"}.get(token.tag, "")

    def compared(self, token: Token) -> Token | None:
        """Return the word that an adjective is compared to, after ``than`` or the second ``as``."""
        for preposition in self.children(token, "prep"):
            if preposition.lower in ("than", "as"):
                return next((o for o in self.children(preposition, "pobj", "pcomp") if o.node >= 0), None)
        return None

    def _compare(self, token: Token) -> None:
        """Insert have-degree-91 above the adjective of ``larger than x``."""
        degree, other = self.degree(token), self.compared(token)
        if degree and other is not None and token.lower not in QUANTITIES:
            draft = self.draft
            for adverb in self.children(token, "advmod"):
                if adverb.lower == degree or adverb.lower in _DEGREES:
                    self._hide(adverb)
            comparison = draft.wrap(token, "have-degree-91", ":ARG2")
            draft.edge(comparison, ":ARG3", draft.node(degree))
            draft.edge(comparison, ":ARG4", other.outer)
            other.done = True
            self.comparisons[token.index] = comparison

    def _put_connectives_over(self, token: Token) -> None:
        draft = self.draft
        for child in self.children(token, "advmod", "cc", "prep", "intj", "mark"):
            if not self._opens_clause(child, token):
                continue
            if child.dep in ("advmod", "mark", "cc") and child.lower in CONSEQUENCES:
                if child.dep == "mark" and token.dep != "ROOT":
                    continue
                self._hide(child)
                draft.wrap(token, "cause-01", ":ARG1")
            elif child.dep == "advmod" and child.lower in CONTRASTS:
                self._hide(child)
                draft.wrap(token, "contrast-01", ":ARG2")
            elif child.dep == "cc" and (
                child.index < token.index or not any(c.index > child.index for c in self.children(token, "conj"))
            ):
                self._hide(child)
                if child.lower in ("but", "yet"):
                    draft.wrap(token, "contrast-01", ":ARG2")
                elif child.lower in ("and", "or"):
                    draft.wrap(token, child.lower, ":op2")
                elif child.lower == "for":
                    draft.wrap(token, "cause-01", ":ARG0")

    def _opens_clause(self, child: Token, verb: Token) -> bool:
        if child.index > verb.index:
            return False
        before = child.index - 1
        while before >= 0 and self.tokens[before].lower in ("and", "but", '"', "``", "''", "'", "-", "--", "“", "("):
            before -= 1
        return before < 0 or self.tokens[before].lower in (",", ";", ":", ".", "!", "?", "...", "…")

    def _hide(self, token: Token) -> None:
        token.done = True
        if token.node >= 0:
            self.draft.concepts[token.node] = UNUSED
            token.node = token.inner = token.outer = -1

    def _set_mood(self, token: Token) -> None:
        draft = self.draft
        if any(self.tokens[c].text == "?" for c in token.children):
            is_question = any(
                draft.concepts[self.tokens[i].node] == "amr-unknown"
                for i in draft.subtree(token)
                if self.tokens[i].node >= 0
            )
            if not is_question:
                draft.attribute(token.outer, ":mode", "interrogative")
                return
        if any(self.tokens[i].lower == "please" for i in token.children):
            draft.attribute(token.inner, ":polite", "+")
        if token.tag != "VB" or token.pos not in ("VERB", "AUX") or token.dep not in ("ROOT", "ccomp", "conj"):
            return
        if self.children(token, "aux", *SUBJECTS, "mark", "expl") and not self._is_negative_command(token):
            return
        if token.dep == "conj" and self.children(self.tokens[token.head], "aux", *SUBJECTS):
            return
        if token.dep == "ccomp" and token.index > self.tokens[token.head].index:
            return
        if token.lemma == "let":
            return
        draft.attribute(token.inner, ":mode", "imperative")
        draft.edge(token.inner, ":ARG0", self.pronoun("you"))

    def _is_negative_command(self, token: Token) -> bool:
        auxiliaries = self.children(token, "aux")
        return bool(auxiliaries) and all(a.lemma == "do" for a in auxiliaries) and not self.children(token, *SUBJECTS)

    def pronoun(self, concept: str) -> int:
        """Return the sentence's node for a pronoun, made at its first use."""
        for token in self.tokens:
            if token.node >= 0 and self.draft.concepts[token.node] == concept and PRONOUNS.get(token.lower) == concept:
                return token.node
        return self.draft.node(concept)

    def _join(self, token: Token) -> None:
        """Insert ``and`` or ``or`` above the members of a conjunction, or ``contrast-01`` for ``but``."""
        chain, links = [token], [""]
        self._follow(token, chain, links)
        if len(chain) < 2:
            return
        link = "and"
        for position in range(len(chain) - 1, 0, -1):  # commas take the conjunction that follows
            link = links[position] or link
            links[position] = link
        cut = next((i for i in range(1, len(chain)) if links[i] == "but"), None)
        if cut is None:
            token.outer = self._group(chain, "or" if "or" in links[1:] else "and")
        else:
            left, right = chain[:cut], chain[cut:]
            node = self.draft.node("contrast-01")
            self.draft.edge(node, ":ARG1", self._group(left, "and"))
            self.draft.edge(node, ":ARG2", self._group(right, "and"))
            token.outer = node
        for member in chain[1:]:
            member.done = True
        self.members[token.index] = chain

    def _follow(self, token: Token, chain: list[Token], links: list[str]) -> None:
        stack = [token]
        while stack:
            here = stack.pop()
            link = ""
            found: list[Token] = []
            for index in here.children:
                child = self.tokens[index]
                if child.dep == "cc" and not child.done:
                    link = {"but": "but", "or": "or", "nor": "or", "yet": "but"}.get(child.lower, "and")
                elif child.dep == "conj" and (child.node >= 0 or child.constant) and not child.done:
                    found.append(child)
                    chain.append(child)
                    links.append(link)
                    link = ""
            stack.extend(reversed(found))

    def _group(self, members: list[Token], concept: str) -> int:
        if len(members) == 1 and members[0].node >= 0:
            return members[0].outer
        node = self.draft.node(concept)
        for number, member in enumerate(members, 1):
            if member.node >= 0:
                self.draft.edge(node, f":op{number}", member.outer)
            else:
                self.draft.attribute(node, f":op{number}", member.constant)
        for member in members:
            if member.node < 0:
                member.node = member.inner = member.outer = node
        return node
