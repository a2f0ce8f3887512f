"""Ascent: climbing a landscape one weight at a time, by exact line searches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.measures import PreparedMeasure
from rankwright.measures.jumps import SearchStoppedError
from rankwright.optimisers.columns import Direction, MatrixColumns
from rankwright.optimisers.landscape import Landscape, LandscapePoint
from rankwright.optimisers.line_search import LineSearchResult, MidpointStep, StepChoice, search_line
from rankwright.optimisers.prior_penalty import PriorPenalty
from rankwright.optimisers.rounds import RoundRecorder, Stop
from rankwright.runtime.backends import Backend

_SLACK = 1e-12


@dataclass(frozen=True, slots=True, eq=False)
class ClimbRules:
    """The rules of a climb: its limits, its tolerance, and how the step inside an interval is chosen.

    Parameters
    ----------
    tol : float
        The least gain that is a gain, of a measure whose values go up to 1.
    max_rounds : int
        The most rounds.
    least : float
        No weight goes below this: minus infinity, or 0.
    choice : StepChoice
        Chooses a step within the best interval.
    penalty : PriorPenalty, optional
        What is taken off the measure.
    stop : callable, optional
        Whether to end the climb.
    """

    tol: float = _SLACK
    max_rounds: int = 1000
    least: float = -np.inf
    choice: StepChoice = field(default_factory=MidpointStep)
    penalty: PriorPenalty | None = None
    stop: Stop | None = None

    def objective(self, point: LandscapePoint) -> float:
        """Return the objective at a point: the measure, less the penalty."""
        return point.value - (0.0 if self.penalty is None else self.penalty(point.coef))

    def should_stop(self) -> bool:
        """Return whether the climb ends here."""
        return self.stop is not None and self.stop()

    def search(self, landscape: Landscape, point: LandscapePoint, direction: Direction) -> LineSearchResult | None:
        """Return the best step along a direction, if it gains anything and is found before ``stop`` ends the search."""
        low, high = _limit_step(point.coef, direction, self.least)
        beat = self.objective(point) + self.tol * landscape.max_value
        rules: dict[str, Any] = {"choice": self.choice, "penalty": self.penalty, "stop": self.stop}
        try:
            found = search_line(landscape, point, direction, low=low, high=high, beat=beat, **rules)
        except SearchStoppedError:
            return None
        return found if found is not None and self.objective(found.point) > beat else None


@dataclass(frozen=True, slots=True, eq=False)
class AscentStep:
    """An accepted step of a climb: its round, direction and length, and the weights and the measure after it."""

    round: int
    direction: Direction
    t: float
    coef: Floats
    value: float

    @property
    def column(self) -> int | None:
        """The one column along which it went; None if it was along several."""
        if isinstance(self.direction, int):
            return self.direction
        moved = np.flatnonzero(self.direction)
        return int(moved[0]) if len(moved) == 1 else None


def record_climb(
    start: LandscapePoint,
    climb: Iterable[list[AscentStep]],
    valid: Landscape | None,
    recorder: RoundRecorder[Floats],
    describe: Callable[[AscentStep], dict[str, Any]],
) -> None:
    """Record the start and every step of a climb in ``recorder``, with the measure on validation queries if any.

    ``describe`` makes a row of the history of a step; the start is a step of length 0 in round 0.
    """
    here = None if valid is None else valid.evaluate(start.coef)
    first = AscentStep(0, np.zeros(len(start.coef)), 0.0, start.coef, start.value)
    for step in chain([first], chain.from_iterable(climb)):
        if valid is not None and here is not None and step is not first:
            here = valid.step(here, step.direction, step.t)
        recorder.record(step.coef, describe(step) | ({} if here is None else {"valid": here.value}))


Climb = Callable[[Landscape, LandscapePoint, "ClimbRules", np.random.Generator], Iterator[list[AscentStep]]]


def climb_cyclic(
    landscape: Landscape, start: LandscapePoint, rules: ClimbRules, rng: np.random.Generator
) -> Iterator[list[AscentStep]]:
    """Climb one weight after another, in a new order each round, until a round changes nothing; yield its steps."""
    return _climb(landscape, start, rules, rng, _cycle)


def climb_powell(
    landscape: Landscape, start: LandscapePoint, rules: ClimbRules, rng: np.random.Generator
) -> Iterator[list[AscentStep]]:
    """Climb as ``climb_cyclic``, and after each round also along the sum of its steps (Powell); yield the steps."""
    return _climb(landscape, start, rules, rng, _cycle_and_beyond)


def climb_greedy(
    landscape: Landscape, start: LandscapePoint, rules: ClimbRules, rng: np.random.Generator
) -> Iterator[list[AscentStep]]:
    """Climb by the one weight whose best step gains most, round by round, until none gains; yield the steps."""
    return _climb(landscape, start, rules, rng, _choose_best_column)


_Round = Callable[
    [Landscape, LandscapePoint, ClimbRules, list[int], set[int]], Iterator[tuple[Direction, LineSearchResult]]
]


def _climb(
    landscape: Landscape, start: LandscapePoint, rules: ClimbRules, rng: np.random.Generator, play: _Round
) -> Iterator[list[AscentStep]]:
    """Climb in rounds, each made by ``play``, until one changes nothing; yield the steps of each round.

    On large data the scores are updated step by step; after a round they are computed anew. Should the measure then
    differ, for documents that tie but for rounding, the round is repeated with scores computed anew at every step.
    """
    point, number = start, 1
    exhausted: set[int] = set()  # columns along which there is nothing to gain from the present point
    while number <= rules.max_rounds:
        steps, reached = [], point
        for direction, found in play(landscape, point, rules, rng.permutation(landscape.n_columns).tolist(), exhausted):
            reached = found.point
            steps.append(AscentStep(number, direction, found.t, reached.coef, reached.value))
        anew = landscape.rescore(reached)
        if abs(anew.value - reached.value) > _SLACK * landscape.max_value:
            landscape = landscape.with_exact_steps()
            point = landscape.evaluate(point.coef)
            exhausted.clear()
            continue
        point = anew
        if steps:
            yield steps
        if not steps or rules.should_stop():
            return
        number += 1


def _cycle(
    landscape: Landscape, point: LandscapePoint, rules: ClimbRules, columns: list[int], exhausted: set[int]
) -> Iterator[tuple[Direction, LineSearchResult]]:
    """Search along one column after another; yield each column whose search gained, with its result."""
    for column in columns:
        if rules.should_stop():
            return
        if column in exhausted:
            continue
        found = rules.search(landscape, point, column)
        if found is not None:
            point = found.point
            exhausted.clear()
            yield column, found
        exhausted.add(column)


def _cycle_and_beyond(
    landscape: Landscape, point: LandscapePoint, rules: ClimbRules, columns: list[int], exhausted: set[int]
) -> Iterator[tuple[Direction, LineSearchResult]]:
    """Search along the columns as ``_cycle``, then along the sum of their steps; yield what gained."""
    reached, steps = point, 0
    for direction, found in _cycle(landscape, point, rules, columns, exhausted):
        reached, steps = found.point, steps + 1
        yield direction, found
    if steps > 1 and not rules.should_stop():
        way = reached.coef - point.coef
        beyond = rules.search(landscape, reached, way)
        if beyond is not None:
            exhausted.clear()
            yield way, beyond


def _choose_best_column(
    landscape: Landscape, point: LandscapePoint, rules: ClimbRules, columns: list[int], exhausted: set[int]
) -> Iterator[tuple[Direction, LineSearchResult]]:
    """Search along every column from the same point; yield the one that gains most, if any gains."""
    best: tuple[float, int, LineSearchResult] | None = None
    for column in sorted(columns):
        if rules.should_stop():
            break
        found = rules.search(landscape, point, column)
        if found is not None and (best is None or rules.objective(found.point) > best[0] + _SLACK):
            best = rules.objective(found.point), column, found
    if best is not None:
        yield best[1], best[2]


@dataclass(frozen=True, slots=True, eq=False)
class Perturbation:
    """The number and the size of random changes of the weights; a climb restarts after each of them.

    Parameters
    ----------
    n : int
        The number of perturbations.
    size : float
        The length of a perturbation, as a share of the length of the weights.
    unit : array of shape (n_columns,)
        The factors of the weights, so that columns of any scale are perturbed alike; 0 leaves a column as it is.
    """

    n: int
    size: float
    unit: Floats

    def apply(self, coef: Floats, rng: np.random.Generator) -> Floats:
        """Return weights that differ by about ``size``."""
        length = float(np.linalg.norm(coef * self.unit)) or 1.0
        hit = self.unit > 0
        noise = rng.normal(size=len(coef)) * (self.size * length / np.sqrt(max(int(hit.sum()), 1)))
        blown: Floats = coef + np.divide(noise, self.unit, out=np.zeros(len(coef)), where=hit)
        return blown


def climb_with_perturbations(
    landscape: Landscape,
    start: LandscapePoint,
    rules: ClimbRules,
    rng: np.random.Generator,
    climb: Climb,
    perturbation: Perturbation,
) -> Iterator[list[AscentStep]]:
    """Climb, then climb again from randomly changed weights, keeping the end if it is higher; yield the steps.

    What a restart gained is one step, so the measure never decreases along the steps.
    """
    coef, number = start.coef, 0
    for steps in climb(landscape, start, rules, rng):
        coef, number = steps[-1].coef, steps[-1].round
        yield steps
    point = landscape.evaluate(coef)
    for _ in range(perturbation.n):
        if rules.should_stop():
            return
        reached = landscape.evaluate(np.maximum(perturbation.apply(point.coef, rng), rules.least))
        for steps in climb(landscape, reached, rules, rng):
            reached = landscape.evaluate(steps[-1].coef)
        if rules.objective(reached) > rules.objective(point) + rules.tol:
            number += 1
            yield [AscentStep(number, reached.coef - point.coef, 1.0, reached.coef, reached.value)]
            point = reached


def _limit_step(coef: Floats, direction: Direction, least: float) -> tuple[float, float]:
    """Return the least and the greatest step along a direction that leave no weight below ``least``."""
    if least == -np.inf:
        return -np.inf, np.inf
    if isinstance(direction, int):
        return min(least - float(coef[direction]), 0.0), np.inf
    with np.errstate(divide="ignore", invalid="ignore"):
        reach = (least - coef) / direction
    low = float(np.max(reach[direction > 0], initial=-np.inf))
    high = float(np.min(reach[direction < 0], initial=np.inf))
    return min(low, 0.0), max(high, 0.0)


def find_best_weights(
    X: Floats, prepared: PreparedMeasure, query_weight: Floats, *, starts: Floats, nonnegative: bool, backend: Backend
) -> tuple[Floats, float]:
    """Climb from several starts; return the weights of the columns with the highest mean measure, and that measure.

    ``X`` has a row for each document of the prepared measure; no weight goes below 0 if ``nonnegative``.
    """
    landscape = Landscape.of_prepared(MatrixColumns(X), prepared, query_weight, backend)
    rules = ClimbRules(least=0.0 if nonnegative else -np.inf)
    coef, value = starts[0], -np.inf
    for start in starts:
        reached = landscape.evaluate(start)
        for steps in climb_cyclic(landscape, reached, rules, np.random.default_rng(0)):
            reached = landscape.evaluate(steps[-1].coef)
        if reached.value > value + _SLACK:
            coef, value = reached.coef, reached.value
    return coef, value
