"""Layout of ARQMath below a folder: every file recognised, and for each place in the collection the one to read.

    layout = Layout(Path("/data/ARQMath"))
    layout.posts.one("posts")                     # PackedFile(path=.../Posts.V1.3.zip, member='Posts.V1.3.xml')
    layout.topics[2, 2021].one("topics")
    layout.notes                                  # {file: reason why it is not read}

Candidates for one place are settled in this order: the newest version wins; files with the same content are one, of
which the plain one is read; what is left then is a conflict, an error as soon as somebody asks for that place.
"""

from __future__ import annotations

import os
from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar, get_args

from graphs.corpus.arqmath.recognition import Recognised, Representation, recognise
from graphs.corpus.packed import PackedFile, members, same_content
from graphs.errors import CorpusError

MAX_DEPTH = 12
MAX_FILES = 100_000

Candidate = TypeVar("Candidate")
Versioned = TypeVar("Versioned", Recognised, "FormulaFolder")


@dataclass(frozen=True, slots=True)
class Place(Generic[Candidate]):
    """Place in the collection, with its remaining candidates: one, or several in conflict."""

    root: Path
    candidates: tuple[Candidate, ...]

    def one(self, what: str) -> Candidate:
        """Return the only candidate. Raises CorpusError that lists all where several are left."""
        if len(self.candidates) > 1:
            names = ", ".join(below(self.root, candidate) for candidate in self.candidates)
            message = f"cannot tell which of {names} is the newest ({what}); keep one"
            raise CorpusError(message, path=self.root)
        return self.candidates[0]


@dataclass(frozen=True, slots=True)
class FormulaFolder:
    """TSVs of one representation in one folder, on disk or in a zip, in the order of their numbers."""

    version: tuple[int, ...]
    files: tuple[PackedFile, ...]

    @property
    def file(self) -> PackedFile:
        """Its first file."""
        return self.files[0]

    def __str__(self) -> str:
        return str(PackedFile(*_folder(self.file)))


class Layout:
    """Files of ARQMath below ``root``.

    Attributes:
        files: every file that was looked at.
        notes: reasons why a file that was recognised is not read.
        topics: topics by task and year.
        judgments: every recognised qrels file by task and year.
        formulas: TSVs of the posts' formulas by representation.
        topic_formulas: TSVs of the topics' formulas by year, representation and task.

    Raises:
        CorpusError: an archive that is damaged or not safe to read, or far too many files.
    """

    def __init__(self, root: Path) -> None:
        self.root = root
        self.notes: dict[PackedFile, str] = {}
        self.files = _with_siblings([_recognised_file(root, file) for file in _walk(root)])
        self.notes.update({found.file: found.note for found in self.files if found.note})
        found = [found for found in self.files if not found.note]
        self.posts = self._single([file for file in found if file.kind == "posts"])
        self.links = self._single([file for file in found if file.kind == "links"])
        self.topics = self._places(found, "topics", lambda file: (file.task, file.year))
        self.topic_formulas = self._places(
            found, "topic formulas", lambda file: (file.year, file.representation, file.task)
        )
        self._share_topic_formulas()
        self.judgments: dict[tuple[int, int], list[Recognised]] = defaultdict(list)
        for file in found:
            if file.kind == "judgments":
                self.judgments[file.task, file.year].append(file)
        self.formulas = self._formulas([file for file in found if file.kind == "formulas"])

    def settle(self, candidates: Sequence[Recognised]) -> Place[PackedFile]:
        """Return the place of single-file candidates, and note why the others are not read."""
        left = self._newest(candidates, lambda one, other: same_content(one.file, other.file))
        return Place(self.root, tuple(found.file for found in left))

    def below(self, file: object) -> str:
        """Return the path of a file below the root, with forward slashes."""
        return below(self.root, file)

    # -- places --------------------------------------------------------------------------------------------------------

    def _single(self, candidates: Sequence[Recognised]) -> Place[PackedFile] | None:
        return self.settle(candidates) if candidates else None

    def _places(
        self, found: Sequence[Recognised], kind: str, place: Callable[[Recognised], tuple[object, ...]]
    ) -> dict[tuple[object, ...], Place[PackedFile]]:
        candidates: dict[tuple[object, ...], list[Recognised]] = defaultdict(list)
        for file in found:
            if file.kind == kind:
                candidates[place(file)].append(file)
        return {key: self.settle(files) for key, files in sorted(candidates.items(), key=lambda item: str(item[0]))}

    def _share_topic_formulas(self) -> None:
        """Keep one of the equal TSVs that are published with the topics of each task."""
        for year, representation, task in list(self.topic_formulas):
            first, second = (self.topic_formulas.get((year, representation, of)) for of in (1, 2))
            if task == 2 and first and second and len(first.candidates) == len(second.candidates) == 1:
                twin, copy = first.candidates[0], second.candidates[0]
                if same_content(twin, copy):
                    self.notes[copy] = f"same content as {self.below(twin)}"
                    del self.topic_formulas[year, representation, task]

    def _formulas(self, found: Sequence[Recognised]) -> dict[Representation, Place[FormulaFolder]]:
        folders: dict[tuple[tuple[Path, str], Representation], list[Recognised]] = defaultdict(list)
        for file in found:
            if file.representation is not None:
                folders[_folder(file.file), file.representation].append(file)
        candidates: dict[Representation, list[FormulaFolder]] = defaultdict(list)
        for (_, representation), files in sorted(folders.items()):
            by_name: dict[str, list[Recognised]] = defaultdict(list)
            for file in files:
                by_name[file.file.name].append(file)
            index_files = [self.settle(same).one("formulas") for same in by_name.values()]  # 1.tsv beside 1.tsv.gz
            version = max(file.version for file in files)
            candidates[representation].append(FormulaFolder(version, tuple(sorted(index_files, key=_order))))
        return {
            name: Place(self.root, tuple(self._newest(candidates[name], _same_folder)))
            for name in get_args(Representation)
            if name in candidates
        }

    def _newest(self, candidates: Sequence[Versioned], same: Callable[[Versioned, Versioned], bool]) -> list[Versioned]:
        """Candidates of the newest version, one of each content, the plain one first."""
        newest = max(candidate.version for candidate in candidates)
        left: list[Versioned] = []
        # Plain files first, then members of a zip, then gzip files.
        for candidate in sorted(candidates, key=lambda one: (not one.file.is_plain, not one.file.member, one.file)):
            if candidate.version < newest:
                self._note(candidate, f"older than version {'.'.join(map(str, newest))}")
                continue
            twin = next((other for other in left if same(candidate, other)), None)
            if twin is None:
                left.append(candidate)
            else:
                self._note(candidate, f"same content as {self._named(twin)}")
        if len(left) > 1:
            for candidate in left:
                rivals = ", ".join(self._named(other) for other in left if other is not candidate)
                self._note(candidate, f"in conflict with {rivals}")
        return left

    def _named(self, candidate: Recognised | FormulaFolder) -> str:
        return self.below(candidate if isinstance(candidate, FormulaFolder) else candidate.file)

    def _note(self, candidate: Recognised | FormulaFolder, note: str) -> None:
        files = candidate.files if isinstance(candidate, FormulaFolder) else [candidate.file]
        self.notes.update(dict.fromkeys(files, note))


