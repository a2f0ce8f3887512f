"""Methods of descent: conjugate gradients and L-BFGS choose directions, a line search the step along each."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.optimisers.preconditioner import Preconditioner

ROUNDING = 1e-14  # values whose relative difference is less are compared by their slopes
_SUFFICIENT = 1e-4  # part of the decrease promised by the slope that is enough: Wolfe's first constant
_MAX_TRIALS = 20
_MAX_GROWTH = 8.0  # the most a step grows between trials
_FAR = 1e30
_MIN_WIDTH = 1e-9  # relative width of a bracket that is not searched any more
_EDGE = 0.05  # the least distance of a trial from the ends of its bracket, relative to its width


class WolfeTrial(NamedTuple):
    """A trial step t of a line search: the value there, its derivative along the line, and the caller's state."""

    t: float
    value: float
    slope: float
    state: Any = None


def search_wolfe(evaluate: Callable[[float], WolfeTrial], start: WolfeTrial, slope_ratio: float) -> WolfeTrial | None:
    """Return a trial step along a line that satisfies the strong Wolfe conditions; None if no trial is lower.

    Parameters
    ----------
    evaluate : callable
        Returns the trial at any t > 0; the first is at 1.
    start : WolfeTrial
        The trial at t = 0, where the slope is negative.
    slope_ratio : float
        The slope may be this part of the start's: Wolfe's second constant.

    Returns
    -------
    WolfeTrial or None
        If 20 trials find none so flat, the last that was the lowest; None if none is lower.

    Notes
    -----
    Nocedal and Wright (2006), algorithms 3.5 and 3.6: the step grows until the minimum is bracketed, then the bracket
    shrinks by the cubic through its ends. Values may be infinite, NaN, or too large to square. Where values differ by
    no more than rounding the slope alone decides (Hager and Zhang, 2005): a sum of many numbers is too inexact to show
    the last steps to a minimum, its derivative is not.

    Examples
    --------
    >>> parabola = lambda t: WolfeTrial(t, (t - 3.0) ** 2, 2.0 * (t - 3.0))
    >>> search_wolfe(parabola, parabola(0.0), slope_ratio=0.1).t
    3.0
    """
    low, high, t = start, None, 1.0
    for _ in range(_MAX_TRIALS):
        trial = evaluate(t)
        is_flat = abs(trial.slope) <= -slope_ratio * start.slope
        if abs(trial.value - start.value) <= ROUNDING * abs(start.value) and is_flat:
            return trial
        promised = start.value + _SUFFICIENT * t * start.slope
        if not trial.value <= promised or (low.t > 0.0 and trial.value >= low.value):
            high = trial
        else:
            if is_flat:
                return trial
            if trial.slope * (1.0 if high is None else high.t - low.t) >= 0.0:
                high = low
            low = trial
        if high is None:
            beyond = _minimise_cubic(start, low)
            t = min(max(beyond, 1.5 * low.t), _MAX_GROWTH * low.t) if math.isfinite(beyond) else _MAX_GROWTH * low.t
            continue
        width = high.t - low.t
        if abs(width) <= _MIN_WIDTH * max(low.t, high.t):
            break
        inner = (_minimise_cubic(low, high) - low.t) / width
        t = low.t + width * (min(max(inner, _EDGE), 1.0 - _EDGE) if math.isfinite(inner) else _EDGE)
    return low if low.t > 0.0 else None


def _minimise_cubic(a: WolfeTrial, b: WolfeTrial) -> float:
    """Return the step where the cubic through two trials and their slopes is least; far off if it has no minimum."""
    if not (math.isfinite(b.value) and math.isfinite(b.slope)):
        return math.nan
    d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0.0:
        return b.t + math.copysign(_FAR, b.t - a.t)
    d2 = math.copysign(math.sqrt(square), b.t - a.t)
    below = b.slope - a.slope + 2.0 * d2
    return b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below) if below != 0.0 else b.t


_MEMORY = 20  # steps that L-BFGS remembers


class DescentMethod(ABC):
    """The base of methods that choose the direction of each step of a descent, from the gradients so far."""

    slope_ratio: float  # a line search ends where the slope is at most this part of its start: Wolfe's second constant
    n_confirmations = 1  # points in a row whose estimated suboptimality must be small enough

    @abstractmethod
    def find_direction(self, gradient: Floats) -> Floats:
        """Return a direction of descent at a point with this gradient."""

    @abstractmethod
    def update(self, step: Floats, before: Floats, after: Floats) -> None:
        """Take account of a step between points of these gradients."""

    @abstractmethod
    def estimate_suboptimality(self, gradient: Floats, gained: float) -> float:
        """Return an estimate of how far a point is above the minimum, from its gradient and the last step's gain."""

    def prepare(self, loss: Any, state: Any, w: Floats, alpha: float, *, refresh: bool = False) -> None:  # noqa: B027
        """Compute what the method needs before the first step, or again after many steps (``refresh``)."""

    @abstractmethod
    def restart(self) -> None:
        """Forget all steps, so that the next direction is that of steepest descent."""

    def first_step_length(self, slope: float) -> float:
        """Return the first length to try along a direction with this slope."""
        return 1.0


