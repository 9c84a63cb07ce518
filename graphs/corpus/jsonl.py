"""Collections in JSON lines: a folder with ``posts.jsonl`` and, for tests, ``topics.jsonl`` and ``qrels.tsv``.

A line of ``posts.jsonl`` is a post; a line of ``topics.jsonl`` is the same without ``kind`` (in Task 2 with
``formula_id``)::

    {"post_id": "7", "kind": "question", "title": "Is $x$ odd?", "body": "..."}
    {"post_id": "8", "kind": "answer", "body": "<p>...</p>", "markup": "html", "parent_id": "7"}

    >>> post_from({"post_id": "7", "kind": "question", "title": "Is $x$ odd?"}).title
    'Is $x$ odd?'

Keys: ``post_id`` and ``kind`` (question, answer) are required; ``title``, ``body``, ``markup`` (html, text), ``tags``,
``parent_id``, ``accepted_answer_id``, ``score`` and ``formula_prefix`` are optional, as in
:class:`graphs.corpus.post.Post`. An unknown key is an error, because it is usually a misspelling. A post without
``markup`` is html if it has an end tag or a named character, and text otherwise. Lines of qrels are
``topic 0 doc grade``. Files may be compressed (``posts.jsonl.gz``), except qrels. Task 2 has ``topics2.jsonl`` and
``qrels2.tsv``.

Without ``posts.jsonl`` the posts are in any number of ``questions*.jsonl`` and ``answers*.jsonl``, read in the
order of their names, questions first; the name of the file gives the kind. Ids may be whole numbers, with the names of
the Stack Exchange API: ``id`` or ``question_id`` of a question; ``id`` or ``answer_id`` of an answer, whose
``question_id`` is its parent::

    >>> post_from({"question_id": 931212, "title": "Is $x$ odd?", "tags": ["parity"]}, kind="question").post_id
    '931212'

Training pairs are made as for ARQMath: a question and its accepted answer, or each answer if no question has one.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from json import JSONDecodeError
from pathlib import Path
from typing import Any, TypeGuard, cast

from graphs.corpus.accepted import Posts, accepted_pairs
from graphs.corpus.files import Fingerprints, file_in, hash_files, open_packed
from graphs.corpus.post import QUERY, Judgment, Pair, Post, PostKind, Topic, is_id, query_post_id
from graphs.corpus.qrels import read_qrels
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, CorpusError, Failure

_STRINGS = ("title", "body", "formula_prefix")
_IDS = ("post_id", "parent_id", "accepted_answer_id")
_KEYS = frozenset(["kind", "markup", "tags", "score", *_IDS, *_STRINGS])
#: What the ids of a post are also called, by its kind.
_OTHER_NAMES: Mapping[str, Mapping[str, str]] = {
    "question": {"id": "post_id", "question_id": "post_id"},
    "answer": {"id": "post_id", "answer_id": "post_id", "question_id": "parent_id"},
    "topic": {"id": "post_id", "topic_id": "post_id", "topic_of": "parent_id"},
}
_HALF_PAIR = re.compile("[\ud800-\udfff]")
_HTML = re.compile(r"</[a-zA-Z][a-zA-Z0-9]*\s*>|&(?:[a-zA-Z]{2,8}|#\d{1,6}|#x[\da-fA-F]{1,5});")
#: Bytes of one line, at most: a longer one is no post.
MAX_LINE = 32 << 20


class JsonPosts:
    """Posts in folder ``root``."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.posts_files = self._posts_files()

    def posts(self) -> Iterator[Post | Failure]:
        """Yield the posts in the order of the files; a line that is not a post gives a Failure with file and line."""
        for path, kind in self.posts_files:
            for line, record in read_lines(path):
                if isinstance(record, Failure):
                    yield record
                    continue
                try:
                    post = post_from(record, kind=kind)
                    if post.kind == "topic":
                        raise CorpusError("kind 'topic': topics stand in topics.jsonl")
                    yield taken(post, path, line) or post
                except CorpusError as error:
                    post_id = record.get("post_id")
                    message = f"{path}:{line}: {error.message}"
                    yield Failure(post_id if _is_id(post_id) else "", "read", "bad_post", message)

    def formulas(self) -> None:
        return

    def _hash(self, *names: str) -> str:
        """Hash those of the files that exist, packed or not."""
        files = [self.root / (name + end) for name in names for end in ("", ".gz")]
        return hash_files(self.root, [path for path in files if path.is_file()])

    def _posts_files(self) -> list[tuple[Path, str | None]]:
        """Return the files of posts in order, each with the kind of its posts if its name tells it."""
        named: list[tuple[Path, str | None]] = [
            (path, kind)
            for kind in ("question", "answer")
            for path in sorted(self.root.glob(f"{kind}s*.jsonl*"))
            if path.name.endswith((".jsonl", ".jsonl.gz"))
        ]
        one = any((self.root / name).is_file() for name in ("posts.jsonl", "posts.jsonl.gz"))
        if one and named:
            raise CorpusError(f"both posts.jsonl and {named[0][0].name} are here; keep one of them", path=self.root)
        if named:
            for path, _ in named:
                if path.with_name(f"{path.name}.gz").is_file():
                    raise CorpusError(f"both {path.name} and {path.name}.gz are here; keep one", path=self.root)
            return named
        return [(self._file("posts.jsonl"), None)]

    def _file(self, name: str) -> Path:
        path = file_in(self.root, name)
        if path is None:
            raise CorpusError(f"no {name} (or {name}.gz) here; docs/your-collection.md shows the form", path=self.root)
        return path


