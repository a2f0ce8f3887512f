"""RankCosine: the angle between scores and gains."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.listwise_objectives import Cosine
from rankwright.rankers.input_checks import check_among
from rankwright.rankers.listwise.descent_ranker import DescentRanker, LinearProblem
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RankCosine(DescentRanker):
    """RankCosine, linear: maximises the cosine between the scores and the gains of each query.

    Minimises, over weights w of the scaled features,

        ``sum over queries of (1 - t . s / |s|) / 2 + alpha ||w - w0||^2``,

    where s are the scores less their mean, t the gains less theirs, of length 1 (or divided by the ideal DCG), and w0
    the weights of a ridge regression on gains. Not convex.

    Parameters
    ----------
    target : "gains" or "ndcg"
        The vector that scores are aligned with: gains by their direction, or gains divided by the query's ideal DCG,
        the form that is consistent with NDCG.

    Notes
    -----
    Qin et al. (2008); the consistent form is Ravikumar et al. (2011). The paper adds up weak rankers; this is a linear
    scorer by L-BFGS. The loss does not depend on the size of the scores, so a penalty on ``||w||`` would only shrink
    them; the distance to the regression is penalised in its place, as SmoothRank does.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(RankCosine().fit(queries).score(queries) > 0.6)
    True
    """

    target: str = "gains"
    tol: float = 1e-12

    def _objective(self, measure: Measure) -> Objective:
        check_among("target", self.target, ("gains", "ndcg"))
        return Cosine(self.target)

    def _begin(self, problem: LinearProblem, train: Queries, backend: Backend) -> Floats:
        return problem.regression(train, self.scale, backend)

    def _center(self, start: Floats) -> Floats:
        return start
