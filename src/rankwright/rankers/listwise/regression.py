"""Regression: weighted ridge regression on gains."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import compute_weighted_moments
from rankwright.measures import Measure
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import LinearModelRanker, PathRanker
from rankwright.rankers.input_checks import check_strength
from rankwright.runtime.backends import Backend, limit_blas
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling

ALPHAS = (1e-6, 1e-5, 1e-4, 1e-3, 0.01, 0.1, 1.0, 10.0, 100.0, 1000.0)  # the paper's
_HIGH_GRADE = 8.0
_MOST_GRADE = 500.0  # whose gain can be squared


@final
@dataclass(kw_only=True, eq=False, repr=False)
class Regression(PathRanker, LinearModelRanker):
    """Regression: a linear ridge regression on gains, with equal total weight of relevant and other documents.

    Minimises, over weights w and an intercept b,

        sum over documents of c_i (w . x_i + b - (2^l_i - 1))^2 + alpha ||w||^2,

    where the c_i of the relevant documents (grade above 0) sum to 1, and so do those of the others.

    Parameters
    ----------
    measure : str or Measure
        Measure recorded in `history_`; the regression itself is pointwise.
    alpha : float
        L2 strength; the useful range is 1e-6 to 1e3.

    Attributes
    ----------
    intercept_ : float
        The intercept.

    Notes
    -----
    Chapelle & Wu (2010), section 7: "We also overweighted the relevant documents such that the overall weight of
    relevant and non-relevant documents is the same." The intercept, which the paper does not mention, is not
    penalised; it changes no ranking but makes predictions estimates of the gain.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = Regression(alpha=0.1).fit(make_queries(20, random_state=0))
    >>> ranker.coef_.shape
    (20,)
    """

    alpha: float = 1.0

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha": ALPHAS}

    path_parameter: ClassVar[str] = "alpha"
    bytes_per_doc: ClassVar[int] = 100
    is_doc_weighted: ClassVar[bool] = True

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths = [check_strength("alpha", value) for value in values]
        graded = train.replace(y=np.log2(1.0 + train.y)) if measure.is_from_clicks else train  # gains are relevances
        if graded.max_grade > _MOST_GRADE:
            raise InputError(
                f"the highest grade is {train.max_grade:g}; expected at most {_MOST_GRADE:g}, since Regression learns "
                "gains of 2^grade - 1. Divide the grades, or take LinearRanker(objective='squares')"
            )
        outcomes = []
        for scorer, loss in fit_ridges(graded, strengths, self.scale, backend):
            record = {"loss": loss, "train": measure.for_training().mean(train, train.compute_scores(scorer), backend)}
            if valid is not None:
                record["valid"] = measure.mean(valid, valid.compute_scores(scorer), backend)
            outcomes.append(
                FitResult(
                    scorer,
                    [record | {"kept": True}],
                    reason="no feature is related to the grades, or alpha is too large",
                )
            )
        return outcomes


def fit_ridges(
    train: Queries, strengths: Sequence[float], scale: str | None, backend: Backend
) -> Iterator[tuple[Linear, float]]:
    """Fit a ridge regression for each strength of the penalty; yield its scorer, and its loss without penalty.

    The sums over the documents are made once. With more standardised features than documents the minimum is looked for
    among weighted sums of the documents, where it lies if it is unique.
    """
    standard = StandardScaling.fit(train, backend)
    if scale == "standard" and train.n_features > train.n_docs and min(strengths) > 0.0:
        yield from _fit_wide_ridges(train, strengths, standard, backend)
        return
    # Sums run over standardised columns whatever the scale, so that no precision is lost. Only the penalty knows
    # the scale: a raw weight is a standardised one times the factor.
    penalty = np.ones(train.n_features) if scale == "standard" else standard.factor**2
    shards = backend.scatter(train)
    per_class = 1.0 / np.maximum(backend.sum(_sum_class_weights, shards), 1e-300)
    sums = backend.sum(_compute_moments, shards, standard, per_class)
    for alpha in strengths:
        scorer = standard.fold(*_solve_ridge(sums, alpha * penalty))
        yield scorer, float(backend.sum(_compute_loss, shards, scorer, per_class))


def _fit_wide_ridges(
    train: Queries, strengths: Sequence[float], standard: StandardScaling, backend: Backend
) -> Iterator[tuple[Linear, float]]:
    """Yield the same as ``fit_ridges``, solved in the smaller space that the standardised documents span."""
    space = WeightSpace.of(train, standard.mean, standard.factor)
    shards, in_space = backend.scatter(train), backend.scatter(space.queries)
    per_class = 1.0 / np.maximum(backend.sum(_sum_class_weights, shards), 1e-300)
    sums = backend.sum(_compute_moments, in_space, StandardScaling(space.mean, space.factor), per_class)
    for alpha in strengths:
        z, intercept = _solve_ridge(sums, np.full(len(space.factor), alpha))
        scorer = standard.fold(space.weights(z), intercept)
        yield scorer, float(backend.sum(_compute_loss, shards, scorer, per_class))


def lower_grades(train: Queries, highest: float) -> Queries:
    """Return the queries with grades scaled down so that none is above ``highest``, since gains are 2^grade - 1."""
    found = float(train.y.max())
    return train.replace(y=train.y * (highest / found)) if found > highest else train


def fit_regression_weights(train: Queries, backend: Backend) -> Floats:
    """Return the weights of a ridge regression, for features as given, as a start of other rankers."""
    return next(fit_ridges(lower_grades(train, _HIGH_GRADE), [1.0], "standard", backend))[0].coef


def _solve_ridge(moments: Floats, penalty: Floats) -> tuple[Floats, float]:
    """Return the weights and the intercept of the ridge regression with this penalty on each squared weight.

    ``moments`` is the upper triangle of the weighted sums of products of (x, g, 1). The system is scaled to a unit
    diagonal and solved by its eigenvectors, without those of no weight: the least norm where the minimum is not unique.
    """
    d, total = len(penalty), moments[-1, -1]
    xx, xg, x, g = moments[:d, :d], moments[:d, d], moments[:d, -1], moments[d, -1]
    full = np.triu(xx) + np.triu(xx, 1).T
    system = full - np.outer(x, x) / total + np.diag(penalty)
    noise = d * np.finfo(np.float64).eps
    diagonal = np.diag(system)
    size = np.sqrt(np.where(diagonal > noise * np.diag(full), diagonal, 0.0))
    unit = np.divide(1.0, size, out=np.zeros_like(size), where=size > 0)
    with limit_blas():
        values, vectors = np.linalg.eigh(system * np.outer(unit, unit))
    kept = values > noise * max(values[-1], 0.0)
    target = (xg - x * g / total) * unit
    shrunk = np.where(kept, (target @ vectors) / np.where(kept, values, 1.0), 0.0)
    w = unit * (vectors @ shrunk)
    return w, float((g - w @ x) / total)


def _weigh_documents(queries: Queries) -> tuple[Floats, Ints]:
    """Return for each document its weight and its query's, multiplied, and its class: 1 if it is relevant, else 0.

    Where relevance is known from clicks there is one class: a few clicks on a document do not make it relevant.
    """
    kinds = np.ones(queries.n_docs, np.int64) if queries.clicks is not None else (queries.y > 0).astype(np.int64)
    return queries.row_weight, kinds


def _sum_class_weights(queries: Queries) -> Floats:
    """Return the summed weights of the irrelevant and of the relevant documents."""
    weight, relevant = _weigh_documents(queries)
    return np.array([weight[relevant == kind].sum() for kind in (0, 1)])


def _compute_gains(queries: Queries) -> Floats:
    """Return the gain of each document, 2^grade - 1."""
    return np.exp2(queries.y) - 1.0


def _compute_moments(queries: Queries, standard: StandardScaling, per_class: Floats) -> Floats:
    """Return the weighted sums of products of standardised features, gains and 1, by which ridges are solved."""
    weight, relevant = _weigh_documents(queries)
    c = weight * per_class[relevant]
    return compute_weighted_moments(queries.X, standard.mean, standard.factor, c, _compute_gains(queries))


def _compute_loss(queries: Queries, scorer: Linear, per_class: Floats) -> float:
    """Return the weighted sum of squared differences between a scorer's scores and the gains."""
    weight, relevant = _weigh_documents(queries)
    return float((weight * per_class[relevant] * (scorer(queries.X) - _compute_gains(queries)) ** 2).sum())
