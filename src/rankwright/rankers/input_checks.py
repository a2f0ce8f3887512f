"""Checks of what users pass to rankers: parameters, and queries or arrays with query ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from os import PathLike
from typing import Any, ClassVar, TypeAlias

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, MissingQueryIdWarning, quote, warn
from rankwright.data.categories import Categories, encode_frame, list_categorical
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.models.model import CATEGORY_RANKERS, check_complete, check_features, check_names
from rankwright.rankers.parameter_names import CheckedNames

# Judged queries: a Queries, or features, grades and query ids.
QueriesLike: TypeAlias = Queries | tuple[Any, ArrayLike, ArrayLike]

MOST = 2**31 - 1  # the largest count of rounds, restarts and the like: arrays take no larger one
_LARGEST = 1e100  # the largest of all other numbers: products of larger ones are infinite
_STRONGEST = 1e30  # the largest strength of a penalty
_SHOWN = 10  # features in an error


def check_whole(name: str, value: Any, least: int) -> int:
    """Return a parameter as an int; raise InputError if it is not a whole number of at least ``least``."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= MOST:
        most = f" and at most {MOST}" if isinstance(value, int) and value > MOST else ""
        raise InputError(f"{name}={quote(value)}; expected a whole number of at least {least}{most}")
    return int(value)


def check_number(name: str, value: Any, least: float, most: float = _LARGEST) -> float:
    """Return a parameter as a float; raise InputError if it is not a number from ``least`` to ``most``."""
    value = value.item() if isinstance(value, np.generic) else value
    is_number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not is_number or not abs(value) <= most or value < least:
        limit = f" and at most {most:g}" if is_number and value > most else ""
        raise InputError(f"{name}={quote(value)}; expected a finite number of at least {least:g}{limit}")
    return float(value)


def check_strength(name: str, value: Any) -> float:
    """Return a penalty's strength, or a loss's weight, as a float; raise InputError if it is negative or huge."""
    return check_number(name, value, least=0.0, most=_STRONGEST)


def check_among(name: str, value: Any, known: Sequence[Any]) -> None:
    """Raise InputError if a parameter is not one of the ``known`` values."""
    plain_value = value.item() if isinstance(value, np.generic) else value
    if not any(type(plain_value) is type(each) and plain_value == each for each in known):
        raise InputError(f"{name}={quote(value)}; expected {' or '.join(map(repr, known))}")


def check_weights(name: str, value: Any, n_features: int | None = None) -> Floats:
    """Return a parameter as an array of one finite weight per feature; raise InputError if it is not one."""
    each = "each feature" if n_features is None else f"each of {n_features} features"
    try:
        weights = np.asarray(value, dtype=np.float64)
    except (TypeError, ValueError, OverflowError):
        raise InputError(f"{name}={quote(value)}; expected a number for {each}") from None
    if weights.ndim != 1 or n_features not in (None, len(weights)) or not np.isfinite(weights).all():
        raise InputError(f"{name} has shape {weights.shape}; expected a finite weight for {each}")
    return weights


def check_early_stopping(name: str, value: Any, has_valid: bool) -> None:
    """Raise InputError if early stopping is asked for without validation queries."""
    if value is not None and not has_valid:
        raise InputError(
            f"{name}={value} without validation queries, which early stopping goes by; pass valid= (--valid on the "
            f"command line), or leave {name} out"
        )


def is_changed(ranker: Any, name: str) -> bool:
    """Return whether a parameter differs from its default, or an option such as ``training.optimiser`` was given."""
    name, _, part = name.partition(".")
    value: Any = getattr(ranker, name)
    if part:  # TrainingOptions have all parts, so that nobody knows which of them were meant
        return isinstance(value, Mapping) and part in value
    default: Any = signature(type(ranker)).parameters[name].default
    if value is default or (value is None and default == ()):
        return False
    return type(value) is not type(default) or bool(np.any(np.asarray(value != default)))


