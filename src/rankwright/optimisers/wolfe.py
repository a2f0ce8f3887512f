"""A line search by values and slopes, for the strong Wolfe conditions."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

_ENOUGH = 1e-4  # of the decrease that the slope promises
_TRIALS = 20
_WIDEN = 8.0  # the most a step grows between trials
_FAR = 1e30
_CLOSE = 1e-9  # a bracket of this part of its place has nothing more to tell
ROUNDING = 1e-14  # of a value: two that differ by less are not told apart by it, but by their slopes
_EDGE = 0.05  # a new trial stays so far from the ends of its bracket


class WolfeTrial(NamedTuple):
    """A point of a line: the value there, its derivative along the line, and what the caller knows of it."""

    t: float
    value: float
    slope: float
    place: Any = None


def search_wolfe(at: Callable[[float], WolfeTrial], start: WolfeTrial, flat: float) -> WolfeTrial | None:
    """A point that is lower by part of what the slope at the start promises, and flatter by ``flat``.

    Parameters
    ----------
    at : callable
        The trial at any t > 0; the first is at 1.
    start : WolfeTrial
        That at t = 0, from where the line falls.
    flat : float
        The slope may be this part of the start's.

    Returns
    -------
    Trial or None
        If 20 trials find none so flat, the last that was the lowest; None if none is lower.

    Notes
    -----
    Nocedal and Wright (2006), algorithms 3.5 and 3.6: beyond the first trial until the minimum is bracketed, then
    within, by the cubic through the ends of the bracket. It survives values that are not finite, or too high to square.
    Where values differ by no more than rounding the slope alone decides (Hager and Zhang, 2005): a sum of many numbers
    is not exact enough to show the last steps to a minimum, its derivative is.

    Examples
    --------
    >>> trial = lambda t: WolfeTrial(t, (t - 3.0) ** 2, 2.0 * (t - 3.0))
    >>> search_wolfe(trial, trial(0.0), flat=0.1).t
    3.0
    """
    low, high, t = start, None, 1.0
    for _ in range(_TRIALS):
        trial = at(t)
        if abs(trial.value - start.value) <= ROUNDING * abs(start.value) and abs(trial.slope) <= -flat * start.slope:
            return trial
        promised = start.value + _ENOUGH * t * start.slope
        if not trial.value <= promised or (low.t > 0.0 and trial.value >= low.value):
            high = trial
        else:
            if abs(trial.slope) <= -flat * start.slope:
                return trial
            if trial.slope * (1.0 if high is None else high.t - low.t) >= 0.0:
                high = low
            low = trial
        if high is None:
            beyond = _cubic(start, low)
            t = min(max(beyond, 1.5 * low.t), _WIDEN * low.t) if math.isfinite(beyond) else _WIDEN * low.t
            continue
        width = high.t - low.t
        if abs(width) <= _CLOSE * max(low.t, high.t):
            break
        inner = (_cubic(low, high) - low.t) / width
        t = low.t + width * (min(max(inner, _EDGE), 1.0 - _EDGE) if math.isfinite(inner) else _EDGE)
    return low if low.t > 0.0 else None


def _cubic(a: WolfeTrial, b: WolfeTrial) -> float:
    """Where the cubic through two points with their slopes is lowest; far off if it falls for ever; NaN if unknown."""
    if not (math.isfinite(b.value) and math.isfinite(b.slope)):
        return math.nan
    d1 = a.slope + b.slope - 3.0 * (a.value - b.value) / (a.t - b.t)
    square = d1 * d1 - a.slope * b.slope
    if square < 0.0:
        return b.t + math.copysign(_FAR, b.t - a.t)
    d2 = math.copysign(math.sqrt(square), b.t - a.t)
    below = b.slope - a.slope + 2.0 * d2
    return b.t - (b.t - a.t) * ((b.slope + d2 - d1) / below) if below != 0.0 else b.t
