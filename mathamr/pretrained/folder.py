"""Folder of a model: weights, vocabulary, graph settings and the parser's name, in safetensors and JSON.

======================  ====================================================================================
``mathamr.json``        virtual nodes, the parser's name, the card's statements, SHA-256 of the next three files
``model.safetensors``   the weights
``checkpoint.json``     the encoder's settings, the seed, the loss (:mod:`mathamr.training.checkpoint`)
``vocabulary.json``     labels and relations (:class:`graphs.graph.vocabulary.Vocabulary`)
``README.md``           the model card (:mod:`mathamr.pretrained.card`)
======================  ====================================================================================

A folder is also a checkpoint: ``model.checkpoint=FOLDER`` and mathamr index accept it. Nothing in it is a pickle, and
files with other names are not read, nor fetched from the Hugging Face Hub.
"""

from __future__ import annotations

import json
import os
import re
import warnings
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from graphs import digests
from graphs.errors import ConfigError, StoreError
from graphs.graph.virtual_nodes import VirtualNodeSpec
from graphs.graph.vocabulary import Vocabulary
from graphs.stores.store import config_hash
from graphs.whole_file import write_whole
from mathamr.pretrained.card import Statements
from mathamr.training import checkpoint
from mathamr.training.checkpoint import CheckpointInfo

if TYPE_CHECKING:
    from torch import Tensor


SETTINGS, WEIGHTS, CHECKPOINT, VOCABULARY, CARD = (
    "mathamr.json",
    "model.safetensors",
    "checkpoint.json",
    "vocabulary.json",
    "README.md",
)
FILES = (SETTINGS, WEIGHTS, CHECKPOINT, VOCABULARY, CARD)
"""All files of a folder."""

_FORMAT, _VERSION = "mathamr-model", 1
_HASHED = (WEIGHTS, CHECKPOINT, VOCABULARY)


@dataclass(frozen=True)
class ModelFiles:
    """Content of a model's folder, read and checked.

    ``weights`` are tensors by parameter name, on the CPU. ``parser`` names the AMR parser of the training posts, and
    ``stated`` are the author's statements on the model card.
    """

    info: CheckpointInfo
    weights: Mapping[str, Tensor]
    vocabulary: Vocabulary
    spec: VirtualNodeSpec
    parser: str
    stated: Statements = field(default_factory=Statements)


def write(folder: Path, model: ModelFiles, card: str) -> None:
    """Write a model to ``folder``, which must be new, empty, or the folder of a model.

    If a call is killed, :func:`read` refuses its folder; repeating the call completes it.

    Warns:
        UserWarning: another model is replaced; the message names both by their weights.

    Raises:
        StoreError: the folder holds anything else, or cannot be written.
    """
    _check_place(folder, model)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        checkpoint.save(folder, model.info, model.weights)
        write_whole(folder / VOCABULARY, model.vocabulary.to_json())
        write_whole(folder / CARD, card)
        settings = {
            "format": _FORMAT,
            "version": _VERSION,
            "virtual_nodes": model.spec.content(),
            "parser": model.parser,
            "card": asdict(model.stated),
            "files": {name: digests.of_file(folder / name) for name in _HASHED},
        }
        write_whole(folder / SETTINGS, json.dumps(settings, indent=1) + "\n")  # last: it completes the folder
    except OSError as error:
        raise StoreError(f"the model cannot be written: {error}; name another folder", path=folder) from error


def _check_place(folder: Path, model: ModelFiles) -> None:
    """Refuse to replace anything but a model; warn when another model is replaced."""
    if not folder.exists():
        return
    if not folder.is_dir():
        raise StoreError("is a file, and a model is a folder; name a new folder", path=folder)
    names = sorted(path.name for path in folder.iterdir())
    if others := [name for name in names if name not in FILES]:
        raise StoreError(f"the folder holds other files, e.g. {others[0]}; name a new folder", path=folder)
    if not names:
        return
    own = checkpoint.weights_digest(model.weights)
    found = digests.of_file(folder / WEIGHTS) if WEIGHTS in names else None
    if SETTINGS in names:
        _settings(folder / SETTINGS)
        if found != own:
            message = f"{folder} held a model with the weights {_short(found)}; it is replaced by {_short(own)}"
            warnings.warn(message, stacklevel=4)
    elif found != own:
        message = f"the folder holds {names[0]} without {SETTINGS}, so it is not a saved model; name a new folder"
        raise StoreError(message, path=folder)


