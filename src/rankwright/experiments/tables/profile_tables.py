"""Profiles: what a measure would be if one weight of a linear model were another."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.optimisers.landscape import Landscape
from rankwright.runtime.backends import Serial

MOST_PROFILES = 12  # weights of a model
_EVENLY, _AMONG_JUMPS = 81, 80  # places where a profile is read


def profiles_table(fold: Fold, coef: Floats, spread: Floats, measure: Measure, names: NDArray[Any]) -> Table | None:
    """The exact measure of a fold's three parts along the weights of the largest effect, each in turn.

    ``at`` are effects that a feature might have, all others staying as they are, and ``effect`` is the one it has; 0
    and its own are among them. Ties count as in training. None if no feature has any effect.

    Parameters
    ----------
    fold : Fold
        The queries, scaled as the weights expect them.
    coef : array of shape (n_features,)
        The weights.
    spread : array of shape (n_features,)
        The deviation of each feature: its weight times this is its effect.
    measure : Measure
        What is measured.
    names : array of shape (n_features,)
        What the features are called.
    """
    effects = coef * spread
    largest = np.argsort(-np.abs(effects), kind="stable")[:MOST_PROFILES]
    columns = largest[effects[largest] != 0.0]
    if len(columns) == 0:
        return None
    train, valid, test = (_around(part, coef, spread, measure.for_training()) for part in fold)
    assert train is not None  # or else there would be no weights
    typical = float(np.median(np.abs(effects[columns])))
    lines = {column: train.places(column, typical) for column in columns.tolist()}
    sizes = [len(at) for at in lines.values()]
    return {
        "feature": np.repeat(names[columns], sizes),
        "effect": np.repeat(effects[columns], sizes),
        "at": np.concatenate([*lines.values()]),
        "train": np.concatenate([train.values(column, at) for column, at in lines.items()]),
        "valid": _all_values(valid, lines),
        "test": _all_values(test, lines),
        "measure": np.full(sum(sizes), str(measure)),
    }


class _Around:
    """The surroundings of some weights: the measure where one of them is another."""

    def __init__(self, landscape: Landscape, coef: Floats, spread: Floats) -> None:
        self.landscape, self.spread = landscape, spread
        self.point = landscape.at(coef)

    def places(self, column: int, typical: float) -> Floats:
        """Where to read a profile: evenly, where the measure jumps, at 0 and at the feature's own effect.

        It reaches as far beyond these two as they are apart, but at least as far as a typical effect.
        """
        own = self._effect(column)
        margin = max(abs(own), typical)
        low, high = min(own, 0.0) - margin, max(own, 0.0) + margin
        first, last = self._steps(column, np.array([low, high])).tolist()
        jumps = np.unique(self.landscape.profile(self.point, column, first, last).times)
        between = (jumps[1:] + jumps[:-1]) / 2
        some = np.linspace(0, len(between) - 1, min(len(between), _AMONG_JUMPS)).astype(np.intp)
        among = (self.point.coef[column] + between[some]) * self.spread[column]
        return np.unique(np.concatenate([np.linspace(low, high, _EVENLY), np.clip(among, low, high), [0.0, own]]))

    def values(self, column: int, at: Floats) -> Floats:
        """The measure where this feature has these effects, in ascending order."""
        steps = self._steps(column, at)
        values = self.landscape.profile(self.point, column, float(steps[0]), float(steps[-1]))(steps)
        without = self.point.coef.copy()
        without[column] = 0.0
        # here documents may tie, and a profile knows the measure between its jumps only
        values[at == 0.0] = self.landscape.at(without).value
        values[at == self._effect(column)] = self.point.value
        return values

    def _effect(self, column: int) -> float:
        return float(self.point.coef[column] * self.spread[column])

    def _steps(self, column: int, at: Floats) -> Floats:
        steps: Floats = (at - self._effect(column)) / self.spread[column]
        return steps


def _around(queries: Queries, coef: Floats, spread: Floats, measure: Measure) -> _Around | None:
    """The surroundings of weights on these queries; None where the measure has no value on them."""
    try:
        landscape = Landscape.of(queries, measure, Serial())
    except InputError:  # a grade that training did not have, and that the measure does not allow
        return None
    return _Around(landscape, coef, spread) if landscape.total_weight > 0 else None


def _all_values(around: _Around | None, lines: dict[int, Floats]) -> Floats:
    if around is None:
        return np.full(sum(map(len, lines.values())), np.nan)
    return np.concatenate([around.values(column, at) for column, at in lines.items()])
