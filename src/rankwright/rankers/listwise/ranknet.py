"""RankNet: cross entropy of pairs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.pairwise_objectives import Fidelity, Logistic
from rankwright.rankers.input_checks import check_among
from rankwright.rankers.listwise.descent_ranker import DescentRanker
from rankwright.rankers.networks.network_ranker import NetworkRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RankNet(DescentRanker, NetworkRanker):
    """RankNet, linear or a network: minimises the cross entropy of pairs of documents with different grades.

    Minimises, over weights w of the scaled features,

        sum over queries of (the mean over) pairs l_i > l_j of log(1 + exp(-(s_i - s_j)))  +  alpha ||w||^2.

    The problem is convex: there is one answer.

    Parameters
    ----------
    loss : "logistic" or "fidelity"
        The cross entropy, or FRank's loss, which is at most 1 for a pair and not convex.
    pair_weighting : "pair", "query" or "relevance"
        Whether all pairs have equal weight, or all queries that have pairs; or, for grades that are estimated from
        clicks, the sum over documents i of y_i times the loss of i before every other, which is linear in the grades.

    Notes
    -----
    Burges et al. (2005). Gradients are summed per document, not per pair. By L-BFGS (optimisers/descent.py) in place of
    stochastic steps.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(RankNet().fit(queries).score(queries) > 0.6)
    True
    """

    loss: str = "logistic"
    pair_weighting: str = "query"

    def _objective(self, measure: Measure) -> Objective:
        check_among("pair_weighting", self.pair_weighting, ("pair", "query", "relevance"))
        check_among("loss", self.loss, ("logistic", "fidelity"))
        return Logistic(self.pair_weighting) if self.loss == "logistic" else Fidelity(self.pair_weighting)
