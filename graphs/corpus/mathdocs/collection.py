"""Embedded collection: mathematics in the docstrings of the installed scientific packages.

It needs no download. A docstring with formulas becomes a question and its answer:

    title      the summary line                               "Compute the Katz centrality for the nodes of ..."
    question   the extended summary                           "Katz centrality computes the centrality for ..."
    answer     sections such as Notes and Explanation, and the paragraphs of other sections that have formulas

Code, signatures, references and tables are dropped. If no section gives an answer, as in mpmath's running prose, the
first paragraph is the question and the others are the answer. A question does not name its object: the name becomes
"this function"; if it is also a word (``center``, ``Maxwell``), only where it is written as code. Names of other
objects, from three letters, become "another function" where they are written as code or with their package.

An object is left out if its question or its answer has too few words, neither has a formula, another object has the
same question, or another has nearly the same answer (aliases, copies, notes that families of polynomials share). Of
equal ones, the public object with the shortest dotted name is kept.

An object is a topic if the SHA-256 of its name falls into the first :data:`TOPIC_SHARE`; the others are training pairs.
The answers of all objects are searched. **Judgments** are complete. The object's own answer has grade 3. Of another
object, the answer has grade 2 if each names the other in See Also, 1 if only one of them does, and 0 otherwise.

Reading takes some seconds, so the result is kept in ``~/.cache/mathamr/mathdocs-VERSION.json`` (``XDG_CACHE_HOME``
moves it), where VERSION is the fingerprint of the packages and of the code that reads them. If this file cannot be
written, each process reads the docstrings.
"""

from __future__ import annotations

import functools
import hashlib
import html
import os
import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from importlib import metadata
from itertools import chain, takewhile
from pathlib import Path

from graphs.corpus.files import Fingerprints
from graphs.corpus.mathdocs import docstrings, object_names, rst
from graphs.corpus.mathdocs.docstrings import Docstring
from graphs.corpus.mathdocs.object_names import Names, short_name
from graphs.corpus.mathdocs.rst import Paragraph, Section
from graphs.corpus.post import Judgment, Pair, Post, Topic
from graphs.corpus.text import text_formulas
from graphs.errors import ConfigError, CorpusError, Failure
from graphs.shared_files import read_json, write_json

#: Packages whose docstrings are read, if they are installed.
PACKAGES = ("scipy", "sympy", "numpy", "networkx", "mpmath")
#: Share of objects that are topics.
TOPIC_SHARE = 0.15
#: Smallest number of different words in a question (title and body), without words that most questions have.
MIN_QUESTION_WORDS = 4
#: Number of words of title and question, above which the paragraphs after the second of the question join the answer.
MAX_QUESTION_WORDS = 150
#: Number of words and formulas of an answer after which no further paragraph is taken.
MAX_ANSWER_WORDS = 400
#: Jaccard similarity of word triples from which two answers count as one, because no question could separate them.
MAX_SIMILARITY = 0.75

_PROSE = re.compile(
    r"notes?|explanation|description|details?|definitions?|algorithms?|theory|background|properties|methods?(?: used)?"
    r"|interpretation|formulas?|remarks?|.*(?:mathematic|definition|explanation|formula|theor|derivation).*",
    re.IGNORECASE,
)
_DROPPED = re.compile(r".*example.*|.*references?|see also|usage|plots?|todo|tests?|attributes|methods", re.I)
_ENTRIES = re.compile(r"(?:other )?parameters|returns?|yields|raises|warns|receives|(?:keyword )?arguments", re.I)
_SIGNATURE = re.compile(r"\s*(?:[\w.]+\s*=\s*)?[\w.]+\((?:[^()]|\([^()]*\))*\)(?:\s*->.*|\s*--)?\s*")
_TEMPLATE = re.compile(r"%\(\w+\)s")
_WORD = re.compile(r"[A-Za-z][A-Za-z'-]+")
_EMPTY_WORDS = frozenset(
    """a an the of for to in on at by with from and or is are be as this that it its if then returns return compute
    computes calculate calculates evaluate evaluates function class method object given""".split()  # noqa: SIM905
)


