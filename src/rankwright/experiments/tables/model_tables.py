"""The tables of upper bounds, of step functions and of feature importance."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundEvaluator, UpperBoundValues, mean
from rankwright.analysis.explanation import explain
from rankwright.analysis.feature_effects import Splits, StepFunction
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.basics.errors import InputError
from rankwright.data.feature_numbers import name_features
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.models.model import Model
from rankwright.objectives.upper_bounds import TypeOne, TypeTwo, UpperBound
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
    if _is_quick(measure, train):
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


def _is_quick(measure: Measure, train: Queries) -> bool:
    """Return whether a measure's most violated rankings are quick to find: average precision's, or with a cut-off."""
    return measure.has_arrays and (measure.cut_off is not None or measure.family == "ap")


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
    kept = [_choose_steps(len(part.values)) for part in found]
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


def _choose_steps(n: int) -> Ints:
    """Return which of n steps to keep: at most ``MOST_STEPS``, evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).round().astype(np.intp))


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
