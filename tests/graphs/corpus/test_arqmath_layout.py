"""ARQMath as it is published: the same collection in every arrangement, and what is said where one is in doubt."""

import gzip
import shutil
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest

from graphs.corpus.arqmath import ArqMath
from graphs.corpus.arqmath.recognition import recognise
from graphs.corpus.packed import PackedFile, members
from graphs.corpus.post import Judgment, Pair, Post
from graphs.errors import ConfigError, CorpusError, Failure
from graphs.formulas.published import rows_of

POSTS = """<?xml version="1.0" encoding="utf-8"?>
<posts>
<row Id="1" PostTypeId="1" Title="Why &lt;span class=&quot;math-container&quot;&gt;$x$&lt;/span&gt;" Body="I ask." />
<row Id="2" PostTypeId="2" ParentId="1" Body="So." Score="3" />
<row Id="3" PostTypeId="2" ParentId="1" Body="No." />
</posts>
"""
LINKS = '<postlinks><row Id="1" PostId="1" RelatedPostId="9" LinkTypeId="3"/></postlinks>'
COMMENTS = '<comments><row Id="1" PostId="2" Text="Yes."/></comments>'
FORMULAS = {
    "latex": ("x", "y^2"),
    "slt": ("<math><mi>x</mi></math>", "<math><semantics><msup><mi>y</mi><mn>2</mn></msup></semantics></math>"),
    "opt": ("<math><ci>x</ci></math>", '<m:math xmlns:m="m"><m:apply><m:power/></m:apply></m:math>'),
}
HEADER = "id\tpost_id\tthread_id\ttype\tcomment_id\told_visual_id\tvisual_id\tissue\tformula\n"
YEARS = {2020: 1, 2021: 201, 2022: 301}


def topics(task: int, year: int, title: str = "t") -> str:
    number = f"{'AB'[task - 1]}.{YEARS[year]}"
    formula = "<Formula_Id>q_1</Formula_Id><Latex>x</Latex>" if task == 2 else ""
    return f'<?xml version="1.0"?>\n<Topics>\n<Topic number="{number}">{formula}<Title>{title}</Title></Topic></Topics>'


def topic_formulas(representation: str, year: int, letter: str = "A") -> str:
    formula = FORMULAS[representation][1]
    return f"id\ttopic_id\tthread_id\ttype\tformula\nq_1\t{letter}.{YEARS[year]}\t7\ttitle\t{formula}\n"


def formulas(representation: str) -> str:
    x, y = FORMULAS[representation]
    return (
        HEADER
        + f"10\t1\t1\ttitle\t\t4\t5\t\t{x}\r\n11\t2\t1\tanswer\t\t6\t6\t\t{y}\r\n12\t3\t1\tanswer\t\t6\t6\t\t{y}\r\n"
    )


def qrels(task: int, year: int, *judged: tuple[str, int]) -> str:
    topic = f"{'AB'[task - 1]}.{YEARS[year]}"
    return "".join(f"{topic}\t0\t{doc}\t{grade}\n" for doc, grade in judged)


