"""Index to search in Python: of posts in memory (:meth:`mathamr.MathAMR.index`), or one that ``mathamr index`` wrote.

with model.index(["The sum of two squares ...", "Suppose $x^2+1 = fg$ ..."]) as index:
    for result in index.search("Why is $x^2+1$ irreducible?", k=1, explain=True):
        print(result.post.post_id, result.score, result.explanation.matches)
with PostIndex.open("index") as index:
    print(index.search("How many primes $p$ are there?")[0].post.title)
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Literal

from graphs.corpus.post import Post
from graphs.counts import counted
from graphs.errors import ConfigError, RetrievalError
from graphs.shared_files import only_writer
from mathamr.pretrained import folder as model_folder
from mathamr.pretrained.folder import ModelFiles
from mathamr.retrieval.folder import refuse_other_files
from mathamr.retrieval.index import Strategy
from mathamr.search import catalog
from mathamr.search.answer import RESULTS, Result
from mathamr.search.catalog import Catalog, CatalogContent
from mathamr.search.engine import Engine
from mathamr.search.query import EncodedQuery, QueryEncoder, query_sets
from mathamr.search.searchable import SearchEngine
from mathamr.search_index import open_index
from mathamr.training import checkpoint

Task = Literal["answers", "formulas"]


class PostIndex(AbstractContextManager["PostIndex"]):
    """Searchable posts, as a context manager that closes their files, and removes a ``temporary`` folder."""

    def __init__(self, engine: SearchEngine, temporary: tempfile.TemporaryDirectory[str] | None = None) -> None:
        if isinstance(engine, str | os.PathLike):
            raise ConfigError(f"{os.fspath(engine)!r} is a folder; use PostIndex.open")
        self._engine, self._temporary, self._closed = engine, temporary, False

    @classmethod
    def open(cls, folder: str | os.PathLike[str], *, device: str = "cpu") -> PostIndex:
        """Open the index of any system, written by ``mathamr index`` or :meth:`mathamr.MathAMR.index`.

        Args:
            device: device of the model, if the system has one.

        Raises:
            MathAMRError: a folder that is missing, damaged or no index, or a system that is not installed.
        """
        return cls(open_index(Path(folder), device=device)[0])

    @classmethod
    def build(
        cls,
        posts: Sequence[Post],
        encoded: Sequence[EncodedQuery],
        files: ModelFiles,
        reader: QueryEncoder,
        folder: str | os.PathLike[str] | None = None,
    ) -> PostIndex:
        """Write an index of encoded posts and open it.

        Args:
            posts: texts to show in results.
            encoded: their vectors, in the same order.
            files: model that made the vectors.
            reader: encoder of the queries.
            folder: folder of the index; None: a temporary folder.

        Raises:
            RetrievalError: no posts, or two posts with the same id.
            StoreError: the folder holds other files than an index, or cannot be written.
        """
        ids = [post.post_id for post in posts]
        if not ids:
            raise RetrievalError("no posts to index; give at least one")
        temporary = None
        if folder is None:
            temporary = tempfile.TemporaryDirectory()
            folder = temporary.name
        place = Path(folder)
        refuse_other_files(place)
        with tempfile.TemporaryDirectory() as model, only_writer(place, "building this index"):
            model_folder.write(Path(model) / "model", files, card="")
            content = CatalogContent(
                model=Path(model) / "model",
                model_hash=checkpoint.weights_hash(Path(model) / "model"),
                vocabulary=files.vocabulary,
                spec=files.spec,
                config_hash=files.info.config_hash,
                parser=files.parser,
                formula_ids={one.post_id: one.formula_ids for one in encoded},
                texts=posts,
            )
            catalog.build(place, ids, query_sets(encoded), content)
        return cls(Engine(Catalog.open(place), reader), temporary)

    def __len__(self) -> int:
        return len(self._engine)

    def __repr__(self) -> str:
        return f"PostIndex({counted(len(self), 'post')})"

    def search(
        self,
        query: str,
        k: int = RESULTS,
        *,
        task: Task = "answers",
        strategy: Strategy | str | None = None,
        explain: bool = False,
    ) -> list[Result]:
        """Return at most ``k`` posts, or formulas equal or similar to the query's first formula, best first.

        Args:
            query: text with formulas between dollar signs.
            k: number of results, at most 1,000.
            task: what to search: ``answers`` (all posts of the index) or ``formulas``.
            strategy: search strategy for posts of a graph model (:class:`mathamr.retrieval.index.Strategy`), or the
                name of an exact one; None: exact MaxSim.
            explain: add to each result what it has in common with the query: similarities of virtual nodes
                (``explanation``) or, for systems without these, words and formulas (``overlap``).

        Raises:
            MathAMRError: a query that cannot be read, a number of results out of range, a strategy for an index
                without a model, or a closed index.
        """
        if not isinstance(query, str):
            raise RetrievalError(f"the query {query!r:.80} is not a text; search one text at a time")
        if self._closed:
            raise RetrievalError("the index is closed; open it again, or search inside the with block")
        about = self._engine.about()
        if strategy is not None and not about["strategies"]:
            raise ConfigError(f"an index of {about['system']} has no strategies; leave out strategy")
        strategy = Strategy(strategy) if isinstance(strategy, str) else strategy
        explained = None if explain else 0
        return self._engine.answer(query, task=task, strategy=strategy, k=k, explained=explained).results

    def close(self) -> None:
        """Close all files, and remove a temporary index."""
        self._closed = True
        self._engine.close()
        if self._temporary is not None:
            self._temporary.cleanup()

    def __exit__(self, *error: object) -> None:
        self.close()
