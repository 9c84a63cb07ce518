"""A group of the configuration as a dataclass: what is refused, and what the message says."""

from __future__ import annotations

import pytest
from omegaconf import OmegaConf

from graphs.errors import ConfigError
from mathamr.stages.settings import settings
from mathamr.training.config import TrainConfig


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("single_vector", r"train\.single_vector is no setting; use train\.beta=0"),
        ("epocs", r"train\.epocs is no setting; did you mean train\.epochs\?"),
    ],
)
def test_a_key_without_a_setting_is_refused_with_the_one_to_use(key: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        settings(TrainConfig, OmegaConf.create({key: True}), "train")
