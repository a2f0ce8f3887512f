"""Descent by gradients: conjugate gradients, L-BFGS, and annealing, which descends on less and less smoothed losses.

They minimise ``loss(w) + alpha |w - center|^2`` for any differentiable loss. Along a line scores move on lines, so that
a line search costs one product with the features, however many points it tries.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.optimisers.preconditioner import Preconditioner
from rankwright.optimisers.rounds import Stop, never
from rankwright.optimisers.wolfe import ROUNDING, WolfeTrial, search_wolfe

_PAIRS = 20  # steps that L-BFGS remembers
_MANY = 12  # steps after which a preconditioner is found anew, then after twice as many and so on
_STALLED = 5  # steps in a row that change the value by no more than rounding


class DifferentiableLoss(Protocol):
    """A loss of weights. A place is what is known of it at some weights; places mix as weights do."""

    n_features: int

    def evaluate(self, w: Floats) -> Any:
        """The place of weights."""
        ...

    def move(self, place: Any, way: Floats) -> Any:
        """The place to which a way, a change of the weights, leads from another."""
        ...

    def interpolate(self, place: Any, other: Any, t: float) -> Any:
        """The place a part t of the way from one to another."""
        ...

    def loss(self, place: Any) -> float:
        """The loss there."""
        ...

    def directional_derivative(self, place: Any) -> float:
        """Its derivative along the way, by the part of the way, at a place that was moved to or mixed."""
        ...

    def gradient(self, place: Any) -> Floats:
        """The derivative by the weights."""
        ...


class L2Penalty(NamedTuple):
    """alpha |w - center|^2."""

    alpha: float
    center: Floats

    def __call__(self, w: Floats) -> float:
        """Its value."""
        away = w - self.center
        return float(self.alpha * (away @ away))

    def gradient(self, w: Floats) -> Floats:
        """Its derivative."""
        gradient: Floats = 2.0 * self.alpha * (w - self.center)
        return gradient


class DescentPoint(NamedTuple):
    """Some weights: ``value`` is the loss with the penalty, ``gradient`` its derivative."""

    w: Floats
    place: Any
    loss: float
    value: float
    gradient: Floats
    excess: float = math.inf  # by how much the value is about above its minimum, as far as the method knows
    steps: int = 0  # that led to it

    def has_converged(self, tol: float) -> bool:
        """Return whether the value is at most this part of it above its minimum."""
        return self.excess <= tol * abs(self.value)


class DescentMethod(ABC):
    """Where to go from a point, and how exact the line search has to be."""

    flat: float  # a line search ends where the slope is this part of its start
    certain = 1  # points in a row whose estimate must be close enough to the minimum

    @abstractmethod
    def direction(self, gradient: Floats) -> Floats:
        """A direction of descent at a point with this gradient."""

    @abstractmethod
    def learn(self, step: Floats, before: Floats, after: Floats) -> None:
        """A step was made between points of these gradients."""

    @abstractmethod
    def excess(self, gradient: Floats, gained: float) -> float:
        """Return about how far above the minimum a point is, by its gradient and by what the last step has gained."""

    def prepare(self, loss: Any, point: DescentPoint, penalty: L2Penalty, *, anew: bool = False) -> None:  # noqa: B027
        """Learn what there is to know at a point before the first step, or after many that did not suffice."""

    @abstractmethod
    def forget(self) -> None:
        """Begin anew, with the steepest descent."""

    def first_step(self, slope: float) -> float:
        """How far to try first along a direction with this slope; 1 but where nothing is known."""
        return 1.0


class ConjugateGradient(DescentMethod):
    """Nonlinear conjugate gradients: Polak and Ribiere's, restarted where it is negative, and every n steps."""

    flat = 0.1

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Begin anew."""
        self.last: Floats | None = None
        self.beta, self.steps, self.gain = 0.0, 0, 0.0

    def direction(self, gradient: Floats) -> Floats:
        """-g + beta times the last direction."""
        found = -gradient if self.last is None else self.beta * self.last - gradient
        if float(found @ gradient) >= 0.0:
            found = -gradient
        self.last = found
        return found

    def learn(self, step: Floats, before: Floats, after: Floats) -> None:
        """Polak and Ribiere's beta, where it is positive."""
        self.steps += 1
        restart = self.steps % len(step) == 0
        self.beta = 0.0 if restart else max(float(after @ (after - before)) / float(before @ before), 0.0)
        self.gain = -float(step @ before)

    def excess(self, gradient: Floats, gained: float) -> float:
        """Return what the last step has gained: conjugate gradients know no more of the second derivative."""
        return gained if float(gradient @ gradient) > 0.0 else 0.0

    def first_step(self, slope: float) -> float:
        """As far as promises what the last step did promise."""
        return self.gain / -slope if self.gain > 0.0 else 1.0 / max(math.sqrt(-slope), 1.0)


