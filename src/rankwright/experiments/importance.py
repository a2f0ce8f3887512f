"""Importance of a trial: how much of what the trees of a model gained is owed to each feature."""

from __future__ import annotations

import numpy as np

from rankwright.diagnosis.explaining import explain
from rankwright.diagnosis.parts import Splits
from rankwright.models import Model
from rankwright.results import Table
from rankwright.scorers import Trees


def importance_table(model: Model) -> Table | None:
    """The features that trees use, a row each: the share of the gain, and the splits; None if there are none."""
    if not isinstance(model.scorer, Trees):
        return None
    found = [part for part in explain(model).parts if isinstance(part, Splits)]
    if not found:
        return None
    return {
        "feature": np.array([part.name for part in found]),
        "gain": np.array([part.gain for part in found]),
        "splits": np.array([part.n_splits for part in found]),
    }
