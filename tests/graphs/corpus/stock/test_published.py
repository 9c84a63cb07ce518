"""What is there of a published tree, counted; and what is said when parts of it are missing, cut off or in conflict."""

from __future__ import annotations

import csv
import shutil
from collections import Counter
from pathlib import Path

import pytest

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.packed import PackedFile
from graphs.corpus.stock.holdings import Holdings
from graphs.corpus.stock.published import PublishedStock, count_rows
from graphs.errors import CorpusError
from scripts.benchmarks.published_tree import Tree

POSTS = 120
_HEADER = "its header lacks the columns id and post_id (or topic_id)"
_ENCODING = "is not UTF-8; save it as UTF-8"
MINI = Path(__file__).resolve().parents[4] / ".." / "shared" / "data" / "arqmath-mini"


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Counter[str]]:
    root = tmp_path_factory.mktemp("published")
    return root, Tree(root, POSTS).write()


@pytest.fixture
def tree(published: tuple[Path, Counter[str]], tmp_path: Path) -> Path:
    """A copy that a test may spoil."""
    return Path(shutil.copytree(published[0], tmp_path / "tree"))


def holdings(root: Path) -> Holdings:
    stocktaking = PublishedStock(root)
    for step in stocktaking.steps():
        step.run(lambda count: None)
    return stocktaking.holdings()


def missing(found: Holdings) -> dict[str, tuple[str, str]]:
    return {one.what: (one.consequence, one.part) for one in found.missing}


def remove(root: Path, *patterns: str) -> None:
    for pattern in patterns:
        found = list(root.rglob(pattern))
        assert found, pattern
        for path in found:
            path.unlink()


def test_a_whole_published_tree_is_counted(published: tuple[Path, Counter[str]]) -> None:
    root, written = published
    found = holdings(root)
    assert (found.missing, found.reason) == ((), "")
    assert written["posts.question"] + written["posts.answer"] == POSTS
    for key in ("posts.question", "posts.answer", "posts.with_formulas", "accepted", "links"):
        assert found.counts[key] == written[key], key
    for name in ("latex", "slt", "opt"):
        assert found.counts[f"formulas.{name}"] == written["formulas"]
        assert found.counts[f"formulas.{name}.tables"] == 101
    for year in (2020, 2021, 2022):
        assert found.counts[f"topic_trees.{year}"] == written[f"topic_trees.{year}"]
        for task in (1, 2):
            judgments = written[f"judgments.task{task}.{year}.official"]
            assert found.counts[f"topics.task{task}.{year}"] == written[f"topics.task{task}.{year}"]
            assert found.counts[f"judgments.task{task}.{year}"] == judgments
            assert found.counts[f"judgments.task{task}.{year}.official"] == judgments
    assert found.counts["judgments.task1.2021.all"] == written["judgments.task1.2021.all"]
    assert found.counts["judgments.task1.2021.official.topics"] == 71
    assert 0 < found.counts["judgments.task1.2021.official.relevant"] < found.counts["judgments.task1.2021"]


def test_every_step_reads_what_it_announces(published: tuple[Path, Counter[str]]) -> None:
    for step in PublishedStock(published[0]).steps():
        read: list[int] = []
        step.run(read.append)
        assert sum(read) == step.size, step.name


def test_missing_parts_are_named_with_what_they_make_impossible(tree: Path) -> None:
    remove(tree, "opt_representation_v3.zip", "PostLinks*", "Topics_Task1_2021*", "qrel_task2_2021*")
    remove(tree, "Topics_Formulas_SLT*", "qrel_task1_2022_official.tsv")
    found = holdings(tree)
    told = missing(found)
    assert found.reason == ""
    assert told == {
        "links between posts": ("train.positives=duplicates has no duplicates", "collection"),
        "Content MathML (operator trees) of the formulas of posts": (
            "operator trees are made from LaTeX instead",
            "formulas",
        ),
        "topics of Task 1 of 2021": ("2021 cannot be searched in Task 1: leave it out of data.years", "topics"),
        "judgments of Task 2 of 2021": ("2021 cannot be scored in Task 2", "qrels"),
        "Presentation MathML (symbol layout trees) of the topic formulas of 2022": (
            "symbol layout trees of these topics are made from LaTeX instead",
            "topics",
        ),
        "official judgments of Task 1 of 2022": (
            "data.judgments=all reads the others; published scores cannot be compared with",
            "qrels",
        ),
    }
    assert found.counts["topic_trees.2022"] == 0
    assert found.counts["topic_trees.2022.opt"] > 0
    assert found.counts["judgments.task1.2022"] == found.counts["judgments.task1.2022.all"]


