r"""Typed query -> vectors, by the same steps as for posts.

    queries = QueryEncoder(encoder, vocabulary, spec)
    query = queries.encode(r"Prove that $\|A\|_2 \le \sqrt{\|A\|_1\|A\|_\infty}$")
    query.vectors           # VectorSets of one set: formulas, sentences, the document
    query.nodes             # [VirtualNode('formula', 0, '\\|A\\|_2 ...'), VirtualNode('sentence', 0, 'Prove ...'), ...]

Text is plain, with formulas between dollar signs, ``\(..\)`` or ``\[..\]``. It goes through
:class:`graphs.graph.graph_maker.GraphMaker`, which makes the graphs of a collection, then through virtual nodes, the
model's vocabulary and the encoder; so a post typed as a query has the same vectors as in the index. One exception: the
parser may read a noun without a final stop as a verb, ``function`` as "Function!" and "prime number theorem" as a verb
``theorem-01``. A short query is read with a full stop, unless the model has seen the concepts without it more often.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path

import torch

from graphs.amr.embedded import EmbeddedParser
from graphs.corpus.post import PlaceholderText, Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, Failure, RetrievalError
from graphs.graph.batching import collate
from graphs.graph.graph_maker import GraphMaker, MadeGraphs, ParserFactory, StoredGraph
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.tensors import to_arrays
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import UNK, Vocabulary
from graphs.processes import batched
from graphs.stores.collection import Collection
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import Encoder
from mathamr.model.sentence_text import refusal
from mathamr.retrieval.explanation import VirtualNode, nodes_of
from mathamr.search.typed_query import typed_post
from mathamr.search.words import QueryWords, read_words

POSTS_A_BATCH = 64
_STOPS = (".", "!", "?", "…", ",", ";", ":")
_SHORT = 200  # characters of a query that may be a phrase; the sentences of longer ones end in stops
_COMMAND = ":mode imperative"


@dataclass(frozen=True, slots=True)
class EncodedQuery:
    """A query as a set of vectors: ``vectors`` holds one set, ``nodes`` has the part that each vector represents.

    ``formula_ids`` are the formulas in the order of their vectors; a typed formula has the id ``query:i``.
    ``words`` records the parts of the query that the model knows.
    """

    post_id: str
    text: PlaceholderText
    vectors: VectorSets
    nodes: list[VirtualNode]
    formula_ids: list[str]
    words: QueryWords


class QueryEncoder:
    """Encoder of queries: an AMR parser, a vocabulary and a model, loaded once, within seconds.

    Args:
        parser: factory of the AMR parser; where possible, the one that parsed the posts of the index.
        formulas_db: trees of formulas by id, for topics of a collection that publishes them.

    Raises:
        ConfigError: an encoder that also reads sentence vectors, or that reads graphs of threads.
    """

    def __init__(
        self,
        encoder: Encoder,
        vocabulary: Vocabulary,
        spec: VirtualNodeSpec,
        *,
        parser: ParserFactory = EmbeddedParser,
        formulas_db: Path | None = None,
    ) -> None:
        if encoder.config.sentence_vectors is not None:
            raise refusal(encoder.config.sentence_vectors)
        if spec.thread != "none":
            raise ConfigError(
                f"this model reads graphs of threads (graph.thread={spec.thread}), but a single text has none; run an "
                "experiment (experiments.run), or use a model with graph.thread=none"
            )
        self._encoder = encoder.eval()
        self._vocabulary = vocabulary
        self._spec = spec
        self._make = GraphMaker(parser, formulas_db)

    @property
    def parser(self) -> str:
        """Name, version and model of the AMR parser, as a collection records them."""
        return self._make.parser_name

    def encode(self, query: str) -> EncodedQuery:
        """Encode a query as it was typed; raise RetrievalError if it is empty, too long, or cannot be read."""
        encoded = self.encode_typed(typed_post(query))
        if isinstance(encoded, Failure):
            raise RetrievalError(f"the query cannot be read: {encoded.message}")
        return encoded

    def encode_typed(self, post: Post) -> EncodedQuery | Failure:
        """Encode the post of a typed query; its text and nodes are as typed, also if it is read with a full stop."""
        graph_batch = self._read(post)
        (encoded,) = self._encoded([post], {graph.post_id: graph for graph in graph_batch.graphs}, graph_batch.failures)
        return encoded

    def encode_posts(self, posts: Sequence[Post], collection: Collection | None = None) -> list[EncodedQuery | Failure]:
        """Encode posts or topics, in their order; a post without a graph gives a failure in its place.

        Graphs in ``collection`` are reused; they were made by the parser of the posts.
        """
        found: list[EncodedQuery | Failure] = []
        for batch in batched(posts, POSTS_A_BATCH):
            graphs: dict[str, StoredGraph] = {}
            if collection is not None:
                graphs = {post.post_id: collection.get(post.post_id) for post in batch if post.post_id in collection}
            graph_batch = self._make([post for post in batch if post.post_id not in graphs])
            graphs |= {graph.post_id: graph for graph in graph_batch.graphs}
            found += self._encoded(batch, graphs, graph_batch.failures)
        return found

    def _encoded(
        self, posts: Sequence[Post], graphs: Mapping[str, StoredGraph], failures: Sequence[Failure]
    ) -> list[EncodedQuery | Failure]:
        """Encode posts by their graphs; a post without one gives its failure."""
        reasons = {failure.post_id: failure for failure in failures}
        decoded = [graphs[post.post_id].decode() for post in posts if post.post_id in graphs]
        read = iter(zip(decoded, self._vectors(decoded), strict=True))
        found: list[EncodedQuery | Failure] = []
        for post in posts:
            if post.post_id not in graphs:
                found.append(reasons[post.post_id])
                continue
            graph, own = next(read)
            text = extract(post)
            with_formulas = self._spec.formulas != "none"
            formula_ids = list(graphs[post.post_id].formula_map.values()) if with_formulas else []
            nodes = nodes_of(text, formula_ids, len(own), self._spec.structure)
            words = read_words(graph, self._vocabulary, sentences=text.sentences, with_formulas=with_formulas)
            found.append(EncodedQuery(post.post_id, text, VectorSets.of([own]), nodes, formula_ids, words))
        return found

    def _read(self, post: Post) -> MadeGraphs:
        """Return the graph of a typed query, or of the query with a full stop where that is the better reading."""
        graph_batch = self._make([post])
        body = post.body.rstrip()
        if not graph_batch.graphs or len(body) > _SHORT or body.endswith(_STOPS):
            return graph_batch
        stopped = self._make([replace(post, body=f"{body}.")])
        return stopped if stopped.graphs and self._is_better(stopped.graphs[0], graph_batch.graphs[0]) else graph_batch

    def _is_better(self, stopped: StoredGraph, typed: StoredGraph) -> bool:
        """Return whether the concepts of ``stopped`` are no rarer than those of ``typed``, and it adds no command."""
        if stopped.penman.count(_COMMAND) > typed.penman.count(_COMMAND):
            return False
        with_stop, without = _concepts(stopped), _concepts(typed)
        return self._rarest(with_stop - without) <= self._rarest(without - with_stop)

    def _rarest(self, concepts: set[str]) -> int:
        """Return the highest rank of concepts among the labels of the model, the most frequent ones first."""
        ids = [self._vocabulary.label_id(concept, NodeKind.AMR) for concept in concepts]
        return max((self._vocabulary.num_labels if one == UNK else one for one in ids), default=0)

    @torch.no_grad()
    def _vectors(self, graphs: Sequence[DocumentGraph]) -> list[torch.Tensor]:
        """Return the vectors (V, p) of each graph, on the CPU."""
        if not graphs:
            return []
        device = next(self._encoder.parameters()).device
        arrays = [to_arrays(graph, self._spec, self._vocabulary) for graph in graphs]
        return list(self._encoder(collate(arrays).to(device)).to("cpu"))


def _concepts(graph: StoredGraph) -> set[str]:
    """Return the concepts of a graph without those of every command."""
    read = graph.decode()
    concepts = {label for label, kind in zip(read.labels, read.kinds, strict=True) if kind is NodeKind.AMR}
    return concepts - {"you", "imperative"}


def is_same_parser(recorded: str, used: str) -> bool:
    """Return whether graphs of the parser ``recorded`` fit those of ``used``, by name, version and model.

    A record without a version fits every version; no record fits every parser.

    >>> is_same_parser("embedded 2 en_core_web_sm 3.8.0", "embedded 2 en_core_web_lg 3.8.0")
    False
    >>> is_same_parser("embedded", "embedded 2 en_core_web_sm 3.8.0")
    True
    """
    return recorded in ("", used, used.partition(" ")[0])


def query_sets(queries: Sequence[EncodedQuery]) -> VectorSets:
    """Join the sets of several queries."""
    return VectorSets.of(list(chain.from_iterable(query.vectors for query in queries)))
