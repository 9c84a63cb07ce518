"""Builds that are killed, split, repeated or disturbed end like one undisturbed build."""

from __future__ import annotations

import random
import signal
import sqlite3
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from parrot import Parrot, build, content, posts

from graphs.amr.penman_file import PenmanFileParser
from graphs.corpus import post_limits
from graphs.corpus.post import Post
from graphs.errors import ConfigError, Failure, StoreError
from graphs.graph import graph_maker
from graphs.graph.mathamr_plus import NodeKind
from graphs.stores import collection, exchange, shards
from graphs.stores.collection import Collection
from graphs.stores.shards import Shard

COUNT = 80


def start(
    path: Path,
    *,
    shard: str = "1/1",
    workers: int = 2,
    delay: float = 0.01,
    count: int = COUNT,
    body: str = "crash",
    gate: str = "",
) -> subprocess.Popen[bytes]:
    """A process that builds the collection of ``posts(count)``, post 7 with another ``body``, in batches of 4."""
    program = textwrap.dedent(
        f"""
        import functools, sys
        sys.path.insert(0, {str(Path(__file__).parents[1])!r})
        from graphs.stores import collection
        from graphs.stores.shards import Shard
        from parrot import Parrot, posts
        if __name__ == "__main__":
            collection.BATCH_SIZE = 4
            collection.build({str(path)!r}, Shard.parse({shard!r}).of(posts({count}, p7={body!r})),
                             functools.partial(Parrot, delay={delay}, gate={gate!r}), source="test",
                             shard={shard!r}, workers={workers})
        """
    )
    return subprocess.Popen([sys.executable, "-c", program], stderr=subprocess.PIPE)


def rows_appear(path: Path, process: subprocess.Popen[bytes], seconds: float = 60) -> None:
    """Wait until the process has written a graph."""
    deadline = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < deadline:
        if path.exists():
            try:
                with Collection(path) as graphs:
                    if len(graphs):
                        return
            except StoreError:
                pass  # not made yet, or locked for the moment
        time.sleep(0.02)


def rows(path: Path) -> int:
    """The number of graphs so far."""
    try:
        with Collection(path) as graphs:
            return len(graphs)
    except StoreError:
        return 0  # not made yet, or locked for the moment


def test_two_shards_with_two_workers_each_killed_and_resumed_merge_into_one_whole(tmp_path: Path) -> None:
    build(tmp_path / "whole.db", posts(COUNT, p7="crash"))
    moments = random.Random(4)
    kills = 0
    for number in (1, 2):
        path = tmp_path / f"shard-{number}.db"
        for _ in range(3):
            process = start(path, shard=f"{number}/2")
            rows_appear(path, process)
            time.sleep(moments.uniform(0, 0.3))
            if process.poll() is None:
                process.send_signal(signal.SIGKILL)
                kills += 1
            process.communicate()
        if path.exists():
            with Collection(path) as graphs:
                unfinished = not graphs.meta["finished"]
            if unfinished:
                with pytest.raises(StoreError, match="not finished; build it again"):
                    shards.merge(tmp_path / "early.db", [path])
        shard = Shard(number, 2)
        collection.build(path, shard.of(posts(COUNT, p7="crash")), Parrot, source="test", shard=str(shard))
    assert kills
    summary = shards.merge(tmp_path / "merged.db", [tmp_path / "shard-2.db", tmp_path / "shard-1.db"])
    assert (summary.graphs, summary.failures) == (COUNT - 1, {("amr", "crash"): 1})
    assert content(tmp_path / "merged.db") == content(tmp_path / "whole.db")
    with Collection(tmp_path / "merged.db") as merged, Collection(tmp_path / "whole.db") as whole:
        assert merged.meta == whole.meta
        assert list(merged.rows()) == list(whole.rows())
    assert not list(tmp_path.glob("*.part*"))


def test_ten_kills_at_random_moments_and_the_content_is_that_of_one_run(tmp_path: Path) -> None:
    count, path, moments = 200, tmp_path / "c.db", random.Random(2026)
    kills = late_kills = too_late = 0
    while kills < 10:
        process = start(path, count=count, delay=0.02, workers=1 + kills % 2)
        if kills % 3:  # while it writes
            wanted = rows(path) + moments.randrange(1, 9)
            deadline = time.monotonic() + 60
            while rows(path) < wanted and process.poll() is None and time.monotonic() < deadline:
                time.sleep(moments.uniform(0, 0.03))
        else:  # while it starts
            time.sleep(moments.uniform(0, 0.8))
        process.send_signal(signal.SIGKILL)  # does nothing to a build that has ended, on a machine with other work
        _, errors = process.communicate()
        if process.returncode == 0:
            path.unlink()
            too_late += 1
            assert too_late < 10
            continue
        assert process.returncode == -signal.SIGKILL, errors.decode()
        kills += 1
        late_kills += 0 < rows(path) < count
    assert late_kills > 5
    process = start(path, count=count, delay=0)
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()
    build(tmp_path / "whole.db", posts(count, p7="crash"))
    assert content(path) == content(tmp_path / "whole.db")
    with Collection(path) as graphs, Collection(tmp_path / "whole.db") as whole:
        assert graphs.meta == whole.meta


