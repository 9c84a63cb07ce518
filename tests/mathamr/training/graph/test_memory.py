"""Memory of a process that trains one model after the other: each is charged for its own memory."""

from __future__ import annotations

from pathlib import Path

from graphs.corpus.post import Pair
from mathamr.evaluation.efficiency import peak_memory, reset_peak_memory
from mathamr.training.graph.trainer import train
from tests.mathamr.tiny_collection import QUESTIONS, encoder_config, make_store, settings


def test_the_last_of_twenty_models_takes_what_the_first_has_taken(tmp_path: Path) -> None:
    store = make_store(tmp_path / "preprocessed.db")
    pairs = [Pair(f"q{i}", f"a{i}") for i in range(QUESTIONS)]
    encoder = encoder_config(hidden_dim=256, projection_dim=128)
    peaks = []
    for seed in range(21):
        reset_peak_memory()
        train(settings(seed=seed, epochs=1, batch_size=16), store, pairs, encoder, out=tmp_path / str(seed))
        peaks.append(peak_memory())
    assert max(peaks[1:]) < 1.1 * peaks[1]  # the very first also loads libraries
