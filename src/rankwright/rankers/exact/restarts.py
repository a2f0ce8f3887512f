"""Climbs of a measure from several starts, as DirectRank and CoordinateAscent share them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from rankwright.basics import progress
from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.ascent import AscentStep, record_climb
from rankwright.optimisers.landscape import Landscape, LandscapePoint
from rankwright.optimisers.rounds import Deadline, Evaluator, RoundRecorder
from rankwright.rankers.common_parameters import ConvergentRanker, LinearModelRanker, SeededRanker
from rankwright.rankers.input_checks import check_among, check_whole
from rankwright.runtime.backends import Backend, map_fits
from rankwright.scorers import Linear
from rankwright.scorers.linear import StandardScaling


@dataclass(kw_only=True, eq=False, repr=False)
class RestartingRanker(LinearModelRanker, SeededRanker, ConvergentRanker):
    """A linear ranker that climbs its measure from several starts, and keeps the best weights reached.

    The first start is ``start``: the weights of a regression, or equal ones; the others are drawn from a normal
    distribution, in units of the features' deviations (under ``scale="standard"``).

    Parameters
    ----------
    measure : str or Measure
        The measure that is maximised; also a user's own.
    n_restarts : int
        The number of starts; the best point on validation queries is kept, or without them the end of the climb with
        the highest training measure.
    start : "equal" or "regression"
        The first start: equal weights, or those of ``Regression``; the other starts are random.
    scale : "standard", "query" or None
        The units of starts, steps and penalties; "query" scales the features within each query.
    """

    n_restarts: int = 5
    start: str = "regression"

    searches_weights: ClassVar[bool] = True
    bytes_per_doc: ClassVar[int] = 350

    def _check_starts(self) -> None:
        """Raise InputError for a wrong parameter of the starts."""
        check_whole("n_restarts", self.n_restarts, least=1)
        check_among("start", self.start, ("regression", "equal"))


class ClimbData(NamedTuple):
    """The data that all climbs of one fit share: the objective, the evaluator, and the units of the weights."""

    objective: Landscape  # of the measure that is climbed, on the training queries
    evaluator: Evaluator  # of the ranker's own measure
    unit: Floats  # a weight times its unit can be compared with others; 0 for a constant feature
    n_docs: int
    backend: Backend

    @classmethod
    def of(
        cls,
        train: Queries,
        valid: Queries | None,
        measure: Measure,
        objective: Measure,
        scale: str | None,
        backend: Backend,
    ) -> Self:
        """Prepare the queries for climbs of ``objective``, evaluated by ``measure``."""
        deviation = StandardScaling.fit(train, backend).deviation
        unit = deviation if scale == "standard" else (deviation > 0).astype(np.float64)
        evaluator = Evaluator.of(train, valid, measure, backend)
        climbed = evaluator.train
        if objective is not measure:
            climbed = Landscape.of(train, objective.for_training(), backend)
        return cls(climbed, evaluator, unit, train.n_docs, backend)

    def draw_starts(self, first: Floats | None, n: int, rng: np.random.Generator) -> Floats:
        """Return ``n`` starts: ``first``, or equal weights for None, and random ones, in units of the features."""
        drawn = np.concatenate([np.ones((1, len(self.unit))), rng.normal(size=(n - 1, len(self.unit)))])
        starts: Floats = drawn / np.where(self.unit > 0, self.unit, np.inf)
        if first is not None:
            starts[0] = first
        return starts


class KeptClimb(NamedTuple):
    """The result of several climbs: the weights of the best one, its history, and the history of all climbs."""

    coef: Floats
    steps: list[dict[str, Any]]
    history: list[dict[str, Any]]


def climb_from_starts(
    data: ClimbData,
    starts: Floats,
    rng: np.random.Generator,
    climb: Callable[[LandscapePoint, np.random.Generator], Iterable[list[AscentStep]]],
    objective: Callable[[LandscapePoint], float],
    deadline: Deadline,
) -> KeptClimb:
    """Climb from every start; return the weights best on validation queries, or else the end of the best climb.

    Parameters
    ----------
    data : ClimbData
        The landscapes.
    starts : array of shape (n_starts, n_features)
        The weights to begin with.
    rng : Generator
        Random numbers, of which every climb has its own.
    climb : callable
        Yields the steps of every round, from a point and with random numbers.
    objective : callable
        Returns the training objective of a point: climbs are compared by it if there are no validation queries.
    deadline : Deadline
        The time limit, whose listener hears of each step of each climb.
    """
    rngs = rng.spawn(len(starts))

    def run(restart: int) -> tuple[float, RoundRecorder[Floats]]:
        start, recorder = data.objective.evaluate(starts[restart]), RoundRecorder[Floats](deadline=deadline)
        recorder.make_scorer = lambda: Linear(recorder.model)

        def describe(step: AscentStep) -> dict[str, Any]:
            row: dict[str, Any] = {"restart": restart + 1, "round": step.round}
            if (column := step.column) is not None:
                row |= {"feature": column, "weight": float(step.coef[column]), "step": step.t}
            own = (
                step.value if data.objective is data.evaluator.train else data.evaluator.train.evaluate(step.coef).value
            )
            return row | {"loss": 1.0 - step.value, "train": own}

        record_climb(start, climb(start, rngs[restart]), data.evaluator.valid, recorder, describe)
        found = data.evaluator(recorder.model)  # as prediction will score, not step by step
        recorder.history[recorder.n_kept - 1] |= found
        return found["valid"] if "valid" in found else objective(data.objective.evaluate(recorder.model)), recorder

    runs = map_fits(data.backend, run, range(len(starts)), data.n_docs)
    finished = list(progress.track(runs, "restarts", len(starts)))
    best = max(range(len(starts)), key=lambda i: (finished[i][0], -i))
    history: list[dict[str, Any]] = []
    for i, (_, recorder) in enumerate(finished):
        rows = recorder.history
        history += recorder.finish() if i == best else [rows[at] for at in sorted({recorder.n_kept - 1, len(rows) - 1})]
    kept = finished[best][1]
    return KeptClimb(kept.model, kept.history, history)
