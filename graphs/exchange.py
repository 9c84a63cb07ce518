"""A collection as a plain Penman file, to publish, to read with other tools, or to use without parsing a post.

    # ::id 255
    # ::kind question
    # ::formula_map {"FORMULA_0": "2618"}
    # ::attachments {"FORMULA_0": "concept"}
    (d / diverge-01 :ARG1 (F0 / FORMULA_0 :opt (...) :slt (...)))

:func:`import_penman` reads the same; ``# ::attachments`` may be missing, and the graphs may be laid out in any way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from graphs import database, mathamr_plus
from graphs.amr.penman_text import blocks, decode, encode
from graphs.collection import (
    INSERT_GRAPH,
    PURPOSE,
    SCHEMA,
    BuildSummary,
    Collection,
    StoredGraph,
    continue_only,
    row_of,
    summarize,
)
from graphs.errors import MathAMRError

_COMMIT_EVERY = 1000  # graphs


def export_penman(collection: Collection, path: str | os.PathLike[str]) -> int:
    """Write the collection as a plain Penman file, which appears when complete; returns the number of graphs."""
    path = Path(path)
    partial = path.with_name(f"{path.name}.part")
    count = 0
    with partial.open("w", encoding="utf-8") as file:
        for graph in collection:
            file.write(
                f"# ::id {graph.post_id}\n# ::kind {graph.kind}\n# ::formula_map {json.dumps(graph.formula_map)}\n"
                f"# ::attachments {json.dumps(graph.attachments)}\n{graph.penman}\n\n"
            )
            count += 1
    partial.replace(path)
    return count


def import_penman(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> BuildSummary:
    """Make the collection ``path`` from a Penman file.

    A graph that does not decode becomes a record of a failure, with its line in the file. Importing again replaces.
    """
    source = Path(source)
    with database.writer(path, SCHEMA, purpose=PURPOSE) as connection, source.open(encoding="utf-8") as lines:
        continue_only(connection, path, {"source": f"import {source.name}"})
        connection.execute("DELETE FROM failure WHERE stage = 'import'")
        for count, block in enumerate(blocks(lines), 1):
            post_id = block.metadata.get("id", f"{source.name}:{block.line}")
            try:
                graph = _read(post_id, block.metadata, block.text)
            except (MathAMRError, ValueError, AttributeError) as error:
                message = f"{source}:{block.line}: {error}"
                connection.execute("INSERT INTO failure VALUES (?, 'import', 'decode', ?)", (post_id, message))
            else:
                connection.execute(INSERT_GRAPH, row_of(graph))
            if count % _COMMIT_EVERY == 0:
                connection.commit()
            if progress is not None:
                progress(1)
        connection.commit()
    return summarize(path)


def _read(post_id: str, metadata: dict[str, str], text: str) -> StoredGraph:
    """One graph of the file; ``ValueError`` or ``AttributeError`` where its JSON is not what it should be."""
    formula_map = {str(key): str(value) for key, value in json.loads(metadata.get("formula_map", "{}")).items()}
    attachments = {str(key): str(value) for key, value in json.loads(metadata.get("attachments", "{}")).items()}
    penman_text = encode(decode(text))  # one line
    mathamr_plus.decode(penman_text, formula_map)
    return StoredGraph(post_id, metadata.get("kind", "answer"), penman_text, formula_map, attachments)
