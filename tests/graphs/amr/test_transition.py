"""The protocol of the worker process, driven with a stand-in that can crash, hang and return anything."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from omegaconf import OmegaConf

from graphs.amr.document import DocumentAMR
from graphs.amr.parser import parse_chunks, parse_documents
from graphs.amr.penman_text import encode
from graphs.amr.transition import WORKER, TransitionParser, WorkerStartError, _Worker
from graphs.errors import AMRError, ConfigError, Failure

ROOT = Path(__file__).resolve().parents[3]
STAND_IN = Path(__file__).with_name("stand_in_worker.py")


def parser_of(model: str = "stand-in", seconds: float = 60.0, batch_size: int = 8) -> TransitionParser:
    return TransitionParser(
        sys.executable,
        model,
        worker=STAND_IN,
        batch_size=batch_size,
        seconds_per_chunk=seconds,
        start_seconds=60.0,
    )


def real_parser(python: str) -> TransitionParser:
    options = OmegaConf.load(ROOT / "conf" / "parsers" / "default.yaml").transition
    return TransitionParser(
        python,
        options.model,
        batch_size=options.batch_size,
        seconds_per_chunk=options.seconds_per_chunk,
        start_seconds=options.start_seconds,
    )


@pytest.fixture
def parser() -> Iterator[TransitionParser]:
    with parser_of() as running:
        yield running


@pytest.fixture
def patient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Give a batch in which no chunk hangs a minute more, on a machine with other work to do."""
    answers = _Worker.answers

    def wait(worker: _Worker, chunks: Sequence[Sequence[str]], deadline: float) -> list[str | Failure]:
        hangs = any("hang" in sentence for chunk in chunks for sentence in chunk)
        return answers(worker, chunks, deadline if hangs else deadline + 60)

    monkeypatch.setattr(_Worker, "answers", wait)


def kinds(answers: list[str | Failure]) -> list[str]:
    return [answer.kind if isinstance(answer, Failure) else "graph" for answer in answers]


def test_a_batch_goes_through_and_the_worker_tells_its_version(parser: TransitionParser) -> None:
    assert parser.parse([["one"], ["two", "three"]]) == [
        '(s / say-01~0 :ARG1 "one")',
        "(d / document :snt1 (s1 / say-01~e.1) :snt2 (s2 / say-01~e.2))",
    ]
    assert (parser.name, parser.version, parser.model) == ("transition", "0.0.1", "stand-in")


def test_a_batch_larger_than_the_pipes_goes_through(parser: TransitionParser) -> None:
    long = "word " * 4000
    assert kinds(parser.parse([[long]] * 40)) == ["graph"] * 40


@pytest.mark.parametrize(
    ("word", "kind"),
    [("crash", "died"), ("raise", "parser_error"), ("chatter", "protocol"), ("refuse", "parser_error")],
)
def test_the_chunk_at_fault_fails_alone(parser: TransitionParser, word: str, kind: str) -> None:
    answers = parse_chunks(parser, [["one"], ["two"], [word], ["four"], ["five"]])
    assert kinds(answers) == ["graph", "graph", kind, "graph", "graph"]


def test_a_dead_worker_leaves_its_last_words(parser: TransitionParser) -> None:
    (failure,) = parse_chunks(parser, [["crash"]])
    assert isinstance(failure, Failure)
    assert "exit status 137" in failure.message
    assert "out of memory" in failure.message


@pytest.mark.usefixtures("patient")
def test_a_chunk_that_hangs_is_given_up_after_its_time() -> None:
    with parser_of(seconds=0.7) as parser:
        assert kinds(parse_chunks(parser, [["one"], ["hang"]])) == ["graph", "timeout"]
        assert kinds(parse_chunks(parser, [["again"]])) == ["graph"]


