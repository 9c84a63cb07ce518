"""Imports run one way: between the floors, and within a floor (docs/architecture.md)."""

import ast
import re
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from graphlib import CycleError, TopologicalSorter
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from scripts.development.architecture import (
    DOCUMENT,
    FLOORS,
    LISTED,
    import_graph,
    imports_of,
    modules,
    written,
)

ROOT = Path(__file__).resolve().parents[1]
# Within a floor, a package imports only those that stand before it.
ORDER = {
    "graphs": (
        "errors",
        "digests",
        "row_digests",
        "whole_file",
        "shared_files",
        "database",
        "processes",
        "ids",
        "extensions",
        "corpus",
        "formulas",
        "amr",
        "graph",
        "stores",
    ),
    "mathamr": (
        "default_settings",
        "memory",
        "compiled",
        "maxsim",
        "model",
        "evaluation",
        "training",
        "text",
        "folder",
        "retrieval",
        "structure",
        "ranking",
        "negatives",
        "analysis",
        "search",
        "stages",
        "systems",
        "search_index",
        "pretrained",
    ),
}


def test_there_are_modules() -> None:
    assert len(modules()) > 30


def floor_of(name: str) -> int:
    return FLOORS.index(name.split(".")[0])


def test_a_floor_imports_only_floors_below() -> None:
    above = {
        name: {one for one in imports_of(path) if floor_of(one) > floor_of(name)} for name, path in modules().items()
    }
    assert {name: found for name, found in above.items() if found} == {}


def later_packages(name: str, imports: Iterable[str]) -> list[str]:
    """Return the imports of packages that stand after the module's own, on its floor."""
    floor, own, *_ = *name.split("."), ""
    order = ORDER.get(floor, ())
    return [
        other
        for other in imports
        if own in order
        and (parts := other.split("."))[0] == floor
        and len(parts) > 1
        and parts[1] != own
        and (parts[1] not in order or order.index(parts[1]) > order.index(own))
        and other in modules()
    ]


def test_a_package_imports_only_packages_before_it() -> None:
    later = {name: later_packages(name, imports_of(path)) for name, path in modules().items()}
    assert {name: found for name, found in later.items() if found} == {}
    assert later_packages("mathamr.model.encoder", ["mathamr.maxsim", "mathamr.systems.graph"]) == [
        "mathamr.systems.graph"
    ]