class JsonLines(JsonPosts):
    """A collection in folder ``root``."""

    name = "jsonl"

    def tasks(self) -> list[int]:
        """Return the tasks whose file of topics exists."""
        names = {1: "topics.jsonl", 2: "topics2.jsonl"}
        return [task for task, name in names.items() for end in ("", ".gz") if (self.root / f"{name}{end}").is_file()]

    def topics(self, task: int, years: Sequence[int] = ()) -> list[Topic]:
        """Return the topics of a task, as :func:`read_topics`."""
        _check(task, years)
        return read_topics(self._file(f"topics{_suffix(task)}.jsonl"), task)

    def judgments(self, task: int, years: Sequence[int] = ()) -> list[Judgment]:
        _check(task, years)
        path = self.root / f"qrels{_suffix(task)}.tsv"
        if not path.is_file():
            raise CorpusError(f"no {path.name} here; its lines are: topic 0 doc grade", path=self.root)
        return read_qrels(path)

    def pairs(self) -> Iterator[Pair]:
        """Yield (question, accepted answer) if any such answer is here, else (question, answer) for every answer."""
        return self.pairs_of(self.posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        return accepted_pairs(posts)

    def fingerprints(self) -> Fingerprints:
        return Fingerprints(
            posts=hash_files(self.root, [path for path, _ in self.posts_files]),
            topics=self._hash("topics.jsonl", "topics2.jsonl"),
            judgments=self._hash("qrels.tsv", "qrels2.tsv"),
        )


def post_from(fields: Mapping[str, Any], *, kind: str | None = None) -> Post:
    """Return the post of a line's JSON object; ``kind`` is the default for a post without one.

    Raises CorpusError naming the key that is wrong.
    """
    kind = fields.get("kind", kind)
    if kind is None:
        raise CorpusError(f"no kind, question or answer; its keys are {str(sorted(fields))[:100]}")
    if kind not in ("question", "answer", "topic"):
        raise CorpusError(f"kind {kind!r} is not question or answer")
    names = _OTHER_NAMES[kind]
    fields = _renamed(fields, names)
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise CorpusError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted({*_KEYS, *names}))}")
    ids = {key: _id(key, fields.get(key)) for key in _IDS}
    if (post_id := ids["post_id"]) is None:
        own, what = ("topic_id", "topic") if kind == "topic" else ("post_id", "post")
        raise CorpusError(f"no {own}; every {what} needs one")
    markup = fields.get("markup")
    if markup not in ("html", "text", None):
        raise CorpusError(f"markup {markup!r} is not html or text")
    for key in _STRINGS:
        if not isinstance(fields.get(key), str | None):
            raise CorpusError(f"{key} is {type(fields[key]).__name__}, not a string")
    tags, score = fields.get("tags") or [], fields.get("score")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise CorpusError("tags is not a list of strings")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int)):
        raise CorpusError(f"score {score!r} is not a whole number")
    title, body, prefix = (_whole(fields.get(key) or "") for key in _STRINGS)
    return Post(
        post_id,
        cast(PostKind, kind),
        title=title,
        body=body,
        markup=markup or ("html" if _HTML.search(title) or _HTML.search(body) else "text"),
        tags=tuple(map(_whole, tags)),
        parent_id=ids["parent_id"],
        accepted_answer_id=ids["accepted_answer_id"],
        score=score,
        formula_prefix=prefix,
    )


