"""graphs.formulas.store and tsv: building formulas.db from TSV files, being killed, going on, and reading it."""

import contextlib
import csv
import fcntl
import gzip
import io
import itertools
import multiprocessing
import os
import pickle
import signal
import sqlite3
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from graphs import database
from graphs.corpus.arqmath import tsv_rows
from graphs.corpus.corpus import open_corpus
from graphs.corpus.files import FormulaFiles, TopicFormulaFiles
from graphs.corpus.packed import PackedFile, members
from graphs.corpus.post import is_id
from graphs.errors import CorpusError, StoreError
from graphs.formulas import tsv
from graphs.formulas.content import parse_opt
from graphs.formulas.presentation import parse_slt
from graphs.formulas.store import FormulaStore, Progress, build
from graphs.formulas.tsv import Place, Row, open_source, pieces, rows

ROOT = Path(__file__).resolve().parents[3]
MINI = ROOT / ".." / "shared" / "data" / "arqmath-mini"
HEADER = ["id", "post_id", "thread_id", "type", "comment_id", "old_visual_id", "visual_id", "issue", "formula"]
TOPIC_HEADER = ["id", "topic_id", "thread_id", "type", "formula"]


def slt_of(number: int) -> str:
    return f'<math alttext="x_{{{number}}}"><msub><mi>x</mi><mn>{number}</mn></msub></math>'


def opt_of(number: int) -> str:
    return f'<math>\n<apply><csymbol cd="ambiguous">subscript</csymbol><ci>𝑥</ci><cn>{number}</cn></apply></math>'


def write_tsv(path: Path, header: list[str], lines: list[list[str]]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file, delimiter="\t").writerows([header, *lines])
    return path