def refuse_arguments(other: Mapping[str, Any], method: str) -> None:
    """Raise for arguments that a method does not have; for ``sample_weight`` say how documents are weighted."""
    if "sample_weight" in other:
        raise InputError(
            f"{method} takes no sample_weight; documents are weighted by Queries.from_arrays(X, y, qid, "
            "doc_weight=...), queries by weight=..."
        )
    if "group" in other:
        raise InputError(
            f"{method} takes no group; pass qid=, a query id for each row, or {method} "
            "Queries.from_arrays(X, y, group=...)"
        )
    for name in other:
        raise TypeError(f"{method}() got an unexpected keyword argument {name!r}")


def check_bins(value: Any) -> int | None:
    """Return ``max_bins`` as an int of at least 2; None means a bin for each different value of a feature."""
    return None if value is None else check_whole("max_bins", value, least=2)


class QueryEstimator(CheckedNames):
    """The base of rankers as scikit-learn estimators: ``X`` is a Queries, or arrays that come with query ids."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    allow_nan: ClassVar[bool] = False
    takes_categories: ClassVar[bool] = False  # whether features may be categorical
    takes_distributed: ClassVar[bool] = False  # whether features may stay on the workers of a cluster in training

    feature_names_in_: NDArray[Any]

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.target_tags.positive_only = True
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.allow_nan
        return tags

    def _group_training_rows(self, X: Any, y: ArrayLike | None, qid: ArrayLike | None) -> Queries:
        if isinstance(X, Queries):
            if y is not None or qid is not None:
                raise InputError("y and qid are part of the Queries; expected fit(queries)")
            if hasattr(self, "feature_names_in_"):
                del self.feature_names_in_
            if X.features is not None:
                self.feature_names_in_ = np.array(X.features, dtype=object)
            self.n_features_in_ = X.n_features  # which documents for validation are compared with
            return X
        if isinstance(X, (str, PathLike)):
            raise InputError(f"fit got the name {str(X)!r}; expected documents: read the file first, fit(rw.read(...))")
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; expected relevance grades"
            )
        return self._group_rows(X, y, qid, "fit")

    def _group_validation_rows(self, valid: QueriesLike | None) -> Queries | None:
        """Return validation queries that come as (X, y, qid) as Queries, checked as training rows are."""
        if valid is None or isinstance(valid, Queries):
            return valid
        X, y, qid = _check_triple("valid", valid)
        names = getattr(self, "feature_names_in_", None)
        if names is not None and hasattr(X, "columns") and hasattr(X, "dtypes"):
            check_names(tuple(map(str, X.columns)), tuple(names), "training has", "the validation documents")
        try:
            return self._group_rows(X, y, qid, "valid")
        except InputError:
            raise
        except ValueError as error:  # of scikit-learn
            raise InputError(f"valid: {error}") from None

    def group_sets(self, train: QueriesLike, valid: QueriesLike) -> tuple[Queries, Queries]:
        """Return training and validation queries, each of which may come as (X, y, qid), as two Queries."""
        parts = (train,) if isinstance(train, Queries) else _check_triple("train", train)
        grouped = self._group_training_rows(*parts, *[None] * (3 - len(parts)))
        held_out = self._group_validation_rows(valid)
        if held_out is None:
            raise InputError("valid is None; expected a Queries, or (X, y, qid)")
        return grouped, held_out

    def _group_rows(self, X: Any, y: ArrayLike | None, qid: ArrayLike | None, method: str) -> Queries:
        """Group rows by query; warn if they came without query ids."""
        matrix, categories = self._validate_matrix(X, reset=method == "fit")
        features = getattr(self, "feature_names_in_", None)
        ids = _warn_about_missing_ids(matrix, method) if qid is None else qid
        grades: Floats = column_or_1d(y, warn=True)
        return Queries.from_arrays(matrix, grades, ids, features=features, categories=categories)

    def _explain_not_distributed(self) -> str | None:
        """Return why training needs the features in the memory of this machine; None if they may be on a cluster."""
        return None if self.takes_distributed else "training takes all of them at once"

    def _check_sets(self, train: Queries, valid: Queries | None) -> None:
        is_distributed = any(getattr(part, "backend", None) is not None for part in (train, valid))
        if is_distributed and (why := self._explain_not_distributed()) is not None:
            _refuse_distributed(type(self).__name__, why)
        if train.categories is not None and not self.takes_categories:
            _refuse_categories(type(self).__name__, train)
        if valid is not None:
            check_features(valid, train.n_features, train.features, "training has", "the validation documents")
        for part, what in ((train, "training"), (valid, "validation")):
            if part is not None and not self.allow_nan:
                check_complete(part, f"the {what} documents", type(self).__name__)

    def _validate_matrix(self, X: Any, reset: bool) -> tuple[Any, Categories | None]:
        """Return features as an array, checked by scikit-learn, and the categories of a data frame's columns."""
        X, categories = encode_frame(X, None if reset else getattr(self, "feature_names_in_", None))
        # NaN is refused later, by a message that names the rankers which take it
        matrix = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float32, ensure_all_finite="allow-nan"
        )
        return matrix.toarray() if hasattr(matrix, "toarray") else matrix, categories


