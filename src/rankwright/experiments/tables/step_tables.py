"""Steps of a trial: what each feature adds to the score of a model of stumps."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.diagnosis.explanation import explain
from rankwright.analysis.diagnosis.explanation_parts import StepFunction
from rankwright.analysis.results import Table
from rankwright.basics.array_types import Floats, Ints
from rankwright.models.model import Model
from rankwright.scorers import Stumps

MOST_FEATURES = 200  # of a model
MOST_STEPS = 100  # of a feature


def steps_table(model: Model) -> Table | None:
    """The step functions of the features of the largest range, a row per step; None if the model has none.

    A document whose feature is above ``from`` and at most ``to`` has the ``value``; NaN stands for a step without an
    end. Of a function of very many steps some are left out, those before them taking their place. ``range``,
    ``missing`` (the value where the feature is missing; NaN where it may not be) and ``stumps`` are the feature's own.
    """
    if not isinstance(model.scorer, Stumps):
        return None
    found = [part for part in explain(model).parts if isinstance(part, StepFunction)][:MOST_FEATURES]
    if not found:
        return None
    kept = [_some(len(part.values)) for part in found]
    sizes = [len(steps) for steps in kept]
    pairs = [*zip(found, kept, strict=True)]
    return {
        "feature": np.repeat([part.name for part in found], sizes),
        "from": np.concatenate([_ends(part)[steps] for part, steps in pairs]),
        "to": np.concatenate([np.append(_ends(part)[steps[1:]], np.nan) for part, steps in pairs]),
        "value": np.concatenate([part.values[steps] for part, steps in pairs]),
        "missing": np.repeat([np.nan if part.missing is None else part.missing for part in found], sizes),
        "range": np.repeat([part.size for part in found], sizes),
        "stumps": np.repeat([part.n_stumps for part in found], sizes),
    }


def _ends(part: StepFunction) -> Floats:
    """Where each step begins; JSON knows no infinity."""
    return np.append(np.nan, part.thresholds.astype(np.float64))


def _some(n: int) -> Ints:
    """At most ``MOST_STEPS`` of n steps, evenly spread, with the first and the last."""
    return np.unique(np.linspace(0, n - 1, min(n, MOST_STEPS)).round().astype(np.intp))
