"""Scores of sums of regression trees, and the leaves that documents fall into."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, inlined, kernel

_BLOCK = 64  # documents at a time, which stay in the cache while one tree after another looks at them


class Nodes(NamedTuple):
    """The nodes of all trees, one tree after another; the root of a tree is its first."""

    feature: Ints  # what a node looks at
    threshold: Floats  # at most this goes left
    missing_left: NDArray[np.bool_]  # whether a missing value goes left
    left: Ints  # the node it leads to, counted within the tree; or ~leaf
    right: Ints
    first_node: Ints  # of each tree, and the end
    first_leaf: Ints
    value: Floats  # of each leaf


@inlined
def _fall(X: Floats, i: int, nodes: Nodes, first: int) -> int:
    """The leaf of a document, counted within the tree."""
    at = 0
    while at >= 0:
        node = first + at
        x = X[i, nodes.feature[node]]
        goes_left = x <= nodes.threshold[node] or (x != x and nodes.missing_left[node])
        at = nodes.left[node] if goes_left else nodes.right[node]
    return ~at


@kernel
def tree_scores(X: Floats, nodes: Nodes) -> Floats:
    """The sum of the trees' values, in the order of the trees."""
    n, out = len(X), np.zeros(len(X))
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        for t in range(len(nodes.first_leaf) - 1):
            first, leaf = nodes.first_node[t], nodes.first_leaf[t]
            if nodes.first_node[t + 1] == first:  # nothing but a leaf
                for i in range(start, stop):
                    out[i] += nodes.value[leaf]
                continue
            for i in range(start, stop):
                out[i] += nodes.value[leaf + _fall(X, i, nodes, first)]
    return out


@kernel
def tree_leaves(X: Floats, nodes: Nodes, out: Ints) -> None:
    """Write by tree (a row) and document (a column) the leaf that it falls into, counted within the tree."""
    n = len(X)
    for start in range(0, n, _BLOCK):
        stop = min(start + _BLOCK, n)
        for t in range(len(nodes.first_leaf) - 1):
            first = nodes.first_node[t]
            if nodes.first_node[t + 1] == first:
                out[t, start:stop] = 0
                continue
            for i in range(start, stop):
                out[t, i] = _fall(X, i, nodes, first)


@kernel
def leaf_values(leaves: Ints, values: Floats) -> Floats:
    """The value of the leaf of each document."""
    out = np.empty(len(leaves))
    for i in range(len(leaves)):
        out[i] = values[leaves[i]]
    return out


@kernel
def leaf_scores(leaves: Ints, first_leaf: Ints, values: Floats, weight: Floats) -> Floats:
    """The sum over the trees of weight times value, added up as ``tree_scores`` does with the products as values."""
    n, out = leaves.shape[1], np.zeros(leaves.shape[1])
    for t in range(len(weight)):
        own = values[first_leaf[t] : first_leaf[t + 1]] * weight[t]
        row = leaves[t]
        for i in range(n):
            out[i] += own[row[i]]
    return out
