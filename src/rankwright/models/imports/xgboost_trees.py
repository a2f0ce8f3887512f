"""Trees of XGBoost's JSON as trees that score the same documents alike."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.models.imports.json_values import check_finite, get_integer, get_numbers, get_value
from rankwright.scorers.lightgbm_trees import MAX_LEAVES, Tree

_BELOW_ALL = -1e300  # a threshold that no float32 reaches


def read_tree(tree: Any, n_features: int, weight: float) -> Tree:
    """Return a tree of XGBoost with its values multiplied; raise InputError if it is damaged or splits by category.

    XGBoost sends ``x < t`` left in single precision, which is ``x <= s`` for the next smaller number s.
    """
    if not isinstance(tree, Mapping):
        raise InputError(f"a damaged model: a tree is {quote(tree)}; expected an object")
    if get_integer(get_value(tree, "tree_param", dict), "size_leaf_vector", 1) > 1:
        raise InputError("an XGBoost model with several scores a document; expected one")
    left = get_numbers(tree, "left_children", np.int64)
    n = len(left)
    right, feature = (get_numbers(tree, name, np.int64, n) for name in ("right_children", "split_indices"))
    condition = get_numbers(tree, "split_conditions", np.float32, n)
    missing_left = get_numbers(tree, "default_left", np.int64, n).astype(bool)
    if "split_type" in tree and get_numbers(tree, "split_type", np.int64, n).any():
        raise InputError(
            "an XGBoost model that splits features by category, which cannot be represented exactly; encode the "
            "categories as numbers and train it again, or train LightGBM on them"
        )
    splits, leaves, number = number_nodes(left.tolist(), right.tolist())
    own = feature[splits]
    if ((own < 0) | (own >= n_features)).any():
        raise InputError(f"a damaged model: a split of a feature that is not one of {n_features}")
    if np.isnan(condition[splits]).any():
        raise InputError("a damaged model: split_conditions has a number that is not finite")
    check_finite(condition[leaves], "split_conditions")
    threshold = _find_next_below(condition[splits])
    value = condition[leaves].astype(np.float64) * weight
    made = Tree.from_nodes(own, threshold, missing_left[splits], number[left[splits]], number[right[splits]], value)
    return Tree({**made.columns, **_read_statistics(tree, splits, leaves, n)})


def number_nodes(left: list[int], right: list[int]) -> tuple[Ints, Ints, Ints]:
    """Return the nodes that are splits, those that are leaves, and for each node its number among these.

    The root is node 0; a child of a leaf is -1. Splits come level by level, and leaf number i is ``~i``.
    """
    number, reached = np.zeros(len(left), dtype=np.int64), [0] if left else []
    splits: list[int] = []
    leaves: list[int] = []
    is_reached = bytearray(len(left))
    for node in reached:
        if left[node] == -1:
            number[node] = ~len(leaves)
            leaves.append(node)
            continue
        number[node] = len(splits)
        splits.append(node)
        for child in (left[node], right[node]):
            if not 0 < child < len(left) or is_reached[child]:
                raise InputError("a damaged model: a tree whose nodes do not make a tree")
            is_reached[child] = 1
            reached.append(child)
    if not 1 <= len(leaves) <= MAX_LEAVES:
        raise InputError(f"a tree with {len(leaves)} leaves; expected 1 to {MAX_LEAVES}")
    return np.array(splits, dtype=np.int64), np.array(leaves, dtype=np.int64), number


def _find_next_below(thresholds: Floats) -> Floats:
    """Return the largest float32 below each threshold, in double precision; minus infinity has none."""
    below = np.nextafter(thresholds, np.float32(-np.inf)).astype(np.float64)
    return np.where(np.isinf(thresholds) & (thresholds < 0), _BELOW_ALL, below)


def _read_statistics(tree: Mapping[str, Any], splits: Ints, leaves: Ints, n: int) -> dict[str, Floats]:
    """Return the gains of splits and the sums of second derivatives, by their names in LightGBM; 0 if not finite."""
    found = {}
    for name, source, at in (
        ("split_gain", "loss_changes", splits),
        ("internal_weight", "sum_hessian", splits),
        ("leaf_weight", "sum_hessian", leaves),
    ):
        if source in tree:
            found[name] = np.nan_to_num(get_numbers(tree, source, np.float64, n)[at], posinf=0.0, neginf=0.0)
    return found
