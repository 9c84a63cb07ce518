"""Show the two trees of a formula: the symbol layout tree (SLT) and the operator tree (OPT).

    mathamr trees --latex 'x^2+y'
    SLT [V!x[+[V!y]],a[N!2]]
    ...
    mathamr trees --mathml formula.xml --figure trees.svg
    mathamr trees --stdin < formulas.tex > trees.jsonl

For one formula, both trees are printed in the string form of Tangent-S and as indented text; ``--figure`` draws them.
``--stdin`` takes one LaTeX formula per line and prints one JSON object per line, with the keys ``latex``, ``slt`` and
``opt``, ``null`` for a missing tree. A MathML file may hold Presentation MathML, Content MathML or both. If a formula
has neither tree, or the file cannot be read, or a line of standard input is not UTF-8, the exit code is 2.
"""

from __future__ import annotations

import codecs
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import parser_of

if TYPE_CHECKING:
    from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind

_UNDECODED = re.compile("[\udc80-\udcff]")  # bytes that are not UTF-8, as surrogateescape reads them


@command
def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of(__doc__)
    source = parser.add_mutually_exclusive_group(required=True)
    source.add_argument("--latex", help="a formula, without dollar signs")
    source.add_argument("--mathml", type=Path, metavar="FILE", help="a file with one <math> element")
    source.add_argument("--stdin", action="store_true", help="read LaTeX formulas, one per line; print JSON lines")
    parser.add_argument("--figure", type=Path, metavar="SVG", help="draw the trees of --latex or --mathml")
    given = parser.parse_args(arguments)
    if given.stdin:
        if given.figure is not None:
            parser.error("--figure draws one formula: use it with --latex or --mathml")
        return print_json_lines()
    if given.figure is not None and given.figure.suffix.lower() != ".svg":
        parser.error(f"--figure {given.figure}: figures are SVG; give a name that ends in .svg")

    from graphs.formulas.drawing import svg
    from graphs.formulas.latex import parse_latex

    formula = parse_latex(given.latex) if given.mathml is None else parse_file(given.mathml)
    print_trees(formula)
    trees = [tree for tree in (formula.slt, formula.opt) if tree is not None]
    if given.figure is not None and trees:
        given.figure.write_text(svg(*trees, title=given.latex or given.mathml.name), encoding="utf-8")
    return 0 if trees else 2


def parse_file(path: Path) -> ParsedFormula:
    """Return both trees of a MathML file, as far as it has the markup for them."""
    from graphs.formulas.latexml import trees_of

    data = path.read_bytes()
    try:
        mathml = data.decode(encoding_of(data), errors="replace")
    except (LookupError, UnicodeError):  # no encoding of text
        mathml = data.decode(errors="replace")
    return trees_of(mathml)


def encoding_of(data: bytes) -> str:
    """Return the encoding that an XML file names by a byte order mark or in its declaration, otherwise UTF-8.

    >>> encoding_of(b'<?xml version="1.0" encoding="ISO-8859-1"?><math/>'), encoding_of("<math/>".encode("utf-16"))
    ('ISO-8859-1', 'utf-16')
    """
    if data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
        return "utf-16"
    declared = re.match(
        rb"""<\?xml\s[^<>]{0,100}?\sencoding\s*=\s*["']((?!utf-?(?:16|32))[\w.-]{1,40})["']""", data, re.I
    )
    return declared[1].decode() if declared else "utf-8-sig"  # UTF-16 without a mark: not in these bytes


def print_trees(formula: ParsedFormula) -> None:
    """Return each tree as a string and as indented text, or the reason for a missing tree."""
    from graphs.formulas.drawing import indented

    reasons = dict(formula.errors)
    trees: dict[TreeKind, FormulaTree | None] = {"slt": formula.slt, "opt": formula.opt}
    for kind, tree in trees.items():
        if tree is None:
            print(f"{kind.upper()} none: {reasons.get(kind, 'no reason given')}\n")
        else:
            print(f"{kind.upper()} {tree.tangent_string()}\n{indented(tree)}\n")


def print_json_lines() -> int:
    """Print the trees of the formulas on standard input, as they come; return 2 if a line is not UTF-8, else 0."""
    from graphs.formulas.latex import parse_latex

    for stream, errors in ((sys.stdin, "surrogateescape"), (sys.stdout, "replace")):
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(encoding="utf-8", errors=errors)
    code = 0
    for number, line in enumerate(sys.stdin, start=1):
        latex = line.rstrip("\r\n")
        if _UNDECODED.search(latex):
            latex = _UNDECODED.sub("\ufffd", latex)
            print(f"line {number} is not UTF-8; save the formulas as UTF-8", file=sys.stderr)
            code = 2
        formula = parse_latex(latex)
        strings = (None if tree is None else tree.tangent_string() for tree in (formula.slt, formula.opt))
        print(json.dumps(dict(zip(("latex", "slt", "opt"), (latex, *strings), strict=True)), ensure_ascii=False))
    return code


if __name__ == "__main__":
    sys.exit(main())
