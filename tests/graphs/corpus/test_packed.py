"""Files as they lie: plain, gzipped, in a zip; and archives that are damaged or hostile."""

import gzip
import random
import struct
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from graphs.corpus import packed
from graphs.corpus.packed import PackedFile, members, same_content
from graphs.errors import CorpusError

CONTENT = random.Random(0).randbytes(300_000)


@pytest.fixture
def plain(tmp_path: Path) -> PackedFile:
    (tmp_path / "a.xml").write_bytes(CONTENT)
    return PackedFile(tmp_path / "a.xml")


@pytest.fixture
def gz(tmp_path: Path) -> PackedFile:
    (tmp_path / "a.xml.gz").write_bytes(gzip.compress(CONTENT))
    return PackedFile(tmp_path / "a.xml.gz")


@pytest.fixture
def zipped(tmp_path: Path) -> PackedFile:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("folder/a.xml", CONTENT)
        archive.mkdir("empty")
    (file,) = members(tmp_path / "a.zip")
    return file


def test_all_packings_give_the_same_content_name_and_size(
    plain: PackedFile, gz: PackedFile, zipped: PackedFile
) -> None:
    for file in (plain, gz, zipped):
        with file.open() as stream:
            assert stream.read() == CONTENT
        assert (file.name, file.size, file.head(10)) == ("a.xml", len(CONTENT), CONTENT[:10])
        assert b"".join(file.chunks()) == CONTENT
        assert same_content(file, plain)
    assert str(zipped).endswith("a.zip/folder/a.xml")
    assert [file.is_plain for file in (plain, gz, zipped)] == [True, False, False]
    assert gz.checksum == zipped.checksum
    assert sorted([zipped, gz, plain]) == [plain, gz, zipped]


def test_other_content_of_the_same_size_is_not_the_same(plain: PackedFile, gz: PackedFile) -> None:
    plain.path.write_bytes(CONTENT[:-1] + bytes([CONTENT[-1] ^ 1]))
    assert not same_content(plain, gz)


def test_several_gzip_streams_in_one_file_are_one_content(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"one ") + gzip.compress(b"two") + b"\0" * 512)
    assert b"".join(PackedFile(tmp_path / "a.gz").chunks()) == b"one two"


def test_content_before_the_end_of_a_truncated_gzip_file_is_read(gz: PackedFile) -> None:
    whole = gz.path.read_bytes()
    gz.path.write_bytes(whole[: len(whole) // 2])
    parts: list[bytes] = []
    with pytest.raises(CorpusError, match=r"a\.xml\.gz: truncated gzip file; fetch it again"):
        parts.extend(gz.chunks())
    found = b"".join(parts)
    assert len(found) > len(CONTENT) // 3
    assert CONTENT.startswith(found)
    assert gz.head(100) == CONTENT[:100]
    assert gz.head(len(CONTENT)) == found


@pytest.mark.parametrize("content", [b"", b"no gzip at all", gzip.compress(CONTENT)[:-8] + b"\0" * 8])
def test_a_damaged_gzip_file_is_an_error(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "a.gz").write_bytes(content)
    with pytest.raises(CorpusError, match=r"a\.gz: (truncated|damaged) gzip file.*fetch it again"):
        list(PackedFile(tmp_path / "a.gz").chunks())


def test_a_truncated_zip_is_an_error(zipped: PackedFile) -> None:
    whole = zipped.path.read_bytes()
    zipped.path.write_bytes(whole[: len(whole) // 2])
    with pytest.raises(CorpusError, match=r"a\.zip: truncated or damaged zip .*fetch it again"):
        members(zipped.path)


def test_a_zip_with_a_damaged_member_is_an_error_when_it_is_read(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr("a.xml", CONTENT)
    damaged = bytearray((tmp_path / "a.zip").read_bytes())
    damaged[1000] ^= 1
    (tmp_path / "a.zip").write_bytes(damaged)
    (file,) = members(tmp_path / "a.zip")
    with pytest.raises(CorpusError, match=r"a\.zip/a\.xml: truncated or damaged zip \(Bad CRC-32"):
        list(file.chunks())


@pytest.mark.parametrize("name", ["/etc/passwd", "../a.xml", "b/../../a.xml", "C:/a.xml"])
def test_a_member_that_points_out_of_its_folder_is_refused(tmp_path: Path, name: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w") as archive:
        archive.writestr(name, b"")
    with pytest.raises(CorpusError, match="points out of its folder"):
        members(tmp_path / "a.zip")


def test_an_encrypted_member_is_refused(zipped: PackedFile) -> None:
    data = bytearray(zipped.path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        struct.pack_into("<H", data, data.index(signature) + offset, 1)
    zipped.path.write_bytes(data)
    with pytest.raises(CorpusError, match="is encrypted; unpack it"):
        members(zipped.path)


def test_a_method_that_is_not_supported_says_so(tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("a.xml", CONTENT)
    (file,) = members(tmp_path / "a.zip")
    with pytest.raises(CorpusError, match=r"a method \(bzip2\) that is not supported; unpack it"):
        file.open()


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packed, "BOMB_BYTES", 1 << 20)
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("a.xml", b"0" * (1 << 22))
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"0" * (1 << 22)))
    with pytest.raises(CorpusError, match="as a zip bomb does"):
        members(tmp_path / "a.zip")
    with pytest.raises(CorpusError, match="as a zip bomb does"):
        list(PackedFile(tmp_path / "a.gz").chunks())
    monkeypatch.setattr(packed, "MAX_MEMBERS", 3)
    with zipfile.ZipFile(tmp_path / "b.zip", "w") as archive:
        for number in range(4):
            archive.writestr(str(number), b"")
    with pytest.raises(CorpusError, match="holds 4 files, more than 3"):
        members(tmp_path / "b.zip")


def test_missing_files_and_members_are_errors(tmp_path: Path, zipped: PackedFile) -> None:
    for name in ("none.xml", "none.xml.gz"):
        with pytest.raises(CorpusError, match="cannot be read: No such file"):
            PackedFile(tmp_path / name).open()
    with pytest.raises(CorpusError, match=r"has no member 'b\.xml'"):
        PackedFile(zipped.path, "b.xml").open()


def test_memory_does_not_grow_with_the_content(tmp_path: Path) -> None:
    line = b"".join(b"%d " % number for number in range(10_000)) + b"\n"
    with (
        zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open("a", "w") as stream,
        gzip.open(tmp_path / "a.gz", "wb", compresslevel=1) as other,
    ):
        for _ in range(800):  # 39 MB
            stream.write(line)
            other.write(line)
    script = (
        "import sys; from pathlib import Path; from graphs.corpus.packed import PackedFile\n"
        "from mathamr.evaluation.efficiency import peak_memory\n"
        "folder = Path(sys.argv[1])\n"
        "files = [PackedFile(folder / 'a.zip', 'a'), PackedFile(folder / 'a.gz')]\n"
        "[file.head(10) for file in files]; before = peak_memory()\n"
        "print(*(sum(map(len, file.chunks())) for file in files), peak_memory() - before)"
    )
    done = subprocess.run([sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True)
    zipped, gz, grown = map(int, done.stdout.split())
    assert zipped == gz == 800 * len(line)
    assert grown < 8_000_000