@pytest.mark.usefixtures("patient")
def test_what_a_chunk_that_hangs_costs_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    seconds, batch_size = 0.5, 4
    batches: list[int | tuple[int, str]] = []
    starts: list[Sequence[str]] = []
    answers, start = _Worker.answers, _Worker.__init__

    def watched(worker: _Worker, chunks: Sequence[Sequence[str]], deadline: float) -> list[str | Failure]:
        limit = deadline - time.monotonic()
        assert limit <= seconds * len(chunks)
        batches.append(len(chunks))
        try:
            return answers(worker, chunks, deadline)
        except AMRError as error:
            batches[-1] = (len(chunks), error.kind)
            raise

    def counted(worker: _Worker, command: Sequence[str]) -> None:
        starts.append(command)
        start(worker, command)

    monkeypatch.setattr(_Worker, "answers", watched)
    monkeypatch.setattr(_Worker, "__init__", counted)
    with parser_of(seconds=seconds, batch_size=batch_size) as parser:
        found = parse_chunks(parser, [["hang" if i == 6 else "fine"] for i in range(12)])
    assert kinds(found) == ["graph"] * 6 + ["timeout"] + ["graph"] * 5
    # The first four go through; 4, 2 and 1 chunks run out of time, 2 * 4 - 1 times the limit; the others are not lost.
    assert batches == [4, (4, "timeout"), 2, (2, "timeout"), (1, "timeout"), 1, 4]
    assert len(starts) == 4


@pytest.mark.parametrize("limits", [{"seconds": 0}, {"batch_size": 0}])
def test_a_limit_that_lets_nothing_through_is_refused(limits: dict[str, int]) -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        parser_of(**limits)  # type: ignore[arg-type]


def test_broken_empty_and_disconnected_graphs_end_where_they_should(parser: TransitionParser) -> None:
    documents = [("1", ["broken"]), ("2", ["empty"]), ("3", ["disconnected"]), ("4", ["fine"])]
    broken, empty, disconnected, fine = parse_documents(parser, documents)
    assert isinstance(broken, Failure)
    assert (broken.post_id, broken.stage, broken.kind) == ("1", "amr", "truncated")
    assert isinstance(empty, DocumentAMR)
    assert encode(empty.graph) == "(a / amr-empty)"
    assert isinstance(disconnected, DocumentAMR)
    assert disconnected.reattached == 1
    assert encode(disconnected.graph) == "(a / and :op1 (b / b) :rel (c / c))"
    assert isinstance(fine, DocumentAMR)
    assert encode(fine.graph) == '(s / say-01 :ARG1 "fine")'


def test_the_worker_ends_with_the_last_reference_to_its_parser() -> None:
    parser = parser_of()
    parser.parse([["one"]])
    assert parser._worker is not None
    process = parser._worker._process
    assert process.poll() is None
    del parser
    assert process.wait(timeout=60) == -signal.SIGKILL


@pytest.mark.parametrize("model", ["no-start", "rude"])
def test_a_worker_that_cannot_start_is_an_error_and_no_failure_of_a_chunk(model: str) -> None:
    with pytest.raises(WorkerStartError, match="did not start"), parser_of(model) as parser:
        parse_chunks(parser, [["one"], ["two"]])


def test_an_interpreter_that_is_not_there_is_named() -> None:
    with pytest.raises(WorkerStartError, match="/nowhere/python"), real_parser("/nowhere/python") as parser:
        parser.parse([["one"]])


def test_the_real_worker_says_what_it_lacks() -> None:
    # This environment has no transition-amr-parser: the worker dies at its import, and the message says so.
    with pytest.raises(WorkerStartError, match="transition_amr_parser"), real_parser(sys.executable) as parser:
        parser.parse([["one"]])
    assert WORKER.name == "transition_worker.py"


@pytest.mark.weights
def test_the_real_parser_parses_a_placeholder() -> None:
    python = os.environ.get("TRANSITION_PYTHON", "")
    if not python:
        pytest.skip("TRANSITION_PYTHON names no interpreter with transition-amr-parser")
    with real_parser(python) as parser:
        (document,) = parse_documents(parser, [("1", ["Prove that FORMULA_0 is finite.", "Why?"])])
    assert isinstance(document, DocumentAMR)
    assert "prove-01" in encode(document.graph)
