"""Names of a package that are imported on first use (PEP 562), so that a part of it is imported without torch.

>>> get = on_first_use("os", {"join": "os.path"})
>>> get("join")("a", "b")
'a/b'
>>> get("jion")
Traceback (most recent call last):
  ...
AttributeError: module 'os' has no attribute 'jion'
"""

from collections.abc import Callable, Mapping
from importlib import import_module


def on_first_use(package: str, modules: Mapping[str, str]) -> Callable[[str], object]:
    """Return the ``__getattr__`` of a package; ``modules`` has the module of each name."""

    def get(name: str) -> object:
        if name not in modules:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(modules[name]), name)

    return get
