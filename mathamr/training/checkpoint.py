"""Checkpoints: a trained model on disk; a kill at any instant leaves a valid one.

>>> import tempfile
>>> import torch
>>> info = CheckpointInfo(encoder={"hidden_dim": 64}, train={"epochs": 7}, vocabulary_hash="3f2a", config_hash="c0",
...     num_labels=20_000, num_relations=532, code_version="0.1.0", seed=42, step=1406, epoch=1, best_step=1406,
...     best_val_loss=2.31, temperature=0.049)
>>> path = Path(tempfile.mkdtemp()) / "best"
>>> save(path, info, {"label.weight": torch.zeros(3, 2)})
>>> sorted(file.name for file in path.iterdir())
['checkpoint.json', 'model.safetensors']
>>> load(path, vocabulary_hash="3f2a").info.step
1406
>>> load(path, vocabulary_hash="77b0")  # doctest: +ELLIPSIS
Traceback (most recent call last):
    ...
graphs.errors.TrainingError: ...best: the checkpoint was trained with the vocabulary 3f2a, not with 77b0; ...

A folder holds ``model.safetensors`` (weights) and ``checkpoint.json`` (:class:`CheckpointInfo`, and the SHA-256 of
each file, which shows damage). The ``last`` checkpoint of a run also holds ``state.safetensors`` and ``state.json``:
optimizer, position in the data, history. No random generator needs saving (see
:mod:`mathamr.training.graph.loading`), and nothing is pickled. :func:`save` writes and syncs a folder beside the old
one, then renames both. Between the two renames ``NAME`` is missing and ``.NAME.next`` replaces it; :func:`load` and the
next :func:`save` handle this.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs import digests
from graphs.errors import TrainingError
from mathamr.model.config import EncoderConfig

if TYPE_CHECKING:
    import torch
    from torch import Tensor

    from mathamr.model.encoder import Encoder

_FORMAT = 1  # increases when the meaning of the files changes
_INFO, _WEIGHTS, _STATE, _STATE_TENSORS = "checkpoint.json", "model.safetensors", "state.json", "state.safetensors"
_DIGESTS = "sha256"  # in checkpoint.json: of each other file


@dataclass(frozen=True)
class CheckpointInfo:
    """Identity of a checkpoint.

    ``encoder`` and ``train`` are the configurations as plain values; ``vocabulary_hash`` and ``config_hash`` belong to
    the graphs (:class:`graphs.stores.store.GraphStore`). ``step`` counts optimizer steps, ``epoch`` finished epochs.
    ``best_step`` is the step of the lowest validation loss and ``best_val_loss`` that loss; both are ``None`` before
    the first validation.
    """

    encoder: Mapping[str, Any]
    train: Mapping[str, Any]
    vocabulary_hash: str
    config_hash: str
    num_labels: int
    num_relations: int
    code_version: str
    seed: int
    step: int
    epoch: int
    best_step: int | None
    best_val_loss: float | None
    temperature: float


@dataclass(frozen=True)
class TrainingState:
    """State for resuming, beside the weights: ``tensors`` by name and ``scalars``, any values that JSON can hold."""

    tensors: Mapping[str, Tensor] = field(default_factory=dict)
    scalars: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Checkpoint:
    """Loaded checkpoint; ``weights`` by parameter name, on the CPU."""

    info: CheckpointInfo
    weights: dict[str, Tensor]


def save(
    path: str | os.PathLike[str],
    info: CheckpointInfo,
    weights: Mapping[str, Tensor],
    state: TrainingState | None = None,
) -> None:
    """Write the checkpoint folder ``path``; it replaces an older one atomically.

    Raises:
        TrainingError: a folder that cannot be written (disk full, no permission); the older checkpoint is intact.
    """
    path = Path(path)
    files = {_WEIGHTS: _tensor_bytes(weights)}
    if state is not None:
        files |= {_STATE_TENSORS: _tensor_bytes(state.tensors), _STATE: _json_bytes(state.scalars)}
    written = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    values = {"format": _FORMAT, **json.loads(_json_bytes(dataclasses.asdict(info)))}
    files[_INFO] = _json_bytes({_DIGESTS: {**written, _INFO: digests.of_json(values)}, **values})
    writing, following, previous = _siblings(path)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        if following.exists() and not path.exists():
            following.rename(path)  # an earlier save was killed between its two renames
        for leftover in (writing, following, previous):
            shutil.rmtree(leftover, ignore_errors=True)
        writing.mkdir()
        for name, content in files.items():
            _write_synced(writing / name, content)
        _sync(writing)
        writing.rename(following)
        if path.exists():
            path.rename(previous)
        following.rename(path)
        _sync(path.parent)
    except OSError as error:
        shutil.rmtree(writing, ignore_errors=True)
        megabytes = sum(map(len, files.values())) / 2**20
        kept = (
            f"the checkpoint of step {_step_of(path)} is intact" if path.exists() else "there is no earlier checkpoint"
        )
        message = (
            f"cannot write the checkpoint of step {info.step}, {megabytes:.1f} MiB: {error.strerror or error}; {kept}. "
            "Free space or choose another folder, then repeat the call to resume"
        )
        raise TrainingError(message, path=path) from error
    shutil.rmtree(previous, ignore_errors=True)


def exists(path: str | os.PathLike[str]) -> bool:
    """Return whether :func:`load` finds a checkpoint at ``path``."""
    return _find(Path(path)) is not None


def remove(path: str | os.PathLike[str]) -> None:
    """Delete the checkpoint at ``path``, if any."""
    path = Path(path)
    for folder in (path, *_siblings(path)):
        shutil.rmtree(folder, ignore_errors=True)


def load(
    path: str | os.PathLike[str], *, vocabulary_hash: str | None = None, config_hash: str | None = None
) -> Checkpoint:
    """Read a checkpoint, if it was trained with this vocabulary and on graphs of this configuration.

    Raises:
        TrainingError: a checkpoint that is missing, damaged, of another format, or trained on other graphs.
    """
    path = Path(path)
    folder = _existing(path)
    values = _read_json(folder / _INFO)
    if values.get("format") != _FORMAT:
        raise TrainingError(f"not a checkpoint of format {_FORMAT}; train again with this version", path=path)
    known = {field.name for field in dataclasses.fields(CheckpointInfo)}
    if differing := values.keys() ^ (known | {"format", _DIGESTS}):
        raise TrainingError(f"{_INFO} has wrong keys: {sorted(differing)}", path=path)
    written = values.pop(_DIGESTS)
    if not isinstance(written, dict) or written.get(_INFO) != digests.of_json(values):
        raise _damage(folder / _INFO)
    del values["format"]
    info = CheckpointInfo(**values)
    hashes = (
        ("the vocabulary", info.vocabulary_hash, vocabulary_hash),
        ("graphs of configuration", info.config_hash, config_hash),
    )
    for what, found, wanted in hashes:
        if wanted is not None and found != wanted:
            message = (
                f"the checkpoint was trained with {what} {found}, not with {wanted}; "
                "use the preprocessed.db it was trained on, or train again on this one"
            )
            raise TrainingError(message, path=path)
    _refuse_damage(folder / _WEIGHTS, written)
    return Checkpoint(info, _read_tensors(folder / _WEIGHTS))


def weights_hash(path: str | os.PathLike[str]) -> str:
    """Return the hash of a checkpoint's weights. An index carries it, and is searched only with that model."""
    weights = _existing(Path(path)) / _WEIGHTS
    with _readable(weights):
        return digests.of_file(weights)[:16]


