"""Training an encoder on pairs of posts.

    from mathamr.training import TrainConfig, read_pairs, train

    result = train(TrainConfig(...), store, read_pairs("pairs.tsv"), encoder_config, out="model")

See :mod:`mathamr.training.graph.trainer`.
"""

from mathamr.training.config import TrainConfig
from mathamr.training.graph.trainer import TrainResult, train
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted
from mathamr.training.pairs import read_pairs

__all__ = ["EXIT_INTERRUPTED", "Interrupted", "TrainConfig", "TrainResult", "read_pairs", "train"]
