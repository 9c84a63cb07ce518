r"""Collections in the form of BEIR and MTEB: ``corpus.jsonl``, ``queries.jsonl`` and judgments of each split.

>>> import tempfile
>>> root = Path(tempfile.mkdtemp())
>>> (root / "qrels").mkdir()
>>> for name, text in {
...     "corpus.jsonl": '{"_id": "1", "title": "Parity", "text": "An odd number is $2k+1$."}',
...     "queries.jsonl": '{"_id": "1", "text": "Is $3$ odd?"}',
...     "qrels/test.tsv": "query-id\tcorpus-id\tscore\n1\t1\t1",
... }.items():
...     _ = (root / name).write_text(text + "\n")
>>> beir = open_beir(root)
>>> [(post.post_id, post.kind, post.title) for post in beir.posts()]
[('1', 'answer', 'Parity')]
>>> [(topic.topic_id, topic.post.body) for topic in beir.topics(1)], beir.judgments(1)
([('1', 'Is $3$ odd?')], [Judgment(topic_id='1', doc_id='1', grade=1)])

Judgments are ``qrels/SPLIT.tsv`` (with a header line or without, three columns or TREC's four), ``qrels/SPLIT.jsonl``,
or ``qrels.tsv``. Any file may be packed with gzip. Training pairs are the relevant documents of ``qrels/train``.

Several benchmarks may share a corpus, as in ``corpus.jsonl``, ``easy/queries.jsonl``, ``easy/qrels/test.tsv``. Then the
root is a :class:`BeirSuite`, whose tests have the names of the folders; each folder alone is a :class:`Beir`.
"""

from __future__ import annotations

import hashlib
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from graphs.corpus.accepted import Posts
from graphs.corpus.files import Fingerprints, file_in, hash_files, open_packed
from graphs.corpus.jsonl import MAX_LINE, post_from, read_lines, taken
from graphs.corpus.post import Judgment, Pair, Post
from graphs.corpus.qrels import Row, grade_of, judgments_of
from graphs.corpus.queries.collection import HeldOut, QueryCollection
from graphs.errors import ConfigError, CorpusError, Failure

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*")
_TEST = re.compile(r"[A-Za-z][A-Za-z0-9_-]*")
_QUERY_KEYS = ("query-id", "query_id", "qid", "topic")
_DOCUMENT_KEYS = ("corpus-id", "corpus_id", "doc-id", "doc_id", "docid", "document")
_GRADE_KEYS = ("score", "relevance", "grade", "label", "rel")


def open_beir(root: Path, split: str = "test", relevant: int | None = None) -> Beir | BeirSuite:
    """Return the collection in folder ``root``: one benchmark, or several that share its corpus.

    Args:
        root: folder of a benchmark, or of the folders of several.
        split: judgments to test on.
        relevant: lowest grade of a training pair.

    Raises:
        ConfigError: ``split`` is no name of a file.
        CorpusError: ``root`` holds no such collection, or lacks the split.
    """
    if not _NAME.fullmatch(split):
        raise ConfigError(f"data.split={split!r} names a file of judgments; use letters, digits and . _ - only")
    if _splits(root):
        return Beir(root, split, relevant=relevant)
    folders = [path for path in sorted(root.iterdir()) if path.is_dir() and path.name != "qrels" and _splits(path)]
    if not folders:
        raise CorpusError("no judgments here: qrels/SPLIT.tsv, qrels/SPLIT.jsonl or qrels.tsv", path=root)
    if own := [path.name for path in folders if file_in(path, "corpus.jsonl") is not None]:
        raise CorpusError(f"{own[0]} has its own corpus; open it alone: data.root={root / own[0]}", path=root)
    return BeirSuite(root, folders, split, relevant=relevant)