def test_a_post_that_ends_a_build_in_one_process_is_a_failure_the_next_time(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    for code in (3, 0):
        process = start(path, workers=1, delay=0, body="die now")
        _, errors = process.communicate(timeout=120)
        assert process.returncode == code, errors.decode()
    with Collection(path) as graphs:
        assert (len(graphs), [failure.post_id for failure in graphs.failures()]) == (COUNT - 1, ["7"])
        assert "in_process" not in graphs.meta


def test_a_build_of_one_batch_starts_no_process(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Parrot, "name", "changed in this process alone")
    build(tmp_path / "c.db", posts(collection.BATCH_SIZE), workers=4)
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.meta["parser"] == "changed in this process alone 1 none"
    made = []
    monkeypatch.setattr(Parrot, "__init__", lambda self: made.append(self))
    build(tmp_path / "c.db", posts(collection.BATCH_SIZE), workers=1)
    assert not made  # nothing to do needs no parser


def test_of_two_writers_the_second_is_refused_and_the_first_unharmed(tmp_path: Path) -> None:
    path, gate = tmp_path / "c.db", tmp_path / "gate"
    first = start(path, workers=1, delay=0, gate=str(gate))
    rows_appear(path, first)
    assert first.poll() is None
    with pytest.raises(StoreError, match=r"c\.db: another process is writing to this file"):
        build(path, posts(COUNT, p7="crash"))
    with Collection(path) as graphs:  # reading goes on all the while
        assert graphs.get("0").kind == "answer"
    gate.touch()
    _, errors = first.communicate(timeout=120)
    assert first.returncode == 0, errors.decode()
    build(tmp_path / "whole.db", posts(COUNT, p7="crash"))
    assert content(path) == content(tmp_path / "whole.db")


@pytest.mark.parametrize("workers", [1, 2])
def test_of_posts_with_one_id_the_first_counts_and_unreadable_records_are_all_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, workers: int
) -> None:
    monkeypatch.setattr(collection, "BATCH_SIZE", 3)
    again = [Post("2", "answer", body="Another two.", markup="text"), Post("2", "answer", body="crash", markup="text")]
    broken: list[Post | Failure] = [Failure("", "read", "bad_json", f"posts.jsonl:{line}: not JSON") for line in (3, 4)]
    stream = [*posts(6), *again, *broken, *posts(6, p2="A third two."), *broken]
    for _ in range(2):
        summary = build(tmp_path / "c.db", stream, workers)
        assert (summary.graphs, summary.failures) == (6, {("read", "bad_json"): 2, ("read", "duplicate_id"): 8})
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.get("2").formula_map == {"FORMULA_0": "2:0", "FORMULA_1": "2:1"}
        failures = {failure.post_id: failure for failure in graphs.failures()}
        assert len(failures) == 10
        assert {"2 #2", "2 #3", "2 #4", "0 #2"} <= failures.keys()
        assert failures["2 #3"].message == "there are 3 posts with the id 2 up to here; the first counts"
        assert graphs.incomplete() == 0


