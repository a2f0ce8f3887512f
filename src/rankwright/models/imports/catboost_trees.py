"""Trees of CatBoost's JSON as trees that score the same documents alike."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError, quote
from rankwright.models.imports.json_values import check_finite, get_integer, get_numbers, get_value
from rankwright.scorers.lightgbm_trees import MAX_LEAVES, Tree

_MAX_DEPTH = 16  # of a symmetric tree: CatBoost's own limit


@dataclass(frozen=True, slots=True)
class FloatFeature:
    """A numeric feature of CatBoost.

    Parameters
    ----------
    index : int
        Its number in splits.
    column : int
        Its column among the features of a document.
    name : str
        Its name; empty if it has none.
    missing_left : bool
        Whether a missing value goes left, to the side of small values.
    """

    index: int
    column: int
    name: str
    missing_left: bool


@dataclass(frozen=True, slots=True)
class _Split:
    """A split: values up to the border go left."""

    feature: FloatFeature
    border: float


def read_oblivious_tree(tree: Any, features: Sequence[FloatFeature]) -> Tree:
    """Return a tree all of whose nodes of a level have the same split.

    Split number i is bit i of the number of a leaf: the last split is the root here, so that leaves keep their order.
    """
    if not isinstance(tree, Mapping):
        raise InputError(f"a damaged model: a tree is {quote(tree)}; expected an object")
    found = get_value(tree, "splits", list)
    if len(found) > _MAX_DEPTH:
        raise InputError(f"a damaged model: {len(found)} splits of a symmetric tree; expected at most {_MAX_DEPTH}")
    splits = [_read_split(split, features) for split in reversed(found)]
    n = 1 << len(splits)
    values = get_numbers(tree, "leaf_values", np.float64)
    if len(values) > n and len(values) % n == 0:
        raise InputError("a CatBoost model with several scores a document; expected one")
    if len(values) != n:
        raise InputError(f"a damaged model: {len(values)} leaf_values; expected {n}")
    check_finite(values, "leaf_values")
    level = np.log2(np.arange(1, n)).astype(np.int64)
    children: Ints = 2 * np.arange(n - 1) + 1
    left, right = (np.where(own < n - 1, own, ~(own - (n - 1))) for own in (children, children + 1))
    made = _build_tree([splits[own] for own in level.tolist()], left, right, values)
    return _add_counts(made, tree.get("leaf_weights"))


def read_tree_of_nodes(tree: Any, features: Sequence[FloatFeature]) -> Tree:
    """Return a tree that is written as objects inside each other."""
    splits: list[_Split] = []
    values: list[Any] = []
    children: list[list[int]] = []
    places: list[tuple[Any, int, int]] = [(tree, -1, 0)]  # a node, its parent, and the side
    for node, parent, side in places:
        if not isinstance(node, Mapping):
            raise InputError(f"a damaged model: a node is {quote(node)}; expected an object")
        number = ~len(values) if "value" in node else len(splits)
        if "value" in node:
            values.append(node["value"])
        else:
            splits.append(_read_split(get_value(node, "split", dict), features))
            children.append([0, 0])
            places += [(get_value(node, name, dict), number, k) for k, name in enumerate(("left", "right"))]
        if parent >= 0:
            children[parent][side] = number
    if any(isinstance(value, list) for value in values):
        raise InputError("a CatBoost model with several scores a document; expected one")
    found = get_numbers({"value": values}, "value", np.float64)
    check_finite(found, "value")
    if len(found) > MAX_LEAVES:
        raise InputError(f"a tree with {len(found)} leaves; expected at most {MAX_LEAVES}")
    both = np.array(children, dtype=np.int64).reshape(-1, 2)
    return _build_tree(splits, both[:, 0], both[:, 1], found)


def _read_split(split: Any, features: Sequence[FloatFeature]) -> _Split:
    """Return a split of a numeric feature; raise InputError for others."""
    if not isinstance(split, Mapping):
        raise InputError(f"a damaged model: a split is {quote(split)}; expected an object")
    kind = split.get("split_type", "FloatFeature")
    if kind != "FloatFeature":
        raise InputError(f"a CatBoost model with a split of type {quote(kind)}; expected numeric features only")
    index = get_integer(split, "float_feature_index")
    if index >= len(features):
        raise InputError(f"a damaged model: a split of a feature that is not one of {len(features)}")
    border = get_numbers({"border": [split.get("border")]}, "border", np.float32)
    check_finite(border, "border")
    return _Split(features[index], float(border[0]))


def _build_tree(splits: list[_Split], left: Ints, right: Ints, values: Any) -> Tree:
    """Return a tree of these splits; CatBoost sends ``x > border`` right, in single precision."""
    column = np.array([split.feature.column for split in splits], dtype=np.int64)
    border = np.array([split.border for split in splits], dtype=np.float64)
    missing_left = np.array([split.feature.missing_left for split in splits], dtype=bool)
    return Tree.from_nodes(column, border, missing_left, left, right, values)


def _add_counts(tree: Tree, weights: Any) -> Tree:
    """Return a symmetric tree with the number of training documents in each leaf and node, if the model has them."""
    n = len(tree.values)
    if not isinstance(weights, list) or len(weights) != n or not set(map(type, weights)) <= {int, float}:
        return tree
    leaves = np.array(weights, dtype=np.float64)
    if not (leaves == np.floor(leaves)).all() or leaves.min() < 0 or leaves.sum() >= 2**31:
        return tree
    levels = [leaves.reshape(1 << k, -1).sum(axis=1) for k in range(n.bit_length() - 1)]
    nodes = np.concatenate([np.empty(0), *levels])
    return Tree({**tree.columns, "leaf_count": leaves.astype(np.int64), "internal_count": nodes.astype(np.int64)})
