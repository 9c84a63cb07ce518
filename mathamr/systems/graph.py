"""Graph: posts -> MathAMR+ graphs -> tensors -> RGCN -> MaxSim.

Graphs and tensors are made by :mod:`mathamr.stages.tensors`; vectors of posts are kept beside the model by
:mod:`mathamr.stages.vectors`. In Task 1 answers are found; in Task 2 formulas of questions and answers, by the
vectors of their virtual nodes, with that of the query formula.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import Corpus
from graphs.corpus.leaks import PairsApart
from graphs.corpus.post import Pair, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from graphs.graph.threads import ThreadPosts
from graphs.graph.virtual_nodes import check_structure
from graphs.ids import Ids, each_once
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from graphs.stores.thread_store import ThreadStore
from mathamr.evaluation.efficiency import reset_peak_memory
from mathamr.model.config import EncoderConfig
from mathamr.model.encoding import device_of
from mathamr.model.label_vectors import is_hash
from mathamr.retrieval.explanation import Explanation, explain, nodes_of
from mathamr.search.searchable import Searchable
from mathamr.stages import parsers, sources
from mathamr.stages.console import Console
from mathamr.stages.leak_control import CollectionPairs, SourcePairs
from mathamr.stages.learning.graph_model import TrainingData, as_model, copy_checkpoint, train_graph_model
from mathamr.stages.learning.teacher import teacher
from mathamr.stages.needed import extent_of
from mathamr.stages.retrieval.formula_search import (
    Formulas,
    index_formulas,
    read_formulas,
    search_formulas,
    searched_posts,
)
from mathamr.stages.retrieval.searching import check_search, index_posts, search_posts
from mathamr.stages.tensors import Preparation, Prepared
from mathamr.stages.text_vectors import LabelText, SentenceText
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, Indexed, Log, Retrieved, SelectPosts, TopicSet, Trained
from mathamr.stages.vectors import EncodedPosts, encode_missing, kinds_of
from mathamr.systems.registry import system
from mathamr.systems.searchable.graph import encode_query, keep_model
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch
from mathamr.systems.searchable.vectors import keep_vectors, open_vectors
from mathamr.systems.settings.trained import GraphSettings
from mathamr.systems.system import System
from mathamr.text.encoder import identity
from mathamr.training import checkpoint
from mathamr.training.distributed import ranks
from mathamr.training.graph.checks import Negatives
from mathamr.training.graph.curriculum import curriculum
from mathamr.training.graph.distillation import Teacher
from mathamr.training.pairs import posts_of, with_sources


@system("graph")
class GraphSystem(System[GraphSettings]):
    """Search by the vectors of virtual nodes, of a graph encoder."""

    partial = False
    reads = frozenset({"answer", "question", "both"})

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        super().__init__(corpus, shared, console)
        self._pairs = CollectionPairs(corpus, self.post_files, console)
        self._preparation = Preparation(corpus, shared, console, self._pairs.learned)
        self._further_pairs = SourcePairs(shared, self._preparation.sources, console)
        self._label_text = LabelText(console)
        self._sentence_text = SentenceText(console)
        # Read once a process, for reading them passes over the whole collection: by its file, and by the task.
        self._formulas_of: dict[tuple[Path, str, str], Formulas] = {}
        self._searched_of: dict[tuple[object, ...], Ids] = {}

    # -- before anything runs ----------------------------------------------------------------------------------------

    def check(self, settings: GraphSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Check every setting once: the library's own types know what they may be."""
        self._pairs.topic_sets = self._further_pairs.topic_sets = topic_sets
        parsers.parser_of(settings)
        spec, model, training = settings.graph.spec(), settings.model, settings.train
        for name in (model.label_vectors, model.sentence_vectors, training.teacher):
            if name is not None and not is_hash(name):
                self._label_text.check(name)
        if model.sentence_vectors is not None:
            check_structure(spec.structure)
        strategy = check_search(settings)
        if spec.structure == "none" and strategy.name != "maxsim":
            raise ConfigError(
                f"graphs of structure 'none' have no document vector for retrieval.strategy={strategy.name}; use "
                "graph.structure=full or global, or retrieval.strategy=maxsim"
            )
        if spec.formulas == "none" and any(topic_set.task == 2 for topic_set in topic_sets):
            raise ConfigError(
                "graph.formulas=none leaves no formula to find in Task 2; use experiment.tasks=[1], or "
                "graph.formulas=both, opt or slt"
            )
        with ranks(training.device):  # refuses a device that is not there
            pass
        self.post_files.read(texts=extent_of(settings.data) == "all")
        sources.check_apart(self._pairs(training).kept, self._preparation.sources(settings))
        further = self._source_pairs(settings)
        available = posts_of(chain.from_iterable(further.values()))
        curriculum(training, with_sources(self._pairs.split(training), further, available))

    def _source_pairs(self, settings: GraphSettings) -> dict[str, list[Pair]]:
        """Return the pairs of each source that is learned from."""
        return {name: list(apart.kept) for name, apart in self._further_pairs(settings).items()}

    def pairs(self, settings: GraphSettings) -> Mapping[str, PairsApart]:
        """Return the training pairs of the collection and of its sources, unless a trained model is given."""
        if settings.model.checkpoint is not None:
            return {}
        return {"": self._pairs(settings.train), **self._further_pairs(settings)}

    # -- what jobs share ---------------------------------------------------------------------------------------------

    def prepare(self, settings: GraphSettings, topic_sets: Sequence[TopicSet]) -> None:
        """Make formula trees, graphs and tensors; vectors of labels and sentences, where the model reads them."""
        self._pairs.forget_splits()
        prepared = self._preparation(settings, topic_sets)
        self._texts = prepared.texts
        if settings.graph.thread != "none":
            self.threads(topic_sets)
        self._encoder_config(settings, prepared)
        if (name := settings.model.sentence_vectors) is not None:
            topics = [topic.post for topic_set in topic_sets for topic in topic_set.topics]
            device = device_of(settings.train.device)
            self._sentence_text.make(name, self._preparation.collections(settings), topics, device)

    def source(self, settings: GraphSettings) -> str:
        """Return the configuration of the graphs with their vocabulary, the graphs, and what is trained on."""
        prepared = self._preparation.of(settings)
        digest = hashlib.sha256()
        for pair in self._pairs(settings.train).kept:
            digest.update(f"{pair.question_id}\t{pair.answer_id}\n".encode())
        for name, content in prepared.sources.items():
            digest.update(f"{name}\t{content}\n".encode())
        for apart in self._further_pairs(settings).values():
            for pair in apart.left_out:
                digest.update(f"without\t{pair.question_id}\t{pair.answer_id}\n".encode())
        if settings.graph.thread != "none":
            digest.update("".join(f"topic\t{question}\n" for question in sorted(self._topic_questions)).encode())
        graphs = GraphStore(prepared.posts, settings.graph.spec())
        parts = [graphs.config_hash[:16], prepared.content, digest.hexdigest()[:8]]
        if settings.model.label_vectors is not None:
            parts.append(str(self._encoder_config(settings, prepared).label_vectors))
        return "-".join(parts)

    def rankings_source(self, settings: GraphSettings) -> str:
        """Return the source of the model, and the graphs that it searches and is asked by."""
        prepared = self._preparation.of(settings)
        return f"{self.source(settings)}-{prepared.added_content[:8]}-{prepared.topics_content[:8]}"

    def _encoder_config(self, settings: GraphSettings, prepared: Prepared) -> EncoderConfig:
        """Return what is trained.

        Where text encoders are named, it has the hash of the label vectors that one makes, and the identity of the
        other.
        """
        model = settings.model.encoder
        if model.sentence_vectors is not None:
            model = replace(model, sentence_vectors=identity(model.sentence_vectors))
        name = model.label_vectors
        if name is None or is_hash(name):
            return model
        label_vectors = self._label_text(name, GraphStore(prepared.posts), lambda: self._preparation.counts(settings))
        return replace(model, label_vectors=label_vectors)

    def _graphs(self, settings: GraphSettings, path: Path) -> GraphStore:
        """Open the tensors in a file, as the model reads them."""
        name = settings.model.sentence_vectors
        vectors = None if name is None else self._sentence_text(name, self._preparation.collections(settings))
        spec = settings.graph.spec()
        if spec.thread == "none":
            return GraphStore(path, spec, sentence_vectors=vectors)
        parents = self.known_threads().parents
        own = {answer: question for answer, question in parents.items() if question not in self._topic_questions}
        return ThreadStore(path, spec, ThreadPosts(own, spec.thread), sentence_vectors=vectors)

    # -- the model ---------------------------------------------------------------------------------------------------

    def train(self, settings: GraphSettings, folder: Path, log: Log) -> Trained:
        """Train an encoder on the collection's pairs, or copy the given one."""
        prepared = self._preparation.of(settings)
        graphs = self._graphs(settings, prepared.posts)
        if settings.model.checkpoint is not None:
            return copy_checkpoint(Path(settings.model.checkpoint), folder / "best", graphs)
        reset_peak_memory()
        training = settings.train
        data = TrainingData(
            graphs,
            self._pairs(training).kept,
            posts=self.post_files.every_post,
            visual_ids=self._formulas(prepared).by_post() if training.compares_formulas else None,
            sources=self._source_pairs(settings),
            teacher=lambda pairs, negatives: self._teacher(settings, pairs, negatives),
        )
        encoder = self._encoder_config(settings, prepared)
        result, _ = train_graph_model(data, training, encoder, folder, self.console, log=log)
        return as_model(result, device_of(training.device))

    def _teacher(self, settings: GraphSettings, pairs: Sequence[Pair], negatives: Negatives | None) -> Teacher | None:
        """Return the text encoder to follow, with vectors of all posts that are trained on."""
        name = settings.train.teacher
        if name is None:
            return None
        every = [pair for some in (pairs, *self._source_pairs(settings).values()) for pair in some]
        further = (
            [] if negatives is None or callable(negatives) else [post for some in negatives.values() for post in some]
        )
        graphs = GraphStore(self._preparation.of(settings).posts, settings.graph.spec())
        questions = set(graphs.having({pair.question_id for pair in every}))
        documents = set(graphs.having({*(pair.answer_id for pair in every), *further}))
        collections = self._preparation.collections(settings)
        return teacher(name, questions, documents, collections, device_of(settings.train.device), self.console)

    def best(self, folder: Path) -> Path | None:
        """Return the checkpoint of the lowest validation loss."""
        best = folder / "best"
        return best if checkpoint.exists(best) else None

    def tidy(self, folder: Path) -> None:
        """Remove the checkpoint that training resumes from, three times the size of the model."""
        checkpoint.remove(folder / "last")

    def encode(self, settings: GraphSettings, trained: Trained, topic_sets: Sequence[TopicSet]) -> Encoded:
        """Return vectors of posts and topics, from beside the model as far as they are there."""
        prepared, train = self._preparation.of(settings), settings.train
        stores = [self._graphs(settings, path) for path in prepared.tensors]
        topics = self._graphs(settings, prepared.topics)
        parts = [self._searched(prepared, topic_set) for topic_set in topic_sets]
        searched = parts[0] if len(parts) == 1 else each_once(chain.from_iterable(parts))
        further: list[str] = []
        if settings.thread.read == "both":
            self.threads(topic_sets)
            further += self.joined_questions(settings, searched).values()
        if settings.example.post is not None:
            further.append(settings.example.post)
        if further:
            searched = each_once(chain(searched, further))
        place = EncodedPosts(trained.folder.parent, checkpoint.weights_hash(trained.folder))
        collection = self._preparation.collections(settings)[""]
        digests = collection.digests(settings, prepared.added)
        if settings.model.sentence_vectors is not None:
            for topic in (topic.post for topic_set in topic_sets for topic in topic_set.topics):
                digests[topic.post_id] = f"{digests.get(topic.post_id)} {self._sentence_text.digest(topic)}"
        place.forget_changed(digests)
        posts = encode_missing(
            place,
            lambda: checkpoint.load_encoder(
                trained.folder, config_hash=topics.config_hash, device=device_of(train.device)
            ),
            stores,
            searched,
            topics,
            [topic.post.post_id for q in topic_sets for topic in q.topics if topic.post.post_id in topics],
            self.console,
            node_budget=train.node_budget,
            edge_budget=train.edge_budget,
        )
        return Encoded(place, place.costs(posts))

    def _searched(self, prepared: Prepared, topic_set: TopicSet) -> Ids:
        """Return the posts that are searched for the topics, read once."""
        key = prepared.collection, prepared.content, prepared.added_content, topic_set.task, topic_set.kind
        if key not in self._searched_of:
            formulas = partial(self._formulas, prepared)
            self._searched_of[key] = searched_posts(prepared.collection, topic_set, formulas)
        return self._searched_of[key]

    # -- retrieval ---------------------------------------------------------------------------------------------------

    def index(self, settings: GraphSettings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Index posts (Task 1) or their formulas (Task 2)."""
        prepared = self._preparation.of(settings)
        vectors: EncodedPosts = encoded.vectors
        post_ids = vectors.encoded(self._searched(prepared, topic_set))
        if topic_set.task == 1:
            return index_posts(settings, vectors, post_ids, folder, self.joined_questions(settings, post_ids))
        return index_formulas(settings, vectors, post_ids, self._formulas(prepared), folder)

    def retrieve(self, settings: GraphSettings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Search the index with the topics; ``queries_per_second`` is of the search alone."""
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in topic_set.topics if vectors.encoded([topic.post.post_id])]
        topic_set.say_lost(self.console, topics, "have no graph")
        if topic_set.task == 2:
            prepared = self._preparation.of(settings)
            with Collection(prepared.topic_graphs) as source:
                maps = {t.topic_id: list(source.get(t.post.post_id).formula_map.values()) for t in topics}
            with_formula = [topic for topic in topics if topic.formula_id in maps[topic.topic_id]]
            topic_set.say_lost(self.console, with_formula, "have no graph, or it lacks the query formula")
            formulas = self._formulas(prepared)
            return search_formulas(settings.retrieval, vectors, indexed, with_formula, maps, formulas)
        return search_posts(settings, vectors, indexed, topics)

    def keep(self, job: FinishedSearch[GraphSettings], folder: Path) -> Mapping[str, Any]:
        """Keep vectors of the posts, and the model."""
        settings, vectors = job.settings, job.encoded.vectors
        prepared = self._preparation.of(settings)
        graphs = GraphStore(prepared.topics, settings.graph.spec())
        record = keep_model(settings, job.trained.folder, graphs, prepared.formulas, folder, job.queries.topics)
        post_ids = vectors.encoded(self._searched(prepared, job.queries))
        return record | keep_vectors(settings, vectors, post_ids, self.joined_questions(settings, post_ids), folder)

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the vectors of the posts, and the model."""
        return open_vectors(kept.record, kept.folder, encode_query(kept.record, kept.folder, kept.device))

    def visual_ids(self, settings: GraphSettings) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, read once."""
        return self._formulas(self._preparation.of(settings)).visual_ids

    def _formulas(self, prepared: Prepared) -> Formulas:
        """Return the formulas of all posts, read once."""
        key = prepared.collection, prepared.content, prepared.added_content  # needed posts become more
        if key not in self._formulas_of:
            self._formulas_of[key] = read_formulas(prepared.collection, prepared.formulas)
        return self._formulas_of[key]

    # -- examples ----------------------------------------------------------------------------------------------------

    def explain(self, settings: GraphSettings, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """Return the similarities of the virtual nodes of a topic and a post; None where graphs are threads."""
        if settings.graph.thread != "none":
            return None
        prepared, spec = self._preparation.of(settings), settings.graph.spec()
        vectors: EncodedPosts = encoded.vectors
        ids = [topic.post.post_id, post_id]
        shown = self.texts([post_id])
        if len(vectors.encoded(ids)) < 2 or post_id not in shown:
            return None
        query, document = vectors.sets(ids)
        with Collection(prepared.topic_graphs) as topics, Collection(prepared.collection) as graphs:
            stored = [topics.get(ids[0]), graphs.get(ids[1])]
        maps = [list(graph.formula_map.values()) if spec.formulas != "none" else [] for graph in stored]
        return explain(
            query,
            nodes_of(extract(topic.post), maps[0], len(query), spec.structure),
            document,
            nodes_of(shown[post_id].text, maps[1], len(document), spec.structure),
        )

    def embedding_space(
        self, settings: GraphSettings, encoded: Encoded, topic_set: TopicSet, select: SelectPosts
    ) -> EmbeddingSpace | None:
        """Return the vectors of all virtual nodes; None where graphs are threads."""
        if settings.graph.thread != "none":
            return None
        prepared, vectors, spec = self._preparation.of(settings), encoded.vectors, settings.graph.spec()
        topics = [topic for topic in topic_set.topics if vectors.encoded([topic.post.post_id])]
        queries = [topic.post.post_id for topic in topics]
        posts = select(vectors.encoded(self._searched(prepared, topic_set)))
        return EmbeddingSpace(
            topics=[topic.topic_id for topic in topics],
            queries=vectors.sets(queries),
            query_kinds=kinds_of([GraphStore(prepared.topics, spec)], queries),
            posts=posts,
            documents=vectors.sets(posts),
            document_kinds=kinds_of([GraphStore(path, spec) for path in prepared.tensors], posts),
            single_vector=settings.retrieval.strategy == "single_vector",
        )
