"""CoordinateAscent: Metzler and Croft's search along one weight at a time, in growing steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from operator import attrgetter
from typing import final

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import Basic, UpperBound
from rankwright.optimisers.ascent import AscentStep
from rankwright.optimisers.landscape import Landscape, LandscapePoint
from rankwright.optimisers.rounds import Deadline, Stop
from rankwright.rankers.base import FitResult
from rankwright.rankers.exact.restarts import ClimbData, RestartingRanker, climb_from_starts
from rankwright.rankers.input_checks import check_number, check_whole
from rankwright.rankers.listwise.regression import fit_regression_weights
from rankwright.runtime.backends import Backend
from rankwright.scorers import Linear

_FIRST_STEP = 0.001
_RELATIVE_STEP = 0.05
_LEAST_GAIN = 1e-12


@final
@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateAscent(RestartingRanker):
    """CoordinateAscent: a linear scorer that climbs the measure by trial steps of one weight at a time.

    Each weight in turn, in random order, is tried at steps of 0.001, 0.003, 0.007, ... (doubling; of a small weight
    0.05 of it) upwards, else downwards, else at 0, and takes the best value if the measure gains; then the weights are
    divided by the sum of their absolute values. A climb ends when a round gains less than ``tol``.

    Parameters
    ----------
    max_iter : int
        The largest number of trial steps of a weight in one direction.
    tol : float
        The smallest gain of a round after which another follows.

    Attributes
    ----------
    history_ : list of dict
        As DirectRank's; a step moves all weights, as they are normalised, so it names no feature.

    Notes
    -----
    D. Metzler, W. B. Croft, *Linear feature-based models for information retrieval* (2007), with the schedule of steps,
    the tolerance and the normalisation of RankLib, whose figures Tan et al. report. One deviation: the measure at all
    trial steps of a weight is read off its exact profile along that weight, which costs one search instead of a ranking
    of all documents for every trial.

    Examples
    --------
    >>> from rankwright import make_queries
    >>> queries = make_queries(30, random_state=0)
    >>> ranker = CoordinateAscent(measure="map", n_restarts=2).fit(queries)
    >>> abs(max(record["train"] for record in ranker.history_) - ranker.score(queries)) < 1e-12
    True
    """

    start: str = "equal"
    max_iter: int = 25
    tol: float = 0.001

    def _fit(self, train: Queries, valid: Queries | None, measure: Measure, backend: Backend) -> FitResult:
        check_whole("max_iter", self.max_iter, least=1)
        check_number("tol", self.tol, least=0.0)
        self._check_starts()
        deadline, rng = Deadline(self.max_seconds), make_generator(self.random_state)
        data = ClimbData.of(train, valid, measure, measure, self.scale, backend)
        first = fit_regression_weights(train, backend) if self.start == "regression" else None
        starts = data.draw_starts(first, self.n_restarts, rng)
        sums = np.abs(starts * data.unit).sum(axis=1, keepdims=True)

        def climb(start: LandscapePoint, rng: np.random.Generator) -> Iterator[list[AscentStep]]:
            return _climb_by_trials(data.objective, start, data.unit, self.max_iter, self.tol, deadline, rng)

        starts = starts / np.where(sums > 0.0, sums, 1.0)
        kept = climb_from_starts(data, starts, rng, climb, attrgetter("value"), deadline)
        return FitResult(Linear(kept.coef), kept.history, deadline.explain())

    def find_minimised_bound(self, measure: Measure) -> UpperBound:
        """Return the loss itself: the measure is climbed directly."""
        return Basic(measure.for_training())


def _climb_by_trials(
    landscape: Landscape,
    point: LandscapePoint,
    unit: Floats,
    n_trials: int,
    tol: float,
    stop: Stop,
    rng: np.random.Generator,
) -> Iterator[list[AscentStep]]:
    """Try steps of every weight in turn, until a round gains less than ``tol``; yield the steps of each round."""
    columns = np.flatnonzero(unit > 0)
    number, fails, most_fails = 0, 0, max(len(columns) - 1, 1)
    while len(columns) > 0 and fails < most_fails and not stop():
        number, steps, before = number + 1, [], point.value
        for column in rng.permutation(columns).tolist():
            if stop():
                break
            reached = _try_weight(landscape, point, column, unit, n_trials)
            fails = 0 if reached is not None else fails + 1
            if reached is not None:
                steps.append(AscentStep(number, reached.coef - point.coef, 1.0, reached.coef, reached.value))
                point = reached
            if fails >= most_fails:
                break
        if steps:
            yield steps
        if not steps or point.value - before < tol:
            return


def _try_weight(
    landscape: Landscape, point: LandscapePoint, column: int, units: Floats, n_trials: int
) -> LandscapePoint | None:
    """Return the weights, normalised, after the best trial step of one weight; None if no trial gains."""
    unit = float(units[column])
    profile = landscape.profile(point, column)
    weight = float(point.coef[column]) * unit
    first = _FIRST_STEP if weight == 0.0 or abs(weight) >= 2 * _FIRST_STEP else _RELATIVE_STEP * abs(weight)
    steps = first * (2.0 ** np.arange(1, n_trials + 1) - 1.0)
    for trials in (steps, -steps, np.array([-weight])):
        values = profile(trials / unit)
        best = int(np.argmax(values))
        if values[best] > point.value + _LEAST_GAIN:
            coef = point.coef.copy()
            coef[column] += trials[best] / unit
            total = float(np.abs(coef * units).sum())
            if total == 0.0:
                continue
            reached = landscape.evaluate(coef / total)
            if reached.value > point.value:  # a trial may be a tie, which the profile passes over
                return reached
    return None
