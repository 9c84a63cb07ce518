"""Posts as points in planes, by tag: a :class:`experiments.report.blocks.Map` for the page.

>>> tags = [["algebra", "rings"], ["rings"], ["analysis"], []]
>>> groups_of(tags, named=1)  # the most frequent tag has a group; a post is in the first of its tags that has one
(['rings', 'other tags', 'no tag'], [0, 0, 1, 2])
>>> np.frombuffer(base64.b64decode(packed([[0.0, 1.0], [2.0, 5.0]])), "<i2").tolist()
[-16384, -32767, 16384, 32767]
"""

from __future__ import annotations

import base64
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from experiments.report.blocks import Map
from mathamr.analysis.plot_styles import COLOURS
from mathamr.analysis.projections import METHODS

LARGEST = 32_767
"""Largest coordinate of a place; a longer side of a plane is from -32,767 to 32,767."""
_OTHER, _NONE = "other tags", "no tag"


def map_of(panels: Mapping[str, Mapping[str, Any]], sampled: Mapping[str, int]) -> Map:
    """Return a map with a view for each condition and method.

    Args:
        panels: label of a condition -> ``projection`` of its ``geometry.json``.
        sampled: number of ``posts`` shown, and ``of_posts`` searched.
    """
    titles: dict[str, str] = {}
    tags: dict[str, Sequence[str]] = {}
    for one in panels.values():
        titles |= dict(zip(one["posts"], one["titles"], strict=True))
        tags |= dict(zip(one["posts"], one["tags"], strict=True))
    posts = list(titles)
    number = {post: place for place, post in enumerate(posts)}
    names, groups = groups_of([tags[post] for post in posts])
    views = []
    for label, one in panels.items():
        own = None if one["posts"] == posts else [number[post] for post in one["posts"]]
        for method, places in one["places"].items():
            views.append({"label": label, "method": METHODS[method], "posts": own, "places": packed(places)})
    counts = Counter(groups)
    data = {"posts": posts, "titles": list(titles.values()), "names": names, "groups": groups, "views": views}
    methods = ", ".join(dict.fromkeys(str(view["method"]) for view in views))
    found = [(name, counts[place]) for place, name in enumerate(names)]
    some = "" if sampled["posts"] == sampled["of_posts"] else f" (a sample of {sampled['of_posts']:,})"
    alt = f"{len(posts):,} posts{some} as points in a plane, by {methods}. Colours are tags: " + ", ".join(
        f"{name} {count:,}" for name, count in found
    )
    caption = (
        f"{len(posts):,} posts{some}, by the vector of the whole post. An answer has the title and tags of its "
        "question. A point has the colour of the first of its tags that is in the legend. PCA keeps distances as far "
        "as a plane can; t-SNE and UMAP keep neighbours, and distances between groups mean nothing. Each condition "
        "shows its first seed."
    )
    return Map(f"{alt}.", caption, found, data)


def groups_of(tags: Sequence[Sequence[str]], named: int = len(COLOURS)) -> tuple[list[str], list[int]]:
    """Return names of groups, and the group of each post by its tags: the ``named`` most frequent ones, or the rest."""
    counts = Counter(tag for own in tags for tag in own)
    common = sorted(counts, key=lambda tag: (-counts[tag], tag))[:named]
    place = {tag: number for number, tag in enumerate(common)}
    groups = [next((place[tag] for tag in own if tag in place), len(common) + (not own)) for own in tags]
    names = [*common, _OTHER, _NONE]
    used = sorted(set(groups))
    return [names[group] for group in used], [used.index(group) for group in groups]


def packed(places: ArrayLike) -> str:
    """Return places (n, 2) as little-endian 16-bit integers x, y, x, y, ... in base64; both axes have one scale."""
    array = np.asarray(places, dtype=np.float64).reshape(-1, 2)
    if not len(array):
        return ""
    low, high = array.min(axis=0), array.max(axis=0)
    scale = max(float(np.max(high - low)) / 2, 1e-12)
    whole = np.round((array - (low + high) / 2) / scale * LARGEST)
    return base64.b64encode(whole.astype("<i2").tobytes()).decode("ascii")
