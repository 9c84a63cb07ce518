"""Answers of language models on disk: one JSON object a line, each written at once.

>>> import tempfile
>>> from collections.abc import Iterator
>>> class Echo:
...     name = "echo"
...     def answers(self, conversations) -> Iterator[tuple[int, Answer]]:
...         yield from ((i, Answer(one[-1]["content"].upper())) for i, one in enumerate(conversations))
>>> kept = KeptAnswers(Path(tempfile.mkdtemp()) / "answers.jsonl")
>>> question = Question("p1/0", [{"role": "user", "content": "why?"}])
>>> kept.ask(Echo(), [question]), kept.ask(Echo(), [question]), kept.num_asked
(['WHY?'], ['WHY?'], 1)

An answer is found again by the model's name and a hash of the conversation, so a kill loses none, and a changed prompt
is asked anew. Several processes may share the file: one at a time asks, and the others read what it wrote.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from graphs.counts import counted
from graphs.errors import CorpusError, Failure
from graphs.shared_files import locked
from mathamr.text.asking.models import Answer, Conversation, LanguageModel, NoAnswer

_CHARACTERS_A_TOKEN = 3.5  # of English with LaTeX; for estimates alone


@dataclass(frozen=True, slots=True)
class Question:
    """Conversation that asks a model, and the id of what it asks about."""

    name: str
    conversation: Conversation

    @property
    def prompt_hash(self) -> str:
        """Hash of the conversation."""
        content = json.dumps([dict(one) for one in self.conversation], ensure_ascii=False, sort_keys=True)
        return hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Estimate:
    """Estimate of what is to be asked: ``questions`` without an answer, and tokens, read and written."""

    questions: int
    tokens_in: int
    tokens_out: int

    def described(self, prices: Sequence[float] | None = None) -> str:
        """Return the estimate as a phrase, with the cost at ``prices`` of a million tokens read and written.

        >>> Estimate(2, 3_000, 120).described((0.5, 1.5))
        '2 questions to ask: about 3,000 tokens to read and 120 to write, for about 0.00'
        """
        read, written = self.tokens_in, self.tokens_out
        said = f"{counted(self.questions, 'question')} to ask: about {read:,} tokens to read and {written:,} to write"
        if prices is None:
            return said
        return f"{said}, for about {(read * prices[0] + written * prices[1]) / 1_000_000:,.2f}"


class KeptAnswers:
    """Answers in the file ``path``, which is resumed if it exists; ``num_asked`` counts answers of this run.

    Raises:
        CorpusError: names the line that is no answer.
    """

    def __init__(self, path: Path) -> None:
        self.path, self.num_asked = path, 0
        self._texts: dict[tuple[str, str], str] = {}
        self._size = 0  # bytes of the lines that were read or written
        if path.exists():
            self._read()

    def _read(self) -> None:
        """Read all lines; the last one is left out if a kill has cut it, or if it is being written."""
        content = self.path.read_bytes()
        whole = content[: content.rfind(b"\n") + 1]
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                one = json.loads(line)
                self._texts[str(one["model"]), str(one["prompt_hash"])] = str(one["text"])
            except (ValueError, KeyError, TypeError, RecursionError) as error:
                raise CorpusError(f"is no answer ({error}); remove the line", path=self.path, line=number) from error
        self._size = len(whole)

    def ask(
        self, model: LanguageModel, questions: Sequence[Question], progress: Callable[[int], None] | None = None
    ) -> list[str | NoAnswer]:
        """Return the answers of ``model``: those of the file, and others, which are written to it one by one.

        ``progress`` is called with 1 for each new answer.
        """
        failed: dict[str, NoAnswer] = {}
        if self._missing(model.name, questions):
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with locked(self.path.with_name(f".{self.path.name}.lock"), wait=True), self.path.open("ab") as file:
                if file.tell() != self._size:  # a kill has cut the last line, or another process has asked
                    self._read()
                    file.truncate(self._size)
                missing = self._missing(model.name, questions)
                for number, answer in model.answers([one.conversation for one in missing]):
                    question = missing[number]
                    if isinstance(answer, Answer):
                        line = {"name": question.name, "model": model.name, "prompt_hash": question.prompt_hash}
                        self._size += file.write(json.dumps(line | asdict(answer)).encode() + b"\n")
                        file.flush()
                        os.fsync(file.fileno())
                        self._texts[model.name, question.prompt_hash] = answer.text
                        self.num_asked += 1
                    else:
                        failed[question.prompt_hash] = answer
                    if progress is not None:
                        progress(1)
        nothing = NoAnswer("the model gave no answer")
        hashes = [one.prompt_hash for one in questions]
        return [self._texts.get((model.name, one), failed.get(one, nothing)) for one in hashes]

    def _missing(self, model: str, questions: Sequence[Question]) -> list[Question]:
        """Return the questions without an answer of the model, each conversation once."""
        different = {one.prompt_hash: one for one in questions}
        return [one for one in different.values() if (model, one.prompt_hash) not in self._texts]

    def failure(self, name: str, stage: str, answer: str | NoAnswer, nothing: str) -> Failure:
        """Return the failure of an answer in which there is ``nothing``, with the way to ask again, or of none."""
        if isinstance(answer, NoAnswer):
            return Failure(name, stage, "no answer", str(answer))
        kept = f"{answer[:200]} (kept in {self.path}; remove its line there to ask again)"
        return Failure(name, stage, nothing, kept)

    def estimate(self, model: str, questions: Sequence[Question], tokens_out: int = 60) -> Estimate:
        """Return an estimate of what :meth:`ask` would ask, with ``tokens_out`` tokens for each answer."""
        missing = self._missing(model, questions)
        characters = sum(len(turn["content"]) for one in missing for turn in one.conversation)
        return Estimate(len(missing), round(characters / _CHARACTERS_A_TOKEN), tokens_out * len(missing))
