"""Text encoder kept for search: how a query is written and encoded, as posts were.

record = keep_encoder(settings, "ab12-256", Path("model/best"), "fp32", "query", Path("index/text"))
encode_query(record, Path("index/text"), "cpu")(Post("query", "topic", body="Is $x$ odd?"))            # VectorSets

A trained encoder is copied. One that is taken as it is stays where it is; another one under its name is refused.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import torch

from graphs.corpus.post import Post
from graphs.corpus.text.latex_text import as_text
from graphs.corpus.text.placeholders import extract
from graphs.errors import StoreError
from mathamr.maxsim import VectorSets
from mathamr.model.encoding import device_of
from mathamr.systems.searchable.kept import entry
from mathamr.systems.searchable.vectors import EncodeQuery
from mathamr.systems.settings.trained import TextSettings
from mathamr.text.encoder import Opening, Side, open_encoder
from mathamr.text.linearize import linearized
from mathamr.text.training.adapting import fingerprint, limit_length
from mathamr.text.training.encoder_files import check_files
from mathamr.training.distributed import arithmetic

_ENCODER = "encoder"


def keep_encoder(
    settings: TextSettings, identity: str, own: Path | None, precision: str, side: Side, folder: Path
) -> dict[str, Any]:
    """Keep the encoder of a job; return the record that :func:`encode_query` reads.

    Args:
        identity: of the encoder, as its vectors are kept under.
        own: folder of an encoder that is copied; None: the one that ``text.encoder`` names.
        precision: arithmetic of encoding.
        side: side of the encoder that queries have.
    """
    if own is not None:
        shutil.copytree(own, folder / _ENCODER)
    return {
        "encoder": None if own is not None else settings.text.encoder,
        "identity": identity,
        "trained": settings.is_trained,
        "opening": asdict(replace(settings.text.opening, trust_remote_code=False)),
        "max_length": settings.text.max_length,
        "linearize": settings.text.linearize,
        "tokens": settings.text.late_interaction,
        "precision": precision,
        "side": side,
    }


def encode_query(record: Mapping[str, Any], folder: Path, device: str) -> EncodeQuery:
    """Open the encoder of a record; return the function that encodes a query.

    Raises:
        ConfigError: there is no such encoder any more.
        StoreError: it has other weights than the one that made the vectors.
        TrainingError: files of a trained encoder are damaged.
    """
    name = entry(record, "encoder")
    own = folder / _ENCODER
    if name is None and entry(record, "trained"):
        check_files(own)
    place = torch.device(device_of(device))
    opening = replace(Opening(**entry(record, "opening")), trust_remote_code=False)  # an index may come from anywhere
    encoder = open_encoder(name or str(own), device=str(place), opening=opening)
    limit_length(encoder, entry(record, "max_length"))
    identity = str(entry(record, "identity"))
    if (found := fingerprint(encoder)) != identity.split("-")[0]:
        raise StoreError(
            f"the encoder {encoder.name} has the weights {found}, and the vectors were made with {identity}; give that "
            "encoder back its name, or build the index again",
            path=folder,
        )
    linear, tokens, precision = (entry(record, key) for key in ("linearize", "tokens", "precision"))
    side: Side = entry(record, "side")

    def encode(post: Post) -> VectorSets | None:
        read = extract(post)
        text = as_text(linearized(read) if linear else read)
        if not text.strip():
            return None
        with arithmetic(precision, place):
            if tokens:
                return encoder.encode_tokens([text], side)
            return VectorSets.of([torch.from_numpy(encoder.encode([text], side))])

    return encode