class Beir(QueryCollection):
    """Benchmark in folder ``root``; corpus and queries may be in the folder above."""

    name = "beir"

    def __init__(self, root: Path, split: str = "test", *, relevant: int | None = None, test: str = "") -> None:
        super().__init__(relevant=relevant, test=test)
        self.root, self.split = root, split
        self.corpus_file = self._here_or_above("corpus.jsonl")
        self._queries_file = self._here_or_above("queries.jsonl")
        self._judgments_file = _splits(root).get(split)
        if self._judgments_file is None and list(_splits(root)) == [""] and split == "test":
            self._judgments_file = _splits(root)[""]
        if self._judgments_file is None:
            known = ", ".join(sorted(filter(None, _splits(root)))) or "qrels.tsv, which is data.split=test"
            raise CorpusError(f"no judgments of data.split={split} here; choose from: {known}", path=root)
        self._training_file = _splits(root).get("train") if split != "train" else None

    def documents(self) -> Iterator[Post | Failure]:
        """Iterate over the lines of ``corpus.jsonl``."""
        return _posts(self.corpus_file, "answer")

    def queries(self) -> Iterator[Post | Failure]:
        """Iterate over the lines of ``queries.jsonl``."""
        return _posts(self._queries_file, "topic")

    def read_judgments(self, *, training: bool) -> list[Judgment]:
        """Return the judgments of the split, or those of the split ``train``."""
        file = self._training_file if training else self._judgments_file
        return [] if file is None else read_judgments(file)

    def fingerprints(self) -> Fingerprints:
        return self._fingerprints

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        assert self._judgments_file is not None
        inside = self.root in self.corpus_file.parents and self.root in self._queries_file.parents
        base = self.root if inside else self.root.parent
        documents, learned = hash_files(base, [self.corpus_file]), self.learned_hash()
        return Fingerprints(
            posts=_digest([documents, learned]) if learned else documents,
            topics=self.topics_hash(),
            judgments=hash_files(base, [self._judgments_file]),
        )

    def _here_or_above(self, name: str) -> Path:
        found = file_in(self.root, name) or file_in(self.root.parent, name)
        if found is None:
            raise CorpusError(f"no {name} (or {name}.gz) here or in the folder above", path=self.root)
        return found


class BeirSuite:
    """Benchmarks in ``folders`` that share the corpus in ``root``; each is a test by the name of its folder."""

    name = "beir"

    def __init__(self, root: Path, folders: Sequence[Path], split: str, *, relevant: int | None = None) -> None:
        self.root = root
        for folder in folders:
            if not _TEST.fullmatch(folder.name):
                raise CorpusError("names a test: use a letter first, then letters, digits, _ and -", path=folder)
        self._tests = {folder.name: Beir(folder, split, relevant=relevant, test=folder.name) for folder in folders}

    def posts(self) -> Iterator[Post | Failure]:
        """Iterate over the shared documents, then the training queries of each benchmark."""
        yield from next(iter(self._tests.values())).documents()
        for test in self._tests.values():
            yield from test.training_queries()

    def pairs(self) -> Iterator[Pair]:
        """Iterate over the training pairs of each benchmark."""
        return self.pairs_of(self.posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        for test in self._tests.values():
            yield from test.pairs_of(posts)

    def tests(self) -> tuple[str, ...]:
        """Return the names of the folders, in the order of the alphabet."""
        return tuple(self._tests)

    def test(self, name: str) -> HeldOut:
        """Return the queries and judgments of the folder ``name``; all documents are searched."""
        if name not in self._tests:
            raise ConfigError(
                f"experiment.tasks: {name!r} is no test of {self.root}; known are {', '.join(self._tests)}"
            )
        test = self._tests[name]
        return HeldOut(test.topics(1), test.judgments(1))

    def formulas(self) -> None:
        return

    def fingerprints(self) -> Fingerprints:
        parts = [test.fingerprints() for test in self._tests.values()]
        return Fingerprints(
            posts=_digest([part.posts for part in parts]),
            topics=_digest([part.topics for part in parts]),
            judgments=_digest([part.judgments for part in parts]),
        )


def read_judgments(path: Path) -> list[Judgment]:
    """Read a file of judgments, ``.tsv`` or ``.jsonl``, packed or not.

    Raises:
        CorpusError: with the line, for a line of another form, a grade that is no whole number, or two grades for one
            document of one query.
    """
    is_json = path.name.removesuffix(".gz").endswith(".jsonl")
    return judgments_of(_json_rows(path) if is_json else _table_rows(path), path)


def _json_rows(path: Path) -> Iterator[Row]:
    for line, record in read_lines(path):
        if isinstance(record, Failure):
            raise CorpusError(record.message)
        query, document, grade = (
            _column(record, keys, path, line) for keys in (_QUERY_KEYS, _DOCUMENT_KEYS, _GRADE_KEYS)
        )
        yield line, query, document, grade


def _column(fields: Mapping[str, Any], keys: Sequence[str], path: Path, line: int) -> str:
    """Return the value under the first of ``keys`` that is there, as text."""
    for key in keys:
        if isinstance(value := fields.get(key), str | int | float) and not isinstance(value, bool):
            return str(value)
    raise CorpusError(f"no {keys[0]}; a line has query-id, corpus-id and score", path=path, line=line)


def _table_rows(path: Path) -> Iterator[Row]:
    """Yield the rows with query, document and grade; a header line may change the order of columns."""
    order: list[int] | None = None
    line = 0
    try:
        with open_packed(path) as file:
            while raw := file.readline(MAX_LINE):
                line += 1
                try:
                    text = raw.decode("utf-8-sig").rstrip("\r\n")
                except UnicodeDecodeError as error:
                    raise CorpusError(f"is not UTF-8 text: {error}", path=path, line=line) from error
                columns = [part.strip() for part in text.split("\t")] if "\t" in text else text.split()
                if not any(columns):
                    continue
                if order is None:
                    order = _order(columns)
                    if order is not None:
                        continue
                    order = [0, 2, 3] if len(columns) == 4 else [0, 1, 2]
                if len(columns) <= max(order) or not all(columns[place] for place in order):
                    raise CorpusError(
                        f"{len(columns)} columns; a line has query-id, corpus-id and score", path=path, line=line
                    )
                yield line, columns[order[0]], columns[order[1]], columns[order[2]]
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"cannot be read: {error}; is the file complete?", path=path, line=line + 1) from error


