r"""Queries for a statement: from the paper's own words, or from a language model.

>>> statement = Statement("theorem", "thm", "Euclid", "There are infinitely many primes.", "On primes",
...                       "Is there a largest prime, as Mersenne might have asked?")
>>> queries_from_paper(statement)
['Euclid', 'Is there a largest prime, as Mersenne might have asked?', 'On primes: theorem']

A language model answers in prose around JSON, with single backslashes that JSON forbids; both are repaired:

>>> answer = r'Sure! {"questions": ["What is $f(c)$ for $c \in (a, b)$?"]} Explanation: The theorem states ...'
>>> questions_of(answer)
['What is $f(c)$ for $c \\in (a, b)$?']

Source: the ModernBERT thesis, section 3 (c), which makes one question for each statement with LLaMA 3.2 3B Instruct.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Any, Protocol

from graphs.errors import ConfigError, Failure
from mathamr.text.statements import Statement

DEFAULT_MODEL = "meta-llama/Llama-3.2-3B-Instruct"
_MIN_CHARACTERS = 8  # fewest of a sentence that may be a query, unlike "Then:"
_MAX_CHARACTERS = 300
# Words of a sentence about the surrounding text, which cannot be a query.
_LEADING = re.compile(
    r"""\b(?:following|next|above|below|previous|preceding|as\ follows|formali[sz]e)\b
    |\b(?:this|last)\ (?:section|result|example|point)\b
    |\b(?:the|an?|our|main|first|useful|few|important|immediate|series\ of)\ (?:definition|theorem|lemma|proposition
        |corollar(?:y|ie)|example)s?\b
    |\blet\ us\b|\bwe\ (?:now|will|shall|first|next|also|can\ now|are\ ready|mostly|introduce|begin|start|need|state)\b
    |\Ahere\ (?:is|are)\b
    |\b(?:lemma|section|theorem|proposition|definition|example|chapter|situation)s?\ (?:and\ )?[.,;:)]  # of a number
    |:\s*\Z""",
    re.IGNORECASE | re.VERBOSE,
)

SYSTEM = (
    "You write questions for a search engine over mathematical papers. You answer with one JSON object and no more."
)
PROMPT = (
    'Write one question, in the words of a mathematician, that the following {kind} answers. Answer as {{"questions": '
    '["..."]}}; keep formulas in LaTeX between dollars.\n\n{text}'
)
_OBJECT = re.compile(r"\{\s*\"questions\"")
_JSON = json.JSONDecoder(strict=False)  # allow line ends inside strings


class QueryGenerator(Protocol):
    """Source of queries for statements; ``name`` identifies it in data."""

    name: str

    def __call__(self, statements: Sequence[Statement]) -> list[list[str] | Failure]:
        """Return the queries of each statement, or a reason for having none."""


class PaperQueries:
    """Queries without a model: titles, names, headings and the sentence before a statement."""

    name = "paper"

    def __call__(self, statements: Sequence[Statement]) -> list[list[str] | Failure]:
        return [
            queries_from_paper(one) or Failure(one.environment, "queries", "nothing_said", one.text[:100])
            for one in statements
        ]


class ModelQueries:
    """One question for each statement from an instruction model of Hugging Face, by name or local path.

    Decoding is greedy, so that equal input gives equal questions. The model is loaded at the first call.

    Raises:
        ConfigError: a model that cannot be loaded; the message says how to place it locally.
    """

    def __init__(self, model: str = DEFAULT_MODEL, *, batch_size: int = 8, device: str | None = None) -> None:
        self.name = model
        self._batch_size, self._device = batch_size, device
        self._pipeline: Any = None

    def __call__(self, statements: Sequence[Statement]) -> list[list[str] | Failure]:
        answers = self.answers([messages(one) for one in statements])
        return [
            questions_of(answer) or Failure(one.environment, "queries", "no_json", answer[:200])
            for one, answer in zip(statements, answers, strict=True)
        ]

    def answers(self, conversations: Sequence[list[dict[str, str]]]) -> list[str]:
        """Return the model's answer to each conversation."""
        if self._pipeline is None:
            self._pipeline = self._load()
        outputs = self._pipeline(
            list(conversations),
            batch_size=self._batch_size,
            do_sample=False,
            max_new_tokens=200,
            return_full_text=False,
        )
        return [str(output[0]["generated_text"]) for output in outputs]

    def _load(self) -> Any:
        try:
            from transformers import pipeline

            loaded: Any = pipeline("text-generation", model=self.name, device=self._device)
        except (ImportError, OSError, ValueError) as error:
            raise ConfigError(
                f"the model {self.name!r} cannot be loaded ({str(error).splitlines()[0]}); download it on a machine "
                "with "
                "a network (hf download NAME --local-dir FOLDER) and give the folder instead of the name"
            ) from error
        if loaded.tokenizer.pad_token_id is None:
            loaded.tokenizer.pad_token_id = loaded.tokenizer.eos_token_id
        loaded.tokenizer.padding_side = "left"
        return loaded


def queries_from_paper(statement: Statement) -> list[str]:
    """Return queries from the paper for a statement, most specific first; may be empty.

    They are its title, the sentence before it, and its heading with its kind. Sentences that only point ("The following
    lemma is due to Sylow:") and sentences too short or too long for a query are left out.
    """
    queries = [statement.title] if len(statement.title) > 2 and not statement.title[0].isdigit() else []
    before = statement.before
    if _MIN_CHARACTERS <= len(before) <= _MAX_CHARACTERS and not _LEADING.search(before):
        queries.append(before)
    if statement.section:
        queries.append(f"{statement.section}: {statement.kind}")
    return list(dict.fromkeys(queries))


def messages(statement: Statement) -> list[dict[str, str]]:
    """Return the conversation that asks a model for a question."""
    prompt = PROMPT.format(kind=statement.kind, text=statement.text)
    return [{"role": "system", "content": SYSTEM}, {"role": "user", "content": prompt}]


def questions_of(answer: str) -> list[str]:
    r"""Return the questions in a model's answer; none without readable JSON.

    >>> questions_of('{"questions": ["Is \\\\frac{1}{2} \\nu?", ""]}'), questions_of("I do not know.")
    (['Is \\frac{1}{2} \\nu?'], [])
    """
    for match in _OBJECT.finditer(answer):
        try:
            content, _ = _JSON.raw_decode(_escaped(answer[match.start() :]))
        except ValueError:
            continue
        questions = content["questions"]
        given = questions if isinstance(questions, list) else [questions]
        kept = [" ".join(one.split()) for one in given if isinstance(one, str)]
        return [one for one in kept if one]
    return []


def _escaped(text: str) -> str:
    r"""Escape the backslashes of JSON, except before a quote or already doubled."""
    return re.sub(r'\\\\|\\"|\\', lambda match: match.group() if len(match.group()) == 2 else "\\\\", text)
