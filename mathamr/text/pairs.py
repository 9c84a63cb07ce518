"""Pairs of a query and a document that answers it, on disk: one JSON object a line, read when it is needed.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pairs.jsonl"
>>> pairs = write_pairs(path, [
...     TextPair("Is there a largest prime?", "There are infinitely many.", "q1", "a1", group="q1"),
...     TextPair("Why is 1 no prime?", "By convention.", "q2", "a2", group="q2", categories=("units",))])
>>> len(pairs), pairs[1].document, path.read_text().splitlines()[0][:45]
(2, 'By convention.', '{"query": "Is there a largest prime?", "docum')

Of each pair 48 bytes stay in memory: where it stands in the file, and hashes of its texts, ids and group. So a hundred
thousand pairs are trained on in the memory that a hundred take. :mod:`mathamr.text.sources.pair_sources` makes pairs of
posts, statements, formulas and knowledge graphs.
"""

from __future__ import annotations

import hashlib
import json
from array import array
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt

from graphs.errors import CorpusError, TrainingError
from graphs.whole_file import whole_file

_TEXT_FIELDS = ("query", "document", "query_id", "document_id", "group")


@dataclass(frozen=True, slots=True)
class TextPair:
    """A query and a document that answers it.

    ``group`` is what both belong to, a thread or a paper: groups are held out as a whole, and no document of a query's
    own group is its hard negative. ``categories`` are those of the document's paper, or tags; may be empty.
    """

    query: str
    document: str
    query_id: str
    document_id: str
    group: str
    categories: tuple[str, ...] = ()


class PairFile:
    """The pairs of a file, by number.

    Attributes:
        keys: uint64 (n, 4), hashes of the query, the document, and their ids. Two pairs that share one of them are no
            negatives of each other.
        groups: uint64 (n,), hashes of the groups.
        hash: identifies the file's content.

    Raises:
        CorpusError: there is no such file, or a line is no pair.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        offsets, keys, groups = array("Q", [0]), array("Q"), array("Q")
        digest = hashlib.sha256()
        try:
            with path.open("rb") as lines:
                for number, line in enumerate(lines, 1):
                    pair = _pair(line, path, number)
                    digest.update(line)
                    offsets.append(offsets[-1] + len(line))
                    texts = (pair.query, pair.document, f"id {pair.query_id}", f"id {pair.document_id}")
                    keys.extend(map(_hash, texts))
                    groups.append(_hash(pair.group))
        except OSError as error:
            raise CorpusError(f"cannot be read: {error.strerror}", path=path) from error
        self._offsets = np.array(offsets[:-1], np.int64)
        self.keys: npt.NDArray[np.uint64] = np.array(keys, np.uint64).reshape(-1, 4)
        self.groups: npt.NDArray[np.uint64] = np.array(groups, np.uint64)
        self.hash = digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, number: int) -> TextPair:
        with self.path.open("rb") as lines:
            lines.seek(self._offsets[number])
            return _pair(lines.readline(), self.path, int(number) + 1)

    def __iter__(self) -> Iterator[TextPair]:
        """All pairs, in order."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _pair(line, self.path, number)

    def hold_out(self, fraction: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Numbers of the pairs to train on and of those held out: a part of the groups, with all their pairs.

        Which groups depends on nothing but their names, so that equal collections are split alike for every seed.

        Raises:
            TrainingError: one of the two would be empty.
        """
        distinct = np.unique(self.groups)  # hashes: an order like any other, and the same everywhere
        count = round(len(distinct) * fraction)
        if not 0 < count < len(distinct):
            raise TrainingError(
                f"{len(distinct)} groups (threads, papers) of pairs cannot be split with "
                f"text.validation_fraction={fraction}: one side stays empty; use more pairs or another fraction",
                path=self.path,
            )
        held_out = np.isin(self.groups, distinct[:count])
        return np.flatnonzero(~held_out), np.flatnonzero(held_out)


def write_pairs(path: Path, pairs: Iterable[TextPair]) -> PairFile:
    """Write the pairs to a file that appears whole, and open it."""
    with whole_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        for pair in pairs:
            file.write(json.dumps(asdict(pair), ensure_ascii=False) + "\n")
    return PairFile(path)


def _pair(line: bytes, path: Path, number: int) -> TextPair:
    try:
        values = json.loads(line)
        texts = {name: values[name] for name in _TEXT_FIELDS}
        categories = tuple(values.get("categories", ()))
        if not all(isinstance(text, str) for text in [*texts.values(), *categories]):
            raise TypeError("a value is no text")
        "".join([*texts.values(), *categories]).encode()  # ValueError for halves of characters, which no file takes
        return TextPair(**texts, categories=categories)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        fields = ", ".join(_TEXT_FIELDS)
        message = f"is no pair ({type(error).__name__}: {error}); a line is a JSON object of {fields}"
        raise CorpusError(message, path=path, line=number) from error


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
