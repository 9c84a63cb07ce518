"""ARQMath in its official layout: Posts and PostLinks XML, topic XML, formula TSVs, qrels. Everything streams.

A post is one element; its HTML stands, escaped, in attributes::

    <row Id="255" PostTypeId="1" Title="Why ...?" Body="&lt;p&gt;..." AcceptedAnswerId="540" Tags="&lt;series&gt;" />
    <row Id="540" PostTypeId="2" ParentId="255" Body="..." Score="12" />

    >>> corpus = ArqMath(Path("arqmath"))                                     # doctest: +SKIP
    >>> next(corpus.posts())                                                  # doctest: +SKIP
    Post(post_id='255', kind='question', title='Why ...?', ...)

Files, found in the folder or one folder below: ``Posts*.xml``, ``PostLinks*.xml``, ``Topics_Task{1,2}_{year}.xml``,
``Topics_{year}_Formulas_{latex,slt,opt}.tsv``, ``{latex,slt,opt}_representation_v3/*.tsv``, ``qrel_task{1,2}_{year}*``.
Of several versions the newest counts.

**Pairs.** A question and its accepted answer (thesis 3.4). Where no question of the collection names an accepted
answer, each answer makes a pair with its question. Topics are questions of later years than any post, so no pair holds
one.

**Ids that got lost.** Some posts have formula spans without an id, although the latex TSVs list their formulas. Such a
span gets the id of the post's first listed formula with the same LaTeX that no span carries yet; the others get an id
of their own in :mod:`graphs.corpus.placeholders`. Finding them costs one more pass over the posts and, if there are
any, one over the latex TSVs; it is done once, when the posts are first read.

**Broken XML** before the first post raises CorpusError. Later on, the posts before the break are kept and a Failure
(``broken_xml``) ends the stream, for it is the file's end, not the collection's, that is missing.
"""

from __future__ import annotations

import html
import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from graphs.corpus.files import Fingerprints, FormulaFiles, TopicFormulaFiles, hash_files
from graphs.corpus.markup import strip_delimiters
from graphs.corpus.post import Judgment, Pair, Post, Topic
from graphs.corpus.qrels import read_qrels
from graphs.corpus.xml_rows import read_elements, read_rows
from graphs.errors import ConfigError, CorpusError, Failure

_TAG = re.compile(r"<([^<>]+)>")
_NAMELESS = '<span class="math-container">'
_NAMELESS_SPAN = re.compile(r'<span class="math-container">(.*?)</span>', re.DOTALL)
_SPAN_ID = re.compile(r'<span class="math-container" id="([^"]*)">')
#: post or topic id -> LaTeX -> ids of its formulas with this LaTeX
_Listed = dict[str, dict[str, list[str]]]


@dataclass(frozen=True, slots=True)
class PostLink:
    """A link between two questions; ``kind`` 1 is a mention, 3 a duplicate (Stack Exchange's LinkTypeId)."""

    post_id: str
    related_id: str
    kind: int


