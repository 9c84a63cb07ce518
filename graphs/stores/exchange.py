"""A collection as a plain Penman file, to publish, to read with other tools, or to use without parsing a post.

    # ::collection {"finished": true, "graphs": 5194, "parser": "embedded 1 ...", "source": "40d1..."}

    # ::id 255
    # ::kind question
    # ::formula_map {"FORMULA_0": "2618"}
    # ::attachments {"FORMULA_0": "concept"}
    # ::reattached 0
    (d / diverge-01 :ARG1 (F0 / FORMULA_0 :opt (...) :slt (...)))

:func:`import_penman` reads the same, so that builds and experiments can go on with a collection that was published. Of
the lines, only ``# ::id`` and ``# ::formula_map`` must be there, and the graphs may be laid out in any way. Below a
formula's ``:opt`` or ``:slt`` the roles may have the names of another release (:mod:`graphs.formulas.roles`): these get
ours, others stay and are counted in the summary. An id that would not read back as it is, for it holds ``::`` or a
line's end, is written as a JSON string; JSON has ``:\\u003a`` for ``::``.
"""

from __future__ import annotations

import json
import math
import os
import re
import sqlite3
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

import penman

from graphs import database
from graphs.amr.penman_text import blocks, decode, encode
from graphs.errors import Failure, MathAMRError, StoreError
from graphs.formulas.roles import tree_kind, tree_role
from graphs.graph import mathamr_plus
from graphs.graph.mathamr_plus import DocumentGraph, NodeKind
from graphs.graph.membership import TREE_KINDS
from graphs.stores.collection import (
    IMPORTED,
    BuildSummary,
    Collection,
    StoredGraph,
    insert_failures,
    insert_graphs,
    summarize,
    writer,
)
from graphs.stores.origin import TOPICS, continue_only
from graphs.whole_file import whole_file

_COMMIT_EVERY = 1000  # graphs
_HEADER = "# ::collection "
_IDENTITY = ("source", "parser", "trees", "shard", TOPICS)  # of the meta table, in the header


def export_penman(collection: Collection, path: str | os.PathLike[str]) -> int:
    """Write the collection as a plain Penman file, which appears when complete; returns the number of graphs."""
    path = Path(path)
    count = 0
    meta = collection.meta
    header = {key: value for key, value in meta.items() if key in _IDENTITY}
    header |= {"finished": bool(meta.get("finished")), "graphs": len(collection)}
    with whole_file(path) as partial, partial.open("w", encoding="utf-8") as file:
        file.write(f"{_HEADER}{json.dumps(header, sort_keys=True)}\n\n")
        for graph in collection:
            lines = {
                "id": _word(graph.post_id),
                "kind": _word(graph.kind),
                "formula_map": _json(graph.formula_map),
                "attachments": _json(graph.attachments),
                "reattached": graph.reattached,
            }
            file.writelines(f"# ::{key} {value}\n" for key, value in lines.items())
            file.write(f"{graph.penman}\n\n")
            count += 1
    return count


