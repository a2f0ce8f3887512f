"""LinearRanker: any objective, for a linear scorer."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, final

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.objectives.objective_names import as_objective
from rankwright.rankers.common_parameters import SeededRanker
from rankwright.rankers.listwise.descent_ranker import DescentRanker, LinearProblem, adapt_for_training
from rankwright.runtime.backends import Backend


@final
@dataclass(kw_only=True, eq=False, repr=False)
class LinearRanker(DescentRanker, SeededRanker):
    """A linear ranker that minimises any objective: a built-in one, or your own function.

    Minimises, over weights w of the scaled features,

        sum over queries of the objective  +  alpha ||w||^2.

    Parameters
    ----------
    objective : str, Objective or callable
        A name (see ``rankwright.objectives``), an objective such as ``SigmoidRanks(rw.NDCG(), 0.1)``, or a function
        (scores, queries) -> (loss, gradient). Both are sums over the queries that it is given, which are a part of the
        training queries.
    measure : str or Measure
        Measure recorded in `history_`; also the one that an objective by name approximates, if it approximates one.
    max_iter : int
        The largest number of steps; of each round, where the objective depends on the ranking. Where it is sampled, the
        number of epochs, at most 200, and ``tol`` has no effect.
    random_state : int, Generator or None
        The seed of the samples, where the objective is sampled.

    Attributes
    ----------
    history_ : list of dict
        Of the steps 1, 2, 4, 8, ... and the last, which is the model: ``loss``, ``objective`` (with the penalty),
        ``train``, ``valid``; of the rounds, where the objective depends on the ranking. Where it is sampled, of every
        epoch, and ``kept`` is in the one that is the model: the best on validation queries, or else the last.

    Notes
    -----
    By L-BFGS (optimisers/descent.py), from the weights of a ridge regression. Scores have the mean 0 over the training
    documents, for objectives that notice. An objective that depends on the ranking, as lambdas do, is minimised for the
    ranking at hand, again and again.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> def squares(scores, queries):  # a pointwise loss
    ...     rest = scores - queries.y
    ...     return (rest**2).sum(), 2 * rest
    >>> queries = make_queries(20, random_state=0)
    >>> bool(LinearRanker(objective=squares).fit(queries).score(queries) > 0.6)
    True
    """

    objective: Any = "logistic"

    def _sorts_rows(self) -> bool:
        """Return False for a user's function, which may know something else of each row."""
        return isinstance(self.objective, str) or hasattr(self.objective, "prepare")

    def _objective(self, measure: Measure) -> Objective:
        return as_objective(self.objective, adapt_for_training(measure))

    def _begin(self, problem: LinearProblem, train: Queries, backend: Backend) -> Floats:
        return problem.regression(
            train, self.scale, backend
        )  # some objectives have no slope where all scores are equal