class ArqMath:
    """An ARQMath collection in folder ``root``."""

    name = "arqmath"

    def __init__(self, root: Path) -> None:
        self.root = root
        self.posts_file = self._newest("Posts*.xml", "the posts of ARQMath")

    # -- posts ---------------------------------------------------------------------------------------------------

    def posts(self) -> Iterator[Post | Failure]:
        """Questions and answers in the order of the file. Memory does not grow with the file."""
        listed = self._lost_ids
        count = 0
        try:
            for line, row in read_rows(self.posts_file):
                post = _post(row, self.posts_file, line)
                if post is None:
                    continue
                count += 1
                if isinstance(post, Post) and post.post_id in listed:
                    post = _with_ids(post, listed[post.post_id])
                yield post
        except CorpusError as error:
            if not count:
                raise
            yield Failure("", "read", "broken_xml", f"{error} (the {count} posts before this are kept)")
        if not count:
            raise CorpusError("has no <row> of a question or an answer; is this a Posts file?", path=self.posts_file)

    def links(self) -> Iterator[PostLink]:
        """Links between questions (``PostLinks*.xml``); none if the collection comes without that file."""
        if self._matching("PostLinks*.xml"):
            path = self._newest("PostLinks*.xml", "links between posts")
            for line, row in read_rows(path):
                try:
                    yield PostLink(row["PostId"], row["RelatedPostId"], int(row["LinkTypeId"]))
                except (KeyError, ValueError) as error:
                    raise CorpusError(f"row without a usable {error.args[0]}", path=path, line=line) from error

    def pairs(self) -> Iterator[Pair]:
        """(question, accepted answer) if any question has one, else (question, answer) for every answer."""
        accepted = self._accepted
        questions = self._question_ids if not accepted else frozenset()
        for row in self._intact_rows():
            if row.get("PostTypeId") != "2" or not row.get("Id"):
                continue
            answer = row["Id"]
            if accepted:
                question = accepted.get(answer)
            else:
                parent = row.get("ParentId")
                question = parent if parent in questions else None
            if question is not None:
                yield Pair(question, answer)

    def _intact_rows(self) -> Iterator[Mapping[str, str]]:
        """The rows of the Posts file up to a break, which :meth:`posts` reports."""
        try:
            for _, row in read_rows(self.posts_file):
                yield row
        except CorpusError:
            return

    @cached_property
    def _accepted(self) -> dict[str, str]:
        """Accepted answer -> its question."""
        return {
            row["AcceptedAnswerId"]: row["Id"]
            for row in self._intact_rows()
            if row.get("PostTypeId") == "1" and row.get("AcceptedAnswerId") and row.get("Id")
        }

    @property
    def _question_ids(self) -> frozenset[str]:
        return frozenset(row["Id"] for row in self._intact_rows() if row.get("PostTypeId") == "1" and row.get("Id"))

    @cached_property
    def _lost_ids(self) -> _Listed:
        """For each post with nameless formula spans: the formulas that the TSVs list for it and no span names."""
        named: dict[str, set[str]] = {}
        for row in self._intact_rows():
            markup = row.get("Title", "") + row.get("Body", "")
            if _NAMELESS in markup and row.get("Id"):
                named[row["Id"]] = set(_SPAN_ID.findall(markup))
        return _listed_formulas(self._representation("latex"), "post_id", named) if named else {}

    # -- topics and judgments --------------------------------------------------------------------------------------

    def topics(self, task: int, years: Sequence[int]) -> list[Topic]:
        """The topics of ``years``; their formula ids, and ``formula_id`` in Task 2, have the prefix ``{year}:``."""
        _check(task, years)
        return [topic for year in years for topic in self._topics_of(task, year)]

    def _topics_of(self, task: int, year: int) -> list[Topic]:
        path = self._yearly(f"Topics_Task{task}_{year}.xml", f"topics of Task {task}", year)
        topics: list[Topic] = []
        for line, number, fields in read_elements(path, "Topic", "number"):
            if not number:
                raise CorpusError("<Topic> without a number", path=path, line=line)
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
        latex = self._formula_file(year, "latex")
        named = {
            _number(topic.topic_id): set(_SPAN_ID.findall(topic.post.title + topic.post.body))
            for topic in topics
            if _NAMELESS in topic.post.title + topic.post.body
        }
        if latex is None or not named:
            return topics
        listed = _listed_formulas([latex], "topic_id", named)
        return [
            Topic(topic.topic_id, _with_ids(topic.post, listed.get(_number(topic.topic_id), {})), topic.formula_id)
            for topic in topics
        ]

    def judgments(self, task: int, years: Sequence[int]) -> list[Judgment]:
        """The qrels of ``years``, whether the posts are in this collection or not; Task 2's documents: visual ids."""
        _check(task, years)
        judgments: list[Judgment] = []
        for year in years:
            judgments += read_qrels(self._qrels_file(task, year))
        return judgments

    def _qrels_file(self, task: int, year: int) -> Path:
        stem = f"qrel_task{task}_{year}"
        forms = [f"{stem}_visual_id*", f"{stem}_official*", f"{stem}.*", stem]
        for form in forms if task == 2 else forms[1:]:
            found = self._matching(form)
            if len(found) == 1:
                return found[0]
            if found:
                raise CorpusError(
                    f"several files match {form}: {', '.join(path.name for path in found)}; keep one", path=self.root
                )
        return self._yearly(f"{stem}*.tsv" if task == 1 else f"{stem}_visual_id.tsv", f"qrels of Task {task}", year)

    # -- files -----------------------------------------------------------------------------------------------------

    def formulas(self) -> FormulaFiles:
        """The formula TSVs of posts and topics that are there; an empty tuple where a representation is missing."""
        years = sorted(
            {
                match[1]
                for path in self._matching("Topics_*_Formulas_*.tsv")
                if (match := re.search(r"_(\d{4})_", path.name))
            }
        )
        topics = tuple(
            TopicFormulaFiles(
                f"{year}:",
                *(self._formula_file(int(year), representation) for representation in ("latex", "slt", "opt")),
            )
            for year in years
        )
        latex, slt, opt = (tuple(self._representation(name)) for name in ("latex", "slt", "opt"))
        return FormulaFiles(latex, slt, opt, topics)

    def fingerprints(self) -> Fingerprints:
        """Return a hash of the files of each part."""
        formulas = self.formulas()
        return Fingerprints(
            posts=hash_files(self.root, {self.posts_file, *self._matching("PostLinks*.xml")}),
            formulas=hash_files(self.root, {*formulas.latex, *formulas.slt, *formulas.opt}),
            topics=hash_files(
                self.root, {*self._matching("Topics_Task*.xml"), *self._matching("Topics_*_Formulas_*.tsv")}
            ),
            judgments=hash_files(self.root, self._matching("qrel_task*")),
        )

    def _matching(self, pattern: str) -> list[Path]:
        return [path for path in sorted([*self.root.glob(pattern), *self.root.glob(f"*/{pattern}")]) if path.is_file()]

    def _newest(self, pattern: str, what: str) -> Path:
        found = self._matching(pattern)
        if not found:
            raise CorpusError(f"no {pattern} here or one folder below: {what}; is data.root right?", path=self.root)
        versions = sorted(((_version(path.name), path) for path in found), reverse=True)
        if len(versions) > 1 and versions[0][0] == versions[1][0]:
            names = ", ".join(str(path.relative_to(self.root)) for path in found)
            raise CorpusError(f"cannot tell which of {names} is the newest; keep one", path=self.root)
        return versions[0][1]

    def _yearly(self, pattern: str, what: str, year: int) -> Path:
        found = self._matching(pattern)
        if len(found) == 1:
            return found[0]
        if found:
            raise CorpusError(f"several files match {pattern}: {', '.join(map(str, found))}; keep one", path=self.root)
        others = self._matching(pattern.replace(f"_{year}*", "_*").replace(str(year), "*"))
        known = ", ".join(str(path.relative_to(self.root)) for path in others) or "none of any year"
        raise CorpusError(f"no {pattern} ({what}, {year}); there is: {known}", path=self.root)

    def _formula_file(self, year: int, representation: str) -> Path | None:
        found = self._matching(f"Topics_{year}_Formulas_{representation}.tsv")
        return found[0] if found else None

    def _representation(self, name: str) -> list[Path]:
        pattern = f"{name}_representation*"
        folders = [path for path in [*self.root.glob(pattern), *self.root.glob(f"*/{pattern}")] if path.is_dir()]
        if not folders:
            return []
        newest = max(folders, key=lambda path: (_version(path.name), str(path)))
        return sorted(
            newest.glob("*.tsv"),
            key=lambda path: (not path.stem.isdigit(), int(path.stem) if path.stem.isdigit() else 0, path.name),
        )


