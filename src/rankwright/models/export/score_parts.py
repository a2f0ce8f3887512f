"""Scorers as sums of parts of a few simple kinds: what export targets write."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import singledispatch

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.scorers import Feature, KernelSum, Linear, Network, Scorer, Stumps, Trees, WeightedSum
from rankwright.scorers.lightgbm_trees import MAX_LEAVES, Tree


@dataclass(slots=True, eq=False)
class ScoreParts:
    """A scorer as an intercept plus a linear part, stumps, trees, networks and kernel sums.

    Scaling is folded into linear parts; networks and kernel sums keep theirs.

    Parameters
    ----------
    n_features : int
        The number of features.
    intercept : float
        The constant part of the score.
    coef : array of shape (n_features,), optional
        The weights of the linear part; None if there is none.
    stumps : list of Stumps
        The sums of stumps; weights are multiplied in.
    trees : list of Tree
        The trees, in the order in which they are summed; weights are multiplied in.
    networks : list of (float, Network)
        The networks with their weights.
    kernel_sums : list of (float, KernelSum)
        The kernel sums with their weights.
    """

    n_features: int
    intercept: float = 0.0
    coef: Floats | None = None
    stumps: list[Stumps] = field(default_factory=list)
    trees: list[Tree] = field(default_factory=list)
    networks: list[tuple[float, Network]] = field(default_factory=list)
    kernel_sums: list[tuple[float, KernelSum]] = field(default_factory=list)

    @property
    def kinds(self) -> frozenset[str]:
        """The kinds of parts: "linear", "stumps", "trees", "categories" (in trees), "network" and "kernel sum"."""
        found = {
            "linear": self.coef is not None,
            "stumps": bool(self.stumps),
            "trees": bool(self.trees),
            "categories": any(tree.categorical.any() for tree in self.trees),
            "network": bool(self.networks),
            "kernel sum": bool(self.kernel_sums),
        }
        return frozenset(kind for kind, is_there in found.items() if is_there)

    @property
    def families(self) -> frozenset[str]:
        """The families of functions of which it is a sum; stumps are trees."""
        own = self.kinds - {"categories", "stumps"}
        return own | {"trees"} if self.stumps else own

    def list_trees(self) -> list[Tree]:
        """Return the trees, then the stumps as trees."""
        return [*self.trees, *(tree for stumps in self.stumps for tree in convert_stumps_to_trees(stumps))]

    def add_linear(self, coef: Floats) -> None:
        """Add a weight for each feature."""
        self.coef = coef if self.coef is None else self.coef + coef


def split_scorer(scorer: Scorer, n_features: int) -> ScoreParts:
    """Return a scorer as a sum of simple parts.

    Examples
    --------
    >>> total = WeightedSum([Linear(np.array([2.0, -1.0]), 3.0), Feature(1)], np.array([1.0, 0.5]), 0.25)
    >>> parts = split_scorer(total, n_features=2)
    >>> parts.coef.tolist(), parts.intercept
    ([2.0, -0.5], 3.25)
    """
    parts = ScoreParts(n_features)
    if isinstance(scorer, WeightedSum):
        parts.intercept = scorer.sum_intercepts()
        for weight, part in scorer.list_parts():
            _add_part(part, weight, parts)
    else:
        _add_part(scorer, 1.0, parts)
    return parts


@singledispatch
def _add_part(scorer: Scorer, weight: float, parts: ScoreParts) -> None:
    """Add a scorer times its weight to the parts; each kind of scorer registers its own function."""
    raise NotImplementedError(f"export of scorers of kind {scorer.kind}")


@_add_part.register
def _(scorer: Linear, weight: float, parts: ScoreParts) -> None:
    parts.add_linear(weight * scorer.coef)
    parts.intercept += weight * scorer.intercept


@_add_part.register
def _(scorer: Feature, weight: float, parts: ScoreParts) -> None:
    coef = np.zeros(parts.n_features)
    coef[scorer.index] = weight * scorer.sign
    parts.add_linear(coef)


@_add_part.register
def _(scorer: Stumps, weight: float, parts: ScoreParts) -> None:
    own = scorer if weight == 1.0 else Stumps(scorer.feature, scorer.threshold, weight * scorer.weight, scorer.missing)
    parts.stumps.append(own)


@_add_part.register
def _(scorer: Trees, weight: float, parts: ScoreParts) -> None:
    parts.trees += [tree if weight == 1.0 else tree.scale(weight) for tree in scorer.forest.trees]


@_add_part.register
def _(scorer: Network, weight: float, parts: ScoreParts) -> None:
    parts.networks.append((weight, scorer))


@_add_part.register
def _(scorer: KernelSum, weight: float, parts: ScoreParts) -> None:
    parts.kernel_sums.append((weight, scorer))


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


def find_least_score(parts: ScoreParts) -> float | None:
    """Return a lower limit of all scores, which trees and stumps have; None if a part has none."""
    if parts.coef is not None or parts.networks or parts.kernel_sums:
        return None
    return parts.intercept + sum(float(tree.values.min()) for tree in parts.list_trees())


def round_down_to_float32(thresholds: Floats) -> Floats:
    """Return the largest float32 up to each threshold, as float32: for a float32 x, ``x <= t`` stays the same.

    An infinite threshold becomes the largest finite float32, which JSON can hold.

    >>> round_down_to_float32(np.array([0.5, 0.1])).tolist()
    [0.5, 0.09999999403953552]
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
        down = np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    largest = np.finfo(np.float32).max
    return np.clip(down, -largest, largest)


def raise_to_next_float32(thresholds: Floats) -> Floats:
    """Return the least float32 above each threshold, as float32: for a float32 x, ``x <= t`` becomes ``x < t``.

    It is infinity where a threshold is the largest float32 or more, as where only missing values go right.

    >>> raise_to_next_float32(np.array([0.5, 1e308])).tolist()
    [0.5000000596046448, inf]
    """
    with np.errstate(over="ignore"):
        return np.nextafter(round_down_to_float32(thresholds), np.float32(np.inf))
