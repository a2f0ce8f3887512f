"""Pull: what weights pay for being far from where they are expected."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.optimisers.columns import Direction


@dataclass(frozen=True, slots=True, eq=False)
class Pull:
    """``strength * sum of |unit (w - prior)|^power``.

    Parameters
    ----------
    strength : float
        What a distance of 1 costs.
    power : 1 or 2
        L1 pulls weights onto their prior, L2 towards it.
    prior : array of shape (n_columns,)
        Where weights are expected.
    unit : array of shape (n_columns,)
        What a weight is multiplied by first: the deviation of its column, so that columns of any scale pay alike.
    """

    strength: float
    power: int
    prior: Floats
    unit: Floats

    def __call__(self, coef: Floats) -> float:
        """What these weights pay."""
        return float(self.strength * (np.abs((coef - self.prior) * self.unit) ** self.power).sum())

    def along(self, coef: Floats, direction: Direction) -> Along:
        """What is paid on a line through these weights."""
        if isinstance(direction, int):
            moving = np.array([direction])
            slope = self.unit[moving]
        else:
            moving = np.flatnonzero(direction)
            slope = (direction * self.unit)[moving]
        start = ((coef - self.prior) * self.unit)[moving]
        fixed = self(coef) - float(self.strength * (np.abs(start) ** self.power).sum())
        return Along(self.strength, self.power, start, slope, fixed, _least(start, slope, self.power))


@dataclass(frozen=True, slots=True, eq=False)
class Along:
    """A pull on a line: ``fixed + strength * sum of |start + slope t|^power``, a convex function of t."""

    strength: float
    power: int
    start: Floats
    slope: Floats
    fixed: float
    least: float  # where it is least

    def __call__(self, t: Floats) -> Floats:
        """What is paid at each t; nothing is reached at an infinite one."""
        with np.errstate(invalid="ignore"):
            paid = (np.abs(self.start + np.multiply.outer(t, self.slope)) ** self.power).sum(axis=-1)
        return self.fixed + self.strength * np.where(np.isnan(paid), np.inf, paid)

    def lowest(self, low: float, high: float) -> float:
        """The least that is paid between two ends."""
        return float(self(np.clip(np.array([self.least]), low, high))[0])

    def within(self, intervals: Any) -> Floats:
        """Of each interval the t where it pays least."""
        inside: Floats = np.clip(self.least, intervals.low, intervals.high)
        return inside


def _least(start: Floats, slope: Floats, power: int) -> float:
    moves = slope != 0.0
    start, slope = start[moves], slope[moves]
    if len(slope) == 0:
        return 0.0
    if power == 2:
        return float(-(start @ slope) / (slope @ slope))
    zeros = -start / slope  # L1: their median, weighted by the slopes
    order = np.argsort(zeros)
    weight = np.cumsum(np.abs(slope[order]))
    return float(zeros[order][np.searchsorted(weight, weight[-1] / 2)])
