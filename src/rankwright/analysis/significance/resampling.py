"""Fisher's randomisation test and bootstrap intervals, by resampling the queries.

scipy has both (``permutation_test``, ``bootstrap``), a sample at a time. Here all comparisons of the same queries share
their resamples, which makes a resample of all of them one matrix product.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.significance.method_pairs import (
    as_values,
    is_constant,
    max_magnitude,
    pair_differences,
    round_to_grid,
)
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError

# Resamples are drawn in batches of about this many numbers: large enough for fast products, small enough for memory.
BATCH = 2**21
# Two sums within this fraction of the sum of |d| are equal: 1/3 + 1/3 and 2/3 are not, to the bit.
SLACK = 1e-9


class Interval(NamedTuple):
    """A confidence interval: its low and its high end."""

    low: float
    high: float


def randomisation(a: ArrayLike, b: ArrayLike, n: int = 10_000, random_state: int = 0) -> float:
    """Return the two-sided p-value of Fisher's paired randomisation test.

    If the methods are alike, exchanging their values on any query changes nothing: every way to give signs to the
    differences is as likely. The p-value is the share of them whose ``abs(mean)`` is at least the observed one.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The values of two methods, in the same order of queries; a query where either is NaN is left out.
    n : int
        The number of random sign flips, whose p-value is (count + 1) / (n + 1). If there are no more than ``n`` ways to
        flip the pairs that differ, each is tried once instead, and the p-value is exact.
    random_state : int
        The seed.

    Returns
    -------
    float
        1 if no pair differs, NaN if there are fewer than 2 pairs.

    Examples
    --------
    All five queries improve: 2 of the 2^5 ways to give out signs are as extreme.

    >>> randomisation([0.1, 0.4, 0.3, 0.2, 0.0], [0.3, 0.5, 0.7, 0.5, 0.5])
    0.0625
    """
    check_resamples(n)
    return float(flip_p_values(pair_differences(a, b)[None, :], n, random_state)[0])


def bootstrap_interval(values: ArrayLike, confidence: float = 0.95, n: int = 10_000, random_state: int = 0) -> Interval:
    """Return a bootstrap confidence interval of the mean (BCa: corrected for bias and skew).

    The means of ``n`` resamples of the values, drawn with replacement, show how the mean varies. The ends are their
    quantiles at ``Phi(z0 + (z0 + z) / (1 - s (z0 + z)))`` with z the normal quantiles of ``(1 - confidence) / 2`` and
    ``(1 + confidence) / 2``, ``z0 = Phi^-1(share of resampled means below the mean)`` and, with c the values less
    their mean, ``s = sum(c^3) / (6 sum(c^2)^1.5)``. Where these are not defined, the ends are the plain quantiles.

    Parameters
    ----------
    values : array-like of shape (n_queries,)
        Values, or differences of paired values; NaNs are left out.
    confidence : float
        Between 0 and 1.
    n : int
        The number of resamples.
    random_state : int
        The seed.

    Returns
    -------
    Interval
        That constant twice if all values are equal; NaNs if there are fewer than 2 values.

    Examples
    --------
    >>> low, high = bootstrap_interval([0.1, 0.4, 0.3, 0.2, 0.9])
    >>> 0.1 < low < 0.38 < high < 0.9
    True
    """
    check_resamples(n)
    check_confidence(confidence)
    array = as_values(values, "values")
    counted = array[~np.isnan(array)]
    if len(counted) > 1 and is_constant(counted):
        return Interval(float(counted[0]), float(counted[0]))
    return mean_intervals(round_to_grid(counted, max_magnitude(counted))[None, :], confidence, n, random_state)[0]


def check_resamples(n: int) -> None:
    """Raise InputError if the number of resamples is below 1."""
    if n < 1:
        raise InputError(f"n is {n}; expected at least 1 resample")


def check_confidence(confidence: float) -> None:
    """Raise InputError if a confidence is not between 0 and 1."""
    if not 0 < confidence < 1:
        raise InputError(f"confidence is {confidence}; expected a number between 0 and 1, such as 0.95")


def flip_p_values(rows: Floats, n: int, random_state: int) -> Floats:
    """Return the randomisation test's p-value for each row of paired differences; rows share their sign flips."""
    if rows.shape[1] < 2:
        return np.full(len(rows), np.nan)
    few = np.count_nonzero(rows, axis=1) < int(n).bit_length()  # 2^count <= n
    p = np.empty(len(rows))
    p[few] = [exact_p_value(row[row != 0]) for row in rows[few]]
    if not few.all():
        p[~few] = _sample_p_values(rows[~few], n, random_state)
    return p


