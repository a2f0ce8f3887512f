"""Trees as the attributes of ONNX's TreeEnsembleRegressor."""

from __future__ import annotations

from collections import defaultdict
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.scorers.lightgbm_trees import Tree


class _ThresholdSplits(NamedTuple):
    """The splits of one tree: ``x <= threshold`` goes left; a child is a split, or ``~leaf``."""

    feature: Ints
    threshold: Floats
    missing_left: NDArray[np.bool_]
    left: Ints
    right: Ints


def list_tree_attributes(trees: list[Tree]) -> dict[str, Any]:
    """Return the attributes of a TreeEnsembleRegressor by name: lists, and arrays of doubles.

    The nodes of a tree are its splits, from the root, and then its leaves.
    """
    columns: dict[str, list[Any]] = defaultdict(list)
    modes: list[str] = []
    for number, tree in enumerate(trees):
        splits = _replace_category_splits(tree)
        n, k = len(splits.feature), len(tree.values)
        own = {
            "nodes_treeids": np.full(n + k, number),
            "nodes_nodeids": np.arange(n + k),
            "nodes_featureids": _append_leaves(splits.feature, k),
            "nodes_truenodeids": _append_leaves(_number_children(splits.left), k),
            "nodes_falsenodeids": _append_leaves(_number_children(splits.right), k),
            "nodes_missing_value_tracks_true": _append_leaves(splits.missing_left.astype(np.int64), k),
            "nodes_values_as_tensor": _append_leaves(splits.threshold, k),
            "target_treeids": np.full(k, number),
            "target_nodeids": np.arange(n, n + k),
            "target_ids": np.zeros(k, np.int64),
            "target_weights_as_tensor": tree.values,
        }
        modes += ["BRANCH_LEQ"] * n + ["LEAF"] * k
        for name, column in own.items():
            columns[name].append(column)
    joined = {name: np.concatenate(column) for name, column in columns.items()}
    found = {name: column if name.endswith("tensor") else column.tolist() for name, column in joined.items()}
    return {**found, "nodes_modes": modes}


def _append_leaves(column: Any, n_leaves: int) -> Any:
    """Return a column of splits with zeros for the leaves, which runtimes do not read."""
    return np.concatenate([column, np.zeros(n_leaves, column.dtype)])


def _number_children(child: Ints) -> Ints:
    """Return the numbers of children among all nodes: leaves come after the splits."""
    return np.where(child >= 0, child, len(child) + ~child)


def _replace_category_splits(tree: Tree) -> _ThresholdSplits:
    """Return the splits of a tree, each split by category as a chain of thresholds.

    For categories 2, 3 and 7 the chain is: x < 2 goes right, x < 4 left, x < 7 right, x < 8 left, all others right;
    a missing value goes right at once. Nodes of a chain share children. onnxruntime allows that for the child of
    ``true``, so the last ``false`` alone leads out of the chain.
    """
    feature, threshold, left, right = (
        tree.columns[name].tolist() for name in ("split_feature", "threshold", "left_child", "right_child")
    )
    missing = tree.missing_left.tolist()
    for node in np.flatnonzero(tree.categorical).tolist():
        own, yes, no = feature[node], left[node], right[node]
        ends = _list_ends(tree.category_sets[node]) or [np.inf]
        chain = [node, *range(len(feature), len(feature) + len(ends) - 1)]
        for column in (feature, threshold, left, right, missing):
            column += [0] * (len(ends) - 1)
        for i, (at, end) in enumerate(zip(chain, ends, strict=True)):
            feature[at], threshold[at], missing[at] = own, np.nextafter(end, -np.inf), i == 0
            left[at], right[at] = (no, yes)[i % 2], [*chain[1:], no][i]
    whole = [np.array(column, dtype=np.int64) for column in (feature, left, right)]
    return _ThresholdSplits(whole[0], np.array(threshold, dtype=np.float64), np.array(missing, dtype=bool), *whole[1:])


def _list_ends(words: Ints) -> list[float]:
    """Return where membership in a set of categories, given by words of 32 bits, begins and ends, in turn.

    >>> _list_ends(np.array([0b10001100]))
    [2.0, 4.0, 7.0, 8.0]
    """
    bits = (words[:, None] >> np.arange(32)) & 1
    found: list[float] = np.flatnonzero(np.diff(bits.ravel(), prepend=0, append=0)).astype(float).tolist()
    return found
