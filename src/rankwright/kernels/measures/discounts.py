"""Discounts of ranks that need not be whole numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.kernels.jit import inner_kernel

LOGARITHMIC, GEOMETRIC, HARMONIC = 0, 1, 2


class DiscountFunction(NamedTuple):
    """A discount of ranks up to a cut-off, such as 1 / log2(1 + rank), that takes ranks between whole ones too."""

    kind: int  # 1 / log2(1 + max(r - a, 1)), b a^(r - 1), or 1 / r
    a: float = 0.0
    b: float = 1.0
    cut_off: float = np.inf


@inner_kernel
def compute_discount(function: DiscountFunction, r: float) -> tuple[float, float]:
    """Return a discount and its derivative at a real rank; within one rank after the cut-off it falls to 0."""
    kind, a, b, cut_off = function
    if r >= cut_off + 1.0:
        return 0.0, 0.0
    if kind == LOGARITHMIC:
        late = max(r - a, 1.0)
        value = 1.0 / np.log2(1.0 + late)
        slope = -value * value / ((1.0 + late) * np.log(2.0)) if r - a >= 1.0 else 0.0
    elif kind == GEOMETRIC:
        value = b * a ** (r - 1.0)
        slope = value * np.log(a)
    else:
        value, slope = 1.0 / r, -1.0 / (r * r)
    if r <= cut_off:
        return value, slope
    left = cut_off + 1.0 - r
    part, steep = left * left * (3.0 - 2.0 * left), -6.0 * left * (1.0 - left)
    return value * part, slope * part + value * steep
