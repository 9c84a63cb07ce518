r"""Passages of a Jupyter notebook: its Markdown cells.

>>> cells = [{"cell_type": "markdown", "source": ["# Primes\n", "There are *infinitely* many."]},
...          {"cell_type": "code", "source": "print(2)", "outputs": [{"text": "2"}]}]
>>> for passage in read_notebook("a.ipynb", json.dumps({"nbformat": 4, "cells": cells})):
...     print(passage.place, "|", passage.title, "|", passage.text)
cell-1:2 | Primes | There are infinitely many.

A place is a cell and a line in it; cells are numbered from 1. Code and outputs are left out, and never executed.
"""

from __future__ import annotations

import json

from graphs.errors import CorpusError
from mathamr.folder.markdown import read_into
from mathamr.folder.passages import Outline, Passage, spaced

SUFFIXES = (".ipynb",)


def read_notebook(file: str, text: str) -> list[Passage]:
    """Return the passages of a notebook; ``file`` is its path below the folder.

    Raises:
        CorpusError: the file is not a notebook.
    """
    try:
        content = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise CorpusError(f"is not a notebook: {error}") from error
    cells = content.get("cells") if isinstance(content, dict) else None
    if not isinstance(cells, list):
        raise CorpusError("is not a notebook of format 4: it has no list of cells; open and save it in Jupyter")
    outline = Outline(file)
    for number, cell in enumerate(cells, 1):
        if not isinstance(cell, dict) or cell.get("cell_type") != "markdown":
            continue
        source = cell.get("source", "")
        lines = source if isinstance(source, list) else [source]
        if all(isinstance(line, str) for line in lines):
            markdown = spaced("".join(lines))
            read_into(outline, markdown, lambda line, number=number: f"cell-{number}:{line}")  # type: ignore[misc]
    return outline.close()
