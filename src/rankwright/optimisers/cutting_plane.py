"""Cutting planes for a convex loss with an L2 penalty: one slack, a small QP, a duality gap."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.optimisers.loss_protocols import ConvexLoss, CuttingPlane
from rankwright.optimisers.rounds import Stop, never_stop

_PATIENCE, _SHRUNK = 40, 0.99  # rounds in which the gap must shrink to this part of it, or else rounding prevails
_MAX_IDLE = 20  # rounds after which a plane with a multiplier of 0 is dropped
_AHEAD = 0.1  # part of the way from the best point to the model's minimum at which a new plane is made
_TRIALS, _MAX_TRIALS = 6, 60  # of a line search, and of one that has not moved yet
_SLOPE_RATIO = 0.1  # a line search ends where the slope is at most this part of its start
_RIDGES = (1e-12, 1e-10, 1e-8)  # regularise the QP of parallel planes; the next is tried where the solver fails
_MIN_SIZE = 1e-9  # of the slopes, relative to the offsets
_SOLVED = 1  # the QP solver's flag of success
_UNBOUNDED = 1e30  # the QP solver's infinity
_MAX_SCALE, _HALVINGS, _CLOSE = 1e12, 60, 1e-3  # of a search for a scale


class CuttingPlaneRound(NamedTuple):
    """The result of a round of cutting planes: the best weights so far, their objective and the duality gap."""

    w: Floats
    loss: float
    primal: float  # |w|^2 / 2 + C loss
    gap: float  # the minimum is at least primal - gap
    n_planes: int
    improved: bool  # whether this round found w
    stage: int | None = None  # the number of the convex problem, where several are solved one after the other


def minimise_by_cutting_planes(
    loss: ConvexLoss,
    C: float,
    *,
    start: Floats | None = None,
    planes: CuttingPlaneModel | None = None,
    tol: float = 1e-4,
    max_iter: int = 1000,
    stop: Stop = never_stop,
) -> Iterator[CuttingPlaneRound]:
    """Minimise |w|^2 / 2 + C loss(w) and yield each round's result, until the relative duality gap is below ``tol``.

    Parameters
    ----------
    loss : ConvexLoss
        The loss: convex and not negative.
    C : float
        Its weight.
    start : array of shape (n_features,), optional
        The first weights, such as the solution for another C.
    planes : CuttingPlaneModel, optional
        The planes of an earlier call, to which new ones are added. Planes do not depend on C.
    tol : float
        The relative gap to reach.
    max_iter : int
        The most rounds. It ends earlier where rounding allows no more progress; the gap says how far it came.
    stop : callable
        Whether to end after the round at hand.

    Notes
    -----
    The loss is modelled from below by planes. A round minimises the model, by the QP of Joachims' one-slack formulation
    over the planes' multipliers; its minimum is a lower bound. Then it searches the line from the best point so far to
    the model's minimum, and adds the plane that touches the loss a little beyond the best point of the line, as OCAS
    does (Franc and Sonnenburg, 2009). Without the line search it takes about five times as many rounds. Planes whose
    multiplier has been 0 for 20 rounds are dropped; the lower bound so far is kept.
    """
    w = np.zeros(loss.n_features) if start is None or C == 0.0 else np.array(start, dtype=np.float64)
    model = CuttingPlaneModel(loss.n_features) if planes is None else planes
    state, dual = loss.evaluate(w), 0.0
    model.add(loss.linearise(state))
    primal = _compute_objective(w, C, loss.loss(state))
    yield CuttingPlaneRound(w, loss.loss(state), primal, primal - dual, len(model), True)
    waited, mark = 0, np.inf
    for n in range(max_iter if C > 0.0 else 0):
        if primal - dual <= tol * primal or waited == _PATIENCE or (n > 0 and stop()):
            return
        waited, mark = (0, primal - dual) if primal - dual < _SHRUNK * mark else (waited + 1, mark)
        target, lower_bound = model.minimise(C)
        dual = max(dual, lower_bound)
        there = loss.evaluate(target)
        t, reached = _search_line(loss, C, state, there, w, target)
        moved = w + t * (target - w)
        model.add(loss.linearise(loss.interpolate(state, there, t + _AHEAD * (1.0 - t))))
        improved = _compute_objective(moved, C, loss.loss(reached)) < primal
        if improved:
            w, state, primal = moved, reached, _compute_objective(moved, C, loss.loss(reached))
        yield CuttingPlaneRound(w, loss.loss(state), primal, max(primal - dual, 0.0), len(model), improved)


def _compute_objective(w: Floats, C: float, loss: float) -> float:
    """Return the objective that is minimised: |w|^2 / 2 + C times the given loss."""
    return float(0.5 * (w @ w) + C * loss)


def _search_line(loss: ConvexLoss, C: float, state: Any, there: Any, w: Floats, target: Floats) -> tuple[float, Any]:
    """Return about the best step t from weights ``w`` (t = 0) to ``target`` (t = 1), and the loss's state there."""
    along, across = float(w @ (target - w)), float((target - w) @ (target - w))

    def slope(t: float, at: Any) -> float:
        return along + t * across + C * loss.derivative_between(at, state, there)

    start, at_high = slope(0.0, state), slope(1.0, there)
    if start >= 0.0:  # at a kink the loss may rise to both sides
        return 0.0, state
    if at_high <= 0.0:
        return 1.0, there
    low, at_low, high, reached, in_a_row = 0.0, start, 1.0, state, 0
    for n in range(_MAX_TRIALS):
        if n >= _TRIALS and low > 0.0:
            break
        t = low + (high - low) * min(max(at_low / (at_low - at_high), 0.1), 0.9)
        trial = loss.interpolate(state, there, t)
        here = slope(t, trial)
        if abs(here) <= -_SLOPE_RATIO * start:
            return t, trial
        if here < 0.0:
            low, at_low, reached, in_a_row = t, here, trial, max(in_a_row, 0) + 1
        else:
            high, at_high, in_a_row = t, here, min(in_a_row, 0) - 1
        if in_a_row > 1:  # halve the slope of the end that stays (the Illinois rule)
            at_high *= 0.5
        elif in_a_row < -1:
            at_low *= 0.5
    return low, reached


