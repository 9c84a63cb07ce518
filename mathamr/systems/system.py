"""Base class of all systems: the steps of a job.

    @dataclass(frozen=True, kw_only=True)
    class NewestSettings(JobSettings):
        newest: NewestConfig  # the group newest: conf/newest/default.yaml

    @system("newest")
    class NewestFirst(System[NewestSettings]):
        tasks = frozenset({1})

        def retrieve(self, settings, encoded, indexed, topic_set):
            found = [(post.post_id, -place) for place, post in enumerate(newest_answers(self.corpus, settings.newest))]
            return Retrieved({topic.topic_id: found for topic in topic_set.topics})

A job calls ``prepare``; ``train``, unless its model is finished; ``encode``; then for each task ``index`` and
``retrieve``. Between these calls a system keeps its state in the returned objects, or in the folder of its model.
Its settings list the dependencies of its model and its rankings (:class:`mathamr.stages.settings.JobSettings`).

The base class is a system without a model and without vectors: if ``model_key_parts`` of the settings returns None,
neither ``train`` nor ``encode`` is called. :class:`mathamr.systems.graph.GraphSystem` overrides every step.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from inspect import getattr_static
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Generic, get_args, get_origin

from graphs.corpus.corpus import Corpus, topics_may_be_posts
from graphs.corpus.leaks import PairsApart, questions_of_topics
from graphs.corpus.post import Post, Topic
from graphs.corpus.text.placeholders import extract
from graphs.errors import ConfigError, Failure
from graphs.formulas.store import FormulaStore
from graphs.stores.posts import PostText, PostTexts
from mathamr.retrieval.explanation import Explanation
from mathamr.retrieval.lexical import visual_ids_of
from mathamr.search.searchable import Searchable
from mathamr.stages.collection import ParsedCollection
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.needed import NeededPosts, needed_posts
from mathamr.stages.retrieval.threads import Threads
from mathamr.stages.settings import JobSettings, thread_of
from mathamr.stages.topic_sets import EmbeddingSpace, Encoded, Indexed, Log, Retrieved, SelectPosts, TopicSet, Trained
from mathamr.systems.searchable.kept import FinishedSearch, KeptSearch, Settings

if TYPE_CHECKING:
    from mathamr.stages.vectors import EncodedPosts


class System(ABC, Generic[Settings]):
    """Ranking method that can learn from a collection and searches its posts.

    Attributes:
        name: the value of ``track=``, set by :func:`mathamr.systems.registry.system`.
        settings: type of its settings, the argument of ``System[...]``.
        tasks: supported tasks: 1 finds answers, 2 formulas.
        partial: True if it can search a part of the answers, which named tests may require.
        reads: supported values of ``thread.read``; with ``question``, the system searches posts of ``topic_set.kind``.
        corpus: the collection.
        shared: folder of files that jobs share.
        console: progress and messages.
        post_files: posts of the collection, kept in ``shared``, so that the collection is read once.
        own_questions: questions equal to a topic, by topic id; :meth:`threads` finds them.
    """

    name: ClassVar[str]
    settings: ClassVar[type[JobSettings]] = JobSettings
    tasks: ClassVar[frozenset[int]] = frozenset({1, 2})
    partial: ClassVar[bool] = True
    reads: ClassVar[frozenset[str]] = frozenset({"answer"})

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        for base in cls.__dict__.get("__orig_bases__", ()):
            origin, arguments = get_origin(base), get_args(base)
            if isinstance(origin, type) and issubclass(origin, System) and isinstance(arguments[0], type):
                cls.settings = arguments[0]

    def __init__(self, corpus: Corpus, shared: Path, console: Console) -> None:
        self.corpus, self.shared, self.console = corpus, shared, console
        self.post_files = PostFiles(corpus, shared, console)
        self._texts: Path | None = None
        self._formulas_db: Path | None = None
        self._some_posts: NeededPosts | None = None  # posts whose texts are made; None: all
        self._visual_ids: dict[str, str] | None = None
        self._threads: Threads | None = None
        self.own_questions: Mapping[str, frozenset[str]] = {}
        self._topic_questions = frozenset[str]()

    # -- before anything runs ------------------------------------------------------------------------------------

    def check(self, settings: Settings, topic_sets: Sequence[TopicSet]) -> None:
        """Check the settings before anything runs; raise a ``MathAMRError`` for settings that cannot work."""

    # -- what jobs share -----------------------------------------------------------------------------------------

    def prepare(self, settings: Settings, topic_sets: Sequence[TopicSet]) -> None:
        """Make the shared files of a job, unless they are finished. The base class makes the texts of examples."""
        self.prepare_texts(settings, topic_sets, formulas=any(topic_set.task == 2 for topic_set in topic_sets))

    def prepare_texts(self, settings: Settings, topic_sets: Sequence[TopicSet], *, formulas: bool) -> None:
        """Make posts.db of the searched posts and, if ``formulas`` is true, formulas.db; no graphs are made."""
        needed = needed_posts(settings, self.corpus, topic_sets, frozenset(), self.shared, self.console)
        collection = ParsedCollection(self.corpus, self.shared, self.console, needed)
        with collection.alone():
            self._texts = collection.texts()
            self._some_posts = needed
            if formulas:
                self._formulas_db = collection.formulas(settings)

    def posts_for(self, topic_set: TopicSet) -> Iterator[Post | Failure]:
        """Yield posts in the order of the collection, at least all that have searched answers or formulas."""
        if self._some_posts is not None and topic_set.regime == "judged":
            return self.post_files.posts(self._some_posts.all)
        return self.post_files.every_post()

    def searched_posts(self, topic_set: TopicSet) -> Iterator[Post]:
        """Yield the posts that may be found in Task 1."""
        wanted = topic_set.indexed
        for post in self.posts_for(topic_set):
            if isinstance(post, Post) and post.kind == topic_set.kind and (wanted is None or post.post_id in wanted):
                yield post

    def source(self, settings: Settings) -> str:
        """Return the identity of the files that ``prepare`` made; a model trained on other files is not used."""
        return self.corpus.fingerprints().graphs[:16]

    def rankings_source(self, settings: Settings) -> str:
        """Return the identity of the files that rankings are made from; rankings from other files are not used."""
        return self.source(settings)

    def pairs(self, settings: Settings) -> Mapping[str, PairsApart]:
        """Return the training pairs of ``train`` and those left out, by source; "" is the collection itself."""
        return {}

    # -- the model -----------------------------------------------------------------------------------------------

    def train(self, settings: Settings, folder: Path, log: Log) -> Trained:
        """Train a model into ``folder``, resuming an interrupted run; ``log`` receives its records."""
        return Trained(folder)

    def best(self, folder: Path) -> Path | None:
        """Return the checkpoint that ``train`` wrote to ``folder``; None if it is missing or incomplete."""
        return None

    def tidy(self, folder: Path) -> None:
        """Remove files that are needed only while training is unfinished."""

    def encode(self, settings: Settings, trained: Trained, topic_sets: Sequence[TopicSet]) -> Encoded:
        """Return vectors of the topics and of all posts that may be retrieved; stored beside the model and reused."""
        return Encoded(None)

    # -- retrieval -----------------------------------------------------------------------------------------------

    def index(self, settings: Settings, encoded: Encoded, topic_set: TopicSet, folder: Path) -> Indexed:
        """Index the searched posts; write the files of the index to ``folder``."""
        return Indexed(None)

    @abstractmethod
    def retrieve(self, settings: Settings, encoded: Encoded, indexed: Indexed, topic_set: TopicSet) -> Retrieved:
        """Return at most 1,000 results for every topic. Higher scores are better; their order does not matter."""

    def visual_ids(self, settings: Settings) -> Mapping[str, str]:
        """Return the visual id of each formula of the collection, for Task 2; the files are read only once."""
        if self._visual_ids is None:
            store = None if self._formulas_db is None else FormulaStore.open(self._formulas_db)
            self._visual_ids = {}
            for post in (post for post in self.post_files.every_post() if isinstance(post, Post)):
                self._visual_ids |= visual_ids_of(extract(post).formulas, store)
        return self._visual_ids

    def threads(self, topic_sets: Sequence[TopicSet]) -> Threads:
        """Return the answers with their questions, and the questions that are topics; the collection is read only once.

        Args:
            topic_sets: all topic sets of the jobs; used by the first call only.
        """
        if self._threads is None:
            with self.post_files.headers() as headers:
                posts = (post for post in headers.posts() if isinstance(post, Post))
                parents = {post.post_id: post.parent_id for post in posts if post.kind == "answer" and post.parent_id}
                topics = [topic for topic_set in topic_sets for topic in topic_set.topics]
                may_be_topics = topics_may_be_posts(self.corpus)
                self.own_questions = questions_of_topics(headers.with_marks(), topics) if may_be_topics else {}
            self._topic_questions = frozenset[str]().union(*self.own_questions.values())
            self._threads = Threads(parents, self.own_questions)
        return self._threads

    def known_threads(self) -> Threads:
        """Return the result of :meth:`threads`; raise RuntimeError if it was not called."""
        if self._threads is None:
            raise RuntimeError("known_threads() before threads(); call threads() in prepare() or encode()")
        return self._threads

    def joined_questions(self, settings: JobSettings, answers: Sequence[str]) -> Mapping[str, str]:
        """Return the question that forms one document with each answer; empty unless ``thread.read`` is ``both``.

        A question that is a topic is left out.
        """
        if thread_of(settings).read != "both":
            return {}
        question_of = self.known_threads().question_of(answers)
        return {answer: question for answer, question in question_of.items() if question not in self._topic_questions}

    # -- search outside the experiment ---------------------------------------------------------------------------

    @classmethod
    def check_kept(cls) -> None:
        """Raise ConfigError if the system lacks the method :meth:`keep` or :meth:`open_kept`."""
        for name in ("keep", "open_kept"):
            if getattr_static(cls, name) is getattr_static(System, name):
                raise cls._not_kept(name)

    @classmethod
    def _not_kept(cls, method: str) -> ConfigError:
        return ConfigError(
            f"track={cls.name} cannot be searched outside its experiment: it lacks the method {method}; index another "
            "condition"
        )

    def keep(self, job: FinishedSearch[Settings], folder: Path) -> Mapping[str, Any]:
        """Write the files that answer search needs to ``folder``; return a record for :meth:`open_kept`, as JSON.

        Raises:
            ConfigError: a system that cannot be kept.
        """
        raise self._not_kept("keep")

    @classmethod
    def open_kept(cls, kept: KeptSearch) -> Searchable:
        """Open the files that :meth:`keep` wrote.

        Raises:
            ConfigError: a system that cannot be kept.
            StoreError: files that are missing or damaged.
        """
        raise cls._not_kept("open_kept")

    # -- examples and analyses -----------------------------------------------------------------------------------

    def explain(self, settings: Settings, encoded: Encoded, topic: Topic, post_id: str) -> Explanation | None:
        """Return the similarities of the parts of a topic and of a post; None if one of them has no vectors."""
        return None

    def embedding_space(
        self, settings: Settings, encoded: Encoded, topic_set: TopicSet, select: SelectPosts
    ) -> EmbeddingSpace | None:
        """Return vectors of the topics and of some posts; None for a system without vectors.

        Args:
            select: function that receives the ids of all searched posts with vectors and returns those to use; a
                collection may be too large to use all.
        """
        return None

    def searchable(self, encoded: Encoded, post_ids: Sequence[str]) -> Sequence[str]:
        """Return the searched posts among ``post_ids``: those with a vector, or with a text if there are no vectors."""
        if (vectors := _encoded_posts(encoded)) is not None:
            return vectors.encoded(post_ids)
        if self._texts is None:
            return post_ids
        if not self._texts.is_file():  # no post is needed
            return []
        with PostTexts(self._texts) as texts:
            return texts.with_text(post_ids)

    @property
    def posts_db(self) -> Path:
        """Return the file with the texts of the searched posts; raise RuntimeError before :meth:`prepare`."""
        if self._texts is None:
            raise RuntimeError("posts_db before prepare(); call prepare()")
        return self._texts

    def readable(self, encoded: Encoded, post_ids: Sequence[str]) -> Sequence[str]:
        """Return the post ids of the topics that the system can search with."""
        vectors = _encoded_posts(encoded)
        return post_ids if vectors is None else vectors.encoded(post_ids)

    def tags(self, post_ids: Iterable[str]) -> Mapping[str, Sequence[str]]:
        """Return the tags of posts that have any; an answer has those of its question."""
        wanted = set(post_ids)
        outlines = (post for post in self.post_files.outlines() if isinstance(post, Post))
        parents = {post.post_id: post.parent_id for post in outlines if post.post_id in wanted and post.parent_id}
        with_parents = wanted.union(parents.values())
        outlines = (post for post in self.post_files.outlines() if isinstance(post, Post))  # again: all would not fit
        own = {post.post_id: post.tags for post in outlines if post.post_id in with_parents and post.tags}
        return {post: tags for post in wanted if (tags := own.get(post) or own.get(parents.get(post, "")))}

    def texts(self, post_ids: Sequence[str]) -> Mapping[str, PostText]:
        """Return the texts of posts for display."""
        if self._texts is None:
            return {}
        with PostTexts(self._texts) as texts:
            return texts.get(post_ids)


def _encoded_posts(encoded: Encoded) -> EncodedPosts | None:
    """Return the vectors of posts, if these are vectors of posts; without any, torch is not imported."""
    if encoded.vectors is None:
        return None
    from mathamr.stages.vectors import EncodedPosts

    return encoded.vectors if isinstance(encoded.vectors, EncodedPosts) else None
