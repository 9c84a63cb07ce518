"""Part of a report about domain shift: mathematical posts beside text without mathematics, compared with the baseline.

Input: condition -> ``domain`` of ``geometry.json``, of its first seed (:mod:`experiments.analyses.domain`).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from experiments.report.blocks import Block, Table
from experiments.report.results import Experiment
from experiments.report.tables import p_value
from mathamr.analysis.shift import shift

Content = Mapping[str, Any]


def blocks(experiment: Experiment, found: Mapping[str, Content]) -> list[Block]:
    """Return a table for the distances and one for the lengths of token vectors; nothing without text encoders."""
    if not found:
        return []
    distances = [["Condition", "Corpus", "Mean distance", "MMD²", "p", "Baseline", "D", "p", "Wasserstein"]]
    lengths = [["Condition", "Corpus", "Posts", "Corpus' tokens", "D", "Wasserstein"]]
    for condition, content in found.items():
        for corpus, one in content["corpora"].items():
            squared, p = one["mmd"]
            line = [experiment.label(condition), corpus, f"{np.mean(one['distances']):.3f}"]
            line += [f"{squared:.3f}", p_value(p)]
            before = experiment.baselines[condition]
            if before != condition and before in found and corpus in found[before]["corpora"]:
                earlier = found[before]["corpora"][corpus]["distances"]
                moved = shift(np.asarray(earlier), np.asarray(one["distances"]))
                numbers = [f"{moved.statistic:.3f}", p_value(moved.p), f"{moved.wasserstein:.3f}"]
                line += [experiment.label(before), *numbers]
            else:
                line += ["–"] * 4
            distances.append(line)
            of = one["lengths"]
            numbers = [f"{of[name]:.3f}" for name in ("posts", "corpus", "d", "wasserstein")]
            lengths.append([experiment.label(condition), corpus, *numbers])
    first = next(iter(found.values()))
    texts = " and ".join(f"{one['texts']} of {corpus}" for corpus, one in first["corpora"].items())
    note = (
        f"{first['posts']} posts with formulas, and as texts {texts}; larger sets are sampled at random. Prose: the "
        "same posts without formulas. Distance: of each post to the nearest text, at unit length (the paper, section "
        "II-F). MMD²: squared mean discrepancy of both sets of vectors, p over 999 permutations. D, p and Wasserstein: "
        "distances against those of the baseline (Kolmogorov and Smirnov)."
    )
    second = "Medians; D and Wasserstein: of the tokens of posts against those of the corpus."
    return [
        Table(distances, "Distance of mathematical posts from other text", note),
        Table(lengths, "Lengths of token vectors", second),
    ]
