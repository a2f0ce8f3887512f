"""Weights of a blend: how much each member counts, found on documents that the members were not trained on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.scorers.linear_scores import compute_linear_scores
from rankwright.measures import PreparedMeasure, weighted_mean
from rankwright.optimisers.ascent import ClimbRules, climb_cyclic
from rankwright.optimisers.columns import MatrixColumns
from rankwright.optimisers.landscape import Landscape, LandscapePoint
from rankwright.optimisers.prior_penalty import PriorPenalty
from rankwright.optimisers.rounds import Stop, never_stop
from rankwright.runtime.backends import Backend, Serial

STRENGTHS = (0.1, 0.03, 0.01, 0.003, 0.001, 0.0)  # strengths of the shrinkage to equal weights, strongest first
_MAX_ROUNDS = 10  # of a climb; most end after a few
_LEAST_GAIN = 1e-5  # of the measure, for which a weight moves: far below what any number of queries can show
_GREEDY_STEPS = 20
_ERRORS_BELOW = 2.0  # standard errors by which a member may be below the best one to count in equal weights


@dataclass(frozen=True, slots=True, eq=False)
class OutOfFoldScores:
    """The standardised scores of a blend's members on documents that they were not trained on.

    Parameters
    ----------
    X : array of shape (n_docs, n_members)
        The scores, a column for each member.
    target : array of shape (n_docs,)
        The gains of the documents, which only ``fit_stacking`` looks at.
    measure : PreparedMeasure
        The measure that weights maximise, prepared for the queries of these documents.
    weight : array of shape (n_queries,)
        The weight of each query in the mean; 0 leaves a query out.
    fold : array of shape (n_queries,)
        The fold of each query, for cross-validation.
    backend : Backend
        Where the folds of a cross-validation run.
    stop : callable
        Whether searches end with what was found so far, as after a time limit.
    """

    X: Floats
    target: Floats
    measure: PreparedMeasure
    weight: Floats
    fold: Ints
    backend: Backend
    stop: Stop = never_stop

    @property
    def n_members(self) -> int:
        """The number of members."""
        return int(self.X.shape[1])

    @property
    def folds(self) -> list[int]:
        """The folds of the queries that are not left out."""
        found: list[int] = np.unique(self.fold[self.weight > 0]).tolist()
        return found

    def compute_values(self, coef: Floats) -> Floats:
        """Return the measure of each query, its documents ranked by the weighted sum of the scores."""
        return self.measure.values(compute_linear_scores(self.X, coef, 0.0), Serial())

    def compute_mean(self, values: Floats) -> float:
        """Return the weighted mean of the values of the queries."""
        return weighted_mean(values, self.weight)

    def leave_out(self, fold: int) -> OutOfFoldScores:
        """Return the same scores when the queries of one fold do not count."""
        return replace(self, weight=np.where(self.fold == fold, 0.0, self.weight))

    def take_members(self, members: Sequence[int] | Ints) -> OutOfFoldScores:
        """Return the scores of some members only."""
        return replace(self, X=np.ascontiguousarray(self.X[:, members]))

    @property
    def landscape(self) -> Landscape:
        """The mean measure as a function of the weights of the members."""
        return Landscape.of_prepared(MatrixColumns(self.X), self.measure, self.weight, Serial())


class BlendWeights(NamedTuple):
    """The weights of the members of a blend, and for each fold those that were found without its queries.

    Parameters
    ----------
    coef : array of shape (n_members,)
        Nonnegative weights that add up to 1.
    fold_coefs : mapping of int to array
        For each fold, the weights that were found without its queries: the estimate of the measure uses these.
    shrinkage : float
        The strength of the shrinkage to equal weights: infinite for equal weights, 0 where there is no shrinkage.
    is_searched : bool
        Whether the weights come of a search; False for equal weights that were asked for.
    """

    coef: Floats
    fold_coefs: Mapping[int, Floats]
    shrinkage: float = 0.0
    is_searched: bool = True


WeightRule = Callable[[OutOfFoldScores], BlendWeights]


def find_overall_and_fold_weights(
    scores: OutOfFoldScores, fit: Callable[[OutOfFoldScores], Floats], shrinkage: float = 0.0
) -> BlendWeights:
    """Fit weights on all queries, and for each fold on the queries of the other folds."""
    folds = scores.folds
    found = scores.backend.each(lambda fold: fit(scores if fold is None else scores.leave_out(fold)), [None, *folds])
    return BlendWeights(
        found[0], dict(zip(folds, found[1:], strict=True)), shrinkage, fit not in (fit_equal, fit_equal_best)
    )


def fit_equal(scores: OutOfFoldScores) -> Floats:
    """Return equal weights that add up to 1, of all members that rank any document above another."""
    ranks = scores.X.any(axis=0)
    kept = ranks if ranks.any() else np.ones(scores.n_members, dtype=bool)
    shares: Floats = kept / kept.sum()
    return shares


def fit_equal_best(scores: OutOfFoldScores) -> Floats:
    """Return equal weights of the members that are not significantly below the best one, and 0 for the others.

    A member is significantly below if its mean measure is lower by more than two standard errors of the difference.
    """
    if not scores.folds:  # no query counts
        return fit_equal(scores)
    values = np.array([scores.compute_values(row) for row in np.eye(scores.n_members)])
    means = np.array([scores.compute_mean(row) for row in values])
    best = values[int(np.argmax(means))]
    errors = np.array([_compute_standard_error(best - row, scores.weight) for row in values])
    kept = means >= means.max() - _ERRORS_BELOW * errors
    ranks = fit_equal(scores) > 0.0
    kept = kept & ranks if (kept & ranks).any() else kept
    shares: Floats = kept / kept.sum()
    return shares


def fit_shrinkage_path(scores: OutOfFoldScores, strengths: Sequence[float]) -> list[Floats]:
    """Return nonnegative weights that add up to 1, for each strength of the shrinkage to equal weights in turn.

    The shrinkage is to the weights p of ``fit_equal_best``, which are 1/n for n members. The measure less
    ``shrinkage / n * sum of (n w - n p)^2`` is climbed by exact line searches along one weight at a time. A climb
    starts from the weights of the stronger shrinkage before it or from those of greedy selection, whichever is better.
    Members that bring nothing are dropped at the end.
    """
    landscape, prior = scores.landscape, fit_equal_best(scores)
    greedy, point = landscape.evaluate(fit_greedy(scores)), landscape.evaluate(prior)
    found = list[Floats]()
    for shrinkage in strengths:
        if scores.stop():
            found.append(found[-1] if found else prior)
            continue
        rules = _make_rules(prior, shrinkage, scores.stop)
        start = max((point, greedy), key=rules.objective)
        end = _climb(landscape, start, rules)
        total = float(end.coef.sum())
        end = landscape.evaluate(end.coef / total if total > 0.0 else prior)
        point = max((start, end), key=rules.objective)  # that weights add up to 1 may cost more than a climb gains
        found.append(drop_useless_members(scores, point.coef))
    return found


def _make_rules(prior: Floats, shrinkage: float, stop: Stop) -> ClimbRules:
    """Return the rules of a climb under shrinkage to equal weights of some members."""
    n = int((prior > 0.0).sum())
    penalty = PriorPenalty(shrinkage / n, 2, prior, np.full(len(prior), float(n))) if shrinkage > 0.0 else None
    return ClimbRules(least=0.0, penalty=penalty, max_rounds=_MAX_ROUNDS, tol=_LEAST_GAIN, stop=stop)


def _climb(landscape: Landscape, point: LandscapePoint, rules: ClimbRules) -> LandscapePoint:
    """Return the point that a climb from a point ends at."""
    for steps in climb_cyclic(landscape, point, rules, np.random.default_rng(0)):
        point = landscape.evaluate(steps[-1].coef)
    return point


def fit_unpenalised(scores: OutOfFoldScores) -> Floats:
    """Return the weights that exact line searches reach without shrinkage, along a path of weaker and weaker ones."""
    return fit_shrinkage_path(scores, STRENGTHS)[-1]


def fit_with_shrinkage(scores: OutOfFoldScores, n_standard_errors: float = 1.0) -> BlendWeights:
    """Return the weights of exact line searches under shrinkage to equal weights that cross-validation chooses.

    Weights are found for every strength of the shrinkage without the queries of each fold, and measured on these. The
    strongest shrinkage is chosen that is not below the best by more than ``n_standard_errors`` standard errors of their
    difference, query by query. The strength for the queries of a fold is chosen on those of the other folds.
    """
    folds = scores.folds
    if scores.n_members == 1 or len(folds) < 2:
        equal = fit_equal(scores)
        return BlendWeights(equal, dict.fromkeys(folds, equal), np.inf)

    def fit_path(fold: int | None) -> list[Floats]:
        part = scores if fold is None else scores.leave_out(fold)
        return [fit_equal_best(part), *fit_shrinkage_path(part, STRENGTHS)]

    whole, *others = scores.backend.each(fit_path, [None, *folds])
    paths, values = dict(zip(folds, others, strict=True)), np.full((len(whole), len(scores.weight)), np.nan)
    for fold, path in paths.items():
        own = scores.fold == fold
        values[:, own] = np.array([scores.compute_values(coef) for coef in path])[:, own]
    chosen = _choose_strength(values, scores.weight, n_standard_errors)
    fold_coefs = {
        fold: path[_choose_strength(values, np.where(scores.fold == fold, 0.0, scores.weight), n_standard_errors)]
        for fold, path in paths.items()
    }
    return BlendWeights(whole[chosen], fold_coefs, (np.inf, *STRENGTHS)[chosen])


def _choose_strength(values: Floats, weight: Floats, n_standard_errors: float) -> int:
    """Return the first row whose mean is not below the best by more than some standard errors of the difference."""
    means = np.array([weighted_mean(row, weight) for row in values])
    best = int(np.argmax(means))
    errors = np.array([_compute_standard_error(values[best] - row, weight) for row in values])
    return int(np.flatnonzero(means >= means[best] - n_standard_errors * errors)[0])


def fit_with_strength(scores: OutOfFoldScores, shrinkage: float) -> BlendWeights:
    """Return the weights of exact line searches under shrinkage to equal weights of the given strength."""
    path = (*(each for each in STRENGTHS if each > shrinkage), shrinkage)
    return find_overall_and_fold_weights(scores, lambda part: fit_shrinkage_path(part, path)[-1], shrinkage)


def fit_stacking(scores: OutOfFoldScores) -> Floats:
    """Return the nonnegative weights of a least squares regression of gains on scores: stacking.

    Scores and gains are centred within each query, since only differences within a query matter.
    """
    indptr = scores.measure.indptr
    sizes = np.diff(indptr)
    weight = np.sqrt(np.repeat(scores.weight, sizes))
    together = np.column_stack([scores.X, scores.target])
    means = np.add.reduceat(together, indptr[:-1], axis=0) / sizes[:, None]
    centred = (together - np.repeat(means, sizes, axis=0)) * weight[:, None]
    coef, _ = nnls(centred[:, :-1], centred[:, -1])
    return coef / coef.sum() if coef.sum() > 0.0 else fit_equal(scores)


def fit_greedy(scores: OutOfFoldScores) -> Floats:
    """Return the weights of greedy selection: the member that helps most is added, with replacement, step by step.

    Caruana et al. (2004), *Ensemble selection from libraries of models*. The weights are those of the best step.
    """
    counts, total = np.zeros(scores.n_members), np.zeros(len(scores.X))
    best, kept = -np.inf, fit_equal(scores)
    for _ in range(_GREEDY_STEPS):
        if scores.stop():
            break
        means = [scores.compute_mean(scores.measure.values(total + column, Serial())) for column in scores.X.T]
        added = int(np.argmax(means))
        counts[added] += 1.0
        total += scores.X[:, added]
        if means[added] > best:
            best, kept = means[added], counts / counts.sum()
    return kept


def drop_useless_members(scores: OutOfFoldScores, coef: Floats, tol: float = 0.0) -> Floats:
    """Return the weights without the members that bring nothing, which become 0.

    As long as the measure is not lower by more than ``tol`` without some member, the one without which it is highest
    is dropped.
    """
    coef = coef.copy()
    while (coef > 0.0).sum() > 1 and not scores.stop():
        value = scores.compute_mean(scores.compute_values(coef))
        kept = np.flatnonzero(coef > 0.0)
        parts = (np.where(np.arange(len(coef)) == member, 0.0, coef) for member in kept)
        without = [scores.compute_mean(scores.compute_values(part)) for part in parts]
        best = int(np.argmax(without))
        if without[best] < value - tol:
            break
        coef[kept[best]] = 0.0
    shares: Floats = coef / coef.sum()
    return shares


WEIGHT_RULES: Mapping[str, WeightRule] = {
    "exact": fit_with_shrinkage,
    "equal": partial(find_overall_and_fold_weights, fit=fit_equal, shrinkage=np.inf),
    "greedy": partial(find_overall_and_fold_weights, fit=fit_greedy),
    "stacking": partial(find_overall_and_fold_weights, fit=fit_stacking),
}


def _compute_standard_error(values: Floats, weight: Floats) -> float:
    """Return the standard error of a weighted mean; values that are NaN do not count."""
    counted = ~np.isnan(values) & (weight > 0)
    if counted.sum() < 2:
        return 0.0
    share = weight[counted] / weight[counted].sum()
    centred = values[counted] - (share * values[counted]).sum()  # sums whose bits do not depend on threads of BLAS
    return float(np.sqrt((share**2 * centred**2).sum()))