@pytest.mark.parametrize("batch_size", [1, 2])
def test_of_equal_records_of_two_folders_the_first_counts(
    batch_size: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(collection, "BATCH_SIZE", batch_size)
    records = [Failure("", "read", "bad_json", f"{folder}/posts.jsonl:3: not JSON") for folder in "ab"]
    build(tmp_path / "c.db", records)
    with Collection(tmp_path / "c.db") as graphs:
        assert [failure.message for failure in graphs.failures()] == ["a/posts.jsonl:3: not JSON"]


@pytest.mark.parametrize("order", ["2 2 2#2 2#2 2#2#2", "2#2#2 2#2 2 2#2 2", "2 2#2 2#2 2#2#2 2"])
def test_the_record_of_a_second_post_takes_no_id_from_another(tmp_path: Path, order: str) -> None:
    stream: list[Post | Failure] = [Post(post_id, "answer", body="Some words.") for post_id in order.split()]
    summary = build(tmp_path / "c.db", stream)
    assert (summary.graphs, summary.failures) == (3, {("read", "duplicate_id"): 2})
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.post_ids() == ["2", "2#2", "2#2#2"]
        assert {failure.post_id for failure in graphs.failures()} == {"2 #2", "2#2 #2"}


@pytest.mark.parametrize("post_id", ["2 #2", "a b", "a\tb", "a\0b", "\ufeffa", "\ud800", "\u2028", " "])
def test_an_id_that_no_run_file_can_hold_is_a_record(tmp_path: Path, post_id: str) -> None:
    stream: list[Post | Failure] = [
        Post(post_id, "answer", body="Some words."),
        *posts(1),
        Failure("7", "read", "bad_post", f"post {post_id}: no body"),
    ]
    for _ in range(2):
        summary = build(tmp_path / "c.db", stream)
        assert (summary.graphs, summary.failures) == (1, {("read", "bad_id"): 1, ("read", "bad_post"): 1})
    with Collection(tmp_path / "c.db") as graphs:
        message = next(failure.message for failure in graphs.failures() if failure.kind == "bad_id")
    assert repr(post_id) in message


def test_ids_with_slashes_and_dots_are_ids(tmp_path: Path) -> None:
    ids = ["../../etc/passwd", "/a/b", "..", "a'b\"c;--", "%s", "unread-1"]
    assert build(tmp_path / "c.db", [Post(post_id, "answer", body="Some words.") for post_id in ids]).graphs == len(ids)
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.post_ids() == sorted(ids)
        assert graphs.get("..").post_id == ".."
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c.db", "c.db.lock"]


def test_a_post_past_the_bounds_keeps_the_graph_of_its_beginning(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(post_limits, "MAX_CHARACTERS", 60)
    stream = posts(2, p1="It is $a$ here. It is $b$ there. It is $c$ and more. And $d$ is the last of them. No.")
    summary = build(tmp_path / "c.db", stream)
    assert (summary.graphs, summary.failures, summary.formulas) == (2, {("read", "too_long"): 1}, 5)
    with Collection(tmp_path / "c.db") as graphs:
        assert graphs.incomplete() == 1
        (failure,) = graphs.failures()
        assert list(graphs.get("1").formula_map) == ["FORMULA_0", "FORMULA_1", "FORMULA_2"]
    assert (failure.post_id, failure.message) == ("1", "a post of 85 characters; the first 53 are read")


def test_a_formula_past_a_bound_keeps_its_node_and_is_a_record(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_maker, "MAX_TREE_NODES", 30)
    monkeypatch.setattr(graph_maker, "MAX_POST_NODES", 2140)
    deep, long = "{" * 70 + "x" + "}" * 70, "+".join("x" * 40)
    body = rf"$y$, $$ {deep} $$ and $${long}$$ or $$\quad$$ and ${'+'.join('z' * 9)}$, $w$ or $v$."
    summary = build(tmp_path / "c.db", posts(1, p0=body))
    assert (summary.graphs, summary.failures, summary.formulas) == (1, {("formula", "too_large"): 4}, 7)
    with Collection(tmp_path / "c.db") as graphs:
        messages = [failure.message for failure in graphs.failures()]
        graph = graphs.get("0").decode()
    with_trees = {graph.formula[i] for i, kind in enumerate(graph.kinds) if kind > NodeKind.FORMULA}
    assert with_trees == {0, 3, 4}
    assert messages[0] == "FORMULA_1 (0:1): groups are nested more than 60 deep, too deep for a tree"
    assert messages[1].startswith("FORMULA_2 (0:2): a tree of 79 nodes; at most 30")
    assert messages[2].startswith("FORMULA_5 (0:5): the trees before it have 2,140 nodes")


def test_a_post_of_refused_formulas_has_few_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graph_maker, "MAX_TREE_NODES", 2)
    summary = build(tmp_path / "c.db", posts(1, p0="$x+y$ " * 50))
    assert summary.failures == {("formula", "too_large"): 11}
    with Collection(tmp_path / "c.db") as graphs:
        assert [failure.message for failure in graphs.failures()][-1] == "and 40 more formulas past the bounds"


def test_every_post_is_in_one_shard_and_a_shard_keeps_to_itself(tmp_path: Path) -> None:
    ids = [str(i) for i in range(3000)]
    parts = [{i for i in ids if Shard(k, 7).holds(i)} for k in range(1, 8)]
    assert set().union(*parts) == set(ids)
    assert sum(map(len, parts)) == 3000
    assert all(350 < len(part) < 510 for part in parts)
    assert [k for k in range(1, 17) if Shard(k, 16).holds("255")] == [9]  # the same on every machine, forever
    for text in ("0/4", "5/4", "1/0", "1", "a/b", "-1/4"):
        with pytest.raises(ConfigError, match="numbered from 1"):
            Shard.parse(text)
    one = list(Shard(1, 2).of(posts(9)))
    collection.build(tmp_path / "c.db", one, Parrot, source="test", shard="1/2")
    with pytest.raises(StoreError, match="begun with shard '1/2', now asked to go on with '2/2'"):
        collection.build(tmp_path / "c.db", one, Parrot, source="test", shard="2/2")


def change(path: Path, statement: str, *values: str) -> None:
    connection = sqlite3.connect(path)
    connection.execute(statement, values)
    connection.commit()
    connection.close()


def shard_files(folder: Path, *, source: str = "test") -> list[Path]:
    paths = [folder / "1.db", folder / "2.db"]
    for number, path in enumerate(paths, 1):
        part = Shard(number, 2)
        collection.build(path, part.of(posts(12)), Parrot, source=source, shard=str(part))
    return paths


def test_shards_that_do_not_belong_together_are_refused(tmp_path: Path) -> None:
    for name in ("here", "there"):
        (tmp_path / name).mkdir()
    first, second = shard_files(tmp_path / "here")
    _, foreign = shard_files(tmp_path / "there", source="other")
    out = tmp_path / "out.db"
    for given, message in (
        ([first, foreign], "its source is 'other', that of .*1.db is 'test'"),
        ([first, first], "this is shard 1/2, and so is"),
        ([second], "1 of 2 shards are missing: 1/2"),
        ([], "no shard is given"),
    ):
        with pytest.raises(StoreError, match=message):
            shards.merge(out, given)
        assert not out.exists()
    for key, value, other in (("parser", "parrot 1 none", "parrot 2 none"), ("trees", "LaTeX", "formulas.db")):
        change(second, "UPDATE meta SET value = ? WHERE key = ?", f'"{other}"', key)
        with pytest.raises(StoreError, match=f"its {key} is '{other}'"):
            shards.merge(out, [first, second])
        change(second, "UPDATE meta SET value = ? WHERE key = ?", f'"{value}"', key)
    row = content(first)[0][0]
    change(second, "INSERT INTO graph VALUES (?, ?, ?, ?, ?, ?, ?)", *row)
    with pytest.raises(StoreError, match=f"post {row[0]} is in two of the shards"):
        shards.merge(out, [first, second])
    change(second, "DELETE FROM graph WHERE post_id = ?", row[0])
    assert shards.merge(out, [first, second]).graphs == 12  # over what the merge before left behind
    with pytest.raises(StoreError, match="this file exists"):
        shards.merge(out, [first, second])


def test_failures_are_tried_again_when_asked(tmp_path: Path) -> None:
    path = tmp_path / "c.db"
    build(path, posts(5, p1="crash", p3="crash with $z$"))
    assert build(path, posts(5)).failures == {("amr", "crash"): 2}  # a failure stays
    numbers: list[int | None] = []
    assert build(path, posts(5), retried=numbers.append).failures == {}
    assert numbers == [2]
    build(tmp_path / "whole.db", posts(5))
    assert content(path) == content(tmp_path / "whole.db")


def test_a_retry_of_a_merged_collection_is_of_all_its_kinds(tmp_path: Path) -> None:
    build(tmp_path / "one.db", posts(2, p1="crash"), selection=["answer", "topic"])
    shards.merge(tmp_path / "all.db", [tmp_path / "one.db"])
    with pytest.raises(StoreError, match="has posts of topic, which would not be tried again"):
        build(tmp_path / "all.db", posts(2), selection=["answer"], retried=print)
    assert content(tmp_path / "all.db") == content(tmp_path / "one.db")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"shard": "2/2"}, "begun with shard '1/1'"),
        ({"source": "other"}, "begun with source 'test'"),
        (
            {"selection": ["question"]},
            "posts of answer, which would not be tried again; retry all of answer, question",
        ),
    ],
)
@pytest.mark.parametrize("whole", [True, False])
def test_a_retry_that_is_refused_changes_nothing(
    tmp_path: Path, changed: dict[str, Any], message: str, whole: bool
) -> None:
    path = tmp_path / "c.db"
    build(path, posts(5, p1="crash"), selection=["answer", "question"], whole=whole)
    before = path.read_bytes()
    with pytest.raises(StoreError, match=message):
        build(path, posts(5), retried=lambda _: None, **changed)
    assert path.read_bytes() == before


