"""Descent by gradients, and annealing: descent on a sequence of less and less smoothed losses.

Both minimise ``loss(w) + alpha |w - center|^2`` for any differentiable loss.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.optimisers.descent_methods import ROUNDING, DescentMethod, WolfeTrial, search_wolfe
from rankwright.optimisers.loss_protocols import DifferentiableLoss
from rankwright.optimisers.rounds import Stop, never_stop

_FIRST_REFRESH = 12  # steps after which the method is prepared again, then after twice as many and so on
_MAX_STALLED = 5  # steps in a row that change the value by no more than rounding


class L2Penalty(NamedTuple):
    """The L2 penalty ``alpha |w - center|^2`` on weights w, with its gradient."""

    alpha: float
    center: Floats

    def __call__(self, w: Floats) -> float:
        """Return the penalty of these weights."""
        away = w - self.center
        return float(self.alpha * (away @ away))

    def gradient(self, w: Floats) -> Floats:
        """Return the gradient of the penalty."""
        gradient: Floats = 2.0 * self.alpha * (w - self.center)
        return gradient


class DescentPoint(NamedTuple):
    """A point of a descent: its weights, ``value`` (the loss plus the penalty) and ``gradient`` of the value."""

    w: Floats
    state: Any
    loss: float
    value: float
    gradient: Floats
    suboptimality: float = math.inf  # about how far the value is above its minimum, as the method estimates it
    steps: int = 0  # that led to it

    def has_converged(self, tol: float) -> bool:
        """Return whether the value is estimated to be above its minimum by at most this part of it."""
        return self.suboptimality <= tol * abs(self.value)


def descend(
    loss: DifferentiableLoss,
    start: Floats,
    penalty: L2Penalty,
    method: DescentMethod,
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never_stop,
) -> Iterator[DescentPoint]:
    """Minimise a loss plus a penalty by gradients; yield the start and the point after every step.

    Parameters
    ----------
    loss : DifferentiableLoss
        The loss.
    start : array of shape (n_features,)
        The first weights.
    penalty : L2Penalty
        A penalty added to the loss.
    method : DescentMethod
        Chooses the directions.
    tol : float
        It ends where the value is above its minimum by at most this part of it, as the method estimates. L-BFGS
        estimates half of g' H^-1 g, the gain of a Newton step; conjugate gradients take the gain of the last step.
    max_iter : int
        The most steps.
    stop : callable
        Whether to end after the step at hand.

    Notes
    -----
    It ends earlier where rounding allows no more progress. ``has_converged`` of the last point says how it ended.
    """
    point = _make_point(loss, np.array(start, dtype=np.float64), None, penalty)
    if not math.isfinite(point.value):
        raise InputError("the objective is not a finite number where the descent begins, or its gradient is not")
    method.prepare(loss, point.state, point.w, penalty.alpha)
    point = point._replace(suboptimality=method.estimate_suboptimality(point.gradient, math.inf))
    yield point
    refresh, confirmed, stalled = _FIRST_REFRESH, int(point.has_converged(tol)), 0
    for n in range(max_iter if point.suboptimality > 0.0 else 0):
        if n == refresh:
            method.prepare(loss, point.state, point.w, penalty.alpha, refresh=True)
            refresh *= 2
        found = _step(loss, point, penalty, method)
        if found is None:
            method.restart()
            found = _step(loss, point, penalty, method)
        if found is None:  # not even steepest descent leads down: a minimum, or a kink
            return
        method.update(found.w - point.w, point.gradient, found.gradient)
        gained = point.value - found.value
        suboptimality = method.estimate_suboptimality(found.gradient, gained)
        point = found._replace(suboptimality=suboptimality, steps=n + 1)
        yield point
        confirmed = confirmed + 1 if point.has_converged(tol) else 0
        stalled = stalled + 1 if gained <= ROUNDING * abs(point.value) else 0
        if confirmed == method.n_confirmations or stalled == _MAX_STALLED or stop():
            return


class AnnealingStage(NamedTuple):
    """The result of one stage of annealing: the end of a descent on a loss smoothed by ``sigma``."""

    sigma: float
    point: DescentPoint
    steps: int

    def without_state(self) -> AnnealingStage:
        """Return the same stage without the state of the loss, which takes much memory."""
        return self._replace(point=self.point._replace(state=None))


def anneal(
    smooth: Callable[[float], DifferentiableLoss],
    sigmas: Iterable[float],
    start: Floats,
    penalty: L2Penalty,
    method: Callable[[], DescentMethod],
    *,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never_stop,
) -> Iterator[AnnealingStage]:
    """Minimise less and less smoothed losses, each from the minimum of the one before; yield the end of each descent.

    ``smooth(sigma)`` returns the smoothed loss. Where ``stop`` ends a descent, its stage is the last.
    """
    w = start
    for sigma in sigmas:
        steps, point = _take_last(descend(smooth(sigma), w, penalty, method(), tol=tol, max_iter=max_iter, stop=stop))
        w = point.w
        yield AnnealingStage(sigma, point, steps)
        if stop():
            return


def descend_reweighted(
    reweight: Callable[[Floats], DifferentiableLoss],
    start: Floats,
    penalty: L2Penalty,
    method: Callable[[], DescentMethod],
    *,
    rounds: int,
    tol: float = 1e-6,
    max_iter: int = 100,
    stop: Stop = never_stop,
) -> Iterator[DescentPoint]:
    """Minimise a loss several times, each time reweighted at the last minimum; yield the end of each descent.

    ``reweight(w)`` returns the loss whose terms are weighted as at w. It ends early where a round moves nothing.
    """
    w = start
    for _ in range(rounds):
        steps, point = _take_last(descend(reweight(w), w, penalty, method(), tol=tol, max_iter=max_iter, stop=stop))
        w = point.w
        yield point
        if steps == 0 or stop():
            return


def _take_last(points: Iterable[DescentPoint]) -> tuple[int, DescentPoint]:
    """Return the last point of a descent and its number, counted from 0, without keeping the others in memory."""
    [last] = deque(enumerate(points), maxlen=1)
    return last


def _make_point(loss: DifferentiableLoss, w: Floats, state: Any, penalty: L2Penalty) -> DescentPoint:
    """Evaluate the loss and the penalty at ``w``, or reuse the ``state`` of the loss there; return the point."""
    state = loss.evaluate(w) if state is None else state
    here = loss.loss(state)
    return DescentPoint(w, state, here, here + penalty(w), loss.gradient(state) + penalty.gradient(w))


def _step(
    loss: DifferentiableLoss, point: DescentPoint, penalty: L2Penalty, method: DescentMethod
) -> DescentPoint | None:
    """Return the point after one line search; return None if it finds no lower value."""
    direction = method.find_direction(point.gradient)
    slope = float(direction @ point.gradient)
    if not slope < 0.0:
        return None
    step = method.first_step_length(slope) * direction
    end = loss.move(point.state, step)

    def evaluate(t: float) -> WolfeTrial:
        w = point.w + t * step
        state = end if t == 1.0 else loss.interpolate(point.state, end, t)
        derivative = loss.directional_derivative(state) + float(step @ penalty.gradient(w))
        return WolfeTrial(t, loss.loss(state) + penalty(w), derivative, state)

    first = WolfeTrial(0.0, point.value, float(step @ point.gradient), point.state)
    found = search_wolfe(evaluate, first, method.slope_ratio)
    return None if found is None else _make_point(loss, point.w + found.t * step, found.state, penalty)
