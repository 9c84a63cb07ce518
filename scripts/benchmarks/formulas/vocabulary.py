r"""Overlap of the vocabularies from MathML and from LaTeX of the same formulas: node labels and edge roles.

    python scripts/bench.py formula_vocabulary --root ../shared/data/arqmath-mini

Every formula of the posts with LaTeX and MathML is made into trees both ways; formulas whose MathML gives no tree are
skipped, since their tree is made from LaTeX in any case. Labels are normalised as in ``graphs/graph/labels.py``. Some
published MathML does not match the formula in the post: LaTeX was converted with its HTML escapes (``a&lt;b`` became
``a & l t ; b``), other formulas of a batch got into it, or LaTeXML did not know a command. Therefore the figures are
given for ``all`` formulas and for the ``intact`` ones, with the number of the others by reason. Each line compares the
labels or roles from both sources:

* coverage: share of nodes (or edges) from one source whose label (or role) the other source has too;
* common: nodes with the same label in both sources, as a share of the larger source;
* Jaccard: labels in both vocabularies, as a share of those in either; also for labels seen at least 5 times in either.

The labels whose counts differ most follow.
"""

from __future__ import annotations

import argparse
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import open_corpus
from graphs.errors import ConfigError, FormulaError
from graphs.formulas.content import parse_opt
from graphs.formulas.latex import parse_latex
from graphs.formulas.presentation import parse_slt
from graphs.formulas.published import PublishedFormula, published
from graphs.formulas.tree import FormulaTree, TreeKind
from graphs.graph.labels import normalize
from graphs.graph.mathamr_plus import NodeKind

#: Reasons why the published MathML is not the post's formula: pattern in the LaTeX, in the MathML, or in its tree.
SPOILT: dict[str, tuple[str | None, str | None, str | None]] = {
    "escaped for HTML": (
        r"&(lt|gt|amp|quot|#\d+);|(?<![a-z])amp;",
        r">(&amp;)+</",
        r"\[V!a\[V!m\[V!p\[;|T!(amp|lt|gt);?\W|U!times,0\[V!a\],1\[V!m\],2\[V!p\]",
    ),
    "other formulas of a batch": (None, r">Formula</", r"T!formula#"),
    "LaTeXML's inner commands": (r"\\(@@|qvar@)", r">qvar_\$<", None),
    "command LaTeXML did not know": (None, r">\\[A-Za-z@]+\*?<", None),
}
FREQUENT = 5  # occurrences; rarer numbers have no separate label (thesis, section 3.3.1)
BAGS = ("labels", "roles")
_NODE_KIND = {"slt": NodeKind.SLT, "opt": NodeKind.OPT}


@dataclass
class Pairs:
    """Trees of one kind from both sources, of the same formulas: counts of node labels and edge roles."""

    mathml: dict[str, Counter[str]] = field(default_factory=lambda: {what: Counter() for what in BAGS})
    latex: dict[str, Counter[str]] = field(default_factory=lambda: {what: Counter() for what in BAGS})
    formulas: int = 0
    identical: int = 0
    without_mathml: int = 0
    without_latex: int = 0
    left_out: Counter[str] = field(default_factory=Counter)

    def add(self, official: FormulaTree | None, ours: FormulaTree | None) -> None:
        if official is None:
            self.without_mathml += 1
            return
        self.formulas += 1
        _count(official, self.mathml)
        if ours is None:
            self.without_latex += 1
            return
        _count(ours, self.latex)
        self.identical += _key(official) == _key(ours)


def _count(tree: FormulaTree, bags: dict[str, Counter[str]]) -> None:
    bags["labels"].update(_key(tree)[0])
    bags["roles"].update(f":{tree.kind}-{edge}" for edge in tree.edge_labels[1:])


def _key(tree: FormulaTree) -> tuple[tuple[str, ...], tuple[int, ...], tuple[str, ...]]:
    kind = _NODE_KIND[tree.kind]
    return tuple(normalize(label, kind) for label in tree.labels), tree.parents, tree.edge_labels


def compare(mathml: Counter[str], latex: Counter[str]) -> dict[str, float]:
    """Compare two bags.

    >>> figures = compare(Counter("aaab"), Counter("aac"))
    >>> figures["coverage_of_mathml"], figures["common"], figures["jaccard"]
    (0.75, 0.5, 0.3333333333333333)
    """
    both = mathml.keys() & latex.keys()
    either = mathml.keys() | latex.keys()
    frequent = {label for label in either if max(mathml[label], latex[label]) >= FREQUENT}
    return {
        "mathml": len(mathml),
        "latex": len(latex),
        "coverage_of_mathml": sum(mathml[label] for label in both) / max(mathml.total(), 1),
        "coverage_of_latex": sum(latex[label] for label in both) / max(latex.total(), 1),
        "common": (mathml & latex).total() / max(mathml.total(), latex.total(), 1),
        "jaccard": len(both) / max(len(either), 1),
        "jaccard_frequent": len(both & frequent) / max(len(frequent), 1),
    }


