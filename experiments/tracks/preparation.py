"""What the jobs of the graph track share: posts -> graphs -> tensors, each stage made once.

It lies in ``outputs/shared/COLLECTION-FINGERPRINT/``:

    formulas.db                   trees of the formulas that the collection publishes as MathML (arqmath)
    collection-PARSER.db          the graphs of all posts, and of the topics that were asked for so far; beside it
                                  collection-PARSER.failures.tsv, the posts without one
    posts.db                      the posts' texts, for examples
    counts-PARSER-MODE-HASH.json  how often each label and relation occurs, by formula mode
    preprocessed-HASH.db          tensors of the posts, for each way of making them
    topics-HASH.db                tensors of the topics, likewise

A stage that is finished leaves a ``.done`` file, so the next job passes it by; one that was interrupted goes on. Hashes
are of the configuration and of the graphs that the files were made from. So where graphs have changed (posts that
failed were tried again, say) tensors are made anew, and models trained anew; more topics change neither.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from experiments import parsers
from experiments.outputs import locked, read_json, write_json
from experiments.progress import Console
from experiments.tracks.track import Question
from graphs import collection, database, mathamr_plus, store, vocabulary
from graphs.collection import Collection
from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post
from graphs.errors import Failure, StoreError
from graphs.formulas import store as formula_store
from graphs.store import GraphStore
from graphs.virtual_nodes import VirtualNodeSpec
from graphs.vocabulary import Counts, Row, Vocabulary
from graphs.whole_file import write_whole
from mathamr.retrieval import posts as post_texts

_POSTS = ("question", "answer")


@dataclass(frozen=True)
class Prepared:
    """Where the stages of a configuration lie; ``content`` identifies the graphs of the posts."""

    collection: Path
    texts: Path
    posts: Path
    topics: Path
    formulas: Path | None
    content: str


class Preparation:
    """Makes the stages in ``shared``; of several processes that want the same, one makes it and the others wait."""

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self._corpus = corpus
        self._shared = shared
        self._console = console
        self._said: set[Path] = set()
        self._prepared: dict[str, Prepared] = {}

    def __call__(self, config: DictConfig, questions: Sequence[Question]) -> Prepared:
        """What the configuration needs; looked for once a process, later files of others do not change it."""
        key = _key(config)
        if key not in self._prepared:
            self._shared.mkdir(parents=True, exist_ok=True)
            with self._alone():
                self._prepared[key] = self._prepare(config, questions)
        return self._prepared[key]

    def of(self, config: DictConfig) -> Prepared:
        """What an earlier call has prepared."""
        return self._prepared[_key(config)]

    def _prepare(self, config: DictConfig, questions: Sequence[Question]) -> Prepared:
        formulas = self._build_formulas(config)
        path = self._shared / f"collection-{parsers.name(config)}.db"
        self._build_collection(path, config, questions, formulas)
        texts = self._build_texts()
        content = self._content(path)
        graph = _plain(config.graph)
        posts = self._shared / f"preprocessed-{_digest(graph, content['posts'])}.db"
        self._build_tensors(posts, config, path, _POSTS, content["posts"])
        topics = self._shared / f"topics-{_digest(graph, content['posts'], content['topics'])}.db"
        self._build_tensors(topics, config, path, ("topic",), content["topics"], GraphStore(posts).vocabulary)
        return Prepared(path, texts, posts, topics, formulas, content["posts"])

    @contextmanager
    def _alone(self) -> Iterator[None]:
        lock = self._shared / ".lock"
        with locked(lock) as mine:
            if mine:
                yield
                return
        self._console.say(f"  waiting for another process that works in {self._shared}")
        with locked(lock, wait=True):
            yield

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

    def _build_collection(
        self, path: Path, config: DictConfig, questions: Sequence[Question], formulas: Path | None
    ) -> None:
        """collection.db of the posts and of the questions' topics."""
        done = path.with_suffix(".done")
        if not (self._is_done(done, path) and _is_whole(path)):
            self._add(path, config, self._corpus.posts(), formulas, "posts to graphs", "posts")
            self._list_failures(path)
            done.write_text(graphs_version(), encoding="utf-8")
        with Collection(path) as source:
            known = {*source.post_ids("topic"), *(failure.post_id for failure in source.failures())}
        topics = {topic.post.post_id: topic.post for question in questions for topic in question.topics}
        missing = [post for post_id, post in topics.items() if post_id not in known]
        if missing:
            self._add(path, config, missing, formulas, "topics to graphs", "topics")
            self._list_failures(path)

    def _add(
        self,
        path: Path,
        config: DictConfig,
        posts: Iterable[Post | Failure],
        formulas: Path | None,
        stage: str,
        unit: str,
    ) -> None:
        parser = parsers.factory(*parsers.chosen(config))
        with self._console.stage(stage, unit=unit) as advance:
            summary = collection.build(
                path,
                posts,
                parser,
                source=self._corpus.fingerprint(),
                formulas_db=formulas,
                workers=config.workers,
                progress=advance,
            )
        attached = ", ".join(f"{how} {count:,}" for how, count in sorted(summary.attachments.items()))
        self._console.say(f"  {summary.graphs:,} graphs with {summary.formulas:,} formulas ({attached})")
        self._console.failures("posts that failed", summary.failures)

    def _is_done(self, done: Path, path: Path) -> bool:
        """Whether a stage is finished; says so where another version of the code has made it."""
        if not (done.exists() and path.exists()):
            return False
        if done.read_text(encoding="utf-8") != graphs_version() and done not in self._said:
            self._said.add(done)
            self._console.say(f"  {path} was made by another version of graphs/; delete {done} and it to make it anew")
        return True

    def _list_failures(self, path: Path) -> None:
        """``collection-PARSER.failures.tsv``, and its first lines on the terminal."""
        with Collection(path) as source:
            failures = list(source.failures())
        listed = path.with_suffix(".failures.tsv")
        with listed.open("w", encoding="utf-8", newline="") as file:
            table = csv.writer(file, delimiter="\t")
            table.writerow(["post_id", "stage", "kind", "message"])
            table.writerows((f.post_id, f.stage, f.kind, f.message) for f in failures)
        for failure in failures[:5]:
            self._console.say(f"    {failure.post_id}: {failure.message.strip().splitlines()[-1]}")
        if failures:
            self._console.say(f"    all of them: {listed}")

    def _build_texts(self) -> Path:
        """posts.db: the texts, without formula ids, which depend on the graphs."""
        path = self._shared / "posts.db"
        done = path.with_suffix(".done")
        if not (done.exists() and path.exists()):
            with self._console.stage("texts", unit="posts") as advance:
                post_texts.build(path, self._corpus.posts(), (), advance)
            done.touch()
        return path

    def _content(self, path: Path) -> dict[str, str]:
        """Identifies the graphs of the posts and those of the topics; computed when the file has changed."""
        status = path.stat()
        kept = path.with_suffix(".content.json")
        stamp = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        known = read_json(kept)
        if known is None or any(known.get(key) != value for key, value in stamp.items()):
            with Collection(path) as source:
                known = {
                    **stamp,
                    "posts": _rows_digest(source.rows(*_POSTS)),
                    "topics": _rows_digest(source.rows("topic")),
                }
            write_json(kept, known)
        return {key: str(known[key]) for key in ("posts", "topics")}

    def _build_tensors(
        self,
        path: Path,
        config: DictConfig,
        graphs: Path,
        kinds: Sequence[str],
        content: str,
        labels: Vocabulary | None = None,
    ) -> None:
        """Tensors of the graphs of some ``kinds``, with the vocabulary of the posts where that is not given."""
        done = path.with_suffix(".done")
        if self._is_done(done, path):
            return
        spec = spec_of(config)
        with Collection(graphs) as source:
            labels = labels or self._vocabulary(config, source, content)
            _remove_begun_otherwise(path, store.config_hash(spec, labels), content)
            rows = list(source.rows(*kinds)) if kinds == ("topic",) else source.rows(*kinds)
            total = len(rows) if isinstance(rows, list) else len(source)
            with self._console.stage("graphs to tensors", total=total, unit="graphs") as advance:
                store.build(
                    path,
                    rows,
                    mathamr_plus.decode,
                    spec,
                    labels,
                    source=content,
                    workers=config.workers,
                    progress=advance,
                )
        lost = Counter((failure.stage, failure.kind) for failure in GraphStore(path).failures())
        self._console.failures("graphs without tensors", lost)
        done.write_text(graphs_version(), encoding="utf-8")

    def _vocabulary(self, config: DictConfig, source: Collection, content: str) -> Vocabulary:
        made = Vocabulary.build(
            self._counts(config, source, content),
            size=config.graph.vocabulary_size,
            number_threshold=config.graph.number_threshold,
        )
        facts = made.statistics
        self._console.say(
            f"  vocabulary: {facts['raw_labels']:,} labels, {facts['normalized_labels']:,} normalised, "
            f"{made.num_labels:,} kept, {facts['coverage']:.2%} of nodes; {made.num_relations} relations"
        )
        return made

    def _counts(self, config: DictConfig, source: Collection, content: str) -> Counts:
        """Label and relation counts over questions and answers; topics stay unseen."""
        path = source.path.with_name(f"counts-{parsers.name(config)}-{config.graph.formulas}-{content[:10]}.json")
        if path.exists():
            return Counts.from_json(path.read_text(encoding="utf-8"))
        with self._console.stage("vocabulary", total=len(source), unit="graphs") as advance:
            counts = vocabulary.count(
                source.rows(*_POSTS),
                mathamr_plus.decode,
                config.graph.formulas,
                workers=config.workers,
                progress=advance,
            )
        write_whole(path, counts.to_json())
        return counts


def _key(config: DictConfig) -> str:
    return json.dumps([_plain(config.graph), parsers.name(config)], sort_keys=True)


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


def _is_whole(path: Path) -> bool:
    """Whether every post went through: not after ``scripts/collection.py`` has forgotten the failures."""
    with Collection(path) as source:
        return bool(source.meta.get("finished"))


def _remove_begun_otherwise(path: Path, config_hash: str, content: str) -> None:
    """An unfinished file that is damaged, or that another version of the code has begun, cannot be gone on with."""
    if not path.exists():
        return
    try:
        with closing(database.connect_read_only(path, purpose=store.PURPOSE)) as connection:
            meta = database.read_meta(connection)
    except StoreError:
        path.unlink()
        return
    if (meta.get("config_hash", config_hash), meta.get("source", content)) != (config_hash, content):
        path.unlink()


def _rows_digest(rows: Iterable[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\0".join(row).encode() + b"\1")
    return digest.hexdigest()[:16]


def _digest(*content: Any) -> str:
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


def _plain(group: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(group, resolve=True))