def import_penman(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> BuildSummary:
    """Make the collection ``path`` from a Penman file.

    A graph that does not decode becomes a record of a failure, with its line in the file; so does a graph whose id an
    earlier one has. Importing again replaces all graphs and failures. The collection is ``finished`` after the last,
    unless the exported one was not. The summary counts the roles in formula trees that got our names, and those that
    are unknown.
    Raises :class:`StoreError` where there is no such file, it lacks its end, ``path`` was made from something else, or
    a build has added to it.
    """
    source = Path(source)
    if not source.is_file():
        raise StoreError("no such file; an import reads what export wrote", path=source)
    roles = _Roles()
    header = _header(source)
    count = 0
    with writer(path) as connection, source.open(encoding="utf-8", errors="replace") as lines:
        if database.read_meta(connection).get(IMPORTED):  # it is replaced, with its topics
            connection.execute("DELETE FROM meta WHERE key = ?", (TOPICS,))
        identity = {key: str(header[key]) for key in _IDENTITY if key in header}
        continue_only(connection, path, {"source": f"import {source.name}"} | identity)
        _start_anew(connection, path)
        for count, block in enumerate(blocks(lines), 1):
            place = post_id = f"{source.name}:{block.line}"
            kind = "decode"
            try:
                post_id = _text(block.metadata.get("id", place))
                if connection.execute(_HAS_ID, (post_id, post_id)).fetchone():
                    message = f"an earlier graph has the id {post_id}; the first counts"
                    post_id, kind = place, "duplicate_id"
                    raise StoreError(message)
                if not block.text:
                    raise StoreError("no graph follows this id")
                graph = _read(post_id, block.metadata, block.text, roles)
            except (MathAMRError, ValueError, AttributeError, RecursionError) as error:
                insert_failures(connection, [Failure(post_id, "import", kind, f"{source}:{block.line}: {error}")])
            else:
                insert_graphs(connection, [graph])
            if count % _COMMIT_EVERY == 0:
                connection.commit()
            if progress is not None:
                progress(1)
        exported = header.get("graphs", 0)
        if isinstance(exported, int) and count < exported:
            connection.commit()
            message = f"its first line says {exported} graphs, and {count} are here; the file is cut: get it again"
            raise StoreError(message, path=source)
        database.write_meta(connection, finished=bool(header.get("finished", True)))
        connection.commit()
    return replace(summarize(path), renamed_roles=roles.renamed, unknown_roles=dict(roles.unknown))


_HAS_ID = "SELECT 1 FROM graph WHERE post_id = ? UNION ALL SELECT 1 FROM failure WHERE post_id = ?"


def _start_anew(connection: sqlite3.Connection, path: str | os.PathLike[str]) -> None:
    """Delete what an earlier import has written; refuse a file with graphs of a build."""
    if not database.read_meta(connection).get(IMPORTED) and connection.execute("SELECT 1 FROM graph").fetchone():
        raise StoreError(
            "has graphs that no import has made, or one of an earlier version, and would lose them; use another file",
            path=path,
        )
    connection.execute("DELETE FROM graph")
    connection.execute("DELETE FROM failure")
    database.write_meta(connection, **{IMPORTED: True, "finished": False})
    connection.commit()


@dataclass(slots=True)
class _Roles:
    """Brings the roles of formula trees to our names, and counts those that it does not know."""

    renamed: int = 0
    unknown: Counter[tuple[str, str]] = field(default_factory=Counter)

    def ours(self, graph: penman.Graph, document: DocumentGraph) -> penman.Graph:
        """Return the graph with our names, from the same graph as arrays."""
        if not document.formula_nodes:
            return graph
        triples, kinds = list(graph.triples), document.kinds
        places = (i for i, triple in enumerate(triples) if triple[1] != ":instance")
        before = self.renamed
        for place, (source, role, target) in zip(places, document.edges, strict=True):
            kind, here = TREE_KINDS.get(kinds[target]), kinds[source]
            if kind is None:
                continue
            if here is NodeKind.FORMULA:
                tree = tree_kind(role)
                if tree is None:
                    continue  # the formula's node mentions a node of a tree by a role of AMR
                known: str | None = f":{tree}"
            elif here is kinds[target]:
                known = tree_role(role, kind)
            else:
                continue
            if known is None:
                named = (kind, role)
                if named not in self.unknown and len(self.unknown) >= _UNKNOWN_ROLES:
                    named = (kind, _OTHERS)
                self.unknown[named] += 1
            elif known != role:
                self.renamed += 1
                triples[place] = (triples[place][0], known, triples[place][2])
        return graph if self.renamed == before else penman.Graph(triples, top=graph.top)


_UNKNOWN_ROLES = 1000  # different ones that are counted apart, so that memory stays flat whatever a file holds
_OTHERS = "others"


def _header(source: Path) -> dict[str, object]:
    """Return the description of the exported collection in the file's first line."""
    with source.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    if not first.startswith(_HEADER):
        return {}
    try:
        return dict(json.loads(first.removeprefix(_HEADER)))
    except (ValueError, TypeError) as error:
        message = f"{first[:80]!r}: '# ::collection' is followed by a JSON object ({error})"
        raise StoreError(message, path=source, line=1) from error


def _word(text: str) -> str:
    """Return a value of a metadata line: bare if it reads back as the same, else as a JSON string."""
    if text and text.isprintable() and text == text.strip() and "::" not in text and not text.startswith('"'):
        return text
    return _json(text)


def _json(value: object) -> str:
    """Return JSON without ``::``, which would begin the next key of a metadata line."""
    return json.dumps(value).replace("::", r":\u003a")


def _text(word: str) -> str:
    """Read what :func:`_word` wrote; ``ValueError`` for what no database can hold."""
    if word.startswith('"') and word.endswith('"') and len(word) > 1:
        word = str(json.loads(word))
    word.encode()
    return word


def _read(post_id: str, metadata: dict[str, str], text: str, roles: _Roles) -> StoredGraph:
    """Return one graph of the file.

    Raises MathAMRError, ``ValueError``, ``AttributeError`` or ``RecursionError`` where it or its JSON is not what it
    should be.
    """
    formula_map = {str(key): str(value) for key, value in json.loads(metadata.get("formula_map", "{}")).items()}
    formula_map = dict(sorted(formula_map.items(), key=lambda item: _number(item[0])))
    attachments = {str(key): str(value) for key, value in json.loads(metadata.get("attachments", "{}")).items()}
    graph = decode(text)
    graph = roles.ours(graph, mathamr_plus.as_document(graph, formula_map))
    penman_text = encode(graph)  # one line
    reattached = int(metadata.get("reattached", "0"))
    if not 0 <= reattached <= len(penman_text):
        raise ValueError(f"reattached is {reattached}; it counts parts of the graph")
    return StoredGraph(
        post_id, _text(metadata.get("kind", "answer")), penman_text, formula_map, attachments, reattached
    )


_LAST_NUMBER = re.compile(r"([0-9]{1,9})$")


def _number(placeholder: str) -> float:
    """Return the number of a placeholder; names without one come last, in their order."""
    match = _LAST_NUMBER.search(placeholder)
    return math.inf if match is None else int(match[1])
