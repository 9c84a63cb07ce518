"""An index by the name of its backend can do what was checked for before it was built."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from graphs.errors import ConfigError, RetrievalError
from mathamr.retrieval.backends import build, check
from mathamr.retrieval.index import Hnsw, Strategy
from mathamr.retrieval.strategies import search

APPROXIMATE = Strategy("maxsim", exact=False)


def test_approximate_maxsim_takes_a_graph_of_all_vectors(make_collection: Callable[..., Any], tmp_path: Path) -> None:
    large = make_collection(count=900)
    with pytest.raises(RetrievalError, match="m_all=16"):
        check("qdrant", APPROXIMATE)
    check("qdrant", APPROXIMATE, hnsw=Hnsw(m_all=16))
    index = build("qdrant", large.post_ids, large.documents, path=tmp_path / "index", hnsw=Hnsw(m_all=16))
    found = search(index, large.queries, APPROXIMATE, 10)
    right = search(index, large.queries, Strategy("maxsim"), 10)
    index.close()
    shared = [len({name for name, _ in a} & {name for name, _ in b}) for a, b in zip(found, right, strict=True)]
    assert sum(shared) > 0.8 * 10 * len(shared)


def test_a_graph_that_cannot_be_is_refused() -> None:
    with pytest.raises(ConfigError, match="m_all=16 belongs to the backend qdrant"):
        check("exact", Strategy("single_vector"), hnsw=Hnsw(m_all=16))
    for wrong, message in (({"m_all": -1}, "m_all=-1"), ({"m": -1}, "m=-1"), ({"ef_construct": 0}, "ef_construct=0")):
        with pytest.raises(RetrievalError, match=message):
            Hnsw(**wrong)
    with pytest.raises(RetrievalError, match="build it in Python with m=16"):
        check("qdrant", Strategy("single_vector", exact=False), hnsw=Hnsw(m=0))
