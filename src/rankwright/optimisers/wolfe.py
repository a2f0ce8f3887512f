"""A line search by values and slopes, for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

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
