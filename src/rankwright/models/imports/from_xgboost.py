"""Models of XGBoost: Boosters, estimators of its scikit-learn interface, and its JSON and UBJSON files."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.imports.json_values import (
    check_finite,
    get_integer,
    get_numbers,
    get_value,
    parse_object,
)
from rankwright.models.imports.ubjson import parse_ubjson
from rankwright.models.imports.xgboost_trees import read_tree
from rankwright.models.model import Model
from rankwright.models.model_json import MAX_FEATURES
from rankwright.scorers import Linear, Scorer, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import make_leaf

# How the constant that an objective starts from becomes a raw score; that of all other objectives is a raw score.
_LOGIT = ("binary:logistic", "reg:logistic")
_LOG = ("count:poisson", "reg:gamma", "reg:tweedie", "survival:aft", "survival:cox")


def recognises_object(source: Any) -> bool:
    """Return whether an object is a Booster or a fitted estimator of XGBoost."""
    return any(base.__module__.partition(".")[0] == "xgboost" for base in type(source).__mro__)


def recognises_file(data: bytes) -> bool:
    """Return whether the content of a file is XGBoost's JSON, UBJSON or older binary form."""
    is_json = data[:64].lstrip().startswith(b"{") and b'"learner"' in data and b'"gradient_booster"' in data
    return is_json or _is_ubjson(data) or data.startswith(b"binf") or _is_dump(data)


def import_object(source: Any) -> Model:
    """Return the model of a Booster with all its trees, or of an estimator up to its best iteration."""
    is_estimator = hasattr(source, "get_booster")
    if not is_estimator and not hasattr(source, "save_raw"):
        raise InputError(f"found a {type(source).__name__} of XGBoost; expected a Booster or a fitted estimator")
    if is_estimator and not source.__sklearn_is_fitted__():
        raise InputError(f"this {type(source).__name__} is not fitted; call fit first")
    missing = getattr(source, "missing", np.nan)
    if missing is not None and not np.isnan(missing):
        raise InputError(
            f"this {type(source).__name__} takes {missing:g} for a missing value; expected missing=nan. Pass its "
            "get_booster(), and documents with NaN where features are missing"
        )
    booster = source.get_booster() if is_estimator else source
    try:
        data = bytes(booster.save_raw("json"))
    except ValueError as error:  # XGBoostError: no tree was trained
        raise InputError(f"XGBoost cannot save this model: {str(error).strip().splitlines()[-1]}") from None
    return _build_model(parse_object(data, "XGBoost"), is_estimator)


def import_file(data: bytes) -> Model:
    """Return the model of a file; that of an estimator ends at its best iteration, as its predictions do."""
    if _is_dump(data):
        raise InputError("the JSON of XGBoost's dump_model, which lacks the constant; expected that of save_model")
    if data.startswith(b"binf"):
        raise InputError("XGBoost's old binary form; expected JSON: load it in XGBoost and save_model('model.json')")
    content = parse_ubjson(data, "XGBoost") if _is_ubjson(data) else parse_object(data, "XGBoost")
    attributes = get_value(content, "learner", dict).get("attributes")
    return _build_model(content, isinstance(attributes, dict) and "scikit_learn" in attributes)


def _is_dump(data: bytes) -> bool:
    """Return whether the content of a file is a list of trees for people to read."""
    return data[:64].lstrip().startswith(b"[") and b'"nodeid"' in data


def _is_ubjson(data: bytes) -> bool:
    """Return whether the content of a file begins as XGBoost's UBJSON does: an object, with the length of a name."""
    return data[:2] in (b"{L", b"{i", b"{U", b"{I", b"{l") and b"learner" in data


