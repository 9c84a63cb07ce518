"""The graph track: posts -> MathAMR+ graphs -> tensors -> RGCN -> MaxSim.

Graphs and tensors are made by :mod:`mathamr.stages.tensors`; vectors of posts are kept beside the model by
:mod:`mathamr.stages.vectors`. In Task 1 answers are found; in Task 2 formulas of questions and answers, by the
vectors of their virtual nodes, with that of the query formula.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from omegaconf import DictConfig

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Pair, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError
from graphs.formulas.store import FormulaStore
from graphs.graph.virtual_nodes import check_structure
from graphs.stores.collection import Collection
from graphs.stores.posts import PostText, PostTexts
from graphs.stores.store import GraphStore
from mathamr.evaluation.efficiency import Stopwatch, bytes_on_disk, peak_gpu_memory, peak_memory, reset_peak_memory
from mathamr.model.config import EncoderConfig
from mathamr.model.label_vectors import is_hash
from mathamr.negatives import mining
from mathamr.retrieval.explanation import Explanation, explain, nodes_of
from mathamr.retrieval.formulas import FormulaIndex, formula_points, query_vectors
from mathamr.stages import parsers, sources
from mathamr.stages.console import Console
from mathamr.stages.label_vectors import LabelText
from mathamr.stages.needed import posts_of
from mathamr.stages.searching import (
    check_search,
    device_of,
    index_options,
    index_posts,
    say_lost,
    search_once,
    search_posts,
    speed,
)
from mathamr.stages.sentence_vectors import SentenceText
from mathamr.stages.settings import encoder_settings, settings
from mathamr.stages.system import Choose, Encoded, Indexed, Log, Question, Retrieved, Space, Trained, own_pairs
from mathamr.stages.teacher import teacher
from mathamr.stages.tensors import Preparation, Prepared, spec_of
from mathamr.stages.vectors import EncodedPosts
from mathamr.text.encoder import identity
from mathamr.training import checkpoint
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import ranks
from mathamr.training.graph.checks import Negatives
from mathamr.training.graph.curriculum import curriculum
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.trainer import train
from mathamr.training.pairs import PairSplit, sample_pairs, split_pairs, with_sources


@dataclass(frozen=True)
class Formulas:
    """The formula ids of each post by FORMULA_i, and the visual id of each formula."""

    of_post: dict[str, list[str]]
    visual_ids: dict[str, str]

    def by_post(self) -> dict[str, list[str]]:
        """The visual ids of each post by FORMULA_i, "" where there is none."""
        return {post_id: [self.visual_ids.get(name, "") for name in names] for post_id, names in self.of_post.items()}


class GraphTrack:
    """See :class:`mathamr.stages.system.Track`."""

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self._corpus, self._shared = corpus, shared
        self._console = console
        self._preparation = Preparation(corpus, shared, console, self._learned)
        self._label_text = LabelText(console)
        self._sentence_text = SentenceText(console)
        self._texts: Path | None = None
        # Read once a process, for reading them passes over the whole collection: by its file, and by the task.
        self._formulas_of: dict[Path, Formulas] = {}
        self._searched_of: dict[tuple[Path, int], list[str]] = {}
        self._all_pairs: dict[tuple[str, int], list[Pair]] = {}
        self._questions: Sequence[Question] = ()  # those that were checked
        self._splits: dict[tuple[str, int, int | None, float], PairSplit] = {}

    # -- what can be said before anything runs -----------------------------------------------------------------------

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
        sources.check_apart(self._pairs(training), self._preparation.sources(config))
        further = self._source_pairs(config)
        curriculum(
            training, with_sources(self._split(training), further, posts_of(chain.from_iterable(further.values())))
        )

    def _pairs(self, training: TrainConfig) -> list[Pair]:
        key = (training.positives, training.least_score)
        if key not in self._all_pairs:
            self._all_pairs[key], _ = own_pairs(self._corpus, *key, self._questions, self._console)
        return self._all_pairs[key]

    def _learned(self, config: DictConfig) -> frozenset[str]:
        """Return the posts that a configuration learns from, were there a graph of each."""
        training = settings(TrainConfig, config.train, "train")
        pairs = self._pairs(training)
        return posts_of(sample_pairs(pairs, posts_of(pairs), training.max_pairs))

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
        with self._console.stage("training", unit="steps") as advance:

            def told(record: dict[str, Any]) -> None:
                log(record)
                if record["kind"] == "start":
                    advance.expect(record["total_steps"])
                elif record["kind"] == "negatives":
                    self._console.say(f"  {mining.as_text(record)}")
                elif record["kind"] == "epoch":
                    stage = ", pretraining" if record["stage"] == "pretraining" else ""
                    self._console.say(
                        f"  epoch {record['epoch'] + 1}{stage}: loss {record['train_loss']:.3f}, validation loss "
                        f"{record['val_loss']:.3f}, MRR {record['val_mrr']:.3f}, {record['seconds']:.1f} s"
                    )

            training = settings(TrainConfig, config.train, "train")
            pairs = sample_pairs(self._pairs(training), frozenset(graphs.post_ids()), training.max_pairs)
            negatives = mining.negatives_of(training, graphs, pairs, posts=self._corpus.posts, report=told)
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
        return teacher(name, questions, documents, collections, device_of(config), self._console)

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
        new_posts, new_topics = place.lacks(wanted), place.lacks(asked)
        if new_posts or new_topics:
            device = device_of(config)
            encoder = checkpoint.load_encoder(trained.folder, config_hash=topics.config_hash, device=device)
            with self._console.stage("encoding", len(new_posts) + len(new_topics), "posts") as advance:
                budgets = {name: config.train[name] for name in ("node_budget", "edge_budget")}
                for posts in stores:
                    own = frozenset(posts.post_ids()).intersection(new_posts)
                    place.add(encoder, posts, [name for name in new_posts if name in own], "posts", advance, **budgets)
                place.add(encoder, topics, new_topics, "topics", advance, **budgets)
        return Encoded(place, place.costs(len(dict.fromkeys(wanted))))

    def _searched(self, prepared: Prepared, question: Question) -> list[str]:
        """The posts that a question searches: answers, or every post for its formulas; in regime judged what is."""
        key = prepared.collection, question.task
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
        formulas, options = self._formulas(prepared), index_options(config, folder, vectors.model_hash)
        documents = vectors.sets(post_ids)
        with Stopwatch() as watch:
            names = [formulas.of_post[post_id] for post_id in post_ids]
            points = formula_points(post_ids, documents, names, formulas.visual_ids)
            index = FormulaIndex.build(points, **options)
            size = points.vectors.nbytes if options["path"] is None else bytes_on_disk(options["path"])
        return Indexed(index, {"index_seconds": watch.seconds, "index_bytes": size, "formulas": len(points)})

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Search the index with the topics; ``queries_per_second`` is of the search alone."""
        vectors: EncodedPosts = encoded.vectors
        topics = [topic for topic in question.topics if vectors.there([topic.post.post_id])]
        say_lost(self._console, question, topics, "have no graph")
        if question.task == 2:
            return self._retrieve_formulas(config, vectors, indexed.index, question, topics)
        return search_posts(config, vectors, indexed, topics)

    def _retrieve_formulas(
        self, config: DictConfig, vectors: EncodedPosts, index: FormulaIndex, question: Question, topics: list[Topic]
    ) -> Retrieved:
        prepared = self._preparation.of(config)
        formulas = self._formulas(prepared)
        with Collection(prepared.topic_graphs) as source:
            maps = {t.topic_id: list(source.get(t.post.post_id).formula_map.values()) for t in topics}
        with_formula = [topic for topic in topics if topic.formula_id in maps[topic.topic_id]]
        say_lost(self._console, question, with_formula, "have no graph, or it lacks the query formula")
        queries = query_vectors(
            vectors.sets([topic.post.post_id for topic in with_formula]),
            [maps[topic.topic_id] for topic in with_formula],
            [str(topic.formula_id) for topic in with_formula],
        )
        k, exact = config.retrieval.k, config.retrieval.exact
        search_once(lambda few: index.search(queries[few], k, exact=exact), len(queries))
        with Stopwatch() as watch:
            hits = index.search(queries, k, exact=exact)
        results = {topic.topic_id: found for topic, found in zip(with_formula, hits, strict=True)}
        return Retrieved(results, speed(len(with_formula), watch), formulas.visual_ids)

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, read once."""
        return self._formulas(self._preparation.of(config)).visual_ids

    def _formulas(self, prepared: Prepared) -> Formulas:
        """The formulas of all posts, read once."""
        if prepared.collection not in self._formulas_of:
            with Collection(prepared.collection) as source:
                rows = source.rows("question", "answer")
                of_post = {post_id: list(json.loads(names).values()) for post_id, _, names in rows}
            names = [name for own in of_post.values() for name in own]
            if prepared.formulas is None:  # the collection publishes no visual ids: a formula stands for itself
                visual_ids = {name: name for name in names}
            else:
                with FormulaStore.open(prepared.formulas) as published:
                    visual_ids = published.visual_ids(names)
            self._formulas_of[prepared.collection] = Formulas(of_post, visual_ids)
        return self._formulas_of[prepared.collection]

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

    def texts(self, post_ids: Sequence[str]) -> Mapping[str, PostText]:
        """Posts as they are shown."""
        if self._texts is None:
            return {}
        with PostTexts(self._texts) as texts:
            return texts.get(post_ids)


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
