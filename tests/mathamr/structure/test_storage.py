"""Structure indexes on disk: what was written is searched as before, and damage is refused."""

import json
import random
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from graphs.errors import StoreError
from graphs.formulas.tree import ParsedFormula
from mathamr.structure.index import StructureIndex
from mathamr.structure.storage import ARRAYS, NAMES, read_index, write_index
from tests.mathamr.structure.test_alignment import RULES, grown

Arrays = dict[str, Any]


def formulas(count: int) -> list[ParsedFormula]:
    generator = random.Random(count)
    return [
        ParsedFormula(grown(generator, "slt", generator.randint(1, 9)) if generator.random() < 0.9 else None, None)
        for _ in range(count)
    ]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_index(StructureIndex.build(formulas(200), RULES), tmp_path)
    return tmp_path


def test_a_stored_index_finds_what_it_found_before(folder: Path) -> None:
    before, after = StructureIndex.build(formulas(200), RULES), read_index(folder)
    assert (len(after), after.scoring, after.nbytes) == (200, before.scoring, before.nbytes)
    for number, query in enumerate(formulas(20)):
        assert after.search(query, 10) == before.search(query, 10)
        assert after.alignments(query, number) == before.alignments(query, number)
    assert [after.tree(number, "slt") for number in range(200)] == [one.slt for one in formulas(200)]


def _shift(name: str, by: int) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name] + arrays[name].dtype.type(by)

    return change


def _cut(name: str) -> Callable[[Arrays], None]:
    def change(arrays: Arrays) -> None:
        arrays[name] = arrays[name][:-1]

    return change


def _spoil(arrays: Arrays) -> None:
    arrays["postings.impacts"][0] = np.nan


def _pickled(arrays: Arrays) -> None:
    arrays["slt.symbols"] = np.array([{}], dtype=object)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (_shift("slt.symbols", 1 << 20), "symbols are not from 0"),
        (_shift("slt.classes", 1), "classes of other symbols"),
        (_shift("slt.parents", 1), "a parent that does not come before"),
        (_shift("slt.edges", -9), "edges are not from 0"),
        (_shift("slt.bounds", 1), "bounds of trees do not go from 0"),
        (_cut("slt.parents"), "different lengths"),
        (_cut("opt.bounds"), "different numbers of formulas"),
        (_shift("postings.formulas", 9), "formulas of postings are not from 0"),
        (_shift("postings.counts", -99), "a posting without a count"),
        (_shift("postings.starts", 1), "places of postings do not go from 0"),
        (_cut("postings.keys"), "keys and places of postings"),
        (_spoil, "a posting without a count or an impact"),
        (_pickled, "pickle"),
    ],
)
def test_arrays_that_do_not_belong_together_are_refused(
    change: Callable[[Arrays], None], message: str, folder: Path
) -> None:
    with np.load(folder / ARRAYS) as stored:
        arrays = dict(stored)
    change(arrays)
    np.savez(folder / ARRAYS, **arrays)
    with pytest.raises(StoreError, match=message):
        read_index(folder)


@pytest.mark.parametrize(
    "change", [{"symbols": ["V!x"]}, {"symbols": ["V!", "V!"]}, {"edges": ["a"]}, {"scoring": {}}, {"scoring": None}]
)
def test_names_that_do_not_fit_are_refused(change: dict[str, Any], folder: Path) -> None:
    content = json.loads((folder / NAMES).read_text())
    (folder / NAMES).write_text(json.dumps(content | change))
    with pytest.raises(StoreError, match="structure index is damaged"):
        read_index(folder)


@pytest.mark.parametrize("name", [ARRAYS, NAMES])
def test_a_file_cut_short_or_missing_is_refused(name: str, folder: Path) -> None:
    (folder / name).write_bytes((folder / name).read_bytes()[:100])
    with pytest.raises(StoreError, match="structure index is damaged"):
        read_index(folder)
    (folder / name).unlink()
    with pytest.raises(StoreError, match="structure index is damaged"):
        read_index(folder)


def test_a_flipped_bit_of_the_directory_is_a_message_or_changes_nothing(folder: Path) -> None:
    """The directory of a zip file has flags: of passwords, and of methods that cannot be read."""
    content = (folder / ARRAYS).read_bytes()
    query = formulas(1)[0]
    before = read_index(folder).search(query, 10)
    start = content.index(b"PK\x01\x02")
    for place in range(start, len(content), 2):
        changed = bytearray(content)
        changed[place] ^= 1 << (place // 2 % 8)
        (folder / ARRAYS).write_bytes(changed)
        with suppress(StoreError):
            assert read_index(folder).search(query, 10) == before
