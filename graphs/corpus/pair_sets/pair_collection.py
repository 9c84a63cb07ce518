r"""Files of pairs of a query and a document that answers it: to learn from, to search in, and to be tested on.

``mathamr/text/benchmarks.py`` writes such a folder; of statements, with two tests, it has::

    answers.jsonl          what is searched, as of :mod:`graphs.corpus.jsonl`
    train.jsonl            pairs to learn from, see mathamr/text/pairs.py: query, document, query_id, document_id, group
    related.jsonl          where the collection has some: further pairs, of documents that are related to the query
    topics-regular.jsonl   the queries of a test, as of :mod:`graphs.corpus.jsonl`; the same for topics-unseen.jsonl
    qrels-regular.tsv      its judgments: topic 0 document grade

    >>> import tempfile
    >>> root = Path(tempfile.mkdtemp())
    >>> for name, line in {
    ...     "answers-formulas.jsonl": '{"post_id": "f1", "body": "$a+b$"}',
    ...     "answers-texts.jsonl": '{"post_id": "t1", "body": "The sum."}\n{"post_id": "t2", "body": "The product."}',
    ...     "train.jsonl": '{"query": "A product", "document": "The product.", "query_id": "q2", "document_id": "t2"}',
    ...     "topics-formula_to_text.jsonl": '{"post_id": "q1", "body": "$a+b$"}',
    ...     "qrels-formula_to_text.tsv": "q1 0 t1 2",
    ... }.items():
    ...     _ = (root / name).write_text(line + "\n")
    >>> pairs = PairCollection(root)
    >>> [post.post_id for post in pairs.posts()], list(pairs.pairs()), pairs.tests()
    (['f1', 't1', 't2', 'q2'], [Pair(question_id='q2', answer_id='t2')], ('formula_to_text',))
    >>> test = pairs.test("formula_to_text")
    >>> [topic.post.body for topic in test.topics], test.judgments, sorted(test.searched)
    (['$a+b$'], [Judgment(topic_id='q1', doc_id='t1', grade=2)], ['t1', 't2'])

A test searches the files of answers that contain a document judged for it. If the topics of a test have the tag
``document``, queries and documents trade roles: its queries are like the documents of the training pairs. The queries
of a test with the name ``trained`` may occur in training. Those of other tests may not: leak control leaves out the
pairs that contain them (:mod:`graphs.corpus.leaks`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import Any

from graphs.corpus.files import Fingerprints, hash_files
from graphs.corpus.jsonl import JsonPosts, post_from, read_lines, read_topics
from graphs.corpus.post import Pair, Post
from graphs.corpus.qrels import read_qrels
from graphs.corpus.queries.collection import HeldOut
from graphs.errors import ConfigError, CorpusError, Failure, encodable

LEARNED = "trained"
"""Name of a test whose queries are learned from on purpose."""
_KEYS = frozenset(("query", "document", "query_id", "document_id"))
_TEST = re.compile(r"topics-([a-z][a-z0-9_]*)\.jsonl")


class PairCollection(JsonPosts):
    """Files in folder ``root``."""

    name = "pairs"

    def posts(self) -> Iterator[Post | Failure]:
        """Yield the documents, then all other texts of pairs, as questions."""
        yield from super().posts()
        seen = set().union(*self._answers)
        for pair in self._lines("related" if (self.root / "related.jsonl").is_file() else "accepted"):
            for side in ("query", "document"):
                post_id = pair[f"{side}_id"]
                if post_id not in seen:
                    seen.add(post_id)
                    yield Post(post_id, "question", body=pair[side], markup="text")

    def pairs(self) -> Iterator[Pair]:
        """Yield the pairs of ``train.jsonl``."""
        for pair in self._lines("accepted"):
            yield Pair(pair["query_id"], pair["document_id"])

    def related(self) -> Iterator[Pair]:
        """Pairs of ``related.jsonl``."""
        known = dict.fromkeys(self.pairs())
        for pair in self._lines("related"):
            one = Pair(pair["query_id"], pair["document_id"])
            if one not in known:
                yield one

    def pair_files(self, positives: str) -> list[Path]:
        """Return the files to learn from: ``train.jsonl`` (``accepted``), and also ``related.jsonl`` (``related``).

        Raises:
            ConfigError: other ``positives``, or a file that is missing.
        """
        if positives not in ("accepted", "related"):
            raise ConfigError(f"train.positives={positives}: a collection of pairs knows accepted and related ones")
        names = ["train.jsonl", *(["related.jsonl"] if positives == "related" else [])]
        missing = [name for name in names if not (self.root / name).is_file()]
        if missing:
            raise ConfigError(f"train.positives={positives}: no {missing[0]} in {self.root}")
        return [self.root / name for name in names]

    def tests(self) -> tuple[str, ...]:
        """Return the names of the tests, in the order of the alphabet."""
        matches = (_TEST.fullmatch(path.name) for path in sorted(self.root.iterdir()))
        return tuple(match[1] for match in matches if match)

    def test(self, name: str) -> HeldOut:
        """Return the test ``name``.

        Raises:
            ConfigError: there is no such test.
            CorpusError: a line of it is broken, or something is judged that is nowhere.
        """
        if name not in self.tests():
            known = ", ".join(self.tests()) or "none"
            raise ConfigError(f"experiment.tasks: {name} is no test of the collection in {self.root}; known: {known}")
        path, judged = self.root / f"topics-{name}.jsonl", self.root / f"qrels-{name}.tsv"
        topics = read_topics(path, test=name)
        judgments = read_qrels(judged)
        places = {post_id: place for place, ids in enumerate(self._answers) for post_id in ids}
        lost = [one.doc_id for one in judgments if one.doc_id not in places]
        if lost:
            raise CorpusError(
                f"{lost[0]} and {len(lost) - 1} more are judged, but no answers of this folder", path=judged
            )
        sides = {places[one.doc_id] for one in judgments}
        everything = len(sides) == len(self._answers)
        searched = None if everything else frozenset().union(*(self._answers[place] for place in sides))
        swapped = any("document" in topic.post.tags for topic in topics)
        return HeldOut(topics, judgments, searched, swapped, learned=name == LEARNED)

    def fingerprints(self) -> Fingerprints:
        pairs = [self.root / name for name in ("train.jsonl", "related.jsonl")]
        answers = [path for path, _ in self.posts_files]
        return Fingerprints(
            posts=hash_files(self.root, [*answers, *(path for path in pairs if path.is_file())]),
            topics=self._hash(*(f"topics-{test}.jsonl" for test in self.tests())),
            judgments=self._hash(*(f"qrels-{test}.tsv" for test in self.tests())),
        )

    @cached_property
    def _answers(self) -> list[frozenset[str]]:
        """Ids in each file of answers."""
        ids: dict[Path, set[str]] = {}
        for path, kind in self.posts_files:
            found = (post_from(one, kind=kind) for _, one in read_lines(path) if not isinstance(one, Failure))
            ids[path] = {post.post_id for post in found if post.kind == "answer"}
        return [frozenset(own) for own in ids.values() if own]

    def _lines(self, positives: str) -> Iterator[dict[str, Any]]:
        for path in self.pair_files(positives):
            for line, record in read_lines(path):
                if isinstance(record, Failure) or not all(_is_text(record.get(key)) for key in _KEYS):
                    message = (
                        "is no pair; a line is a JSON object with texts of valid Unicode, without halves of surrogate "
                        f"pairs: {', '.join(_KEYS)}"
                    )
                    raise CorpusError(message, path=path, line=line)
                yield record


def _is_text(value: object) -> bool:
    """Return whether files can hold a value as text: no halves of surrogate pairs."""
    return isinstance(value, str) and value == encodable(value)
