"""Graphs made elsewhere: a Penman file with ``# ::id`` lines takes the place of a parser.

>>> import tempfile
>>> with tempfile.TemporaryDirectory() as folder:
...     path = Path(folder) / "graphs.penman"
...     _ = path.write_text("# ::id 7 ::kind question\\n# ::snt Prove it.\\n(p / prove-01\\n  :ARG1 (i / it))\\n")
...     parser = PenmanFileParser(path)
...     found, missing = parser.document("7"), parser.document("8")
>>> found.graph.triples[-1]
('i', ':instance', 'it')
>>> missing.kind
'unknown_id'

Only the places of the graphs are in memory (about 150 bytes a graph); each graph is read on demand.
"""

from __future__ import annotations

import hashlib
import json
from codecs import BOM_UTF8
from collections.abc import Sequence
from dataclasses import replace
from os import PathLike
from pathlib import Path

from graphs.amr.document import DocumentAMR, merge
from graphs.amr.penman_text import Block, blocks, decode
from graphs.errors import AMRError, Failure


class PenmanFileParser:
    """Parser that looks graphs up by the post's id (:meth:`document`) or by the sentences' text (:meth:`parse`)."""

    name = "penman_file"
    version = "3"  # 2: a role without a target is an error; 3: a graph belongs to the last id before it

    def __init__(self, path: str | PathLike[str]) -> None:
        self._path = Path(path)
        self._offsets: dict[str, int] = {}
        self._by_text: dict[bytes, int] = {}
        digest = hashlib.sha256()
        offset = start = 0
        before = b""  # the first character of the line before
        try:
            with self._path.open("rb") as file:
                for number, line in enumerate(file, 1):
                    digest.update(line)
                    first = line.removeprefix(BOM_UTF8).strip()[:1]
                    if first and (not before or (first == b"#" and before != b"#")):
                        start = offset
                    before = first
                    if first == b"#":
                        self._note(line, start, number)
                    offset += len(line)
        except OSError as error:
            raise AMRError(
                f"{self._path}: {error.strerror}; penman_file needs a file of graphs", kind="no_file"
            ) from error
        if not self._offsets:
            raise AMRError(f"{self._path}: no line has '# ::id'; add the post's id to each graph", kind="no_id")
        self.model = f"{self._path.name} sha256:{digest.hexdigest()[:16]}"

    def _note(self, line: bytes, start: int, number: int) -> None:
        for block in blocks([line.decode("utf-8", "replace"), "(a / a)"]):
            post_id, sentence = block.metadata.get("id"), block.metadata.get("snt")
            if post_id is not None:
                if post_id in self._offsets:
                    raise AMRError(
                        f"{self._path}:{number}: a second graph with the id {post_id!r}", kind="duplicate_id"
                    )
                self._offsets[post_id] = start
            if sentence:
                self._by_text.setdefault(_key(sentence), start)

    def document(self, post_id: str, sentences: Sequence[str] = ()) -> DocumentAMR | Failure:
        """Return the graph with this id, and its ``# ::formula_map``, if any; the sentences are ignored."""
        offset = self._offsets.get(post_id)
        if offset is None:
            return Failure(post_id, "amr", "unknown_id", f"{self._path} has no graph with '# ::id {post_id}'")
        block = self._read(offset)
        if not block.text:
            return Failure(post_id, "amr", "no_graph", f"{self._path}: no graph follows '# ::id {post_id}'")
        try:
            return replace(merge([decode(block.text, forest=True)]), formula_map=_formula_map(block))
        except AMRError as error:
            return Failure(post_id, "amr", error.kind, f"{self._path}, '# ::id {post_id}': {error.message}")

    def parse(self, chunks: Sequence[Sequence[str]]) -> list[str | Failure]:
        """Return the graph whose ``# ::snt`` line equals the chunk's sentences, joined by a space."""
        answers: list[str | Failure] = []
        for chunk in chunks:
            offset = self._by_text.get(_key(" ".join(chunk)))
            if offset is None:
                message = f"{self._path} has no graph with '# ::snt {' '.join(chunk)[:60]}...'"
                answers.append(Failure("", "amr", "unknown_sentence", message))
            elif text := self._read(offset).text:
                answers.append(text)
            else:
                message = f"{self._path}: no graph follows '# ::snt {' '.join(chunk)[:60]}...'"
                answers.append(Failure("", "amr", "no_graph", message))
        return answers

    def _read(self, offset: int) -> Block:
        with self._path.open("rb") as file:
            file.seek(offset)
            return next(blocks(line.decode("utf-8", "replace") for line in file), Block(0))


def _formula_map(block: Block) -> dict[str, str] | None:
    """Return the block's ``# ::formula_map``: ``{"FORMULA_0": "q_4", ...}``, numbered without a gap."""
    text = block.metadata.get("formula_map")
    if text is None:
        return None
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict) or found.keys() != {f"FORMULA_{i}" for i in range(len(found))}:
        message = f"formula_map {text[:60]!r} is not a JSON object with the keys FORMULA_0, FORMULA_1 ... without a gap"
        raise AMRError(message, kind="formula_map")
    return {name: str(found[name]) for name in (f"FORMULA_{i}" for i in range(len(found)))}


def _key(text: str) -> bytes:
    return hashlib.blake2b(" ".join(text.split()).encode("utf-8", "replace"), digest_size=12).digest()
