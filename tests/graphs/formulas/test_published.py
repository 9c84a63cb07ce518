"""Posts by the visual ids of their formulas, from whichever representation is whole."""

from pathlib import Path

from graphs.corpus.files import FormulaFiles
from graphs.corpus.packed import PackedFile
from graphs.formulas.published import posts_with_visual_ids

HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"


def table(path: Path, number: int, kind: str = "answer", issue: str = "") -> PackedFile:
    path.write_text(f"{HEADER}{number}\t{number}\t1\t{kind}\t\t\t7\t{issue}\tx\n")
    return PackedFile(path)


def test_posts_of_a_table_that_one_representation_lacks_are_found(tmp_path: Path) -> None:
    latex = (table(tmp_path / "latex.tsv", 1),)
    slt = tuple(table(tmp_path / f"slt-{number}.tsv", number) for number in (1, 2))
    assert posts_with_visual_ids(FormulaFiles(latex, slt, (), ()), {"7"}) == {"1", "2"}
    assert posts_with_visual_ids(FormulaFiles(latex, (), (), ()), {"7"}) == {"1"}
    assert posts_with_visual_ids(FormulaFiles((), (), (), ()), {"7"}) == set()


def test_formulas_of_comments_and_missing_ones_do_not_count(tmp_path: Path) -> None:
    kinds = [("comment", ""), ("answer", "d"), ("answer", "dv"), ("answer", "v"), ("title", "")]
    latex = tuple(table(tmp_path / f"{number}.tsv", number, *kind) for number, kind in enumerate(kinds, 1))
    assert posts_with_visual_ids(FormulaFiles(latex, (), (), ()), {"7"}) == {"4", "5"}
