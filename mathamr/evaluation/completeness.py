"""Completeness of a result: topics and documents that were expected, and those that took part.

>>> qrels = {"A.1": {"7": 3, "8": 0}, "A.2": {"9": 2}}
>>> whole = completeness(qrels, read={"A.1"}, found={"A.1"}, indexed={"7", "8"}, relevant=2)
>>> whole["topics_with_result"], whole["documents_indexed"]
(1, 2)
>>> for line in short(whole):
...     print(line)
1 of 2 topics could not be read and scores 0: A.2
1 of 2 topics has no result and scores 0: A.2
1 of 2 topics has no relevant document among those that are searched and scores 0 in measures of relevant documents: A.2
1 of 3 judged documents is not among those that are searched

A mean over topics hides such topics: ten that score 0 look like a system that is worse.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

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


def completeness(
    qrels: Qrels, *, read: Container[str], found: Container[str], indexed: Container[str], relevant: int
) -> dict[str, int | list[str]]:
    """Return counts of what takes part, by :data:`COLUMNS`, and the topics that do not.

    The topics are ``unread`` (the system could make nothing of them, e.g. since their parse failed), ``unanswered``
    (without a result) and ``hopeless`` (without a relevant document among those that are searched).

    Args:
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
    lost = {
        "unread": sorted(topic for topic in qrels if topic not in read),
        "unanswered": sorted(topic for topic in qrels if topic not in found),
        "hopeless": sorted(hopeless),
    }
    took_part = [len(qrels), *(len(qrels) - len(topics) for topics in lost.values())]
    numbers = [*took_part, len(documents), sum(document in indexed for document in documents)]
    return {**dict(zip(COLUMNS, numbers, strict=True)), **lost}


def short(counts: Mapping[str, object]) -> list[str]:
    """Return a line for each count of a table of results that is lower than expected; none where there are no counts.

    ``counts`` are by :data:`COLUMNS`; ``unread``, ``unanswered`` and ``hopeless`` name topics, if they are known.
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
