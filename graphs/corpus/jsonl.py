"""Any collection as JSON lines: a folder with ``posts.jsonl``, and beside it ``topics.jsonl`` and ``qrels.tsv``.

A line of ``posts.jsonl`` is one post; one of ``topics.jsonl`` the same without ``kind`` (Task 2: and ``formula_id``)::

    {"post_id": "7", "kind": "question", "title": "Is $x$ odd?", "body": "...", "markup": "text"}
    {"post_id": "8", "kind": "answer", "body": "<p>...</p>", "markup": "html", "parent_id": "7"}

    >>> post_from({"post_id": "7", "kind": "question", "title": "Is $x$ odd?"}).title
    'Is $x$ odd?'

Keys: ``post_id`` and ``kind`` (question, answer) are needed; ``title``, ``body``, ``markup`` (html or text; html),
``tags``, ``parent_id``, ``accepted_answer_id``, ``score`` and ``formula_prefix`` may follow, as in
:class:`graphs.corpus.post.Post`. An unknown key is an error, for it is a misspelt one. Qrels: ``topic 0 doc grade``.
Posts and topics may be packed (``posts.jsonl.gz``). Task 2 has ``topics2.jsonl`` and ``qrels2.tsv``.

Pairs are made as for ARQMath: question and accepted answer, or each answer where no question has one.
"""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeGuard

from graphs.corpus.arqmath import read_qrels
from graphs.corpus.files import hash_files
from graphs.corpus.post import Judgment, Pair, Post, Topic
from graphs.errors import ConfigError, CorpusError, Failure

_STRINGS = ("title", "body", "parent_id", "accepted_answer_id", "formula_prefix")
_KEYS = frozenset(["post_id", "kind", "markup", "tags", "score", *_STRINGS])
#: Characters of one line, at most: a longer one is no post but a file without line ends.
MAX_LINE = 32 << 20


class JsonLines:
    """A collection in folder ``root``."""

    name = "jsonl"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.posts_file = self._file("posts.jsonl")

    def posts(self) -> Iterator[Post | Failure]:
        """The posts in the order of the file; a line that is none is a Failure with file and line."""
        for line, found in _lines(self.posts_file):
            if isinstance(found, Failure):
                yield found
                continue
            try:
                post = post_from(found)
                if post.kind == "topic":
                    raise CorpusError("kind 'topic': topics stand in topics.jsonl")
                yield post
            except CorpusError as error:
                post_id = found.get("post_id")
                message = f"{self.posts_file}:{line}: {error.message}"
                yield Failure(post_id if _is_id(post_id) else "", "read", "bad_post", message)

    def topics(self, task: int, years: Sequence[int] = ()) -> list[Topic]:
        """The topics of a task; here every broken line is a CorpusError, for a query must not get lost."""
        _check(task, years)
        path = self._file(f"topics{_suffix(task)}.jsonl")
        topics: list[Topic] = []
        for line, found in _lines(path):
            if isinstance(found, Failure):
                raise CorpusError(found.message)
            try:
                fields = {"kind": "topic", **found}
                formula_id = fields.pop("formula_id", None)
                post = post_from(fields)
                if post.kind != "topic":
                    raise CorpusError(f"kind {post.kind!r}: a topic is a topic; leave kind out")
                if (task == 2) != isinstance(formula_id, str):
                    raise CorpusError("a topic of Task 2 has a formula_id, one of Task 1 has none")
            except CorpusError as error:
                raise CorpusError(error.message, path=path, line=line) from error
            topics.append(Topic(post.post_id, post, None if formula_id is None else post.formula_prefix + formula_id))
        return topics

    def judgments(self, task: int, years: Sequence[int] = ()) -> list[Judgment]:
        """The qrels of a task."""
        _check(task, years)
        path = self.root / f"qrels{_suffix(task)}.tsv"
        if not path.is_file():
            raise CorpusError(f"no {path.name} here; its lines are: topic 0 doc grade", path=self.root)
        return read_qrels(path)

    def pairs(self) -> Iterator[Pair]:
        """(question, accepted answer) if any question has one, else (question, answer) for every answer."""
        accepted: dict[str, str] = {}
        questions: set[str] = set()
        for post in self.posts():
            if isinstance(post, Post) and post.kind == "question":
                questions.add(post.post_id)
                if post.accepted_answer_id:
                    accepted[post.accepted_answer_id] = post.post_id
        for post in self.posts():
            if isinstance(post, Post) and post.kind == "answer":
                question = accepted.get(post.post_id) if accepted else post.parent_id
                if question is not None and question in questions:
                    yield Pair(question, post.post_id)

    def formulas(self) -> None:
        """None: the trees are made from the LaTeX in the posts."""
        return

    def fingerprint(self) -> str:
        """Of every file that this class reads."""
        names = ("posts.jsonl", "topics.jsonl", "topics2.jsonl", "qrels.tsv", "qrels2.tsv")
        files = [self.root / (name + end) for name in names for end in ("", ".gz")]
        return hash_files(self.root, (path for path in files if path.is_file()))

    def _file(self, name: str) -> Path:
        plain, packed = self.root / name, self.root / f"{name}.gz"
        if plain.is_file() and packed.is_file():
            raise CorpusError(f"both {name} and {name}.gz are here; keep one", path=self.root)
        if not plain.is_file() and not packed.is_file():
            raise CorpusError(f"no {name} (or {name}.gz) here; see graphs/corpus/jsonl.py for the form", path=self.root)
        return plain if plain.is_file() else packed


