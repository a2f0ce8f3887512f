"""Single features as weak learners."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.kernels.scorers.linear_scores import sum_weighted_columns
from rankwright.measures import Measure
from rankwright.runtime.backends import Backend, Serial, Shards
from rankwright.scorers import Feature


@dataclass(frozen=True, slots=True)
class BestFeature:
    """A weak learner that chooses the feature with the highest weighted measure (Xu et al., section 5.1).

    Parameters
    ----------
    measure : Measure
        E, with values in [0, 1]; its own tie rule decides between documents with equal features.
    signed : bool
        Whether a feature may also rank in ascending order.
    features : tuple of int, optional
        The features to choose from; all by default.
    """

    measure: Measure
    signed: bool = False
    features: tuple[int, ...] | None = None

    def prepare(self, shards: Shards[Queries], backend: Backend) -> PreparedBestFeature:
        """Compute E(q, x_k) for all queries and candidates."""
        values = backend.concat(_measure_features, shards, self.measure, self.signed, self.features)
        counted = ~np.isnan(values[:, 0])  # a query that does not count is NaN for every feature
        return PreparedBestFeature(np.where(counted[:, None], values, 0.0), counted)


@dataclass(frozen=True, slots=True, eq=False)
class PreparedBestFeature:
    """The measure of every feature on every query, as a table: a column per feature, then one per negated feature."""

    values: Floats  # (n_queries, n_candidates); 0 where a query does not count
    counted: NDArray[np.bool_]  # which queries count

    def fit(self, weights: Floats, allowed: NDArray[np.bool_]) -> tuple[int, float]:
        """Return the allowed candidate with the highest weighted measure, and that measure.

        The first of equals is taken, up to rounding: the order of the queries must not decide.
        """
        found = np.where(allowed, sum_weighted_columns(weights, self.values), -np.inf)
        best = int(np.argmax(found >= found.max() - 1e-12))
        return best, float(found[best])

    def make_distribution(self, weight: Floats) -> Floats:
        """Return query weights as a distribution over the queries that count; zeros if none does."""
        weights = np.where(self.counted, weight, 0.0)
        return weights / (weights.sum() or 1.0)


def _measure_features(
    queries: Queries, measure: Measure, signed: bool, features: tuple[int, ...] | None = None
) -> Floats:
    """Return the measure of each feature's ranking on each query; negated features too if ``signed``."""
    prepared, wanted = measure.prepare(queries), range(queries.n_features) if features is None else features
    signs = (1, -1) if signed else (1,)
    columns = [prepared.values(Feature(k, sign)(queries.X), Serial()) for sign in signs for k in wanted]
    return np.column_stack(columns)
