"""Stumps as trees: one tree for all stumps of a feature."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.scorers.lightgbm_trees import MAX_LEAVES, Tree
from rankwright.scorers.stump_sum import Stumps


def convert_stumps_to_trees(stumps: Stumps) -> list[Tree]:
    """Return stumps as trees, one for all stumps of a feature that have the same value where it is missing.

    Such a tree is a binary search among the thresholds. Compared with a tree per stump it is smaller and faster, and
    rounding errors are fewer. Stumps that refuse missing values treat them as 0, as trees do that were trained without
    missing values.
    """
    missing = np.zeros(len(stumps), dtype=bool) if stumps.missing is None else stumps.missing
    trees = []
    for feature, value in sorted(set(zip(stumps.feature.tolist(), missing.tolist(), strict=True))):
        own = (stumps.feature == feature) & (missing == value)
        thresholds, place = np.unique(stumps.threshold[own].astype(np.float64), return_inverse=True)
        jumps = np.bincount(place, weights=stumps.weight[own]).astype(np.float64)
        for start in range(0, len(jumps), MAX_LEAVES - 1):
            some = slice(start, start + MAX_LEAVES - 1)
            # a missing value is below all thresholds where its stumps are 0, above all where they are 1
            is_left = thresholds[some] >= 0.0 if stumps.missing is None else np.full(len(jumps[some]), not value)
            trees.append(_build_search_tree(feature, thresholds[some], is_left, jumps[some]))
    return trees


def _build_search_tree(feature: int, thresholds: Floats, missing_left: NDArray[np.bool_], jumps: Floats) -> Tree:
    """Return the balanced tree of a function of one feature that is 0 and then jumps at each of sorted thresholds."""
    n = len(thresholds)
    middles: list[int] = []  # the threshold of each node, in the order of the nodes
    children: Ints = np.empty((2, n), dtype=np.int64)  # left and right
    pending = [(0, n, 0, -1)]  # ranges of thresholds without a node: first, behind the last, side and parent
    while pending:
        first, end, side, parent = pending.pop()
        if parent >= 0:
            children[side, parent] = len(middles) if first < end else ~first
        if first < end:
            middle = (first + end) // 2
            pending += [(middle + 1, end, 1, len(middles)), (first, middle, 0, len(middles))]
            middles.append(middle)
    order = np.array(middles, dtype=np.int64)
    values = np.concatenate([[0.0], np.cumsum(jumps)])
    return Tree.from_nodes(
        np.full(n, feature), thresholds[order], missing_left[order], children[0], children[1], values
    )
