"""Processes that train one model on the vectors of a joined batch: ``torchrun`` with gloo or NCCL.

Two ranks encode the halves of a batch. :meth:`Ranks.gather` gives both all vectors, rank by rank. Each computes the
loss of the whole batch, so every question is compared with the answers of all ranks:

    rank 0 encodes sets 0, 1    joined: 0 1 | 2 3    gradient of the joined loss by its own vectors, 0 1
    rank 1 encodes sets 2, 3    joined: 0 1 | 2 3    ... by its own vectors, 2 3

Each rank takes that gradient through its own part of the encoder. The gradient of a parameter is the sum over ranks
(:meth:`Ranks.sum_gradients`), not the mean, since the parts belong to one loss. So loss and gradients equal those of a
single process, for any loss. A single process is a world of one rank, and the calls do nothing:

>>> from mathamr.maxsim import VectorSets
>>> with ranks("cpu") as world:
...     sets, own = world.gather(VectorSets.of([torch.eye(2), torch.ones(1, 2)]))
>>> len(sets), own, world.size, world.is_main
(2, slice(0, 3, None), 1, True)
"""

from __future__ import annotations

import importlib
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from datetime import timedelta

import torch
import torch.distributed as dist
from torch import Tensor

from graphs.errors import ConfigError, TrainingError
from mathamr.maxsim import VectorSets
from mathamr.model.encoding import out_of_memory

_TIMEOUT = timedelta(hours=1)  # a rank silent for longer counts as dead, except while it mines negatives


@dataclass(frozen=True, slots=True)
class Ranks:
    """This process among all: ``rank`` of ``size``, computing on ``device``."""

    rank: int
    size: int
    device: torch.device

    @property
    def is_main(self) -> bool:
        """True on rank 0, which logs and writes."""
        return self.rank == 0

    def gather(self, sets: VectorSets) -> tuple[VectorSets, slice]:
        """Gather the sets of all ranks, rank by rank, without gradient, and the slice of this rank's vectors.

        Ranks may have different numbers of sets and of vectors.
        """
        detached = VectorSets(sets.vectors.detach(), sets.ptr)
        if self.size == 1:
            return detached, slice(0, len(detached.vectors))
        with _peers_alive("gathering vectors"):
            lengths = torch.tensor([len(detached), len(detached.vectors)], device=self.device)
            counts = self._all(lengths).tolist()  # (size, 2)
            most_sets, most_vectors = (max(column) for column in zip(*counts, strict=True))
            sizes = self._all(_padded(detached.sizes, most_sets))  # (size, most_sets)
            vectors = self._all(_padded(detached.vectors, most_vectors))  # (size, most_vectors, p)
        sizes = torch.cat([sizes[rank, :count] for rank, (count, _) in enumerate(counts)])
        joined = torch.cat([vectors[rank, :count] for rank, (_, count) in enumerate(counts)])
        first = sum(count for _, count in counts[: self.rank])
        return VectorSets.of_sizes(joined, sizes), slice(first, first + len(detached.vectors))

    def sum_gradients(self, own: Iterable[Tensor], shared: Iterable[Tensor]) -> None:
        """Turn the gradients of the ranks into those of the joined loss, in place and equal on all ranks.

        Args:
            own: parameters that each rank reaches through its own vectors; their gradients are summed.
            shared: parameters that each rank reaches in full, such as the temperature; their gradients are averaged,
                which keeps ranks of different hardware in step.
        """
        if self.size == 1:
            return
        own, shared = list(own), list(shared)
        gradients = [_gradient(parameter) for parameter in own]
        gradients += [_gradient(parameter).div_(self.size) for parameter in shared]
        flat = torch.cat([gradient.flatten() for gradient in gradients])
        with _peers_alive("summing gradients"):
            dist.all_reduce(flat)
        for gradient, part in zip(gradients, flat.split([g.numel() for g in gradients]), strict=True):
            gradient.copy_(part.view_as(gradient))

    def broadcast(self, tensors: Iterable[Tensor]) -> None:
        """Copy the values of rank 0 to all ranks, in place."""
        if self.size > 1:
            with _peers_alive("sharing weights"):
                for tensor in tensors:
                    dist.broadcast(tensor, src=0)

    def shared_text(self, text: str) -> str:
        """Return the text of rank 0, on all ranks."""
        if self.size == 1:
            return text
        texts = [text]
        with _peers_alive("sharing negatives"):
            dist.broadcast_object_list(texts, src=0, device=self.device)
        return texts[0]

    def any(self, flag: bool) -> bool:
        """Return whether ``flag`` holds on any rank; all ranks must act on a signal at the same step."""
        if self.size == 1:
            return flag
        votes = torch.tensor([int(flag)], device=self.device)
        with _peers_alive("waiting for the other ranks"):
            dist.all_reduce(votes, op=dist.ReduceOp.MAX)
        return bool(votes.item())

    def _all(self, tensor: Tensor) -> Tensor:
        parts = [torch.empty_like(tensor) for _ in range(self.size)]
        dist.all_gather(parts, tensor.contiguous())
        return torch.stack(parts)


