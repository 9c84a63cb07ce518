"""Preparation and export of an encoder: its length, a second copy for documents, its folder with a card.

separate(encoder)                     # from now on queries and documents have separate encoders
limit_length(encoder, 128)            # longer texts are cut at 128 tokens
export(encoder, Path("model/best"))   # written atomically; open_encoder("model/best") opens it
"""

from __future__ import annotations

import copy
import hashlib
import os
import random
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from graphs.errors import ConfigError, TrainingError
from mathamr.text.config import TextConfig
from mathamr.text.encoder import CARD, FINE_TUNED, TextEncoder
from mathamr.training.distributed import Ranks, ranks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer


def transformers_of(encoder: TextEncoder) -> list[Transformer]:
    """Return the transformer of an encoder; two if queries and documents have separate ones."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    return [module for module in encoder.model.modules() if isinstance(module, Transformer)]


def check_length(encoder: TextEncoder, tokens: int, setting: str) -> None:
    """Raise ConfigError, which names the ``setting``, for more tokens than an encoder has positions."""
    for transformer in transformers_of(encoder):
        most = getattr(transformer.auto_model.config, "max_position_embeddings", tokens)
        if tokens > most:
            raise ConfigError(f"{setting}={tokens}, but {encoder.name} takes {most} tokens at most")


def limit_length(encoder: TextEncoder, tokens: int | None) -> None:
    """Cut texts at ``tokens`` tokens (None: at the encoder's own limit); errors as :func:`check_length`."""
    if tokens is None:
        return
    check_length(encoder, tokens, "text.max_length")
    encoder.model.max_seq_length = tokens


def separate(encoder: TextEncoder) -> None:
    """Make a separate encoder for queries, equal to that of documents before training."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router

    model = encoder.model
    if isinstance(model[0], Router):  # already separate
        return
    queries: list[Any] = list(copy.deepcopy(model).children())
    documents: list[Any] = list(model.children())
    router = Router.for_query_document(queries, documents)
    encoder.model = SentenceTransformer(modules=[router], device=str(model.device))


def fingerprint(encoder: TextEncoder) -> str:
    """Return a hash of the weights."""
    digest = hashlib.sha256()
    for name, weight in encoder.model.named_parameters():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def export(encoder: TextEncoder, folder: Path, *, linearize: bool, tokens: bool) -> None:
    """Write the encoder and its card to the new ``folder``, atomically.

    Args:
        linearize: formulas of a collection's posts are linearised for this encoder, as the card then says.
        tokens: the encoder was trained for late interaction, as the card then says.

    Raises:
        TrainingError: a folder that cannot be written.
    """
    writing = folder.with_name(f".{folder.name}.writing")
    try:
        shutil.rmtree(writing, ignore_errors=True)
        encoder.save(writing)
        write_card(encoder, writing, linearize=linearize, tokens=tokens)
        writing.rename(folder)
    except OSError as error:
        message = f"cannot be written ({error}); free space or choose another folder, then start again"
        raise TrainingError(message, path=folder) from error


@contextmanager
def world_of(model: SentenceTransformer) -> Iterator[Ranks]:
    """Return the ranks that train ``model``: on its device, or under ``torchrun`` one device for each rank."""
    name = str(model.device) if os.environ.get("WORLD_SIZE", "1") == "1" else model.device.type
    with ranks(name if name.startswith("cuda") else "cpu") as world:
        model.to(world.device)
        yield world


@contextmanager
def own_randomness(world: Ranks) -> Iterator[None]:
    """Restore the caller's random generators after the block."""
    python, arrays = random.getstate(), np.random.get_state()
    try:
        with torch.random.fork_rng(devices=[world.device] if world.device.type == "cuda" else []):
            yield
    finally:
        random.setstate(python)
        np.random.set_state(arrays)


@contextmanager
def prepared(encoder: TextEncoder, config: TextConfig) -> Iterator[None]:
    """Train additions of low rank to all linear layers (LoRA, Hu et al. 2021), merged in the end.

    The rank is ``config.lora``, and the factor is 2; 0 trains all weights. ``config.gradient_checkpointing``
    computes activations again in the backward pass instead of keeping them.

    Raises:
        ConfigError: the package peft is missing.
    """
    if config.lora and find_spec("peft") is None:
        raise ConfigError(
            f"text.lora={config.lora} needs the package peft: pip install 'mathamr-plus[lora]', or use text.lora=0"
        )
    transformers: list[Any] = list(transformers_of(encoder))
    weights = [weight for weight in encoder.model.parameters() if weight.requires_grad]
    if config.gradient_checkpointing:
        for transformer in transformers:
            transformer.model.activation_checkpointing_enable({"use_reentrant": False})
    if config.lora:
        from peft import LoraConfig, get_peft_model

        settings = LoraConfig(r=config.lora, lora_alpha=2 * config.lora, target_modules="all-linear")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # peft asks transformers for a deprecated attribute
            for transformer in transformers:
                transformer.model = get_peft_model(transformer.model, settings)
    try:
        yield
    finally:
        for transformer in transformers:
            if config.lora:
                transformer.model = transformer.model.merge_and_unload()
            if config.gradient_checkpointing:
                transformer.model.activation_checkpointing_disable()
        for weight in weights:  # frozen by peft
            weight.requires_grad_(True)


_LATE = (
    "It was trained for late interaction: MaxSim over the vectors of tokens, which "
    "`mathamr.text.encoder.open_encoder(FOLDER).encode_tokens` gives. This code gives one vector for each text:",
    "",
)


def write_card(encoder: TextEncoder, folder: Path, *, linearize: bool, tokens: bool = False) -> None:
    """Write the model card of an encoder to the folder that it was saved to.

    The library reads prompts, pooling, normalisation and the limit of tokens from the folder. It cannot read there how
    formulas are written and to which length vectors are cut, so the card has both as code. ``linearize`` and
    ``tokens`` are those of :func:`export`.
    """
    cut = encoder.dimension if encoder.dimension < encoder.whole_dimension else None
    formulas = (
        "Formulas are between dollars and linearised." if linearize else "Formulas are as in the pairs of training."
    )
    lines = (
        "---",
        "library_name: sentence-transformers",
        "pipeline_tag: sentence-similarity",
        "---",
        "",
        f"{FINE_TUNED}{Path(encoder.name).name}: {encoder.dimension} numbers, of unit length. "
        f"Texts are cut at {encoder.model.max_seq_length} tokens. {formulas} Prompts: {encoder.prompt('query')!r} "
        f"before queries, {encoder.prompt('document')!r} before documents; the code adds them.",
        "",
        *(_LATE if tokens else ()),
        "```python",
        _code(linearize=linearize, truncate_dim=cut),
        "```",
        "",
    )
    (folder / CARD).write_text("\n".join(lines), encoding="utf-8")


def _code(*, linearize: bool, truncate_dim: int | None) -> str:
    r"""Return the code that gives the vectors of this project with sentence-transformers alone.

    >>> print("\n".join(_code(linearize=True, truncate_dim=128).splitlines()[3:6]))
    encoder = SentenceTransformer(".", truncate_dim=128)  # the folder of this file
    queries = ["Is $x^2+1$ irreducible?"]
    vectors = encoder.encode_query([linearize_text(text) for text in queries], normalize_embeddings=True)
    """
    read = "[linearize_text(text) for text in {}]" if linearize else "{}"
    lines = (
        "from sentence_transformers import SentenceTransformer",
        *(("from mathamr.text.linearize import linearize_text",) if linearize else ()),
        "",
        f'encoder = SentenceTransformer(".", truncate_dim={truncate_dim})  # the folder of this file',
        'queries = ["Is $x^2+1$ irreducible?"]',
        f"vectors = encoder.encode_query({read.format('queries')}, normalize_embeddings=True)",
        'documents = ["Let $x^2+1=0$."]',
        f"others = encoder.encode_document({read.format('documents')}, normalize_embeddings=True)",
    )
    return "\n".join(lines)
