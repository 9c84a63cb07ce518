"""Agreement of the trees made from LaTeX with those of the official MathML.

    python scripts/bench.py formula_agreement --oracle ../shared/data/tangent/oracle_2020_2021.jsonl --part dev

The command prints the share of formulas with identical trees, the F1 of labelled edges, the most frequent kinds of
difference, and the speed; the last line is JSON. Each line of the oracle file is a JSON object with ``formula_id``,
``year``, ``latex``, ``slt_string`` and ``opt_string``. ``--part heldout`` is the third of the formulas whose
``crc32(formula_id) % 3`` is 0: the grammar was not fitted to them, and their differences are not printed.

Two kinds of rows are counted and left out: rows of 2020 in which LaTeXML did not know a command of the AMS packages (an
merror has the name of the command), and rows whose LaTeX is escaped for HTML (``&lt;``), which changes the formula.
"""

from __future__ import annotations

import argparse
import json
import re
import time
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from graphs.formulas.latex import parse_latex
from graphs.formulas.mathml import clean_plain
from graphs.formulas.tree import FormulaTree

_ENTITY = re.compile(r"&(lt|gt|amp|quot);")
_PART = re.compile(r"\[(?P<label>[^\[\],]*(?:,(?![0-9A-Za-z]\[)[^\[\],]*)*)|\]|,(?P<edge>.?)", re.DOTALL)

Edges = Counter[tuple[str, str, str]]


@dataclass
class Agreement:
    """Counts over one kind of tree: formulas compared and identical, and labelled edges common, missed, extra."""

    compared: int = 0
    identical: int = 0
    common: int = 0
    missed: int = 0
    extra: int = 0
    differences: Counter[str] = field(default_factory=Counter)
    examples: dict[str, str] = field(default_factory=dict)

    @property
    def share(self) -> float:
        return self.identical / self.compared if self.compared else 0.0

    @property
    def edge_f1(self) -> float:
        total = 2 * self.common + self.missed + self.extra
        return 2 * self.common / total if total else 1.0


def plain(tangent_string: str) -> str:
    """Return a Tangent string with plain letters, and the minus and norm bar of the official files."""
    return re.sub(r"[^\[\]]+", lambda match: _plain_part(match.group()), tangent_string)


def _plain_part(text: str) -> str:
    if text.isascii():
        return text
    return re.sub(r"[^,]+", lambda match: clean_plain(match.group()).replace(",", "&comma;"), text)


def edges_of_string(tangent_string: str) -> Edges:
    """Return the edges ``(label, edge, label)`` of a tree in string form, and its root as ``("", "", label)``."""
    found: Edges = Counter()
    above: list[str] = []
    edge = ""
    for match in _PART.finditer(tangent_string):
        label, name = match.group("label", "edge")
        if label is not None:
            found[(above[-1], edge, label) if above else ("", "", label)] += 1
            above.append(label)
        elif name is None and above:
            above.pop()
        edge = "n" if name is None else name
    return found


def rows(oracle: Path, part: str) -> Iterator[dict[str, Any]]:
    """Yield the rows of one part of the oracle file."""
    with oracle.open(encoding="utf-8") as lines:
        for line in lines:
            row = json.loads(line)
            held_out = zlib.crc32(row["formula_id"].encode()) % 3 == 0
            if part == "all" or held_out == (part == "heldout"):
                yield row


def excluded(row: dict[str, Any]) -> str:
    """Return the reason to leave a row out, or an empty string."""
    slt, opt = row["slt_string"] or "", row["opt_string"] or ""
    if row["year"] == 2020 and ("T!\\" in slt + opt or "E!]" in slt or "[E!" in slt):
        return "2020, a command LaTeXML did not know"
    if _ENTITY.search(row["latex"]):
        return "LaTeX escaped for HTML"
    return ""


def compare(expected: str, tree: FormulaTree | None, latex: str, agreement: Agreement) -> None:
    """Count one formula."""
    agreement.compared += 1
    actual = tree.tangent_string() if tree is not None else ""
    wanted, got = edges_of_string(expected), edges_of_string(actual)
    common = (wanted & got).total()
    agreement.common += common
    agreement.missed += wanted.total() - common
    agreement.extra += got.total() - common
    if actual == expected:
        agreement.identical += 1
        return
    lost, found = wanted - got, got - wanted
    first = next(iter(lost), None), next(iter(found), None)
    name = " / ".join("none" if edge is None else f"{edge[0]} -{edge[1]}-> {edge[2]}" for edge in first)
    agreement.differences[name] += 1
    agreement.examples.setdefault(name, f"{latex}\n      official {expected}\n      ours     {actual}")


def measure(oracle: Path, part: str) -> dict[str, Any]:
    """Return all figures of one part, and the differences."""
    slt, opt = Agreement(), Agreement()
    left_out: Counter[str] = Counter()
    seconds, count = 0.0, 0
    for row in rows(oracle, part):
        reason = excluded(row)
        if reason:
            left_out[reason] += 1
            continue
        start = time.process_time()
        parsed = parse_latex(row["latex"])
        seconds += time.process_time() - start
        count += 1
        if row["slt_string"]:
            compare(plain(row["slt_string"]), parsed.slt, row["latex"], slt)
        if row["opt_string"]:
            compare(plain(row["opt_string"]), parsed.opt, row["latex"], opt)
    speed = count / max(seconds, 1e-9)
    return {"slt": slt, "opt": opt, "left_out": dict(left_out), "formulas_per_second": speed}


def main(arguments: Sequence[str] | None = None) -> dict[str, Any]:
    """Print the agreement of both kinds of tree, and the differences; return the result."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--oracle", type=Path, required=True, help="JSON lines with LaTeX and official trees")
    parser.add_argument("--part", choices=("dev", "heldout", "all"), default="dev")
    parser.add_argument("--differences", type=int, default=15, help="number of kinds of difference to print")
    options = parser.parse_args(arguments)
    figures = measure(options.oracle, options.part)
    summary: dict[str, Any] = {"part": options.part, "left_out": figures["left_out"]}
    for kind in ("slt", "opt"):
        agreement: Agreement = figures[kind]
        shares = {"identical": agreement.share, "edge_f1": agreement.edge_f1}
        summary[kind] = {"compared": agreement.compared, **shares}
        identical = f"{agreement.identical} of {agreement.compared} identical ({agreement.share:.2%})"
        print(f"{kind}: {identical}, edge F1 {agreement.edge_f1:.4f}")
        if options.part == "dev":
            for name, count in agreement.differences.most_common(options.differences):
                print(f"  {count:4}  {name}\n      {agreement.examples[name]}")
    summary["formulas_per_second"] = round(figures["formulas_per_second"])
    return summary