def _short(digest: str | None) -> str:
    """Return the beginning of a digest, as messages show it."""
    return "missing" if digest is None else digest[:12]


def read(folder: Path) -> ModelFiles:
    """Read the model in a folder.

    Raises:
        StoreError: a file is missing, damaged or of another version, or two files do not belong together; the message
            shows both hashes.
    """
    if (folder / CHECKPOINT).is_file() and not any((folder / name).exists() for name in (SETTINGS, VOCABULARY)):
        message = (
            "is a training checkpoint; open it with MathAMR.from_checkpoint(FOLDER, TENSORS), where TENSORS is "
            "the preprocessed.db of the training"
        )
        raise StoreError(message, path=folder)
    for name in (SETTINGS, *_HASHED):
        if not (folder / name).is_file():
            raise StoreError(f"{name} is missing; a model's folder has {', '.join(FILES)}", path=folder)
    settings = _settings(folder / SETTINGS)
    for name in _HASHED:
        wanted, found = settings["files"].get(name), digests.of_file(folder / name)
        if wanted != found:
            message = f"{name} has the SHA-256 {found}, but {SETTINGS} says {wanted}; copy the whole folder again"
            raise StoreError(message, path=folder)
    vocabulary = Vocabulary.from_json((folder / VOCABULARY).read_text(encoding="utf-8"))
    try:
        spec, parser = VirtualNodeSpec(**settings["virtual_nodes"]), str(settings["parser"])
        stated = Statements(**settings.get("card", {}))  # a folder of an earlier version has none
    except (KeyError, TypeError, ConfigError) as error:
        raise StoreError(f"{SETTINGS} is damaged ({error}); copy the whole folder again", path=folder) from error
    trained = checkpoint.load(folder)
    info = trained.info
    if vocabulary.hash != info.vocabulary_hash:
        raise StoreError(
            f"the encoder was trained with the vocabulary {info.vocabulary_hash}, not with {vocabulary.hash}; "
            "use the vocabulary of its preprocessed.db",
            path=folder,
        )
    if (found := config_hash(spec, vocabulary)) != info.config_hash:
        raise StoreError(
            f"the encoder was trained on graphs of configuration {info.config_hash}, but {spec} gives {found}; use "
            "the virtual nodes of its training",
            path=folder,
        )
    return ModelFiles(info, trained.weights, vocabulary, spec, parser, stated)


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(path.read_text(encoding="utf-8"))
        found = settings["format"], settings["version"]
        known = isinstance(settings["files"], dict) and isinstance(settings["virtual_nodes"], dict)
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise StoreError(f"damaged or unreadable ({error!r}); copy the whole folder again", path=path) from error
    if found != (_FORMAT, _VERSION) or not known:
        raise StoreError(f"a model of the format {found}; this version reads {(_FORMAT, _VERSION)}", path=path)
    return dict(settings)


_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def folder_of(name: str | os.PathLike[str], revision: str | None = None) -> Path:
    """Return the folder of a model; a model on the hub is downloaded unless it is cached.

    Raises:
        ConfigError: a name that is neither a folder nor a hub id, or a failed download.
    """
    path = Path(name)
    if path.is_dir():
        return path
    if not _ID.fullmatch(str(name)):
        raise ConfigError(f"{name} is neither a folder nor a hub id; give a folder, or OWNER/NAME")
    hub = _hub()
    try:
        return Path(hub.snapshot_download(str(name), revision=revision, allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:  # of the hub, of the network, of the cache
        reason = str(error).splitlines()[0]
        raise ConfigError(f"{name} is not a folder, and cannot be downloaded: {reason}") from error


def upload(folder: Path, name: str, *, private: bool = False, token: str | None = None) -> str:
    """Upload a model's folder; return the address of the commit.

    Raises:
        ConfigError: a name that is not a hub id, or a failed upload.
    """
    if not _ID.fullmatch(name):
        raise ConfigError(f"{name} is not a hub id; give OWNER/NAME")
    hub = _hub()
    try:
        api = hub.HfApi(token=token)
        api.create_repo(name, private=private, exist_ok=True)
        return str(api.upload_folder(repo_id=name, folder_path=folder, allow_patterns=list(FILES)))
    except (OSError, ValueError) as error:
        raise ConfigError(f"{name} cannot be uploaded: {str(error).splitlines()[0]}") from error


def _hub() -> Any:
    try:
        import huggingface_hub
    except ImportError as error:
        raise ConfigError("models on the hub need huggingface_hub: pip install 'mathamr-plus[text]'") from error
    return huggingface_hub
