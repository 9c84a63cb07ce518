"""Identity of tensors: hashes of the configuration that models read, and of a file.

>>> from graphs.graph.vocabulary import Counts
>>> vocabulary = Vocabulary.build(Counts(), size=8)
>>> trained_on = config_hash(VirtualNodeSpec("global"), vocabulary)
>>> spec_of_hash(trained_on, VirtualNodeSpec(), vocabulary).structure
'global'
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from graphs import digests
from graphs.errors import GraphError, OtherVersionError, StoreError
from graphs.graph.connectivity import edge_identity
from graphs.graph.virtual_nodes import FormulaMode, VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary

FILE_FORMAT = 2  # of the file: goes up when the stored form changes
_CONFIGURATION = 2  # goes up when other tensors are made of a graph, for the models that were trained on them


def config_hash(spec: VirtualNodeSpec, vocabulary: Vocabulary) -> str:
    """Identity of the tensors that models read: virtual nodes, formula mode, vocabulary."""
    content = {"format": _CONFIGURATION, "virtual_nodes": spec.content(), "vocabulary": vocabulary.hash}
    return digests.of_json(content | edge_identity(spec.connectivity))


def file_hash(formulas: FormulaMode, vocabulary: Vocabulary) -> str:
    """Identity of the tensors in a file: formula mode, vocabulary, format."""
    content = {"file_format": FILE_FORMAT, "formulas": formulas, "vocabulary": vocabulary.hash}
    return digests.of_json(content)


def spec_of_hash(config: str | None, default: VirtualNodeSpec, vocabulary: Vocabulary) -> VirtualNodeSpec:
    """Return the virtual nodes of a configuration hash; ``default`` without a hash, or without such virtual nodes."""
    if config is not None:
        for spec in default.every(formulas=default.formulas):
            if config_hash(spec, vocabulary) == config:
                return spec
    return default


def identity_of(meta: Mapping[str, Any], path: str | os.PathLike[str]) -> tuple[Vocabulary, VirtualNodeSpec, str]:
    """Return the vocabulary, the virtual nodes by default and the source in the ``meta`` table of a finished file.

    Raises:
        StoreError: the table is damaged, or its vocabulary is of another version.
    """
    try:
        vocabulary = Vocabulary.from_json(meta["vocabulary"])
        default = VirtualNodeSpec(**meta["virtual_nodes"])
        whole = meta["file_hash"] == file_hash(default.formulas, vocabulary)
        source: str = meta["source"]
    except OtherVersionError as error:
        raise StoreError(str(error), path=path) from error
    except (KeyError, TypeError, ValueError, GraphError) as error:
        message = f"damaged (its meta table: {error!r}); delete it and preprocess again"
        raise StoreError(message, path=path) from error
    if not whole:
        raise StoreError("damaged (its vocabulary); delete it and preprocess again", path=path)
    return vocabulary, default, source


def check_format(meta: Mapping[str, object], path: str | os.PathLike[str]) -> None:
    """Raise StoreError for a file of another format, by its ``meta`` table."""
    found = meta.get("format", 1 if "config_hash" in meta else FILE_FORMAT)
    if found != FILE_FORMAT:
        message = (
            f"tensors of format {found}, this version reads {FILE_FORMAT}; preprocess the collection into a new file"
        )
        raise StoreError(message, path=path)
