"""Parser whose windows are of ten tokens, with the faults of the real one.

A longer document with the word ``unmerged`` is cut to its first window, with a line on standard output; one with the
word ``short`` without a line. A token ``crash`` raises, ``garbage`` gives a graph that cannot be read.
"""

from __future__ import annotations

WINDOW = 10


class AMRParser:
    """Stand-in for the parser."""

    @classmethod
    def from_pretrained(cls, name: str) -> AMRParser:
        """Return the parser of any name."""
        print("| loading", name)
        return cls()

    def tokenize(self, sentence: str) -> tuple[list[str], list[tuple[int, int]]]:
        """Return the words, and no positions."""
        return sentence.replace("?", " ?").replace(".", " .").split(), []

    def parse_docs(self, documents: list[list[list[str]]]) -> tuple[list[str], list[None]]:
        """Return a graph for each document of tokenized sentences."""
        return [self._parsed(document) for document in documents], [None] * len(documents)

    def _parsed(self, document: list[list[str]]) -> str:
        tokens = [token for sentence in document for token in sentence]
        if "crash" in tokens:
            raise RuntimeError("CUDA error: device-side assert triggered")
        if "garbage" in tokens:
            return f"# ::tok {' '.join(tokens)}\n(b / broken :ARG0"
        if len(tokens) > WINDOW and "unmerged" in tokens:
            print("did not complete merge")
            tokens = tokens[:WINDOW]
        if len(tokens) > WINDOW and "short" in tokens:
            tokens = tokens[:WINDOW]
        said = " ".join(token for token in tokens if token.isalnum())
        return f'# ::tok {" ".join(tokens)}\n(s / say-01~0 :ARG1 (t / thing :name "{said}"))'
