"""The functions that turn a model of any library, an object or a file, into a ``Model``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from rankwright.basics.errors import InputError, quote
from rankwright.basics.files import StrPath, open_binary
from rankwright.models.imports.first_columns import drop_first_feature
from rankwright.models.model import Model
from rankwright.models.model_json import parse_model

# The modules of this folder, in the order in which they are asked about a file.
_LIBRARIES = ("from_lightgbm", "from_xgboost", "from_catboost", "from_ranklib", "from_sklearn")


class _Library(Protocol):
    """The interface of the module of a library: it recognises its own models, and imports them."""

    def recognises_object(self, source: Any) -> bool:
        """Return whether an object in memory is a model of this library; the library itself is not imported."""
        ...

    def recognises_file(self, data: bytes) -> bool:
        """Return whether the content of a file is a model of this library."""
        ...

    def import_object(self, source: Any) -> Model:
        """Return the model of an object; raise InputError if it cannot be represented exactly."""
        ...

    def import_file(self, data: bytes) -> Model:
        """Return the model in the content of a file; raise InputError if it is damaged or cannot be represented."""
        ...


def import_model(
    source: Any, *, features: Sequence[str] | None = None, n_features: int | None = None, drop_first: bool = False
) -> Model:
    """Return a model of another library as a ``Model``, which predicts, is compared, explained, polished and exported.

    Parameters
    ----------
    source : object, str or Path
        A fitted model of LightGBM, XGBoost, CatBoost or scikit-learn (linear, or of trees), or a file: LightGBM's
        text, XGBoost's or CatBoost's JSON, or RankLib's text. Reading a file runs no code from it.
    features : sequence of str, optional
        The names of the features, for a model that has none, or others.
    n_features : int, optional
        The number of features of the documents. A text of RankLib names only those it uses, so that without it the
        number is the largest of them. Other models know theirs.
    drop_first : bool
        Whether to leave out the first column, which the model must not use. LightGBM and XGBoost keep the numbers of
        LibSVM text as columns from 0; where the text counts from 1, as LETOR does, column 0 is empty.

    Returns
    -------
    Model
        Its scores are the raw scores of the library, to the precision of the library.
    """
    if isinstance(source, (str, Path)):
        with open_binary(source) as file:
            model = parse_file(file.read(), source, n_features)
    elif n_features is not None:
        raise InputError(f"n_features={n_features} with a model that knows its number of features; leave it out")
    else:
        model = as_model(source)
    model = drop_first_feature(model) if drop_first else model
    return model if features is None else _with_names(model, features)


def parse_file(data: bytes, path: StrPath, n_features: int | None = None) -> Model:
    """Return the model in the content of a file: one that Rankwright saved, or one of another library."""
    for library in _list_libraries():
        if library.recognises_file(data):
            try:
                if n_features is not None:
                    return _import_with_features(library, data, n_features)
                return library.import_file(data)
            except InputError as error:
                raise InputError(f"{path}: {error}") from None
    if data[:1] == b"\x80" and data[1:2] in (b"\x02", b"\x03", b"\x04", b"\x05"):
        raise InputError(
            f"{path}: a pickle, which runs code when it is loaded; expected a model as its library saves it: write "
            "booster.save_model(...) of LightGBM or XGBoost, or rw.save(model, ...)"
        )
    if n_features is not None:
        raise InputError(f"{path}: n_features={n_features} with a saved model, which knows its own; leave it out")
    return parse_model(data, path)


def _import_with_features(library: Any, data: bytes, n_features: int) -> Model:
    """Return the model in a file that does not say how many features there are."""
    if not getattr(library, "TAKES_N_FEATURES", False):
        raise InputError(f"n_features={n_features} with a model that knows its number of features; leave it out")
    model: Model = library.import_file(data, n_features)
    return model


def as_model(fitted: Any) -> Model:
    """Return the model of a fitted ranker, or of a model of another library; return a model as it is.

    A search of scikit-learn, such as GridSearchCV, stands for its best estimator.
    """
    if hasattr(fitted, "to_model") and not isinstance(fitted, type):  # the class of a ranker is no ranker
        model: Model = fitted.to_model()
        return model
    if isinstance(fitted, (str, Path)):
        raise InputError(
            f"found the text {str(fitted)!r}; expected a fitted ranker or a Model (rw.load reads its file)"
        )
    return as_model(fitted.best_estimator_) if hasattr(fitted, "best_estimator_") else _import_object(fitted)


def _import_object(source: Any) -> Model:
    """Return the model of an object; raise InputError if no library recognises it."""
    for library in _list_libraries():
        if library.recognises_object(source):
            return library.import_object(source)
    found = f"the class {source.__name__}" if isinstance(source, type) else f"an object of {type(source).__name__}"
    raise InputError(
        f"found {found}; expected a fitted ranker, a Model, or a fitted model of LightGBM, XGBoost, CatBoost, or a "
        "linear one or one of trees of scikit-learn"
    )


def _with_names(model: Model, features: Sequence[str]) -> Model:
    """Return the model with these names of its features."""
    if isinstance(features, str) or not all(isinstance(name, str) for name in features):
        raise InputError(f"features={quote(features)}; expected a list of names")
    if len(features) != model.n_features or len(set(features)) < len(features):
        raise InputError(f"{len(set(features))} names of features; the model has {model.n_features}")
    return replace(model, features=tuple(features))


def _list_libraries() -> list[_Library]:
    """Return the modules of all libraries."""
    found: list[Any] = [import_module(f"rankwright.models.imports.{name}") for name in _LIBRARIES]
    return found
