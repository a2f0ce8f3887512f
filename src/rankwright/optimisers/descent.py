"""Truncated Newton for a convex loss of linear scores with an L2 penalty, to a certified precision."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.data import Floats

_FIRST, _LAST = 4.0, 1e-12  # smoothing
_SHARE = 0.25  # of the gap: where the gradient causes less than this, less smoothing is due
_FLAT = 0.5  # a step is long enough where the slope is less than this part of its start
_TRIALS = 30


class Point(Protocol):
    """A loss at some weights."""

    @property
    def w(self) -> Floats:
        """The weights."""
        ...

    @property
    def smoothing(self) -> float:
        """How far the loss is smoothed: by less than a multiple of this."""
        ...

    @property
    def exact(self) -> float:
        """The loss itself."""
        ...

    @property
    def loss(self) -> float:
        """The smoothed loss."""
        ...

    @property
    def gradient(self) -> Floats:
        """The gradient of the smoothed loss."""
        ...

    @property
    def bound(self) -> float:
        """No ``|w|^2 / 2 + C loss`` is below ``C bound - |C gradient|^2 / 2``: weak duality."""
        ...

    @property
    def bend(self) -> float:
        """The second derivative of the loss by the scores, in the mean."""
        ...


class Problem(Protocol):
    """A convex loss of weights, smoothed as much as is wanted; it is endlessly smooth at ``smoothing=inf``."""

    n_features: int

    @property
    def covariance(self) -> Floats:
        """About the second derivative of the loss, up to a factor: the preconditioner."""
        ...

    def at(self, w: Floats, smoothing: float, near: Any = None) -> Any:
        """A point; one that is near helps to find it."""
        ...

    def product(self, point: Any, direction: Floats) -> Floats:
        """The second derivative of the smoothed loss, times a direction."""
        ...

    def line(self, point: Any, direction: Floats) -> Any:
        """The line through a point."""
        ...

    def along(self, line: Any, t: float) -> tuple[float, float]:
        """The smoothed loss and its derivative along a line."""
        ...


class Step(NamedTuple):
    """Where a step led."""

    w: Floats
    loss: float
    primal: float
    gap: float
    smoothing: float


class Minimum(NamedTuple):
    """What was found.

    ``primal`` is |w|^2 / 2 + C loss(w), and at most ``gap`` above the minimum.
    """

    w: Floats
    primal: float
    gap: float
    n_evaluations: int
    history: list[Step]


def minimise(
    problem: Problem,
    C: float,
    *,
    start: Floats | None = None,
    squared: bool = False,
    tol: float = 1e-6,
    max_iter: int = 200,
) -> Minimum:
    """The weights of the least |w|^2 / 2 + C loss(w), to a duality gap of ``tol`` times the minimum.

    Parameters
    ----------
    problem : Problem
        The loss.
    C : float
        Its weight.
    start : array of shape (n_features,), optional
        Where to begin; the solution for another C or similar data is good.
    squared : bool
        Whether the loss is the one that needs no smoothing.
    tol : float
        The relative gap to reach.
    max_iter : int
        The most Newton steps; the gap says what was reached.

    Notes
    -----
    The loss is smoothed, minimised by Newton's method (conjugate gradients inside), and smoothed less and less, from
    where the last minimum was. At every point the derivatives of the smoothed loss are a dual feasible point, whose
    value is a lower bound; the highest bound and the lowest value so far make the gap. A point's own gap has two parts:
    half the squared gradient, and what the smoothing costs. As soon as the latter prevails the smoothing is lessened.
    """
    search = _Newton(problem, C)
    w = np.zeros(problem.n_features) if start is None else np.array(start, dtype=np.float64)
    point = search.at(w, np.inf) if squared else search.begin(w, start is not None)
    search.note(point)
    for _ in range(max_iter):
        if search.gap <= tol * search.primal or point.smoothing < _LAST:
            break
        step = search.step(point)
        if step is not None:
            point = step
            search.note(point)
        if not squared and search.gap > tol * search.primal:
            point = search.sharpen(point, tol, stuck=step is None)
        elif step is None:
            break
    return Minimum(search.w, search.primal, search.gap, search.n_evaluations, search.history)


class _Newton:
    """Newton steps on |w|^2 / 2 + C loss, the best value and the best bound so far."""

    def __init__(self, problem: Problem, C: float) -> None:
        self.problem, self.C = problem, C
        self.primal, self.dual = np.inf, -np.inf
        self.w: Floats = np.zeros(problem.n_features)
        self.history: list[Step] = []
        self.n_evaluations = 0
        self.n_products = 0
        self.n_trials = 0
        values, self.vectors = np.linalg.eigh(problem.covariance)
        self.values = np.maximum(values, 0.0)

    @property
    def gap(self) -> float:
        return max(self.primal - self.dual, 0.0)

    def at(self, w: Floats, smoothing: float, near: Any = None) -> Any:
        """Evaluate, and keep the best value and bound."""
        point = self.problem.at(w, smoothing, near)
        self.n_evaluations += 1
        primal, dual = self._values(point)
        self.dual = max(self.dual, dual)
        if primal < self.primal:
            self.primal, self.w = primal, w
        return point

    def note(self, point: Point) -> None:
        self.history.append(Step(point.w, point.exact, self._values(point)[0], self.gap, point.smoothing))

    def _values(self, point: Point) -> tuple[float, float]:
        """The value at a point, and the bound it gives."""
        v = self.C * point.gradient
        return float(0.5 * (point.w @ point.w) + self.C * point.exact), float(self.C * point.bound - 0.5 * (v @ v))

    def gradient(self, point: Point) -> Floats:
        gradient: Floats = point.w + self.C * point.gradient
        return gradient

    def begin(self, w: Floats, warm: bool) -> Any:
        """The first point: of a good start, with the smoothing that gives the best bound."""
        point = self.at(w, _FIRST)
        while warm:
            dual = self._values(point)[1]
            sharper = self.at(w, point.smoothing / 4.0, point)
            if self._values(sharper)[1] <= dual or sharper.smoothing < 1e-4:
                break
            point = sharper
        return point

    def sharpen(self, point: Any, tol: float, stuck: bool) -> Any:
        """The same point with less smoothing, if it is time."""
        g = self.gradient(point)
        primal, dual = self._values(point)
        slack = 0.5 * float(g @ g)
        smoothed = primal - dual - slack
        if not stuck and slack > _SHARE * smoothed:
            return point
        wanted = np.sqrt(0.5 * tol * self.primal / max(smoothed, 1e-300))
        return self.at(point.w, point.smoothing * min(max(wanted, 0.1), 0.25), point)

    def step(self, point: Any) -> Any | None:
        """The point after a Newton step and a line search; None where no descent is possible any more."""
        g = self.gradient(point)
        direction = self.direction(point, g)
        slope = float(g @ direction)
        if not slope < 0.0:
            return None
        full = self.at(point.w + direction, point.smoothing, point)
        if abs(float(self.gradient(full) @ direction)) <= -_FLAT * slope:
            return full
        t = self.search(point, direction, slope, float(self.gradient(full) @ direction))
        return full if t == 1.0 else self.at(point.w + t * direction, point.smoothing, point)

    def search(self, point: Any, direction: Floats, slope: float, at_one: float) -> float:
        """A step along a line to where the derivative, which grows, is near 0."""
        line = self.problem.line(point, direction)
        along, across = float(point.w @ direction), float(direction @ direction)
        low, low_slope, high, high_slope = 0.0, slope, 1.0, at_one
        for _ in range(_TRIALS):
            if high_slope < 0.0:
                low, low_slope, t = high, high_slope, 4.0 * high
            else:
                t = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.05), 0.95)
            self.n_trials += 1
            here = along + t * across + self.C * self.problem.along(line, t)[1]
            if abs(here) <= -_FLAT * slope:
                return t
            if here < 0.0:
                if high_slope < 0.0:
                    high, high_slope = t, here
                else:
                    low, low_slope = t, here
            else:
                high, high_slope = t, here
        return low

    def direction(self, point: Any, g: Floats) -> Floats:
        """About -(1 + C loss'')^-1 g, by conjugate gradients."""
        p = np.zeros_like(g)
        residual = -g
        shrink = 1.0 / (1.0 + self.C * point.bend * self.values)
        z = self.vectors @ (shrink * (residual @ self.vectors))
        d, size = z, float(residual @ z)
        enough = 1e-2 * size
        for _ in range(min(len(g) + 10, 200)):
            if size <= enough:
                break
            Hd = d + self.C * self.problem.product(point, d)
            self.n_products += 1
            bend = float(d @ Hd)
            if not bend > 0.0:
                break
            t = size / bend
            p = p + t * d
            residual = residual - t * Hd
            z = self.vectors @ (shrink * (residual @ self.vectors))
            size, last = float(residual @ z), size
            d = z + (size / last) * d
        return p