def weights_digest(weights: Mapping[str, Tensor]) -> str:
    """Return the SHA-256 of the file that :func:`save` makes of weights."""
    return hashlib.sha256(_tensor_bytes(weights)).hexdigest()


def load_state(path: str | os.PathLike[str]) -> TrainingState:
    """Read the state that resuming needs; raise TrainingError for only weights (``best``), and as :func:`load`."""
    path = Path(path)
    folder = _existing(path)
    if not (folder / _STATE).exists():
        raise TrainingError("this checkpoint holds only weights; resume from the 'last' checkpoint", path=path)
    written = _read_json(folder / _INFO).get(_DIGESTS, {})
    for name in (_STATE_TENSORS, _STATE):
        _refuse_damage(folder / name, written)
    return TrainingState(_read_tensors(folder / _STATE_TENSORS), _read_json(folder / _STATE))


def load_encoder(
    path: str | os.PathLike[str], *, config_hash: str | None = None, device: torch.device | str = "cpu"
) -> Encoder:
    """Return the encoder of a checkpoint, in evaluation mode, for graphs of ``config_hash``; errors as :func:`load`."""
    checkpoint = load(path, config_hash=config_hash)
    return encoder_of(checkpoint.info, checkpoint.weights, device, path=Path(path))


def encoder_of(
    info: CheckpointInfo, weights: Mapping[str, Tensor], device: torch.device | str = "cpu", *, path: Path | None = None
) -> Encoder:
    """Return the encoder of these settings and weights, in evaluation mode; messages name ``path``.

    Raises:
        TrainingError: settings of another version, or weights of another encoder.
    """
    from mathamr.model.encoder import Encoder  # slow to import

    try:
        encoder = Encoder(EncoderConfig(**info.encoder), info.num_labels, info.num_relations)
        encoder.load_state_dict(dict(weights))
    except TypeError as error:
        raise TrainingError(
            f"{_INFO} does not describe an encoder of this version ({error}); train again", path=path
        ) from error
    except RuntimeError as error:
        raise TrainingError(
            f"the weights do not fit the encoder: {error}; copy the whole checkpoint again", path=path
        ) from error
    return encoder.to(device).eval()


