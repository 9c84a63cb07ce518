"""Frozen vectors of the labels' words, from any text encoder, added to the learned label embedding.

A text encoder is here whatever gives a vector for each of some texts; this one counts letters:

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

The words are those of :mod:`mathamr.model.label_words`. Where an experiment names a text encoder
(``model.label_vectors=minilm``) the graph track makes the file; for any other encoder, write it into the folder of
preprocessed.db and train with ``model.label_vectors=HASH``. A model names the vectors by their hash and the weights of
a checkpoint hold them, so that neither depends on where a file lies.
"""

from __future__ import annotations

import hashlib
import json
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

from graphs.errors import ConfigError
from graphs.graph.vocabulary import Vocabulary
from graphs.whole_file import whole_file
from mathamr.model.label_words import words


def of_labels(
    vocabulary: Vocabulary, encode: Callable[[list[str]], npt.ArrayLike], forms: Mapping[str, str] | None = None
) -> Tensor:
    """Vectors of all labels, float32 (num_labels, k); zeros for labels without words, the mask among them.

    Args:
        encode: from texts to their vectors (len(texts), k).
        forms: words of labels that are stems, as of :func:`mathamr.model.label_words.full_forms`.

    Raises:
        ConfigError: when it gives anything else, or a vector that is not finite.
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
    """Identifies vectors (num_labels, k) by their shape and values as float32: 16 hexadecimal digits."""
    array = np.ascontiguousarray(vectors.detach().cpu().float().numpy(), dtype="<f4")
    return hashlib.sha256(repr(array.shape).encode() + array.tobytes()).hexdigest()[:16]


def is_hash(name: str) -> bool:
    """Whether a name is a hash of vectors, and not that of a text encoder.

    >>> is_hash("0123456789abcdef"), is_hash("minilm")
    (True, False)
    """
    return re.fullmatch("[0-9a-f]{16}", name) is not None


def path_of(folder: str | os.PathLike[str], wanted: str) -> Path:
    """The file of the vectors with the hash ``wanted``."""
    return Path(folder) / f"label_vectors-{wanted}.safetensors"


def source_of(vocabulary: Vocabulary, encoder: str, forms: Mapping[str, str] | None = None) -> str:
    """Identifies what vectors are made from: the vocabulary, the words of its labels, and the encoder's identity."""
    content = [vocabulary.hash, encoder, [words(label, forms) for label in vocabulary.labels]]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:16]


def made_from(folder: str | os.PathLike[str], source: str) -> str | None:
    """The hash of the vectors in ``folder`` that were made from ``source``; None where there are none."""
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
    """Keep vectors (num_labels, k) of a vocabulary in a file of ``folder``; returns their hash.

    Args:
        source: what they were made from, for :func:`made_from` to find them by.
    """
    found = hash_of(vectors)
    path = path_of(folder, found)
    tensors = {"vectors": vectors.detach().cpu().float().contiguous()}
    about = {"vocabulary": vocabulary.hash, "source": source}
    with whole_file(path) as partial:  # as bytes: a file of safetensors' own could be read by its owner alone
        partial.write_bytes(safetensors.torch.save(tensors, metadata=about))
    return found


def read(folder: str | os.PathLike[str], wanted: str, vocabulary: Vocabulary) -> Tensor:
    """The vectors (num_labels, k) with the hash ``wanted``, only if they are of this vocabulary.

    Raises:
        ConfigError: no such file, a damaged one, or one of another vocabulary.
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
    if of_vocabulary != vocabulary.hash:
        raise ConfigError(
            f"model.label_vectors={wanted}: {path} is of the vocabulary {of_vocabulary}, the graphs have "
            f"{vocabulary.hash}; make the vectors of this one"
        )
    return vectors


class LabelText(nn.Module):
    """The frozen vectors of the labels' words and the learned projection of them.

    The vectors are a buffer, so they are saved with the weights, and loading weights brings them.

    Args:
        wanted: hash of the vectors; no others are taken.

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
        """Take over vectors (num_labels, k), and begin the projection (k, hidden_dim) Xavier-uniform.

        Raises:
            ConfigError: when their number or hash is not the wanted one.
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
        """Each label of a batch is projected once, however many nodes have it."""
        if not self.vectors.shape[1]:
            raise ConfigError(
                f"model.label_vectors={self._wanted}, but the encoder has none yet; give it label_vectors, or load "
                "weights into it"
            )
        distinct, position = torch.unique(labels, return_inverse=True)
        projected: Tensor = (self.vectors.index_select(0, distinct) @ self.weight).index_select(0, position)
        return projected

    def _load_from_state_dict(self, state_dict: dict[str, Any], prefix: str, *rest: Any) -> None:
        found = state_dict.get(f"{prefix}vectors")
        if found is not None and not self.vectors.shape[1]:
            self.take(found)
        super()._load_from_state_dict(state_dict, prefix, *rest)


def label_text_reference(text: LabelText, labels: Sequence[int]) -> Tensor:
    """What :class:`LabelText` computes, a node at a time."""
    return torch.stack([text.vectors[label] @ text.weight for label in labels])
