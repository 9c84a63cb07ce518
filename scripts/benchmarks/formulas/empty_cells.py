#!/usr/bin/env python
r"""Official operator trees of formulas with empty table cells, by environment.

    python scripts/benchmarks/formulas/empty_cells.py --root ../shared/data/arqmath-mini \
        --oracle ../shared/data/tangent/oracle_2020_2021.jsonl

It counts the formulas of the posts (``--root``) and of the topics (``--oracle``, without the held-out third, see
``benchmarks/formulas/agreement.py``) with one kind of environment, a row that begins with an empty cell, and an
official operator tree. The tree may have ``E!`` above ``W!`` (``E! -> W!``), a matrix without that (``matrix``), or no
matrix (``other``: aligned equations are read as one formula). For ``cases`` the row ends with an empty cell, since
these have no others. The last line is one JSON object.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from graphs.corpus.corpus import open_corpus
from graphs.errors import ConfigError, FormulaError, MathAMRError
from graphs.formulas.content import parse_opt
from graphs.formulas.published import published
from graphs.formulas.tree import FormulaTree

COLUMNS = ("E! -> W!", "matrix", "other")
_BEGIN = re.compile(r"\\begin\{(\w+)\*?\}(\[\w?\])?(\{[^{}]*\})?")
_EMPTY = re.compile(r"(BEGIN|\\\\)&")
_EMPTY_LAST = re.compile(r"&(\\\\|\\end)")


def environment_with_an_empty_cell(latex: str) -> str | None:
    r"""Return the only environment of a formula, if one of its cells is empty.

    >>> environment_with_an_empty_cell(r"\begin{align*} a&=b\\ &=c \end{align*}")
    'align'
    >>> environment_with_an_empty_cell(r"\begin{pmatrix}1&2\\3&4\end{pmatrix}")
    """
    names = {match[1] for match in _BEGIN.finditer(latex)}
    if len(names) != 1:
        return None
    (name,) = names
    with_columns = name in ("array", "alignat", "alignedat")
    body = _BEGIN.sub(lambda match: "BEGIN" + ("" if with_columns else match[3] or ""), latex)
    empty = _EMPTY_LAST if name == "cases" else _EMPTY
    return name if empty.search(re.sub(r"\s+", "", body)) else None


def formulas(root: Path, oracle: Path | None) -> Iterator[tuple[str, str]]:
    """Yield LaTeX and Content MathML of posts and topics."""
    files = open_corpus("arqmath", root).formulas()
    if files is None:
        raise ConfigError(f"--root {root}: no formula files; name the folder of an ARQMath collection")
    for formula in published(files):
        yield formula.latex, formula.content
    if oracle is not None:
        with oracle.open(encoding="utf-8") as lines:
            for line in lines:
                row = json.loads(line)
                if zlib.crc32(row["formula_id"].encode()) % 3:
                    yield row["latex"], row["cmml"] or ""


def column_of(tree: FormulaTree) -> str:
    """Return the form of an empty cell in a tree: one of :data:`COLUMNS`."""
    for parent, label in zip(tree.parents, tree.labels, strict=True):
        if label == "W!" and parent >= 0 and tree.labels[parent] == "E!":
            return COLUMNS[0]
    return COLUMNS[1] if any(label.startswith("M!M-") for label in tree.labels) else COLUMNS[2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--root", type=Path, required=True, help="folder in the layout of ARQMath")
    parser.add_argument("--oracle", type=Path, help="JSON lines with LaTeX and Content MathML")
    options = parser.parse_args(arguments)
    found: dict[str, Counter[str]] = {}
    try:
        for latex, mathml in formulas(options.root, options.oracle):
            name = environment_with_an_empty_cell(latex)
            if name is None or not mathml:
                continue
            try:
                found.setdefault(name, Counter())[column_of(parse_opt(mathml))] += 1
            except FormulaError:
                continue
    except MathAMRError as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{'environment':12}" + "".join(f"{column:>10}" for column in COLUMNS))
    for name, counts in sorted(found.items(), key=lambda item: (-item[1].total(), item[0])):
        print(f"{name:12}" + "".join(f"{counts[column]:>10}" for column in COLUMNS))
    print(json.dumps(found))
    return 0


if __name__ == "__main__":
    sys.exit(main())
