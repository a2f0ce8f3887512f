"""Thresholds as Solr reads them: it adds a slack to each, which the written threshold must make up for."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.models.export.float32_thresholds import round_down_to_float32

SLACK = np.float32(1e-6)  # Solr goes left on x <= fl32(threshold + SLACK)
_ZERO_SPLIT = 1.0000000180025095e-35  # LightGBM's threshold between 0 and all positive values
ABOVE_ZERO_SPLIT = 1.01e-35
_MAX_EXPONENT = 126  # 2^-126 is the least normal float32


def find_solr_thresholds(thresholds: Floats) -> tuple[NDArray[np.float32], NDArray[np.bool_]]:
    """Return for each float32 threshold the number that becomes it when Solr adds its slack, and whether there is one.

    >>> written, is_exact = find_solr_thresholds(np.array([4.25, 0.0, 1e-9], np.float32))
    >>> (written + SLACK).tolist()[:2], is_exact.tolist()
    ([4.25, 0.0], [True, True, False])
    """
    with np.errstate(over="ignore"):
        guess = (thresholds - SLACK).astype(np.float32)
        tries = [guess, np.nextafter(guess, np.float32(-np.inf)), np.nextafter(guess, np.float32(np.inf))]
        hits = [own + SLACK == thresholds for own in tries]
    return np.select(hits, tries, guess).astype(np.float32), np.any(hits, axis=0)


class ThresholdScaling(NamedTuple):
    """A factor by which a feature and its thresholds are multiplied, so that Solr can hold the thresholds.

    A factor that is a power of 2 changes no comparison. Small thresholds need one: near 0 the slack is larger than the
    distance of neighbouring numbers.

    Parameters
    ----------
    exponent : int
        The factor is 2 to this power.
    moves_zero_split : bool
        Whether LightGBM's threshold above 0, which is 1e-35, is written as 0.
    """

    exponent: int = 0
    moves_zero_split: bool = False

    def write(self, thresholds: Floats) -> NDArray[np.float32]:
        """Return the numbers to write; Solr can read infinity, for a threshold that no finite value exceeds."""
        return find_solr_thresholds(self.scale(thresholds))[0]

    def scale(self, thresholds: Floats) -> NDArray[np.float32]:
        """Return the thresholds as float32 times the factor."""
        own = np.where(thresholds == _ZERO_SPLIT, 0.0, thresholds) if self.moves_zero_split else thresholds
        rounded = round_down_to_float32(own)
        rounded = np.where(rounded == np.finfo(np.float32).max, np.float32(np.inf), rounded)
        with np.errstate(over="ignore"):
            return np.ldexp(rounded, self.exponent).astype(np.float32)

    def is_exact(self, thresholds: Floats) -> bool:
        """Return whether Solr compares with exactly these thresholds, and none of them overflows."""
        unscaled, scaled = ThresholdScaling().scale(thresholds), self.scale(thresholds)
        return bool(find_solr_thresholds(scaled)[1].all() and np.array_equal(np.isinf(unscaled), np.isinf(scaled)))


def choose_scaling_of_thresholds(thresholds: Floats) -> ThresholdScaling | None:
    """Return the least factor with which Solr can hold all thresholds of a feature; None if there is none.

    There is none where some thresholds are so small that they need a factor with which others overflow. LightGBM's
    threshold of 1e-35 is moved to 0: it takes values between them for 0, and a factor for its sake would be huge.
    """
    moves_zero_split = bool((thresholds == _ZERO_SPLIT).any())
    least = np.abs(ThresholdScaling(0, moves_zero_split).scale(thresholds).astype(np.float64))
    # with the slack all sums below 2^-19 are multiples of 2^-43: smaller factors cannot do
    start = max(0, -43 - int(np.floor(np.log2(least[least > 0.0].min(initial=1.0)))) - 1)
    for exponent in range(start, _MAX_EXPONENT + 1):
        found = ThresholdScaling(exponent, moves_zero_split)
        if found.is_exact(thresholds):
            return found
    return None


def list_inexact_thresholds(thresholds: Floats) -> NDArray[np.float32]:
    """Return the thresholds that Solr cannot hold as they are."""
    rounded = ThresholdScaling(0, moves_zero_split=True).scale(thresholds)
    return np.unique(rounded[~find_solr_thresholds(rounded)[1]])
