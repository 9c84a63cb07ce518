"""Judgments by formula id, re-keyed to visual ids: how Task 2 of 2020 was published, and how it is searched.

>>> judged = [Judgment("B.1", "11", 3), Judgment("B.1", "12", 2), Judgment("B.1", "99", 1)]
>>> rekey(judged, {"11": "6", "12": "6"})
([Judgment(topic_id='B.1', doc_id='6', grade=3)], Rekeying(judgments=3, unknown=1))

The TSVs of formulas list the visual ids. Of several judged formulas with one visual id the highest grade counts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass

from graphs.corpus.arqmath.tsv_rows import columns_of
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Judgment
from graphs.errors import CorpusError


@dataclass(frozen=True, slots=True)
class Rekeying:
    """Counts of one re-keyed qrels file.

    Attributes:
        judgments: judgments by formula id.
        unknown: judgments of formulas that no TSV of the collection lists, left out.
    """

    judgments: int
    unknown: int


def rekey(judgments: Iterable[Judgment], visual_ids: Mapping[str, str]) -> tuple[list[Judgment], Rekeying]:
    """Return the judgments by visual id, in the order in which these first come, and counts."""
    grades: dict[tuple[str, str], int] = {}
    count = unknown = 0
    for judgment in judgments:
        count += 1
        visual_id = visual_ids.get(judgment.doc_id)
        if visual_id is None:
            unknown += 1
            continue
        place = (judgment.topic_id, visual_id)
        grades[place] = max(judgment.grade, grades.get(place, 0))
    rekeyed = [Judgment(topic_id, visual_id, grade) for (topic_id, visual_id), grade in grades.items()]
    return rekeyed, Rekeying(count, unknown)


def visual_ids(files: Sequence[PackedFile], wanted: Set[str], *, enough: int | None = None) -> dict[str, str]:
    """Return the visual ids of the ``wanted`` formulas that TSVs list. Memory grows with ``wanted`` only.

    Args:
        enough: number of formulas after which no further TSV is read; all of them without it.

    Raises:
        CorpusError: a TSV without the columns ``id`` and ``visual_id``.
    """
    keys = {formula_id.encode() for formula_id in wanted}
    visual_id_of: dict[str, str] = {}
    for given in files:
        with given.open() as file:
            header = columns_of(file.readline())
            if "id" not in header or "visual_id" not in header:
                message = "has no columns id and visual_id, which judgments by formula id are re-keyed with"
                raise CorpusError(message, path=str(given), line=1)
            at_id, at_visual = header.index("id"), header.index("visual_id")
            last = max(at_id, at_visual) + 1
            for line in file:  # what continues a formula over several lines has no such columns
                columns = line.split(b"\t", last)
                if len(columns) > last and columns[at_id] in keys and columns[at_visual]:
                    visual_id_of.setdefault(columns[at_id].decode(), columns[at_visual].decode(errors="replace"))
        if len(visual_id_of) >= (len(keys) if enough is None else min(enough, len(keys))):
            break
    return visual_id_of