def post_row(formula_id: int, formula: str, visual: int | str = "") -> list[str]:
    return [str(formula_id), str(formula_id // 2), "7", "answer", "", "", str(visual), "", formula]


@pytest.fixture
def files(tmp_path: Path) -> FormulaFiles:
    """40 formulas in two files, 10 different; the topics of one year; three rows that give no tree."""
    slt, opt = [], []
    for number in (1, 2):
        ids = range(100 * number, 100 * number + 20)
        slt_rows = [post_row(i, slt_of(i % 10), visual=i % 10) for i in ids]
        opt_rows = [post_row(i, opt_of(i % 10), visual=i % 10) for i in ids]
        if number == 2:
            slt_rows[3][-1] = ""
            opt_rows[4][-1] = "<math><piecewise/></math>"
            slt_rows.insert(5, ["205", "too", "short"])
        slt.append(write_tsv(tmp_path / f"slt_representation_v3/{number}.tsv", HEADER, slt_rows))
        opt.append(write_tsv(tmp_path / f"opt_representation_v3/{number}.tsv", HEADER, opt_rows))
    topics = tmp_path / "topics"
    topic_slt = write_tsv(topics / "slt.tsv", TOPIC_HEADER, [["q_1", "A.1", "5", "title", slt_of(1)]])
    topic_opt = write_tsv(topics / "opt.tsv", TOPIC_HEADER, [["q_1", "A.1", "5", "title", opt_of(1)]])
    topic_files = TopicFormulaFiles("2020:", None, PackedFile(topic_slt), PackedFile(topic_opt))
    return FormulaFiles((), tuple(map(PackedFile, slt)), tuple(map(PackedFile, opt)), (topic_files,))


def content(path: Path) -> list[list[tuple[object, ...]]]:
    """All that a database says, tree ids resolved."""
    connection = sqlite3.connect(path)
    queries = (
        "SELECT formula_id, post_id, visual_id, s.data, o.data FROM formula "
        "LEFT JOIN tree s ON s.id = slt LEFT JOIN tree o ON o.id = opt ORDER BY 1",
        "SELECT data FROM tree ORDER BY 1",
        "SELECT formula_id, post_id, representation, kind FROM failure ORDER BY 3, 4",
        "SELECT * FROM source ORDER BY 1",
    )
    try:
        return [connection.execute(query).fetchall() for query in queries]
    finally:
        connection.close()


@pytest.fixture
def opened(tmp_path: Path, files: FormulaFiles) -> Iterator[FormulaStore]:
    build(tmp_path / "formulas.db", files)
    opened = FormulaStore.open(tmp_path / "formulas.db")
    yield opened
    opened.close()


def test_formulas_of_comments_get_no_trees(tmp_path: Path, files: FormulaFiles) -> None:
    build(tmp_path / "before.db", files)
    comment = ["900", "1", "7", "comment", "77", "", "5", "", slt_of(99)]
    row = "\t".join([*comment[:-1], '"' + comment[-1].replace('"', '""') + '"']) + "\r\n"
    with (tmp_path / "slt_representation_v3/1.tsv").open("a", newline="") as file:
        file.write(row)
    build(tmp_path / "after.db", files)
    assert content(tmp_path / "after.db")[:3] == content(tmp_path / "before.db")[:3]


def test_formulas_of_some_posts_come_first_and_those_of_others_are_added(tmp_path: Path, files: FormulaFiles) -> None:
    whole, grown = tmp_path / "whole.db", tmp_path / "grown.db"
    build(whole, files)
    formulas, _, _, _ = content(whole)
    posts = {str(row[1]) for row in formulas if not str(row[0]).startswith("2020:")}
    first = frozenset(sorted(posts)[:5])
    assert build(grown, files, posts=first).formulas < len(formulas)
    found, _, _, _ = content(grown)
    assert {str(row[1]) for row in found} == {*first, "A.1"}
    build(grown, files, posts=frozenset(posts - first))
    assert content(grown)[:2] == content(whole)[:2]


def test_a_file_that_is_read_again_replaces_its_failures(tmp_path: Path, files: FormulaFiles) -> None:
    whole, grown = tmp_path / "whole.db", tmp_path / "grown.db"
    failures = build(whole, files).failures
    everyone = frozenset(map(str, range(50, 110)))
    for posts in (frozenset({"101", "102"}), everyone - {"50"}, everyone):
        assert build(grown, files, posts=posts).failures == failures
    with FormulaStore.open(grown) as opened:
        found = opened.get("203")
    assert found is not None
    assert found.errors == (("slt", f"{files.slt[1]}:5: no MathML"),)
    rows_ = [post_row(i, slt_of(i % 10)) for i in range(200, 220)]
    write_tsv(files.slt[1].path, HEADER, rows_)  # repaired
    summary = build(grown, files, posts=everyone - {"51"})
    assert summary.failures == {("opt", "unknown_tag"): 1}


def test_every_formula_has_the_trees_of_its_mathml(opened: FormulaStore) -> None:
    found = opened.get("207")
    assert found is not None
    assert found.slt == parse_slt(slt_of(7))
    assert found.opt == parse_opt(opt_of(7))
    assert found.errors == ()
    assert len(opened) == 41
    assert opened.visual_ids(["207"]).get("207") == "7"


def test_bytes_that_are_no_utf8_cost_their_own_row(tmp_path: Path) -> None:
    rows = [post_row(i, slt_of(i), visual=i) for i in (1, 2, 3, 4)]
    path = write_tsv(tmp_path / "slt_representation_v3/1.tsv", HEADER, rows)
    good = path.read_bytes()
    path.write_bytes(good.replace(b"\r\n2\t", b"\r\n\xff2\t").replace(b"<mn>3", b"<mn>\xff3"))
    summary = build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(path),), (), ()))
    assert summary.formulas == 3
    assert summary.failures == {("slt", "malformed"): 1, ("slt", "row"): 1}
    with FormulaStore.open(tmp_path / "formulas.db") as store:
        messages = [failure.message for failure in store.failure_records()]
        assert any("1.tsv:3: the id '\\udcff2' is empty, or has blanks," in message for message in messages)
        assert store.get_many(["1", "4"]).keys() == {"1", "4"}