class CuttingPlaneModel:
    """A lower bound of a convex loss: the highest of its cutting planes so far, and at least 0."""

    def __init__(self, n_features: int) -> None:
        self.slopes, self.offsets = np.empty((0, n_features)), np.empty(0)
        self.products = np.empty((0, 0))  # of the slopes
        self.idle = np.empty(0, dtype=np.int64)  # rounds with a multiplier of 0

    def __len__(self) -> int:
        return len(self.offsets)

    def add(self, plane: CuttingPlane) -> None:
        """Add a plane; drop those whose multiplier has been 0 for long."""
        keep = np.flatnonzero(self.idle < _MAX_IDLE)
        self.slopes = np.vstack([self.slopes[keep], plane.slope])
        self.offsets, self.idle = np.append(self.offsets[keep], plane.offset), np.append(self.idle[keep], 0)
        products = np.empty((len(self), len(self)))
        products[:-1, :-1] = self.products[np.ix_(keep, keep)]
        products[-1] = products[:, -1] = self.slopes @ plane.slope
        self.products = products

    def minimise(self, C: float) -> tuple[Floats, float]:
        """Return the weights of the least |w|^2 / 2 + C model(w), and that value.

        The dual problem is to maximise b . x - |A'x|^2 / 2 over x >= 0 with a sum of at most C; then w = -A'x.
        """
        import daqp  # here, because few rankers need the solver

        m, highest = len(self), float(np.abs(self.offsets).max())
        if highest == 0.0:  # weights of 0 have no loss, as far as the planes tell
            return np.zeros(self.slopes.shape[1]), 0.0
        size = max(float(np.trace(self.products)) / m, _MIN_SIZE * highest / C, 1e-300)
        unit = min(C, max(highest / size, 1e-300))  # about the size of x: the solver's tolerances are absolute
        upper, lower = np.append(np.full(m, _UNBOUNDED), C / unit), np.append(np.zeros(m), -_UNBOUNDED)
        kinds, offsets = np.zeros(m + 1, dtype=np.intc), -self.offsets / (unit * size)
        x = np.zeros(m)
        for ridge in _RIDGES:
            H = self.products / size + ridge * np.eye(m)
            x, _, flag, _ = daqp.solve(H, offsets, np.ones((1, m)), upper, lower, kinds, iter_limit=100 + 10 * m)
            if flag == _SOLVED:
                break
        x = np.maximum(x, 0.0) * unit  # made feasible, so that its value is a lower bound
        x *= min(1.0, C / max(float(x.sum()), 1e-300))
        self.idle = np.where(x > 1e-9 * x.sum(), 0, self.idle + 1)
        w = -(x @ self.slopes)
        return w, float(self.offsets @ x - 0.5 * (w @ w))


def find_best_scale(loss: ConvexLoss, C: float, w: Floats) -> float:
    """Return the factor t >= 0 by which to scale weights w so that |t w|^2 / 2 + C loss(t w) is least."""
    zero, there, across = loss.evaluate(np.zeros_like(w)), loss.evaluate(w), float(w @ w)

    def slope(t: float) -> float:
        return t * across + C * loss.derivative_between(loss.interpolate(zero, there, t), zero, there)

    if across == 0.0 or slope(0.0) >= 0.0:
        return 0.0
    low, high = 0.0, 1.0
    while slope(high) < 0.0 and high < _MAX_SCALE:
        low, high = high, 4.0 * high
    for _ in range(_HALVINGS):
        middle = 0.5 * (low + high) if low > 0.0 else high / 4.0
        low, high = (middle, high) if slope(middle) < 0.0 else (low, middle)
        if low > 0.0 and high - low < _CLOSE * high:
            break
    return low
