"""Elastic's native learning to rank, written from its Java classes: slow and strict.

``Tree``, ``TreeInferenceModel``, ``EnsembleInferenceModel``, ``WeightedSum`` and ``BoundedWindowInferenceModel``.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from tests.reference.ltr_plugin import load

SPLIT = {"node_index", "decision_type", "threshold", "split_feature", "default_left", "left_child", "right_child"}


def score(path, X, names, bounded=True):
    """The float32 scores of a model file; ``bounded`` is whether the version adds a constant to negative scores."""
    body = load(path)
    assert body.keys() == {"inference_config", "definition"}
    extractors = body["inference_config"]["learning_to_rank"]["feature_extractors"]
    assert [extractor["query_extractor"]["feature_name"] for extractor in extractors] == list(names)
    ensemble = body["definition"]["trained_model"]["ensemble"]
    assert ensemble.keys() == {"feature_names", "target_type", "aggregate_output", "trained_models"}
    assert (ensemble["target_type"], ensemble["aggregate_output"]) == ("regression", {"weighted_sum": {}})
    trees = [model["tree"] for model in ensemble["trained_models"]]
    columns = dict(zip(names, X.astype(np.float64).T, strict=True))
    total = add(evaluate(tree, columns, len(X)) for tree in trees)
    least = float(
        add(
            np.array([min(node["leaf_value"] for node in tree["tree_structure"] if "leaf_value" in node)])
            for tree in trees
        )[0]
    )
    return (total - least if bounded and least < 0.0 else total).astype(np.float32)


def evaluate(tree: dict, columns: dict[str, np.ndarray], n: int) -> np.ndarray:
    """The leaf that each row reaches; rows are divided at each split."""
    assert tree.keys() == {"feature_names", "target_type", "tree_structure"}
    assert tree["target_type"] == "regression"
    nodes = tree["tree_structure"]
    found, pending, seen = np.empty(n), [(0, np.arange(n))], set()
    while pending:
        at, rows = pending.pop()
        node = nodes[at]
        assert node["node_index"] == at
        assert at not in seen
        seen.add(at)
        if "leaf_value" in node:
            assert node.keys() == {"node_index", "leaf_value"}
            found[rows] = node["leaf_value"]
            continue
        assert node.keys() == SPLIT
        assert node["decision_type"] == "lte"
        x = columns[tree["feature_names"][node["split_feature"]]][rows]
        left = x <= node["threshold"]
        if np.signbit(node["threshold"]):  # Double.compareTo: -0.0 is less than 0.0
            left &= (x != node["threshold"]) | np.signbit(x)
        if node["default_left"]:
            left |= np.isnan(x)
        pending += [(node["left_child"], rows[left]), (node["right_child"], rows[~left])]
    assert len(seen) == len(nodes)
    return found


def add(terms: Iterable[np.ndarray]) -> np.ndarray:
    """The sum of ``DoubleStream.sum``: Kahan's, which corrects the error of each addition in the next one."""
    total: np.ndarray | float = 0.0
    error: np.ndarray | float = 0.0
    for term in terms:
        corrected = term - error
        following = total + corrected
        total, error = following, (following - total) - corrected
    return np.asarray(total - error)
