"""Interfaces of collections, and a function that opens a collection by its name.

>>> corpus = open_corpus("mathdocs")
>>> corpus.name
'mathdocs'
>>> open_corpus("arqmath")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: data.root is missing: collection 'arqmath' needs the folder it lies in, e.g. data.root=...

Each collection is a :class:`Documents`: it has posts (the answers are searched) and, if they are published, files with
the trees of its formulas. It can also be a :class:`Benchmark`, with topics (the queries) and judgments (the qrels), and
have :class:`TrainingPairs`:

>>> isinstance(corpus, Benchmark), isinstance(corpus, TrainingPairs)
(True, True)
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Protocol, cast, runtime_checkable

from graphs.corpus import forms, installed
from graphs.corpus.accepted import Posts
from graphs.corpus.arqmath import ArqMath
from graphs.corpus.arqmath.judgments import JudgmentSet
from graphs.corpus.files import Fingerprints, FormulaFiles
from graphs.corpus.jsonl import JsonLines
from graphs.corpus.mathdocs.collection import MathDocs
from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.corpus.pair_sets.pair_posts import Problems, Titles
from graphs.corpus.post import Judgment, Pair, Post, Topic
from graphs.corpus.queries.beir import open_beir
from graphs.corpus.queries.collection import NamedTests
from graphs.corpus.queries.ir_dataset import IrDataset
from graphs.errors import ConfigError, CorpusError, Failure

#: The collections that :func:`open_corpus` knows, and whether they need a folder.
NAMES = {
    "arqmath": True,
    "beir": True,
    "ir_datasets": False,
    "jsonl": True,
    "mathdocs": False,
    "pairs": True,
    "problems": True,
    "titles": True,
}
OFFICIAL = "official"
_PUBLISHED = frozenset(("arqmath", "mathdocs"))


@runtime_checkable
class Documents(Protocol):
    """A collection of posts for training and search. Posts are read one at a time, so they need not fit in memory."""

    @property
    def name(self) -> str: ...

    def posts(self) -> Iterator[Post | Failure]:
        """Yield questions and answers in a fixed order; a :class:`Failure` replaces a post that cannot be read."""

    def formulas(self) -> FormulaFiles | None:
        """Return the location of the published formula trees; ``None``: trees are made from the LaTeX of the posts."""

    def fingerprints(self) -> Fingerprints:
        """Return a hash for each part; hashes depend on the content of files, not on their dates or places."""


Corpus = Documents
"""A collection as :func:`open_corpus` gives it; ``isinstance`` tells which of the other protocols it has."""


@runtime_checkable
class Benchmark(Protocol):
    """A collection with topics and judgments, by task and year.

    A collection whose tests have names is a :class:`graphs.corpus.queries.collection.NamedTests` instead.
    """

    def tasks(self) -> list[int]:
        """Return the tasks that have topics in any year."""

    def topics(self, task: int, years: Sequence[int]) -> list[Topic]:
        """Return the queries of a task (1: answers, 2: formulas). ``years`` is empty for collections without years."""

    def judgments(self, task: int, years: Sequence[int]) -> list[Judgment]:
        """Return the qrels of a task, also for posts outside the collection; documents of Task 2 are visual ids."""


@runtime_checkable
class TrainingPairs(Protocol):
    """A collection with training pairs."""

    def pairs(self) -> Iterator[Pair]:
        """Yield the training pairs, in a fixed order; both posts are in the collection, and neither is a topic."""


@runtime_checkable
class PairsOfPosts(Protocol):
    """A collection whose training pairs follow from its posts."""

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        """Yield the same pairs as ``pairs()``, from all posts of the collection, with or without their texts."""


@runtime_checkable
class Completed(Protocol):
    """A collection whose posts are partly completed from other files, which are read after the posts."""

    def posts_as_read(self) -> Iterator[Post | Failure]:
        """Yield the posts in their order, in one pass; some are incomplete."""

    def is_incomplete(self, post: Post) -> bool:
        """Return whether a post as it was read may lack something."""

    def completed(self, posts: Callable[[], Iterable[Post]]) -> Iterator[Post]:
        """Yield the incomplete ``posts`` in their complete form, as in ``posts()``."""


def benchmark(corpus: Documents) -> Benchmark:
    """Return ``corpus`` as a collection with topics.

    Raises:
        CorpusError: it has no topics, or its tests have names.
    """
    if isinstance(corpus, Benchmark):
        return corpus
    if isinstance(corpus, NamedTests):
        known = ", ".join(corpus.tests())
        raise CorpusError(f"the tests of collection {corpus.name} have names; name one or more of {known}")
    raise CorpusError(f"collection {corpus.name} has no topics: it is learned from, as one of data.sources")


def topics_may_be_posts(corpus: Documents) -> bool:
    """Return whether a topic may be one of the posts. It cannot be in ARQMath and mathdocs, whose topics are separate.

    >>> topics_may_be_posts(MathDocs())
    False
    """
    return corpus.name not in _PUBLISHED


def answers_ask(corpus: Documents) -> bool:
    """Return whether the text of an answer asks a question.

    In the collection ``titles``, an answer is the body of the question; in ``pairs``, documents can be queries.
    """
    return corpus.name in ("titles", "pairs")


def check_ids(corpus: Documents, topics: Iterable[Topic]) -> None:
    """Check that topics with one id have one text: graphs, vectors and exported queries are kept by ids.

    Raises:
        CorpusError: two topics have one id and different texts.
    """
    known: dict[str, tuple[str, str]] = {}
    for topic in topics:
        text = (topic.post.title, topic.post.body)
        if known.setdefault(topic.post.post_id, text) != text:
            raise CorpusError(
                f"two topics of collection {corpus.name} have the id {topic.topic_id!r} and different texts, one of "
                f"them {(text[0] or text[1])[:60]!r}; give each topic another id"
            )


def open_corpus(
    name: str,
    root: str | Path | None = None,
    *,
    judgments: str = OFFICIAL,
    split: str | None = None,
    dataset_id: str | None = None,
    relevant: int | None = None,
) -> Corpus:
    """Open the collection ``name``.

    Args:
        name: one of :data:`NAMES`, or of a package (:mod:`graphs.corpus.installed`).
        root: folder of the collection, for those that need one.
        judgments: edition of the judgments, for collections with several editions (arqmath).
        split: split to test on (beir); ``None``: ``test``.
        dataset_id: id of the data set (ir_datasets).
        relevant: lowest grade of a training pair, for collections that make pairs from judgments (beir, ir_datasets).

    Raises:
        ConfigError: an unknown name, a missing or superfluous root, or an option that the collection does not have.
        CorpusError: the folder is not such a collection; the message names the most similar form.
    """
    installed_opener = installed.opener(name, NAMES)
    if name not in NAMES and installed_opener is None:
        raise ConfigError(f"unknown collection {name!r}; known are {', '.join(sorted([*NAMES, *installed.names()]))}")
    for key, value, of in (
        ("judgments", None if judgments == OFFICIAL else judgments, "arqmath"),
        ("split", split, "beir"),
        ("id", dataset_id, "ir_datasets"),
    ):
        if value is not None and name != of:
            raise ConfigError(f"data.{key}={value}: collection {name!r} has no such choice, only {of!r}; leave it out")
    if installed_opener is not None:
        folder = _folder(root) if root is not None else None
        found = cast(Documents, installed_opener(folder))
        installed.check_members(found, name, installed_opener.place, NAMES)
        return installed_opener.checked(found)
    if not NAMES[name]:
        if root is not None:
            raise ConfigError(
                f"data.root={str(root)!r}: collection {name!r} is read from no folder; leave data.root out, "
                "or name its form, e.g. data=jsonl"
            )
        if name == "ir_datasets":
            if not dataset_id:
                raise ConfigError("data.id is missing: name a data set of ir_datasets, e.g. data.id=beir/scifact/test")
            return IrDataset(dataset_id, relevant=relevant)
        return MathDocs()
    if root is None or not str(root):
        raise ConfigError(f"data.root is missing: collection {name!r} needs the folder it lies in, e.g. data.root=...")
    folder = _folder(root)
    try:
        return _of_folder(name, folder, judgments, split, relevant)
    except CorpusError as error:
        if not (other := forms.hint(folder, name)):
            raise
        joint = f" {other[0].upper()}{other[1:]}" if error.message.endswith((".", "?")) else f"; {other}"
        raise CorpusError(f"{error.message}{joint}", path=error.path, line=error.line) from error


def _of_folder(name: str, folder: Path, judgments: str, split: str | None, relevant: int | None) -> Corpus:
    if name == "beir":
        return open_beir(folder, split or "test", relevant)
    if name == "arqmath":
        return ArqMath(folder, cast(JudgmentSet, judgments))
    kinds: dict[str, Callable[[Path], Corpus]] = {
        "jsonl": JsonLines,
        "pairs": PairCollection,
        "problems": Problems,
        "titles": Titles,
    }
    return kinds[name](folder)


def _folder(root: str | Path) -> Path:
    folder = Path(root)
    if not folder.is_dir():
        raise ConfigError(f"data.root={str(root)!r} is not a folder")
    return folder
