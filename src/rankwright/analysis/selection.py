"""Selection of parameters: the best of a grid on validation queries, and cross-validation by query."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from math import isnan, nan
from typing import Any, ClassVar, TypeVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.model_selection import BaseCrossValidator, ParameterGrid
from sklearn.utils import check_random_state

from rankwright.basics import progress
from rankwright.basics.array_types import Ints
from rankwright.basics.errors import InputError, collect_warnings, warn
from rankwright.data.queries import Queries
from rankwright.measures import Measure, PreparedMeasure, check_counted, parse_measure, weighted_mean
from rankwright.models.model import Model
from rankwright.rankers import PathRanker, Ranker
from rankwright.rankers.blend.blending_ranker import BlendingRanker
from rankwright.rankers.input_checks import QueriesLike

R = TypeVar("R", bound=Ranker)


def select(
    ranker: R,
    grid: Mapping[str, Sequence[Any]] | Sequence[Mapping[str, Sequence[Any]]],
    train: QueriesLike,
    valid: QueriesLike,
    *,
    measure: str | Measure | None = None,
) -> R:
    """Fit every combination of a grid on ``train`` and return the ranker that is best on ``valid``.

    Rankers with a ``fit_path`` are fitted for all values of its parameter at once, which takes less time.

    Parameters
    ----------
    ranker : Ranker
        An unfitted ranker; it is not changed.
    grid : mapping of str to sequence, or several
        Values to try by parameter, as in scikit-learn.
    train, valid : Queries or (X, y, qid)
        Queries, or tuples of arrays or data frames. ``valid`` also chooses the rounds of rankers that have any.
    measure : str or Measure, optional
        Decides; by default the ranker's own. Rankers that train on the validation queries as well (``Blend``,
        ``AutoRanker``) are chosen by their ``estimate_``, and so by their own measure only.

    Returns
    -------
    Ranker
        Fitted, with ``selection_``: a list of dicts of the parameters tried and ``value``, the measure on ``valid``
        or that estimate.
        The first of equals wins. The warnings of its fit are issued, those of the other fits are not.
    """
    queries, held_out = (part.grouped() for part in clone(ranker).group_sets(train, valid))
    decisive = parse_measure(ranker.measure if measure is None else measure)
    highest = max(part.max_grade if part.has_grades else 0.0 for part in (queries, held_out))
    decisive = decisive.with_max_grade(highest)
    if ranker.pools_valid and measure is not None and decisive != parse_measure(ranker.measure).with_max_grade(highest):
        raise InputError(
            f"{type(ranker).__name__} trains on the validation queries as well, and is chosen by its own estimate of "
            f"{ranker.measure}; leave measure={str(decisive)!r} out, or give it to the ranker"
        )
    check_counted(decisive, held_out, "validation")
    prepared = decisive.prepare(held_out)
    tried: list[dict[str, Any]] = []
    best: R | None = None
    combinations = list(ParameterGrid(grid))
    if not combinations:
        raise InputError("the grid is empty; expected at least one combination of parameters")
    candidates = _fit_combinations(ranker, combinations, queries, held_out)
    with collect_warnings():  # warnings of candidates that are not chosen are dropped
        for params, candidate in progress.track(zip(combinations, candidates), "selecting", len(combinations)):
            value = find_deciding_value(candidate, prepared, held_out)
            if best is None or value > max(row["value"] for row in tried):
                best = candidate
            tried.append({**params, "value": value})
    assert best is not None
    for found in best.fit_warnings_:
        warn(found.message, found.category)
    best.selection_ = tried
    return best


def find_deciding_value(ranker: Ranker | Model, prepared: PreparedMeasure, valid: Queries) -> float:
    """Return the mean measure on validation queries, by which a ranker is chosen among others of its class.

    Of a ranker that was trained on these, too, it is the estimate of its measure on queries that it has not seen.
    """
    estimate = ranker.estimate_.mean if isinstance(ranker, BlendingRanker) else nan
    if not isnan(estimate):
        return float(estimate)
    return weighted_mean(prepared.values(ranker.predict(valid)), valid.query_weight)


def _fit_combinations(
    ranker: R, combinations: Sequence[Mapping[str, Any]], train: Queries, valid: Queries
) -> Iterator[R]:
    """Yield a fitted ranker per combination of parameters, in order; those on one path are fitted together."""
    ready: dict[int, R] = {}
    for at, params in enumerate(combinations):
        if at not in ready:
            together = _find_path(ranker, combinations, at)
            base = clone(ranker).set_params(**params)
            if len(together) > 1 and isinstance(base, PathRanker):
                values = [combinations[k][base.path_parameter] for k in together]
                ready.update(zip(together, base.fit_path(values, train, valid=valid), strict=True))
            else:
                ready[at] = base.fit(train, valid=valid)
        yield ready.pop(at)


def _find_path(ranker: Ranker, combinations: Sequence[Mapping[str, Any]], at: int) -> list[int]:
    """Return the places, from ``at`` on, of the combinations that differ from that one only in the path's parameter."""
    if not isinstance(ranker, PathRanker) or ranker.path_parameter not in combinations[at]:
        return [at]
    names = combinations[at].keys() - {ranker.path_parameter}

    def is_like(other: Mapping[str, Any]) -> bool:
        return other.keys() == combinations[at].keys() and all(other[name] is combinations[at][name] for name in names)

    return [k for k in range(at, len(combinations)) if is_like(combinations[k])]


class QueryKFold(BaseCrossValidator):
    """A cross-validator for scikit-learn with K folds of whole queries: no query is split between folds.

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
        """Return the number of folds."""
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
        queries = Queries.from_arrays(np.zeros((len(ids), 1)), np.zeros(len(ids)), ids)
        order = np.arange(len(queries))
        if len(order) < self.n_splits:
            raise InputError(f"{len(order)} queries cannot make {self.n_splits} folds")
        if self.shuffle:
            order = check_random_state(self.random_state).permutation(order)
        row_query = queries.restore(np.repeat(np.arange(len(queries)), queries.sizes))
        for fold in np.array_split(order, self.n_splits):
            test = np.isin(row_query, fold)
            yield np.flatnonzero(~test), np.flatnonzero(test)
