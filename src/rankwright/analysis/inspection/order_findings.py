"""The order of rows and of queries: whether it goes with the grades more than chance explains."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.inspection.document_sample import DocumentSample
from rankwright.analysis.inspection.finding_kinds import Finding, make_finding
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.measures import parse_measure, weighted_mean

# Of a random order, 7 of 1,000,000 data sets are further from the expectation than 4.5 standard deviations.
MIN_DEVIATIONS = 4.5
MIN_DIFFERENCE = 0.02  # of the share of pairs from one half: less has no consequences
MIN_CORRELATION = 0.2  # of the places of queries with their mean grades
_MOST_LEVELS = 16  # more grades than that are ranked and cut into as many levels
_FEWEST_QUERIES = 20  # for a correlation


class RowOrder(NamedTuple):
    """The order of the rows as a ranking: pairs of different grades in which the higher grade comes first."""

    share: float  # the mean over the queries; one half is expected
    deviation: float  # of the mean, under a random order
    n_queries: int  # with documents of different grades

    @property
    def z(self) -> float:
        """The number of standard deviations from the expectation."""
        return (self.share - 0.5) / self.deviation if self.n_queries else 0.0


def measure_row_order(y: Floats, indptr: Ints) -> RowOrder:
    """Return what the order of the rows makes of the pairs of documents of different grades.

    Under a random order the number of pairs in order has a known mean and variance (Jonckheere and Terpstra).

    >>> found = measure_row_order(np.array([2.0, 1.0, 0.0, 0.0]), np.array([0, 4]))
    >>> found.share, round(found.z, 2)
    (1.0, 1.81)
    """
    levels = _level_grades(y)
    n_levels, m = int(levels.max()) + 1, len(indptr) - 1
    sizes = np.diff(indptr)
    query = np.repeat(np.arange(m), sizes)
    counts = np.bincount(query * n_levels + levels, minlength=m * n_levels).reshape(m, n_levels).astype(np.float64)
    in_order = np.zeros(m)
    for level in range(1, n_levels):
        lower = np.concatenate([[0], np.cumsum(levels < level)])
        rows = np.flatnonzero(levels == level)
        later = lower[indptr[query[rows] + 1]] - lower[rows]
        in_order += np.bincount(query[rows], weights=later, minlength=m)
    n = sizes.astype(np.float64)
    pairs = (n**2 - (counts**2).sum(axis=1)) / 2
    variance = (n**2 * (2 * n + 3) - (counts**2 * (2 * counts + 3)).sum(axis=1)) / 72
    has_pairs = pairs > 0
    used = int(has_pairs.sum())
    if not used:
        return RowOrder(0.5, 0.0, 0)
    pairs = pairs[has_pairs]
    deviation = float(np.sqrt((variance[has_pairs] / pairs**2).sum())) / used
    return RowOrder(float((in_order[has_pairs] / pairs).mean()), deviation, used)


def _level_grades(y: Floats) -> Ints:
    """Return the grades as whole numbers from 0 up in the same order; of many grades neighbours are joined."""
    grades, levels = np.unique(y, return_inverse=True)
    if len(grades) <= _MOST_LEVELS:
        return levels
    edges = np.unique(np.quantile(y, np.linspace(0, 1, _MOST_LEVELS + 1)[1:-1]))
    return np.searchsorted(edges, y, side="right")


def find_row_order(queries: Queries, sample: DocumentSample, names: Sequence[str]) -> Iterator[Finding]:
    """Yield a finding if the order of the rows goes with the grades; ``queries`` are grouped."""
    found = measure_row_order(queries.y, queries.indptr)
    if abs(found.z) < MIN_DEVIATIONS or abs(found.share - 0.5) < MIN_DIFFERENCE:
        return
    first = "higher" if found.share > 0.5 else "lower"
    share = max(found.share, 1 - found.share)
    what = (
        f"in {share:.1%} of the pairs of different grades (mean of {found.n_queries:,} queries) the {first} grade "
        f"comes first; a random order has 50% with a standard deviation of {found.deviation:.2%}"
    )
    yield make_finding("row-order", what + _describe_precision(queries, found) + _describe_sorting(sample, names))


def _describe_precision(queries: Queries, found: RowOrder) -> str:
    """Return as text the MAP of the rows in their order, or in the opposite one, beside that of a random order."""
    if queries.y.min() < 0 or queries.y.max() < 1:
        return ""
    judged, sizes = queries.replace(unretrieved=None), queries.sizes
    scores = -np.arange(queries.n_docs, dtype=np.float64) * (1 if found.share > 0.5 else -1)
    own = weighted_mean(parse_measure("map").values(judged, scores), queries.query_weight)
    relevant = np.add.reduceat((queries.y >= 1).astype(np.int64), queries.indptr[:-1])
    harmonic = np.concatenate([[0.0], np.cumsum(1.0 / np.arange(1, sizes.max() + 1))])[sizes]
    expected = (harmonic + (relevant - 1) / np.maximum(sizes - 1, 1) * (sizes - harmonic)) / sizes
    chance = weighted_mean(np.where(relevant > 0, expected, 0.0), queries.query_weight)
    order = "their order" if found.share > 0.5 else "the opposite order"
    return f". The rows in {order} have MAP {own:.3f}, a random order {chance:.3f}"


def _describe_sorting(sample: DocumentSample, names: Sequence[str]) -> str:
    """Return a clause with the feature that the rows of every query are sorted by, if there is one."""
    if sample.n_docs < 2:
        return ""
    inside = np.ones(sample.n_docs - 1, dtype=bool)
    inside[sample.indptr[1:-1] - 1] = False
    for name, column in zip(names, sample.columns, strict=True):
        steps = np.diff(column)[inside]
        if not np.isnan(steps).any() and (steps != 0).mean() > 0.5 and ((steps <= 0).all() or (steps >= 0).all()):
            return f". The rows of every query are sorted by feature {name}"
    return ""


def find_query_order(queries: Queries) -> Iterator[Finding]:
    """Yield a finding if the places of the queries, or their numbers, go with their mean grades."""
    m = len(queries)
    if m < _FEWEST_QUERIES:
        return
    means = np.add.reduceat(queries.y, queries.indptr[:-1]) / queries.sizes
    orders: dict[str, NDArray[Any]] = {"place in the file": np.arange(m)}
    if queries.qid.dtype.kind in "iu":
        orders["id"] = queries.qid
    for name, order in orders.items():
        rho = _correlate_ranks(order, means)
        if abs(rho) >= MIN_CORRELATION and abs(rho) * np.sqrt(m - 1) >= MIN_DEVIATIONS:
            what = f"the rank correlation of a query's {name} with its mean grade is {rho:+.2f} ({m:,} queries)"
            yield make_finding("query-order", what)
            return


def _correlate_ranks(first: NDArray[Any], second: NDArray[Any]) -> float:
    """Return Spearman's rank correlation; 0 if either is constant."""
    ranks = [_rank(values) for values in (first, second)]
    if any(np.ptp(rank) == 0 for rank in ranks):
        return 0.0
    return float(np.corrcoef(ranks[0], ranks[1])[0, 1])


def _rank(values: NDArray[Any]) -> Floats:
    """Return the rank of each value, equal values with their mean rank."""
    _, inverse, counts = np.unique(values, return_inverse=True, return_counts=True)
    ends = np.cumsum(counts)
    ranks: Floats = ((ends - counts + 1 + ends) / 2)[inverse]
    return ranks
