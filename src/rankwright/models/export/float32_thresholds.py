"""Thresholds in single precision: on the same side of every float32 value as those in double precision."""

from __future__ import annotations

import numpy as np

from rankwright.basics.array_types import Floats


def round_down_to_float32(thresholds: Floats) -> Floats:
    """Return the largest float32 up to each threshold, as float32: for a float32 x, ``x <= t`` stays the same.

    An infinite threshold becomes the largest finite float32, which JSON can hold.

    >>> round_down_to_float32(np.array([0.5, 0.1])).tolist()
    [0.5, 0.09999999403953552]
    """
    with np.errstate(over="ignore"):
        rounded = thresholds.astype(np.float32)
        down = np.where(rounded > thresholds, np.nextafter(rounded, np.float32(-np.inf)), rounded)
    largest = np.finfo(np.float32).max
    return np.clip(down, -largest, largest)


def raise_to_next_float32(thresholds: Floats) -> Floats:
    """Return the least float32 above each threshold, as float32: for a float32 x, ``x <= t`` becomes ``x < t``.

    It is infinity where a threshold is the largest float32 or more, as where only missing values go right.

    >>> raise_to_next_float32(np.array([0.5, 1e308])).tolist()
    [0.5000000596046448, inf]
    """
    with np.errstate(over="ignore"):
        return np.nextafter(round_down_to_float32(thresholds), np.float32(np.inf))