def write(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


EVALUATION = "Evaluation/ Scripts & Qrels"
TOPICS = {
    "Topics/Task1&3 Topics/ARQMath-1/Topics/Topics_V2.0.xml": (1, 2020),
    "Topics/Task1&3 Topics/ARQMath-2/Topics/Topics_Task1_2021_V1.1.xml": (1, 2021),
    "Topics/Task1&3 Topics/ARQMath-3/Topics/Topics_Task1_2022_V0.1.xml": (1, 2022),
    "Topics/Task2 Topics/ARQMath-1/Topics/Topics_V1.1.xml": (2, 2020),
    "Topics/Task2 Topics/ARQMath-2/Topics/Topics_Task2_2021_V1.1.xml": (2, 2021),
    "Topics/Task2 Topics/ARQMath-3/Topics/Topics_Task2_2022_V0.1.xml": (2, 2022),
    "Topics/Task2 Topics/ARQMath-3/Topics/Topics_Task2_2022_V1.2.xml": (2, 2022),
}
TOPIC_FORMULAS = {
    f"Topics/{folder}/ARQMath-{year - 2019}/Formulas/{name}": (task, year, representation)
    for task, folder in ((1, "Task1&3 Topics"), (2, "Task2 Topics"))
    for year, names in (
        (2020, "Formula_topics_latex_V2.0.tsv Formula_topics_slt_V2.0.tsv Formula_topics_opt_V2.0.tsv"),
        (
            2021,
            "Topics_2021_Formulas_Latex_V1.1.tsv Topics_2021_Formulas_SLT_V1.1.tsv Topics_2021_Formulas_OPT_V1.1.tsv",
        ),
        (2022, "Topics_Formulas_Latex.V0.1.tsv Topics_Formulas_SLT.V0.1.tsv Topics_Formulas_OPT.V0.1.tsv"),
    )
    for representation, name in zip(("latex", "slt", "opt"), names.split(), strict=True)
}
QRELS = {
    "ARQMath-1/Task 1 /qrel_official_task1": (1, 2020, "official", "post id"),
    "ARQMath-2/Task1/Qrel Files/qrel_task1_2021_test.tsv": (1, 2021, "official", "post id"),
    "ARQMath-2/Task1/Qrel Files/qrel_task1_2021_all.tsv": (1, 2021, "all", "post id"),
    "ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_official.tsv": (1, 2022, "official", "post id"),
    "ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_all.tsv": (1, 2022, "all", "post id"),
    "ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_additional.tsv": (1, 2022, "additional", "post id"),
    "ARQMath-1/Task2/qrel_with_formula_ids/qrel_task2.tsv": (2, 2020, "official", "formula id"),
    "ARQMath-1/Task2/qrel_with_formula_ids/qrel_task2_all.tsv": (2, 2020, "all", "formula id"),
    "ARQMath-2/Task2/Qrel Files/qrel_task2_2021_test_official_evaluation.tsv": (2, 2021, "official", "visual id"),
    "ARQMath-2/Task2/Qrel Files/qrel_task2_2021_all.tsv": (2, 2021, "all", "visual id"),
    "ARQMath-3/Task2/Qrel Files/qrel_task2_2022_official.tsv": (2, 2022, "official", "visual id"),
    "ARQMath-3/Task2/Qrel Files/qrel_task2_2022_all.tsv": (2, 2022, "all", "visual id"),
    "qrel_task1_2020_official": (1, 2020, "official", "post id"),
    "qrel_task1_2021_official.tsv": (1, 2021, "official", "post id"),
    "qrel_task2_2020_official.tsv": (2, 2020, "official", "formula id"),
    "qrel_task2_2020_visual_id.tsv": (2, 2020, "official", "visual id"),
    "qrel_task2_2021_official.tsv": (2, 2021, "official", "visual id"),
    "qrel_task2_2020_formula_id.tsv": (2, 2020, "official", "formula id"),
}


ARCHIVES: dict[str, tuple[dict[str, str], tuple[object, ...]]] = {
    "Collection/Posts.V1.3.zip": ({"Posts.V1.3.xml": POSTS}, ("posts", None, (1, 3))),
    **{
        f"Formulas/{name}_representation_v3.zip": (
            {f"{name}_representation_v3/{number}.tsv": formulas(name) for number in (1, 101)},
            ("formulas", name, (3,)),
        )
        for name in FORMULAS
    },
}


def seen(root: Path, path: Path) -> tuple[object, ...]:
    found = recognise(PackedFile(path), path.relative_to(root).parts)
    return found.kind, found.task, found.year, found.edition or found.representation, found.ids, found.note


@pytest.mark.parametrize("is_flat", [False, True])
def test_every_published_name_is_recognised_by_what_it_holds(tmp_path: Path, is_flat: bool) -> None:
    def put(place: str, content: str) -> Path:
        return write(tmp_path / (place.rpartition("/")[2] if is_flat else place), content)

    assert seen(tmp_path, put("Collection/Posts.V1.3.xml", POSTS)) == ("posts", 0, 0, None, None, "")
    assert seen(tmp_path, put("Collection/PostLinks.V1.3.xml", LINKS)) == ("links", 0, 0, None, None, "")
    assert seen(tmp_path, put("Collection/Comments.V1.3.xml", COMMENTS))[0] == "other XML"
    assert seen(tmp_path, put("Collection/Tags.V1.3.xml", "<tags/>"))[0] == "other XML"
    assert seen(tmp_path, put("Formulas/README_formulas_V3.0.md", "# id post_id formula"))[0] == "unknown"
    assert seen(tmp_path, put("Evaluation/de_duplicate_2022.py", "import csv\n"))[0] == "unknown"
    assert seen(tmp_path, put("Collection/README_DATA.md", "# Posts, links and tags"))[0] == "unknown"
    assert seen(tmp_path, put("Evaluation/task2_get_results.py", "import csv\n"))[0] == "unknown"
    run = "B.301\t9012\t255\t1\t7.5\tTangentS\n"
    assert seen(tmp_path, put("Runs/ARQMath-3/Task 2/Baseline-task2-TangentS-auto-math-p.tsv", run))[0] == "run"
    for place, (content, kind) in ARCHIVES.items():
        path = tmp_path / (place.rpartition("/")[2] if is_flat else place)
        path.parent.mkdir(parents=True, exist_ok=True)
        for name, text in content.items():
            with zipfile.ZipFile(path, "a") as archive:
                archive.writestr(name, text)
        for file in members(path):
            found = recognise(file, file.parts[len(tmp_path.parts) :])
            assert (found.kind, found.representation, found.version, found.note) == (*kind, ""), file
    for place, (task, year) in TOPICS.items():
        assert seen(tmp_path, put(place, topics(task, year))) == ("topics", task, year, None, None, ""), place
    for place, (task, year, representation) in TOPIC_FORMULAS.items():
        path = put(place, topic_formulas(representation, year, "AB"[task - 1]))
        assert seen(tmp_path, path) == ("topic formulas", task, year, representation, None, ""), place
    for name, (task, year, edition, ids) in QRELS.items():
        if is_flat and name.endswith(("ids/qrel_task2.tsv", "ids/qrel_task2_all.tsv")):
            continue  # without their folder: below
        path = put(f"{EVALUATION}/{name}", qrels(task, year, ("11", 2)))
        assert seen(tmp_path, path) == ("judgments", task, year, edition, ids, ""), name
    for name in ("qrel_task2.tsv", "qrel_task2_all.tsv"):
        assert seen(tmp_path, write(tmp_path / name, qrels(2, 2020, ("11", 2))))[2:5:2] == (2020, "formula id")


def notes(corpus: ArqMath) -> dict[str, str]:
    """Places of the files that are not read, with the reasons."""
    corpus.judgment_files()
    return {corpus._layout.below(file): note for file, note in corpus._layout.notes.items()}


def test_content_decides_against_names(tmp_path: Path) -> None:
    misnamed = write(tmp_path / "Topics_Task1_2020.xml", topics(2, 2022))
    assert seen(tmp_path, misnamed)[:3] == ("topics", 2, 2022)
    misnamed = write(tmp_path / "opt_representation_v3" / "1.tsv", formulas("slt"))
    assert seen(tmp_path, misnamed)[3] == "slt"
    misnamed = write(tmp_path / "qrel_task1_2020.tsv", "\ufeff" + qrels(2, 2021, ("5", 1)))
    assert seen(tmp_path, misnamed)[:3] == ("judgments", 2, 2021)
    undecided = write(tmp_path / "slt_representation_v3" / "2.tsv", HEADER + "1\t1\t\t\t\t\t1\t\t<math/>\n")
    assert seen(tmp_path, undecided)[3] == "slt"
    assert seen(tmp_path, write(tmp_path / "dump.xml", "\ufeff" + POSTS))[0] == "posts"


# -- arrangements ----------------------------------------------------------------------------------------------------


def published(root: Path) -> Path:
    """A small collection in the published tree, unpacked."""
    write(root / "Collection/Posts.V1.3.xml", POSTS)
    write(root / "Collection/PostLinks.V1.3.xml", LINKS)
    write(root / "Collection/Comments.V1.3.xml", COMMENTS)
    for representation in FORMULAS:
        for number in (1, 2, 10):
            content = formulas(representation) if number == 1 else HEADER
            write(root / f"Formulas/{representation}_representation_v3/{number}.tsv", content)
    for place, (task, year) in TOPICS.items():
        title = "new" if "V1.2" in place else "old"
        write(root / place, topics(task, year, title))
    for place, (_, year, representation) in TOPIC_FORMULAS.items():
        write(root / place, topic_formulas(representation, year))
    for name, (task, year, edition, ids) in QRELS.items():
        if "/" in name:
            docs = ("2", "99") if task == 1 else ("11", "12") if ids == "formula id" else ("6", "5")
            more = (("3", 1),) if edition == "all" and task == 1 else ()
            write(root / EVALUATION / name, qrels(task, year, (docs[0], 1), (docs[1], 3), *more))
    return root


def as_published(root: Path) -> None:
    """Pack posts and formulas as they are published."""
    zip_folder(root / "Collection/Posts.V1.3.zip", [root / "Collection/Posts.V1.3.xml"], "")
    for folder in sorted((root / "Formulas").iterdir()):
        zip_folder(folder.with_suffix(".zip"), sorted(folder.iterdir()), f"{folder.name}/")
        folder.rmdir()


def zip_folder(path: Path, files: list[Path], folder: str) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for file in files:
            archive.write(file, folder + file.name)
            file.unlink()


def gzipped(root: Path) -> None:
    for path in [path for path in root.rglob("*") if path.is_file()]:
        write(path.with_name(path.name + ".gz"), gzip.compress(path.read_bytes()))
        path.unlink()


def flat(root: Path) -> None:
    folders = sorted(path for path in (root / "Formulas").iterdir())
    for folder in folders:
        folder.rename(root / folder.name)
    for path in [path for path in root.rglob("*") if path.is_file() and path.parent.parent != root]:
        path.rename(root / path.name)
    for path in [path for path in root.glob("*/*") if path.is_file() and "representation" not in path.parent.name]:
        path.rename(root / path.name)


def one_zip(root: Path) -> None:
    files = sorted(path for path in root.rglob("*") if path.is_file())
    with zipfile.ZipFile(root / "everything.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for path in files:
            archive.write(path, f"ARQMath/{path.relative_to(root).as_posix()}")
            path.unlink()


def unpacked_beside_zips(root: Path) -> None:
    copy = root / "copy"
    shutil.copytree(root / "Formulas", copy / "Formulas")
    shutil.copytree(root / "Collection", copy / "Collection")
    as_published(copy)


ARRANGEMENTS = [as_published, gzipped, flat, one_zip, unpacked_beside_zips]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return published(tmp_path / "ARQMath")


def told(corpus: ArqMath) -> list[object]:
    """All that a collection gives."""
    files = corpus.formulas()
    every = [*files.latex, *files.slt, *files.opt]
    every += [file for year in files.topics for file in (year.latex, year.slt, year.opt) if file is not None]
    years = [2020, 2021, 2022]
    return [
        list(corpus.posts()), list(corpus.pairs()), list(corpus.links()), corpus.topics(1, years),
        corpus.topics(2, years), corpus.judgments(1, years), corpus.judgments(2, years),
        [year.prefix for year in files.topics], [file.name for file in files.slt],
        [row for file in every for row in rows_of(file)],
    ]  # fmt: skip


def test_the_published_tree_is_read(root: Path) -> None:
    corpus = ArqMath(root)
    question, *answers = corpus.posts()
    assert isinstance(question, Post)
    assert 'id="10"' in question.title  # the id that only the latex TSV has
    assert [post.post_id for post in answers if isinstance(post, Post)] == ["2", "3"]
    assert list(corpus.pairs()) == [Pair("1", "2"), Pair("1", "3")]
    assert [topic.topic_id for topic in corpus.topics(1, [2020, 2021, 2022])] == ["A.1", "A.201", "A.301"]
    assert [topic.post.title for topic in corpus.topics(2, [2022])] == ["new"]  # version 1.2
    files = corpus.formulas()
    assert [file.name for file in files.opt] == ["1.tsv", "2.tsv", "10.tsv"]
    assert [year.prefix for year in files.topics] == ["2020:", "2021:", "2022:"]
    assert corpus.judgments(1, [2021]) == [Judgment("A.201", "2", 1), Judgment("A.201", "99", 3)]
    assert corpus.judgments(2, [2021]) == [Judgment("B.201", "6", 1), Judgment("B.201", "5", 3)]


@pytest.mark.parametrize("arrange", ARRANGEMENTS)
def test_every_arrangement_gives_the_same(root: Path, arrange: Callable[[Path], None]) -> None:
    before = ArqMath(root)
    expected, fingerprints = told(before), before.fingerprints()
    arrange(root)
    after = ArqMath(root)
    assert told(after) == expected
    assert after.fingerprints() == fingerprints


def test_judgments_by_formula_id_are_rekeyed_and_counted(root: Path) -> None:
    path = root / EVALUATION / "ARQMath-1/Task2/qrel_with_formula_ids/qrel_task2.tsv"
    path.write_text(qrels(2, 2020, ("11", 3), ("10", 0), ("12", 1), ("777", 2)))
    corpus = ArqMath(root)
    assert corpus.judgments(2, [2020]) == [Judgment("B.1", "6", 3), Judgment("B.1", "5", 0)]
    counts = corpus.rekeyings()[2020]
    assert (counts.judgments, counts.unknown) == (4, 1)
    path.write_text(qrels(2, 2020, ("777", 2)))
    with pytest.raises(CorpusError, match=r"qrel_task2\.tsv: taken for judgments by formula id, but none of its 1"):
        ArqMath(root).judgments(2, [2020])


def test_judgments_by_visual_id_are_preferred(root: Path) -> None:
    write(root / "qrel_task2_2020_visual_id.tsv", qrels(2, 2020, ("6", 2)))
    corpus = ArqMath(root)
    assert corpus.judgments(2, [2020]) == [Judgment("B.1", "6", 2)]
    assert corpus.judgment_files()[2, 2020] == "qrel_task2_2020_visual_id.tsv (official, by visual id)"
    (note,) = [note for place, note in notes(corpus).items() if place.endswith("ids/qrel_task2.tsv")]
    assert note == "by formula id; qrel_task2_2020_visual_id.tsv is by visual id"


def test_visual_ids_of_an_earlier_release_are_not_read(root: Path) -> None:
    write(root / "qrel_task2_2020_visual_id.tsv", qrels(2, 2020, ("4", 2)))
    corpus = ArqMath(root)
    before = corpus.fingerprints()
    assert corpus.judgment_files()[2, 2020].endswith("ids/qrel_task2.tsv (official, by formula id)")
    assert corpus.judgments(2, [2020]) == [Judgment("B.1", "6", 3)]
    assert corpus.fingerprints() == before
    left_out = notes(corpus)
    assert not [place for place in left_out if place.endswith("ids/qrel_task2.tsv")]
    why = left_out["qrel_task2_2020_visual_id.tsv"]
    assert why.partition(";")[0] == "its visual ids are not those of the formula TSVs"


# -- editions --------------------------------------------------------------------------------------------------------


def test_the_edition_of_the_judgments_is_chosen_and_named(root: Path) -> None:
    path = root / EVALUATION / "ARQMath-3/Task 1/Qrel Files/qrel_task1_2022_all.tsv"
    path.write_text(qrels(1, 2021, ("2", 3)) + qrels(1, 2022, ("2", 1), ("3", 1)))
    official, everything = ArqMath(root), ArqMath(root, judgments="all")
    assert len(official.judgments(1, [2022])) == 2
    assert everything.judgments(1, [2022]) == [Judgment("A.301", "2", 1), Judgment("A.301", "3", 1)]
    place = f"{EVALUATION}/ARQMath-3/Task 1/Qrel Files"
    assert official.judgment_files()[1, 2022] == f"{place}/qrel_task1_2022_official.tsv (official)"
    assert everything.judgment_files()[1, 2022] == f"{place}/qrel_task1_2022_all.tsv (all)"
    # A year that was published in one edition only has the same judgments in both.
    assert everything.judgment_files()[1, 2020].endswith("qrel_official_task1 (official)")
    assert everything.other_editions()[1, 2020] == "official"
    assert (1, 2022) not in everything.other_editions()
    assert official.other_editions() == {}
    assert official.fingerprints().judgments != everything.fingerprints().judgments
    assert official.fingerprints().searches == everything.fingerprints().searches
    left_out = notes(everything)
    assert f"{place}/qrel_task1_2022_all.tsv" not in left_out
    assert left_out[f"{place}/qrel_task1_2022_official.tsv"].endswith("data.judgments=official reads it")
    assert "additional judgments" in left_out[f"{place}/qrel_task1_2022_additional.tsv"]


def test_official_judgments_are_not_replaced_by_all(root: Path) -> None:
    (root / EVALUATION / "ARQMath-2/Task1/Qrel Files/qrel_task1_2021_test.tsv").unlink()
    with pytest.raises(ConfigError, match=r"qrel_task1_2021_all\.tsv.*data\.judgments=all reads it"):
        ArqMath(root).judgments(1, [2021])
    assert (1, 2021) not in ArqMath(root).judgment_files()
    assert len(ArqMath(root, judgments="all").judgments(1, [2021])) == 3
    with pytest.raises(ConfigError, match=r"data\.judgments=some is not one of official, all"):
        ArqMath(root, judgments="some")  # type: ignore[arg-type]


# -- conflicts -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("place", "content", "ask"),
    [
        ("Topics_Task1_2020_V2.0.xml", topics(1, 2020, "other"), lambda corpus: corpus.topics(1, [2020])),
        ("qrel_task1_2020_official", qrels(1, 2020, ("2", 0)), lambda corpus: corpus.judgments(1, [2020])),
        ("copy/latex_representation_v3/1.tsv", HEADER + "1\t1\t\t\t\t\t1\t\tx\n", ArqMath.formulas),
        ("Formula_slt_V2.0.tsv", topic_formulas("slt", 2020) + "q_2\tA.1\t7\ttitle\t<math/>\n", ArqMath.formulas),
        ("PostLinks.V1.3.xml", "<postlinks/>", lambda corpus: list(corpus.links())),
    ],
)
def test_two_candidates_for_one_place_are_an_error_that_lists_both(
    root: Path, place: str, content: str, ask: Callable[[ArqMath], object]
) -> None:
    write(root / place, content)
    corpus = ArqMath(root)
    corpus.fingerprints()
    conflicts = [place for place, note in notes(corpus).items() if "in conflict with" in note]
    assert len(conflicts) > 1
    with pytest.raises(CorpusError, match="cannot tell which of") as raised:
        ask(corpus)
    assert place.removesuffix("/1.tsv") in raised.value.message
    assert len(raised.value.message.split(", ")) > 1


def test_equal_copies_and_older_versions_are_no_conflict(root: Path) -> None:
    fingerprints = ArqMath(root).fingerprints()
    write(root / "qrel_task1_2020_official", (root / EVALUATION / "ARQMath-1/Task 1 /qrel_official_task1").read_bytes())
    write(root / "Posts.V1.2.xml", POSTS.replace("No.", "Old."))
    write(root / "Formulas/slt_representation_v2/1.tsv", HEADER + "1\t1\t\t\t\t\t1\t\t<math><mi>z</mi></math>\n")
    corpus = ArqMath(root)
    assert corpus.fingerprints() == fingerprints
    assert len(corpus.judgments(1, [2020])) == 2
    left_out = notes(corpus)
    assert left_out["Posts.V1.2.xml"] == "older than version 1.3"
    assert left_out["Formulas/slt_representation_v2/1.tsv"] == "older than version 3"
    assert left_out["qrel_task1_2020_official"].startswith(
        "same content as Evaluation/ Scripts & Qrels/ARQMath-1/Task 1 /"
    )


def test_tsvs_of_both_tasks_that_differ_are_both_read(root: Path) -> None:
    place = root / "Topics/Task2 Topics/ARQMath-1/Formulas/Formula_topics_slt_V2.0.tsv"
    place.write_text(topic_formulas("slt", 2020, "B"))
    files = [year for year in ArqMath(root).formulas().topics if year.prefix == "2020:"]
    assert [year.slt is not None for year in files] == [True, True]
    assert [year.latex is not None for year in files] == [True, False]
    assert files[1].slt == PackedFile(place)


def test_topics_that_cannot_be_placed_are_named(root: Path) -> None:
    both = topics(1, 2021).replace("</Topics>", topics(2, 2021).partition("<Topics>")[2])
    (root / "Topics/Task2 Topics/ARQMath-2/Topics/Topics_Task2_2021_V1.1.xml").write_text(both)
    with pytest.raises(CorpusError, match=r"no topics of Task 2, 2021.*Topics_Task2_2021_V1\.1\.xml: its topics are"):
        ArqMath(root).topics(2, [2021])


def test_tasks_have_topics_that_cannot_be_placed(root: Path) -> None:
    """Task 2 is not dropped where its files mix years, or tasks; reading them says what is wrong."""
    for path in (root / "Topics/Task2 Topics").rglob("Topics*.xml"):
        more = '<Topic number="B.250"><Title>t</Title></Topic><Topic number="B.5"><Title>t</Title></Topic></Topics>'
        path.write_text(path.read_text().replace("</Topics>", more))
    corpus = ArqMath(root)
    assert corpus.tasks() == [1, 2]
    with pytest.raises(CorpusError, match=r"no topics of Task 2, 2020.*its topics are not all of one task and year"):
        corpus.topics(2, [2020])
    shutil.rmtree(root / "Topics/Task2 Topics")
    assert ArqMath(root).tasks() == [1]
    mixed = topics(1, 2022).replace("</Topics>", topics(2, 2022).partition("<Topics>")[2])
    write(root / "Topics.xml", mixed)
    assert ArqMath(root).tasks() == [1, 2]


# -- damage ----------------------------------------------------------------------------------------------------------


def test_a_truncated_zip_of_any_part_is_an_error(root: Path) -> None:
    as_published(root)
    path = root / "Formulas/opt_representation_v3.zip"
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(CorpusError, match=r"opt_representation_v3\.zip: truncated or damaged zip.*fetch it again"):
        ArqMath(root)


def long_posts(number: int) -> bytes:
    rows = (f'<row Id="{i}" PostTypeId="1" Body="{hash((i, 7))} {hash((i, 8))}"/>\n' for i in range(1, number))
    return ("<posts>\n" + "".join(rows) + "</posts>").encode()


def test_posts_before_the_damage_of_an_archive_are_kept(tmp_path: Path) -> None:
    content = gzip.compress(long_posts(9_000))
    content = content[: len(content) // 2]
    write(tmp_path / "Posts.V1.3.xml.gz", content)
    *posts, failure = ArqMath(tmp_path).posts()
    complete = zlib.decompressobj(wbits=31).decompress(content).count(b"/>")
    assert complete - 20 < len(posts) <= complete
    assert isinstance(failure, Failure)
    assert failure.kind == "broken_xml"
    assert "Posts.V1.3.xml.gz: truncated gzip file; fetch it again" in failure.message
    (tmp_path / "Posts.V1.3.xml.gz").unlink()
    with zipfile.ZipFile(tmp_path / "Posts.V1.3.zip", "w") as archive:
        archive.writestr("Posts.V1.3.xml", long_posts(9_000))
    damaged = bytearray((tmp_path / "Posts.V1.3.zip").read_bytes())
    damaged[len(damaged) // 2] ^= 1
    (tmp_path / "Posts.V1.3.zip").write_bytes(damaged)
    *posts, failure = ArqMath(tmp_path).posts()
    assert len(posts) > 3_000
    assert isinstance(failure, Failure)
    assert "Bad CRC-32" in failure.message or "broken XML" in failure.message


def three_rows(**bodies: bytes) -> bytes:
    """A question and its answers 2 and 3; ``two`` and so on replace whole rows."""
    rows = {
        "one": b'<row Id="1" PostTypeId="1" AcceptedAnswerId="3"/>\n',
        "two": b'<row Id="2" PostTypeId="2" ParentId="1" Body="two"/>\n',
        "three": b'<row Id="3" PostTypeId="2" ParentId="1"/>\n',
    }
    return b"<posts>\n" + b"".join((rows | bodies).values()) + b"</posts>\n"


@pytest.mark.parametrize(
    ("two", "post_id", "message"),
    [
        (b'<row Id="2" PostTypeId="2" ParentId="1" Body="\xff"/>\n', "2", "3: broken XML"),
        (b'<row Id="2" PostTypeId="2" ParentId="1" Body="\0"/>\n', "2", "3: broken XML"),
        (b'<row Id="2" PostTypeId="2" ParentId="1" Body="x />\n', "2", "4: broken XML"),
        (b'<row Id="2" PostTypeId="2" ParentId="1" Body="&x;"/>\n', "2", "3: broken XML"),
        (b'xrow Id="2" PostTypeId="2" ParentId="1"/>\n', "", "2: broken XML: text between two rows"),
        (b'<rox Id="2" PostTypeId="2" ParentId="1"/>\n', "", "3: broken XML: <rox> between two rows"),
        (b'<\1ow Id="2" PostTypeId="2" ParentId="1"/>\n', "", "3: broken XML"),
        (b"</posts><posts>\n", "", "3: broken XML"),
    ],
)
@pytest.mark.parametrize("more", [0, 400])
def test_a_bad_byte_costs_one_row(tmp_path: Path, two: bytes, post_id: str, message: str, more: int) -> None:
    """Posts and pairs know the same posts, also where further rows fill several blocks."""
    further = b"".join(
        b'<row Id="%d" PostTypeId="1" Body="%s"/>\n' % (number, b"x " * 999) for number in range(10, 10 + more)
    )
    write(tmp_path / "Posts.xml", three_rows(two=two).replace(b"</posts>\n", b"") + further + b"</posts>\n")
    corpus = ArqMath(tmp_path)
    question, failure, answer, *others = corpus.posts()
    assert [post.post_id for post in (question, answer) if isinstance(post, Post)] == ["1", "3"]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.post_id, len(others)) == ("broken_row", post_id, more)
    lost = len(two) + (not post_id)  # or the line end before it
    assert failure.message.startswith(f"{tmp_path / 'Posts.xml'}:{message}")
    assert f"; {lost} bytes are lost;" in failure.message
    assert list(corpus.pairs()) == [Pair("1", "3")]


@pytest.mark.parametrize("one", [b'xrow Id="1" PostTypeId="1"/>\n', b'<\xffow Id="1" PostTypeId="1"/>\n'])
def test_a_bad_byte_in_the_first_row_is_told(tmp_path: Path, one: bytes) -> None:
    write(tmp_path / "Posts.xml", b'\xef\xbb\xbf<?xml version="1.0"?>\n<!-- 2021 -->\n' + three_rows(one=one))
    failure, *answers = ArqMath(tmp_path).posts()
    assert [post.post_id for post in answers if isinstance(post, Post)] == ["2", "3"]
    assert isinstance(failure, Failure)
    assert (failure.kind, f"; {len(one)} bytes are lost;" in failure.message) == ("broken_row", True)


@pytest.mark.parametrize("packed", [False, True])
def test_a_row_that_is_too_long_is_left_out_and_the_next_ones_are_read(tmp_path: Path, packed: bool) -> None:
    two = b'<row Id="2" PostTypeId="2" ParentId="1" Body="' + b"word " * 10_400_000 + b'"/>\n'
    content = three_rows(two=two)
    write(tmp_path / ("Posts.xml.gz" if packed else "Posts.xml"), gzip.compress(content, 1) if packed else content)
    corpus = ArqMath(tmp_path)
    question, failure, answer = corpus.posts()
    assert [post.post_id for post in (question, answer) if isinstance(post, Post)] == ["1", "3"]
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.post_id) == ("long_row", "2")
    assert failure.message.endswith(":3: a row of 52.0 MB; longest allowed: 10 MB")
    assert list(corpus.pairs()) == [Pair("1", "3")]


def test_a_long_row_within_the_bound_is_read_and_one_at_the_end_is_not(tmp_path: Path) -> None:
    body = b'<row Id="2" PostTypeId="2" ParentId="1" Body="' + b"word " * 1_990_000 + b'"/>\n'
    write(tmp_path / "Posts.xml", three_rows(two=body))
    assert [post.post_id for post in ArqMath(tmp_path).posts()] == ["1", "2", "3"]
    long = body.replace(b'Id="2"', b'Id="3"').replace(b"word ", b"longer ")
    write(tmp_path / "Posts.xml", three_rows(three=long))
    *_, failure = ArqMath(tmp_path).posts()
    assert isinstance(failure, Failure)
    assert (failure.kind, failure.post_id) == ("long_row", "3")
    write(tmp_path / "Posts.xml", three_rows(three=long)[:-100])
    *posts, failure, end = ArqMath(tmp_path).posts()
    assert [post.post_id for post in posts] == ["1", "2"]
    assert [found.kind for found in (failure, end) if isinstance(found, Failure)] == ["long_row", "broken_xml"]


def test_every_truncation_keeps_the_posts_before_it(tmp_path: Path) -> None:
    content = three_rows()
    ends = [content.index(b"/>", content.index(b'<row Id="%d"' % number)) + 2 for number in (1, 2, 3)]
    for size in range(ends[0], len(content)):
        write(tmp_path / "Posts.xml", content[:size])
        found = list(ArqMath(tmp_path).posts())
        posts = [post.post_id for post in found if isinstance(post, Post)]
        assert len(posts) == sum(end <= size for end in ends), content[:size]
        kinds = [post.kind for post in found if isinstance(post, Failure)]
        assert kinds == ([] if content[:size].endswith(b"</posts>") else ["broken_xml"]), content[:size]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "utf-16-be", "latin-1"])
