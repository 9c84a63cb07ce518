"""Language models on a local server that fails in every way, and answers that outlive a kill."""

from __future__ import annotations

import json
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import patch

import pytest

from graphs.errors import ConfigError, CorpusError
from mathamr.text.asking import models
from mathamr.text.asking.answers import KeptAnswers, Question
from mathamr.text.asking.models import Answer, Conversation, NoAnswer, ServerModel

ROOT = Path(__file__).resolve().parents[4]
GOOD = json.dumps(
    {"choices": [{"message": {"content": "Yes."}}], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
)
Reply = tuple[int, dict[str, str], str]


@contextmanager
def server(*replies: Reply | str) -> Iterator[tuple[str, list[dict[str, Any]]]]:
    """A server that gives these replies in turn, then good ones; its address, and the requests that it got."""
    left, requests = list(replies), list[dict[str, Any]]()
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            content = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = left.pop(0) if left else (200, {}, GOOD)
            requests.append({"content": content, "key": self.headers.get("Authorization"), "path": self.path})
            if reply == "hang":
                ended.wait(30)
                return
            if reply == "close":
                return
            assert not isinstance(reply, str)
            code, headers, body = reply
            self.send_response(code)
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *arguments: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        thread = threading.Thread(target=running.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield f"http://127.0.0.1:{running.server_port}/v1", requests
        finally:
            ended.set()
            running.shutdown()
            thread.join()


def question(text: str = "why?") -> Question:
    return Question("p1/0", [{"role": "user", "content": text}])


def ask(url: str, count: int = 1, **options: Any) -> tuple[list[Answer | NoAnswer], list[float]]:
    """The answers in order, and the seconds that were waited for."""
    waits: list[float] = []
    model = ServerModel("m", url, sleep=waits.append, **{"attempts": 3, "timeout": 60, "at_once": 1, **options})
    found = dict(model.answers([question(str(number)).conversation for number in range(count)]))
    return [found[number] for number in range(count)], waits


@pytest.mark.parametrize(
    "reply",
    [
        (429, {}, "slowly"),
        (500, {}, "oh"),
        (503, {}, ""),
        "close",
        (200, {}, GOOD[: len(GOOD) // 2]),
        (200, {}, ""),
        (200, {}, "[]"),
        (200, {}, GOOD.replace("Yes.", "  ")),
        (200, {}, GOOD.replace('"Yes."', "null")),
        (200, {}, '{"choices": ["Yes."]}'),
    ],
)
def test_what_may_pass_is_asked_again(reply: Reply | str) -> None:
    with server(reply, reply) as (url, requests):
        answers, waits = ask(url)
    assert answers == [Answer("Yes.", 7, 2)]
    assert (len(requests), waits) == (3, [1.0, 2.0])
    assert requests[0]["path"] == "/v1/chat/completions"
    assert requests[0]["content"]["messages"] == [{"role": "user", "content": "0"}]


def test_a_server_that_hangs_is_asked_again() -> None:
    waits: list[float] = []

    def patient(seconds: float) -> None:
        waits.append(seconds)
        while len(requests) < len(waits):  # a slow machine has not read the request yet
            time.sleep(0.01)
        client.timeout = 60 if len(waits) == 2 else 0.1

    with server("hang", "hang") as (url, requests):
        model = ServerModel("m", url, attempts=3, timeout=0.1, sleep=patient)
        client = model._client()
        with patch.object(model, "_client", lambda: client):
            assert list(model.answers([question().conversation])) == [(0, Answer("Yes.", 7, 2))]
    assert (len(requests), waits) == (3, [1.0, 2.0])


def test_the_server_says_how_long_to_wait_and_at_last_there_is_no_answer() -> None:
    with server((429, {"Retry-After": "17"}, ""), (429, {"Retry-After": "Sun, 22 Nov 2026"}, "")) as (url, _):
        assert ask(url) == ([Answer("Yes.", 7, 2)], [17.0, 2.0])
    with server(*[(500, {}, "broken")] * 3) as (url, _):
        [answer, other], _ = ask(url, 2)
    assert isinstance(answer, NoAnswer)
    assert "no answer in 3 attempts; the last problem is 500: broken" in str(answer)
    assert isinstance(other, Answer)  # the others are asked all the same


def test_a_wait_for_the_server_is_said_once(monkeypatch: pytest.MonkeyPatch) -> None:
    clock, said = [0.0], list[str]()
    monkeypatch.setattr(models, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    with server(*[(503, {}, "busy")] * 2) as (url, _):
        model = ServerModel(
            "m", url, sleep=lambda seconds: clock.append(clock.pop() + seconds), at_once=1, say=said.append
        )
        assert list(model.answers([question().conversation])) == [(0, Answer("Yes.", 7, 2))]
        model._wait(2.0, "503: busy\n</html>", 1)
        clock[0] -= 1.0
        model._wait(2.0, "503: busy\n</html>", 1)  # of another question, meanwhile
    assert said == [
        f"  {url}/chat/completions gave no answer (503: busy); asking again in {seconds} s (attempt {attempt} of 5)"
        for seconds, attempt in ((1, 2), (2, 3), (2, 2))
    ]


@pytest.mark.parametrize("code", [400, 401, 404, 300])
def test_what_never_passes_is_an_error(code: int) -> None:
    with (
        server((code, {"Location": "http://127.0.0.1:1/"}, "no such model")) as (url, requests),
        pytest.raises(ConfigError, match=rf"refuses the model 'm' \({code}\): no such model"),
    ):
        ask(url)
    assert len(requests) == 1
    for address in ("localhost:8000", "http://localhost:abc/v1", "http://", "https:///v1", "http://[::1/v1"):
        with pytest.raises(ConfigError, match=re.escape(f"{address!r} is no address; use one such as http://")):
            ServerModel("m", address)
    for least in (0.0, -1.0, float("nan")):
        with pytest.raises(ConfigError, match=r"--per-minute \S+ allows no request"):
            ServerModel("m", "http://localhost:8000", per_minute=least)


@pytest.mark.parametrize("location", ["https://example.org/llm/v1/chat/completions", "/llm/v1/chat/completions"])
def test_a_redirect_names_the_new_address(location: str) -> None:
    with server((308, {"Location": location}, "")) as (url, requests):
        address = location.removesuffix("/chat/completions")
        place = address if "example" in address else url.removesuffix("/v1") + address
        with pytest.raises(ConfigError, match=rf"completions redirects \(308\); .* use --server {re.escape(place)}$"):
            ask(url)
    assert len(requests) == 1


def test_a_proxy_that_cannot_be_used_is_named_and_a_local_server_needs_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks://127.0.0.1:1080")
    with pytest.raises(ConfigError, match=r"cannot be asked with the proxy .* change or unset HTTP_PROXY"):
        list(ServerModel("m", "http://example.org/v1").answers([question("a").conversation]))
    with server() as (url, requests):
        ask(url)
    assert requests
    monkeypatch.setenv("OPENAI_API_KEY", "sk-ä")
    with pytest.raises(ConfigError, match="OPENAI_API_KEY has a character that no header may have"):
        ServerModel("m", "http://localhost:8000/v1")


@pytest.mark.parametrize("reply", [(400, {}, '{"code": "context_length_exceeded"}'), (413, {}, "large")])
def test_a_conversation_that_is_too_long_does_not_end_the_others(reply: Reply) -> None:
    with server(reply) as (url, requests):
        [long, other], waits = ask(url, 2)
    assert isinstance(long, NoAnswer)
    assert str(long).endswith(f"refuses a conversation ({reply[0]}): {reply[2]}")
    assert (other, len(requests), waits) == (Answer("Yes.", 7, 2), 2, [])


def test_an_endless_answer_is_not_read_to_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(models, "_LONGEST_ANSWER", len(GOOD))
    with server((200, {}, GOOD + " ")) as (url, requests):
        assert ask(url) == ([Answer("Yes.", 7, 2)], [1.0])
        assert len(requests) == 2
    with server(*[(200, {}, GOOD * 2)] * 3) as (url, _):
        [answer], _ = ask(url)
    assert f"cannot be read (ValueError: it has more than {len(GOOD)} bytes)" in str(answer)


@pytest.mark.parametrize("usage", ['"many"', "[1]", '{"prompt_tokens": Infinity, "completion_tokens": null}', "null"])
def test_an_answer_counts_without_its_tokens(usage: str) -> None:
    body = json.dumps({"choices": [{"message": {"content": "Yes."}}]})
    with server((200, {}, f'{body[:-1]}, "usage": {usage}}}')) as (url, _):
        assert ask(url) == ([Answer("Yes.")], [])


def test_the_key_is_sent_and_requests_keep_their_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "secret")
    with server() as (url, requests):
        _, waits = ask(url, 3, per_minute=1)
    assert {request["key"] for request in requests} == {"Bearer secret"}
    assert [round(wait / 60) for wait in waits] == [1, 2]  # nothing really waits here, so the distances add up


class Script:
    """A model that answers in capital letters; ``before`` is called with each number before its answer."""

    def __init__(self, name: str = "script", before: Callable[[int], object] = lambda number: None) -> None:
        self.name, self._before = name, before

    def answers(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Answer | NoAnswer]]:
        for number, one in enumerate(conversations):
            self._before(number)
            text = one[-1]["content"]
            yield number, Answer(text.upper(), 1, 1) if text else NoAnswer("nothing")


KILLED = """
import os, signal, sys
from pathlib import Path
from mathamr.text.asking.answers import KeptAnswers
from tests.mathamr.text.asking.test_asking import Script, question
killed = Script(before=lambda number: number == {at} and os.kill(os.getpid(), signal.SIGKILL))
KeptAnswers(Path(sys.argv[1])).ask(killed, [question(f"w{{i}}") for i in range(4)])
"""


@pytest.mark.parametrize("at", [1, 3])
def test_a_kill_after_any_answer_loses_none(at: int, tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    ended = subprocess.run([sys.executable, "-c", KILLED.format(at=at), str(path)], cwd=ROOT, check=False)
    assert ended.returncode == -signal.SIGKILL
    assert len(path.read_text().splitlines()) == at
    again = KeptAnswers(path)
    assert again.ask(Script(), [question(f"w{i}") for i in range(4)]) == ["W0", "W1", "W2", "W3"]
    assert again.num_asked == 4 - at


def test_a_line_that_a_kill_has_cut_is_asked_again(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    questions = [question("a\u2028b"), question("ü")]
    KeptAnswers(path).ask(Script(), questions)
    whole = path.read_bytes()
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        assert KeptAnswers(path).ask(Script(), questions) == ["A\u2028B", "Ü"]
        assert sorted(path.read_bytes().splitlines()) == sorted(whole.splitlines())
    path.write_text("[]\n")
    with pytest.raises(CorpusError, match=r"answers\.jsonl:1: is no answer"):
        KeptAnswers(path)


def test_an_answer_that_another_process_writes_meanwhile_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "answers.jsonl"
    other, own = KeptAnswers(path), KeptAnswers(path)
    other.ask(Script(), [question("a")])
    whole = path.read_bytes()
    path.write_bytes(whole + b'{"name": ')  # being written
    assert KeptAnswers(path).estimate("script", [question("a"), question("b")]).questions == 1
    assert path.read_bytes() == whole + b'{"name": '
    assert own.ask(Script(), [question("a"), question("b")]) == ["A", "B"]
    assert own.num_asked == 1
    assert other.ask(Script(), [question("b"), question("c")]) == ["B", "C"]
    assert [json.loads(line)["text"] for line in path.read_text().splitlines()] == ["A", "B", "C"]


def test_another_model_and_another_prompt_are_asked_and_no_answer_is_not_kept(tmp_path: Path) -> None:
    kept = KeptAnswers(tmp_path / "answers.jsonl")
    [answer, nothing, same] = kept.ask(Script(), [question(), question(""), question()])
    assert (answer, same) == ("WHY?", "WHY?")
    assert isinstance(nothing, NoAnswer)
    assert kept.num_asked == 1
    kept.ask(Script("other"), [question()])
    kept.ask(Script(), [question("how?")])
    records = [json.loads(line) for line in kept.path.read_text().splitlines()]
    assert [(one["name"], one["model"], one["text"]) for one in records] == [
        ("p1/0", "script", "WHY?"),
        ("p1/0", "other", "WHY?"),
        ("p1/0", "script", "HOW?"),
    ]
    assert len({one["prompt_hash"] for one in records}) == 2
    estimate = kept.estimate("script", [question(), question("x" * 350)])
    assert (estimate.questions, estimate.tokens_in, estimate.tokens_out) == (1, 100, 60)
    assert estimate.described((1_000, 10_000)).endswith(" 100 tokens to read and 60 to write, for about 0.70")