class LBFGS(DescentMethod):
    """Limited-memory quasi-Newton: the second derivative as far as the last steps tell it (Liu and Nocedal, 1989).

    Parameters
    ----------
    preconditioner : Preconditioner, optional
        What is known of the second derivative before the first step; nothing without one.
    """

    flat, certain = 0.9, 2

    def __init__(self, preconditioner: Preconditioner | None = None) -> None:
        self.pairs: deque[tuple[Floats, Floats, float]] = deque(maxlen=_PAIRS)
        self.preconditioner = preconditioner

    def prepare(self, loss: Any, point: DescentPoint, penalty: L2Penalty, *, anew: bool = False) -> None:
        """Find the preconditioner, if there is one; the steps that are remembered stay true."""
        if self.preconditioner is not None:
            self.preconditioner.prepare(loss, point.place, point.w, penalty.alpha, anew=anew)

    def forget(self) -> None:
        """Begin anew."""
        self.pairs.clear()

    def direction(self, gradient: Floats) -> Floats:
        """About -H^-1 g, by the two loops."""
        q, parts = -gradient, []
        for s, y, sy in reversed(self.pairs):
            part = float(s @ q) / sy
            q = q - part * y
            parts.append(part)
        q = self._solve(q)
        if self.pairs:
            _, y, sy = self.pairs[-1]
            q = q * (sy / float(y @ self._solve(y)))
        for (s, y, sy), part in zip(self.pairs, reversed(parts), strict=True):
            q = q + (part - float(y @ q) / sy) * s
        return q

    def _solve(self, r: Floats) -> Floats:
        return r if self.preconditioner is None else self.preconditioner.solve(r)

    def excess(self, gradient: Floats, gained: float) -> float:
        """Return half of g' H^-1 g, what a Newton step would gain, as soon as anything is known of H."""
        if not self.pairs and self.preconditioner is None:
            return math.inf if float(gradient @ gradient) > 0.0 else 0.0
        return -0.5 * float(gradient @ self.direction(gradient))

    def learn(self, step: Floats, before: Floats, after: Floats) -> None:
        """Remember a step along which the slope grew."""
        change = after - before
        sy = float(step @ change)
        if sy > 1e-12 * float(np.linalg.norm(step) * np.linalg.norm(change)):
            self.pairs.append((step, change, sy))

    def first_step(self, slope: float) -> float:
        """A Newton step; at first, without a preconditioner, one of length 1 at most."""
        return 1.0 if self.pairs or self.preconditioner is not None else 1.0 / max(math.sqrt(-slope), 1.0)


DESCENT_METHODS: dict[str, Callable[[], DescentMethod]] = {"cg": ConjugateGradient, "lbfgs": LBFGS}


