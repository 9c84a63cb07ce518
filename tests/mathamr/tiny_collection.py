"""A small collection: questions and answers that share a word and a formula, as a real preprocessed.db."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import torch

from graphs.graph.mathamr_plus import decode
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Row, Vocabulary, count
from graphs.stores import store as graph_store
from graphs.stores.store import GraphStore
from mathamr.maxsim import VectorSets
from mathamr.model.encoder import EncoderConfig
from mathamr.text.sentence_vectors import SentenceVectors, add
from mathamr.training.config import TrainConfig
from mathamr.training.graph.distillation import Teacher

ENCODER = EncoderConfig(
    hidden_dim=16,
    projection_dim=8,
    num_layers=2,
    num_bases=4,
    num_blocks=None,
    edge_vectors=True,
    vn_init="zero",
    vn_learned="embedding",
)

SETTINGS: dict[str, Any] = {
    "positives": "accepted",
    "least_score": 1,
    "max_pairs": None,
    "pairs": None,
    "pair_weights": None,
    "pretrain_pairs": None,
    "pretrain_epochs": 1,
    "batch_size": 8,
    "negatives": 0,
    "negative_source": "bm25",
    "negative_candidates": 100,
    "negative_pool": 100,
    "negative_closest": 0.95,
    "negative_refresh": 1,
    "accumulate": 1,
    "node_budget": 100_000,
    "edge_budget": 1_000_000,
    "epochs": 3,
    "learning_rate": 1e-2,
    "min_learning_rate": 1e-3,
    "weight_decay": 1e-3,
    "temperature": 0.05,
    "grad_clip": 1.0,
    "patience": 3,
    "validation_fraction": 0.25,
    "node_mask": 0.1,
    "edge_dropout": 0.1,
    "beta": 1.0,
    "symmetric": False,
    "normalize": True,
    "single_vector": False,
    "formula_weight": 0.0,
    "formula_view_weight": 0.0,
    "teacher": None,
    "distill_weight": 1.0,
    "distill_temperature": 0.05,
    "seed": 42,
    "device": "cpu",
    "precision": "fp32",
    "workers": 1,
    "checkpoint_every": 0,
}
QUESTIONS = 48


def settings(**changes: Any) -> TrainConfig:
    return TrainConfig(**{**SETTINGS, **changes})


def encoder_config(**changes: Any) -> EncoderConfig:
    return dataclasses.replace(ENCODER, **changes)


def rows() -> list[Row]:
    """Question ``qI`` and answer ``aI`` share a theme and a variable, not the other words; sizes differ."""
    rng = np.random.default_rng(0)
    found = []
    for i in range(QUESTIONS):
        for kind in "qa":
            words = [f"theme{i % 24}", *(f"word{word}" for word in rng.integers(30, size=rng.integers(2, 8)))]
            parts = [f":ARG{k} (w{k} / {word})" for k, word in enumerate(words)]
            formulas = []
            for k in range(int(rng.integers(1, 3))):
                trees = f":opt (F{k}o0 / O!SUP :opt-0 (F{k}o1 / V!v{i % 16})) :slt (F{k}s0 / V!v{i % 16})"
                formulas.append(f":mod (F{k} / FORMULA_{k} {trees})")
            text = f"(s / {'ask' if kind == 'q' else 'tell'}-01 {' '.join(parts + formulas)})"
            found.append((f"{kind}{i}", text, json.dumps({f"FORMULA_{k}": f"{i}" for k in range(len(formulas))})))
    return found


def make_store(path: Path, spec: VirtualNodeSpec | None = None, size: int = 500) -> GraphStore:
    spec = spec or VirtualNodeSpec()
    vocabulary = Vocabulary.build(count(rows(), decode), size=size)
    graph_store.build(path, rows(), decode, spec, vocabulary)
    return GraphStore(path)


def with_vectors(store: GraphStore, folder: Path, name: str = "letters", first: int = 0) -> GraphStore:
    """The graphs of ``store`` with vectors of a sentence each, which tells its theme; of one post there are two."""
    path = folder / f"{name}.db"
    posts = [(post_id, ["once", "twice"] if post_id == "a1" else [post_id]) for post_id in store.post_ids()]

    def themes(texts: list[str]) -> Any:
        numbers = [int("".join(filter(str.isdigit, text)) or 0) % 24 for text in texts]
        return torch.nn.functional.one_hot(torch.tensor(numbers) + first, 26).float().numpy()

    add(path, posts, themes, encoder=name, dimension=26)
    return GraphStore(store.path, sentence_vectors=SentenceVectors({"": path}, encoder=name))


def teacher_of(identity: str = "any") -> Teacher:
    """Holds posts for near that share a theme, and nothing else."""
    themes = torch.nn.functional.normalize(torch.randn(24, 24, generator=torch.Generator().manual_seed(0)))
    return Teacher(identity, lambda ids: VectorSets.of([themes[int(post_id[1:]) % 24][None] for post_id in ids]))
