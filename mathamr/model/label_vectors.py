"""Frozen vectors of the labels' words, from any text encoder, added to the learned label embedding.

A text encoder here is any function from texts to vectors, one for each. This one counts letters:

>>> import tempfile
>>> from graphs.graph.vocabulary import RESERVED_LABELS, RESERVED_RELATIONS
>>> vocabulary = Vocabulary([*RESERVED_LABELS, "solve-01", "V!x"], RESERVED_RELATIONS)
>>> vectors = of_labels(vocabulary, lambda texts: [[len(text), text.count("s")] for text in texts])
>>> vectors[8:].tolist(), vectors[:8].any().item()
([[5.0, 1.0], [1.0, 0.0]], False)
>>> folder = Path(tempfile.mkdtemp())
>>> found = write(folder, vectors, vocabulary)
>>> read(folder, found, vocabulary).equal(vectors)
True

The words are those of :mod:`mathamr.model.label_words`. If an experiment names a text encoder
(``model.label_vectors=minilm``), the graph track makes the file. For any other encoder, write the file into the folder
of preprocessed.db and train with ``model.label_vectors=HASH``. A model names the vectors by their hash, and a
checkpoint holds them, so neither depends on the place of a file.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.torch
import torch
from torch import Tensor, nn

from graphs import digests
from graphs.errors import ConfigError
from graphs.graph.vocabulary import Vocabulary
from graphs.whole_file import whole_file
from mathamr.model.label_words import words


def of_labels(
    vocabulary: Vocabulary, encode: Callable[[list[str]], npt.ArrayLike], forms: Mapping[str, str] | None = None
) -> Tensor:
    """Encode the words of all labels, float32 (num_labels, k); labels without words, such as the mask, get zeros.

    Args:
        encode: function from texts to their vectors (len(texts), k).
        forms: words of stemmed labels, as returned by :func:`mathamr.model.label_words.full_forms`.

    Raises:
        ConfigError: another shape, or a vector that is not finite.
    """
    of_label = [words(label, forms) for label in vocabulary.labels]
    texts = sorted({text for text in of_label if text})
    vectors = np.asarray(encode(texts), dtype=np.float32) if texts else np.zeros((0, 1), np.float32)
    if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
        raise ConfigError(
            f"the text encoder gave an array of shape {vectors.shape} for {len(texts)} texts, which must be "
            f"({len(texts)}, k) and finite"
        )
    place = {text: i for i, text in enumerate(texts)}
    of_all = np.zeros((len(of_label), vectors.shape[1]), dtype=np.float32)
    worded = [i for i, text in enumerate(of_label) if text]
    of_all[worded] = vectors[[place[of_label[i]] for i in worded]]
    return torch.from_numpy(of_all)


def hash_of(vectors: Tensor) -> str:
    """Return the hash of vectors (num_labels, k), of shape and float32 values: 16 hexadecimal digits."""
    array = np.ascontiguousarray(vectors.detach().cpu().float().numpy(), dtype="<f4")
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()[:16]


def is_hash(name: str) -> bool:
    """Return whether a name is a hash of vectors, not the name of a text encoder.

    >>> is_hash("0123456789abcdef"), is_hash("minilm")
    (True, False)
    """
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def path_of(folder: str | os.PathLike[str], wanted: str) -> Path:
    """Return the file of the vectors with the hash ``wanted``."""
    return Path(folder) / f"label_vectors-{wanted}.safetensors"


def source_of(vocabulary: Vocabulary, encoder: str, forms: Mapping[str, str] | None = None) -> str:
    """Return the hash of what vectors are made from: vocabulary, words of its labels, identity of the encoder."""
    content = [vocabulary.hash, encoder, [words(label, forms) for label in vocabulary.labels]]
    return digests.of_json(content)[:16]


def made_from(folder: str | os.PathLike[str], source: str) -> str | None:
    """Return the hash of the vectors in ``folder`` that were made from ``source``, or None."""
    for path in sorted(Path(folder).glob(path_of("", "*").name)):
        try:
            with safetensors.safe_open(path, "pt") as file:
                found = (file.metadata() or {}).get("source")
        except (OSError, safetensors.SafetensorError):
            continue
        if found == source:
            return path.stem.removeprefix(path_of("", "").stem)
    return None


def write(folder: str | os.PathLike[str], vectors: Tensor, vocabulary: Vocabulary, source: str = "") -> str:
    """Write vectors (num_labels, k) of a vocabulary to a file in ``folder``; return their hash.

    ``source`` is the hash of what they were made from, for :func:`made_from`.
    """
    found = hash_of(vectors)
    path = path_of(folder, found)
    tensors = {"vectors": vectors.detach().cpu().float().contiguous()}
    about = {"vocabulary": vocabulary.hash, "source": source}
    with whole_file(path) as partial:  # as bytes: safetensors' own files are readable by their owner only
        partial.write_bytes(safetensors.torch.save(tensors, metadata=about))
    return found


def read(folder: str | os.PathLike[str], wanted: str, vocabulary: Vocabulary) -> Tensor:
    """Read the vectors (num_labels, k) with the hash ``wanted``, if they belong to this vocabulary.

    Raises:
        ConfigError: a missing or damaged file, or another vocabulary.
    """
    path = path_of(folder, wanted)
    try:
        with safetensors.safe_open(path, "pt") as file:
            of_vocabulary, vectors = (file.metadata() or {}).get("vocabulary"), file.get_tensor("vectors")
    except (OSError, safetensors.SafetensorError) as error:
        raise ConfigError(
            f"model.label_vectors={wanted}: {path} is missing or damaged ({error}); make it with "
            "mathamr.model.label_vectors.write, or set model.label_vectors=null"
        ) from error
    if hash_of(vectors) != wanted:
        raise ConfigError(f"model.label_vectors={wanted}: {path} is damaged (its vectors have another hash); remove it")
    if of_vocabulary != vocabulary.hash:
        raise ConfigError(
            f"model.label_vectors={wanted}: {path} belongs to the vocabulary {of_vocabulary}, the graphs to "
            f"{vocabulary.hash}; make vectors for that vocabulary"
        )
    return vectors


class LabelText(nn.Module):
    """Frozen vectors of the labels' words, and a learned projection of them.

    The vectors are a buffer, so they are saved and loaded with the weights.

    Args:
        wanted: hash of the vectors; others are refused.

    Shapes:
        labels int64 (N,) -> (N, hidden_dim)
    """

    vectors: Tensor

    def __init__(self, wanted: str, num_labels: int, hidden_dim: int) -> None:
        super().__init__()
        self._wanted, self._hidden_dim = wanted, hidden_dim
        self.register_buffer("vectors", torch.empty(num_labels, 0))
        self.weight = nn.Parameter(torch.empty(0, hidden_dim))

    def take(self, vectors: Tensor) -> None:
        """Set the vectors (num_labels, k), and initialise the projection (k, hidden_dim) Xavier-uniform.

        Raises:
            ConfigError: another number or hash of vectors.
        """
        if vectors.ndim != 2 or len(vectors) != len(self.vectors) or hash_of(vectors) != self._wanted:
            raise ConfigError(
                f"label vectors of shape {tuple(vectors.shape)} and hash {hash_of(vectors)} are given, but "
                f"model.label_vectors={self._wanted} of {len(self.vectors)} labels is configured"
            )
        self.vectors = vectors.detach().to(self.weight.device, torch.float32).clone()
        self.weight = nn.Parameter(self.weight.new_empty(vectors.shape[1], self._hidden_dim))
        nn.init.xavier_uniform_(self.weight)

    def forward(self, labels: Tensor) -> Tensor:
        """Project each distinct label of a batch once."""
        if not self.vectors.shape[1]:
            raise ConfigError(
                f"model.label_vectors={self._wanted}, but the encoder has none yet; give it label_vectors, or load "
                "weights into it"
            )
        distinct, position = torch.unique(labels, return_inverse=True)
        return (self.vectors.index_select(0, distinct) @ self.weight).index_select(0, position)

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = state_dict.get(f"{prefix}vectors")
        if found is not None and not self.vectors.shape[1]:
            self.take(found)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def label_text_reference(text: LabelText, labels: Sequence[int]) -> Tensor:
    """Compute :class:`LabelText` one node at a time, as a reference."""
    return torch.stack([text.vectors[label] @ text.weight for label in labels])
