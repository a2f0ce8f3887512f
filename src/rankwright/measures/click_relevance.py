"""Relevance that is estimated from clicks, which measures from clicks take in place of gains."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.click_counts import ClickCounts
from rankwright.data.queries import Queries

ESTIMATORS = ("none", "naive", "ips", "snips", "coec")
CLIPPED = ("ips", "snips")  # the estimators whose weights can be clipped


class ClickRelevance(NamedTuple):
    """The relevance of each document as estimated from clicks: ``part / total of its query``.

    Parameters
    ----------
    part : array of shape (n_docs,)
        The estimate before it is divided by the total.
    variance : array of shape (n_docs,)
        The estimated variance of each ``part``, by the clicks alone.
    total : array of shape (n_queries,), optional
        What the parts of a query are divided by, their sum; None where they are not divided.
    """

    part: Floats
    variance: Floats
    total: Floats | None

    def compute_relevance(self, queries: Queries) -> Floats:
        """Return the relevance of each document of grouped queries."""
        if self.total is None:
            return self.part
        total = np.repeat(self.total, queries.sizes)
        return np.divide(self.part, total, out=np.zeros(len(total)), where=total > 0)


def estimate_relevance(queries: Queries, estimator: str, clip: float, measure: str) -> ClickRelevance:
    """Estimate the relevance of documents from the clicks of grouped queries.

    With c clicks in n impressions of a document at a position that is looked at with probability e, and sums over its
    positions, the estimate is

        naive: sum c / sum n,    ips: sum c w / sum n with w = min(1 / e, clip),    coec: sum c / sum n e.

    snips is ips divided by its sum over the documents of the query. Positions with e = 0 do not count. A document that
    was never shown has 0.

    Parameters
    ----------
    queries : Queries
        Grouped queries with clicks.
    estimator : str
        One of ``ESTIMATORS``, not "none".
    clip : float
        The largest weight.
    measure : str
        What needs the clicks, for messages.
    """
    if queries.clicks is None:
        raise InputError(
            f"{measure} needs clicks; these queries have none. Make them of a click log (rw.read_clicks), or pass "
            "clicks= to Queries.from_arrays"
        )
    indptr, clicks = queries.indptr, queries.clicks
    weight, effort = _weigh_cells(clicks, estimator, clip, measure)
    shown = clicks.sum_by_doc(clicks.n_shown * effort)
    per_shown = np.divide(1.0, shown, out=np.zeros(len(shown)), where=shown > 0)
    part = clicks.sum_by_doc(clicks.n_clicked * weight) * per_shown
    variance = clicks.sum_by_doc(estimate_click_variance(clicks) * weight**2) * per_shown**2
    total = np.add.reduceat(part, indptr[:-1]) if estimator == "snips" else None
    return ClickRelevance(part, variance, total)


def estimate_click_variance(clicks: ClickCounts) -> Floats:
    """Return the unbiased estimate of the binomial variance of the clicks of each cell.

    That of a cell with a single impression is unknown; its clicks are an upper bound in expectation.
    """
    n, c = clicks.n_shown, clicks.n_clicked
    several = n > 1.0
    variance: Floats = np.divide(c * (n - c), n - 1.0, out=c.copy(), where=several)
    return variance


def _weigh_cells(clicks: ClickCounts, estimator: str, clip: float, measure: str) -> tuple[Floats, Floats]:
    """Return the weight of the clicks of each cell, and that of its impressions in the divisor."""
    if estimator == "naive":
        return np.ones(len(clicks.position)), np.ones(len(clicks.position))
    known, used = len(clicks.examination), clicks.n_shown > 0
    lowest = int(clicks.position[used].max(initial=0))
    if lowest > known:
        raise InputError(
            f"{measure}: a document was shown at position {lowest}; the examination of positions 1 to {known} is "
            "known. Estimate it for all positions (rw.estimate_examination), or leave lower positions out of the log"
        )
    examined = np.where(used, clicks.examination[np.minimum(clicks.position, known) - 1], 0.0) if known else np.zeros(0)
    if ((examined == 0.0) & (clicks.n_clicked > 0)).any():
        cell = int(np.argmax((examined == 0.0) & (clicks.n_clicked > 0)))
        raise InputError(
            f"{measure}: clicks at position {clicks.position[cell]}, which is looked at with probability 0; expected "
            "a probability above 0 (rw.estimate_examination)"
        )
    if estimator == "coec":
        return (examined > 0).astype(np.float64), examined
    inverse = np.divide(1.0, examined, out=np.zeros(len(examined)), where=examined > 0)
    return np.minimum(inverse, clip), (examined > 0).astype(np.float64)
