"""The multiple of the scores at which a type two bound is least.

Along multiples s of the scores a type two bound is the mean over queries of the largest of lost(c) phi(s x(c)), where x
is how far a ranking's F is ahead of the hardest perfect one's at s = 1. It is convex in s. The rankings that are the
most violated at some s are few and the same for all phi; collected once, they say where each bound is least.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
from scipy.optimize import minimize_scalar

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.surrogates import compute_violations
from rankwright.objectives.rankings import prepare_rankings
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.runtime.backends import Backend, Shards

_LOWEST, _HIGHEST = -3.0, 6.0  # powers of ten, in units of 1 / range of the scores
_POWERS = np.arange(-2.0, 5.1, 0.5)  # at these the most violated rankings are collected
_DENSE = 8  # places a decade that are compared before the least is refined
_EVALUATIONS = 12  # of a bound that is searched directly
_NEAR = 2.0  # powers of ten


class ScoredQueries(NamedTuple):
    """A data set with a score per document, shifted so that the highest score of each query is 0."""

    queries: Queries
    scores: Floats


class ViolatedRankings(NamedTuple):
    """The losses and margins of each query's most violated rankings, a row for each multiple of the scores."""

    lost: Floats  # 1 - E
    ahead: Floats  # F less that of the hardest perfect ranking
    unit: float  # the multiple at which scores range over about 1; 0 if all are alike


class Tangent(NamedTuple):
    """A tangent of each query's bound as a function of the factor of the scores; the bound is nowhere below it."""

    factor: float
    values: Floats
    slopes: Floats


def center_scores(scores: Floats, queries: Queries) -> Floats:
    """Return scores minus the highest score of their query."""
    scores = np.asarray(scores, dtype=np.float64)
    below: Floats = scores - np.repeat(np.maximum.reduceat(scores, queries.indptr[:-1]), queries.sizes)
    return below


def collect_violated_rankings(
    bound: TypeTwo, parts: Shards[ScoredQueries], weight: Floats, backend: Backend
) -> ViolatedRankings:
    """Return the most violated ranking of each query, for many multiples of its scores."""
    ranges = backend.concat(_compute_ranges, parts)
    counted = ranges[(ranges > 0.0) & (weight > 0.0)]
    if len(counted) == 0:
        return ViolatedRankings(np.zeros((1, len(weight))), np.zeros((1, len(weight))), 0.0)
    unit = 1.0 / float(np.median(counted))
    found = backend.concat(_evaluate_violated, parts, bound, unit * 10.0**_POWERS)
    return ViolatedRankings(found[:, 0].T, found[:, 1].T, unit)


def find_best_factor(
    kind: int, rankings: ViolatedRankings, weight: Floats, tangents: Sequence[Tangent]
) -> tuple[float, float]:
    """Return the factor of the scores that makes a surrogate's mean least, by rankings and tangents, and that mean.

    The mean is a lower bound. The multiple is 0 if constant scores would be as good.
    """
    shape = rankings.lost.shape
    lost, ahead, share = rankings.lost.ravel(), rankings.ahead.ravel(), weight / weight.sum()

    def value(factor: float) -> float:
        highest = compute_violations(kind, lost, factor * ahead)[0].reshape(shape).max(axis=0)
        for at in tangents:
            highest = np.maximum(highest, at.values + (factor - at.factor) * at.slopes)
        return float(highest @ share)

    powers = np.linspace(_LOWEST, _HIGHEST, int(_DENSE * (_HIGHEST - _LOWEST)) + 1)
    at = [value(rankings.unit * 10.0**power) for power in powers]
    best = int(np.argmin(at))
    around = powers[max(best - 1, 0)], powers[min(best + 1, len(powers) - 1)]
    factor = rankings.unit * 10.0 ** _minimise_between(lambda power: value(rankings.unit * 10.0**power), *around, 40)
    none = value(0.0)
    return (0.0, none) if value(factor) >= none * (1.0 - 1e-9) else (factor, value(factor))


def search_factor(value: Callable[[float], float], near: float) -> float:
    """Return the factor, of those around ``near``, that makes a function least, after a few evaluations."""
    middle = np.log10(near)
    factor = 10.0 ** _minimise_between(lambda power: value(10.0**power), middle - _NEAR, middle + _NEAR, _EVALUATIONS)
    return float(min((0.0, 1.0, near, factor), key=value))


def _minimise_between(value: Callable[[float], float], low: float, high: float, most: int) -> float:
    """Return where between ``low`` and ``high`` a function is least, after at most ``most`` iterations."""
    found = minimize_scalar(value, bounds=(low, high), method="bounded", options={"maxiter": most, "xatol": 1e-4})
    return float(found.x)


def _compute_ranges(part: ScoredQueries) -> Floats:
    """Return the range of the scores of each query: the highest minus the lowest."""
    lowest: Floats = -np.minimum.reduceat(part.scores, part.queries.indptr[:-1])
    return lowest


def _evaluate_violated(part: ScoredQueries, bound: TypeTwo, factors: Floats) -> Floats:
    """Return by query the losses of its most violated rankings, and their F minus that of a perfect ranking."""
    r, scores = prepare_rankings(bound.measure, part.queries, bound.phi), part.scores
    perfect = r.find_hardest_by_grade(scores) if bound.perfect == "grades" else r.find_hardest_perfect(scores)
    F_perfect, live = r.F(perfect, scores), np.zeros(len(part.queries))
    live[r.live] = 1.0
    rows = []
    known = r.can_search  # otherwise there is one ranking for all
    asked = [r.find_most_violated(scores * factor) for factor in factors] if known else []
    for order in [*asked, r.find_best_imperfect(scores)]:
        rows.append(np.stack([live * (1.0 - r.E(order)), live * (r.F(order, scores) - F_perfect)]))
    return np.stack(rows, axis=-1).transpose(1, 0, 2)
