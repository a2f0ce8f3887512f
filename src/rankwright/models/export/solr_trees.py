"""Trees as Solr's ``MultipleAdditiveTreesModel`` takes them, with the normalizers that small thresholds need."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.solr_thresholds import (
    ThresholdScaling,
    choose_scaling_of_thresholds,
    list_inexact_thresholds,
)
from rankwright.scorers.lightgbm_trees import Tree, make_leaf
from rankwright.scorers.score_parts import ScoreParts

PACKAGE = "org.apache.solr.ltr"
_MAX_DEPTH = 500  # of a tree: Solr builds nodes inside each other on its stack
DEEP = 100  # levels from which on the stack of 256 kB is too small, with which Solr starts


class SolrTrees(NamedTuple):
    """The entries of a tree model in Solr's JSON, and what they mean for the features."""

    entries: dict[str, Any]
    has_missing: bool  # whether a missing value differs from 0
    depth: int
    moved_splits: list[int]  # features whose split between 0 and positive values is at 0, not at 1e-35


def build_trees(parts: ScoreParts, names: Sequence[str]) -> SolrTrees:
    """Return the entries of a MultipleAdditiveTreesModel; an intercept is a tree without splits."""
    trees = parts.list_trees()
    if parts.intercept or not trees:
        trees.append(make_leaf(parts.intercept))
    has_missing = any((tree.missing_left != (tree.columns["threshold"] >= 0.0)).any() for tree in trees)
    scalings, thresholds = _write_thresholds(trees, names)
    roots = [_build_tree(tree, own, names, has_missing) for tree, own in zip(trees, thresholds, strict=True)]
    entries = {
        "class": f"{PACKAGE}.model.MultipleAdditiveTreesModel",
        "features": [
            {"name": name, **build_norm(0.0, 2.0**-own.exponent)} for name, own in zip(names, scalings, strict=True)
        ],
        "params": {
            **({"isNullSameAsZero": False} if has_missing else {}),
            "trees": [{"weight": "1", "root": root} for root in roots],
        },
    }
    depth = max(tree.depth for tree in trees)
    return SolrTrees(entries, has_missing, depth, [i for i, own in enumerate(scalings) if own.moves_zero_split])


def _write_thresholds(
    trees: Sequence[Tree], names: Sequence[str]
) -> tuple[list[ThresholdScaling], list[NDArray[np.float32]]]:
    """Return what each feature is multiplied by, and for each tree the thresholds to write.

    Raises InputError if Solr cannot hold the thresholds of a feature.
    """
    feature = np.concatenate([tree.columns["split_feature"] for tree in trees])
    threshold = np.concatenate([tree.columns["threshold"] for tree in trees])
    scalings, written = [ThresholdScaling()] * len(names), np.zeros(len(threshold), np.float32)
    for column in np.unique(feature).tolist():
        is_own = feature == column
        own = np.unique(threshold[is_own])
        scaling = choose_scaling_of_thresholds(own)
        if scaling is None:
            some = ", ".join(map(str, list_inexact_thresholds(own)[:4]))
            raise InputError(
                f"Solr cannot hold the thresholds {some} of feature {quote(names[column])}: it adds 1e-6 to them, and "
                f"the feature has others up to {np.abs(own[np.isfinite(own)]).max():.3g}; scale or cut its values and "
                "train again; the nearest target that can is elasticsearch"
            )
        scalings[column], written[is_own] = scaling, scaling.write(threshold[is_own])
    return scalings, np.split(written, np.cumsum([tree.n_splits for tree in trees])[:-1])


def _build_tree(tree: Tree, thresholds: NDArray[np.float32], names: Sequence[str], has_missing: bool) -> dict[str, Any]:
    """Return the root of a tree, with its nodes inside it."""
    if tree.depth > _MAX_DEPTH:
        raise InputError(
            f"Solr cannot hold a tree of {tree.depth} levels: it reads at most {_MAX_DEPTH}; train with max_depth"
        )
    leaves = [{"value": str(value)} for value in round_to_float32(tree.values, "leaf")]
    feature, left, right = (tree.columns[name].tolist() for name in ("split_feature", "left_child", "right_child"))
    texts = ["Infinity" if np.isinf(value) else str(value) for value in thresholds]
    sides = ["left" if is_left else "right" for is_left in tree.missing_left.tolist()]
    nodes: list[dict[str, Any]] = [{} for _ in feature]
    for i in reversed(range(len(nodes))):  # a child has a larger number than its parent
        nodes[i] = {
            "feature": names[feature[i]],
            "threshold": texts[i],
            **({"missing": sides[i]} if has_missing else {}),
            "left": nodes[left[i]] if left[i] >= 0 else leaves[~left[i]],
            "right": nodes[right[i]] if right[i] >= 0 else leaves[~right[i]],
        }
    return nodes[0] if nodes else leaves[0]


def build_norm(mean: float, deviation: float) -> dict[str, Any]:
    """Return the entry of a normalizer, (x - mean) / deviation; none if it changes nothing."""
    if mean == 0.0 and deviation == 1.0:
        return {}
    params = {"avg": str(np.float32(mean)), "std": str(np.float32(deviation))}
    return {"norm": {"class": f"{PACKAGE}.norm.StandardNormalizer", "params": params}}


def round_to_float32(values: Floats, what: str) -> Floats:
    """Return numbers in float32; raise InputError if one is too large."""
    with np.errstate(over="ignore"):
        found = np.asarray(values, np.float64).astype(np.float32)
    if not np.isfinite(found).all():
        raise InputError(f"a {what} of {np.abs(values).max():.3g}; Solr computes in float32, up to 3.4e38")
    return found
