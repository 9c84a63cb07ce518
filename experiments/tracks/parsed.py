"""The graphs of one collection in its folder below ``outputs/shared``: posts -> formula trees -> graphs -> counts.

    parsed = ParsedCollection(corpus, Path("outputs/shared/arqmath-c2cab975a849"), console)
    with parsed.alone():
        parsed.make(config, topics)
    parsed.content("posts")               # 'd3259534cb41c6f2', another one when graphs have changed

The collection that is searched and the sources that are learned from are made alike; of sources there are no topics.
"""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Protocol

from omegaconf import DictConfig

from experiments import parsers
from experiments.outputs import locked, read_json, write_json
from experiments.progress import Console
from graphs import collection, mathamr_plus, vocabulary
from graphs.collection import Collection
from graphs.corpus.files import Fingerprints, FormulaFiles
from graphs.corpus.post import Post
from graphs.errors import Failure
from graphs.formulas import store as formula_store
from graphs.vocabulary import Counts, Row
from graphs.whole_file import write_whole
from mathamr.retrieval import posts as post_texts

POSTS = ("question", "answer")
"""The kinds of graphs that are not topics."""


class Parsable(Protocol):
    """What is asked of a collection here."""

    @property
    def name(self) -> str: ...

    def posts(self) -> Iterator[Post | Failure]: ...

    def formulas(self) -> FormulaFiles | None: ...

    def fingerprints(self) -> Fingerprints: ...


class ParsedCollection:
    """The files of ``corpus`` in ``folder``; of several processes that want the same, one makes it, others wait."""

    def __init__(self, corpus: Parsable, folder: Path, console: Console) -> None:
        self._corpus, self._folder, self._console = corpus, folder, console

    @property
    def folder(self) -> Path:
        """Where the files lie."""
        return self._folder

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Hold the folder."""
        self._folder.mkdir(parents=True, exist_ok=True)
        lock = self._folder / ".lock"
        with locked(lock) as mine:
            if mine:
                yield
                return
        self._console.say(f"  waiting for another process that works in {self._folder}")
        with locked(lock, wait=True):
            yield

    def path(self, config: DictConfig) -> Path:
        """collection.db."""
        return self._folder / f"collection-{parsers.name(config)}.db"

    def make(self, config: DictConfig, topics: Iterable[Post] = ()) -> Path | None:
        """Make the graphs of all posts and of these topics, as far as they are not there; returns formulas.db."""
        formulas, path = self.formulas(config), self.path(config)
        done = path.with_suffix(".done")
        if not (is_done(done, path, self._console) and _is_whole(path)):
            self._add(path, config, self._corpus.posts(), formulas, "posts to graphs", "posts")
            self._list_failures(path)
            done.write_text(graphs_version(), encoding="utf-8")
        with Collection(path) as source:
            known = {*source.post_ids("topic"), *(failure.post_id for failure in source.failures())}
        missing = [post for post_id, post in {post.post_id: post for post in topics}.items() if post_id not in known]
        if missing:
            self._add(path, config, missing, formulas, "topics to graphs", "topics")
            self._list_failures(path)
        return formulas

    def texts(self) -> Path:
        """posts.db: the texts, without formula ids, which depend on the graphs."""
        path = self._folder / "posts.db"
        done = path.with_suffix(".done")
        if not (done.exists() and path.exists()):
            with self._console.stage("texts", unit="posts") as advance:
                post_texts.build(path, self._corpus.posts(), (), advance)
            done.touch()
        return path

    def formulas(self, config: DictConfig) -> Path | None:
        """formulas.db, where the collection publishes trees."""
        files = self._corpus.formulas()
        if files is None:
            return None
        path = self._folder / "formulas.db"
        done = path.with_suffix(".done")
        if not is_done(done, path, self._console):
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
                source=self._corpus.fingerprints().graphs,
                formulas_db=formulas,
                workers=config.workers,
                progress=advance,
            )
        attached = ", ".join(f"{how} {count:,}" for how, count in sorted(summary.attachments.items()))
        self._console.say(f"  {summary.graphs:,} graphs with {summary.formulas:,} formulas ({attached})")
        self._console.failures("posts that failed", summary.failures)

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

    def content(self, config: DictConfig) -> dict[str, str]:
        """Identifies the graphs of the ``posts`` and those of the ``topics``; computed when the file has changed."""
        path = self.path(config)
        status = path.stat()
        kept = path.with_suffix(".content.json")
        stamp = {"size": status.st_size, "mtime_ns": status.st_mtime_ns}
        known = read_json(kept)
        if known is None or any(known.get(key) != value for key, value in stamp.items()):
            with Collection(path) as source:
                known = {
                    **stamp,
                    "posts": _rows_digest(source.rows(*POSTS)),
                    "topics": _rows_digest(source.rows("topic")),
                }
            write_json(kept, known)
        return {key: str(known[key]) for key in ("posts", "topics")}

    def counts(self, config: DictConfig) -> Counts:
        """Label and relation counts over questions and answers; topics stay unseen."""
        content = self.content(config)["posts"]
        path = self._folder / f"counts-{parsers.name(config)}-{config.graph.formulas}-{content[:10]}.json"
        if path.exists():
            return Counts.from_json(path.read_text(encoding="utf-8"))
        with (
            Collection(self.path(config)) as source,
            self._console.stage("vocabulary", total=len(source), unit="graphs") as advance,
        ):
            counts = vocabulary.count(
                source.rows(*POSTS),
                mathamr_plus.decode,
                config.graph.formulas,
                workers=config.workers,
                progress=advance,
            )
        write_whole(path, counts.to_json())
        return counts


def is_done(done: Path, path: Path, console: Console) -> bool:
    """Whether a stage is finished; says so once where another version of the code has made it."""
    if not (done.exists() and path.exists()):
        return False
    if done.read_text(encoding="utf-8") != graphs_version():
        console.once(f"  {path} was made by another version of graphs/; delete {done} and it to make it anew")
    return True


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


def _rows_digest(rows: Iterable[Row]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update("\0".join(row).encode() + b"\1")
    return digest.hexdigest()[:16]
