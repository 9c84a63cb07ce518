"""Settings of a job as dataclasses: those that all systems read, and those that several systems share.

A system declares its own settings as a subclass, with a field for each of its groups:

>>> @dataclass(frozen=True, kw_only=True)
... class CountingSettings(SearchSettings):
...     graph: GraphConfig
>>> list(CountingSettings.groups())
['index', 'retrieval', 'thread', 'graph']

A group can be a dataclass of the library, such as ``TrainConfig``, so a setting is documented where it is used. Neither
torch nor OmegaConf is imported: :mod:`experiments.configuration` fills in the values from ``conf/``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, get_type_hints

from graphs.graph.connectivity import edge_identity
from graphs.graph.virtual_nodes import VirtualNodeSpec
from mathamr.evaluation.result_names import TestName
from mathamr.evaluation.runs import Task
from mathamr.training.config import TrainConfig

# -- what every job has ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class SourceSettings:
    """A further collection with training pairs.

    Attributes:
        name: kind of the collection, as ``data.name``.
        root: folder of the collection, if it has one.
        most_pairs: maximum number of pairs; the first ones are used. None: all.
    """

    name: str
    root: str | None = None
    most_pairs: int | None = None


@dataclass(frozen=True, kw_only=True)
class DataSettings:
    """Collection that :func:`graphs.corpus.corpus.open_corpus` opens, and the part of it that is used.

    Attributes:
        years: years of the topics.
        regime: what is indexed (:data:`mathamr.evaluation.metrics.Regime`).
        posts: posts to parse: needed or all (:mod:`mathamr.stages.needed`).
        collection: existing collection.db; None: made by the job.
        formulas: existing formulas.db; None: made by the job.
        graphs: existing preprocessed.db; None: made by the job.
        judgments: edition of the judgments: official or all.
        split: split of the judgments, for collections with several splits.
        id: name of a data set of ir_datasets.
        relevant_grade: lowest grade that counts as relevant; None: 2, or 1 if no grade is above 1.
        texts: file of texts to pretrain text encoders on, one a line; None: the texts of the posts.
        sources: further collections with training pairs, by names of your choice; used if ``train.pairs`` lists their
            names.
    """

    name: str
    root: str | None
    years: list[int]
    regime: str
    posts: str | None = None
    collection: str | None = None
    formulas: str | None = None
    graphs: str | None = None
    judgments: str
    split: str | None
    id: str | None
    relevant_grade: int | None
    texts: str | None = None
    sources: dict[str, SourceSettings] = field(default_factory=dict)


@dataclass(frozen=True)
class ExampleSettings:
    """Topic and post of every job's heat map; None: the first judged topic, and its best post."""

    topic: str | None = None
    post: str | None = None


@dataclass(frozen=True, kw_only=True)
class JobSettings:
    """Settings that every system reads, and their keys for the plan.

    A subclass adds a field for each group of its system. Systems that share a group name the same type. The
    dependencies of models and rankings are functions of settings, so planning needs no system.

    Attributes:
        track: name of the system.
        outputs: folder of all experiments.
        workers: number of processes that parse posts and make tensors.
        parsers: options of each AMR parser, by the parser's name.
        tasks: tasks of ARQMath or names of tests.
        example: topic and post of the heat map.
        conf: folder with the values of a package's groups, ``GROUP/default.yaml`` and further choices; None: the
            repository's ``conf/``.
        free: settings that do not change results, by group.
        learns_from_judgments: True if the rankings of the system depend on judgments.
    """

    track: str
    experiment: str
    outputs: Path
    seed: int
    workers: int
    data: DataSettings
    parsers: Mapping[str, Mapping[str, object] | None]
    tasks: Sequence[TestName]
    example: ExampleSettings

    conf: ClassVar[Path | None] = None
    free: ClassVar[Mapping[str, Sequence[str]]] = {}
    learns_from_judgments: ClassVar[bool] = False

    @classmethod
    @cache
    def groups(cls) -> Mapping[str, type]:
        """Return the types of the groups by name: the fields that a subclass adds or redefines."""
        shared, types = get_type_hints(JobSettings), get_type_hints(cls)
        return {one.name: types[one.name] for one in fields(cls) if types[one.name] != shared.get(one.name)}

    def key_settings(self, group: str) -> dict[str, Any]:
        """Return the settings of a group that results depend on."""
        values = asdict(getattr(self, group))
        return {name: value for name, value in values.items() if name not in self.free.get(group, ())}

    def model_key_parts(self) -> Mapping[str, Any] | None:
        """Return the dependencies of a model apart from the collection and ``needs``, as JSON; None without training.

        Raises:
            ConfigError: a file that it depends on is missing.
        """
        return None

    def result_key_parts(self) -> Mapping[str, Any]:
        """Return the dependencies of rankings apart from the model, the collection and the topics, as JSON.

        Raises:
            ConfigError: a file that they depend on is missing.
        """
        return {group: self.key_settings(group) for group in self.groups()}

    def needs(self) -> Sequence[str]:
        """Return the conditions whose rankings are read; their jobs with the same seed run first.

        Raises:
            ConfigError: these conditions cannot be used together.
        """
        return ()

    def check_needs(self, needed: Mapping[str, JobSettings]) -> None:
        """Check the settings of the conditions that :meth:`needs` names, and of those that these need.

        Args:
            needed: settings of all these conditions by name, of the same seed.

        Raises:
            ConfigError: the rankings of one of them cannot be used.
        """

    def check_tasks(self, tasks: Sequence[TestName]) -> None:
        """Check the settings that need neither posts nor topics.

        Args:
            tasks: tasks or tests that the collection has topics of.

        Raises:
            ConfigError: settings that cannot work.
        """

    def replacement(self, group: str, name: str) -> str | None:
        """Return the setting to use instead of one that has no effect, as ``text.epochs``; None: it may have one."""
        return None

    def cut_at(self, limit: int, task: Task) -> int:
        """Return the length from which a list of results may lack further ones; 0 for lists of every length.

        Args:
            limit: number of results that the search of a topic is asked for.
        """
        return limit