def test_reattached_parts_are_kept_and_travel(tmp_path: Path) -> None:
    build(tmp_path / "c.db", posts(3, p1="apart"))
    with Collection(tmp_path / "c.db") as graphs:
        assert [graph.reattached for graph in graphs] == [0, 1, 0]
        exchange.export_penman(graphs, tmp_path / "c.penman")
    exchange.import_penman(tmp_path / "c.penman", tmp_path / "again.db")
    with Collection(tmp_path / "again.db") as graphs:
        assert graphs.get("1").reattached == 1
        assert (graphs.meta["source"], graphs.meta["parser"]) == ("test", "parrot 1 none")
    assert build(tmp_path / "again.db", posts(4, p1="apart")).graphs == 4  # an imported collection goes on


def test_an_import_of_no_file_makes_no_collection(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="no such file; an import reads what export wrote"):
        exchange.import_penman(tmp_path / "none.penman", tmp_path / "c.db")
    assert not (tmp_path / "c.db").exists()


def test_a_graph_made_elsewhere_keeps_its_own_numbers_of_formulas(tmp_path: Path) -> None:
    path = tmp_path / "graphs.penman"
    path.write_text(
        '# ::id 1\n# ::formula_map {"FORMULA_0": "1:1"}\n(s / solve-01 :ARG1 (f / FORMULA_0))\n\n'
        '# ::id 2\n# ::formula_map {"FORMULA_0": "9:9"}\n(s / solve-01 :ARG1 (f / FORMULA_0))\n'
    )
    made_of = [Post(str(i), "question", title="Of $x$:", body="solve $y+1$.", markup="text") for i in (1, 2)]
    parser = partial(PenmanFileParser, path=str(path))
    summary = collection.build(tmp_path / "c.db", made_of, parser, source="test")
    assert (summary.graphs, summary.failures) == (1, {("graph", "formula_map"): 1})
    with Collection(tmp_path / "c.db") as graphs:
        graph = graphs.get("1")
        assert graph.formula_map == {"FORMULA_0": "1:1", "FORMULA_1": "1:0"}  # y+1, and x, which it does not mention
        assert graph.attachments == {"FORMULA_0": "concept", "FORMULA_1": "root"}
        with pytest.raises(StoreError, match="FORMULA_0 = '9:9', the post has the formulas 2:0, 2:1"):
            graphs.get("2")


