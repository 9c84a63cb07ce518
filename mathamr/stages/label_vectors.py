"""Vectors of the labels' words by a text encoder that a configuration names (``model.label_vectors=minilm``).

They are made once a vocabulary and encoder, beside preprocessed.db (:mod:`mathamr.model.label_vectors`), by one process
while others wait.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from graphs.graph.vocabulary import Counts
from graphs.shared_files import locked
from graphs.stores.store import GraphStore
from mathamr.model import label_vectors
from mathamr.model.label_words import full_forms
from mathamr.stages.console import Console
from mathamr.text.encoder import identity, open_encoder


class LabelText:
    """Hashes of label vectors by encoder and vocabulary; what is missing is made."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self._sound: set[str] = set()
        self._made: dict[tuple[str, Path], str] = {}

    def check(self, name: str) -> None:
        """Raise ConfigError where there is no such encoder, before anything runs."""
        if name not in self._sound:
            open_encoder(name, device="cpu")
            self._sound.add(name)

    def __call__(self, name: str, graphs: GraphStore, counts: Callable[[], Counts]) -> str:
        """Return the hash of the vectors for the vocabulary of ``graphs``, which names their folder.

        Args:
            name: of the encoder.
            counts: of the collection; they know what words the stemmed labels come from.
        """
        folder, key = graphs.path.parent, (name, graphs.path)
        if key not in self._made:
            with locked(folder / ".label_text.lock", wait=True):
                self._made[key] = self._make(name, graphs, full_forms(counts()))
        return self._made[key]

    def _make(self, name: str, graphs: GraphStore, forms: dict[str, str]) -> str:
        folder, vocabulary = graphs.path.parent, graphs.vocabulary
        source = label_vectors.source_of(vocabulary, identity(name), forms)
        found = label_vectors.made_from(folder, source)
        if found is None:
            encoder = open_encoder(name)
            with self._console.stage("label vectors", unit="texts") as advance:

                def encode(texts: list[str]) -> Any:
                    advance.expect(len(texts))
                    return encoder.encode(texts, "document", batch_size=128, progress=advance)

                vectors = label_vectors.of_labels(vocabulary, encode, forms)
            found = label_vectors.write(folder, vectors, vocabulary, source)
        return found
