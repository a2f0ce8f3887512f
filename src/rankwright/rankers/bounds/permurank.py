"""PermuRank: a type two bound over working sets of perfect and imperfect rankings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.phi import PHIS
from rankwright.objectives.upper_bounds import TypeTwo, UpperBound
from rankwright.optimisers.newton import minimise_by_newton
from rankwright.optimisers.rounds import Deadline, Evaluator, RoundRecorder
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.rankers.base import FitResult
from rankwright.rankers.bounds.structured_svm import STARTS, fit_adarank_weights
from rankwright.rankers.bounds.working_sets import WorkingSets
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker
from rankwright.rankers.fit_memory import DataSize
from rankwright.rankers.input_checks import check_among, check_number, check_strength, check_whole
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling

_USUAL_ROUNDS = 20  # after which working sets hardly grow


@final
@dataclass(kw_only=True, eq=False, repr=False)
class PermuRank(LinearModelRanker, ConvergentRanker):
    """PermuRank: a linear scorer trained to score perfect rankings above imperfect ones, in working sets that grow.

    Round t minimises, over weights w of the scaled features,

        ``1/2 ||w||^2 + C mean over queries of 1/|B| sum over b in B, c in C of (1 - E(c)) [1 - (F(b) - F(c))]_+``

    and adds to the query's B the perfect ranking of the lowest F, and to its C the imperfect one of the highest.

    Parameters
    ----------
    measure : str or Measure
        E: any measure with values from 0 to 1, also a user's own.
    C : float
        The weight of the loss against the penalty.
    max_iter : int
        The largest number of rounds.
    ranking_score : "pairs" or "ranks"
        The score F of a ranking: over pairs of documents that the measure distinguishes, or over all pairs (eq. 2).
    perfect_rankings : "grades" or "measure"
        The perfect rankings: those by descending grade down to the last document, or all of the highest measure, as in
        the paper. They differ where the measure has a cut-off.
    start : "zero" or "adarank"
        The weights that choose the first rankings: 0, or those of ``AdaRank``, which minimises the type one bound. The
        paper proposes this for future work: begin with the type one bound, then switch to the type two bound.
    tol : float
        The duality gap to which each round's problem is solved, relative to its objective.

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``loss`` (the mean over the queries of the bound on the working sets), ``objective``, ``gap``,
        ``perfect`` and ``imperfect`` (the mean sizes of the working sets B and C), ``train``, ``valid``.

    Notes
    -----
    Xu et al., fig. 7. A round's problem is a Ranking SVM on the query-level features of the rankings: b is preferred
    to c at a cost of 1 - E(c). Deviations:

    1. E is divided by its highest value on the query, and queries without an imperfect ranking have no loss.
    2. The pair Phi by default: under eq. (2) the demand of every perfect ranking punishes what spreads scores inside a
       class. All perfect rankings by grade have the same F then, so that ``|B|`` is 1.
    3. LETOR's discount, which is equal at ranks 1 and 2, is replaced by the standard one in training.
    4. Perfect is by grade down to the last document by default. Of all rankings of the highest NDCG@10 the hardest has
       everything after rank 10 upside down, and to learn to prefer it is to learn nothing.
    5. With ``valid`` the round that is best on validation queries is kept, not the last.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = PermuRank(measure="map").fit(make_queries(20, random_state=0))
    >>> [record["imperfect"] for record in ranker.history_][:2]
    [1.0, 2.0]
    """

    C: float = 1.0
    max_iter: int = 100
    ranking_score: str = "pairs"
    perfect_rankings: str = "grades"
    start: str = "zero"
    tol: float = 1e-4

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"C": (0.01, 0.1, 1.0, 10.0)}

    def _more_memory(self, size: DataSize) -> float:
        # two rankings of each query a round, as weights of all features, and copies of them while they are solved for
        return 3.0 * 2 * 8 * size.n_queries * size.n_features * min(self.max_iter, _USUAL_ROUNDS)

    def find_minimised_bound(self, measure: Measure) -> UpperBound:
        """Return the hinge type two bound; training evaluates it on the working sets."""
        return TypeTwo(measure.for_upper_bounds(), "hinge", "sum", self.ranking_score, self.perfect_rankings)

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        C, tol = check_strength("C", self.C), check_number("tol", self.tol, least=0.0)
        max_iter = check_whole("max_iter", self.max_iter, least=1)
        check_among("ranking_score", self.ranking_score, tuple(PHIS))
        check_among("perfect_rankings", self.perfect_rankings, ("measure", "grades"))
        check_among("start", self.start, STARTS)
        if not measure.is_normalised:
            raise InputError(f"PermuRank needs a measure with values from 0 to 1; {measure} is not one")
        recorder = RoundRecorder[Floats](deadline=Deadline(self.max_seconds))
        recorder.make_scorer = lambda: Linear(recorder.model)
        standard = StandardScaling.fit(train, backend)
        factor = standard.factor_for(self.scale)
        objective = measure.for_upper_bounds()
        space = WeightSpace.of(train, standard.mean, factor)
        w: Floats = np.zeros(len(space.factor))
        if self.start == "adarank":
            w = space.coordinates(fit_adarank_weights(objective, train, factor, self.scale, backend))
        sets = WorkingSets(train, objective, self.ranking_score, self.perfect_rankings, factor, backend, space)
        evaluate = Evaluator.of(train, valid, measure, backend)
        left: str | None = None
        for t in progress.track(range(max_iter), "rounds", max_iter):
            if not sets.grow(w) and t > 0:
                break
            problem = sets.make_loss()
            found = minimise_by_newton(
                problem, C * problem.total / sets.total, start=w if t > 0 else None, tol=tol, stop=recorder.deadline
            )
            w = found.w
            coef = space.weights(w) * factor
            loss = (found.primal - 0.5 * float(w @ w)) / C if C > 0 else 0.0
            row = {"round": t + 1, "loss": loss, "objective": found.primal, "gap": found.gap}
            recorder.record(coef, row | sets.count_rankings() | evaluate(coef))
            if t + 1 < max_iter and recorder.should_stop():
                break
        else:
            if recorder.model is coef and sets.grow(
                w
            ):  # where an earlier round is the model, more rounds are not needed
                left = f"stopped at max_iter={max_iter} while its working sets still grew; raise max_iter"
        if found.gap > tol * found.primal:
            left = (
                f"the problem of the last round has a gap of {100 * found.gap / found.primal:.3g}%; raise tol={tol:g}"
            )
        left = recorder.deadline.explain() or left
        reason = "C is too small, or no query has an imperfect ranking"
        return FitResult(Linear(recorder.model), recorder.finish(), left, reason)
