"""Identity of collections: graphs are used only with the posts that they were made from.

>>> refuse_other_posts("40d1", "40d1", "collection.db")
>>> refuse_other_posts("40d1", "9c3e", "collection.db")
Traceback (most recent call last):
    ...
graphs.errors.StoreError: collection.db: made from the posts 40d1, this collection is 9c3e; give the --root that ...

Graphs that were imported from a Penman file name no posts that a hash could be compared with: there the ids have to do.
"""

from __future__ import annotations

from os import PathLike

from graphs.corpus.corpus import Corpus
from graphs.counts import counted
from graphs.errors import StoreError
from graphs.stores.collection import Collection
from graphs.stores.origin import TOPICS
from mathamr.stages.console import Console

SHOWN = 12  # digits of a fingerprint in a message


def check_same_topics(graphs: Collection, corpus: Corpus) -> None:
    """Check that graphs of topics were made from the topics of ``corpus``, where the collection records it.

    Raises:
        StoreError: they were made from other topics, or from an earlier state of them.
    """
    if graphs.meta.get(TOPICS) not in (None, corpus.fingerprints().topics):
        raise StoreError(
            "its graphs of topics were made from other topics; build the graphs of the topics into another file",
            path=graphs.path,
        )


def refuse_shard(graphs: Collection) -> None:
    """Refuse a shard, which has only a part of the posts.

    Raises:
        StoreError: it is a shard.
    """
    if (shard := str(graphs.meta.get("shard") or "1/1")) != "1/1":
        raise StoreError(
            f"this collection is shard {shard}; merge all shards with mathamr collection merge", path=graphs.path
        )


def check_whole(graphs: Collection, console: Console) -> None:
    """Refuse a shard, and warn of a collection whose build was stopped or limited.

    Raises:
        StoreError: it is a shard.
    """
    refuse_shard(graphs)
    if not graphs.meta.get("finished"):
        console.say(
            f"warning: {graphs.path} is unfinished: {counted(len(graphs), 'post')}, which an experiment needed, or a "
            "build that was limited or stopped; mathamr build graphs completes such a build"
        )


def check_same_posts(graphs: Collection, corpus: Corpus) -> None:
    """Check that a collection.db was made from the posts of ``corpus``.

    Raises:
        StoreError: it was made from other posts, or from an earlier state of them.
    """
    source = str(graphs.meta.get("source", ""))
    if not source.startswith("import "):
        refuse_other_posts(source, corpus.fingerprints().graphs, graphs.path)


def refuse_other_posts(made_from: str, posts: str, path: str | PathLike[str]) -> None:
    """Refuse graphs whose fingerprint ``made_from`` differs from that of the posts at hand.

    Raises:
        StoreError: naming both.
    """
    if made_from != posts:
        raise StoreError(
            f"made from the posts {made_from[:SHOWN] or 'of an unknown collection'}, this collection is "
            f"{posts[:SHOWN]}; give the --root that the graphs were made from, or build them again",
            path=path,
        )