def exact_p_value(d: Floats) -> float:
    """Return the randomisation test's p-value for n paired differences, computed from all 2^n sign flips."""
    sums = np.zeros(1)
    for difference in d:
        sums = np.concatenate([sums - difference, sums + difference])
    return float(np.mean(np.abs(sums) >= _compute_extreme_threshold(d)))


def _sample_p_values(rows: Floats, n: int, random_state: int) -> Floats:
    """Return the randomisation test's p-value for each row of differences, from ``n`` random sign flips."""
    rng = np.random.default_rng(random_state)
    sums, extreme = rows.sum(axis=1), _compute_extreme_threshold(rows)
    count = np.zeros(len(rows))
    for size in _cut_batches(n, rows.shape[1]):
        flips = rng.integers(0, 2, (size, rows.shape[1]), dtype=np.bool_)
        flipped = sums - 2 * (flips.astype(np.float64) @ rows.T)
        count += np.count_nonzero(np.abs(flipped) >= extreme, axis=0)
    return (count + 1) / (n + 1)


def _compute_extreme_threshold(d: Floats) -> Floats:
    """Return how large a sum of flipped differences must be to count as extreme as the observed sum."""
    least: Floats = np.abs(d.sum(axis=-1)) - SLACK * np.abs(d).sum(axis=-1)
    return least


def mean_intervals(rows: Floats, confidence: float, n: int, random_state: int) -> list[Interval]:
    """Return a bootstrap confidence interval of the mean of each row of values; rows share their resamples."""
    if rows.shape[1] < 2:
        return [Interval(float("nan"), float("nan"))] * len(rows)
    sums = _resample_sums(rows, n, random_state)
    pairs = zip(rows, sums, strict=True)
    ends = (np.quantile(resampled, _compute_levels(row, resampled, confidence)) / len(row) for row, resampled in pairs)
    return [Interval(float(low), float(high)) for low, high in ends]


def _resample_sums(rows: Floats, n: int, random_state: int) -> Floats:
    """Return the sum of each row of values in each of ``n`` bootstrap resamples."""
    start = 0
    sums = np.empty((len(rows), n))
    for times in draw_counts(rows.shape[1], n, random_state):
        sums[:, start : start + len(times)] = rows @ times.T
        start += len(times)
    return sums


def draw_counts(width: int, n: int, random_state: int) -> Iterator[Floats]:
    """Yield batches of bootstrap resamples, ``n`` in all: how often each of ``width`` values is in each resample."""
    rng = np.random.default_rng(random_state)
    for size in _cut_batches(n, width):
        drawn = rng.integers(0, width, (size, width))
        drawn += width * np.arange(size)[:, None]
        yield np.bincount(drawn.ravel(), minlength=size * width).reshape(size, width).astype(np.float64)


def _compute_levels(row: Floats, sums: Floats, confidence: float) -> Floats:
    """Return the two quantile levels that bound the interval: BCa's where they are defined, else the plain ones."""
    from scipy.special import ndtr, ndtri

    plain = np.array([1 - confidence, 1 + confidence]) / 2
    centred = row - row.mean()
    spread = np.sum(centred**2) ** 1.5
    above, slack = sums - row.sum(), SLACK * np.abs(row).sum()
    below = (np.mean(above < -slack) + np.mean(above <= slack)) / 2  # of equal ones, half
    if not (spread > 0 and 0 < below < 1):
        return plain
    shifted = ndtri(below) + ndtri(plain)
    shrink = 1 - np.sum(centred**3) / (6 * spread) * shifted
    if not (shrink > 0).all():
        return plain
    levels: Floats = ndtr(ndtri(below) + shifted / shrink)
    return levels


def _cut_batches(n: int, width: int) -> Iterator[int]:
    """Yield the sizes of batches of resamples, which add up to ``n``."""
    most = max(1, BATCH // width)
    for start in range(0, n, most):
        yield min(most, n - start)
