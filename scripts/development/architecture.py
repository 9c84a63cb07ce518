"""Write the generated parts of docs/modules.md: the import graph and the list of modules.

    python scripts/development/architecture.py            # rewrite both parts
    python scripts/development/architecture.py --check    # exit code 1 if they are out of date

The import graph is a Mermaid drawing of packages. An arrow means "imports", and is left out if a longer path implies
it. The list has the first line of each module's docstring.
"""

from __future__ import annotations

import argparse
import ast
import sys
from functools import cache
from pathlib import Path

import networkx

ROOT = Path(__file__).resolve().parents[2]
DOCUMENT = ROOT / "docs" / "modules.md"
FLOORS = ("graphs", "mathamr", "experiments")
LISTED = (*FLOORS, "scripts")


@cache
def modules(*floors: str) -> dict[str, Path]:
    """Return the modules below some folders by their dotted names; packages included."""
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__"): path
        for floor in floors or FLOORS
        for path in sorted((ROOT / floor).rglob("*.py"))
    }


@cache
def imports_of(path: Path) -> frozenset[str]:
    """Return the names that a file imports from this project, when it is loaded or run; not for type checking only."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test):
            node.body = []
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level or node.module is None:
                raise ValueError(f"{path}: a relative import; write the whole name")
            names.add(node.module)
            names.update(f"{node.module}.{alias.name}" for alias in node.names)
    return frozenset(name for name in names if name.split(".")[0] in LISTED)


def import_graph(*floors: str) -> dict[str, set[str]]:
    """Return the modules that each module imports."""
    known = modules(*floors)
    return {name: {other for other in imports_of(path) if other in known} - {name} for name, path in known.items()}


def drawing() -> str:
    """Return the import graph of packages, as Mermaid draws it; floors are frames."""
    packages = {name: ".".join(name.split(".")[:2]) for name in modules() if name.count(".")}
    graph: networkx.DiGraph[str] = networkx.DiGraph()
    for name, others in import_graph().items():
        own = packages.get(name)
        ends = {packages[other] for other in others if other in packages}
        graph.add_edges_from((own, end) for end in ends if own is not None and end != own)
    reduced = networkx.transitive_reduction(graph)
    lines = ["```mermaid", "flowchart TD"]
    for floor in reversed(FLOORS):
        lines.append(f"    subgraph {floor}")
        members = sorted(node for node in reduced if node.startswith(f"{floor}."))
        lines += [f'        {_id(node)}["{node.removeprefix(f"{floor}.")}"]' for node in members]
        lines.append("    end")
    lines += [f"    {_id(start)} --> {_id(end)}" for start, end in sorted(reduced.edges)]
    return "\n".join([*lines, "```"])


def _id(node: str) -> str:
    """Return the id of a package in the drawing; Mermaid has a meaning for some words and signs."""
    return node.replace(".", "_")


def listing() -> str:
    """Return every module with the first line of its docstring, folder by folder."""
    lines: list[str] = []
    folder = None
    listed = (path for path in modules(*LISTED).values() if path.name not in ("__init__.py", "__main__.py"))
    for path in sorted(listed, key=lambda path: (path.parent.relative_to(ROOT).parts, path.name)):
        if path.parent != folder:
            folder = path.parent
            lines += ["", f"**{folder.relative_to(ROOT)}/**", ""]
        lines.append(f"- `{path.stem}`: {first_line(path)}")
    return "\n".join(lines[1:])


def first_line(path: Path) -> str:
    """Return the first paragraph of a module's docstring as one line."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
    if not text:
        raise ValueError(f"{path} has no docstring; begin the module with one")
    return " ".join(text.split("\n\n")[0].split()).removesuffix(".")


def written(text: str) -> str:
    """Return a document with its generated parts made anew, between ``<!-- NAME -->`` and ``<!-- end -->``."""
    for name, content in (("import graph", drawing()), ("modules", listing())):
        begin = f"<!-- {name}: scripts/development/architecture.py -->\n"
        before, found, rest = text.partition(begin)
        if not found:
            raise ValueError(f"{DOCUMENT} has no line {begin.strip()}")
        text = f"{before}{begin}\n{content}\n\n<!-- end -->{rest.partition('<!-- end -->')[2]}"
    return text


def main() -> int:
    """Rewrite or check the document; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    given = parser.parse_args()
    old = DOCUMENT.read_text(encoding="utf-8")
    new = written(old)
    if new == old:
        return 0
    if given.check:
        print(f"{DOCUMENT} is out of date; run {Path(__file__).relative_to(ROOT)}")
        return 1
    DOCUMENT.write_text(new, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
