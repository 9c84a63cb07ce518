"""Published trees that an index keeps: those of its topics alone."""

from __future__ import annotations

from pathlib import Path

from graphs.corpus.files import FormulaFiles
from graphs.corpus.packed import PackedFile
from graphs.corpus.post import Post, Topic
from graphs.formulas.store import FormulaStore, build
from mathamr.systems.searchable.kept import keep_formulas
from tests.graphs.formulas.test_formula_store import HEADER, opt_of, post_row, slt_of, write_tsv


def test_only_formulas_of_topics_are_kept_and_they_are_equal(tmp_path: Path) -> None:
    slt = write_tsv(tmp_path / "slt/1.tsv", HEADER, [post_row(i, slt_of(i), visual=i) for i in range(100, 120)])
    opt_rows = [post_row(i, opt_of(i), visual=i) for i in range(100, 120)]
    opt_rows[3][-1] = "<math><piecewise/></math>"  # fails
    opt = write_tsv(tmp_path / "opt/1.tsv", HEADER, opt_rows)
    build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(slt),), (PackedFile(opt),), ()))
    body = "".join(f'<span class="math-container" id="{number}">x_{number}</span> and ' for number in (101, 103, 7))
    topics = [Topic("A.1", Post("A.1", "topic", body=body))]
    keep_formulas(tmp_path / "formulas.db", topics, tmp_path / "kept.db")
    wanted = ["101", "103"]
    with FormulaStore.open(tmp_path / "formulas.db") as whole, FormulaStore.open(tmp_path / "kept.db") as kept:
        assert len(kept) == 2
        assert kept.get_many(wanted) == whole.get_many(wanted)
        assert kept.visual_ids(wanted) == whole.visual_ids(wanted)
        assert kept.get("103") is not None
        assert kept.get("103").errors  # type: ignore[union-attr]
        assert kept.get("104") is None
