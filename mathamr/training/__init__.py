"""Training of an encoder on pairs of posts.

    from mathamr.training import TrainConfig, read_pairs, train

    result = train(TrainConfig(...), store, read_pairs("pairs.tsv"), encoder_config, out="model")

See :mod:`mathamr.training.graph.trainer`. Names are imported on first use, so that settings are read without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mathamr.training.config import TrainConfig
    from mathamr.training.graph.trainer import TrainResult, train
    from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted
    from mathamr.training.pairs import read_pairs

__all__ = ["EXIT_INTERRUPTED", "Interrupted", "TrainConfig", "TrainResult", "read_pairs", "train"]

_MODULES = {
    "EXIT_INTERRUPTED": "interruption",
    "Interrupted": "interruption",
    "TrainConfig": "config",
    "TrainResult": "graph.trainer",
    "read_pairs": "pairs",
    "train": "graph.trainer",
}


def __getattr__(name: str) -> object:
    """Import a name of ``__all__`` on its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_MODULES[name]}"), name)