def test_posts_that_are_there_already_are_passed_to_their_own_function(tmp_path: Path) -> None:
    parsed: list[int] = []
    skipped: list[int] = []
    for number in (3, 5):
        collection.build(
            tmp_path / "c.db",
            posts(number),
            Parrot,
            source="a",
            progress=parsed.append,
            skipped=skipped.append,
        )
    assert (sum(parsed), sum(skipped)) == (5, 3)


def test_a_batch_that_is_half_written_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space left on device")

    monkeypatch.setattr(collection, "insert_failures", full)
    with pytest.raises(OSError, match="no space left"):
        build(tmp_path / "c.db", posts(2))
    assert content(tmp_path / "c.db") == ([], [])


def test_a_merge_keeps_nothing_of_one_that_was_killed(tmp_path: Path) -> None:
    build(tmp_path / "whole.db.part", posts(9, p8="crash"))
    build(tmp_path / "one.db", posts(4, p1="crash"))
    shards.merge(tmp_path / "whole.db", [tmp_path / "one.db"])
    assert content(tmp_path / "whole.db") == content(tmp_path / "one.db")


def test_a_trial_leaves_a_finished_collection_finished(tmp_path: Path) -> None:
    def trial(path: Path) -> None:
        build(path, posts(2), whole=False, selection=["answers"])

    build(tmp_path / "all.db", posts(6))
    trial(tmp_path / "all.db")
    assert Collection(tmp_path / "all.db").meta["finished"]
    build(tmp_path / "all.db", posts(8), whole=False)
    assert not Collection(tmp_path / "all.db").meta["finished"]
    trial(tmp_path / "new.db")
    assert not Collection(tmp_path / "new.db").meta["finished"]
    assert collection.SELECTION not in Collection(tmp_path / "new.db").meta


def test_a_finished_collection_is_unfinished_once_a_build_goes_on(tmp_path: Path) -> None:
    def stopped() -> Iterator[Post | Failure]:
        yield from posts(3)
        raise OSError("no such disk")

    build(tmp_path / "c.db", posts(2))
    with pytest.raises(OSError, match="no such disk"):
        build(tmp_path / "c.db", stopped())
    assert not Collection(tmp_path / "c.db").meta["finished"]