@dataclass(frozen=True, slots=True)
class _Entry:
    """Question and answer of an object, and the names in its See Also."""

    name: str
    title: str
    question: str
    answer: str
    see_also: tuple[str, ...]


class MathDocs:
    """Collection in the docstrings of :data:`PACKAGES`; it depends only on their versions and on this code."""

    name = "mathdocs"

    def posts(self) -> Iterator[Post | Failure]:
        """Yield all answers and the questions that are not topics, by name."""
        for entry in self._entries:
            if not is_topic(entry.name):
                yield Post(_question_id(entry), "question", entry.title, entry.question, tags=_tags(entry))
            question = None if is_topic(entry.name) else _question_id(entry)
            yield Post(_answer_id(entry), "answer", body=entry.answer, parent_id=question)

    def tasks(self) -> list[int]:
        """Return the tasks that have topics."""
        return [1]

    def topics(self, task: int, years: Sequence[int] = ()) -> list[Topic]:
        """Return the questions that are topics; the topic id is the object's name."""
        _check(task, years)
        return [
            Topic(entry.name, Post(entry.name, "topic", entry.title, entry.question, tags=_tags(entry)))
            for entry in self._entries
            if is_topic(entry.name)
        ]

    def judgments(self, task: int, years: Sequence[int] = ()) -> list[Judgment]:
        """Return a grade for each topic and answer."""
        _check(task, years)
        links = _links(self._entries)
        answers = [(entry.name, _answer_id(entry)) for entry in self._entries]
        judgments: list[Judgment] = []
        for topic, _ in answers:
            if not is_topic(topic):
                continue
            for name, answer in answers:
                named = (name in links[topic]) + (topic in links[name])
                judgments.append(Judgment(topic, answer, 3 if name == topic else named))
        return judgments

    def pairs(self) -> Iterator[Pair]:
        """Yield question and answer of each object that is not a topic."""
        for entry in self._entries:
            if not is_topic(entry.name):
                yield Pair(_question_id(entry), _answer_id(entry))

    def formulas(self) -> None:
        """Return None: formula trees are made from the LaTeX in the posts."""
        return

    def fingerprints(self) -> Fingerprints:
        """Return hashes of the packages' versions and of the code that reads them."""
        digest = hashlib.sha256()
        for package in PACKAGES:
            try:
                version = metadata.version(package)
            except metadata.PackageNotFoundError:
                version = "none"
            digest.update(f"{package}=={version}\n".encode())
        for module in (docstrings.__file__, object_names.__file__, rst.__file__, text_formulas.__file__, __file__):
            digest.update(Path(module).read_bytes())
        whole = digest.hexdigest()  # posts, topics and judgments come from the same objects
        return Fingerprints(posts=whole, topics=whole, judgments=whole)

    @property
    def _entries(self) -> tuple[_Entry, ...]:
        return _entries(self.fingerprints().posts)


def is_topic(name: str) -> bool:
    """Return whether the object of this dotted name is a topic; this depends only on the name."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:4], "big") < TOPIC_SHARE * 2**32


def _check(task: int, years: Sequence[int]) -> None:
    if task != 1:
        raise ConfigError(f"task {task!r}: mathdocs has task 1 (answers) only; for formulas take data=arqmath")
    if years:
        raise ConfigError(f"years {list(years)}: mathdocs has one set of topics; leave the years empty")


def _question_id(entry: _Entry) -> str:
    return f"{entry.name}/question"


def _answer_id(entry: _Entry) -> str:
    return f"{entry.name}/answer"


def _tags(entry: _Entry) -> tuple[str, ...]:
    return (entry.name.partition(".")[0],)


@functools.cache
def _entries(version: str) -> tuple[_Entry, ...]:
    """Return all usable objects by name, from the user's cache if they are there."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache")  # noqa: PTH111 (Path's raises an error)
    path = Path(cache, "mathamr", f"mathdocs-{version[:16]}.json")
    with suppress(OSError, KeyError, TypeError):  # a folder that cannot be read, or a file that someone has changed
        if (kept := read_json(path)) is not None:
            return tuple(_Entry(**{**entry, "see_also": tuple(entry["see_also"])}) for entry in kept["entries"])
    entries = _read_all()
    with suppress(OSError, ValueError):  # a folder that cannot be written to, or characters that UTF-8 does not have
        if path.is_absolute():  # there is a home
            path.parent.mkdir(parents=True, exist_ok=True)
            write_json(path, {"entries": [asdict(entry) for entry in entries]})
    return entries


