"""Learning parts: an encoder, the temperature of its loss, their optimizer, and one optimizer step.

learner = Learner(config, encoder_config, GraphStore("preprocessed.db"), world)
learner.step([batch], learning_rate=1e-4)    # {"loss": 3.46, "grad_norm": 0.8, "temperature": 0.05, ...}
learner.tensors()                            # {"temperature": ..., "optimizer.features.labels.weight.exp_avg": ...}
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from graphs.errors import TrainingError
from graphs.stores.store import GraphStore
from mathamr.model import label_vectors
from mathamr.model.config import EncoderConfig
from mathamr.model.encoder import Encoder
from mathamr.training.config import TrainConfig
from mathamr.training.distributed import Ranks
from mathamr.training.graph.loading import TrainingBatch
from mathamr.training.graph.step import backward
from mathamr.training.losses import Temperature
from mathamr.training.seeds import drawn_from

_TEMPERATURE = "temperature"


class Learner:
    """An encoder under training, for the graphs of ``store``; equal on all ranks.

    Weights are drawn from ``config.seed``; the caller's random generator is left unchanged.
    """

    def __init__(self, config: TrainConfig, encoder_config: EncoderConfig, store: GraphStore, world: Ranks) -> None:
        self._config, self._world = config, world
        name, sentences = encoder_config.label_vectors, store.sentence_vectors
        words = None if name is None else label_vectors.read(store.path.parent, name, store.vocabulary)
        dimension = None if sentences is None else sentences.dimension
        with drawn_from(config.seed):
            encoder = Encoder(
                encoder_config, store.num_labels, store.num_relations, label_vectors=words, sentence_dim=dimension
            )
        self.encoder = encoder.to(world.device)
        self.temperature = Temperature(config.temperature).to(world.device)
        world.broadcast([*self.encoder.state_dict().values(), *self.temperature.state_dict().values()])
        self._parameters = dict(self.encoder.named_parameters()) | {_TEMPERATURE: self.temperature.log}
        groups = [
            {"params": list(self.encoder.parameters()), "weight_decay": config.weight_decay},
            {"params": [self.temperature.log], "weight_decay": 0.0},
        ]
        self._optimizer = torch.optim.AdamW(groups, lr=config.learning_rate, fused=True)

    def step(self, batches: Sequence[TrainingBatch], learning_rate: float) -> dict[str, Any]:
        """Average the gradients of the batches, clip them, and update the parameters.

        Returns:
            ``loss``, its parts, the ``temperature`` used, and ``grad_norm`` before clipping.

        Raises:
            TrainingError: a loss or gradient that is not finite; the parameters are unchanged.
        """
        for group in self._optimizer.param_groups:
            group["lr"] = learning_rate
        self._optimizer.zero_grad()
        self.encoder.train()
        world = self._world
        results = [
            backward(self.encoder, self.temperature, batch.to(world.device), self._config, world, 1 / len(batches))
            for batch in batches
        ]
        world.sum_gradients(self.encoder.parameters(), self.temperature.parameters())
        norm = torch.nn.utils.clip_grad_norm_(list(self._parameters.values()), self._config.grad_clip)
        temperature, grad_norm = float(self.temperature().detach()), float(norm)
        if not torch.isfinite(norm):
            some = ", ".join(f"{pair.question_id}-{pair.answer_id}" for pair in batches[0].pairs[:4])
            raise TrainingError(
                f"the gradient is not finite: norm {grad_norm}, loss {float(results[0].total.detach()):.4g}, "
                f"temperature {temperature:.4g}, pairs {some} ...; "
                "start anew with a lower train.learning_rate or with train.precision=fp32"
            )
        self._optimizer.step()
        losses = [{"loss": result.total.detach(), **result.parts} for result in results]
        means = {name: float(torch.stack([loss[name] for loss in losses]).mean()) for name in losses[0]}
        return {**means, "temperature": temperature, "grad_norm": grad_norm}

    def check_finite(self) -> None:
        """Raise TrainingError for the first weights that are not finite, so that they reach no checkpoint."""
        for name, parameter in self._parameters.items():
            if not torch.isfinite(parameter).all():
                raise TrainingError(f"{name} is not finite; start anew with a lower train.learning_rate")
        if not torch.isfinite(self.temperature()):
            raise TrainingError(
                f"the temperature, exp({self.temperature.log.item()}), is out of range; start anew with a lower "
                "train.learning_rate"
            )

    def parameter_counts(self) -> dict[str, int]:
        """Return the number of parameters of each part of the model, and ``total``."""
        counts = {**self.encoder.parameters_by_group(), _TEMPERATURE: 1}
        total = counts.pop("total") + 1
        return {**counts, "total": total}

    def tensors(self) -> dict[str, Tensor]:
        """Return the state that resuming needs beside the weights: temperature, and moments of the optimizer."""
        moments = {
            f"optimizer.{name}.{key}": value
            for name, parameter in self._parameters.items()
            for key, value in self._optimizer.state.get(parameter, {}).items()
        }
        return {_TEMPERATURE: self.temperature.log, **moments}

    def restore(self, weights: Mapping[str, Tensor], tensors: Mapping[str, Tensor]) -> None:
        """Load the weights of an encoder, and the :meth:`tensors` that belong to them."""
        self.encoder.load_state_dict(weights)
        with torch.no_grad():
            self.temperature.log.copy_(tensors[_TEMPERATURE])
        state: dict[int, dict[str, Tensor]] = {}
        for number, name in enumerate(self._parameters):  # the optimizer numbers them in this order
            prefix = f"optimizer.{name}."
            own_tensors = {
                key.removeprefix(prefix): tensor for key, tensor in tensors.items() if key.startswith(prefix)
            }
            if own_tensors:
                state[number] = own_tensors
        self._optimizer.load_state_dict({"state": state, "param_groups": self._optimizer.state_dict()["param_groups"]})
