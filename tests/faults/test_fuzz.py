"""Fuzzing of what others may send: the suite replays kept inputs, and the long mode draws new ones for hours.

    FUZZ_HOURS=1 pytest -m long -s tests/faults/test_fuzz.py

An input is the bytes that Hypothesis draws its values from (``fuzz_one_input``). One that fails is written to
``tests/faults/corpus/TARGET/``, is replayed from then on, and stays when its fault is mended.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import io
import os
import random
import tarfile
import tempfile
import time
import zipfile
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from graphs.amr import penman_text
from graphs.corpus import packed
from graphs.corpus.arqmath.xml_rows import surviving_rows
from graphs.errors import MathAMRError
from graphs.papers.archives import read_files
from tests.graphs.amr import test_penman_text
from tests.graphs.corpus import test_post_limits
from tests.graphs.corpus.text import test_placeholders
from tests.graphs.formulas import test_mathml_robustness
from tests.graphs.formulas.latex import test_robustness
from tests.mathamr.text import test_statements

HOURS = float(os.environ.get("FUZZ_HOURS", "0.15"))
CORPUS = Path(__file__).parent / "corpus"
MODULES = (
    test_penman_text,
    test_post_limits,
    test_placeholders,
    test_mathml_robustness,
    test_robustness,
    test_statements,
)
Edits = st.lists(st.tuples(st.integers(0, 4_000), st.binary(max_size=8)), min_size=1, max_size=6)


def edited(content: bytes, edits: list[tuple[int, bytes]]) -> bytes:
    """Overwrite bytes at some places; an edit of nothing cuts the rest."""
    for place, new in edits:
        at = place % (len(content) + 1)
        content = content[:at] + new + content[at + len(new) :] if new else content[:at]
    return content


def tar() -> bytes:
    packed_file = io.BytesIO()
    with tarfile.open(fileobj=packed_file, mode="w") as archive:
        for name in ("main.tex", "a/" + "x" * 120 + ".sty", "figure.png"):
            member = tarfile.TarInfo(name)
            member.size = 40
            archive.addfile(member, io.BytesIO(PAPER.ljust(40)))
    return packed_file.getvalue()


def zipped() -> bytes:
    packed_file = io.BytesIO()
    with zipfile.ZipFile(packed_file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number in range(3):
            archive.writestr(zipfile.ZipInfo(f"slt/{number}.tsv"), f"{number}\tx\n" * 30)
    return packed_file.getvalue()


ROWS = b"".join(b'<row Id="%d" PostTypeId="1" Body="a &lt;b&gt; $x^%d$" />\n' % (n, n) for n in range(9))
XML = b'<?xml version="1.0" encoding="utf-8"?>\n<posts>\n' + ROWS + b"</posts>\n"
PAPER = b"\\documentclass{a}"
TARS = {
    "paper.tar": tar(),
    "paper.tar.gz": gzip.compress(tar(), mtime=0),
    "paper.gz": gzip.compress(PAPER * 9, mtime=0),
}


def message_about(name: str, content: bytes, read: Callable[[Path], None]) -> None:
    """Read a file of this content: it is read, or refused with a message that names it."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / name
        path.write_bytes(content)
        message = name
        try:
            read(path)
        except MathAMRError as error:
            message = str(error)
    assert name in message


@given(st.sampled_from(sorted(TARS)), Edits)
def fuzz_papers(name: str, edits: list[tuple[int, bytes]]) -> None:
    message_about(name, edited(TARS[name], edits), lambda path: [*read_files(path)].clear())


@given(Edits)
def fuzz_zips(edits: list[tuple[int, bytes]]) -> None:
    def read(path: Path) -> None:
        for member in packed.members(path):
            assert member.size >= 0
            assert sum(map(len, member.chunks())) <= packed.MAX_RATIO * path.stat().st_size

    message_about("formulas.zip", edited(zipped(), edits), read)


@given(st.booleans(), Edits)
def fuzz_rows(pack: bool, edits: list[tuple[int, bytes]]) -> None:
    def read(path: Path) -> None:
        assert len(list(surviving_rows(path))) <= 60

    content = edited(XML, edits)
    message_about("Posts.xml.gz" if pack else "Posts.xml", gzip.compress(content, mtime=0) if pack else content, read)


