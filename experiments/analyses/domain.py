"""Domain shift: distances of mathematical posts from text without mathematics.

Such texts are the lines of the file ``geometry.general``, and the prose of the posts without their formulas. This is a
part of ``geometry.json``, for models that encode texts:

    {"posts": 200, "corpora": {"general.txt": {"texts": 200, "distances": [0.91, ...], "mmd": [0.31, 0.001],
                                               "lengths": {"posts": 5.1, "corpus": 5.4, "d": 0.2, "wasserstein": 0.3}},
                               "prose": {...}}}

``distances`` are those of each post to its nearest text of the corpus (the paper's section II-F), ``mmd`` the squared
mean discrepancy of posts and corpus with its p, ``lengths`` the medians of the lengths of token vectors, their largest
gap and Wasserstein's distance.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from graphs.corpus.text.latex_text import parts
from graphs.errors import ConfigError
from graphs.stores.posts import PostText
from mathamr.analysis.shift import mean_discrepancy, nearest_distances, shift
from mathamr.analysis.similarities import Floats
from mathamr.stages.topic_sets import EmbeddingSpace

TEXTS = 200  # of each corpus, drawn at random
FEWEST_WORDS = 5


def of_space(
    space: EmbeddingSpace, vectors: Floats, texts: Mapping[str, PostText], general: str | None
) -> dict[str, Any] | None:
    """Return the distances of posts with formulas from each corpus; None without an encoder, or without such posts.

    Args:
        vectors: a vector for each of the space's posts (posts, d).
        general: file of the general corpus, as of :func:`read_corpus`; None: only prose.
    """
    if space.encode is None or space.lengths is None:
        return None
    proses = {place: prose_of(texts[post]) for place, post in enumerate(space.posts) if post in texts}
    usable = [place for place, prose in proses.items() if prose]
    if not usable:
        return None
    places = _drawn(usable)
    posts = [space.posts[place] for place in places]
    corpora = {"prose": [proses[place] for place in places]}
    if general is not None:
        corpora = {Path(general).name: read_corpus(Path(general))} | corpora
    lengths = space.lengths(posts)[0]
    return {
        "posts": len(posts),
        "corpora": {name: _gap(space, vectors[places], lengths, corpus) for name, corpus in corpora.items()},
    }


def read_corpus(path: Path) -> list[str]:
    """Return at most 200 lines of a file, drawn at random among those of at least five words.

    Raises:
        ConfigError: the file cannot be read, or has no such line.
    """
    try:
        lines = [" ".join(line.split()) for line in path.read_text("utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"geometry.general={path} cannot be read: {error}") from error
    long = [line for line in lines if len(line.split()) >= FEWEST_WORDS]
    if not long:
        raise ConfigError(f"geometry.general={path} has no line of {FEWEST_WORDS} words; write a text on each line")
    return _drawn(long)


def prose_of(post: PostText) -> str:
    """Return the words of a post without its formulas; "" if it has no formula, or fewer than five words."""
    if not post.text.formulas:
        return ""
    pieces = (piece for sentence in post.text.sentences for piece in parts(sentence, post.text))
    words = " ".join(piece for piece in pieces if isinstance(piece, str)).split()
    return " ".join(words) if len(words) >= FEWEST_WORDS else ""


def _drawn(among: Sequence[Any]) -> list[Any]:
    if len(among) <= TEXTS:
        return list(among)
    return [among[place] for place in np.sort(np.random.default_rng(0).choice(len(among), TEXTS, replace=False))]


def _gap(space: EmbeddingSpace, vectors: Floats, lengths: Floats, corpus: Sequence[str]) -> dict[str, Any]:
    """Compare posts (n, d), whose tokens have ``lengths``, with a corpus."""
    assert space.encode is not None
    others, other_lengths = space.encode(corpus)
    test, apart = mean_discrepancy(vectors, others), shift(lengths, other_lengths)
    return {
        "texts": len(corpus),
        "distances": [round(float(value), 5) for value in nearest_distances(vectors, others)],
        "mmd": [round(test.squared, 5), test.p],
        "lengths": {
            "posts": round(float(np.median(lengths)), 5),
            "corpus": round(float(np.median(other_lengths)), 5),
            "d": round(apart.statistic, 5),
            "wasserstein": round(apart.wasserstein, 5),
        },
    }
