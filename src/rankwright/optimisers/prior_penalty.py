"""PriorPenalty: a penalty on the distance of the weights from a prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.optimisers.columns import Direction


@dataclass(frozen=True, slots=True, eq=False)
class PriorPenalty:
    """A penalty on the distance of weights w from a prior: ``strength * sum of |unit (w - prior)|^power``.

    Parameters
    ----------
    strength : float
        The penalty of a distance of 1.
    power : 1 or 2
        L1 makes weights equal to their prior, L2 shrinks them towards it.
    prior : array of shape (n_columns,)
        The expected weights.
    unit : array of shape (n_columns,)
        A factor for every weight: the standard deviation of its column, so that columns of any scale count alike.
    """

    strength: float
    power: int
    prior: Floats
    unit: Floats

    def __call__(self, coef: Floats) -> float:
        """Return the penalty of these weights."""
        return float(self.strength * (np.abs((coef - self.prior) * self.unit) ** self.power).sum())

    def along(self, coef: Floats, direction: Direction) -> PenaltyOnLine:
        """Return the penalty along a line through these weights."""
        if isinstance(direction, int):
            moving = np.array([direction])
            slope = self.unit[moving]
        else:
            moving = np.flatnonzero(direction)
            slope = (direction * self.unit)[moving]
        start = ((coef - self.prior) * self.unit)[moving]
        fixed = self(coef) - float(self.strength * (np.abs(start) ** self.power).sum())
        return PenaltyOnLine(self.strength, self.power, start, slope, fixed, _find_minimum(start, slope, self.power))


@dataclass(frozen=True, slots=True, eq=False)
class PenaltyOnLine:
    """A prior penalty along a line, a convex function of t: ``fixed + strength * sum of |start + slope t|^power``."""

    strength: float
    power: int
    start: Floats
    slope: Floats
    fixed: float
    argmin: float  # the t of the least penalty

    def __call__(self, t: Floats) -> Floats:
        """Return the penalty at each t; it is infinite at an infinite t."""
        with np.errstate(invalid="ignore"):
            powers = (np.abs(self.start + np.multiply.outer(t, self.slope)) ** self.power).sum(axis=-1)
        return self.fixed + self.strength * np.where(np.isnan(powers), np.inf, powers)

    def minimum(self, low: float, high: float) -> float:
        """Return the least penalty between two ends."""
        return float(self(np.clip(np.array([self.argmin]), low, high))[0])

    def argmin_within(self, intervals: Any) -> Floats:
        """Return the t of the least penalty in each interval."""
        inside: Floats = np.clip(self.argmin, intervals.low, intervals.high)
        return inside


def _find_minimum(start: Floats, slope: Floats, power: int) -> float:
    """Return the step t at which the sum of |start + slope t|^power over the weights is least."""
    moves = slope != 0.0
    start, slope = start[moves], slope[moves]
    if len(slope) == 0:
        return 0.0
    if power == 2:
        return float(-(start @ slope) / (slope @ slope))
    zeros = -start / slope  # L1: the median of these, weighted by the slopes
    order = np.argsort(zeros)
    weight = np.cumsum(np.abs(slope[order]))
    return float(zeros[order][np.searchsorted(weight, weight[-1] / 2)])