def test_topics_have_their_prefix_and_no_visual_id(opened: FormulaStore) -> None:
    topic = opened.get("2020:q_1")
    assert topic is not None
    assert topic.slt == parse_slt(slt_of(1))
    assert opened.get("q_1") is None
    assert opened.visual_ids(["2020:q_1"]).get("2020:q_1") is None


def test_many_at_once(opened: FormulaStore, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "IDS_PER_QUERY", 3)
    wanted = [*(str(i) for i in range(100, 120)), "2020:q_1", "no such formula", "0100", "100"]
    found = opened.get_many(wanted)
    assert set(found) == set(wanted) - {"no such formula", "0100"}
    assert opened.visual_ids(wanted) == {str(i): str(i % 10) for i in range(100, 120)}
    assert opened.get_many([]) == {}


def test_equal_trees_are_kept_once(tmp_path: Path, files: FormulaFiles) -> None:
    summary = build(tmp_path / "formulas.db", files)
    assert (summary.formulas, summary.trees) == (41, 20)


def test_failures_are_counted_and_say_where(opened: FormulaStore, files: FormulaFiles) -> None:
    failures = sorted((failure.message.split()[0], failure.kind) for failure in opened.failure_records())
    assert failures == [("opt", "unknown_tag"), ("slt", "missing"), ("slt", "row")]
    without = opened.get("203")
    assert without is not None
    assert without.slt is None
    assert without.opt == parse_opt(opt_of(3))
    assert without.errors == (("slt", f"{files.slt[1]}:5: no MathML"),)
    messages = {record.kind: (record.post_id, record.message) for record in opened.failure_records()}
    assert messages["row"] == ("", f"slt {files.slt[1]}:7: row has 3 columns, 9 are needed")
    # The MathML of an OPT has a line end here, so every row takes two lines of the file.
    assert messages["unknown_tag"] == ("102", f"opt {files.opt[1]}:10: no rule for the element <piecewise>")
    assert {record.stage for record in opened.failure_records()} == {"formula"}