def _order(header: Sequence[str]) -> list[int] | None:
    """Return the places of query, document and grade in a header line; ``None`` for a line that is no header."""
    names = [name.lower() for name in header]
    if len(names) < 3 or grade_of(names[-1]) is not None:
        return None
    places = [
        next((place for place, name in enumerate(names) if name in keys), -1)
        for keys in (_QUERY_KEYS, _DOCUMENT_KEYS, _GRADE_KEYS)
    ]
    return None if -1 in places else places


def _posts(path: Path, kind: str) -> Iterator[Post | Failure]:
    """Yield the lines of ``corpus.jsonl`` or ``queries.jsonl`` as posts."""
    for line, record in read_lines(path):
        if isinstance(record, Failure):
            yield record
            continue
        about = record.get("metadata")
        markup = about.get("markup") if isinstance(about, dict) else None
        fields = {
            "post_id": record.get("_id", record.get("id")),
            "kind": kind,
            "title": record.get("title"),
            "body": record.get("text"),
            "markup": markup if markup in ("html", "text") else None,
        }
        try:
            post = post_from(fields)
        except CorpusError as error:
            message = error.message.replace("post_id", "_id").replace("body", "text")
            yield Failure("", "read", "bad_post", f"{path}:{line}: {message}")
            continue
        yield (taken(post, path, line) if kind == "answer" else None) or post


def _digest(hashes: Sequence[str]) -> str:
    return hashlib.sha256("\0".join(hashes).encode()).hexdigest()


def _splits(folder: Path) -> dict[str, Path]:
    """Return the files of judgments in a folder by their splits; that of ``qrels.tsv`` is ""."""
    splits: dict[str, Path] = {}
    for parent, pattern in ((folder / "qrels", "*"), (folder, "qrels.*")):
        for path in sorted(parent.glob(pattern)):
            match = re.fullmatch(r"(.+?)\.(?:tsv|jsonl)(?:\.gz)?", path.name)
            if match is None or not path.is_file():
                continue
            split = match[1] if parent != folder else ""
            if split in splits:
                raise CorpusError(f"both {splits[split].name} and {path.name} are here; keep one", path=path.parent)
            splits[split] = path
    return splits
