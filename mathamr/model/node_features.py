"""First vectors of the nodes: an embedding of each label, and an initialisation of virtual nodes.

The six initialisations of virtual nodes are those of thesis Table 4.13:

>>> from mathamr.model.config import VIRTUAL_NODE_STARTS
>>> sorted(VIRTUAL_NODE_STARTS)  # doctest: +NORMALIZE_WHITESPACE
[('mean', 'none'), ('mean', 'projection'), ('mean', 'typed_projection'),
 ('random', 'embedding'), ('zero', 'embedding'), ('zero', 'none')]

`zero/embedding` is a learned vector for each kind of virtual node (formula, sentence, document) that starts at zero;
`random/embedding` starts Xavier-uniform. `mean` is the mean of the label vectors below a virtual node: the trees of its
formula, the concepts of its sentence, or all ordinary nodes of the graph for the document.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn
from torch.nn import functional

from graphs.graph.virtual_nodes import VirtualKind
from graphs.graph.vocabulary import FIRST_VIRTUAL_LABEL
from mathamr.model.config import EncoderConfig
from mathamr.model.label_vectors import LabelText
from mathamr.model.sentence_text import SentenceText

if TYPE_CHECKING:
    from graphs.graph.batching import GraphBatch


class NodeFeatures(nn.Module):
    """Label embedding (thesis 3.3.1, Xavier-uniform) and virtual-node initialisation (thesis 4.3.4).

    ``projection`` is one for all virtual nodes, ``typed_projection`` one for each kind. Vectors of the labels' words,
    if configured, are added to the embedding, and the mean is taken over the sums; those of sentences are added to the
    initial vectors of sentence nodes.

    Shapes:
        GraphBatch of N nodes -> (N, hidden_dim)
    """

    def __init__(self, config: EncoderConfig, num_labels: int) -> None:
        super().__init__()
        dim, self.vn_init, self.vn_learned = config.hidden_dim, config.vn_init, config.vn_learned
        self.labels = nn.Embedding(num_labels, dim)
        nn.init.xavier_uniform_(self.labels.weight)
        self.virtual_nodes: nn.Parameter | None = None
        if config.vn_learned == "embedding":
            self.virtual_nodes = nn.Parameter(torch.zeros(len(VirtualKind), dim))
            if config.vn_init == "random":
                nn.init.xavier_uniform_(self.virtual_nodes)
        count = {"projection": 1, "typed_projection": len(VirtualKind)}.get(config.vn_learned, 0)
        self.projections = nn.ModuleList(nn.Linear(dim, dim) for _ in range(count))
        words, sentences = config.label_vectors, config.sentence_vectors
        self.text = None if words is None else LabelText(words, num_labels, dim)
        self.sentences = None if sentences is None else SentenceText(sentences, dim)

    def forward(self, batch: GraphBatch) -> Tensor:
        x: Tensor = self.labels(batch.labels)  # (N, hidden_dim)
        if self.text is not None:
            x = x + self.text(batch.labels)
        # Without virtual nodes the learned part gets a zero gradient.
        virtual = torch.nonzero(batch.is_virtual).squeeze(1)  # (V,)
        starts = self._starts(batch, virtual, x)  # (V, hidden_dim)
        if self.sentences is not None:
            places = torch.nonzero(batch.virtual_kind[virtual] == VirtualKind.SENTENCE).squeeze(1)  # (S,)
            starts = starts.index_add(0, places, self.sentences(batch.sentence_vectors).to(starts.dtype))
        if batch.has_threads:  # labels tell whether a virtual node is of the post itself, its question or a sibling
            labels = batch.labels[virtual]
            starts = starts + x[virtual] * (labels >= FIRST_VIRTUAL_LABEL + len(VirtualKind)).unsqueeze(1)
        return x.index_copy(0, virtual, starts.to(x.dtype))

    def _starts(self, batch: GraphBatch, virtual: Tensor, x: Tensor) -> Tensor:
        """Initialise the nodes ``virtual`` (V,) from the vectors ``x`` (N, hidden_dim) of all -> (V, hidden_dim)."""
        kind = batch.virtual_kind[virtual]
        if self.virtual_nodes is not None:
            return functional.embedding(kind, self.virtual_nodes)
        if self.vn_init == "zero":
            return self.labels.weight.new_zeros(virtual.numel(), self.labels.embedding_dim)
        means = self._constituent_means(batch, virtual, x)
        if not self.projections:
            return means
        projected = torch.stack([projection(means) for projection in self.projections])  # (1 or kinds, V, hidden_dim)
        which = kind if self.vn_learned == "typed_projection" else torch.zeros_like(kind)
        return projected[which, torch.arange(virtual.numel(), device=kind.device)]

    def _constituent_means(self, batch: GraphBatch, virtual: Tensor, x: Tensor) -> Tensor:
        """Average the label vectors below the nodes ``virtual`` (V,) -> (V, hidden_dim); no constituents give zeros.

        Edges from an ordinary to a virtual node belong to the hierarchy. A document node has the whole graph below it,
        though its edges reach only virtual nodes and the root.
        """
        source, target = batch.edge_index
        is_document = batch.virtual_kind == VirtualKind.DOCUMENT  # (N,)
        edge = torch.nonzero(batch.is_virtual[target] & ~is_document[target] & ~batch.is_virtual[source]).squeeze(1)
        ordinary = torch.nonzero(~batch.is_virtual).squeeze(1)
        document_of = torch.full((batch.num_graphs,), -1, dtype=torch.int64, device=source.device)
        documents = torch.nonzero(is_document).squeeze(1)
        document_of[batch.node_graph[documents]] = documents
        ordinary = ordinary[document_of[batch.node_graph[ordinary]] >= 0]

        above = torch.cat([target[edge], document_of[batch.node_graph[ordinary]]])
        below = torch.cat([source[edge], ordinary])
        order = torch.argsort(above, stable=True)
        count = torch.bincount(above, minlength=batch.labels.numel())[virtual]
        offsets = functional.pad(count.cumsum(0), (1, 0))
        index, matrix = batch.labels[below[order]], self.labels.weight
        if self.text is not None:
            index, matrix = below[order], x
        return functional.embedding_bag(index, matrix, offsets, mode="mean", include_last_offset=True)
