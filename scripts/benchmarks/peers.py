"""Programs that benchmarks compare with: the extra ``bench`` installs them, and a missing one is named.

>>> peer("json", "json").dumps([1])
'[1]'
>>> peer("no_such_module", "no-such-package")
left out: no-such-package is not installed; get it with: pip install -e '.[bench]'
"""

from __future__ import annotations

import importlib
from typing import Any

GET = "pip install -e '.[bench]'"


def peer(module: str, package: str) -> Any | None:
    """Import a peer; if it is missing, print how to install it and return None."""
    try:
        return importlib.import_module(module)
    except ImportError:
        print(f"left out: {package} is not installed; get it with: {GET}")
        return None
