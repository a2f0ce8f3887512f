"""CoordinateAscent: Metzler and Croft's search along one weight at a time, in growing steps."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from time import monotonic
from typing import final

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.ascent import AscentStep
from rankwright.optimisers.landscape import LandscapePoint
from rankwright.rankers.base import FitResult
from rankwright.rankers.exact.restarts import Restarting, Task
from rankwright.rankers.parameter_checks import check_number, check_whole
from rankwright.runtime.backends import Backend

_FIRST_STEP = 0.001
_RELATIVE_STEP = 0.05
_LEAST_GAIN = 1e-12


@final
@dataclass(kw_only=True, eq=False, repr=False)
class CoordinateAscent(Restarting):
    """Coordinate ascent with trial steps: the baseline of exact line searches.

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
        return super()._fit(train, valid, measure, backend)

    def _prepared(self, start: Floats, task: Task) -> Floats:
        return start / (float(np.abs(start * task.unit).sum()) or 1.0)

    def _climb(self, task: Task, start: LandscapePoint, rng: np.random.Generator) -> Iterator[list[AscentStep]]:
        columns = np.flatnonzero(task.unit > 0)
        point, number, fails = start, 0, 0
        while len(columns) > 0 and fails < max(len(columns) - 1, 1) and monotonic() < task.deadline:
            number, steps, before = number + 1, [], point.value
            for column in rng.permutation(columns).tolist():
                if monotonic() >= task.deadline:
                    break
                reached = self._try(task, point, column)
                fails = 0 if reached is not None else fails + 1
                if reached is not None:
                    steps.append(AscentStep(number, reached.coef - point.coef, 1.0, reached.coef, reached.value))
                    point = reached
                if fails >= max(len(columns) - 1, 1):
                    break
            if steps:
                yield steps
            if not steps or point.value - before < self.tol:
                return

    def _try(self, task: Task, point: LandscapePoint, column: int) -> LandscapePoint | None:
        """The point of the best trial of one weight, normalised; None if no trial gains."""
        landscape, unit = task.landscape, float(task.unit[column])
        profile = landscape.profile(point, column)
        weight = float(point.coef[column]) * unit
        first = _FIRST_STEP if weight == 0.0 or abs(weight) >= 2 * _FIRST_STEP else _RELATIVE_STEP * abs(weight)
        steps = first * (2.0 ** np.arange(1, self.max_iter + 1) - 1.0)
        for trials in (steps, -steps, np.array([-weight])):
            values = profile(trials / unit)
            best = int(np.argmax(values))
            if values[best] > point.value + _LEAST_GAIN:
                coef = point.coef.copy()
                coef[column] += trials[best] / unit
                total = float(np.abs(coef * task.unit).sum())
                if total == 0.0:
                    continue
                reached = landscape.at(coef / total)
                if reached.value > point.value:  # a trial may be a tie, which the profile passes over
                    return reached
        return None
