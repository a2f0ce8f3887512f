"""Solr's learning to rank models, computed as its Java classes do: float32 throughout, thresholds plus a slack."""

import json
from pathlib import Path

import numpy as np

SLACK = np.float32(1e-6)


def score(path, X, names):
    """Return Solr's scores of documents; NaN is a feature that did not match, with the store's default value."""
    model = json.loads(Path(path).read_text())
    store = json.loads(Path(f"{path}.features.json").read_text())
    defaults = {entry["name"]: np.float32(entry["params"].get("defaultValue", 0.0)) for entry in store}
    kind, params, columns = model["class"].rpartition(".")[2], model["params"], []
    keeps_missing = params.get("isNullSameAsZero", True) is False
    for feature in model["features"]:
        x = X[:, list(names).index(feature["name"])].astype(np.float32)
        x = np.where(np.isnan(x), defaults[feature["name"]], x)
        if "norm" in feature:
            avg, std = (np.float32(feature["norm"]["params"][key]) for key in ("avg", "std"))
            with np.errstate(over="ignore"):
                x = (x - avg) / std
        columns.append(x)
    place = {feature["name"]: i for i, feature in enumerate(model["features"])}
    total = np.zeros(len(X), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        if kind == "LinearModel":
            for feature, x in zip(model["features"], columns, strict=True):
                total += x * np.float32(params["weights"][feature["name"]])
            return total
        if kind == "NeuralNetworkModel":
            return _run_network(params["layers"], columns)
        for tree in params["trees"]:
            values = np.zeros(len(X), np.float32)
            _walk(tree["root"], np.arange(len(X)), columns, place, keeps_missing, values)
            total += np.float32(tree["weight"]) * values
    return total


def _walk(node, rows, columns, place, keeps_missing, values):
    """Write the value of the leaf of each row; a tree that splits a feature which is not listed is 0."""
    if "feature" not in node:
        values[rows] = np.float32(node.get("value", 0.0))
        return
    if node["feature"] not in place:
        return
    x = columns[place[node["feature"]]].take(rows)
    is_left = x <= np.float32(node["threshold"]) + SLACK
    if keeps_missing and node["missing"] == "left":
        is_left |= np.isnan(x)
    for child, own in (("left", rows.compress(is_left)), ("right", rows.compress(~is_left))):
        if len(own):
            _walk(node[child], own, columns, place, keeps_missing, values)


def _run_network(layers, columns):
    """Return the output of the last layer; sums begin with the bias and are added in order."""
    activations = {
        "identity": lambda x: x,
        "relu": lambda x: np.where(x < 0, np.float32(0), x),
        "tanh": lambda x: np.tanh(x.astype(np.float64)).astype(np.float32),
        "sigmoid": lambda x: (1.0 / (1.0 + np.exp(-x.astype(np.float64)))).astype(np.float32),
    }
    values = columns
    for layer in layers:
        assert all(type(weight) is float for row in layer["matrix"] for weight in row)  # Solr refuses 1 for 1.0
        outputs = []
        for row, bias in zip(layer["matrix"], layer["bias"], strict=True):
            total = np.full(len(columns[0]), np.float32(bias))
            for weight, x in zip(row, values, strict=True):
                total += np.float32(weight) * x
            outputs.append(activations[layer["activation"]](total))
        values = outputs
    return values[0]
