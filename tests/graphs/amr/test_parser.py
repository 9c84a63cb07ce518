"""Documents through a parser: chunks, batches, and what a failing batch leaves."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from graphs.amr.document import DocumentAMR
from graphs.amr.parser import chunk_sentences, parse_chunks, parse_documents
from graphs.errors import AMRError, ConfigError, Failure


class Stub:
    """Fails a whole batch where a sentence says ``crash``; loses an answer where one says ``lose``."""

    name, version, model = "stub", "1", "none"

    def __init__(self) -> None:
        self.batches: list[int] = []

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        self.batches.append(len(chunks))
        words = {word for chunk in chunks for sentence in chunk for word in sentence.split()}
        if "crash" in words:
            raise AMRError("out of memory", kind="memory")
        answers: list[str | Failure] = []
        for chunk in chunks:
            if "broken" in chunk[0]:
                answers.append("(b / broken")
            elif "failure" in chunk[0]:
                answers.append(Failure("", "amr", "timeout", "took 60 s"))
            elif len(chunk) == 1:
                answers.append("(s / say-01)")
            else:
                parts = " ".join(f":snt{i} (s{i} / say-01)" for i in range(1, len(chunk) + 1))
                answers.append(f"(m / multi-sentence {parts})")
        return answers[:-1] if "lose" in words else answers


def test_chunks_end_at_sentence_ends_and_keep_to_the_bound() -> None:
    sentences = ["one two three .", "four five .", "six"]
    assert chunk_sentences(sentences, 7) == [sentences[:2], sentences[2:]]
    assert chunk_sentences(sentences, 500) == [sentences]
    assert chunk_sentences([], 500) == []
    assert chunk_sentences(["", "  "], 500) == []


def test_a_sentence_beyond_the_bound_is_cut_between_words() -> None:
    words = [f"w{i}," for i in range(40)]
    chunks = chunk_sentences([" ".join(words)], 15)
    assert all(len(chunk) == 1 for chunk in chunks)
    assert " ".join(chunk[0] for chunk in chunks).split() == words
    assert max(2 * len(chunk[0].split()) for chunk in chunks) <= 15
    assert "".join(c[0] for c in chunk_sentences(["," * 40], 15)) == "," * 40
    with pytest.raises(AMRError, match="at least one token"):
        chunk_sentences(["a"], 0)


def test_a_failing_batch_is_halved_until_the_bad_chunk_stands_alone() -> None:
    parser = Stub()
    chunks = [["fine"] for _ in range(16)]
    chunks[5] = ["crash"]
    answers = parse_chunks(parser, chunks)
    assert [isinstance(answer, Failure) for answer in answers] == [i == 5 for i in range(16)]
    assert answers[5] == Failure("", "amr", "memory", "out of memory")
    assert len(parser.batches) == 9  # 16, then two of each of 8, 4, 2, 1


def test_a_wrong_number_of_answers_is_halved_too() -> None:
    answers = parse_chunks(Stub(), [["fine"], ["lose"], ["fine"]])
    assert [answer.kind if isinstance(answer, Failure) else answer for answer in answers] == [
        "(s / say-01)",
        "wrong_number",
        "(s / say-01)",
    ]


def test_a_fault_of_the_parser_is_the_record_of_its_chunk() -> None:
    class Faulty(Stub):
        def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
            if ["b"] in [list(chunk) for chunk in chunks]:
                raise ZeroDivisionError
            return ["(a / a)"] * len(chunks)

    good, bad = parse_chunks(Faulty(), [["a"], ["b"]])
    assert good == "(a / a)"
    assert isinstance(bad, Failure)
    assert bad.kind == "bug: ZeroDivisionError"
    assert "Traceback" in bad.message


def test_a_parser_that_cannot_start_ends_the_build() -> None:
    class Missing(Stub):
        def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
            raise ConfigError("no such interpreter")

    with pytest.raises(ConfigError):
        parse_chunks(Missing(), [["a"]])


def test_a_document_survives_the_chunks_it_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.amr.parser.MAX_TOKENS", 4)
    documents = [
        ("1", ["fine a b c", "broken d e f", "fine g h i"]),
        ("2", ["crash"]),
        ("3", []),
        ("4", ["failure a b c", "crash d e f"]),
        ("5", ["fine"]),
    ]
    first, second, third, fourth, fifth = parse_documents(Stub(), documents)
    assert isinstance(first, DocumentAMR)
    assert [t[2] for t in first.graph.triples if t[1] == ":instance"] == ["multi-sentence", "say-01", "say-01"]
    assert [(f.post_id, f.kind) for f in first.failures] == [("1", "truncated")]
    assert second == Failure("2", "amr", "memory", "out of memory")
    assert isinstance(third, Failure)
    assert third.kind == "no_text"
    assert isinstance(fourth, Failure)
    assert (fourth.post_id, fourth.kind) == ("4", "timeout")
    assert "all 2 chunks failed" in fourth.message
    assert isinstance(fifth, DocumentAMR)
    assert fifth.failures == ()
