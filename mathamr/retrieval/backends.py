"""Backends by name: build or open an index without importing its class.

>>> import torch
>>> from mathamr.maxsim import VectorSets
>>> documents = VectorSets.of([torch.tensor([[0.0, 1.0]]), torch.tensor([[0.6, 0.8], [1.0, 0.0]])])
>>> index = build("exact", ["154", "255"], documents)
>>> question = VectorSets.of([torch.tensor([[1.0, 0.0], [0.0, 1.0]])])
>>> index.search(question, Strategy("maxsim"), k=10)
[[('255', 1.7999999523162842), ('154', 1.0)]]
>>> index.search(question, Strategy("single_vector"), k=1)  # the last vector of a set is the document's
[[('154', 1.0)]]

A backend is imported when it is first used, so a search in memory does not need Qdrant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from graphs.errors import ConfigError
from mathamr.maxsim import VectorSets
from mathamr.retrieval.index import BackendName, Hnsw, Index, Strategy, refuse_missing_graph

if TYPE_CHECKING:
    from mathamr.retrieval.server.options import ServerOptions


_LOCAL: Mapping[str, tuple[str, str]] = {
    "exact": ("mathamr.retrieval.exact.index", "ExactIndex"),
    "approximate": ("mathamr.retrieval.approximate", "ApproximateIndex"),
    "qdrant": ("mathamr.retrieval.qdrant", "EmbeddedIndex"),
}


def check(backend: str, strategy: Strategy, *, location: str | None = None, hnsw: Hnsw | None = None) -> None:
    """Raise for a search that an index of :func:`build` will not support, before hours are spent on its vectors.

    >>> check("exact", Strategy("maxsim", exact=False))
    Traceback (most recent call last):
        ...
    graphs.errors.ConfigError: the backend exact cannot do approximate maxsim: use approximate or qdrant, or exact=true

    Raises:
        ConfigError: an unknown backend, a ``location`` or ``hnsw`` that it does not accept, or an approximate search
            with the backend exact.
        RetrievalError: an approximate search of vectors for which Qdrant has no graph.
    """
    if backend not in get_args(BackendName):
        raise ConfigError(f"unknown backend {backend!r}; choose from: {', '.join(get_args(BackendName))}")
    if backend != "qdrant":
        if location is not None:
            raise ConfigError(
                f"location={location} belongs to the backend qdrant; leave location out (index.location=null)"
            )
        if hnsw is not None and hnsw.m_all:
            raise ConfigError(f"m_all={hnsw.m_all} belongs to the backend qdrant; {backend} has no HNSW graph")
        if not strategy.exact and backend == "exact":
            raise ConfigError(f"the backend exact cannot do {strategy}: use approximate or qdrant, or exact=true")
    else:
        refuse_missing_graph(strategy, hnsw or Hnsw())


def build(
    backend: str,
    post_ids: Sequence[str],
    documents: VectorSets,
    *,
    path: Path | None = None,
    location: str | None = None,
    hnsw: Hnsw | None = None,
    name: str = "mathamr",
    temporary: bool = False,
    model_hash: str = "",
    fields: Mapping[str, Sequence[str]] | None = None,
    server: ServerOptions | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> Index:
    """Return an index of ``documents``, one set of unit vectors for each post id, in the backend's default form.

    ``path`` is the folder of the index; without it, only ``qdrant`` has files. For ``qdrant``, ``location`` is
    ``embedded`` (the default), ``:memory:`` or the URL of a server, and ``hnsw`` selects the graphs. On a server,
    ``name`` identifies the index: concurrent builds need different names, and so do indexes that exist at the same
    time. ``temporary`` removes the index from the server on closing; ``fields`` are the payload of the points, a column
    for each name, ids first; ``server`` has the settings of the collection; ``report`` is called with lines on the
    progress. The ``build`` of each backend has more options.
    """
    check(backend, Strategy(), location=location, hnsw=hnsw)
    graphs: dict[str, Any] = {} if backend != "qdrant" else {"hnsw": hnsw or Hnsw(), "fields": fields}
    if location in (None, "embedded"):
        index: Index = _local(backend).build(post_ids, documents, path=path, model_hash=model_hash, **graphs)
        return index
    from mathamr.retrieval.qdrant_server import ServerIndex
    from mathamr.retrieval.server.options import ServerOptions

    return ServerIndex.build(
        post_ids,
        documents,
        location=str(location),
        model_hash=model_hash,
        options=replace(server or ServerOptions(), alias=name),
        temporary=temporary,
        report=report,
        **graphs,
    )


def open_index(
    backend: str,
    *,
    path: Path | None = None,
    location: str | None = None,
    name: str = "mathamr",
    model_hash: str | None = None,
) -> Index:
    """Open an index made by :func:`build`, with the same ``path``, or ``location`` and ``name``.

    With ``model_hash``, an index of another model is refused. Raises :class:`StoreError` for a missing index.
    """
    if backend == "qdrant" and location not in (None, "embedded"):
        from mathamr.retrieval.qdrant_server import ServerIndex
        from mathamr.retrieval.server.options import ServerOptions

        return ServerIndex.open(location=str(location), model_hash=model_hash, options=ServerOptions(alias=name))
    if path is None:
        raise ConfigError(f"no path was given; the backend {backend} keeps its index in a folder")
    index: Index = _local(backend).open(path, model_hash=model_hash)
    return index


def _local(backend: str) -> Any:
    """Import the class of a backend in this process."""
    if backend not in _LOCAL:
        raise ConfigError(f"unknown backend {backend!r}; choose from: {', '.join(_LOCAL)}")
    module, name = _LOCAL[backend]
    return getattr(import_module(module), name)
