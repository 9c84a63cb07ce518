"""``scripts/data.py``: the published tree from a local server that lacks some of it, and what a folder has of it."""

from __future__ import annotations

import io
import json
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from graphs.corpus.download import published_files as published
from graphs.corpus.download.web import local_path
from scripts import data
from scripts.benchmarks.published_tree import Tree
from tests.graphs.corpus.broken_server import Served, serve
from tests.graphs.corpus.small_forms import write_form

ROOT = Path(__file__).resolve().parents[2]


def tree(*parts: str) -> dict[str, Served]:
    """Every published file of ``parts``, small."""
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("1.tsv", "id\tpost_id\n")
    bodies = {".zip": out.getvalue(), ".xml": b"<Topics/>"}
    return {
        file.path: Served(bodies.get(Path(file.path).suffix, b"A.1\t0\t7\t3\n"))
        for file in published.published_files(parts)
    }


def get(base: str, root: Path, *more: str) -> int:
    return data.main(["get", "arqmath", "--to", str(root), "--from", base, *more])


def test_the_parts_that_are_named_come_under_their_published_names(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(tree("topics", "qrels")) as server:
        assert get(server.base, tmp_path, "--only", "topics", "qrels") == 0
        printed = capsys.readouterr()
        assert "36 files to download" in printed.err
        assert "36 of 36 files" in printed.out
        assert f"next: mathamr data check --root {tmp_path}" in printed.out
        qrels = tmp_path / "Evaluation" / " Scripts & Qrels" / "ARQMath-1" / "Task 1 " / "qrel_official_task1"
        assert qrels.read_text() == "A.1\t0\t7\t3\n"
        gets = [method for method, *_ in server.asked].count("GET")
        assert get(server.base, tmp_path, "--only", "topics", "qrels") == 0
        assert [method for method, *_ in server.asked].count("GET") == gets
        assert "0 files to download, 0.0 MB; 36 already present" in capsys.readouterr().err


def test_what_is_missing_is_listed_with_what_it_makes_impossible(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("graphs.corpus.download.web.time.sleep", lambda seconds: None)
    files = tree("topics")
    for path in list(files):
        if "2021" in path and "Task1" in path and path.endswith(".xml"):
            del files[path]
        elif "Task2_2022" in path:
            del files[path]
            files[path.replace("V0.1", "V1.2")] = Served(b"<Topics/>")
    broken = next(path for path in files if path.endswith("Topics_V2.0.xml"))
    files[broken].body = b"<Topics>"[:-1]
    with serve(files) as server:
        assert get(server.base, tmp_path, "--only", "topics") == 1
    printed = capsys.readouterr().out
    assert "ARQMath-2/Topics/Topics_Task1_2021_V1.1.xml: 404 Not Found\n  No topics of Task 1 of 2021" in printed
    assert "Topics_V2.0.xml: is XML without an end, in two downloads" in printed
    assert "next:" not in printed
    assert len(list(tmp_path.rglob("Topics_Task2_2022_V1.2.xml"))) == 1
    assert f"{len(files) - 1} of {len(files) + 1} files" in printed


def test_the_published_list_is_sound() -> None:
    files = published.published_files()
    assert len({file.path for file in files}) == len(files) > 60
    assert tuple(dict.fromkeys(file.part for file in files)) == published.PARTS == data.PARTS
    for file in files:
        for path in (file.path, *file.instead):
            assert local_path(Path("/data"), path).is_relative_to("/data")
        assert file.without.endswith(".") or not file.without
    needed = {file.path: file.size for file in files if file.size}
    assert needed["Collection/Posts.V1.3.zip"] == 895_000_000
    assert sum(needed.values()) == 2_752_000_000


def test_what_nothing_needs_may_be_missing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    files = tree("qrels")
    del files[next(path for path in files if path.endswith("additional.tsv"))]
    with serve(files) as server:
        assert get(server.base, tmp_path, "--only", "qrels") == 0
    assert "additional.tsv: 404 Not Found\n  Nothing needs it." in capsys.readouterr().out


def test_the_list_downloads_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with serve(tree("qrels")) as server:
        assert get(server.base, tmp_path, "--only", "qrels", "--list") == 1
        assert {method for method, *_ in server.asked} == {"HEAD"}
    assert "           10  Evaluation/ Scripts & Qrels/ARQMath-1/Task 1 /qrel_official_task1" in capsys.readouterr().out


def test_the_time_is_measured_on_the_largest_file(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(data, "_PROBE", 100_000)
    body = bytes(1_000_000)
    with serve({"Posts.zip": Served(body)}) as server:
        file = published.WebFile("Posts.zip")
        monkeypatch.setattr(published, "published_files", lambda parts: [file])
        monkeypatch.setattr("graphs.corpus.download.web.find_damage", lambda path, name, size: "")
        assert get(server.base, tmp_path) == 0
        ranges = [asked for method, _, asked in server.asked if method == "GET"]
        assert len(ranges) == 2
        assert ranges[1] > "bytes=1"
    assert "about " in (said := capsys.readouterr().err)
    assert said.index("1 file to download, 1.0 MB") < said.index("about ") < said.index("MB/s")


def test_a_download_that_is_stopped_says_how_it_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*arguments: object) -> None:
        raise KeyboardInterrupt

    with serve(tree("qrels")) as server:
        monkeypatch.setattr("graphs.corpus.download.web.Downloads.fetch", stop)
        assert get(server.base, tmp_path, "--only", "qrels") == 130
    assert capsys.readouterr().err.endswith("stopped; the same command resumes from the saved state\n")


@pytest.mark.parametrize(
    "wrong", [["get", "arqmath"], ["get", "beir", "--to", "x"], ["get", "arqmath", "--to", "x", "--only", "all"], []]
)
def test_a_wrong_call_is_exit_code_2(wrong: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        data.main(wrong)
    assert ended.value.code == 2


def test_other_schemes_than_http_are_a_wrong_call(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert get("file:///etc/", tmp_path) == 2
    assert "http:// or https:// URL" in capsys.readouterr().err


def test_the_help_is_quick() -> None:
    program = "import sys, scripts.data as d\ntry: d.main(['-h'])\nexcept SystemExit: print(sorted(sys.modules))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, cwd=ROOT, check=True)
    for module in ("torch", "numpy", "lxml", "rich"):
        assert f"'{module}'" not in done.stdout


# -- check -----------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def collection(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("collection")
    Tree(root, 200).write()
    return root


def test_a_collection_that_experiments_can_run_on(collection: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["check", "--root", str(collection)]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["topics", "of", "Task", "1", "98", "100", "100"] in lines
    assert lines[-1] == ["Experiments", "can", "run."]
    assert not any(line[:1] == ["missing:"] for line in lines)


def test_the_json_has_the_keys_that_programs_read(collection: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["check", "--root", str(collection), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["posts.question"] + found["posts.answer"] == 200
    assert found["topics.task1.2020"] == 98
    assert found["judgments.task1.2021"] == found["judgments.task1.2021.official"] > 0
    assert found["topic_trees.2022"] > 300
    assert (found["missing"], found["can_run"], found["reason"]) == ([], True, "")


def test_a_folder_with_a_blank_is_quoted_for_the_shell(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tmp_path / "a b"
    root.mkdir()
    (root / "Posts.V1.3.xml").write_text('<posts><row Id="1" PostTypeId="1" Body="x"/></posts>')
    assert data.main(["check", "--root", str(root)]) == 1
    assert f"mathamr data get arqmath --to '{root}' --only collection" in capsys.readouterr().out


def test_a_collection_that_lacks_what_experiments_need(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "Posts.V1.3.xml").write_text('<posts><row Id="1" PostTypeId="1" Body="x"/></posts>')
    assert data.main(["check", "--root", str(tmp_path)]) == 1
    printed = capsys.readouterr().out
    assert "topics of Task 1 of 2021: 2021 cannot be searched in Task 1: leave it out of data.years" in printed
    assert f"mathamr data get arqmath --to {tmp_path} --only collection formulas topics qrels" in printed
    assert printed.endswith("No experiment can run: no year has both topics and judgments of Task 1.\n")
    assert data.main(["check", "--root", str(tmp_path), "--json"]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["posts.question"], found["can_run"]) == (1, False)
    assert {"what", "consequence", "get"} == set(found["missing"][0])


def test_a_folder_that_is_not_there_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["check", "--root", str(tmp_path / "nowhere")]) == 1
    assert "not a folder; is --root right?" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["jsonl", "beir", "pairs", "problems", "titles"])
def test_other_collections_are_recognised_and_counted(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    root = write_form(name, tmp_path)
    assert data.main(["check", "--root", str(root), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["collection"], found["can_run"]) == (name, True)
    assert found["posts.answer"] > 0
    assert data.main(["check", "--root", str(root), "--corpus", name]) == 0
    assert capsys.readouterr().out.startswith(f"{root}, data")


def test_the_json_names_tests_that_cannot_be_scored(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_form("jsonl", tmp_path)
    (root / "topics2.jsonl").write_text('{"topic_id": "B", "body": "Is $k$ odd?", "formula_id": "B:0"}\n')
    (root / "qrels2.tsv").write_text("B 0 q1:0 2\n")
    for judgments, failed in (("1 0 a1 3\n", []), ("9 0 a1 3\n", ["Task 1"])):
        (root / "qrels.tsv").write_text(judgments)
        assert data.main(["check", "--root", str(root), "--json"]) == 0
        found = json.loads(capsys.readouterr().out)
        assert (found["failed"], found["can_run"]) == (failed, True)


def test_a_wrong_form_is_told_the_right_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_form("jsonl", tmp_path)
    for wrong in ("arqmath", "beir", "pairs", "problems"):
        assert data.main(["check", "--root", str(root), "--corpus", wrong]) == 1
        assert "this looks like data=jsonl" in capsys.readouterr().err
    assert data.main(["check", "--root", str(tmp_path)]) == 1
    assert "is no collection; these folders in it look like collections: jsonl (data=jsonl)" in capsys.readouterr().err


def test_a_folder_that_is_no_collection_is_told_what_each_form_has(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "notes.txt").write_text("Is $x$ odd?")
    assert data.main(["check", "--root", str(tmp_path)]) == 1
    captured = capsys.readouterr()
    assert "no collection is recognised here; ARQMath has Posts*.xml, data=jsonl posts.jsonl" in captured.err
    assert captured.out == ""  # no list of what ARQMath has


def test_a_split_and_a_grade_are_checked_as_asked(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = write_form("beir", tmp_path)
    check = ["check", "--root", str(root), "--json"]
    assert data.main([*check, "--split", "train", "--relevant-grade", "2"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["judgments.task1"], found["judgments.task1.relevant"]) == (1, 0)
    assert data.main([*check, "--split", "dev"]) == 1
    assert "no judgments of data.split=dev here" in capsys.readouterr().err


def test_collections_without_a_folder_need_no_root(capsys: pytest.CaptureFixture[str]) -> None:
    assert data.main(["check"]) == 2
    assert "--root is missing" in capsys.readouterr().err
    assert data.main(["check", "--corpus", "ir_datasets"]) == 2
    assert "data.id is missing" in capsys.readouterr().err
