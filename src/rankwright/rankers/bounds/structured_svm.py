"""What SVMMap and SVMNDCG share: a margin bound minimised by cutting planes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import TypeTwo, UpperBound
from rankwright.optimisers.cutting_plane import CuttingPlaneModel, CuttingPlaneRound, cutting_planes, find_best_scale
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.rankers.base import FitResult
from rankwright.rankers.bounds.adarank import AdaRank
from rankwright.rankers.common_parameters import ConvergentRanker, LinearScoring
from rankwright.rankers.fit_result import describe_gap
from rankwright.rankers.judging import Judge
from rankwright.rankers.parameter_checks import check_among, check_number, check_strength, check_whole
from rankwright.rankers.regularisation_path import PathRanker
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.scaling import StandardScaling, scale_weights

STARTS = ("zero", "adarank")


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredSVM(PathRanker, LinearScoring, ConvergentRanker):
    """A linear scorer of the least |w|^2 / 2 + C times the mean of a margin bound over the queries.

    Parameters
    ----------
    C : float
        The weight of the loss against the penalty.
    start : "zero" or "adarank"
        The weights that the search begins with: 0, or those of ``AdaRank``, which minimises the type one bound. It ends
        at the same optimum.
    tol : float
        The duality gap to reach, relative to the objective.
    max_iter : int
        The largest number of cutting planes; ``history_`` has the gap that was reached.
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"C": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
    keeps_last: ClassVar[bool] = True
    path_parameter: ClassVar[str] = "C"

    C: float = 0.1
    start: str = "zero"
    tol: float = 1e-4
    max_iter: int = 1000

    @abstractmethod
    def _bound(self, measure: Measure) -> TypeTwo:
        """What is minimised."""

    def minimises(self, measure: Measure) -> UpperBound:
        """The margin bound."""
        return self._bound(measure)

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths = [check_strength("C", value) for value in values]
        check_number("tol", self.tol, least=0.0)
        check_whole("max_iter", self.max_iter, least=1)
        check_among("start", self.start, STARTS)
        bound = self._bound(measure)
        factor = StandardScaling.fit(train, backend).factor_for(self.scale)
        risk = LinearRisk(bound, backend.scatter(train), factor, float(train.query_weight.sum()), backend)
        judge = Judge(train, valid, measure, backend)
        w = self._started(bound.measure, train, factor, backend)
        outcomes: dict[int, FitResult] = {}
        planes = CuttingPlaneModel(len(factor))
        for at in sorted(range(len(strengths)), key=strengths.__getitem__):
            C = strengths[at]
            if w is not None:
                w = find_best_scale(risk, C, w) * w
            rounds = cutting_planes(risk, C, start=w, planes=planes, tol=self.tol, max_iter=self.max_iter)
            outcome, w = _followed(progress.track(rounds, "rounds", self.max_iter), factor, judge)
            outcomes[at] = outcome._replace(unconverged=self._left(outcome.history), reason=self._why_zero(C))
        return [outcomes[at] for at in range(len(strengths))]

    def _left(self, history: list[dict[str, Any]]) -> str | None:
        """Return how the search ended if the gap is larger than ``tol``."""
        last = history[-1]
        return describe_gap(last["gap"], last["objective"], self.tol, last["round"], self.max_iter)

    def _why_zero(self, C: float) -> str:
        """Return why all weights are 0, where they are."""
        return f"w = 0 minimises the bound for C={C:g}; raise C"

    def _started(self, measure: Measure, train: Queries, factor: Floats, backend: Backend) -> Floats | None:
        if self.start == "zero":
            return None
        return adarank_weights(measure, train, factor, self.scale, backend)


def _followed(rounds: Iterable[CuttingPlaneRound], factor: Floats, judge: Judge) -> tuple[FitResult, Floats]:
    """Follow rounds to their end: the scorer and the history, and the weights."""
    history: list[dict[str, Any]] = []
    w: Floats = np.zeros(len(factor))
    for t, found in enumerate(rounds):
        w = found.w
        record = {"round": t, "loss": found.loss, "objective": found.primal, "gap": found.gap}
        record["planes"] = found.n_planes
        known = {name: history[-1][name] for name in judge.sets} if history and not found.improved else None
        history.append(record | (known or judge(w * factor)))
    return FitResult(Linear(w * factor), history), w


def adarank_weights(measure: Measure, train: Queries, factor: Floats, scale: str | None, backend: Backend) -> Floats:
    """The weights of AdaRank, which minimises the type one bound of a measure, on features times a factor."""
    ranker = AdaRank(measure=measure, scale="standard" if scale == "standard" else None, backend=backend).fit(train)
    return scale_weights(ranker.coef_, factor)
