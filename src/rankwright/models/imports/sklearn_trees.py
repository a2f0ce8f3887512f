"""Trees and sums of trees of scikit-learn, as trees that score the same documents alike."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.models.imports.xgboost_trees import number_nodes
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

_BELOW_ALL = -1e300  # a threshold that no float32 reaches
_LOG = ("poisson", "gamma")  # losses whose prediction is the exponential of the sum
_SINGLE, _MEANS = ("DecisionTreeRegressor",), ("ForestRegressor",)
_BOOSTED, _BINNED = ("BaseGradientBoosting",), ("BaseHistGradientBoosting",)
_VOTES = ("DecisionTreeClassifier", "ForestClassifier")
_ROWS = 16


def has_trees(estimator: Any) -> bool:
    """Return whether an estimator is a tree or a sum of trees of scikit-learn, or of a class derived from one."""
    return _is_a(estimator, (*_SINGLE, *_MEANS, *_BOOSTED, *_BINNED, *_VOTES))


def import_trees(estimator: Any) -> Trees:
    """Return the trees of a fitted estimator: their sum is its prediction, before an exponential or a sigmoid.

    Raise InputError unless the library's own predictions of a few documents are the same.
    """
    name = type(estimator).__name__
    if _is_a(estimator, _VOTES):
        raise InputError(f"found a {name}, whose trees vote for classes; expected a regressor: fit it to the grades")
    if not hasattr(estimator, "n_features_in_"):
        raise InputError(f"this {name} is not fitted; call fit first")
    n_outputs = getattr(estimator, "n_outputs_", getattr(estimator, "n_trees_per_iteration_", 1))
    if n_outputs != 1:
        raise InputError(f"a {name} with {n_outputs} scores a document; expected one")
    try:
        found = _list_trees(estimator)
    except AttributeError as error:  # scikit-learn has no public names for all of this
        raise InputError(f"this {name} keeps its trees where they are not known to be ({error})") from None
    trees = Trees(Forest.from_trees(found, int(estimator.n_features_in_)))
    _compare_predictions(estimator, trees)
    return trees


def _is_a(estimator: Any, names: tuple[str, ...]) -> bool:
    """Return whether an estimator is of a class of scikit-learn with one of these names, or of one derived from it."""
    bases = [base for base in type(estimator).__mro__ if base.__module__.partition(".")[0] == "sklearn"]
    return any(base.__name__ in names for base in bases)


def _list_trees(estimator: Any) -> list[Tree]:
    """Return the trees of an estimator, after one of a single leaf where it begins with a constant."""
    if _is_a(estimator, _SINGLE):
        return [_read_tree(estimator.tree_, 1.0)]
    if _is_a(estimator, _MEANS):
        return [_read_tree(each.tree_, 1.0 / len(estimator.estimators_)) for each in estimator.estimators_]
    if _is_a(estimator, _BOOSTED):
        start = _read_start(estimator)
        trees = [_read_tree(each.tree_, estimator.learning_rate) for [each] in estimator.estimators_]
    else:
        categorical = getattr(estimator, "is_categorical_", None)
        if categorical is not None and np.any(categorical):
            raise InputError(
                f"a {type(estimator).__name__} with categorical features, whose unknown categories are treated as "
                "missing; encode the categories as numbers and fit it again, or train LightGBM on them"
            )
        start = float(np.ravel(estimator._baseline_prediction)[0])
        trees = [_read_binned_tree(each.nodes) for [each] in estimator._predictors]
    return [make_leaf(start), *trees] if start or not trees else trees


def _read_start(estimator: Any) -> float:
    """Return the constant that gradient boosting begins with; raise InputError if it begins with another model."""
    start, row = estimator.init_, np.zeros((1, estimator.n_features_in_))
    if isinstance(start, str):  # "zero"
        return 0.0
    if not _is_a(start, ("DummyRegressor", "DummyClassifier")):
        raise InputError(
            f"a {type(estimator).__name__} that begins with a {type(start).__name__}; expected init=None or 'zero'"
        )
    if not hasattr(estimator, "classes_"):
        return float(np.ravel(start.predict(row))[0])
    least = np.finfo(np.float64).eps
    share = min(max(float(start.predict_proba(row)[0, 1]), least), 1.0 - least)
    return math.log(share / (1.0 - share)) * (0.5 if estimator.loss == "exponential" else 1.0)


def _read_tree(tree: Any, weight: float) -> Tree:
    """Return a tree with its values multiplied."""
    nodes = tree.__getstate__()["nodes"]
    left, right = tree.children_left.astype(np.int64), tree.children_right.astype(np.int64)
    size, impurity = tree.weighted_n_node_samples, tree.impurity
    gain = size * impurity - size[left] * impurity[left] - size[right] * impurity[right]
    statistics = {"gain": np.maximum(gain, 0.0), "weight": size, "count": tree.n_node_samples.astype(np.int64)}
    has_sides = "missing_go_to_left" in nodes.dtype.names
    sides = nodes["missing_go_to_left"].astype(bool) if has_sides else np.zeros(len(left), dtype=bool)
    values = tree.value[:, 0, 0] * weight
    return _make_tree(left, right, tree.feature.astype(np.int64), tree.threshold, sides, values, statistics)


def _read_binned_tree(nodes: Any) -> Tree:
    """Return a tree of histogram gradient boosting, whose thresholds are those of raw values."""
    is_leaf = nodes["is_leaf"].astype(bool)
    left, right = (np.where(is_leaf, -1, nodes[name].astype(np.int64)) for name in ("left", "right"))
    count = nodes["count"].astype(np.int64)
    statistics = {"gain": np.maximum(nodes["gain"], 0.0), "weight": count.astype(np.float64), "count": count}
    sides, feature = nodes["missing_go_to_left"].astype(bool), nodes["feature_idx"].astype(np.int64)
    return _make_tree(left, right, feature, nodes["num_threshold"], sides, nodes["value"], statistics)


def _make_tree(
    left: Ints,
    right: Ints,
    feature: Ints,
    threshold: Floats,
    missing_left: NDArray[np.bool_],
    value: Floats,
    statistics: dict[str, Any],
) -> Tree:
    """Return a tree of these nodes, of which a leaf has -1 as its children, with its gains, weights and counts."""
    splits, leaves, number = number_nodes(left.tolist(), right.tolist())
    if not np.isfinite(value[leaves]).all():
        raise InputError("a tree with a value that is not finite; expected finite ones")
    limits = np.where(threshold[splits] == -np.inf, _BELOW_ALL, threshold[splits])
    children = number[left[splits]], number[right[splits]]
    made = Tree.from_nodes(feature[splits], limits, missing_left[splits], *children, value[leaves])
    known = {
        "split_gain": statistics["gain"][splits],
        "internal_value": np.nan_to_num(value[splits]),
        "internal_weight": statistics["weight"][splits],
        "internal_count": statistics["count"][splits],
        "leaf_weight": statistics["weight"][leaves],
        "leaf_count": statistics["count"][leaves],
    }
    return Tree({**made.columns, **known})


def _compare_predictions(estimator: Any, trees: Trees) -> None:
    """Raise InputError unless the library's own predictions of a few documents are the sums of these trees."""
    X = _draw_documents(trees)
    score = estimator.decision_function if hasattr(estimator, "decision_function") else estimator.predict
    most = sum(float(np.abs(tree.values).max()) for tree in trees.forest.trees)
    tolerance = 4.0 * np.finfo(np.float64).eps * (len(trees) + 1) * (most + 1.0)
    has_log = _is_a(estimator, _BINNED) and getattr(estimator, "loss", None) in _LOG
    for rows in (X, np.where(np.random.default_rng(1).random(X.shape) < 0.5, np.float32(np.nan), X)):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # that an array has no names
                found = np.asarray(score(rows), dtype=np.float64).ravel()
        except ValueError:
            if not np.isnan(rows).any():
                raise
            return  # it takes complete features only
        expected = trees(rows)
        found = np.log(found) if has_log else found
        if found.shape != expected.shape or not (np.abs(found - expected) <= tolerance).all():
            raise InputError(
                f"the predictions of this {type(estimator).__name__} are not sums of its trees; expected a tree, a "
                "forest or gradient boosting of scikit-learn"
            )


def _draw_documents(trees: Trees) -> Floats:
    """Return a few documents whose features are thresholds of the trees, or the next larger numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(_ROWS, trees.forest.n_features)).astype(np.float32)
    nodes, largest = trees.forest.nodes, float(np.finfo(np.float32).max)
    for feature in np.unique(nodes.feature).tolist():
        own = np.clip(nodes.threshold[nodes.feature == feature], -largest, largest)
        at = rng.choice(own, _ROWS).astype(np.float32)
        with np.errstate(over="ignore"):
            X[:, feature] = np.where(rng.random(_ROWS) < 0.5, at, np.nextafter(at, np.float32(np.inf)))
    X[np.isinf(X)] = 0.0
    return X
