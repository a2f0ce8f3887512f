"""LambdaRank: each pair is weighted by the change of the measure when its two documents are swapped."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, final

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.swap_lambdas import Lambdas
from rankwright.rankers.input_checks import check_whole
from rankwright.rankers.listwise.descent_ranker import DescentRanker, LinearProblem, adapt_for_training
from rankwright.rankers.networks.network_ranker import NetworkRanker
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(DescentRanker, NetworkRanker):
    """LambdaRank, linear or a network: pairs weighted by the change of the measure when their documents swap.

    A round ranks the training documents and minimises, over weights w of the scaled features,

        ``sum over queries of pairs l_i > l_j of |delta_ij| log(1 + exp(-(s_i - s_j))) + alpha ||w||^2``,

    where delta_ij is the change of the measure if i and j swapped their ranks. The first ranking is that of a ridge
    regression. With validation queries the model is the round that is best on them.

    Parameters
    ----------
    measure : str or Measure
        Any measure, also a user's own: it weights the pairs, is recorded in `history_`, and chooses the kept round.
    max_iter : int
        The largest number of rounds; training ends where one leaves the weights as they are.
    tol : float
        A round ends where its objective is estimated to be above its minimum by at most this share.
    max_inner_iter : int
        The largest number of steps of a round.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``loss``, ``objective`` (with the penalty), ``train``, ``valid``.

    Notes
    -----
    Burges et al. (2007). Its gradients are those of no fixed function of the scores, but of the loss above with the
    weights of the pairs kept; a round minimises that by L-BFGS, a step of expectation-maximisation (Wang et al., 2018),
    where the paper takes one stochastic step. Where two ranks count the same under LETOR's discount, training takes
    1 / log2(1 + rank), and lists too short for LETOR's cut-off count in training.

    Examples
    --------
    >>> from rankwright import Regression, make_queries
    >>> queries = make_queries(20, random_state=0)
    >>> start = Regression(measure="err").fit(queries)
    >>> bool(LambdaRank(measure="err").fit(queries).score(queries) > start.score(queries))
    True
    """

    max_iter: int = 20
    tol: float = 1e-5
    max_inner_iter: int = 20

    keeps_last: ClassVar[bool] = False
    step_limit: ClassVar[str] = "max_inner_iter"
    continues_path: ClassVar[bool] = False

    def _objective(self, measure: Measure) -> Objective:
        check_whole("max_iter", self.max_iter, least=1)
        check_whole("max_inner_iter", self.max_inner_iter, least=0)
        return Lambdas(adapt_for_training(measure))

    def _begin(self, problem: LinearProblem, train: Queries, backend: Backend) -> Floats:
        return problem.regression(train, self.scale, backend)