def descend(
    loss: DifferentiableLoss,
    start: Floats,
    penalty: L2Penalty,
    method: DescentMethod,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never,
) -> Iterator[DescentPoint]:
    """Yield the start, and every point that the descent comes to, down to a minimum.

    Parameters
    ----------
    loss : DifferentiableLoss
        The loss.
    start : array of shape (n_features,)
        Where to begin.
    penalty : L2Penalty
        What is added to it.
    method : DescentMethod
        Where to go.
    tol : float
        It ends where the value is at most this part of it above the minimum, by the method's estimate: with L-BFGS
        half of g' H^-1 g, what a Newton step would gain; with conjugate gradients what the last step gained.
    max_iter : int
        The most steps.
    stop : callable
        Whether to end after the step at hand.

    Notes
    -----
    It ends earlier where rounding allows no more progress. ``has_converged`` of the last point says how it ended.
    """
    point = _point(loss, np.array(start, dtype=np.float64), None, penalty)
    if not math.isfinite(point.value):
        raise InputError("the objective is not a finite number where the descent begins, or its gradient is not")
    method.prepare(loss, point, penalty)
    point = point._replace(excess=method.excess(point.gradient, math.inf))
    yield point
    again, close, stalled = _MANY, int(point.has_converged(tol)), 0
    for n in range(max_iter if point.excess > 0.0 else 0):
        if n == again:
            method.prepare(loss, point, penalty, anew=True)
            again *= 2
        found = _step(loss, point, penalty, method)
        if found is None:
            method.forget()
            found = _step(loss, point, penalty, method)
        if found is None:  # not even the steepest descent leads down: a minimum, or a kink
            return
        method.learn(found.w - point.w, point.gradient, found.gradient)
        gained = point.value - found.value
        point = found._replace(excess=method.excess(found.gradient, gained), steps=n + 1)
        yield point
        close = close + 1 if point.has_converged(tol) else 0
        stalled = stalled + 1 if gained <= ROUNDING * abs(point.value) else 0
        if close == method.certain or stalled == _STALLED or stop():
            return


class AnnealingStage(NamedTuple):
    """Where the descent on a loss smoothed by ``sigma`` ended."""

    sigma: float
    point: DescentPoint
    steps: int

    def without_state(self) -> AnnealingStage:
        """The same, of which only the weights and the values are kept in memory."""
        return self._replace(point=self.point._replace(place=None))


def anneal(
    smoothed: Callable[[float], DifferentiableLoss],
    sigmas: Iterable[float],
    start: Floats,
    penalty: L2Penalty,
    method: Callable[[], DescentMethod],
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never,
) -> Iterator[AnnealingStage]:
    """Minimise losses that are smoothed less and less, each from the minimum of the one before: a homotopy.

    Where ``stop`` ends a descent, its stage is the last.
    """
    w = start
    for sigma in sigmas:
        steps, point = _last(descend(smoothed(sigma), w, penalty, method(), tol=tol, max_iter=max_iter, stop=stop))
        w = point.w
        yield AnnealingStage(sigma, point, steps)
        if stop():
            return


def descend_reweighted(
    frozen: Callable[[Floats], DifferentiableLoss],
    start: Floats,
    penalty: L2Penalty,
    method: Callable[[], DescentMethod],
    *,
    rounds: int,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never,
) -> Iterator[DescentPoint]:
    """Minimise a loss whose weights depend on where one is, each time with those of the minimum before.

    ``frozen(w)`` is the loss with the weights of a place. It ends early where a round moves nothing.
    """
    w = start
    for _ in range(rounds):
        steps, point = _last(descend(frozen(w), w, penalty, method(), tol=tol, max_iter=max_iter, stop=stop))
        w = point.w
        yield point
        if steps == 0 or stop():
            return


def _last(points: Iterable[DescentPoint]) -> tuple[int, DescentPoint]:
    """The last point and its number; none but the last is kept in memory."""
    [last] = deque(enumerate(points), maxlen=1)
    return last


def _point(loss: DifferentiableLoss, w: Floats, place: Any, penalty: L2Penalty) -> DescentPoint:
    place = loss.evaluate(w) if place is None else place
    here = loss.loss(place)
    return DescentPoint(w, place, here, here + penalty(w), loss.gradient(place) + penalty.gradient(w))


def _step(
    loss: DifferentiableLoss, point: DescentPoint, penalty: L2Penalty, method: DescentMethod
) -> DescentPoint | None:
    """The point after a line search; None where it finds nothing lower."""
    direction = method.direction(point.gradient)
    slope = float(direction @ point.gradient)
    if not slope < 0.0:
        return None
    way = method.first_step(slope) * direction
    end = loss.move(point.place, way)

    def at(t: float) -> WolfeTrial:
        w = point.w + t * way
        place = end if t == 1.0 else loss.interpolate(point.place, end, t)
        steep = loss.directional_derivative(place) + float(way @ penalty.gradient(w))
        return WolfeTrial(t, loss.loss(place) + penalty(w), steep, place)

    found = search_wolfe(at, WolfeTrial(0.0, point.value, float(way @ point.gradient), point.place), method.flat)
    return None if found is None else _point(loss, point.w + found.t * way, found.place, penalty)