def below(root: Path, file: object) -> str:
    """Return the path of a file below ``root``, with forward slashes."""
    return Path(os.path.relpath(str(file), root)).as_posix()


def _folder(file: PackedFile) -> tuple[Path, str]:
    """Return the folder of a file, and within a zip its path there."""
    return (file.path, file.member.rpartition("/")[0]) if file.member else (file.path.parent, "")


def _order(file: PackedFile) -> tuple[bool, int, str]:
    """Sort key of ``1.tsv``, ``2.tsv``, ... ``10.tsv``, and after them other names."""
    stem = file.name.rpartition(".")[0]
    number = stem.isascii() and stem.isdigit() and len(stem) < 10
    return not number, int(stem) if number else 0, file.name


def _same_folder(one: FormulaFolder, other: FormulaFolder) -> bool:
    return [file.name for file in one.files] == [file.name for file in other.files] and all(
        same_content(left, right) for left, right in zip(one.files, other.files, strict=True)
    )


def _with_siblings(files: Sequence[Recognised]) -> list[Recognised]:
    """``files``, in which a TSV that does not show its representation has that of all others in its folder."""
    seen: dict[tuple[Path, str], set[Representation]] = defaultdict(set)
    for found in files:
        if found.kind == "formulas" and found.representation is not None:
            seen[_folder(found.file)].add(found.representation)
    settled = []
    for found in files:
        if found.kind in ("formulas", "topic formulas") and found.representation is None:
            shown = seen[_folder(found.file)] if found.kind == "formulas" else set()
            note = found.note or "neither its rows nor its name show a representation (latex, slt, opt)"
            found = replace(found, representation=next(iter(shown))) if len(shown) == 1 else replace(found, note=note)
        settled.append(found)
    return settled


def _recognised_file(root: Path, file: PackedFile) -> Recognised:
    depth = len(root.parts)
    try:
        return recognise(file, file.parts[depth:])
    except CorpusError as error:
        if not file.is_plain:
            raise
        return Recognised(file, "unknown", note=error.message)


def _walk(root: Path) -> Iterator[PackedFile]:
    """List every file below ``root``, also in zips, without hidden ones; folders are entered once."""
    entered: set[tuple[int, int]] = set()
    count = 0

    def folder(path: Path, depth: int) -> Iterator[PackedFile]:
        nonlocal count
        status = path.stat()
        if (status.st_dev, status.st_ino) in entered:
            return
        entered.add((status.st_dev, status.st_ino))
        if depth > MAX_DEPTH:
            raise CorpusError(f"lies {depth} folders below data.root; is data.root right?", path=path)
        try:
            entries = sorted(os.scandir(path), key=lambda entry: entry.name)
        except PermissionError:
            return
        for entry in entries:
            if entry.name.startswith(".") or entry.name == "__MACOSX":
                continue
            if entry.is_dir():
                yield from folder(path / entry.name, depth + 1)
            elif entry.is_file():
                for file in _contents(path / entry.name):
                    count += 1
                    if count > MAX_FILES:
                        message = f"more than {MAX_FILES:,} files below this folder; is data.root right?"
                        raise CorpusError(message, path=root)
                    yield file

    yield from folder(root, 0)


def _contents(path: Path) -> list[PackedFile]:
    if path.suffix.lower() != ".zip":
        return [PackedFile(path)]
    hidden = (".", "__MACOSX")
    return [file for file in members(path) if not any(part.startswith(hidden) for part in file.member.split("/"))]