@cache
def code_version() -> str:
    """Return the version of this package, with the commit if it runs from a Git checkout: ``0.1.0+2e889e1``.

    The version is ``0.1.0+2e889e1-dirty`` if tracked files differ from that commit. Git is asked once in a process.
    """
    try:
        number = version("mathamr-plus")
    except PackageNotFoundError:
        number = "unknown"
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return number
    command = ["git", "--no-optional-locks", "-C", str(root), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        commit = subprocess.run(command, capture_output=True, text=True, check=True, timeout=10).stdout.strip()
    except (OSError, subprocess.SubprocessError):  # no git here, or a checkout of another user
        return number
    return f"{number}+{commit}"


def _siblings(path: Path) -> tuple[Path, Path, Path]:
    """Return the places of a checkpoint while it is written, when complete, and when replaced."""
    writing, following, previous = (path.with_name(f".{path.name}.{part}") for part in ("writing", "next", "previous"))
    return writing, following, previous


def _find(path: Path) -> Path | None:
    _, following, _ = _siblings(path)
    for folder in (path, following):
        if (folder / _INFO).is_file():
            return folder
    return None


def _existing(path: Path) -> Path:
    folder = _find(path)
    if folder is None:
        raise TrainingError("no checkpoint here; a training run writes OUT/best and OUT/last", path=path)
    return folder


def _step_of(path: Path) -> int | None:
    try:
        return load(path).info.step
    except TrainingError:
        return None


def _tensor_bytes(tensors: Mapping[str, Tensor]) -> bytes:
    from safetensors.torch import save

    return save({name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()})


def _json_bytes(values: Mapping[str, Any]) -> bytes:
    return (json.dumps(values, indent=1, allow_nan=False, ensure_ascii=False) + "\n").encode()


@contextmanager
def _readable(path: Path) -> Iterator[None]:
    """Turn the errors of a damaged or missing file into one error; others, such as too little memory, stay."""
    from safetensors import SafetensorError

    try:
        yield
    except (SafetensorError, OSError, ValueError) as error:
        raise TrainingError(f"damaged or unreadable ({error}); use another checkpoint", path=path) from error


def _refuse_damage(path: Path, written: Mapping[str, str]) -> None:
    """Refuse a file that differs from its digest."""
    with _readable(path):
        found = digests.of_file(path)
    if found != written.get(path.name):
        raise _damage(path)


def _damage(path: Path) -> TrainingError:
    return TrainingError("damaged: the file has changed since it was written; use another checkpoint", path=path)


def _read_tensors(path: Path) -> dict[str, Tensor]:
    from safetensors.torch import load_file

    with _readable(path):
        return load_file(path)


def _read_json(path: Path) -> dict[str, Any]:
    with _readable(path):
        values = json.loads(path.read_text(encoding="utf-8"))
    if not isinstance(values, dict):
        raise TrainingError("not a JSON object; use another checkpoint", path=path)
    return values


def _write_synced(path: Path, content: bytes) -> None:
    with path.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
