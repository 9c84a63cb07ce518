"""Export to BEIR: ``corpus.jsonl``, ``queries.jsonl``, ``qrels/SPLIT.tsv`` and ``qrels/train.tsv``.

    exported = export_beir(open_corpus("arqmath", "/data/ARQMath"), Path("arqmath-beir"), years=[2020])
    exported.documents, exported.queries    # 1435643, 77

Documents are the answers. Texts are plain, with formulas as LaTeX between dollar signs (or in ``\\(..\\)`` if dollar
signs would be misread); :func:`graphs.corpus.queries.beir.open_beir` reads the same ids, grades and formulas from them.
The questions of training pairs become queries with judgments of one grade in ``train.tsv``; questions that are topics
are left out. Of a part of a collection, only the documents in it are judged, and topics without a relevant one are left
out: programs for BEIR score them 0, or divide by the number of their relevant documents.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import product
from pathlib import Path
from typing import Any, TextIO

from graphs.corpus.corpus import Corpus, answers_ask, benchmark, check_ids
from graphs.corpus.leaks import pairs_without_topics
from graphs.corpus.pairs import training_pairs
from graphs.corpus.post import QUERY, Post
from graphs.corpus.queries.collection import HeldOut, NamedTests
from graphs.corpus.record_ids import identified
from graphs.corpus.text.placeholders import extract
from graphs.corpus.text.text_formulas import MAX_INLINE, find, is_formula
from graphs.errors import ConfigError, CorpusError, Failure
from graphs.whole_file import whole_file

_PLACEHOLDER = re.compile(r"FORMULA_(\d+)")
_OPENING = re.compile(r"\\(?=[(\[])|\\(?=begin\{)")
_HEADER = "query-id\tcorpus-id\tscore\n"


@dataclass(frozen=True, slots=True)
class Exported:
    """Numbers of written records, and of posts, topics and judgments left out.

    ``failures``: posts that could not be read, or that have the id of an earlier post.
    ``topics_left_out``: topics without a relevant document among the exported ones.
    """

    documents: int
    queries: int
    judgments: int
    train_pairs: int
    failures: int
    topics_left_out: int
    judgments_left_out: int


def export_beir(
    corpus: Corpus,
    folder: Path,
    *,
    task: int | str = 1,
    years: Sequence[int] = (),
    split: str = "test",
    progress: Callable[[int], None] | None = None,
) -> Exported:
    """Write ``corpus`` to ``folder``; nothing is replaced until everything is written.

    Args:
        corpus: any collection with topics.
        folder: created if missing; files of an earlier export are replaced.
        task: 1, or the name of a test.
        split: name of the file of judgments; ``train`` is reserved for training pairs.
        progress: function called with the number of posts written since its last call.

    Raises:
        ConfigError: Task 2, because BEIR has no form for formulas in context; or a split that cannot be a file name.
        CorpusError: no judged topics, no topic with a relevant document, two topics with one id and different texts, or
            ids that cannot be written to a file of judgments.
    """
    if task == 2:
        raise ConfigError("task 2 finds formulas in posts, which BEIR's form cannot tell; export task 1")
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", split) or split == "train":
        raise ConfigError(f"split {split!r} is no name for the test; use letters, digits and . _ -, and not 'train'")
    held_out = _held_out(corpus, task, years)
    check_ids(corpus, held_out.topics)
    found, topics = training_pairs(corpus, "accepted", 0), () if held_out.learned else held_out.topics
    pairs = pairs_without_topics(found, corpus.posts(), topics, answers=answers_ask(corpus)).kept
    topic_ids = {topic.topic_id for topic in held_out.topics}
    query_ids = {pair.question_id: _query_id(pair.question_id, topic_ids) for pair in pairs}
    (folder / "qrels").mkdir(parents=True, exist_ok=True)
    train = folder / "qrels" / "train.tsv"
    with ExitStack() as stack:

        def open_part(path: Path) -> TextIO:
            partial = stack.enter_context(whole_file(path))
            return stack.enter_context(partial.open("w", encoding="utf-8", newline="\n"))

        documents, queries = open_part(folder / "corpus.jsonl"), open_part(folder / "queries.jsonl")
        failures = exported = 0
        missing = {post_id for pair in pairs for post_id in (pair.question_id, pair.answer_id)}
        absent = {judgment.doc_id for judgment in held_out.judgments}  # judged and no document
        for post in identified(corpus.posts(), texts=True):
            if isinstance(post, Failure):
                failures += 1
                continue
            searched = post.kind == "answer" and (held_out.searched is None or post.post_id in held_out.searched)
            if searched:
                _write(documents, post, "title", "text")
                exported += 1
                absent.discard(post.post_id)
            if searched or post.post_id in query_ids:
                missing.discard(post.post_id)
            if post.post_id in query_ids and post.kind == "question":
                _write(queries, replace(post, post_id=query_ids[post.post_id]), "text")
            if progress is not None:
                progress(1)
        judgments = [one for one in held_out.judgments if one.doc_id not in absent]
        relevant = {one.topic_id for one in judgments if one.grade > 0}
        if not topic_ids & relevant:
            message = f"no topic of collection {corpus.name} has a relevant document among those to export"
            raise CorpusError(f"{message}; is the collection complete?")
        topics_by_id = {topic.topic_id: topic for topic in held_out.topics if topic.topic_id in relevant}
        for topic in topics_by_id.values():
            _write(queries, replace(topic.post, post_id=topic.topic_id), "text")
        rows = ((one.topic_id, one.doc_id, one.grade) for one in judgments if one.topic_id in relevant)
        judged = _write_judgments(open_part(folder / "qrels" / f"{split}.tsv"), rows)
        written = [pair for pair in pairs if pair.question_id not in missing and pair.answer_id not in missing]
        grade = max(1, *(one.grade for one in held_out.judgments))  # relevant, whatever grade is said to be
        if written or train.exists():
            _write_judgments(open_part(train), ((query_ids[one.question_id], one.answer_id, grade) for one in written))
    queries_written = len(topics_by_id) + len({pair.question_id for pair in written})
    left_out = len(topic_ids) - len(topics_by_id), len(held_out.judgments) - judged
    return Exported(exported, queries_written, judged, len(written), failures, *left_out)


def _held_out(corpus: Corpus, task: int | str, years: Sequence[int]) -> HeldOut:
    """Return the topics and judgments of a task or a named test. Raises CorpusError for a task without them."""
    if isinstance(corpus, NamedTests):
        held_out = corpus.test(str(task))
    else:
        assert isinstance(task, int)
        tests = benchmark(corpus)
        held_out = HeldOut(tests.topics(task, years), tests.judgments(task, years))
    if not held_out.topics or not held_out.judgments:
        raise CorpusError(f"collection {corpus.name} has no judged topics for task {task} and years {list(years)}")
    return held_out


def plain_text(post: Post) -> str:
    r"""Return the sentences of a post as text, with LaTeX formulas between delimiters, so that they can be read back.

    Dollars of the words are escaped only where they would open a formula, so that other programs encode the same text.

    >>> plain_text(Post("7", "answer", body="<p>It costs $5; <span class='math-container'>$x$</span> is odd.</p>"))
    'It costs $5; $x$ is odd.'
    >>> plain_text(Post("7", "answer", body=r"<p>Type \$y\$ for <span class='math-container'>$x$</span>.</p>"))
    'Type \\$y\\$ for $x$.'
    """
    text = extract(post)
    latex = [formula.latex for formula in text.formulas]
    for delimiters, dollar in product((_dollars, _brackets), ("$", "\\$")):
        written = " ".join(_filled(sentence, latex, delimiters, dollar) for sentence in text.sentences)
        if [found for _, _, found in find(written)] == [one for one in latex if one]:
            break
    return written


def _filled(sentence: str, latex: Sequence[str], delimiters: Callable[[str, str, str], str], dollar: str) -> str:
    """Replace the placeholders of a sentence; brackets of its words open no formula."""
    pieces: list[str] = []
    end = 0
    for match in _PLACEHOLDER.finditer(sentence):
        if int(match[1]) < len(latex):
            before, after = sentence[max(0, match.start() - 1) : match.start()], sentence[match.end() : match.end() + 1]
            pieces += [_literal(sentence[end : match.start()], dollar), delimiters(latex[int(match[1])], before, after)]
            end = match.end()
    return "".join([*pieces, _literal(sentence[end:], dollar)])


def _literal(words: str, dollar: str) -> str:
    return _OPENING.sub("", words.replace("$", dollar))


def _dollars(latex: str, before: str, after: str) -> str:
    fits = "$" not in latex and len(latex) < MAX_INLINE and not latex.endswith("\\")
    return f"${latex}$" if fits and is_formula(latex, before, after) else _brackets(latex, before, after)


def _brackets(latex: str, before: str, after: str) -> str:
    if "\\)" not in latex:
        return f"\\({latex}\\)" if latex else ""
    return f"\\[{latex}\\]" if "\\]" not in latex else f"$${latex}$$"


def _write(file: TextIO, post: Post, *keys: str) -> None:
    """A line of a post: title and text apart, or all in its text."""
    title, body = plain_text(replace(post, body="")), plain_text(replace(post, title=""))
    texts = {"title": title, "text": body} if "title" in keys else {"text": f"{title}\n\n{body}".strip()}
    line: dict[str, Any] = {"_id": post.post_id, **texts, "metadata": {"markup": "text"}}
    file.write(json.dumps(line, ensure_ascii=False) + "\n")


def _write_judgments(file: TextIO, rows: Iterator[tuple[str, str, int]]) -> int:
    file.write(_HEADER)
    count = 0
    for query, document, grade in rows:
        file.write(f"{query}\t{document}\t{grade}\n")
        count += 1
    return count


def _query_id(question_id: str, topic_ids: set[str]) -> str:
    """Return the id of a training question among the queries: its own, unless a topic has that id."""
    plain_id = question_id.removeprefix(QUERY)
    return f"question:{plain_id}" if plain_id in topic_ids else plain_id
