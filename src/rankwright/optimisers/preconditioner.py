"""Preconditioners for L-BFGS: the second derivative of a loss of linear scores, about as it is at some weights."""

from __future__ import annotations

import math
from typing import Any, Protocol

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.kernels.optimisers.linear_systems import cholesky_solve, shifted_cholesky
from rankwright.kernels.scorers.linear_scores import linear_scores, weighted_columns, weighted_moments

_MOST_COLUMNS = 768  # features up to which the matrix itself is factorised
_MOST_ROWS = 512  # documents that stand for all of them where there are more features
_LEAST_SHIFT = 1e-12  # of the mean diagonal, added to it where the penalty is less
_PROBE = 1e-4  # length of the step that measures the curvature, relative to the weights


class CurvedLoss(Protocol):
    """A loss of weights that tells about its second derivative."""

    def move(self, place: Any, way: Floats) -> Any:
        """Return the place to which a change of the weights leads."""
        ...

    def directional_derivative(self, place: Any) -> float:
        """Return the derivative along that change."""
        ...

    def gradient(self, place: Any) -> Floats:
        """Return the derivative by the weights."""
        ...

    def approximate_hessian(self, place: Any) -> Floats:
        """Return about the second derivative by the weights, up to a factor."""
        ...

    def hessian_factor(self, place: Any, n: int) -> Floats:
        """Return at most about n rows V with V'V about the second derivative, up to a factor."""
        ...


class Preconditioner:
    """The inverse of ``scale M + 2 alpha``, where M is about the second derivative of a loss and ``scale`` is measured.

    With M from the features and the diagonal of the second derivative by the scores, steps no longer depend on how
    features are correlated: L-BFGS takes about ten where it took hundreds. M is kept from one fit to the next, with
    another strength of the penalty or other weights of pairs, until ``prepare`` is asked to find it anew.
    """

    def __init__(self) -> None:
        self._form: _Dense | _LowRank | None = None
        self._scale = 1.0

    def prepare(self, loss: CurvedLoss, place: Any, w: Floats, alpha: float, *, anew: bool = False) -> None:
        """Factorise for a penalty ``alpha |w|^2``; find M at this place if there is none yet, or if it is to be new."""
        if self._form is None or anew:
            few = len(w) <= _MOST_COLUMNS
            self._form = (
                _Dense(loss.approximate_hessian(place)) if few else _LowRank(loss.hessian_factor(place, _MOST_ROWS))
            )
            self._scale = 1.0
            self._factorise(alpha)
            self._scale = self._measured_scale(loss, place, w)
        self._factorise(alpha)

    def solve(self, r: Floats) -> Floats:
        """Return (scale M + 2 alpha)^-1 r."""
        assert self._form is not None
        return self._form.solve(r)

    def _factorise(self, alpha: float) -> None:
        assert self._form is not None
        shift = max(2.0 * alpha, _LEAST_SHIFT * self._scale * self._form.mean_diagonal)
        self._form.factorise(self._scale, shift if shift > 0.0 else 1.0)

    def _measured_scale(self, loss: CurvedLoss, place: Any, w: Floats) -> float:
        """Return the factor that makes M the curvature along its own Newton step; 1 where that is not positive."""
        assert self._form is not None
        gradient = loss.gradient(place)
        direction = self._form.solve(-gradient)
        length = float(np.linalg.norm(direction))
        if not (math.isfinite(length) and length > 0.0):
            return 1.0
        way = direction * (_PROBE * max(float(np.linalg.norm(w)), _PROBE) / length)
        curvature = loss.directional_derivative(loss.move(place, way)) - float(way @ gradient)
        modelled = self._form.quadratic(way)
        scale = curvature / modelled if modelled > 0.0 else math.nan
        return scale if math.isfinite(scale) and scale > 0.0 else 1.0


class _Dense:
    """A matrix M of as many rows as there are features."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix
        self.mean_diagonal = float(np.diag(matrix).mean())

    def quadratic(self, v: Floats) -> float:
        return float(v @ weighted_columns(v, self.matrix))

    def factorise(self, scale: float, shift: float) -> None:
        self.shift, self.U = shift, shifted_cholesky(self.matrix, scale / shift)

    def solve(self, r: Floats) -> Floats:
        found: Floats = cholesky_solve(self.U, r) / self.shift
        return found


class _LowRank:
    """M = V'V with few rows V; by Woodbury's identity only their products are factorised."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        m, d = rows.shape
        upper = weighted_moments(np.ascontiguousarray(rows.T), np.zeros(m), np.ones(m), np.ones(d), np.zeros(d))[:m, :m]
        self.products = np.triu(upper) + np.triu(upper, 1).T
        self.mean_diagonal = float(np.trace(self.products)) / d

    def quadratic(self, v: Floats) -> float:
        along = linear_scores(self.rows, v, 0.0)
        return float(along @ along)

    def factorise(self, scale: float, shift: float) -> None:
        self.shift, self.strength = shift, scale / shift
        self.U = shifted_cholesky(self.products, self.strength)

    def solve(self, r: Floats) -> Floats:
        inner = cholesky_solve(self.U, linear_scores(self.rows, r, 0.0))
        found: Floats = (r - self.strength * weighted_columns(inner, self.rows)) / self.shift
        return found