def test_without_posts_or_without_a_judged_year_no_experiment_can_run(tree: Path) -> None:
    remove(tree, "qrel_official_task1", "qrel_task1_*")
    assert holdings(tree).reason == "no year has both topics and judgments of Task 1"
    remove(tree, "Posts.V1.3.zip")
    found = holdings(tree)
    assert found.reason == "there are no posts"
    assert missing(found)["posts"] == ("nothing can be trained or searched", "collection")


def test_a_folder_with_nothing_in_it_lacks_everything(tmp_path: Path) -> None:
    found = holdings(tmp_path)
    assert found.counts == {}
    assert {one.part for one in found.missing} == {"collection", "formulas", "topics", "qrels"}
    with pytest.raises(CorpusError, match="not a folder"):
        PublishedStock(tmp_path / "nowhere")


def test_posts_that_break_off_are_counted_to_the_break(tmp_path: Path) -> None:
    rows = ['<row Id="1" PostTypeId="1" AcceptedAnswerId="2" Body="x"/>', '<row Id="2" PostTypeId="2" ParentId="1"/>']
    rows += ['<row PostTypeId="1"/>', '<row Id="3" PostTypeId="5"/>', '<row Id="4" PostTyp']
    (tmp_path / "Posts.V1.3.xml").write_text("<posts>\n" + "\n".join(rows))
    found = holdings(tmp_path)
    assert {key: found.counts[key] for key in found.counts if key.startswith("posts")} == {
        "posts.question": 1,
        "posts.answer": 1,
        "posts.with_formulas": 0,
        "posts.broken": 1,
        "posts.other": 1,
    }
    assert found.counts["accepted"] == 1
    assert not any("accepted" in what for what in missing(found))
    assert any(what.startswith("the end of the posts") and "Posts.V1.3.xml:6" in what for what in missing(found))


def test_accepted_answers_outside_the_posts_are_missing(tmp_path: Path) -> None:
    rows = ['<row Id="1" PostTypeId="1" AcceptedAnswerId="9" Body="x"/>', '<row Id="2" PostTypeId="2" ParentId="1"/>']
    (tmp_path / "Posts.V1.3.xml").write_text(f"<posts>{''.join(rows)}</posts>")
    assert "accepted answers: none of 1 is in the collection" in missing(holdings(tmp_path))


def test_files_in_conflict_are_named(tree: Path) -> None:
    (tree / "qrel_task1_2022_official.tsv").write_text("A.301\t0\t7\t3\n")
    (tree / "Posts.xml").write_text('<posts><row Id="1" PostTypeId="1"/></posts>')
    found = holdings(tree)
    assert found.reason == ""  # Posts.xml has no version, so Posts.V1.3.xml is the newest
    assert found.unread["Posts.xml"] == "older than version 1.3"
    (conflict,) = [
        what for what in missing(found) if what.startswith("one file for official judgments of Task 1, 2022")
    ]
    assert "ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_official.tsv" in conflict


