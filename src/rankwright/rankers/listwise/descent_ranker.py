"""Linear rankers that descend on an objective by its gradient."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import IneffectiveParameterWarning, warn
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.base import Objective
from rankwright.optimisers.descent import DescentPoint, L2Penalty, descend, descend_reweighted
from rankwright.optimisers.descent_methods import LBFGS
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.preconditioner import Preconditioner
from rankwright.optimisers.rounds import Deadline, Evaluator, RoundRecorder
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker, PathRanker
from rankwright.rankers.fit_memory import VALUE, DataSize, check_memory
from rankwright.rankers.input_checks import check_number, check_strength, check_whole, is_changed
from rankwright.rankers.listwise.regression import ALPHAS, fit_ridges, lower_grades
from rankwright.rankers.networks.epoch_training import Phase, TrainingData, fit_linear
from rankwright.rankers.networks.network_ranker import NetworkDesign
from rankwright.rankers.networks.training_options import TrainingOptions, check_hidden
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling, scale_weights

_ROUNDS = 20  # of an objective that depends on the ranking
_FLAT = 1e-9  # an objective that is 0, and whose slope over a step as long as the weights is, cannot fall
_ESTIMATED = TrainingOptions(learning_rate=0.03, n_epochs=200)  # where the objective is sampled
HIGHEST = 4.0  # grade: the smoothing means the same on all data only if scores are of one size


def adapt_for_training(measure: Measure) -> Measure:
    """Return the measure for training: no two ranks share a discount, and short lists are padded, not scored 0."""
    return measure.for_upper_bounds().with_cut_off(measure.cut_off)


class LinearProblem(NamedTuple):
    """A training problem: the summed objective as a function of a linear scorer's weights, and its evaluator."""

    risk: LinearRisk
    standard: StandardScaling
    factor: Floats
    evaluator: Evaluator

    @classmethod
    def of(
        cls,
        objective: Objective,
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        scale: str | None,
        backend: Backend,
    ) -> LinearProblem:
        """Prepare the queries."""
        standard = StandardScaling.fit(train, backend)
        factor = standard.factor_for(scale)
        objective = objective.with_max_grade(train.max_grade)
        risk = LinearRisk(objective, backend.scatter(train), factor, 1.0, backend, standard.mean)
        return cls(risk, standard, factor, Evaluator.of(train, valid, measure, backend))

    def scorer(self, w: Floats) -> Linear:
        """Return the scorer of raw features."""
        coef = w * self.factor
        return Linear(coef, -float(coef @ self.standard.mean))

    def evaluate(self, w: Floats) -> dict[str, float]:
        """Return the mean measure on the training and validation queries."""
        return self.evaluator(w * self.factor)

    def regression(self, train: Queries, scale: str | None, backend: Backend) -> Floats:
        """Return the weights of a ridge regression, of the strength best on validation queries (1 without any)."""
        valid = self.evaluator.valid
        strengths = (1.0,) if valid is None else ALPHAS
        scorers = [scorer for scorer, _ in fit_ridges(lower_grades(train, HIGHEST), strengths, scale, backend)]
        best = scorers[0] if valid is None else max(scorers, key=lambda scorer: valid.evaluate(scorer.coef).value)
        return scale_weights(best.coef, self.factor)


