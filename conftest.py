"""Quick sessions: few modules are searched for doctests, garbage collection waits, slow tests come first."""

import gc
import os
from collections.abc import Generator, Iterator
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import pytest
from _pytest.doctest import DoctestModule

gc.disable()  # while modules are imported, which stay


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(file_path: Path) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Leave out the search for doctests, which imports the module and reads its source, in a file without ``>>>``."""
    collectors = yield
    if not collectors or b">>>" in file_path.read_bytes():
        return collectors
    return [collector for collector in collectors if not isinstance(collector, DoctestModule)]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put modules that wait for Slurm first, then slow ones: workers of pytest-xdist end together, with quick tests."""
    waiting, slow = ({item.path for item in items if item.get_closest_marker(marker)} for marker in ("slurm", "slow"))
    items.sort(key=lambda item: (item.path not in waiting, item.path not in slow))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int:
    """Return the number of cores that this process may use: another worker takes more time than tests wait."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pytest_collection_finish() -> None:
    gc.freeze()  # later garbage collections need not walk what was collected here
    gc.set_threshold(10_000)
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> Generator[None]:
    yield
    if nextitem is None or nextitem.path != item.path:
        gc.collect()
        gc.freeze()  # nor what the tests of a module imported and left


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # Hypothesis asks, at the end, what refers to its objects


def pytest_unconfigure() -> None:
    gc.collect()
    gc.freeze()  # pytest and the interpreter collect garbage several times more before they end


@pytest.fixture
def warm_children(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the processes that the code under test starts begin with the project imported."""
    from tests.warm_process import Children

    ensure_running()  # before the code under test blocks signals, which a new server would inherit
    children = Children()
    monkeypatch.setattr("multiprocessing.get_context", lambda _: children)


@pytest.fixture(scope="session")
def quick_composition() -> Iterator[None]:
    """Let Hydra read and merge the files of ``conf/`` once, not in each test."""
    from tests.experiments.composed_once import composed_once

    with composed_once():
        yield