def _read_all() -> tuple[_Entry, ...]:
    """Read all usable objects by name; this takes some seconds."""
    documented = [docstring for package in PACKAGES for docstring in docstrings.read_package(package)]
    if not documented:
        message = f"none of {', '.join(PACKAGES)} is installed with its sources; mathdocs is read from their docstrings"
        raise CorpusError(message)
    names = Names(documented)
    entries: list[_Entry] = []
    questions: set[str] = set()
    answers = _Texts()
    for docstring in sorted(
        documented, key=lambda docstring: ("._" in docstring.name, len(docstring.name), docstring.name)
    ):
        entry = _entry(docstring, names)
        if entry is None:
            continue
        question = " ".join(_key(entry.title + " " + entry.question))
        if question not in questions and not answers.has_similar(_key(entry.answer)):
            questions.add(question)
            answers.add(_key(entry.answer))
            entries.append(entry)
    return tuple(sorted(entries, key=lambda entry: entry.name))


def _key(markup: str) -> list[str]:
    return re.sub(r"<[^>]*>|[\W_]+", " ", markup).lower().split()


class _Texts:
    """Texts that are searched for one nearly equal to a new one, by the Jaccard similarity of word triples."""

    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.texts_of: defaultdict[tuple[str, ...], list[int]] = defaultdict(list)

    def add(self, words: list[str]) -> None:
        for triple in (triples := _triples(words)):
            self.texts_of[triple].append(len(self.sizes))
        self.sizes.append(len(triples))

    def has_similar(self, words: list[str]) -> bool:
        triples = _triples(words)
        common = Counter(chain.from_iterable(self.texts_of.get(triple, ()) for triple in triples))
        least = MAX_SIMILARITY * len(triples)  # a text has at least as many triples as it shares
        return any(
            shared >= MAX_SIMILARITY * (len(triples) + self.sizes[number] - shared)
            for number, shared in common.items()
            if shared >= least
        )


def _triples(words: list[str]) -> set[tuple[str, ...]]:
    padded = ["", "", *words]
    return {tuple(padded[i : i + 3]) for i in range(len(words))}


def _entry(docstring: Docstring, names: Names) -> _Entry | None:
    """Return question and answer of a docstring, or None if one of them is missing."""
    is_math_role = docstring.name.startswith(("sympy.", "mpmath."))
    sections = [Section(section.title, _TEMPLATE.sub("", section.text)) for section in rst.sections(docstring.text)]
    lead = [p for p in rst.paragraphs(sections[0].text, backticks_are_math=is_math_role) if not _is_signature(p)]
    answer = [paragraph for section in sections[1:] for paragraph in _answering(section, is_math_role)]
    at = 1
    while at < len(lead) and not _words(lead[:at]):
        at += 1
    if not answer:  # running prose: the summary and perhaps one paragraph are the question, the others the answer
        cut = at + (1 if len(lead) > at + 2 else 0)
        lead, answer = lead[:cut], lead[cut:]
    elif len(_words(lead)) > MAX_QUESTION_WORDS:
        lead, answer = lead[: at + 2], lead[at + 2 :] + answer
    answer = _bounded(answer)
    if not lead or not answer or not _has_formula([*lead, *answer]) or len(_words(answer)) < 8:
        return None
    paragraphs = [names.masked(paragraph, docstring) for paragraph in lead]
    if len(set(_words(paragraphs)) - _EMPTY_WORDS) < MIN_QUESTION_WORDS:
        return None
    title, question = paragraphs[:at], paragraphs[at:]
    return _Entry(
        docstring.name,
        " ".join(_inline_html(paragraph) for paragraph in title),
        _html(question),
        _html(answer),
        tuple(name for section in sections if section.title.lower() == "see also" for name in _see_also(section.text)),
    )


