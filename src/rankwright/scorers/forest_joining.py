"""Joining of forests from different sources into one: with one header, and with gains in common units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree


def join_forests(forests: Sequence[Forest]) -> Forest:
    """Return the trees of forests, at least one, that may come from different libraries, one after another.

    Splits keep their own sides of missing values. Gains of several forests, which may be in units of different losses,
    become those of ``compute_value_gains``.

    >>> join_forests([Forest.constant(3, 1.0), Forest.constant(3, 2.0)])
    Forest(2 trees of 3 features)
    """
    if len(forests) == 1:
        return forests[0]
    trees = [
        replace(tree, columns={**tree.columns, "split_gain": compute_value_gains(tree)})
        for forest in forests
        for tree in forest.trees
    ]
    splitting = [forest.header for forest in forests if any(tree.n_splits for tree in forest.trees)]
    return Forest(_join_headers(splitting or [forests[0].header]), tuple(trees))


def compute_value_gains(tree: Tree) -> Floats:
    """Return for each split how much of the variance of the tree's value it explains; 0 where counts are not known.

    A split of n documents into a and b, whose mean values differ by d, explains a b d^2 / n of the sum of squares. It
    is divided by the number of documents at the root. The gains of a tree add up to the variance of its value.

    >>> left, right, zero = np.array([~0]), np.array([~1]), np.zeros(1)
    >>> tree = Tree.from_nodes(np.array([0]), zero, np.ones(1, bool), left, right, np.array([1.0, 5.0]))
    >>> compute_value_gains(Tree({**tree.columns, "leaf_count": np.array([3, 1])})).tolist()
    [3.0]
    """
    n, gains = tree.n_splits, np.zeros(tree.n_splits)
    counts = [0.0] * n + tree.columns["leaf_count"].astype(np.float64).tolist()  # of each node, then of each leaf
    if n == 0 or min(counts[n:]) < 1.0:
        return gains
    means = [0.0] * n + tree.values.tolist()
    children = np.stack([tree.columns["left_child"], tree.columns["right_child"]])
    left, right = np.where(children < 0, n + ~children, children).tolist()
    for node in range(n - 1, -1, -1):  # children come after their parents
        a, b = left[node], right[node]
        counts[node] = counts[a] + counts[b]
        share, difference = counts[b] / counts[node], means[b] - means[a]
        means[node] = means[a] + share * difference
        gains[node] = counts[a] * share * difference * difference
    gains /= counts[0]
    return gains


def _join_headers(headers: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """Return one header for all: ranges of values and monotone constraints are those on which the headers agree.

    A header that does not know the range of a feature agrees with every other. A forest of features without names takes
    the names of one that has them.
    """
    different = [dict(entries) for entries in dict.fromkeys(tuple(header.items()) for header in headers)]
    joined, unnamed = different[0], " ".join(f"Column_{i}" for i in range(int(headers[0]["max_feature_idx"]) + 1))
    if len(different) == 1:
        return joined
    names = [header["feature_names"] for header in different]
    joined["feature_names"] = next((name for name in names if name != unnamed), unnamed)
    infos = zip(*(header["feature_infos"].split(" ") for header in different), strict=True)
    ranges = [sorted({*words} - {"none"}) for words in infos]
    joined["feature_infos"] = " ".join(words[0] if len(words) == 1 else "none" for words in ranges)
    constraints = [header.get("monotone_constraints", "0" + " 0" * (len(ranges) - 1)) for header in different]
    signs = [{*words} for words in zip(*(line.split(" ") for line in constraints), strict=True)]
    joined["monotone_constraints"] = " ".join(words.pop() if len(words) == 1 else "0" for words in signs)
    if "1" not in joined["monotone_constraints"]:
        del joined["monotone_constraints"]
    return joined
