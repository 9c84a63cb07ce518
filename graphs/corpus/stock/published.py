"""Holdings of a folder with ARQMath: posts, formulas, topics, trees and judgments, counted, and what is missing.

    stocktaking = PublishedStock(Path("/data/ARQMath"))
    for step in stocktaking.steps():                 # the posts, the formulas ...
        step.run(progress)                           # reads step.size bytes
    holdings = stocktaking.holdings()
    holdings.counts["judgments.task1.2020"], holdings.missing, holdings.reason

Everything is read once. Kept are counts, and 8 bytes of each post's id.
"""

from __future__ import annotations

import io
from array import array
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, cast, get_args

from graphs.corpus.arqmath.judgments import Judgments, read_packed
from graphs.corpus.arqmath.layout import Layout, Place
from graphs.corpus.arqmath.lost_parts import formulas_of
from graphs.corpus.arqmath.recognition import Edition, Representation, topic_year
from graphs.corpus.arqmath.tsv_rows import MAX_ROW_BYTES, columns_of, formula_column, quoted_rows
from graphs.corpus.arqmath.xml_rows import read_elements, read_rows, surviving_rows
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import is_id
from graphs.corpus.stock.holdings import AcceptedAnswers, Holdings, Missing, Step, missing_ids, number, repeated
from graphs.errors import CorpusError, Failure

if TYPE_CHECKING:
    from typing_extensions import Buffer

YEARS = (2020, 2021, 2022)
RELEVANT = 2  # grades from here on count as relevant in the lab's MAP', P'@10 and Bpref

_BLOCK = 1 << 16
_STOPS = "experiments stop there"
_NO_DUPLICATES = "train.positives=duplicates and all stop there"
_REPRESENTED: dict[Representation, str] = {
    "latex": "LaTeX", "slt": "Presentation MathML (symbol layout trees)", "opt": "Content MathML (operator trees)",
}  # fmt: skip


