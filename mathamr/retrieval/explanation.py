r"""Explanation of a result: the best match in the post for each virtual node of the query.

A query and a post, each of one sentence with one formula, are compared:

>>> import torch
>>> from graphs.corpus.post import FormulaRef
>>> query = nodes_of(PlaceholderText(("Solve FORMULA_0.",), (FormulaRef("q:0", "x^2=2"),)), ["q:0"], 3)
>>> [(node.kind, node.text) for node in query]
[('formula', 'x^2=2'), ('sentence', 'Solve $x^2=2$.'), ('document', '')]
>>> post = nodes_of(PlaceholderText(("Take FORMULA_0.",), (FormulaRef("7", "x=\\sqrt2"),)), ["7"], 3)
>>> same = torch.eye(3)
>>> why = explain(same, query, same[[0, 2, 1]], post)
>>> [(match.query.text, match.document.text, match.score) for match in why.matches][:1]
[('x^2=2', 'x=\\sqrt2', 1.0)]
>>> why.score  # MaxSim of the two (thesis Eq. 3.4)
3.0

The heat map of the thesis (Figure 4.1) shows the similarities of all pairs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from graphs.corpus.post import PlaceholderText
from graphs.corpus.text.latex_text import with_latex
from graphs.errors import RetrievalError
from graphs.graph.virtual_nodes import Structure

if TYPE_CHECKING:
    from torch import Tensor

NodeName = Literal["formula", "sentence", "document"]


@dataclass(frozen=True, slots=True)
class VirtualNode:
    """Part of a post that a vector represents: the LaTeX of a formula, the text of a sentence, or the whole document.

    ``number`` counts within the kind. ``text`` is "" for a document, and for a sentence node with an unknown sentence.
    """

    kind: NodeName
    number: int
    text: str


@dataclass(frozen=True, slots=True)
class Match:
    """Virtual node of the query with the most similar virtual node of the document, and their similarity."""

    query: VirtualNode
    document: VirtualNode
    score: float


@dataclass(frozen=True, slots=True)
class Explanation:
    """``similarities`` (num_query_nodes, num_document_nodes) of the virtual nodes ``query`` and ``document``."""

    query: list[VirtualNode]
    document: list[VirtualNode]
    similarities: Tensor

    @property
    def matches(self) -> list[Match]:
        """Best match of each virtual node of the query, in the order of these nodes."""
        best = self.similarities.max(1)
        pairs = zip(self.query, best.indices.tolist(), best.values.tolist(), strict=True)
        return [Match(node, self.document[place], score) for node, place, score in pairs]

    @property
    def score(self) -> float:
        """MaxSim: the sum over the matches."""
        return float(self.similarities.amax(1).sum())

    def of_documents(self) -> Explanation:
        """Return the explanation of a single-vector search, which compares the last virtual nodes only."""
        return Explanation(self.query[-1:], self.document[-1:], self.similarities[-1:, -1:])


def explain(
    query: Tensor, query_nodes: Sequence[VirtualNode], document: Tensor, document_nodes: Sequence[VirtualNode]
) -> Explanation:
    """Compare all virtual nodes of a query (num_query_nodes, p) and of a document (num_document_nodes, p)."""
    return Explanation(list(query_nodes), list(document_nodes), query.float() @ document.float().T)


def nodes_of(
    text: PlaceholderText, formula_ids: Sequence[str], count: int, structure: Structure = "full"
) -> list[VirtualNode]:
    """Return the parts that the ``count`` vectors of a post represent: formulas, sentences, the document last.

    Args:
        formula_ids: values of the graph's formula map, in its order; empty for graphs without formulas.
        structure: structure of the virtual nodes; ``none`` has no document.

    Sentences have their text if the graph has as many as the post. An AMR parser may split or lose some; then they
    have only numbers.
    """
    by_id = {formula.formula_id: formula.latex for formula in text.formulas}
    nodes = [VirtualNode("formula", i, by_id.get(name, "")) for i, name in enumerate(formula_ids)]
    sentences = count - len(nodes) - (structure != "none")
    if sentences < 0:
        raise RetrievalError(
            f"{count} vectors for {len(nodes)} formulas{' and a document' if structure != 'none' else ''}; do graph "
            "and text belong together?"
        )
    known = text.sentences if sentences == len(text.sentences) else ("",) * sentences
    nodes += [VirtualNode("sentence", i, with_latex(sentence, text)) for i, sentence in enumerate(known)]
    if structure != "none":
        nodes.append(VirtualNode("document", 0, ""))
    return nodes
