"""XGBoost itself."""

from __future__ import annotations

import xgboost


def score(path, X, names):
    booster = xgboost.Booster()
    booster.load_model(bytearray(path.read_bytes()))  # the name of the file need not end with .json
    assert booster.feature_names == list(names)
    return booster.predict(xgboost.DMatrix(X, feature_names=list(names), nthread=1), output_margin=True)
