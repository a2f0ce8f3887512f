"""Surrogate losses of a ranking in upper bounds of type two: functions of its loss and its lead over a perfect one."""

from __future__ import annotations

import math

import numpy as np

from rankwright.kernels.jit import Floats, inner_kernel, kernel

STEP, LOGISTIC, EXPONENTIAL, HINGE, MARGIN = 0, 1, 2, 3, 4
_HIGHEST = 700.0  # exponent: its products stay finite, and above the step
_NEAR = 1e-12  # a step this close is taken, so that rounding never lowers a bound


@inner_kernel
def compute_violation(kind: int, lost: float, x: float) -> float:
    """Return the surrogate loss of a ranking that loses ``lost`` of a measure and leads a perfect one by x.

    It is ``lost`` times [x >= 0], log2(1 + e^x), e^x or max(1 + x, 0); or max(lost + x, 0). It grows with both.
    """
    if kind == STEP:
        return lost if x >= -_NEAR else 0.0
    if kind == LOGISTIC:
        return lost * (max(x, 0.0) + math.log1p(math.exp(-abs(x)))) / math.log(2.0)
    if kind == EXPONENTIAL:
        return lost * math.exp(min(x, _HIGHEST))
    if kind == HINGE:
        return lost * max(1.0 + x, 0.0)
    return max(lost + x, 0.0)


@inner_kernel
def compute_slope(kind: int, lost: float, x: float) -> float:
    """Return the derivative of the surrogate loss ``compute_violation`` by the lead x."""
    if kind == STEP:
        return 0.0
    if kind == LOGISTIC:
        return lost / ((1.0 + math.exp(-x)) * math.log(2.0))
    if kind == EXPONENTIAL:
        return lost * math.exp(min(x, _HIGHEST))
    if kind == HINGE:
        return lost if x > -1.0 else 0.0
    return 1.0 if lost + x > 0.0 else 0.0


@kernel
def compute_violations(kind: int, lost: Floats, x: Floats) -> tuple[Floats, Floats]:
    """Return the surrogate losses of many rankings, as ``compute_violation`` does, and their slopes by the lead."""
    values, slopes = np.empty(len(x)), np.empty(len(x))
    for i in range(len(x)):
        values[i], slopes[i] = compute_violation(kind, lost[i], x[i]), compute_slope(kind, lost[i], x[i])
    return values, slopes
