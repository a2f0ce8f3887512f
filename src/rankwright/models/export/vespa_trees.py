"""Trees as LightGBM's JSON, in the form that Vespa's importer of LightGBM models takes."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from rankwright.basics.array_types import Ints
from rankwright.data.categories import Categories
from rankwright.models.export.float32_thresholds import raise_to_next_float32
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

_ABOVE_ALL = 1e39  # a limit above every float32, for JSON has no infinity; it is one where Vespa keeps float32


def write_lightgbm_json(
    trees: list[Tree], intercept: float, names: Sequence[str], categories: Categories | None
) -> bytes:
    """Return the JSON of a sum of trees and an intercept, a line for each tree.

    Vespa goes left on ``x < threshold``, and keeps thresholds of large models in float32. So a threshold is the least
    float32 above ours. Constants come last: before a tree they would keep Vespa from evaluating all trees at once.
    """
    splitting = [tree for tree in trees if tree.n_splits]
    constant = intercept + sum(float(tree.values[0]) for tree in trees if not tree.n_splits)
    if constant or not splitting:
        splitting.append(make_leaf(constant))
    values = list_category_values(splitting, categories)
    head = {
        "name": "tree",
        "objective": "lambdarank",
        "feature_names": list(names),
        "feature_infos": {names[feature]: {"values": list(range(len(own)))} for feature, own in values.items()},
        "pandas_categorical": list(values.values()) or None,
    }
    lines = [f'{{"tree_index":{i},"tree_structure":{_write_tree(tree, values)}}}' for i, tree in enumerate(splitting)]
    return (json.dumps(head)[:-1] + ',\n"tree_info":[\n' + ",\n".join(lines) + "\n]}\n").encode()


def list_category_values(trees: list[Tree], categories: Categories | None) -> dict[int, list[Any]]:
    """Return the values of the features that trees split by category: their texts or, if there are none, numbers."""
    found: dict[int, list[Any]] = {}
    for tree in trees:
        for node in np.flatnonzero(tree.categorical).tolist():
            feature = int(tree.columns["split_feature"][node])
            known = None if categories is None else categories[feature]
            numbers = range(int(_list_members(tree.category_sets[node]).max(initial=0)) + 1)
            own = list(numbers if known is None else known)
            found[feature] = max(found.get(feature, []), own, key=len)
    return dict(sorted(found.items()))


def _list_members(words: Ints) -> Ints:
    """Return the categories in a set of words of 32 bits."""
    return np.flatnonzero(((words[:, None] >> np.arange(32)) & 1).ravel())


def _write_tree(tree: Tree, values: dict[int, list[Any]]) -> str:
    """Return a tree as JSON, from the leaves to the root: a child has a larger number than its parent."""
    leaves = [f'{{"leaf_value":{value!r}}}' for value in tree.values.tolist()]
    if not tree.n_splits:
        return leaves[0]
    thresholds = np.minimum(raise_to_next_float32(tree.columns["threshold"]).astype(np.float64), _ABOVE_ALL).tolist()
    feature, missing_left = tree.columns["split_feature"].tolist(), tree.missing_left.tolist()
    sides = [tree.columns[f"{side}_child"].tolist() for side in ("left", "right")]
    sets, texts = tree.category_sets, [""] * tree.n_splits
    for node in reversed(range(tree.n_splits)):
        left, right = (texts[child] if child >= 0 else leaves[~child] for child in (side[node] for side in sides))
        if tree.categorical[node]:
            members = [i for i in _list_members(sets[node]).tolist() if i < len(values[feature[node]])]
            test = f'"threshold":"{"||".join(map(str, members))}","decision_type":"==","default_left":false'
            if not members:  # Vespa takes no empty list of categories
                texts[node] = right
                continue
        else:
            default = "true" if missing_left[node] else "false"
            test = f'"threshold":{thresholds[node]!r},"decision_type":"<=","default_left":{default}'
        texts[node] = f'{{"split_feature":{feature[node]},{test},"left_child":{left},"right_child":{right}}}'
    return texts[0]
