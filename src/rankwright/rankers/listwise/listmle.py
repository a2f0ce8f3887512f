"""ListMLE: the likelihood of the label order."""

from __future__ import annotations

from dataclasses import dataclass
from typing import final

from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.listwise_objectives import Likelihood
from rankwright.rankers.listwise.descent_ranker import DescentRanker
from rankwright.rankers.networks.network_ranker import NetworkRanker


@final
@dataclass(kw_only=True, eq=False, repr=False)
class ListMLE(DescentRanker, NetworkRanker):
    """ListMLE, linear or a network: maximises the Plackett-Luce likelihood of the order of the grades.

    Minimises, over weights w of the scaled features,

        sum over queries of sum over j of [log(sum over l_i <= l_j of exp(s_i)) - s_j]  +  alpha ||w||^2.

    The problem is convex: there is one answer.

    Notes
    -----
    Xia et al. (2008). Documents of one grade have no order: each is chosen among all of its grade or lower ones, so
    that the order of the rows does not matter. By L-BFGS (optimisers/descent.py), with an L2 penalty that the paper
    does not have.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> bool(ListMLE().fit(queries).score(queries) > 0.6)
    True
    """

    def _objective(self, measure: Measure) -> Objective:
        return Likelihood()
