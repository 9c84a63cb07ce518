r"""Speed of making formula trees on one core: from MathML, from LaTeX, and by other programs.

    python scripts/bench.py formula_trees --root ../shared/data/arqmath-mini     # formulas of an ARQMath collection
    python scripts/bench.py formula_trees                                        # formulas of the embedded collection

Formulas are drawn as often as they occur in posts. Those of at most 10 characters of LaTeX (half of all) are also timed
separately, as ``short``. All ways to make a tree take turns on the same formulas; the fastest round of each counts.
Times are CPU times of this process and its child programs. latex2mathml makes Presentation MathML, but no tree.
LaTeXML, if installed, makes both kinds of MathML of a few formulas; its start is included. The embedded collection has
no MathML, so the MathML of latex2mathml is used for its layout trees.
"""

from __future__ import annotations

import argparse
import random
import resource
import time
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import open_corpus
from graphs.corpus.post import Post
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, FormulaError
from graphs.formulas.content import parse_opt
from graphs.formulas.latex import parse_latex
from graphs.formulas.latexml import LaTeXML
from graphs.formulas.presentation import parse_slt
from graphs.formulas.published import PublishedFormula, published
from scripts.benchmarks.peers import peer

SHORT = 10  # characters of LaTeX; the median of ARQMath's formulas is 9


def sample(root: Path | None, number: int) -> tuple[str, list[PublishedFormula]]:
    """Return the collection's name and ``number`` formulas drawn from its posts."""
    choose = random.Random(0)
    if root is None:
        posts = (post for post in open_corpus("mathdocs").posts() if isinstance(post, Post))
        references = [formula for post in posts for formula in extract(post).formulas]
        some = choose.sample(references, min(number, len(references)))
        return "mathdocs", [PublishedFormula(f.formula_id, f.latex, _layout_mathml(f.latex), "") for f in some]
    files = open_corpus("arqmath", root).formulas()
    if files is None or not files.latex:
        raise ConfigError(
            f"--root {root}: no latex_representation* folder with TSV files; name the folder of an ARQMath collection"
        )
    found = [formula for formula in published(files) if formula.presentation and formula.content]
    return "arqmath", choose.sample(found, min(number, len(found)))


@cache
def _converter() -> Callable[[str], str] | None:
    other = peer("latex2mathml.converter", "latex2mathml")
    return None if other is None else other.convert


def _layout_mathml(latex: str) -> str:
    """Return Presentation MathML by latex2mathml; empty if it is missing or fails, which can be any error."""
    convert = _converter()
    if convert is None:
        return ""
    try:
        return convert(latex)
    except Exception:  # noqa: BLE001 - IndexError, KeyError, its own errors: it has no common class
        return ""


def _tree(parse: Callable[[str], object], mathml: str) -> None:
    try:
        parse(mathml)
    except FormulaError:
        return  # an empty formula has no tree; its time counts


def _from_mathml(formula: PublishedFormula) -> None:
    _tree(parse_slt, formula.presentation)
    _tree(parse_opt, formula.content)


Rule = Callable[[PublishedFormula], object]
WAYS: dict[str, tuple[Rule, Rule]] = {
    "mathml_slt": (lambda one: _tree(parse_slt, one.presentation), lambda one: one.presentation),
    "mathml_opt": (lambda one: _tree(parse_opt, one.content), lambda one: one.content),
    "mathml_both": (_from_mathml, lambda one: one.presentation and one.content),
    "latex_both": (lambda one: parse_latex(one.latex), lambda one: True),
    "latex2mathml": (lambda one: _layout_mathml(one.latex), lambda one: _converter() is not None),
}
"""Ways from formulas to trees: the way, and whether a formula can go it."""


def cpu_seconds() -> float:
    """Return CPU time of this process and of its ended child programs."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def measure(formulas: Sequence[PublishedFormula], rounds: int) -> dict[str, float]:
    """Return formulas per second of each way, one core; ways without suitable formulas are left out."""
    inputs = {name: [formula for formula in formulas if takes(formula)] for name, (_, takes) in WAYS.items()}
    best: dict[str, float] = {}
    for _ in range(rounds):
        for name, (run, _) in WAYS.items():
            own = inputs[name]
            start = cpu_seconds()
            for formula in own:
                run(formula)
            seconds = max(cpu_seconds() - start, 1e-9)
            if own:
                best[name] = max(best.get(name, 0.0), len(own) / seconds)
    return best


def measure_latexml(formulas: Sequence[PublishedFormula]) -> float:
    """Return formulas per second of LaTeXML, in one batch, its start and the making of trees included."""
    start = cpu_seconds()
    LaTeXML().parse([formula.latex for formula in formulas])
    return len(formulas) / max(cpu_seconds() - start, 1e-9)


def main() -> dict[str, Any]:
    """Print the speed of every way.

    Returns:
        ``formulas_per_second`` of ``all`` and ``short`` formulas, by way, and ``ratios``, of ours over other programs.
    """
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, help="folder in the layout of ARQMath; default: the embedded collection")
    parser.add_argument("--formulas", type=int, default=4000, help="number of formulas in the sample")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument(
        "--latexml", type=int, default=20, help="number of formulas for LaTeXML, if it is installed; 0: none"
    )
    given = parser.parse_args()
    collection, formulas = sample(given.root, given.formulas)
    short = [formula for formula in formulas if len(formula.latex) <= SHORT]
    speed = {"all": measure(formulas, given.rounds), "short": measure(short, given.rounds)}
    if given.latexml:
        try:
            speed["all"]["latexml"] = measure_latexml(formulas[: given.latexml])
        except ConfigError as error:
            print(f"left out: {error}")
    ratios = {
        f"{ours}_vs_{other}{'_short' if part == 'short' else ''}": figures[ours] / figures[other]
        for part, figures in speed.items()
        for ours in ("latex_both", "mathml_both")
        for other in ("latex2mathml", "latexml")
        if ours in figures and other in figures
    }
    print(f"{len(formulas):,} formulas of {collection}, {len(short):,} of them short")
    for part, figures in speed.items():
        for name, value in figures.items():
            print(f"{part:>6} {name:>14} {value:>10,.1f} formulas/s {figures['latex_both'] / value:>9.2f} x")
    sizes = {"collection": collection, "formulas": len(formulas), "short_formulas": len(short)}
    return {**sizes, "formulas_per_second": speed, "ratios": ratios}
