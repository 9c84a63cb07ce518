"""A simulated GPU: tensors that say ``cuda:0`` and compute on the CPU, for machines without one.

    with simulated_gpu() as device:
        torch.ones(2, device=device) + torch.ones(2)     # RuntimeError, as on a GPU: cuda:0 and cpu

An operation on tensors of two devices is refused by the rules of CUDA: only a CPU tensor without dimensions, or a CPU
index of a GPU tensor, may take part. Values are real, so code that reads sizes from tensors runs too; in
``FakeTensorMode`` of torch it does not, and that mode has no gradients where torch is built without CUDA. Autocast
follows the lists of CUDA.

Not simulated: kernels. A dtype that CUDA lacks for an operation, memory and speed need a GPU.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode
from torch.utils._python_dispatch import TorchDispatchMode, return_and_correct_aliasing
from torch.utils._pytree import tree_leaves, tree_map

DEVICE = torch.device("cuda", 0)
_ATEN = torch.ops.aten
# Operations by which tensors of two devices may meet.
_MOVES = {_ATEN._to_copy, _ATEN.copy_}
_TAKE_CPU_INDEX = {_ATEN.index, _ATEN.index_put, _ATEN.index_put_}
# Autocast on CUDA (aten/src/ATen/autocast_mode.h), as far as the project calls it.
_LOWER = {"matmul", "__matmul__", "__rmatmul__", "linear", "einsum"}
_LOWER |= {"mm", "bmm", "mv", "addmm", "addmv", "baddbmm", "addbmm"}
_FLOAT32 = {"exp", "log", "log2", "log1p", "expm1", "pow", "__pow__", "reciprocal", "rsqrt"}
_FLOAT32 |= {"layer_norm", "softmax", "log_softmax", "logsumexp", "cumsum", "sum", "prod", "norm"}
_FLOAT32 |= {"cosine_similarity", "cross_entropy", "nll_loss"}


class GpuTensor(Tensor):
    """A CPU tensor ``held`` under the name of a GPU."""

    held: Tensor

    @staticmethod
    def __new__(cls, held: Tensor) -> GpuTensor:
        # In C++ it is a tensor of ``meta``: for one of ``cuda`` autograd asks the driver.
        shape = torch.empty_strided(held.size(), held.stride(), dtype=held.dtype, device="meta")
        made = Tensor._make_subclass(cls, shape, False, device_for_backend_keys=DEVICE)
        made.held = held
        return made

    @property
    def device(self) -> torch.device:
        """Return the simulated GPU."""
        return DEVICE

    @property
    def is_cuda(self) -> bool:
        """Return True."""
        return True

    def __repr__(self, **_: Any) -> str:
        return f"GpuTensor({self.held})"

    def tolist(self) -> Any:
        """Return the values."""
        return self.held.tolist()

    def pin_memory(self, *_: Any) -> Tensor:
        """Refuse, as torch does."""
        raise RuntimeError("cannot pin 'torch.cuda.FloatTensor' only dense CPU tensors can be pinned")

    def __tensor_flatten__(self) -> tuple[list[str], None]:
        """Name the tensor within; by this, ``Module.to`` replaces parameters instead of overwriting them."""
        return ["held"], None

    @staticmethod
    def __tensor_unflatten__(inner: dict[str, Tensor], meta: None, size: Any, stride: Any) -> GpuTensor:
        """Make the tensor of :meth:`__tensor_flatten__` again."""
        return GpuTensor(inner["held"])

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Factories(TorchDispatchMode):
    """New tensors on the simulated GPU, where it is named."""

    def __init__(self) -> None:
        super().__init__()
        self._mode_key = torch._C._TorchDispatchModeKey.FAKE  # torch then looks for no driver

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _run(func, args, kwargs or {})


class _Autocast(TorchFunctionMode):
    """Arguments cast as autocast does on CUDA; operations with ``out`` are left as they are."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if torch.is_autocast_enabled("cuda") and "out" not in kwargs:
            name = getattr(func, "__name__", "")
            if name in _LOWER:
                args, kwargs = _cast((args, kwargs), torch.get_autocast_dtype("cuda"))
            elif name in _FLOAT32:
                args, kwargs = _cast((args, kwargs), torch.float32)
        return func(*args, **kwargs)


def _cast(values: Any, dtype: torch.dtype) -> Any:
    return tree_map(
        lambda value: value.to(dtype) if isinstance(value, GpuTensor) and value.is_floating_point() else value, values
    )


def _run(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """Compute an operation on the CPU; give its results the device that it has on a machine with a GPU."""
    tensors = [value for value in tree_leaves((args, kwargs)) if isinstance(value, Tensor)]
    on_gpu = any(isinstance(tensor, GpuTensor) for tensor in tensors)
    packet = func.overloadpacket
    if on_gpu and packet not in _MOVES:
        _refuse_mixed(packet, args, tensors)
    if kwargs.get("device") is not None:
        to_gpu = torch.device(kwargs["device"]).type in ("cuda", "meta")  # meta: as autograd knows its tensors
        kwargs = {**kwargs, "device": torch.device("cpu")}
    else:
        to_gpu = isinstance(args[0], GpuTensor) if packet is _ATEN.copy_ else on_gpu
    found = func(*tree_map(_held, args), **{k: v for k, v in tree_map(_held, kwargs).items() if k != "pin_memory"})
    return return_and_correct_aliasing(func, args, kwargs, tree_map(_on_gpu, found)) if to_gpu else found


def _refuse_mixed(packet: Any, args: Any, tensors: list[Tensor]) -> None:
    takes_index = packet in _TAKE_CPU_INDEX and isinstance(args[0], GpuTensor)
    for tensor in tensors:
        if not isinstance(tensor, GpuTensor) and tensor.dim() > 0 and not takes_index:
            raise RuntimeError(f"Expected all tensors to be on the same device, but found cuda:0 and cpu in {packet}")


def _held(value: Any) -> Any:
    return value.held if isinstance(value, GpuTensor) else value


def _on_gpu(value: Any) -> Any:
    return GpuTensor(value) if isinstance(value, Tensor) and not isinstance(value, GpuTensor) else value


@contextmanager
def simulated_gpu() -> Iterator[torch.device]:
    """Yield the device ``cuda:0``, the real one if there is one."""
    if torch.cuda.is_available():
        yield DEVICE
        return
    lifted = torch._C._only_lift_cpu_tensors()
    answers = {
        "is_available": True,
        "is_bf16_supported": True,
        "get_device_capability": (9, 0),
        "device_count": 1,
        "max_memory_allocated": 0,
        "set_device": None,
        "synchronize": None,
        "reset_peak_memory_stats": None,
    }
    with ExitStack() as stack:
        for name, answer in answers.items():
            stack.enter_context(mock.patch(f"torch.cuda.{name}", return_value=answer))
        stack.enter_context(mock.patch("torch.accelerator.current_accelerator", return_value=None))  # asks the driver
        stack.enter_context(mock.patch("torch.Tensor.pin_memory", lambda tensor: tensor))
        stack.enter_context(mock.patch("mathamr.retrieval.exact.gpu._kernel", return_value=None))  # compiled for a GPU
        stack.callback(torch._C._set_only_lift_cpu_tensors, lifted)
        torch._C._set_only_lift_cpu_tensors(True)  # torch.tensor makes its tensor on the CPU, and then moves it
        stack.enter_context(_Factories())
        stack.enter_context(_Autocast())
        yield DEVICE