@dataclass(kw_only=True, eq=False, repr=False)
class DescentRanker(PathRanker, LinearModelRanker, ConvergentRanker):
    """A linear ranker that minimises an objective, summed over the queries, plus an L2 penalty, by L-BFGS.

    Parameters
    ----------
    alpha : float
        L2 strength, against the sum over the queries; the useful range is 1e-6 to 1e3.
    tol : float
        Training ends where the objective is estimated to be above its minimum by at most this share: half
        of g' H^-1 g, with the gradient g and the second derivative H as far as L-BFGS knows it. It warns otherwise.
    max_iter : int
        The largest number of steps.

    Attributes
    ----------
    history_ : list of dict
        The steps 1, 2, 4, 8, ... and the last, which is the model: ``loss``, ``objective`` (with the penalty),
        ``train``, ``valid``.
    """

    path_parameter: ClassVar[str] = "alpha"
    keeps_last: ClassVar[bool] = True
    step_limit: ClassVar[str] = "max_iter"  # the parameter that limits the steps of a descent
    continues_path: ClassVar[bool] = True  # whether a strength begins with the solution of the stronger one before it
    default_grid: ClassVar[Mapping[str, tuple[Any, ...]]] = {"alpha": ALPHAS}

    alpha: float = 1.0
    tol: float = 1e-10
    max_iter: int = 500

    @abstractmethod
    def _objective(self, measure: Measure) -> Objective:
        """Return the objective that is minimised."""

    def takes_doc_weight(self, measure: Measure) -> bool:
        """Return whether the objective takes document weights."""
        return self._objective(measure).takes_doc_weight

    def _find_ineffective(self, measure: Measure, valid: Queries | None) -> Iterator[tuple[str, str]]:
        if not hasattr(self, "hidden"):
            return
        if not check_hidden(self.hidden):
            yield "training", "it is of networks, and there are no hidden layers"
            return
        for name in ("tol", "max_iter", "max_inner_iter"):
            if hasattr(self, name):
                yield name, "a network is trained in epochs, by training"
        yield from TrainingOptions.of(self.training).ineffective(is_network=True)

    def _begin(self, problem: LinearProblem, train: Queries, backend: Backend) -> Floats:
        """Return the weights to begin with."""
        return np.zeros(train.n_features)

    def _center(self, start: Floats) -> Floats:
        """Return the weights where the penalty is 0."""
        return np.zeros(len(start))

    def _fit_path(
        self, values: Sequence[Any], train: Queries, valid: Queries | None, measure: Measure, backend: Backend
    ) -> list[FitResult]:
        strengths, deadline = [check_strength("alpha", value) for value in values], Deadline(self.max_seconds)
        hidden, training = (
            check_hidden(getattr(self, "hidden", None)),
            TrainingOptions.of(getattr(self, "training", None)),
        )
        if hidden:
            design = NetworkDesign(hidden, training, self.scale, self.random_state, self.max_seconds)
            phases = self._phases(training.n_epochs, train, measure)
            return design.fit(phases, strengths, train, valid, measure, backend)
        training.for_linear()
        check_number("tol", self.tol, least=0.0)
        check_whole("max_iter", self.max_iter, least=0)
        problem = LinearProblem.of(self._objective(measure), train, valid, measure, self.scale, backend)
        if problem.risk.is_sampled:
            return self._fit_sampled(strengths, TrainingData(train, valid, measure, self.scale, backend), deadline)
        start = self._begin(problem, train, backend)
        w, center = start, self._center(start)
        results: dict[int, FitResult] = {}
        order = sorted(range(len(strengths)), key=lambda at: -strengths[at])
        preconditioner = Preconditioner()
        for at in progress.track(order, "values of alpha", len(order)):  # from a large one, whose solution is known
            if not self.continues_path:  # so that a fit is the same alone and along a path
                w, preconditioner = start, Preconditioner()
            results[at], w = self._descend(problem, w, L2Penalty(strengths[at], center), preconditioner, deadline)
        return [results[at] for at in range(len(strengths))]

    def _phases(self, n_epochs: int, train: Queries, measure: Measure) -> Sequence[Phase]:
        """Return the phases of the training of a network."""
        return [Phase(self._objective(measure), n_epochs)]

    def _fit_sampled(self, strengths: Sequence[float], data: TrainingData, deadline: Deadline) -> list[FitResult]:
        """Train in epochs where the objective is sampled, and its values are too uncertain to converge by."""
        if is_changed(self, "tol"):
            warn(
                f"{type(self).__name__}: tol has no effect here: the objective is sampled, and training goes on for "
                f"max_iter epochs, {_ESTIMATED.n_epochs} at most",
                IneffectiveParameterWarning,
            )
        size = DataSize.of(data.train)
        check_memory(self, size, more=VALUE * size.n_values)  # linear scorers are trained on a scaled copy
        steps = replace(_ESTIMATED, n_epochs=max(min(self.max_iter, _ESTIMATED.n_epochs), 1))
        objective, seed = self._objective(data.measure), getattr(self, "random_state", 0)
        return [fit_linear(objective, steps, alpha, seed, data, deadline) for alpha in strengths]

    def _descend(
        self,
        problem: LinearProblem,
        start: Floats,
        penalty: L2Penalty,
        preconditioner: Preconditioner,
        deadline: Deadline,
    ) -> tuple[FitResult, Floats]:
        """Return the minimum for one strength, and the weights that the next strength begins with."""
        recorder = RoundRecorder[DescentPoint]("last" if self.keeps_last else "valid", deadline)
        recorder.make_scorer = lambda: problem.scorer(recorder.model.w)
        for step, point in self._points(problem, start, penalty, preconditioner, deadline):
            row = {"round": step, "loss": point.loss, "objective": point.value}
            recorder.record(point, row | problem.evaluate(point.w))
        kept = recorder.model
        left = deadline.explain() or explain_end(kept, self.tol, self._max_steps, limit=self.step_limit)
        return FitResult(problem.scorer(kept.w), recorder.finish(), left), kept.w

    def _points(
        self,
        problem: LinearProblem,
        start: Floats,
        penalty: L2Penalty,
        preconditioner: Preconditioner,
        deadline: Deadline,
    ) -> Iterator[tuple[int, DescentPoint]]:
        """Yield the points that are recorded, with the number of each; the last is the minimum."""
        limits: dict[str, Any] = {"tol": self.tol, "max_iter": self._max_steps, "stop": deadline}
        risk = problem.risk
        if not risk.uses_ranking:
            return _select_points(descend(risk, start, penalty, LBFGS(preconditioner), **limits))

        def frozen(w: Floats) -> LinearRisk:
            return risk.fix_ranking(risk.evaluate(w))

        def method() -> LBFGS:
            return LBFGS(preconditioner)

        rounds = _ROUNDS if self.step_limit == "max_iter" else self.max_iter
        return enumerate(descend_reweighted(frozen, start, penalty, method, rounds=rounds, **limits))

    @property
    def _max_steps(self) -> int:
        """The largest number of steps of a descent."""
        return int(getattr(self, self.step_limit))


