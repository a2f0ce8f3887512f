"""SVMMap: a support vector machine on average precision."""

from __future__ import annotations

from typing import final

from rankwright.measures import AP, Measure
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.rankers.bounds.structured_svm import StructuredSVM
from rankwright.runtime.backends import Backend


@final
class SVMMap(StructuredSVM):
    """The type two bound of average precision with the margin form of the hinge, eq. (10), minimised exactly.

    Minimises, over weights w of the scaled features,

        1/2 ||w||^2 + C mean over queries of [max over rankings c of (1 - AP(c)) - (F(b) - F(c))]_+

    where F(c) is the mean over pairs of a relevant document x and an irrelevant one x' of +-w . (x - x'), plus where c
    has x first, and b is any perfect ranking (all have the same F). The problem is convex: one answer, found to
    a certified precision; validation queries choose C (see ``select``), not a round.

    Parameters
    ----------
    measure : str or Measure
        Reports, and selects. What it takes for relevant (``rel``) is what training does.
    C : float
        What the loss weighs.
    start : "zero" or "adarank"
        Where the search begins: at 0, or at the weights of ``AdaRank``, which minimises the type one bound. It ends at
        the same optimum.
    tol : float
        The duality gap to reach, relative to the objective.
    max_iter : int
        The most cutting planes; ``history_`` tells the gap that was reached.
    scale : "standard", "query" or None
        Scaling of the features.
    backend : Serial, Threads or None
        Where the work runs; None means all cores.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        Weights in raw units.
    history_ : list of dict
        By round: ``loss`` (the mean bound), ``objective``, ``gap`` (no weights have an objective lower by more than
        this), ``planes`` (that the model rests on), ``train``, ``valid``. The last is the model.

    Notes
    -----
    Yue et al. (2007); Xu et al., section 5.3. The most violated ranking is found in O(n log n) a query
    (``violate_precision`` in kernels/rankings.py). Query weights weigh the queries. Where all or no documents are
    relevant there is no loss. A cut-off of the measure is for reporting: training sees the whole list.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = SVMMap(C=1.0).fit(make_queries(20, random_state=0))
    >>> last = ranker.history_[-1]
    >>> bool(last["gap"] <= 1e-4 * last["objective"])
    True
    """

    def __init__(
        self,
        *,
        measure: str | Measure = "map",
        C: float = 0.1,
        start: str = "zero",
        tol: float = 1e-4,
        max_iter: int = 1000,
        scale: str | None = "standard",
        backend: Backend | None = None,
    ) -> None:
        self.measure = measure
        self.C = C
        self.start = start
        self.tol = tol
        self.max_iter = max_iter
        self.scale = scale
        self.backend = backend

    def _bound(self, measure: Measure) -> TypeTwo:
        return TypeTwo(AP(rel=measure.relevant_from), "margin")
