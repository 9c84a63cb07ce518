r"""Coverage of a collection: each different formula is parsed from LaTeX, and no exception may be raised.

    python scripts/bench.py formula_corpora ../shared/data/arqmath-mini ../shared/data/math-train/train.jsonl \
        ../shared/data/mse-questions/questions_03.jsonl.gz

A path is a folder in the layout of ARQMath (the formulas of its LaTeX TSVs, posts and topics) or a file of JSON lines,
possibly gzipped (the formulas in all of its strings, as found by ``graphs/corpus/text/text_formulas.py``). Macros
defined in a post apply to its formulas, as in graphs. For each path the output has: different formulas, exceptions,
formulas with no layout or no operator tree, formulas with an ``E!`` node, formulas per second, and the growth of the
process in MiB during the last nine tenths. ``E!`` marks parts that could not be read (``unread``: fragments, unknown
commands), and, as in the official trees, cells that a matrix or an alignment leaves empty (``empty cells``). The next
line has the reasons for unread formulas: a ``fence`` without a beginning or an end, an undefined ``command``, or
another reason. For several paths, a line has their different formulas ``together``. Exit code 1: an exception.
"""

from __future__ import annotations

import argparse
import gzip
import html
import json
import time
import traceback
from collections import Counter
from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

from graphs.corpus.corpus import open_corpus
from graphs.corpus.text.text_formulas import find
from graphs.errors import CorpusError
from graphs.formulas.latex import Macros, parse_latex, read_macros
from graphs.formulas.latex.commands import read
from graphs.formulas.latex.grammar import parse_list
from graphs.formulas.latex.nodes import MathList, Unparsed
from graphs.formulas.published import rows_of
from graphs.formulas.tree import FormulaTree
from mathamr.evaluation.efficiency import process_memory


def posts(path: Path) -> Iterator[list[str]]:
    """Yield the LaTeX of the formulas of every post of a collection. Raises CorpusError for a path of another kind."""
    if path.is_dir():
        files = open_corpus("arqmath", path).formulas()
        tables = [*files.latex, *(year.latex for year in files.topics if year.latex is not None)] if files else []
        for table in tables:
            for _, rows in groupby(rows_of(table), key=lambda row: row.post_id):
                yield [html.unescape(row.mathml) for row in rows]
        return
    try:
        with gzip.open(path, "rt", encoding="utf-8") if path.suffix == ".gz" else path.open(encoding="utf-8") as lines:
            for number, line in enumerate(lines, 1):
                try:
                    record = json.loads(line)
                except json.JSONDecodeError as error:
                    raise CorpusError(f"is not JSON: {error}", path=path, line=number) from error
                yield [latex for text in _strings(record) for _, _, latex in find(text)]
    except (OSError, UnicodeDecodeError) as error:
        raise CorpusError(f"cannot be read: {error}", path=path) from error


def formulas(path: Path) -> dict[str, Macros]:
    """Yield every different formula, with the macros of its first post."""
    found: dict[str, Macros] = {}
    for post in posts(path):
        macros = read_macros("\n".join(post))
        for latex in post:
            found.setdefault(latex, macros)
    return found


def _strings(record: object) -> Iterator[str]:
    if isinstance(record, str):
        yield record
    elif isinstance(record, dict | list):
        for value in record.values() if isinstance(record, dict) else record:
            yield from _strings(value)


UNREAD, EMPTY = 1, 2  # bits: the trees of a formula have something unread, an empty cell


