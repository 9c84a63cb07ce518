r"""Result list as a file: JSON with the keys of POST /api/search, or BibTeX with an entry for each result.

>>> from graphs.stores.posts import PostText
>>> text = PlaceholderText(("Is FORMULA_0 50% odd?",), (FormulaRef("7:0", "\\sqrt2"),))
>>> found = Result(PostText("8", text, text, [], "7"), 2.5)
>>> print(entry(found, 1))
@misc{post:8,
  title = {{Is $\sqrt2$ 50\% odd?}},
  note = {post 8, answer to question 7, rank 1, score 2.5000},
}

The key of an entry depends on the id alone, so the same post has the same key in every list.
"""

from __future__ import annotations

import json
import re
import zlib
from pathlib import Path
from typing import Any

from graphs.corpus.post import FormulaRef, PlaceholderText
from graphs.corpus.text.latex_text import parts
from graphs.errors import ConfigError, printable
from mathamr.search.answer import Answer, Result
from mathamr.search.web import answers

FORMATS = {"json": "application/json", "bib": "application/x-bibtex; charset=utf-8"}
CONTENT: dict[str, Any] = {kind.partition(";")[0]: {} for kind in FORMATS.values()}  # for /api/openapi.json
_NO_KEY = re.compile(r"[^A-Za-z0-9:._/+-]+")
_ESCAPES = str.maketrans(
    {character: f"\\{character}" for character in "%&#_$"}
    | {
        "\\": r"\textbackslash{}",
        "{": r"\textbraceleft{}",
        "}": r"\textbraceright{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
    }
)


def format_of(path: Path) -> str:
    """Return the format of a file by the end of its name; raise :class:`ConfigError` for another end."""
    if (ending := path.suffix.removeprefix(".")) not in FORMATS:
        raise ConfigError(f"{path}: the name of a file of results ends in {' or '.join(f'.{one}' for one in FORMATS)}")
    return ending


def check_format(name: str) -> str:
    """Return ``name``; raise :class:`ConfigError` if it is no format."""
    if name not in FORMATS:
        raise ConfigError(f"unknown format {name!r} of a result list; choose from: {', '.join(FORMATS)}")
    return name


def exported(query: str, found: Answer, format_: str) -> str:
    """Return the results in a format of :data:`FORMATS`."""
    if check_format(format_) == "json":
        return json.dumps({"query": query, **answers.answer(found)}, indent=1) + "\n"
    return "".join(f"{entry(result, rank)}\n\n" for rank, result in enumerate(found.results, found.page.start + 1))


def entry(result: Result, rank: int) -> str:
    """Return one result as a BibTeX entry of the type ``@misc``."""
    post = result.post
    title = in_bibtex(" ".join(post.heading.sentences), post.heading) or f"Post {in_bibtex(post.post_id)}"
    notes = [f"post {in_bibtex(post.post_id)}"]
    name = f"post:{post.post_id}"
    if result.formula is not None:
        name = f"formula:{result.formula.formula_id}"
        notes.insert(0, f"formula {_math(result.formula)}")
    elif post.question_id:
        notes.append(f"answer to question {in_bibtex(post.question_id)}")
    notes += [f"rank {rank}", f"score {result.score:.{answers.DIGITS}f}"]
    return f"@misc{{{key(name)},\n  title = {{{{{title}}}}},\n  note = {{{', '.join(notes)}}},\n}}"


def key(name: str) -> str:
    """Return ``name`` as a key; characters that no key may have are replaced, and a checksum keeps names apart.

    >>> key("post:255"), key("post:a b")
    ('post:255', 'post:a_b-d5d3d691')
    """
    clean = _NO_KEY.sub("_", name)
    return clean if clean == name else f"{clean}-{zlib.crc32(name.encode()):08x}"


def in_bibtex(sentence: str, text: PlaceholderText | None = None) -> str:
    """Return a line of LaTeX with balanced braces, formulas of ``text`` between dollars."""
    pieces = parts(sentence, text or PlaceholderText((), ()))
    written = (_math(part) if isinstance(part, FormulaRef) else part.translate(_ESCAPES) for part in pieces)
    return " ".join(printable("".join(written)).split())


def _math(formula: FormulaRef) -> str:
    r"""Return a formula between dollars, as text if it would not stay in its entry. BibTeX counts ``\{`` as a brace.

    >>> _math(FormulaRef("1", "\\{x\\mid x>0")), _math(FormulaRef("1", "\\frac{1")), _math(FormulaRef("1", "x\\ "))
    ('$\\lbrace x\\mid x>0$', '\\textbackslash{}frac\\textbraceleft{}1', '$x\\ $')
    """
    names = {"{": r"\lbrace ", "}": r"\rbrace "}
    latex = re.sub(r"\\([\\{}])", lambda match: names.get(match[1], match[0]), " ".join(formula.latex.split()))
    if (len(latex) - len(latex.rstrip("\\"))) % 2:
        latex += " "  # of the control space that it ends with; else the closing dollar would be escaped
    depth = 0
    for brace in re.findall(r"[{}]", latex):
        depth += 1 if brace == "{" else -1
        if depth < 0:
            break
    return f"${latex}$" if depth == 0 and not set("$%#") & set(latex) else formula.latex.translate(_ESCAPES)
