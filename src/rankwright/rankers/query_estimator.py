"""The input of rankers: Queries, or arrays with query ids as scikit-learn passes them."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils.validation import column_or_1d, validate_data

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, MissingQueryIdWarning, warn
from rankwright.data.queries import Queries
from rankwright.models.model import check_complete, check_features
from rankwright.rankers.parameter_names import CheckedNames


class QueryEstimator(CheckedNames):
    """A scikit-learn estimator that takes Queries, or arrays with query ids."""

    __metadata_request__fit: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__predict: ClassVar[dict[str, bool]] = {"qid": True}
    __metadata_request__score: ClassVar[dict[str, bool]] = {"qid": True}

    allow_nan: ClassVar[bool] = False

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
            return X
        if y is None:
            raise ValueError(
                f"{type(self).__name__} requires y to be passed, but the target y is None; expected relevance grades"
            )
        matrix = self._validate_matrix(X, reset=True)
        return self._group_rows(matrix, y, qid, "fit", getattr(self, "feature_names_in_", None))

    def _group_rows(
        self, matrix: Any, y: ArrayLike | None, qid: ArrayLike | None, method: str, features: Any = None
    ) -> Queries:
        """Group rows by query; warn if they came without query ids."""
        ids = _warn_about_missing_ids(matrix, method) if qid is None else qid
        grades: Floats = column_or_1d(y, warn=True)
        return Queries.from_arrays(matrix, grades, ids, features=features)

    def _check_sets(self, train: Queries, valid: Queries | None) -> None:
        if valid is not None:
            if not isinstance(valid, Queries):
                raise InputError(f"valid is a {type(valid).__name__}; expected a Queries, as from Queries.from_arrays")
            check_features(valid, train.n_features, train.features, "training has")
        for part, what in ((train, "training"), (valid, "validation")):
            if part is not None and not self.allow_nan:
                check_complete(part, f"the {what} documents", type(self).__name__)

    def _validate_matrix(self, X: Any, reset: bool) -> Any:
        # NaN is refused later, by a message that names the rankers which take it
        matrix = validate_data(
            self, X, reset=reset, accept_sparse="csr", dtype=np.float32, ensure_all_finite="allow-nan"
        )
        return matrix.toarray() if hasattr(matrix, "toarray") else matrix


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
