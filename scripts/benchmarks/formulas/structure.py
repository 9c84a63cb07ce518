"""Structure search: its speed compared with BM25 over symbol pairs, and checks with renamed and enclosed formulas.

    python scripts/bench.py structure                                         # formulas of the embedded collection
    python scripts/bench.py structure --corpus titles --root DIR --formulas 1000000 --fill --proofs 0

All searches take turns on the same formulas and queries, in one process; a search returns ``--k`` results. The formulas
are the first different ones of a collection, with trees made from LaTeX or read from a formulas.db. If the collection
has fewer, ``--fill`` adds its formulas with other letters. Queries are drawn from the formulas of the collection. Times
are CPU times, on which the load of the machine has little effect. Structure search answers all queries once before the
measurement, so that its compiled code has started if enough is searched.

Three checks search for a formula by a changed form of it. The formula has five symbols or more, one of them a variable.

- **Renamed**: each variable of the formula gets a different letter. The formula itself, or one that is equal to it up
  to a renaming, should be first.
- **Enclosed**: the formula becomes a part of a root, a fraction, a sum or an equation. It should be among the first
  ten.
- **Beside**: the formula becomes one side of an equation whose other side is another formula of the collection, which
  may be longer.
"""

from __future__ import annotations

import argparse
import itertools
import random
import string
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from graphs.corpus.corpus import open_corpus
from graphs.errors import ConfigError
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind
from graphs.graph.graph_maker import FormulaTrees
from mathamr.default_settings import values
from mathamr.evaluation.efficiency import peak_memory
from mathamr.retrieval.bm25 import BM25Index, tokens_of_formula
from mathamr.retrieval.lexical import distinct_formulas
from mathamr.structure.index import StructureIndex
from mathamr.structure.latent import LatentIndex
from mathamr.structure.latent_config import LatentConfig
from mathamr.structure.scoring import VARIABLE, StructureConfig, symbol_class

LEAST_SYMBOLS = 5
LETTERS = string.ascii_letters
TWO_LETTERS = [f"{a}{b}" for a in LETTERS for b in LETTERS]
Search = Callable[[ParsedFormula, int], list[int]]


