"""LightGBM itself."""

from __future__ import annotations

import lightgbm


def score(path, X, names):
    booster = lightgbm.Booster(model_file=str(path))
    assert booster.feature_name() == list(names)
    return booster.predict(X, raw_score=True, num_threads=1)
