"""The tables of a trial's model: upper bounds, step functions, feature importance, and profiles of single weights."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundEvaluator, UpperBoundValues, mean
from rankwright.analysis.explanation import explain
from rankwright.analysis.feature_effects import Splits, StepFunction
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats
from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import name_features
from rankwright.data.folds import Fold
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model
from rankwright.objectives.upper_bounds import TypeOne, TypeTwo, UpperBound
from rankwright.optimisers.landscape import Landscape
from rankwright.rankers import Ranker
from rankwright.runtime.backends import Serial


def make_bounds_table(ranker: Ranker, train: Queries) -> Table:
    """Return a table of upper bounds on a ranker's training loss: the mean of each bound that is quick to compute.

    These are the exponential type one bound, the margin type two bound, also at its best scale (NaN where no scale was
    searched), and the ranker's ``own`` bound, which may be on another ``measure``. ``loss`` is the basic loss of the
    measure, ``exact`` the share of queries on which the bound equals the loss.
    """
    measure, own = ranker.measure_.for_training(), ranker.find_minimised_bound(ranker.measure_)
    bounds = UpperBoundEvaluator(train, ranker.predict(train), Serial())
    found = [bounds.evaluate_one(TypeOne(measure), TypeOne(measure) == own)]
    margin = TypeTwo(measure, "margin")
    if measure.has_arrays and (measure.cut_off is not None or measure.family == "ap"):  # quick to search
        found += _evaluate_if_possible(bounds, margin, own, scaled=True)
    if own is not None and own not in (TypeOne(measure), margin if len(found) > 1 else None):
        found += _evaluate_if_possible(bounds, own, own, scaled=False)
    return {
        "bound": np.array([each.name for each in found]),
        "measure": np.array([str(ranker.measure_) if each.measure == str(measure) else each.measure for each in found]),
        "own": np.array([each.own for each in found]),
        "loss": np.array([mean(each.loss, each.weight) for each in found]),
        "value": np.array([each.mean for each in found]),
        "least": np.array([np.nan if each.least is None else each.least_mean for each in found]),
        "factor": np.array([np.nan if each.least is None else each.least.factor for each in found]),
        "exact": np.array([float(np.mean(each.exact)) for each in found]),
    }


def _evaluate_if_possible(
    bounds: UpperBoundEvaluator, bound: UpperBound, own: UpperBound | None, *, scaled: bool
) -> list[UpperBoundValues]:
    """Return a list with the values of a bound; it is empty if a query has too many rankings for that bound."""
    try:
        return [(bounds.evaluate_scaled if scaled else bounds.evaluate_one)(bound, bound == own)]
    except InputError:
        return []


MOST_FEATURES = 200  # per model
MOST_STEPS = 100  # per feature


def make_steps_table(model: Model) -> Table | None:
    """Return a table of the step functions of the features with the largest effects; None if the model has none.

    A document whose feature is above ``from`` and at most ``to`` has the ``value``; NaN stands for a step without an
    end. Where a function has very many steps, some are merged into the step before them. ``range``, ``missing`` (the
    value where the feature is missing; NaN where it may not be missing) and ``stumps`` are the same in all rows of a
    feature.
    """
    if model.scorer.steps is None:
        return None
    found = [part for part in explain(model).parts if isinstance(part, StepFunction)][:MOST_FEATURES]
    if not found:
        return None
    counts = [len(part.values) for part in found]  # some steps are kept, evenly spread, with the first and the last
    kept = [np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).round().astype(np.intp)) for n in counts]
    sizes = [len(steps) for steps in kept]
    pairs = [*zip(found, kept, strict=True)]
    return {
        "feature": np.repeat([part.name for part in found], sizes),
        "from": np.concatenate([_list_starts(part)[steps] for part, steps in pairs]),
        "to": np.concatenate([np.append(_list_starts(part)[steps[1:]], np.nan) for part, steps in pairs]),
        "value": np.concatenate([part.values[steps] for part, steps in pairs]),
        "missing": np.repeat([np.nan if part.missing is None else part.missing for part in found], sizes),
        "range": np.repeat([part.size for part in found], sizes),
        "stumps": np.repeat([part.n_stumps for part in found], sizes),
    }


def _list_starts(part: StepFunction) -> Floats:
    """Return where each step of a step function begins; NaN for the first, because JSON has no infinity."""
    return np.append(np.nan, part.thresholds.astype(np.float64))


def make_importance_table(model: Model) -> Table | None:
    """Return a table of each feature's share of the gain and number of splits; None for models without splits."""
    if model.scorer.trees is None:
        return None
    found = [part for part in explain(model).parts if isinstance(part, Splits)]
    if not found:
        return None
    gain, splits = np.zeros(model.n_features), np.zeros(model.n_features, dtype=np.int64)
    for part in found:
        gain[part.index], splits[part.index] = part.gain, part.n_splits
    names = name_features(model.features, model.n_features)
    return {"feature": np.array(list(names)), "gain": gain, "splits": splits}


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