def _select_points(points: Iterable[DescentPoint]) -> Iterator[tuple[int, DescentPoint]]:
    """Yield the points of a descent after 1, 2, 4, 8, ... steps and the last one, each with its number of steps."""
    last = None
    for step, point in enumerate(points):
        last = (step, point)
        if step > 0 and step & (step - 1) == 0:
            yield last
            last = None
    if last is not None:
        yield last


def explain_end(
    point: DescentPoint, tol: float, max_iter: int, *, estimated: bool = True, limit: str = "max_iter"
) -> str | None:
    """Return why a descent ended before it reached ``tol``, and what to do about it; None if it did reach it.

    ``estimated`` says whether ``suboptimality`` estimates the distance to the minimum; else it is the last step's gain.
    ``limit`` is the name of the parameter that limits the steps.
    """
    slope = float(np.linalg.norm(point.gradient) * np.linalg.norm(point.w))
    if point.has_converged(tol) or max(slope, abs(point.value)) <= _FLAT:
        return None
    share = point.suboptimality / abs(point.value) if point.value else math.inf
    above, fell = "is about {:.1e} of its value above its minimum", "still fell by {:.1e} of its value in a step"
    reached = (above if estimated else fell).format(share) if math.isfinite(share) else "is not yet near its minimum"
    if point.steps >= max_iter:
        return f"stopped at {limit}={max_iter} where the objective {reached} (tol={tol:g}); raise {limit}, or alpha"
    return (
        f"no step lowers the objective any more, which {reached} (tol={tol:g}): rounding is the limit, or the "
        "objective has kinks; raise tol"
    )
