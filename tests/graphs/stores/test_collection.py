"""A collection holds a graph or a reason for every post, whatever happens while it is built."""

import signal
import subprocess
import sys
import textwrap
import time
from contextlib import nullcontext
from pathlib import Path

import pytest
from parrot import Parrot, build, content, posts

from graphs import database
from graphs.corpus.post import Post
from graphs.errors import Failure, StoreError
from graphs.graph.mathamr_plus import NodeKind
from graphs.row_digests import row_digest
from graphs.stores import collection, exchange, shards
from graphs.stores.collection import Collection
from graphs.stores.shards import Shard


def test_posts_become_graphs_with_all_their_formulas(tmp_path: Path) -> None:
    summary = build(tmp_path / "c.db", posts(5))
    assert (summary.graphs, summary.failures, summary.formulas) == (5, {}, 10)
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.post_ids("answer") == ["0", "1", "2", "3", "4"]
        graph = graphs.get("3")
        assert graph.formula_map == {"FORMULA_0": "3:0", "FORMULA_1": "3:1"}
        decoded = graph.decode()
        assert decoded.kinds.count(NodeKind.FORMULA) == 2
        assert {"V!x", "N!3", "V!y"} <= set(decoded.labels)
        assert graphs.meta["parser"] == "parrot 1 none"


def test_failures_are_kept_with_their_reason_and_the_others_go_on(tmp_path: Path) -> None:
    unreadable: list[Post | Failure] = [
        Failure("1", "read", "columns", "Posts.xml:2: no kind"),  # another record of this id is read
        Failure("x9", "read", "columns", "Posts.xml:3: no Id"),
    ]
    summary = build(tmp_path / "c.db", [*unreadable, *posts(4, p1="crash here", p2="", p3="crash with $z$")])
    assert summary.failures == {("amr", "crash"): 2, ("read", "columns"): 2, ("read", "empty"): 1}
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.post_ids() == ["0", "3"]
        with pytest.raises(StoreError, match="no graph of post 1: crashed"):
            graphs.get("1")
        with pytest.raises(StoreError, match=r"no graph of post x9: Posts\.xml:3: no Id"):
            graphs.get("x9")
        with pytest.raises(StoreError, match="no record of a failure"):
            graphs.get("77")
        kept = graphs.get("3")  # its sentence is lost, its formula is not
        assert kept.attachments == {"FORMULA_0": "root"}


def test_a_row_that_has_changed_since_it_was_written_is_named(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(2))
    with collection.writer(tmp_path / "c.db") as connection:
        connection.execute("UPDATE graph SET penman = replace(penman, 'Solve', 'Salve') WHERE post_id = '1'")
        connection.commit()
    with Collection(tmp_path / "c.db") as graphs:
        for read in (lambda: graphs.get("1"), lambda: list(graphs), lambda: list(graphs.rows())):
            with pytest.raises(StoreError, match=r"c\.db: the row of post 1 is not what was written"):
                read()


@pytest.mark.parametrize("column", ["formula_map", "attachments", "reattached"])
@pytest.mark.parametrize("text", ["{", "[" * 100_000, "[]", "null", '{"FORMULA_0": 7}', b"\xff"])
def test_a_row_of_another_program_with_its_digest_is_named(column: str, text: str | bytes, tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(2))
    with collection.writer(tmp_path / "c.db") as connection:
        connection.execute(f"UPDATE graph SET {column} = ? WHERE post_id = '1'", (text,))
        (row,) = connection.execute("SELECT * FROM graph WHERE post_id = '1'").fetchall()
        connection.execute("UPDATE graph SET digest = ? WHERE post_id = '1'", (row_digest(*row[:-1]),))
        connection.commit()
    with Collection(tmp_path / "c.db") as graphs:
        for read in (lambda: graphs.get("1"), lambda: list(graphs)):
            with pytest.raises(StoreError, match=r"c\.db: the row of post 1 is damaged \("):
                read()
        if column == "formula_map":
            with pytest.raises(StoreError, match=r"c\.db: the row of post 1 is damaged \("):
                list(graphs.formula_ids())


def test_a_build_commits_while_readers_are_in_the_middle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(database, "_PATIENCE", 0)
    monkeypatch.setattr(collection, "_PAGE_ROWS", 2)
    path = tmp_path / "c.db"
    build(path, posts(9, p2="crash", p7="crash"))
    with collection.writer(path) as connection:
        collection.insert_failures(connection, [Failure("2", "formula", "too_large", str(n)) for n in range(4)])
        connection.commit()
    with Collection(path) as graphs:
        expected = list(graphs), list(graphs.ids()), list(graphs.rows()), list(graphs.failures())
        whole, ids, rows, failures = iter(graphs), graphs.ids("answer"), graphs.rows(), graphs.failures()
        first = [next(whole)], [next(ids)], [next(rows)], [next(failures)]
        with collection.writer(path) as connection:
            connection.execute("INSERT INTO graph SELECT '6b', kind, penman, '', '', 0, 0 FROM graph LIMIT 1")
            connection.commit()
            connection.execute("DELETE FROM graph WHERE post_id = '6b'")
            connection.commit()
        assert ([*first[0], *whole], [*first[1], *ids], [*first[2], *rows], [*first[3], *failures]) == expected
    assert expected[1] == ["0", "1", "3", "4", "5", "6", "8"]
    assert [failure.post_id for failure in expected[3]] == ["2", "2", "2", "2", "2", "7"]


@pytest.mark.usefixtures("warm_children")
def test_a_worker_that_dies_takes_no_other_post_with_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collection, "BATCH_SIZE", 2)
    summary = build(tmp_path / "c.db", posts(10, p4="die now"), workers=2)
    assert (summary.graphs, summary.failures) == (9, {("amr", "worker_died"): 1})
    with Collection(tmp_path / "c.db") as graphs:
        assert [failure.post_id for failure in graphs.failures()] == ["4"]


