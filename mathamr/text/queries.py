r"""Queries for a statement, from the words of the paper or from a language model.

>>> statement = Statement("theorem", "thm", "Euclid", "There are infinitely many primes.", "On primes",
...                       "Is there a largest prime, as Mersenne might have asked?")
>>> queries_from_paper(statement)
['Euclid', 'Is there a largest prime, as Mersenne might have asked?', 'On primes: theorem']

Source: the ModernBERT thesis, section 3 (c), which makes one question for each statement with LLaMA 3.2 3B Instruct.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence

from graphs.errors import Failure
from mathamr.text.asking.answers import KeptAnswers, Question
from mathamr.text.asking.json_objects import first_object, texts
from mathamr.text.asking.models import LanguageModel
from mathamr.text.statements import Statement

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


QueryGenerator = Callable[[Sequence[Statement], Sequence[str]], list[list[str] | Failure]]
"""Function from statements and their ids to the queries of each statement, or a reason for having none."""


def paper_queries(statements: Sequence[Statement], names: Sequence[str]) -> list[list[str] | Failure]:
    """Return queries without a model: titles, names, headings and the sentence before a statement."""
    return [
        queries_from_paper(one) or Failure(name, "queries", "no words for a query", one.text[:100])
        for one, name in zip(statements, names, strict=True)
    ]


def model_queries(
    model: LanguageModel, answers: KeptAnswers, statements: Sequence[Statement], names: Sequence[str]
) -> list[list[str] | Failure]:
    """Return questions written by a language model, one for each statement.

    Args:
        answers: file of answers; statements with an answer in it are not asked about again.
    """
    found: list[list[str] | Failure] = []
    for answer, name in zip(answers.ask(model, questions_for(statements, names)), names, strict=True):
        questions = questions_of(answer) if isinstance(answer, str) else []
        found.append(questions or answers.failure(name, "queries", answer, "no question in the answer"))
    return found


def questions_for(statements: Sequence[Statement], names: Sequence[str]) -> list[Question]:
    """Return the questions to a model about statements; ``names`` are their ids."""
    system = {"role": "system", "content": SYSTEM}
    prompts = [PROMPT.format(kind=one.kind, text=one.text) for one in statements]
    return [
        Question(name, [system, {"role": "user", "content": own}]) for own, name in zip(prompts, names, strict=True)
    ]


def queries_from_paper(statement: Statement) -> list[str]:
    """Return queries from the paper for a statement, most specific first; may be empty.

    They are its title, the sentence before it, and its heading with its kind. Sentences that only point ahead ("The
    following lemma is due to Sylow:") and sentences too short or too long for a query are left out.
    """
    queries = [statement.title] if len(statement.title) > 2 and not statement.title[0].isdigit() else []
    before = statement.before
    if _MIN_CHARACTERS <= len(before) <= _MAX_CHARACTERS and not _LEADING.search(before):
        queries.append(before)
    if statement.section:
        queries.append(f"{statement.section}: {statement.kind}")
    return list(dict.fromkeys(queries))


def questions_of(answer: str) -> list[str]:
    r"""Return the questions in a model's answer; empty without readable JSON.

    From an answer that ends too early, complete questions are read:

    >>> questions_of('{"questions": ["Is \\\\frac{1}{2} \\nu?", ""]}'), questions_of("I do not know.")
    (['Is \\frac{1}{2} \\nu?'], [])
    >>> questions_of('{"questions": ["Is 7 prime?", "Is 8 pri'), questions_of('{"questions": ["Is 7 prime?",],}')
    (['Is 7 prime?'], ['Is 7 prime?'])
    """
    return texts(first_object(answer, ("questions",)).get("questions"))
