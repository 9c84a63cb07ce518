"""Further collections to learn from: ``data.sources`` describes them, ``train.pairs`` and
``train.pretrain_pairs`` name those in use.

>>> from types import SimpleNamespace as Group
>>> from mathamr.stages.settings import SourceSettings
>>> data = Group(name="arqmath", sources={"math": SourceSettings("problems", "/data/math-train")})
>>> sources_of(Group(data=data, train=Group(pairs=["maths"], pretrain_pairs=None)))
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: train.pairs names maths: it is neither the collection arqmath nor of data.sources: math

They are learned from alone: what is searched, and judged, is the collection ``data.name``.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping
from pathlib import Path

from graphs.corpus.corpus import OFFICIAL, Corpus, open_corpus
from graphs.corpus.post import Pair
from graphs.corpus.sources import Source
from graphs.errors import ConfigError
from mathamr.stages.settings import DataSettings, PreparationSettings


def open_data(data: DataSettings) -> Corpus:
    """Open the collection that the group ``data`` names; errors as :func:`graphs.corpus.corpus.open_corpus`."""
    return open_corpus(
        data.name,
        data.root,
        judgments=data.judgments or OFFICIAL,
        split=data.split,
        dataset_id=data.id,
        relevant=data.relevant_grade,
    )


def sources_of(config: PreparationSettings) -> dict[str, Source]:
    """Return the sources that a job learns from, by name; nothing of them is read yet.

    Raises:
        ConfigError: a name that is unknown, that two collections have, or that cannot begin post ids; or
            a source that cannot be opened.
    """
    collection, described = config.data.name, config.data.sources
    for name in described:
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_.-]*", name):
            raise ConfigError(f"data.sources: {name!r} would begin post ids; use letters, digits and . _ - only")
        if name == collection:
            raise ConfigError(f"data.sources: {name} is the name of the collection itself; choose another one")
    by_name: dict[str, Source] = {}
    for key, names in (("pairs", config.train.pairs), ("pretrain_pairs", config.train.pretrain_pairs)):
        for name in names or ():
            if name == collection:
                continue
            if name not in described:
                known = ", ".join(described) or "no collection is described"
                among = f"it is neither the collection {collection} nor of data.sources: {known}"
                raise ConfigError(f"train.{key} names {name}: {among}")
            source = described[name]
            if source.most_pairs is not None and source.most_pairs < 1:
                raise ConfigError(f"data.sources.{name}.most_pairs={source.most_pairs} must be at least 1, or null")
            try:
                by_name[name] = Source(open_corpus(source.name, source.root), source.most_pairs)
            except ConfigError as error:
                raise ConfigError(f"data.sources.{name}: {error.message}") from error
    return by_name


def fingerprints(config: PreparationSettings) -> dict[str, str]:
    """Return the identity of each source that is trained on."""
    return {name: source.fingerprints().graphs for name, source in sources_of(config).items()}


def folder_of(source: Source, shared: Path) -> Path:
    """Return the folder for what experiments share of a source, beside ``shared``, that of the collection."""
    return shared.parent / f"{source.name}-{source.fingerprints().graphs[:12]}"


def post_id_of(source: str, post_id: str) -> str:
    """Return the id of a source's post beside the posts of others.

    >>> post_id_of("math", "train-1/solution")
    'math/train-1/solution'
    """
    return f"{source}/{post_id}"


def check_apart(own: Iterable[Pair], found: Mapping[str, Source]) -> None:
    """Raise ConfigError for sources with pairs of the searched collection, some of which are held out."""
    own = frozenset(own) if found else frozenset()  # a set of all pairs is large
    for name, source in found.items():
        if shared := [pair for pair in source.pairs() if pair in own]:
            raise ConfigError(
                f"data.sources.{name} has {len(shared)} pairs of the collection itself, {shared[0].question_id} with "
                f"{shared[0].answer_id} among them, and some of these are held out; use a source without them"
            )


def source_of(post_id: str, known: Container[str]) -> str:
    """Return which of the ``known`` sources a post is from; "" for the collection itself.

    >>> source_of("math/train-1/solution", {"math"}), source_of("154", {"math"}), source_of("a/7", {"math"})
    ('math', '', '')
    """
    name, slash, _ = post_id.partition("/")
    return name if slash and name in known else ""


def pairs_of(source: str, pairs: Iterable[Pair]) -> list[Pair]:
    """Return pairs of a source with the ids that its posts have beside others."""
    return [Pair(post_id_of(source, pair.question_id), post_id_of(source, pair.answer_id)) for pair in pairs]
