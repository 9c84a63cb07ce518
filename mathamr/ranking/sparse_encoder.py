"""Learned sparse encoders, such as SPLADE: texts in, weights of the words of a vocabulary out.

    encode = open_sparse_encoder("models/splade-v3", max_length=256, device="cpu")
    encode(["Is $x^2+1$ irreducible?"], "query")      # (1, vocabulary): weights of "irreducible", "prime", ...

Any SparseEncoder of sentence-transformers is one (Formal et al., SPLADE v2, 2021). Weights are read in float32; Python
code that comes with a model is not run.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from scipy import sparse

from graphs.errors import ConfigError
from mathamr.text.encoder import Side, without_bars

Encode = Callable[[Sequence[str], Side], sparse.csr_array]
"""Texts and their side -> weights (texts, vocabulary), float32."""


def open_sparse_encoder(
    name: str, *, max_length: int, device: str, batch_size: int = 32, most_words: int | None = None
) -> Encode:
    """Open a sparse encoder by its folder, or its name on the Hugging Face hub.

    Args:
        name: folder or name.
        max_length: tokens of a text; longer texts are cut.
        device: device that it computes on.
        batch_size: texts encoded at once.
        most_words: words of the vocabulary kept of each text, the heaviest; None: all.

    Raises:
        ConfigError: no such model.
    """
    import torch  # slow to import
    from sentence_transformers import SparseEncoder

    without_bars()
    try:
        model = SparseEncoder(name, device=device, model_kwargs={"dtype": torch.float32}, max_active_dims=most_words)
    except (OSError, ValueError, RuntimeError) as error:
        raise ConfigError(
            f"sparse.encoder={name} cannot be opened ({str(error).splitlines()[0]}); name the folder of a "
            "SparseEncoder of sentence-transformers"
        ) from error
    model.max_seq_length = min(max_length, model.max_seq_length or max_length)

    def encode(texts: Sequence[str], side: Side) -> sparse.csr_array:
        one_side = model.encode_query if side == "query" else model.encode_document
        found = one_side(list(texts), batch_size=batch_size, show_progress_bar=False).coalesce().cpu()
        rows, columns = found.indices().numpy()
        return sparse.csr_array((found.values().numpy().astype(np.float32), (rows, columns)), shape=tuple(found.shape))

    return encode
