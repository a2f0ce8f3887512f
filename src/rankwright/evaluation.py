"""Evaluation: measures x queries, selection on a validation set, cross-validation by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, ParameterGrid
from sklearn.utils import check_random_state

from rankwright import progress
from rankwright._optional import require
from rankwright.backends import Backend
from rankwright.data import Floats, InputError, Ints, Queries
from rankwright.measures import Measure, bound_values, parse, split, weighted_mean
from rankwright.models import Fitted
from rankwright.rankers import Ranker

R = TypeVar("R", bound=Ranker)


@dataclass(frozen=True, slots=True, eq=False)
class Evaluations:
    """Measures of a ranking, by query and in the mean.

    Parameters
    ----------
    measures : tuple of str
        Names that say exactly what was computed.
    values : array of shape (n_measures, n_queries)
        NaN where a measure skips a query.
    qid : array of shape (n_queries,)
    weight : array of shape (n_queries,)
        Query weights, used by the means.
    """

    measures: tuple[str, ...]
    values: Floats
    qid: NDArray[Any]
    weight: Floats

    @property
    def means(self) -> dict[str, float]:
        """The weighted mean of each measure over the queries that count."""
        return {name: weighted_mean(row, self.weight) for name, row in zip(self.measures, self.values, strict=True)}

    @property
    def per_query(self) -> dict[str, Floats]:
        """The values of each measure, in the order of ``qid``."""
        return dict(zip(self.measures, self.values, strict=True))

    def __getitem__(self, measure: str | Measure) -> float:
        name = str(parse(measure))
        if name not in self.measures:
            raise KeyError(f"{name} was not evaluated; there are {', '.join(self.measures)}")
        return self.means[name]

    def __repr__(self) -> str:
        means = ", ".join(f"{name}={value:.4f}" for name, value in self.means.items())
        return f"Evaluations({means}; {len(self.qid)} queries)"

    def to_pandas(self) -> Any:
        """A data frame with a row per query and a column per measure."""
        frame = require("pandas").DataFrame(self.per_query, index=self.qid)
        frame.index.name = "qid"
        return frame


def evaluate(
    ranking: Fitted | ArrayLike,
    queries: Queries,
    measures: str | Measure | Sequence[str | Measure],
    backend: Backend | None = None,
) -> Evaluations:
    """Evaluate a fitted ranker, a model or scores (one per row of ``queries``) by several measures.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [2.0]], [1, 0], qid=[7, 7])
    >>> evaluate([0.3, 0.1], queries, "mrr, p@1")
    Evaluations(mrr=1.0000, p@1=1.0000; 1 queries)
    """
    if isinstance(measures, str):
        measures = split(measures)
    parsed = [parse(m) for m in ([measures] if isinstance(measures, Measure) else measures)]
    if not parsed:
        raise InputError("no measure given; expected names such as ndcg@10")
    scores = ranking.predict(queries) if hasattr(ranking, "predict") else np.asarray(ranking, dtype=np.float64)
    values = bound_values([measure.bind(queries) for measure in parsed], scores, backend)
    return Evaluations(tuple(str(m) for m in parsed), values, queries.qid, queries.query_weight)


def select(
    ranker: R,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    train: Queries,
    valid: Queries,
    *,
    measure: str | Measure | None = None,
) -> R:
    """Fit every combination of a grid on ``train`` and return the ranker that is best on ``valid``.

    Parameters
    ----------
    ranker : Ranker
        An unfitted ranker; it is not changed.
    grid : mapping of str to sequence, or several
        Values to try by parameter, as in scikit-learn.
    train, valid : Queries
        ``valid`` also chooses the rounds of rankers that have any.
    measure : str or Measure, optional
        Decides; by default the ranker's own.

    Returns
    -------
    Ranker
        Fitted, with ``selection_``: a list of dicts of the parameters tried and ``value``, the measure on ``valid``. The first of
        equals wins.
    """
    decisive = parse(ranker.measure if measure is None else measure)
    bound = decisive.bind(valid)
    tried: list[dict[str, Any]] = []
    best: R | None = None
    combinations = list(ParameterGrid(grid))
    for params in progress.track(combinations, "selecting", len(combinations)):
        candidate: R = clone(ranker).set_params(**params).fit(train, valid=valid)
        value = weighted_mean(bound.values(candidate.predict(valid)), valid.query_weight)
        if best is None or value > max(row["value"] for row in tried):
            best = candidate
        tried.append({**params, "value": value})
    assert best is not None  # a grid has at least one combination
    best.selection_ = tried
    return best


class QueryKFold(BaseCrossValidator):
    """K folds of whole queries: the documents of a query never part.

    Parameters
    ----------
    n_splits : int
        The number of folds.
    shuffle : bool
        Whether to shuffle the queries first; otherwise they are cut in order of first appearance.
    random_state : int, RandomState or None
        Seeds the shuffle.

    Examples
    --------
    >>> for train, test in QueryKFold(2).split(np.zeros((4, 1)), qid=["a", "b", "a", "c"]):
    ...     print(train, test)
    [3] [0 1 2]
    [0 1 2] [3]
    """

    __metadata_request__split: ClassVar[dict[str, bool]] = {"qid": True}

    def __init__(self, n_splits: int = 5, *, shuffle: bool = False, random_state: Any = None) -> None:
        self.n_splits = n_splits
        self.shuffle = shuffle
        self.random_state = random_state

    def get_n_splits(self, X: Any = None, y: Any = None, qid: Any = None, groups: Any = None) -> int:
        """The number of folds."""
        return self.n_splits

    def split(
        self, X: Any, y: Any = None, qid: ArrayLike | None = None, groups: Any = None
    ) -> Iterator[tuple[Ints, Ints]]:
        """Yield the rows of training and test documents of each fold."""
        if qid is None:
            raise InputError(
                "QueryKFold needs qid: pass qid= to fit, after sklearn.set_config(enable_metadata_routing=True)"
            )
        if self.n_splits < 2:
            raise InputError(f"n_splits={self.n_splits}; expected at least 2")
        ids = np.asarray(qid)
        _, first, row_query = np.unique(ids, return_index=True, return_inverse=True)
        order = np.argsort(first)  # queries by first appearance
        if len(order) < self.n_splits:
            raise InputError(f"{len(order)} queries cannot make {self.n_splits} folds")
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(order)
        for fold in np.array_split(order, self.n_splits):
            test = np.isin(row_query, fold)
            yield np.flatnonzero(~test), np.flatnonzero(test)
