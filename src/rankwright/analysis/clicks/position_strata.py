"""Positions compared within strata: groups of impressions that are equally relevant at all their positions."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.sparse import csgraph

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.click_cells import sum_by

_MAX_STEPS, _TOLERANCE, _LONGEST_STEP = 100, 1e-10, 2.0
_FEWEST_CLICKS = 10  # at a position: with fewer the logarithm of the estimate is far from normal


class PositionStrata(NamedTuple):
    """A table of impressions and clicks by stratum, position and query; an element of each array per cell.

    In a stratum the expected clicks at a position are its impressions times the examination of the position times a
    relevance that is the same at all its positions: of a document of a query, or of a group of positions whose
    documents were in random order.
    """

    stratum: Ints
    position: Ints  # from 1
    n_shown: Floats
    n_clicked: Floats
    query: Ints

    def take(self, rows: NDArray[Any]) -> PositionStrata:
        """Return these cells, given by number or by flag."""
        shown, clicked = self.n_shown[rows], self.n_clicked[rows]
        return PositionStrata(self.stratum[rows], self.position[rows], shown, clicked, self.query[rows])


class PositionEstimate(NamedTuple):
    """An estimate of the examination by position, relative to position 1, and its intervals; NaN where not known."""

    probability: Floats
    low: Floats
    high: Floats


def keep_comparable(strata: PositionStrata) -> PositionStrata:
    """Return the strata that compare positions: those with clicks, and with impressions at several positions."""
    n_strata = int(strata.stratum.max()) + 1
    keys = np.unique(strata.stratum * (int(strata.position.max()) + 1) + strata.position)
    n_positions = np.bincount(keys // (int(strata.position.max()) + 1), minlength=n_strata)
    useful = (n_positions > 1) & (sum_by(strata.stratum, strata.n_clicked, n_strata) > 0)
    return strata.take(useful[strata.stratum])


def find_connected(strata: PositionStrata, n_positions: int) -> NDArray[np.bool_]:
    """Return which positions have enough clicks, and are compared with position 1, directly or by way of others."""
    clicked = sum_by(strata.position - 1, strata.n_clicked, n_positions) >= _FEWEST_CLICKS
    rows = clicked[strata.position - 1]
    n_strata = int(strata.stratum.max()) + 1 if len(strata.stratum) else 0
    edges = np.unique(strata.stratum[rows] * n_positions + strata.position[rows] - 1)
    size = n_positions + n_strata
    graph = sparse.coo_array(
        (np.ones(len(edges)), (edges % n_positions, n_positions + edges // n_positions)), shape=(size, size)
    )
    component = csgraph.connected_components(graph, directed=False)[1][:n_positions]
    return np.asarray((component == component[0]) & clicked)


def estimate_positions(strata: PositionStrata, n_positions: int, confidence: float) -> PositionEstimate:
    """Return the examination that makes the clicks of each stratum fall to its positions as they did.

    With clicks that are Poisson given impressions, and the relevance of each stratum at its best value, this is the
    likelihood of the positions of the clicks given their number in each stratum. It needs no assumption on relevances,
    and it is concave. Intervals come from the scores by query (the sandwich variance), so that clicks of a query may
    depend on each other.
    """
    unknown = np.full(n_positions, np.nan)
    strata = keep_comparable(strata)
    if not len(strata.stratum):
        return PositionEstimate(unknown, unknown.copy(), unknown.copy())
    connected = find_connected(strata, n_positions)
    strata = keep_comparable(strata.take(connected[strata.position - 1]))
    if not len(strata.stratum) or connected.sum() < 2:
        return PositionEstimate(unknown, unknown.copy(), unknown.copy())
    places = np.cumsum(connected) - 1
    log_theta, spread = _maximise_likelihood(_Likelihood(strata, places[strata.position - 1], int(connected.sum())))
    n_queries = len(np.unique(strata.query))
    width = stats.t.ppf(0.5 + confidence / 2, max(n_queries - 1, 1)) * spread
    found = PositionEstimate(unknown, unknown.copy(), unknown.copy())
    for values, ends in zip(found, (log_theta, log_theta - width, log_theta + width), strict=True):
        values[connected] = np.exp(np.minimum(ends, 700.0))
    return found


class _Likelihood:
    """The likelihood of the positions of clicks, given their number in each stratum, and its derivatives.

    Parameters
    ----------
    strata : PositionStrata
        The cells.
    place : array
        The number of the position of each cell, 0 being position 1.
    n : int
        The number of positions.
    """

    def __init__(self, strata: PositionStrata, place: Ints, n: int) -> None:
        self.place, self.n = place, n
        self.stratum = np.unique(strata.stratum, return_inverse=True)[1]
        self.query = np.unique(strata.query, return_inverse=True)[1]
        self.n_strata, self.n_queries = int(self.stratum.max()) + 1, int(self.query.max()) + 1
        self.shown, self.clicked = strata.n_shown.astype(np.float64), strata.n_clicked.astype(np.float64)
        self.clicks_of = sum_by(self.stratum, self.clicked, self.n_strata)

    def compute_value(self, log_theta: Floats) -> float:
        """Return the logarithm of the likelihood."""
        weight = sum_by(self.stratum, self.shown * np.exp(log_theta)[self.place], self.n_strata)
        return float(self.clicked @ log_theta[self.place] - self.clicks_of @ np.log(weight))

    def compute_derivatives(self, log_theta: Floats) -> tuple[Floats, Floats]:
        """Return the gradient and the negative second derivatives."""
        shares, expected = self._compute_shares(log_theta)
        gradient = sum_by(self.place, self.clicked - expected, self.n)
        scaled = shares.multiply(np.sqrt(self.clicks_of)[:, None]).tocsr()
        return gradient, np.diag(sum_by(self.place, expected, self.n)) - (scaled.T @ scaled).toarray()

    def _compute_shares(self, log_theta: Floats) -> tuple[sparse.csr_array, Floats]:
        """Return the expected share of each position in the clicks of each stratum, and the clicks by cell."""
        weight = self.shown * np.exp(log_theta)[self.place]
        share = weight / sum_by(self.stratum, weight, self.n_strata)[self.stratum]
        shares = sparse.coo_array((share, (self.stratum, self.place)), shape=(self.n_strata, self.n)).tocsr()
        return shares, share * self.clicks_of[self.stratum]

    def compute_scores(self, log_theta: Floats) -> Floats:
        """Return the gradient by query: what each cell has more than expected, at its position against its stratum."""
        shares, expected = self._compute_shares(log_theta)
        rest = self.clicked - expected
        by_position = np.bincount(self.query * self.n + self.place, rest, self.n_queries * self.n)
        of_stratum = sparse.coo_array((rest, (self.query, self.stratum)), shape=(self.n_queries, self.n_strata))
        return np.asarray(by_position.reshape(self.n_queries, self.n) - (of_stratum.tocsr() @ shares).toarray())


def _maximise_likelihood(likelihood: _Likelihood) -> tuple[Floats, Floats]:
    """Return the logarithms of the examination, 0 at position 1, and their standard errors."""
    log_theta = np.zeros(likelihood.n)
    value = likelihood.compute_value(log_theta)
    for _ in range(_MAX_STEPS):
        gradient, curvature = likelihood.compute_derivatives(log_theta)
        step = np.zeros(likelihood.n)
        step[1:] = np.linalg.lstsq(curvature[1:, 1:], gradient[1:], rcond=None)[0]
        step *= min(1.0, _LONGEST_STEP / max(float(np.abs(step).max()), 1e-300))
        gain = float(gradient @ step)
        if gain < _TOLERANCE:
            break
        while (after := likelihood.compute_value(log_theta + step)) < value and np.abs(step).max() > 1e-12:
            step /= 2.0
        log_theta, value = log_theta + step, after
    curvature = likelihood.compute_derivatives(log_theta)[1][1:, 1:]
    scores = likelihood.compute_scores(log_theta)[:, 1:]
    inverse = np.linalg.pinv(curvature)
    n_queries = likelihood.n_queries
    meat = scores.T @ scores * (n_queries / max(n_queries - 1, 1))
    variance = np.diag(inverse @ meat @ inverse)
    return log_theta, np.concatenate([[0.0], np.sqrt(np.maximum(variance, 0.0))])
