"""Shared files of the graph track: posts -> graphs -> tensors, each stage made once.

    preparation = Preparation(corpus, Path("outputs/shared/arqmath-c2cab975a849"), console)
    prepared = preparation(settings, topic_sets)
    prepared.posts                # PosixPath('outputs/shared/arqmath-c2cab975a849/preprocessed-3fe02b91c7.db')

docs/architecture.md lists the files. There is a file of tensors for each parser, formula mode and vocabulary. Virtual
nodes are added when tensors are loaded, so one file serves every graph.structure and graph.connectivity.

Sources that are learned from as well (:mod:`mathamr.stages.sources`) have folders of their own, with the graphs and
counts that every experiment uses which learns from them. The vocabulary is that of the sum of all counts, and
preprocessed-HASH.db also has the tensors of the sources' posts, under ids with the source's name before them; posts.db
and topics-HASH.db know nothing of them, and what is searched are the posts in collection-PARSER.db.

A stage that is finished leaves a ``.done`` file, so the next job passes it by; one that was interrupted goes on. Hashes
are of the configuration and of the graphs that the files were made from. So where graphs have changed (posts that
failed were tried again, say) tensors are made anew, and models trained anew; more topics change neither.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from graphs import database, shared_files
from graphs.corpus.corpus import Corpus
from graphs.corpus.sources import Source
from graphs.errors import ConfigError, StoreError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Counts, Row, Vocabulary
from graphs.stores import store
from graphs.stores.collection import Collection
from graphs.stores.store import GraphStore
from mathamr.stages import parsers, sources
from mathamr.stages.collection import ParsedCollection, chosen_rows
from mathamr.stages.console import Console
from mathamr.stages.data.graphs import POSTS
from mathamr.stages.data.tensors import build_tensors, build_vocabulary, together
from mathamr.stages.data.versions import graphs_version, is_done
from mathamr.stages.needed import extent_of, needed_posts
from mathamr.stages.settings import PreparationSettings
from mathamr.stages.topic_sets import TopicSet
from mathamr.training.config import TrainConfig


@dataclass(frozen=True)
class Prepared:
    """Paths of the stages of a configuration.

    Attributes:
        collection: graphs of the posts.
        topic_graphs: graphs of the topics.
        texts: posts.db.
        posts: tensors of the posts that are learned from, in most cases of all posts.
        searched: tensors of further posts that are searched; None: there are no others.
        topics: tensors of the topics.
        formulas: formulas.db, where the collection publishes trees.
        content: identity of the graphs that are learned from.
        added: posts that are searched and not learned from.
        added_content: identity of their graphs.
        topics_content: identity of the topics' graphs.
        sources: identity of the graphs of each source.
    """

    collection: Path
    topic_graphs: Path
    texts: Path
    posts: Path
    searched: Path | None
    topics: Path
    formulas: Path | None
    content: str
    added: frozenset[str] = frozenset()
    added_content: str = ""
    topics_content: str = ""
    sources: Mapping[str, str] = field(default_factory=dict)

    @property
    def tensors(self) -> list[Path]:
        """Files with tensors of posts."""
        return [self.posts, *([self.searched] if self.searched else [])]


class Preparation:
    """Maker of the stages in ``shared``; one of several processes makes a stage, the others wait."""

    def __init__(
        self,
        corpus: Corpus,
        shared: Path,
        console: Console,
        learned: Callable[[TrainConfig], frozenset[str]] = lambda config: frozenset(),
    ) -> None:
        """Prepare files; ``learned`` returns the posts that training learns from, before any is parsed."""
        self._corpus = corpus
        self._shared = shared
        self._console = console
        self._learned = learned
        self._prepared: dict[Hashable, Prepared] = {}
        self._collections: dict[Hashable, dict[str, ParsedCollection]] = {}
        self._sources: dict[str, Source] = {}

    def __call__(self, config: PreparationSettings, topic_sets: Sequence[TopicSet]) -> Prepared:
        """Return the tensors of a configuration; looked for once a process, later files of others do not change it."""
        key = self._key(config)
        if key not in self._prepared:
            further = {name: self._parse(source, config) for name, source in self.sources(config).items()}
            learned = self._needed_to_learn(config)
            needed = needed_posts(config, self._corpus, topic_sets, learned, self._shared, self._console)
            own = ParsedCollection(self._corpus, self._shared, self._console, needed)
            with own.alone():
                self._prepared[key] = self._prepare(config, topic_sets, own, further)
            self._collections[key] = {"": own, **further}
        return self._prepared[key]

    def _key(self, config: PreparationSettings) -> Hashable:
        plan = [asdict(config.graph), parsers.name(config), sorted(sources.sources_of(config))]
        # A frozen set computes its hash once.
        return json.dumps(plan, sort_keys=True), self._needed_to_learn(config)

    def _needed_to_learn(self, config: PreparationSettings) -> frozenset[str]:
        """Return the posts that training learns from; none where all posts are parsed."""
        return self._learned(config.train) if extent_of(config.data) == "needed" else frozenset()

    def of(self, config: PreparationSettings) -> Prepared:
        """Return the tensors that an earlier call has prepared."""
        return self._prepared[self._key(config)]

    def counts(self, config: PreparationSettings) -> Counts:
        """Return the graphs behind a configuration's vocabulary: those of its collection and its sources together."""
        return together([collection.counts(config) for collection in self.collections(config).values()])

    def collections(self, config: PreparationSettings) -> Mapping[str, ParsedCollection]:
        """Open the collection of a prepared configuration, under the name "", and its sources."""
        return self._collections[self._key(config)]

    def sources(self, config: PreparationSettings) -> dict[str, Source]:
        """Return the sources of a configuration; each is read once a process."""
        return {name: self._sources.setdefault(name, source) for name, source in sources.sources_of(config).items()}

    def _parse(self, source: Source, config: PreparationSettings) -> ParsedCollection:
        """Make the graphs of a source."""
        folder = sources.folder_of(source, self._shared)
        collection = ParsedCollection(source, folder, self._console, is_source=True)
        with collection.alone():
            collection.make(config)
            collection.counts(config)
        return collection

    def _prepare(
        self,
        config: PreparationSettings,
        topic_sets: Sequence[TopicSet],
        own: ParsedCollection,
        further: Mapping[str, ParsedCollection],
    ) -> Prepared:
        texts = own.texts()
        formulas = own.make(config, [topic.post for topic_set in topic_sets for topic in topic_set.topics])
        graph, content = config.graph.stored_parts(), own.content(config)
        contents = {name: collection.content(config).learned for name, collection in further.items()}
        identity = _digest(content.learned, contents) if contents else content.learned
        needed = own.needed
        learned = None if needed is None else needed.learned
        posts, present = self._given_tensors(config, own), frozenset[str]()
        if posts is not None:
            present = frozenset(GraphStore(posts, config.graph.spec()).post_ids())
        else:
            posts = self._shared / f"preprocessed-{_digest(graph, identity)}.db"
            if not is_done(posts.with_suffix(".done"), posts, self._console):
                counted = [collection.counts(config) for collection in (own, *further.values())]
                labels = build_vocabulary(counted, config.graph, self._console)
                paths = {
                    "": own.path(config),
                    **{name: collection.path(config) for name, collection in further.items()},
                }
                self._build_tensors(posts, config, paths, POSTS, identity, labels, learned)
        tensors = GraphStore(posts, config.graph.spec())
        self._console.failures(
            "graphs too large with these virtual nodes", Counter((f.stage, f.kind) for f in tensors.too_large.values())
        )
        labels = tensors.vocabulary
        searched = None
        if needed is not None and (added := needed.added - present):
            searched = self._shared / f"searched-{_digest(graph, labels.hash, content.added, len(present))}.db"
            self._build_tensors(searched, config, {"": own.path(config)}, POSTS, content.added, labels, added)
        topics = self._shared / f"topics-{_digest(graph, labels.hash, content.topics)}.db"
        topic_graphs = {"": own.topics_path(config)} if content.topics else {}
        self._build_tensors(topics, config, topic_graphs, ("topic",), content.topics, labels)
        return Prepared(
            collection=own.path(config),
            topic_graphs=own.topics_path(config),
            texts=texts,
            posts=posts,
            searched=searched,
            topics=topics,
            formulas=formulas,
            content=content.learned,
            added=frozenset() if needed is None else needed.added,
            added_content=content.added,
            topics_content=content.topics,
            sources=contents,
        )

    def _given_tensors(self, config: PreparationSettings, own: ParsedCollection) -> Path | None:
        """Return the tensors that ``data.graphs`` names, checked against the configuration."""
        if config.data.graphs is None:
            return None
        path = Path(config.data.graphs)
        if not path.is_file():
            raise ConfigError(f"data.graphs={path} is no file")
        if config.data.collection is None:
            raise ConfigError(
                f"data.graphs={path} has only tensors; add data.collection=, the graphs that they were made from"
            )
        tensors, formulas = GraphStore(path), config.graph.spec().formulas
        if tensors.spec.formulas != formulas:
            raise ConfigError(
                f"data.graphs={path} was made with graph.formulas={tensors.spec.formulas}, not with {formulas}; "
                "preprocess it again"
            )
        with Collection(own.path(config)) as graphs:
            made_of = {str(graphs.meta.get("source", "")), own.identity(own.path(config))}
        if tensors.source not in made_of:
            raise ConfigError(
                f"data.graphs={path} was not made from data.collection={config.data.collection}; preprocess it again"
            )
        self._console.once(f"  {path}: {len(tensors):,} graphs as tensors, {tensors.vocabulary.num_labels:,} labels")
        return path

    def _build_tensors(
        self,
        path: Path,
        config: PreparationSettings,
        graphs: Mapping[str, Path],
        kinds: Sequence[str],
        content: str,
        labels: Vocabulary,
        wanted: frozenset[str] | None = None,
    ) -> None:
        """Make tensors of the graphs of some ``kinds``, unless they are finished.

        Args:
            graphs: collections, by the source that their ids begin with.
            wanted: posts of the collection itself; None: all.
        """
        done = path.with_suffix(".done")
        if is_done(done, path, self._console):
            return
        _remove_begun_otherwise(path, store.file_hash(config.graph.spec().formulas, labels), content)
        total = 0
        for name, collection in graphs.items():
            with Collection(collection) as source:
                total += sum(name != "" or wanted is None or post_id in wanted for post_id in source.post_ids(*kinds))
        rows = _rows(graphs, kinds, wanted)
        spec = VirtualNodeSpec(formulas=config.graph.spec().formulas)  # as any job makes the file
        build_tensors(rows, path, labels, spec, self._console, source=content, total=total, workers=config.workers)
        done.write_text(graphs_version(), encoding="utf-8")


def _rows(graphs: Mapping[str, Path], kinds: Sequence[str], wanted: frozenset[str] | None) -> Iterator[Row]:
    """Join the rows of several collections; the ids of a source have its name before them."""
    for name, path in graphs.items():
        with Collection(path) as source:
            for post_id, penman, formula_map in chosen_rows(source.rows(*kinds), None if name else wanted):
                if not name and (taken := sources.source_of(post_id, graphs)):
                    raise ConfigError(
                        f"the collection has a post {post_id}, which looks like one of data.sources.{taken}; give this "
                        "source another name, there and in train.pairs"
                    )
                yield sources.post_id_of(name, post_id) if name else post_id, penman, formula_map


def _remove_begun_otherwise(path: Path, file_hash: str, content: str) -> None:
    """Remove an unfinished file that is damaged, or that another version of the code has begun."""
    if not path.exists():
        return
    try:
        with closing(database.connect_read_only(path, purpose=store.PURPOSE)) as connection:
            meta = database.read_meta(connection)
    except StoreError:
        path.unlink()
        return
    if (meta.get("file_hash"), meta.get("source")) != (file_hash, content):
        path.unlink()


def _digest(*content: Any) -> str:
    return shared_files.key(content)[:10]