@contextmanager
def ranks(device: str) -> Iterator[Ranks]:
    """Yield the process group that ``torchrun`` describes in the environment; without it a world of one rank.

    An existing process group is used and left as it is. Otherwise NCCL is set up for GPUs, one a rank, and gloo
    for CPUs. ``device`` is that of :class:`mathamr.training.config.TrainConfig`.

    Raises:
        ConfigError: an unknown or missing device.
    """
    local_rank = int(os.environ.get("LOCAL_RANK", "0"))
    own_device = _device(device, local_rank)
    if own_device.type == "cuda":
        torch.cuda.set_device(own_device)
    if dist.is_initialized():
        yield Ranks(dist.get_rank(), dist.get_world_size(), own_device)
        return
    if int(os.environ.get("WORLD_SIZE", "1")) == 1:
        yield Ranks(0, 1, own_device)
        return
    # Its functions keep the group of the moment of their import as default. torch.optim imports it at its first use.
    importlib.import_module("torch.distributed.nn.functional")
    dist.init_process_group("nccl" if own_device.type == "cuda" else "gloo", timeout=_TIMEOUT)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size(), own_device)
    finally:
        dist.destroy_process_group()


def arithmetic(precision: str, device: torch.device) -> AbstractContextManager[object]:
    """Return autocast to bfloat16 for ``bf16``."""
    return torch.autocast(device.type, dtype=torch.bfloat16, enabled=precision == "bf16")


def missing_gpu(device: str) -> str:
    """Return a warning for a Slurm job without a GPU, whose ``device`` is not the CPU by choice; otherwise ""."""
    if device != "auto" or "SLURM_JOB_ID" not in os.environ or torch.cuda.is_available():
        return ""
    return "NO GPU IN THIS SLURM JOB: models run on the CPU; request GPUs, e.g. sbatch --gpus=1 or --gpus-per-node=4"


def _device(name: str, local_rank: int) -> torch.device:
    has_cuda = torch.cuda.is_available()
    if name == "auto":
        name = "cuda" if has_cuda else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise ConfigError(f"train.device={name} is not a device. Choose from: auto, cpu, cuda, cuda:N") from None
    if device.type == "cpu":
        return device
    if device.type != "cuda" or not has_cuda:
        raise ConfigError(f"train.device={name} is not available; use train.device=auto or cpu")
    index = local_rank if device.index is None else device.index
    if device.index is None and torch.cuda.device_count() == 1 and "SLURM_PROCID" in os.environ:
        index = 0  # Slurm has bound a GPU to each task, which sees that one alone
    if index >= torch.cuda.device_count():
        raise ConfigError(
            f"train.device={name} needs GPU {index}, but there are {torch.cuda.device_count()}; start fewer ranks on "
            "a node"
        )
    return torch.device("cuda", index)


def _padded(tensor: Tensor, length: int) -> Tensor:
    padded = tensor.new_zeros(length, *tensor.shape[1:])
    padded[: len(tensor)] = tensor
    return padded


def _gradient(parameter: Tensor) -> Tensor:
    if parameter.grad is None:
        parameter.grad = torch.zeros_like(parameter)
    return parameter.grad


@contextmanager
def _peers_alive(doing: str) -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        if out_of_memory(error):
            raise
        # gloo: "[/source/of/pair.cc:553] Connection closed by peer [...]. This is typically caused by ..."
        reason = re.sub(r"^\[\S*\] ", "", str(error).strip().splitlines()[0]).partition(". This is ")[0]
        raise TrainingError(
            f"lost another rank while {doing} ({reason}); see the output of that rank for the cause. "
            "The same command resumes from the last checkpoint"
        ) from error
