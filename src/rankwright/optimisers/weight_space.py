"""WeightSpace: a smaller space for the weights of a linear scorer where there are more features than documents.

The minimum of a loss of the scores plus a multiple of |w|^2 is a weighted sum of the documents (the representer
theorem). So the search can be limited to the space that the documents span, which has at most as many dimensions as
there are documents. In an orthonormal basis of that space the penalty is the same sum of squares. Nothing else changes:
values, gaps and lower bounds are those of the whole problem.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.runtime.backends import limit_blas


@dataclass(frozen=True, slots=True, eq=False)
class WeightSpace:
    """The space, maybe a smaller one, in which a solver seeks weights z; scores are ``(X - mean) @ (z * factor)``.

    Make one with :meth:`of`.

    Parameters
    ----------
    queries : Queries
        The documents: with all their features, or with their coordinates in the basis.
    mean, factor : arrays of shape (n_dimensions,)
        The centre of each column, and a factor for each weight before it acts on X.
    basis : array of shape (n_dimensions, n_features), or None
        An orthonormal basis of the space that the scaled documents span; None where weights are of scaled features.
    """

    queries: Queries
    mean: Floats
    factor: Floats
    basis: Floats | None = None

    @classmethod
    def of(cls, queries: Queries, mean: Floats, factor: Floats) -> Self:
        """Return the space of the features ``(X - mean) * factor``, or of their rows where these are fewer."""
        n, d = queries.n_docs, queries.n_features
        if d <= n:
            return cls(queries, mean, factor)
        X = queries.read_rows(np.arange(n))
        with limit_blas():
            Q, R = np.linalg.qr(((X - mean) * factor).T)
        return cls(
            queries.replace(X=np.ascontiguousarray(R.T), features=None, categories=None),
            np.zeros(n),
            np.ones(n),
            np.ascontiguousarray(Q.T),
        )

    def weights(self, z: Floats) -> Floats:
        """Return the weights of scaled features, from weights of this space."""
        if self.basis is None:
            return z
        with limit_blas():
            weights: Floats = z @ self.basis
        return weights

    def coordinates(self, w: Floats) -> Floats:
        """Return the weights of this space that give the training documents the same differences of scores."""
        if self.basis is None:
            return w
        with limit_blas():
            coordinates: Floats = self.basis @ w
        return coordinates
