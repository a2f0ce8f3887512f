"""Linear models of scikit-learn, pipelines of scalers and such a model, and trees and sums of trees."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.models.imports.sklearn_trees import has_trees, import_trees
from rankwright.models.model import Model
from rankwright.scorers import Linear, Scorer

_SCALERS = ("StandardScaler", "MinMaxScaler", "MaxAbsScaler", "RobustScaler")
_TOLERANCE = 1e-6  # of the comparison with the library's own scores: rounding is far less, another function far more


def recognises_object(source: Any) -> bool:
    """Return whether an object is an estimator of scikit-learn, or of a class derived from one."""
    return any(base.__module__.partition(".")[0] == "sklearn" for base in type(source).__mro__)


def recognises_file(data: bytes) -> bool:
    """Return False: scikit-learn has no model files but pickles, which run code when they are read."""
    return False


def import_object(source: Any) -> Model:
    """Return the model of a fitted estimator: its decision function, or its prediction if it has none."""
    steps = [step for _, step in source.steps] if hasattr(source, "steps") else [source]
    *scalers, estimator = [step for step in steps if step is not None and step != "passthrough"] or [source]
    title = " + ".join(type(step).__name__ for step in [*scalers, estimator])
    params: dict[str, Any] = {"library": "scikit-learn", "estimator": title}
    scorer: Scorer
    if has_trees(estimator):
        if scalers:
            raise InputError(f"a pipeline of {title}; expected trees alone, which need no scaling: fit them without")
        scorer = trees = import_trees(estimator)
        n_features = trees.forest.n_features
        params["n_estimators"] = getattr(estimator, "n_iter_", len(getattr(estimator, "estimators_", [estimator])))
    else:
        scorer = _fold_scalers(source, scalers, estimator)
        n_features = len(scorer.coef)
    names = getattr(source, "feature_names_in_", None)
    return Model(
        "scikit-learn", params, "ndcg@10", scorer, n_features, None if names is None else tuple(map(str, names))
    )


def import_file(data: bytes) -> Model:
    """Raise InputError, because no file is recognised."""
    raise InputError("a file of scikit-learn, which would run code; expected the fitted object")


def _fold_scalers(source: Any, scalers: list[Any], estimator: Any) -> Linear:
    """Return the weights of a linear estimator for features as they are before these scalers."""
    coef, intercept = _read_weights(estimator)
    for scaler in reversed(scalers):
        factor, offset = _read_scaler(scaler, len(coef))
        intercept += float(coef @ offset)
        coef = coef * factor
    scorer = Linear(coef, intercept)
    _compare_scores(source, scorer, type(estimator).__name__)
    return scorer


def _read_weights(estimator: Any) -> tuple[Floats, float]:
    """Return the weights and the intercept of a linear estimator; raise InputError if it has not one of each."""
    name = type(estimator).__name__
    if not hasattr(estimator, "coef_") or not hasattr(estimator, "intercept_"):
        if not any(key.endswith("_") and not key.startswith("_") for key in vars(estimator)):
            raise InputError(f"this {name} is not fitted; call fit first")
        raise InputError(
            f"found a {name}; expected a linear model of scikit-learn, which has coef_ and intercept_, or a tree, a "
            "forest or gradient boosting for regression"
        )
    coef = estimator.coef_.toarray() if hasattr(estimator.coef_, "toarray") else np.asarray(estimator.coef_)
    intercept = np.asarray(estimator.intercept_, dtype=np.float64).ravel()
    coef = np.atleast_2d(coef.astype(np.float64))
    if coef.ndim != 2 or len(coef) != 1 or len(intercept) != 1:
        raise InputError(f"a {name} with {len(coef)} scores a document; expected one")
    if not np.isfinite(coef).all() or not np.isfinite(intercept).all():
        raise InputError(f"a {name} with a weight that is not finite; expected finite ones: scale the features")
    return coef[0].copy(), float(intercept[0])


def _read_scaler(scaler: Any, n_features: int) -> tuple[Floats, Floats]:
    """Return the factor and the offset of each feature in a scaler; raise InputError if it is not one."""
    kind, clips = type(scaler).__name__, getattr(scaler, "clip", False)
    if kind not in _SCALERS or clips:
        raise InputError(
            f"a pipeline with {'a clipping ' if clips else ''}{kind}; expected {', '.join(_SCALERS)}, which can be "
            "folded into weights"
        )
    scale = getattr(scaler, "scale_", None)
    given = np.ones(n_features) if scale is None else np.asarray(scale, dtype=np.float64)
    if given.shape != (n_features,):
        raise InputError(f"a {kind} of {len(given)} features before a model of {n_features}")
    if kind == "MinMaxScaler":
        return given, np.asarray(scaler.min_, dtype=np.float64)
    center = {"StandardScaler": "mean_", "RobustScaler": "center_"}.get(kind)
    is_centered = getattr(scaler, "with_mean", getattr(scaler, "with_centering", False))
    offset = np.asarray(getattr(scaler, center), dtype=np.float64) if center and is_centered else np.zeros(n_features)
    return 1.0 / given, -offset / given


def _compare_scores(source: Any, scorer: Linear, name: str) -> None:
    """Raise InputError unless the library's own scores of a few documents are these weighted sums."""
    rng = np.random.default_rng(0)
    size = 1.0 / np.maximum(np.abs(scorer.coef), 1e-300)
    X = rng.normal(size=(8, len(scorer.coef))) * np.minimum(size, 1e6)
    score = source.decision_function if hasattr(source, "decision_function") else source.predict
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that an array has no names
        found = np.asarray(score(X), dtype=np.float64).ravel()
    expected = X @ scorer.coef + scorer.intercept
    scale = np.abs(X) @ np.abs(scorer.coef) + abs(scorer.intercept) + 1e-300
    if found.shape != expected.shape or not (np.abs(found - expected) <= _TOLERANCE * scale).all():
        raise InputError(
            f"the scores of this {name} are not weighted sums of its features; expected a linear model, such as "
            "Ridge, LogisticRegression or LinearSVC"
        )
