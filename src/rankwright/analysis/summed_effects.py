"""The effects of features in sums of linear scorers, stumps and trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.scorers.lightgbm_trees import Tree
from rankwright.scorers.score_parts import ScoreParts
from rankwright.scorers.stump_sum import join_stumps


@dataclass(frozen=True, slots=True)
class SummedEffect:
    """The effect of a feature in a sum of linear scorers, stumps and trees: a weight, and a change by splits.

    Parameters
    ----------
    name : str
        The feature's name, or its number from 1.
    index : int
        Its column, from 0.
    weight : float
        What it is multiplied by in the linear part; 0 if it is not there.
    change : float
        The most by which stumps and trees can change the score when this feature changes alone.
    n_splits : int
        How many splits are on it; a stump is one.
    low, high : float
        The lowest and the highest threshold; NaN if there is none.
    n_categories : int or None
        The number of its categories, if splits are by category.
    """

    columns: ClassVar[tuple[str, ...]] = ("feature", "index", "weight", "change", "splits", "from", "to")
    header: ClassVar[tuple[str, ...]] = ("feature", "effect", "weight", "change", "splits", "from", "to", "linear", "")
    meaning: ClassVar[str] = (
        "A score is the sum of the features times their weights, and of a value of each tree. Change: the most by "
        "which trees can change the score when the feature changes alone. Thresholds are between from and to. Effect: "
        "the change, plus the size of the weight times the distance between from and to (1 without thresholds)."
    )
    name: str
    index: int
    weight: float
    change: float
    n_splits: int
    low: float
    high: float
    n_categories: int | None = None

    @property
    def size(self) -> float:
        """The effect: the change by splits and, between the lowest and the highest threshold, by the weight."""
        distance = self.high - self.low
        return self.change + abs(self.weight) * (1.0 if np.isnan(distance) else distance)

    def rows(self) -> list[tuple[Any, ...]]:
        """Return one row."""
        return [(self.name, self.index, self.weight, self.change, self.n_splits, self.low, self.high)]

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a row of the text."""
        ends = ["" if np.isnan(end) else f"{end:.4g}" for end in (self.low, self.high)]
        trend = "" if self.weight == 0.0 else "rises" if self.weight > 0.0 else "falls"
        last = trend if self.n_categories is None else f"{trend} {self.n_categories:,} categories".strip()
        figures = f"{self.size:.4g}", f"{self.weight:.4g}", f"{self.change:.4g}", f"{self.n_splits:,}"
        return self.name, *figures, *ends, last


def sum_effects(parts: ScoreParts, names: Sequence[str]) -> list[SummedEffect]:
    """Return the effect of each feature that the linear part, the stumps or the trees of a scorer use."""
    n = len(names)
    change, n_splits = np.zeros(n), np.zeros(n, dtype=np.int64)
    low, high = np.full(n, np.inf), np.full(n, -np.inf)
    weight = np.zeros(n) if parts.coef is None else parts.coef
    for tree in parts.trees:
        features, thresholds = tree.columns["split_feature"], tree.columns["threshold"]
        for feature, most in measure_changes(tree).items():
            change[feature] += most
        np.add.at(n_splits, features, 1)
        numeric = ~tree.categorical & np.isfinite(thresholds)
        np.minimum.at(low, features[numeric], thresholds[numeric])
        np.maximum.at(high, features[numeric], thresholds[numeric])
    if parts.stumps:
        stumps = join_stumps(parts.stumps)
        for k, feature in enumerate(stumps.steps.features.tolist()):
            thresholds, values, missing = stumps.steps.get_function(k)
            change[feature] += np.ptp(np.append(values, missing) if stumps.allow_nan else values)
            low[feature] = min(low[feature], thresholds[0])
            high[feature] = max(high[feature], thresholds[-1])
        np.add.at(n_splits, stumps.feature, 1)
    low, high = (np.where(low <= high, end, np.nan) for end in (low, high))
    return [
        SummedEffect(names[i], i, float(weight[i]), float(change[i]), int(n_splits[i]), float(low[i]), float(high[i]))
        for i in np.flatnonzero((weight != 0.0) | (n_splits > 0)).tolist()
    ]


def count_parts(parts: ScoreParts) -> str:
    """Return how many weights of features, stumps, trees and other scorers there are, in words.

    >>> count_parts(ScoreParts(3, coef=np.array([0.0, 2.0, 1.0])))
    '2 weights'
    """
    counts = {
        "weights": 0 if parts.coef is None else np.count_nonzero(parts.coef),
        "stumps": sum(map(len, parts.stumps)),
        "trees": sum(tree.n_splits > 0 for tree in parts.trees),
        "networks and kernel sums": len(parts.networks) + len(parts.kernel_sums),
    }
    return ", ".join(f"{count:,} {kind}" for kind, count in counts.items() if count) or "no model"


def measure_changes(tree: Tree) -> dict[int, float]:
    """Return for each feature that a tree uses the most by which it can change the tree's value alone.

    Splits of the same feature on one way to a leaf are taken as independent, so that the change may be less.

    >>> left, right, zero = np.array([~0]), np.array([~1]), np.zeros(1)
    >>> measure_changes(Tree.from_nodes(np.array([3]), zero, np.ones(1, bool), left, right, np.array([1.0, 5.0])))
    {3: 4.0}
    """
    n, low = tree.n_splits, [0.0] * tree.n_splits + tree.values.tolist()  # of each node, then of each leaf
    high, changes = low.copy(), list[dict[int, float]]([{} for _ in low])
    children = np.stack([tree.columns["left_child"], tree.columns["right_child"]])
    left, right = np.where(children < 0, n + ~children, children).tolist()
    feature = tree.columns["split_feature"].tolist()
    for node in range(n - 1, -1, -1):  # children come after their parents
        a, b = left[node], right[node]
        low[node], high[node] = min(low[a], low[b]), max(high[a], high[b])
        found = changes[node] = changes[a].copy()
        for other, change in changes[b].items():
            found[other] = max(found.get(other, 0.0), change)
        found[feature[node]] = max(found.get(feature[node], 0.0), high[a] - low[b], high[b] - low[a])
    return changes[0]
