"""collection.db: the MathAMR+ graphs of a collection as Penman text, and a record of every post that has none.

    collection = Collection("work/collection.db")
    collection.get("255").penman            # '(m / multi-sentence :snt1 (...) ...)'
    collection.failure_table()              # {('amr', 'timeout'): 3}

Tables (DESIGN): ``graph(post_id PRIMARY KEY, kind, penman, formula_map, attachments)``, ``failure(post_id, stage, kind,
message)`` and ``meta``. :func:`build` streams posts through the parser in several processes; it may be killed at any
moment and started again, and then goes on with the posts that are in neither table. ``graphs/exchange.py`` moves
a collection as a plain Penman file.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import traceback
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path

import penman

from graphs import database, mathamr_plus
from graphs.amr.parser import AMRParser, parse_documents
from graphs.corpus.placeholders import extract
from graphs.corpus.post import FormulaRef, PlaceholderText, Post
from graphs.errors import AMRError, Failure, FormulaError, GraphError, StoreError
from graphs.formulas.latex import parse_latex, read_macros
from graphs.formulas.store import FormulaStore
from graphs.formulas.tree import ParsedFormula
from graphs.processes import ordered_map

PURPOSE = "MathAMR+ graphs"
BATCH_SIZE = 64  # posts a worker parses at once, and the posts a kill can cost each worker

SCHEMA = """
CREATE TABLE IF NOT EXISTS graph(
    post_id TEXT PRIMARY KEY, kind TEXT NOT NULL, penman TEXT NOT NULL,
    formula_map TEXT NOT NULL, attachments TEXT NOT NULL
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS failure(
    post_id TEXT NOT NULL, stage TEXT NOT NULL, kind TEXT NOT NULL, message TEXT NOT NULL
);
CREATE INDEX IF NOT EXISTS failure_post ON failure(post_id);
"""


@dataclass(frozen=True, slots=True)
class StoredGraph:
    """One row of the collection: ``kind`` is question, answer or topic."""

    post_id: str
    kind: str
    penman: str
    formula_map: dict[str, str]
    attachments: dict[str, str]

    def decode(self) -> mathamr_plus.DocumentGraph:
        """The graph as arrays."""
        return mathamr_plus.decode(self.penman, self.formula_map)


@dataclass(frozen=True, slots=True)
class ParserFactory:
    """Makes the parser in each worker process: ``factory`` is importable, ``options`` its keyword arguments."""

    factory: Callable[..., AMRParser]
    options: dict[str, object] = field(default_factory=dict)

    def __call__(self) -> AMRParser:
        return self.factory(**self.options)


@dataclass(frozen=True, slots=True)
class BuildSummary:
    """What a collection holds: graphs, failures by (stage, kind), formulas, and how these are attached."""

    graphs: int
    failures: dict[tuple[str, str], int]
    formulas: int
    attachments: dict[str, int]


class FormulaTrees:
    """The trees of formulas: from formulas.db where it has them, else made from the LaTeX in process."""

    def __init__(self, formulas_db: str | os.PathLike[str] | None = None) -> None:
        self._store = None if formulas_db is None else FormulaStore.open(formulas_db)
        self._parsed: dict[str, ParsedFormula] = {}  # short formulas such as ``n`` occur thousands of times

    def of(self, formulas: Sequence[FormulaRef]) -> list[ParsedFormula]:
        """Both trees of each formula of a post; where the store lacks one of them, the LaTeX supplies it.

        Macros that one formula of the post defines hold in all of them, as they do where posts are rendered.
        """
        stored = {} if self._store is None else self._store.get_many([f.formula_id for f in formulas])
        macros = read_macros("\n".join(formula.latex for formula in formulas))
        trees = []
        for formula in formulas:
            known = stored.get(formula.formula_id)
            if known is None or known.slt is None or known.opt is None:
                parsed = parse_latex(formula.latex, macros) if macros else self._from_latex(formula.latex)
                known = parsed if known is None else ParsedFormula(known.slt or parsed.slt, known.opt or parsed.opt)
            trees.append(known)
        return trees

    def _from_latex(self, latex: str) -> ParsedFormula:
        if (known := self._parsed.get(latex)) is not None:
            return known
        parsed = parse_latex(latex)
        if len(latex) <= 64 and len(self._parsed) < 50_000:
            self._parsed[latex] = parsed
        return parsed


def build(
    path: str | os.PathLike[str],
    posts: Iterable[Post | Failure],
    parser: ParserFactory,
    *,
    source: str,
    formulas_db: str | os.PathLike[str] | None = None,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> BuildSummary:
    """Make the graph of every post that ``path`` does not hold yet.

    Args:
        posts: the collection, streamed; failures of reading are kept as records.
        parser: makes the AMR parser of each worker process.
        source: identifies the collection (its fingerprint); going on with another one is refused.
        formulas_db: trees of the formulas by id; formulas it lacks are parsed from their LaTeX.
        workers: processes that parse, beside the one that reads and writes.
        progress: called with the number of posts done since the last call.

    Raises:
        StoreError: when another process writes to the file, or it was begun from another collection or parser.
    """
    with database.writer(path, SCHEMA, purpose=PURPOSE) as connection:
        continue_only(connection, path, {"source": source})
        batches = _pending_batches(connection, posts, progress or (lambda count: None))
        results = ordered_map(_GraphMaker, (parser, formulas_db), batches, workers=workers, give_up=_worker_died)
        for made in results:
            continue_only(connection, path, {"parser": made.parser})
            connection.executemany(
                "INSERT OR REPLACE INTO graph VALUES (?, ?, ?, ?, ?)",
                [
                    (g.post_id, g.kind, g.penman, json.dumps(g.formula_map), json.dumps(g.attachments))
                    for g in made.graphs
                ],
            )
            connection.executemany(
                "INSERT INTO failure VALUES (?, ?, ?, ?)",
                [(f.post_id, f.stage, f.kind, f.message) for f in made.failures],
            )
            connection.commit()
            if progress is not None:
                progress(made.posts)
    return summarize(path)


@dataclass(slots=True)
class _Made:
    """What became of one batch of posts."""

    parser: str
    posts: int
    graphs: list[StoredGraph] = field(default_factory=list)
    failures: list[Failure] = field(default_factory=list)


class _GraphMaker:
    """Lives in a worker process: posts -> rows of the collection."""

    def __init__(self, parser: ParserFactory, formulas_db: str | os.PathLike[str] | None) -> None:
        self._parser = parser()
        self._trees = FormulaTrees(formulas_db)
        self._name = " ".join((self._parser.name, self._parser.version, self._parser.model))

    def __call__(self, posts: list[Post | Failure]) -> _Made:
        made = _Made(self._name, len(posts))
        texts: list[tuple[Post, PlaceholderText]] = []
        for post in posts:
            if isinstance(post, Failure):
                made.failures.append(post)
                continue
            text = extract(post)
            if text.sentences or text.formulas:
                texts.append((post, text))
            else:
                made.failures.append(Failure(post.post_id, "read", "empty", "the post has neither words nor formulas"))
        parsed = parse_documents(self._parser, [(post.post_id, text.sentences) for post, text in texts])
        for (post, text), amr in zip(texts, parsed, strict=True):
            if isinstance(amr, Failure):
                made.failures.append(amr)
                if not text.formulas:
                    continue
                graph = _penman_of_nothing()
            else:
                made.failures.extend(amr.failures)
                graph = amr.graph
            try:
                full = mathamr_plus.build(graph, text.formulas, self._trees.of(text.formulas))
            except (GraphError, AMRError, FormulaError) as error:
                kind = getattr(error, "kind", "round_trip")
                made.failures.append(Failure(post.post_id, "graph", kind, str(error)))
                continue
            except Exception as error:  # noqa: BLE001 - our own mistake on one post of millions is a record, too
                message = "".join(traceback.format_exception(error))
                made.failures.append(Failure(post.post_id, "graph", f"bug: {type(error).__name__}", message))
                continue
            made.graphs.append(StoredGraph(post.post_id, post.kind, full.penman, full.formula_map, full.attachments))
        return made


def _penman_of_nothing() -> penman.Graph:
    """The graph of a post whose text no parser could read: its formulas still hang from this root."""
    return penman.Graph([("a", ":instance", "amr-empty")], top="a")


def _worker_died(posts: list[Post | Failure]) -> _Made:
    """The result for a batch that takes its process down with it."""
    failures = [p if isinstance(p, Failure) else Failure(p.post_id, "amr", "worker_died", _DIED) for p in posts]
    return _Made("", len(posts), failures=failures)


_DIED = "the process that parsed this post died, out of memory perhaps; delete this record and build again to retry"


def _pending_batches(
    connection: sqlite3.Connection, posts: Iterable[Post | Failure], skipped: Callable[[int], None]
) -> Iterator[list[Post | Failure]]:
    """Batches of the posts that are in neither table; ``skipped`` hears how many others went by."""
    stream = iter(posts)
    while batch := list(islice(stream, BATCH_SIZE)):
        ids = [post.post_id for post in batch]
        marks = ",".join("?" * len(ids))
        done = {
            row[0]
            for table in ("graph", "failure")
            for row in connection.execute(f"SELECT post_id FROM {table} WHERE post_id IN ({marks})", ids)
        }
        pending = [post for post in batch if post.post_id not in done]
        if len(pending) < len(batch):
            skipped(len(batch) - len(pending))
        if pending:
            yield pending


def continue_only(connection: sqlite3.Connection, path: str | os.PathLike[str], wanted: dict[str, str]) -> None:
    """Refuse to go on with a file that was begun from something else."""
    meta = database.read_meta(connection)
    for key, value in wanted.items():
        if value and meta.setdefault(key, value) != value:
            message = f"begun with {key} {meta[key]!r}, now asked to go on with {value!r}; build into another file"
            raise StoreError(message, path=path)
    database.write_meta(connection, **{key: value for key, value in wanted.items() if value})


class Collection:
    """Reads collection.db. Iteration is in the order of post ids; nothing is held in memory."""

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path)
        self._connection = database.connect_read_only(path, purpose=PURPOSE)

    def __enter__(self) -> Collection:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def __len__(self) -> int:
        return int(self._connection.execute("SELECT count(*) FROM graph").fetchone()[0])

    @property
    def meta(self) -> dict[str, object]:
        """Where the collection comes from: source, parser."""
        return database.read_meta(self._connection)

    def get(self, post_id: str) -> StoredGraph:
        """The graph of one post.

        Raises:
            StoreError: when the collection has none, with the reason where there is one.
        """
        row = self._connection.execute(f"SELECT {_COLUMNS} FROM graph WHERE post_id = ?", (post_id,)).fetchone()
        if row is None:
            reason = self._connection.execute("SELECT message FROM failure WHERE post_id = ?", (post_id,)).fetchone()
            why = f": {reason[0]}" if reason else " and no record of a failure: is the id right?"
            raise StoreError(f"no graph of post {post_id}{why}", path=self.path)
        return _stored(row)

    def post_ids(self, *kinds: str) -> list[str]:
        """Ids of the posts that have a graph; of some kinds only, where they are given."""
        where = f" WHERE kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        return [row[0] for row in self._connection.execute(f"SELECT post_id FROM graph{where} ORDER BY post_id", kinds)]

    def __iter__(self) -> Iterator[StoredGraph]:
        for row in self._connection.execute(f"SELECT {_COLUMNS} FROM graph ORDER BY post_id"):
            yield _stored(row)

    def rows(self, *kinds: str) -> Iterator[tuple[str, str, str]]:
        """``(post id, Penman text, formula map as JSON)`` of every graph (of some kinds), undecoded."""
        where = f" WHERE kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT post_id, penman, formula_map FROM graph{where} ORDER BY post_id"
        yield from self._connection.execute(query, kinds)

    def failures(self) -> Iterator[Failure]:
        """Every record of a failure."""
        for row in self._connection.execute("SELECT post_id, stage, kind, message FROM failure ORDER BY post_id"):
            yield Failure(*row)

    def fingerprint(self) -> str:
        """Identifies the content: changes when a graph is added, removed or changed."""
        digest = hashlib.sha256()
        for row in self._connection.execute("SELECT post_id, penman FROM graph ORDER BY post_id"):
            digest.update("\0".join(row).encode())
        return digest.hexdigest()[:16]


_COLUMNS = "post_id, kind, penman, formula_map, attachments"
INSERT_GRAPH = f"INSERT OR REPLACE INTO graph({_COLUMNS}) VALUES (?, ?, ?, ?, ?)"


def row_of(graph: StoredGraph) -> tuple[str, str, str, str, str]:
    """The values of :data:`INSERT_GRAPH`."""
    return graph.post_id, graph.kind, graph.penman, json.dumps(graph.formula_map), json.dumps(graph.attachments)


def _stored(row: tuple[str, str, str, str, str]) -> StoredGraph:
    return StoredGraph(row[0], row[1], row[2], json.loads(row[3]), json.loads(row[4]))


def summarize(path: str | os.PathLike[str]) -> BuildSummary:
    """Count what is in the file."""
    with Collection(path) as collection:
        attachments: Counter[str] = Counter()
        graphs = 0
        for graph in collection:
            graphs += 1
            attachments.update(graph.attachments.values())
        failures = Counter((f.stage, f.kind) for f in collection.failures())
    return BuildSummary(graphs, dict(failures), attachments.total(), dict(attachments))
