"""Scales: the multiple of the scores at which a type two bound is least.

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
from rankwright.kernels.objectives.surrogates import violations
from rankwright.objectives.rankings import rankings
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.runtime.backends import Backend, Shards

_FINEST, _LARGEST = -3.0, 6.0  # powers of ten, in units of 1 / range of the scores
_ASKED = np.arange(-2.0, 5.1, 0.5)  # at these the most violated rankings are collected
_DENSE = 8  # places a decade that are compared before the least is refined
_EVALUATIONS = 12  # of a bound that is searched directly
_NEAR = 2.0  # powers of ten


class Placed(NamedTuple):
    """Some queries and their scores, of which 0 is the highest of each query."""

    queries: Queries
    scores: Floats


class Pool(NamedTuple):
    """Rankings of every query, a row for each asked multiple."""

    lost: Floats  # 1 - E
    ahead: Floats  # F less that of the hardest perfect ranking
    unit: float  # the multiple at which scores range over about 1; 0 if all are alike


class Tangent(NamedTuple):
    """A bound by query at a multiple of the scores, and how it rises with it: it is nowhere below such a line."""

    factor: float
    values: Floats
    slopes: Floats


def spread(scores: Floats, queries: Queries) -> Floats:
    """The same scores less the highest of each query."""
    scores = np.asarray(scores, dtype=np.float64)
    below: Floats = scores - np.repeat(np.maximum.reduceat(scores, queries.indptr[:-1]), queries.sizes)
    return below


def pool(bound: TypeTwo, parts: Shards[Placed], weight: Floats, backend: Backend) -> Pool:
    """The most violated rankings at many multiples of the scores."""
    ranges = backend.concat(_ranges, parts)
    counted = ranges[(ranges > 0.0) & (weight > 0.0)]
    if len(counted) == 0:
        return Pool(np.zeros((1, len(weight))), np.zeros((1, len(weight))), 0.0)
    unit = 1.0 / float(np.median(counted))
    found = backend.concat(_asked, parts, bound, unit * 10.0**_ASKED)
    return Pool(found[:, 0].T, found[:, 1].T, unit)


def least_factor(kind: int, pool: Pool, weight: Floats, tangents: Sequence[Tangent]) -> tuple[float, float]:
    """The multiple with the least mean of a surrogate over the pool and tangents, and that mean, a lower bound.

    It is 0 if no scores would be as good.
    """
    shape = pool.lost.shape
    lost, ahead, share = pool.lost.ravel(), pool.ahead.ravel(), weight / weight.sum()

    def value(factor: float) -> float:
        highest = violations(kind, lost, factor * ahead)[0].reshape(shape).max(axis=0)
        for at in tangents:
            highest = np.maximum(highest, at.values + (factor - at.factor) * at.slopes)
        return float(highest @ share)

    powers = np.linspace(_FINEST, _LARGEST, int(_DENSE * (_LARGEST - _FINEST)) + 1)
    at = [value(pool.unit * 10.0**power) for power in powers]
    best = int(np.argmin(at))
    around = powers[max(best - 1, 0)], powers[min(best + 1, len(powers) - 1)]
    factor = pool.unit * 10.0 ** _minimum(lambda power: value(pool.unit * 10.0**power), *around, 40)
    none = value(0.0)
    return (0.0, none) if value(factor) >= none * (1.0 - 1e-9) else (factor, value(factor))


def least_of(value: Callable[[float], float], near: float) -> float:
    """The multiple with the least value, not far from another one, by a few evaluations."""
    middle = np.log10(near)
    factor = 10.0 ** _minimum(lambda power: value(10.0**power), middle - _NEAR, middle + _NEAR, _EVALUATIONS)
    return float(min((0.0, 1.0, near, factor), key=value))


def _minimum(value: Callable[[float], float], low: float, high: float, most: int) -> float:
    found = minimize_scalar(value, bounds=(low, high), method="bounded", options={"maxiter": most, "xatol": 1e-4})
    return float(found.x)


def _ranges(part: Placed) -> Floats:
    lowest: Floats = -np.minimum.reduceat(part.scores, part.queries.indptr[:-1])
    return lowest


def _asked(part: Placed, bound: TypeTwo, factors: Floats) -> Floats:
    """By query: what the rankings lose, and how far they are ahead."""
    r, scores = rankings(bound.measure, part.queries, bound.phi), part.scores
    perfect = r.hardest_by_grade(scores) if bound.perfect == "grades" else r.hardest_perfect(scores)
    F_perfect, live = r.F(perfect, scores), np.zeros(len(part.queries))
    live[r.live] = 1.0
    rows = []
    known = r.bound.arrays is not None  # otherwise there is one ranking for all
    asked = [r.most_violated(scores * factor) for factor in factors] if known else []
    for order in [*asked, r.best_imperfect(scores)]:
        rows.append(np.stack([live * (1.0 - r.E(order)), live * (r.F(order, scores) - F_perfect)]))
    return np.stack(rows, axis=-1).transpose(1, 0, 2)
