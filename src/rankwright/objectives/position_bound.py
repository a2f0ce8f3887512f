"""The bound of Le and Smola (2007): the margin of whole rankings whose documents are weighted by position."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from typing import final

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.kernels.objectives.assignment import assign_positions
from rankwright.measures import Measure
from rankwright.objectives.prepared_bounds import PreparedBound, QueryLosses
from rankwright.objectives.rankings import TableRankings
from rankwright.objectives.upper_bounds import UpperBound


@final
@dataclass(frozen=True, slots=True)
class PositionBound(UpperBound):
    """The structured margin bound of Le and Smola (2007), for any measure that is a sum over ranks.

    With weights c_1 >= c_2 >= ... of the positions, a ranking r of a query has the score F(r), the sum over documents
    of c_{r(i)} s_i, and the query has the loss

        max over rankings r of (1 - E(r)) + F(r) - F(b),    c_p = (p + 1)^-decay down to rank k, and 0 below it,

    where b is the ranking by descending gain that has the highest F, and E the measure divided by its highest value.

    Parameters
    ----------
    measure : Measure
        A measure that is a sum over ranks: NDCG, DCG, precision, recall, RBP.
    decay : float
        How fast the weights of the positions fall; 1/4 in the paper.
    k : int, optional
        The last rank with a weight above 0. By default every rank has one.

    Notes
    -----
    The worst ranking is an assignment of documents to ranks (``kernels/objectives/assignment.py``), found exactly. The
    loss is at least that of the ranking by score, which has the highest F. It is convex as long as b stays the same
    (``fix_ranking``). The paper has one fixed b. Where grades tie, F(r) - F(b) is then positive for all that tells
    documents of one grade apart, and scores of 0 often have the least loss.

    Examples
    --------
    >>> from rankwright.measures import parse_measure
    >>> queries = Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])
    >>> bound = PositionBound(parse_measure("ndcg@1"), decay=1.0).prepare(queries)
    >>> [bound.at(np.array([score, 0.0])).values.tolist() for score in (0.0, 3.0, 6.0)]
    [[1.0], [0.5], [0.0]]
    """

    measure: Measure
    decay: float = 0.25
    k: int | None = None

    def __post_init__(self) -> None:
        if self.measure.family != "additive":
            raise InputError(
                f"{self.measure} is not a sum over ranks, so that its worst ranking is no assignment; "
                "use a measure that is one, such as ndcg@10, p@10 or rbp"
            )

    @property
    def label(self) -> str:
        """The name of the bound in tables and charts."""
        return "positions, margin"

    def prepare(self, queries: Queries) -> PreparedPositionBound:
        """Compute classes, ideals, and the weights of the positions."""
        return PreparedPositionBound(self.measure, queries, weight_positions(int(queries.sizes.max()), self))


class PreparedPositionBound(PreparedBound):
    """The bound of Le and Smola (2007), prepared for some queries."""

    rankings: TableRankings

    def __init__(self, measure: Measure, queries: Queries, position_weight: Floats) -> None:
        super().__init__(measure, queries)
        self.position_weight = position_weight
        self.rank = np.arange(queries.n_docs) - np.repeat(queries.indptr[:-1], queries.sizes)
        self.reference: Floats | None = None
        self.counts = np.zeros(len(self.sizes))
        self.counts[self.rankings.live] = 1.0

    def fix_ranking(self, scores: Floats) -> PreparedPositionBound:
        """Return the bound that compares with the best rankings by grade at these scores, whatever the scores.

        It is convex, at least this bound everywhere, and equal to it at these scores.
        """
        fixed = copy(self)
        fixed.reference = self.compute_reference(scores)
        return fixed

    def compute_reference(self, scores: Floats) -> Floats:
        """Return the derivatives of F of the rankings by descending gain, and of equal gains by descending score."""
        return self._compute_coefficients(self.rankings.find_hardest_by_grade(-scores))

    def _at(self, scores: Floats) -> QueryLosses:
        r = self.rankings
        order = r.rank_by_score(scores)
        assign_positions(r.arrays, order, scores, r.classes, r.worth, self.position_weight, 1.0, r.live)
        reference = self.compute_reference(scores) if self.reference is None else self.reference
        change = self._compute_coefficients(order) - reference
        rise: Floats = np.add.reduceat(change * scores, r.indptr[:-1])
        values = self.counts * np.maximum(1.0 - r.E(order) + rise, 0.0)
        by_row = np.repeat(self.counts * self.weight, self.sizes)
        return QueryLosses(values, by_row * change, np.ones(len(values), dtype=bool))

    def _compute_coefficients(self, order: Ints) -> Floats:
        """Return the derivative of F of a ranking by every score: the weight of the document's position."""
        out = np.empty(len(order))
        out[order] = self.position_weight[self.rank]
        return out


def weight_positions(n: int, bound: PositionBound) -> Floats:
    """Return the weights of n positions: (rank + 1)^-decay down to rank k, and 0 below it.

    >>> from rankwright.measures import parse_measure
    >>> weight_positions(4, PositionBound(parse_measure("ndcg"), 1.0, 3)).round(2).tolist()
    [0.5, 0.33, 0.25, 0.0]
    """
    rank = np.arange(1, n + 1)
    weights: Floats = np.where(rank <= (n if bound.k is None else bound.k), (rank + 1.0) ** -bound.decay, 0.0)
    return weights
