"""Examination and relevance together: the likelihood of the position-based click model, as regression-EM climbs it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import sparse, stats
from scipy.optimize import minimize
from scipy.sparse.linalg import splu

from rankwright.analysis.clicks.position_strata import PositionEstimate, PositionStrata
from rankwright.basics.array_types import Floats, Ints
from rankwright.data.click_cells import sum_by

_PENALTY = 0.1  # on half the squared logit of each document, in clicks
_MOST_KNOTS = 9  # of each feature
_DOCS = (
    20  # documents for each column of the regression: with fewer it knows the documents, and nothing is left to theta
)
_MOST = 1.0 - 1e-6  # a probability of a click
_MAX_ITER = 500


def spread_features(X: Floats) -> sparse.csr_array:
    """Return a column of ones, and columns whose weighted sum is a piecewise linear function of each feature.

    A feature has a column for each knot, at some quantiles; a value between two knots is shared by their columns. A
    missing value is in none. The fewer documents there are, the fewer knots.
    """
    quantiles = np.linspace(0.0, 1.0, int(np.clip(len(X) / (_DOCS * X.shape[1]), 2, _MOST_KNOTS)))
    every = np.arange(len(X))
    rows, columns, shares, start = [every], [np.zeros_like(every)], [np.ones(len(X))], 1
    for values in X.T.astype(np.float64):
        known = np.flatnonzero(~np.isnan(values))
        knots = np.unique(np.quantile(values[known], quantiles)) if len(known) else np.zeros(0)
        if len(knots) < 2:
            continue
        left = np.clip(np.searchsorted(knots, values[known], side="right") - 1, 0, len(knots) - 2)
        share = (values[known] - knots[left]) / (knots[left + 1] - knots[left])
        rows += [known, known]
        columns += [start + left, start + left + 1]
        shares += [1.0 - share, share]
        start += len(knots)
    places = np.concatenate(rows), np.concatenate(columns)
    return sparse.coo_array((np.concatenate(shares), places), shape=(len(X), start)).tocsr()


def estimate_with_relevance(
    cells: PositionStrata, n_positions: int, design: sparse.csr_array | None, confidence: float
) -> PositionEstimate:
    """Return the examination of the position-based model whose relevance is a regression, or a number per stratum.

    A click on document ``i`` at position ``k`` has the probability ``theta_k r_i``, with ``theta_1 = 1``. This is the
    likelihood that regression-EM (Wang et al., 2018) climbs; here a quasi-Newton method does. ``r_i`` is the logistic
    function of a weighted sum of the columns of ``design``, or of a number for each stratum.

    Parameters
    ----------
    cells : PositionStrata
        The cells, the stratum being the document of a query.
    n_positions : int
        The number of positions.
    design : sparse array of shape (n_strata, n_columns), optional
        The columns of the regression, the first of ones.
    confidence : float
        The confidence level of the intervals.
    """
    # of a regression a weight of 1 costs as much as half the clicks on a document: more clicks on the same documents
    # say nothing new of the features
    penalty = _PENALTY if design is None else float(cells.n_clicked.sum()) / design.shape[0]
    if design is None:
        n = int(cells.stratum.max()) + 1
        column = np.tile([0, 1], n) * np.repeat(np.arange(1, n + 1), 2)  # a one in the first column, and one of its own
        design = sparse.coo_array((np.ones(2 * n), (np.repeat(np.arange(n), 2), column)), shape=(n, n + 1)).tocsr()
    model = _JointLikelihood(cells, n_positions, design, penalty)
    rate = max(float(cells.n_clicked.sum() / max(cells.n_shown.sum(), 1.0)), 1e-9)
    start = np.zeros(n_positions - 1 + design.shape[1])
    start[n_positions - 1] = np.log(rate / (1.0 - min(rate, 0.999)))
    bounds = [(-15.0, 3.0)] * (n_positions - 1) + [(-15.0, 15.0)] * design.shape[1]
    options: Any = {"maxiter": _MAX_ITER, "maxfun": 2 * _MAX_ITER, "ftol": 1e-10, "gtol": 1e-6}
    found: Any = minimize(model.compute_loss, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options)
    log_theta = np.concatenate([[0.0], found.x[: n_positions - 1]])
    spread = model.compute_errors(found.x)
    width = stats.t.ppf(0.5 + confidence / 2, max(model.n_queries - 1, 1)) * spread
    unknown = sum_by(cells.position - 1, cells.n_clicked, n_positions) == 0
    ends = [np.where(unknown, np.nan, np.exp(each)) for each in (log_theta, log_theta - width, log_theta + width)]
    return PositionEstimate(*ends)


class _JointLikelihood:
    """The penalised likelihood of clicks by position and relevance, and its derivatives."""

    def __init__(self, cells: PositionStrata, n_positions: int, design: sparse.csr_array, penalty: float) -> None:
        self._n, self._design = n_positions, design
        self._place, self._doc = cells.position - 1, cells.stratum
        self._shown, self._clicked = cells.n_shown.astype(np.float64), cells.n_clicked.astype(np.float64)
        self._query: Ints = np.unique(cells.query, return_inverse=True)[1]
        self.n_queries = int(self._query.max()) + 1
        self._penalty = np.full(design.shape[1], penalty)
        self._penalty[0] = 1e-6

    def _split(self, x: Floats) -> tuple[Floats, Floats]:
        """Return the logarithms of the examination and the weights of the regression."""
        return np.concatenate([[0.0], x[: self._n - 1]]), x[self._n - 1 :]

    def _compute_slopes(self, x: Floats) -> tuple[float, Floats, Floats, Floats]:
        """Return the loss, the derivative by the log probability of each cell, its curvature, and 1 - relevance."""
        log_theta, weights = self._split(x)
        logit = self._design @ weights
        log_relevance = -np.logaddexp(0.0, -logit)
        eta = np.minimum(log_theta[self._place] + log_relevance[self._doc], np.log(_MOST))
        chance = np.exp(eta)
        loss = -float(self._clicked @ eta + (self._shown - self._clicked) @ np.log1p(-chance))
        slope = self._clicked - (self._shown - self._clicked) * chance / (1.0 - chance)
        curvature = self._shown * chance / (1.0 - chance)
        penalty = 0.5 * float(self._penalty @ weights**2)
        return loss + penalty, slope, curvature, -np.expm1(log_relevance)

    def compute_loss(self, x: Floats) -> tuple[float, Floats]:
        """Return the negative logarithm of the penalised likelihood and its gradient."""
        loss, slope, _, rest = self._compute_slopes(x)
        by_position = sum_by(self._place, slope, self._n)
        by_doc = sum_by(self._doc, slope * rest[self._doc], self._design.shape[0])
        return loss, -np.concatenate([by_position[1:], self._design.T @ by_doc - self._penalty * self._split(x)[1]])

    def compute_errors(self, x: Floats) -> Floats:
        """Return the standard errors of the logarithms of the examination, by the scores of queries."""
        _, slope, curvature, rest = self._compute_slopes(x)
        n_cells = len(self._place)
        positions = sparse.coo_array((np.ones(n_cells), (np.arange(n_cells), self._place)), shape=(n_cells, self._n))
        columns = positions.tocsr()[:, 1:]
        regression = sparse.diags_array(rest[self._doc]) @ self._design[self._doc]
        jacobian = sparse.hstack([columns, regression]).tocsr()
        queries = sparse.coo_array((slope, (self._query, np.arange(n_cells))), shape=(self.n_queries, n_cells)).tocsr()
        scores = queries @ jacobian
        information = jacobian.T @ sparse.diags_array(curvature) @ jacobian
        information = information + sparse.diags_array(np.concatenate([np.zeros(self._n - 1), self._penalty]))
        wanted: NDArray[np.float64] = np.eye(jacobian.shape[1], self._n - 1)
        solved = _solve(information.tocsc(), wanted)
        influence = scores @ solved
        variance = (np.asarray(influence) ** 2).sum(axis=0) * (self.n_queries / max(self.n_queries - 1, 1))
        return np.concatenate([[0.0], np.sqrt(variance)])


def _solve(matrix: sparse.csc_array, right: Floats) -> Floats:
    """Return the solution of a positive definite system, with a little added to its diagonal."""
    ridge = sparse.diags_array(1e-9 * (1.0 + matrix.diagonal()))
    solved = splu((matrix + ridge).tocsc()).solve(right)
    return np.asarray(solved)
