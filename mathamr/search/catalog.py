"""Folder with everything that a search needs: vectors, formulas, texts, and the model and vocabulary that made them.

    build("index", post_ids, documents, content)       # mathamr index
    catalog = Catalog.open(Path("index"))
    catalog.search(query.vectors, Strategy("maxsim"), k=10)       # [[('540', 3.71), ...]]
    catalog.explain(query, ["540"])                               # {'540': Explanation(...)}

======================  ==========================================================================
``index.json``          the model's hash, the graphs' configuration, the backend; names the data
``data-*/vectors``      every post's vectors (:mod:`mathamr.retrieval.exact`); explanations read them
``data-*/qdrant``       the index of the backend ``qdrant``; ``data-*/approximate`` that of ``approximate``
``data-*/formulas``     every formula's vector (:mod:`mathamr.retrieval.formulas`)
``data-*/structure``    trees of the formulas (:mod:`mathamr.search.structured`)
``data-*/posts.db``     texts and formula ids (:mod:`graphs.stores.posts`)
``data-*/model``        the checkpoint; ``vocabulary.json`` beside it
======================  ==========================================================================

A new build replaces the old one in one step, see :mod:`mathamr.retrieval.folder`.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphs.corpus.post import Post
from graphs.errors import Failure, RetrievalError, StoreError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores import posts
from graphs.stores.posts import PostTexts
from mathamr.evaluation.efficiency import bytes_on_disk
from mathamr.maxsim import VectorSets
from mathamr.retrieval import backends
from mathamr.retrieval.exact.index import DType, ExactIndex
from mathamr.retrieval.explanation import Explanation, explain, nodes_of
from mathamr.retrieval.folder import FORMULA_TABLE, building, open_current, read_header, switch
from mathamr.retrieval.formulas import FormulaIndex, formula_points
from mathamr.retrieval.index import Index, Ranking, Strategy
from mathamr.retrieval.strategies import search
from mathamr.search.query import EncodedQuery
from mathamr.search.structured import StructuredFormulas
from mathamr.training import checkpoint

if TYPE_CHECKING:
    from mathamr.retrieval.server.options import ServerOptions

FORMAT = "mathamr-catalog"
VERSION = 1


@dataclass(frozen=True, slots=True)
class CatalogContent:
    """Content of a catalog beside the vectors.

    ``model`` is the checkpoint folder and ``model_hash`` its hash; ``parser`` names the AMR parser of the posts;
    ``formula_ids`` are those of each post's graph, by the order of its vectors; ``texts`` the posts of the collection;
    ``structured`` the trees of their formulas; ``kinds`` the kinds of posts that were chosen.
    """

    model: Path
    model_hash: str
    vocabulary: Vocabulary
    spec: VirtualNodeSpec
    config_hash: str
    parser: str
    formula_ids: Mapping[str, Sequence[str]]
    visual_ids: Mapping[str, str] = field(default_factory=dict)
    texts: Iterable[Post | Failure] = ()
    structured: StructuredFormulas | None = None
    kinds: Sequence[str] = ()


def settings_of(path: Path) -> dict[str, Any]:
    """Return the settings of the catalog in ``path``: kinds of posts, if it has them, backend, location, name, dtype.

    Raises:
        StoreError: no catalog, or a damaged one.
    """
    header, _ = read_header(path, FORMAT, VERSION)
    return {name: header[name] for name in ("kinds", "backend", "location", "name", "dtype") if header.get(name)}


def build(
    path: Path,
    post_ids: Sequence[str],
    documents: VectorSets,
    content: CatalogContent,
    *,
    backend: str = "exact",
    location: str | None = None,
    name: str = "mathamr",
    dtype: DType = "float32",
    progress: Callable[[int], None] | None = None,
    server: ServerOptions | None = None,
    report: Callable[[str], None] = lambda line: None,
) -> None:
    """Write a catalog to ``path`` and switch to it; the previous catalog is then removed.

    With ``location``, a Qdrant server's URL, posts and formulas are indexed there, as ``name`` and ``name-formulas``:
    an earlier catalog of that name cannot be searched any more once the new one has been uploaded. ``server`` has the
    settings of both collections, and ``report`` is called with lines on the progress of the server.

    ``progress`` is called with the number of texts written since the last call. One process builds at a time
    (:func:`graphs.shared_files.only_writer`). Raises :class:`RetrievalError` and :class:`StoreError` as the indexes do.
    """
    backends.check(backend, Strategy(), location=location)
    with building(path) as data:
        shutil.copytree(content.model, data / "model", ignore=shutil.ignore_patterns("state.*"))
        (data / "vocabulary.json").write_text(content.vocabulary.to_json(), encoding="utf-8")
        names = [list(content.formula_ids.get(post_id, ())) for post_id in post_ids]
        posts.build(data / "posts.db", content.texts, zip(post_ids, names, strict=True), progress)
        _check_texts(data / "posts.db", post_ids, path)
        vectors = data / "vectors"
        ExactIndex.build(post_ids, documents, path=vectors, dtype=dtype, model_hash=content.model_hash).close()
        place: dict[str, Any] = {
            "location": location,
            "model_hash": content.model_hash,
            "server": server,
            "report": report,
        }
        if backend != "exact":
            backends.build(backend, post_ids, documents, path=data / backend, name=name, **place).close()
        points = formula_points(post_ids, documents, names, content.visual_ids)
        if len(points):
            folder = data / "formulas"
            FormulaIndex.build(points, backend=backend, path=folder, name=f"{name}-formulas", **place).close()
        header = {
            "format": FORMAT,
            "version": VERSION,
            "model_hash": content.model_hash,
            "config_hash": content.config_hash,
            "virtual_nodes": content.spec.content(),
            "parser": content.parser,
            "backend": backend,
            "location": location,
            "name": name,
            "dtype": dtype,
            "kinds": sorted(content.kinds),
            "documents": len(post_ids),
            "vectors": len(documents.vectors),
            "formulas": len(points),
            "structured": 0 if content.structured is None else len(content.structured),
        }
        tables = [table] if (table := data / "formulas" / FORMULA_TABLE).exists() else []
        if content.structured is not None:
            tables += content.structured.write(data / "structure")
        switch(path, data, header, tables)


def _check_texts(texts: Path, post_ids: Sequence[str], path: Path) -> None:
    with PostTexts(texts) as kept:
        missing = sorted(set(post_ids).difference(kept.all_ids()))
    if missing:
        raise StoreError(
            f"{len(missing):,} of {len(post_ids):,} posts have a graph and no text, e.g. {missing[0]}; give the "
            "collection that the graphs were made from",
            path=path,
        )


class Catalog:
    """An opened catalog. ``model`` is the folder of the checkpoint that made it."""

    def __init__(self, header: dict[str, Any], data: Path) -> None:
        self.model_hash: str = header["model_hash"]
        self.config_hash: str = header["config_hash"]
        self.spec = VirtualNodeSpec(**header["virtual_nodes"])
        self.parser: str = header["parser"]
        self.backend: str = header["backend"]
        self.location: str | None = header.get("location")
        self._name: str = header.get("name", "mathamr")
        self.model = data / "model"
        self._data = data
        self.num_formulas: int = header["formulas"]
        self.has_formulas = self.num_formulas > 0
        self._formulas: FormulaIndex | None = None
        self.structured: StructuredFormulas | None = None
        if header.get("structured"):  # an index of an earlier version has none
            self.structured = StructuredFormulas.open(data / "structure")
        self.vocabulary = Vocabulary.from_json((data / "vocabulary.json").read_text(encoding="utf-8"))
        self.vectors = ExactIndex.open(data / "vectors", model_hash=self.model_hash)
        self.texts = PostTexts(data / "posts.db")
        self.index: Index = self.vectors
        if self.backend != "exact":
            self.index = backends.open_index(
                self.backend,
                path=data / self.backend,
                location=self.location,
                name=self._name,
                model_hash=self.model_hash,
            )

    @classmethod
    def open(cls, path: Path, *, model_hash: str | None = None) -> Catalog:
        """Open the catalog in ``path``; with ``model_hash``, one of another model is refused.

        Raises :class:`StoreError` for a folder that is missing, damaged, of another format or model, and where a
        server has other posts under its name.
        """
        return open_current(path, lambda: cls._open(path, model_hash))

    @classmethod
    def _open(cls, path: Path, model_hash: str | None) -> Catalog:
        header, data = read_header(path, FORMAT, VERSION, model_hash=model_hash)
        try:
            catalog = cls(header, data)
        except (OSError, KeyError, TypeError, ValueError) as error:  # of a header that somebody has written by hand
            raise StoreError(f"the index is damaged: {error!r}; build it again", path=data) from error
        if checkpoint.weights_hash(catalog.model) != catalog.model_hash:
            catalog.close()
            raise StoreError("damaged: not the model that made the index; build it again", path=catalog.model)
        found = len(catalog.index)
        if (found, catalog.index.num_vectors) != (header["documents"], header["vectors"]):
            catalog.close()
            raise StoreError(
                f"the index {catalog._name!r} at {catalog.location} holds {found:,} posts, this folder has "
                f"{header['documents']:,}: another build has taken its name; build it again under another name",
                path=path,
            )
        return catalog

    def __len__(self) -> int:
        return len(self.vectors)

    @property
    def nbytes(self) -> int:
        """Bytes of the whole folder."""
        return bytes_on_disk(self._data)

    @property
    def formulas(self) -> FormulaIndex:
        """Index of formulas, opened at its first use."""
        if not self.has_formulas:
            raise RetrievalError(
                f"this index has no formulas: its graphs were made with formulas={self.spec.formulas}; "
                "build it from graphs with formulas"
            )
        if self._formulas is None:
            folder = self._data / "formulas"
            self._formulas = FormulaIndex.open(
                folder,
                backend=self.backend,
                location=self.location,
                name=f"{self._name}-formulas",
                model_hash=self.model_hash,
            )
        return self._formulas

    def close(self) -> None:
        """Close all files."""
        if self._formulas is not None:
            self._formulas.close()
        if self.index is not self.vectors:
            self.index.close()
        self.vectors.close()
        self.texts.close()

    def search(self, queries: VectorSets, strategy: Strategy | str = "maxsim", k: int = 1000) -> list[Ranking]:
        """Return the best posts for each query; see :func:`mathamr.retrieval.strategies.search`."""
        return search(self.index, queries, strategy, k)

    def explain(self, query: EncodedQuery, post_ids: Sequence[str]) -> dict[str, Explanation]:
        """Explain how each of the posts matches the query."""
        if not post_ids:
            return {}
        shown = self.texts.get(post_ids)
        sets = self.vectors.vectors_of(post_ids)
        (vectors,) = query.vectors
        found = {}
        for post_id, own in zip(post_ids, sets, strict=True):
            post = shown.get(post_id)
            if post is None:
                raise StoreError(f"the index has the vectors of post {post_id} and not its text", path=self._data)
            nodes = nodes_of(post.text, post.formula_ids, len(own), self.spec.structure)
            found[post_id] = explain(vectors, query.nodes, own, nodes)
        return found

    def spread(self, count: int) -> VectorSets:
        """Return vectors of up to ``count`` posts, spread over the catalog: queries for a check."""
        ids = sorted(self.vectors.post_ids())
        places = np.unique(np.linspace(0, len(ids) - 1, count).astype(int))
        sets = self.vectors.vectors_of([ids[place] for place in places])
        return VectorSets(sets.vectors.contiguous(), sets.ptr.to(torch.int64))
