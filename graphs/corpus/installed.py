"""Collections of other packages, which an entry point names:

    [project.entry-points."mathamr.collections"]
    faq = "mathamr_faq:Faq"

>>> opener("faq")  # no package has it

The value is called with the folder of ``data.root``, or None, and gives a collection
(:class:`graphs.corpus.corpus.Documents`). It is imported when it is first used, because an entry point runs code of an
installed package, as an import does. Its records are checked as they are read, and its fingerprints depend on its code
(:meth:`Opener.checked`).
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Container, Iterable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, TypeVar, get_args

from graphs import digests
from graphs.corpus.files import Fingerprints
from graphs.corpus.post import Judgment, Markup, Pair, Post, PostKind, Topic, is_id
from graphs.errors import ConfigError, CorpusError, Failure
from graphs.extensions import COLLECTIONS, code_identity, described, loaded, named, points

Found = TypeVar("Found")
_KINDS = [kind for kind in get_args(PostKind) if kind != "topic"]
_TEXTS = {
    Post: ("post_id", "kind", "title", "body", "markup", "formula_prefix"),
    Topic: ("topic_id",),
    Judgment: ("topic_id", "doc_id"),
    Pair: ("question_id", "answer_id"),
}
_IN_RUNS = ("topic_id", "doc_id")
"""Ids that run files hold, beside those of answers; others may have blanks (:mod:`graphs.corpus.record_ids`)."""
_POSTS, _LISTS = ("posts", "posts_as_read", "completed"), {"topics": Topic, "judgments": Judgment}
_DOCUMENTS, _BENCHMARK = ("name", "posts", "formulas", "fingerprints"), ("tasks", *_LISTS)
_FURTHER = ("is_incomplete", "links", "related", "tests", "test")  # members of the other protocols
_CHECKED: dict[str, type] = dict.fromkeys(_POSTS, Post) | dict.fromkeys(("pairs", "pairs_of"), Pair) | _LISTS


@dataclass(frozen=True)
class Opener:
    """Class or function of a package that opens a collection.

    Attributes:
        place: the collection, its package and its entry point, for messages.
        open: takes the folder of ``data.root``, or None.
        code: identity of its code (:func:`graphs.extensions.code_identity`).
    """

    place: str
    open: Callable[[Path | None], object]
    code: str

    def __call__(self, folder: Path | None) -> object:
        """Open the collection.

        Raises:
            ConfigError: it needs a folder, and none is given.
        """
        try:
            return self.open(folder)
        except (TypeError, AttributeError) as error:
            if folder is not None:
                raise
            raise ConfigError(
                f"{self.place} cannot be opened without a folder: {type(error).__name__}: {error}; give data.root=..."
            ) from error

    def checked(self, corpus: Found) -> Found:
        """Let a collection check its records, and its fingerprints depend on the code of the package; return it.

        Raises:
            ConfigError: its class has ``__slots__``.
        """
        try:
            known = vars(corpus)
        except TypeError:
            raise ConfigError(
                f"{self.place}: its class has __slots__, so its records cannot be checked; leave them out"
            ) from None
        for name in ("fingerprints", *_CHECKED):
            if name not in known and hasattr(corpus, name):  # a collection may be opened twice
                object.__setattr__(corpus, name, partial(self._checked, name, getattr(corpus, name)))
        # Since Python 3.12, a protocol does not see what ``__getattr__`` gives.
        for name in (*_DOCUMENTS, *_BENCHMARK, *_FURTHER):
            if inspect.getattr_static(corpus, name, None) is None and hasattr(corpus, name):
                object.__setattr__(corpus, name, getattr(corpus, name))
        return corpus

    def _checked(self, name: str, method: Callable[..., Any], /, *given: Any, **named: Any) -> Any:
        """Call the method ``name`` of a collection, and check its result."""
        found = method(*given, **named)
        if name == "fingerprints":
            return self.with_code(found)
        records = self.records(found, name)
        return list(records) if name in _LISTS else records

    def with_code(self, found: object) -> Fingerprints:
        """Return fingerprints that depend on the code, too."""
        if not isinstance(found, Fingerprints):
            raise CorpusError(
                f"{self.place}: fingerprints() returned {type(found).__name__}; return graphs.corpus.files.Fingerprints"
            )
        posts, topics, judgments = (
            digests.of_json([part, self.code]) for part in (found.posts, found.topics, found.judgments)
        )
        return replace(found, posts=posts, topics=topics, judgments=judgments)

    def records(self, found: object, name: str) -> Iterator[Any]:
        """Yield the records that the method ``name`` has returned, checked; of an answer with a bad id, a failure."""
        expected = _CHECKED[name]
        what = f"{self.place}: {name}() gives"
        if not isinstance(found, Iterable):
            raise CorpusError(f"{what} {type(found).__name__}; give records of the class {expected.__name__}")
        for one in found:
            if not (isinstance(one, Failure) and name in _POSTS):
                if not isinstance(one, expected):
                    raise CorpusError(f"{what} {str(one)[:80]!r}; give records of the class {expected.__name__}")
                problem = _problem(one) or (_problem(one.post) if isinstance(one, Topic) else "")
                if not problem and isinstance(one, Post) and one.kind not in _KINDS:
                    problem = f"kind is {one.kind!r}; give one of {', '.join(_KINDS)}"
                if problem:
                    raise CorpusError(f"{what} {str(one)[:80]} ..., whose {problem}")
                if isinstance(one, Post) and one.kind == "answer" and not is_id(one.post_id):
                    message = f"{what} an answer with the id {one.post_id[:80]!r}; give a printable one without blanks"
                    one = Failure("", "read", "bad_id", message)
            yield one


def _problem(record: Any) -> str:
    """Return the first field of a record that has a wrong type or value, and a right one; "" without one."""
    for field in _TEXTS.get(type(record), ()):
        if not isinstance(value := getattr(record, field), str):
            return f"{field} is {value!r}; give a string"
        if field in _IN_RUNS and not is_id(value):
            return f"{field} is {value!r}; give a printable string without blanks"
    if isinstance(record, Post) and record.markup not in get_args(Markup):
        return f"markup is {record.markup!r}; give one of {', '.join(get_args(Markup))}"
    if isinstance(record, Post) and not isinstance(record.parent_id, str | None):
        return f"parent_id is {record.parent_id!r}; give a string or None"
    if isinstance(record, Judgment) and not isinstance(record.grade, int):
        return f"grade is {record.grade!r}; give a whole number"
    if isinstance(record, Topic) and not isinstance(record.post, Post):
        return f"post is {record.post!r}; give a Post"
    return ""


def check_members(corpus: object, name: str, place: str, built_in: Iterable[str]) -> None:
    """Check the name of a collection, and that it has the members of Documents, and all or none of Benchmark.

    Args:
        name: name of its entry point.
        place: words that name it in messages.
        built_in: names of built-in forms, which a collection may keep: a package can open a folder with their classes.

    Raises:
        ConfigError: another name, or a missing member, e.g. a misspelt one.
    """
    judged = any(_has(corpus, member, place) for member in _BENCHMARK)
    wanted = [*_DOCUMENTS, *(_BENCHMARK if judged else ())]
    if lacking := [member for member in wanted if not _has(corpus, member, place)]:
        raise ConfigError(f"{place} lacks {', '.join(lacking)}; write them as graphs/corpus/corpus.py describes")
    if (own := getattr(corpus, "name", None)) not in {name, *built_in}:
        raise ConfigError(f"{place} has the name {own!r}; write name = {name!r}, as the entry point has it")


def _has(corpus: object, member: str, place: str) -> bool:
    """Return whether a collection has a member; raise ConfigError if it has one that fails, e.g. a property."""
    try:
        getattr(corpus, member)
    except AttributeError as error:
        missing = object()
        if inspect.getattr_static(corpus, member, missing) is missing:
            return False
        raise ConfigError(f"{place} cannot give {member}: AttributeError: {error}; mend the package") from error
    return True


def names() -> list[str]:
    """Return the names of the collections that installed packages have."""
    return sorted({point.name for point in points(COLLECTIONS)})


def opener(name: str, built_in: Container[str] = ()) -> Opener | None:
    """Return what opens the collection ``name``; None where no package has it.

    Raises:
        ConfigError: two packages have it, or a package and ``built_in``, or the package cannot be imported.
    """
    if (point := named(COLLECTIONS, name, built_in)) is None:
        return None
    place = described("collection", point)
    opener = loaded(point, place)
    if not callable(opener):
        raise ConfigError(f"{place} is not a class or a function")
    return Opener(place, opener, code_identity(opener, point))
