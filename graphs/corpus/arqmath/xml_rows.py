"""Elements of a large or untrusted XML file, one after another, with nothing else of it in memory.

>>> import tempfile; path = Path(tempfile.mkdtemp()) / "Posts.xml"
>>> _ = path.write_text('<posts>\\n<row Id="1" Body="a &lt;b&gt;"/>\\n<row Id="2"/></posts>')
>>> list(read_rows(path))
[(2, {'Id': '1', 'Body': 'a <b>'}), (3, {'Id': '2'})]

Entities are not resolved, nothing is fetched, and a file with a document type declaration is refused: posts need none,
and it is what attacks on XML readers are made of.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from lxml import etree

from graphs.corpus.packed import PackedFile
from graphs.errors import CorpusError

_PROLOG = re.compile(r"(?:\s+|<\?.*?\?>|<!--.*?-->)*+", re.DOTALL)
_ROOT = re.compile(r"<(?:[\w.-]+:)?([\w.-]+)[\s/>]")


def read_rows(path: Path | PackedFile) -> Iterator[tuple[int, dict[str, str]]]:
    """``(line, attributes)`` of every ``<row>``, in order. Raises CorpusError, with the line, where the XML breaks."""
    for line, element in _elements(path, "row"):
        yield line, {str(key): str(value) for key, value in element.attrib.items()}


def read_elements(path: Path | PackedFile, tag: str, key: str) -> Iterator[tuple[int, str, dict[str, str]]]:
    """``(line, attribute key, texts of the children by tag)`` of every ``<tag>``; errors as in :func:`read_rows`."""
    for line, element in _elements(path, tag):
        texts = {str(child.tag): "".join(map(str, child.itertext())) for child in element if isinstance(child.tag, str)}
        yield line, element.get(key, ""), texts


def _elements(path: Path | PackedFile, tag: str) -> Iterator[tuple[int, etree._Element]]:
    given = path if isinstance(path, PackedFile) else PackedFile(path)
    place = str(given)
    _refuse_doctype(given)
    try:
        with given.open() as file:
            context = etree.iterparse(
                _Parts(file),
                events=("end",),
                tag=tag,
                resolve_entities=False,
                no_network=True,
                load_dtd=False,
                huge_tree=False,
                remove_comments=True,
                remove_pis=True,
            )
            for _, element in context:
                if element.getroottree().docinfo.internalDTD is not None:
                    raise CorpusError(_NO_DOCTYPE, path=place)
                yield element.sourceline or 0, element
                element.clear()
                parent = element.getparent()
                while parent is not None and element.getprevious() is not None:
                    del parent[0]
    except etree.XMLSyntaxError as error:
        message = f"broken XML: {error.msg or 'no content'}; is the file complete? Fetch or unpack it again"
        raise CorpusError(message, path=place, line=error.lineno or 1) from error
    except OSError as error:
        raise CorpusError(f"cannot be read: {error.strerror}", path=place) from error


class _Parts:
    """A stream that gives what it has: elements before a damaged place are read before its error is raised."""

    def __init__(self, stream: BufferedReader) -> None:
        self._stream = stream

    def read(self, size: int) -> bytes:
        return self._stream.read1(size)


_NO_DOCTYPE = "has a document type declaration (<!DOCTYPE ...>), which is refused: delete it, a collection needs none"


def _refuse_doctype(file: PackedFile) -> None:
    """Look at the file's first 64 KiB, before any parser does."""
    text = decoded(file.head(65536))
    match = _PROLOG.match(text)
    rest = text[match.end() :] if match else text
    if rest.startswith("<!DOCTYPE"):
        line = text.count("\n", 0, len(text) - len(rest)) + 1
        raise CorpusError(_NO_DOCTYPE, path=str(file), line=line)


def root_of(start: bytes) -> str:
    """Return the name of the root element of an XML file that starts so; empty where it has no such start.

    >>> root_of(b'\\xef\\xbb\\xbf<?xml version="1.0"?><!-- 2021 --><Topics><Topic number="A.1">')
    'Topics'
    """
    text = decoded(start)
    match = _PROLOG.match(text)
    root = _ROOT.match(text, match.end() if match else 0)
    return root[1] if root else ""


def decoded(start: bytes) -> str:
    """Return the first bytes of an XML file as text, in which its tags can be searched; other letters may be wrong."""
    wide = start[:2] in (b"\xff\xfe", b"\xfe\xff") or b"\x00" in start[:4]
    text = start.decode("utf-16" if start[:2] in (b"\xff\xfe", b"\xfe\xff") else "latin-1", errors="replace")
    return text.replace("\x00", "") if wide else text.removeprefix("\xef\xbb\xbf")
