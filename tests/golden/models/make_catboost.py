"""Make the CatBoost models of this folder with CatBoost's own scores; run it where CatBoost is installed."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).parent
CASES = {
    "symmetric": {"grow_policy": "SymmetricTree"},
    "largest": {"grow_policy": "SymmetricTree", "nan_mode": "Max", "loss_function": "QueryRMSE"},
    "depthwise": {"grow_policy": "Depthwise", "loss_function": "RMSE"},
    "lossguide": {"grow_policy": "Lossguide", "max_leaves": 7, "loss_function": "Logloss"},
}


def make_data() -> tuple[np.ndarray, np.ndarray]:
    """Features with missing values in all columns but the last, and grades."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 4)).astype(np.float32)
    X[:, 2] = np.round(X[:, 2])
    y = (X[:, 0] + X[:, 2] + rng.normal(size=300) > 0.5).astype(int)
    X[:, :3][rng.random((300, 3)) < 0.1] = np.nan
    return X, y


def make_rows(content: dict) -> np.ndarray:
    """Documents on borders and beside them, with 0, tiny, huge and missing values."""
    rng, X = np.random.default_rng(1), make_data()[0]
    rows = [X[:40]]
    for feature in content["features_info"]["float_features"]:
        for border in np.float32(feature["borders"] or []):
            own = X[rng.integers(0, len(X), 3)].copy()
            with np.errstate(over="ignore"):  # CatBoost separates missing values by the largest number
                near = [border, np.nextafter(border, np.float32(-np.inf)), np.nextafter(border, np.float32(np.inf))]
            own[:, feature["flat_feature_index"]] = np.nan_to_num(near)
            rows.append(own)
    extremes = rng.choice(np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-36, 3e38, -3e38, np.nan]), (40, 4))
    found = np.concatenate([*rows, extremes])
    found[:, 3] = np.nan_to_num(found[:, 3])  # CatBoost refuses NaN in a feature that was complete in training
    return found


def train(params: dict):
    """A model of CatBoost."""
    import catboost

    X, y = make_data()
    common = {"iterations": 6, "depth": 3, "thread_count": 1, "verbose": 0, "allow_writing_files": False}
    own = {"loss_function": "YetiRank", "random_seed": 0, **common, **params}
    return catboost.CatBoost(own).fit(catboost.Pool(X, y, group_id=np.repeat(np.arange(30), 10)))


def main() -> None:
    """Write a model and its scores for each case."""
    for name, params in CASES.items():
        model = train(params)
        if name == "largest":
            model.set_scale_and_bias(0.5, 1.25)
        path = FOLDER / f"catboost_{name}.json"
        model.save_model(str(path), format="json")
        content = json.loads(path.read_text())
        loss = content["model_info"]["params"]["loss_function"]
        content["model_info"] = {"params": {"loss_function": loss}}  # without times and paths
        path.write_text(json.dumps(content, separators=(",", ":")) + "\n")
        rows = make_rows(content)
        scores = model.predict(rows, prediction_type="RawFormulaVal").tolist()
        values = [[None if np.isnan(x) else float(x) for x in row] for row in rows]
        scored = {"rows": values, "scores": scores}
        (FOLDER / f"catboost_{name}.scores.json").write_text(json.dumps(scored, separators=(",", ":")) + "\n")


if __name__ == "__main__":
    main()
