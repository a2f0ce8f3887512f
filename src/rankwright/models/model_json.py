"""Models as JSON text, which is parsed without running code."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath
from rankwright.data.categories import Categories, as_values
from rankwright.data.feature_numbers import convert_columns_to_numbers, convert_numbers_to_columns
from rankwright.models.model import Model, to_json_value
from rankwright.scorers import read_scorer
from rankwright.scorers.linear import QueryScaling

FORMAT, VERSION = "rankwright", 1
_FOREIGN = "a model file of LightGBM, XGBoost, CatBoost or RankLib"
_EXPECTED = f"a saved model, or {_FOREIGN}"
MAX_FEATURES = 10_000_000  # of a model
_MAX_DEPTH = 32  # of lists and objects inside each other in the record of a model's training


def format_model(model: Model, indent: int | None = None) -> str:
    """Return the JSON text of a model, as it is saved to a file."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "ranker": model.ranker,
        "params": convert_columns_to_numbers(to_json_value(model.params)),
        "measure": model.measure,
        "n_features": model.n_features,
        "features": model.features,
        "categories": model.categories,
        "scaling": None if model.scaling is None else {"kind": "query"},
        "scorer": {"kind": model.scorer.kind, **model.scorer.to_json()},
        "history": model.history,
    }
    try:
        return json.dumps(content, allow_nan=False, indent=indent, default=to_json_value)
    except ValueError:  # NaN or infinity: in the history they become null
        content["history"] = to_json_value(model.history)
        return json.dumps(content, allow_nan=False, indent=indent)


def compute_digest(model: Model) -> str:
    """Return a digest of what determines a model's scores: 16 hexadecimal digits, the same after saving and loading."""
    scaling = None if model.scaling is None else "query"
    scorer = {"kind": model.scorer.kind, **model.scorer.to_json()}
    content = [model.n_features, model.features, model.categories, scaling, scorer]
    return hashlib.sha256(json.dumps(content, sort_keys=True, default=to_json_value).encode()).hexdigest()[:16]


def parse_model(data: bytes, path: StrPath) -> Model:
    """Return the model in the JSON text ``data`` read from ``path``; raise InputError if it is damaged."""
    content = _parse_json(data, path)
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise InputError(
            f'{path}: not a Rankwright model; expected a JSON object with "format": "{FORMAT}", or {_FOREIGN}'
        )
    if type(content.get("version")) is not int or content["version"] != VERSION:
        found = quote(content.get("version"))
        raise InputError(f"{path}: model version {found}; this release reads version {VERSION}")
    try:
        return _build_model(content)
    except KeyError as error:
        raise InputError(f"{path}: the model lacks {error}") from None
    except (InputError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise InputError(f"{path}: damaged model: {error}") from None


def _parse_json(data: bytes, path: StrPath) -> Any:
    """Parse strict JSON; raise InputError for NaN and repeated keys, which only some readers accept."""
    try:
        return json.loads(data.decode("utf-8"), parse_constant=_refuse_constant, object_pairs_hook=_build_object)
    except json.JSONDecodeError as error:
        found = "an empty file" if not data.strip() else f"not a whole JSON file: {error.msg}"
        raise InputError(f"{path}:{error.lineno}: {found}; expected {_EXPECTED}") from None
    except UnicodeDecodeError:
        raise InputError(f"{path}: not a text file; expected {_EXPECTED}") from None
    except RecursionError:
        raise InputError(f"{path}: not a model: lists inside lists without end") from None
    except ValueError as error:  # an InputError, or an integer with thousands of digits
        raise InputError(f"{path}: not a model: {error}") from None


def _refuse_constant(name: str) -> Any:
    """Raise InputError for NaN or Infinity in a JSON file."""
    raise InputError(f"found {name}, which JSON does not have; expected a finite number or null")


def _build_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return a JSON object as a dict; raise InputError if it has a key twice."""
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise InputError(f"found {quote(next(name for name in names if names.count(name) > 1))} twice in one object")
    return found


def _check_value(value: Any, what: str, depth: int = 0) -> None:
    """Raise InputError for what ``to_json_value`` never makes: infinite numbers and deeply nested lists."""
    if depth > _MAX_DEPTH:
        raise InputError(f"{what} has more than {_MAX_DEPTH} lists or objects inside each other")
    if isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            _check_value(item, what, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise InputError(f"{what} has a number that is too large; expected finite ones or null")


def _build_model(content: Mapping[str, Any]) -> Model:
    """Return the model of parsed JSON; raise InputError unless all its parts are valid."""
    kinds = {"ranker": str, "params": dict, "measure": str, "n_features": int, "scorer": dict, "history": list}
    for name, kind in kinds.items():
        if type(content[name]) is not kind:
            raise InputError(f"{name} is {quote(content[name])}")
    features, scaling, n_features = content["features"], content["scaling"], content["n_features"]
    if not 1 <= n_features <= MAX_FEATURES:
        raise InputError(f"n_features is {quote(n_features)}; expected 1 to {MAX_FEATURES}")
    if features is not None:
        named = isinstance(features, list) and all(isinstance(name, str) for name in features)
        if not named or len(features) != n_features:
            raise InputError(f"features are {quote(features)}; expected {n_features} names")
    if scaling is not None and scaling != {"kind": "query"}:
        raise InputError(f"scaling is {quote(scaling)}; expected that of kind 'query'")
    if not all(isinstance(record, dict) for record in content["history"]):
        raise InputError("history is not a list of records")
    for name in ("params", "history"):
        _check_value(content[name], name)
    scorer = read_scorer(content["scorer"])
    if not scorer.accepts(n_features):
        raise InputError(f"the scorer does not fit {n_features} features")
    if scorer.categorical and "categories" not in content:  # null: the numbers of the features are the categories
        first = min(scorer.categorical) + 1
        raise InputError(f"trees split feature {first} by category; expected its values in categories")
    categories = _check_categories(content.get("categories"), n_features)
    return Model(
        content["ranker"],
        convert_numbers_to_columns(content["params"]),
        content["measure"],
        scorer,
        n_features,
        None if features is None else tuple(features),
        None if scaling is None else QueryScaling(),
        content["history"],
        categories,
    )


def _check_categories(categories: Any, n_features: int) -> Categories | None:
    """Return the categories of a model; raise InputError unless they are texts that differ, or null, by feature."""
    if categories is None:
        return None
    if not isinstance(categories, list) or len(categories) != n_features:
        raise InputError(
            f"categories are {quote(categories)}; expected a list, or null, for each of {n_features} features"
        )
    for values in categories:
        if values is not None and not (isinstance(values, list) and all(isinstance(value, str) for value in values)):
            raise InputError(f"categories are {quote(values)} for a feature; expected a list of texts")
    return tuple(
        None if values is None else as_values(values, str(number)) for number, values in enumerate(categories, start=1)
    )