def measure(path: Path, seen: dict[str, int]) -> dict[str, Any]:
    """Parse every different formula of ``path``; ``seen`` receives the bits of each."""
    different = formulas(path)
    counts: Counter[str] = Counter()
    raised: list[str] = []
    bits = bytearray(len(different))
    grown = process_memory("VmRSS")
    start = time.process_time()
    for number, (latex, macros) in enumerate(different.items()):
        if number == len(different) // 10:
            grown = process_memory("VmRSS")
        try:
            parsed = parse_latex(latex, macros)
        except Exception:  # noqa: BLE001 - this is what is being looked for
            raised.append(f"{latex!r}\n{traceback.format_exc()}")
            continue
        counts["no_slt"] += parsed.slt is None
        counts["no_opt"] += parsed.opt is None
        found = [_errors(tree) for tree in (parsed.slt, parsed.opt) if tree is not None]
        unread, empty = any(unread for unread, _ in found), any(empty for _, empty in found)
        bits[number] = UNREAD * unread + EMPTY * empty
        counts["error"] += unread or empty
        counts["unread"] += unread
    seconds = max(time.process_time() - start, 1e-9)
    grown = process_memory("VmRSS") - grown
    seen.update(zip(different, bits, strict=True))
    why = Counter(_reason(*pair) for pair, found in zip(different.items(), bits, strict=True) if found & UNREAD)
    return {
        "formulas": len(different),
        "exceptions": len(raised),
        "no_slt": counts["no_slt"],
        "no_opt": counts["no_opt"],
        "error_share": counts["error"] / max(len(different), 1),
        "unread_share": counts["unread"] / max(len(different), 1),
        "formulas_per_second": len(different) / seconds,
        "grown_mib": grown / 2**20,
        "why_unread": dict(why.most_common()),
        "raised": raised[:5],
    }


def _errors(tree: FormulaTree) -> tuple[bool, bool]:
    """Return whether a tree has an ``E!`` node for an unread part, and whether it has one for an empty cell."""
    first_child: dict[int, str] = {}
    for node in range(1, len(tree)):
        first_child.setdefault(tree.parents[node], tree.labels[node])
    unread = empty = False
    for node, label in enumerate(tree.labels):
        if label.startswith("E!"):
            above = tree.labels[tree.parents[node]] if tree.parents[node] >= 0 else ""
            is_cell = (node not in first_child and above == "M!R!") or first_child.get(node) == "W!"
            unread, empty = unread or not is_cell, empty or is_cell
    return unread, empty


def _reason(latex: str, macros: Macros) -> str:
    """Return why a formula is unread: ``fence`` (one without its end), ``command`` (an undefined one), or ``other``."""
    lists = read(latex, macros)
    unread = [inner for inner in lists if type(parse_list(inner)) is Unparsed]
    if not unread:
        return "command"
    return "fence" if any(not _is_balanced(inner) for inner in unread) else "other"


def _is_balanced(whole: MathList) -> bool:
    depth = 0
    for item in whole.items:
        depth += (item.role == "OPEN") - (item.role == "CLOSE")
        if depth < 0:
            return False
    return depth == 0


def main() -> tuple[dict[str, Any], int]:
    """Print a line for each path; return the result, and the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="a folder of ARQMath, or JSON lines")
    options = parser.parse_args()
    results: dict[str, Any] = {}
    seen: dict[str, int] = {}
    for path in options.paths:
        figures = results[str(path)] = measure(path, seen)
        for report in figures.pop("raised"):
            print(report)
        print(
            f"{path}: {figures['formulas']:,} formulas, {figures['exceptions']} exceptions, "
            f"E! in {figures['error_share']:.2%} ({figures['unread_share']:.2%} unread, the others empty cells), "
            f"without SLT {figures['no_slt']}, without OPT {figures['no_opt']}; "
            f"{figures['formulas_per_second']:,.0f} formulas/s, grown by {figures['grown_mib']:.1f} MiB"
        )
        reasons = ", ".join(f"{reason} {number:,}" for reason, number in figures["why_unread"].items())
        print(f"  unread for: {reasons}")
    raised = any(figures["exceptions"] for figures in results.values())
    if len(results) > 1:
        together = {
            "formulas": len(seen),
            "error_share": sum(bits > 0 for bits in seen.values()) / max(len(seen), 1),
            "unread_share": sum(bits & UNREAD for bits in seen.values()) / max(len(seen), 1),
        }
        print(
            f"together: {together['formulas']:,} different formulas, E! in {together['error_share']:.2%} "
            f"({together['unread_share']:.2%} unread)"
        )
        results["together"] = together
    return results, int(raised)
