"""Judgments of ARQMath: the requested edition, one file for each task and year, Task 2 by visual id.

    judgments = Judgments(layout, "official", tables)
    judgments.read(2, 2020)                       # [Judgment('B.1', '1051844', 2), ...], re-keyed where necessary
    judgments.rekeyings[2020]                     # Rekeying(judgments=9872, unknown=...)

In Task 2 a file by visual id is preferred to one by formula id, which needs a pass over the formula TSVs. Of 2020 there
are also files with visual ids of an earlier release: where both kinds are there, a sample of formulas from the TSVs
says whether the visual ids are those of the TSVs.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal

from graphs.corpus.arqmath.layout import Layout, Place
from graphs.corpus.arqmath.recognition import Edition, Recognised, topic_year
from graphs.corpus.arqmath.rekeying import Rekeying, rekey, visual_ids
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Judgment
from graphs.corpus.qrels import read_qrels
from graphs.errors import ConfigError, CorpusError

JudgmentSet = Literal["official", "all"]

_SAMPLE = 500  # formulas that decide whether visual ids are those of the TSVs


class Judgments:
    """Judgments of one edition in a layout.

    Args:
        tables: gives the TSVs of one representation of the posts' formulas; called only where ids are re-keyed.

    Attributes:
        rekeyings: counts by year of the re-keyed judgments that were read.
    """

    def __init__(self, layout: Layout, edition: JudgmentSet, tables: Callable[[], Sequence[PackedFile]]) -> None:
        self.edition = edition
        self.rekeyings: dict[int, Rekeying] = {}
        self._layout = layout
        self._tables = tables
        self._by_formula: dict[tuple[int, int], Place[PackedFile]] = {}  # beside a file by visual id
        self._choices: dict[tuple[int, int], Place[PackedFile] | None] = {}  # by _choose, which reads files
        self._read: dict[tuple[int, int], list[Judgment]] = {}
        self._places = {place: self._settle(place, files) for place, files in sorted(layout.judgments.items())}

    def read(self, task: int, year: int) -> list[Judgment]:
        """Return the judgments of a task and year.

        Raises:
            ConfigError: ``official`` judgments are requested, but only ``all`` judgments exist.
            CorpusError: no file, several that differ, or formula ids that the collection does not know.
        """
        if (task, year) not in self._read:
            judgment_file = self._file(task, year)
            judgments = read_packed(judgment_file.file)
            if judgment_file.other_years:
                judgments = [judgment for judgment in judgments if topic_year(judgment.topic_id) == year]
            if judgment_file.ids == "formula id":
                judgments = self._rekeyed(judgments, judgment_file)
            self._read[task, year] = judgments
        return list(self._read[task, year])

    def files(self) -> dict[tuple[int, int], str]:
        """Return the file of each task and year, with its edition and kind of ids, where there is exactly one."""
        return {
            (task, year): f"{self._layout.below(found.file)} ({found.edition}"
            + (f", by {found.ids})" if task == 2 else ")")
            for (task, year), found in self._single_files().items()
        }

    def other_editions(self) -> dict[tuple[int, int], Edition | None]:
        """Return the edition that is read by task and year, if it is not the requested one."""
        return {key: found.edition for key, found in self._single_files().items() if found.edition != self.edition}

    def places(self) -> dict[str, Place[PackedFile]]:
        """Return the places of the edition by a label; a place without a file of the edition is left out.

        They do not depend on what was read so far: a file by formula id counts beside one by visual id.
        """
        found = {f"{task} {year}": place for (task, year), place in self._places.items() if place is not None}
        return found | {f"{task} {year} by formula id": place for (task, year), place in self._by_formula.items()}

    # -- choosing ------------------------------------------------------------------------------------------------------

    def _settle(self, key: tuple[int, int], files: Sequence[Recognised]) -> Place[PackedFile] | None:
        notes = self._layout.notes
        by_edition: dict[Edition | None, list[Recognised]] = {}
        for file in files:
            by_edition.setdefault(file.edition, []).append(file)
        edition: Edition = "all" if self.edition == "all" and "all" in by_edition else "official"
        for file in files:
            if file.edition == "additional":
                notes[file.file] = "additional judgments are read as part of the edition all"
            elif file.edition != edition:
                notes[file.file] = f"edition {file.edition}: data.judgments={file.edition} reads it"
        candidates = by_edition.get(edition, [])
        visual = [file for file in candidates if file.ids != "formula id"]
        if visual and len(visual) < len(candidates):
            self._by_formula[key] = self._layout.settle([file for file in candidates if file not in visual])
            for other in self._by_formula[key].candidates:
                notes[other] = f"by formula id; {self._layout.below(visual[0].file)} is by visual id"
            candidates = visual
        return self._layout.settle(candidates) if candidates else None

    def _single_files(self) -> dict[tuple[int, int], Recognised]:
        """Files by task and year, where there is exactly one."""
        places = {key: self._choose(key) for key in self._places}
        sole_candidates = {
            key: place.candidates[0] for key, place in places.items() if place and len(place.candidates) == 1
        }
        return {
            key: next(found for found in self._layout.judgments[key] if found.file == file)
            for key, file in sole_candidates.items()
        }

    def _file(self, task: int, year: int) -> Recognised:
        what = f"qrels of Task {task}, {year}"
        files = self._layout.judgments.get((task, year), [])
        place = self._choose((task, year))
        if place is None:
            whole = [self._layout.below(file.file) for file in files if file.edition == "all"]
            if whole:
                raise ConfigError(
                    f"no official {what}, below {self._layout.root}, only {', '.join(whole)}, with all"
                    " judgments; data.judgments=all reads it"
                )
            known = [*files, *(file for others in self._layout.judgments.values() for file in others)]
            unplaced = [file for file in self._layout.files if file.kind == "judgments" and file.note]
            present = ", ".join(dict.fromkeys(self._layout.below(file.file) for file in [*known, *unplaced]))
            message = f"no {what}, below this folder; there is: {present or 'none of any year'}"
            raise CorpusError(message, path=self._layout.root)
        file = place.one(what)
        return next(found for found in files if found.file == file)

    def _choose(self, key: tuple[int, int]) -> Place[PackedFile] | None:
        """Return the place that is read: by formula id where the file by visual id has other ids than the TSVs."""
        if key not in self._choices:
            self._choices[key] = self._compared(key)
        return self._choices[key]

    def _compared(self, key: tuple[int, int]) -> Place[PackedFile] | None:
        place, other = self._places.get(key), self._by_formula.get(key)
        if place is None or other is None or len(place.candidates) > 1 or len(other.candidates) > 1:
            return place
        visual, by_formula = place.candidates[0], other.candidates[0]
        judgments = read_packed(by_formula)
        sample = visual_ids(self._tables(), {judgment.doc_id for judgment in judgments}, enough=_SAMPLE)
        rekeyed, _ = rekey(judgments, sample)
        judged = {(judgment.topic_id, judgment.doc_id) for judgment in read_packed(visual)}
        shared = sum((judgment.topic_id, judgment.doc_id) in judged for judgment in rekeyed)
        if 2 * shared >= len(rekeyed):
            return place
        self._layout.notes.pop(by_formula, None)
        self._layout.notes[visual] = (
            f"its visual ids are not those of the formula TSVs; {self._layout.below(by_formula)} is by formula id"
        )
        return other

    def _rekeyed(self, judgments: Sequence[Judgment], found: Recognised) -> list[Judgment]:
        path = str(found.file)
        tables = self._tables()
        if not tables:
            message = "is by formula id, and there are no TSVs of formulas that list their visual ids; fetch them"
            raise CorpusError(message, path=path)
        known = visual_ids(tables, {judgment.doc_id for judgment in judgments})
        rekeyed, counts = rekey(judgments, known)
        self.rekeyings[found.year] = counts
        if judgments and not rekeyed:
            message = (
                f"taken for judgments by formula id, but none of its {counts.judgments:,} documents is a formula of"
                " this collection; if they are visual ids, put visual_id into the file's name"
            )
            raise CorpusError(message, path=path)
        return rekeyed


def read_packed(file: PackedFile) -> list[Judgment]:
    """Return the judgments of a qrels file, packed or not; raises CorpusError as :func:`read_qrels`."""
    return read_qrels(file.path if file.is_plain else file)
