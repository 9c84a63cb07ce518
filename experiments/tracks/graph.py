"""The graph track: posts -> MathAMR+ graphs -> tensors -> RGCN -> MaxSim.

What jobs share lies in ``outputs/shared/COLLECTION-FINGERPRINT/``:

    formulas.db               trees of the formulas that the collection publishes as MathML (arqmath)
    collection.db             the graphs of all posts and topics
    counts-both.json          how often each label and relation occurs, by formula mode
    preprocessed-HASH.db      tensors, for each way of making them

A stage that is finished leaves a ``.done`` file, so the next job passes it by; one that was interrupted goes on.
"""

from __future__ import annotations

import csv
import fcntl
import hashlib
import json
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, cast

import torch
from omegaconf import DictConfig, OmegaConf

from experiments.config import settings
from experiments.progress import Console
from experiments.tracks.track import Indexed, Log, Question, Trained
from graphs import collection, mathamr_plus, store, vocabulary
from graphs.amr import parsers
from graphs.collection import Collection
from graphs.corpus.corpus import Corpus
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import Post
from graphs.errors import ConfigError, Failure
from graphs.formulas import store as formula_store
from graphs.store import GraphStore
from graphs.virtual_nodes import VirtualNodeSpec
from graphs.vocabulary import Counts, Vocabulary
from mathamr.evaluation.efficiency import Stopwatch
from mathamr.model.encoder import EncoderConfig
from mathamr.retrieval import Strategy, search
from mathamr.retrieval import build as build_index
from mathamr.retrieval.backends import check as check_index
from mathamr.retrieval.encoding import encode
from mathamr.training import checkpoint, mining
from mathamr.training.config import TrainConfig
from mathamr.training.trainer import train


