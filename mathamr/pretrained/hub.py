"""Models on the Hugging Face Hub: only the files of a model's folder are fetched; none of them is a pickle.

>>> folder_of("no/such/folder")
Traceback (most recent call last):
    ...
graphs.errors.ConfigError: no/such/folder is neither a folder nor a hub id; give a folder, or OWNER/NAME
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

from graphs.errors import ConfigError
from mathamr.pretrained.folder import FILES

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
