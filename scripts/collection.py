"""Show, count, merge, export and import a collection of graphs.

    mathamr collection show   collection.db 255 --figure graph.svg
    mathamr collection stats  collection.db --workers 8
    mathamr collection failures collection.db
    mathamr collection merge  collection.db shard-*.db
    mathamr collection export collection.db collection.penman
    mathamr collection import collection.penman collection.db

``show`` draws the graph of one post as indented text, and with ``--figure`` as an SVG file. ``stats`` prints the counts
of the thesis's Table 4.2, with ``--json`` as one JSON object. ``failures`` lists the posts that failed, with stage,
kind and reason, as TSV. ``merge`` joins all shards of a collection, and refuses unfinished shards and shards of
different sources or parsers. ``export`` writes a Penman file for other programs (graphs/stores/exchange.py). ``import``
makes a collection from such a file, and lists unknown roles in formula trees. Exit code 2: an error, with a message.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from experiments.command import command
from experiments.options import parser_of
from graphs.counts import counted

if TYPE_CHECKING:
    from graphs.stores.collection import BuildSummary, Collection
    from mathamr.stages.console import Console

KINDS = ("question", "answer", "topic")


@command
def main(arguments: Sequence[str] | None = None) -> str:
    given = _parser().parse_args(arguments)

    from mathamr.stages.console import Console

    return given.run(given, Console())


def _parser() -> argparse.ArgumentParser:
    parser = parser_of(__doc__)
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    def add(name: str, run: Callable[..., str], phrase: str, *paths: str) -> argparse.ArgumentParser:
        one = commands.add_parser(name, help=phrase)
        one.set_defaults(run=run)
        for path in paths:
            one.add_argument(path, type=Path)
        return one

    show_ = add("show", show, "draw the graph of one post", "collection")
    show_.add_argument("post_id")
    show_.add_argument("--figure", type=Path, metavar="SVG", help="file for a drawing")
    stats_ = add("stats", stats, "count the contents of a collection", "collection")
    stats_.add_argument("--json", action="store_true", help="one JSON object")
    stats_.add_argument("--kinds", nargs="+", choices=KINDS, default=[], help="kinds of graphs to count; default: all")
    stats_.add_argument("--workers", type=int, default=1, help="number of counting processes")
    add("failures", failures, "list the posts that failed, as TSV", "collection")
    merge_ = add("merge", merge, "merge all shards of a collection", "out")
    merge_.add_argument("shards", type=Path, nargs="+")
    add("export", export, "write a collection as a Penman file", "collection", "out")
    add("import", import_file, "make a collection from a Penman file", "penman", "out")
    return parser


def failures(given: argparse.Namespace, console: Console) -> str:
    """Return every record of a failure as a line of a table."""
    from graphs.stores.collection import Collection
    from mathamr.stages.data.post_files import table_of

    with Collection(given.collection) as graphs:
        return table_of(graphs.failures()).rstrip("\n")


def show(given: argparse.Namespace, console: Console) -> str:
    """Return a graph as text; write its figure."""
    from graphs.graph import drawing
    from graphs.stores.collection import Collection

    with Collection(given.collection) as graphs:
        stored = graphs.get(given.post_id)
    graph = stored.decode()
    if given.figure is not None:
        given.figure.write_text(drawing.svg(graph, title=f"{stored.kind} {stored.post_id}"), encoding="utf-8")
    how = [f"{name} ({stored.formula_map[name]}): {kind}" for name, kind in stored.attachments.items()]
    lines = [
        f"{stored.kind} {stored.post_id}: {counted(len(graph.labels), 'node')}, {counted(len(graph.edges), 'edge')}, "
        f"{counted(len(graph.sentence_roots), 'sentence')}, {counted(len(graph.formula_ids), 'formula')}",
        *([f"attached by {', '.join(how)}"] if how else []),
        *([f"{counted(stored.reattached, 'part')} of the AMR reattached"] if stored.reattached else []),
    ]
    return "\n".join([*lines, "", drawing.indented(graph)])


def stats(given: argparse.Namespace, console: Console) -> str:
    """Return the counts as a table or as JSON."""
    from experiments.configuration.composition import graph_config
    from graphs.stores import census
    from mathamr.stages.data.formulas import check_workers
    from mathamr.stages.data.graphs import count

    check_workers(given.workers)
    found = count(given.collection, graph_config(), console, kinds=given.kinds, workers=given.workers)
    return found.to_json() if given.json else census.table(found)


def merge(given: argparse.Namespace, console: Console) -> str:
    """Merge shards."""
    from graphs.stores import shards

    with console.stage("merging", unit="graphs") as advance:
        summary = shards.merge(given.out, given.shards, progress=advance)
    return _summary(given.out, summary)


def export(given: argparse.Namespace, console: Console) -> str:
    """Write the Penman file."""
    from graphs.stores.collection import Collection
    from graphs.stores.exchange import export_penman

    with Collection(given.collection) as graphs:
        number = export_penman(graphs, given.out)
        return f"{given.out}: {counted(number, 'graph')}{_state(graphs)}"


def import_file(given: argparse.Namespace, console: Console) -> str:
    """Read the Penman file."""
    from graphs.stores.collection import Collection
    from graphs.stores.exchange import import_penman

    with console.stage("importing", unit="graphs") as advance:
        summary = import_penman(given.penman, given.out, progress=advance)
    with Collection(given.out) as graphs:
        lines = [_summary(given.out, summary) + _state(graphs)]
    if summary.renamed_roles:
        lines.append(f"{summary.renamed_roles:,} edges of formula trees had roles of another project and were renamed")
    if summary.unknown_roles:
        lines.append("unknown roles in formula trees, kept as they are:")
        ranked = sorted(summary.unknown_roles.items(), key=lambda item: (-item[1], item[0]))
        lines += [f"  below :{kind}  {role}  {number:,}" for (kind, role), number in ranked[:_ROLES_SHOWN]]
        if len(ranked) > _ROLES_SHOWN:
            lines.append(f"  and {len(ranked) - _ROLES_SHOWN:,} more")
    return "\n".join(lines)


_ROLES_SHOWN = 20


def _state(graphs: Collection) -> str:
    return "" if graphs.meta.get("finished") else "; the collection is unfinished"


def _summary(path: Path, summary: BuildSummary) -> str:
    return f"{path}: {counted(summary.graphs, 'graph')}, failures recorded: {sum(summary.failures.values()):,}"


if __name__ == "__main__":
    sys.exit(main())
