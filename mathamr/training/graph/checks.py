"""What training refuses before it begins: settings that contradict the graphs, the machine, or what is given with them.

Settings that contradict each other are refused by :class:`mathamr.training.config.TrainConfig` itself.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Protocol

import torch

from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.training.config import TrainConfig
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import VisualIds


class NegativeSource(Protocol):
    """Gives the negatives of each question under the encoder as it is before every ``every``-th epoch."""

    every: int

    def __call__(self, encoder: Encoder) -> Mapping[str, Sequence[str]]:
        """The encoder may be put into evaluation mode."""


Negatives = Mapping[str, Sequence[str]] | NegativeSource


def check(
    config: TrainConfig,
    store: GraphStore,
    negatives: Negatives | None,
    visual_ids: VisualIds | None,
    teacher: Teacher | None,
    resume: str,
) -> None:
    """Refuse what contradicts itself, the graphs or what is given beside them; arguments as of ``train``.

    Raises:
        ConfigError: with the way out.
    """
    if resume not in ("auto", "never"):
        raise ConfigError(f"resume={resume} is not one of auto, never")
    if not config.negatives and negatives:
        raise ConfigError(
            "hard negatives are given, but train.negatives=0 of them are drawn; say how many for a question"
        )
    if config.negatives and not negatives:
        raise ConfigError(
            f"train.negatives={config.negatives} hard negatives a question, but none are given; "
            "scripts/preprocess.py writes a file of them, scripts/train.py needs none with "
            "train.negative_source=model, and mathamr.negatives.mining.negatives_of makes them"
        )
    if config.compares_formulas and not visual_ids:
        raise ConfigError(
            f"train.formula_weight={config.formula_weight} and train.formula_view_weight={config.formula_view_weight} "
            "compare formulas by their visual ids, and there are none; use weights of 0, or an experiment "
            "(experiments.run) on a collection that has them, such as arqmath"
        )
    if config.compares_formulas and store.spec.formulas == "none":
        raise ConfigError(
            "graphs without formulas (graph.formulas=none) have none to compare; use formula weights of 0"
        )
    if config.formula_view_weight > 0 and store.spec.formulas != "both":
        raise ConfigError(
            f"train.formula_view_weight={config.formula_view_weight} compares two trees of a formula, but graphs of "
            f"graph.formulas={store.spec.formulas} have one; use graph.formulas=both"
        )
    if (teacher is None) != (config.teacher is None):
        raise ConfigError(
            f"train.teacher={config.teacher}, but the vectors of a teacher are {'not ' * (teacher is None)}given; "
            "use train.teacher=null, or an experiment (experiments.run), which makes them"
        )
    if store.spec.structure == "none" and config.maxsim_weight < 1:
        raise ConfigError(
            "graphs of structure 'none' have no document vector, but train.single_vector or train.beta < 1 trains it; "
            "use graph.structure=full or global, or train.beta=1 with train.single_vector=false"
        )


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Refuse bfloat16 on a GPU that does not compute in it.

    Raises:
        ConfigError: names the GPU.
    """
    if config.precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        name = torch.cuda.get_device_name(device)
        raise ConfigError(f"train.precision=bf16: {name} does not compute in bfloat16; use train.precision=fp32")
