r"""posts.db: what an index shows of a post that it has found, its title and text, and which formulas its vectors are.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "posts.db"
>>> question = Post("7", "question", title="Why is $\\sqrt2$ irrational?")
>>> answer = Post("8", "answer", body="<p>Suppose $\\sqrt2 = p/q$.</p>", parent_id="7")
>>> build(path, [question, answer], {"8": ["8:0"]}.items())
2
>>> with PostTexts(path) as texts:
...     found = texts.get(["8", "9"])
...     texts.post_ids("answer")
['8']
>>> found["8"].title, found["8"].text.sentences, found["8"].formula_ids
('Why is $\\sqrt2$ irrational?', ('Suppose FORMULA_0.',), ['8:0'])
>>> "9" in found
False

An answer has the title of its question. Posts are kept as they came, and read when they are shown.
"""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs import database
from graphs.corpus.corpus import Completed
from graphs.corpus.post import PlaceholderText, Post, PostKind
from graphs.corpus.text.latex_text import with_latex
from graphs.corpus.text.placeholders import extract
from graphs.errors import Failure
from graphs.row_digests import check_row, row_digest, texts_of_row

PURPOSE = "texts of posts"
SNIPPET_CHARACTERS = 240
_SCHEMA = """
CREATE TABLE IF NOT EXISTS post(
    post_id TEXT PRIMARY KEY, kind TEXT NOT NULL, title TEXT NOT NULL, body TEXT NOT NULL, markup TEXT NOT NULL,
    parent_id TEXT, formula_prefix TEXT NOT NULL, digest INTEGER
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS formulas(
    post_id TEXT PRIMARY KEY, formula_ids TEXT NOT NULL, digest INTEGER
) WITHOUT ROWID;
"""
_COLUMNS = "post_id, kind, title, body, markup, parent_id, formula_prefix"


@dataclass(frozen=True, slots=True)
class PostText:
    """A post as it is shown.

    Attributes:
        heading: its title; of an answer that of its question.
        text: title and body.
        formula_ids: formulas by the order of their vectors.
        question_id: id of the question that it answers; "" where it answers none.
        question: title and body of that question; None where the question is unknown.
    """

    post_id: str
    heading: PlaceholderText
    text: PlaceholderText
    formula_ids: list[str]
    question_id: str = ""
    question: PlaceholderText | None = None

    @property
    def title(self) -> str:
        """Return the title in one line, formulas between dollars."""
        return re.sub(r"\s+", " ", with_latex(" ".join(self.heading.sentences), self.heading))

    def snippet(self, characters: int = SNIPPET_CHARACTERS) -> str:
        """Return the beginning of the text after its title, with formulas between dollars and never cut."""
        return with_latex(self.beginning(characters), self.text)

    def beginning(self, characters: int = SNIPPET_CHARACTERS) -> str:
        """Return the first ``characters`` of words and LaTeX, formula ``i`` as ``FORMULA_i``."""
        return beginning_of(self.text, self.heading, characters)

    def question_snippet(self, characters: int = SNIPPET_CHARACTERS) -> str:
        """Return the beginning of the question, formulas between dollars; "" where the question is unknown."""
        if self.question is None:
            return ""
        return with_latex(beginning_of(self.question, self.heading, characters), self.question)


def beginning_of(text: PlaceholderText, heading: PlaceholderText, characters: int = SNIPPET_CHARACTERS) -> str:
    """Return the beginning of a text, some ``characters`` of words and LaTeX, formula ``i`` as ``FORMULA_i``.

    The sentences of ``heading``, which is shown above, are left out if the text begins with them.
    """
    sentences, shown = text.sentences, len(heading.sentences)
    if with_latex(" ".join(sentences[:shown]), text) == with_latex(" ".join(heading.sentences), heading):
        sentences = sentences[shown:]
    words: list[str] = []
    length = 0
    for word in " ".join(sentences).split(" "):
        if length + len(word) > characters:
            return " ".join([*words, "..."])
        words.append(word)
        length += len(with_latex(word, text)) + 1
    return " ".join(words)