def test_two_processes_make_the_same_database(
    tmp_path: Path, files: FormulaFiles, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", 1000)
    summaries = [build(tmp_path / f"{workers}.db", files, workers=workers) for workers in (1, 2)]
    assert summaries[0] == summaries[1]
    assert content(tmp_path / "1.db") == content(tmp_path / "2.db")


def test_progress_reaches_the_end(tmp_path: Path, files: FormulaFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", 1000)
    seen: list[Progress] = []
    build(tmp_path / "formulas.db", files, progress=seen.append)
    assert len(seen) > 5
    assert [report.bytes_done for report in seen] == sorted(report.bytes_done for report in seen)
    total = sum(path.stat().st_size for path in tmp_path.rglob("*.tsv"))
    assert (seen[-1].rows, seen[-1].bytes_done) == (82, total)
    assert seen[-1].bytes_total == total


def test_a_finished_build_is_not_done_again(tmp_path: Path, files: FormulaFiles) -> None:
    path = tmp_path / "formulas.db"
    first, written = build(path, files), path.read_bytes()
    seen: list[Progress] = []
    assert build(path, files, progress=seen.append) == first
    assert seen == []
    assert path.read_bytes() == written  # an experiment knows the file by its bytes


KILLED_BUILD = """
import os, signal, sys
from pathlib import Path
from graphs.corpus.files import FormulaFiles
from graphs.corpus.packed import PackedFile
from graphs.formulas import store, tsv
tsv.PIECE_BYTES = 1000
reports = []
def progress(report):
    reports.append(report)
    if len(reports) == 3:
        os.kill(os.getpid(), signal.SIGKILL)
root = Path(sys.argv[1])
folders = [root / f"{name}_representation_v3" for name in ("slt", "opt")]
slt, opt = (tuple(map(PackedFile, sorted(folder.glob("*.tsv")))) for folder in folders)
store.build(sys.argv[2], FormulaFiles((), slt, opt, ()), progress=progress)
"""


def test_a_killed_build_goes_on_where_it_was(tmp_path: Path, files: FormulaFiles) -> None:
    files = FormulaFiles((), files.slt, files.opt, ())
    killed = tmp_path / "killed.db"
    command = [sys.executable, "-c", KILLED_BUILD, str(tmp_path), str(killed)]
    ended = subprocess.run(command, env={**os.environ, "PYTHONPATH": str(ROOT)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    done = content(killed)
    assert 0 < len(done[0]) < 40
    seen: list[Progress] = []
    build(killed, files, progress=seen.append)
    assert seen[-1].rows < 80
    build(tmp_path / "whole.db", files)
    assert content(killed) == content(tmp_path / "whole.db")


def packed(files: FormulaFiles, tmp_path: Path) -> tuple[FormulaFiles, FormulaFiles]:
    """The files of the posts in a zip for each representation, and each gzipped."""
    zipped, gzipped = [], []
    for plain in (files.slt, files.opt):
        folder = plain[0].path.parent
        with zipfile.ZipFile(tmp_path / f"{folder.name}.zip", "w", zipfile.ZIP_DEFLATED) as archive:
            for file in plain:
                archive.write(file.path, file.name)
        zipped.append(tuple(members(tmp_path / f"{folder.name}.zip")))
        copies = [tmp_path / "gz" / folder.name / f"{file.name}.gz" for file in plain]
        for file, copy in zip(plain, copies, strict=True):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(gzip.compress(file.path.read_bytes()))
        gzipped.append(tuple(map(PackedFile, copies)))
    return FormulaFiles((), *zipped, ()), FormulaFiles((), *gzipped, ())


@pytest.mark.usefixtures("warm_children")
@pytest.mark.parametrize("workers", [1, 2])
def test_packed_files_make_the_same_database(
    tmp_path: Path, files: FormulaFiles, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", 1000)
    files = FormulaFiles((), files.slt, files.opt, ())
    build(tmp_path / "plain.db", files)
    for name, archives in zip(("zip", "gz"), packed(files, tmp_path), strict=True):
        seen: list[Progress] = []
        build(tmp_path / f"{name}.db", archives, workers=workers, progress=seen.append)
        assert len(seen) > 4
        assert content(tmp_path / f"{name}.db") == content(tmp_path / "plain.db")
        assert seen[-1].bytes_done == seen[-1].bytes_total


class StoppedError(Exception):
    """The user has stopped a build."""


def stop(_: Progress) -> None:
    raise StoppedError


def test_a_build_resumes_in_a_packed_file(tmp_path: Path, files: FormulaFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", 1000)
    files = FormulaFiles((), files.slt, files.opt, ())
    build(tmp_path / "plain.db", files)
    zipped, gzipped = packed(files, tmp_path)
    steps = 0
    for packing in itertools.cycle((zipped, gzipped, files)):  # a piece from each packing in turn
        with contextlib.suppress(StoppedError):
            build(tmp_path / "resumed.db", packing, progress=stop)
            break
        steps += 1
    assert steps > 5
    assert content(tmp_path / "resumed.db") == content(tmp_path / "plain.db")


def test_files_of_the_same_name_in_two_places_are_two_files(tmp_path: Path, files: FormulaFiles) -> None:
    rows_ = [["q_2", "B.1", "5", "title", slt_of(2)]]
    other = write_tsv(tmp_path / "Task2/topics/slt.tsv", TOPIC_HEADER, rows_)
    both = (*files.topics, TopicFormulaFiles("2020:", None, PackedFile(other), None))
    build(tmp_path / "formulas.db", FormulaFiles((), (), (), both))
    with FormulaStore.open(tmp_path / "formulas.db") as opened:
        assert len(opened) == 2
    with pytest.raises(CorpusError, match=r"topics/\w+\.tsv: listed twice"):
        build(tmp_path / "twice.db", FormulaFiles((), (), (), (*both, both[0])))


def test_a_second_writer_is_told_so(tmp_path: Path, files: FormulaFiles) -> None:
    with (tmp_path / "formulas.db.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(StoreError, match="another process is writing"):
            build(tmp_path / "formulas.db", files)


def test_a_tree_that_is_not_what_was_written_is_a_message(tmp_path: Path, files: FormulaFiles) -> None:
    build(tmp_path / "formulas.db", files)
    with contextlib.closing(sqlite3.connect(tmp_path / "formulas.db")) as database:
        database.execute("UPDATE tree SET data = (SELECT data FROM tree WHERE id = 1) WHERE id = 2")
        database.commit()
    with (
        FormulaStore.open(tmp_path / "formulas.db") as opened,
        pytest.raises(StoreError, match=r"formulas\.db: a tree is not what was written"),
    ):
        opened.get_many([str(number) for number in range(100, 120)])


def test_other_letters_or_other_files_are_refused(tmp_path: Path, files: FormulaFiles) -> None:
    path = tmp_path / "formulas.db"
    build(path, files, letters="italic")
    with FormulaStore.open(path) as opened:
        found = opened.get("101")
    assert found is not None
    assert found.opt is not None
    assert "V!𝑥" in found.opt.labels
    with pytest.raises(StoreError, match="letters='italic', not 'plain'"):
        build(path, files)
    with files.opt[0].path.open("a") as grown:
        grown.write("\n")
    with pytest.raises(StoreError, match=r"1\.tsv has .* bytes and had"):
        build(path, files, letters="italic")


def test_what_is_no_formula_file_or_database_is_refused(tmp_path: Path) -> None:
    posts = tmp_path / "posts.tsv"
    posts.write_text("topic\tpost\n")
    with pytest.raises(CorpusError, match=r"posts\.tsv:1: the header is"):
        build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(posts),), (), ()))
    with pytest.raises(CorpusError, match="cannot be read"):
        build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(tmp_path / "none.tsv"),), (), ()))
    with pytest.raises(StoreError, match="build formula trees first"):
        FormulaStore.open(tmp_path / "none.db")


def lookup(opened: FormulaStore) -> str | None:
    return opened.visual_ids(["207"]).get("207")


def test_a_store_travels_to_other_processes(opened: FormulaStore) -> None:
    assert lookup(pickle.loads(pickle.dumps(opened))) == "7"  # noqa: S301 - our own object
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.apply(lookup, (opened,)) == "7"
    assert lookup(opened) == "7"


def looked_up_afresh(opened: FormulaStore, parents: sqlite3.Connection) -> tuple[str | None, bool, bool]:
    found = opened.visual_ids(["207"]).get("207")
    reopened = opened.connection is not parents
    opened.close()
    return found, reopened, parents.execute("SELECT 1").fetchone() == (1,)


def test_a_fork_opens_the_file_for_itself_and_leaves_its_parents_connection_alone(opened: FormulaStore) -> None:
    opened.visual_ids(["207"]).get("207")
    context = multiprocessing.get_context("fork")
    results = context.Queue()
    parents = opened.connection
    child = context.Process(target=lambda: results.put(looked_up_afresh(opened, parents)))
    child.start()
    assert results.get(timeout=60) == ("7", True, True)
    child.join()
    assert opened.connection is parents
    assert lookup(opened) == "7"


FIELD = st.text(st.sampled_from('a"\t\n\r,é '), max_size=6)


@settings(max_examples=150, deadline=None)
@given(lines=st.lists(st.lists(FIELD, min_size=2, max_size=2), max_size=8), size=st.integers(1, 60))
def test_pieces_have_every_row_once_wherever_they_end(
    lines: list[list[str]], size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("pieces") / "1.tsv"
    write_tsv(path, ["id", "post_id", "formula"], [[str(i), *line] for i, line in enumerate(lines)])
    text = path.read_bytes().decode()
    _, *expected = csv.reader(io.StringIO(text, newline=""), delimiter="\t")
    source = open_source(PackedFile(path), "slt", prefix="p:")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tsv, "PIECE_BYTES", size)
        found = [(line, row) for piece in pieces(source, Place(0, 0)) for line, row in rows(piece)]
    assert [row if isinstance(row, Row) else None for _, row in found] == [
        Row(f"p:{first}", post, None, last) if is_id(post) else None for first, post, last in expected
    ]
    for (line, _), (first, *_) in zip(found, expected, strict=True):  # the line is where the row begins
        assert text.split("\n")[line - 1].startswith(f"{first}\t")


@pytest.mark.parametrize("formula_id", ["", " 9", "9\u00a0"])
def test_rows_without_a_proper_id_are_failures(tmp_path: Path, formula_id: str) -> None:
    rows = [post_row(1, slt_of(1), visual=1), [formula_id, *post_row(2, slt_of(2), visual=2)[1:]]]
    path = write_tsv(tmp_path / "slt_representation_v3/1.tsv", HEADER, rows)
    summary = build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(path),), (), ()))
    assert (summary.formulas, summary.failures) == (1, {("slt", "row"): 1})


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_of_two_rows_of_a_formula_the_first_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", size)
    rows = [post_row(i, slt_of(tree), visual=tree) for i, tree in ((1, 1), (2, 2), (1, 1), (1, 3), (1, 1))]
    path = write_tsv(tmp_path / "slt_representation_v3/1.tsv", HEADER, rows)
    files = FormulaFiles((), (PackedFile(path),), (), ())
    for posts in (None, frozenset("01")):  # read twice
        summary = build(tmp_path / "formulas.db", files, posts=posts)
        assert (summary.formulas, summary.failures) == (2, {("slt", "duplicate_id"): 1})
    with FormulaStore.open(tmp_path / "formulas.db") as opened:
        kept = opened.get("1")
        assert kept is not None
        assert (kept.slt, opened.visual_ids(["1"]).get("1")) == (parse_slt(slt_of(1)), "1")
        (failure,) = opened.failure_records()
        assert "1.tsv:5: an earlier row of formula 1 has another tree" in failure.message


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_of_two_rows_of_a_formula_one_needs_mathml(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", size)
    rows = [post_row(i, tree) for i, tree in ((1, ""), (2, slt_of(2)), (1, slt_of(1)))]
    path = write_tsv(tmp_path / "slt_representation_v3/1.tsv", HEADER, rows)
    summary = build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(path),), (), ()))
    assert (summary.formulas, summary.trees, summary.failures) == (2, 2, {})


