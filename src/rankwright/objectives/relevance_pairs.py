"""Pair losses of documents with estimated relevance: each document before every other, weighted by its relevance."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.data.queries import Queries
from rankwright.objectives.base import Evaluation, Objective, PreparedObjective, check_scores


@dataclass(frozen=True, slots=True, eq=False)
class PreparedRelevancePairs(PreparedObjective):
    """A pair loss that is linear in the grades: the sum over documents i of y_i times the loss of i before each other.

    It is the loss of pairs of two copies of the documents: one that is relevant and has the weight y_i, and one that is
    not. A document and its own copy have equal scores, which adds a constant and no gradient.
    """

    loss: PreparedObjective  # of the copies
    rows: Ints  # the document of each copy

    @classmethod
    def of(cls, objective: Objective, queries: Queries) -> Self:
        """Prepare a loss of pairs, all of equal weight, for the copies of the documents of grouped queries."""
        first, sizes = np.repeat(queries.indptr[:-1], 2 * queries.sizes), np.repeat(queries.sizes, 2 * queries.sizes)
        place = np.arange(2 * queries.n_docs) - 2 * first
        rows, is_relevant = first + place % sizes, place < sizes
        weight = np.ones(queries.n_docs) if queries.doc_weight is None else queries.doc_weight
        copies = Queries(
            np.empty((len(rows), 0), np.float32),
            is_relevant.astype(np.float64),
            2 * queries.indptr,
            queries.qid,
            weight=queries.weight,
            doc_weight=weight[rows] * np.where(is_relevant, queries.y[rows], 1.0),
        )
        return cls(objective.prepare(copies), rows)

    def __call__(self, scores: Floats, rng: np.random.Generator | None = None) -> Evaluation:
        """Return the loss at these scores with its derivatives."""
        n = len(self.rows) // 2
        found = self.loss(check_scores(scores, n)[self.rows], rng)
        gradient = np.bincount(self.rows, found.gradient, n).astype(np.float64)
        if found.curvature is None:
            return Evaluation(found.loss, gradient)
        return Evaluation(found.loss, gradient, np.bincount(self.rows, found.curvature, n).astype(np.float64))
