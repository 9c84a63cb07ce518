"""Checks before training: settings against the graphs, the machine and the given inputs.

Settings that contradict each other are refused by :class:`mathamr.training.config.TrainConfig`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import torch

from graphs.errors import ConfigError
from graphs.stores.store import GraphStore
from mathamr.model.encoder import Encoder
from mathamr.training.config import TrainConfig
from mathamr.training.graph.distillation import Teacher
from mathamr.training.graph.formula_pairs import VisualIds

NegativeSource = Callable[[Encoder], Mapping[str, Sequence[str]]]
"""Function from the encoder, which it may put into evaluation mode, to the negatives of each question; it is called
before every ``train.negative_refresh``-th epoch."""
Negatives = Mapping[str, Sequence[str]] | NegativeSource


def check(
    config: TrainConfig,
    store: GraphStore,
    negatives: Negatives | None,
    visual_ids: VisualIds | None,
    teacher: Teacher | None,
    resume: str,
) -> None:
    """Raise ConfigError for settings that contradict each other, graphs or inputs; arguments as in ``train``."""
    if resume not in ("auto", "never"):
        raise ConfigError(f"resume={resume} is not one of auto, never")
    if not config.negatives and negatives:
        raise ConfigError(
            "hard negatives are given, but train.negatives=0 draws none; set the number for each question"
        )
    if config.negatives and not negatives:
        raise ConfigError(
            f"train.negatives={config.negatives} hard negatives for each question, but none are given; "
            "mathamr build tensors writes a file of them, mathamr train needs none with "
            "train.negative_source=model, and mathamr.negatives.mining.negatives_of makes them"
        )
    if config.compares_formulas and not visual_ids:
        raise ConfigError(
            f"train.formula_weight={config.formula_weight} and train.formula_view_weight={config.formula_view_weight} "
            "compare formulas by their visual ids, which are missing; use weights of 0, or an experiment "
            "(experiments.run) on a collection that has them, such as arqmath"
        )
    if config.compares_formulas and store.spec.formulas == "none":
        raise ConfigError(
            "graphs without formulas (graph.formulas=none) cannot be compared by formula; use formula weights of 0"
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
    if store.spec.structure == "none" and config.beta < 1:
        raise ConfigError(
            f"graphs of structure 'none' have no document vector, but train.beta={config.beta} trains it; "
            "use graph.structure=full or global, or train.beta=1"
        )


def check_precision(config: TrainConfig, device: torch.device) -> None:
    """Raise ConfigError for bfloat16 on a GPU without bfloat16 arithmetic."""
    if config.precision == "bf16" and device.type == "cuda" and not torch.cuda.is_bf16_supported():
        name = torch.cuda.get_device_name(device)
        raise ConfigError(f"train.precision=bf16: {name} has no bfloat16 arithmetic; use train.precision=fp32")
