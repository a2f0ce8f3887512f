"""The table of step functions, which each feature adds to the score of a model of stumps."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.explanation import explain
from rankwright.analysis.feature_effects import StepFunction
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.models.model import Model

MOST_FEATURES = 200  # per model
MOST_STEPS = 100  # per feature


def make_steps_table(model: Model) -> Table | None:
    """Return the step functions of the features of the largest range, a row per step; None if the model has none.

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
    """Return where each step begins; the first begins at NaN, because JSON has no infinity."""
    return np.append(np.nan, part.thresholds.astype(np.float64))


def _choose_steps(n: int) -> Ints:
    """Return the numbers of at most ``MOST_STEPS`` of n steps, evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).round().astype(np.intp))
