"""Learning, searching and judging of mathematical documents as graphs.

    from mathamr import MathAMR

    model = MathAMR.from_pretrained("models/arqmath")
    model.similarity(model.encode("Is $x^2+1$ prime?"), model.encode("Prove that $x^2+1$ is irreducible."))

Names are imported on first use, so modules that do not need torch can be imported without it.
"""

from typing import TYPE_CHECKING

from graphs.lazy_names import on_first_use
from mathamr.memory import use_huge_pages

if TYPE_CHECKING:
    from graphs.corpus.post import Post
    from mathamr.pretrained.model import MathAMR
    from mathamr.pretrained.post_index import PostIndex

use_huge_pages()  # before torch allocates

__all__ = ["MathAMR", "Post", "PostIndex"]

__getattr__ = on_first_use(
    __name__,
    {"MathAMR": "mathamr.pretrained.model", "Post": "graphs.corpus.post", "PostIndex": "mathamr.pretrained.post_index"},
)


def __dir__() -> list[str]:
    """Return the public names, which an interpreter completes, too."""
    return __all__
