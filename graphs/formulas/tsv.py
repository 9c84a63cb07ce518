"""Official formula files (TSV), read in pieces that end between rows, so that several processes can share a file.

    source = open_source(PackedFile(Path("slt_representation_v3/1.tsv")), "slt", prefix="")
    for piece in pieces(source, start=Place(0, 0)):
        for line, row in rows(source, piece):
            row                               # Row('1552', '9253', '695948', '<math ...>'), or the reason for none

The files are those that Python's ``csv`` writes with tabs: a header, CRLF, and quoted fields if they contain quotation
marks or line ends (:mod:`graphs.corpus.arqmath.tsv_rows`). Columns are found by name, since they differ: posts have
``post_id`` and ``visual_id``, topics have ``topic_id`` and no visual id. The formula is in the column ``formula``,
without one in the last column. Rows of formulas in comments, which no post has, are skipped.
"""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import zip_longest

from graphs.corpus.arqmath.tsv_rows import COMMENT, MISSING, formula_column, quoted_rows, whole_rows
from graphs.corpus.files import FormulaFiles, hash_contents
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import is_id
from graphs.errors import CorpusError
from graphs.formulas.tree import TreeKind

PIECE_BYTES = 1 << 20
_HEADER_BYTES = 1 << 16


@dataclass(frozen=True, slots=True)
class Source:
    """Formula file: its representation, the prefix of its ids (``2020:`` for topics), and the places of its columns.

    ``folders`` is the number of folders in its name, ``choice`` names the rows that are used; "": all.
    """

    file: PackedFile
    representation: TreeKind
    prefix: str
    size: int
    columns: int
    id_column: int
    post_column: int
    visual_column: int | None
    formula_column: int = -1
    type_column: int | None = None
    issue_column: int | None = None
    folders: int = 1
    choice: str = ""

    @property
    def name(self) -> str:
        """Name of the file in a database, independent of the collection's place and of the packing."""
        name = f"{self.representation} {self.prefix}{'/'.join(self.file.parts[-1 - self.folders :])}"
        return f"{name} of {self.choice}" if self.choice else name

    @property
    def hash(self) -> str:
        """Packing and a hash of the content; of a large file of samples, or of its checksum if it is packed."""
        return f"{'plain' if self.file.is_plain else 'packed'} {hash_contents({'': self.file})}"


@dataclass(frozen=True, slots=True)
class Place:
    """Place between two rows: the number of bytes and of lines before it."""

    offset: int
    line: int


@dataclass(frozen=True, slots=True)
class Piece:
    """Rows of ``source`` between two places, without the header. ``data``: the bytes, if the file is packed."""

    source: Source
    start: Place
    end: Place
    data: bytes | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A formula: its id with prefix, its post (or topic), its visual id, its MathML; ``missing`` in the post's text."""

    formula_id: str
    post_id: str
    visual_id: str | None
    mathml: str
    missing: bool = False


def open_source(file: PackedFile, representation: TreeKind, *, prefix: str = "") -> Source:
    """Read a file's header. Raises CorpusError if the file is missing or has no formula ids."""
    try:
        with file.open() as stream:
            header = stream.readline(_HEADER_BYTES).decode("utf-8-sig").rstrip("\r\n").split("\t")
        size = file.size
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot read this formula file: {error}", path=str(file)) from error
    posts = [name for name in ("post_id", "topic_id") if name in header]
    if "id" not in header or not posts or len(header) < 3:
        message = f"the header is {header}; a formula file has the columns id, post_id (or topic_id) and the formula"
        raise CorpusError(message, path=str(file), line=1)
    visual, kind, issue = (header.index(name) if name in header else None for name in ("visual_id", "type", "issue"))
    places = (header.index("id"), header.index(posts[0]), visual, formula_column(header), kind, issue)
    return Source(file, representation, prefix, size, len(header), *places)


def sources_of(files: FormulaFiles) -> list[Source]:
    """Return all files, post files first, an SLT file and the OPT file of the same number side by side.

    Raises :class:`CorpusError` for a missing file, one that is not a formula file, and one that is listed twice.
    """
    sources = []
    for slt, opt in zip_longest(files.slt, files.opt):
        sources += _pair(slt, opt, "")
    for year in files.topics:
        sources += _pair(year.slt, year.opt, year.prefix)
    taken = Counter(source.name for source in sources)
    while clashing := {name for name, count in taken.items() if count > 1}:
        deeper = [replace(source, folders=source.folders + (source.name in clashing)) for source in sources]
        if [source.name for source in deeper] == [source.name for source in sources]:
            twice = next(source.file for source in sources if source.name in clashing)
            raise CorpusError("listed twice among the formula files; list it once", path=str(twice))
        sources, taken = deeper, Counter(source.name for source in deeper)
    return sources


