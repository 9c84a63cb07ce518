"""Files of a folder that can be read, and those that are refused, each with a reason.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "a.md").write_text("# Primes")
>>> _ = (folder / "b.pdf").write_text("%PDF")
>>> (folder / "c.tex").symlink_to("/etc/passwd")
>>> found = scan(folder)
>>> list(found.files), [(one.post_id, one.kind) for one in found.failures]
(['a.md'], [('b.pdf', 'pdf'), ('c.tex', 'link')])

Links are never followed; a target inside the folder is read at its own path. Only regular files are opened. Files
and folders with names that begin with a dot are left out.
"""

from __future__ import annotations

import os
import re
import stat
from collections.abc import Collection
from dataclasses import dataclass, field
from pathlib import Path

from graphs.errors import CorpusError, Failure
from graphs.papers.archives import Limits
from graphs.papers.latex_source import STYLES
from mathamr.folder import html, latex, markdown, notebook

ARCHIVES = (".tar.gz", ".tgz", ".tar", ".gz")
"""Endings of archives of LaTeX, as arXiv has them."""

ENDINGS = (*latex.SUFFIXES, *STYLES, *markdown.SUFFIXES, *notebook.SUFFIXES, *html.SUFFIXES, *ARCHIVES)
"""Endings of files that are read."""

LIMITS = Limits(files=100_000)
"""Bounds of a folder: files of any kind, bytes of one file, and bytes of all files that are read."""

# A packed file of arXiv has the number of the paper as its name; others are logs and tables.
_PAPER = re.compile(r"\.(?:tar|tex)\.gz\Z|(?:\A|[a-z._-])(?:\d{4}\.\d{4,5}|\d{7})(?:v\d+)?\.gz\Z")

_STAGE = "read"  # of failures


@dataclass
class Scanned:
    """Files by their path below the folder, ``failures`` of others, and the number of files of ``other`` kinds.

    ``closed`` has the reason for each file and folder that the operating system does not open.
    """

    files: dict[str, Path] = field(default_factory=dict)
    closed: dict[str, str] = field(default_factory=dict)
    failures: list[Failure] = field(default_factory=list)
    other: int = 0


def scan(folder: Path, without: Collection[Path] = (), limits: Limits = LIMITS) -> Scanned:
    """Find the files of a folder, in the order of their paths.

    Args:
        without: folders inside it that are left out.

    Raises:
        CorpusError: not a folder, or one with more files or bytes than ``limits``.
    """
    if not folder.is_dir():
        raise CorpusError("is not a folder; give the folder of your documents", path=folder)
    found = Scanned()
    left_out = {path.resolve() for path in without}
    count = size = 0

    def close(error: OSError) -> None:
        shown = Path(os.path.relpath(error.filename or folder, folder)).as_posix()
        found.closed[shown] = str(error.strerror)

    for root, folders, names in os.walk(folder, onerror=close):
        here = Path(root)
        # Path.is_symlink raises if a folder can be listed, but not entered; os.walk then closes its subfolders.
        links = [name for name in folders if os.path.islink(here / name)]  # noqa: PTH114
        folders[:] = sorted(
            name
            for name in folders
            if not name.startswith(".") and name not in links and (here / name).resolve() not in left_out
        )
        for name in sorted([*names, *links]):
            path = here / name
            shown = path.relative_to(folder).as_posix()
            if name.startswith("."):
                continue
            if (count := count + 1) > limits.files:
                raise CorpusError(f"has more than {limits.files:,} files; give a smaller folder", path=folder)
            try:
                kind, message = _refusal(path, folder, limits)
            except OSError as error:
                found.closed[shown] = str(error.strerror)
                continue
            if kind == "other":
                found.other += 1
            elif kind:
                found.failures.append(failure(shown, kind, message))
            elif (size := size + path.stat().st_size) > limits.total_bytes:
                raise CorpusError(f"has documents of more than {limits.total_bytes:,} bytes", path=folder)
            else:
                found.files[shown] = path
    found.files = dict(sorted(found.files.items()))
    return found


def _refusal(path: Path, folder: Path, limits: Limits) -> tuple[str, str]:
    """Return the kind and the message of a refusal; empty for a file that is read."""
    status = path.lstat()
    name = path.name.lower()
    is_document = name.endswith(ENDINGS) and (not name.endswith(".gz") or _PAPER.search(name) is not None)
    if stat.S_ISLNK(status.st_mode):
        outside = (is_document or path.is_dir()) and not path.resolve().is_relative_to(folder.resolve())
        return ("link", "a link out of the folder is not followed") if outside else ("other", "")
    if name.endswith(".pdf"):
        beside = any(path.with_suffix(ending).exists() for ending in (*latex.SUFFIXES, *ARCHIVES))
        message = "a PDF has no formulas in LaTeX; put its LaTeX source, or its archive from arXiv, into the folder"
        return ("other", "") if beside else ("pdf", message)
    if not is_document:
        return "other", ""
    if not stat.S_ISREG(status.st_mode):
        return "special", "is not a regular file"
    if status.st_size > limits.file_bytes and not name.endswith(ARCHIVES):
        return "large", f"has more than {limits.file_bytes:,} bytes"
    return "", ""


def failure(name: str, kind: str, message: str) -> Failure:
    """Return the failure of a file; unprintable characters, such as bytes that are not UTF-8, become ``?``."""
    shown, text = ("".join(sign if sign.isprintable() else "?" for sign in one) for one in (name, f"{name}: {message}"))
    return Failure(shown, _STAGE, kind, text)
