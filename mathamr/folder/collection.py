"""Folder of documents -> a collection of posts (``posts.jsonl``) that keeps track of its files.

>>> import tempfile
>>> folder, out = Path(tempfile.mkdtemp()), Path(tempfile.mkdtemp())
>>> _ = (folder / "a.md").write_text("# Primes")
>>> _ = (folder / "b.md").write_text("There are infinitely many primes.")
>>> first = read_folder(folder, out)
>>> print(first)
2 files, 1 passage (1 Markdown)
>>> record_files(first, out)
>>> _ = (folder / "a.md").write_text("A prime has two divisors.")
>>> update = read_folder(folder, out, update=True)
>>> update.read, update.kept, update.removed, len(update.post_ids)
(1, 1, 0, 2)

``read.json``, next to the posts, records digests of each file and of its preamble, and the ids of its posts: an update
splits only files with other digests, also after a run that was stopped. ``files.json`` is the same of the last run
whose posts have been used; new, changed and removed files are counted against it. A file that cannot be read is
recorded as a failure; the others are read. If the operating system does not open a file or a folder, an update keeps
its posts; while a LaTeX file is closed, the others keep their preambles, because its macros are missing.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from graphs import digests
from graphs.corpus.jsonl import read_lines
from graphs.counts import counted
from graphs.errors import CorpusError, Failure, MathAMRError
from graphs.papers import archives
from graphs.papers.latex_source import STYLES
from graphs.processes import ordered_map
from graphs.shared_files import read_json
from graphs.whole_file import write_whole
from mathamr.folder import html, latex, markdown, notebook
from mathamr.folder.passages import MIN_LETTERS, Passage, spaced
from mathamr.folder.preambles import Preambles
from mathamr.folder.scan import ARCHIVES, failure, scan

POSTS, READ, FILES = "posts.jsonl", "read.json", "files.json"
_FORMAT = 9  # of both records, and of what is read from a file; another number reads everything again
_FORMS = {
    "LaTeX": latex.SUFFIXES,
    "Markdown": markdown.SUFFIXES,
    "notebooks": notebook.SUFFIXES,
    "HTML": html.SUFFIXES,
    "archives": ARCHIVES,
}
_LATEX = (*latex.SUFFIXES, *STYLES)
_SHOWN = 10  # files in a message
_WINDOWS = {code: bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xA0)}  # in Latin-1

Record = dict[str, Any]
"""Line of ``posts.jsonl``."""


@dataclass
class FolderPosts:
    """Posts of a folder, and counts of its files.

    Attributes:
        files: number of files that are in the collection.
        read: number of files that are new or have changed since the recorded state.
        kept: number of files that have not changed since the recorded state.
        removed: number of files that are gone since the recorded state.
        other: number of files of other kinds.
        remnants: number of passages left out, which have a few letters and no formula.
        forms: number of posts by the format of their file.
        state: record of each file, for :func:`record_files`.
    """

    post_ids: list[str] = field(default_factory=list)
    files: int = 0
    read: int = 0
    kept: int = 0
    removed: int = 0
    other: int = 0
    remnants: int = 0
    forms: Counter[str] = field(default_factory=Counter)
    failures: list[Failure] = field(default_factory=list)
    state: dict[str, dict[str, Any]] = field(default_factory=dict)

    @property
    def identity(self) -> str:
        """Hash of the posts (16 hex digits)."""
        return hashlib.sha256("\n".join(self.post_ids).encode()).hexdigest()[:16]

    def __str__(self) -> str:
        counts = self.forms.most_common()
        forms = ", ".join(f"{count:,} {form if count != 1 else form.removesuffix('s')}" for form, count in counts)
        lines = [
            f"{counted(self.files, 'file')}, {counted(len(self.post_ids), 'passage')}" + f" ({forms})" * bool(forms)
        ]
        if self.kept or self.removed:
            lines += [f"{self.read:,} new or changed, {self.kept:,} unchanged, {self.removed:,} removed"]
        if self.other:
            lines += [f"{counted(self.other, 'file')} of other kinds left out"]
        if self.remnants:
            lines += [f"{counted(self.remnants, 'passage')} of fewer than {MIN_LETTERS} letters left out"]
        return "\n".join(lines)


def read_folder(
    folder: Path,
    out: Path,
    *,
    update: bool = False,
    without: Collection[Path] = (),
    progress: Callable[[int], None] | None = None,
    workers: int = 1,
) -> FolderPosts:
    """Write the passages of a folder to ``out`` as a collection; :func:`record_files` is to follow their use.

    Args:
        update: keep the posts of files that did not change.
        without: folders inside ``folder`` that are left out, such as an index.
        progress: called with the number of files done since the last call.
        workers: number of processes that split files into passages.

    Raises:
        CorpusError: not a folder, a folder that is too large, or a folder without any passage.
    """
    found = scan(folder, [out, *without])
    result = FolderPosts(other=found.other, failures=list(found.failures))
    before = _before(out) if update else _Before({}, {})
    sources = _sources(found.files, found.closed, result.failures)
    closed = {name: one for name, one in before.contents.items() if _place_in(found.closed, name)}
    result.failures += _closed_places(found.closed, closed)
    records: dict[str, Record] = {}
    preambles = Preambles({name: text for name, text in sources.items() if name.lower().endswith(_LATEX)})
    lacking = any(name.lower().endswith(_LATEX) for name in closed)
    known = {
        name: closed.get(name) or _known(name, found.files[name], sources.get(name), preambles, before, lacking=lacking)
        for name in sorted((found.files.keys() - found.closed.keys()) | closed.keys())
    }
    unread = (one for one in known.values() if isinstance(one, _Unread))
    read: Iterator[_Content | Failure] = ordered_map(
        partial, (_read_file,), unread, workers=workers, give_up=_as_failure
    )
    for name, file in known.items():
        content = next(read) if isinstance(file, _Unread) else file
        if isinstance(content, Failure):
            result.failures.append(content)
            content = None
        if content is not None:
            is_kept = before.digests.get(name) == content.digest
            result.kept += is_kept
            result.read += not is_kept
            own = {str(post["post_id"]): post for post in content.posts}
            records |= own
            result.state[name] = {"digest": content.digest, "posts": list(own), "remnants": content.remnants}
            result.files += not name.lower().endswith(STYLES)
            result.remnants += content.remnants
            result.forms.update([_form(name)] * len(own))
        if progress is not None:
            progress(1)
    result.removed = len(before.digests.keys() - found.files.keys() - closed.keys())
    result.post_ids = list(records)
    if not records:
        left_out = [f"{counted(result.other, 'file')} of other kinds left out"] if result.other else []
        reasons = "".join(f"; {one}" for one in [*left_out, *(one.message for one in result.failures[:_SHOWN])])
        more = len(result.failures) - _SHOWN
        reasons += f"; {counted(more, 'further file')} cannot be read" if more > 0 else ""
        forms = "LaTeX, Markdown, notebooks, HTML with MathML or LaTeX, archives of arXiv"
        raise CorpusError(f"has no text that can be read: {forms}{reasons}", path=folder)
    out.mkdir(parents=True, exist_ok=True)
    write_whole(out / POSTS, "".join(json.dumps(record) + "\n" for record in records.values()))
    _write_record(result, out / READ)
    return result


def record_files(posts: FolderPosts, out: Path) -> None:
    """Record the files of ``posts`` as the state that the next update is compared with."""
    _write_record(posts, out / FILES)


def _write_record(posts: FolderPosts, path: Path) -> None:
    write_whole(path, json.dumps({"format": _FORMAT, "files": posts.state}, indent=1) + "\n")


class _Content(NamedTuple):
    """Digest of a file and its preamble, its posts, and the number of passages left out."""

    digest: str
    posts: list[Record]
    remnants: int


class _Before(NamedTuple):
    """Digests of the files that were used, and contents of those that were read, which ``posts.jsonl`` has."""

    digests: dict[str, str]
    contents: dict[str, _Content]


def _before(out: Path) -> _Before:
    """Return the recorded files; none if a record is missing, damaged or of another format."""
    try:
        used, read = (_files_of(out / name) for name in (FILES, READ))
        posts = {line["post_id"]: line for _, line in read_lines(out / POSTS) if isinstance(line, dict)}
        contents = {
            name: _Content(one["digest"], [posts[post] for post in one["posts"]], one["remnants"])
            for name, one in read.items()
            if posts.keys() >= set(one["posts"])
        }
        return _Before({name: one["digest"] for name, one in used.items()}, contents)
    except (OSError, ValueError, KeyError, TypeError, AttributeError, MathAMRError):
        return _Before({}, {})


def _files_of(record: Path) -> dict[str, dict[str, Any]]:
    """Return the files of a record; none if it is missing, damaged or of another format."""
    state = read_json(record) or {}
    return dict(state["files"]) if state.get("format") == _FORMAT else {}


def _place_in(closed: Mapping[str, str], name: str) -> str | None:
    """Return the closed place that a file is, or lies in; None for an open file."""
    return next((place for place in (name, *map(str, PurePosixPath(name).parents)) if place in closed), None)


def _closed_places(closed: Mapping[str, str], kept: Mapping[str, _Content]) -> list[Failure]:
    """Return a failure for each closed file or folder; its message says if posts are kept."""
    with_posts = {_place_in(closed, name) for name, content in kept.items() if content.posts}
    stay = "; its passages stay in the index"
    return [failure(place, "closed", reason + stay * (place in with_posts)) for place, reason in closed.items()]


def _sources(files: Mapping[str, Path], closed: dict[str, str], failures: list[Failure]) -> dict[str, str]:
    """Return the text of each file, and the digest of each archive.

    Files that cannot be read are added to ``closed``, with the reason, and files that are not text to ``failures``.
    """
    sources = {}
    for name, path in files.items():
        try:
            if name.lower().endswith(ARCHIVES):
                sources[name] = digests.of_file(path)
                continue
            text = archives.decode(path.read_bytes())
        except OSError as error:
            closed[name] = str(error.strerror)
            continue
        if text is None:
            failures.append(failure(name, "binary", "is not text in UTF-8 or Latin-1"))
        else:
            text = text.translate(_WINDOWS)
            sources[name] = text if name.lower().endswith(notebook.SUFFIXES) else spaced(text)  # JSON has escapes
    return sources


class _Unread(NamedTuple):
    """File that is to be split: its name, path, text, declarations of its preamble, and the digest of all of it."""

    name: str
    path: Path
    text: str
    declarations: str
    digest: str


def _known(
    name: str, path: Path, source: str | None, preambles: Preambles, before: _Before, *, lacking: bool
) -> _Content | _Unread | None:
    """Return the content of a file if it is known; None for a file that has failed before.

    Args:
        source: text of the file, or digest of the archive.
        lacking: preambles may lack macros, so a file with the same text keeps its content.
    """
    if source is None:
        return None
    lower = name.lower()
    declarations = preambles.of(name) if lower.endswith(_LATEX) else ""
    digest = source if lower.endswith(ARCHIVES) else f"{_digest(source)}-{_digest(declarations)}"
    content = before.contents.get(name)
    same_text = content is not None and content.digest.partition("-")[0] == digest.partition("-")[0]
    if content is not None and (content.digest == digest or (lacking and same_text)):
        return content
    return _Unread(name, path, source, declarations, digest)


def _read_file(file: _Unread) -> _Content | Failure:
    """Return the posts of a file, or why it cannot be read."""
    try:
        passages = list(_passages(file.name, file.path, file.text, file.declarations))
    except MathAMRError as error:
        return failure(file.name, "unreadable", getattr(error, "message", str(error)))
    posts: list[Record] = [
        {"post_id": one.post_id, "kind": "answer", "title": one.title, "body": one.text, "markup": "text"}
        for one in passages
        if not one.is_remnant
    ]
    return _Content(file.digest, posts, len(passages) - len(posts))


def _as_failure(file: _Unread) -> Failure:
    return failure(file.name, "unreadable", "a process died while it read the file, perhaps out of memory")


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode(errors="replace")).hexdigest()


def _passages(name: str, path: Path, text: str, declarations: str) -> Iterator[Passage]:
    lower = name.lower()
    if lower.endswith(ARCHIVES):
        files = archives.read_files(path)
        if not any("\\begin" in text or "\\document" in text for text in files.values()):
            raise CorpusError("an archive without LaTeX")
        yield from latex.read_files(files, f"{name}/")
    elif lower.endswith(_LATEX):
        yield from latex.read_latex(name, text, declarations)
    elif lower.endswith(markdown.SUFFIXES):
        yield from markdown.read_markdown(name, text)
    elif lower.endswith(notebook.SUFFIXES):
        yield from notebook.read_notebook(name, text)
    else:
        yield from html.read_html(name, text)


def _form(name: str) -> str:
    return next((form for form, endings in _FORMS.items() if name.lower().endswith(endings)), "LaTeX")
