"""Cutting planes for a convex loss with an L2 penalty: one slack, a small QP, a duality gap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.optimisers.rounds import Stop, never

_PATIENCE, _LESS = 40, 0.99  # rounds in which the gap must become this part of what it was: otherwise rounding is all
_IDLE = 20  # rounds after which a plane that holds nothing up is dropped
_AHEAD = 0.1  # a new plane is made this far from the best point towards the model's
_TRIALS, _MOST_TRIALS = 6, 60  # of a line search, and of one that has not moved yet
_FLAT = 0.1  # it ends where the slope is this part of its start
_RIDGES = (1e-12, 1e-10, 1e-8)  # keep the QP of parallel planes regular: the next where one does not do
_LEAST_SIZE = 1e-9  # of slopes: less is flat
_SOLVED = 1  # the QP solver's word
_ENDLESS = 1e30  # what the QP solver takes for no bound
_LONGEST, _HALVINGS, _CLOSE = 1e12, 60, 1e-3  # of a search for a scale


class CuttingPlane(NamedTuple):
    """A loss is nowhere below ``offset + slope . w``, and equal to it somewhere."""

    offset: float
    slope: Floats


class ConvexLoss(Protocol):
    """A convex loss of weights. A place is what is known of it at some weights; places mix as weights do."""

    n_features: int

    def evaluate(self, w: Floats) -> Any:
        """The place of weights."""
        ...

    def interpolate(self, place: Any, other: Any, t: float) -> Any:
        """The place a part t of the way from one to another."""
        ...

    def loss(self, place: Any) -> float:
        """The loss there."""
        ...

    def derivative_between(self, place: Any, start: Any, end: Any) -> float:
        """Its derivative there along the way from one place to another, by the part of the way."""
        ...

    def linearise(self, place: Any) -> CuttingPlane:
        """The plane that touches the loss there."""
        ...


class CuttingPlaneRound(NamedTuple):
    """Where a round has led: the best weights so far, and what is known of them."""

    w: Floats
    loss: float
    primal: float  # |w|^2 / 2 + C loss
    gap: float  # no weights have a value below primal - gap
    n_planes: int
    improved: bool  # whether w is new


def cutting_planes(
    risk: ConvexLoss,
    C: float,
    *,
    start: Floats | None = None,
    planes: CuttingPlaneModel | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    stop: Stop = never,
) -> Iterator[CuttingPlaneRound]:
    """Minimise |w|^2 / 2 + C loss(w), a round at a time, until the duality gap is at most ``tol`` times the value.

    Parameters
    ----------
    risk : ConvexLoss
        The loss: convex and not negative.
    C : float
        Its weight.
    start : array of shape (n_features,), optional
        Where to begin; the solution for another C is good.
    planes : CuttingPlaneModel, optional
        What is known of the loss already; what is found is added. Planes do not depend on C.
    tol : float
        The relative gap to reach.
    max_iter : int
        The most rounds; the gap says what was reached. It ends earlier where rounding allows no more progress.
    stop : callable
        Whether to end after the round at hand.

    Notes
    -----
    The loss is modelled from below by planes. A round minimises the model, whose value is a lower bound on every value
    (the QP of Joachims' one-slack formulation, over the planes' multipliers), searches the line from the best point so
    far to the model's minimum, and adds the plane that touches the loss a little beyond the best point on it, as OCAS
    does (Franc and Sonnenburg, 2009): without the line search it takes about five times as many rounds. Planes that the
    model's minimum has not rested on for 20 rounds are dropped; the bound so far is kept.
    """
    w = np.zeros(risk.n_features) if start is None or C == 0.0 else np.array(start, dtype=np.float64)
    model = CuttingPlaneModel(risk.n_features) if planes is None else planes
    place, dual = risk.evaluate(w), 0.0
    model.add(risk.linearise(place))
    primal = _value(w, C, risk.loss(place))
    yield CuttingPlaneRound(w, risk.loss(place), primal, primal - dual, len(model), True)
    waited, mark = 0, np.inf
    for n in range(max_iter if C > 0.0 else 0):
        if primal - dual <= tol * primal or waited == _PATIENCE or (n > 0 and stop()):
            return
        waited, mark = (0, primal - dual) if primal - dual < _LESS * mark else (waited + 1, mark)
        aim, bound = model.minimum(C)
        dual = max(dual, bound)
        there = risk.evaluate(aim)
        t, reached = _search(risk, C, place, there, w, aim)
        moved = w + t * (aim - w)
        model.add(risk.linearise(risk.interpolate(place, there, t + _AHEAD * (1.0 - t))))
        improved = _value(moved, C, risk.loss(reached)) < primal
        if improved:
            w, place, primal = moved, reached, _value(moved, C, risk.loss(reached))
        yield CuttingPlaneRound(w, risk.loss(place), primal, max(primal - dual, 0.0), len(model), improved)


def _value(w: Floats, C: float, loss: float) -> float:
    return float(0.5 * (w @ w) + C * loss)


def _search(risk: ConvexLoss, C: float, place: Any, there: Any, w: Floats, aim: Floats) -> tuple[float, Any]:
    """How far along a line the value is least, roughly, and the place; its derivative grows, and is negative at 0."""
    along, across = float(w @ (aim - w)), float((aim - w) @ (aim - w))

    def slope(t: float, at: Any) -> float:
        return along + t * across + C * risk.derivative_between(at, place, there)

    start, at_high = slope(0.0, place), slope(1.0, there)
    if start >= 0.0:  # at a kink the loss may rise to both sides
        return 0.0, place
    if at_high <= 0.0:
        return 1.0, there
    low, at_low, high, reached, in_a_row = 0.0, start, 1.0, place, 0
    for n in range(_MOST_TRIALS):
        if n >= _TRIALS and low > 0.0:
            break
        t = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        trial = risk.interpolate(place, there, t)
        here = slope(t, trial)
        if abs(here) <= -_FLAT * start:
            return t, trial
        if here < 0.0:
            low, at_low, reached, in_a_row = t, here, trial, max(in_a_row, 0) + 1
        else:
            high, at_high, in_a_row = t, here, min(in_a_row, 0) - 1
        if in_a_row > 1:  # the other end stays: count it less (the Illinois rule)
            at_high *= 0.5
        elif in_a_row < -1:
            at_low *= 0.5
    return low, reached


class CuttingPlaneModel:
    """Planes below a loss, and the minimum of |w|^2 / 2 + C times the highest of them, or of 0."""

    def __init__(self, n_features: int) -> None:
        self.slopes, self.offsets = np.empty((0, n_features)), np.empty(0)
        self.products = np.empty((0, 0))  # of the slopes
        self.idle = np.empty(0, dtype=np.int64)

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, plane: CuttingPlane) -> None:
        """One more plane; those that have been idle for long go."""
        keep = np.flatnonzero(self.idle < _IDLE)
        self.slopes = np.vstack([self.slopes[keep], plane.slope])
        self.offsets, self.idle = np.append(self.offsets[keep], plane.offset), np.append(self.idle[keep], 0)
        products = np.empty((len(self), len(self)))
        products[:-1, :-1] = self.products[np.ix_(keep, keep)]
        products[-1] = products[:, -1] = self.slopes @ plane.slope
        self.products = products

    def minimum(self, C: float) -> tuple[Floats, float]:
        """Where the model is least, and its value there.

        By its dual: the largest b . x - |A'x|^2 / 2 with x >= 0 that sum to at most C; the minimum is at -A'x.
        """
        import daqp  # only here: what needs no QP needs no solver

        m, highest = len(self), float(np.abs(self.offsets).max())
        size = max(float(np.trace(self.products)) / m, _LEAST_SIZE * highest / C, 1e-300)
        unit = min(C, max(highest / size, 1e-300))  # about what x is: the solver's tolerances are absolute
        upper, lower = np.append(np.full(m, _ENDLESS), C / unit), np.append(np.zeros(m), -_ENDLESS)
        kinds, offsets = np.zeros(m + 1, dtype=np.intc), -self.offsets / (unit * size)
        x = np.zeros(m)
        for ridge in _RIDGES:
            H = self.products / size + ridge * np.eye(m)
            x, _, flag, _ = daqp.solve(H, offsets, np.ones((1, m)), upper, lower, kinds, iter_limit=100 + 10 * m)
            if flag == _SOLVED:
                break
        x = np.maximum(x, 0.0) * unit  # whatever was found is made feasible, and so its value is a bound
        x *= min(1.0, C / max(float(x.sum()), 1e-300))
        self.idle = np.where(x > 1e-9 * x.sum(), 0, self.idle + 1)
        w = -(x @ self.slopes)
        return w, float(self.offsets @ x - 0.5 * (w @ w))


def find_best_scale(risk: ConvexLoss, C: float, w: Floats) -> float:
    """The factor, 0 or more, of weights with the least value: a good start knows a direction, seldom a length."""
    zero, there, across = risk.evaluate(np.zeros_like(w)), risk.evaluate(w), float(w @ w)

    def slope(t: float) -> float:
        return t * across + C * risk.derivative_between(risk.interpolate(zero, there, t), zero, there)

    if across == 0.0 or slope(0.0) >= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while slope(high) < 0.0 and high < _LONGEST:
        low, high = high, 4.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high) if low > 0.0 else high / 4.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
        if low > 0.0 and high - low < _CLOSE * high:
            break
    return low
