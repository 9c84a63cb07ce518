"""Downloads from a server that breaks off, answers 404, lies about sizes, and has another version by now."""

from __future__ import annotations

import fcntl
import gzip
import io
import random
import re
import zipfile
from pathlib import Path

import pytest

from graphs.corpus.download.web import Downloads, Offer, WebFile, _Broken, local_path
from graphs.errors import ConfigError, CorpusError
from tests.graphs.corpus.broken_server import Served, Server, serve

BODY = random.Random(1).randbytes(300_000)
PATH = "Evaluation/ Scripts & Qrels/Task 1 /qrel"


def downloads(server: Server, root: Path) -> Downloads:
    return Downloads(server.base, root, attempts=3, wait=0.0, timeout=60.0)


def offer(server: Server, root: Path, file: WebFile | str = PATH) -> Offer:
    return downloads(server, root).survey([WebFile(file) if isinstance(file, str) else file])[0]


def fetched(server: Server, root: Path, file: WebFile | str = PATH) -> bytes:
    found = offer(server, root, file)
    downloads(server, root).fetch(found)
    return local_path(root, found.path).read_bytes()


def left_behind(root: Path) -> list[str]:
    return sorted(path.name for path in root.rglob("*") if path.is_file())


def zipped(text: bytes = b"1\tA.1\n" * 5000, stored: bool = False) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED if stored else zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("opt_representation_v3/1.tsv", text)
    return out.getvalue()


def test_a_file_comes_under_its_published_name_and_is_not_fetched_twice(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY)}) as server:
        found = offer(server, tmp_path)
        assert (found.size, found.left, found.present) == (300_000, 300_000, False)
        arrived: list[int] = []
        downloads(server, tmp_path).fetch(found, arrived.append)
        assert sum(arrived) == 300_000
        assert (tmp_path / "Evaluation" / " Scripts & Qrels" / "Task 1 " / "qrel").read_bytes() == BODY
        assert left_behind(tmp_path) == ["qrel"]
        again = offer(server, tmp_path)
        assert (again.present, again.left) == (True, 0)
        assert fetched(server, tmp_path) == BODY
        assert [method for method, *_ in server.asked].count("GET") == 1


def test_a_transfer_that_breaks_off_is_resumed_where_it_was(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, breaks=[100_000, 50_000])}) as server:
        assert fetched(server, tmp_path) == BODY
        assert [asked for method, _, asked in server.asked if method == "GET"] == ["", "bytes=100000-", "bytes=150000-"]


def test_a_later_run_resumes_what_an_earlier_one_left(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, breaks=[100_000, 0, 0, 0])}) as server:
        with pytest.raises(CorpusError, match="gave up after 3 attempts at byte 100,000"):
            fetched(server, tmp_path)
        assert left_behind(tmp_path) == [".qrel.part", ".qrel.part.json"]
        found = offer(server, tmp_path)
        assert (found.begun, found.left) == (100_000, 200_000)
        assert fetched(server, tmp_path) == BODY
        assert server.asked[-1][2] == "bytes=100000-"
        assert left_behind(tmp_path) == ["qrel"]


def test_the_first_bytes_that_measure_the_speed_are_kept(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY)}) as server:
        arrived: list[int] = []
        downloads(server, tmp_path).fetch(offer(server, tmp_path), arrived.append, first=70_000)
        assert 70_000 <= sum(arrived) < 300_000
        assert fetched(server, tmp_path) == BODY
        assert server.asked[-1][2] == f"bytes={sum(arrived)}-"


def test_two_versions_are_never_joined(tmp_path: Path) -> None:
    for conditions in (True, False):  # a server that honours If-Range, and one that gives the rest of the new version
        root = tmp_path / str(conditions)
        with serve({PATH: Served(BODY, breaks=[100_000, 0, 0, 0], conditions=conditions)}) as server:
            with pytest.raises(CorpusError):
                fetched(server, root)
            changed = BODY[::-1]
            server.files[PATH] = Served(changed, tag='"2"', conditions=conditions)
            assert fetched(server, root) == changed


def test_a_shorter_new_version_starts_again(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, breaks=[100_000, 0, 0, 0])}) as server:
        with pytest.raises(CorpusError):
            fetched(server, tmp_path)
        server.files[PATH] = Served(BODY[:50_000], tag='"2"', conditions=False)  # answers 416
        arrived: list[int] = []
        downloads(server, tmp_path).fetch(offer(server, tmp_path), arrived.append)
        assert (tmp_path / PATH).read_bytes() == BODY[:50_000]
        assert sum(arrived) == 50_000 - 100_000  # what was thrown away is taken back


