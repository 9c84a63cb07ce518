"""Training pairs of the sources that a job learns from, without those whose questions are topics.

pairs = SourcePairs(shared, preparation.sources, console)
pairs.topic_sets = topic_sets              # their topics are not learned from
pairs(settings)["math"].kept               # ids with the source's name before them: math/train-1
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from graphs.corpus.leaks import PairsApart
from graphs.corpus.sources import Source
from graphs.counts import counted
from graphs.errors import ConfigError
from mathamr.stages import sources
from mathamr.stages.console import Console
from mathamr.stages.data.post_files import PostFiles
from mathamr.stages.leak_control import without_topics
from mathamr.stages.settings import PreparationSettings
from mathamr.stages.topic_sets import TopicSet


class SourcePairs:
    """Pairs of each source, compared with the topics once a process.

    Attributes:
        topic_sets: topics that the jobs of this process are measured on, which are not learned from.
    """

    def __init__(
        self, shared: Path, sources_of: Callable[[PreparationSettings], Mapping[str, Source]], console: Console
    ) -> None:
        self._shared, self._sources_of, self._console = shared, sources_of, console
        self.topic_sets: Sequence[TopicSet] = ()
        self._pairs_apart: dict[str, PairsApart] = {}

    def __call__(self, config: PreparationSettings) -> dict[str, PairsApart]:
        """Return the pairs of each source that ``config`` learns from, and those left out.

        Raises:
            ConfigError: a source has questions with the ids of topics.
        """
        for name, source in self._sources_of(config).items():
            if name not in self._pairs_apart:
                self._pairs_apart[name] = self._apart(name, source)
        return {name: self._pairs_apart[name] for name in self._sources_of(config)}

    def _apart(self, name: str, source: Source) -> PairsApart:
        topics = [topic for topic_set in self.topic_sets for topic in topic_set.topics]
        ids = {topic_id for topic in topics for topic_id in (topic.topic_id, topic.post.post_id)}
        if held := [pair.question_id for pair in source.pairs() if pair.question_id in ids]:
            raise ConfigError(
                f"data.sources.{name} holds {len(held)} topics of the experiment, {held[0]} among them: a model would "
                "learn their answers; use a source without them"
            )
        files = PostFiles(source, sources.folder_of(source, self._shared), self._console)
        files.read(texts=True)  # all of them become graphs
        apart = without_topics(source.pairs(), files, self.topic_sets)
        some = f", e.g. {apart.left_out[0].question_id}" if apart.left_out else ""
        self._console.say(
            f"  source {name}: {counted(len(source.pairs()), 'pair')}; left out, because their questions are topics: "
            f"{len(apart.left_out):,}{some}"
        )
        return PairsApart(
            sources.pairs_of(name, apart.kept),
            sources.pairs_of(name, apart.left_out),
            [replace(leak, question_id=sources.post_id_of(name, leak.question_id)) for leak in apart.leaks],
        )
