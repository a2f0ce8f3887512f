"""XGBoost's JSON, which ``xgboost.Booster(model_file=...)`` reads."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError, quote
from rankwright.models.export.float32_thresholds import raise_to_next_float32
from rankwright.models.export.target import ExportedFiles, ExportRequest, Target
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

_NO_PARENT = 2**31 - 1


class XGBoostTarget(Target):
    """The JSON of XGBoost: trees or a linear function in single precision; an intercept is ``base_score``."""

    name: ClassVar[str] = "xgboost"
    title: ClassVar[str] = "XGBoost"
    takes: ClassVar[frozenset[str]] = frozenset({"linear", "stumps", "trees"})
    nearby: ClassVar[tuple[str, ...]] = ("lightgbm",)
    reasons: ClassVar[Mapping[str, str]] = {
        "sum": "a booster has trees or weights, not both",
        "categories": "it sends values that it has not seen, and missing ones, to other sides",
        "network": "it has trees and linear functions only",
        "kernel sum": "it has trees and linear functions only",
    }

    def check_names(self, names: tuple[str, ...]) -> None:
        """Raise InputError if XGBoost refuses a name: an empty one, or one with a bracket, < or a control character."""
        for name in names:
            if not name or not name.isprintable() or any(mark in name for mark in "[]<"):
                raise InputError(
                    f"XGBoost refuses the name {quote(name)} of a feature; give it another with names= (--names)"
                )

    def build(self, request: ExportRequest) -> ExportedFiles:
        """Return the JSON; the intercept, or else a single leaf that comes first, is ``base_score``."""
        parts = request.parts
        trees, base = parts.list_trees(), parts.intercept
        if trees and not trees[0].n_splits and not base:  # XGBoost adds its trees to base_score, in their order
            base = float(trees.pop(0).values[0])
        if parts.coef is not None:
            booster = _write_weights(parts.coef)
        else:
            booster = _write_trees(trees or [make_leaf(0.0)], parts.n_features)
        words = _write_floats(np.array([base]), "the intercept")
        content = (
            f'{{"learner":{{"attributes":{{}},"feature_names":{json.dumps(list(request.names), ensure_ascii=False)},'
            f'"feature_types":{json.dumps(["float"] * parts.n_features)},"gradient_booster":{booster},'
            f'"learner_model_param":{{"base_score":"{words[0]}","boost_from_average":"0","num_class":"0",'
            f'"num_feature":"{parts.n_features}","num_target":"1"}},'
            '"objective":{"name":"reg:squarederror","reg_loss_param":{"scale_pos_weight":"1"}}},"version":[3,0,0]}'
        )
        note = "scores are those of Booster.predict, which XGBoost adds up in float32"
        return ExportedFiles(content.encode(), notes=[note])


def _write_weights(coef: Floats) -> str:
    """Return a linear booster; its last weight is an intercept."""
    words = _write_floats(np.append(coef, 0.0), "the weights")
    return f'{{"model":{{"boosted_rounds":1,"weights":[{",".join(words)}]}},"name":"gblinear"}}'


def _write_trees(trees: list[Tree], n_features: int) -> str:
    """Return a booster of trees, one for each iteration."""
    texts = [_write_tree(tree, number, n_features) for number, tree in enumerate(trees)]
    starts = ",".join(map(str, range(len(trees) + 1)))
    return (
        f'{{"model":{{"gbtree_model_param":{{"num_parallel_tree":"1","num_trees":"{len(trees)}"}},'
        f'"iteration_indptr":[{starts}],"tree_info":[{",".join("0" * len(trees))}],'
        f'"trees":[{",".join(texts)}]}},"name":"gbtree"}}'
    )


def _write_tree(tree: Tree, number: int, n_features: int) -> str:
    """Return a tree; XGBoost takes for granted that the number of a right child is that of the left one plus 1."""
    order, left, parent = _number_in_pairs(tree)
    columns, n = tree.columns, len(order)
    splits, leaves = order[order >= 0], ~order[order < 0]
    is_split = order >= 0
    lists = {
        "base_weights": _place(is_split, columns["internal_value"][splits], tree.values[leaves]),
        "loss_changes": _place(is_split, columns["split_gain"][splits], 0.0),
        "split_conditions": _place(is_split, raise_to_next_float32(columns["threshold"][splits]), tree.values[leaves]),
        "sum_hessian": _place(is_split, columns["internal_weight"][splits], columns["leaf_weight"][leaves]),
    }
    texts = {name: _write_floats(values, "a value of a leaf") for name, values in lists.items()}
    whole = {
        "default_left": _place(is_split, tree.missing_left[splits], 0),
        "left_children": left,
        "right_children": np.where(left < 0, -1, left + 1),
        "parents": parent,
        "split_indices": _place(is_split, columns["split_feature"][splits], 0),
        "split_type": np.zeros(n),
    }
    texts |= {name: list(map(str, values.astype(np.int64).tolist())) for name, values in whole.items()}
    texts |= {f"categories{ending}": [] for ending in ("", "_nodes", "_segments", "_sizes")}
    body = ",".join(f'"{name}":[{",".join(words)}]' for name, words in texts.items())
    about = f'{{"num_deleted":"0","num_feature":"{n_features}","num_nodes":"{n}","size_leaf_vector":"1"}}'
    return f'{{"id":{number},"tree_param":{about},{body}}}'


def _number_in_pairs(tree: Tree) -> tuple[Ints, Ints, Ints]:
    """Return the nodes level by level, the two children of a split side by side.

    Leaf number i is ``~i``. The second array has the place of each node's left child, -1 for a leaf; the third has
    the place of its parent.
    """
    left, right = tree.columns["left_child"].tolist(), tree.columns["right_child"].tolist()
    order, first, parent = [0 if tree.n_splits else ~0], [], [_NO_PARENT]
    for place, node in enumerate(order):
        first.append(len(order) if node >= 0 else -1)
        if node >= 0:
            order += [left[node], right[node]]
            parent += [place, place]
    return np.array(order), np.array(first), np.array(parent)


def _place(is_split: NDArray[np.bool_], of_splits: Any, of_leaves: Any) -> Any:
    """Return numbers by node: those of splits and those of leaves, in the order of the nodes."""
    out = np.zeros(len(is_split))
    out[is_split], out[~is_split] = of_splits, of_leaves
    return out


def _write_floats(values: Floats, what: str) -> list[str]:
    """Return the shortest decimals of numbers in single precision; raise InputError for those too large for it."""
    with np.errstate(over="ignore"):
        single = values.astype(np.float32)
    if (np.isinf(single) & np.isfinite(values)).any():
        raise InputError(f"{what} is too large for XGBoost's single precision; the nearest target that can is lightgbm")
    return [word if word != "inf" else "Infinity" for word in single.astype(str).tolist()]
