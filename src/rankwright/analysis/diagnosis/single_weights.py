"""The gain of the measure from changing one weight of a linear scorer alone, by exact line searches."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rankwright.basics.array_types import Floats
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.landscape import Landscape
from rankwright.optimisers.line_search import search_line
from rankwright.runtime.backends import Backend

MAX_CROSSINGS = 1_000_000  # of a measure that only Python can compute


@dataclass(frozen=True, slots=True, eq=False)
class SingleWeightGains:
    """The gain in the measure from the best other value of each weight, while all other weights stay.

    Parameters
    ----------
    features : tuple of str
        Their names, or their numbers from 1.
    coef : array of shape (n_features,)
        The weights.
    to : array of shape (n_features,)
        The best value of each alone; its own where no other is better.
    gain : array of shape (n_features,)
        The gain of the mean measure, ties broken pessimistically.
    highest : float
        No value of the measure is above this: 1, or more for a measure that is not bounded.
    """

    features: tuple[str, ...]
    coef: Floats
    to: Floats
    gain: Floats
    highest: float

    @property
    def best(self) -> int:
        """The weight that would gain most."""
        return int(np.argmax(self.gain))

    def with_best_change(self) -> Floats:
        """Return the weights with the best one changed."""
        coef = self.coef.copy()
        coef[self.best] = self.to[self.best]
        return coef


def search_single_weights(
    queries: Queries, coef: Floats, measure: Measure, names: tuple[str, ...], backend: Backend
) -> SingleWeightGains | None:
    """Search for the best value of each weight alone, and return the gains; None where it would take too long.

    ``queries`` are scaled as the weights expect them.
    """
    if _count_crossings(queries, measure) > MAX_CROSSINGS:
        return None
    landscape = Landscape.of(queries, measure.for_training(), backend)
    if not landscape.total_weight > 0:
        return None
    point = landscape.evaluate(coef)
    to, gain = coef.copy(), np.zeros(len(coef))
    for column in range(len(coef)):
        found = search_line(landscape, point, column, beat=point.value)
        if found is not None:
            value = landscape.rescore(found.point).value  # large data are updated step by step
            to[column], gain[column] = found.point.coef[column], max(value - point.value, 0.0)
    return SingleWeightGains(names, coef, to, gain, landscape.max_value)


def _count_crossings(queries: Queries, measure: Measure) -> int:
    """Return an estimate of how often a measure that is a user's function would be called by the search."""
    if measure.has_arrays:
        return 0
    return int((queries.sizes * (queries.sizes - 1) // 2).sum()) * queries.n_features
