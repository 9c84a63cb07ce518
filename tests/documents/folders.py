"""Files that the code blocks of a page find in their folder."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

from mathamr import MathAMR
from mathamr.default_settings import values
from mathamr.model.config import EncoderConfig
from mathamr.training.config import TrainConfig

SUBJECTS = ("ring", "group", "field", "series")


def model_and_posts(folder: Path) -> None:
    """Save the model ``folder-or-hub-id``, and a collection ``my_folder`` of twelve answered questions."""
    posts_and_topics(folder / "my_folder", 3)
    encoder = EncoderConfig(**{**values("model", "thesis"), "hidden_dim": 16, "num_layers": 1, "projection_dim": 8})
    changed = {"epochs": 1, "batch_size": 4, "validation_fraction": 0.25, "device": "cpu"}
    training = TrainConfig(**{**values("train", "laptop"), **changed})
    pairs = [(f"Is the {name} $x_{i}$ finite?", f"Each {name} is.") for i, name in enumerate(SUBJECTS * 3)]
    MathAMR.train(pairs, out=folder / "training", encoder=encoder, training=training).save_pretrained(
        folder / "folder-or-hub-id"
    )


def posts_and_topics(folder: Path, times: int) -> None:
    """Write a collection of four questions `times` times, with an answer each, two topics and their judgments."""
    posts: list[dict[str, str]] = []
    for i, name in enumerate(SUBJECTS * times):
        posts.append({"post_id": f"q{i}", "kind": "question", "body": f"Is the {name} $x_{i}$ finite?"})
        posts.append(
            {"post_id": f"a{i}", "kind": "answer", "parent_id": f"q{i}", "body": f"Each {name} is, by $y_{i}$."}
        )
    topics = [{"topic_id": name, "body": f"When is a {name} $z$ finite?"} for name in SUBJECTS[:2]]
    folder.mkdir(exist_ok=True)
    for file, rows in (("posts.jsonl", posts), ("topics.jsonl", topics)):
        (folder / file).write_text("".join(json.dumps(row) + "\n" for row in rows))
    (folder / "qrels.tsv").write_text("ring 0 a0 3\ngroup 0 a1 3\ngroup 0 a0 0\n")


def formulas(folder: Path) -> None:
    """Write ``formulas.tex``."""
    (folder / "formulas.tex").write_text("x^2+y\n\\frac{a}{b}\n")


FOLDERS: dict[str, Callable[[Path], None]] = {
    "README.md": model_and_posts,
    "docs/formulas.md": formulas,
}
"""Page -> function that fills its folder."""
