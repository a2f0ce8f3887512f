"""Step choices: the step inside the best interval of a line, where the measure itself is the same everywhere."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from rankwright.basics.array_types import Floats, Ints
from rankwright.kernels.optimisers.likelihood import compute_likelihood_slope
from rankwright.optimisers.columns import Direction
from rankwright.optimisers.landscape import Landscape, LandscapePoint, MeasureShard, RankedShard

MARGIN = 0.05  # the least distance of a step from the ends of its interval, relative to its width
_BISECTIONS = 12


class StepChoice(ABC):
    """A rule that chooses a step between the ends of an interval."""

    __slots__ = ()

    @abstractmethod
    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return a step between two finite ends."""


@dataclass(frozen=True, slots=True)
class MidpointStep(StepChoice):
    """The midpoint of the interval: as far as possible from any change."""

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return the midpoint."""
        return low + (high - low) / 2


@dataclass(frozen=True, slots=True)
class MaximumLikelihoodStep(StepChoice):
    """The step of the highest Plackett-Luce likelihood of the label order (Tan et al., section 2.3).

    Parameters
    ----------
    k : int
        The number of positions of the label order that count.
    """

    k: int

    def __call__(
        self, landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float
    ) -> float:
        """Return the most likely step that is a little inside of the ends."""
        margin = MARGIN * (high - low)
        return find_likeliest(landscape, point, direction, low + margin, high - margin, self.k)


def find_likeliest(
    landscape: Landscape, point: LandscapePoint, direction: Direction, low: float, high: float, k: int
) -> float:
    """Return the t between two ends of the highest Plackett-Luce likelihood of the label order, by bisection.

    The log likelihood is concave, so its derivative changes its sign once.
    """
    backend = landscape.backend
    lines = backend.apply(_label_lines, point.shards, direction)
    if len(lines) == 1:  # one call where the shard is, instead of one for each bisection
        return backend.gather(_find_likeliest_alone, lines, low, high, k)[0]
    return _bisect(lambda t: float(backend.sum(_differentiate_likelihood, lines, k, t)), low, high)


def _bisect(derivative: Callable[[float], float], low: float, high: float) -> float:
    for _ in range(_BISECTIONS):
        middle = (low + high) / 2
        if derivative(middle) > 0.0:
            low = middle
        else:
            high = middle
    return (low + high) / 2


class _LabelledLines(NamedTuple):
    """The scores of a shard along a line, with the documents sorted by grade."""

    shard: MeasureShard
    by_grade: Ints
    scores: Floats
    slopes: Floats


def _label_lines(ranked: RankedShard, direction: Direction) -> _LabelledLines:
    shard = ranked.shard
    query = np.repeat(np.arange(len(shard.weight)), np.diff(shard.measure.indptr))
    X, column = shard.columns.line(direction)
    slopes = X[:, column].astype(np.float64)
    return _LabelledLines(shard, np.lexsort((shard.measure.tie_keys, query)), ranked.scores, slopes)


def _differentiate_likelihood(lines: _LabelledLines, k: int, t: float) -> float:
    measure, weight = lines.shard.measure, lines.shard.weight
    return compute_likelihood_slope(
        lines.by_grade, measure.tie_keys, lines.scores, lines.slopes, weight, measure.indptr, k, t
    )


def _find_likeliest_alone(lines: _LabelledLines, low: float, high: float, k: int) -> float:
    return _bisect(lambda t: _differentiate_likelihood(lines, k, t), low, high)
