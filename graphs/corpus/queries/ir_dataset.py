"""Collections of the package ir_datasets, by their ids: ``data=ir_datasets data.id=beir/scifact/test``.

    corpus = IrDataset("beir/scifact/test")
    next(corpus.posts())                    # Post(post_id='4983', kind='answer', title='Microstructural ...', ...)

Documents and queries are read as the package delivers them: a field ``title`` becomes the title, the text is that of
``text``, ``body`` or a similar field, else what the package calls the default text. Training pairs are those of the
sibling ``.../train``, where the package has one with the same documents.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cached_property
from itertools import chain, islice
from pathlib import Path
from typing import Any

from graphs.corpus.files import Fingerprints
from graphs.corpus.jsonl import post_from, taken
from graphs.corpus.post import Judgment, Post
from graphs.corpus.qrels import judgments_of
from graphs.corpus.queries.collection import QueryCollection, hash_of
from graphs.errors import ConfigError, CorpusError, Failure

_BODIES = ("text", "body", "abstract", "contents", "content", "passage", "query")
#: Documents whose content is in the fingerprint: published data sets do not change, and some have millions.
HASHED = 100_000


class IrDataset(QueryCollection):
    """Data set ``dataset_id``, with documents, queries and judgments.

    Raises:
        ConfigError: the package is missing, or knows no such data set.
        CorpusError: the data set has no documents, queries or judgments.
    """

    name = "ir_datasets"

    def __init__(self, dataset_id: str, *, relevant: int | None = None) -> None:
        super().__init__(relevant=relevant)
        self.dataset_id = dataset_id
        self._dataset = _load(dataset_id)
        for part in ("docs", "queries", "qrels"):
            if not getattr(self._dataset, f"has_{part}")():
                raise CorpusError(
                    f"data.id={dataset_id} has no {part}; choose a data set with docs, queries and qrels, e.g. "
                    "beir/scifact/test"
                )

    def documents(self) -> Iterator[Post | Failure]:
        return self._posts(lambda: self._dataset.docs_iter(), "answer")

    def queries(self) -> Iterator[Post | Failure]:
        """Iterate over the queries of this data set, then over those of its sibling ``train``."""
        yield from self._posts(lambda: self._dataset.queries_iter(), "topic")
        if self._train is not None:
            train = self._train
            yield from self._posts(lambda: train.queries_iter(), "topic")

    def read_judgments(self, *, training: bool) -> list[Judgment]:
        """Return the judgments of this data set, or those of its sibling ``train``."""
        dataset = self._train if training else self._dataset
        if dataset is None:
            return []
        with self._reading():
            rows = [(n, one.query_id, one.doc_id, str(one.relevance)) for n, one in enumerate(dataset.qrels_iter(), 1)]
        return judgments_of(rows, Path(self.dataset_id))

    def fingerprints(self) -> Fingerprints:
        """Return one hash for each part; of a large collection that of the first :data:`HASHED` documents."""
        return self._fingerprints

    @cached_property
    def _fingerprints(self) -> Fingerprints:
        with self._reading():
            count = self._dataset.docs_count()
        documents = hash_of(chain([count], islice(self.documents(), HASHED)))
        return Fingerprints(
            posts=hashlib.sha256(f"{self.dataset_id}\0{documents}\0{self.learned_hash()}".encode()).hexdigest(),
            topics=self.topics_hash(),
            judgments=hash_of(self._test_judgments),
        )

    @cached_property
    def _train(self) -> Any:
        """Return the sibling with the pairs, or None."""
        stem, _, last = self.dataset_id.rpartition("/")
        if not stem or last == "train":
            return None
        try:
            train = _load(f"{stem}/train")
        except ConfigError:
            return None
        with self._reading():
            same = train.docs_namespace() == self._dataset.docs_namespace()
        return train if same and train.has_queries() and train.has_qrels() else None

    def _posts(self, records: Any, kind: str) -> Iterator[Post | Failure]:
        with self._reading():
            for number, record in enumerate(records(), 1):
                place = Path(f"{self.dataset_id} ({'documents' if kind == 'answer' else 'queries'})")
                try:
                    post = post_from({"kind": kind, **_fields(record)})
                except CorpusError as error:
                    yield Failure("", "read", "bad_post", f"{place}:{number}: {error.message}")
                    continue
                yield (taken(post, place, number) if kind == "answer" else None) or post

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Raise the package's errors about missing or undownloadable files as CorpusError."""
        try:
            yield
        except (OSError, EOFError, ValueError, RuntimeError, KeyError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise CorpusError(f"data.id={self.dataset_id} cannot be read by ir_datasets: {reason}") from error


def _load(dataset_id: str) -> Any:
    try:
        import ir_datasets
    except ImportError as error:
        raise ConfigError("data=ir_datasets needs a package; install it with: pip install -e '.[datasets]'") from error
    try:
        return ir_datasets.load(dataset_id)
    except (KeyError, ValueError) as error:
        raise ConfigError(f"data.id={dataset_id!r} is no data set of ir_datasets {ir_datasets.__version__}") from error


def _fields(record: Any) -> dict[str, Any]:
    """Return id, title and body of a document or query, whatever its type calls them.

    >>> from collections import namedtuple
    >>> Thread = namedtuple("Thread", "doc_id title body tags")
    >>> _fields(Thread("7", "Parity", "Is $3$ odd?", ()))
    {'post_id': '7', 'title': 'Parity', 'body': 'Is $3$ odd?'}
    """
    names = getattr(record, "_fields", ())
    title = getattr(record, "title", None)
    body = next((getattr(record, name) for name in _BODIES if name in names), None)
    if body is None and not title and hasattr(record, "default_text"):
        body = record.default_text()
    return {"post_id": record.doc_id if "doc_id" in names else record.query_id, "title": title, "body": body}
