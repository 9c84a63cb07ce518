"""Files of a collection: places of its formula TSVs, and a hash that changes with any file.

>>> FormulaFiles(latex=(PackedFile(Path("latex.zip"), "1.tsv"),), slt=(), opt=(), topics=()).latex[0].name
'1.tsv'
"""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, BinaryIO

from graphs.corpus.packed import GZIP, PackedFile, readable
from graphs.errors import CorpusError


@dataclass(frozen=True, slots=True)
class TopicFormulaFiles:
    """Formula TSVs of one year's topics, or of one of its tasks if the tasks have separate files.

    Columns are ``id, topic_id, thread_id, type, <formula>``.

    Outside these files, their ids begin with ``prefix`` (``2020:``). ``None``: a missing file.
    """

    prefix: str
    latex: PackedFile | None
    slt: PackedFile | None
    opt: PackedFile | None


@dataclass(frozen=True, slots=True)
class FormulaFiles:
    """Formula TSVs of a collection's posts, in order (``1.tsv``, ``2.tsv`` ...), and those of its topics.

    ``unread`` has the paths of tables that are not recognised, with the reason.
    """

    latex: tuple[PackedFile, ...]
    slt: tuple[PackedFile, ...]
    opt: tuple[PackedFile, ...]
    topics: tuple[TopicFormulaFiles, ...]
    unread: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Fingerprints:
    """Hashes of the parts of a collection; each stage depends on some of them.

    >>> from dataclasses import replace
    >>> parts = Fingerprints(posts="1f", formulas="2e", topics="3d", judgments="4c")
    >>> parts.graphs == replace(parts, topics="0", judgments="0").graphs
    True

    Attributes:
        posts: posts, links and training pairs.
        formulas: published trees of the posts' formulas.
        topics: topics and the published trees of their formulas.
        judgments: judgments in use.
    """

    posts: str
    formulas: str = ""
    topics: str = ""
    judgments: str = ""

    @property
    def graphs(self) -> str:
        """Identity of everything that the graphs of the posts are made from (64 hex digits)."""
        return hashlib.sha256(f"{self.posts}\0{self.formulas}".encode()).hexdigest()

    @property
    def searches(self) -> str:
        """Identity of everything that rankings depend on: posts, formulas and topics (64 hex digits)."""
        return hashlib.sha256(f"{self.graphs}\0{self.topics}".encode()).hexdigest()


def hash_files(root: Path, files: Iterable[Path]) -> str:
    """Return a SHA-256 over names (below ``root``), sizes and content of files.

    Files of up to 1 MiB are hashed whole, and all files if they have at most 64 MiB together. Of a larger file, 16
    samples of 64 KiB count, so a change that keeps its size may be missed.
    """
    digest = hashlib.sha256()
    path, sizes = root, dict[Path, int]()
    try:
        for path in files:
            sizes[path] = path.stat().st_size
        together = sum(sizes.values())
        for path, size in sorted(sizes.items()):
            digest.update(f"{path.relative_to(root).as_posix()}\0{size}\0".encode())
            with path.open("rb") as file:
                if _is_read_whole(size, together):
                    while chunk := file.read(1 << 20):
                        digest.update(chunk)
                else:
                    _update_with_samples(digest, file, size)
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", path=path) from error
    return digest.hexdigest()


def hash_contents(files: Mapping[str, PackedFile]) -> str:
    """Return a SHA-256 over the content of labelled files; their names do not count.

    Files of up to 1 MiB are hashed whole, and all files if they have at most 64 MiB together, so that it does not
    matter how they are packed. Of a larger file, the size and 16 samples of 64 KiB count, of a packed one the size and
    the checksum: packing or unpacking such a file changes the hash, compressing it anew does not.
    """
    digest = hashlib.sha256()
    together = sum(file.size for file in files.values())
    for label, file in sorted(files.items()):
        size = file.size
        digest.update(f"{label}\0{size}\0".encode())
        if _is_read_whole(size, together):
            for chunk in file.chunks():
                digest.update(chunk)
        elif file.checksum is not None:
            digest.update(f"{file.checksum:08x}".encode())
        else:
            with readable(file), file.path.open("rb") as stream:
                _update_with_samples(digest, stream, size)
    return digest.hexdigest()


def _is_read_whole(size: int, together: int) -> bool:
    """Return whether a file is hashed whole; ``together`` is the size of all files of its kind."""
    return size <= 1 << 20 or together <= 64 << 20


def _update_with_samples(digest: hashlib._Hash, stream: BinaryIO, size: int) -> None:
    for sample in range(16):
        stream.seek((size - 65536) * sample // 15)
        digest.update(stream.read(65536))


def file_in(folder: Path, name: str) -> Path | None:
    """Return the file ``name`` in ``folder``, packed (``name.gz``) or not.

    Raises:
        CorpusError: both files exist.
    """
    present = [path for path in (folder / name, folder / f"{name}.gz") if path.is_file()]
    if len(present) == 2:
        raise CorpusError(f"both {name} and {name}.gz are here; keep one", path=folder)
    return present[0] if present else None


def open_packed(path: Path) -> IO[bytes]:
    """Open a file for reading; a file with the ending ``.gz`` is decompressed.

    Raises:
        CorpusError: a gzip file without this ending.
    """
    if path.suffix == ".gz":
        return gzip.open(path, "rb")  # type: ignore[return-value]
    file = path.open("rb")
    if file.peek(len(GZIP)).startswith(GZIP):
        file.close()
        raise CorpusError(f"is compressed with gzip; name it {path.name}.gz, or unpack it", path=path)
    return file