def cycle_of(graph: dict[str, set[str]]) -> list[str]:
    """Modules of which each imports the one before it, the first again as the last; none where there is no cycle."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_modules_import_each_other() -> None:
    assert cycle_of(import_graph(*LISTED)) == []
    assert sorted(cycle_of({"a": {"b"}, "b": {"c"}, "c": {"b"}})) == ["b", "b", "c"]


PACKAGES = sorted({name.rpartition(".")[0] for name in modules(*LISTED)} - {""})


def grouped(graph: Mapping[str, set[str]], parent: str) -> dict[str, set[str]]:
    """Return the graph of what lies directly in a package: modules, and packages as one node each.

    >>> graph = {"a.b.c": {"a.d"}, "a.d": {"a.b.e", "x"}, "a.b.e": set()}
    >>> {name: sorted(others) for name, others in sorted(grouped(graph, "a").items())}
    {'b': ['d'], 'd': ['b']}
    """
    found: dict[str, set[str]] = {}
    start = f"{parent}."
    for name, others in graph.items():
        if name.startswith(start):
            own = name[len(start) :].split(".")[0]
            inside = {other[len(start) :].split(".")[0] for other in others if other.startswith(start)}
            found.setdefault(own, set()).update(inside - {own})
    return found


@pytest.mark.parametrize("package", PACKAGES)
def test_no_folders_import_each_other(package: str) -> None:
    assert cycle_of(grouped(import_graph(*LISTED), package)) == []


def test_the_generated_parts_of_the_document_are_up_to_date() -> None:
    """``python scripts/development/architecture.py`` writes them."""
    text = DOCUMENT.read_text(encoding="utf-8")
    assert written(text) == text


def test_folders_and_modules_stay_small() -> None:
    rooms = Counter(
        path.parent for path in modules(*LISTED).values() if path.name not in ("__init__.py", "__main__.py")
    )
    full = {str(folder): count for folder, count in rooms.items() if count > 15}
    assert full == {}, "15 modules are the limit of a folder: move those of one subject into a folder of their own"
    lines = {name: len(path.read_text(encoding="utf-8").splitlines()) for name, path in modules(*LISTED).items()}
    long = {name: count for name, count in lines.items() if count > 400}
    assert long == {}, "400 lines are the limit of a module: move its second subject into a module of that name"


def test_the_quick_checks_name_what_exists() -> None:
    """Of a path that does not exist, pytest runs no test at all."""
    listed = re.search(
        r"^quick=\(\n(.*?)^\s*-m ", (ROOT / "scripts" / "test.sh").read_text(encoding="utf-8"), re.M | re.S
    )
    assert listed is not None
    paths = listed[1].split()
    assert len(paths) > 20
    assert [path for path in paths if not (ROOT / path).exists()] == []


def test_no_module_imports_what_mypy_skips() -> None:
    """What it would import so had no types."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]["overrides"]
    skipped, followed = (
        [name for one in settings if one.get("follow_imports") == how for name in one["module"]]
        for how in ("skip", "normal")
    )
    imports = re.compile(r"^ *(?:from +([\w.]+) +import +(.*)|import +([\w.]+))", re.MULTILINE)
    imported = set()
    for path in modules(*LISTED).values():
        for package, names, module in imports.findall(path.read_text(encoding="utf-8")):
            imported |= {module or package, *(f"{package}.{name}" for name in re.findall(r"\w+", names))}

    def matches(name: str, patterns: list[str]) -> bool:
        return any(name == pattern.removesuffix(".*") or fnmatchcase(name, pattern) for pattern in patterns)

    assert {"torch.distributed", "transformers.AutoTokenizer", "wandb"} <= imported
    assert [name for name in imported if matches(name, skipped) and not matches(name, followed)] == []


def test_the_docstring_of_a_commands_module_is_its_help() -> None:
    commands = 0
    for name, path in modules("experiments", "scripts").items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in tree.body:
            if isinstance(node, ast.FunctionDef) and "command" in map(ast.unparse, node.decorator_list):
                commands += node.name == "main"
                assert node.name != "main" or (ast.get_docstring(tree) and ast.get_docstring(node) is None), name
    assert commands > 20


def test_no_module_has_a_name_that_says_nothing() -> None:
    empty = {"utils", "helpers", "common", "misc"}
    assert not [name for name in modules() if empty & set(name.split("."))]


SLOW = {
    "bm25s",
    "graphs.amr.embedded.typed",
    "graphs.formulas.latex.parser",
    "ir_measures",
    "matplotlib",
    "networkx",
    "nltk",
    "pandas",
    "qdrant_client",
    "rich.console",
    "safetensors",
    "scipy",
    "sentence_transformers",
    "sklearn",
    "spacy",
    "sympy",
    "torch",
    "transformers",
    "wandb",
}


def test_an_experiment_is_planned_and_refused_without_slow_imports() -> None:
    program = (
        "import sys, experiments.run, experiments.report.figures.charts, experiments.report.writing\n"
        "import mathamr.retrieval, mathamr.text.encoder, mathamr.training.checkpoint\n"
        f"print(*sorted(set({sorted(SLOW)}) & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True)
    assert done.stdout.split() == []
    assert all(find_spec(name) for name in ("torch", "scipy", "matplotlib"))  # the names are those of real packages


@pytest.mark.parametrize("package", ["mathamr", "mathamr.training", "mathamr.retrieval"])
def test_a_package_gives_its_names_on_first_use(package: str) -> None:
    module = import_module(package)
    assert [name for name in module.__all__ if getattr(module, name, None) is None] == []
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        _ = module.nothing
    assert package != "mathamr" or "MathAMR" in dir(module)  # which an interpreter completes
