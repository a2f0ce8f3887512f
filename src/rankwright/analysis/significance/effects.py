"""Effect sizes of paired values: how large a difference is, whatever its p-value."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.significance.method_pairs import is_constant, pair_differences
from rankwright.basics.array_types import Floats


def cohen_d(a: ArrayLike, b: ArrayLike) -> float:
    """Return Cohen's d of paired values (d_z): ``mean(d) / sd(d)`` with d = b - a, positive where b is better.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The values of two methods, in the same order of queries; a query where either is NaN is left out.

    Returns
    -------
    float
        0 if no pair differs, infinite if all differ by the same amount, NaN if there are fewer than 2 pairs.

    Examples
    --------
    >>> cohen_d([0.0, 0.0, 0.0], [0.25, 0.5, 0.75])
    2.0
    """
    return standardised_mean(pair_differences(a, b))


def rank_biserial(a: ArrayLike, b: ArrayLike) -> float:
    """Return the matched-pairs rank-biserial correlation: the effect size that goes with Wilcoxon's test.

    With the pairs that differ ranked by ``abs(d)``, it is the sum of the ranks where b is better, less the sum of the
    ranks where a is, over the sum of all ranks: 1 if b is better wherever they differ, -1 if a is.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The values of two methods, in the same order of queries; a query where either is NaN is left out.

    Returns
    -------
    float
        0 if no pair differs, NaN if there are fewer than 2 pairs.

    Examples
    --------
    >>> rank_biserial([0.5, 0.5, 0.5], [0.6, 0.3, 0.9])  # (1 + 3 - 2) / (1 + 2 + 3)
    0.3333333333333333
    """
    return signed_rank_share(pair_differences(a, b))


def standardised_mean(d: Floats) -> float:
    """Return the mean of differences over their standard deviation."""
    if len(d) < 2:
        return float("nan")
    if is_constant(d):
        return math.copysign(math.inf, d[0]) if d[0] else 0.0
    return float(d.mean() / d.std(ddof=1))


def signed_rank_share(d: Floats) -> float:
    """Return the sum of the signed ranks of differences over the sum of the ranks."""
    if len(d) < 2:
        return float("nan")
    differing = d[d != 0]
    if not len(differing):
        return 0.0
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(differing))
    return float((np.sign(differing) * ranks).sum() / ranks.sum())