class ConjugateGradient(DescentMethod):
    """The nonlinear conjugate gradient method of Polak and Ribiere; it restarts every n steps and where beta < 0."""

    slope_ratio = 0.1

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Forget the last direction."""
        self.last: Floats | None = None
        self.beta, self.steps, self.gain = 0.0, 0, 0.0

    def find_direction(self, gradient: Floats) -> Floats:
        """Return -g + beta times the last direction."""
        found = -gradient if self.last is None else self.beta * self.last - gradient
        if float(found @ gradient) >= 0.0:
            found = -gradient
        self.last = found
        return found

    def update(self, step: Floats, before: Floats, after: Floats) -> None:
        """Compute Polak and Ribiere's beta, at least 0."""
        self.steps += 1
        restart = self.steps % len(step) == 0
        self.beta = 0.0 if restart else max(float(after @ (after - before)) / float(before @ before), 0.0)
        self.gain = -float(step @ before)

    def estimate_suboptimality(self, gradient: Floats, gained: float) -> float:
        """Return the gain of the last step: conjugate gradients know no more of the Hessian."""
        return gained if float(gradient @ gradient) > 0.0 else 0.0

    def first_step_length(self, slope: float) -> float:
        """Return the length that promises the same gain as the last step did."""
        return self.gain / -slope if self.gain > 0.0 else 1.0 / max(math.sqrt(-slope), 1.0)


class LBFGS(DescentMethod):
    """The limited-memory quasi-Newton method L-BFGS, which chooses directions of descent (Liu and Nocedal, 1989).

    Parameters
    ----------
    preconditioner : Preconditioner, optional
        An approximation of the inverse Hessian before the first step; the identity without one.
    """

    slope_ratio, n_confirmations = 0.9, 2

    def __init__(self, preconditioner: Preconditioner | None = None) -> None:
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_MEMORY)
        self.preconditioner = preconditioner

    def prepare(self, loss: Any, state: Any, w: Floats, alpha: float, *, refresh: bool = False) -> None:
        """Prepare the preconditioner, if there is one; the steps that are remembered stay valid."""
        if self.preconditioner is not None:
            self.preconditioner.prepare(loss, state, w, alpha, refresh=refresh)

    def restart(self) -> None:
        """Forget all steps."""
        self.pairs.clear()

    def find_direction(self, gradient: Floats) -> Floats:
        """Return -H^-1 g with H approximated by the remembered steps: the two-loop recursion."""
        q, parts = -gradient, []
        for s, y, sy in reversed(self.pairs):
            part = float(s @ q) / sy
            q = q - part * y
            parts.append(part)
        q = self._precondition(q)
        if self.pairs:
            _, y, sy = self.pairs[-1]
            q = q * (sy / float(y @ self._precondition(y)))
        for (s, y, sy), part in zip(self.pairs, reversed(parts), strict=True):
            q = q + (part - float(y @ q) / sy) * s
        return q

    def _precondition(self, r: Floats) -> Floats:
        return r if self.preconditioner is None else self.preconditioner.solve(r)

    def estimate_suboptimality(self, gradient: Floats, gained: float) -> float:
        """Return half of g' H^-1 g, the gain of a Newton step; infinite while nothing is known of H."""
        if not self.pairs and self.preconditioner is None:
            return math.inf if float(gradient @ gradient) > 0.0 else 0.0
        return -0.5 * float(gradient @ self.find_direction(gradient))

    def update(self, step: Floats, before: Floats, after: Floats) -> None:
        """Remember a step along which the slope grew."""
        change = after - before
        sy = float(step @ change)
        if sy > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.pairs.append((step, change, sy))

    def first_step_length(self, slope: float) -> float:
        """Return 1, a Newton step; at first, without a preconditioner, at most a step of length 1."""
        return 1.0 if self.pairs or self.preconditioner is not None else 1.0 / max(math.sqrt(-slope), 1.0)


DESCENT_METHODS: dict[str, Callable[[], DescentMethod]] = {"cg": ConjugateGradient, "lbfgs": LBFGS}
