"""Models of CatBoost of numeric features: fitted estimators, and the files of ``save_model(format="json")``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.models.imports.catboost_trees import FloatFeature, read_oblivious_tree, read_tree_of_nodes
from rankwright.models.imports.json_values import check_finite, get_integer, get_numbers, get_value, parse_object
from rankwright.models.model import Model
from rankwright.models.model_json import MAX_FEATURES
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import make_leaf

_OTHER_FEATURES = ("categorical_features", "text_features", "embedding_features")
_TREATMENTS = {"AsIs": True, "AsFalse": True, "AsTrue": False}  # whether a missing value goes left


def recognises_object(source: Any) -> bool:
    """Return whether an object is an estimator of CatBoost."""
    return any(base.__module__.partition(".")[0] == "catboost" for base in type(source).__mro__)


def recognises_file(data: bytes) -> bool:
    """Return whether the content of a file is CatBoost's JSON, or its binary form."""
    is_json = data[:64].lstrip().startswith(b"{") and b'"features_info"' in data and b'"split' in data
    return is_json or data.startswith(b"CBM1")


def import_object(source: Any) -> Model:
    """Return the model of a fitted estimator; CatBoost keeps the trees up to the best iteration."""
    if not hasattr(source, "save_model") or not source.is_fitted():
        raise InputError(f"found a {type(source).__name__} of CatBoost; expected a fitted estimator")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        try:
            source.save_model(str(path), format="json")
        except Exception as error:  # CatBoostError, which is not imported here
            raise InputError(f"CatBoost cannot save this model as JSON: {str(error).splitlines()[0]}") from None
        return import_file(path.read_bytes())


def import_file(data: bytes) -> Model:
    """Return the model of CatBoost's JSON."""
    if data.startswith(b"CBM1"):
        raise InputError(
            "CatBoost's binary form; expected JSON: load it in CatBoost and save_model('model.json', format='json')"
        )
    content = parse_object(data, "CatBoost")
    features = _read_features(get_value(content, "features_info", dict))
    trees = _read_trees(content, features)
    scale, bias = _read_scale_and_bias(content)
    if scale != 1.0:
        trees = [tree.scale(scale) for tree in trees]
    n_trees = len(trees)
    if bias or not trees:
        trees.append(make_leaf(bias))
    names = tuple(feature.name for feature in features)
    is_named = any(names) and names != tuple(map(str, range(len(names))))
    if is_named and not all(names):
        raise InputError("a CatBoost model some of whose features have no name; expected names for all or none")
    params = {"library": "CatBoost", "objective": _find_objective(content), "n_estimators": n_trees}
    forest = Forest.from_trees(trees, len(features))
    return Model("CatBoost", params, "ndcg@10", Trees(forest), len(features), names if is_named else None)


def _read_features(info: Mapping[str, Any]) -> list[FloatFeature]:
    """Return the features by column; raise InputError for those that are not numeric, with their names."""
    for kind in _OTHER_FEATURES:
        others = info.get(kind)
        if others:
            first = others[0] if isinstance(others, list) and isinstance(others[0], dict) else {}
            name = first.get("feature_id") or first.get("flat_feature_index")
            raise InputError(
                f"a CatBoost model with {kind.replace('_', ' ')}, such as {quote(name)}, which cannot be represented; "
                "expected numeric features only"
            )
    found = get_value(info, "float_features", list)
    if not 1 <= len(found) <= MAX_FEATURES:
        raise InputError(f"a CatBoost model of {len(found)} numeric features; expected 1 to {MAX_FEATURES}")
    features: list[FloatFeature | None] = [None] * len(found)
    for index, feature in enumerate(found):
        if not isinstance(feature, dict):
            raise InputError(f"a damaged model: a feature is {quote(feature)}; expected an object")
        column, treatment = get_integer(feature, "flat_feature_index"), feature.get("nan_value_treatment", "AsIs")
        if column >= len(found) or features[column] is not None or get_integer(feature, "feature_index") != index:
            raise InputError("a damaged model: float_features do not number the columns")
        if not isinstance(treatment, str) or treatment not in _TREATMENTS:
            raise InputError(f"a damaged model: nan_value_treatment is {quote(treatment)}")
        name = feature.get("feature_id", "")
        features[column] = FloatFeature(index, column, name if isinstance(name, str) else "", _TREATMENTS[treatment])
    return [feature for feature in features if feature is not None]


def _read_trees(content: Mapping[str, Any], features: list[FloatFeature]) -> list[Any]:
    """Return the trees: symmetric ones, or others."""
    by_index = sorted(features, key=lambda feature: feature.index)
    if "oblivious_trees" in content:
        return [read_oblivious_tree(tree, by_index) for tree in get_value(content, "oblivious_trees", list)]
    return [read_tree_of_nodes(tree, by_index) for tree in get_value(content, "trees", list)]


def _read_scale_and_bias(content: Mapping[str, Any]) -> tuple[float, float]:
    """Return the factor and the constant that the sum of the trees gets."""
    if "scale_and_bias" not in content:
        return 1.0, 0.0
    found = get_value(content, "scale_and_bias", list)
    is_pair = len(found) == 2 and isinstance(found[1], (list, int, float))
    biases = found[1] if is_pair and isinstance(found[1], list) else found[1:]
    if is_pair and len(biases) != 1:
        raise InputError("a CatBoost model with several scores a document; expected one")
    both: Floats = get_numbers(
        {"scale_and_bias": [found[0], *biases] if is_pair else None}, "scale_and_bias", np.float64
    )
    check_finite(both, "scale_and_bias")
    return float(both[0]), float(both[1])


def _find_objective(content: Mapping[str, Any]) -> str:
    """Return the name of the loss that the model was trained with."""
    found: Any = content
    for name in ("model_info", "params", "loss_function", "type"):
        found = found.get(name) if isinstance(found, dict) else None
    return found if isinstance(found, str) else "unknown"
