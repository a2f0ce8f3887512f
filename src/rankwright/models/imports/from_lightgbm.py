"""Models of LightGBM: Boosters, estimators of its scikit-learn interface, and its model text."""

from __future__ import annotations

from typing import Any

from rankwright.models.model import Model
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.tree_sum import Trees


def recognises_object(source: Any) -> bool:
    """Return whether an object is a Booster or a fitted estimator of LightGBM."""
    return any(base.__module__.partition(".")[0] == "lightgbm" for base in type(source).__mro__)


def recognises_file(data: bytes) -> bool:
    """Return whether the content of a file is LightGBM's model text."""
    return data.startswith(b"tree\n")


def import_object(source: Any) -> Model:
    """Return the model of a Booster or an estimator, up to its best iteration."""
    booster = source if hasattr(source, "num_trees") else source.booster_
    best = booster.best_iteration if booster.best_iteration > 0 else None
    return _build_model(booster.model_to_string(num_iteration=best))


def import_file(data: bytes) -> Model:
    """Return the model of LightGBM's text."""
    return _build_model(data.decode())


def _build_model(text: str) -> Model:
    """Return the model of LightGBM's text."""
    forest = Forest.from_text(text)
    names = tuple(forest.header["feature_names"].split(" "))
    is_unnamed = names == tuple(f"Column_{i}" for i in range(forest.n_features))
    return Model("LightGBM", {}, "ndcg@10", Trees(forest), forest.n_features, None if is_unnamed else names)