def test_what_stops_every_experiment_is_the_reason(tree: Path) -> None:
    copy = tree / "copy" / "latex_representation_v3"
    copy.mkdir(parents=True)
    (copy / "1.tsv").write_text("id\tpost_id\tformula\n1\t7\tx\n")
    reason = holdings(tree).reason
    assert reason.startswith("one file for LaTeX of the formulas: there are ")
    assert reason.endswith("; experiments stop there; keep one")
    with pytest.raises(CorpusError, match="cannot tell which of"):
        ArqMath(tree).formulas()
    shutil.rmtree(copy.parent)
    assert holdings(tree).reason == ""
    (tree / "PostLinks.V1.3.xml").write_text("<postlinks/>")  # only duplicates need one
    assert holdings(tree).reason == ""
    (tree / "Formula_topics_latex_V2.0.tsv").write_text("id\ttopic_id\tformula\nq_1\tA.1\tx\n")
    assert holdings(tree).reason.startswith("one file for LaTeX of the topic formulas of 2020")


def test_additional_judgments_alone_score_no_year(tree: Path) -> None:
    remove(tree, "qrel_official_task1", "qrel_task1_*")
    (tree / "qrel_task1_2022_additional.tsv").write_text("A.301\t0\t2\t1\n")
    found = holdings(tree)
    assert found.reason == "no year has both topics and judgments of Task 1"
    assert found.counts["judgments.task1.2022.additional"] == 1
    assert "judgments.task1.2022" not in found.counts
    assert "judgments of Task 1 of 2022" in missing(found)


def test_damaged_posts_are_counted(tmp_path: Path) -> None:
    rows = ['<row Id="1" PostTypeId="1"/>', '<row Id="2" PostTypeId="2" Body="&x;"/>', '<row Id="3" PostTypeId="2"/>']
    (tmp_path / "Posts.xml").write_text("\n".join(["<posts>", *rows, "</posts>"]))
    found = holdings(tmp_path)
    assert (found.counts["posts.question"], found.counts["posts.answer"], found.counts["posts.damaged"]) == (1, 1, 1)
    assert any(what.startswith("1 damaged post (the first: ") and ":3: broken XML" in what for what in missing(found))


def test_posts_that_experiments_leave_out_are_named(tmp_path: Path) -> None:
    rows = [f'<row Id="{post_id}" PostTypeId="2" Body="x"/>' for post_id in ("1", "2", "2", "a b")]
    (tmp_path / "Posts.xml").write_text(f"<posts>{' '.join(rows)}</posts>")
    found = holdings(tmp_path)
    assert (found.counts["posts.answer"], found.counts["posts.broken"], found.counts["posts.repeated"]) == (3, 1, 1)
    told = missing(found)
    assert "1 row of posts without a usable id, or without a kind" in told
    assert "distinct ids: 1 post has the id of an earlier one" in told


def test_formulas_that_one_representation_lacks_are_told(tmp_path: Path) -> None:
    for name, formula, rows in (("latex", "x", 3), ("slt", "<math><mi>x</mi></math>", 1)):
        (tmp_path / f"{name}_representation_v3").mkdir()
        lines = [f"{number}\t7\t{formula}\n" for number in range(rows)]
        (tmp_path / f"{name}_representation_v3/1.tsv").write_text("".join(["id\tpost_id\tformula\n", *lines]))
    assert "2 of 3 rows with Presentation MathML (symbol layout trees) of formulas" in missing(holdings(tmp_path))


@pytest.mark.parametrize(
    ("place", "content", "note"),
    [
        ("opt_representation_v3/1.tsv", b"id\tpostid\tformula\n", _HEADER),
        ("opt_representation_v3/more.tsv", b"1\t7\tx\n", _HEADER),
        ("topics/Topics_2021_Formulas_OPT_V1.1.tsv", b"q_1\tB.201\tx\n", _HEADER),
        ("Topics_Formulas_SLT.V0.1.tsv", "id\ttopic_id\tformula\n".encode("utf-16"), _ENCODING),
        ("opt_representation_v3/1.tsv", "id\tpost_id\tformula\n".encode("utf-16"), _ENCODING),
        ("qrel_task1_2020.tsv", "A.1\t0\t7\t3\n".encode("utf-16"), _ENCODING),
        ("latex_representation_v3/2.tsv", b"", "is empty"),
        ("qrel_task1_2020.tsv", b"\n", "is empty"),
    ],
)
def test_a_table_that_is_not_recognised_is_named(tmp_path: Path, place: str, content: bytes, note: str) -> None:
    (tmp_path / place).parent.mkdir(exist_ok=True)
    (tmp_path / place).write_bytes(content)
    assert holdings(tmp_path).unread == {place: note}


