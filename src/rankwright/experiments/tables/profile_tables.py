"""The table of profiles: the measure as a function of one weight of a linear model."""

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

MOST_PROFILES = 12  # weights per model
_EVENLY, _AMONG_JUMPS = 81, 80  # points at which a profile is evaluated


def make_profiles_table(
    fold: Fold, coef: Floats, deviations: Floats, measure: Measure, names: NDArray[Any]
) -> Table | None:
    """Return a table of the measure as a function of single weights, those of the largest effect, for each part.

    ``effect`` is the effect of a feature, ``at`` are other effects that it might have while all other features keep
    theirs; 0 and ``effect`` are among them. Ties count as in training. None if no feature has any effect.

    Parameters
    ----------
    fold : Fold
        The queries, scaled as the weights expect them.
    coef : array of shape (n_features,)
        The weights.
    deviations : array of shape (n_features,)
        The standard deviation of each feature: its weight times this is its effect.
    measure : Measure
        The measure.
    names : array of shape (n_features,)
        The names of the features.
    """
    effects = coef * deviations
    largest = np.argsort(-np.abs(effects), kind="stable")[:MOST_PROFILES]
    columns = largest[effects[largest] != 0.0]
    if len(columns) == 0:
        return None
    train, valid, test = (_make_profiles(part, coef, deviations, measure.for_training()) for part in fold)
    assert train is not None  # the model was trained on these queries
    typical = float(np.median(np.abs(effects[columns])))
    lines = {column: train.choose_points(column, typical) for column in columns.tolist()}
    sizes = [len(at) for at in lines.values()]
    return {
        "feature": np.repeat(names[columns], sizes),
        "effect": np.repeat(effects[columns], sizes),
        "at": np.concatenate([*lines.values()]),
        "train": np.concatenate([train.evaluate(column, at) for column, at in lines.items()]),
        "valid": _evaluate_all(valid, lines),
        "test": _evaluate_all(test, lines),
        "measure": np.full(sum(sizes), str(measure)),
    }


class _WeightProfiles:
    """The measure on some queries as a function of each single weight of a linear model."""

    def __init__(self, landscape: Landscape, coef: Floats, deviations: Floats) -> None:
        self.landscape, self.deviations = landscape, deviations
        self.point = landscape.evaluate(coef)

    def choose_points(self, column: int, typical: float) -> Floats:
        """Return the effects at which to evaluate a profile: evenly spaced, between jumps, at 0 and at its own.

        They reach as far beyond the last two as these are apart, but at least as far as a typical effect.
        """
        own = self._effect(column)
        margin = max(abs(own), typical)
        low, high = min(own, 0.0) - margin, max(own, 0.0) + margin
        first, last = self._steps(column, np.array([low, high])).tolist()
        jumps = np.unique(self.landscape.profile(self.point, column, first, last).times)
        between = (jumps[1:] + jumps[:-1]) / 2
        some = np.linspace(0, len(between) - 1, min(len(between), _AMONG_JUMPS)).astype(np.intp)
        among = (self.point.coef[column] + between[some]) * self.deviations[column]
        return np.unique(np.concatenate([np.linspace(low, high, _EVENLY), np.clip(among, low, high), [0.0, own]]))

    def evaluate(self, column: int, at: Floats) -> Floats:
        """Return the measure where a feature has these effects, which are in ascending order."""
        steps = self._steps(column, at)
        values = self.landscape.profile(self.point, column, float(steps[0]), float(steps[-1]))(steps)
        without = self.point.coef.copy()
        without[column] = 0.0
        # documents may tie here, and a profile has the measure between its jumps only
        values[at == 0.0] = self.landscape.evaluate(without).value
        values[at == self._effect(column)] = self.point.value
        return values

    def _effect(self, column: int) -> float:
        return float(self.point.coef[column] * self.deviations[column])

    def _steps(self, column: int, at: Floats) -> Floats:
        steps: Floats = (at - self._effect(column)) / self.deviations[column]
        return steps


def _make_profiles(queries: Queries, coef: Floats, deviations: Floats, measure: Measure) -> _WeightProfiles | None:
    """Return the profiles of the weights on some queries; None if the measure has no value on them."""
    try:
        landscape = Landscape.of(queries, measure, Serial())
    except InputError:  # a grade that training did not have, and that the measure does not allow
        return None
    return _WeightProfiles(landscape, coef, deviations) if landscape.total_weight > 0 else None


def _evaluate_all(profiles: _WeightProfiles | None, lines: dict[int, Floats]) -> Floats:
    """Return the values of the measure at all chosen points of all weights; NaN if there are no profiles."""
    if profiles is None:
        return np.full(sum(map(len, lines.values())), np.nan)
    return np.concatenate([profiles.evaluate(column, at) for column, at in lines.items()])