# -- groups that several systems share -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class GraphConfig:
    """Settings of graphs; ``parser`` as in :mod:`mathamr.stages.parsers`; ``structure``, ``connectivity``,
    ``formulas`` and ``thread`` as in ``VirtualNodeSpec``; ``number_threshold`` is the number of occurrences that a
    number needs to keep its own label, and a numbered relation past 9 to keep its id."""

    parser: str
    structure: str
    connectivity: str
    formulas: str
    vocabulary_size: int
    number_threshold: int
    thread: str = "none"

    def __post_init__(self) -> None:
        self.spec()  # raises ConfigError

    def spec(self) -> VirtualNodeSpec:
        """Return the virtual nodes and the formula mode; raise ConfigError for unknown or conflicting values."""
        return VirtualNodeSpec.of(vars(self))

    def key_parts(self) -> dict[str, Any]:
        """Return the settings that models depend on; later ones only if they are set, so that older keys stay valid."""
        changed = {one.name: value for one in fields(self) if (value := getattr(self, one.name)) != one.default}
        return changed | edge_identity(self.connectivity)

    def stored_parts(self) -> dict[str, Any]:
        """Return the settings that files of tensors depend on: virtual nodes are added to what is stored."""
        added = {one.name for one in fields(VirtualNodeSpec)} - {"formulas"} | edge_identity(self.connectivity).keys()
        return {name: value for name, value in self.key_parts().items() if name not in added}


@dataclass(frozen=True, kw_only=True)
class IndexConfig:
    """Storage of vectors: ``backend`` is exact, approximate or qdrant; qdrant's ``location`` is embedded or a URL.

    In Qdrant's HNSW graphs, ``m`` is the number of edges of a node in the graph of document vectors, ``m_all`` that in
    the graph of all vectors, which approximate MaxSim needs, and ``ef_construct`` is the number of candidates when a
    node is added. A server keeps a separate collection for each job. With ``keep``, the index stays in the job's
    folder; otherwise it is removed after the search.
    """

    backend: str
    location: str | None
    m: int | None = None
    m_all: int
    ef_construct: int | None = None
    keep: bool


@dataclass(frozen=True, kw_only=True)
class RetrievalConfig:
    """Search of an index, as in :class:`mathamr.retrieval.Strategy`, and the number of results for each topic."""

    strategy: str
    exact: bool
    pool: int
    ef: int
    k: int


@dataclass(frozen=True, kw_only=True)
class ThreadConfig:
    """Use of an answer's thread in its score (:mod:`mathamr.stages.retrieval.threads`).

    Attributes:
        read: posts that are compared with a topic: answer, question (the one that is answered), or both joined.
        depth: number of results per topic for conditions that learn from scores; None: as in the run file.
    """

    read: str = "answer"
    depth: int | None = None

    def key_parts(self) -> dict[str, Any]:
        """Return the settings that rankings depend on; empty for the default, so that older keys stay valid."""
        return {} if self == ThreadConfig() else {"thread": asdict(self)}

    def results(self, k: int) -> int:
        """Return the number of results that a search must find for a run of ``k``."""
        return max(k, self.depth or 0)


def thread_of(settings: JobSettings) -> ThreadConfig:
    """Return the group ``thread`` of a job; its default where the system does not have the group."""
    thread = getattr(settings, "thread", None)
    return thread if isinstance(thread, ThreadConfig) else ThreadConfig()


@dataclass(frozen=True, kw_only=True)
class SearchSettings(JobSettings):
    """Settings of jobs that search vectors."""

    index: IndexConfig
    retrieval: RetrievalConfig
    thread: ThreadConfig = field(default_factory=ThreadConfig)

    def cut_at(self, limit: int, task: Task) -> int:
        """Return the number of results that are compared exactly; 0 for an approximate search."""
        if not self.retrieval.exact:
            return 0
        pooled = task == 1 and self.retrieval.strategy == "doc_vn_maxsim"
        return min(limit, self.retrieval.pool) if pooled else limit


@dataclass(frozen=True, kw_only=True)
class ParsedSettings(JobSettings):
    """Settings of jobs that parse posts."""

    graph: GraphConfig


@dataclass(frozen=True, kw_only=True)
class PreparationSettings(ParsedSettings):
    """Settings of jobs that make tensors from the posts of a collection and of further sources."""

    train: TrainConfig
