"""Graph: posts -> MathAMR+ graphs -> tensors -> RGCN -> MaxSim.

Graphs and tensors are made by :mod:`mathamr.stages.tensors`; vectors of posts are kept beside the model by
:mod:`mathamr.stages.vectors`. In Task 1 answers are found; in Task 2 formulas of questions and answers, by the
vectors of their virtual nodes, with that of the query formula.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from omegaconf import MISSING, DictConfig

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Pair, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from graphs.graph.virtual_nodes import check_structure
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import peak_gpu_memory, peak_memory, reset_peak_memory
from mathamr.model.encoder import EncoderConfig
from mathamr.model.label_vectors import is_hash
from mathamr.negatives import mining
from mathamr.retrieval.explanation import Explanation, explain, nodes_of
from mathamr.stages import parsers, sources
from mathamr.stages.collection import given_parser
from mathamr.stages.console import Console
from mathamr.stages.formula_search import Formulas, index_formulas, read_formulas, search_formulas
from mathamr.stages.label_vectors import LabelText
from mathamr.stages.needed import extent_of, posts_of
from mathamr.stages.own_pairs import own_pairs
from mathamr.stages.searching import check_search, device_of, index_posts, say_lost, search_posts
from mathamr.stages.sentence_vectors import SentenceText
from mathamr.stages.settings import IndexConfig, RetrievalConfig, encoder_settings, schema_of, settings
from mathamr.stages.teacher import teacher
from mathamr.stages.tensors import Preparation, Prepared, spec_of
from mathamr.stages.topic_sets import Choose, Encoded, Indexed, Log, Question, Retrieved, Space, Trained
from mathamr.stages.vectors import EncodedPosts
from mathamr.systems.registry import system
from mathamr.systems.system import System
from mathamr.text.encoder import identity
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import ranks
from mathamr.training.graph.checks import Negatives
from mathamr.training.graph.curriculum import curriculum
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import PairSplit, sample_pairs, split_pairs, with_sources

# Settings that may name a text encoder.
_TEXT_ENCODERS = (("model", "label_vectors"), ("model", "sentence_vectors"), ("train", "teacher"))


@dataclass
class GraphConfig:
    """How posts become graphs; ``parser`` as in :mod:`mathamr.stages.parsers`; ``structure``, ``connectivity`` and
    ``formulas`` as in ``VirtualNodeSpec``."""

    parser: str = MISSING
    structure: str = MISSING
    connectivity: str = MISSING
    formulas: str = MISSING
    vocabulary_size: int = MISSING
    number_threshold: int = MISSING


@system("graph")
class GraphSystem(System):
    """Search by the vectors of virtual nodes, of a graph encoder."""

    groups: ClassVar = {
        "graph": GraphConfig,
        "model": schema_of(EncoderConfig, checkpoint=str),
        "train": TrainConfig,
        "index": IndexConfig,
        "retrieval": RetrievalConfig,
    }
    free: ClassVar = {"train": ("device", "workers", "checkpoint_every"), "index": ("location", "keep")}
    partial = False

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        super().__init__(corpus, shared, console)
        self._preparation = Preparation(corpus, shared, console, self._learned)
        self._label_text = LabelText(console)
        self._sentence_text = SentenceText(console)
        # Read once a process, for reading them passes over the whole collection: by its file, and by the task.
        self._formulas_of: dict[tuple[Path, str, str], Formulas] = {}
        self._searched_of: dict[tuple[object, ...], list[str]] = {}
        self._all_pairs: dict[tuple[str, int], list[Pair]] = {}
        self._learned_of: dict[tuple[str, int, int | None], frozenset[str]] = {}
        self._questions: Sequence[Question] = ()  # those that were checked
        self._splits: dict[tuple[str, int, int | None, float], PairSplit] = {}

    @classmethod
    def model_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return the settings of graphs, model and training, and the further collections that are learned from."""
        parts = {group: cls.key_settings(config, group) for group in ("graph", "model", "train")}
        if parts["model"].get("checkpoint"):
            parts["model"] = {"checkpoint": _weights(parts["model"]["checkpoint"])}
        if "parsers" in config:
            parts["graph"]["parser"] = _parser(config)
        for group, key in _TEXT_ENCODERS:  # what a model depends on is their weights
            if parts[group].get(key):
                parts[group][key] = identity(parts[group][key])
        learned_from = sources.fingerprints(config)
        return {"posts": extent_of(config.data), **parts, **({"sources": learned_from} if learned_from else {})}

    @classmethod
    def result_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return the settings of the search."""
        return {group: cls.key_settings(config, group) for group in ("index", "retrieval")}

    # -- before anything runs ----------------------------------------------------------------------------------------

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Every setting once: the library's own types know what they may be."""
        self._questions = questions
        parsers.chosen(config)
        spec = spec_of(config)
        model = encoder_settings(config.model)
        training = settings(TrainConfig, config.train, "train")
        for name in (model.label_vectors, model.sentence_vectors, training.teacher):
            if name is not None and not is_hash(name):
                self._label_text.check(name)
        if model.sentence_vectors is not None:
            check_structure(spec.structure)
        strategy = check_search(config)
        if spec.structure == "none" and strategy.name != "maxsim":
            raise ConfigError(
                f"graphs of structure 'none' have no document vector for retrieval.strategy={strategy.name}; use "
                "graph.structure=full or global, or retrieval.strategy=maxsim"
            )
        if spec.formulas == "none" and any(question.task == 2 for question in questions):
            raise ConfigError(
                "graph.formulas=none leaves no formula to find in Task 2; use experiment.tasks=[1], or "
                "graph.formulas=both, opt or slt"
            )
        with ranks(training.device):
            pass  # refuses a device that is not there
        self.post_files.read(texts=extent_of(config.data) == "all")
        sources.check_apart(self._pairs(training), self._preparation.sources(config))
        further = self._source_pairs(config)
        curriculum(
            training, with_sources(self._split(training), further, posts_of(chain.from_iterable(further.values())))
        )

    def _pairs(self, training: TrainConfig) -> list[Pair]:
        key = (training.positives, training.least_score)
        if key not in self._all_pairs:
            self._all_pairs[key], _ = own_pairs(self.corpus, self.post_files, *key, self._questions, self.console)
        return self._all_pairs[key]

    def _learned(self, config: DictConfig) -> frozenset[str]:
        """Return the posts that a configuration learns from, were there a graph of each."""
        training = settings(TrainConfig, config.train, "train")
        key = training.positives, training.least_score, training.max_pairs
        if key not in self._learned_of:
            pairs = self._pairs(training)
            self._learned_of[key] = posts_of(sample_pairs(pairs, posts_of(pairs), training.max_pairs))
        return self._learned_of[key]

    def _source_pairs(self, config: DictConfig) -> dict[str, list[Pair]]:
        """The pairs of each source that is learned from."""
        found = self._preparation.sources(config).items()
        return {name: sources.pairs_of(name, source.pairs()) for name, source in found}

    def _split(self, training: TrainConfig) -> PairSplit:
        """What is trained on and what is held out of the collection's pairs, if every post has a graph."""
        key = (training.positives, training.least_score, training.max_pairs, training.validation_fraction)
        if key not in self._splits:
            pairs = self._pairs(training)
            posts = posts_of(pairs)
            sample = sample_pairs(pairs, posts, training.max_pairs)
            self._splits[key] = split_pairs(sample, posts, validation_fraction=training.validation_fraction)
        return self._splits[key]

    # -- what jobs share ---------------------------------------------------------------------------------------------

    def prepare(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Formula trees, graphs and tensors; vectors of labels and sentences, where the model reads them."""
        prepared = self._preparation(config, questions)
        self._texts = prepared.texts
        self._encoder_config(config, prepared)
        if (name := config.model.sentence_vectors) is not None:
            topics = [topic.post for question in questions for topic in question.topics]
            self._sentence_text.make(name, self._preparation.collections(config), topics, device_of(config))

    def source(self, config: DictConfig) -> str:
        """The configuration of the graphs with their vocabulary, the graphs themselves, and what is trained on."""
        prepared = self._preparation.of(config)
        digest = hashlib.sha256()
        for pair in self._pairs(settings(TrainConfig, config.train, "train")):
            digest.update(f"{pair.question_id}\t{pair.answer_id}\n".encode())
        for name, content in prepared.sources.items():
            digest.update(f"{name}\t{content}\n".encode())
        parts = [GraphStore(prepared.posts).config_hash[:16], prepared.content, digest.hexdigest()[:8]]
        if config.model.label_vectors is not None:
            parts.append(str(self._encoder_config(config, prepared).label_vectors))
        return "-".join(parts)

    def rankings_source(self, config: DictConfig) -> str:
        """Return the source of the model, and the graphs that it searches and is asked by."""
        prepared = self._preparation.of(config)
        return f"{self.source(config)}-{prepared.added_content[:8]}-{prepared.topics_content[:8]}"

    def _encoder_config(self, config: DictConfig, prepared: Prepared) -> EncoderConfig:
        """What is trained; where text encoders are named, with the hash of the label vectors that one makes, and the
        identity of the other."""
        model = encoder_settings(config.model)
        if model.sentence_vectors is not None:
            model = replace(model, sentence_vectors=identity(model.sentence_vectors))
        name = model.label_vectors
        if name is None or is_hash(name):
            return model
        made = self._label_text(name, GraphStore(prepared.posts), lambda: self._preparation.counts(config))
        return replace(model, label_vectors=made)

    def _graphs(self, config: DictConfig, path: Path) -> GraphStore:
        """The tensors in a file, as the model reads them."""
        name = config.model.sentence_vectors
        if name is None:
            return GraphStore(path)
        return GraphStore(path, sentence_vectors=self._sentence_text(name, self._preparation.collections(config)))

    # -- the model ---------------------------------------------------------------------------------------------------

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Train an encoder on the collection's pairs."""
        prepared = self._preparation.of(config)
        graphs = self._graphs(config, prepared.posts)
        if config.model.checkpoint is not None:
            return _taken(Path(config.model.checkpoint), folder / "best", graphs)
        reset_peak_memory()
        with self.console.stage("training", unit="steps") as advance:

            def told(record: dict[str, Any]) -> None:
                log(record)
                if record["kind"] == "start":
                    advance.expect(record["total_steps"])
                elif record["kind"] == "negatives":
                    self.console.say(f"  {mining.as_text(record)}")
                elif record["kind"] == "epoch":
                    stage = ", pretraining" if record["stage"] == "pretraining" else ""
                    self.console.say(
                        f"  epoch {record['epoch'] + 1}{stage}: loss {record['train_loss']:.3f}, validation loss "
                        f"{record['val_loss']:.3f}, MRR {record['val_mrr']:.3f}, {record['seconds']:.1f} s"
                    )

            training = settings(TrainConfig, config.train, "train")
            pairs = sample_pairs(self._pairs(training), frozenset(graphs.post_ids()), training.max_pairs)
            negatives = mining.negatives_of(training, graphs, pairs, posts=self.post_files.every_post, report=told)
            result = train(
                training,
                graphs,
                pairs,
                self._encoder_config(config, prepared),
                out=folder,
                negatives=negatives,
                visual_ids=self._formulas(prepared).by_post() if training.compares_formulas else None,
                sources=self._source_pairs(config),
                teacher=self._teacher(config, pairs, negatives),
                log=told,
                progress=advance,
            )
        parameters = {f"parameters_{part}": count for part, count in result.parameters.items() if part != "total"}
        gpu_memory = peak_gpu_memory(device_of(config))
        costs = {
            "time_per_epoch_s": result.time_per_epoch_s,
            "pairs_per_second": result.pairs_per_s,
            "epochs": len(result.epochs),
            "train_pairs": result.train_pairs,
            "best_val_loss": result.best_val_loss,
            "best_val_mrr": result.best_val_mrr,
            "parameters": result.parameters["total"],
            **parameters,
            "peak_memory_bytes": peak_memory(),
            **({"peak_gpu_memory_bytes": gpu_memory} if gpu_memory else {}),
        }
        history = [{"kind": "epoch", **asdict(record)} for record in result.epochs]
        return Trained(result.best, costs, history)

    def _teacher(self, config: DictConfig, pairs: Sequence[Pair], negatives: Negatives | None) -> Teacher | None:
        """The text encoder to follow, with vectors of all posts that are trained on."""
        name = config.train.teacher
        if name is None:
            return None
        every = [pair for some in (pairs, *self._source_pairs(config).values()) for pair in some]
        further = (
            [] if negatives is None or callable(negatives) else [post for some in negatives.values() for post in some]
        )
        graphs = frozenset(GraphStore(self._preparation.of(config).posts).post_ids())
        questions = {pair.question_id for pair in every} & graphs
        documents = {*(pair.answer_id for pair in every), *further} & graphs
        collections = self._preparation.collections(config)
        return teacher(name, questions, documents, collections, device_of(config), self.console)

    def best(self, folder: Path) -> Path | None:
        """The checkpoint of the lowest validation loss."""
        best = folder / "best"
        return best if checkpoint.exists(best) else None

    def tidy(self, folder: Path) -> None:
        """Remove the checkpoint to go on from, three times the size of the model."""
        checkpoint.remove(folder / "last")

    def encode(self, config: DictConfig, trained: Trained, questions: Sequence[Question]) -> Encoded:
        """Vectors of posts and topics, from beside the model as far as they are there."""
        prepared = self._preparation.of(config)
        stores = [self._graphs(config, path) for path in prepared.tensors]
        topics = self._graphs(config, prepared.topics)
        have_graph = {post_id for posts in stores for post_id in posts.post_ids()}
        searched = [post_id for question in questions for post_id in self._searched(prepared, question)]
        example = config.experiment.example.post
        wanted = [post_id for post_id in [*searched, *filter(None, [example])] if post_id in have_graph]
        asked = [topic.post.post_id for q in questions for topic in q.topics if topic.post.post_id in topics]
        place = EncodedPosts(trained.folder.parent, checkpoint.weights_hash(trained.folder))
        parsed = self._preparation.collections(config)[""]
        place.forget_changed(parsed.digests(config, prepared.added))
        new_posts, new_topics = place.lacks(wanted), place.lacks(asked)
        if new_posts or new_topics:
            device = device_of(config)
            encoder = checkpoint.load_encoder(trained.folder, config_hash=topics.config_hash, device=device)
            with self.console.stage("encoding", len(new_posts) + len(new_topics), "posts") as advance:
                budgets = {name: config.train[name] for name in ("node_budget", "edge_budget")}
                for posts in stores:
                    own = frozenset(posts.post_ids()).intersection(new_posts)
                    place.add(encoder, posts, [name for name in new_posts if name in own], "posts", advance, **budgets)
                place.add(encoder, topics, new_topics, "topics", advance, **budgets)
        return Encoded(place, place.costs(len(dict.fromkeys(wanted))))

    def _searched(self, prepared: Prepared, question: Question) -> list[str]:
        """The posts that a question searches: answers, or every post for its formulas; in regime judged what is."""
        key = prepared.collection, prepared.content, prepared.added_content, question.task
        if key not in self._searched_of:
            with Collection(prepared.collection) as source:
                posts = source.post_ids("answer") if question.task == 1 else source.post_ids("question", "answer")
            if question.regime == "judged":
                judged = {judgment.doc_id for judgment in question.judgments}
                if question.task == 1:
                    posts = [post_id for post_id in posts if post_id in judged]
                else:
                    of_post, visual_ids = self._formulas(prepared).of_post, self._formulas(prepared).visual_ids
                    posts = [p for p in posts if any(visual_ids.get(name) in judged for name in of_post[p])]
            self._searched_of[key] = posts
        return self._searched_of[key]

    # -- retrieval ---------------------------------------------------------------------------------------------------

    def index(self, config: DictConfig, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        """Put posts (Task 1) or their formulas (Task 2) into an index."""
        prepared = self._preparation.of(config)
        vectors: EncodedPosts = encoded.vectors
        post_ids = vectors.there(self._searched(prepared, question))
        if question.task == 1:
            return index_posts(config, vectors, post_ids, folder)
        return index_formulas(config, vectors, post_ids, self._formulas(prepared), folder)

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Search the index with the topics; ``queries_per_second`` is of the search alone."""
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in question.topics if vectors.there([topic.post.post_id])]
        say_lost(self.console, question, topics, "have no graph")
        if question.task == 2:
            prepared = self._preparation.of(config)
            with Collection(prepared.topic_graphs) as source:
                maps = {t.topic_id: list(source.get(t.post.post_id).formula_map.values()) for t in topics}
            with_formula = [topic for topic in topics if topic.formula_id in maps[topic.topic_id]]
            say_lost(self.console, question, with_formula, "have no graph, or it lacks the query formula")
            return search_formulas(config, vectors, indexed, with_formula, maps, self._formulas(prepared))
        return search_posts(config, vectors, indexed, topics)

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, read once."""
        return self._formulas(self._preparation.of(config)).visual_ids

    def _formulas(self, prepared: Prepared) -> Formulas:
        """Return the formulas of all posts, read once."""
        key = prepared.collection, prepared.content, prepared.added_content  # needed posts become more
        if key not in self._formulas_of:
            self._formulas_of[key] = read_formulas(prepared.collection, prepared.formulas)
        return self._formulas_of[key]

    # -- examples ----------------------------------------------------------------------------------------------------

    def explain(self, config: DictConfig, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """The similarities of the virtual nodes of a topic and a post."""
        prepared, spec = self._preparation.of(config), spec_of(config)
        vectors: EncodedPosts = encoded.vectors
        ids = [topic.post.post_id, post_id]
        shown = self.texts([post_id])
        if len(vectors.there(ids)) < 2 or post_id not in shown:
            return None
        query, document = vectors.sets(ids)
        with Collection(prepared.topic_graphs) as asked, Collection(prepared.collection) as graphs:
            stored = [asked.get(ids[0]), graphs.get(ids[1])]
        maps = [list(graph.formula_map.values()) if spec.formulas != "none" else [] for graph in stored]
        return explain(
            query,
            nodes_of(extract(topic.post), maps[0], len(query), spec.structure),
            document,
            nodes_of(shown[post_id].text, maps[1], len(document), spec.structure),
        )

    def space(self, config: DictConfig, encoded: Encoded, question: Question, choose: Choose) -> Space | None:
        """The vectors of all virtual nodes."""
        prepared, vectors = self._preparation.of(config), encoded.vectors
        topics = [topic for topic in question.topics if vectors.there([topic.post.post_id])]
        asked = [topic.post.post_id for topic in topics]
        posts = choose(vectors.there(self._searched(prepared, question)))
        return Space(
            topics=[topic.topic_id for topic in topics],
            queries=vectors.sets(asked),
            query_kinds=_kinds([GraphStore(prepared.topics)], asked),
            posts=posts,
            documents=vectors.sets(posts),
            document_kinds=_kinds([GraphStore(path) for path in prepared.tensors], posts),
        )


def _weights(path: str) -> str:
    """Return the hash of a checkpoint's weights.

    Raises:
        ConfigError: there is no checkpoint.
    """
    if not checkpoint.exists(path):
        raise ConfigError(f"model.checkpoint={path} holds no checkpoint; name a folder such as model/best")
    return checkpoint.weights_hash(path)


def _parser(config: DictConfig) -> str:
    """Return the parser of the graphs: of a given collection the one that made it."""
    given = config.data.get("collection")
    return parsers.name(config) if given is None else given_parser(Path(given))


def _taken(given: Path, best: Path, graphs: GraphStore) -> Trained:
    """Take a checkpoint that was trained elsewhere as the model.

    Raises:
        TrainingError: it was trained on tensors with another vocabulary or other virtual nodes.
    """
    found = checkpoint.load(given, config_hash=graphs.config_hash)
    shutil.copytree(given, best, dirs_exist_ok=True)
    return Trained(best, {"parameters": sum(weights.numel() for weights in found.weights.values())})


def _kinds(stores: Sequence[GraphStore], post_ids: Sequence[str]) -> NDArray[np.integer]:
    """Return what each vector of the posts stands for, one post after the other."""
    kinds: dict[str, NDArray[np.integer]] = {}
    for graphs in stores:
        own = frozenset(graphs.post_ids())
        some = [post_id for post_id in post_ids if post_id in own and post_id not in kinds]
        for start in range(0, len(some), 1000):
            part = some[start : start + 1000]
            arrays = graphs.get_arrays(part)
            kinds |= {post_id: one.representative_kinds for post_id, one in zip(part, arrays, strict=True)}
    return np.concatenate([kinds[post_id] for post_id in post_ids])
