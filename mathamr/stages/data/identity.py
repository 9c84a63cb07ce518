"""Identity of collections: graphs are used only with the posts that they were made from.

    with Collection(Path("collection.db")) as graphs:
        check_same_posts(graphs, corpus)
    # StoreError: collection.db: made from the posts 40d1..., this collection is 9c3e...; give the --root that ...

Graphs that were imported from a Penman file name no posts that a hash could be compared with: there the ids have to do.
A collection also records a hash of its topics' files (:mod:`graphs.stores.origin`). Imports and collections of an
earlier version have none; their topics are parsed again if their parser is here, and used with a message if it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from graphs.corpus.corpus import Corpus, Documents
from graphs.counts import counted
from graphs.errors import MathAMRError, StoreError
from graphs.graph.graph_maker import GraphMaker
from graphs.stores import collection
from graphs.stores.collection import Collection
from graphs.stores.origin import TOPICS
from mathamr.stages import parsers
from mathamr.stages.console import Console

SHOWN = 12  # digits of a fingerprint in a message


def check_same_topics(graphs: Collection, corpus: Corpus) -> None:
    """Raise StoreError if a collection records that its topics are not those of ``corpus``."""
    if graphs.meta.get(TOPICS) not in (None, corpus.fingerprints().topics):
        raise StoreError(
            "its graphs of topics were made from other topics; build the graphs of the topics into another file",
            path=graphs.path,
        )


def refuse_shard(graphs: Collection) -> None:
    """Raise StoreError for a shard, which has only a part of the posts."""
    if (shard := str(graphs.meta.get("shard") or "1/1")) != "1/1":
        raise StoreError(
            f"this collection is shard {shard}; merge all shards with mathamr collection merge", path=graphs.path
        )


def check_whole(graphs: Collection, console: Console) -> None:
    """Raise StoreError for a shard, and warn of a collection whose build was stopped or limited."""
    refuse_shard(graphs)
    if not graphs.meta.get("finished"):
        console.say(
            f"warning: {graphs.path} is unfinished: {counted(len(graphs), 'post')}, which an experiment needed, or a "
            "build that was limited or stopped; mathamr build graphs completes such a build"
        )


def check_same_posts(graphs: Collection, corpus: Corpus) -> None:
    """Raise StoreError for a collection.db that was made from other posts than those of ``corpus``."""
    made_from = str(graphs.meta.get("source", ""))
    if not made_from.startswith("import ") and made_from != (posts := corpus.fingerprints().graphs):
        raise StoreError(
            f"made from the posts {made_from[:SHOWN] or 'of an unknown collection'}, this collection is "
            f"{posts[:SHOWN]}; give the --root that the graphs were made from, or build them again",
            path=graphs.path,
        )


def copy_topics(
    given: Path,
    path: Path,
    wanted: Iterable[str],
    corpus: Documents,
    parser: tuple[str, Mapping[str, object]],
    console: Console,
) -> frozenset[str]:
    """Copy graphs of topics into ``path``, unless they are of other topics than those of ``corpus``; return their ids.

    Args:
        given: collection that was made elsewhere.
        wanted: ids of topics.
        parser: parser of topics without a graph, with its options.
    """
    prints = corpus.fingerprints()
    with Collection(given) as graphs:
        known, made_by = graphs.meta.get(TOPICS), str(graphs.meta.get("parser", "unknown"))
        rows = [graphs.get(post_id) for post_id in frozenset(graphs.post_ids("topic")).intersection(wanted)]
    if not rows:
        return frozenset()
    if known is None:
        again = _is_at_hand(parser, made_by)
        what = "are parsed again" if again else f"are used as they are: graph.parser={parser[0]} is not {made_by!r}"
        console.say(f"  {given} does not record the texts of its topics: {len(rows):,} topics {what}")
    else:
        again = known != prints.topics
        if again:
            console.say(f"  {given} was made from other topics than those of data.root: {len(rows):,} are parsed again")
    if again:
        return frozenset()
    collection.add_graphs(path, rows, source=prints.graphs, parser=made_by)
    return frozenset(row.post_id for row in rows)


def _is_at_hand(parser: tuple[str, Mapping[str, object]], made_by: str) -> bool:
    """Return whether ``parser`` starts here, and has the name, version and model ``made_by``."""
    name, options = parser
    if made_by.partition(" ")[0] != name:
        return False
    try:
        return GraphMaker(parsers.factory(name, options)).parser_name == made_by
    except MathAMRError:
        return False


def say_unknown_topics(path: Path, console: Console) -> None:
    """Print that a collection, which an earlier version began, does not record the texts of its topics."""
    with Collection(path) as graphs:
        unknown = TOPICS not in graphs.meta and next(graphs.ids("topic"), None) is not None
    if unknown:
        console.say(
            f"  {path} has graphs of topics from an import or an earlier version, which does not record their texts; "
            "if they have changed since then, build the topics into another file"
        )
