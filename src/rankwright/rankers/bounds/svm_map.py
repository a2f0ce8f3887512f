"""SVMMap: a support vector machine on average precision."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.basics.errors import InputError
from rankwright.measures import AP, Measure
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.rankers.bounds.structured_svm import StructuredSVM


@final
@dataclass(kw_only=True, eq=False, repr=False)
class SVMMap(StructuredSVM):
    """SVMMap: a linear structured SVM that minimises a margin bound on the loss of average precision, exactly.

    Minimises, over weights w of the scaled features,

        1/2 ||w||^2 + C mean over queries of [max over rankings c of (1 - AP(c)) - (F(b) - F(c))]_+

    where F(c) is the mean over pairs of a relevant document x and an irrelevant one x' of +-w . (x - x'), plus where c
    has x first, and b is any perfect ranking (all have the same F). The problem is convex: one answer, found to
    a certified precision; validation queries choose C (see ``select``), not a round.

    Parameters
    ----------
    measure : str or Measure
        Measure recorded in `history_` and used to choose C. Training takes the same grades as relevant (its ``rel``).

    Notes
    -----
    Yue et al. (2007); Xu et al., section 5.3. The most violated ranking is found in O(n log n) a query
    (``kernels/objectives/ranking_search.py``). Each query counts by its weight. Where all or no documents are
    relevant there is no loss. A cut-off of the measure is for reporting: training sees the whole list.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = SVMMap(C=1.0).fit(make_queries(20, random_state=0))
    >>> last = ranker.history_[-1]
    >>> bool(last["gap"] <= 1e-4 * last["objective"])
    True
    """

    measure: str | Measure = "map"

    def _margin_bound(self, measure: Measure) -> TypeTwo:
        if measure.is_from_clicks:
            raise InputError(f"SVMMap with {measure}; average precision has no form from clicks: use SVMNDCG or DORM")
        return TypeTwo(AP(rel=measure.min_relevant_grade), "margin")
