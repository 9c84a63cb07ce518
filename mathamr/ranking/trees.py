"""LambdaMART: boosted trees that are fitted to nDCG (Burges 2010), by LightGBM, an optional package.

    ranker = fit_lambdamart(topics, leaves=4, trees=60)
    ranker.scores(features)        # (documents,)

The fitted trees are plain lists (:class:`Tree`): a file of them is JSON, and reading it needs no LightGBM and runs
nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from graphs.errors import ConfigError, RetrievalError, faults_as
from mathamr.ranking.judged import Floats, JudgedTopic

_MOST_NODES = 10_000


@dataclass(frozen=True)
class Tree:
    """A binary tree as lists, a node after its parent.

    Attributes:
        feature: feature that a node asks for; -1 at a leaf.
        threshold: largest value that goes left.
        left: place of the left child; 0 at a leaf.
        right: place of the right child; 0 at a leaf.
        value: value of a leaf; 0 elsewhere.
    """

    feature: list[int]
    threshold: list[float]
    left: list[int]
    right: list[int]
    value: list[float]

    def scores(self, features: Floats) -> Floats:
        """Return the value of the leaf of each document (documents,)."""
        feature, threshold = np.array(self.feature), np.array(self.threshold)
        left, right, rows = np.array(self.left), np.array(self.right), np.arange(len(features))
        place = np.zeros(len(features), dtype=np.int64)
        while (inner := feature[place] >= 0).any():  # ends: a child is behind its parent
            column = np.maximum(feature[place], 0)
            down = np.where(features[rows, column] <= threshold[place], left[place], right[place])
            place = np.where(inner, down, place)
        return np.array(self.value, dtype=np.float64)[place]


@dataclass(frozen=True)
class TreeRanker:
    """A sum of trees; ``gains`` are the shares of each feature in the gain of all splits (features,)."""

    trees: Sequence[Tree]
    gains: Floats

    def scores(self, features: Floats) -> Floats:
        """Return a score for each document (documents,), of its features (documents, features)."""
        total = np.zeros(len(features))
        for tree in self.trees:
            total += tree.scores(features)
        return total

    def importances(self) -> Floats:
        """Return the share of each feature in the gain (features,)."""
        return self.gains

    def record(self) -> dict[str, Any]:
        """Return the ranker as JSON."""
        return {"kind": "trees", "gains": self.gains.tolist(), "trees": [asdict(tree) for tree in self.trees]}


def read_trees(record: Mapping[str, Any], features: int) -> TreeRanker:
    """Return the ranker that :meth:`TreeRanker.record` describes.

    Raises:
        RetrievalError: trees that do not end, that ask for other features, or with values that are not finite.
    """
    with faults_as(RetrievalError, "a ranker of trees lacks numbers: {}"):
        trees = [
            Tree(
                [int(one) for one in own["feature"]],
                [float(one) for one in own["threshold"]],
                [int(one) for one in own["left"]],
                [int(one) for one in own["right"]],
                [float(one) for one in own["value"]],
            )
            for own in record["trees"]
        ]
        gains = np.array(record["gains"], dtype=np.float64)
    if not all(np.isfinite([*tree.threshold, *tree.value]).all() for tree in trees):
        raise RetrievalError("a ranker of trees has a threshold or a value that is no finite number")
    for tree in trees:
        size = len(tree.feature)
        sizes = {size, *(len(own) for own in (tree.threshold, tree.left, tree.right, tree.value))}
        inner = [place for place, feature in enumerate(tree.feature) if feature >= 0]
        whole = sizes == {size} and 0 < size <= _MOST_NODES and all(feature < features for feature in tree.feature)
        children = [(place, child) for place in inner for child in (tree.left[place], tree.right[place])]
        if not whole or any(not place < child < size for place, child in children):
            raise RetrievalError(f"a tree does not fit {features} features, or a node of it comes before its parent")
    if gains.shape != (features,) or not np.isfinite(gains).all():
        raise RetrievalError(f"a ranker of trees needs {features} finite gains")
    return TreeRanker(trees, gains)


def fit_lambdamart(topics: Sequence[JudgedTopic], leaves: int, trees: int) -> TreeRanker:
    """Return few small trees that are fitted to judged topics; raise ConfigError without LightGBM."""
    try:
        import lightgbm
    except ImportError as error:
        raise ConfigError(
            "learned.learner=lambdamart needs LightGBM: pip install 'mathamr-plus[ranking]'; or use "
            "learned.learner=ridge"
        ) from error
    options = {
        "objective": "lambdarank",
        "label_gain": [0, 1, 2, 3],  # linear gains, as nDCG'
        "lambdarank_truncation_level": 100,
        "learning_rate": 0.05,
        "num_leaves": leaves,
        "min_data_in_leaf": 10,
        "feature_pre_filter": False,
        "verbosity": -1,
        "seed": 0,
        "deterministic": True,
        "force_row_wise": True,
        "num_threads": 1,
    }
    data = lightgbm.Dataset(
        np.concatenate([topic.features for topic in topics]),
        np.minimum(np.concatenate([topic.grades for topic in topics]), 3),
        group=[len(topic.grades) for topic in topics],
        params={"verbosity": -1, "feature_pre_filter": False},
    )
    booster = lightgbm.train(options, data, num_boost_round=trees)
    gains = booster.feature_importance("gain").astype(np.float64)
    fitted = [_tree(own["tree_structure"]) for own in booster.dump_model()["tree_info"]]
    return TreeRanker(fitted, gains / max(gains.sum(), 1e-12))


def _tree(structure: Mapping[str, Any]) -> Tree:
    """Return a tree of LightGBM's ``dump_model`` as lists."""
    tree = Tree([], [], [], [], [])
    waiting: list[tuple[Mapping[str, Any], list[int] | None, int]] = [(structure, None, 0)]
    while waiting:
        node, link, parent = waiting.pop()
        if link is not None:
            link[parent] = len(tree.feature)
        inner = "split_feature" in node
        tree.feature.append(int(node["split_feature"]) if inner else -1)
        tree.threshold.append(float(node["threshold"]) if inner else 0.0)
        tree.value.append(0.0 if inner else float(node["leaf_value"]))
        tree.left.append(0)
        tree.right.append(0)
        if inner:
            place = len(tree.feature) - 1
            waiting += [(node["right_child"], tree.right, place), (node["left_child"], tree.left, place)]
    return tree
