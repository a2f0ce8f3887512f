"""Truncated Newton for a convex loss of linear scores with an L2 penalty, to a certified precision."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.kernels.optimisers.linear_systems import cholesky_solve, shifted_cholesky
from rankwright.optimisers.rounds import Stop, never

_FIRST, _LEAST, _LAST = 4.0, 0.0625, 1e-12  # smoothing: cold and warm starts begin with, and where to give up
_SHARE = 0.5  # where the gradient causes less than this part of what smoothing causes, less smoothing is due
_PACE, _SLOW, _QUICK = 0.25, 4, 3  # by what smoothing is lessened at first, and after how many steps more or less so
_RESIDUAL, _AHEAD = 0.1, 0.03  # how far conjugate gradients reduce the residual: of a step, of a look ahead
_MANY = 4  # products after which a new preconditioner is worth its price
_FLAT = 0.25  # a step is long enough where the slope is less than this part of that at its start
_TRIALS = 30


class NewtonPoint(Protocol):
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


class SmoothableLoss(Protocol):
    """A convex loss of weights, smoothed as much as is wanted; it is endlessly smooth at ``smoothing=inf``."""

    n_features: int

    def evaluate(self, w: Floats, smoothing: float, near: Any = None) -> Any:
        """A point; one that is near helps to find it."""
        ...

    def hessian_product(self, point: Any, direction: Floats) -> Floats:
        """The second derivative of the smoothed loss, times a direction."""
        ...

    def gradient_by_smoothing(self, point: Any) -> Floats:
        """The gradient of the smoothed loss, differentiated by the smoothing."""
        ...

    def approximate_hessian(self, point: Any) -> Floats:
        """About the second derivative of the smoothed loss: the preconditioner."""
        ...

    def prepare_line(self, point: Any, direction: Floats) -> Any:
        """The line through a point."""
        ...

    def evaluate_on_line(self, line: Any, t: float) -> tuple[float, float]:
        """The smoothed loss and its derivative along a line."""
        ...


class NewtonStep(NamedTuple):
    """Where a step led: ``primal`` is at most ``gap`` above the minimum."""

    w: Floats
    loss: float
    primal: float
    gap: float
    smoothing: float


class NewtonResult(NamedTuple):
    """What was found: ``primal``, |w|^2 / 2 + C loss(w), is at most ``gap`` above the minimum."""

    w: Floats
    primal: float
    gap: float
    n_evaluations: int
    history: list[NewtonStep]
    n_products: int


def minimise_by_newton(
    problem: SmoothableLoss,
    C: float,
    *,
    start: Floats | None = None,
    squared: bool = False,
    tol: float = 1e-6,
    max_iter: int = 200,
    stop: Stop = never,
) -> NewtonResult:
    """The weights of the least |w|^2 / 2 + C loss(w), to a duality gap of ``tol`` times the minimum.

    Parameters
    ----------
    problem : SmoothableLoss
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
    stop : callable
        Whether to end after the step at hand.

    Notes
    -----
    The loss is smoothed, minimised by Newton's method (conjugate gradients inside), and smoothed less and less. At
    every point the derivatives of the smoothed loss are a dual feasible point, whose value is a lower bound; the
    highest bound and the lowest value so far make the gap. A point's own gap has two parts: half the squared gradient,
    and what the smoothing costs. As soon as the latter prevails the smoothing is lessened, and the step that does so
    follows the minimum: with H the second derivative of the whole, it moves by -H^-1 C d(gradient)/d(smoothing).
    """
    search = _Newton(problem, C, tol)
    w = np.zeros(problem.n_features) if start is None else np.array(start, dtype=np.float64)
    point = search.evaluate(w, np.inf) if squared else search.begin(w, start is not None)
    search.note(point)
    for n in range(max_iter):
        if search.done or point.smoothing < _LAST or (n > 0 and stop()):
            break
        step = search.step(point)
        if step is None and squared:
            break
        if step is not None:
            point = step
            search.note(point)
        if not (squared or search.done) and (step is None or search.is_sharp(point)):
            point = search.sharpen(point)
    return search.finish()


class _Newton:
    """Newton steps on |w|^2 / 2 + C loss, the best value and the best bound so far."""

    def __init__(self, problem: SmoothableLoss, C: float, tol: float) -> None:
        self.problem, self.C, self.tol = problem, C, tol
        self.primal, self.dual = np.inf, 0.0  # no value is negative
        self.best: Any = None
        self.history: list[NewtonStep] = []
        self.n_evaluations, self.n_products = 0, 0
        self.outline: Floats | None = None  # the preconditioner, per unit of bend
        self.pace, self.paced = _PACE, 0

    @property
    def gap(self) -> float:
        """How far the best value may be above the minimum."""
        return max(self.primal - self.dual, 0.0)

    @property
    def done(self) -> bool:
        """Whether the best value is close enough to the minimum."""
        return self.gap <= self.tol * self.primal

    def evaluate(self, w: Floats, smoothing: float, near: Any = None) -> Any:
        """Evaluate, and keep the best value and bound."""
        point = self.problem.evaluate(w, smoothing, near)
        self.n_evaluations += 1
        primal, dual = self.values(point)
        self.dual = max(self.dual, dual)
        if primal < self.primal:
            self.primal, self.best = primal, point
        return point

    def values(self, point: NewtonPoint) -> tuple[float, float]:
        """The value at a point, and the bound it gives."""
        v = self.C * point.gradient
        return float(0.5 * (point.w @ point.w) + self.C * point.exact), float(self.C * point.bound - 0.5 * (v @ v))

    def gradient(self, point: NewtonPoint) -> Floats:
        """The gradient of the whole, smoothed."""
        gradient: Floats = point.w + self.C * point.gradient
        return gradient

    def note(self, point: NewtonPoint) -> None:
        """Add a point to the history."""
        primal = self.values(point)[0]
        self.history.append(NewtonStep(point.w, point.exact, primal, max(primal - self.dual, 0.0), point.smoothing))

    def finish(self) -> NewtonResult:
        """The best point, which becomes the last of the history."""
        last = self.history[-1]
        if last.w is not self.best.w or last.gap > self.gap:
            self.note(self.best)
        return NewtonResult(self.best.w, self.primal, self.gap, self.n_evaluations, self.history, self.n_products)

    def begin(self, w: Floats, warm: bool) -> Any:
        """The first point; of a good start, with the smoothing that gives the best bound."""
        point = self.evaluate(w, _FIRST)
        while warm and not self.done and point.smoothing > _LEAST:
            sharper = self.evaluate(w, point.smoothing * _PACE, point)
            if self.values(sharper)[1] <= self.values(point)[1]:
                break
            point = sharper
        return point

    def is_sharp(self, point: NewtonPoint) -> bool:
        """Whether it is the smoothing that keeps the gap from closing."""
        slack, smoothed = self.parts(point)
        return slack <= _SHARE * smoothed

    def parts(self, point: NewtonPoint) -> tuple[float, float]:
        """The parts of a point's own gap: that of the gradient, and that of the smoothing."""
        g = self.gradient(point)
        primal, dual = self.values(point)
        slack = 0.5 * float(g @ g)
        return slack, max(primal - dual - slack, 1e-300)

    def sharpen(self, point: Any) -> Any:
        """The minimum followed to less smoothing: as much less as it was easy to follow so far, and as is needed."""
        steps = len(self.history) - self.paced
        self.paced = len(self.history)
        self.pace = min(max(self.pace * (2.0 if steps > _SLOW else 0.5 if steps < _QUICK else 1.0), 0.1), 0.5)
        needed = float(np.sqrt(0.5 * self.tol * self.primal / self.parts(point)[1]))
        less = point.smoothing * min(max(needed, self.pace), 0.5)
        drift = (less - point.smoothing) * self.C * self.problem.gradient_by_smoothing(point)
        return self.evaluate(point.w + self.direction(point, self.gradient(point) + drift, _AHEAD), less, point)

    def step(self, point: Any) -> Any | None:
        """The point after a Newton step and a line search; None where no descent is possible any more."""
        g = self.gradient(point)
        direction = self.direction(point, g, _RESIDUAL)
        slope = float(g @ direction)
        if not slope < 0.0:
            return None
        full = self.evaluate(point.w + direction, point.smoothing, point)
        if abs(float(self.gradient(full) @ direction)) <= -_FLAT * slope:
            return full
        t = self.search(point, direction, slope, float(self.gradient(full) @ direction))
        return full if t == 1.0 else self.evaluate(point.w + t * direction, point.smoothing, point)

    def search(self, point: Any, direction: Floats, slope: float, at_one: float) -> float:
        """A step along a line to where the derivative, which grows, is near 0."""
        line = self.problem.prepare_line(point, direction)
        along, across = float(point.w @ direction), float(direction @ direction)
        low, low_slope, high, high_slope, kept = 0.0, slope, 1.0, at_one, 0
        for _ in range(_TRIALS):
            if high_slope < 0.0:
                low, low_slope, t = high, high_slope, 4.0 * high
            else:
                t = low + (high - low) * min(max(low_slope / (low_slope - high_slope), 0.05), 0.95)
            here = along + t * across + self.C * self.problem.evaluate_on_line(line, t)[1]
            if abs(here) <= -_FLAT * slope:
                return t
            if here < 0.0 <= high_slope:
                low, low_slope, kept = t, here, max(kept, 0) + 1
                high_slope /= 2.0 if kept > 1 else 1.0  # the Illinois rule: an end that stays counts less
            else:
                high, high_slope, kept = t, here, min(kept, 0) - 1
                low_slope /= 2.0 if kept < -1 else 1.0
        return low

    def direction(self, point: Any, g: Floats, residual: float) -> Floats:
        """About -(1 + C loss'')^-1 g, by conjugate gradients, down to this part of the residual."""
        if self.outline is None:
            self.outline = self.problem.approximate_hessian(point) / (point.bend or 1.0)
        U = shifted_cholesky(self.outline, self.C * point.bend)
        p, r = np.zeros_like(g), -g
        z = cholesky_solve(U, r)
        d, size = z, float(r @ z)
        enough, products = residual**2 * size, 0
        while size > enough and products < len(g) + 10:
            Hd = d + self.C * self.problem.hessian_product(point, d)
            products += 1
            bend = float(d @ Hd)
            if not bend > 0.0:  # numbers too large to go on
                break
            t = size / bend
            p, r = p + t * d, r - t * Hd
            z = cholesky_solve(U, r)
            size, last = float(r @ z), size
            d = z + (size / last) * d
        self.n_products += products
        if products > _MANY:
            self.outline = None
        return p
