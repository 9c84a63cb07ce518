"""Pairs, settings and an encoder small enough to train in a second."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import torch
from omegaconf import OmegaConf

from mathamr.text.config import TextConfig
from mathamr.text.encoder import TextEncoder, open_encoder
from mathamr.text.pairs import PairFile, TextPair, write_pairs

CONF = Path(__file__).resolve().parents[3] / "conf" / "text"
WORDS = [f"word{i}" for i in range(40)]


def settings(name: str = "tiny", **changes: Any) -> TextConfig:
    """The group ``text`` as in ``conf/text/NAME.yaml``, with changes; batches of 8, where not said otherwise."""
    values: dict[str, Any] = {}
    for file in (CONF / "minilm.yaml", CONF / f"{name}.yaml"):
        values |= OmegaConf.to_container(OmegaConf.load(file))  # type: ignore[operator]
    values.pop("defaults", None)
    small = {"batch_size": 8, "max_length": 16, "epochs": 2} if name == "tiny" else {}
    return TextConfig(**{**values, **small, **changes})


def pairs_of(count: int) -> list[TextPair]:
    """Queries that share two of three words with their document; threads of two, categories of three."""
    rng = random.Random(0)
    made = []
    for i in range(count):
        own = rng.sample(WORDS, 3)
        query, document = " ".join(own), " ".join([*own[:2], rng.choice(WORDS), "thus"])
        made.append(
            TextPair(f"{query} q{i}", f"{document} a{1000 - i}", f"q{i}", f"a{i}", f"g{i // 2}", (f"c{i % 3}",))
        )
    return made


def file_of(folder: Path, count: int = 60) -> PairFile:
    """Them in a file."""
    return write_pairs(folder / "pairs.jsonl", pairs_of(count))


def opened(folder: Path, dropout: float = 0.0) -> TextEncoder:
    """A fresh copy of the encoder in ``folder``, with some dropout."""
    encoder = open_encoder(str(folder), device="cpu")
    for module in encoder.model.modules():
        if isinstance(module, torch.nn.Dropout):
            module.p = dropout
    return encoder


def weights(encoder: TextEncoder) -> dict[str, torch.Tensor]:
    """Its weights by name, copied."""
    return {name: weight.detach().clone() for name, weight in encoder.model.named_parameters()}
