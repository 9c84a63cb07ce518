"""Docstrings of an installed package, read from its source with ``ast``: nothing of it is imported or run.

>>> names = [found.name for found in read_package("networkx") if found.name.endswith("katz_centrality")]
>>> names
['networkx.algorithms.centrality.katz.katz_centrality']

Docstrings are found in the object itself, in ``add_newdoc(..., name, text)`` (compiled functions of NumPy and SciPy),
and in ``name = text`` of mpmath's ``function_docs``.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import re
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

#: Start of a formula in reStructuredText, or a formula between dollar signs.
FORMULA = re.compile(r"\.\.\s+math\s*::|:math:`|\$[^$\n]+\$")
_SKIPPED = frozenset(["tests", "testing", "benchmarks", "bench", "examples", "conftest.py", "setup.py"])
_DOCUMENTED = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
_KINDS: dict[type, str] = {ast.Module: "module", ast.ClassDef: "class"}  # others are functions and methods


@dataclass(frozen=True, slots=True)
class Docstring:
    """Docstring with a formula, and the dotted name of its object, in which private modules are left out."""

    name: str
    kind: str  # function, class, method or module
    text: str


def read_package(package: str) -> list[Docstring]:
    """Return the docstrings of ``package`` that contain formulas, by file and line; none if it is not installed.

    A file that this version of Python cannot parse is skipped.
    """
    spec = importlib.util.find_spec(package)  # of a name without dots: finds, does not import
    if spec is None or spec.origin is None:
        return []
    root = Path(spec.origin).parent
    docstrings: list[Docstring] = []
    taken: set[str] = set()
    for path in sorted(root.rglob("*.py")):
        parts = path.relative_to(root).parts
        if _SKIPPED.intersection(parts):
            continue
        source = path.read_text(encoding="utf-8", errors="replace")
        is_index = parts[-1] == "function_docs.py"
        if not is_index and not FORMULA.search(source):
            continue
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # about escapes in the docstrings of others
                tree = ast.parse(source)
        except (SyntaxError, ValueError):
            continue
        modules = [package, *(part.removesuffix(".py") for part in parts)]
        for qualified, kind, text in _docstrings(tree, is_index):
            if not (is_index or FORMULA.search(text)):
                continue
            public = [part for part in modules if not part.startswith("_")]
            name = ".".join([*public, *qualified])
            if name in taken:
                name = ".".join([*modules, *qualified])
            if name not in taken:
                taken.add(name)
                docstrings.append(Docstring(name, kind, text))
    return docstrings


def _docstrings(tree: ast.Module, is_index: bool) -> Iterator[tuple[list[str], str, str]]:
    """Yield ``(qualified name, kind, docstring)`` of all objects in a module, outer before inner."""
    stack: list[tuple[ast.AST, list[str], bool]] = [(tree, [], False)]
    while stack:
        node, qualified, in_class = stack.pop()
        if isinstance(node, _DOCUMENTED):
            if text := ast.get_docstring(node):
                kind = _KINDS.get(type(node), "method" if in_class else "function")
                yield qualified, kind, text
        elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
            yield from _added(node.value)
        elif is_index and isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            text = _string(node.value)
            if text:
                yield [node.targets[0].id], "function", inspect.cleandoc(text)
        if isinstance(node, (ast.Module, ast.ClassDef, ast.If, ast.Try, ast.With)):
            inner = isinstance(node, ast.ClassDef)
            for child in reversed([child for child in ast.iter_child_nodes(node) if isinstance(child, ast.stmt)]):
                child_name = getattr(child, "name", None) if isinstance(child, _DOCUMENTED) else None
                stack.append((child, qualified if child_name is None else [*qualified, child_name], inner))


def _added(call: ast.Call) -> Iterator[tuple[list[str], str, str]]:
    """Yield the docstring of ``add_newdoc(name, text)``, ``(module, name, text)`` or ``(..., (method, text))``."""
    function = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if function not in ("add_newdoc", "add_docstring") or len(call.args) < 2:
        return
    name = _string(call.args[-2])
    last = call.args[-1]
    if isinstance(last, ast.Tuple) and len(last.elts) == 2:
        method, text = _string(last.elts[0]), _string(last.elts[1])
        if name and method and text:
            yield [name, method], "method", inspect.cleandoc(text)
    elif name and (text := _string(last)):
        yield [name], "function", inspect.cleandoc(text)


def _string(node: ast.AST) -> str | None:
    """Return a string constant, alone or as the receiver of a call such as ``"...".replace(...)``; else None."""
    while isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
        node = node.func.value
    return node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else None
