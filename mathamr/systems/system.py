"""Base class of all systems: what one has to say of itself, and the steps of a job.

    @system("newest")
    class NewestFirst(System):
        tasks = frozenset({1})

        def retrieve(self, config, encoded, indexed, question):
            found = [(post.post_id, -place) for place, post in enumerate(newest_answers(self.corpus))]
            return Retrieved({topic.topic_id: found for topic in question.topics})

A job calls ``prepare``; ``train``, unless its model is finished; ``encode``; then for each task ``index`` and
``retrieve``. What a system needs between these calls is in the objects that it returns, or in the folder of its model.

The base class is a system without a model and without vectors: neither ``train`` nor ``encode`` is called where
``model_key_parts`` is None. :class:`mathamr.systems.graph.GraphSystem` overrides every step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

from omegaconf import DictConfig, OmegaConf

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
from mathamr.stages.topic_sets import Choose, Encoded, Indexed, Log, Question, Retrieved, Space, Trained


class System:
    """A way to learn and search the posts of a collection.

    Attributes:
        name: the value of ``track=``, set by :func:`mathamr.systems.registry.system`.
        groups: settings groups of the configuration by name, each with the dataclass of its settings. Systems that
            share a group name the same type.
        conf: folder with the values, ``GROUP/default.yaml`` and further choices; None: the repository's ``conf/``.
        free: settings of a group that no result depends on.
        tasks: tasks that it can do: 1 finds answers, 2 formulas.
        partial: it can search some answers only, as tests with names may ask for.
        corpus: the collection.
        shared: folder for what jobs share of the collection.
        console: progress and messages.
    """

    name: ClassVar[str]
    groups: ClassVar[Mapping[str, Any]] = {}
    conf: ClassVar[Path | None] = None
    free: ClassVar[Mapping[str, Sequence[str]]] = {}
    tasks: ClassVar[frozenset[int]] = frozenset({1, 2})
    partial: ClassVar[bool] = True

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self.corpus, self.shared, self.console = corpus, shared, console
        self._texts: Path | None = None
        self._formulas_db: Path | None = None
        self._visual_ids: dict[str, str] | None = None

    # -- what the plan asks --------------------------------------------------------------------------------------

    @classmethod
    def key_settings(cls, config: DictConfig, group: str) -> dict[str, Any]:
        """Return the settings of a group that results depend on."""
        values: Any = OmegaConf.to_container(config[group], resolve=True)
        return {str(name): value for name, value in values.items() if name not in cls.free.get(group, ())}

    @classmethod
    def model_key_parts(cls, config: DictConfig) -> Mapping[str, Any] | None:
        """Return what a model depends on beside the collection, as JSON; None where nothing is trained.

        Raises:
            ConfigError: a file that it depends on is missing.
        """
        return None

    @classmethod
    def result_key_parts(cls, config: DictConfig) -> Mapping[str, Any]:
        """Return what rankings depend on beside the model, the collection and the topics, as JSON.

        Raises:
            ConfigError: a file that they depend on is missing.
        """
        return {group: cls.key_settings(config, group) for group in cls.groups}

    @classmethod
    def needs(cls, config: DictConfig) -> Sequence[str]:
        """Return the conditions whose rankings are read; their jobs of the same seed run first.

        Raises:
            ConfigError: they cannot be used together.
        """
        return ()

    # -- before anything runs ------------------------------------------------------------------------------------

    def check(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Raise a ``MathAMRError`` for settings that cannot work, before anything runs."""

    # -- what jobs share -----------------------------------------------------------------------------------------

    def prepare(self, config: DictConfig, questions: Sequence[Question]) -> None:
        """Make what a job needs and others may share; quick where it is finished. Here: texts for examples."""
        self.prepare_texts(config, questions, formulas=any(question.task == 2 for question in questions))

    def prepare_texts(self, config: DictConfig, questions: Sequence[Question], *, formulas: bool) -> None:
        """Make posts.db of the posts that are searched, and with ``formulas`` formulas.db; no graphs."""
        needed = needed_posts(config, self.corpus, questions, frozenset(), self.shared, self.console)
        collection = ParsedCollection(self.corpus, self.shared, self.console, needed)
        with collection.alone():
            self._texts = collection.texts()
            if formulas:
                self._formulas_db = collection.formulas(config)

    def source(self, config: DictConfig) -> str:
        """Return the identity of what ``prepare`` made: a model trained on something else is not used."""
        return self.corpus.fingerprints().graphs[:16]

    def rankings_source(self, config: DictConfig) -> str:
        """Return the identity of what rankings are made from: those made from something else are not used again."""
        return self.source(config)

    # -- the model -----------------------------------------------------------------------------------------------

    def train(self, config: DictConfig, folder: Path, log: Log) -> Trained:
        """Train a model into ``folder``, resuming an interrupted run; ``log`` receives its records."""
        return Trained(folder)

    def best(self, folder: Path) -> Path | None:
        """Return the checkpoint that ``train`` left in ``folder``; None where it is missing or incomplete."""
        return None

    def tidy(self, folder: Path) -> None:
        """Remove from ``folder`` what only an unfinished training needs."""

    def encode(self, config: DictConfig, trained: Trained, questions: Sequence[Question]) -> Encoded:
        """Return vectors of all posts that may be retrieved, and of the topics; kept beside the model and reused."""
        return Encoded(None)

    # -- retrieval -----------------------------------------------------------------------------------------------

    def index(self, config: DictConfig, encoded: Encoded, question: Question, folder: Path) -> Indexed:
        """Index what may be retrieved; files go to ``folder``."""
        return Indexed(None)

    def retrieve(self, config: DictConfig, encoded: Encoded, indexed: Indexed, question: Question) -> Retrieved:
        """Return at most 1,000 results for every topic, best first."""
        raise NotImplementedError(f"{type(self).__name__} has no method retrieve")

    def visual_ids(self, config: DictConfig) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, for Task 2; read once."""
        if self._visual_ids is None:
            store = None if self._formulas_db is None else FormulaStore.open(self._formulas_db)
            self._visual_ids = {}
            for post in (post for post in self.corpus.posts() if isinstance(post, Post)):
                self._visual_ids |= visual_ids_of(extract(post).formulas, store)
        return self._visual_ids

    # -- examples and analyses -----------------------------------------------------------------------------------

    def explain(self, config: DictConfig, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """Return the similarities of a topic and a post, part by part; None where one of them has no vectors."""
        return None

    def space(self, config: DictConfig, encoded: Encoded, question: Question, choose: Choose) -> Space | None:
        """Return vectors of the topics and of the chosen posts; None of a system without vectors.

        ``choose`` gets the ids of all searched posts with vectors and returns the wanted ones: a collection may be
        too large.
        """
        return None

    def there(self, encoded: Encoded, post_ids: Sequence[str]) -> Sequence[str]:
        """Return those of the posts that are searched: with vectors where the system makes some, else with a text."""
        if (with_vectors := getattr(encoded.vectors, "there", None)) is not None:
            return list(with_vectors(post_ids))
        if self._texts is None:
            return post_ids
        if not self._texts.is_file():  # no post is needed
            return []
        with PostTexts(self._texts) as texts:
            return texts.there(post_ids)

    def readable(self, encoded: Encoded, post_ids: Sequence[str]) -> Sequence[str]:
        """Return those of the topics, by the ids of their posts, that the system can search with."""
        with_vectors = getattr(encoded.vectors, "there", None)
        return post_ids if with_vectors is None else list(with_vectors(post_ids))

    def texts(self, post_ids: Sequence[str]) -> Mapping[str, PostText]:
        """Return posts as they are shown."""
        if self._texts is None:
            return {}
        with PostTexts(self._texts) as texts:
            return texts.get(post_ids)
