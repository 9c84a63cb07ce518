"""Headers of arrays that somebody has written by hand: numpy's errors in them are of many kinds, ours of one."""

from __future__ import annotations

import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from graphs.errors import MathAMRError
from graphs.formulas.latex import parse_latex
from graphs.graph.graph_maker import FormulaTrees
from mathamr.retrieval.bm25 import BM25Index
from mathamr.retrieval.scores import read_scores, write_scores
from mathamr.search.structured import StructuredFormulas
from mathamr.structure.index import StructureIndex
from mathamr.structure.posts import FormulasOfPosts
from mathamr.structure.storage import read_index, write_index
from mathamr.systems.sparse import SparseIndex
from mathamr.systems.structure import StructureSearch
from tests.mathamr.structure.test_alignment import RULES

HEADERS = [
    "{'descr': (",  # tokenize.TokenError
    "{'descr': '<i8', 'fortran_order': False, 'shape': (9" + 25 * "9" + ",)}",  # OverflowError
    "-" * 3000 + "1",  # RecursionError
]


def bm25(folder: Path) -> Callable[[], object]:
    BM25Index.build(["255"], [["series"]]).write(folder)
    return lambda: BM25Index.open(folder)


def learned_words(folder: Path) -> Callable[[], object]:
    SparseIndex(np.array(["255"]), sparse.csc_array(np.eye(1))).write(folder)
    return lambda: SparseIndex.open(folder)


def structures(folder: Path) -> Callable[[], object]:
    write_index(StructureIndex.build([parse_latex("x^2")], RULES), folder)
    return lambda: read_index(folder)


def scores(folder: Path) -> Callable[[], object]:
    write_scores(folder / "scores.npz", {"A.1": [("255", 1.0)]}, 1)
    return lambda: read_scores(folder / "scores.npz")


def posts_of_formulas(folder: Path) -> Callable[[], object]:
    posts = FormulasOfPosts(np.array([0, 1]), np.array([0]), 1)
    index = StructureIndex.build([parse_latex("x^2")], RULES)
    structured = StructuredFormulas(index, [("1", "255")])
    search = StructureSearch(FormulaTrees(None), index, posts, ["255"], 1, structured)
    search.write(folder)
    return lambda: StructureSearch.open(folder, FormulaTrees(None), 1)


@pytest.mark.parametrize("header", HEADERS, ids=["cut", "huge", "deep"])
@pytest.mark.parametrize("written", [bm25, learned_words, structures, scores, posts_of_formulas])
def test_a_header_by_hand_is_one_message(
    written: Callable[[Path], Callable[[], object]], header: str, tmp_path: Path
) -> None:
    opened = written(tmp_path)
    opened()
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode()
    for path in [path for path in tmp_path.rglob("*.np[yz]") if path.name != "arrays.npz" or written is structures]:
        if path.suffix == ".npy":
            path.write_bytes(array)
            continue
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
        with zipfile.ZipFile(path, "w") as archive:
            for name in names:
                archive.writestr(name, array)
    with pytest.raises(MathAMRError, match=r"damaged|cannot be read as|is no file of scores"):
        opened()
