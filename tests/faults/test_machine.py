"""Full disks, read-only folders, kills, rivals and clocks that jump, at points drawn by seed.

A case ends in one message, or in an artifact equal to that of an undisturbed run. The same command then runs through,
and leaves that artifact. More cases, for as long as one likes, with a count of them at the end:

    FAULT_HOURS=1 pytest -m long -s tests/faults/test_machine.py
"""

from __future__ import annotations

import os
import random
import shutil
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.faults.commands import COMMANDS, Command, inputs
from tests.faults.driver import KILLED, Drive, Run, driver

HOURS = float(os.environ.get("FAULT_HOURS", "0.25"))
DAY = 86_400
FAULTS = ("room", "cpu", "lock", "clock", "rivals", "old files")
WORDS = {
    "room": ("room", "space", "full", "larger files", "written"),
    "lock": ("writ", "Permission denied", "read-only", "readonly"),
    "rivals": ("another process",),
}


@pytest.fixture(scope="module")
def work(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return inputs(tmp_path_factory.mktemp("work"))


@pytest.fixture(scope="module")
def drive() -> Iterator[Drive]:
    with driver() as drive:
        yield drive


@pytest.fixture(scope="module")
def references(drive: Drive, work: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder that each command leaves undisturbed."""
    out = tmp_path_factory.mktemp("references")
    ended = drive([Run(one.script, one.arguments(work, out / name)) for name, one in COMMANDS.items()])
    assert [code for code, _ in ended] == [0] * len(COMMANDS), ended
    return {name: out / name for name in COMMANDS}


def prepared(fault: str, reference: Path, out: Path, draw: random.Random) -> None:
    """Make the folder that a command meets: missing, or what an earlier run has left."""
    if fault == "old files":
        shutil.copytree(reference, out)
        for path in out.rglob("*"):
            os.utime(path, (when := draw.choice((0, 4_000_000_000)), when))
    elif fault == "lock":
        if draw.random() < 0.5:
            shutil.copytree(reference, out)
        else:
            out.mkdir()
        for path in (*out.rglob("*"), out):
            path.chmod(0o555 if path.is_dir() else 0o444)


def disturbed(command: Command, work: Path, out: Path, fault: str, draw: random.Random, number: int) -> list[Run]:
    """Return the runs of a case; the last one is undisturbed."""
    words = command.arguments(work, out)
    amount = {
        "room": int(10 ** draw.uniform(1, 4.5)),
        "cpu": draw.uniform(0.01, command.seconds),
        "clock": draw.choice((3600, DAY, 400 * DAY)),
    }.get(fault, 0)
    if fault == "rivals":
        return [Run(command.script, words, group=number)] * 2
    return [Run(command.script, words, "" if fault == "old files" else fault, amount)]


def check_end(fault: str, code: int, said: str, case: object) -> str:
    """Check a disturbed run, and return its end for the count."""
    assert "Traceback" not in said, (case, said)
    if fault == "cpu" and code == KILLED:
        return "killed"
    if code == 0:
        return "done"
    allowed = WORDS.get(fault, ())
    last = said.strip().splitlines()[-1] if said.strip() else ""
    assert code == 2 or (fault in ("room", "lock") and code == 1), (case, code, said)
    assert any(word in last for word in allowed) or any(word in said for word in allowed), (case, said)
    return "message"


def play(
    cases: Sequence[tuple[str, str, int]], drive: Drive, work: Path, references: dict[str, Path], place: Path
) -> Counter[tuple[str, str, str]]:
    """Play cases of (command, fault, seed), and return the count of ends by command and fault."""
    first: list[Run] = []
    counts: list[int] = []
    outs: list[Path] = []
    for number, (name, fault, seed) in enumerate(cases):
        draw, out = random.Random(f"{name} {fault} {seed}"), place / f"{name}-{fault.replace(' ', '-')}-{seed}"
        prepared(fault, references[name], out, draw)
        runs = disturbed(COMMANDS[name], work, out, fault, draw, number)
        first += runs
        counts.append(len(runs))
        outs.append(out)
    ended = iter(drive(first))
    found: Counter[tuple[str, str, str]] = Counter()
    for case, count, out in zip(cases, counts, outs, strict=True):
        name, fault, _ = case
        own = [next(ended) for _ in range(count)]
        ends = [check_end(fault, code, said, case) for code, said in own]
        found.update((name, fault, end) for end in ends)
        assert fault != "rivals" or "done" in ends, (case, own)
        assert fault not in ("clock", "old files") or ends == ["done"], (case, own)
        if fault == "lock":
            for path in (out, *out.rglob("*")):
                path.chmod(0o755 if path.is_dir() else 0o644)
    commands = [(COMMANDS[name], out) for (name, *_), out in zip(cases, outs, strict=True)]
    again = drive([Run(command.script, command.arguments(work, out)) for command, out in commands])
    for case, out, (code, said) in zip(cases, outs, again, strict=True):
        read = COMMANDS[case[0]].read
        assert code == 0, (case, said)
        assert read(out) == read(references[case[0]]), case
        shutil.rmtree(out)
    return found


def test_a_fault_is_a_message_or_makes_no_difference(
    drive: Drive, work: Path, references: dict[str, Path], tmp_path: Path
) -> None:
    names = [name for name in COMMANDS if name != "experiment"]
    cases = [(name, fault, 0) for name in names for fault in ("room", "cpu", "lock", "rivals")]
    cases += [("index", fault, 0) for fault in ("clock", "old files")]
    cases += [("experiment", "cpu", 0)]
    found = play(cases, drive, work, references, tmp_path)
    for fault in FAULTS:
        ends = {end for _, other, end in found if other == fault}
        sure = {"message"} if fault in ("room", "lock") else {"message", "killed", "done"}  # rivals may miss each other
        assert ends & sure, (fault, found)


@pytest.mark.long
def test_for_hours(
    drive: Drive, work: Path, references: dict[str, Path], tmp_path: Path, capsys: pytest.CaptureFixture[Any]
) -> None:
    deadline, seed = time.monotonic() + HOURS * 3600, 100
    found: Counter[tuple[str, str, str]] = Counter()
    while time.monotonic() < deadline:
        found += play([(name, fault, seed) for name in COMMANDS for fault in FAULTS], drive, work, references, tmp_path)
        seed += 1
    assert found.total() >= len(COMMANDS) * len(FAULTS)
    with capsys.disabled():
        print(f"\n{sum(found.values()):,} faults without a silent difference")
        for fault in FAULTS:
            ends = {end: sum(n for (_, f, e), n in found.items() if (f, e) == (fault, end)) for *_, end in found}
            print(f"  {fault}: " + ", ".join(f"{count} {end}" for end, count in ends.items() if count))
