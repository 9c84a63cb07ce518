"""Numbers in tables are in the column of their measure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.documents.blocks import PAGES

_FRACTION = re.compile(r"\d\.\d")


def _rows(text: str) -> Iterator[tuple[tuple[str, ...], tuple[str, ...]]]:
    """Yield the first four fractions of each row of a table, and the names of their columns."""
    header: list[str] = []
    for line in text.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")] if line.startswith("|") else []
        header = (header or cells) if cells else []
        found = [(name, cell) for name, cell in zip(header, cells, strict=False) if _FRACTION.search(cell)][:4]
        if len(found) == 4:
            names, values = zip(*found, strict=True)
            yield values, names


def _copied(text: str) -> list[tuple[str, ...]]:
    """Return the rows of numbers that another table has in columns of other names."""
    first: dict[tuple[str, ...], tuple[str, ...]] = {}
    return [values for values, names in _rows(text) if first.setdefault(values, names) != names]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_no_row_is_a_copy_of_one_with_other_columns(page: Path) -> None:
    assert not _copied(page.read_text("utf-8"))


def test_a_row_copied_into_another_table_is_found() -> None:
    table = "| model | {} | b | c | d |\n|---|---|---|---|---|\n| x | 0.1 | 0.2 | 0.3 | 0.4 |\n"
    assert not _copied(table.format("a") + "\n" + table.format("a"))
    assert _copied(table.format("a") + "\n" + table.format("e")) == [("0.1", "0.2", "0.3", "0.4")]
