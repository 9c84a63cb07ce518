"""scripts/index.py, search.py and make_run.py on a small collection of JSON lines, from posts to a run file."""

from __future__ import annotations

import errno
import io
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from qdrant_client import QdrantClient

import scripts.index
import scripts.make_run
import scripts.search
from graphs.corpus.post import Post, Topic
from graphs.errors import RetrievalError, StoreError
from graphs.shared_files import only_writer
from mathamr.evaluation.runs import read_run
from mathamr.retrieval.folder import HEADER, refuse_other_files, unwritten
from mathamr.search.catalog import Catalog
from mathamr.search_index import FORMAT as SYSTEM_FORMAT
from mathamr.stages.console import Console
from mathamr.stages.retrieval import index_runs, indexing
from mathamr.stages.retrieval.index_runs import IndexSearch, search_index
from tests.scripts.small_collection import ANSWERS, index_arguments


@pytest.fixture(scope="module")
def index(work: Path) -> Path:
    assert scripts.index.main(index_arguments(work, work / "index", "--posts-a-shard", "3")) == 0
    return work / "index"


def test_the_index_is_checked_when_it_is_built(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.index.main(index_arguments(work, tmp_path, "--backend", "qdrant")) == 0
    out = capsys.readouterr().out
    assert "4 posts" in out
    assert out.count("recall@100 1.000 against exact search") == 5
    catalog = Catalog.open(tmp_path)
    assert (catalog.backend, len(catalog), len(catalog.formulas)) == ("qdrant", 4, 6)
    catalog.close()
    assert not (tmp_path / "encoding").exists()


def test_posts_are_removed_and_added(
    work: Path, tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").write_text("12\n13\n")
    out = tmp_path / "index"
    assert scripts.index.main(index_arguments(work, out, "--remove", str(tmp_path / "gone"))) == 0
    smaller = Catalog.open(out)
    assert sorted(smaller.vectors.post_ids()) == ["11", "14"]
    smaller.close()
    capsys.readouterr()
    assert scripts.index.main(index_arguments(work, out, "--update")) == 0
    printed = capsys.readouterr().out
    assert "2 kept from the index before" in printed
    assert "an earlier run" not in printed
    grown, whole = Catalog.open(out), Catalog.open(index)
    ids = sorted(ANSWERS)
    assert sorted(grown.vectors.post_ids()) == ids
    torch.testing.assert_close(grown.vectors.vectors_of(ids).vectors, whole.vectors.vectors_of(ids).vectors)
    assert len(grown.formulas) == len(whole.formulas)


def test_a_folder_of_other_files_is_refused(work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("posts.jsonl", "folder/posts.jsonl", "index.json"):
        out = tmp_path / name[0] / "out"
        (out / name).parent.mkdir(parents=True)
        (out / name).write_text("{}")
        assert scripts.index.main(index_arguments(work, out)) == 2
        message = f"{out}: the folder holds other files, e.g. {name.partition('/')[0]}; name a new folder"
        assert message in capsys.readouterr().err
        assert [path for path in out.rglob("*") if path.is_file()] == [out / name]
    assert scripts.index.main(index_arguments(work, out / name)) == 2
    assert "is a file, and an index is a folder; name a new folder" in capsys.readouterr().err


def test_a_full_disk_is_one_message_with_the_way_out(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def full(source: str, target: str, **_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), target)

    monkeypatch.setattr(shutil, "copyfile", full)
    assert scripts.index.main(index_arguments(work, tmp_path / "index")) == 2
    message = capsys.readouterr().err.splitlines()[-1]
    assert message.startswith(f"{tmp_path}/index: the index cannot be written: [Errno 28] No space left on device: ")
    assert message.endswith("; make room, or the folder writable, then run it again")
    assert "[(" not in message


def test_only_faults_of_the_disk_ask_for_room_or_permission() -> None:
    def asks(error: OSError) -> bool:
        return "make room" in str(unwritten(error, Path("index")))

    of_disk = (errno.ENOSPC, errno.EDQUOT, errno.EACCES, errno.EROFS)
    assert all(asks(OSError(number, os.strerror(number), "index/vectors.npy")) for number in of_disk)
    assert not asks(OSError(errno.ENOENT, os.strerror(errno.ENOENT), "model/weights.safetensors"))
    assert asks(OSError("10000 requested and 0 written"))  # of numpy, for a full disk


@pytest.mark.parametrize(
    "left",
    [
        [],
        [".lock", "encoding/0.pt", "encoding-1/0.pt", ".index.json.1"],
        ["folder/.lock", "folder/posts.jsonl"],
        [f"data-{'0' * 32}/vectors", "README.md"],
    ],
)
def test_an_index_and_the_files_of_a_killed_build_are_not_refused(tmp_path: Path, left: list[str]) -> None:
    for name in left:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    refuse_other_files(tmp_path)
    refuse_other_files(tmp_path / "new")
    assert {path for path in tmp_path.rglob("*") if not path.is_dir()} == {tmp_path / name for name in left}
    assert not (tmp_path / "new").exists()


def test_ids_to_remove_that_the_index_lacks_are_named(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").write_text("12\n99\n1\n", encoding="utf-8-sig")
    assert scripts.index.main(index_arguments(work, tmp_path / "index", "--remove", str(tmp_path / "gone"))) == 0
    assert "2 of 3 ids to remove are not in the index: 1, 99; check the ids" in " ".join(
        capsys.readouterr().err.split()
    )
    smaller = Catalog.open(tmp_path / "index")
    assert sorted(smaller.vectors.post_ids()) == ["11", "13", "14"]
    smaller.close()


def test_a_search_shows_title_text_score_and_why(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", "k=4", ANSWERS["14"]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "1. Is $\\sqrt2$ odd?"
    assert lines[1].startswith("   post 14, score 4.000")
    assert lines[2].strip() == "answers question 1: Well?"  # the title is above
    assert lines[3].strip() == ANSWERS["14"]
    assert lines[4].strip() == "1.000  formula $\\sqrt2$  <-  formula $\\sqrt2$"
    assert lines[5].strip() == "1.000  formula $\\sqrt3$  <-  formula $\\sqrt3$"
    assert lines[6].strip().startswith("1.000  sentence Both $")
    assert lines[7].strip() == "1.000  whole post  <-  whole post"
    assert not any("\x1b" in line for line in lines)


def test_a_search_says_what_of_the_query_the_model_knows(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", "k=1", "Is $\\sqrt2$ irrational or zzzqqq?"]) == 0
    assert "query: known: irrational; unknown: zzzqqq; 1 formula\n" in capsys.readouterr().err
    assert scripts.search.main([f"index={index}", "k=1", "Irrationals, or ZZZqqqs?"]) == 0
    captured = capsys.readouterr().err
    assert "query: known: Irrationals; unknown: ZZZqqqs; 0 formulas\n" in captured
    assert "note" not in captured


@pytest.mark.parametrize(
    ("query", "is_noted"),
    [
        *[
            ("Is \\sqrt2 irrational?", True),
            ("Is x^2 irrational?", True),
            ("irrational a_1", True),
            ("irrational √2", True),
        ],
        *[("Is $x^2$ irrational?", False), ("irrational prime_number", False), ("irrational $", False)],
    ],
)
def test_a_formula_without_dollar_signs_is_noted(
    index: Path, query: str, is_noted: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripts.search.main([f"index={index}", "k=1", query]) == 0
    assert ("note: no formula is read; write formulas between dollar signs" in capsys.readouterr().err) is is_noted
    assert scripts.search.main([f"index={index}", "k=1", r"Is $\qvar{p}^2$ irrational?"]) == 0
    assert r"note: there are no wildcards; \qvar{x} is read as" in capsys.readouterr().err


def test_a_search_as_json_with_options_as_other_commands_have_them(
    index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripts.search.main(["--index", str(index), "--k=2", "--json", ANSWERS["14"]]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["query"] == ANSWERS["14"]
    assert len(answer["results"]) == 2
    assert {"post_id", "title", "score", "matches"} <= answer["results"][0].keys()


def test_results_are_written_to_a_file(index: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("found.json", "found.bib"):
        assert scripts.search.main([f"index={index}", "k=2", "--export", str(tmp_path / name), ANSWERS["14"]]) == 0
    assert json.loads((tmp_path / "found.json").read_text())["query"] == ANSWERS["14"]
    assert (tmp_path / "found.bib").read_text().startswith("@misc{post:14,\n")
    capsys.readouterr()
    for words, message in (
        (["--export=found.txt", "$x$"], "found.txt: the name of a file of results ends in .json or .bib"),
        (["--export", str(tmp_path / "found.bib")], "needs one query"),
        (["$x$", "--export"], "--export needs a file"),
    ):
        assert scripts.search.main([f"index={index}", *words]) == 2
        assert message in capsys.readouterr().err


@pytest.mark.parametrize("task", ["answers", "formulas"])
def test_a_search_without_results_says_so(task: str, index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", f"task={task}", "start=900", "Is $x$ prime?"]) == 0
    captured = capsys.readouterr()
    assert (captured.out, "no results\n" in captured.err) == ("", True)


def test_a_search_for_formulas(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", "task=formulas", "k=2", "$\\int_0^1 x\\,dx$"]) == 0
    out = capsys.readouterr().out
    lines = out.splitlines()
    assert lines[:2] == ["1. \\int_0^1 x\\,dx", "   formula 12:0 of post 12, score 0.800: Is $\\sqrt2$ odd?"]
    assert lines[2:5] == ["   6 of 6 symbols", "     query    ∫_0^1xdx", "     formula  ∫_0^1xdx"]
    assert scripts.search.main([f"index={index}", "task=formulas", "k=1", "$\\int_0^2 zzz\\,dz+1$"]) == 0
    assert "symbols, z is x\n" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([""], "the query is empty"),
        (["zzzqqq"], "the model knows nothing in this query (unknown: zzzqqq; 0 formulas), so any result would be by"),
        (["x" * 100_000], "the query has 100,000 characters"),
        (["strategy=best", "$p$"], "unknown strategy 'best'; choose from: single_vector"),
        (["exact=false", "$p$"], "the backends approximate and qdrant can"),
        (["task=formulas", "no formula, only words"], "needs a formula"),
        (["k=0", "x"], "k=0"),
        (["k=many", "x"], "a whole number is needed"),
        (["depth=3", "x"], "unknown key 'depth'"),
        (["stragety=maxsim", "x"], "unknown key 'stragety'; did you mean strategy?"),
        (["K=3", "Is $2k$ odd?"], "unknown key 'K'; did you mean k?"),
        (["k=3", "--k=5", "x"], "k=3 and k=5: give k= once"),
        (["index=other", "x"], "/index and index=other: give index= once; mathamr serve searches several indexes"),
        (["two", "queries"], "put the query in quotes"),
    ],
)
def test_bad_input_is_one_message_and_code_2(
    index: Path, arguments: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripts.search.main([f"index={index}", *arguments]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert message in captured.err


def test_a_refused_line_is_reported_and_the_others_are_answered(
    index: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("Is $p$ prime?\nzzzqqq\n\nIs $x$ prime?\n"))
    assert scripts.search.main([f"index={index}", "k=1", "--json"]) == 2
    captured = capsys.readouterr()
    answers = [json.loads(line) for line in captured.out.splitlines()]
    assert [answer["query"] for answer in answers] == ["Is $p$ prime?", "zzzqqq", "Is $x$ prime?"]
    assert ["error" in answer for answer in answers] == [False, True, False]
    assert "line 2, 'zzzqqq': the model knows nothing in this query" in captured.err


def test_an_equation_is_a_query_and_no_setting(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", "k=1", "$a=b$"]) == 0
    assert "post" in capsys.readouterr().out


def test_an_index_by_another_model_is_refused(index: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert scripts.search.main([f"index={index}", f"model={work / 'model2'}", "x"]) == 2
    assert "the index was built by model" in capsys.readouterr().err
    arguments = index_arguments(work, index, "--update")
    arguments[arguments.index("--model") + 1] = str(work / "model2")
    assert scripts.index.main(arguments) == 2
    message = capsys.readouterr().err
    assert "the index was built by model" in message
    assert "build it again without --update, or give the model that it was built by" in message


def test_run_files_of_both_tasks(index: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    common = ["index", "--index", str(index), "--corpus", "jsonl", "--root", str(work)]
    assert scripts.make_run.main([*common, "--task", "1", "--out", str(tmp_path / "one.tsv")]) == 0
    assert "topic A.3 has no graph and scores 0" in capsys.readouterr().err
    run = read_run(tmp_path / "one.tsv", task=1)
    assert {topic: len(hits) for topic, hits in run.rankings.items()} == {"A.1": 4, "A.2": 4}
    for context in ("0", "0.3"):
        assert (
            scripts.make_run.main([*common, "--task", "2", "--context", context, "--out", str(tmp_path / "two.tsv")])
            == 0
        )
        run = read_run(tmp_path / "two.tsv", task=2)
        best = {topic: (hits[0].doc_id, hits[0].post_id) for topic, hits in run.rankings.items()}
        assert best == {"B.1": ("14:0", "14"), "B.2": ("12:0", "12")}
    assert scripts.make_run.main([*common, "--model", str(work / "model2"), "--out", str(tmp_path / "no.tsv")]) == 2
    assert scripts.make_run.main([*common, "--task", "2", "--context", "2", "--out", str(tmp_path / "no.tsv")]) == 2
    assert not (tmp_path / "no.tsv").exists()


@pytest.mark.parametrize("backend", ["exact", "approximate"])
def test_a_run_of_answers_leaves_out_the_questions_of_an_index(
    backend: str, index: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def run(index: Path, k: int) -> tuple[dict[str, list[str]], str]:
        common = ["--corpus", "jsonl", "--root", str(work), "--task", "1", "--k", str(k)]
        assert scripts.make_run.main(["index", "--index", str(index), *common, "--out", str(tmp_path / "one.tsv")]) == 0
        found = read_run(tmp_path / "one.tsv", task=1).rankings
        said = " ".join(capsys.readouterr().err.split())
        return {topic: [hit.doc_id for hit in hits] for topic, hits in found.items()}, said

    def indexed(*kinds: str) -> Path:
        arguments = index_arguments(work, tmp_path / "index", "--kinds", *kinds, "--backend", backend)
        assert scripts.index.main(arguments) == 0
        return tmp_path / "index"

    answers, said = run(index, 4)
    assert "left out" not in said  # the question is in the texts of this index, too
    both = indexed("question", "answer")
    for k in (1, 4):
        found, said = run(both, k)
        assert found == {topic: ids[:k] for topic, ids in answers.items()}
        assert "questions of the index are left out: 1" in said
    assert run(indexed("question"), 4)[0] == {"A.1": ["1"], "A.2": ["1"]}


def test_topics_without_their_query_formula_are_named(index: Path, capsys: pytest.CaptureFixture[str]) -> None:
    formulas = {"B.1": "query:0", "B.2": "nope", "B.3": None}
    topics = [
        Topic(name, Post("query", "topic", body="Is $x^2$ odd?", markup="text"), formula_id=formula_id)
        for name, formula_id in formulas.items()
    ]

    def found(*chosen: Topic) -> set[str]:
        return set(search_index(index, chosen, IndexSearch(task=2), Console())[0].rankings)

    assert found(*topics) == {"B.1"}
    said = " ".join(capsys.readouterr().err.split())
    assert "topic B.2: formula nope is not in its post; scores 0" in said
    assert "topic B.3 names no query formula; scores 0" in said
    with pytest.raises(RetrievalError, match="no topic has its query formula in its post; Task 2 needs one in each"):
        found(*topics[1:])
    with pytest.raises(RetrievalError, match="the topics name no query formula; Task 2 needs one in each"):
        found(topics[2])


def test_formulas_are_found_though_an_update_removes_their_files(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topics = [Topic("B.1", Post("query", "topic", body="Is $x^2$ odd?", markup="text"), formula_id="query:0")]
    expected = search_index(index, topics, IndexSearch(task=2), Console())[0]
    encoded = index_runs._encoded

    def updated_meanwhile(*given: Any) -> Any:
        (data,) = (tmp_path / "index").glob("data-*")
        shutil.rmtree(data)
        return encoded(*given)

    monkeypatch.setattr(index_runs, "_encoded", updated_meanwhile)
    shutil.copytree(index, tmp_path / "index")
    assert search_index(tmp_path / "index", topics, IndexSearch(task=2), Console())[0] == expected


def test_topics_of_another_collection_are_noted(
    index: Path, work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["index", "--index", str(index), "--corpus", "jsonl", "--out", str(tmp_path / "run.tsv"), "--root"]
    for root, judged in ((tmp_path / "other", "999"), (tmp_path / "new", None)):
        shutil.copytree(work, root, ignore=shutil.ignore_patterns("*.db*", "model*", "index", "qrels.tsv"))
        if judged is not None:
            (root / "qrels.tsv").write_text(f"A.1\t0\t{judged}\t2\n")
    note = f"note: the collection judges none of the results; check that {index} is an index of this collection"
    for root, noted in ((work, False), (tmp_path / "other", True), (tmp_path / "new", False)):
        assert scripts.make_run.main([*words, str(root)]) == 0
        assert (note in " ".join(capsys.readouterr().err.split())) is noted


def test_a_run_of_an_index_of_no_graph_model_is_refused(
    work: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / HEADER).write_text(json.dumps({"format": SYSTEM_FORMAT, "version": 1}))
    words = ["index", "--index", str(tmp_path), "--corpus", "jsonl", "--root", str(work)]
    assert scripts.make_run.main([*words, "--out", str(tmp_path / "run.tsv")]) == 2
    message = " ".join(capsys.readouterr().err.split())
    assert f"{tmp_path}: is not the index of a graph model, which mathamr rank index needs" in message
    assert "has a run file for each condition" in message


def test_a_second_builder_is_refused(index: Path, work: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with only_writer(index, "building this index"):
        assert scripts.index.main(index_arguments(work, index)) == 2
    assert "another process is building this index" in capsys.readouterr().err


def test_an_index_on_a_server(
    work: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    class Server(QdrantClient):
        def close(self, *_: object, **__: object) -> None:
            """A server goes on when a client leaves."""

    server = Server(":memory:")
    monkeypatch.setattr("mathamr.retrieval.server.collection.QdrantClient", lambda _: server)
    place = ["--backend", "qdrant", "--location", ":memory:", "--name", "mine"]
    exact_only = indexing.compare
    monkeypatch.setattr(indexing, "compare", lambda a, b, c, ways: exact_only(a, b, c, [w for w in ways if w.exact]))
    assert scripts.index.main(index_arguments(work, tmp_path, *place)) == 0
    assert "bytes a document on :memory:, as its node estimates them, of posts" in capsys.readouterr().out
    assert sorted(alias.alias_name for alias in server.get_aliases().aliases) == ["mine", "mine-formulas"]
    catalog = Catalog.open(tmp_path)
    own = catalog.vectors.vectors_of(["14"])
    assert catalog.search(own, "maxsim", 1)[0][0][0] == "14"
    assert catalog.formulas.search(own.vectors[:1], 1)[0][0].post_id in ANSWERS
    catalog.close()
    (tmp_path / "gone.txt").write_text("13\n")
    assert (
        scripts.index.main(index_arguments(work, tmp_path / "other", *place, "--remove", str(tmp_path / "gone.txt")))
        == 0
    )
    with pytest.raises(
        StoreError, match="'mine' at :memory: holds 3 posts, this folder has 4: another build has taken"
    ):
        Catalog.open(tmp_path)
    capsys.readouterr()
    assert scripts.index.main(index_arguments(work, tmp_path, "--location", "http://localhost:1")) == 2
    assert "belongs to the backend qdrant" in capsys.readouterr().err


def test_an_approximate_index_is_checked_and_searched(
    work: Path, tmp_path: Path, index: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert scripts.index.main(index_arguments(work, tmp_path, "--backend", "approximate")) == 0
    out = capsys.readouterr().out
    assert out.count("recall@100 1.000 against exact search") == 4
    assert "approximate maxsim" in out
    found = []
    for arguments in ([f"index={tmp_path}", "exact=false"], [f"index={index}"]):
        assert scripts.search.main([*arguments, "k=4", "--json", ANSWERS["14"]]) == 0
        found.append(json.loads(capsys.readouterr().out)["results"])
    assert found[0] == found[1]
