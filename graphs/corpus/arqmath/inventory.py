"""Inventory of a folder with ARQMath: every file, its part of the collection, and the reason where it is not read.

for file in ArqMath(Path("/data/ARQMath")).inventory().files:
    print(file.place, file.kind, file.task, file.year, file.is_read, file.note)
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from graphs.corpus.arqmath.layout import Layout
from graphs.corpus.arqmath.recognition import Edition, Ids, Kind, Representation
from graphs.corpus.packed import PackedFile


@dataclass(frozen=True, slots=True)
class InventoryFile:
    """A file, or a member of a zip.

    Attributes:
        place: path below the root.
        kind: part of the collection.
        task: 1, 2, or 0 where that is not known or does not matter.
        year: year of the lab, or 0.
        edition: of judgments.
        representation: of formulas.
        ids: name space of the documents in judgments.
        other_years: judgments of other years in the file, which are left out.
        is_read: True where the collection reads this file.
        note: reason why a file with a part in the collection is not read.
    """

    place: str
    kind: Kind
    task: int
    year: int
    edition: Edition | None
    representation: Representation | None
    ids: Ids | None
    other_years: int
    is_read: bool
    note: str


@dataclass(frozen=True, slots=True)
class Inventory:
    """Files below the root of a collection."""

    files: tuple[InventoryFile, ...]

    def counts(self) -> dict[tuple[Kind, bool], int]:
        """Return the number of files by kind and by whether they are read."""
        return dict(Counter((file.kind, file.is_read) for file in self.files))


def inventory_of(layout: Layout, judgments: frozenset[PackedFile]) -> Inventory:
    """Return the inventory of a layout of which the files ``judgments`` are read as judgments."""
    files = []
    for file in layout.files:
        note = layout.notes.get(file.file, file.note)
        has_part = file.kind not in ("run", "other XML", "unknown")
        is_read = file.file in judgments if file.kind == "judgments" else has_part and not note
        files.append(
            InventoryFile(
                layout.below(file.file),
                file.kind,
                file.task,
                file.year,
                file.edition,
                file.representation,
                file.ids,
                file.other_years,
                is_read,
                note,
            )
        )
    return Inventory(tuple(files))
