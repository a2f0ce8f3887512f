"""The paired t-test, Wilcoxon's signed-rank test, Holm's adjustment for several tests, and effect sizes."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.significance.method_pairs import as_values, is_constant, pair_differences
from rankwright.analysis.significance.resampling import exact_p_value
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError

# With so few pairs all sign flips are tried; with equal ranks scipy is not exact, or takes seconds.
FEW = 16


def paired_t(a: ArrayLike, b: ArrayLike) -> float:
    """Return the two-sided p-value of Student's paired t-test.

    With d the differences b - a of n pairs, ``t = mean(d) / (sd(d) / sqrt(n))`` has n - 1 degrees of freedom if the
    differences are normal with mean zero.

    Parameters
    ----------
    a, b : array-like of shape (n_queries,)
        The values of two methods, in the same order of queries; a query where either is NaN is left out.

    Returns
    -------
    float
        1 if no pair differs, 0 if all differ by the same amount, NaN if there are fewer than 2 pairs.

    Examples
    --------
    >>> round(paired_t([0.1, 0.4, 0.3, 0.2], [0.3, 0.5, 0.3, 0.6]), 4)
    0.1328
    """
    return t_p_value(pair_differences(a, b))


def wilcoxon(a: ArrayLike, b: ArrayLike) -> float:
    """Return the two-sided p-value of Wilcoxon's signed-rank test.

    Pairs that do not differ are dropped; the others are ranked by ``abs(d)``, equal ones sharing their mean rank. The
    statistic is the sum of the ranks of the positive differences. The p-value is exact if at most 16 pairs differ; else
    it is that of ``scipy.stats.wilcoxon``: exact up to 50 pairs without equal ranks, the normal approximation beyond.
    It is 1 if no pair differs, NaN if there are fewer than 2 pairs. ``a`` and ``b`` are as in :func:`paired_t`.

    Examples
    --------
    All five queries improve: 2 of the 2^5 ways to give out signs are as extreme.

    >>> wilcoxon([0.1, 0.4, 0.3, 0.2, 0.0], [0.3, 0.5, 0.7, 0.5, 0.5])
    0.0625
    """
    return signed_rank_p_value(pair_differences(a, b))


def holm(p_values: ArrayLike) -> Floats:
    """Return Holm's adjusted p-values: comparing each with α keeps the chance of any false positive below α.

    With m p-values in ascending order, ``adjusted_i = max over j <= i of min(1, (m - j + 1) p_j)``.

    Parameters
    ----------
    p_values : array-like of shape (n_tests,)
        NaN for a test that could not be made: it stays NaN and does not count as a test.

    Examples
    --------
    >>> holm([0.04, 0.01, 0.03]).tolist()
    [0.06, 0.03, 0.06]
    """
    p = as_values(p_values, "p_values")
    wrong = (p < 0) | (p > 1)
    if wrong.any():
        at = int(np.argmax(wrong))
        raise InputError(f"p_values[{at}] is {p[at]:g}; expected a number from 0 to 1, or NaN")
    order = np.argsort(p)[: np.count_nonzero(~np.isnan(p))]  # NaNs are sorted to the end
    stepped = p[order] * np.arange(len(order), 0, -1)
    adjusted = np.full(len(p), np.nan)
    adjusted[order] = np.minimum(np.maximum.accumulate(stepped), 1.0)
    return adjusted


def t_p_value(d: Floats) -> float:
    """Return the two-sided p-value of the t-test that paired differences have mean zero."""
    if len(d) < 2:
        return float("nan")
    if is_constant(d):  # scipy warns of a division by zero
        return 0.0 if d[0] else 1.0
    from scipy.stats import ttest_1samp

    return float(ttest_1samp(d, 0.0).pvalue)


def signed_rank_p_value(d: Floats) -> float:
    """Return the two-sided p-value of Wilcoxon's test that paired differences are symmetric about zero."""
    if len(d) < 2:
        return float("nan")
    differing = d[d != 0]
    if not len(differing):
        return 1.0
    from scipy import stats

    if len(differing) <= FEW:
        return exact_p_value(np.sign(differing) * stats.rankdata(np.abs(differing)))
    return float(stats.wilcoxon(differing).pvalue)


def cohen_d(a: ArrayLike, b: ArrayLike) -> float:
    """Return Cohen's d of paired values (d_z): ``mean(d) / sd(d)`` with d = b - a, positive where b is better.

    It is 0 if no pair differs, infinite if all differ by the same amount, NaN if there are fewer than 2 pairs. ``a``
    and ``b`` are as in :func:`paired_t`.

    Examples
    --------
    >>> cohen_d([0.0, 0.0, 0.0], [0.25, 0.5, 0.75])
    2.0
    """
    return standardised_mean(pair_differences(a, b))


def rank_biserial(a: ArrayLike, b: ArrayLike) -> float:
    """Return the matched-pairs rank-biserial correlation: the effect size that goes with Wilcoxon's test.

    With the pairs that differ ranked by ``abs(d)``, it is the sum of the ranks where b is better, less the sum of the
    ranks where a is, over the sum of all ranks: 1 if b is better wherever they differ, -1 if a is. It is 0 if no pair
    differs, NaN if there are fewer than 2 pairs. ``a`` and ``b`` are as in :func:`paired_t`.

    Examples
    --------
    >>> rank_biserial([0.5, 0.5, 0.5], [0.6, 0.3, 0.9])  # (1 + 3 - 2) / (1 + 2 + 3)
    0.3333333333333333
    """
    return signed_rank_share(pair_differences(a, b))


def standardised_mean(d: Floats) -> float:
    """Return the mean of paired differences divided by their standard deviation (Cohen's d)."""
    if len(d) < 2:
        return float("nan")
    if is_constant(d):
        return math.copysign(math.inf, d[0]) if d[0] else 0.0
    return float(d.mean() / d.std(ddof=1))


def signed_rank_share(d: Floats) -> float:
    """Return the sum of the signed ranks of paired differences, divided by the sum of all ranks."""
    if len(d) < 2:
        return float("nan")
    differing = d[d != 0]
    if not len(differing):
        return 0.0
    from scipy.stats import rankdata

    ranks = rankdata(np.abs(differing))
    return float((np.sign(differing) * ranks).sum() / ranks.sum())