def test_judgments_that_others_replace_are_named(tmp_path: Path) -> None:
    for name, document in (("task2_2020_formula_id", "11"), ("task2_2020_visual_id", "6"), ("task1_2021_all", "7")):
        topic = "A.201" if "2021" in name else "B.1"
        (tmp_path / f"qrel_{name}.tsv").write_text(f"{topic}\t0\t{document}\t3\n")
    assert holdings(tmp_path).unread == {
        "qrel_task2_2020_formula_id.tsv": "by formula id; qrel_task2_2020_visual_id.tsv is by visual id",
        "qrel_task1_2021_all.tsv": "edition all: data.judgments=all reads it",
    }


def test_copies_and_conflicts_of_another_edition_are_named_as_such(tmp_path: Path) -> None:
    for year in (2020, 2021):
        for number in (1, 2):
            (tmp_path / str(number)).mkdir(exist_ok=True)
            line = f"A.{year % 100 - 19}01\t0\t7\t{number if year == 2021 else 3}\n"
            (tmp_path / str(number) / f"qrel_task1_{year}_all.tsv").write_text(line)
    assert holdings(tmp_path).unread == {
        "1/qrel_task1_2020_all.tsv": "edition all: data.judgments=all reads it",
        "2/qrel_task1_2020_all.tsv": "same content as 1/qrel_task1_2020_all.tsv",
        "1/qrel_task1_2021_all.tsv": "in conflict with 2/qrel_task1_2021_all.tsv",
        "2/qrel_task1_2021_all.tsv": "in conflict with 1/qrel_task1_2021_all.tsv",
    }


def test_other_files_are_not_named(tmp_path: Path) -> None:
    (tmp_path / "notes.tsv").write_text("day\tnote\n")
    (tmp_path / "empty.tsv").touch()
    assert holdings(tmp_path).unread == {}


def test_judgments_of_other_years_do_not_count(tmp_path: Path) -> None:
    rows = ["A.5\t0\t7\t3", "A.201\t0\t7\t2", "A.201\t0\t8\t1", "A.202\t0\t8\t0"]
    (tmp_path / "qrel_task1_2021_all.tsv").write_text("\n".join(rows) + "\n")
    found = holdings(tmp_path).counts
    assert {key: found[key] for key in found if key.startswith("judgments")} == {
        "judgments.task1.2021": 3,
        "judgments.task1.2021.all": 3,
        "judgments.task1.2021.all.topics": 2,
        "judgments.task1.2021.all.relevant": 1,
    }


def test_tables_that_one_representation_lacks_are_told(tmp_path: Path) -> None:
    for name, formula, tables in (("latex", "x", 3), ("slt", "<math><mi>x</mi></math>", 1)):
        folder = tmp_path / f"{name}_representation_v3"
        folder.mkdir()
        for number in range(1, tables + 1):
            (folder / f"{number}.tsv").write_text(f"id\tpost_id\tformula\n{number}\t7\t{formula}\n")
    told = missing(holdings(tmp_path))
    what = "2 of 3 tables with Presentation MathML (symbol layout trees) of the formulas of posts"
    assert told[what] == ("of their formulas, symbol layout trees are made from LaTeX instead", "formulas")


