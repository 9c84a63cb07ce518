"""Places of posts in a plane, with their titles and tags. Part of ``geometry.json``:

    {"posts": ["7", ...], "titles": ["Why is $\\sqrt2$ irrational?", ...], "tags": [["number-theory"], ...],
     "places": {"pca": [[0.31, -0.02], ...], "tsne": [...]}}

An answer has the title and the tags of its question. A method that cannot place the vectors is left out.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from graphs.errors import AnalysisError
from graphs.stores.posts import PostText
from mathamr.analysis.projections import project
from mathamr.analysis.similarities import Floats


def of_posts(
    posts: Sequence[str],
    vectors: Floats,
    texts: Mapping[str, PostText],
    tags: Mapping[str, Sequence[str]],
    methods: Sequence[str],
) -> dict[str, Any] | None:
    """Return the posts and their places; None if no method can place them.

    Args:
        posts: ids (n,).
        vectors: a vector for each post (n, d).
        methods: keys of :data:`mathamr.analysis.projections.METHODS`.
    """
    places: dict[str, list[list[float]]] = {}
    for method in methods:
        try:
            found = project(vectors, method)
        except AnalysisError:
            continue
        places[method] = found.round(4).tolist()
    if not places:
        return None
    return {
        "posts": list(posts),
        "titles": [texts[post].title if post in texts else "" for post in posts],
        "tags": [list(tags.get(post, ())) for post in posts],
        "places": places,
    }
