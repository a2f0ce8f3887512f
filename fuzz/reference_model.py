"""A slow and obvious reader of models, written from docs/models.md; it computes scores as well."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from fuzz.references import Refused, read_number, unpack

MOST_FEATURES = 10_000_000
DEEPEST = 32
_SINGLE = float(np.finfo(np.float32).max)
_KEYS = ("ranker", "params", "measure", "n_features", "features", "scaling", "scorer", "history")
Score = Callable[[Sequence[float]], float]


class Content(NamedTuple):
    """What a model says."""

    ranker: str
    params: dict[str, Any]
    measure: str
    n_features: int
    features: list[str] | None
    scaled: bool
    history: list[Any]
    kind: str
    score: Score


def read_model(data: bytes) -> Content | None:
    """Read a model that was saved as JSON."""
    try:
        return _read(_parse(data))
    except (Refused, KeyError):
        return None


def _require(right: bool) -> None:
    if not right:
        raise Refused


def _parse(data: bytes) -> Any:
    def refuse(name: str) -> Any:
        raise Refused

    def as_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        _require(len({name for name, _ in pairs}) == len(pairs))
        return dict(pairs)

    if not data.startswith(b"\xef\xbb\xbf"):
        data = unpack(data)
    try:
        return json.loads(data.decode("utf-8"), parse_constant=refuse, object_pairs_hook=as_object)
    except (ValueError, RecursionError):
        raise Refused from None


def _read(content: Any) -> Content:
    _require(type(content) is dict and content.get("format") == "rankwright")
    _require(type(content.get("version")) is int and content["version"] == 1)
    ranker, params, measure, n, features, scaling, scorer, history = (content[key] for key in _KEYS)
    _require(type(ranker) is str and type(measure) is str and type(params) is dict and type(n) is int)
    _require(1 <= n <= MOST_FEATURES)
    if features is not None:
        _require(type(features) is list and len(features) == n and all(type(name) is str for name in features))
    _require(scaling is None or scaling == {"kind": "query"})
    _require(type(history) is list and all(type(record) is dict for record in history))
    for value in (params, history):
        _check_depth(value, 0)
    _require(type(scorer) is dict and type(scorer.get("kind")) is str and scorer["kind"] in _SCORERS)
    score = _SCORERS[scorer["kind"]](scorer, n)
    params = {name: _as_columns(name, value) for name, value in params.items()}
    return Content(ranker, params, measure, n, features, scaling is not None, history, scorer["kind"], score)


def _as_columns(name: str, value: Any) -> Any:
    """Return a parameter as Python has it: texts count features from 1, Python from 0."""
    if name == "lightgbm_params" and type(value) is dict:
        return {key: _as_columns(key, item) for key, item in value.items()}
    if name == "interaction_constraints" and type(value) is list:
        return [[_as_columns("feature", item) for item in each] if type(each) is list else each for each in value]
    if name == "feature" and type(value) is int:
        _require(value >= 1)
        return value - 1
    return value


def _check_depth(value: Any, depth: int) -> None:
    _require(depth <= DEEPEST)
    if type(value) is float:
        _require(math.isfinite(value))
    elif type(value) in (dict, list):
        for item in value.values() if type(value) is dict else value:
            _check_depth(item, depth + 1)


def _number(value: Any) -> float:
    _require(type(value) in (int, float))
    _require(abs(value) <= sys.float_info.max)
    return float(value)


def _numbers(values: Any) -> list[float]:
    _require(type(values) is list)
    return [_number(value) for value in values]


def _singles(values: Any) -> list[float]:
    with np.errstate(over="ignore"):
        found = [float(np.float32(value)) for value in _numbers(values)]
    _require(all(map(math.isfinite, found)))
    return found


def _linear(scorer: dict[str, Any], n: int) -> Score:
    coef, intercept = _numbers(scorer["coef"]), _number(scorer["intercept"])
    _require(len(coef) == n)
    return lambda x: sum(w * v for w, v in zip(coef, x, strict=True)) + intercept


def _feature(scorer: dict[str, Any], n: int) -> Score:
    index, sign = scorer["index"], scorer["sign"]
    _require(type(index) is int and 0 <= index < n and type(sign) is int and sign in (1, -1))
    return lambda x: sign * x[index]


def _stumps(scorer: dict[str, Any], n: int) -> Score:
    feature, threshold, weight = scorer["feature"], _numbers(scorer["threshold"]), _numbers(scorer["weight"])
    missing = scorer["missing"]
    _require(type(feature) is list and all(type(index) is int and 0 <= index < n for index in feature))
    _require(missing is None or (type(missing) is list and all(type(m) is int and m in (0, 1) for m in missing)))
    _require({len(column) for column in (feature, threshold, weight, missing or feature)} == {len(feature)})
    _require(missing is None or len(missing) == len(feature))
    _require(all(abs(value) <= _SINGLE for value in threshold))
    _require(_has_finite_sums(feature, threshold, weight, missing))
    sides = [float(np.float32(value)) for value in threshold]

    def score(x: Sequence[float]) -> float:
        total = 0.0
        for i, index in enumerate(feature):
            unknown = math.isnan(x[index])
            total += weight[i] * (missing[i] if unknown and missing else x[index] > sides[i])
        return total

    return score


def _has_finite_sums(feature: list[int], threshold: list[float], weight: list[float], missing: Any) -> bool:
    """Whether every value of the step function of each feature is finite."""
    for index in set(feature):
        own = sorted((np.float32(threshold[i]), i) for i, other in enumerate(feature) if other == index)
        steps: dict[Any, float] = {}
        for side, i in own:
            steps[side] = steps.get(side, 0.0) + weight[i]
        total = 0.0
        for jump in steps.values():
            total += jump
            if not math.isfinite(total):
                return False
        if missing and not math.isfinite(sum(missing[i] * weight[i] for _, i in own)):
            return False
    return True


def _kernel(scorer: dict[str, Any], n: int) -> Score:
    name, degree = scorer["kernel"], scorer["degree"]
    _require(type(name) is str and name in ("rbf", "laplacian", "poly", "sigmoid", "linear"))
    _require(type(degree) is int and 1 <= degree <= 100)
    gamma, coef0, intercept = (_number(scorer[key]) for key in ("gamma", "coef0", "intercept"))
    mean, factor, dual = (_numbers(scorer[key]) for key in ("mean", "factor", "dual"))
    _require(gamma >= 0 and type(scorer["landmarks"]) is list)
    landmarks = [_numbers(row) for row in scorer["landmarks"]]
    _require(len(mean) == len(factor) == n and len(dual) == len(landmarks) > 0)
    _require(all(len(row) == n for row in landmarks) and math.isfinite(sum(map(abs, dual))))

    def alike(x: list[float], z: list[float]) -> float:
        if name == "rbf":
            return math.exp(-gamma * sum((a - b) ** 2 for a, b in zip(x, z, strict=True)))
        if name == "laplacian":
            return math.exp(-gamma * sum(abs(a - b) for a, b in zip(x, z, strict=True)))
        product = sum(a * b for a, b in zip(x, z, strict=True))
        if name == "linear":
            return product
        return math.tanh(gamma * product + coef0) if name == "sigmoid" else (gamma * product + coef0) ** degree

    def score(x: Sequence[float]) -> float:
        scaled = [(v - m) * f for v, m, f in zip(x, mean, factor, strict=True)]
        return intercept + sum(w * alike(scaled, z) for w, z in zip(dual, landmarks, strict=True))

    return score


_ACTIVATIONS: dict[str, Callable[[float], float]] = {
    "relu": lambda z: max(z, 0.0),
    "tanh": math.tanh,
    "sigmoid": lambda z: 1 / (1 + math.exp(-z)),
    "silu": lambda z: z / (1 + math.exp(-z)),
    "gelu": lambda z: z * (1 + math.erf(z / math.sqrt(2))) / 2,
}


def _network(scorer: dict[str, Any], n: int) -> Score:
    activation, layers = scorer["activation"], scorer["layers"]
    _require(type(activation) is str and activation in _ACTIVATIONS)
    mean, factor = _numbers(scorer["mean"]), _numbers(scorer["factor"])
    _require(len(mean) == len(factor) == n and type(layers) is list and len(layers) > 0)
    read: list[tuple[list[list[float]], list[float]]] = []
    inputs = n
    for layer in layers:
        _require(type(layer) is dict)
        weights, bias = layer["weights"], _singles(layer["bias"])
        _require(type(weights) is list and len(weights) == inputs > 0)
        read.append(([_singles(row) for row in weights], bias))
        _require(all(len(row) == len(bias) for row in read[-1][0]))
        inputs = len(bias)
    _require(inputs == 1)

    def score(x: Sequence[float]) -> float:
        values = [(v - m) * f for v, m, f in zip(x, mean, factor, strict=True)]
        for i, (weights, bias) in enumerate(read):
            if i:
                values = [_ACTIVATIONS[activation](value) for value in values]
            values = [b + sum(v * row[j] for v, row in zip(values, weights, strict=True)) for j, b in enumerate(bias)]
        return values[0]

    return score


_OF_NODES: tuple[str, ...] = ("split_feature", "split_gain", "threshold", "decision_type", "left_child", "right_child")
_OF_NODES += ("internal_value", "internal_weight", "internal_count")
_WHOLE = ("split_feature", "decision_type", "left_child", "right_child", "leaf_count", "internal_count")


def _trees(scorer: dict[str, Any], n: int) -> Score:
    text = scorer["lightgbm"]
    _require(type(text) is str)
    lines = text.split("\n")
    _require("end of trees" in lines and lines[0] == "tree" and len(lines) > 1)
    lines = lines[: lines.index("end of trees")]
    starts = [i for i, line in enumerate(lines) if re.fullmatch("Tree=[0-9]+", line)]
    _require(bool(starts))
    header = _assignments(lines[: starts[0]])
    _require(header.get("version") in ("v3", "v4"))
    _require(header.get("num_class") == "1" and header.get("num_tree_per_iteration") == "1")
    _require(not any(line.startswith("average_output") for line in lines[1 : starts[0]]))
    _check_header(header, n)
    blocks = [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
    trees = [_tree(_assignments(block[1:]), n) for block in blocks]
    return lambda x: sum(_fall(tree, x) for tree in trees)


def _assignments(lines: list[str]) -> dict[str, str]:
    return dict(line.split("=", 1) for line in lines if "=" in line)


def _check_header(header: dict[str, str], n: int) -> None:
    _require(re.fullmatch("[0-9]{1,7}", header.get("max_feature_idx", "")) is not None)
    _require(int(header["max_feature_idx"]) + 1 == n)
    for name, pattern in (
        ("feature_names", r'[^\s",:\[\]{}=]+'),
        ("feature_infos", r"none|\[[^\s\[\]=]+:[^\s\[\]=]+\]"),
    ):
        words = header.get(name, "").split(" ")
        _require(len(words) == n and all(word.isprintable() and re.fullmatch(pattern, word) for word in words))
    if "monotone_constraints" in header:
        signs = header["monotone_constraints"].split(" ")
        _require(len(signs) == n and all(sign in ("-1", "0", "1") for sign in signs))


def _tree(said: dict[str, str], n: int) -> dict[str, list[Any]]:
    _require(said.get("num_cat") == "0" and said.get("is_linear", "0") == "0")
    names = (*_OF_NODES, "leaf_value", "leaf_weight", "leaf_count")
    tree = {name: [_tree_number(word, name) for word in said.get(name, "").split(" ") if word] for name in names}
    leaves = len(tree["leaf_value"])
    _require(1 <= leaves <= 65_536 and said.get("num_leaves") == str(leaves))
    _require(all(len(tree[name]) == leaves - 1 for name in _OF_NODES))
    _require(all(len(tree[name]) in (0, leaves) for name in ("leaf_weight", "leaf_count")))
    shrinkage = [_tree_number(word, "shrinkage") for word in said.get("shrinkage", "1").split(" ") if word]
    _require(len(shrinkage) == 1)
    _require(all(0 <= feature < n for feature in tree["split_feature"]))
    _require(all(kind in (0, 2, 8, 10) for kind in tree["decision_type"]))
    _require(all(count >= 0 for count in (*tree["leaf_count"], *tree["internal_count"])))
    led_to = sorted((*tree["left_child"], *tree["right_child"]))
    _require(led_to == ([*range(-leaves, 0), *range(1, leaves - 1)] if leaves > 1 else []))
    for side in ("left_child", "right_child"):
        _require(all(child < 0 or child > node for node, child in enumerate(tree[side])))
    return tree


def _tree_number(word: str, name: str) -> float:
    if name in _WHOLE:
        _require(re.fullmatch("-?[0-9]{1,4000}", word) is not None)
        _require(-(2**31) <= int(word) < 2**31)
        return int(word)
    if name == "threshold" and word == "inf":
        return math.inf
    value = read_number(word.encode("utf-8", errors="surrogatepass"))
    _require(value > -math.inf and (name == "threshold" or math.isfinite(value)))
    return value


def _fall(tree: dict[str, list[Any]], x: Sequence[float]) -> float:
    at = 0 if tree["split_feature"] else -1
    while at >= 0:
        value, kind = x[tree["split_feature"][at]], tree["decision_type"][at]
        if math.isnan(value):
            left = bool(kind & 2) if kind & 8 else tree["threshold"][at] >= 0
        else:
            left = value <= tree["threshold"][at]
        at = tree["left_child" if left else "right_child"][at]
    return float(tree["leaf_value"][-at - 1])


_SCORERS: dict[str, Callable[[dict[str, Any], int], Score]] = {
    "linear": _linear,
    "feature": _feature,
    "stumps": _stumps,
    "kernel": _kernel,
    "network": _network,
    "trees": _trees,
}
