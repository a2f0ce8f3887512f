"""RankSVM: the least hinge loss of pairs of documents, exactly."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar, final

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.pairwise_objectives import compute_pair_weights
from rankwright.optimisers.newton import NewtonStep, minimise_by_newton
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.optimisers.rounds import Deadline, Evaluator, RoundRecorder
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker, PathRanker
from rankwright.rankers.fit_result import describe_gap
from rankwright.rankers.input_checks import check_among, check_number, check_strength, check_whole
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling


@final
@dataclass(kw_only=True, eq=False, repr=False)
class RankSVM(PathRanker, LinearModelRanker, ConvergentRanker):
    """RankSVM: a linear scorer that separates documents of different grades by a margin, solved exactly.

    Minimises, over weights w of the scaled features,

        1/2 ||w||^2 + C mean over pairs of loss(1 - (w . x_i - w . x_j)),

    over the pairs of documents of one query with grades l_i > l_j; loss(u) is max(u, 0) or its square. The problem is
    convex, so there is one answer, and it is found to a certified precision; validation queries choose C (see
    ``select``), not a round.

    Parameters
    ----------
    C : float
        The weight of the loss against the penalty. SVMrank's C is this one divided by the mean number of pairs of a
        query, that of scikit-learn's ``LinearSVC`` on differences this one divided by the number of pairs (both with
        ``pair_weighting="pair"``).
    loss : "hinge" or "squared_hinge"
        The loss of a pair.
    pair_weighting : "pair" or "query"
        Whether all pairs have equal weight, or all queries that have pairs.
    tol : float
        The duality gap to reach, relative to the objective.
    max_iter : int
        The largest number of Newton steps; ``history_`` has the gap that was reached.

    Attributes
    ----------
    history_ : list of dict
        A row per Newton step: ``loss`` (of a pair, in the mean), ``objective``, ``gap`` (no weights have an objective
        lower by more than this), ``smoothing`` (of the hinge), ``train``, ``valid``. The last is the model.

    Notes
    -----
    Herbrich et al. (2000), Joachims (2002). Pair sums cost O(n log n) a query (hinge_pairs.py); the minimum is found
    by truncated Newton on the smoothed hinge, with less and less smoothing (optimisers/newton.py). With more features
    than documents it is searched among weighted sums of the documents, where it lies. There is no intercept: it
    changes no ranking. The pairs of a query count by its weight. Without any pairs the weights are 0.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> ranker = RankSVM(C=10.0).fit(make_queries(20, random_state=0))
    >>> last = ranker.history_[-1]
    >>> bool(last["gap"] <= 1e-6 * last["objective"])
    True
    """

    C: float = 10.0
    loss: str = "hinge"
    pair_weighting: str = "pair"
    tol: float = 1e-6
    max_iter: int = 200

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {
        "C": (0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0, 300.0, 1000.0)
    }
    keeps_last: ClassVar[bool] = True
    is_doc_weighted: ClassVar[bool] = True
    path_parameter: ClassVar[str] = "C"
    bytes_per_doc: ClassVar[int] = 300

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths = [check_strength("C", value) for value in values]
        check_among("loss", self.loss, ("hinge", "squared_hinge"))
        check_among("pair_weighting", self.pair_weighting, ("pair", "query"))
        tol, max_iter = check_number("tol", self.tol, least=0.0), check_whole("max_iter", self.max_iter, least=1)
        deadline, standard = Deadline(self.max_seconds), StandardScaling.fit(train, backend)
        factor = standard.factor_for(self.scale)
        weight = compute_pair_weights(train, self.pair_weighting)
        space = WeightSpace.of(train, standard.mean, factor)
        costs = train.doc_weight, weight
        problem = PairLoss(space.queries, *costs, space.factor, space.mean, backend, train.doc_weight)
        evaluate = Evaluator.of(train, valid, measure, backend)
        results: dict[int, FitResult] = {}
        w: Floats | None = None
        order = sorted(range(len(strengths)), key=strengths.__getitem__)
        for at in progress.track(order, "values of C", len(order)):  # from small C, whose solution is nearly known
            C, squared = strengths[at], self.loss == "squared_hinge"
            recorder = RoundRecorder[Floats]("last", deadline)
            limits: dict[str, Any] = {"tol": tol, "max_iter": max_iter, "stop": deadline}
            observe = partial(_record_step, recorder, lambda w: space.weights(w) * factor, evaluate)
            found = minimise_by_newton(problem, C, start=w, squared=squared, **limits, observe=observe)
            w = found.w
            left = deadline.explain() or describe_gap(found.gap, found.primal, tol, len(found.history) - 1, max_iter)
            scorer, reason = Linear(space.weights(w) * factor), f"C={C:g} is too small; raise it"
            results[at] = FitResult(scorer, recorder.finish(), left, reason)
        return [results[at] for at in range(len(strengths))]


def _record_step(
    recorder: RoundRecorder[Floats], unscale: Callable[[Floats], Floats], evaluate: Evaluator, step: NewtonStep
) -> None:
    """Record a step of Newton's method, with the measure of its weights."""
    row: dict[str, Any] = {"round": len(recorder.history), "loss": step.loss, "objective": step.primal, "gap": step.gap}
    if np.isfinite(step.smoothing):
        row["smoothing"] = step.smoothing
    coef = unscale(step.w)
    recorder.make_scorer = lambda: Linear(coef)
    recorder.record(coef, row | evaluate(coef))
