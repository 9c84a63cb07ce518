"""What training does to an encoder before and after: its length, a second copy for documents, its folder.

separate(encoder)                     # queries and documents have an encoder each from here on
limit_length(encoder, 128)            # longer texts are cut at 128 tokens
export(encoder, Path("model/best"))   # a folder that appears whole; open_encoder("model/best") opens it
"""

from __future__ import annotations

import copy
import hashlib
import os
import shutil
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from graphs.errors import ConfigError, TrainingError
from mathamr.text.encoder import TextEncoder
from mathamr.training.distributed import Ranks, ranks

if TYPE_CHECKING:
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Transformer


def transformers_of(encoder: TextEncoder) -> list[Transformer]:
    """The transformer of an encoder; two where queries and documents have one each."""
    from sentence_transformers.sentence_transformer.modules import Transformer

    return [module for module in encoder.model.modules() if isinstance(module, Transformer)]


def check_length(encoder: TextEncoder, tokens: int, setting: str) -> None:
    """Refuse more tokens than an encoder has positions.

    Raises:
        ConfigError: names the ``setting``, and the most.
    """
    for transformer in transformers_of(encoder):
        most = getattr(transformer.auto_model.config, "max_position_embeddings", tokens)
        if tokens > most:
            raise ConfigError(f"{setting}={tokens}, but {encoder.name} takes {most} tokens at most")


def limit_length(encoder: TextEncoder, tokens: int | None) -> None:
    """Cut texts at so many tokens; None leaves the encoder's own limit.

    Raises:
        ConfigError: the encoder has fewer positions.
    """
    if tokens is None:
        return
    check_length(encoder, tokens, "text.max_length")
    for transformer in transformers_of(encoder):
        transformer.max_seq_length = tokens


def separate(encoder: TextEncoder) -> None:
    """Give queries an encoder of their own, equal to that of documents until they are trained."""
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Router

    model = encoder.model
    if isinstance(model[0], Router):  # it came so
        return
    queries: list[Any] = list(copy.deepcopy(model).children())
    documents: list[Any] = list(model.children())
    router = Router.for_query_document(queries, documents)
    encoder.model = SentenceTransformer(modules=[router], device=str(model.device))


def fingerprint(encoder: TextEncoder) -> str:
    """Identifies the weights."""
    digest = hashlib.sha256()
    for name, weight in encoder.model.named_parameters():
        digest.update(name.encode())
        digest.update(weight.detach().cpu().contiguous().view(torch.uint8).numpy().data)
    return digest.hexdigest()[:16]


def export(encoder: TextEncoder, folder: Path) -> None:
    """Write the encoder to ``folder``, which is not there yet and appears whole.

    Raises:
        TrainingError: it cannot be written.
    """
    writing = folder.with_name(f".{folder.name}.writing")
    try:
        shutil.rmtree(writing, ignore_errors=True)
        encoder.save(writing)
        writing.rename(folder)
    except OSError as error:
        message = f"cannot be written ({error}); free space or choose another folder, then start again"
        raise TrainingError(message, path=folder) from error


@contextmanager
def world_of(model: SentenceTransformer) -> Iterator[Ranks]:
    """The ranks that train ``model``: on the device where it is, or under ``torchrun`` each on its own."""
    name = str(model.device) if os.environ.get("WORLD_SIZE", "1") == "1" else model.device.type
    with ranks(name if name.startswith("cuda") else "cpu") as world:
        model.to(world.device)
        yield world


@contextmanager
def own_randomness(world: Ranks) -> Iterator[None]:
    """What is drawn in the block leaves the caller's generators as they were."""
    with torch.random.fork_rng(devices=[world.device] if world.device.type == "cuda" else []):
        yield


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Autocast to bfloat16 for ``bf16``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
