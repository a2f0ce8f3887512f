"""The table of a trial's upper bounds: the loss on the training queries, and how far above it the bounds are."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.diagnosis.loss_bounds import UpperBoundEvaluator, UpperBoundValues, mean
from rankwright.analysis.results import Table
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.measures import Measure
from rankwright.objectives.upper_bounds import TypeOne, TypeTwo, UpperBound
from rankwright.rankers import Ranker
from rankwright.runtime.backends import Serial


def make_bounds_table(ranker: Ranker, train: Queries) -> Table:
    """Return the upper bounds that are quick to compute, a row each, in means over the training queries.

    These are the exponential type one bound, the margin type two bound, also at its best scale (NaN where no scale was
    searched), and the ranker's ``own`` bound, which may be on another ``measure``. ``loss`` is the basic loss of the
    measure, ``exact`` the share of queries on which the bound equals the loss.
    """
    measure, own = ranker.measure_.for_training(), ranker.find_minimised_bound(ranker.measure_)
    bounds = UpperBoundEvaluator(train, ranker.predict(train), Serial())
    found = [bounds.evaluate_one(TypeOne(measure), TypeOne(measure) == own)]
    margin = TypeTwo(measure, "margin")
    if _is_quick(measure, train):
        found += _evaluate(bounds, margin, own, scaled=True)
    if own is not None and own not in (TypeOne(measure), margin if len(found) > 1 else None):
        found += _evaluate(bounds, own, own, scaled=False)
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


def _evaluate(
    bounds: UpperBoundEvaluator, bound: UpperBound, own: UpperBound | None, *, scaled: bool
) -> list[UpperBoundValues]:
    """Return a list with the bound, or an empty one if some query has too many rankings for it."""
    try:
        return [(bounds.evaluate_scaled if scaled else bounds.evaluate_one)(bound, bound == own)]
    except InputError:
        return []


def _is_quick(measure: Measure, train: Queries) -> bool:
    """Return whether the most violated rankings are quick to find: for average precision, or where few ranks count."""
    return measure.has_arrays and (measure.cut_off is not None or measure.family == "ap")
