r"""Problems with their solutions as JSON lines, a pair a line, as the MATH data set has them: to learn from.

Every ``*.jsonl`` (or ``*.jsonl.gz``) of the folder is read, in the order of names; a line is one pair::

    {"problem": "Find $x$ if $x+1=2$.", "solution": "$x=\\boxed{1}$.", "level": "Level 1", "type": "Algebra"}

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> _ = (root / "train.jsonl").write_text('{"problem": "Is $1$ odd? [asy]draw();[/asy]", "solution": "Yes."}\n')
    >>> for post in Problems(root).posts():
    ...     print(post.post_id, post.kind, post.body)
    train-1 question Is $1$ odd?
    train-1/solution answer Yes.

Ids are made of file and line. ``type`` becomes a tag; other keys are passed over. Code of drawings (``[asy]``) is left
out: it says in coordinates what a reader sees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from graphs.corpus.files import Fingerprints, hash_files
from graphs.corpus.jsonl import read_lines
from graphs.corpus.pair_sets.pair_posts import PairPosts
from graphs.corpus.post import Post
from graphs.errors import CorpusError, Failure

_DRAWING = re.compile(r"\[asy\].*?(?:\[/asy\]|\Z)", re.DOTALL)


class Problems(PairPosts):
    """Problems in folder ``root``."""

    name = "problems"

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self._files = [path for path in sorted(root.glob("*.jsonl*")) if path.name.endswith((".jsonl", ".jsonl.gz"))]
        if not self._files:
            raise CorpusError(
                "no *.jsonl (or *.jsonl.gz) here; see graphs/corpus/pair_sets/problems.py for the form", path=root
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
        """Return a hash of the files."""
        return Fingerprints(posts=hash_files(self.root, self._files))


def _text(fields: Mapping[str, Any], key: str) -> str:
    """Return the text of a problem or solution without drawings; "" if it has no text."""
    value = fields.get(key)
    return _DRAWING.sub("", value).strip() if isinstance(value, str) else ""
