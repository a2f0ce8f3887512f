"""Losses of single documents, in score space."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.objectives.base import BuiltinObjective, Evaluation, PreparedObjective, check_scores


@dataclass(frozen=True, slots=True)
class Squares(BuiltinObjective):
    """The loss of regression: the sum over queries of the mean over documents of (score - factor * grade)^2.

    Document weights make it a weighted mean.

    Parameters
    ----------
    factor : float
        Grades are multiplied by it.

    Examples
    --------
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> Squares().prepare(queries)(np.array([0.0, 0.0]))
    Evaluation(loss=0.5, gradient=array([-1.,  0.]), curvature=array([1., 1.]))
    """

    is_doc_weighted = True

    factor: float = 1.0

    def prepare(self, queries: Queries) -> PreparedSquares:
        """Compute the target and the weight of each document."""
        target = self.factor * queries.y
        if queries.doc_weight is None:
            return PreparedSquares(target, np.repeat(queries.query_weight / queries.sizes, queries.sizes))
        total = np.repeat(np.add.reduceat(queries.doc_weight, queries.indptr[:-1]), queries.sizes)
        weight = np.divide(queries.row_weight, total, out=np.zeros(len(total)), where=total > 0)
        return PreparedSquares(target, weight)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedSquares(PreparedObjective):
    """The squared loss of regression, prepared for some queries."""

    target: Floats
    weight: Floats  # by document

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        rest = check_scores(scores, len(self.target)) - self.target
        with np.errstate(over="ignore"):
            loss = float((self.weight * rest * rest).sum())
        if not np.isfinite(loss):
            return Evaluation.infinite(len(rest))
        return Evaluation(loss, 2.0 * self.weight * rest, 2.0 * self.weight)
