"""Graphs of posts: posts -> AMR and formula trees -> collection.db.

    counted = build_collection(open_corpus("mathdocs"), Path("collection.db"), CollectionSettings(), Console())
    print(graphs.stores.census.table(counted))

:func:`build_graphs` is the stage itself, for any posts.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice
from pathlib import Path
from time import monotonic

from graphs.corpus.corpus import Corpus, benchmark
from graphs.corpus.post import Post
from graphs.counts import counted
from graphs.errors import ConfigError, Failure
from graphs.graph.graph_maker import ParserFactory
from graphs.stores import collection
from graphs.stores.census import Census, take
from graphs.stores.collection import BuildSummary, Collection
from graphs.stores.shards import Shard
from graphs.whole_file import write_whole
from mathamr.stages import parsers
from mathamr.stages.console import Console, Stage, duration
from mathamr.stages.data.formulas import check_formulas, check_workers
from mathamr.stages.data.identity import say_unknown_topics
from mathamr.stages.data.post_files import write_table
from mathamr.stages.settings import GraphConfig

POSTS = ("question", "answer")
"""The kinds of graphs that are not topics."""

_MEASURED = 128  # posts that the estimate of the rest is made from, at least
_TENSOR_BYTES = 0.44  # bytes of tensors for a byte of graphs, as measured on arqmath-mini


def build_graphs(
    posts: Iterable[Post | Failure],
    out: Path,
    parser: ParserFactory,
    console: Console,
    *,
    source: str,
    workers: int = 1,
    formulas_db: Path | None = None,
    unit: str = "posts",
    total: int | None = None,
    shard: str = "1/1",
    whole: bool = True,
    selection: Iterable[str] = (),
    topics: str = "",
    retry: bool = False,
) -> BuildSummary:
    """Make the graph of each post that ``out`` does not hold yet.

    Args:
        posts: posts, read as they are needed.
        out: collection.db (resumed if it exists).
        source: fingerprint of the collection.
        formulas_db: published formula trees; None: trees are made from LaTeX.
        unit: name of the posts on the console; with ``posts`` an estimate follows the first batch.
        shard: part of the collection, as ``3/16``.
        whole: whether these are all posts of the collection or shard.
        selection: names of the kinds of posts; shards of different kinds are not merged.
        topics: fingerprint of the topics, if they are among the posts.
        retry: whether posts that failed before are parsed again.

    Raises:
        ConfigError: no process.
    """
    check_workers(workers)

    def say(number: int | None) -> None:
        console.say("resuming the last retry" if number is None else f"trying {counted(number, 'post')} again")

    with console.stage(f"{unit} to graphs", total=total, unit=unit) as advance:
        estimate = _Estimate(advance, out, workers, console) if unit == "posts" else None
        summary = collection.build(
            out,
            posts,
            parser,
            source=source,
            shard=shard,
            formulas_db=formulas_db,
            workers=workers,
            progress=estimate or advance,
            skipped=advance.skip,
            whole=whole,
            selection=selection,
            topics=topics,
            retried=say if retry else None,
        )
    attached = ", ".join(f"{how} {number:,}" for how, number in sorted(summary.attachments.items()))
    console.say(
        f"  {counted(summary.graphs, 'graph')} with {counted(summary.formulas, 'formula')}"
        + (f", attached to: {attached}" if attached else "")
    )
    console.failures("posts that failed", summary.failures)
    return summary


@dataclass(frozen=True, slots=True)
class CollectionSettings:
    """Choice of the posts that get a graph, and how they are parsed.

    Args:
        parser: factory of the AMR parser; by default of the embedded one.
        kinds: kinds of posts, of question, answer and topic.
        formulas_db: published formula trees; None: trees are made from LaTeX.
        limit: number of posts of a trial, whose collection stays unfinished; None: all.
        retry_failures: whether posts that failed before are parsed again. After a stop, the same settings resume.

    Raises:
        ConfigError: no process, a trial of one shard or of failures, or a formulas_db that does not exist.
    """

    parser: ParserFactory = field(default_factory=parsers.factory)
    kinds: Sequence[str] = POSTS
    tasks: Sequence[int] = (1,)
    years: Sequence[int] = ()
    formulas_db: Path | None = None
    shard: Shard = field(default_factory=lambda: Shard(1, 1))
    limit: int | None = None
    retry_failures: bool = False
    workers: int = 1

    def __post_init__(self) -> None:
        check_workers(self.workers)
        if self.limit is not None and self.limit < 1:
            raise ConfigError(f"limit={self.limit}; at least 1 post is needed")
        if self.limit is not None and self.shard.count > 1:
            raise ConfigError(f"limit={self.limit} with shard={self.shard}: a trial needs no shards, leave one out")
        if self.limit is not None and self.retry_failures:
            raise ConfigError(f"limit={self.limit} with retry_failures: a retry needs all posts, leave limit out")
        if self.formulas_db is not None and not self.formulas_db.is_file():
            raise ConfigError(f"{self.formulas_db}: no such file; mathamr build formulas makes formulas.db")

    @property
    def selection(self) -> list[str]:
        """Names of the kinds of posts, with the tasks and years of topics."""
        years = [f" of {year}" for year in self.years] or [""]
        topics = [f"topic of task {task}{year}" for task in self.tasks for year in years]
        names = [[kind] if kind in POSTS else topics for kind in self.kinds]
        return sorted(set(chain.from_iterable(names)))


def build_collection(
    corpus: Corpus, out: Path, settings: CollectionSettings, graph: GraphConfig, console: Console
) -> Census:
    """Build collection.db, count it, and write the counts beside it as ``.stats.json``.

    Args:
        graph: vocabulary that is counted.

    Raises:
        MathAMRError: posts or formulas that cannot be read, a formulas.db without all formulas, or a database of
            another collection or of other topics.
    """
    prints, has_topics = corpus.fingerprints(), "topic" in settings.kinds
    if (formulas_db := settings.formulas_db) is not None:
        check_formulas(formulas_db, corpus.formulas(), settings.years if has_topics else None, str(formulas_db))
    elif corpus.formulas() is not None:
        console.say("trees come from LaTeX; with formulas.db they are those that the collection publishes")
    posts = settings.shard.of(posts_of(corpus, settings.kinds, settings.tasks, settings.years))
    build_graphs(
        islice(posts, settings.limit),
        out,
        settings.parser,
        console,
        source=prints.graphs,
        workers=settings.workers,
        formulas_db=formulas_db,
        total=settings.limit,
        shard=str(settings.shard),
        whole=settings.limit is None,
        selection=settings.selection,
        topics=prints.topics if has_topics else "",
        retry=settings.retry_failures and out.exists(),
    )
    if has_topics:
        say_unknown_topics(out, console)
    counted = count(out, graph, console, workers=settings.workers)
    write_whole(out.with_suffix(".stats.json"), counted.to_json() + "\n")
    return counted


def count(path: Path, graph: GraphConfig, console: Console, *, kinds: Sequence[str] = (), workers: int = 1) -> Census:
    """Return the counts of the thesis's Table 4.2.

    Args:
        path: collection.db.
        graph: size of the vocabulary, and occurrences that a number needs to keep its own label.
        kinds: kinds of posts whose graphs are counted; empty: all.
    """
    with Collection(path) as graphs, console.stage("counting", total=len(graphs), unit="graphs") as advance:
        return take(
            graphs,
            vocabulary_size=graph.vocabulary_size,
            number_threshold=graph.number_threshold,
            kinds=kinds,
            workers=workers,
            progress=advance,
        )


def posts_of(
    corpus: Corpus, kinds: Sequence[str], tasks: Sequence[int], years: Sequence[int]
) -> Iterator[Post | Failure]:
    """Yield the posts of these kinds and all failures of reading, then the topics if they are among the kinds."""
    by_task = ((topic.post for topic in benchmark(corpus).topics(task, years)) for task in tasks)
    topics = chain.from_iterable(by_task) if "topic" in kinds else ()
    posts = corpus.posts() if set(POSTS) & set(kinds) else ()
    return chain((post for post in posts if isinstance(post, Failure) or post.kind in kinds), topics)


def list_failures(path: Path, console: Console) -> None:
    """Write the posts without a graph to ``NAME.failures.tsv`` beside ``path``, and say the first ones."""
    with Collection(path) as source:
        failures = list(source.failures())
    listed = path.with_suffix(".failures.tsv")
    write_table(failures, listed)
    for failure in failures[:5]:
        console.say(f"    {failure.post_id}: {failure.message.strip().splitlines()[-1]}")
    if failures:
        console.say(f"    all of them: {listed}")


class _Estimate:
    """Progress of a stage that says once how long the rest takes and how much disk.

    The first batch of each process is not measured: it comes after the start of the process, which loads its parser.
    Nor are posts that the file has already.
    """

    def __init__(self, stage: Stage, path: Path, workers: int, console: Console) -> None:
        self._stage, self._path, self._workers, self._console = stage, path, workers, console
        self._calls = self._measured = self._begun = 0
        self._start = 0.0
        self._said = False

    def __call__(self, number: int) -> None:
        """Count posts that were parsed."""
        stage = self._stage
        stage(number)
        self._calls += 1
        if self._calls <= self._workers:
            self._start, self._begun = monotonic(), self._path.stat().st_size
            return
        self._measured += number
        enough = max(_MEASURED, self._workers * collection.BATCH_SIZE)
        if self._said or self._measured < enough or stage.total is None or stage.total <= 2 * stage.done:
            return
        self._said = True
        left = stage.total - stage.done
        seconds = (monotonic() - self._start) / self._measured * left
        graphs = (self._path.stat().st_size - self._begun) / self._measured * left
        free = shutil.disk_usage(self._path.parent).free
        self._console.say(
            f"  estimate from {self._measured} posts: {left:,} posts take {duration(seconds)}; "
            f"{_in_units(graphs)} of graphs, about {_in_units(graphs * _TENSOR_BYTES)} of tensors; "
            f"{_in_units(free)} free on the disk"
        )


def _in_units(size: float) -> str:
    return f"{size / 1e9:,.1f} GB" if size >= 1e9 else f"{size / 1e6:,.1f} MB"
