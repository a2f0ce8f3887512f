"""The learning to rank plugin of Elasticsearch and OpenSearch, written from its Java classes: slow and strict.

``StoredLtrModel``, ``XGBoostJsonParser``, ``LinearRankerParser``, ``NaiveAdditiveDecisionTree`` and ``LinearRanker``.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np

SPLIT = {"nodeid", "depth", "split", "split_condition", "yes", "no", "missing", "children"}
LEAF = {"nodeid", "leaf"}


def score(path: Path, X: np.ndarray, names, missing: str = "honoured") -> np.ndarray:
    """The float32 scores of a model file; ``missing`` is "honoured", "no" (always that branch) or "zero"."""
    body = load(path)
    assert body.keys() == {"model"}
    assert body["model"].keys() == {"name", "model"}
    assert body["model"]["model"].keys() == {"type", "definition"}
    kind, definition = body["model"]["model"]["type"], body["model"]["model"]["definition"]
    columns = {name: np.ascontiguousarray(X[:, at], dtype=np.float32) for at, name in enumerate(names)}
    total = np.zeros(len(X), np.float32)
    if kind == "model/linear":
        assert definition.keys() <= set(names)
        for name in names:  # in the order of the feature set, whatever that of the definition; missing is 0
            total += np.float32(definition.get(name, 0.0)) * np.nan_to_num(columns[name], nan=0.0)
        return total
    assert kind == "model/xgboost+json"
    assert definition.keys() == {"splits"}
    assert definition["splits"]
    if missing == "zero":
        columns = {name: np.nan_to_num(column, nan=0.0) for name, column in columns.items()}
    for tree in definition["splits"]:
        total += evaluate(tree, columns, missing == "honoured")
    return total


def evaluate(root: dict, columns: dict[str, np.ndarray], honours_missing: bool) -> np.ndarray:
    """The leaf that each row reaches; rows are divided at each split."""
    n = len(next(iter(columns.values())))
    found = np.empty(n, np.float32)
    pending = [(root, np.arange(n))]
    while pending:
        node, rows = pending.pop()
        if "leaf" in node:
            assert node.keys() == LEAF
            found[rows] = read_float32(node["leaf"])
            continue
        assert node.keys() == SPLIT
        assert [child["nodeid"] for child in node["children"]] == [node["yes"], node["no"]]
        assert node["missing"] in (node["yes"], node["no"])
        x = columns[node["split"]][rows]
        yes = read_float32(node["split_condition"]) > x  # false where x is missing
        if honours_missing and node["missing"] == node["yes"]:
            yes |= np.isnan(x)
        pending += zip(node["children"], (rows[yes], rows[~yes]), strict=True)
    return found


def read_float32(number: float) -> np.float32:
    """The number as Java reads it into a float: infinity where it is too large."""
    assert isinstance(number, float)
    with np.errstate(over="ignore"):
        return np.float32(number)


def load(path: Path) -> dict:
    """The JSON of a file, without repeated keys, NaN and infinity, which the engines refuse."""

    def pair(items):
        assert len(dict(items)) == len(items)
        return dict(items)

    def refuse(word):
        raise AssertionError(word)

    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)  # the engines read 1,000 levels
    try:
        return json.loads(Path(path).read_text(), object_pairs_hook=pair, parse_constant=refuse)
    finally:
        sys.setrecursionlimit(limit)
