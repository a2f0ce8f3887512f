"""Truncated Newton for the loss of pairs with an L2 penalty, to a certified precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.kernels.optimisers.linear_systems import factorise_shifted, solve_factorised
from rankwright.optimisers.pair_loss import PairLoss, PairPoint
from rankwright.optimisers.rounds import Stop, never_stop

_FIRST_SMOOTHING, _WARM_SMOOTHING, _LAST_SMOOTHING = 4.0, 0.0625, 1e-12  # of cold starts, of warm starts, of the end
_GRADIENT_SHARE = 0.5  # smoothing is reduced where the gradient causes less than this part of its share of the gap
_REDUCTION, _SLOW, _QUICK = 0.25, 4, 3  # first reduction of smoothing; steps after which it becomes weaker or stronger
_RESIDUAL, _RESIDUAL_AHEAD = 0.1, 0.03  # reduction of the residual by conjugate gradients: in a step, in a prediction
_MANY_PRODUCTS = 4  # after which a new preconditioner is worth its cost
_SLOPE_RATIO = 0.25  # a line search ends where the slope is at most this part of its start
_MAX_TRIALS = 30


class NewtonStep(NamedTuple):
    """The weights after a Newton step: their objective ``primal`` is at most ``gap`` above the minimum."""

    w: Floats
    loss: float
    primal: float
    gap: float
    smoothing: float


class NewtonResult(NamedTuple):
    """The best weights: their objective ``primal``, |w|^2 / 2 + C loss(w), is at most ``gap`` above the minimum."""

    w: Floats
    primal: float
    gap: float
    n_evaluations: int
    history: list[NewtonStep]
    n_products: int


def minimise_by_newton(
    loss: PairLoss,
    C: float,
    *,
    start: Floats | None = None,
    squared: bool = False,
    tol: float = 1e-6,
    max_iter: int = 200,
    stop: Stop = never_stop,
    observe: Callable[[NewtonStep], None] | None = None,
) -> NewtonResult:
    """Return the weights w of the least |w|^2 / 2 + C loss(w), to a duality gap of ``tol`` times the minimum.

    Parameters
    ----------
    loss : PairLoss
        The loss.
    C : float
        Its weight.
    start : array of shape (n_features,), optional
        The first weights, such as the solution for another C or similar data.
    squared : bool
        Whether the loss is squared; it then needs no smoothing.
    tol : float
        The relative gap to reach.
    max_iter : int
        The most Newton steps; the gap says how far they came.
    stop : callable
        Whether to end after the step at hand.
    observe : callable, optional
        Takes each step of the history when it is made.

    Notes
    -----
    The loss is smoothed, minimised by Newton's method (conjugate gradients inside), and smoothed less and less. At
    every point the derivatives of the smoothed loss are a dual feasible point, whose value is a lower bound; the
    highest lower bound and the lowest value so far make the gap. A point's own gap has two parts: half the squared
    gradient, and the cost of smoothing. As soon as the latter prevails the smoothing is reduced by a step that
    predicts the new minimum (path following): with H the Hessian of the whole, -H^-1 C d(gradient)/d(smoothing).
    """
    search = _NewtonSearch(loss, C, tol, observe)
    w = np.zeros(loss.n_features) if start is None else np.array(start, dtype=np.float64)
    point = search.evaluate(w, np.inf) if squared else search.find_start(w, start is not None)
    search.record(point)
    for n in range(max_iter):
        if search.is_done or point.smoothing < _LAST_SMOOTHING or (n > 0 and stop()):
            break
        reached = search.step(point)
        if reached is None and squared:
            break
        if reached is not None:
            point = reached
            search.record(point)
        if not (squared or search.is_done) and (reached is None or search.is_oversmoothed(point)):
            point = search.reduce_smoothing(point)
    return search.finish()


class _NewtonSearch:
    """The state of Newton's method: the best weights and lower bound so far, the history, and the preconditioner."""

    def __init__(self, loss: PairLoss, C: float, tol: float, observe: Callable[[NewtonStep], None] | None) -> None:
        self.loss, self.C, self.tol, self.observe = loss, C, tol, observe
        self.primal, self.dual = np.inf, 0.0  # no value is negative
        self.best: PairPoint | None = None
        self.history: list[NewtonStep] = []
        self.n_evaluations, self.n_products = 0, 0
        self.preconditioner: Floats | None = None  # the approximate Hessian, per unit of mean curvature
        self.reduction, self.n_reduced = _REDUCTION, 0  # of smoothing, and the steps up to the last

    @property
    def gap(self) -> float:
        """The duality gap: how far the best value may be above the minimum."""
        return max(self.primal - self.dual, 0.0)

    @property
    def is_done(self) -> bool:
        """Whether the best value is close enough to the minimum."""
        return self.gap <= self.tol * self.primal

    def evaluate(self, w: Floats, smoothing: float, near: PairPoint | None = None) -> PairPoint:
        """Return the point of these weights; keep the best value and lower bound."""
        point = self.loss.evaluate(w, smoothing, near)
        self.n_evaluations += 1
        primal, dual = self.values(point)
        self.dual = max(self.dual, dual)
        if primal < self.primal:
            self.primal, self.best = primal, point
        return point

    def values(self, point: PairPoint) -> tuple[float, float]:
        """Return the value at a point, and the lower bound it gives: its primal and dual values."""
        v = self.C * point.gradient
        return float(0.5 * (point.w @ point.w) + self.C * point.loss), float(self.C * point.dual_term - 0.5 * (v @ v))

    def gradient(self, point: PairPoint) -> Floats:
        """Return the gradient of the smoothed value."""
        gradient: Floats = point.w + self.C * point.gradient
        return gradient

    def record(self, point: PairPoint) -> None:
        """Add a point to the history."""
        primal = self.values(point)[0]
        step = NewtonStep(point.w, point.loss, primal, max(primal - self.dual, 0.0), point.smoothing)
        self.history.append(step)
        if self.observe is not None:
            self.observe(step)

    def finish(self) -> NewtonResult:
        """Return the best point, which becomes the last of the history."""
        assert self.best is not None
        last = self.history[-1]
        if last.w is not self.best.w or last.gap > self.gap:
            self.record(self.best)
        return NewtonResult(self.best.w, self.primal, self.gap, self.n_evaluations, self.history, self.n_products)

    def find_start(self, w: Floats, warm: bool) -> PairPoint:
        """Return the first point; from a warm start, with the smoothing that gives the best lower bound."""
        point = self.evaluate(w, _FIRST_SMOOTHING)
        while warm and not self.is_done and point.smoothing > _WARM_SMOOTHING:
            sharper = self.evaluate(w, point.smoothing * _REDUCTION, point)
            if self.values(sharper)[1] <= self.values(point)[1]:
                break
            point = sharper
        return point

    def is_oversmoothed(self, point: PairPoint) -> bool:
        """Return whether it is the smoothing that keeps the gap from closing."""
        by_gradient, by_smoothing = self.split_gap(point)
        return by_gradient <= _GRADIENT_SHARE * by_smoothing

    def split_gap(self, point: PairPoint) -> tuple[float, float]:
        """Return the two parts of a point's own gap: that of the gradient, and that of the smoothing."""
        g = self.gradient(point)
        primal, dual = self.values(point)
        by_gradient = 0.5 * float(g @ g)
        return by_gradient, max(primal - dual - by_gradient, 1e-300)

    def reduce_smoothing(self, point: PairPoint) -> PairPoint:
        """Return the predicted minimum for less smoothing: as much less as was easy so far, and as is needed."""
        steps = len(self.history) - self.n_reduced
        self.n_reduced = len(self.history)
        harder = 2.0 if steps > _SLOW else 0.5 if steps < _QUICK else 1.0
        self.reduction = min(max(self.reduction * harder, 0.1), 0.5)
        needed = float(np.sqrt(0.5 * self.tol * self.primal / self.split_gap(point)[1]))
        less = point.smoothing * min(max(needed, self.reduction), 0.5)
        change = (less - point.smoothing) * self.C * self.loss.gradient_by_smoothing(point)
        direction = self.find_direction(point, self.gradient(point) + change, _RESIDUAL_AHEAD)
        return self.evaluate(point.w + direction, less, point)

    def step(self, point: PairPoint) -> PairPoint | None:
        """Return the point after a Newton step and a line search; None where no descent is possible any more."""
        g = self.gradient(point)
        direction = self.find_direction(point, g, _RESIDUAL)
        slope = float(g @ direction)
        if not slope < 0.0:
            return None
        full = self.evaluate(point.w + direction, point.smoothing, point)
        if abs(float(self.gradient(full) @ direction)) <= -_SLOPE_RATIO * slope:
            return full
        t = self.search_line(point, direction, slope, float(self.gradient(full) @ direction))
        return full if t == 1.0 else self.evaluate(point.w + t * direction, point.smoothing, point)

    def search_line(self, point: PairPoint, direction: Floats, slope: float, at_one: float) -> float:
        """Return the t of a line at which the derivative, which increases, is near 0."""
        line = self.loss.prepare_line(point, direction)
        along, across = float(point.w @ direction), float(direction @ direction)
        low, low_slope, high, high_slope, kept = 0.0, slope, 1.0, at_one, 0
        for _ in range(_MAX_TRIALS):
            if high_slope < 0.0:
                low, low_slope, t = high, high_slope, 4.0 * high
            else:
                t = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.05), 0.95)
            here = along + t * across + self.C * self.loss.evaluate_on_line(line, t)[1]
            if abs(here) <= -_SLOPE_RATIO * slope:
                return t
            if here < 0.0 <= high_slope:
                low, low_slope, kept = t, here, max(kept, 0) + 1
                high_slope /= 2.0 if kept > 1 else 1.0  # the Illinois rule: halve the slope of the end that stays
            else:
                high, high_slope, kept = t, here, min(kept, 0) - 1
                low_slope /= 2.0 if kept < -1 else 1.0
        return low

    def find_direction(self, point: PairPoint, g: Floats, residual: float) -> Floats:
        """Return -(1 + C loss'')^-1 g by conjugate gradients, down to this part of the first residual."""
        if self.preconditioner is None:
            self.preconditioner = self.loss.approximate_hessian(point) / (point.curvature or 1.0)
        U = factorise_shifted(self.preconditioner, self.C * point.curvature)
        p, r = np.zeros_like(g), -g
        z = solve_factorised(U, r)
        d, size = z, float(r @ z)
        enough, products = residual**2 * size, 0
        while size > enough and products < len(g) + 10:
            Hd = d + self.C * self.loss.hessian_product(point, d)
            products += 1
            curvature = float(d @ Hd)
            if not curvature > 0.0:  # numbers too large to go on
                break
            t = size / curvature
            p, r = p + t * d, r - t * Hd
            z = solve_factorised(U, r)
            size, last = float(r @ z), size
            d = z + (size / last) * d
        self.n_products += products
        if products > _MANY_PRODUCTS:
            self.preconditioner = None
        return p
