"""Completeness of a result: topics and documents that were expected, and those that took part.

>>> qrels = {"A.1": {"7": 3, "8": 0}, "A.2": {"9": 2}}
>>> whole = completeness(qrels, read={"A.1"}, found={"A.1"}, indexed={"7", "8"}, relevant=2)
>>> whole.columns()["topics_with_result"], whole.columns()["documents_indexed"]
(1, 2)
>>> for line in whole.short():
...     print(line)
1 of 2 topics could not be read and scores 0: A.2
1 of 2 topics has no result and scores 0: A.2
1 of 2 topics has no relevant document among those that are searched and scores 0 in measures of relevant documents: A.2
1 of 3 judged documents is not among those that are searched

A mean over topics hides such topics: ten that score 0 look like a system that is worse.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass

from mathamr.evaluation.runs import Qrels

SHOWN = 5  # topics that a line names
COLUMNS = (
    "topics_expected",
    "topics_read",
    "topics_with_result",
    "topics_with_relevant",
    "documents_judged",
    "documents_indexed",
)


@dataclass(frozen=True, slots=True)
class Completeness:
    """Topics that take part in a result, and those that do not.

    Attributes:
        expected: number of topics with judgments that count.
        unread: topics that the system could make nothing of, e.g. since their parse failed.
        unanswered: topics without a result.
        hopeless: topics without a relevant document among those that are searched.
        judged: number of documents with a judgment that counts.
        indexed: number of those that are searched.
    """

    expected: int
    unread: Sequence[str]
    unanswered: Sequence[str]
    hopeless: Sequence[str]
    judged: int
    indexed: int

    def columns(self) -> dict[str, int]:
        """Return the counts by their names in a table of results."""
        lost = (0, len(self.unread), len(self.unanswered), len(self.hopeless))
        return dict(zip(COLUMNS, [*(self.expected - n for n in lost), self.judged, self.indexed], strict=True))

    def short(self) -> list[str]:
        """Return a line for each count that is lower than expected."""
        lost = {"unread": self.unread, "unanswered": self.unanswered, "hopeless": self.hopeless}
        return short({**self.columns(), **lost})


def completeness(
    qrels: Qrels, *, read: Container[str], found: Container[str], indexed: Container[str], relevant: int
) -> Completeness:
    """Count what takes part.

    Args:
        qrels: judgments that count.
        read: topics that the system has read.
        found: topics with a result.
        indexed: documents that are searched.
        relevant: lowest grade that counts as relevant.
    """
    documents = {document for grades in qrels.values() for document in grades}
    hopeless = [
        topic
        for topic, grades in qrels.items()
        if not any(grade >= relevant and document in indexed for document, grade in grades.items())
    ]
    return Completeness(
        len(qrels),
        sorted(topic for topic in qrels if topic not in read),
        sorted(topic for topic in qrels if topic not in found),
        sorted(hopeless),
        len(documents),
        sum(document in indexed for document in documents),
    )


def short(counts: Mapping[str, object]) -> list[str]:
    """Return a line for each count of a table of results that is lower than expected; none where there are no counts.

    Args:
        counts: by the names of :data:`COLUMNS`; ``unread``, ``unanswered`` and ``hopeless`` name topics, if they are
            known.
    """
    numbers = [counts.get(name) for name in COLUMNS]
    if not all(isinstance(number, int) for number in numbers):
        return []
    expected, *topics, judged, indexed = (int(str(number)) for number in numbers)
    lines = []
    troubles = {
        "unread": "could not be read",
        "unanswered": "has no result",
        "hopeless": "has no relevant document among those that are searched",
    }
    for number, (name, trouble) in zip(topics, troubles.items(), strict=True):
        if (lost := expected - number) > 0:
            ids = counts.get(name)
            which = f": {', '.join(ids[:SHOWN])}{' ...' * (lost > SHOWN)}" if isinstance(ids, Sequence) else ""
            how = f"{trouble} and scores 0" if lost == 1 else f"{trouble.replace('has', 'have')} and score 0"
            how += " in measures of relevant documents" if name == "hopeless" else ""
            lines.append(f"{lost} of {expected} topics {how}{which}")
    if (lost := judged - indexed) > 0:
        verb = "is" if lost == 1 else "are"
        lines.append(f"{lost:,} of {judged:,} judged documents {verb} not among those that are searched")
    return lines