class PublishedStock:
    """Counts what is below ``root``. Raises CorpusError for a folder that cannot be looked through."""

    def __init__(self, root: Path) -> None:
        if not root.is_dir():
            raise CorpusError("not a folder; is --root right?", path=root)
        self._layout = Layout(root)
        self._counts: Counter[str] = Counter()
        self._missing: list[Missing] = []
        self._accepted = AcceptedAnswers()

    def steps(self) -> Iterator[Step]:
        posts = self._only_file(self._layout.posts, "the posts", _STOPS)
        links = self._only_file(self._layout.links, "links between posts", _NO_DUPLICATES)
        formulas = {
            name: place.candidates[0].files
            for name, place in self._layout.formulas.items()
            if self._settled(place, f"{_REPRESENTED[name]} of the formulas", _STOPS)
        }
        if posts is not None:
            yield Step("posts", posts.size, lambda progress: self._posts(_Watched(posts, progress)))
        if links is not None:
            yield Step("links", links.size, lambda progress: self._links(_Watched(links, progress)))
        for name, files in formulas.items():
            size = sum(file.size for file in files)
            yield Step(f"formulas, {name}", size, partial(self._formulas, name, files))
        yield Step("topics and judgments", 0, lambda progress: self._topics_and_judgments())

    def holdings(self) -> Holdings:
        missing = [*self._missing, *self._absent()]
        layout = self._layout
        settled = dict(layout.notes)  # of older files, copies and conflicts, in every edition
        with suppress(CorpusError):  # a damaged file
            Judgments(layout, "official", self._tables).files()  # notes those that are not read
        unread = {layout.below(file): note for file, note in (layout.notes | settled).items()}
        counts = {key: self._counts[key] for key in _ordered(self._counts)}
        return Holdings("arqmath", counts, tuple(missing), unread, self._reason(missing))

    def _tables(self) -> Sequence[PackedFile]:
        return next((place.candidates[0].files for place in self._layout.formulas.values()), ())

    # -- counting ----------------------------------------------------------------------------------------------------

    def _posts(self, file: PackedFile) -> None:
        counts = self._counts
        counts.update({"posts.question": 0, "posts.answer": 0, "posts.with_formulas": 0, "accepted": 0})
        ids = array("Q")
        damaged, first = 0, ""
        try:
            for _, row in surviving_rows(file):
                if isinstance(row, Failure):
                    if row.kind == "broken_xml":
                        raise CorpusError(row.message)
                    damaged, first = damaged + 1, first or row.message
                    continue
                kind, post_id = row.get("PostTypeId"), row.get("Id")
                if kind and post_id and kind not in ("1", "2"):
                    counts["posts.other"] += 1
                    continue
                if not kind or not post_id or not is_id(post_id):
                    counts["posts.broken"] += 1
                    continue
                ids.append(number(post_id))
                counts["posts.question" if kind == "1" else "posts.answer"] += 1
                if kind == "1":
                    self._accepted.add_question(row.get("AcceptedAnswerId"))
                else:
                    self._accepted.add_answer(post_id)
                markup = row.get("Body", "") + row.get("Title", "")
                counts["posts.with_formulas"] += "math-container" in markup
        except CorpusError as error:
            what = f"the end of the posts ({error})"
            self._missing.append(Missing(what, "every experiment leaves out the posts after it", "collection"))
        counts["accepted"] = self._accepted.count
        if broken := counts["posts.broken"]:
            what = f"{broken:,} {'row' if broken == 1 else 'rows'} of posts without a usable id, or without a kind"
            self._missing.append(Missing(what, "left out of every experiment", "collection"))
        if count := repeated(ids):
            counts["posts.repeated"] = count
            self._missing.append(missing_ids(count))
        if damaged:
            counts["posts.damaged"] = damaged
            what = f"{damaged:,} damaged {'post' if damaged == 1 else 'posts'} (the first: {first})"
            self._missing.append(Missing(what, "left out of every experiment", "collection"))

    def _links(self, file: PackedFile) -> None:
        self._counts["links"] = 0
        try:
            for _ in read_rows(file):
                self._counts["links"] += 1
        except CorpusError as error:
            self._missing.append(Missing(f"the end of the links ({error})", _NO_DUPLICATES, "collection"))

    def _formulas(self, name: Representation, files: Sequence[PackedFile], progress: Callable[[int], None]) -> None:
        counts = self._counts
        counts.update({f"formulas.{name}": 0, f"formulas.{name}.tables": len(files)})
        unclosed, first = 0, ""
        for file in files:
            try:
                rows, empty, open_rows, line = count_rows(_Watched(file, progress))
            except CorpusError as error:
                what = f"a part of the {_REPRESENTED[name]} of the formulas ({error})"
                self._missing.append(Missing(what, _STOPS, "formulas", stops=True))
                continue
            counts[f"formulas.{name}"] += rows
            counts[f"formulas.{name}.empty"] += empty
            unclosed += open_rows
            first = first or (f"{file}:{line}" if open_rows else "")
        if unclosed:
            found = "a row" if unclosed == 1 else f"{unclosed:,} rows"
            what = f"the closing quotation mark of {found} with {_REPRESENTED[name]} of formulas (the first: {first})"
            self._missing.append(Missing(what, "left out where these formulas are read", "formulas"))

    def _topics_and_judgments(self) -> None:
        for (task, year), place in self._layout.topics.items():
            file = self._only_file(place, f"topics of Task {task}, {year}", f"{year} cannot be searched in Task {task}")
            if file is None:
                continue
            try:
                number_of_topics = sum(bool(number) for _, number, _ in read_elements(file, "Topic", "number"))
                self._counts[f"topics.task{task}.{year}"] = number_of_topics
            except CorpusError as error:
                what = f"intact topics of Task {task} of {year} ({error})"
                self._missing.append(Missing(what, "that year cannot be searched", "topics"))
        for year in sorted({int(str(year)) for year, *_ in self._layout.topic_formulas}):
            self._topic_formulas(year)
        for (of, when), files in sorted(self._layout.judgments.items()):
            for edition in get_args(Edition):
                candidates = [one for one in files if one.edition == edition]
                candidates = [one for one in candidates if one.ids != "formula id"] or candidates
                if candidates:
                    self._judgments(of, when, edition, self._layout.settle(candidates))

    def _topic_formulas(self, year: int) -> None:
        """Count the formulas of a year's topics, and those with a tree of both kinds."""
        ids: dict[Representation, set[str]] = {name: set() for name in get_args(Representation)}
        for (of, represented, _), place in self._layout.topic_formulas.items():
            name = cast(Representation, represented)
            what = f"{_REPRESENTED[name]} of the topic formulas of {year}"
            if of == year and (file := self._only_file(place, what, _STOPS)) is not None:
                try:
                    ids[name] |= {own for own, formula in formulas_of(file).items() if formula or name == "latex"}
                except CorpusError as error:
                    self._missing.append(Missing(f"{what} ({error})", _STOPS, "topics", stops=True))
        self._counts[f"topic_formulas.{year}"] = len(set().union(*ids.values()))
        self._counts[f"topic_trees.{year}"] = len(ids["slt"] & ids["opt"])
        self._counts[f"topic_trees.{year}.slt"] = len(ids["slt"])
        self._counts[f"topic_trees.{year}.opt"] = len(ids["opt"])

    def _judgments(self, task: int, year: int, edition: Edition, place: Place[PackedFile]) -> None:
        what = f"{edition} judgments of Task {task}, {year}"
        file = self._only_file(place, what, f"data.judgments={edition} cannot score {year} in Task {task}")
        if file is None:
            return
        try:
            judgments = [one for one in read_packed(file) if topic_year(one.topic_id) in (year, 0)]
        except CorpusError as error:
            self._missing.append(Missing(f"intact {what} ({error})", "that year cannot be scored", "qrels"))
            return
        key = f"judgments.task{task}.{year}"
        self._counts[f"{key}.{edition}"] = len(judgments)
        self._counts[f"{key}.{edition}.topics"] = len({judgment.topic_id for judgment in judgments})
        self._counts[f"{key}.{edition}.relevant"] = sum(judgment.grade >= RELEVANT for judgment in judgments)
        if edition == "official" or (edition == "all" and key not in self._counts):
            self._counts[key] = len(judgments)

    # -- what is not there -------------------------------------------------------------------------------------------

    def _absent(self) -> Iterator[Missing]:
        """Yield the parts that no file has."""
        counts = self._counts
        if not counts["posts.question"] + counts["posts.answer"]:
            yield Missing("posts", "nothing can be trained or searched", "collection")
        elif accepted := self._accepted.missing():
            yield accepted
        if "links" not in counts:
            yield Missing("links between posts", "train.positives=duplicates has no duplicates", "collection")
        yield from self._absent_formulas()
        for year in YEARS:
            for task in (1, 2):
                if not counts[f"topics.task{task}.{year}"]:
                    consequence = f"{year} cannot be searched in Task {task}: leave it out of data.years"
                    yield Missing(f"topics of Task {task} of {year}", consequence, "topics")
            if counts[f"topics.task1.{year}"] or counts[f"topics.task2.{year}"]:
                yield from self._absent_trees(year)
            for task in (1, 2):
                yield from self._absent_judgments(task, year)

    def _absent_formulas(self) -> Iterator[Missing]:
        counts = self._counts
        instead: dict[Representation, str] = {
            "latex": "ids that formulas have lost in posts stay lost, and Task 2 has no documents",
            "slt": "symbol layout trees are made from LaTeX instead",
            "opt": "operator trees are made from LaTeX instead",
        }
        tables, rows = (max(counts[f"formulas.{name}{end}"] for name in instead) for end in (".tables", ""))
        for name, consequence in instead.items():
            present = counts[f"formulas.{name}.tables"]
            if not present:
                yield Missing(f"{_REPRESENTED[name]} of the formulas of posts", consequence, "formulas")
            elif present < tables:
                what = f"{tables - present} of {tables} tables with {_REPRESENTED[name]} of the formulas of posts"
                yield Missing(what, f"of their formulas, {consequence}", "formulas")
            elif counts[f"formulas.{name}"] < rows:
                what = f"{rows - counts[f'formulas.{name}']:,} of {rows:,} rows with {_REPRESENTED[name]} of formulas"
                yield Missing(what, f"of their formulas, {consequence}", "formulas")

    def _absent_trees(self, year: int) -> Iterator[Missing]:
        kinds: dict[Representation, str] = {"slt": "symbol layout", "opt": "operator"}
        for name, trees in kinds.items():
            if not self._counts[f"topic_trees.{year}.{name}"]:
                consequence = f"{trees} trees of these topics are made from LaTeX instead"
                yield Missing(f"{_REPRESENTED[name]} of the topic formulas of {year}", consequence, "topics")

    def _absent_judgments(self, task: int, year: int) -> Iterator[Missing]:
        key = f"judgments.task{task}.{year}"
        if self._counts[f"{key}.official"]:
            return
        if self._counts[f"{key}.all"]:
            consequence = "data.judgments=all reads the others; published scores cannot be compared with"
            yield Missing(f"official judgments of Task {task} of {year}", consequence, "qrels")
        else:
            consequence = f"{year} cannot be scored in Task {task}"
            yield Missing(f"judgments of Task {task} of {year}", consequence, "qrels")

    def _reason(self, missing: Sequence[Missing]) -> str:
        counts = self._counts
        for one in missing:
            if one.stops:
                return f"{one.what}; {one.consequence}"
        if not counts["posts.question"] + counts["posts.answer"]:
            return "there are no posts"
        if any(counts[f"topics.task1.{year}"] and counts[f"judgments.task1.{year}"] for year in YEARS):
            return ""
        return "no year has both topics and judgments of Task 1"

    # -- choosing ----------------------------------------------------------------------------------------------------

    def _only_file(self, place: Place[PackedFile] | None, what: str, consequence: str) -> PackedFile | None:
        return place.candidates[0] if place is not None and self._settled(place, what, consequence) else None

    def _settled(self, place: Place, what: str, consequence: str) -> bool:
        """Return False, and note it, where several files differ and nothing says which one counts."""
        if len(place.candidates) == 1:
            return True
        names = ", ".join(self._layout.below(candidate) for candidate in place.candidates)
        conflict = f"one file for {what}: there are {names}"
        self._missing.append(Missing(conflict, f"{consequence}; keep one", stops=consequence == _STOPS))
        return False


