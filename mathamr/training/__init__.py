"""Training of an encoder on pairs of posts.

    from mathamr.training import TrainConfig, read_pairs, train

    result = train(TrainConfig(...), store, read_pairs("pairs.tsv"), encoder_config, out="model")

See :mod:`mathamr.training.graph.trainer`. Names are imported on first use, so that settings are read without torch.
"""

from typing import TYPE_CHECKING

from graphs.lazy_names import on_first_use

if TYPE_CHECKING:
    from mathamr.training.config import TrainConfig
    from mathamr.training.graph.trainer import train
    from mathamr.training.pairs import read_pairs

__all__ = ["TrainConfig", "read_pairs", "train"]

__getattr__ = on_first_use(
    __name__,
    {
        "TrainConfig": "mathamr.training.config",
        "read_pairs": "mathamr.training.pairs",
        "train": "mathamr.training.graph.trainer",
    },
)
