"""Split of papers into training, regular test and unseen-paper test (ModernBERT thesis, section 3, "Train-Test split").

>>> sizes = {f"p{i}": 3 if i < 10 else 14 for i in range(60)}  # statements of each paper
>>> split = split_papers(sizes, unseen_papers=2, seed=1)
>>> len(split.unseen), all(sizes[paper] == 14 for paper in split.unseen)
(2, True)
>>> sum(map(len, split.regular.values())) + sum(sizes[paper] for paper in split.unseen), sum(sizes.values()) // 10
(73, 73)
>>> any(sizes[paper] < 4 for paper in split.regular)
False

A tenth of all statements is tested: all statements of a few papers of about average length (unseen papers: does the
model know what it never read?) and, up to the tenth, single statements of papers with other statements in training
(regular: does it understand new queries?). Papers with fewer than four statements are only for training.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

import numpy as np

from graphs.errors import ConfigError

FEW = 4  # papers with fewer statements are only for training
AVERAGE = 14  # statements of a paper of about average length
UNSEEN = 15  # papers tested as a whole


@dataclass(frozen=True)
class Split:
    """``regular``: numbers of the tested statements by paper; ``unseen``: papers tested as a whole.

    All other statements are for training.
    """

    regular: Mapping[str, tuple[int, ...]]
    unseen: tuple[str, ...]

    def part(self, paper: str, statement: int) -> str:
        """Return ``train``, ``regular`` or ``unseen``."""
        if paper in self.unseen:
            return "unseen"
        return "regular" if statement in self.regular.get(paper, ()) else "train"


def split_papers(
    sizes: Mapping[str, int],
    *,
    test_share: float = 0.1,
    unseen_papers: int | Collection[str] | None = UNSEEN,
    seed: int = 0,
) -> Split:
    """Choose the statements to test.

    Args:
        sizes: number of statements by paper.
        unseen_papers: ids of the papers held out as a whole, such as the newest ones; or their number, then their
            length is nearest to :data:`AVERAGE`; None: at most :data:`UNSEEN`, as many as ``test_share`` allows.

    Raises:
        ConfigError: held-out papers with more than ``test_share`` of all statements.
    """
    generator = np.random.default_rng(seed)
    rich = sorted(paper for paper, size in sizes.items() if size >= FEW)
    order = [rich[i] for i in generator.permutation(len(rich))]
    allowed = int(test_share * sum(sizes.values()))
    if unseen_papers is None or isinstance(unseen_papers, int):
        most = UNSEEN if unseen_papers is None else unseen_papers
        unseen = sorted(order, key=lambda paper: abs(sizes[paper] - AVERAGE))[:most]
        while unseen_papers is None and sum(sizes[paper] for paper in unseen) > allowed:
            unseen.pop()
    else:
        unseen = [paper for paper in sizes if paper in unseen_papers]
    wanted = allowed - sum(sizes[paper] for paper in unseen)
    if wanted < 0:
        raise ConfigError(
            f"{len(unseen)} unseen papers hold more than {test_share:.0%} of the {sum(sizes.values())} statements; "
            "use fewer (--unseen-papers), a later day (--unseen-since), or a larger share (--test-share)"
        )
    seen = [(paper, number) for paper in rich if paper not in unseen for number in range(sizes[paper])]
    regular: dict[str, list[int]] = {}
    for index in sorted(generator.permutation(len(seen))[:wanted]):
        paper, number = seen[index]
        regular.setdefault(paper, []).append(number)
    return Split({paper: tuple(numbers) for paper, numbers in regular.items()}, tuple(sorted(unseen)))
