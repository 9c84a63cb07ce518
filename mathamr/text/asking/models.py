"""Language models behind one face: an OpenAI-compatible server, or transformers in this process.

    model = ServerModel("llama3.2", "http://localhost:11434/v1")          # Ollama, vLLM, llama.cpp, OpenAI
    model = LocalModel("models/gemma-3-270m-q4_k_m.gguf")                 # a folder, a GGUF file, or a name of the hub
    for number, answer in model.answers([[{"role": "user", "content": "Is 7 prime?"}]]):
        answer.text, answer.tokens_out                                    # ('Yes.', 2)

A server is asked several questions at once, at most ``per_minute``. What may pass (429, 5xx, a time-out, a broken
connection, half an answer, an empty one) is asked again after 1, 2, 4, ... seconds, or when the server says.
"""

from __future__ import annotations

import json
import os
import re
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from graphs.errors import ConfigError, MathAMRError

if TYPE_CHECKING:
    import httpx

Conversation = Sequence[Mapping[str, str]]
_LONGEST_WAIT = 60.0  # seconds
_LONGEST_ANSWER = 10_000_000  # bytes
_LOCAL = ("localhost", "127.0.0.1", "::1")  # asked without a proxy
_AT_ONCE = 8  # conversations that a model in this process answers at once
# What servers say of a conversation that is longer than the model reads; other conversations may be answered.
_TOO_LONG = re.compile(r"context|too (?:long|large)|max_model_len", re.IGNORECASE)


class NoAnswer(MathAMRError):
    """A model that gave no answer; the next run asks again."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Answer of a model: its text, and tokens read and written, as the model counts them (0: unknown)."""

    text: str
    tokens_in: int = 0
    tokens_out: int = 0


class LanguageModel(Protocol):
    """Model that answers; ``name`` identifies it in data."""

    name: str

    def answers(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Answer | NoAnswer]]:
        """Yield each conversation's number and answer as soon as the answer is there, in any order."""
        ...


class ServerModel:
    """Model of an OpenAI-compatible server.

    Args:
        url: address up to ``/v1``.
        per_minute: largest number of requests a minute; None: no limit.
        attempts: number of requests for one answer.
        timeout: seconds that a request may take.
        max_tokens: largest length of an answer.
        sleep: function that waits some seconds.
        say: function called with a line about each wait for the server, once if several questions wait.

    Raises:
        ConfigError: no address, or no request a minute.
    """

    def __init__(
        self,
        name: str,
        url: str,
        *,
        per_minute: float | None = None,
        at_once: int = 4,
        attempts: int = 5,
        timeout: float = 120.0,
        max_tokens: int = 300,
        sleep: Callable[[float], None] = time.sleep,
        say: Callable[[str], None] | None = None,
    ) -> None:
        import httpx

        try:
            address = httpx.URL(url)
        except httpx.InvalidURL:
            address = httpx.URL()
        if address.scheme not in ("http", "https") or not address.host:
            raise ConfigError(f"the server {url!r} is no address; use one such as http://localhost:8000/v1")
        if per_minute is not None and not per_minute > 0:
            raise ConfigError(f"--per-minute {per_minute:g} allows no request; use a number above 0")
        self.name = name
        self._url = url.rstrip("/") + "/chat/completions"
        self._at_once, self._attempts, self._timeout, self._max_tokens = at_once, attempts, timeout, max_tokens
        self._is_local = address.host in _LOCAL
        key = os.environ.get("OPENAI_API_KEY", "")  # sent only to this server
        if not key.isascii():
            raise ConfigError("OPENAI_API_KEY has a character that no header may have; copy the key again")
        self._headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {key}"} if key else {})
        self._sleep, self._say, self._said_until = sleep, say, 0.0
        self._pause = 0.0 if per_minute is None else 60.0 / per_minute
        self._next, self._turn = 0.0, threading.Lock()

    def answers(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Answer | NoAnswer]]:
        """Yield each conversation's number and answer.

        Raises:
            ConfigError: the server refuses all requests, such as for an unknown model or a wrong key.
        """
        with self._client() as client, ThreadPoolExecutor(self._at_once, thread_name_prefix="asking") as threads:
            waiting = {threads.submit(self._answer, client, one): number for number, one in enumerate(conversations)}
            try:
                for done in as_completed(waiting):
                    yield waiting[done], done.result()
            finally:
                threads.shutdown(wait=False, cancel_futures=True)

    def _client(self) -> httpx.Client:
        """Return a client that follows no redirect, which would send the key elsewhere."""
        import httpx

        try:
            return httpx.Client(timeout=self._timeout, trust_env=not self._is_local)
        except (ImportError, OSError, ValueError, httpx.InvalidURL) as error:
            raise ConfigError(
                f"{self._url} cannot be asked with the proxy or the certificates of the environment ({error}); "
                "change or unset HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY or SSL_CERT_FILE"
            ) from error

    def _answer(self, client: httpx.Client, conversation: Conversation) -> Answer | NoAnswer:
        import httpx

        content = {"model": self.name, "messages": list(conversation), "temperature": 0, "max_tokens": self._max_tokens}
        problem, wait = "", 0.0
        for attempt in range(self._attempts):
            if attempt:
                self._wait(min(_LONGEST_WAIT, max(2.0 ** (attempt - 1), wait)), problem, attempt)
            self._wait_for_turn()
            wait = 0.0
            try:
                with client.stream("POST", self._url, content=json.dumps(content), headers=self._headers) as response:
                    body = _body(response)
                if response.is_success:
                    return _answer_in(body)
            except httpx.HTTPError as error:  # time-outs and broken connections among them
                problem = f"{type(error).__name__}: {error}"
                continue
            except (ValueError, KeyError, IndexError, TypeError, AttributeError, RecursionError) as error:
                problem = f"an answer that cannot be read ({type(error).__name__}: {error})"
                continue
            code, said = response.status_code, body[:2_000].decode("utf-8", "replace")
            if response.next_request is not None:
                address = str(response.next_request.url).removesuffix("/chat/completions")
                raise ConfigError(
                    f"{self._url} redirects ({code}); if you trust the new address, use --server {address}"
                )
            if code == 413 or (code == 400 and _TOO_LONG.search(said)):
                return NoAnswer(f"{self._url} refuses a conversation ({code}): {said[:200]}")
            if code not in (408, 409, 425, 429) and code < 500:
                raise ConfigError(f"{self._url} refuses the model {self.name!r} ({code}): {said}")
            problem, wait = f"{code}: {said[:200]}", _seconds(response.headers.get("Retry-After"))
        return NoAnswer(f"{self._url} gave no answer in {self._attempts} attempts; the last problem is {problem}")

    def _wait(self, seconds: float, problem: str, attempt: int) -> None:
        with self._turn:
            now = time.monotonic()
            if self._say is not None and now >= self._said_until:
                self._said_until = now + seconds
                again = f"asking again in {seconds:g} s (attempt {attempt + 1} of {self._attempts})"
                self._say(f"  {self._url} gave no answer ({problem.splitlines()[0]}); {again}")
        self._sleep(seconds)

    def _wait_for_turn(self) -> None:
        with self._turn:
            now = time.monotonic()
            start = max(now, self._next)
            self._next = start + self._pause
        if start > now:
            self._sleep(start - now)


