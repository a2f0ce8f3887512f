"""LambdaRank: pairs weighted by what their exchange would change the measure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, final

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.swap_lambdas import Lambdas
from rankwright.optimisers.descent import L2Penalty
from rankwright.optimisers.preconditioner import Preconditioner
from rankwright.rankers.base import FitResult
from rankwright.rankers.judging import Best
from rankwright.rankers.listwise.descent_ranker import Descending, Problem, explain_end, trained_measure
from rankwright.rankers.networks.network_ranker import NetworkRanker
from rankwright.rankers.parameter_checks import check_whole
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LambdaRank(Descending, NetworkRanker):
    """LambdaRank, linear or with hidden layers: pairs weighted by what their exchange would change the measure.

    A round ranks the training documents and minimises, over weights w of the scaled features,

        sum over queries of pairs l_i > l_j of |delta_ij| log(1 + exp(-(s_i - s_j)))  +  alpha ||w||^2,

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
        By round: ``loss``, ``objective`` (with the penalty), ``train``, ``valid``.

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

    def _objective(self, measure: Measure) -> Objective:
        check_whole("max_iter", self.max_iter, least=1)
        check_whole("max_inner_iter", self.max_inner_iter, least=0)
        return Lambdas(trained_measure(measure))

    def _begin(self, problem: Problem, train: Queries, backend: Backend) -> Floats:
        return problem.regression(train, self.scale, backend)

    def _descend(
        self, problem: Problem, start: Floats, penalty: L2Penalty, preconditioner: Preconditioner
    ) -> tuple[FitResult, Floats]:
        history: list[dict[str, Any]] = []
        best, kept = Best(), None
        own = Preconditioner()  # so that a fit is the same alone and among others
        for t, point in enumerate(self._reweighed(problem, start, penalty, own, self.max_iter, self.max_inner_iter)):
            judged = problem.judged(point.w)
            best.offer(point.w, judged)
            kept = point if best.coef is point.w else kept
            row: dict[str, Any] = {"round": t, "loss": point.loss, "objective": point.value}
            history.append(row | judged)
        assert kept is not None
        end = explain_end(kept, self.tol, self.max_inner_iter, limit="max_inner_iter")
        return FitResult(problem.scorer(kept.w), history, end), start
