"""Pairs of a query and a document that answers it, in a file with one JSON object a line, read on demand.

>>> import tempfile
>>> path = Path(tempfile.mkdtemp()) / "pairs.jsonl"
>>> pairs = write_pairs(path, [
...     TextPair("Is there a largest prime?", "There are infinitely many.", "q1", "a1", group="q1"),
...     TextPair("Why is 1 no prime?", "By convention.", "q2", "a2", group="q2", categories=("units",))])
>>> len(pairs), pairs[1].document, path.read_text().splitlines()[0][:45]
(2, 'By convention.', '{"query": "Is there a largest prime?", "docum')

Each pair keeps 48 bytes in memory: its place in the file, and hashes of its texts, ids and group. So a hundred thousand
pairs need little more memory than a hundred. :mod:`mathamr.text.sources.pair_sources` makes pairs from posts,
statements, formulas and knowledge graphs.
"""

from __future__ import annotations

import codecs
import hashlib
import json
from array import array
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
import numpy.typing as npt
from pydantic import TypeAdapter, ValidationError

from graphs.corpus.post import Pair
from graphs.counts import counted
from graphs.errors import CorpusError, TrainingError
from graphs.whole_file import whole_file


@dataclass(frozen=True, slots=True)
class TextPair:
    """Query and a document that answers it.

    ``group`` is their thread or paper. Groups are held out as a whole, and documents from the group of a query are
    never its negatives. ``categories`` are the categories or tags of the document's paper or thread; may be empty. A
    pair that is not ``learned`` is not trained on: it only says that the document is no negative of the query.
    """

    query: str
    document: str
    query_id: str
    document_id: str
    group: str
    categories: tuple[str, ...] = ()
    learned: bool = True


_PAIR = TypeAdapter(TextPair)


class PairFile:
    """Pairs of a file, by number.

    Attributes:
        keys: uint64 (n, 4), hashes of the query, the document, and their ids. Pairs that share one of them are not
            negatives of each other.
        groups: uint64 (n,), hashes of the groups.
        learned: int64 (at most n,), numbers of the pairs that are trained on.

    Raises:
        CorpusError: a missing file, or a line that is not a pair.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        offsets, keys, groups, learned = array("Q", [0]), array("Q"), array("Q"), array("q")
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
                    if pair.learned:
                        learned.append(number - 1)
        except OSError as error:
            raise CorpusError(f"cannot be read: {error.strerror}", path=path) from error
        self._offsets = np.array(offsets[:-1], np.int64)
        self.keys: npt.NDArray[np.uint64] = np.array(keys, np.uint64).reshape(-1, 4)
        self.groups: npt.NDArray[np.uint64] = np.array(groups, np.uint64)
        self.learned: npt.NDArray[np.int64] = np.array(learned, np.int64)
        self.hash = digest.hexdigest()[:16]

    def __len__(self) -> int:
        return len(self._offsets)

    def __getitem__(self, number: int) -> TextPair:
        with self.path.open("rb") as lines:
            lines.seek(self._offsets[number])
            return _pair(lines.readline(), self.path, int(number) + 1)

    def __iter__(self) -> Iterator[TextPair]:
        """Yield all pairs, in order."""
        with self.path.open("rb") as lines:
            for number, line in enumerate(lines, 1):
                yield _pair(line, self.path, number)

    def hold_out(self, fraction: float) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the numbers of training and of held-out pairs: a share of the groups, with all their pairs.

        The choice depends only on the groups' names, so equal collections are split alike for every seed.

        Raises:
            TrainingError: an empty side.
        """
        distinct = np.unique(self.groups[self.learned])  # hashes: an order like any other, and the same everywhere
        count = round(len(distinct) * fraction)
        if not 0 < count < len(distinct):
            raise TrainingError(
                f"{counted(len(distinct), 'group')} (threads, papers) of pairs cannot be split with "
                f"text.validation_fraction={fraction}: one side stays empty; use more pairs or another fraction",
                path=self.path,
            )
        held_out = np.isin(self.groups[self.learned], distinct[:count])
        return self.learned[~held_out], self.learned[held_out]


def write_pairs(path: Path, pairs: Iterable[TextPair]) -> PairFile:
    """Write the pairs to a file, atomically, and open it."""
    with whole_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        for pair in pairs:
            values = asdict(pair)
            if pair.learned:
                del values["learned"]
            file.write(json.dumps(values, ensure_ascii=False) + "\n")
    return PairFile(path)


def sampled(
    files: Sequence[PairFile], most: int | None, left_out: Container[Pair], rewritten: Callable[[str], str]
) -> Iterator[TextPair]:
    """Yield a sample of at most ``most`` pairs of files, and those of their posts' other pairs, which are not learned.

    Pairs ``left_out`` are not yielded. ``rewritten`` writes a query or a document for the encoder.
    """
    from mathamr.training.pairs import further_pairs, sample_pairs  # imports torch

    pairs = [own for file in files for one in file if (own := Pair(one.query_id, one.document_id)) not in left_out]
    kept = set(sample_pairs(pairs, None, most))
    further = set(further_pairs(kept, pairs))
    for pair in (pair for file in files for pair in file):
        if (own := Pair(pair.query_id, pair.document_id)) in kept or own in further:
            yield replace(pair, query=rewritten(pair.query), document=rewritten(pair.document), learned=own in kept)


def _pair(line: bytes, path: Path, number: int) -> TextPair:
    try:
        return _PAIR.validate_json(line.removeprefix(codecs.BOM_UTF8), strict=True)
    except ValidationError as error:
        fields = "query, document, query_id, document_id, group"
        message = f"is not a pair ({first_problem(error)}); a line is a JSON object of {fields}"
        raise CorpusError(message, path=path, line=number) from error


def first_problem(error: ValidationError) -> str:
    """Return the first fault of a JSON object on one line, with its field."""
    first = error.errors()[0]
    field = f"field {'.'.join(map(str, first['loc']))!r} " if first["loc"] else ""
    problem = first["msg"].replace("Input should be", "must be").replace("at line 1 column", "in column")
    return f"{field}{'is missing' if first['type'] == 'missing' else problem}"


def _hash(text: str) -> int:
    return int.from_bytes(hashlib.blake2b(text.encode("utf-8", "surrogatepass"), digest_size=8).digest())