def build(
    path: Path,
    posts: Iterable[Post | Failure],
    formula_ids: Iterable[tuple[str, Sequence[str]]],
    progress: Callable[[int], None] | None = None,
    completing: Completed | None = None,
) -> int:
    """Write the posts and the formula ids of their graphs; returns the number of posts. Of one id the first counts.

    Args:
        completing: collection that ``posts`` were read from and that completes them afterwards.
    """
    incomplete: list[str] = []
    with database.writer(path, _SCHEMA, purpose=PURPOSE) as connection:
        of_graphs = ((post_id, json.dumps(list(names))) for post_id, names in formula_ids)
        connection.executemany(
            "INSERT OR REPLACE INTO formulas(post_id, formula_ids, digest) VALUES (?, ?, ?)",
            ((*row, row_digest(*row)) for row in of_graphs),
        )
        rows = ((*row, row_digest(*row)) for row in map(_row, _counted(posts, progress, incomplete, completing)))
        insert = f"INSERT OR IGNORE INTO post({_COLUMNS}, digest) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
        connection.executemany(insert, rows)
        if completing is not None and incomplete:
            whole = completing.completed(lambda: _posts(connection, path, incomplete))
            changed = ((post.title, post.body, row_digest(*_row(post)), post.post_id) for post in whole)
            connection.executemany("UPDATE post SET title = ?, body = ?, digest = ? WHERE post_id = ?", changed)
        connection.commit()
        (count,) = connection.execute("SELECT count(*) FROM post").fetchone()
    return int(count)


def _row(post: Post) -> tuple[str | None, ...]:
    return post.post_id, post.kind, post.title, post.body, post.markup, post.parent_id, post.formula_prefix


def _counted(
    posts: Iterable[Post | Failure],
    progress: Callable[[int], None] | None,
    incomplete: list[str],
    completing: Completed | None,
) -> Iterator[Post]:
    """Yield the posts; note those that are incomplete."""
    for post in posts:
        if isinstance(post, Post):
            if completing is not None and completing.is_incomplete(post):
                incomplete.append(post.post_id)
            yield post
        if progress is not None:
            progress(1)


def _posts(connection: sqlite3.Connection, path: Path, post_ids: Sequence[str]) -> Iterator[Post]:
    query = f"SELECT {_COLUMNS}, digest FROM post WHERE post_id IN"
    for *row, digest in database.rows_of_ids(connection, query, post_ids):
        check_row(digest, row[0], *row, path=path)
        post_id, kind, title, body, markup, parent, prefix = row
        yield Post(post_id, kind, title, body, markup, parent_id=parent, formula_prefix=prefix)


class PostTexts(database.OpenFile):
    """Reads posts.db."""

    purpose = PURPOSE

    def post_ids(self, *kinds: PostKind) -> list[str]:
        """Ids of the posts of these kinds, of all without any, that have a title or a text; sorted."""
        of_kinds = f" AND kind IN ({','.join('?' * len(kinds))})" if kinds else ""
        query = f"SELECT post_id FROM post WHERE trim(title || body) != ''{of_kinds} ORDER BY post_id"
        return [post_id for (post_id,) in self._connection.execute(query, kinds)]

    def all_ids(self) -> Iterator[str]:
        """Yield the ids of all posts, empty ones included; sorted."""
        return (post_id for (post_id,) in self._connection.execute("SELECT post_id FROM post ORDER BY post_id"))

    def posts(self, post_ids: Sequence[str]) -> dict[str, Post]:
        """Return the posts of these ids as they came, as far as they are there; without tags, score and answer."""
        return {post.post_id: post for post in _posts(self._connection, self.path, post_ids)}

    def with_text(self, post_ids: Sequence[str]) -> list[str]:
        """Return those of the ids that have a title or a text."""
        query = "SELECT post_id FROM post WHERE trim(title || body) != '' AND post_id IN"
        with_text = {post_id for (post_id,) in database.rows_of_ids(self._connection, query, post_ids)}
        return [post_id for post_id in post_ids if post_id in with_text]

    def get(self, post_ids: Sequence[str]) -> dict[str, PostText]:
        """Return the posts with these ids, without missing ones."""
        posts = self.posts(post_ids)
        questions = self.posts(list({post.parent_id for post in posts.values() if post.parent_id is not None}))
        formulas = self._formulas(list(posts))
        texts: dict[str, PostText] = {}
        for post_id, post in posts.items():
            question = None if post.parent_id is None else questions.get(post.parent_id)
            title = post.title or ("" if question is None else question.title)
            heading = Post("title", "question", title=title, markup=post.markup)
            of_question = () if question is None else (question.post_id, extract(question))
            texts[post_id] = PostText(post_id, extract(heading), extract(post), formulas.get(post_id, []), *of_question)
        return texts

    def _formulas(self, post_ids: Sequence[str]) -> dict[str, list[str]]:
        """Return the ids of the formulas of posts, by the order of their vectors."""
        formula_ids: dict[str, list[str]] = {}
        query = "SELECT post_id, formula_ids, digest FROM formulas WHERE post_id IN"
        for post_id, names, known in database.rows_of_ids(self._connection, query, post_ids):
            check_row(known, post_id, post_id, names, path=self.path)
            formula_ids[post_id] = texts_of_row(names, list, post_id, path=self.path)
        return formula_ids
