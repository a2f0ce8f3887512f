"""Scorers of raw features, a weighted sum of all or one of them, and the scaling that is folded into such sums."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError, quote
from rankwright.data.categories import list_categorical
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import add_column_moments, compute_linear_scores
from rankwright.runtime.backends import Backend, Serial, Shards, choose_nearest, resolve
from rankwright.scorers.base import Scorer, parse_number, parse_numbers


@dataclass(frozen=True, slots=True, eq=False)
class Linear(Scorer):
    """A scorer that is a weighted sum of raw features, plus an intercept.

    >>> Linear(np.array([2.0, -1.0]), 0.5)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-0.5]
    """

    kind: ClassVar[str] = "linear"
    coef: Floats
    intercept: float = 0.0

    @property
    def linear(self) -> Linear:
        """The scorer itself: it has a weight for each feature."""
        return self

    def __call__(self, X: Floats) -> Floats:
        """Return the weighted sums."""
        if not self.accepts(X.shape[1]):
            raise InputError(f"{X.shape[1]} features; there are {len(self.coef)} weights")
        return compute_linear_scores(X, self.coef, self.intercept)

    def accepts(self, n_features: int) -> bool:
        """Return whether there is a weight for each feature."""
        return len(self.coef) == n_features

    def to_json(self) -> dict[str, Any]:
        """Return weights and intercept."""
        return {"coef": self.coef.tolist(), "intercept": self.intercept}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Linear:
        """Read what ``to_json`` wrote."""
        return cls(parse_numbers(values["coef"]), parse_number(values["intercept"]))


@dataclass(frozen=True, slots=True)
class Feature(Scorer):
    """A scorer that is the value of one feature, or its negative.

    >>> Feature(1, -1)(np.array([[1.0, 3.0]], dtype=np.float32)).tolist()
    [-3.0]
    """

    kind: ClassVar[str] = "feature"
    index: int
    sign: int = 1

    def __call__(self, X: Floats) -> Floats:
        """Return the values of the feature times the sign."""
        return self.sign * X[:, self.index].astype(np.float64)

    def accepts(self, n_features: int) -> bool:
        """Return whether there is such a feature."""
        return 0 <= self.index < n_features

    def to_json(self) -> dict[str, Any]:
        """Return index and sign."""
        return {"index": self.index, "sign": self.sign}

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> Feature:
        """Read what ``to_json`` wrote."""
        index, sign = values["index"], values["sign"]
        if type(index) is not int or type(sign) is not int or sign not in (1, -1):
            raise InputError(f"index {quote(index)} with sign {quote(sign)}; expected a column, from 0, and 1 or -1")
        return cls(index, int(sign))


SCALES = ("standard", "query")
_COLUMNS = 32  # whose moments one task adds up
_ROWS = 65_536  # that are scaled at a time


@dataclass(frozen=True, slots=True, eq=False)
class StandardScaling:
    """A scaling that subtracts the mean and divides by the standard deviation of the training documents.

    A feature that was constant has deviation 0 and becomes 0 whatever its value. Missing values stay missing.
    """

    mean: Floats
    deviation: Floats

    @classmethod
    def fit(cls, queries: Queries, backend: Backend | None = None) -> StandardScaling:
        """Compute mean and deviation of documents in float64, columns in parallel, rows in their order by query."""
        near = choose_nearest(queries, resolve(backend, queries))
        return cls(*_find_moments(_add_documents, near.scatter(queries.grouped()), queries.n_features, near))

    @property
    def factor(self) -> Floats:
        """The factor that turns a weight of a scaled feature into that of a raw one; 0 for a constant feature."""
        return np.divide(1.0, self.deviation, out=np.zeros_like(self.deviation), where=self.deviation > 0)

    def factor_for(self, scale: str | None) -> Floats:
        """Return ``factor`` if the ranker scales features to deviation 1; otherwise 1, or 0 for a constant feature."""
        return self.factor if scale == "standard" else (self.deviation > 0).astype(np.float64)

    def for_scale(self, scale: str | None) -> StandardScaling:
        """Return this scaling if the ranker scales features to deviation 1; otherwise one that changes nothing."""
        return self if scale == "standard" else StandardScaling(np.zeros(len(self.mean)), np.ones(len(self.mean)))

    def fold(self, coef: Floats, intercept: float = 0.0) -> Linear:
        """Return the linear scorer on raw features that equals these weights on scaled ones."""
        raw = coef * self.factor
        return Linear(raw, intercept - float(raw @ self.mean))

    def __call__(self, queries: Queries) -> Queries:
        """Scale by the training documents' mean and deviation."""
        return queries.map_X(partial(_scale_documents, standard=self))

    def scale_rows(self, X: Floats) -> Floats:
        """Return the scaled features of documents, computed in float64 and rounded to the type of ``X``."""
        scaled, factor = np.empty(X.shape, X.dtype), self.factor
        for start in range(0, len(X), _ROWS):
            rows = slice(start, start + _ROWS)
            scaled[rows] = (X[rows] - self.mean) * factor
        return scaled


