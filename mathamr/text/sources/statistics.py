r"""Statistics of a collection of statements and of the tokenizers that read it: ModernBERT thesis, Tables 1 to 3.

>>> from mathamr.text.statements import Statement
>>> one = Statement("lemma", "lem", "", "Let $x$ be prime.", "On primes", "")
>>> papers = [Paper(f"p{i}", "", (), (one,) * size, {}) for i, size in enumerate([1, 2, 6])]
>>> {name: float(round(value, 2)) for name, value in distribution(papers).items()}  # doctest: +NORMALIZE_WHITESPACE
{'papers': 3.0, 'mean': 3.0, 'std': 2.65, 'min': 1.0, '25 %': 1.5, '50 %': 2.0, '75 %': 4.0, 'max': 6.0}
>>> report = tokenized(["a b", "a"], str.split, limit=1)
>>> report.tokens, report.mean, sorted(report.distinct), report.cut
(3, 1.5, ['a', 'b'], 0.5)

Table 2 is a sample of pairs; a file of pairs has them (``mathamr text pairs statements``).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from graphs.errors import ConfigError
from mathamr.text.encoder import place_of
from mathamr.text.encoder_faults import check_tokenizer
from mathamr.text.sources.papers import Paper
from mathamr.text.sources.splits import Split

_FREQUENT = 30  # most frequent tokens, as in the thesis's Figure 3


@dataclass(frozen=True, slots=True)
class Tokenized:
    """Texts as a tokenizer reads them.

    Attributes:
        tokens: number of tokens of all texts, without those around a text.
        mean: tokens of a text; ``largest``: tokens of the longest text.
        cut: share of texts with more tokens than the limit.
        frequent: most frequent tokens with their counts, most frequent first.
    """

    tokens: int
    mean: float
    largest: int
    cut: float
    distinct: frozenset[str]
    frequent: tuple[tuple[str, int], ...]


def split_counts(papers: Iterable[Paper], split: Split) -> dict[str, int]:
    """Return the number of statements of each part of a split; Table 1."""
    counts = Counter(split.part(paper.paper_id, i) for paper in papers for i in range(len(paper.statements)))
    return {part: counts[part] for part in ("train", "regular", "unseen")}


def distribution(papers: Iterable[Paper]) -> dict[str, float]:
    """Return the distribution of statements over papers that have at least one; Table 3.

    The deviation is that of a sample.
    """
    sizes = np.array([len(paper.statements) for paper in papers if paper.statements], np.float64)
    if not len(sizes):
        return {"papers": 0}
    deviation = sizes.std(ddof=1) if len(sizes) > 1 else 0.0
    values = (len(sizes), sizes.mean(), deviation, *np.quantile(sizes, [0, 0.25, 0.5, 0.75, 1]))
    return dict(zip(("papers", "mean", "std", "min", "25 %", "50 %", "75 %", "max"), values, strict=True))


def tokenized(texts: Sequence[str], tokens_of: Callable[[str], Sequence[str]], *, limit: int) -> Tokenized:
    """Count the tokens that ``tokens_of`` finds in at least one text; an encoder reads ``limit`` of a text."""
    counts: Counter[str] = Counter()
    sizes = []
    for own in map(tokens_of, texts):
        counts.update(own)
        sizes.append(len(own))
    cut = sum(size > limit for size in sizes) / len(sizes)
    return Tokenized(
        sum(sizes), sum(sizes) / len(sizes), max(sizes), cut, frozenset(counts), tuple(counts.most_common(_FREQUENT))
    )


def tokenizer_of(name: str) -> Callable[[str], list[str]]:
    """Open the tokenizer of an encoder, without its weights: a text to its tokens, whole, without special tokens.

    Raises:
        ConfigError: the encoder is neither here nor on the hub, or has no vocabulary.
    """
    from transformers import AutoTokenizer

    try:
        tokenizer = AutoTokenizer.from_pretrained(place_of(name))
    except (OSError, ValueError) as error:
        raise ConfigError(
            f"the tokenizer of {name!r} cannot be opened ({str(error).splitlines()[0]}); name the encoder's folder"
        ) from error
    check_tokenizer(tokenizer, name)
    return lambda text: list(tokenizer.tokenize(text))
