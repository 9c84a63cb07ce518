"""Graphs of one collection in its folder below ``outputs/shared``: posts -> formula trees -> graphs -> counts.

    parsed = ParsedCollection(corpus, Path("outputs/shared/arqmath-c2cab975a849"), console, needed=None)
    with parsed.alone():
        parsed.make(config, topics)
    parsed.content(config).learned        # 'd3259534cb41c6f2', another one when these graphs have changed

The collection that is searched and the sources that are learned from are made alike; of sources there are no topics.
With ``needed``, only these posts are parsed; files grow as more are asked for, and nothing is parsed twice. Files that
a script or another machine has made (``data.collection``, ``data.formulas``) are checked, read, and never written.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from heapq import merge
from itertools import pairwise
from pathlib import Path
from typing import Literal, cast

from graphs.corpus.corpus import Documents
from graphs.corpus.files import hash_contents
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post
from graphs.counts import counted
from graphs.errors import ConfigError, Failure
from graphs.graph.virtual_nodes import FormulaMode
from graphs.graph.vocabulary import Counts, Row
from graphs.ids import Ids
from graphs.shared_files import key, read_json, write_json
from graphs.stores.collection import Collection
from graphs.stores.origin import TOPICS
from graphs.whole_file import write_whole
from mathamr.stages import parsers
from mathamr.stages.console import Console
from mathamr.stages.data.formulas import build_formula_trees, check_formulas
from mathamr.stages.data.graphs import POSTS, build_graphs, list_failures
from mathamr.stages.data.identity import copy_topics, refuse_shard
from mathamr.stages.data.post_files import PostFiles, held
from mathamr.stages.data.versions import graphs_version, is_done
from mathamr.stages.needed import NeededPosts
from mathamr.stages.settings import JobSettings, ParsedSettings


@dataclass(frozen=True)
class Content:
    """Identity of graphs: of posts that are learned from, of those that are only searched, and of topics."""

    learned: str
    added: str
    topics: str


class ParsedCollection:
    """Files of ``corpus`` in ``folder``; one of several processes makes them, others wait.

    Args:
        needed: the posts to parse; None: all.
        is_source: a further collection to learn from, which files that were made elsewhere do not belong to.
    """

    def __init__(
        self,
        corpus: Documents,
        folder: Path,
        console: Console,
        needed: NeededPosts | None = None,
        *,
        is_source: bool = False,
    ) -> None:
        self._corpus, self.folder, self._console, self.needed = corpus, folder, console, needed
        self._is_source = is_source
        self._files = PostFiles(corpus, folder, console)

    def alone(self) -> AbstractContextManager[None]:
        """Lock the folder."""
        return held(self.folder, ".lock", self._console)

    # -- graphs ------------------------------------------------------------------------------------------------------

    def path(self, config: ParsedSettings) -> Path:
        """Return collection.db: the given one, or the one of this folder."""
        given = self._named_file(config, "collection")
        return given or self.folder / file_name(config, self._named_file(config, "formulas"))

    def topics_path(self, config: ParsedSettings) -> Path:
        """Return the collection of the topics' graphs."""
        given = self._named_file(config, "collection")
        made_of = [self._corpus.fingerprints().topics, _of_trees(self._named_file(config, "formulas"))]
        made_of += [] if given is None else [file_identity(given), TOPICS]  # before, copies of other topics' graphs
        return self.folder / f"topic-graphs-{parsers.name(config)}-{key(made_of)[:8]}.db"

    def make(self, config: ParsedSettings, topics: Iterable[Post] = ()) -> Path | None:
        """Make the graphs of the posts and of these topics, as far as they are missing; return formulas.db."""
        formulas, path = self.formulas(config), self.path(config)
        given = self._named_file(config, "collection")
        if given is not None:
            self._check_given(given)
        elif self.needed is None:
            done = path.with_suffix(".done")
            if not (is_done(done, path, self._console) and _is_whole(path)):
                posts = self._files.posts()
                self._say_total(max(0, self._total() - len(_ids_present(path))), config)
                self._add(path, config, posts, formulas, "posts", self._total())
                done.write_text(graphs_version(), encoding="utf-8")
        elif missing := self.needed.all - _ids_present(path):
            some = self._files.posts(missing)
            self._say_total(len(missing), config)
            self._add(path, config, some, formulas, "posts", len(missing), whole=False)
        self._make_topics(config, topics, formulas, given)
        return formulas

    def _make_topics(
        self, config: ParsedSettings, topics: Iterable[Post], formulas: Path | None, given: Path | None
    ) -> None:
        path = self.topics_path(config)
        known = _ids_present(path)
        missing = {post.post_id: post for post in topics if post.post_id not in known}
        done = path.with_suffix(".done")  # names the version that began the file; earlier ones left none
        if path.exists():
            if not done.exists():
                write_whole(done, "")
            is_done(done, path, self._console)  # says if it was another version
        elif missing:
            self.folder.mkdir(parents=True, exist_ok=True)
            write_whole(done, graphs_version())
        if not missing:
            return
        if given is not None:
            copied = copy_topics(given, path, missing, self._corpus, parsers.parser_of(config), self._console)
            missing = {post_id: post for post_id, post in missing.items() if post_id not in copied}
        if missing:
            self._add(path, config, missing.values(), formulas, "topics", len(missing))
            if given is not None and given_parser(path) != given_parser(given):
                path.unlink()
                raise ConfigError(
                    f"data.collection={given} was parsed by {given_parser(given)!r}, and the topics would be by "
                    f"graph.parser={config.graph.parser}; choose the same parser, or give a collection of these topics"
                )

    def _check_given(self, given: Path) -> None:
        """Refuse a collection that was made from other posts or in part; say how much of what is needed it has."""
        with Collection(given) as graphs:
            refuse_shard(graphs)
            meta = graphs.meta
        source, mine = str(meta.get("source", "")), self._corpus.fingerprints()
        imported = source.startswith("import ")
        if source != mine.graphs and not imported:
            raise ConfigError(
                f"data.collection={given} was made from the collection {source[:12]}, data.root holds "
                f"{mine.graphs[:12]}; build it again from data.root"
            )
        if not meta.get("finished") and self.needed is None:
            raise ConfigError(f"data.collection={given} is not finished; run its build again until it ends")
        wanted = Ids(self._files.text_ids()) if self.needed is None else sorted(self.needed.all)
        with Collection(given) as graphs:  # both are sorted: what comes twice is in both
            present = sum(one == other for one, other in pairwise(merge(graphs.ids(*POSTS), wanted)))
        if not present:
            raise ConfigError(f"data.collection={given} has a graph of none of the {len(wanted):,} posts")
        self._console.once(f"  {given}: graphs of {present:,} of {len(wanted):,} posts")

    def _total(self) -> int:
        """Return the number of all posts."""
        with self._files.headers() as kept:
            return kept.count()

    def _say_total(self, number: int, config: ParsedSettings) -> None:
        self._console.say(f"  posts to graphs: {counted(number, 'post')} to parse, workers={config.workers}")

    def _add(
        self,
        path: Path,
        config: ParsedSettings,
        posts: Iterable[Post | Failure],
        formulas: Path | None,
        unit: str,
        total: int,
        *,
        whole: bool = True,
    ) -> None:
        build_graphs(
            posts,
            path,
            parsers.factory(*parsers.parser_of(config)),
            self._console,
            source=self._corpus.fingerprints().graphs,
            workers=config.workers,
            formulas_db=formulas,
            unit=unit,
            total=total,
            whole=whole,
        )
        list_failures(path, self._console)

    # -- texts and formula trees -------------------------------------------------------------------------------------

    def texts(self) -> Path:
        """Make posts.db: the texts, without formula ids, which depend on the graphs."""
        return self._files.texts(None if self.needed is None else self.needed.all)

    def formulas(self, config: JobSettings) -> Path | None:
        """Make formulas.db, where the collection publishes trees."""
        files = self._corpus.formulas()
        given = self._named_file(config, "formulas")
        if given is not None:
            check_formulas(given, files, config.data.years, f"data.formulas={given}")
            return given
        if files is None:
            return None
        path = self.folder / "formulas.db"
        done = path.with_suffix(".done")
        stamp = path.with_suffix(".covers.json")  # topics may change, and more posts may be needed
        covered = (read_json(stamp) or {}) if path.exists() else {}
        topics = self._corpus.fingerprints().topics
        same_topics = covered.get("topics") == topics
        whole = is_done(done, path, self._console)
        posts = None
        if self.needed is not None and not whole:
            posts = self.needed.all.difference(covered.get("posts", ()))
        if same_topics and (whole or posts == frozenset()):
            return path
        if whole or posts == frozenset():
            files = replace(files, latex=(), slt=(), opt=())  # the posts' are there already
        build_formula_trees(files, path, self._console, posts, workers=config.workers)
        if posts is None:
            write_json(stamp, {"topics": topics})
            done.write_text(graphs_version(), encoding="utf-8")
        else:
            write_json(stamp, {"topics": topics, "posts": sorted(posts.union(covered.get("posts", ())))})
        return path

    def _named_file(self, config: JobSettings, name: Literal["collection", "formulas"]) -> Path | None:
        """Return the file that ``data.NAME`` names; sources have none."""
        value = None if self._is_source else getattr(config.data, name)
        if value is None:
            return None
        path = Path(value)
        if not path.is_file():
            raise ConfigError(f"data.{name}={value} is no file")
        return path

    # -- identity and counts -----------------------------------------------------------------------------------------

    def content(self, config: ParsedSettings) -> Content:
        """Return the identity of the graphs; it is computed again when a file has changed."""
        learned = None if self.needed is None else self.needed.learned
        added = frozenset[str]() if self.needed is None else self.needed.added
        path = self.path(config)
        return Content(
            learned=self.identity(path, learned),
            added=self.identity(path, added) if added else "",
            topics=self.identity(self.topics_path(config), None),
        )

    def digests(self, config: ParsedSettings, posts: frozenset[str]) -> dict[str, str]:
        """Return a hash of the graph of each of some posts, and of each topic, by id."""
        digest_of: dict[str, str] = {}
        for path, kinds, selected in ((self.path(config), POSTS, posts), (self.topics_path(config), ("topic",), None)):
            if path.exists() and (selected is None or selected):
                with Collection(path) as source:
                    digest_of |= {row[0]: _rows_digest([row]) for row in chosen_rows(source.rows(*kinds), selected)}
        return digest_of

    def identity(self, path: Path, posts: frozenset[str] | None = None) -> str:
        """Return the digest of the graphs of some posts in a file; None: of all."""
        if not path.exists():
            return ""
        status = path.stat()
        of = "" if posts is None else hashlib.sha256("\0".join(sorted(posts)).encode()).hexdigest()[:12]
        kept = self.folder / f"{path.stem}{of and '-'}{of}.content.json"
        stamp = {"path": str(path), "size": status.st_size, "mtime_ns": status.st_mtime_ns}
        known = read_json(kept)
        if known is None or any(known.get(name) != value for name, value in stamp.items()):
            with Collection(path) as source:
                rows = source.rows() if posts is None and path.stem.startswith("topic-graphs-") else source.rows(*POSTS)
                known = {**stamp, "graphs": _rows_digest(chosen_rows(rows, posts))}
            write_json(kept, known)
        return str(known["graphs"])

    def counts(self, config: ParsedSettings) -> Counts:
        """Count labels and relations over the posts that are learned from; topics stay unseen."""
        content = self.content(config).learned
        path = self.folder / f"counts-{parsers.name(config)}-{config.graph.formulas}-{content[:10]}.json"
        if path.exists():
            return Counts.from_json(path.read_text(encoding="utf-8"))
        from mathamr.stages.data.tensors import count_labels  # imports torch

        learned = None if self.needed is None else self.needed.learned
        with Collection(self.path(config)) as source:
            counts = count_labels(
                chosen_rows(source.rows(*POSTS), learned),
                cast(FormulaMode, config.graph.formulas),
                self._console,
                total=len(learned or source),
                workers=config.workers,
            )
        write_whole(path, counts.to_json())
        return counts


