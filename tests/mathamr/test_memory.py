"""Memory of what was released goes back to the system."""

from __future__ import annotations

import os
import platform
import resource
import subprocess
import sys
from pathlib import Path

import pytest

from mathamr import memory

HUGE_PAGES = Path("/sys/kernel/mm/transparent_hugepage/enabled")


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc keeps memory in a heap that can be trimmed")
def test_memory_that_was_let_go_of_is_given_back() -> None:
    blocks = [bytearray(100_000) for _ in range(3_000)]  # 300 MB, each too small for its own pages
    top = bytearray(100_000)  # and one that keeps the heap from shrinking
    held = _resident()
    del blocks
    memory.give_back_memory()
    assert held - _resident() > 200_000_000
    assert len(top) == 100_000


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize()


def test_memory_is_given_back_after_some_thousand_posts(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[int] = []
    said: list[int] = []
    monkeypatch.setattr(memory, "give_back_memory", lambda: given.append(sum(said)))
    monkeypatch.setattr(memory, "GIVEN_BACK_EVERY", 2000)
    advance = memory.giving_back_memory(said.append)
    for count in (900, 900, 900, 1300, 700):
        advance(count)
    assert (sum(said), given) == (4700, [2700, 4700])


@pytest.mark.skipif(not HUGE_PAGES.exists(), reason="this system has no huge pages")
def test_huge_pages_are_asked_for_unless_the_user_sets_the_variable() -> None:
    asked = [sys.executable, "-c", "import os, mathamr; print(os.environ['THP_MEM_ALLOC_ENABLE'])"]
    for environment, value in (({}, "1"), ({"THP_MEM_ALLOC_ENABLE": "0"}, "0")):
        plain = {name: text for name, text in os.environ.items() if name != "THP_MEM_ALLOC_ENABLE"}
        assert subprocess.check_output(asked, env=plain | environment, text=True).strip() == value
