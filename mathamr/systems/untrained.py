"""What every track that has neither a model nor vectors shares.

class BM25Track(Untrained):
    def prepare(self, config, questions): ...     # sets where posts.db is, and formulas.db if it is needed
    def index(self, config, encoded, question, folder): ...
    def retrieve(self, config, encoded, indexed, question): ...
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from omegaconf import DictConfig

from graphs.corpus.corpus import Corpus
from graphs.corpus.post import Post, Topic
from graphs.corpus.text.placeholders import extract
from graphs.formulas.store import FormulaStore
from graphs.stores.posts import PostText, PostTexts
from mathamr.retrieval.explanation import Explanation
from mathamr.retrieval.lexical import visual_ids_of
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.needed import needed_posts
from mathamr.stages.system import Choose, Encoded, Log, Question, Space, Trained


class Untrained:
    """The part of :class:`mathamr.stages.system.Track` that is the same for every track without a model."""

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self._corpus, self._shared, self._console = corpus, shared, console
        self._texts: Path | None = None
        self._formulas: Path | None = None
        self._looks: dict[str, str] | None = None

    def prepare_texts(self, config: DictConfig, questions: Sequence[Question], *, formulas: bool) -> None:
        """Make posts.db of the posts that are searched, and with ``formulas`` formulas.db; no graphs."""
        needed = needed_posts(config, self._corpus, questions, frozenset(), self._shared, self._console)
        collection = ParsedCollection(self._corpus, self._shared, self._console, needed)
        with collection.alone():
            self._texts = collection.texts()
            if formulas:
                self._formulas = collection.formulas(config)

    def source(self, config: DictConfig) -> str:
        """The collection."""
        return self._corpus.fingerprints().graphs[:16]

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Nothing is trained."""
        return Trained(folder)

    def best(self, folder: Path) -> Path | None:
        """None."""
        return None

    def tidy(self, folder: Path) -> None:
        """Nothing to remove."""

    def encode(self, config: DictConfig, trained: Trained, questions: Sequence[Question]) -> Encoded:
        """There are no vectors."""
        return Encoded(None)

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, read once."""
        if self._looks is None:
            store = None if self._formulas is None else FormulaStore.open(self._formulas)
            posts = (post for post in self._corpus.posts() if isinstance(post, Post))
            self._looks = {}
            for post in posts:
                self._looks |= visual_ids_of(extract(post).formulas, store)
        return self._looks

    def explain(self, config: DictConfig, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """Nothing: there are no parts to compare."""
        return None

    def space(self, config: DictConfig, encoded: Encoded, question: Question, choose: Choose) -> Space | None:
        """None: there are no vectors."""
        return None

    def texts(self, post_ids: Sequence[str]) -> Mapping[str, PostText]:
        """Posts as they are shown."""
        if self._texts is None:
            return {}
        with PostTexts(self._texts) as texts:
            return texts.get(post_ids)
