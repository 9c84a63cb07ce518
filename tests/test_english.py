"""Plain English in docstrings, messages and documents: first lines that name a thing, and no odd phrases."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

#: First line of a docstring -> what to write.
FIRST_LINES = {
    r"What\b": "a noun phrase, or a verb: 'Return the ...'",
    r"Whether\b": "'Return whether ...', or 'True if ...' for a property",
    r"Who\b": "a noun phrase: 'Identity of ...'",
    r"Those\b": "the noun itself: 'Pairs of ...'",
    r"(?:How|Where|Which|Why)\b": "a noun phrase: 'Settings of ...', or 'Return how ...'",
    r"(?:Likewise|Like|Of|For each)\b": "a complete phrase that begins with its verb or noun",
    r"(?:Nothing|Everything|Let go|Say)\b": "'Do nothing: ...', 'Release', 'Print'",
    r"The\b": "the noun without article, or 'Return the ...'",
}

#: Pages of one subject: longer ones are split. modules.md is generated.
MAX_LINES = {"README.md": 90, "docs/modules.md": 10_000}

#: Phrase -> what to write.
PHRASES = {
    r"(?:is|are) none": "the state in one word: 'is missing', 'is empty', 'is invalid'",
    r"gone on": "resumed",
    r"goes on with": "continues with, resumes",
    r"in work": "being built, being trained",
    r"told apart": "distinguished, compared with",
    r"tell apart": "distinguish",
    r"stands for itself": "is independent, is literal",
    r"so many": "the number by name: '`count` posts'",
    r"what there is": "the noun itself",
    r"there is not": "is missing, does not exist",
    r"behind it": "after it",
    r"stands": "is",
    r"hears": "is called with, receives",
    r"such as training has": "the noun itself",
    r"look alike": "are equal",
    r"of its own": "its own, separate, another",
    r"for itself": "independently, alone",
    r"besides": "and, further",
    r"at all": "nothing, or 'atomically'",
}

_FIRST = {re.compile(pattern): instead for pattern, instead in FIRST_LINES.items()}
_PHRASES = {
    re.compile(rf"\b{pattern}\b".replace(" ", r"\s+"), re.IGNORECASE): instead for pattern, instead in PHRASES.items()
}
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)

#: (line number, text, whether it is a docstring)
Text = tuple[int, str, bool]


def python_texts(source: str) -> Iterator[Text]:
    """Yield docstrings, and other strings that read like a sentence."""
    tree = ast.parse(source)
    docstrings = set()
    for node in ast.walk(tree):
        first = node.body[0] if isinstance(node, _DOCUMENTED) and node.body else None
        if isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str):
            docstrings.add(first.value)
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            if node in docstrings:
                yield node.lineno, _without_examples(node.value), True
            elif " " in node.value.strip():
                yield node.lineno, node.value, False


def markdown_texts(source: str) -> Iterator[Text]:
    """Yield a document without its code blocks and inline code."""
    blank = re.sub(r"```.*?```", lambda block: "\n" * block[0].count("\n"), source, flags=re.S)
    yield 1, re.sub(r"`[^`\n]*`", "``", blank), False


def yaml_texts(source: str) -> Iterator[Text]:
    """Yield comments; adjacent whole-line comments are one text."""
    lines = [match[1] if (match := re.search(r"(?:^|\s)#(.*)", line)) else "" for line in source.splitlines()]
    yield 1, "\n".join(lines), False


def problems(path: str, source: str) -> Iterator[str]:
    """Yield ``file:line: "phrase": write ...`` for each phrase that is kept out."""
    read = {".py": python_texts, ".md": markdown_texts, ".yaml": yaml_texts}[Path(path).suffix]
    for start, text, is_docstring in read(source):
        if is_docstring:
            opening = text.strip().split("\n")[0]
            for pattern, instead in _FIRST.items():
                if found := pattern.match(opening):
                    yield f'{path}:{start}: first line "{found[0]} ...": write {instead}'
        for pattern, instead in _PHRASES.items():
            for found in pattern.finditer(text):
                yield f'{path}:{start + text[: found.start()].count(chr(10))}: "{found[0]}": write {instead}'


def files() -> list[str]:
    """Return the files whose English is checked, relative to the project."""
    patterns = ["README.md", "CONTRIBUTING.md", "docs/**/*.md", "conf/**/*.yaml"]
    patterns += [f"{floor}/**/*.py" for floor in ("graphs", "mathamr", "experiments", "scripts")]
    found = {path.relative_to(ROOT) for pattern in patterns for path in ROOT.glob(pattern)}
    return sorted(path.as_posix() for path in found)


def _without_examples(docstring: str) -> str:
    """Blank doctests, of which output is data: from ``>>>`` to the next empty line."""
    lines, example = [], False
    for line in docstring.split("\n"):
        example = line.strip().startswith(">>>") or (example and bool(line.strip()))
        lines.append("" if example else line)
    return "\n".join(lines)


def test_the_english_is_plain() -> None:
    found = [problem for path in files() for problem in problems(path, (ROOT / path).read_text("utf-8"))]
    assert not found, "\n".join([f"{len(found)} phrases to replace", *found])


def test_documents_are_short() -> None:
    pages = [path for path in files() if path.endswith(".md")]
    lengths = {path: len((ROOT / path).read_text("utf-8").splitlines()) for path in pages}
    assert not {path: lines for path, lines in lengths.items() if lines > MAX_LINES.get(path, 200)}