def chosen_rows(rows: Iterable[Row], posts: frozenset[str] | None) -> Iterator[Row]:
    """Yield the rows of some posts; None: all."""
    return (row for row in rows if posts is None or row[0] in posts)


def file_name(config: ParsedSettings, formulas: Path | None) -> str:
    """Return the name of collection.db in a collection's folder; ``formulas`` is formulas.db made elsewhere."""
    return f"collection-{parsers.name(config)}{_of_trees(formulas)}.db"


def _of_trees(formulas: Path | None) -> str:
    return "" if formulas is None else f"-trees{file_identity(formulas)[:8]}"


def file_identity(path: Path) -> str:
    """Return a hash of a file's size and of samples of its content, which any write to a database changes.

    Raises:
        ConfigError: there is no such file.
    """
    if not path.is_file():
        raise ConfigError(f"{path} is no file; it is named by data.collection, data.formulas or data.graphs")
    return hash_contents({"": PackedFile(path)})


def given_parser(path: Path) -> str:
    """Return the name, version and model of the parser that made a collection."""
    with Collection(path) as graphs:
        return str(graphs.meta.get("parser", "unknown"))


def _ids_present(path: Path) -> frozenset[str]:
    """Return the ids of the posts that have a graph or a record of a failure."""
    if not path.exists():
        return frozenset()
    with Collection(path) as source:
        return frozenset([*source.post_ids(), *(failure.post_id for failure in source.failures())])


