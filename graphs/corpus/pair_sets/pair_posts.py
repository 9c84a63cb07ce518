r"""Collections to learn from: their posts come pair by pair, an answer after its question, and no topic asks of them.

**Problems** with their solutions are JSON lines, a pair a line, as the MATH data set has them. Every ``*.jsonl`` (or
``*.jsonl.gz``) of the folder is read, in the order of names::

    {"problem": "Find $x$ if $x+1=2$.", "solution": "$x=\\boxed{1}$.", "level": "Level 1", "type": "Algebra"}

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> _ = (root / "train.jsonl").write_text('{"problem": "Is $1$ odd? [asy]draw();[/asy]", "solution": "Yes."}\n')
    >>> for post in Problems(root).posts():
    ...     print(post.post_id, post.kind, post.body)
    train-1 question Is $1$ odd?
    train-1/solution answer Yes.
    >>> list(Problems(root).pairs())
    [Pair(question_id='train-1', answer_id='train-1/solution')]

Ids are made of file and line. ``type`` becomes a tag; other keys are passed over. Code of drawings (``[asy]``) is left
out: it says in coordinates what a reader sees.

**Titles** are those of the questions of any collection as JSON lines (:mod:`graphs.corpus.jsonl`): the title asks, the
body answers. A question becomes two posts:

    >>> question = Post("7", "question", title="Is $x$ odd?", body="Let $x=3$.", markup="text", tags=("parity",))
    >>> title, body = halves(question)
    >>> title.post_id, title.kind, title.title, title.body
    ('7', 'question', 'Is $x$ odd?', '')
    >>> body.post_id, body.kind, body.body, body.parent_id
    ('7/body', 'answer', 'Let $x=3$.', '7')

Answers are passed over, and so are questions without a title or without a body.
"""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from graphs.corpus.accepted import Posts
from graphs.corpus.files import Fingerprints, hash_files
from graphs.corpus.jsonl import JsonLines, read_lines
from graphs.corpus.post import Pair, Post
from graphs.errors import CorpusError, Failure

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)


class PairPosts(ABC):
    """A collection in folder ``root`` that is nothing but pairs."""

    name: str

    def __init__(self, root: Path) -> None:
        self.root = root

    @abstractmethod
    def posts(self) -> Iterator[Post | Failure]:
        """Yield the two posts of each pair; the parent of the answer is its question."""

    def pairs(self) -> Iterator[Pair]:
        """Yield each question with its answer."""
        return self.pairs_of(self.posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        for post in posts():
            if isinstance(post, Post) and post.parent_id is not None:
                yield Pair(post.parent_id, post.post_id)

    def formulas(self) -> None:
        return

    @abstractmethod
    def fingerprints(self) -> Fingerprints:
        """Return a hash of the posts."""


class Problems(PairPosts):
    """Problems in folder ``root``."""

    name = "problems"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files = [path for path in sorted(root.glob("*.jsonl*")) if path.name.endswith((".jsonl", ".jsonl.gz"))]
        if not self._files:
            raise CorpusError(
                "no *.jsonl (or *.jsonl.gz) here; see graphs/corpus/pair_sets/pair_posts.py for the form", path=root
            )

    def posts(self) -> Iterator[Post | Failure]:
        """Iterate over each problem, followed by its solution."""
        for path in self._files:
            for line, record in read_lines(path):
                if isinstance(record, Failure):
                    yield record
                    continue
                name = "_".join(path.name.partition(".jsonl")[0].split())  # an id has no blanks
                post_id = f"{name}-{line}"
                texts = [_text(record, key) for key in ("problem", "solution")]
                if "" in texts:
                    message = f"{path}:{line}: a line needs a problem and a solution, two strings that are not empty"
                    yield Failure(post_id, "read", "bad_post", message)
                    continue
                tags = (record["type"],) if isinstance(record.get("type"), str) else ()
                yield Post(post_id, "question", body=texts[0], markup="text", tags=tags)
                yield Post(f"{post_id}/solution", "answer", body=texts[1], markup="text", parent_id=post_id)

    def fingerprints(self) -> Fingerprints:
        return Fingerprints(posts=hash_files(self.root, self._files))


def _text(fields: Mapping[str, Any], key: str) -> str:
    """Return the text of a problem or solution without drawings; "" if it has no text."""
    value = fields.get(key)
    return _DRAWING.sub("", value).strip() if isinstance(value, str) else ""


class Titles(PairPosts):
    """Titles and bodies of the questions in folder ``root``."""

    name = "titles"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._questions = JsonLines(root)

    def posts(self) -> Iterator[Post | Failure]:
        """Iterate over each title, followed by its body."""
        for post in self._questions.posts():
            if isinstance(post, Failure):
                yield post
            elif post.kind == "question" and post.title.strip() and post.body.strip():
                yield from halves(post)

    def fingerprints(self) -> Fingerprints:
        """Return a hash that changes with the questions and differs from that of their own collection."""
        posts = self._questions.fingerprints().posts
        return Fingerprints(posts=hashlib.sha256(f"titles\0{posts}".encode()).hexdigest())


def halves(question: Post) -> tuple[Post, Post]:
    """Title and body of a question as a post each."""
    title = replace(question, body="", accepted_answer_id=None)
    body = replace(
        title, post_id=f"{question.post_id}/body", kind="answer", title="", body=question.body, parent_id=title.post_id
    )
    return title, body
