"""Structure index as files: ``arrays.npz`` with trees and postings, ``names.json`` with symbols, edges and rules.

>>> import tempfile
>>> from graphs.formulas.latex import parse_latex
>>> rules = Scoring.by_default()
>>> index = StructureIndex.build([parse_latex("x^2"), parse_latex("y^2")], rules)
>>> folder = Path(tempfile.mkdtemp())
>>> write_index(index, folder)
>>> read_index(folder).search(parse_latex("x^2"), 2) == index.search(parse_latex("x^2"), 2)
True

Nothing is pickled. Arrays that do not belong together are refused, so that no search reads beyond an array.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from graphs.errors import StoreError, faults_as
from graphs.whole_file import write_whole
from mathamr.structure.forest import KINDS, MAX_EDGES, Forest, Names
from mathamr.structure.index import StructureIndex
from mathamr.structure.postings import Postings
from mathamr.structure.scoring import VARIABLE, Scoring, symbol_class

ARRAYS, NAMES = "arrays.npz", "names.json"
_FOREST = {"bounds": np.int64, "symbols": np.int32, "classes": np.int32, "parents": np.int64, "edges": np.int32}
_POSTINGS = {"keys": np.int64, "starts": np.int64, "formulas": np.int32, "counts": np.int32, "impacts": np.float32}
Array = npt.NDArray[Any]


def write_index(index: StructureIndex, folder: Path) -> None:
    """Write an index to a new folder, or into an empty one."""
    folder.mkdir(parents=True, exist_ok=True)
    arrays: dict[str, Array] = {f"postings.{name}": getattr(index.postings, name) for name in _POSTINGS}
    for kind, forest in zip(KINDS, index.forests, strict=True):
        arrays |= {f"{kind}.{name}": getattr(forest, name) for name in _FOREST}
    with (folder / ARRAYS).open("wb") as file:
        np.savez(file, **arrays)  # type: ignore[arg-type]  # numpy types keywords as its own option
    rules = {one.name: getattr(index.scoring, one.name) for one in fields(Scoring)}
    content = {"symbols": index.names.symbols(), "edges": index.names.edges(), "scoring": rules}
    write_whole(folder / NAMES, json.dumps(content))


def read_index(folder: Path) -> StructureIndex:
    """Read what :func:`write_index` wrote; raise StoreError for files that are missing, damaged or do not fit."""
    with faults_as(StoreError, "the structure index is damaged ({}); build the index again", folder):
        names, scoring = _read_names(json.loads((folder / NAMES).read_text(encoding="utf-8")))
        with (folder / ARRAYS).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            forests = tuple(Forest(**_some(arrays, kind, _FOREST)) for kind in KINDS)
            for forest in forests:
                _check_forest(forest, names)
            if len(forests[0]) != len(forests[1]):
                raise ValueError("layout trees and operator trees are of different numbers of formulas")
            postings = Postings(**_some(arrays, "postings", _POSTINGS), size=len(forests[0]))
        _check_postings(postings)
    return StructureIndex(names, (forests[0], forests[1]), postings, scoring)


def _read_names(content: Mapping[str, Any]) -> tuple[Names, Scoring]:
    symbols, edges = ([str(name) for name in content[key]] for key in ("symbols", "edges"))
    if len(set(symbols)) < len(symbols) or len(set(edges)) < len(edges) or edges[:1] != [""]:
        raise ValueError("a symbol or an edge label has two numbers")
    if symbols[:1] != [VARIABLE]:
        raise ValueError(f"symbol 0 is not the class of variables, {VARIABLE}")
    scoring = Scoring(**{one.name: float(content["scoring"][one.name]) for one in fields(Scoring)})
    scoring.check()
    return Names.of(symbols, edges), scoring


def _some(arrays: Mapping[str, Array], part: str, types: Mapping[str, Any]) -> dict[str, Array]:
    """Return the arrays of a part, each of its type and of one dimension."""
    found = {name: arrays[f"{part}.{name}"] for name in types}
    for name, array in found.items():
        if array.dtype != types[name] or array.ndim != 1:
            raise ValueError(f"{part}.{name} is of type {array.dtype} and {array.ndim} dimensions")
    return found


def _check_forest(forest: Forest, names: Names) -> None:
    bounds, size = forest.bounds, len(forest.symbols)
    _check_steps(bounds, size, "bounds of trees")
    if {len(own) for own in (forest.classes, forest.parents, forest.edges)} != {size}:
        raise ValueError("symbols, classes, parents and edges are of different lengths")
    symbols = names.symbols()
    number_of = {symbol: number for number, symbol in enumerate(symbols)}
    _check_range(forest.symbols, 0, len(symbols), "symbols")
    class_of = np.array([number_of.get(symbol_class(symbol), -1) for symbol in symbols], dtype=np.int64)
    if not np.array_equal(class_of[forest.symbols], forest.classes):
        raise ValueError("classes of other symbols")
    _check_range(forest.edges, 0, min(len(names.edges()), MAX_EDGES), "edges")
    first = np.repeat(bounds[:-1], np.diff(bounds))
    nodes = np.arange(size)
    if not (np.where(nodes == first, forest.parents == -1, (forest.parents >= first) & (forest.parents < nodes))).all():
        raise ValueError("a parent that does not come before its child in the same tree")


def _check_postings(postings: Postings) -> None:
    size = len(postings.formulas)
    if (np.diff(postings.keys) <= 0).any():
        raise ValueError("keys of postings are not in order")
    if len(postings.starts) != len(postings.keys) + 1:
        raise ValueError("keys and places of postings are of different numbers")
    _check_steps(postings.starts, size, "places of postings")
    if len(postings.counts) != size or len(postings.impacts) != size:
        raise ValueError("postings are of different lengths")
    _check_range(postings.formulas, 0, postings.size, "formulas of postings")
    if (postings.counts < 1).any() or not np.isfinite(postings.impacts).all() or (postings.impacts < 0).any():
        raise ValueError("a posting without a count or an impact")


def _check_steps(steps: Array, end: int, name: str) -> None:
    if not len(steps) or steps[0] != 0 or steps[-1] != end or (np.diff(steps) < 0).any():
        raise ValueError(f"{name} do not go from 0 to {end:,}")


def _check_range(numbers: Array, low: int, high: int, name: str) -> None:
    if len(numbers) and (numbers.min() < low or numbers.max() >= high):
        raise ValueError(f"{name} are not from {low} to {high - 1:,}")
