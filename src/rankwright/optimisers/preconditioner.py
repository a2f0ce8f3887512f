"""Preconditioners for L-BFGS: an approximate Hessian of a loss of linear scores, factorised."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.kernels.optimisers.linear_systems import factorise_shifted, solve_factorised
from rankwright.kernels.scorers.linear_scores import (
    compute_linear_scores,
    compute_weighted_moments,
    sum_weighted_columns,
)
from rankwright.optimisers.loss_protocols import CurvedLoss

_MAX_FEATURES = 768  # up to which the matrix itself is factorised
_MAX_ROWS = 512  # documents that represent all of them where there are more features
_MIN_SHIFT = 1e-12  # part of the mean diagonal that is added to it where the penalty is less
_PROBE = 1e-4  # length of the step that measures the curvature, relative to the weights


class Preconditioner:
    """A preconditioner of L-BFGS: the inverse of ``scale M + 2 alpha``, where M is about the Hessian of the loss.

    M is made of the features and the diagonal of the Hessian by the scores. With it, steps no longer depend on how
    features are correlated: L-BFGS takes about ten where it took hundreds. M is kept from one fit to the next, with
    another strength of the penalty or other weights of pairs, until ``prepare`` is asked to refresh it.
    """

    def __init__(self) -> None:
        self._hessian: _DenseHessian | _LowRankHessian | None = None
        self._scale = 1.0

    def prepare(self, loss: CurvedLoss, state: Any, w: Floats, alpha: float, *, refresh: bool = False) -> None:
        """Factorise for a penalty ``alpha |w|^2``; compute M at this state at the first call, or to refresh it."""
        if self._hessian is None or refresh:
            self._hessian = (
                _DenseHessian(loss.approximate_hessian(state))
                if len(w) <= _MAX_FEATURES
                else _LowRankHessian(loss.hessian_factor(state, _MAX_ROWS))
            )
            self._scale = 1.0
            self._factorise(alpha)
            self._scale = self._measure_scale(loss, state, w)
        self._factorise(alpha)

    def solve(self, r: Floats) -> Floats:
        """Return (scale M + 2 alpha)^-1 r."""
        assert self._hessian is not None
        return self._hessian.solve(r)

    def _factorise(self, alpha: float) -> None:
        assert self._hessian is not None
        shift = max(2.0 * alpha, _MIN_SHIFT * self._scale * self._hessian.mean_diagonal)
        self._hessian.factorise(self._scale, shift if shift > 0.0 else 1.0)

    def _measure_scale(self, loss: CurvedLoss, state: Any, w: Floats) -> float:
        """Return the factor that makes M the curvature along its own Newton step; 1 where that is not positive."""
        assert self._hessian is not None
        gradient = loss.gradient(state)
        direction = self._hessian.solve(-gradient)
        length = float(np.linalg.norm(direction))
        if not (math.isfinite(length) and length > 0.0):
            return 1.0
        step = direction * (_PROBE * max(float(np.linalg.norm(w)), _PROBE) / length)
        curvature = loss.directional_derivative(loss.move(state, step)) - float(step @ gradient)
        modelled = self._hessian.quadratic_form(step)
        scale = curvature / modelled if modelled > 0.0 else math.nan
        return scale if math.isfinite(scale) and scale > 0.0 else 1.0


class _DenseHessian:
    """An approximate Hessian M of a loss, kept as a full matrix with a row and a column for every feature."""

    def __init__(self, matrix: Floats) -> None:
        self.matrix = matrix
        self.mean_diagonal = float(np.diag(matrix).mean())

    def quadratic_form(self, v: Floats) -> float:
        return float(v @ sum_weighted_columns(v, self.matrix))

    def factorise(self, scale: float, shift: float) -> None:
        self.shift, self.U = shift, factorise_shifted(self.matrix, scale / shift)

    def solve(self, r: Floats) -> Floats:
        found: Floats = solve_factorised(self.U, r) / self.shift
        return found


class _LowRankHessian:
    """An approximate Hessian M = V'V, kept as the few rows V; by Woodbury's identity only V V' is factorised."""

    def __init__(self, rows: Floats) -> None:
        self.rows = rows
        m, d = rows.shape
        upper = compute_weighted_moments(
            np.ascontiguousarray(rows.T), np.zeros(m), np.ones(m), np.ones(d), np.zeros(d)
        )[:m, :m]
        self.products = np.triu(upper) + np.triu(upper, 1).T
        self.mean_diagonal = float(np.trace(self.products)) / d

    def quadratic_form(self, v: Floats) -> float:
        along = compute_linear_scores(self.rows, v, 0.0)
        return float(along @ along)

    def factorise(self, scale: float, shift: float) -> None:
        self.shift, self.strength = shift, scale / shift
        self.U = factorise_shifted(self.products, self.strength)

    def solve(self, r: Floats) -> Floats:
        inner = solve_factorised(self.U, compute_linear_scores(self.rows, r, 0.0))
        found: Floats = (r - self.strength * sum_weighted_columns(inner, self.rows)) / self.shift
        return found