def test_formulas_that_a_representation_does_not_list_are_counted(tmp_path: Path) -> None:
    slt, opt = (
        write_tsv(tmp_path / f"{kind}_representation_v3/1.tsv", HEADER, [post_row(i, tree, visual=i) for i in ids])
        for kind, tree, ids in (("slt", slt_of(1), (1,)), ("opt", opt_of(1), (1, 2, 3)))
    )
    files = FormulaFiles((), (PackedFile(slt),), (PackedFile(opt),), ())
    assert build(tmp_path / "formulas.db", files).failures == {("slt", "not listed"): 2}


def test_a_file_of_the_same_size_with_other_formulas_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "slt_representation_v3/1.tsv"
    files = FormulaFiles((), (PackedFile(path),), (), ())
    for trees in ((1, 2), (2, 1)):
        write_tsv(path, HEADER, [post_row(i, slt_of(tree), visual=1) for i, tree in zip((1, 2), trees, strict=True)])
        if trees == (1, 2):
            build(tmp_path / "formulas.db", files)
    with pytest.raises(StoreError, match=r"1\.tsv had another content when this database was started; build a new one"):
        build(tmp_path / "formulas.db", files)


@settings(max_examples=300, deadline=None)
@given(
    pieces_=st.lists(st.sampled_from([b'"', b'""', b"a", b"\t", b"\n", b"\r\n", b"\r", b'\t"', b'"\t', b'"\r\n'])),
    size=st.integers(1, 60),
)
def test_blocks_end_where_rows_end(pieces_: list[bytes], size: int) -> None:
    """Whatever marks, tabs and line ends a file has."""
    table = b"".join(pieces_)
    blocks = list(tsv_rows.whole_rows(io.BytesIO(table), size))
    found = [row for block in blocks for row in tsv_rows.quoted_rows(io.BytesIO(block))]
    assert found == list(tsv_rows.quoted_rows(io.BytesIO(table)))
    assert all(blocks)


