"""What the jobs of the graph track share: posts -> graphs -> tensors, each stage made once.

It lies in ``outputs/shared/COLLECTION-FINGERPRINT/``:

    formulas.db                   trees of the formulas that the collection publishes as MathML (arqmath)
    collection-PARSER.db          the graphs of all posts, and of the topics that were asked for so far; beside it
                                  collection-PARSER.failures.tsv, the posts without one
    posts.db                      the posts' texts, for examples
    counts-PARSER-MODE-HASH.json  how often each label and relation occurs, by formula mode
    preprocessed-HASH.db          tensors of the posts, for each way of making them
    topics-HASH.db                tensors of the topics, likewise

Sources that are learned from as well (:mod:`experiments.sources`) have folders of their own, with the graphs and counts
that every experiment uses which learns from them. The vocabulary is that of the sum of all counts, and
preprocessed-HASH.db also has the tensors of the sources' posts, under ids with the source's name before them; posts.db
and topics-HASH.db know nothing of them, and what is searched are the posts in collection-PARSER.db.

A stage that is finished leaves a ``.done`` file, so the next job passes it by; one that was interrupted goes on. Hashes
are of the configuration and of the graphs that the files were made from. So where graphs have changed (posts that
failed were tried again, say) tensors are made anew, and models trained anew; more topics change neither.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, cast

from omegaconf import DictConfig, OmegaConf

from experiments import outputs, parsers, sources
from experiments.progress import Console
from experiments.tracks.parsed import POSTS, ParsedCollection, graphs_version, is_done
from experiments.tracks.track import Question
from graphs import database, mathamr_plus, store
from graphs.collection import Collection
from graphs.corpus.corpus import Corpus
from graphs.corpus.sources import Source, asked
from graphs.errors import ConfigError, StoreError
from graphs.store import GraphStore
from graphs.virtual_nodes import VirtualNodeSpec
from graphs.vocabulary import Counts, Row, Vocabulary


@dataclass(frozen=True)
class Prepared:
    """Where the stages of a configuration lie; ``content`` identifies the graphs of the posts, ``sources`` those of
    each source."""

    collection: Path
    texts: Path
    posts: Path
    topics: Path
    formulas: Path | None
    content: str
    sources: Mapping[str, str] = field(default_factory=dict)


class Preparation:
    """Makes the stages in ``shared``; of several processes that want the same, one makes it and the others wait."""

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self._corpus = corpus
        self._shared = shared
        self._console = console
        self._prepared: dict[str, Prepared] = {}
        self._parsed: dict[str, dict[str, ParsedCollection]] = {}
        self._sources: dict[str, Source] = {}

    def __call__(self, config: DictConfig, questions: Sequence[Question]) -> Prepared:
        """What the configuration needs; looked for once a process, later files of others do not change it."""
        key = _key(config)
        if key not in self._prepared:
            further = {
                name: self._parse(name, source, config, questions) for name, source in self.sources(config).items()
            }
            own = ParsedCollection(self._corpus, self._shared, self._console)
            with own.alone():
                self._prepared[key] = self._prepare(config, questions, own, further)
            self._parsed[key] = {"": own, **further}
        return self._prepared[key]

    def of(self, config: DictConfig) -> Prepared:
        """What an earlier call has prepared."""
        return self._prepared[_key(config)]

    def counts(self, config: DictConfig) -> Counts:
        """What the vocabulary of a prepared configuration was built from: its collection and its sources together."""
        return _together([parsed.counts(config) for parsed in self.collections(config).values()])

    def collections(self, config: DictConfig) -> Mapping[str, ParsedCollection]:
        """The collection of a prepared configuration, under the name "", and its sources."""
        return self._parsed[_key(config)]

    def sources(self, config: DictConfig) -> dict[str, Source]:
        """The sources that a configuration learns from; each is read once a process."""
        return {name: self._sources.setdefault(name, source) for name, source in sources.opened(config).items()}

    def _parse(self, name: str, source: Source, config: DictConfig, questions: Sequence[Question]) -> ParsedCollection:
        """The graphs of a source, which is refused where it holds a topic."""
        topics = {topic.post.post_id: topic.post for question in questions for topic in question.topics}
        ids = {topic.topic_id for question in questions for topic in question.topics} | topics.keys()
        held = [pair.question_id for pair in source.pairs() if pair.question_id in ids]
        if held:
            raise ConfigError(
                f"data.sources.{name} holds {len(held)} topics of the experiment, {held[0]} among them: a model would "
                "learn their answers; use a source without them"
            )
        alike = asked(source.posts(), topics.values())
        some = f", e.g. {', '.join(alike[:3])}" if alike else ""
        self._console.say(
            f"  source {name}: {len(source.pairs()):,} pairs; posts that read like a topic: {len(alike)}{some}"
        )
        folder = self._shared.parent / f"{source.name}-{source.fingerprints().graphs[:12]}"
        parsed = ParsedCollection(source, folder, self._console)
        with parsed.alone():
            parsed.make(config)
            parsed.counts(config)
        return parsed

    def _prepare(
        self,
        config: DictConfig,
        questions: Sequence[Question],
        own: ParsedCollection,
        further: Mapping[str, ParsedCollection],
    ) -> Prepared:
        formulas = own.make(config, [topic.post for question in questions for topic in question.topics])
        texts = own.texts()
        graph, content = _plain(config.graph), own.content(config)
        contents = {name: parsed.content(config)["posts"] for name, parsed in further.items()}
        identity = _digest(content["posts"], contents) if contents else content["posts"]
        posts = self._shared / f"preprocessed-{_digest(graph, identity)}.db"
        if not is_done(posts.with_suffix(".done"), posts, self._console):
            labels = self._vocabulary(config, [parsed.counts(config) for parsed in (own, *further.values())])
            paths = {"": own.path(config), **{name: parsed.path(config) for name, parsed in further.items()}}
            self._build_tensors(posts, config, paths, POSTS, identity, labels)
        topics = self._shared / f"topics-{_digest(graph, identity, content['topics'])}.db"
        if not is_done(topics.with_suffix(".done"), topics, self._console):
            labels = GraphStore(posts).vocabulary
            self._build_tensors(topics, config, {"": own.path(config)}, ("topic",), content["topics"], labels)
        return Prepared(own.path(config), texts, posts, topics, formulas, content["posts"], contents)

    def _build_tensors(
        self,
        path: Path,
        config: DictConfig,
        graphs: Mapping[str, Path],
        kinds: Sequence[str],
        content: str,
        labels: Vocabulary,
    ) -> None:
        """Tensors of the graphs of some ``kinds``; ``graphs`` are collections, by the source that stands before ids."""
        spec = spec_of(config)
        _remove_begun_otherwise(path, store.config_hash(spec, labels), content)
        total = 0
        for collection in graphs.values():
            with Collection(collection) as source:
                total += len(source.post_ids(*kinds))
        with self._console.stage("graphs to tensors", total=total, unit="graphs") as advance:
            store.build(
                path,
                _rows(graphs, kinds),
                mathamr_plus.decode,
                spec,
                labels,
                source=content,
                workers=config.workers,
                progress=advance,
            )
        lost = Counter((failure.stage, failure.kind) for failure in GraphStore(path).failures())
        self._console.failures("graphs without tensors", lost)
        path.with_suffix(".done").write_text(graphs_version(), encoding="utf-8")

    def _vocabulary(self, config: DictConfig, counted: Sequence[Counts]) -> Vocabulary:
        """The vocabulary of the collection and its sources together."""
        made = Vocabulary.build(
            _together(counted), size=config.graph.vocabulary_size, number_threshold=config.graph.number_threshold
        )
        facts = made.statistics
        self._console.say(
            f"  vocabulary: {facts['raw_labels']:,} labels, {facts['normalized_labels']:,} normalised, "
            f"{made.num_labels:,} kept, {facts['coverage']:.2%} of nodes; {made.num_relations} relations"
        )
        return made


def _together(counted: Sequence[Counts]) -> Counts:
    total = Counts()
    for counts in counted:
        total.merge(counts)
    return total


def _rows(graphs: Mapping[str, Path], kinds: Sequence[str]) -> Iterator[Row]:
    """The rows of several collections, ids with the name of the source before them where there is one.

    Raises:
        ConfigError: a post of the collection itself whose id is as if it were a source's.
    """
    for name, path in graphs.items():
        with Collection(path) as source:
            for post_id, penman, formula_map in source.rows(*kinds):
                if not name and (taken := sources.source_of(post_id, graphs)):
                    raise ConfigError(
                        f"the collection has a post {post_id}, which looks like one of data.sources.{taken}; give this "
                        "source another name, there and in train.pairs"
                    )
                yield sources.post_id_of(name, post_id) if name else post_id, penman, formula_map


def _key(config: DictConfig) -> str:
    return json.dumps([_plain(config.graph), parsers.name(config), sorted(sources.opened(config))], sort_keys=True)


def spec_of(config: DictConfig) -> VirtualNodeSpec:
    """The virtual nodes and formula mode of a configuration."""
    graph = config.graph
    return VirtualNodeSpec(structure=graph.structure, connectivity=graph.connectivity, formulas=graph.formulas)


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


def _digest(*content: Any) -> str:
    return outputs.key(content)[:10]


def _plain(group: DictConfig) -> dict[str, Any]:
    return cast(dict[str, Any], OmegaConf.to_container(group, resolve=True))
