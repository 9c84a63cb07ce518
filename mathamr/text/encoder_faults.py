"""Faults of text encoders: missing models, damaged files, missing modules, a tokenizer without a vocabulary.

>>> import tempfile
>>> folder = Path(tempfile.mkdtemp())
>>> _ = (folder / "modules.json").write_text('[{"path": "1_Pooling", "type": "Pooling"}]')
>>> damaged_part(folder)
'the folder 1_Pooling, which modules.json names, is missing'
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from graphs.errors import ConfigError, MissingEncoderError


def opening_error(error: Exception, name: str, place: Path, model: str) -> ConfigError:
    """Return the error for an encoder that cannot be opened from ``place``; ``model`` is its name on the hub."""
    of_hub, first = not place.is_dir(), str(error).partition("\n")[0]
    if "trust_remote_code" in str(error):
        return ConfigError(
            f"the encoder {name!r} brings Python code, which is not run; read the code, then use "
            "text.trust_remote_code=true"
            + (", best with the commit that you have read: text.revision=COMMIT" if of_hub else "")
        )
    if of_hub and not _may_be_on_hub(model):
        return MissingEncoderError(
            f"the encoder {name!r} is not on this machine: there is no such folder; give the folder of a model, or its "
            "name on the hub"
        )
    if of_hub:
        return MissingEncoderError(
            f"the encoder {name!r} ({model}) is not on this machine and cannot be downloaded ({first}); on a machine "
            f"with a network, run hf download {model} --local-dir {Path(model).name}, then name that folder; its name "
            "selects prompts and pooling"
        )
    return _damage(name, damaged_part(place) or f"{type(error).__name__}: {first}")


def _may_be_on_hub(model: str) -> bool:
    r"""Return whether a name has the form of the hub's.

    >>> [_may_be_on_hub(name) for name in ("lab/model", "/models/own", "C:\\models\\own", "own model")]
    [True, False, False, False]
    """
    from huggingface_hub.utils import HFValidationError, validate_repo_id

    try:
        validate_repo_id(model)
    except HFValidationError:
        return False
    return True


def _damage(name: str, fault: str) -> ConfigError:
    return ConfigError(f"cannot be opened as a text encoder: {fault}; copy all files of the model again", path=name)


def damaged_part(folder: Path) -> str:
    """Return the damaged file or the missing module of an encoder as a phrase; "" if all can be read."""
    from safetensors import SafetensorError, safe_open

    for path in sorted(folder.rglob("*")):
        try:
            if path.suffix == ".safetensors":
                safe_open(path, "np")
            content: Any = json.loads(path.read_bytes()) if path.suffix == ".json" else ()
            for one in content if path.name == "modules.json" else ():
                if not (folder / one["path"]).is_dir() and not one["type"].endswith("Normalize"):  # it has no files
                    return f"the folder {one['path']}, which modules.json names, is missing"
        except (OSError, ValueError, LookupError, TypeError, SafetensorError) as error:
            return f"{path.relative_to(folder)} is damaged ({error})"
    return ""


def check_tokenizer(tokenizer: Any, name: str) -> None:
    """Raise ConfigError for a tokenizer without a vocabulary: transformers makes one if its files are missing."""
    special = getattr(tokenizer, "all_special_tokens", None)
    if special is not None and len(tokenizer) <= len(special):
        raise _damage(name, "its tokenizer has no vocabulary (tokenizer.json, or vocab.txt, is missing)")
