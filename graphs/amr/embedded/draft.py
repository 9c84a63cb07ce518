"""Draft of a sentence between dependencies and AMR: its tokens, and the growing graph over them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import penman

from graphs.amr.embedded.lexicon import Link
from graphs.amr.penman_text import Triple, atom, encode, quote

_CODED = re.compile(r"(?P<outer>[a-z-]+)<(?P<role>[A-Za-z]+[0-9]?(?:-of)?)<(?P<inner>[a-z-]+-[0-9]{2})")


@dataclass(slots=True)
class Token:
    """Word with its dependency and its nodes.

    ``node`` is the word's node (-1 for none), ``inner`` the node for its dependents, ``outer`` the node for its head.
    They differ for persons who do something, and under modal verbs and conjunctions. ``constant`` is a number or a name
    without a node. ``done`` marks a word that is attached already, or adds nothing.
    """

    index: int
    text: str
    lower: str
    lemma: str
    pos: str
    tag: str
    dep: str
    head: int  # index of the head, the token's own for a root
    children: list[int] = field(default_factory=list)
    node: int = -1
    inner: int = -1
    outer: int = -1
    constant: str = ""
    done: bool = False

    @property
    def word_class(self) -> str:
        """Word class: ``V``, ``N``, ``J``, ``R``, or ``""`` for a function word."""
        return _CLASSES.get(self.pos, "")


_CLASSES = {"VERB": "V", "AUX": "V", "NOUN": "N", "PROPN": "N", "ADJ": "J", "ADV": "R"}


UNUSED = ""  # concept of a removed node


class Draft:
    """Nodes and edges of a sentence's graph; ``links`` are the dependencies whose roles were looked up."""

    def __init__(self, tokens: list[Token]) -> None:
        self.tokens = tokens
        self.concepts: list[str] = []
        self.edges: list[tuple[int, str, int]] = []
        self.attributes: list[tuple[int, str, str]] = []
        self.links: list[tuple[int, int, Link]] = []
        self.optional: set[int] = set()  # nodes to drop if nothing leads to them

    def node(self, concept: str) -> int:
        self.concepts.append(concept)
        return len(self.concepts) - 1

    def edge(self, source: int, role: str, target: int) -> None:
        """Add an edge, unless it exists or leads from a node to itself."""
        if source != target and (source, role, target) not in self.edges:
            self.edges.append((source, role, target))

    def attribute(self, node: int, role: str, constant: str) -> None:
        """Add a constant below a node, once."""
        if (node, role, constant) not in self.attributes:
            self.attributes.append((node, role, constant))

    def take(self, other: Draft) -> int:
        """Add the nodes and edges of another draft; return the shift of its node numbers."""
        shift = len(self.concepts)
        self.optional |= {node + shift for node in other.optional}
        self.concepts += other.concepts
        self.edges += [(source + shift, role, target + shift) for source, role, target in other.edges]
        self.attributes += [(node + shift, role, constant) for node, role, constant in other.attributes]
        return shift

    def place(self, token: Token, concept: str) -> int:
        """Make the token a node; ``person<ARG0-of<teach-01`` makes two, ``possible-01!`` one with negative polarity."""
        negative = concept.endswith("!")
        concept = concept.rstrip("!") or concept
        coded = _CODED.fullmatch(concept)  # any other '<' is part of the text, as in a tag
        token.node = token.inner = token.outer = self.node(coded["outer"] if coded else concept)
        if coded:
            token.inner = self.node(coded["inner"])
            self.edge(token.node, ":" + coded["role"], token.inner)
        if negative:
            self.attribute(token.inner, ":polarity", "-")
        return token.node

    def wrap(self, token: Token, concept: str, role: str) -> int:
        """Insert a node above the token."""
        wrapper = self.node(concept)
        self.edge(wrapper, role, token.outer)
        token.outer = wrapper
        return wrapper

    def join(self, concept: str, **targets: int) -> int:
        """Add a node with an edge to each target, by role: ``join("cause-01", ARG0=reason, ARG1=result)``."""
        node = self.node(concept)
        for role, target in targets.items():
            self.edge(node, f":{role}", target)
        return node

    def is_frame(self, node: int) -> bool:
        concept = self.concepts[node]
        return len(concept) > 3 and concept[-3] == "-" and concept[-2:].isdigit()

    def subtree(self, token: Token) -> list[int]:
        """Indices of the token and of all tokens below it."""
        found = [token.index]
        for index in found:
            found.extend(self.tokens[index].children)
        return found

    def penman(self, root: int) -> str:
        """Return the graph as Penman text; parts without a path to ``root`` are attached below it by ``:rel``."""
        self.connect(root)
        names = self._names()
        triples: list[Triple] = [(names[i], ":instance", atom(c)) for i, c in enumerate(self.concepts) if c]
        triples += [(names[node], role, constant) for node, role, constant in self.attributes if self.concepts[node]]
        for source, role, target in self.edges:
            if self.concepts[source] and self.concepts[target]:
                if role[-3:] == "-of":
                    source, role, target = target, role[:-3], source
                triples.append((names[source], role, names[target]))
        return encode(penman.Graph(triples, top=names[root]))

    def _names(self) -> list[str]:
        counts: dict[str, int] = {}
        names = []
        for concept in self.concepts:
            letter = next((c for c in concept.lower() if "a" <= c <= "z"), "x")
            counts[letter] = counts.get(letter, 0) + 1
            names.append(letter if counts[letter] == 1 else f"{letter}{counts[letter]}")
        return names

    def connect(self, root: int) -> None:
        """Attach parts without a path to ``root`` below it by ``:rel``; optional nodes are dropped instead."""
        parents = list(range(len(self.concepts)))

        def find(node: int) -> int:
            while parents[node] != node:
                parents[node] = parents[parents[node]]
                node = parents[node]
            return node

        for source, _, target in self.edges:
            if self.concepts[source] and self.concepts[target]:
                parents[find(source)] = find(target)
        linked = {node for source, _, target in self.edges for node in (source, target)}
        for node in self.optional:
            if node not in linked and node != root:
                self.concepts[node] = UNUSED
        for node, concept in enumerate(self.concepts):
            if concept and find(node) != find(root):
                self.edge(root, ":rel", node)
                parents[find(node)] = find(root)


def name(draft: Draft, concept: str, words: list[str]) -> int:
    """Add a node of ``concept`` with a name of the given words; return the node."""
    node = draft.node(concept)
    name_node = draft.node("name")
    draft.edge(node, ":name", name_node)
    for number, word in enumerate(words, 1):
        draft.attribute(name_node, f":op{number}", word if word.isdigit() else quote(word))
    return node
