"""SingleFeature: rank by one feature."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

import numpy as np

from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import check_feature, find_column, name_features
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.weak.single_features import BestFeature
from rankwright.rankers.base import FitResult, Ranker
from rankwright.rankers.fit_memory import DataSize
from rankwright.runtime.backends import Backend
from rankwright.scorers import Feature


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SingleFeature(Ranker):
    """A ranker by one feature, such as BM25: the given one, or the best on the training queries.

    Parameters
    ----------
    measure : str or Measure
        Measure that chooses the feature and the sign, and is recorded in `history_`.
    feature : int or str, optional
        The feature's name, or its column, from 0 (LETOR's feature 25 is column 24, or "25" where features have no
        names); None takes the best on the training queries. The command line and specs take its name or its number.
    sign : 1, -1 or None
        1 ranks large values first, -1 small ones; None takes the better on the training queries.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = SingleFeature(feature=2).fit(make_queries(20, random_state=0))
    >>> ranker.scorer_
    Feature(index=2, sign=1)
    """

    bytes_per_doc: ClassVar[int] = 100
    takes_distributed: ClassVar[bool] = True

    feature: int | str | None = None
    sign: int | None = None

    def _more_memory(self, size: DataSize) -> float:
        return 3.0 * 8 * 2 * size.n_queries * (size.n_features if self.feature is None else 1)

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        if self.sign not in (1, -1, None):
            raise InputError(f"sign={self.sign!r}; expected 1, -1 or None")
        if self.feature is not None:
            check_feature(self.feature, "feature")
        names = name_features(train.features, train.n_features)
        wanted = (
            np.arange(len(names)) if self.feature is None else np.array([find_column(self.feature, names, "feature")])
        )
        candidates = BestFeature(measure.for_training(), signed=True, features=tuple(wanted.tolist()))
        weak = candidates.prepare(backend.scatter(train), backend)
        signs = np.repeat([1, -1], len(wanted))
        allowed = np.ones(len(signs), dtype=bool) if self.sign is None else signs == self.sign
        best, value = weak.fit(weak.make_distribution(train.query_weight), allowed)
        scorer = Feature(int(wanted[best % len(wanted)]), int(signs[best]))
        record = {"feature": scorer.index, "sign": scorer.sign, "loss": 1.0 - value, "train": value}
        if valid is not None:
            record["valid"] = measure.mean(valid, valid.compute_scores(scorer), backend)
        return FitResult(scorer, [record | {"kept": True}])