def scale_weights(coef: Floats, factor: Floats) -> Floats:
    """Convert weights of raw features to the equal weights of scaled features; 0 where the factor is 0."""
    return np.divide(coef, factor, out=np.zeros(len(coef)), where=factor > 0)


def compute_moments(X: Floats) -> Floats:
    """Return two rows: the mean and the standard deviation of each column."""
    return _find_moments(_add_rows, Serial().distribute([X]), X.shape[1], Serial())


class _ColumnMoments(NamedTuple):
    """The moments of some neighbouring columns, as ``add_column_moments`` defines them, over the rows so far."""

    first: int  # column
    center: Floats
    moments: Floats


def _find_moments(
    add: Callable[[Any, _ColumnMoments], _ColumnMoments], shards: Shards[Any], n_columns: int, backend: Backend
) -> Floats:
    """Return the mean and the standard deviation of each column; ``add`` adds the rows of a part to moments."""
    count, total, _, low, high = _sum_moments(add, shards, np.zeros(n_columns), backend)
    mean = total / np.maximum(count, 1)
    # a second pass about the mean is exact even where the mean is large against the deviation
    squares = _sum_moments(add, shards, mean, backend)[2]
    varies = high > low  # rounding of the mean must not make a constant vary
    return np.array([mean, np.where(varies, np.sqrt(squares / np.maximum(count, 1)), 0.0)])


def _sum_moments(
    add: Callable[[Any, _ColumnMoments], _ColumnMoments], shards: Shards[Any], center: Floats, backend: Backend
) -> Floats:
    """Return the moments of all columns about a centre; rows are added in order, part by part."""
    none = np.zeros((5, len(center)))
    none[3:] = [[np.inf], [-np.inf]]
    groups = [slice(start, start + _COLUMNS) for start in range(0, len(center), _COLUMNS)]
    found = backend.fold(add, shards, [_ColumnMoments(own.start, center[own], none[:, own]) for own in groups])
    return np.concatenate([none[:, :0], *(each.moments for each in found)], axis=1)


def _add_rows(X: Floats, found: _ColumnMoments) -> _ColumnMoments:
    """Return moments with the rows of a matrix added."""
    moments = found.moments.copy()
    add_column_moments(X[:, found.first : found.first + len(found.center)], found.center, moments)
    return found._replace(moments=moments)


def _add_documents(queries: Queries, found: _ColumnMoments) -> _ColumnMoments:
    """Return moments with the documents of these queries added."""
    return _add_rows(queries.X, found)


def _scale_documents(queries: Queries, standard: StandardScaling) -> Floats:
    """Return the scaled features of the documents of these queries."""
    return standard.scale_rows(queries.X)


@dataclass(frozen=True, slots=True)
class QueryScaling:
    """A min-max scaling within each query: a feature's smallest value becomes 0 and its largest 1.

    A feature that is constant within a query becomes 0. Categorical features stay as they are.
    """

    def __call__(self, queries: Queries) -> Queries:
        """Scale each query by its own documents; rows stay in the caller's order."""
        return queries.map_X(_scale_within_queries)


def _scale_within_queries(queries: Queries) -> Floats:
    """Return the features of documents, scaled within each query."""
    starts = queries.indptr[:-1]
    low = np.fmin.reduceat(queries.X, starts)
    high = np.fmax.reduceat(queries.X, starts)
    spread = high.astype(np.float64) - low
    factor = np.divide(1.0, spread, out=np.zeros_like(spread), where=spread > 0)
    scaled = np.empty_like(queries.X)
    for q, rows in enumerate(queries):
        scaled[rows] = (queries.X[rows] - low[q].astype(np.float64)) * factor[q]
    categorical = list_categorical(queries.categories)
    scaled[:, categorical] = queries.X[:, categorical]
    return scaled


def scale_features(queries: Queries, kind: str) -> Queries:
    """Scale features: ``"standard"`` (mean 0, deviation 1 over all documents) or ``"query"`` (min-max per query).

    Parameters
    ----------
    queries : Queries
        The data set, which is not changed.
    kind : "standard" or "query"
        The scaling.

    Examples
    --------
    >>> queries = Queries.from_arrays([[1.0], [3.0], [7.0], [7.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
    >>> scale_features(queries, "query").X.ravel().tolist()
    [0.0, 1.0, 0.0, 0.0]
    """
    check_scale(kind)
    return StandardScaling.fit(queries)(queries) if kind == "standard" else QueryScaling()(queries)


def check_scale(kind: str) -> None:
    """Raise InputError if ``kind`` is not a known kind of scaling."""
    if kind not in SCALES:
        raise InputError(f"scale={kind!r}; expected one of {', '.join(SCALES)}, or None")
