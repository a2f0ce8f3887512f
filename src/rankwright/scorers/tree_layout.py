"""The arrangement of trees for scoring 64 documents at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.scorers.document_lanes import PLANE_LEAVES, TILE, TREES_AT_ONCE
from rankwright.kernels.scorers.tree_scores import TreeLayout, TreeNodes, order_leaves

_MAX_LEAVES = 255  # of a tree that is arranged: leaves are numbered with a byte
_UNREACHED = 255  # where the left side of a node begins that no document reaches
_PLANES = 8  # bytes of a value


def arrange_trees(nodes: TreeNodes, n_features: int) -> TreeLayout:
    """Return the trees of an ensemble as ``compute_block_scores`` takes them."""
    place, start, right = order_leaves(nodes)
    sizes = np.diff(nodes.first_node)
    is_arranged = sizes < _MAX_LEAVES
    tree_of_node = np.repeat(np.arange(len(sizes)), sizes)
    own = np.flatnonzero(is_arranged[tree_of_node])
    tree = tree_of_node[own]
    splits = _merge_splits(nodes, own)
    used = np.unique(nodes.feature[own]).astype(np.int64)
    tile, column = _cover_columns(used, n_features)
    group_tree, group_rounds = _group_trees(sizes, is_arranged)
    group_first = np.concatenate([[0], np.cumsum(np.maximum(group_rounds, 0) * TREES_AT_ONCE)]).astype(np.int64)
    group = np.searchsorted(group_tree, tree, side="right") - 1
    entry = group_first[group] + (right[own] - 1) * TREES_AT_ONCE + tree - group_tree[group]
    condition, starts = np.zeros(group_first[-1], np.uint32), np.full(group_first[-1], _UNREACHED, np.uint8)
    condition[entry], starts[entry] = splits.condition, start[own]
    value = np.empty(len(nodes.value))
    value[np.repeat(nodes.first_leaf[:-1], sizes + 1) + place] = nodes.value
    plane, first_plane = _cut_into_planes(value, nodes.first_leaf)
    return TreeLayout(
        tile,
        column[np.searchsorted(used, splits.run_feature)],
        splits.run_first,
        splits.run_known,
        splits.threshold,
        column[np.searchsorted(used, nodes.feature[splits.set_node])],
        splits.set_node,
        group_tree,
        group_first[:-1],
        group_rounds,
        condition,
        starts,
        value,
        plane,
        first_plane,
    )


class _MergedSplits(NamedTuple):
    """The different splits of nodes as conditions, by feature and by the side of missing values."""

    run_feature: Ints
    run_first: Ints
    run_known: NDArray[np.bool_]
    threshold: Floats
    set_node: Ints
    condition: Ints  # of each node


def _merge_splits(nodes: TreeNodes, own: Ints) -> _MergedSplits:
    """Return the different splits of these nodes, ascending; each split by category is a condition of its own."""
    by_set = np.isnan(nodes.threshold[own])
    numeric = own[~by_set]
    feature, known = nodes.feature[numeric], nodes.missing_left[numeric]
    threshold = round_down(nodes.threshold[numeric])
    order = np.lexsort((threshold, known, feature))
    feature, known, threshold = feature[order], known[order], threshold[order]
    begins_run, is_new = np.ones(len(order), bool), np.ones(len(order), bool)
    begins_run[1:] = (feature[1:] != feature[:-1]) | (known[1:] != known[:-1])
    is_new[1:] = begins_run[1:] | (threshold[1:] != threshold[:-1])
    number = np.cumsum(is_new) - 1
    n = int(is_new.sum())
    condition = np.empty(len(own), np.int64)
    condition[np.flatnonzero(~by_set)[order]] = number
    condition[by_set] = n + np.arange(int(by_set.sum()))
    return _MergedSplits(
        feature[begins_run].astype(np.int64),
        np.append(number[begins_run], n).astype(np.int64),
        known[begins_run],
        threshold[is_new],
        own[by_set],
        condition,
    )


def round_down(thresholds: Floats) -> Floats:
    """Return the largest float32 that is not above each threshold: float32 values are on the same side of both.

    >>> round_down(np.array([0.1, 1e300])).tolist()
    [0.09999999403953552, 3.4028234663852886e+38]
    """
    with np.errstate(over="ignore"):
        nearest = thresholds.astype(np.float32)
        return np.where(nearest > thresholds, np.nextafter(nearest, np.float32(-np.inf)), nearest)


def _cover_columns(used: Ints, n_features: int) -> tuple[Ints, Ints]:
    """Return the first columns of groups of 16 that cover the features used, and the place of each among all groups."""
    tiles: list[int] = []
    for feature in used.tolist():
        if not tiles or feature >= tiles[-1] + TILE:
            tiles.append(max(min(feature, n_features - TILE), 0))
    tile = np.array(tiles, dtype=np.int64)
    at = np.searchsorted(tile, used, side="right") - 1
    return tile, at * TILE + used - tile[at]


def _group_trees(sizes: Ints, is_arranged: NDArray[np.bool_]) -> tuple[Ints, Ints]:
    """Return the first tree of each group of at most four adjacent trees, and the end; and the most nodes of a tree.

    A tree that is not arranged is alone in its group, which has -1 in place of nodes.
    """
    trees = np.arange(len(sizes))
    changes = np.ones(len(sizes), bool)
    changes[1:] = is_arranged[1:] != is_arranged[:-1]
    since = trees - np.maximum.accumulate(np.where(changes, trees, 0))
    first = np.flatnonzero(~is_arranged | (since % TREES_AT_ONCE == 0))
    rounds = np.where(is_arranged[first], np.maximum.reduceat(sizes, first), -1)
    return np.append(first, len(sizes)).astype(np.int64), rounds.astype(np.int64)


def _cut_into_planes(value: Floats, first_leaf: Ints) -> tuple[NDArray[np.uint8], Ints]:
    """Return the first bytes of a tree's values, the second ones, ..., 64 each; and where those of each tree begin."""
    sizes = np.diff(first_leaf)
    is_cut = sizes <= PLANE_LEAVES
    number = np.cumsum(is_cut) - 1
    tree = np.repeat(np.arange(len(sizes)), sizes)
    leaf = np.arange(len(value)) - first_leaf[tree]
    values = np.zeros((int(is_cut.sum()), PLANE_LEAVES))
    cut = is_cut[tree]
    values[number[tree[cut]], leaf[cut]] = value[cut]
    planes = values.view(np.uint8).reshape(-1, PLANE_LEAVES, _PLANES).transpose(0, 2, 1)
    return np.ascontiguousarray(planes).ravel(), np.where(is_cut, number * PLANE_LEAVES * _PLANES, -1)