def main() -> dict[str, Any]:
    """Print times of all searches, and the shares of the checks; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--corpus", default="mathdocs", help="kind of the collection")
    parser.add_argument("--root", type=Path, help="folder of the collection, if it has one")
    parser.add_argument("--formulas", type=int, default=20_000, help="largest number of formulas")
    parser.add_argument(
        "--fill", action="store_true", help="fill up to --formulas with formulas whose letters are changed"
    )
    parser.add_argument("--queries", type=int, default=200, help="number of timed queries")
    parser.add_argument("--proofs", type=int, default=1000, help="number of formulas in each check; 0: no checks")
    parser.add_argument("--k", type=int, default=10, help="number of results")
    parser.add_argument("--formulas-db", type=Path, help="formulas.db: published trees instead of those from LaTeX")
    parser.add_argument("--latent", action="store_true", help="also time dense vectors (track=latent)")
    given = parser.parse_args()
    if min(given.formulas, given.queries, given.k) < 1:
        raise ConfigError("--formulas, --queries and --k must be 1 or more")
    generator = random.Random(42)
    trees = FormulaTrees(given.formulas_db)
    posts = open_corpus(given.corpus, given.root).posts()
    different = unique(formula for _, _, formula in distinct_formulas(posts, trees.of, {}))
    formulas = list(islice(different, given.formulas))
    distinct = len(formulas)
    if given.fill:
        further = unique(renamed(formulas[number % distinct], generator) for number in itertools.count())
        formulas += islice(further, given.formulas - distinct)
    print(f"{len(formulas):,} formulas, {distinct:,} of the collection", flush=True)
    start = time.process_time()
    index = StructureIndex.build(formulas, StructureConfig(**values("structure")))
    built = time.process_time() - start
    print(f"structure: indexed in {built:.0f} s", flush=True)
    start = time.process_time()
    pairs = BM25Index.build([str(n) for n in range(len(formulas))], (list(tokens_of_formula(f)) for f in formulas))
    pairs_built = time.process_time() - start
    searches: dict[str, Search] = {
        "structure": lambda formula, k: [number for number, _ in index.search(formula, k)],
        "pairs": lambda formula, k: [int(name) for name, _ in pairs.search([list(tokens_of_formula(formula))], k)[0]],
    }
    if given.latent:
        latent_index = LatentIndex.build(formulas, LatentConfig(**values("latent")))
        searches["latent"] = lambda formula, k: [number for number, _ in latent_index.search(formula, k)]
    known = [formula for formula in formulas[:distinct] if formula.slt is not None and formula.opt is not None]
    queries = [generator.choice(known) for _ in range(given.queries)]
    result: dict[str, Any] = {"formulas": len(formulas), "distinct": distinct, "k": given.k, "build_seconds": built}
    result |= {"pairs_build_seconds": pairs_built}
    result |= {"peak_memory_bytes": peak_memory()}
    result |= {"bytes_a_formula": index.nbytes / len(formulas), "pairs_bytes_a_formula": pairs.nbytes / len(formulas)}
    result |= race(searches, queries, given.k)
    if given.proofs:
        result |= proofs(searches, formulas, given.proofs, generator)
    return result


def unique(formulas: Iterable[ParsedFormula]) -> Iterator[ParsedFormula]:
    """Yield the formulas without repetitions."""
    seen: set[tuple[FormulaTree | None, FormulaTree | None]] = set()
    for formula in formulas:
        if (trees := (formula.slt, formula.opt)) not in seen:
            seen.add(trees)
            yield formula


def race(searches: dict[str, Search], queries: Sequence[ParsedFormula], k: int) -> dict[str, float]:
    """Return milliseconds a query of each search: mean, median and 95th percentile; and the ratio of the means."""
    for query in queries:
        searches["structure"](query, k)
    times: dict[str, list[float]] = {name: [] for name in searches}
    for query in queries:
        for name, search in searches.items():
            start = time.process_time()
            search(query, k)
            times[name].append(1000 * (time.process_time() - start))
    found: dict[str, float] = {}
    for name, own in times.items():
        mean, median, highest = float(np.mean(own)), float(np.median(own)), float(np.percentile(own, 95))
        found |= {f"{name}_ms": mean, f"{name}_median_ms": median, f"{name}_p95_ms": highest}
        print(f"{name}: {mean:.1f} ms a query, median {median:.1f}, 95th percentile {highest:.1f}", flush=True)
    return found | {"times_pairs": found["structure_ms"] / found["pairs_ms"]}


def proofs(
    searches: dict[str, Search], formulas: Sequence[ParsedFormula], count: int, generator: random.Random
) -> dict[str, float]:
    """Return the shares of renamed formulas that are found first, and of enclosed ones among the first ten."""
    shapes = [canonical(formula) for formula in formulas]
    able = [number for number, formula in enumerate(formulas) if is_asked(formula)]
    sampled = generator.sample(able, min(count, len(able)))
    query_sets = {
        "renamed": [renamed(formulas[number], generator) for number in sampled],
        "enclosed": [enclosed(formulas[number], generator) for number in sampled],
        "beside": [beside(formulas[number], formulas[generator.choice(able)]) for number in sampled],
    }
    found: dict[str, float] = {"asked": len(sampled)}
    for kind, queries in query_sets.items():
        for name, search in searches.items():
            ranks = []
            for number, query in zip(sampled, queries, strict=True):
                places = [place for place, other in enumerate(search(query, 10)) if shapes[other] == shapes[number]]
                ranks.append(places[0] if places else 10)
            found[f"{kind}_{name}_first"] = float(np.mean(np.array(ranks) == 0))
            found[f"{kind}_{name}_in_ten"] = float(np.mean(np.array(ranks) < 10))
            shares = f"first {found[f'{kind}_{name}_first']:.1%}, within ten {found[f'{kind}_{name}_in_ten']:.1%}"
            print(f"{kind}, {name}: {shares}", flush=True)
    return found


def is_asked(formula: ParsedFormula) -> bool:
    """Return whether a formula has both trees, enough symbols and a variable."""
    if formula.slt is None or formula.opt is None or len(formula.slt) < LEAST_SYMBOLS:
        return False
    return any(symbol_class(label) == VARIABLE for label in formula.slt.labels)


def canonical(formula: ParsedFormula) -> tuple[Any, ...]:
    """Return both trees with variables numbered by their first place: equal for formulas equal up to a renaming."""
    numbers: dict[str, str] = {}
    shape = []
    for tree in (formula.slt, formula.opt):
        if tree is not None:
            labels = [
                numbers.setdefault(label, f"{VARIABLE}{len(numbers)}") if symbol_class(label) == VARIABLE else label
                for label in tree.labels
            ]
            shape.append((tuple(labels), tree.parents, tree.edge_labels))
    return tuple(shape)


def renamed(formula: ParsedFormula, generator: random.Random) -> ParsedFormula:
    """Return the formula with another letter for each variable."""
    trees = [tree for tree in (formula.slt, formula.opt) if tree is not None]
    variables = list(dict.fromkeys(label for tree in trees for label in tree.labels if label[:2] == VARIABLE))
    free = [letter for letter in LETTERS if VARIABLE + letter not in variables]
    letters = generator.sample(free + TWO_LETTERS, len(variables))
    if len(variables) <= len(free):
        letters = generator.sample(free, len(variables))
    new = {old: VARIABLE + letter for old, letter in zip(variables, letters, strict=True)}

    def changed(tree: FormulaTree | None) -> FormulaTree | None:
        if tree is None:
            return None
        return FormulaTree(
            tree.kind, tuple(new.get(label, label) for label in tree.labels), tree.parents, tree.edge_labels
        )

    return ParsedFormula(changed(formula.slt), changed(formula.opt))


def enclosed(formula: ParsedFormula, generator: random.Random) -> ParsedFormula:
    """Return the formula below a root, under 1, plus 1, or as the right side of an equation."""
    slt, opt = both(formula)
    kind = generator.choice(("root", "fraction", "sum", "equation"))
    if kind == "root":
        layout = joined("slt", ("O!root", -1, ""), (slt, 0, "w"))
        operators = joined("opt", ("O!root", -1, ""), (opt, 0, "0"), ("N!2", 0, "1"))
    elif kind == "fraction":
        layout = joined("slt", ("O!divide", -1, ""), ("N!1", 0, "o"), (slt, 0, "u"))
        operators = joined("opt", ("O!divide", -1, ""), ("N!1", 0, "0"), (opt, 0, "1"))
    elif kind == "sum":
        layout = joined("slt", (slt, -1, ""), ("+", last(slt), "n"), ("N!1", len(slt), "n"))
        operators = joined("opt", ("U!plus", -1, ""), (opt, 0, "0"), ("N!1", 0, "0"))
    else:
        layout = joined("slt", ("V!y", -1, ""), ("=", 0, "n"), (slt, 1, "n"))
        operators = joined("opt", ("U!eq", -1, ""), ("V!y", 0, "0"), (opt, 0, "0"))
    return ParsedFormula(layout, operators)


def beside(formula: ParsedFormula, other: ParsedFormula) -> ParsedFormula:
    """Return the equation of two formulas."""
    (slt, opt), (other_slt, other_opt) = both(formula), both(other)
    layout = joined("slt", (slt, -1, ""), ("=", last(slt), "n"), (other_slt, len(slt), "n"))
    return ParsedFormula(layout, joined("opt", ("U!eq", -1, ""), (opt, 0, "0"), (other_opt, 0, "0")))


def both(formula: ParsedFormula) -> tuple[FormulaTree, FormulaTree]:
    """Return both trees of a formula that has both."""
    assert formula.slt is not None
    assert formula.opt is not None
    return formula.slt, formula.opt


def last(slt: FormulaTree) -> int:
    """Return the last node of the baseline."""
    end = 0
    for node in range(len(slt)):
        if slt.parents[node] == end and slt.edge_labels[node] == "n":
            end = node
    return end


def joined(kind: TreeKind, *parts: tuple[FormulaTree | str, int, str]) -> FormulaTree:
    """Return one tree of trees and single labels; each but the first hangs at a node of those before it, by an edge."""
    labels: list[str] = []
    parents: list[int] = []
    edges: list[str] = []
    for part, parent, edge in parts:
        start = len(labels)
        tree = FormulaTree(kind, (part,), (-1,), ("",)) if isinstance(part, str) else part
        labels += tree.labels
        parents += [parent if own < 0 else start + own for own in tree.parents]
        edges += [edge, *tree.edge_labels[1:]]
    return FormulaTree(kind, tuple(labels), tuple(parents), tuple(edges))