class LocalModel:
    """Instruction model of transformers: a name of the hub, a folder, or a GGUF file.

    Decoding is greedy, so that equal input gives equal answers. The model is loaded at the first question.
    """

    def __init__(self, name: str, *, max_tokens: int = 300) -> None:
        self.name, self._max_tokens = name, max_tokens
        self._pipeline: Any = None

    def answers(self, conversations: Sequence[Conversation]) -> Iterator[tuple[int, Answer | NoAnswer]]:
        """Yield each conversation's number and answer, a batch after the other.

        Raises:
            ConfigError: a model that cannot be loaded; the message says how to place it locally.
        """
        for start in range(0, len(conversations), _AT_ONCE):
            some = [list(map(dict, one)) for one in conversations[start : start + _AT_ONCE]]
            for number, text in enumerate(self._written(some), start):
                yield number, Answer(text) if text.strip() else NoAnswer(f"{self.name} wrote an empty answer")

    def _written(self, conversations: list[list[dict[str, str]]]) -> list[str]:
        if self._pipeline is None:
            self._pipeline = self._load()
        tokenizer = self._pipeline.tokenizer
        if tokenizer.chat_template is None:  # a model that was not made for conversations
            prompts: list[Any] = ["\n\n".join(one["content"] for one in own) + "\n\n" for own in conversations]
        else:
            prompts = conversations
        generated = self._pipeline(
            prompts, batch_size=_AT_ONCE, do_sample=False, max_new_tokens=self._max_tokens, return_full_text=False
        )
        return [str(output[0]["generated_text"]) for output in generated]

    def _load(self) -> Any:
        place = Path(self.name)
        try:
            from transformers import AutoModelForCausalLM, AutoTokenizer, pipeline

            if place.suffix == ".gguf":
                folder, file = str(place.parent), {"gguf_file": place.name}
                tokenizer = AutoTokenizer.from_pretrained(folder, **file)
                model = AutoModelForCausalLM.from_pretrained(folder, **file)
                loaded: Any = pipeline("text-generation", model=model, tokenizer=tokenizer)
            else:
                loaded = pipeline("text-generation", model=self.name)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigError(
                f"the model {self.name!r} cannot be loaded ({str(error).splitlines()[0]}); download it on a machine "
                "with a network (hf download NAME --local-dir FOLDER) and give the folder instead of the name"
            ) from error
        if loaded.tokenizer.pad_token_id is None:
            loaded.tokenizer.pad_token_id = loaded.tokenizer.eos_token_id
        loaded.tokenizer.padding_side = "left"
        return loaded


def _body(response: httpx.Response) -> bytearray:
    """Return the content of a response; if it is longer than the longest answer, raise ValueError and stop reading."""
    body = bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > _LONGEST_ANSWER:
            raise ValueError(f"it has more than {_LONGEST_ANSWER:,} bytes")
    return body


def _answer_in(body: bytearray) -> Answer:
    said: Any = json.loads(body)
    text, used = said["choices"][0]["message"]["content"], said.get("usage")
    if not isinstance(text, str) or not text.strip():
        raise ValueError("it is empty")
    return Answer(text, _tokens(used, "prompt_tokens"), _tokens(used, "completion_tokens"))


def _tokens(used: object, name: str) -> int:
    """Return a number of tokens as a server counts them, 0 if it says none."""
    found = used.get(name) if isinstance(used, dict) else None
    return found if isinstance(found, int) else 0


def _seconds(value: str | None) -> float:
    """Return the seconds of a header, 0 for a date or without one."""
    try:
        return max(0.0, float(value or 0))
    except ValueError:
        return 0.0