def test_building_again_does_nothing_and_another_source_is_refused(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(5))
    before = content(tmp_path / "c.db")
    build(tmp_path / "c.db", posts(5))
    assert content(tmp_path / "c.db") == before
    with pytest.raises(StoreError, match="begun with source 'test', now asked to go on with 'other'"):
        collection.build(tmp_path / "c.db", posts(5), Parrot, source="other")


def test_more_posts_can_follow(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(5))
    assert build(tmp_path / "c.db", posts(8)).graphs == 8


def test_killed_at_random_moments_and_resumed_it_ends_like_one_run(tmp_path: Path) -> None:
    build(tmp_path / "whole.db", posts(60, p7="crash"))
    program = textwrap.dedent(
        f"""
        import functools, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from pathlib import Path
        from graphs.stores import collection
        from parrot import Parrot, posts
        collection.BATCH_SIZE = 4
        collection.build({str(tmp_path / "killed.db")!r}, posts(60, p7="crash"),
                         functools.partial(Parrot, delay=0.01), source="test")
        """
    )
    kills = 0
    for patience in (0.4, 0.1, 0.2, 0.3, 0.05, 0.25):
        process = subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)
        deadline = time.monotonic() + 60
        while process.poll() is None and time.monotonic() < deadline and not (tmp_path / "killed.db").exists():
            time.sleep(0.01)
        time.sleep(patience)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills
    build(tmp_path / "killed.db", posts(60, p7="crash"))
    assert content(tmp_path / "killed.db") == content(tmp_path / "whole.db")


def test_export_and_import_give_the_same_graphs(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(6, p2='A "quoted"  word of $M\\"x$.'))
    with Collection(tmp_path / "c.db") as graphs:
        assert exchange.export_penman(graphs, tmp_path / "c.penman") == 6
        expected = list(graphs)
    summary = exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    assert summary.graphs == 6
    with Collection(tmp_path / "again.db") as graphs:
        assert list(graphs) == expected


def test_a_broken_graph_in_an_import_is_a_record_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "given.penman"
    path.write_text(
        "# ::id a\n# ::kind answer\n# ::formula_map {}\n(s / solve-01)\n\n"
        "# ::id b\n# ::formula_map {}\n(s / solve-01\n\n"
        '# ::id c\n# ::formula_map {"FORMULA_0": "7"}\n(s / solve-01)\n\n'
        "# ::id d\n# ::formula_map [1]\n(s / solve-01)\n"
    )
    summary = exchange.import_penman(path, tmp_path / "c.db")
    assert summary.graphs == 1
    with Collection(tmp_path / "c.db") as graphs:
        failures = {failure.post_id: failure.message for failure in graphs.failures()}
    assert failures.keys() == {"b", "c", "d"}
    assert f"{path}:6: " in failures["b"]
    assert "FORMULA_0 (7)" in failures["c"]


def test_an_import_records_ids_without_a_graph_and_reads_over_empty_lines(tmp_path: Path) -> None:
    path = tmp_path / "graphs.penman"
    path.write_text("# ::id 1\n\n# ::id 2\n(a / ask-01)\n\n# ::id 3\n\n(b / bound-01)\n\n# ::id 4\n")
    assert exchange.import_penman(path, tmp_path / "c.db").graphs == 2
    with Collection(tmp_path / "c.db") as graphs:
        assert {graph.post_id for graph in graphs} == {"2", "3"}
        assert {failure.post_id for failure in graphs.failures()} == {"1", "4"}


def test_a_retry_that_is_stopped_often_tries_each_post_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path, tried = tmp_path / "c.db", []
    monkeypatch.setattr(collection, "BATCH_SIZE", 2)
    bad = posts(8, p1="crash", p3="crash", p4="crash", p6="crash")

    def retry(stops: bool) -> int | None:
        def progress(number: int) -> None:
            tried.append(number)
            if stops:
                raise KeyboardInterrupt

        numbers: list[int | None] = []
        parser, skip, again = Parrot, lambda _: None, numbers.append
        with pytest.raises(KeyboardInterrupt) if stops else nullcontext():
            collection.build(path, bad, parser, source="test", progress=progress, skipped=skip, retried=again)
        return numbers[0]

    build(path, bad)
    assert [retry(stops) for stops in (True, True, False)] == [4, None, None]
    assert sum(tried) == 4
    assert retry(stops=False) == 4  # a later retry tries them again
    build(tmp_path / "whole.db", bad)
    assert content(path) == content(tmp_path / "whole.db")
    with Collection(path) as graphs, Collection(tmp_path / "whole.db") as whole:
        assert graphs.meta == whole.meta


def test_kinds_of_posts_that_were_built_one_after_the_other_are_all_in_the_merged_collection(tmp_path: Path) -> None:
    first, second = tmp_path / "1.db", tmp_path / "2.db"
    for path, shard, kinds in ((first, "1/2", ["answer"]), (first, "1/2", ["question"]), (second, "2/2", ["answer"])):
        part = Shard.parse(shard).of(posts(6))
        collection.build(path, part, Parrot, source="test", shard=shard, selection=kinds)
    with pytest.raises(StoreError, match=r"its selection is 'answer', that of .*1.db is 'answer, question'"):
        shards.merge(tmp_path / "c.db", [first, second])
    part = Shard.parse("2/2").of(posts(6))
    collection.build(second, part, Parrot, source="test", shard="2/2", selection=["question", "answer"])
    assert shards.merge(tmp_path / "c.db", [first, second]).graphs == 6