def _is_whole(path: Path) -> bool:
    """Return whether every post went through: not after ``mathamr collection`` has forgotten the failures."""
    with Collection(path) as source:
        return bool(source.meta.get("finished"))


def _rows_digest(rows: Iterable[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\0".join(row).encode() + b"\1")
    return digest.hexdigest()[:16]


def recorded_parser(tensors: Path, content: str) -> str:
    """Return name, version and model of the parser that made the graphs of tensors; ``embedded`` if none is recorded.

    In the folder of an experiment, a ``*.content.json`` of :meth:`ParsedCollection.identity` tells which collection has
    their graphs; elsewhere the collections beside the tensors count.

    Args:
        tensors: preprocessed.db.
        content: identity of its graphs (:attr:`graphs.stores.store.GraphStore.source`).

    Raises:
        ConfigError: collections of several parsers, and none of them is known to have these graphs.
    """
    folder = tensors.parent
    records = [read_json(path) or {} for path in sorted(folder.glob("*.content.json"))]
    named = [Path(record["path"]) for record in records if record.get("graphs") == content]
    moved = [folder / path.name if (folder / path.name).exists() else path for path in named]
    found = set()
    for path in [path for path in moved if path.exists()] or sorted(folder.glob("collection*.db")):
        with Collection(path) as graphs:
            found.add(str(graphs.meta.get("parser", "")))
    found.discard("")
    if len(found) > 1:
        parsers = " and ".join(sorted(found))
        raise ConfigError(f"{tensors}: the collections beside it are of the parsers {parsers}; give parser_name=")
    return found.pop() if found else "embedded"