def of_choice(source: Source, posts: frozenset[str] | None) -> Source:
    """Return ``source`` under a name that includes the choice of posts: another choice reads the file again.

    The small files of topics have their content in the name instead, since later releases correct them.
    """
    if source.prefix:
        return replace(source, choice=source.hash.partition(" ")[2][:12])
    if posts is None:
        return source
    return replace(source, choice=blake2b("\0".join(sorted(posts)).encode(), digest_size=6).hexdigest())


def source_prints(files: FormulaFiles) -> dict[str, tuple[int, str]]:
    """Return the size and hash of each formula file, by its name in databases that have all posts.

    Raises:
        CorpusError: a missing file, or one that is not a formula file.
    """
    sources = (of_choice(source, None) for source in sources_of(files))
    return {source.name: (source.size, source.hash) for source in sources}


def same_content(known: str, found: str) -> bool:
    """Return whether two files of one size can have one content; hashes of different packing are not compared.

    >>> same_content("plain a", "plain b"), same_content("plain a", "packed b")
    (False, True)
    """
    return known == found or known.partition(" ")[0] != found.partition(" ")[0]


def _pair(slt: PackedFile | None, opt: PackedFile | None, prefix: str) -> list[Source]:
    files: dict[TreeKind, PackedFile | None] = {"slt": slt, "opt": opt}
    return [open_source(file, kind, prefix=prefix) for kind, file in files.items() if file is not None]


def pieces(source: Source, start: Place) -> Iterator[Piece]:
    """Yield the file from ``start`` (``Place(0, 0)``: from its header), a megabyte at a time."""
    packed = not source.file.is_plain
    with source.file.open() as file:
        if start.offset == 0:
            start = Place(len(file.readline()), 1)
        elif packed:
            _skip(file, start.offset)
        else:
            file.seek(start.offset)
        for data in whole_rows(file, PIECE_BYTES):
            end = Place(start.offset + len(data), start.line + data.count(b"\n"))
            yield Piece(source, start, end, data if packed else None)
            start = end


def _skip(file: io.BufferedReader, size: int) -> None:
    """Skip the first ``size`` bytes."""
    while size and (block := file.read(min(size, PIECE_BYTES))):
        size -= len(block)


def rows(piece: Piece) -> Iterator[tuple[int, Row | str]]:
    """Yield every row of a formula in a post, with its line; a string in place of a row describes its error."""
    source = piece.source
    data = piece.data
    if data is None:
        with source.file.open() as file:
            file.seek(piece.start.offset)
            data = file.read(piece.end.offset - piece.start.offset)
    if csv.field_size_limit() < len(data):
        csv.field_size_limit(len(data))
    following = piece.start.line + 1
    for row, closed in quoted_rows(io.BytesIO(data)):
        line, following = following, following + row.count(b"\n")
        if not closed:
            yield line, "a quotation mark is not closed"
            continue
        # Bytes that are not UTF-8 become surrogates: the reader of MathML refuses them, and the loop those in ids.
        text = row.decode(errors="surrogateescape")
        try:
            fields = next(csv.reader([text], delimiter="\t"), [])
        except csv.Error as error:
            yield line, str(error)
            continue
        if len(fields) != source.columns:
            if fields:  # skip empty lines
                yield line, f"row has {len(fields)} columns, {source.columns} are needed"
            continue
        if source.type_column is not None and fields[source.type_column] == COMMENT:
            continue
        visual_id = None if source.visual_column is None else fields[source.visual_column] or None
        formula_id, post_id = fields[source.id_column], fields[source.post_column]
        if wrong := [name for name in (formula_id, post_id, visual_id or "-") if not is_id(name)]:
            yield line, f"the id {wrong[0]!r} is empty, or has blanks, control characters or bytes that are not UTF-8"
            continue
        missing = source.issue_column is not None and MISSING in fields[source.issue_column]
        yield line, Row(source.prefix + formula_id, post_id, visual_id, fields[source.formula_column], missing)


def key(identifier: str) -> int | str:
    """Return an id as the database has it: an integer if it is written as one.

    >>> key("1552"), key("2020:q_1"), key("007")
    (1552, '2020:q_1', '007')
    """
    if identifier.isdecimal() and identifier.isascii() and len(identifier) < 19 and not identifier.startswith("0"):
        return int(identifier)
    return identifier
