"""Simultaneous confidence intervals: all differences of a family lie in their intervals together."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from rankwright.analysis.significance.comparison import Names, check_table, check_weighting, list_pairs
from rankwright.analysis.significance.method_pairs import apply_weights, round_difference
from rankwright.analysis.significance.resampling import Interval, check_confidence, check_resamples, draw_counts
from rankwright.basics.array_types import Floats

_DRAWS = 10_000


def simultaneous_intervals(
    values: Mapping[str, ArrayLike],
    *,
    baseline: str | None = None,
    weight: ArrayLike | None = None,
    fold: ArrayLike | None = None,
    confidence: float = 0.95,
    n: int = _DRAWS,
    random_state: int = 0,
) -> dict[Names, Interval]:
    """Return intervals of the differences of methods that hold all of them at once with the given confidence.

    An interval of one pair misses its true difference in 5% of all experiments; of many such intervals, some usually
    miss. These are wider by one common factor: the bootstrap quantile of the largest ``abs(mean* - mean) / error`` of
    all pairs, with the same resampled queries for every pair. The pair to look at may be chosen afterwards.

    Parameters
    ----------
    values, baseline, weight, fold, confidence, n, random_state : mapping, str, arrays and numbers
        As for ``compare``: per-query values of each method, and how queries count in a mean.

    Returns
    -------
    dict of (first, second) to Interval
        Of the mean of second - first; NaN where fewer than two queries have both values.

    Examples
    --------
    >>> values = {"bm25": [0.1, 0.4, 0.3, 0.2, 0.0], "mine": [0.3, 0.5, 0.7, 0.5, 0.1]}
    >>> [found] = simultaneous_intervals(values).values()
    >>> 0.0 < found.low < 0.22 < found.high
    True
    """
    check_confidence(confidence)
    check_resamples(n)
    table = check_table(values)
    pairs = list_pairs(list(table), baseline)
    if not pairs:
        return {}
    weighting = check_weighting(weight, fold, len(next(iter(table.values()))))
    rows, counted = [], []
    for a, b in pairs:
        mask = weighting.counted(table[a], table[b])
        row = np.zeros(len(mask))
        row[mask] = apply_weights(round_difference(table[a][mask], table[b][mask]), weighting.factors(mask))
        rows.append(row)
        counted.append(mask)
    known = np.stack(counted).astype(np.float64)
    return dict(zip(pairs, _widen(np.stack(rows), known, confidence, n, random_state), strict=True))


def _widen(rows: Floats, counted: Floats, confidence: float, n: int, random_state: int) -> list[Interval]:
    """Return the intervals of the means of rows of differences; ``counted`` is 1 where a query counts, else 0."""
    sizes = counted.sum(axis=1)
    enough = sizes >= 2
    means = rows.sum(axis=1) / np.maximum(sizes, 1)
    variances = (((rows - means[:, None]) * counted) ** 2).sum(axis=1) / np.maximum(sizes - 1, 1)
    errors = np.sqrt(variances / np.maximum(sizes, 1))
    largest = []
    for times in draw_counts(rows.shape[1], n, random_state):
        drawn = np.maximum(times @ counted.T, 1)
        away = np.abs(times @ rows.T / drawn - means)
        scaled = np.divide(away, errors, out=np.zeros_like(away), where=(errors > 0) & enough)
        largest.append(scaled.max(axis=1))
    reach = float(np.quantile(np.concatenate(largest), confidence)) * errors
    return [
        Interval(float(mean - by), float(mean + by)) if known else Interval(float("nan"), float("nan"))
        for mean, by, known in zip(means, reach, enough, strict=True)
    ]
