"""Scores of sums of regression trees, and the leaves of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, inlined, kernel

_BLOCK = 64  # documents at a time, which stay in the cache while one tree after another reads them


class TreeNodes(NamedTuple):
    """The nodes of all regression trees of an ensemble, as arrays, one tree after another, its root first."""

    feature: Ints
    threshold: Floats  # values up to here go left; NaN where categories in a set do
    missing_left: NDArray[np.bool_]  # whether a missing value goes left
    left: Ints  # the left child, counted within the tree; or ~leaf
    right: Ints
    first_node: Ints  # of each tree, and the end
    first_leaf: Ints
    value: Floats  # of each leaf
    first_word: Ints  # of the set of each node, and the end; empty where no node splits by category
    words: NDArray[np.uint32]  # the sets of categories that go left: a bit for each category


@inlined
def _is_in_set(category: float, words: NDArray[np.uint32], start: int, stop: int) -> bool:
    """Return whether a category is in the set of these words; a missing value, NaN, is in none."""
    if not 0.0 <= category < 32.0 * (stop - start):
        return False
    number = np.int64(category)
    return bool((words[start + (number >> 5)] >> np.uint32(number & 31)) & np.uint32(1))


@inlined
def _find_leaf(X: Floats, i: int, nodes: TreeNodes, first: int) -> int:
    """Return the number of the leaf, within its tree, that document ``i`` falls into."""
    at = 0
    while at >= 0:
        node = first + at
        x, threshold = X[i, nodes.feature[node]], nodes.threshold[node]
        if threshold != threshold:
            goes_left = _is_in_set(x, nodes.words, nodes.first_word[node], nodes.first_word[node + 1])
        else:
            goes_left = x <= threshold or (x != x and nodes.missing_left[node])
        at = nodes.left[node] if goes_left else nodes.right[node]
    return ~at


@kernel
def compute_tree_scores(X: Floats, nodes: TreeNodes) -> Floats:
    """Return the score of each document: the sum of the values of its leaves, in the order of the trees."""
    n, out = len(X), np.zeros(len(X))
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        for t in range(len(nodes.first_leaf) - 1):
            first, leaf = nodes.first_node[t], nodes.first_leaf[t]
            if nodes.first_node[t + 1] == first:  # a single leaf
                for i in range(start, stop):
                    out[i] += nodes.value[leaf]
                continue
            for i in range(start, stop):
                out[i] += nodes.value[leaf + _find_leaf(X, i, nodes, first)]
    return out


@kernel
def find_leaves(X: Floats, nodes: TreeNodes, out: Ints) -> None:
    """Write the number, within its tree (a row), of the leaf that each document (a column) falls into."""
    n = len(X)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        for t in range(len(nodes.first_leaf) - 1):
            first = nodes.first_node[t]
            if nodes.first_node[t + 1] == first:
                out[t, start:stop] = 0
                continue
            for i in range(start, stop):
                out[t, i] = _find_leaf(X, i, nodes, first)


@kernel
def look_up_leaf_values(leaves: Ints, values: Floats) -> Floats:
    """Return for each document the value of its leaf in one tree."""
    out = np.empty(len(leaves))
    for i in range(len(leaves)):
        out[i] = values[leaves[i]]
    return out


@kernel
def compute_leaf_scores(leaves: Ints, first_leaf: Ints, values: Floats, weight: Floats) -> Floats:
    """Return scores of documents whose leaves are known: the sum over trees of ``weight`` times the leaf's value.

    The order of the sum is that of ``compute_tree_scores``.
    """
    n, out = leaves.shape[1], np.zeros(leaves.shape[1])
    for t in range(len(weight)):
        own = values[first_leaf[t] : first_leaf[t + 1]] * weight[t]
        row = leaves[t]
        for i in range(n):
            out[i] += own[row[i]]
    return out