@given(st.text(max_size=60), st.lists(st.sampled_from(["(", ")", " / ", ":op1 ", '"', "~e.1", "a", "\n", "# ::id x"])))
def fuzz_penman(text: str, pieces: list[str]) -> None:
    for given_text in (text, "".join(pieces), f"(a / {text})", "(a / b " + "".join(pieces)):
        with contextlib.suppress(MathAMRError):
            assert penman_text.decode(given_text).top is not None


def targets() -> dict[str, Callable[[bytes], Any]]:
    """Return by name what takes bytes, draws values from them and tests these."""
    own = {name: value for name, value in globals().items() if name.startswith("fuzz_")}
    for module in MODULES:
        for name, value in vars(module).items():
            if hasattr(value, "hypothesis") and "parse" not in value.__code__.co_varnames[:1]:
                own[f"{module.__name__.rpartition('.')[2].removeprefix('test_')}-{name.removeprefix('test_')}"] = value
    return {name: value.hypothesis.fuzz_one_input for name, value in own.items()}


TARGETS = targets()


def fault_of(name: str, content: bytes) -> BaseException | None:
    """Return the exception that an input of a target causes, or None."""
    try:
        TARGETS[name](content)
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the fault
        return error
    return None


def kept() -> list[Path]:
    return sorted(path for path in CORPUS.glob("*/*") if path.parent.name in TARGETS)


def test_a_member_without_a_name_is_refused(tmp_path: Path) -> None:
    content = zipped()
    at = content.index(b"PK\x01\x02")  # the directory: lengths of name, extra field and comment
    entry = bytearray(content[at : at + 46 + 9])
    entry[28:30], entry[30:32] = b"\0\0", b"\x09\0"  # the name becomes an extra field
    (tmp_path / "formulas.zip").write_bytes(content[:at] + bytes(entry) + content[at + 46 + 9 :])
    with pytest.raises(MathAMRError, match=r"formulas\.zip"):
        packed.members(tmp_path / "formulas.zip")


def test_there_are_targets_of_every_kind() -> None:
    assert len(TARGETS) >= 10
    assert {"fuzz_papers", "fuzz_zips", "fuzz_rows", "fuzz_penman", "robustness-any_text"} <= TARGETS.keys()
    assert {path.name for path in CORPUS.iterdir()} <= TARGETS.keys()


@pytest.mark.parametrize("path", kept(), ids=lambda path: f"{path.parent.name}-{path.name}")
def test_a_kept_input_is_no_fault(path: Path) -> None:
    assert fault_of(path.parent.name, path.read_bytes()) is None


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_some_drawn_inputs(name: str) -> None:
    for seed in range(20):
        draw = random.Random(f"{name} {seed}")
        assert fault_of(name, draw.randbytes(draw.randrange(400))) is None


@pytest.mark.long
def test_for_hours(capsys: pytest.CaptureFixture[Any]) -> None:
    deadline, seed = time.monotonic() + HOURS * 3600, int(os.environ.get("FUZZ_SEED", "1000"))
    tried: Counter[str] = Counter()
    faults: dict[str, str] = {}
    while time.monotonic() < deadline:
        for name, target in TARGETS.items():
            draw = random.Random(f"{name} {seed}")
            content = draw.randbytes(draw.choice((20, 200, 2_000, 8_000)))
            try:
                tried[name] += target(content) is not None  # None: too few bytes for the values
            except Exception as error:  # noqa: BLE001 - any exception is what is looked for
                folder = CORPUS / name
                folder.mkdir(parents=True, exist_ok=True)
                (folder / hashlib.sha256(content).hexdigest()[:16]).write_bytes(content)
                faults.setdefault(name, f"{type(error).__name__}: {str(error)[:300]}")
        seed += 1
    with capsys.disabled():
        print(f"\n{tried.total():,} inputs: " + ", ".join(f"{count:,} {name}" for name, count in tried.items()))
    assert not faults, faults