def _build_model(content: Mapping[str, Any], stop_at_best: bool) -> Model:
    """Return the model of XGBoost's parsed JSON; all its trees, or those up to its best iteration."""
    learner = get_value(content, "learner", dict)
    about = get_value(learner, "learner_model_param", dict)
    if get_integer(about, "num_class", 0) > 1 or get_integer(about, "num_target", 1) > 1:
        raise InputError("an XGBoost model with several scores a document; expected one")
    n_features = get_integer(about, "num_feature")
    if not 1 <= n_features <= MAX_FEATURES:
        raise InputError(f"an XGBoost model of {n_features} features; expected 1 to {MAX_FEATURES}")
    objective = get_value(get_value(learner, "objective", dict), "name", str)
    base = _read_base_score(about.get("base_score"), objective)
    booster = get_value(learner, "gradient_booster", dict)
    name = get_value(booster, "name", str)
    params = {"library": "XGBoost", "booster": name, "objective": objective}
    best = learner.get("attributes", {}).get("best_iteration") if stop_at_best else None
    scorer: Scorer
    if name == "gblinear":
        scorer = _read_weights(get_value(booster, "model", dict), n_features, base)
    elif name in ("gbtree", "dart"):
        scorer = _read_trees(booster, n_features, base, None if best is None else get_integer({"best": best}, "best"))
        params["n_estimators"] = len(scorer) - (1 if base else 0)
    else:
        raise InputError(f"an XGBoost model of {quote(name)}; expected gbtree, dart or gblinear")
    return Model("XGBoost", params, "ndcg@10", scorer, n_features, _read_names(learner, n_features))


def _read_base_score(found: Any, objective: str) -> float:
    """Return the constant of a model as a raw score, in single precision, as XGBoost adds it."""
    try:
        value = json.loads(found) if isinstance(found, str) else found
        values = value if isinstance(value, list) else [value]
        with np.errstate(over="ignore"):
            base = np.float32(float(values[0]))
    except (ValueError, TypeError, IndexError, RecursionError, OverflowError):
        raise InputError(f"a damaged model: base_score is {quote(found)}; expected a number") from None
    if len(values) != 1:
        raise InputError("an XGBoost model with several scores a document; expected one")
    with np.errstate(all="ignore"):
        if objective in _LOGIT:
            base = -np.log(np.float32(1.0) / base - np.float32(1.0))
        elif objective in _LOG:
            base = np.float32(np.log(float(base)))
    check_finite(base, "base_score")
    return float(base)


def _read_trees(booster: Mapping[str, Any], n_features: int, base: float, best: int | None) -> Trees:
    """Return the trees, after one of a single leaf for the constant, in the order in which XGBoost adds them."""
    inner = booster if booster["name"] == "gbtree" else get_value(booster, "gbtree", dict)
    model = get_value(inner, "model", dict)
    found = get_value(model, "trees", list)
    weights = np.ones(len(found))
    if booster["name"] == "dart":
        weights = get_numbers(booster, "weight_drop", np.float32, len(found)).astype(np.float64)
        check_finite(weights, "weight_drop")
    n_used = len(found) if best is None else _count_trees(model, best, len(found))
    trees = [read_tree(tree, n_features, weight) for tree, weight in zip(found[:n_used], weights.tolist())]
    if base or not trees:
        trees.insert(0, make_leaf(base))
    return Trees(Forest.from_trees(trees, n_features))


def _count_trees(model: Mapping[str, Any], best: int, n_trees: int) -> int:
    """Return how many trees there are up to an iteration, which may add several in parallel."""
    if "iteration_indptr" in model:
        starts = get_numbers(model, "iteration_indptr", np.int64)
        stop = int(starts[best + 1]) if best + 1 < len(starts) else n_trees
    else:  # before XGBoost 2.0
        about = get_value(model, "gbtree_model_param", dict)
        stop = (best + 1) * max(get_integer(about, "num_parallel_tree", 1), 1)
    if not 0 <= stop <= n_trees:
        raise InputError(f"a damaged model: {stop} trees up to the best iteration; there are {n_trees}")
    return stop


def _read_weights(model: Mapping[str, Any], n_features: int, base: float) -> Linear:
    """Return the weights of a linear booster, whose last number is its intercept."""
    weights: Floats = get_numbers(model, "weights", np.float32, n_features + 1).astype(np.float64)
    check_finite(weights, "weights")
    return Linear(weights[:-1].copy(), float(weights[-1]) + base)


def _read_names(learner: Mapping[str, Any], n_features: int) -> tuple[str, ...] | None:
    """Return the names of the features; None if the model has none."""
    names = learner.get("feature_names")
    if names is None or (isinstance(names, (list, np.ndarray)) and not len(names)):
        return None
    if not isinstance(names, list) or len(names) != n_features or not all(isinstance(name, str) for name in names):
        raise InputError(f"a damaged model: feature_names are {quote(names)}; expected {n_features} texts")
    return tuple(names)