@pytest.mark.parametrize(
    ("rows", "counts"),
    [
        ("", (0, 0)),
        ("1\t7\tx\n2\t7\t\n", (2, 1)),
        ("1\t7\tx\r\n2\t7\t\r\n3\t8\ty", (3, 1)),
        ('1\t7\t"a\n""b"" c"\n2\t7\ty\n\n', (2, 0)),
    ],
)
def test_rows_end_outside_quotation_marks(tmp_path: Path, rows: str, counts: tuple[int, int]) -> None:
    path = tmp_path / "1.tsv"
    path.write_bytes(b"id\tpost_id\tformula\n" + rows.encode())
    assert count_rows(PackedFile(path)) == (*counts, 0, 0)


def test_formulas_are_counted_in_their_column(tmp_path: Path) -> None:
    rows = [("1", "", "note"), ("2", "<math><ci>x</ci></math>", "note")]
    for name, owner, of in (("opt_representation_v3/1.tsv", "post_id", "7"), ("opt.tsv", "topic_id", "A.1")):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        lines = ["\t".join((number, of, formula, note)) for number, formula, note in rows]
        (tmp_path / name).write_text("\n".join([f"id\t{owner}\tformula\tnote", *lines]), encoding="utf-8")
    counts = holdings(tmp_path).counts
    assert (counts["formulas.opt"], counts["formulas.opt.empty"]) == (2, 1)
    assert (counts["topic_formulas.2020"], counts["topic_trees.2020.opt"]) == (1, 1)


def test_a_tree_of_a_topic_counts_however_long_it_is(tmp_path: Path) -> None:
    rows = [f"{number}\tA.1\t<math>{'<ci>x</ci>' * symbols}</math>\n" for number, symbols in ((1, 1), (2, 20_000))]
    (tmp_path / "opt.tsv").write_text("".join(["id\ttopic_id\tformula\n", *rows]))
    limit = csv.field_size_limit(1 << 17)  # the limit of a new process
    try:
        assert holdings(tmp_path).counts["topic_trees.2020.opt"] == 2
    finally:
        csv.field_size_limit(limit)


def test_a_mark_within_a_field_opens_no_quotation(tmp_path: Path) -> None:
    """Files without csv's quotes; the third has rows that Python's csv would join."""
    formulas = {"latex": "x", "slt": "<math><mi>x</mi></math>", "opt": "<math><ci>x</ci></math>"}
    ends = {"latex": '9\t7\tx" + 1\n', "slt": '9\t7\t"y"\n', "opt": '9\t7\t"<math\n'}
    for name, row in ends.items():
        plain = "".join(f"{number}\t7\t{formulas[name]}\n" for number in range(9))
        path = tmp_path / f"{name}_representation_v3" / "1.tsv"
        path.parent.mkdir()
        path.write_text(f"id\tpost_id\tformula\n{plain}{row}{plain}", encoding="utf-8")
    found = holdings(tmp_path)
    assert [found.counts[f"formulas.{name}"] for name in ends] == [19, 19, 19]
    damaged = {what: told for what, told in missing(found).items() if "quotation" in what}
    what = "the closing quotation mark of a row with Content MathML (operator trees) of formulas "
    assert damaged == {f"{what}(the first: {path}:11)": ("left out where these formulas are read", "formulas")}


@pytest.mark.shared
@pytest.mark.skipif(not MINI.is_dir(), reason="the development data (data/arqmath-mini) is not beside the repository")
def test_the_small_real_arqmath() -> None:
    found = holdings(MINI)
    expected = {
        "posts.question": 2331,
        "posts.answer": 2863,
        "accepted": 0,
        "links": 432,
        "formulas.latex": 50_668,
        "formulas.slt.empty": 94,
        "formulas.opt.empty": 745,
        "topics.task1.2020": 98,
        "topic_trees.2020": 1007,
        "judgments.task1.2020": 39_124,
        "judgments.task1.2020.official.topics": 77,
        "judgments.task2.2021": 8115,
    }
    assert {key: found.counts[key] for key in expected} == expected
    assert [one.what for one in found.missing] == [
        "accepted answers",
        "judgments of Task 1 of 2022",
        "judgments of Task 2 of 2022",
    ]
    assert found.reason == ""