def test_bytes_of_an_unknown_version_are_thrown_away(tmp_path: Path) -> None:
    with serve({"a.tsv": Served(BODY)}) as server:
        (tmp_path / ".a.tsv.part").write_bytes(b"x" * 1000)
        (tmp_path / ".a.tsv.part.json").write_text('{"total": "no", "tag": 3}')
        assert fetched(server, tmp_path, "a.tsv") == BODY


def test_a_server_that_ignores_ranges_sends_it_all_again(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, breaks=[100_000], ranges=False)}) as server:
        assert fetched(server, tmp_path) == BODY


def test_a_server_without_tags_and_sizes_is_enough(tmp_path: Path) -> None:
    with serve({"a.tsv": Served(BODY, tag="", breaks=[1000]), "b.tsv": Served(BODY, chunked=True)}) as server:
        assert fetched(server, tmp_path, "a.tsv") == BODY
        assert fetched(server, tmp_path, "b.tsv") == BODY


def test_a_server_that_is_busy_is_asked_again(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, statuses=[503, 429])}) as server:
        assert fetched(server, tmp_path) == BODY


def test_a_server_that_only_answers_get_is_enough(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, statuses=[405])}) as server:
        found = offer(server, tmp_path)
        assert (found.size, found.problem) == (None, "")
        downloads(server, tmp_path).fetch(found)
        assert (tmp_path / PATH).read_bytes() == BODY


def test_a_missing_file_is_told_and_another_version_is_taken(tmp_path: Path) -> None:
    with serve({"Topics_V1.2.xml": Served(b"<Topics/>")}) as server:
        missing = offer(server, tmp_path)
        assert (missing.problem, missing.left) == ("404 Not Found", 0)
        with pytest.raises(CorpusError, match="404 Not Found"):
            downloads(server, tmp_path).fetch(missing)
        assert fetched(server, tmp_path, WebFile("Topics_V0.1.xml", instead=("Topics_V1.2.xml",))) == b"<Topics/>"
        assert left_behind(tmp_path) == ["Topics_V1.2.xml"]


@pytest.mark.parametrize(
    ("file", "message"),
    [
        (Served(BODY, announces=400_000), "announced 400,000 bytes and now sends 300,000"),
        (Served(BODY, announces=400_000, sends=400_000), "gave up after 3 attempts"),
        (Served(b""), "is empty"),
        (Served(b"<!DOCTYPE html><html>Sorry</html>"), "is a web page"),
    ],
)
def test_a_server_that_lies_about_a_file_is_not_believed(tmp_path: Path, file: Served, message: str) -> None:
    with serve({PATH: file}) as server:
        with pytest.raises(CorpusError, match=message):
            fetched(server, tmp_path)
        assert not (tmp_path / PATH).exists()


def test_a_file_of_another_size_than_the_published_one_is_refused(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY)}) as server:
        with pytest.raises(CorpusError, match="has 300,000 bytes where about 895,000,000 are published"):
            fetched(server, tmp_path, WebFile(PATH, size=895_000_000))
        assert fetched(server, tmp_path, WebFile(PATH, size=310_000)) == BODY


def test_a_body_without_an_end_is_left(tmp_path: Path) -> None:
    with serve({PATH: Served(BODY, chunked=True)}) as server:
        with pytest.raises(CorpusError, match="sends more than 2 times the 1,000 bytes that are published"):
            fetched(server, tmp_path, WebFile(PATH, size=1_000))
        assert left_behind(tmp_path) == []


def test_archives_and_xml_are_read_to_their_end(tmp_path: Path) -> None:
    good = zipped()
    stored = bytearray(zipped(stored=True))
    stored[1000] ^= 1  # one bit of a member
    packed = gzip.compress(BODY)
    files = {
        "good.zip": good,
        "cut.zip": good[:-30],
        "flipped.zip": bytes(stored),
        "bomb.zip": zipped(b"0" * 68_000_000),
        "good.xml.gz": packed,
        "cut.xml.gz": packed[:-9],
        "bomb.gz": gzip.compress(b"0" * 68_000_000),
        "cut.xml": b'<posts><row Id="1"',
    }
    expected = {
        "cut.zip": "truncated or damaged zip",
        "flipped.zip": "truncated or damaged zip",
        "bomb.zip": "as a zip bomb does",
        "cut.xml.gz": "damaged gzip",
        "bomb.gz": "250 times",
        "cut.xml": "XML without an end",
    }
    with serve({name: Served(body) for name, body in files.items()}) as server:
        for name, body in files.items():
            if name in expected:
                with pytest.raises(CorpusError, match=expected[name]):
                    fetched(server, tmp_path, name)
            else:
                assert fetched(server, tmp_path, name) == body
        assert left_behind(tmp_path) == ["good.xml.gz", "good.zip"]


