"""What the curves of figures 3 and 4 say, in numbers. Directions are theta / pi, within half a turn of 1/4."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from rankwright.basics.array_types import Floats
from rankwright.basics.progress import track
from rankwright.basics.randomness import make_generator
from rankwright.measures import Measure
from rankwright.papers.simulation.bounds.bounds_curves import (
    BASIC,
    ONE,
    QUARTER,
    SETS,
    STEPS,
    Curves,
    SimulatedDocuments,
    curves,
    draw,
)

N_SEEDS = 6
_FLAT = 1e-9  # values so near are equal
_UNIT = 2.0 / STEPS  # a step, as theta / pi


class Arc(NamedTuple):
    """A part of the circle, both ends included."""

    start: float
    end: float

    @property
    def distance(self) -> float:
        """The distance from the arc to pi / 4, in units of pi."""
        return max(self.start - 0.25, 0.25 - self.end, 0.0)


def nearest_arc(inside: NDArray[np.bool_]) -> Arc:
    """Return the arc nearest to pi / 4 of those on which a condition holds; NaN if there is none.

    >>> inside = np.zeros(STEPS, dtype=bool)
    >>> inside[[0, 1, 2, -1, 500]] = True
    >>> [round(float(end), 4) for end in nearest_arc(inside)]
    [-0.0028, 0.0056]
    """
    if inside.all() or not inside.any():
        end = 1.0 if inside.any() else np.nan
        return Arc(0.25 - end, 0.25 + end)
    steps = (np.arange(STEPS) - QUARTER + STEPS // 2) % STEPS - STEPS // 2  # from pi / 4
    row = min(np.flatnonzero(inside).tolist(), key=lambda i: abs(steps[i]))
    left = np.argmin(np.roll(inside[::-1], row + 1)) - 1  # steps that the arc goes on
    right = np.argmin(np.roll(inside, -row)) - 1
    return Arc(*(float(0.25 + step * _UNIT) for step in (steps[row] - left, steps[row] + right)))


class BoundFacts(NamedTuple):
    """The facts about one bound on one data set; those about type two bounds are NaN for the others."""

    minimum: float
    start: float  # of the arc on which it has its minimum; of several, the one nearest to pi / 4
    end: float
    distance: float  # of that arc from pi / 4, in pi
    at_quarter: float  # the bound at pi / 4
    basic: float  # the basic loss where the bound is least
    type_one: float  # the type one bound there
    below: float  # the share of the circle where it is below type one
    below_start: float  # the arc nearest to pi / 4 where it is
    below_end: float
    condition: float  # the share of the circle where condition (9) holds
    margin: float  # the largest left side of condition (9)


def facts(found: Curves) -> dict[str, BoundFacts]:
    """Return the facts by bound."""
    values = {name: column[:STEPS] for name, column in found.values.items()}
    return {name: _facts(name, values, found.margins) for name in values}


def _facts(name: str, values: Mapping[str, Floats], margins: Mapping[str, Floats]) -> BoundFacts:
    own = values[name]
    least = own.min()
    arc = nearest_arc(own <= least + _FLAT)
    there = round(float(np.clip(0.25, *arc)) / _UNIT) % STEPS
    below, below_arc, condition, margin = np.nan, Arc(np.nan, np.nan), np.nan, np.nan
    if name in margins:
        lower, left = own < values[ONE], margins[name][:STEPS]
        below, below_arc = lower.mean(), nearest_arc(lower)
        condition, margin = (left >= 1.0 - values[BASIC]).mean(), left.max()
    at = (own[QUARTER], values[BASIC][there], values[ONE][there])
    return BoundFacts(*map(float, (least, *arc, arc.distance, *at, below, *below_arc, condition, margin)))


class Sample(NamedTuple):
    """A data set that was drawn, its curves and their facts."""

    documents: SimulatedDocuments
    curves: Curves
    facts: Mapping[str, BoundFacts]


Samples = Mapping[int, tuple[Sample, ...]]  # by seed, a sample for each of SETS


def samples(measure: Measure, seed: int) -> Samples:
    """Draw both data sets with this seed and the next five."""
    seeds = range(seed, seed + N_SEEDS)
    return {each: _drawn(measure, each) for each in track(seeds, "seeds", N_SEEDS)}


def _drawn(measure: Measure, seed: int) -> tuple[Sample, ...]:
    rng = make_generator(seed)
    documents = [draw(each.variances, rng) for each in SETS]
    found = [curves(measure, each) for each in documents]
    return tuple(Sample(each, its, facts(its)) for each, its in zip(documents, found, strict=True))


def spread(samples: Samples, number: int, name: str) -> tuple[BoundFacts, BoundFacts]:
    """Return the lowest and the highest of each fact of a bound over the seeds; ``number`` is the data set's."""
    rows = np.array([each[number - 1].facts[name] for each in samples.values()])
    return BoundFacts(*rows.min(axis=0).tolist()), BoundFacts(*rows.max(axis=0).tolist())
