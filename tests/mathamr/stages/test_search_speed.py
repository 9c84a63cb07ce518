"""Queries a second of a search: of all queries, without the first one, which opens the index."""

from __future__ import annotations

import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import torch

from graphs.corpus.post import Post, Topic
from mathamr.maxsim import VectorSets
from mathamr.retrieval import build
from mathamr.stages.retrieval import searching
from mathamr.stages.settings import RetrievalConfig, SearchSettings, ThreadConfig
from mathamr.stages.topic_sets import Indexed
from mathamr.stages.vectors import EncodedPosts

COLD, WARM = 0.4, 0.02
NAMES = [f"p{number}" for number in range(40)]
TOPICS = [Topic(f"A.{number}", Post(f"t{number}", "topic", "", "")) for number in range(5)]


def sets(count: int) -> VectorSets:
    generator = torch.Generator().manual_seed(count)
    some = [torch.randn(3, 8, generator=generator) for _ in range(count)]
    return VectorSets.of([torch.nn.functional.normalize(one, dim=-1) for one in some])


@pytest.mark.parametrize("exact", [True, False])
def test_queries_a_second_of_qdrant_leave_out_the_first_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, exact: bool
) -> None:
    index = build("qdrant", NAMES, sets(40), path=tmp_path / "index", model_hash="hash")
    search, asked = searching.search, []

    def slow(index: Any, queries: VectorSets, *rest: Any, **more: Any) -> Any:
        asked.append(len(queries))
        time.sleep(WARM * len(queries) if len(asked) > 1 else COLD)
        return search(index, queries, *rest, **more)

    monkeypatch.setattr(searching, "search", slow)
    chosen = RetrievalConfig(strategy="doc_vn_maxsim", exact=exact, pool=20, ef=64, k=10)
    settings = cast(SearchSettings, SimpleNamespace(retrieval=chosen, thread=ThreadConfig()))
    vectors = cast(EncodedPosts, SimpleNamespace(sets=lambda names: sets(len(names)), model_hash="hash"))
    begin = time.perf_counter()
    found = searching.search_posts(settings, vectors, Indexed(index, {}), TOPICS)
    seconds = time.perf_counter() - begin
    assert asked == [1, len(TOPICS)]
    assert [len(ranking) for ranking in found.results.values()] == [10] * len(TOPICS)
    assert len(TOPICS) / (seconds - COLD) <= found.costs["queries_per_second"] <= 1 / WARM
