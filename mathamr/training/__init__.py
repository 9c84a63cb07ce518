"""Training an encoder on pairs of posts.

    from mathamr.training import TrainConfig, train

    result = train(TrainConfig(...), store, pairs, encoder_config, out="model")

See :mod:`mathamr.training.trainer`.
"""

from mathamr.training.config import TrainConfig
from mathamr.training.interruption import EXIT_INTERRUPTED, Interrupted
from mathamr.training.trainer import TrainResult, train

__all__ = ["EXIT_INTERRUPTED", "Interrupted", "TrainConfig", "TrainResult", "train"]
