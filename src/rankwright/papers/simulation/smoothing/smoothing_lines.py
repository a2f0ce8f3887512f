"""Figure 1 of Chapelle and Wu: the smooth measure along lines through SmoothRank's solution, and the measure itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.basics.progress import track
from rankwright.basics.randomness import make_generator
from rankwright.data.queries import Queries
from rankwright.measures import Measure, parse_measure
from rankwright.objectives.smooth_objectives import smooth_measure
from rankwright.optimisers.landscape import Landscape, MeasureProfile
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.runtime.backends import Backend, resolve
from rankwright.scorers.scaling import StandardScaling

SIGMAS = (64.0, 4.0, 1.0, 2.0**-2, 2.0**-4, 2.0**-6, 2.0**-10)  # the last is below where annealing ends
TRUE = 0.0  # the sigma of the measure itself
DIRECTIONS = 3
STEPS = 400  # of a line
_WIDE, _CLOSE = 20.0, 2.0  # the end of a line, where a weight of w* is 1 (root mean square)


class LineView(NamedTuple):
    """A view of figure 1: its queries, its direction, and its range."""

    queries: str  # "mean" of all training queries, or "one query"
    direction: int  # 1, 2, ...
    range: str  # "wide" or "close"


class SmoothedLine(NamedTuple):
    """The measures at w* + t w_rand."""

    t: Floats
    values: Mapping[float, Floats]  # by sigma; TRUE is the measure
    profile: MeasureProfile  # of the measure: every jump


def draw_lines(train: Queries, measure: Measure, coef: Floats, seed: int) -> dict[LineView, SmoothedLine]:
    """Compute the lines of all views: the mean over the queries, and one query; ``coef`` is w* in raw units."""
    standard = StandardScaling.fit(train)
    # w_rand has unit variance on each component of the weights of scaled features
    drawn = make_generator(seed).standard_normal((DIRECTIONS, len(coef))) * standard.factor
    reaches = dict(zip(("wide", "close"), reach(coef * standard.deviation), strict=True))
    views = [LineView("mean", i + 1, name) for i in range(DIRECTIONS) for name in reaches]
    views += [LineView("one query", 1, name) for name in reaches]
    richest = train.take([int(np.argmax(np.add.reduceat(train.y > 0, train.indptr[:-1])))])
    return {
        view: draw_line(
            train if view.queries == "mean" else richest,
            measure,
            coef,
            drawn[view.direction - 1],
            reaches[view.range],
        )
        for view in track(views, "lines", len(views))
    }


def reach(w: Floats) -> tuple[float, float]:
    """Return two ranges around the weights: wide, where w_rand outweighs them, and close; rounded to a digit."""
    size = float(np.sqrt(np.mean(w**2))) or 1.0
    far, near = (float(f"{times * size:.0e}") for times in (_WIDE, _CLOSE))
    return far, near


def draw_line(
    queries: Queries, measure: Measure, coef: Floats, way: Floats, end: float, backend: Backend | None = None
) -> SmoothedLine:
    """Return the measures from -end to end."""
    backend = resolve(backend)
    objective = smooth_measure(measure, SIGMAS[0])
    target = parse_measure(objective.measure)
    landscape = Landscape.of(queries, target, backend)
    t = np.arange(-STEPS // 2, STEPS // 2 + 1) * (2.0 * end / STEPS)
    profile = landscape.profile(landscape.evaluate(coef), way, -end, end)
    shards, ones = backend.scatter(queries), np.ones(len(coef))
    risk = LinearRisk(objective, shards, ones, landscape.total_weight, backend)
    values = {sigma: _smooth(risk.with_sigma(sigma), coef, way, t) for sigma in SIGMAS}
    return SmoothedLine(t, values | {TRUE: profile(t)}, profile)


def _smooth(risk: LinearRisk, coef: Floats, way: Floats, t: Floats) -> Floats:
    here, there = risk.evaluate(coef), risk.evaluate(coef + way)
    return np.array([1.0 - risk.loss(risk.interpolate(here, there, float(each))) for each in t])
