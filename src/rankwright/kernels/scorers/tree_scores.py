"""Scores of sums of regression trees, and the leaves of documents."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.kernels.jit import Floats, Ints, inlined, inner_kernel, kernel
from rankwright.kernels.scorers.document_lanes import (
    LANE_ORDER,
    LANES,
    TILE,
    TREES_AT_ONCE,
    add_leaf_values,
    compare_known,
    compare_or_missing,
    count_mask_words,
    find_leaf_positions,
    set_in_mask,
    transpose_tile,
)

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


class TreeLayout(NamedTuple):
    """The trees of an ensemble as ``compute_block_scores`` takes them: conditions first, then trees made of them.

    A condition is a split that one or more nodes have; documents for which it holds go right. Trees of too many leaves
    have no place here: their nodes are followed one by one.
    """

    tile: Ints  # first column of each group of columns that is transposed
    run_column: Ints  # of each run of conditions on one feature: the transposed column,
    run_first: Ints  # the first condition, and the end,
    run_known: NDArray[np.bool_]  # and whether a missing value goes left
    threshold: Floats  # float32; of each condition
    set_column: Ints  # of each condition on categories, which come after the others: the transposed column,
    set_node: Ints  # and a node that has it
    group_tree: Ints  # of each group of trees that are processed together: the first tree, and the end,
    group_first: Ints  # the first entry of condition and start,
    group_rounds: Ints  # and how many nodes each tree has there; -1 for a tree of too many leaves
    condition: NDArray[np.uint32]  # of each node, those of the trees of a group taking turns
    start: NDArray[np.uint8]  # the leaf, counted from left to right, where the left side of each node begins
    value: Floats  # of each leaf, those of a tree from left to right
    plane: NDArray[np.uint8]  # the same as planes of bytes
    first_plane: Ints  # of each tree, or -1


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
def order_leaves(nodes: TreeNodes) -> tuple[Ints, Ints, Ints]:
    """Return the place of each leaf when its tree is read from left to right, and those where nodes' sides begin.

    The last two arrays are, for each node, the place of the first leaf of its left side and of its right side.
    """
    n = len(nodes.feature)
    place, start, right = np.zeros(len(nodes.value), np.int64), np.zeros(n, np.int64), np.zeros(n, np.int64)
    below = np.zeros(n, np.int64)  # leaves
    for t in range(len(nodes.first_leaf) - 1):
        first, last, leaf = nodes.first_node[t], nodes.first_node[t + 1], nodes.first_leaf[t]
        for node in range(last - 1, first - 1, -1):  # children come after their parents
            for child in (nodes.left[node], nodes.right[node]):
                below[node] += below[first + child] if child >= 0 else 1
        for node in range(first, last):
            left = nodes.left[node]
            right[node] = start[node] + (below[first + left] if left >= 0 else 1)
            for child, begin in ((left, start[node]), (nodes.right[node], right[node])):
                if child >= 0:
                    start[first + child] = begin
                else:
                    place[leaf + ~child] = begin
    return place, start, right


@inner_kernel
def _fill_columns(X: Floats, first: int, stop: int, tiles: Ints, columns: Floats) -> None:
    """Copy the features of at most 64 documents to columns of lanes: 16 columns for each of the tiles."""
    rows, width = X.reshape(-1), X.shape[1]
    whole = stop - (stop - first) % TILE if width >= TILE else first
    for k in range(len(tiles)):
        for i in range(first, whole, TILE):
            transpose_tile(rows, i * width + tiles[k], width, columns, k * TILE * LANES + i - first)
        for i in range(whole, stop):
            for j in range(min(TILE, width)):
                columns[(k * TILE + j) * LANES + i - first] = X[i, tiles[k] + j]


@inner_kernel
def _fill_masks(columns: Floats, nodes: TreeNodes, layout: TreeLayout, masks: NDArray[np.uint64]) -> None:
    """Write for each condition the mask of the lanes for which it holds."""
    for k in range(len(layout.run_column)):
        column, first, stop = layout.run_column[k] * LANES, layout.run_first[k], layout.run_first[k + 1]
        if layout.run_known[k]:
            compare_known(columns, column, layout.threshold, first, stop, masks)
        else:
            compare_or_missing(columns, column, layout.threshold, first, stop, masks)
    n, words = len(layout.threshold), count_mask_words()
    for k in range(len(layout.set_node)):
        low, high = nodes.first_word[layout.set_node[k]], nodes.first_word[layout.set_node[k] + 1]
        masks[(n + k) * words : (n + k + 1) * words] = 0
        for lane in range(LANES):
            x = columns[layout.set_column[k] * LANES + lane]
            set_in_mask(masks, n + k, lane, not _is_in_set(x, nodes.words, low, high))


@kernel
def compute_block_scores(X: Floats, nodes: TreeNodes, layout: TreeLayout) -> Floats:
    """Return the scores of ``compute_tree_scores``, to the bit, for float32 rows that are adjacent in memory.

    64 documents are scored at a time: all conditions first, then the leaf of each tree without a branch.
    """
    n, out = len(X), np.empty(len(X))
    columns, sums = np.zeros(len(layout.tile) * TILE * LANES, np.float32), np.empty(LANES)
    masks = np.zeros((len(layout.threshold) + len(layout.set_node) + 1) * count_mask_words(), np.uint64)
    positions = np.empty(TREES_AT_ONCE * LANES, np.uint8)
    for first in range(0, n, LANES):
        stop = min(first + LANES, n)
        _fill_columns(X, first, stop, layout.tile, columns)
        _fill_masks(columns, nodes, layout, masks)
        sums[:] = 0.0
        for g in range(len(layout.group_rounds)):
            tree = layout.group_tree[g]
            if layout.group_rounds[g] < 0:
                for i in range(LANES):
                    if first + LANE_ORDER[i] < stop:
                        leaf = _find_leaf(X, first + LANE_ORDER[i], nodes, nodes.first_node[tree])
                        sums[i] += nodes.value[nodes.first_leaf[tree] + leaf]
                continue
            find_leaf_positions(
                masks, layout.condition, layout.start, layout.group_first[g], layout.group_rounds[g], positions
            )
            for t in range(tree, layout.group_tree[g + 1]):
                first_leaf, place = nodes.first_leaf[t], (t - tree) * LANES
                add_leaf_values(layout.plane, layout.first_plane[t], layout.value, first_leaf, positions, place, sums)
        for i in range(LANES):
            if first + LANE_ORDER[i] < stop:
                out[first + LANE_ORDER[i]] = sums[i]
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