def count(formulas: Iterable[PublishedFormula]) -> dict[str, dict[TreeKind, Pairs]]:
    """Return both sources of both kinds of tree, for ``all`` formulas and for the ``intact`` ones."""
    pairs: dict[str, dict[TreeKind, Pairs]] = {part: {"slt": Pairs(), "opt": Pairs()} for part in ("all", "intact")}
    from_latex = lru_cache(1 << 15)(parse_latex)
    for formula in formulas:
        ours = from_latex(formula.latex)
        trees: dict[TreeKind, tuple[str, FormulaTree | None]] = {
            "slt": (formula.presentation, ours.slt),
            "opt": (formula.content, ours.opt),
        }
        for kind, (mathml, tree) in trees.items():
            official = _tree(kind, mathml)
            pairs["all"][kind].add(official, tree)
            reason = spoilt(formula.latex, mathml, official)
            if reason is None:
                pairs["intact"][kind].add(official, tree)
            else:
                pairs["intact"][kind].left_out[reason] += 1
    return pairs


def spoilt(latex: str, mathml: str, tree: FormulaTree | None) -> str | None:
    """Return why a formula's published MathML is not the post's, a key of :data:`SPOILT`, or ``None``."""
    texts = latex, mathml, "" if tree is None else tree.tangent_string()
    for reason, patterns in SPOILT.items():
        if any(pattern and re.search(pattern, text) for pattern, text in zip(patterns, texts, strict=True)):
            return reason
    return None


def _tree(kind: TreeKind, mathml: str) -> FormulaTree | None:
    try:
        return (parse_slt if kind == "slt" else parse_opt)(mathml) if mathml else None
    except FormulaError:
        return None


def differences(mathml: Counter[str], latex: Counter[str], number: int) -> list[tuple[str, int, int]]:
    """Return the labels whose counts differ most: label, count from MathML, count from LaTeX."""
    labels = sorted(mathml.keys() | latex.keys(), key=lambda label: (-abs(mathml[label] - latex[label]), label))
    return [(label, mathml[label], latex[label]) for label in labels[:number] if mathml[label] != latex[label]]


def _figures(of_kind: dict[TreeKind, Pairs], number: int) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for kind, pairs in of_kind.items():
        result[kind] = {
            "formulas": pairs.formulas,
            "without_tree_from_mathml": pairs.without_mathml,
            "without_tree_from_latex": pairs.without_latex,
            "left_out": dict(pairs.left_out),
            "identical": pairs.identical / max(pairs.formulas, 1),
            **{what: compare(pairs.mathml[what], pairs.latex[what]) for what in BAGS},
            "differences": differences(pairs.mathml["labels"], pairs.latex["labels"], number),
        }
    slt, opt = of_kind["slt"], of_kind["opt"]
    both = {what: compare(slt.mathml[what] + opt.mathml[what], slt.latex[what] + opt.latex[what]) for what in BAGS}
    return result | {"both": both}


def main() -> dict[str, Any]:
    """Print and return figures for ``all`` and ``intact`` formulas, by kind of tree, with ``both`` kinds together."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder in the layout of ARQMath")
    parser.add_argument("--formulas", type=int, help="number of formulas; default: all")
    parser.add_argument("--differences", type=int, default=15, help="number of labels to print")
    options = parser.parse_args()
    files = open_corpus("arqmath", options.root).formulas()
    if files is None or not files.latex or not files.slt or not files.opt:
        raise ConfigError(f"--root {options.root}: TSV folders are missing; all three representations are needed")
    counted = count(islice(published(files), options.formulas))
    result = {part: _figures(pairs, options.differences) for part, pairs in counted.items()}
    for part, figures in result.items():
        print_part(part, figures)
    return result


def print_part(part: str, of_kind: dict[str, Any]) -> None:
    """Print the figures of ``all`` or of the ``intact`` formulas."""
    for kind, figures in of_kind.items():
        compared = "kinds of tree together"
        if "formulas" in figures:
            compared = f"{figures['formulas']:,} formulas, identical trees {figures['identical']:.2%}"
        print(f"{part} {kind}: {compared}")
        for reason, number in figures.get("left_out", {}).items():
            print(f"  left out: {number:,} formulas, {reason}")
        for what in BAGS:
            bag = figures[what]
            print(
                f"  {what}: {bag['mathml']:,} from MathML, {bag['latex']:,} from LaTeX; "
                f"coverage {bag['coverage_of_mathml']:.3%} and {bag['coverage_of_latex']:.3%}, common "
                f"{bag['common']:.2%}, Jaccard {bag['jaccard']:.3f} ({bag['jaccard_frequent']:.3f} of the frequent)"
            )
        for label, mathml, latex in figures.get("differences", ()):
            print(f"    {label:<24} {mathml:>8,} from MathML {latex:>8,} from LaTeX")
