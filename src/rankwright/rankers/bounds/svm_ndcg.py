"""SVMNDCG: a support vector machine on NDCG."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.measures import NDCG, Measure
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.rankers.bounds.structured_svm import StructuredSVM
from rankwright.rankers.input_checks import check_whole


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SVMNDCG(StructuredSVM):
    """SVMNDCG: a linear structured SVM that minimises a margin bound on the loss of NDCG, exactly.

    Minimises, over weights w of the scaled features,

        1/2 ||w||^2 + C mean over queries of [max over imperfect rankings c of (1 - NDCG(c)) - (F(b) - F(c))]_+

    where F(c) is the mean over pairs of documents x, x' of different grades of +-w . (x - x'), plus where c has the
    higher grade first, and b is a ranking by descending grade: any, since all have the same F. The problem is convex:
    there is one answer, found to a certified precision; validation queries choose C (see ``select``), not a round.

    Parameters
    ----------
    k : int, optional
        The cut-off of the NDCG that is trained on. By default the whole list counts, whatever the measure's cut-off:
        under a small one a ranking loses everything by its first documents, whose pairs hardly move F, and the least
        bound is often at w = 0, for every C. ``DORM(k=...)`` learns from a cut-off.

    Notes
    -----
    Le and Smola (2007), Chapelle et al. (2007); the solver of ``SVMMap``. The most violated ranking is an assignment of
    documents to ranks (``kernels/objectives/assignment.py``), or the best path of a lattice where that is small
    (``kernels/objectives/lattice.py``). The best-scoring perfect ranking, which the literature compares with, would
    make the loss non-convex. Gains are the measure's, discounts 1 / log2(1 + rank).

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = SVMNDCG(C=1.0).fit(make_queries(20, n_docs=15, random_state=0))
    >>> last = ranker.history_[-1]
    >>> bool(last["gap"] <= 1e-4 * last["objective"])
    True
    """

    k: int | None = None

    def _why_zero(self, C: float) -> str:
        if self.k is None:
            return super()._why_zero(C)
        return (
            f"w = 0 minimises the bound of NDCG@{self.k}, mostly for every C; leave k out, or try DORM(k={self.k}), "
            "whose bound looks at the first ranks only"
        )

    def _margin_bound(self, measure: Measure) -> TypeTwo:
        k = None if self.k is None else check_whole("k", self.k, least=1)
        return TypeTwo(NDCG(k, gain=measure.gain_kind), "margin", perfect="grades")
