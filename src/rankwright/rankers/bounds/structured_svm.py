"""The base of SVMMap, SVMNDCG and DORM: a margin bound minimised by cutting planes."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import UpperBound
from rankwright.optimisers.cutting_plane import (
    CuttingPlaneModel,
    CuttingPlaneRound,
    find_best_scale,
    minimise_by_cutting_planes,
)
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.rounds import Deadline, Evaluator, RoundRecorder, Stop
from rankwright.rankers.base import FitResult
from rankwright.rankers.bounds.adarank import AdaRank
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker, PathRanker
from rankwright.rankers.fit_result import describe_gap
from rankwright.rankers.input_checks import check_among, check_number, check_strength, check_whole
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling, scale_weights

STARTS = ("zero", "adarank")


@dataclass(kw_only=True, eq=False, repr=False)
class StructuredSVM(PathRanker, LinearModelRanker, ConvergentRanker):
    """The base of SVMMap, SVMNDCG and DORM: a linear scorer that minimises an L2 penalty + C times a margin bound.

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

    Attributes
    ----------
    history_ : list of dict
        A row per round: ``loss`` (the mean bound), ``objective``, ``gap`` (no weights have an objective lower by more
        than this), ``planes`` (that the model rests on), ``train``, ``valid``. The last is the model.
    """

    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"C": (0.01, 0.03, 0.1, 0.3, 1.0, 3.0, 10.0, 30.0, 100.0)}
    keeps_last: ClassVar[bool] = True
    path_parameter: ClassVar[str] = "C"
    starts: ClassVar[tuple[str, ...]] = STARTS
    is_convex: ClassVar[bool] = True  # whether the end does not depend on the start, so that C may follow on C

    C: float = 0.1
    start: str = "zero"
    tol: float = 1e-4
    max_iter: int = 1000

    @abstractmethod
    def _margin_bound(self, measure: Measure) -> UpperBound:
        """Return the bound that is minimised."""

    def find_minimised_bound(self, measure: Measure) -> UpperBound:
        """Return the margin bound."""
        return self._margin_bound(measure)

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths = [check_strength("C", value) for value in values]
        check_number("tol", self.tol, least=0.0)
        check_whole("max_iter", self.max_iter, least=1)
        check_among("start", self.start, self.starts)
        deadline, bound = Deadline(self.max_seconds), self._margin_bound(measure)
        factor = StandardScaling.fit(train, backend).factor_for(self.scale)
        risk = LinearRisk(bound, backend.scatter(train), factor, float(train.query_weight.sum()), backend)
        evaluate = Evaluator.of(train, valid, measure, backend)
        first = w = self._find_start(bound.measure, train, factor, backend)
        results: dict[int, FitResult] = {}
        planes = CuttingPlaneModel(len(factor))
        for at in sorted(range(len(strengths)), key=strengths.__getitem__):
            C = strengths[at]
            rounds = self._minimise(risk, C, w if self.is_convex else first, planes, deadline)
            recorder = _record_rounds(progress.track(rounds, "rounds", self.max_iter), factor, evaluate, deadline)
            w, last = recorder.model, recorder.history[-1]
            gap = describe_gap(last["gap"], last["objective"], self.tol, last["round"], self.max_iter)
            left = deadline.explain() or gap
            results[at] = FitResult(Linear(w * factor), recorder.finish(), left, self._why_zero(C))
        return [results[at] for at in range(len(strengths))]

    def _find_start(self, measure: Measure, train: Queries, factor: Floats, backend: Backend) -> Floats | None:
        """Return the weights of the scaled features that the search begins with; None for 0."""
        if self.start == "adarank":
            return fit_adarank_weights(measure, train, factor, self.scale, backend)
        return None

    def _minimise(
        self, risk: LinearRisk, C: float, start: Floats | None, planes: CuttingPlaneModel, stop: Stop
    ) -> Iterator[CuttingPlaneRound]:
        """Minimise the penalty plus C times the risk, beginning with the weights ``start``; yield the rounds.

        ``planes`` are those of smaller C, which touch the risk for any C.
        """
        w = None if start is None else find_best_scale(risk, C, start) * start
        return minimise_by_cutting_planes(
            risk, C, start=w, planes=planes, tol=self.tol, max_iter=self.max_iter, stop=stop
        )

    def _why_zero(self, C: float) -> str:
        """Return why all weights are 0, where they are."""
        return f"w = 0 minimises the bound for C={C:g}; raise C"


def _record_rounds(
    rounds: Iterable[CuttingPlaneRound], factor: Floats, evaluate: Evaluator, deadline: Deadline
) -> RoundRecorder[Floats]:
    """Return a recorder of all cutting plane rounds; the measure is evaluated only where the weights improved."""
    recorder, measured = RoundRecorder[Floats]("last", deadline), dict[str, float]()
    recorder.make_scorer = lambda: Linear(recorder.model * factor)
    for t, found in enumerate(rounds):
        measured = evaluate(found.w * factor) if found.improved else measured
        row = {"round": t, "loss": found.loss, "objective": found.primal, "gap": found.gap, "planes": found.n_planes}
        recorder.record(found.w, row | ({} if found.stage is None else {"stage": found.stage}) | measured)
    return recorder


def fit_adarank_weights(
    measure: Measure, train: Queries, factor: Floats, scale: str | None, backend: Backend
) -> Floats:
    """Fit AdaRank on a measure, and return its weights of the scaled features, as a start of other rankers."""
    ranker = AdaRank(measure=measure, scale="standard" if scale == "standard" else None, backend=backend).fit(train)
    return scale_weights(ranker.coef_, factor)
