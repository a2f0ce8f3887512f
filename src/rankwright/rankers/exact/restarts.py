"""Climbing from several starts: what DirectRank and coordinate ascent share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from time import monotonic
from typing import Any, NamedTuple

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import Basic, Bound
from rankwright.optimisers.ascent import AscentStep
from rankwright.optimisers.landscape import Landscape, LandscapePoint
from rankwright.rankers.base import FitResult
from rankwright.rankers.common_parameters import ConvergentRanker, LinearScoring, SeededRanker
from rankwright.rankers.listwise.regression import regression_weights
from rankwright.rankers.parameter_checks import check_among, check_whole
from rankwright.runtime.backends import Backend, side_by_side
from rankwright.scorers import Linear
from rankwright.scorers.scaling import Standard


@dataclass(kw_only=True, eq=False, repr=False)
class Restarting(LinearScoring, SeededRanker, ConvergentRanker):
    """A linear ranker that climbs from several starts and keeps the best point reached.

    The first start is ``start``: the weights of a regression, or equal ones; the others are drawn from a normal
    distribution, in units of the features' deviations (under ``scale="standard"``).

    Parameters
    ----------
    measure : str or Measure
        The measure that is maximised; also a user's own.
    n_restarts : int
        The number of starts; the best point on validation (or else training) queries is kept.
    start : "equal" or "regression"
        The first start: equal weights, or those of ``Regression``; the other starts are random.
    scale : "standard", "query" or None
        The units of starts, steps and penalties; "query" scales the features within each query.
    """

    n_restarts: int = 5
    start: str = "regression"

    @abstractmethod
    def _climb(self, task: Task, start: LandscapePoint, rng: np.random.Generator) -> Iterator[list[AscentStep]]:
        """Climb from a start; yields steps."""

    def _objective(self, measure: Measure) -> Measure:
        """What is climbed, where it is not the measure itself."""
        return measure

    def minimises(self, measure: Measure) -> Bound:
        """The loss itself: it climbs the measure."""
        return Basic(self._objective(measure).for_training())

    @property
    def _wants_regression(self) -> bool:
        """Whether the weights of a regression are needed."""
        return self.start == "regression"

    def _paid(self, task: Task, coef: Floats) -> float:
        """What is taken off the measure for weights, where that is anything."""
        return 0.0

    def _prepared(self, start: Floats, task: Task) -> Floats:
        """A start as the climb takes it."""
        return start

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        n_restarts = check_whole("n_restarts", self.n_restarts, least=1)
        check_among("start", self.start, ("regression", "equal"))
        seconds = np.inf if self.max_seconds is None else self.max_seconds
        standard, rng = Standard.of(train, backend), make_generator(self.random_state)
        varies = standard.deviation > 0
        objective = self._objective(measure)
        climbed = Landscape.of(train, objective.for_training(), backend)
        task = Task(
            climbed,
            climbed if objective is measure else Landscape.of(train, measure.for_training(), backend),
            None if valid is None else Landscape.of(valid, measure, backend),
            standard.deviation if self.scale == "standard" else varies.astype(np.float64),
            regression_weights(train, backend) if self._wants_regression else None,
            objective,
            train.n_docs,
            monotonic() + seconds,
        )
        drawn = np.concatenate([np.ones((1, train.n_features)), rng.normal(size=(n_restarts - 1, train.n_features))])
        starts, rngs = drawn / np.where(task.unit > 0, task.unit, np.inf), rng.spawn(n_restarts)
        if self.start == "regression" and task.regression is not None:
            starts[0] = task.regression

        def run(restart: int) -> Run:
            return self._run(task, restart, self._prepared(starts[restart], task), rngs[restart])

        runs = side_by_side(backend, run, range(n_restarts), train.n_docs)
        finished = list(progress.track(runs, "restarts", n_restarts))
        best = max(range(n_restarts), key=lambda i: (finished[i].value, -i))
        history: list[dict[str, Any]] = []
        for i, each in enumerate(finished):
            history.extend(each.records if i == best else each.summary)
        return FitResult(Linear(finished[best].coef), history, unconverged=self._why_unfinished(task, finished[best]))

    def _why_unfinished(self, task: Task, best: Run) -> str | None:
        """Return what ended the climbs before a maximum, and the way out; None if nothing did."""
        if monotonic() >= task.deadline:
            return f"stopped after max_seconds={self.max_seconds:g}; raise it"
        return None

    def _run(self, task: Task, restart: int, start: Floats, rng: np.random.Generator) -> Run:
        """One climb, recorded; the best point by validation, or else by training, is the one that is kept."""
        point = task.landscape.at(start)
        watch = _Watch(task, restart, point, lambda coef: self._paid(task, coef))
        for steps in self._climb(task, point, rng):
            for step in steps:
                watch.record(step)
        return watch.finished()


@dataclass(frozen=True, slots=True, eq=False)
class Task:
    """What all restarts of one fit share."""

    landscape: Landscape  # of the objective on training queries
    train: Landscape  # of the measure
    valid: Landscape | None
    unit: Floats  # what a weight is multiplied by to compare it with others; 0 for a constant feature
    regression: Floats | None  # its weights, if they are wanted
    objective: Measure
    n_docs: int
    deadline: float


class Run(NamedTuple):
    """What a restart found."""

    coef: Floats
    value: float  # by which restarts are compared
    best: int  # the record of ``coef``
    records: list[dict[str, Any]]

    @property
    def summary(self) -> list[dict[str, Any]]:
        """The records of the best point and of the end of the climb."""
        last = len(self.records) - 1
        return [self.records[i] for i in sorted({self.best, last})]


class _Watch:
    """Follows a climb: its records, and the best point so far."""

    def __init__(self, task: Task, restart: int, start: LandscapePoint, paid: Callable[[Floats], float]) -> None:
        self.task, self.restart, self.paid = task, restart, paid
        self.same = task.train is task.landscape
        self.valid = None if task.valid is None else task.valid.at(start.coef)
        self.records: list[dict[str, Any]] = []
        self.coef, self.value, self.best = start.coef, -np.inf, 0
        self._note(0, None, 0.0, start.coef, start.value)

    def record(self, step: AscentStep) -> None:
        """Note a step."""
        if self.task.valid is not None and self.valid is not None:
            self.valid = self.task.valid.step(self.valid, step.direction, step.t)
        self._note(step.round, step.column, step.t, step.coef, step.value)

    def _note(self, number: int, feature: int | None, t: float, coef: Floats, value: float) -> None:
        train = value if self.same else self.task.train.at(coef).value
        record: dict[str, Any] = {"restart": self.restart + 1, "round": number}
        if feature is not None:
            record |= {"feature": feature, "weight": float(coef[feature]), "step": t}
        record |= {"loss": 1.0 - value, "train": train}
        if self.valid is not None:
            record["valid"] = self.valid.value
        self.records.append(record)
        decisive = self._decisive(record, coef)
        if decisive > self.value:
            self.coef, self.value, self.best = coef, decisive, len(self.records) - 1

    def _decisive(self, record: dict[str, Any], coef: Floats) -> float:
        """What points are compared by: the validation measure, or else the training measure less the pull."""
        valid: float | None = record.get("valid")
        return float(record["train"]) - self.paid(coef) if valid is None else valid

    def finished(self) -> Run:
        """The best point, evaluated as prediction will."""
        best = self.records[self.best]
        best["train"] = self.task.train.at(self.coef).value
        if self.task.valid is not None:
            best["valid"] = self.task.valid.at(self.coef).value
        return Run(self.coef, self._decisive(best, self.coef), self.best, self.records)