def topic_from(fields: Mapping[str, Any], task: int = 1, test: str = "") -> Topic:
    """Return the topic of a line's JSON object; its post has the id of a query.

    >>> topic = topic_from({"post_id": "7", "body": "Is $x$ odd?", "formula_id": "7:0"}, task=2)
    >>> topic.topic_id, topic.post.post_id, topic.formula_id
    ('7', 'query:7', 'query:7:0')

    Args:
        task: 1 or 2; a topic of Task 2 names its formula, by the id in the markup or as ``{post_id}:{number}``.
        test: name of the test, if several tests have different topics.

    Raises:
        CorpusError: a wrong key; the message names it.
    """
    fields = dict(fields)
    formula_id = fields.pop("formula_id", None)
    post = post_from(fields, kind="topic")
    if post.kind != "topic":
        raise CorpusError(f"kind {post.kind!r} in a topic; remove kind")
    if (task == 2) != isinstance(formula_id, str):
        raise CorpusError("a topic of Task 2 has a formula_id, one of Task 1 has none")
    query = replace(post, post_id=query_post_id(post.post_id, test))
    if formula_id is None:
        return Topic(post.post_id, query)
    given = post.formula_prefix + formula_id
    numbered = query.post_id + formula_id.removeprefix(post.post_id)
    known = {formula.formula_id for formula in extract(query).formulas}
    return Topic(post.post_id, query, numbered if numbered in known and given not in known else given)


def read_topics(path: Path, task: int = 1, test: str = "") -> list[Topic]:
    """Read the topics of a file; a broken line is an error, because no query may be lost.

    Raises:
        CorpusError: a broken line; the message names it.
    """
    topics: list[Topic] = []
    for line, record in read_lines(path):
        if isinstance(record, Failure):
            raise CorpusError(record.message)
        try:
            topics.append(topic_from(record, task, test))
        except CorpusError as error:
            raise CorpusError(error.message, path=path, line=line) from error
    return topics


def taken(post: Post, path: Path, line: int) -> Failure | None:
    """Return a Failure for a document whose id begins as the id of a query."""
    if not post.post_id.startswith(QUERY):
        return None
    message = f"{path}:{line}: post_id {post.post_id!r}: ids that begin with {QUERY!r} are those of queries; rename it"
    return Failure("", "read", "bad_id", message)  # not its id, which a topic may have


def _renamed(fields: Mapping[str, Any], names: Mapping[str, str]) -> Mapping[str, Any]:
    """Rename ``fields`` to this project's names; two names of one field are an error."""
    if names.keys().isdisjoint(fields):
        return fields
    renamed: dict[str, Any] = {}
    for key, value in fields.items():
        name = names.get(key, key)
        if name in renamed:
            raise CorpusError(f"{key} {value!r}: {name} is given twice, under two names")
        renamed[name] = value
    return renamed


def _id(key: str, value: object) -> str | None:
    """Return an id as a string."""
    if value is None:
        return None
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
    if not _is_id(text):
        raise CorpusError(f"{key} {value!r} is not a number or a string of printing characters without white space")
    return text


def _whole(text: str) -> str:
    """Replace halves of surrogate pairs in ``text`` by U+FFFD: files cannot hold them."""
    return _HALF_PAIR.sub("\ufffd", text)


def _is_id(post_id: object) -> TypeGuard[str]:
    """Return whether databases and run files can hold an id: no control characters, no half surrogate pairs."""
    return isinstance(post_id, str) and is_id(post_id)


def read_lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | Failure]]:
    """Yield ``(line number, object)`` for lines that are not blank; a Failure for a line that is not a JSON object."""
    line = 0
    try:
        with open_packed(path) as file:
            while raw := file.readline(MAX_LINE + 1):
                line += 1
                if len(raw) > MAX_LINE:
                    while raw and not raw.endswith(b"\n"):  # its rest, in parts: memory stays flat
                        raw = file.readline(MAX_LINE)
                    message = f"{path}:{line}: a line of more than {MAX_LINE} bytes; is this JSON lines?"
                    yield line, Failure("", "read", "long_line", message)
                    continue
                if not raw.strip():
                    continue
                try:
                    record = json.loads(raw.decode("utf-8-sig"))
                except (ValueError, RecursionError) as error:
                    what = f"{error.msg}, at character {error.pos + 1}" if isinstance(error, JSONDecodeError) else error
                    yield line, Failure("", "read", "bad_json", f"{path}:{line}: not JSON: {what}")
                    continue
                if isinstance(record, dict):
                    yield line, record
                else:
                    message = f"{path}:{line}: {type(record).__name__}, not an object with post_id and kind"
                    yield line, Failure("", "read", "bad_json", message)
    except (OSError, EOFError, zlib.error) as error:
        raise CorpusError(f"cannot be read: {error}; is the file complete?", path=path, line=line + 1) from error


def _suffix(task: int) -> str:
    return "" if task == 1 else "2"


def _check(task: int, years: Sequence[int]) -> None:
    if task not in (1, 2):
        raise ConfigError(f"task {task!r}: there are tasks 1 (answers) and 2 (formulas)")
    if years:
        raise ConfigError(f"years {list(years)}: a jsonl collection has one set of topics; leave the years empty")
