"""Values of ``conf/``: in a checkout the folder beside the packages, in an installed package one inside ``mathamr``.

>>> values("graph")["structure"]
'full'
>>> values("train", "laptop")["seed"]
42
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

_PACKAGE = Path(__file__).resolve().parent
CONF = next(folder for folder in (_PACKAGE.parent / "conf", _PACKAGE / "conf") if (folder / "config.yaml").is_file())
"""Folder of the configuration."""


def values(group: str, name: str = "default") -> dict[str, Any]:
    """Return the values of ``conf/GROUP/NAME.yaml`` as plain data."""
    from omegaconf import OmegaConf

    of_group = cast(dict[Any, Any], OmegaConf.to_container(OmegaConf.load(CONF / group / f"{name}.yaml"), resolve=True))
    settings: dict[str, Any] = {}
    for base in of_group.pop("defaults", ["_self_"]):  # files of the same group, as Hydra composes them
        settings |= {str(key): value for key, value in of_group.items()} if base == "_self_" else values(group, base)
    return settings