def count_rows(file: PackedFile) -> tuple[int, int, int, int]:
    """Count the rows of a formula TSV without its header.

    Returns:
        Numbers of all rows, of those without a formula, of those with a quotation mark that is not closed, and the line
        of the first of these, or 0.
    """
    rows = empty = unclosed = first = 0
    with file.open() as stream:
        header = columns_of(stream.readline(MAX_ROW_BYTES))
        from_formula = len(header) - formula_column(header)  # columns
        line = 2
        for row, closed in quoted_rows(stream):
            if not closed:
                unclosed, first = unclosed + 1, first or line
            line += row.count(b"\n")
            stripped = row.rstrip(b"\r\n")
            if stripped:
                rows += 1
                empty += stripped.rsplit(b"\t", from_formula)[1:2] == [b""]
    return rows, empty, unclosed, first


class _Watched(PackedFile):
    """A file that says how many bytes of it have been read."""

    __slots__ = ("_progress",)
    _progress: Callable[[int], None]

    def __init__(self, file: PackedFile, progress: Callable[[int], None]) -> None:
        super().__init__(file.path, file.member)
        object.__setattr__(self, "_progress", progress)

    def open(self) -> io.BufferedReader:
        return io.BufferedReader(_Counting(PackedFile.open(self), self._progress), _BLOCK)

    def head(self, size: int) -> bytes:
        return PackedFile(self.path, self.member).head(size)  # looked at before it is read, and not counted


class _Counting(io.RawIOBase):
    def __init__(self, stream: io.BufferedReader, progress: Callable[[int], None]) -> None:
        self._stream, self._progress = stream, progress

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Buffer) -> int:
        size = self._stream.readinto1(buffer)
        self._progress(size)
        return size

    def close(self) -> None:
        self._stream.close()
        super().close()


def _ordered(counts: Counter[str]) -> list[str]:
    order = ("posts", "accepted", "links", "formulas", "topics", "topic_formulas", "topic_trees", "judgments")
    return sorted(counts, key=lambda key: (order.index(key.split(".")[0]), key if key.startswith("judg") else ""))