def post_from(fields: Mapping[str, Any]) -> Post:
    """The post that a line's JSON object describes. Raises CorpusError naming the key that is wrong."""
    unknown = sorted(set(fields) - _KEYS)
    if unknown:
        raise CorpusError(f"unknown key {unknown[0]!r}; known are {', '.join(sorted(_KEYS))}")
    post_id, kind, markup = fields.get("post_id"), fields.get("kind"), fields.get("markup", "html")
    if not _is_id(post_id):
        raise CorpusError(f"post_id {post_id!r} is not a string of printing characters without white space")
    if kind not in ("question", "answer", "topic"):
        raise CorpusError(f"kind {kind!r} is not question or answer")
    if markup not in ("html", "text"):
        raise CorpusError(f"markup {markup!r} is not html or text")
    for key in _STRINGS:
        if not isinstance(fields.get(key), str | None):
            raise CorpusError(f"{key} is {type(fields[key]).__name__}, not a string")
    tags, score = fields.get("tags") or [], fields.get("score")
    if not isinstance(tags, list) or not all(isinstance(tag, str) for tag in tags):
        raise CorpusError("tags is not a list of strings")
    if score is not None and (isinstance(score, bool) or not isinstance(score, int)):
        raise CorpusError(f"score {score!r} is not a whole number")
    return Post(
        post_id,
        kind,
        title=fields.get("title") or "",
        body=fields.get("body") or "",
        markup=markup,
        tags=tuple(tags),
        parent_id=fields.get("parent_id"),
        accepted_answer_id=fields.get("accepted_answer_id"),
        score=score,
        formula_prefix=fields.get("formula_prefix") or "",
    )


def _is_id(post_id: object) -> TypeGuard[str]:
    """JSON can hold halves of surrogate pairs and control characters, which no database or run file takes."""
    return isinstance(post_id, str) and post_id != "" and post_id.isprintable() and " " not in post_id


def _lines(path: Path) -> Iterator[tuple[int, dict[str, Any] | Failure]]:
    """``(line number, object)`` of every line that is not blank; a Failure where a line is no JSON object."""
    line = 0
    try:
        with gzip.open(path, "rb") if path.suffix == ".gz" else path.open("rb") as file:
            while raw := file.readline(MAX_LINE + 1):
                line += 1
                if len(raw) > MAX_LINE:
                    raise CorpusError(
                        f"a line of more than {MAX_LINE} bytes; is this JSON lines?", path=path, line=line
                    )
                if not raw.strip():
                    continue
                try:
                    found = json.loads(raw.decode("utf-8-sig"))
                except (ValueError, RecursionError) as error:
                    yield line, Failure("", "read", "bad_json", f"{path}:{line}: not JSON: {error}")
                    continue
                if isinstance(found, dict):
                    yield line, found
                else:
                    message = f"{path}:{line}: {type(found).__name__}, not an object with post_id and kind"
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