def _answering(section: Section, is_math_role: bool) -> list[Paragraph]:
    """Return the paragraphs of a section for the answer."""
    if _DROPPED.fullmatch(section.title) and not _PROSE.fullmatch(section.title):
        return []
    text = section.text
    is_entries = _ENTRIES.fullmatch(section.title) is not None
    if is_entries:  # "x : array_like" is at the margin, its description is indented
        text = "\n".join(line if line[:1].isspace() else "" for line in text.splitlines())
    paragraphs = rst.paragraphs(text, backticks_are_math=is_math_role)
    if _PROSE.fullmatch(section.title) and not is_entries:
        return paragraphs
    return [paragraph for paragraph in paragraphs if _has_formula([paragraph])]


def _bounded(answer: list[Paragraph]) -> list[Paragraph]:
    count = 0
    for number, paragraph in enumerate(answer):
        count += len(_words([paragraph])) + sum(span.kind == "formula" for span in paragraph)
        if count >= MAX_ANSWER_WORDS:
            return answer[: number + 1]
    return answer


def _is_signature(paragraph: Paragraph) -> bool:
    return all(_SIGNATURE.fullmatch(span.text) is not None for span in paragraph if span.text.strip())


def _has_formula(paragraphs: Sequence[Paragraph]) -> bool:
    return any(span.kind == "formula" for paragraph in paragraphs for span in paragraph)


def _words(paragraphs: Sequence[Paragraph]) -> list[str]:
    return [
        word.lower()
        for paragraph in paragraphs
        for span in paragraph
        if span.kind != "formula"
        for word in _WORD.findall(span.text)
    ]


def _see_also(text: str) -> list[str]:
    """Return the names in a See Also section: ``jv, yv : Bessel functions`` or ``:func:`~scipy.special.jv```."""
    names: list[str] = []
    for line in text.splitlines():
        if line and not line[0].isspace():
            head = re.sub(r":\w+:|[`~*]", "", re.split(r"\s:|:\s|:\Z", line.replace("`:", "` :"), maxsplit=1)[0])
            names += [name for name in re.split(r"[,\s]+", head.strip()) if re.fullmatch(r"[A-Za-z_][\w.]*", name)]
    return names


def _links(entries: Sequence[_Entry]) -> dict[str, set[str]]:
    """Return object -> objects in its See Also; of several with that name, the one in the nearest module."""
    by_short: defaultdict[str, list[str]] = defaultdict(list)
    for entry in entries:
        by_short[short_name(entry.name)].append(entry.name)
    links: dict[str, set[str]] = {entry.name: set() for entry in entries}
    for entry in entries:
        for written in entry.see_also:
            same = [name for name in by_short[short_name(written)] if _may_be(name, written, entry.name)]
            if same and (nearest := max(same, key=lambda name: (_shared(name, entry.name), name))) != entry.name:
                links[entry.name].add(nearest)
    return links


def _may_be(name: str, written: str, namer: str) -> bool:
    """Return whether ``written`` in See Also of ``namer`` can be ``name``: of the package written, or else namer's."""
    package = written.partition(".")[0] if "." in written else ""
    package = {"np": "numpy", "nx": "networkx"}.get(package, package)
    return name.partition(".")[0] == (package if package in PACKAGES else namer.partition(".")[0])


def _shared(name: str, other: str) -> int:
    """Return the number of leading parts that two dotted names share."""
    pairs = zip(name.split("."), other.split("."), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _html(paragraphs: Sequence[Paragraph]) -> str:
    return "".join(f"<p>{_inline_html(paragraph)}</p>" for paragraph in paragraphs)


def _inline_html(paragraph: Paragraph) -> str:
    pieces = [
        f'<span class="math-container">${html.escape(span.text)}$</span>'
        if span.kind == "formula"
        else html.escape(span.text.replace("$", " "))
        for span in paragraph
    ]
    return re.sub(r"\s+", " ", "".join(pieces)).strip()
