"""Collected modules stay for the whole session: garbage collection need not walk them."""

import gc


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()


def pytest_sessionfinish() -> None:
    gc.unfreeze()  # Hypothesis asks, at the end, what refers to its objects