def _check(task: int, years: Sequence[int]) -> None:
    if task not in (1, 2):
        raise ConfigError(f"task {task!r}: ARQMath has tasks 1 (answers) and 2 (formulas)")
    if not years:
        raise ConfigError("no years: name those to use, e.g. 2020 and 2021 (2022 is kept for the final test)")


def _post(row: Mapping[str, str], path: Path, line: int) -> Post | Failure | None:
    """The post of a row; None for rows that are neither question nor answer (wikis, tag texts)."""
    post_id, kind = row.get("Id", ""), row.get("PostTypeId", "")
    if not post_id or not kind:
        missing = "Id" if not post_id else "PostTypeId"
        return Failure(post_id, "read", "bad_row", f"{path}:{line}: row without {missing}")
    if kind not in ("1", "2"):
        return None
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


def _with_ids(post: Post, listed: dict[str, list[str]]) -> Post:
    """``post`` with ids in its nameless formula spans, as far as ``listed`` has their LaTeX."""
    left = {latex: list(ids) for latex, ids in listed.items()}

    def named(match: re.Match[str]) -> str:
        ids = left.get(_comparable(match[1]))
        return f'<span class="math-container" id="{ids.pop(0)}">{match[1]}</span>' if ids else match[0]

    title = _NAMELESS_SPAN.sub(named, post.title)
    return replace(post, title=title, body=_NAMELESS_SPAN.sub(named, post.body))


def _listed_formulas(paths: Sequence[Path], owner: str, named: Mapping[str, set[str]]) -> _Listed:
    """What the latex TSVs list for the posts (or topics) in ``named``, without the ids that are named there."""
    listed: _Listed = defaultdict(lambda: defaultdict(list))
    for path in paths:
        with path.open(encoding="utf-8", errors="replace") as file:
            header = next(file, "").rstrip("\r\n").split("\t")
            if "id" not in header or owner not in header:
                raise CorpusError(f"has no columns id and {owner}; is this a formula TSV?", path=path, line=1)
            at_id, at_owner = header.index("id"), header.index(owner)
            for text in file:
                columns = text.rstrip("\r\n").split("\t")
                if len(columns) != len(header):
                    continue  # a formula over several lines; the formula store reports rows that are broken
                key = columns[at_owner] if owner == "post_id" else _number(columns[at_owner])
                if key in named and columns[at_id] not in named[key]:
                    latex = columns[-1]
                    if latex[:1] == latex[-1:] == '"' and len(latex) > 1:
                        latex = latex[1:-1].replace('""', '"')
                    listed[key][_comparable(latex)].append(columns[at_id])
    return listed


def _comparable(latex: str) -> str:
    """LaTeX as posts and TSVs agree on it: references resolved, dollars and white space gone."""

    return re.sub(r"[\s$]+", "", strip_delimiters(html.unescape(html.unescape(latex))))


def _number(topic_id: str) -> str:
    """``B.201`` and ``A.201`` ask about the same post."""
    return topic_id.rpartition(".")[2]


def _version(name: str) -> tuple[int, ...]:
    """The version in a file name: ``Posts.V1.3.xml`` -> (1, 3); () without one."""
    match = re.search(r"[vV](\d+(?:\.\d+)*)", name)
    return () if match is None else tuple(map(int, match[1].split(".")))
