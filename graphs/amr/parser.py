"""Interface of AMR parsers, and parsing of documents in chunks and batches; a batch that fails is halved.

A parser takes chunks (lists of sentences) and returns a Penman text for each. A chunk of one sentence has its own root;
others have a root ``multi-sentence`` or ``document`` with ``:snt1``, ``:snt2`` ...

>>> from graphs.amr.penman_text import atom
>>> class Parrot:
...     name, version, model = "parrot", "1", "none"
...     def parse(self, chunks):
...         if any("crash" in sentence for chunk in chunks for sentence in chunk):
...             raise AMRError("the parrot fell off its perch", kind="crash")
...         return [f"(s / say-01 :ARG1 {atom(chunk[0])})" for chunk in chunks]
>>> good, bad = parse_documents(Parrot(), [("1", ["hello"]), ("2", ["crash"])])
>>> good.graph.triples
[('s', ':instance', 'say-01'), ('s', ':ARG1', 'hello')]
>>> bad
Failure(post_id='2', stage='amr', kind='crash', message='the parrot fell off its perch')
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Protocol, runtime_checkable

from graphs.amr.completeness import completed
from graphs.amr.document import DocumentAMR, merge
from graphs.amr.penman_text import decode
from graphs.errors import AMRError, Failure, MathAMRError
from graphs.processes import batched

MAX_TOKENS = 500  # largest number in a chunk (thesis, section on AMR parsing)
_BATCH = 64  # chunks that a parser gets at once
_TOKEN = re.compile(r"\w+|[^\w\s]")


class AMRParser(Protocol):
    """Parser of sentences with ``FORMULA_i`` placeholders; collections record its name, version and model."""

    @property
    def name(self) -> str: ...

    @property
    def version(self) -> str: ...

    @property
    def model(self) -> str: ...

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return one Penman text, or a :class:`Failure` (``stage='amr'``, ``post_id=''``), for each chunk.

        It may raise :class:`AMRError` for the whole batch, which is then retried in halves.
        """


@runtime_checkable
class DocumentSource(Protocol):
    """Parser that returns whole documents by post id, e.g. a reader of existing graphs."""

    def document(self, post_id: str, sentences: Sequence[str]) -> DocumentAMR | Failure: ...


def chunk_sentences(sentences: Sequence[str], max_tokens: int) -> list[list[str]]:
    """Split sentences into runs of at most ``max_tokens`` tokens; a longer sentence is cut between words.

    >>> chunk_sentences(["Let FORMULA_0 be a group.", "Is it finite?", "Why?"], max_tokens=10)
    [['Let FORMULA_0 be a group.', 'Is it finite?'], ['Why?']]
    """
    if max_tokens < 1:
        raise AMRError(f"max_tokens is {max_tokens}; a chunk holds at least one token", kind="chunk")
    chunks: list[list[str]] = []
    room = 0
    for sentence in sentences:
        for part, tokens in _parts(sentence, max_tokens):
            if tokens > room or not chunks:
                chunks.append([])
                room = max_tokens
            chunks[-1].append(part)
            room -= tokens
    return chunks


def _parts(sentence: str, max_tokens: int) -> list[tuple[str, int]]:
    """Yield the sentence, or its pieces if it has too many tokens, each with its number of tokens."""
    tokens = len(_TOKEN.findall(sentence))
    if tokens == 0:
        return []
    if tokens <= max_tokens:
        return [(sentence, tokens)]
    starts = [match.start() for match in _TOKEN.finditer(sentence)]
    pieces: list[tuple[str, int]] = []
    first = 0
    while first < len(starts):
        last = min(first + max_tokens, len(starts))
        # Not between a word and its punctuation, if there is a space to cut at.
        cut = last
        while cut < len(starts) and cut > first + 1 and not sentence[starts[cut] - 1].isspace():
            cut -= 1
        if cut == first + 1:
            cut = last
        end = starts[cut] if cut < len(starts) else len(sentence)
        pieces.append((sentence[starts[first] : end].strip(), cut - first))
        first = cut
    return pieces


def parse_chunks(parser: AMRParser, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
    """Return the parser's answer for each chunk. A failing batch is halved until the failing chunk is alone.

    A batch fails if the parser raises :class:`AMRError`, does not return one answer for each chunk, or has a bug. A bug
    becomes the record of the one chunk that causes it, with the traceback. Other errors of this project, such as a
    parser that cannot start, are raised.
    """
    return halved(parser.parse, chunks, parser.name)


def halved(
    parse: Callable[[Sequence[Sequence[str]]], list[str | Failure]], chunks: Sequence[Sequence[str]], name: str
) -> list[str | Failure]:
    """Return :func:`parse_chunks` of the parser ``name``, which parses a batch by ``parse``."""
    if not chunks:
        return []
    try:
        answers = parse(chunks)
        if len(answers) == len(chunks):
            return list(answers)
        error = AMRError(f"{name} gave {len(answers)} graphs for {len(chunks)} chunks", kind="wrong_number")
    except AMRError as raised:
        error = raised
    except MathAMRError:
        raise
    except Exception as fault:  # noqa: BLE001 - a fault on one chunk of millions must not end the build
        error = AMRError("".join(traceback.format_exception(fault)), kind=f"bug: {type(fault).__name__}")
    if len(chunks) == 1:
        return [Failure("", "amr", error.kind, error.message)]
    half = len(chunks) // 2
    return halved(parse, chunks[:half], name) + halved(parse, chunks[half:], name)


def parse_documents(parser: AMRParser, documents: Sequence[tuple[str, Sequence[str]]]) -> list[DocumentAMR | Failure]:
    """Return the AMR of each document, given as post id and sentences; a :class:`Failure` if no chunk has a graph.

    Batches of chunks go across documents. If the parser read only a part of a chunk, the chunk is split and parsed
    again (:mod:`graphs.amr.completeness`). A document with failed chunks is made from the others, with the failures in
    ``DocumentAMR.failures``. A :class:`DocumentSource` is asked by post id instead.
    """
    if isinstance(parser, DocumentSource):
        return [parser.document(post_id, sentences) for post_id, sentences in documents]
    chunks: list[list[str]] = []
    spans: list[range] = []
    for _, sentences in documents:
        own = chunk_sentences(sentences, MAX_TOKENS)
        spans.append(range(len(chunks), len(chunks) + len(own)))
        chunks.extend(own)
    parse = partial(parse_chunks, parser)
    answers = [answer for batch in batched(chunks, _BATCH) for answer in parse(batch)]

    def whole(number: int) -> list[str | Failure]:
        return completed(parse, chunks[number], answers[number])

    return [
        _document(post_id, [answer for number in span for answer in whole(number)])
        for (post_id, _), span in zip(documents, spans, strict=True)
    ]


def _document(post_id: str, answers: Sequence[str | Failure]) -> DocumentAMR | Failure:
    if not answers:
        return Failure(post_id, "amr", "no_text", "the post has no sentence to parse")
    graphs, failures = [], []
    for answer in answers:
        if isinstance(answer, Failure):
            failures.append(replace(answer, post_id=post_id))
            continue
        try:
            graphs.append(decode(answer, forest=True))
        except AMRError as error:
            failures.append(Failure(post_id, "amr", error.kind, error.message))
    if graphs:
        try:
            return replace(merge(graphs), failures=tuple(failures))
        except AMRError as error:
            failures.append(Failure(post_id, "amr", error.kind, error.message))
    if len(failures) == 1:
        return failures[0]
    return replace(failures[0], message=f"all {len(answers)} chunks failed, the first: {failures[0].message}")
