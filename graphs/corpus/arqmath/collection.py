"""ARQMath: posts, links, topics, judgments and formula TSVs of a folder, however they are packed. Everything streams.

A post is one element; its HTML is in attributes, escaped::

    <row Id="255" PostTypeId="1" Title="Why ...?" Body="&lt;p&gt;..." AcceptedAnswerId="540" Tags="&lt;series&gt;" />
    <row Id="540" PostTypeId="2" ParentId="255" Body="..." Score="12" />

    >>> corpus = ArqMath(Path("/data/ARQMath"))                               # doctest: +SKIP
    >>> next(corpus.posts())                                                  # doctest: +SKIP
    Post(post_id='255', kind='question', title='Why ...?', ...)
    >>> corpus.judgment_files()[2, 2020]                                      # doctest: +SKIP
    'Evaluation/ Scripts & Qrels/ARQMath-1/Task2/qrel_with_formula_ids/qrel_task2.tsv (official, by formula id)'

:mod:`graphs.corpus.arqmath.layout` finds the files.

**Pairs.** A question and its accepted answer (thesis 3.4). Where no question of the collection names an accepted
answer, each answer makes a pair with its question. Topics are questions of later years than any post, so no pair holds
one.

**Ids that got lost.** Some posts have formula spans without an id, although the latex TSVs list their formulas
(:mod:`graphs.corpus.arqmath.lost_parts`). Finding them costs one more pass over the posts and, if there are any, one
over the latex TSVs; it is done once, when the posts are first read. A reader that keeps the posts saves the further
pass: it completes those that it has kept (:class:`graphs.corpus.corpus.Completed`).

**Broken XML.** What cannot be read is a Failure (:func:`graphs.corpus.arqmath.xml_rows.surviving_rows`). A file without
any post raises CorpusError.

**Judgments.** ``official`` are those that published scores use; ``all`` has further topics or later judgments. A year
that was published in one edition only has the same judgments in both. Judgments of Task 2 by formula id (2020) are
re-keyed to visual ids (:mod:`graphs.corpus.arqmath.rekeying`).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import get_args

from graphs.corpus.accepted import Posts, accepted_pairs
from graphs.corpus.arqmath.judgments import Judgments, JudgmentSet
from graphs.corpus.arqmath.layout import FormulaFolder, Layout, Place
from graphs.corpus.arqmath.lost_parts import (
    Listed,
    formulas_of,
    listed_formulas,
    named_formulas,
    number_of,
    with_ids,
    with_whole_latex,
)
from graphs.corpus.arqmath.recognition import Edition, Representation
from graphs.corpus.arqmath.rekeying import Rekeying
from graphs.corpus.arqmath.xml_rows import read_elements, read_rows, surviving_rows
from graphs.corpus.files import Fingerprints, FormulaFiles, TopicFormulaFiles, hash_contents
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Judgment, Pair, Post, Topic, is_id
from graphs.errors import ConfigError, CorpusError, Failure

_TAG = re.compile(r"<([^<>]+)>")


@dataclass(frozen=True, slots=True)
class PostLink:
    """A link between two questions; ``kind`` 1 is a mention, 3 a duplicate (Stack Exchange's LinkTypeId)."""

    post_id: str
    related_id: str
    kind: int


class ArqMath:
    """An ARQMath collection in folder ``root``.

    Args:
        judgments: edition of the judgments, ``official`` or ``all``.

    Raises:
        ConfigError: an unknown edition.
        CorpusError: no posts, several candidates for them, or an archive that is damaged.
    """

    name = "arqmath"

    def __init__(self, root: Path, judgments: JudgmentSet = "official") -> None:
        if judgments not in get_args(JudgmentSet):
            raise ConfigError(f"data.judgments={judgments} is not one of {', '.join(get_args(JudgmentSet))}")
        self.root = root
        self._layout = Layout(root)
        if self._layout.posts is None:
            message = "no Posts*.xml (plain, .gz or in a .zip) below this folder: the posts of ARQMath"
            unread = [f"{self._layout.below(file)}: {note}" for file, note in self._layout.notes.items()]
            raise CorpusError(f"{message}; is data.root right? {'; '.join(unread[:3])}".rstrip(), path=root)
        self.posts_file = self._layout.posts.one("the posts of ARQMath")
        self._judgments = Judgments(self._layout, judgments, self._any_tables)

    # -- posts ---------------------------------------------------------------------------------------------------

    def posts(self) -> Iterator[Post | Failure]:
        """Questions and answers in the order of the file. Memory does not grow with the file."""
        listed = self._lost_ids
        for post in self.posts_as_read():
            yield with_ids(post, listed[post.post_id]) if isinstance(post, Post) and post.post_id in listed else post

    def posts_as_read(self) -> Iterator[Post | Failure]:
        """Yield the posts as :meth:`posts` does, in one pass: ids of lost formulas are missing."""
        count = 0
        first: Failure | None = None
        for line, row in surviving_rows(self.posts_file):
            if isinstance(row, Failure):
                first = first or row
                kept = f" (the {count} posts before this are kept)" if row.kind == "broken_xml" else ""
                yield replace(row, message=row.message + kept)
                continue
            post = _post(row, self.posts_file, line)
            if post is None:
                continue
            count += 1
            yield post
        if not count:
            if first is not None:
                raise CorpusError(first.message)
            raise CorpusError(
                "has no <row> of a question or an answer; is this a Posts file?", path=str(self.posts_file)
            )

    def is_incomplete(self, post: Post) -> bool:
        """Return whether a formula of a post as it was read lacks its id."""
        return named_formulas(post.title + post.body) is not None

    def completed(self, posts: Callable[[], Iterable[Post]]) -> Iterator[Post]:
        """Yield incomplete posts with the ids that got lost. Reads the latex TSVs, and ``posts`` twice."""
        listed = self._listed(posts())
        for post in posts():
            yield with_ids(post, listed.get(post.post_id, {}))

    def links(self) -> Iterator[PostLink]:
        """Links between questions (``PostLinks*.xml``); none if the collection comes without that file."""
        if self._layout.links is not None:
            file = self._layout.links.one("links between posts")
            for line, row in read_rows(file):
                try:
                    yield PostLink(row["PostId"], row["RelatedPostId"], int(row["LinkTypeId"]))
                except (KeyError, ValueError) as error:
                    raise CorpusError(f"row without a usable {error.args[0]}", path=str(file), line=line) from error

    def pairs(self) -> Iterator[Pair]:
        """(question, accepted answer) if any such answer is here, else (question, answer) for every answer."""
        return self.pairs_of(self._intact_posts)

    def pairs_of(self, posts: Posts) -> Iterator[Pair]:
        return accepted_pairs(posts)

    def _intact_posts(self) -> Iterator[Post]:
        """Yield the posts of readable rows with usable ids; :meth:`posts` reports the others."""
        try:
            for _, row in surviving_rows(self.posts_file):
                post = None if isinstance(row, Failure) else _post(row, self.posts_file, 0)
                if isinstance(post, Post):
                    yield post
        except CorpusError:
            return

    @cached_property
    def _lost_ids(self) -> Listed:
        return self._listed(self._intact_posts())

    def _listed(self, posts: Iterable[Post]) -> Listed:
        """Return, for each post with nameless formula spans, the listed formulas of the TSVs that no span names."""
        found = ((post.post_id, named_formulas(post.title + post.body)) for post in posts)
        named = {post_id: known for post_id, known in found if known is not None}
        return listed_formulas(self._representation("latex"), "post_id", named) if named else {}

    # -- topics and judgments --------------------------------------------------------------------------------------

    def tasks(self) -> list[int]:
        """Return the tasks that some file has topics of, in whichever year.

        A file whose topics cannot be placed counts: reading them raises the reason.
        """
        unplaced = {task for file in self._layout.files if file.kind == "topics" and file.note for task in file.tasks}
        return sorted({task for task, _ in self.topic_files()} | unplaced)

    def topics(self, task: int, years: Sequence[int]) -> list[Topic]:
        """Topics of ``years``; their formula ids, and ``formula_id`` in Task 2, have the prefix ``{year}:``."""
        _check(task, years)
        return [topic for year in years for topic in self._topics_of(task, year)]

    def topic_files(self) -> dict[tuple[int, int], str]:
        """Topic files by task and year; those in conflict are all named."""
        places = sorted(self._layout.topics.items(), key=str)
        return {
            (int(str(task)), int(str(year))): ", ".join(self._layout.below(file) for file in place.candidates)
            for (task, year), place in places
        }

    def _topics_of(self, task: int, year: int) -> list[Topic]:
        place = self._layout.topics.get((task, year))
        if place is None:
            raise CorpusError(self._no_topics(task, year), path=self.root)
        file = place.one(f"topics of Task {task}, {year}")
        path = str(file)
        topics: list[Topic] = []
        for line, number, fields in read_elements(file, "Topic", "number"):
            if not number:
                raise CorpusError("<Topic> without a number", path=path, line=line)
            if any(number == topic.topic_id for topic in topics):
                raise CorpusError(f"topic {number} is there twice; keep one of both", path=path, line=line)
            if task == 2 and not fields.get("Formula_Id", "").strip():
                raise CorpusError(f"topic {number} of Task 2 has no <Formula_Id>", path=path, line=line)
            tags = tuple(tag.strip() for tag in fields.get("Tags", "").split(",") if tag.strip())
            prefix = f"{year}:"
            title, body = fields.get("Title", ""), fields.get("Question", "")
            post = Post(number, "topic", title, body, tags=tags, formula_prefix=prefix)
            query = prefix + fields["Formula_Id"].strip() if task == 2 else None
            topics.append(Topic(number, post, query))
        if not topics:
            raise CorpusError("holds no <Topic>", path=path)
        tables = self._topic_tables(year, "latex")
        if not tables:
            return topics
        latex = tables.get(task) or next(iter(tables.values()))
        found = {number_of(topic.topic_id): named_formulas(topic.post.title + topic.post.body) for topic in topics}
        named = {number: known for number, known in found.items() if known is not None}
        listed = listed_formulas([latex], "topic_id", named) if named else {}
        published = formulas_of(latex)
        return [
            replace(
                topic, post=with_whole_latex(with_ids(topic.post, listed.get(number_of(topic.topic_id), {})), published)
            )
            for topic in topics
        ]

    def _no_topics(self, task: int, year: int) -> str:
        files = self.topic_files()
        present = ", ".join(f"{name} (Task {of}, {when})" for (of, when), name in files.items()) or "none of any year"
        unplaced = [
            f"{self._layout.below(file.file)}: {file.note}"
            for file in self._layout.files
            if file.kind == "topics" and file.note
        ]
        return "; ".join([f"no topics of Task {task}, {year}, below this folder; there is: {present}", *unplaced])

    def judgments(self, task: int, years: Sequence[int]) -> list[Judgment]:
        """Return the qrels of ``years``, also of posts outside this collection; Task 2's documents: visual ids.

        Judgments by formula id are re-keyed, which leaves out formulas that no TSV of the collection lists.
        """
        _check(task, years)
        return [judgment for year in years for judgment in self._judgments.read(task, year)]

    def judgment_files(self) -> dict[tuple[int, int], str]:
        """Files that judgments are read from, by task and year: path below the root, edition and kind of ids.

        A place whose files are in conflict, or that has no file of the edition, is left out; :meth:`judgments` says so.
        """
        return self._judgments.files()

    def other_editions(self) -> dict[tuple[int, int], Edition | None]:
        """Editions of judgments that are read in place of the one that is asked for, by task and year."""
        return self._judgments.other_editions()

    def rekeyings(self) -> dict[int, Rekeying]:
        """Counts by year for the judgments of Task 2 that were read so far and re-keyed."""
        return self._judgments.rekeyings

    # -- files -----------------------------------------------------------------------------------------------------

    def formulas(self) -> FormulaFiles:
        """Formula TSVs of posts and topics; an empty tuple where a representation is missing."""
        latex, slt, opt = (self._representation(name) for name in get_args(Representation))
        topics = []
        for year in sorted({int(str(year)) for year, _, _ in self._layout.topic_formulas}):
            tables = {name: self._topic_tables(year, name) for name in get_args(Representation)}
            for task in sorted({task for of_tasks in tables.values() for task in of_tasks}):
                of_task = [tables[name].get(task) for name in get_args(Representation)]
                topics.append(TopicFormulaFiles(f"{year}:", *of_task))
        unknown = [file for file in self._layout.files if file.kind == "unknown" and file.note]
        unread = tuple((self._layout.below(file.file), file.note) for file in unknown)
        return FormulaFiles(latex, slt, opt, tuple(topics), unread)

    def fingerprints(self) -> Fingerprints:
        """Return a hash of each part: of the files that are read, and of all that are in conflict for a place.

        The names and folders of the files do not count. See :func:`hash_contents` for what packing changes.
        """
        layout = self._layout
        single = {"posts": layout.posts, "links": layout.links}
        formulas = {
            f"{name} {number}": file
            for name, place in layout.formulas.items()
            for number, file in enumerate(file for folder in place.candidates for file in folder.files)
        }
        topics = {**layout.topics, **layout.topic_formulas}
        return Fingerprints(
            posts=hash_contents(_numbered({name: place for name, place in single.items() if place is not None})),
            formulas=hash_contents(formulas),
            topics=hash_contents(_numbered({" ".join(map(str, key)): place for key, place in topics.items()})),
            judgments=hash_contents(_numbered(self._judgments.places())),
        )

    def _representation(self, name: Representation) -> tuple[PackedFile, ...]:
        place: Place[FormulaFolder] | None = self._layout.formulas.get(name)
        return () if place is None else place.one(f"{name} of the posts' formulas").files

    def _any_tables(self) -> tuple[PackedFile, ...]:
        """TSVs of the representation with the most: all have the visual ids, those of LaTeX are the smallest."""
        return max((self._representation(name) for name in get_args(Representation)), key=len)

    def _topic_tables(self, year: int, name: Representation) -> dict[int, PackedFile]:
        """TSVs of the formulas of a year's topics by task; one that both tasks share is under Task 1."""
        tables: dict[int, PackedFile] = {}
        for task in (0, 1, 2):
            place = self._layout.topic_formulas.get((year, name, task))
            if place is not None:
                tables[task] = place.one(f"{name} of the topics' formulas, {year}")
        return tables


def _check(task: int, years: Sequence[int]) -> None:
    if task not in (1, 2):
        raise ConfigError(f"task {task!r}: ARQMath has tasks 1 (answers) and 2 (formulas)")
    if not years:
        raise ConfigError("no years: name those to use, e.g. 2020 and 2021 (2022 is kept for the final test)")


def _numbered(places: Mapping[str, Place[PackedFile]]) -> dict[str, PackedFile]:
    return {f"{name} {number}": file for name, place in places.items() for number, file in enumerate(place.candidates)}


def _post(row: Mapping[str, str], path: PackedFile, line: int) -> Post | Failure | None:
    """Return the post of a row; None for rows that are neither question nor answer (wikis, tag texts)."""
    post_id, kind = row.get("Id", ""), row.get("PostTypeId", "")
    if not post_id or not kind:
        missing = "Id" if not post_id else "PostTypeId"
        return Failure(post_id, "read", "bad_row", f"{path}:{line}: row without {missing}")
    if kind not in ("1", "2"):
        return None
    if not is_id(post_id):
        message = f"{path}:{line}: Id {post_id!r} has blanks or control characters, which no run file can hold"
        return Failure(post_id, "read", "bad_row", message)
    score = row.get("Score", "")
    return Post(
        post_id,
        "question" if kind == "1" else "answer",
        title=row.get("Title", ""),
        body=row.get("Body", ""),
        tags=tuple(_TAG.findall(row.get("Tags", ""))),
        parent_id=row.get("ParentId") or None,
        accepted_answer_id=row.get("AcceptedAnswerId") or None,
        score=int(score) if re.fullmatch(r"-?\d{1,9}", score) else None,
    )