def test_a_quotation_mark_that_is_never_closed_costs_no_memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tsv, "PIECE_BYTES", 100)
    monkeypatch.setattr(tsv_rows, "MAX_ROW_BYTES", 300)
    path = tmp_path / "1.tsv"
    path.write_text('id\tpost_id\tformula\n1\t2\t"<math>\n' + "3\t4\t<math/>\n" * 100)
    source = open_source(PackedFile(path), "slt")
    sizes = [piece.end.offset - piece.start.offset for piece in pieces(source, Place(0, 0))]
    assert max(sizes) < 400
    assert sum(sizes) == source.size - len("id\tpost_id\tformula\n")


@pytest.mark.parametrize("size", [1, 1 << 20])
def test_an_unclosed_quotation_mark_costs_its_own_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    """Rows before and after it have their trees; also one whose field has line ends, and one without csv's quotes."""
    monkeypatch.setattr(tsv, "PIECE_BYTES", size)
    ids = [1, 2, 3, 4, 5, 6]
    formulas = ["x", '<math alttext="x">\n<mi>x</mi></math>', *map(slt_of, (3, 4, 5, 6))]
    path = write_tsv(tmp_path / "slt_representation_v3/1.tsv", HEADER, list(map(post_row, ids, formulas)))
    lines = path.read_bytes().split(b"\r\n")
    lines[1] = lines[1][:-1] + b'x" + 1'  # an ordinary character within a field
    lines[3], lines[6] = lines[3][:60], lines[6][:60]  # the marks that close formulas 3 and 6
    path.write_bytes(b"\r\n".join(lines))
    summary = build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(path),), (), ()))
    assert summary.failures == {("slt", "no_math"): 1, ("slt", "row"): 2}
    with FormulaStore.open(tmp_path / "formulas.db") as opened:
        found = opened.get_many([str(number) for number in ids])
        messages = [failure.message for failure in opened.failure_records() if failure.kind == "row"]
    assert {one: formula.slt is not None for one, formula in found.items()} == {
        "1": False,
        "2": True,
        "4": True,
        "5": True,
    }
    assert messages == [f"slt {path}:{line}: a quotation mark is not closed" for line in (5, 8)]