def test_rows_in_other_encodings(tmp_path: Path, encoding: str) -> None:
    name = {"utf-8-sig": "utf-8", "latin-1": "ISO-8859-1"}.get(encoding, encoding)
    text = f'<?xml version="1.0" encoding="{name}"?>\n<posts><row Id="1" PostTypeId="1" Title="Poincar\xe9"/></posts>'
    write(tmp_path / "Posts.xml", text.encode(encoding))
    (post,) = ArqMath(tmp_path).posts()
    assert isinstance(post, Post)
    assert post.title == "Poincar\xe9"


def test_ids_that_no_run_file_can_hold_are_failures(tmp_path: Path) -> None:
    rows = '<row Id="{}" PostTypeId="1"/><row Id="{}" PostTypeId="2" ParentId="1"/>'
    write(tmp_path / "Posts.xml", f"<posts>{rows.format('1', '2 3')}{rows.format('&#9;4', '5&#x85;')}</posts>")
    corpus = ArqMath(tmp_path)
    post, *failures = corpus.posts()
    assert isinstance(post, Post)
    assert [failure.kind for failure in failures if isinstance(failure, Failure)] == ["bad_row"] * 3
    assert list(corpus.pairs()) == []


def test_links_that_lead_in_a_circle_are_entered_once(root: Path) -> None:
    (root / "Collection/again").symlink_to(root, target_is_directory=True)
    (root / ".hidden").mkdir()
    write(root / ".hidden/Posts.V9.xml", POSTS)
    assert len(list(ArqMath(root).posts())) == 3


def test_a_folder_that_is_no_collection_is_left_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("graphs.corpus.arqmath.layout.MAX_FILES", 3)
    for number in range(5):
        write(tmp_path / f"{number}.txt", "text")
    with pytest.raises(CorpusError, match="more than 3 files below this folder"):
        ArqMath(tmp_path)