def test_a_damaged_archive_is_downloaded_once_more(tmp_path: Path) -> None:
    good = zipped()
    with serve({"a.zip": Served(good[:-30] + b"x" * 30)}) as server:
        found = offer(server, tmp_path, "a.zip")
        arrived: list[int] = []

        def progress(count: int) -> None:
            arrived.append(count)
            if count < 0:
                server.files["a.zip"].body = good

        downloads(server, tmp_path).fetch(found, progress)
        assert (tmp_path / "a.zip").read_bytes() == good
        assert sum(arrived) == len(good)


def test_a_replaced_file_stays_until_the_new_one_is_whole(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("mine")
    with serve({"a.tsv": Served(BODY, breaks=[1000, 0, 0, 0])}) as server:
        with pytest.raises(CorpusError):
            fetched(server, tmp_path, "a.tsv")
        assert (tmp_path / "a.tsv").read_text() == "mine"
        assert fetched(server, tmp_path, "a.tsv") == BODY


def test_a_file_that_the_server_lost_and_we_have_is_there(tmp_path: Path) -> None:
    (tmp_path / "a.tsv").write_text("mine")
    with serve({}) as server:
        assert offer(server, tmp_path, "a.tsv").present


def test_without_a_size_only_an_archive_that_is_whole_is_kept(tmp_path: Path) -> None:
    files = {"a.zip": zipped(), "b.zip": zipped(), "c.tsv": b"A.1\t0\t2\t3\n"}
    (tmp_path / "a.zip").write_bytes(files["a.zip"])
    (tmp_path / "b.zip").write_bytes(files["b.zip"][:-30])
    (tmp_path / "c.tsv").write_bytes(files["c.tsv"][:3])
    with serve({name: Served(body, chunked=True) for name, body in files.items()}) as server:
        assert [offer(server, tmp_path, name).present for name in files] == [True, False, False]
        assert {name: fetched(server, tmp_path, name) for name in files} == files


def test_redirects_lead_to_web_servers_alone(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    with serve({"to.tsv": Served(BODY, breaks=[1000])}) as server:
        server.files["a.tsv"] = Served(b"", redirect=f"{server.base}to.tsv")
        assert fetched(server, tmp_path, "a.tsv") == BODY
        assert ("HEAD", "to.tsv", "") in server.asked
        assert ("GET", "to.tsv", "bytes=1000-") in server.asked
        for target in (f"file://{tmp_path}/secret", "ftp://127.0.0.1/x", "data:text/plain,x"):
            server.files["b.tsv"] = Served(b"", redirect=target)
            found = offer(server, tmp_path, "b.tsv")
            assert re.search("is not (followed|allowed)", found.problem)
        server.files["loop.tsv"] = Served(b"", redirect=f"{server.base}loop.tsv")
        assert "302" in offer(server, tmp_path, "loop.tsv").problem


@pytest.mark.parametrize("path", ["../evil", "/etc/passwd", "a/../../evil", "", "a\\..\\evil"])
def test_names_do_not_leave_the_folder(tmp_path: Path, path: str) -> None:
    with pytest.raises(ConfigError, match="leads out of the folder"):
        local_path(tmp_path, path)


@pytest.mark.parametrize("base", ["file:///etc/", "ftp://example.org/", "example.org", "http://"])
def test_only_web_servers_are_asked(tmp_path: Path, base: str) -> None:
    with pytest.raises(ConfigError, match="URL is needed"):
        Downloads(base, tmp_path)


def test_without_a_server_one_file_is_asked_for(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Twenty files that each wait for half a minute would keep the message back."""
    asked: list[str] = []

    def refuse(_: Downloads, path: str, *args: object, **options: object) -> None:
        asked.append(path)
        raise _Broken("connection refused")

    monkeypatch.setattr(Downloads, "_open", refuse)
    files = [WebFile(f"{number}.tsv") for number in range(20)]
    with pytest.raises(CorpusError, match="is there a connection"):
        Downloads("http://127.0.0.1:9", tmp_path, attempts=2, wait=0.0).survey(files)
    assert asked == ["0.tsv", "0.tsv"]


def test_without_a_server_the_survey_says_so(tmp_path: Path) -> None:
    with serve({}) as server:
        pass
    with pytest.raises(CorpusError, match="is there a connection"):
        offer(server, tmp_path)


def test_a_full_disk_is_told_before_the_first_byte(tmp_path: Path) -> None:
    huge = Offer(WebFile("a.zip"), "a.zip", size=1 << 60)
    with serve({}) as server, pytest.raises(CorpusError, match=r"bytes are to come and the disk has .* left"):
        downloads(server, tmp_path).require_space([huge])


def test_two_processes_do_not_write_one_file(tmp_path: Path) -> None:
    with serve({"a.tsv": Served(BODY)}) as server, (tmp_path / ".a.tsv.part").open("wb") as other:
        found = offer(server, tmp_path, "a.tsv")
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(CorpusError, match="is being downloaded by another process"):
            downloads(server, tmp_path).fetch(found)
