"""Passages of papers to pretrain an encoder on: sections, proofs and statements as plain text, one a line.

    found = write_passages([Path("2501.00001.gz")], Path("passages.txt"), Console(), parts=("introduction", "proof"))
    found.passages, found.characters        # 41, 38210

Passages are those of :mod:`mathamr.folder.latex`: a statement or a proof, or neighbouring paragraphs of a section.
The ModernBERT thesis (section 4 (b)) takes introductions, methods, models, results, conclusions and proofs, with their
definitions, theorems, lemmas and corollaries.
"""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from graphs.corpus.pair_sets.pair_collection import PairCollection
from graphs.errors import CorpusError, Failure, MathAMRError
from graphs.papers.archives import read_files
from graphs.papers.latex_source import assemble
from graphs.processes import ordered_map
from graphs.whole_file import whole_file
from mathamr.folder.latex import read_latex
from mathamr.folder.passages import MIN_LETTERS
from mathamr.stages.console import Console
from mathamr.text.benchmarks import folded
from mathamr.text.sources.papers import newest, paper_id

_LEAST_WORDS = 5  # of a passage; and of a query that no passage may contain, since a concept's name is in many texts


@dataclass(frozen=True, slots=True)
class Passages:
    """Numbers of papers, failed papers, passages, their characters, and passages left out because of a query."""

    papers: int
    failed: int
    passages: int
    characters: int
    left_out: int


def write_passages(
    papers: Sequence[Path],
    out: Path,
    console: Console,
    *,
    parts: Sequence[str] = (),
    apart_from: Path | None = None,
    workers: int = 1,
) -> Passages:
    """Write the passages of papers to a file that ``data.texts`` and ``mathamr text finetune --texts`` read.

    Args:
        papers: archives, folders or files, one for each paper; of several versions on arXiv the newest is read.
        parts: beginnings of words, one of which a kind of statement or a heading above the passage must have; none:
            all passages.
        apart_from: folder of a collection of pairs; passages that contain a query of its tests are left out.

    Raises:
        CorpusError: no passage, or a collection that cannot be read.
    """
    places = newest(papers)
    queries = _queries(apart_from) if apart_from else []
    lost: Counter[tuple[str, str]] = Counter()
    seen: set[bytes] = set()
    characters = left_out = 0
    with whole_file(out) as partial, partial.open("w", encoding="utf-8") as file:
        with console.stage("papers", total=len(places), unit="papers") as advance:
            found = ordered_map(_Reader, (tuple(parts),), iter(places.values()), workers=workers)
            for texts in found:
                if isinstance(texts, Failure):
                    lost[texts.stage, texts.kind] += 1
                    texts = []
                for text in texts:
                    if (digest := hashlib.sha256(text.encode()).digest()) in seen:
                        continue
                    seen.add(digest)
                    if queries and any(map(folded(text).__contains__, queries)):
                        left_out += 1
                        continue
                    characters += len(text)
                    file.write(text + "\n")
                advance(1)
        if not characters:
            raise CorpusError("no passage is found; use other papers, or other words for the parts (--parts)")
    console.failures("papers that failed", lost)
    return Passages(len(places) - lost.total(), lost.total(), len(seen) - left_out, characters, left_out)


class _Reader:
    """Reader of papers in another process, one after the other."""

    def __init__(self, parts: Sequence[str]) -> None:
        self._parts = re.compile(rf"\b(?:{'|'.join(map(re.escape, parts))})", re.IGNORECASE) if parts else None

    def __call__(self, path: Path) -> list[str] | Failure:
        try:
            source = assemble(read_files(path))
            passages = read_latex(source.main, source.text, source.declarations)
        except MathAMRError as error:
            return Failure(paper_id(path), "latex", type(error).__name__, str(error))
        return [
            one.text.encode("utf-8", "ignore").decode()  # without lone surrogates, which no file can hold
            for one in passages
            if len(one.text.split()) >= _LEAST_WORDS
            and sum(map(str.isalpha, one.text)) >= MIN_LETTERS
            and (self._parts is None or self._parts.search(one.title))
        ]


def _queries(folder: Path) -> list[str]:
    """Return the queries of all tests of a collection of pairs, without those of a few words."""
    collection = PairCollection(folder)
    posts = [topic.post for test in collection.tests() for topic in collection.test(test).topics]
    queries = {folded(f"{post.title} {post.body}") for post in posts}
    return sorted(query for query in queries if len(query.split()) >= _LEAST_WORDS)


def text_lines(path: Path) -> Iterator[str]:
    """Yield the texts of a file, one a line; raise CorpusError for a file that cannot be read."""
    try:
        with path.open(encoding="utf-8") as lines:
            yield from (line.strip() for line in lines)
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", path=path) from error
