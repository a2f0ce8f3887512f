"""The table of feature importance: each feature's share of the gain of a model's trees."""

from __future__ import annotations

import numpy as np

from rankwright.analysis.explanation import explain
from rankwright.analysis.feature_effects import Splits
from rankwright.analysis.results import Table
from rankwright.data.feature_numbers import feature_names
from rankwright.models.model import Model


def make_importance_table(model: Model) -> Table | None:
    """Return the share of the gain and the number of splits of each feature; None if the model has no splits."""
    if model.scorer.trees is None:
        return None
    found = [part for part in explain(model).parts if isinstance(part, Splits)]
    if not found:
        return None
    gain, splits = np.zeros(model.n_features), np.zeros(model.n_features, dtype=np.int64)
    for part in found:
        gain[part.index], splits[part.index] = part.gain, part.n_splits
    names = feature_names(model.features, model.n_features)
    return {"feature": np.array(list(names)), "gain": gain, "splits": splits}
