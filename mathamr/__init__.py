"""Learning, searching and judging of mathematical documents as graphs.

    from mathamr import MathAMR

    model = MathAMR.from_pretrained("models/arqmath")
    model.similarity(model.encode("Is $x^2+1$ prime?"), model.encode("Prove that $x^2+1$ is irreducible."))

Names are imported on first use, so that a part of the package is imported without torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from graphs.corpus.post import Post
    from mathamr.pretrained.model import MathAMR
    from mathamr.pretrained.post_index import PostIndex

__all__ = ["MathAMR", "Post", "PostIndex"]

_MODULES = {
    "MathAMR": "mathamr.pretrained.model",
    "Post": "graphs.corpus.post",
    "PostIndex": "mathamr.pretrained.post_index",
}


def __getattr__(name: str) -> object:
    """Import a name of ``__all__`` on its first use (PEP 562)."""
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
