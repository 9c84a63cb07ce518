r"""Papers with their statements: one JSON object a line, made from archives, folders and files.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "p1.tex").write_text(r"\title{Primes}\begin{thm} There are infinitely many. \end{thm}")
>>> summary = extract([folder / "p1.tex", folder / "gone.tar.gz"], folder / "papers.jsonl")
>>> summary.papers, summary.kinds["theorem"], [failure.post_id for failure in summary.failures]
(1, 1, ['gone'])
>>> [paper] = read_papers(folder / "papers.jsonl")
>>> paper.paper_id, paper.title, paper.statements[0].text
('p1', 'Primes', 'There are infinitely many.')

A paper that cannot be read is counted and kept as a failure (``papers.failures.jsonl``); the others continue. After a
kill, the same call keeps what was written and reads only missing papers.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from mmap import ACCESS_READ, mmap
from pathlib import Path

from pydantic import TypeAdapter, ValidationError

from graphs.errors import CorpusError, Failure, MathAMRError
from graphs.papers.archives import read_files
from graphs.papers.latex_source import assemble
from graphs.papers.plain import plain
from graphs.processes import ordered_map
from graphs.whole_file import write_whole
from mathamr.text.pairs import first_problem
from mathamr.text.sources.arxiv import PAPER, Metadata, joined_id, without_version
from mathamr.text.statements import MAX_CHARACTERS, Statement, find_statements

_ENDINGS = (".tar.gz", ".tgz", ".tar", ".tex.gz", ".gz", ".tex", ".ltx", ".texx")


@dataclass(frozen=True)
class Paper:
    """A paper's id, title, subject ``categories`` (arXiv's, if known) and statements, in order.

    ``dropped`` counts dropped statements by reason (:class:`mathamr.text.statements.Found`). ``date`` is that of the
    first version, YYYY-MM-DD, if known.
    """

    paper_id: str
    title: str
    categories: tuple[str, ...]
    statements: tuple[Statement, ...]
    dropped: Mapping[str, int]
    date: str = ""


_PAPER = TypeAdapter(Paper)


@dataclass
class Summary:
    """Counts of a file of papers: papers, statements by kind, statements dropped by reason, failed papers."""

    papers: int = 0
    kinds: Counter[str] = field(default_factory=Counter)
    dropped: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)

    def add(self, paper: Paper) -> None:
        """Count one paper."""
        self.papers += 1
        self.kinds.update(statement.kind for statement in paper.statements)
        self.dropped.update(paper.dropped)


def paper_id(path: Path) -> str:
    """Return the id of the paper in a file or folder: its name without ending, "arXiv" and version.

    Ids of posts have no white space and no lone surrogates; these become underscores.

    >>> paper_id(Path("arXiv-2501.00001v2.tar.gz")), paper_id(Path("chapter 2.tex"))
    ('2501.00001', 'chapter_2')
    """
    return without_version(_name(path))


def newest(paths: Iterable[Path]) -> dict[str, Path]:
    """Return the papers by id: of several versions of one on arXiv the newest.

    >>> list(newest([Path("2501.00001v10.gz"), Path("2501.00001v9.gz")]).values())
    [PosixPath('2501.00001v10.gz')]

    Raises:
        CorpusError: two papers with one id.
    """
    found: dict[str, dict[int, Path]] = {}
    for path in paths:
        paper = PAPER.fullmatch(_name(path))
        versions = found.setdefault(paper_id(path), {})
        if versions.setdefault(int(paper["version"] or 0) if paper else 0, path) != path:
            raise CorpusError(f"several papers have the id {paper_id(path)!r}; rename the files")
    return {name: versions[max(versions)] for name, versions in found.items()}


def _name(path: Path) -> str:
    ending = next((ending for ending in _ENDINGS if path.name.endswith(ending)), "")
    return "".join(sign if sign.isprintable() and sign != " " else "_" for sign in path.name.removesuffix(ending))


def read_paper(path: Path, metadata: Metadata | None = None, *, max_characters: int = MAX_CHARACTERS) -> Paper:
    """Read the paper in an archive, a folder or a file.

    Args:
        metadata: its title, categories and date on arXiv; without a title, that of the LaTeX is used.

    Raises:
        CorpusError: a paper that cannot be read, is hostile, or has no LaTeX.
    """
    try:
        source = assemble(read_files(path))
    except CorpusError as error:
        raise error if error.path else CorpusError(error.message, path=path) from error
    found = find_statements(source.text, source.declarations, max_characters=max_characters)
    known = metadata or Metadata()
    title = plain(known.title or source.title)
    return Paper(paper_id(path), title, known.categories, found.statements, found.dropped, known.date)


def to_json(paper: Paper) -> str:
    """Return a paper as one line."""
    return json.dumps({**asdict(paper), "dropped": dict(paper.dropped)}, ensure_ascii=False)


def read_papers(path: Path) -> Iterator[Paper]:
    """Yield the papers of a file, a line at a time; raise CorpusError for a line that is not a paper."""
    with path.open("rb") as file:
        for number, line in enumerate(file, 1):
            try:
                paper = _PAPER.validate_json(line)
            except ValidationError as error:
                message = f"is not a paper ({first_problem(error)}); make the file with mathamr text statements"
                raise CorpusError(message, path=path, line=number) from error
            yield paper


def extract(
    paths: Sequence[Path],
    out: Path,
    *,
    metadata: Mapping[str, Metadata] | None = None,
    max_characters: int = MAX_CHARACTERS,
    workers: int = 1,
    progress: Callable[[int], None] | None = None,
) -> Summary:
    """Append the papers that ``out`` lacks, and count all that it then holds.

    Args:
        paths: archives, folders or files, one for each paper; of several versions on arXiv the newest is read.
        out: file with one JSON object a line; an incomplete last line is removed.
        metadata: metadata by :func:`mathamr.text.sources.arxiv.joined_id`, for the papers that are added.
        progress: function called with 1 for each paper read.

    Raises:
        CorpusError: two papers with one id.
    """
    papers = newest(paths)
    _mend(out)
    summary = Summary()
    done = set()
    for paper in read_papers(out) if out.exists() else ():
        done.add(without_version(paper.paper_id))
        summary.add(paper)
    missing = [path for name, path in papers.items() if name not in done]
    results = ordered_map(partial, (_read, dict(metadata or {}), max_characters), iter(missing), workers=workers)
    with out.open("a", encoding="utf-8") as file:
        for result in results:
            if isinstance(result, Failure):
                summary.failures.append(result)
            else:
                file.write(to_json(result) + "\n")
                summary.add(result)
            if progress is not None:
                progress(1)
    failures = "".join(json.dumps(asdict(failure), ensure_ascii=False) + "\n" for failure in summary.failures)
    write_whole(out.with_suffix(".failures.jsonl"), failures)
    return summary


def _read(metadata: Mapping[str, Metadata], max_characters: int, path: Path) -> Paper | Failure:
    name = paper_id(path)
    try:
        return read_paper(path, metadata.get(joined_id(name)), max_characters=max_characters)
    except MathAMRError as error:
        return Failure(name, "latex", type(error).__name__, str(error))


def _mend(out: Path) -> None:
    """Remove everything after the last line end."""
    if out.exists() and out.stat().st_size:
        with out.open("r+b") as file:
            with mmap(file.fileno(), 0, access=ACCESS_READ) as content:
                end = content.rfind(b"\n") + 1
            file.truncate(end)
