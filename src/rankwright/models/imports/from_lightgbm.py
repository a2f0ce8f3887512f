"""Models of LightGBM: Boosters, estimators of its scikit-learn interface, and its model text."""

from __future__ import annotations

import json
import re
from typing import Any

from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import Categories, as_values
from rankwright.models.model import Model
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.tree_sum import Trees


def recognises_object(source: Any) -> bool:
    """Return whether an object is a Booster or a fitted estimator of LightGBM."""
    return any(base.__module__.partition(".")[0] == "lightgbm" for base in type(source).__mro__)


def recognises_file(data: bytes) -> bool:
    """Return whether the content of a file is LightGBM's model text, or the JSON of ``dump_model``."""
    is_dump = data[:64].lstrip().startswith(b"{") and b'"tree_info"' in data and b'"max_feature_idx"' in data
    return is_dump or data.startswith((b"tree\n", b"tree\r\n"))


def import_object(source: Any) -> Model:
    """Return the model of a Booster or an estimator, up to its best iteration."""
    if not hasattr(source, "num_trees"):
        if not hasattr(source, "booster_"):
            if hasattr(source, "fit"):
                raise InputError(f"this {type(source).__name__} is not fitted; call fit first")
            raise InputError(f"found a {type(source).__name__} of LightGBM; expected a Booster or a fitted estimator")
        source = source.booster_
    best = source.best_iteration if source.best_iteration > 0 else None
    return _build_model(source.model_to_string(num_iteration=best))


def import_file(data: bytes) -> Model:
    """Return the model of LightGBM's text."""
    if not data.startswith(b"tree"):
        raise InputError("the JSON of LightGBM's dump_model; expected its model text: use save_model")
    try:
        return _build_model(data.decode("utf-8").replace("\r\n", "\n"))
    except UnicodeDecodeError:
        raise InputError("LightGBM's text is not UTF-8; save the model again") from None


def _build_model(text: str) -> Model:
    """Return the model of LightGBM's text."""
    forest = Forest.from_text(text)
    names = tuple(forest.header["feature_names"].split(" "))
    is_unnamed = names == tuple(f"Column_{i}" for i in range(forest.n_features))
    objective = re.search(r"^objective=(\S+)", text, re.MULTILINE)
    boosting = re.search(r"^\[boosting: (\w+)\]$", text, re.MULTILINE)
    params = {
        "library": "LightGBM",
        "boosting": boosting[1] if boosting else "gbdt",
        "objective": objective[1] if objective else "custom",
        "n_estimators": len(forest),
    }
    categories = _read_categories(text, forest)
    features = None if is_unnamed else names
    return Model("LightGBM", params, "ndcg@10", Trees(forest), forest.n_features, features, categories=categories)


def _read_categories(text: str, forest: Forest) -> Categories | None:
    """Return the values of the categorical columns of a data frame; None if the numbers themselves are categories.

    LightGBM writes the values of each such column without its name, in the order of the columns.
    """
    line = text.rfind("\npandas_categorical:")
    try:
        found = json.loads(text[line:].partition(":")[2]) if line >= 0 else None
    except (ValueError, RecursionError):
        raise InputError("pandas_categorical in LightGBM's text is not JSON; save the model again") from None
    if not found:
        return None
    columns = _list_categorical_columns(text, forest)
    is_list = isinstance(found, list) and all(isinstance(values, list) for values in found)
    if not is_list or len(found) != len(columns):
        raise InputError(
            f"the values of {len(found)} columns of categories in LightGBM's text, which has {len(columns)} "
            "categorical features, so that it does not say whose they are; expected as many (ordered categories are "
            "none for LightGBM: give it their numbers)"
        )
    categories: list[tuple[str, ...] | None] = [None] * forest.n_features
    names, infos = forest.header["feature_names"].split(" "), forest.header["feature_infos"].split(" ")
    for column, values in zip(columns, found, strict=True):
        seen = [int(word) for word in infos[column].split(":")] if infos[column] != "none" else []
        if max(seen, default=-1) >= len(values) or any(isinstance(value, (list, dict)) for value in values):
            raise InputError(f"{quote(values)} as the categories of {names[column]} in LightGBM's text")
        categories[column] = as_values(values, names[column])
    return tuple(categories)


def _list_categorical_columns(text: str, forest: Forest) -> list[int]:
    """Return the columns of categorical features, from the parameters; else those with categories in the text."""
    given = re.search(r"^\[categorical_feature: ([0-9,]+)\]$", text, re.MULTILINE)
    infos = forest.header["feature_infos"].split(" ")
    known = {i for i, info in enumerate(infos) if info != "none" and not info.startswith("[")}
    listed = {int(word) for word in given[1].split(",") if word} if given else known
    if not forest.categorical <= listed or not listed <= set(range(forest.n_features)) or not known <= listed:
        raise InputError("categorical_feature in LightGBM's text; expected the features that it splits by category")
    return sorted(listed)
