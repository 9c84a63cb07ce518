"""Models of sentence-transformers that rank: text cross-encoders, and learned sparse encoders such as SPLADE.

    score = open_cross_encoder("models/ms-marco-MiniLM-L6-v2", max_length=512, device="cpu")
    score("Is $x^2+1$ prime?", ["It is irreducible.", "No."])      # array of two scores
    encode = open_sparse_encoder("models/splade-v3", max_length=256, device="cpu")
    encode(["Is $x^2+1$ irreducible?"], "query")      # (1, vocabulary): weights of "irreducible", "prime", ...

A cross-encoder reads a question and an answer together, and has one output, their score; its weights are read from
safetensors alone. Any SparseEncoder is a sparse encoder (Formal et al., SPLADE v2, 2021). Weights are read in float32;
Python code that comes with a model is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from graphs.errors import ConfigError
from mathamr.text.encoder import Side, without_bars

Score = Callable[[str, Sequence[str]], NDArray[np.float64]]
"""A topic's text and the texts of answers -> a score for each answer."""
Encode = Callable[[Sequence[str], Side], sparse.csr_array]
"""Texts and their side -> weights (texts, vocabulary), float32."""


def open_cross_encoder(name: str, *, max_length: int, device: str) -> Score:
    """Open a cross-encoder by its folder, or its name on the Hugging Face hub.

    Args:
        max_length: tokens of a pair; longer pairs are cut.

    Raises:
        ConfigError: no such model, one without safetensors, or one with several outputs.
    """
    import torch  # slow to import
    from sentence_transformers import CrossEncoder

    options = {"use_safetensors": True, "dtype": torch.float32}  # whatever type the checkpoint has
    with _named(f"rerank.encoder={name}", "CrossEncoder"):
        model = CrossEncoder(name, max_length=max_length, device=device, model_kwargs=options)
    if model.num_labels != 1:
        raise ConfigError(f"rerank.encoder={name} has {model.num_labels} outputs; one is needed, a score")

    def score(topic: str, answers: Sequence[str]) -> NDArray[np.float64]:
        pairs = [(topic, answer) for answer in answers]
        if not pairs:
            return np.zeros(0)
        found = model.predict(pairs, show_progress_bar=False)
        return np.asarray(found, dtype=np.float64)

    return score


def open_sparse_encoder(
    name: str, *, max_length: int, device: str, batch_size: int = 32, most_words: int | None = None
) -> Encode:
    """Open a sparse encoder by its folder, or its name on the Hugging Face hub.

    Args:
        max_length: tokens of a text; longer texts are cut.
        most_words: words of the vocabulary kept of each text, the heaviest; None: all.

    Raises:
        ConfigError: no such model.
    """
    import torch  # slow to import
    from sentence_transformers import SparseEncoder

    without_bars()
    with _named(f"sparse.encoder={name}", "SparseEncoder"):
        model = SparseEncoder(name, device=device, model_kwargs={"dtype": torch.float32}, max_active_dims=most_words)
    model.max_seq_length = min(max_length, model.max_seq_length or max_length)

    def encode(texts: Sequence[str], side: Side) -> sparse.csr_array:
        one_side = model.encode_query if side == "query" else model.encode_document
        found = one_side(list(texts), batch_size=batch_size, show_progress_bar=False).coalesce().cpu()
        rows, columns = found.indices().numpy()
        return sparse.csr_array((found.values().numpy().astype(np.float32), (rows, columns)), shape=tuple(found.shape))

    return encode


@contextmanager
def _named(setting: str, kind: str) -> Iterator[None]:
    """Turn the errors of opening a model into one that names its setting and its kind."""
    try:
        yield
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"{setting} cannot be opened ({str(error).splitlines()[0]}); name the folder of a {kind} of "
            "sentence-transformers"
        ) from error
