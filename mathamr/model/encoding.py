"""Encoding of posts with a trained encoder, for an index or for a search.

    store = GraphStore("preprocessed.db")
    encoder = checkpoint.load_encoder("model/best", config_hash=store.config_hash)
    documents = encode(encoder, store, post_ids)        # VectorSets, one set for each post, ordered as post_ids

Graphs are encoded in batches within a budget of nodes and edges, so a few long posts do not exhaust memory. They are
sorted by size first, which fills the batches evenly. The result does not depend on the order.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence

import numpy as np
import torch

from graphs.errors import RetrievalError
from graphs.graph.batching import within_budget
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.memory import giving_back_memory
from mathamr.model import sentence_text
from mathamr.model.encoder import Encoder

MAX_NODES, MAX_EDGES = 20_000, 80_000  # of a batch; some 120 graphs of the thesis's size. More is no faster on a CPU


def device_of(name: str) -> str:
    """Return the device that ``auto`` means on this machine; any other name as it is."""
    if name != "auto":
        return name
    return "cuda" if torch.cuda.is_available() else "cpu"


def out_of_memory(error: Exception) -> bool:
    """Return whether torch reports that the GPU or the machine has no memory left."""
    return isinstance(error, torch.OutOfMemoryError) or "can't allocate memory" in str(error)


@torch.no_grad()
def encode(
    encoder: Encoder,
    store: GraphStore,
    post_ids: Sequence[str],
    *,
    max_nodes: int = MAX_NODES,
    max_edges: int = MAX_EDGES,
    progress: Callable[[int], None] | None = None,
    hidden: Collection[str] = (),
) -> VectorSets:
    """Encode each post (thesis 3.5.1) on the encoder's device; the encoder is put into evaluation mode.

    Args:
        post_ids: ids of posts in the store; repetitions are allowed.
        max_nodes: largest number of nodes of a batch; a larger graph makes a batch alone. ``max_edges`` bounds edges.
        progress: function called with the number of posts encoded since its last call.
        hidden: posts that take part in no thread of another post, where graphs are threads.

    Raises:
        RetrievalError: too little memory on the device for a batch.
        ConfigError: graphs without the sentence vectors that the encoder needs.

    Shapes:
        VectorSets of ``len(post_ids)`` sets, vectors (V, projection_dim).
    """
    sentence_text.check(encoder.config.sentence_vectors, store)
    encoder.eval()
    device = next(encoder.parameters()).device
    if not post_ids:
        empty = torch.zeros(0, encoder.config.projection_dim, device=device)
        return VectorSets(empty, torch.zeros(1, dtype=torch.int64, device=device))
    nodes, edges = store.sizes(post_ids, hidden)
    by_size = np.argsort(nodes, kind="stable")
    advance = giving_back_memory(progress or (lambda count: None))
    encoded: list[VectorSets] = []
    for batch in within_budget(nodes[by_size], edges[by_size], max_nodes=max_nodes, max_edges=max_edges):
        places = by_size[batch]
        graphs = store.load([post_ids[i] for i in places], hidden)
        try:
            encoded.append(encoder(graphs.to(device)))
        except RuntimeError as error:
            if not out_of_memory(error):
                raise
            raise RetrievalError(
                f"out of memory on {device} with {graphs.num_nodes:,} nodes and {graphs.num_edges:,} edges at once "
                f"({str(error).splitlines()[0]}); lower max_nodes={max_nodes} and max_edges={max_edges}, in training "
                "and in experiments train.node_budget and train.edge_budget"
            ) from error
        advance(len(batch))
    back = torch.from_numpy(np.argsort(by_size, kind="stable")).to(device)
    return VectorSets.concatenated(encoded).select(back)
