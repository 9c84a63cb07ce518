"""Training."""

from mathamr.training.config import TrainConfig as TrainConfig