def _check_triple(name: str, given: Any) -> tuple[Any, ArrayLike, ArrayLike]:
    """Return queries that come as arrays; raise InputError unless they are (X, y, qid)."""
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        size = f" of {len(given)}" if isinstance(given, (tuple, list)) else ""
        raise InputError(f"{name} is a {type(given).__name__}{size}; expected a Queries, or (X, y, qid)")
    for part, what in zip(given, ("X", "y", "qid"), strict=True):
        if part is None or isinstance(part, Queries):
            found = "None" if part is None else "a Queries"
            raise InputError(f"{name}: {what} is {found}; expected {name}=(X, y, qid) of arrays, or {name}=queries")
    X, y, qid = given
    return X, y, qid


def _refuse_distributed(ranker: str, why: str) -> None:
    """Raise InputError for features that are on a cluster, and say which rankers take them."""
    from rankwright.rankers import RANKERS  # which imports this module

    others = ", ".join(each.__name__ for each in RANKERS if each.takes_distributed)
    raise InputError(
        f"{ranker} needs the features in the memory of this machine: {why}. They are on the workers of a cluster; "
        f"bring them here (queries.collect()), or use a ranker that trains there ({others})"
    )


def _refuse_categories(ranker: str, train: Queries) -> None:
    """Raise InputError for categorical features, by name, and say which rankers take them."""
    names = name_features(train.features, train.n_features)
    found = [str(names[column]) for column in list_categorical(train.categories)]
    shown = ", ".join(found[:_SHOWN]) + (f" and {len(found) - _SHOWN} more" if len(found) > _SHOWN else "")
    what = f"feature {shown} has categories" if len(found) == 1 else f"features {shown} have categories"
    raise InputError(
        f"{what}; {ranker} takes numbers only: leave such features out, make one of 0 and 1 for each value, or use a "
        f"ranker that takes categories ({', '.join(CATEGORY_RANKERS)})"
    )


def _warn_about_missing_ids(matrix: Floats, method: str) -> NDArray[Any]:
    """Warn that documents came without query ids, and return the same id for all of them."""
    warn(
        f"{method} was called without qid: all {matrix.shape[0]} documents count as one query. Pass qid=. In "
        "scikit-learn's cross-validation, searches and pipelines call "
        "sklearn.set_config(enable_metadata_routing=True) and pass qid as well; groups, as of GroupKFold, only split "
        "the rows and do not give the ranker its queries",
        MissingQueryIdWarning,
    )
    return np.zeros(matrix.shape[0], dtype=np.int64)
