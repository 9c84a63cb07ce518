"""The real worker, on a stand-in for parser and torch: parses of a part of the text are divided and repeated."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from graphs.amr.document import DocumentAMR, sentences_of
from graphs.amr.parser import parse_chunks, parse_documents
from graphs.amr.penman_text import encode
from graphs.amr.transition import TransitionParser, WorkerStartError
from graphs.errors import Failure

STAND_IN = Path(__file__).with_name("stand_in_transition")
PLAIN = "Show that FORMULA_0 is finite ."


def parser_of() -> TransitionParser:
    return TransitionParser(
        sys.executable, "doc-sen-conll-amr-seed42", batch_size=8, seconds_per_chunk=20.0, start_seconds=60.0
    )


@pytest.fixture
def parser(monkeypatch: pytest.MonkeyPatch) -> Iterator[TransitionParser]:
    monkeypatch.setenv("PYTHONPATH", str(STAND_IN))
    with parser_of() as running:
        yield running


def words_of(document: DocumentAMR | Failure) -> set[str]:
    assert isinstance(document, DocumentAMR)
    text = encode(document.graph).replace('"', " ").replace(")", " ")
    return set(text.split())


@pytest.mark.parametrize(("word", "kind"), [("short", "clipped"), ("unmerged", "merge")])
def test_a_parse_of_the_first_window_only_is_divided_until_it_is_whole(
    parser: TransitionParser, word: str, kind: str
) -> None:
    sentences = [f"The {word} first is here .", "Then comes the second one .", "Last is the third ."]
    other, document = parse_documents(parser, [("6", [PLAIN]), ("7", sentences)])
    assert isinstance(other, DocumentAMR)
    assert not other.failures  # a neighbour in the batch is not divided
    assert {"first", "second", "third"} <= words_of(document)
    assert isinstance(document, DocumentAMR)
    assert [(failure.post_id, failure.kind) for failure in document.failures] == [("7", kind)]
    assert "parsed again in 3 parts, 0 of which failed" in document.failures[0].message
    assert len(sentences_of(document.graph)[1]) == 3


def test_what_the_reader_of_a_clipped_parse_is_told(parser: TransitionParser) -> None:
    (failure,) = parse_chunks(parser, [["one two three four five six seven short nine ten eleven twelve ."]])
    assert failure == Failure("", "amr", "clipped", "the graph is of 10 of the 13 tokens sent")


def test_a_single_long_sentence_is_divided_between_words(parser: TransitionParser) -> None:
    words = ["short", *(f"word{i}" for i in range(11))]
    (document,) = parse_documents(parser, [("7", [" ".join(words)])])
    assert set(words) <= words_of(document)


def test_garbage_and_errors_are_failures_of_their_own_chunk(parser: TransitionParser) -> None:
    answers = parse_documents(parser, [("1", [PLAIN]), ("2", ["crash"]), ("3", ["garbage"]), ("4", [PLAIN])])
    assert [answer.kind if isinstance(answer, Failure) else "graph" for answer in answers] == [
        "graph",
        "parser_error",
        "truncated",
        "graph",
    ]


def test_a_torch_older_than_the_gpu_is_said_before_the_first_parse(
    parser: TransitionParser, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STAND_IN_GPU", "9.0")
    with pytest.raises(WorkerStartError, match=r"torch 1\.13\.1\+cu116 has no code for NVIDIA H100 \(sm_90; it has"):
        parser.parse([[PLAIN]])
    monkeypatch.setenv("STAND_IN_GPU", "8.6")
    assert isinstance(parser.parse([[PLAIN]])[0], str)
