"""A fitted estimator of another library as a scorer, where there is no other form of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.scorers import Scorer


@dataclass(frozen=True, slots=True, eq=False)
class EstimatorScorer(Scorer):
    """A scorer that calls ``predict`` of a fitted estimator, such as a nearest neighbour regression of scikit-learn.

    It lives in memory only: a model that contains it is neither saved nor exported.

    Parameters
    ----------
    estimator : object
        The fitted estimator.
    n_features : int
        The number of features it was fitted to.
    allow_nan : bool
        Whether it takes missing features.
    """

    kind: ClassVar[str] = "estimator"
    estimator: Any
    n_features: int
    allow_nan: bool

    def __call__(self, X: Floats) -> Floats:
        """Return the predictions as float64 scores."""
        return np.asarray(self.estimator.predict(X), dtype=np.float64).ravel()

    def accepts(self, n_features: int) -> bool:
        """Return whether there are as many features as in training."""
        return self.n_features == n_features

    def to_json(self) -> dict[str, Any]:
        """Raise InputError, because only the library of the estimator knows what it consists of."""
        raise InputError(
            f"the model contains a {type(self.estimator).__name__}, which cannot be written to a file: only models "
            "that rw.import_model takes can. Leave it out of the blend"
        )
