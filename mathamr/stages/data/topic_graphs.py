"""Graphs of topics in an existing collection: they are used only for the topics that they were made from.

    missing = topics.keys() - copy_topics(given, path, topics, corpus, parser_of(config), console)

A collection records a hash of its topics' files (:mod:`graphs.stores.origin`). Imports and collections of an earlier
version have none; their topics are parsed again if their parser is here, and used with a message if it is not.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from graphs.corpus.corpus import Documents
from graphs.errors import MathAMRError
from graphs.graph.graph_maker import GraphMaker
from graphs.stores import collection
from graphs.stores.collection import Collection
from graphs.stores.origin import TOPICS
from mathamr.stages import parsers
from mathamr.stages.console import Console


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
