"""A model that was never trained, saved as training would: for its own graphs, of a size that takes no time."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

import torch

from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.training import checkpoint
from tests.mathamr.tiny_collection import ENCODER


def save_model(path: Path, graphs: GraphStore, seed: int) -> Encoder:
    """Write the checkpoint ``path`` for ``graphs``; returns its encoder."""
    torch.manual_seed(seed)
    words = graphs.vocabulary
    info = checkpoint.CheckpointInfo(
        encoder=asdict(ENCODER),
        train={},
        vocabulary_hash=words.hash,
        config_hash=graphs.config_hash,
        num_labels=words.num_labels,
        num_relations=words.num_relations,
        code_version="test",
        seed=seed,
        step=1,
        epoch=1,
        best_step=1,
        best_val_loss=1.0,
        temperature=0.05,
    )
    encoder = Encoder(ENCODER, words.num_labels, words.num_relations)
    checkpoint.save(path, info, encoder.state_dict())
    return encoder