def test_bytes_that_are_no_text_cost_one_row(tmp_path: Path) -> None:
    path = tmp_path / "1.tsv"
    rows_ = [b"1\t2\t<math><mi>\xff</mi></math>", b"3\t4\t<math><mi>y</mi></math>"]
    path.write_bytes(b"\r\n".join([b"id\tpost_id\tformula", *rows_, b""]))
    summary = build(tmp_path / "formulas.db", FormulaFiles((), (PackedFile(path),), (), ()))
    assert (summary.formulas, summary.trees, summary.failures) == (2, 1, {("slt", "malformed"): 1})


@pytest.mark.slow
@pytest.mark.shared
@pytest.mark.skipif(not MINI.is_dir(), reason="the development data is not beside the repository")
def test_the_official_layout(tmp_path: Path) -> None:
    """50,662 formulas of posts and 2,900 of topics, of which 747 have no Content MathML and 96 no MathML."""
    files = open_corpus("arqmath", str(MINI)).formulas()
    assert files is not None
    summary = build(tmp_path / "formulas.db", files)
    assert summary.formulas == 53_562
    assert summary.failures == {("opt", "missing"): 747, ("slt", "missing"): 96}
    with (
        FormulaStore.open(tmp_path / "formulas.db") as opened,
        files.slt[0].path.open(encoding="utf-8", newline="") as file,
    ):
        for fields in list(csv.reader(file, delimiter="\t"))[1::500]:
            found = opened.get(fields[0])
            assert found is not None
            assert found.slt == parse_slt(fields[-1])
            assert opened.visual_ids([fields[0]]).get(fields[0]) == fields[6]
