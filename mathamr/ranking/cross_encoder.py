"""Text cross-encoders: a model that reads a question and an answer together, and scores the two.

    score = open_cross_encoder("models/ms-marco-MiniLM-L6-v2", max_length=512, device="cpu")
    score("Is $x^2+1$ prime?", ["It is irreducible.", "No."])      # array of two scores

Any CrossEncoder of sentence-transformers with one output is one. Weights are read from safetensors alone, in float32.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from graphs.errors import ConfigError

Score = Callable[[str, Sequence[str]], NDArray[np.float64]]
"""A topic's text and the texts of answers -> a score for each answer."""


def open_cross_encoder(name: str, *, max_length: int, device: str) -> Score:
    """Open a cross-encoder by its folder, or its name on the Hugging Face hub.

    Args:
        name: folder or name.
        max_length: tokens of a pair; longer pairs are cut.
        device: device that it computes on.

    Raises:
        ConfigError: no such model, one without safetensors, or one with several outputs.
    """
    import torch  # slow to import
    from sentence_transformers import CrossEncoder

    try:
        options = {"use_safetensors": True, "dtype": torch.float32}  # whatever type the checkpoint has
        model = CrossEncoder(name, max_length=max_length, device=device, model_kwargs=options)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"rerank.encoder={name} cannot be opened ({str(error).splitlines()[0]}); name the folder of a "
            "CrossEncoder of sentence-transformers"
        ) from error
    if model.num_labels != 1:
        raise ConfigError(f"rerank.encoder={name} has {model.num_labels} outputs; one is needed, a score")

    def score(topic: str, answers: Sequence[str]) -> NDArray[np.float64]:
        pairs = [(topic, answer) for answer in answers]
        if not pairs:
            return np.zeros(0)
        found = model.predict(pairs, show_progress_bar=False)
        return np.asarray(found, dtype=np.float64)

    return score
