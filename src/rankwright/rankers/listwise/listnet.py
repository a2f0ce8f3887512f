"""ListNet: the probabilities of being first, by cross entropy."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.listwise_objectives import TopOne
from rankwright.rankers.listwise.descent_ranker import DescentRanker
from rankwright.rankers.networks.network_ranker import NetworkRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ListNet(DescentRanker, NetworkRanker):
    """ListNet, linear or a network: minimises the cross entropy between softmax(grades) and softmax(scores).

    Minimises, over weights w of the scaled features,

        - sum over queries of sum over documents i of P(i) log Q(i)  +  alpha ||w||^2,

    where P = softmax(grades) and Q = softmax(scores) are the probabilities that a document is the first. The problem is
    convex: there is one answer.

    Notes
    -----
    Cao et al. (2007), with top-one probabilities. By L-BFGS (optimisers/descent.py) in place of the paper's gradient
    descent on a network without hidden layer, with an L2 penalty that the paper does not have.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(ListNet().fit(queries).score(queries) > 0.6)
    True
    """

    def _objective(self, measure: Measure) -> Objective:
        return TopOne()