class GraphTrack:
    """See :class:`experiments.tracks.track.Track`."""

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self._corpus = corpus
        self._shared = shared
        self._console = console
        self._said: set[Path] = set()

    def check(self, config: DictConfig) -> None:
        """Every setting once: the library's own types know what they may be."""
        try:
            parsers.check(config.graph.parser)
        except ConfigError as error:
            raise ConfigError(f"graph.{error.message}") from error
        spec = spec_of(config)
        settings(EncoderConfig, config.model, "model")
        settings(TrainConfig, config.train, "train")
        strategy = _strategy(config)
        if config.retrieval.k < 1:
            raise ConfigError(f"retrieval.k={config.retrieval.k} must be at least 1")
        if spec.structure == "none" and strategy.name != "maxsim":
            raise ConfigError(
                f"graphs of structure 'none' have no document vector for retrieval.strategy={strategy.name}; use "
                "graph.structure=full or global, or retrieval.strategy=maxsim"
            )
        check_index(config.index.backend, strategy, location=config.index.location)

    def prepare(self, config: DictConfig, question: Question) -> None:
        """Formula trees, graphs and tensors."""
        self._shared.mkdir(parents=True, exist_ok=True)
        with self._alone():
            formulas = self._build_formulas(config)
            self._build_collection(config, question, formulas)
            self._build_tensors(config)

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Train an encoder on the collection's pairs."""
        graphs = self._store(config)
        encoder_config = settings(EncoderConfig, config.model, "model")
        train_config = settings(TrainConfig, config.train, "train")
        with self._console.stage("training", unit="steps") as advance:

            def told(record: dict[str, Any]) -> None:
                log(record)
                if record["kind"] == "start":
                    advance.expect(record["total_steps"])
                elif record["kind"] == "negatives":
                    self._console.say(f"  {mining.as_text(record)}")
                elif record["kind"] == "epoch":
                    self._console.say(
                        f"  epoch {record['epoch'] + 1}: loss {record['train_loss']:.3f}, validation loss "
                        f"{record['val_loss']:.3f}, MRR {record['val_mrr']:.3f}, {record['seconds']:.1f} s"
                    )

            pairs = training_pairs(self._corpus, train_config.positives, train_config.least_score)
            result = train(
                train_config,
                graphs,
                pairs,
                encoder_config,
                out=folder,
                negatives=mining.negatives_of(train_config, graphs, pairs, posts=self._corpus.posts, report=told),
                log=told,
                progress=advance,
            )
        costs = {
            "time_per_epoch_s": result.time_per_epoch_s,
            "pairs_per_second": result.pairs_per_s,
            "epochs": len(result.epochs),
            "train_pairs": result.train_pairs,
            "best_val_loss": result.best_val_loss,
            "best_val_mrr": result.best_val_mrr,
            "parameters": result.parameters["total"],
        }
        return Trained(result.best, costs)

    def index(self, config: DictConfig, trained: Trained, question: Question) -> Indexed:
        """Encode the answers and put them into an index beside the model."""
        graphs = self._store(config)
        encoder = checkpoint.load_encoder(trained.folder, config_hash=graphs.config_hash, device=_device(config))
        searchable = set(graphs.post_ids())
        if question.regime == "judged":
            searchable &= {judgment.doc_id for judgment in question.judgments}
        with Collection(self._collection_path(config)) as source:
            answers = [post_id for post_id in source.post_ids("answer") if post_id in searchable]
        with Stopwatch() as watch:
            with self._console.stage("encoding", total=len(answers), unit="posts") as advance:
                documents = encode(encoder, graphs, answers, progress=advance).to("cpu")
            index = build_index(
                config.index.backend,
                answers,
                documents,
                path=trained.folder.parent / "index",
                location=config.index.location,
                model_hash=checkpoint.weights_hash(trained.folder),
            )
        costs = {"index_seconds": watch.seconds, "index_bytes": index.nbytes, "vectors": index.num_vectors}
        return Indexed(index, costs)

    def retrieve(
        self, config: DictConfig, trained: Trained, indexed: Indexed, question: Question
    ) -> dict[str, list[tuple[str, float]]]:
        """Encode the topics and search the index with them."""
        with closing(indexed.index):
            return self._search(config, trained, indexed, question)

    def _search(
        self, config: DictConfig, trained: Trained, indexed: Indexed, question: Question
    ) -> dict[str, list[tuple[str, float]]]:
        graphs = self._store(config)
        encoder = checkpoint.load_encoder(trained.folder, config_hash=graphs.config_hash, device=_device(config))
        topics = [topic.topic_id for topic in question.topics if topic.topic_id in graphs]
        if len(topics) < len(question.topics):
            lost = sorted({topic.topic_id for topic in question.topics} - set(topics))
            self._console.say(f"  {len(lost)} topics have no graph and score 0: {', '.join(lost)}")
        queries = encode(encoder, graphs, topics).to("cpu")
        model_hash = checkpoint.weights_hash(trained.folder)
        rankings = search(indexed.index, queries, _strategy(config), config.retrieval.k, model_hash=model_hash)
        return dict(zip(topics, rankings, strict=True))

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Of several processes that want the same files, one makes them and the others wait."""
        with (self._shared / ".lock").open("w") as lock:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self._console.say(f"  waiting for another process that works in {self._shared}")
                fcntl.flock(lock, fcntl.LOCK_EX)
            yield

    def _store(self, config: DictConfig) -> GraphStore:
        return GraphStore(self._tensors_path(config))

    def _collection_path(self, config: DictConfig) -> Path:
        """The graphs of a collection, made by one parser."""
        return self._shared / f"collection-{config.graph.parser}.db"

    def _build_formulas(self, config: DictConfig) -> Path | None:
        """formulas.db, where the collection publishes trees."""
        files = self._corpus.formulas()
        if files is None:
            return None
        path = self._shared / "formulas.db"
        done = path.with_suffix(".done")
        if not self._is_done(done, path):
            with self._console.stage("formula trees", unit="rows") as advance:
                rows = 0

                def progress(state: formula_store.Progress) -> None:
                    nonlocal rows
                    advance(state.rows - rows)
                    rows = state.rows

                summary = formula_store.build(path, files, workers=config.workers, progress=progress)
            self._console.say(f"  {summary.formulas:,} formulas, {summary.trees:,} different trees")
            self._console.failures("formulas without a tree from MathML (made from LaTeX instead)", summary.failures)
            done.write_text(graphs_version(), encoding="utf-8")
        return path

    def _build_collection(self, config: DictConfig, question: Question, formulas: Path | None) -> None:
        """collection.db of the posts and of the question's topics."""
        path = self._collection_path(config)
        years = "".join(f"-{year}" for year in config.data.years)
        done = path.with_name(f"{path.stem}{years}.done")
        if not self._is_done(done, path):
            parser = collection.ParserFactory(parsers.open_parser, {"name": config.graph.parser})
            posts = chain(self._corpus.posts(), (topic.post for topic in question.topics))
            with self._console.stage("posts to graphs", unit="posts") as advance:
                summary = collection.build(
                    path,
                    cast(Iterator[Post | Failure], posts),
                    parser,
                    source=self._corpus.fingerprint(),
                    formulas_db=formulas,
                    workers=config.workers,
                    progress=advance,
                )
            attached = ", ".join(f"{how} {count:,}" for how, count in sorted(summary.attachments.items()))
            self._console.say(f"  {summary.graphs:,} graphs with {summary.formulas:,} formulas ({attached})")
            self._console.failures("posts that failed", summary.failures)
            self._list_failures(path)
            done.write_text(graphs_version(), encoding="utf-8")

    def _is_done(self, done: Path, path: Path) -> bool:
        """Whether a stage is finished; says so where another version of the code has made it."""
        if not (done.exists() and path.exists()):
            return False
        if done.read_text(encoding="utf-8") != graphs_version() and done not in self._said:
            self._said.add(done)
            self._console.say(f"  {path} was made by another version of graphs/; delete {done} and it to make it anew")
        return True

    def _list_failures(self, path: Path) -> None:
        """failures.tsv beside the collection, and its first lines on the terminal."""
        with Collection(path) as source:
            failures = list(source.failures())
        listed = path.with_name("failures.tsv")
        with listed.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t")
            table.writerow(["post_id", "stage", "kind", "message"])
            table.writerows((f.post_id, f.stage, f.kind, f.message) for f in failures)
        for failure in failures[:5]:
            self._console.say(f"    {failure.post_id}: {failure.message.strip().splitlines()[-1]}")
        if failures:
            self._console.say(f"    all of them: {listed}")

    def _build_tensors(self, config: DictConfig) -> None:
        """The vocabulary and preprocessed-HASH.db."""
        path = self._tensors_path(config)
        done = path.with_suffix(".done")
        if self._is_done(done, path):
            return
        spec = spec_of(config)
        with Collection(self._collection_path(config)) as source:
            counts = self._counts(config, source)
            vocabulary_ = Vocabulary.build(
                counts, size=config.graph.vocabulary_size, number_threshold=config.graph.number_threshold
            )
            facts = vocabulary_.statistics
            self._console.say(
                f"  vocabulary: {facts['raw_labels']:,} labels, {facts['normalized_labels']:,} normalised, "
                f"{vocabulary_.num_labels:,} kept, {facts['coverage']:.2%} of nodes; "
                f"{vocabulary_.num_relations} relations"
            )
            with self._console.stage("graphs to tensors", total=len(source), unit="graphs") as advance:
                store.build(
                    path,
                    source.rows(),
                    mathamr_plus.decode,
                    spec,
                    vocabulary_,
                    source=str(source.meta["source"]),
                    workers=config.workers,
                    progress=advance,
                )
        lost = Counter((failure.stage, failure.kind) for failure in GraphStore(path).failures())
        self._console.failures("graphs without tensors", lost)
        done.write_text(graphs_version(), encoding="utf-8")

    def _counts(self, config: DictConfig, source: Collection) -> Counts:
        """Label and relation counts over questions and answers; topics stay unseen."""
        path = source.path.with_name(f"counts-{config.graph.parser}-{config.graph.formulas}.json")
        if path.exists():
            return Counts.from_json(path.read_text(encoding="utf-8"))
        with self._console.stage("vocabulary", total=len(source), unit="graphs") as advance:
            counts = vocabulary.count(
                source.rows("question", "answer"),
                mathamr_plus.decode,
                config.graph.formulas,
                workers=config.workers,
                progress=advance,
            )
        partial = path.with_suffix(".part")
        partial.write_text(counts.to_json(), encoding="utf-8")
        partial.replace(path)
        return counts

    def _tensors_path(self, config: DictConfig) -> Path:
        """Where the tensors of a configuration lie, beside their collection."""
        years = list(config.data.years)  # topics of other years make another file: each holds what its questions need
        content = json.dumps([_plain(config.graph), years], sort_keys=True)
        digest = hashlib.sha256(content.encode()).hexdigest()[:10]
        return self._shared / f"preprocessed-{digest}.db"


def spec_of(config: DictConfig) -> VirtualNodeSpec:
    """The virtual nodes and formula mode of a configuration."""
    graph = config.graph
    return VirtualNodeSpec(structure=graph.structure, connectivity=graph.connectivity, formulas=graph.formulas)


@cache
def graphs_version() -> str:
    """Hash of the code that makes graphs: what another version has made is not passed off as this one's."""
    digest = hashlib.sha256()
    root = Path(collection.__file__).parent
    for file in sorted([*root.rglob("*.py"), *root.rglob("*.json")]):
        digest.update(f"{file.relative_to(root)}\0".encode() + file.read_bytes())
    return digest.hexdigest()[:12]


def _strategy(config: DictConfig) -> Strategy:
    chosen = config.retrieval
    return Strategy(chosen.strategy, exact=chosen.exact, pool=chosen.pool, ef=chosen.ef)


def _plain(group: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(group, resolve=True))


def _device(config: DictConfig) -> str:
    if config.train.device != "auto":
        return str(config.train.device)
    return "cuda" if torch.cuda.is_available() else "cpu"
