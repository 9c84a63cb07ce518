r"""LaTeX -> MathML by LaTeXML (``latexmlc``, Debian's package ``latexml``), in batches: an optional second opinion.

    formulas = [r"x^2+y", r"\frac{1}{2"]
    LaTeXML().convert(formulas)    # ['<math ...>', Failure('', 'formula', 'latexml', "... '\\frac{1}{2'")]
    LaTeXML().parse(formulas)      # [ParsedFormula(...), ParsedFormula(None, None, errors=...)]

LaTeXML takes a second to start and a tenth of a second for each formula; :mod:`graphs.formulas.latex` makes the same
trees in process some thousand times faster. A batch is one document with one displayed formula in each paragraph. If it
fails, takes too long, or does not give one formula for each paragraph (as with a missing brace), it is halved until the
failing formula is alone. LaTeX is a programming language that reads files: formulas with a command that opens a file or
makes a command from characters are refused, and so is every environment outside mathematics, because ``\begin{input}``
executes ``\input``. A formula with environments may not define commands, because ``\let\b\begin{array}`` gives
``\begin`` another name.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from lxml import etree

from graphs.errors import ConfigError, Failure, FormulaError
from graphs.formulas.content import parse_opt
from graphs.formulas.latex.parser import without_trees
from graphs.formulas.presentation import parse_slt
from graphs.formulas.tree import FormulaTree, ParsedFormula, TreeKind

_PREAMBLE = "\\documentclass{article}\n\\usepackage{amsmath,amssymb}\n\\begin{document}\n"
_OPTIONS = ("--format=xml", "--pmml", "--cmml", "--nocomments", "--quiet", "--dest=out.xml", "--log=log.txt", "in.tex")
# Commands that open a file, or from which characters become commands: by a part of the name, and by the whole name.
_PARTS = "input|file|package|loadclass|document|bibliography|fontencoding|provides|csname|nameuse|catcode|[lu]ccode"
_PARTS += "|scantokens|makeat|explsyntax"
_NAMES = r"include\w*|open(?:in|out)|read(?:line)?|write\w*|immediate|special|directlua|@+\w+"
_ENVIRONMENTS = (
    r"[pbvBV]?(?:small)?matrix|array|subarray|[dr]?cases|aligned(?:at)?|x{0,2}alignat|flalign|gathered|split"
)
_ENVIRONMENTS += "|multlined|displaymath|math|tabular"
_REFUSED = re.compile(
    rf"\\[a-z]*?(?:{_PARTS})[a-z]*|\\(?:{_NAMES})(?![a-z])|\^\^"
    rf"|\\(?:begin|end)(?![a-z])(?!\s*\{{(?-i:{_ENVIRONMENTS})\*?\}})(?:\s*\{{[^{{}}]*\}})?",
    re.IGNORECASE,
)
_EDGE = re.compile(r"\\(?:begin|end)(?![a-zA-Z])")
# Commands that give \begin another name, or separate it from the name of its environment.
_SEPARATES = re.compile(
    r"\\(?:(?:future)?let|[gex]?def|(?:re)?new(?:command|environment)|providecommand|DeclareRobustCommand"
    r"|after(?:group|assignment))(?![a-zA-Z])"
)
_INNER = {"align": "aligned", "eqnarray": "aligned", "gather": "gathered", "multline": "gathered", "equation": ""}
_DISPLAY = re.compile(rf"\\(begin|end)\s*\{{({'|'.join(_INNER)})\*?\}}")
_ROWS = re.compile(r"\\begin\s*\{(aligned|gathered|split)\}")
_BLANK_LINE = re.compile(r"\n\s*\n")
_LATEXML = "{http://dlmf.nist.gov/LaTeXML}"
_MATHML = "{http://www.w3.org/1998/Math/MathML}"
_SECONDS_TO_START = 30.0
_XML = etree.XMLParser(resolve_entities=False, no_network=True, remove_pis=True)


@dataclass(frozen=True, slots=True)
class LaTeXML:
    """LaTeXML with its command, the number of formulas of a batch, and the time limit of a formula in seconds."""

    command: str = "latexmlc"
    batch_size: int = 50
    seconds: float = 20.0

    def version(self) -> str:
        """Version string of the program. Raises ConfigError if it is not installed."""
        done = subprocess.run([self._program(), "--VERSION"], capture_output=True, text=True, check=False, timeout=60)
        return (done.stdout + done.stderr).strip()

    def convert(self, formulas: Sequence[str]) -> list[str | Failure]:
        """Return Presentation and Content MathML in one ``math`` element for each formula, or a failure.

        A failure's kind is ``refused``, ``timeout`` or ``latexml``. Raises ConfigError if LaTeXML is not installed.
        """
        self._program()
        results: dict[int, str | Failure] = {}
        allowed = []
        for number, latex in enumerate(formulas):
            if refused := _refused(_paragraph(latex)):  # a paragraph may join the two parts of a command
                results[number] = Failure("", "formula", "refused", f"{refused} is not allowed in {latex!r}")
            else:
                allowed.append(number)
        batches = [allowed[i : i + self.batch_size] for i in range(0, len(allowed), self.batch_size)]
        while batches:
            batch = batches.pop()
            try:
                results |= zip(batch, self._run([formulas[number] for number in batch]), strict=True)
            except FormulaError as error:
                if len(batch) > 1:
                    middle = len(batch) // 2
                    batches += [batch[:middle], batch[middle:]]
                else:
                    message = f"{error}: {formulas[batch[0]]!r}"
                    results[batch[0]] = Failure("", "formula", error.kind, message)
        return [results[number] for number in range(len(formulas))]

    def parse(self, formulas: Sequence[str]) -> list[ParsedFormula]:
        """Return both trees of each formula, in the form of :func:`graphs.formulas.latex.parse_latex`."""
        return [
            without_trees(one.message) if isinstance(one, Failure) else trees_of(one) for one in self.convert(formulas)
        ]

    def _program(self) -> str:
        program = shutil.which(self.command)
        if program is None:
            message = (
                f"{self.command} is not installed (Debian: apt install latexml); graphs.formulas.latex needs no program"
            )
            raise ConfigError(message)
        return program

    def _run(self, formulas: Sequence[str]) -> list[str]:
        """Convert one batch. Raises FormulaError if any of its formulas fails."""
        paragraphs = [_paragraph(latex) for latex in formulas]
        limit = _SECONDS_TO_START + self.seconds + len(formulas) - 1
        with tempfile.TemporaryDirectory(prefix="latexml-") as folder:
            source, target = Path(folder, "in.tex"), Path(folder, "out.xml")
            source.write_text(
                f"{_PREAMBLE}{''.join(paragraphs)}\\end{{document}}\n", encoding="utf-8", errors="replace"
            )
            try:
                command = [self._program(), *_OPTIONS]
                subprocess.run(command, cwd=folder, capture_output=True, check=True, timeout=limit)
                root = etree.parse(target, _XML).getroot()
            except subprocess.TimeoutExpired:
                raise FormulaError(f"LaTeXML had no result after {limit:.0f} seconds", kind="timeout") from None
            except (subprocess.CalledProcessError, OSError, etree.XMLSyntaxError) as error:
                raise FormulaError(f"LaTeXML failed ({error})", kind="latexml") from error
        found = list(root.iterchildren(f"{_LATEXML}para"))
        if len(found) != len(formulas):
            raise FormulaError(f"LaTeXML made {len(found)} paragraphs of {len(formulas)}", kind="latexml")
        return [_only_formula(paragraph) for paragraph in found]


def _refused(paragraph: str) -> str:
    r"""Return the part of a paragraph that could open a file; empty without one.

    >>> _refused(r"\[\input{a}\]"), _refused(r"\[\let\b\begin{array}\]"), _refused(r"\[\let\b\beta\]")
    ('\\input', '\\let with \\begin', '')
    """
    if found := _REFUSED.search(paragraph):
        return found[0]
    edge, separates = _EDGE.search(paragraph), _SEPARATES.search(paragraph)
    return f"{separates[0]} with {edge[0]}" if edge and separates else ""


def _paragraph(latex: str) -> str:
    """Return a formula as a displayed paragraph, its own display environments made inner ones.

    Formulas with rows are inline, because a display of rows would be split into formulas.
    """
    inner = _DISPLAY.sub(lambda found: f"\\{found[1]}{{{_INNER[found[2]]}}}" if _INNER[found[2]] else "", latex)
    inner = _BLANK_LINE.sub("\n", inner).strip()
    # A line end before the closing sign: a formula may end in a comment.
    return f"${inner}\n$\n\n" if _ROWS.search(inner) else f"\\[{inner}\n\\]\n\n"


def _only_formula(paragraph: etree._Element) -> str:
    """Return the ``math`` element of a paragraph that holds one formula and nothing else."""
    formulas = [
        formula
        for formula in paragraph.iter(f"{_LATEXML}Math")
        if next(formula.iterancestors(f"{_LATEXML}Math"), None) is None
    ]
    maths = [math for formula in formulas for math in formula.iterchildren(f"{_MATHML}math")]
    if len(maths) != 1 or len(formulas) != 1:
        raise FormulaError(f"LaTeXML made {len(maths)} formulas of one", kind="latexml")
    mathml = etree.tostring(maths[0], encoding="unicode", with_tail=False)
    within = "".join(map(str, formulas[0].itertext()))
    around = "".join(map(str, paragraph.itertext())).replace(within, "", 1).strip()
    if around:
        raise FormulaError(f"LaTeXML took a part of the formula for text: {around[:60]!r}", kind="latexml")
    return mathml


def trees_of(mathml: str) -> ParsedFormula:
    """Return both trees of a ``math`` element, as far as it has the markup for them."""
    trees: dict[TreeKind, FormulaTree] = {}
    errors: list[tuple[TreeKind, str]] = []
    readers: dict[TreeKind, Callable[[str], FormulaTree]] = {"slt": parse_slt, "opt": parse_opt}
    for kind, read in readers.items():
        try:
            trees[kind] = read(mathml)
        except FormulaError as error:
            errors.append((kind, str(error)))
    return ParsedFormula(trees.get("slt"), trees.get("opt"), tuple(errors))
