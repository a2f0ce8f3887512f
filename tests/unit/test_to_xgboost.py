"""XGBoost reads exported models and scores documents as they do."""

import json
from unittest.mock import patch

import numpy as np
import pytest
import xgboost
from tests.reference.oracle_xgboost import score

import rankwright as rw
from rankwright.models.export import to_xgboost
from rankwright.models.export.float32_thresholds import round_down_to_float32
from rankwright.models.model import Model
from rankwright.scorers import Linear, Stumps, Trees
from rankwright.scorers.lightgbm_text import Forest
from rankwright.scorers.lightgbm_trees import Tree, make_leaf

Q = np.repeat(np.arange(40), 15)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    y = np.digitize(X[:, 0] + X[:, 3] + rng.normal(size=600), [0.5, 1.5])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def make_rows(trees, X, rng):
    """Return documents whose features are thresholds and their neighbours."""
    rows = [X]
    for tree in trees:
        for feature, threshold in zip(tree.columns["split_feature"], tree.columns["threshold"], strict=True):
            with np.errstate(over="ignore"):
                near = np.float32(np.clip(threshold, -3.4e38, 3.4e38))
            own = X[rng.integers(0, len(X), 3)].copy()
            own[:, feature] = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
            rows.append(own)
    extremes = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-36, 3.4e38, -3.4e38, np.finfo(np.float32).max, np.nan])
    return np.concatenate([*rows, rng.choice(extremes, (200, X.shape[1]))]).astype(np.float32)


@pytest.mark.parametrize("base", [None, 0.7, -123.4])
@pytest.mark.parametrize("objective", ["rank:ndcg", "reg:squarederror", "count:poisson"])
def test_a_round_trip_keeps_the_bits(data, base, objective, tmp_path):
    X, y = data
    params = {"objective": objective, "max_depth": 7, "min_child_weight": 0.1, "learning_rate": 0.7, "nthread": 1}
    if base is not None:
        params["base_score"] = abs(base) if objective == "count:poisson" else base
    booster = xgboost.train(params, xgboost.DMatrix(X, y, qid=Q), 20)
    model = rw.import_model(booster)
    rw.export(model, "xgboost", tmp_path / "m.json")
    rows = make_rows(model.scorer.forest.trees, X, np.random.default_rng(1))
    expected = booster.predict(xgboost.DMatrix(rows), output_margin=True)
    names = [str(i) for i in range(1, 7)]
    assert np.array_equal(score(tmp_path / "m.json", rows, names), expected)
    again = rw.import_model(tmp_path / "m.json")
    assert np.array_equal(again.predict(rows), model.predict(rows))


def make_forest(rng, n_trees=30):
    """Return trees with random shapes, thresholds in double precision and sides for missing values."""
    trees = []
    for _ in range(n_trees):
        n = int(rng.integers(1, 40))
        left, right, places = np.zeros(n, np.int64), np.zeros(n, np.int64), []
        for node in range(n):
            if node:
                at, side = places.pop(int(rng.integers(len(places))))
                (left if side == 0 else right)[at] = node
            places += [(node, 0), (node, 1)]
        for leaf, (at, side) in enumerate(places):
            (left if side == 0 else right)[at] = ~leaf
        threshold = rng.choice([0.0, 1e-35, -0.5, 0.1, 1e300, np.inf, 3.0], n) * rng.choice([1.0, 1.0 + 1e-9], n)
        threshold = np.where(rng.random(n) < 0.7, rng.normal(size=n), threshold)
        feature, is_left = rng.integers(0, 6, n), rng.random(n) < 0.5
        trees.append(Tree.from_nodes(feature, threshold, is_left, left, right, rng.normal(size=n + 1)))
    return trees


def check_trees(trees, X, tmp_path, rng):
    model = Model("LightGBM", {}, "ndcg@10", Trees(Forest.from_trees(trees, 6)), 6)
    rw.export(model, "xgboost", tmp_path / "m.json")
    rows = make_rows(trees, X, rng)
    found = score(tmp_path / "m.json", rows, [str(i) for i in range(1, 7)])
    scale = sum(float(np.abs(tree.values).max()) for tree in trees)
    np.testing.assert_allclose(found, model.predict(rows), atol=3e-7 * scale, rtol=0)


def test_trees_score_the_same_to_single_precision(data, tmp_path):
    rng = np.random.default_rng(2)
    trees = [make_leaf(0.25), *make_forest(rng), make_leaf(-0.5)]
    check_trees(trees, data[0], tmp_path, rng)


@pytest.mark.parametrize("wrong", ["comparison", "missing", "order"])
def test_a_wrong_exporter_is_noticed(data, wrong, tmp_path):
    rng = np.random.default_rng(2)
    trees = make_forest(rng)
    broken = {
        "comparison": ("raise_to_next_float32", round_down_to_float32),
        "missing": ("_place", flip_sides),
        "order": ("_number_in_pairs", number_depth_first),
    }[wrong]
    with patch.object(to_xgboost, *broken), pytest.raises(AssertionError):
        check_trees(trees, data[0], tmp_path, rng)


def flip_sides(is_split, of_splits, of_leaves, place=to_xgboost._place):
    is_side = np.issubdtype(np.asarray(of_splits).dtype, np.bool_)
    return place(is_split, ~of_splits if is_side else of_splits, of_leaves)


def number_depth_first(tree):
    order, first, parent, places = [], [], [], [(0 if tree.n_splits else ~0, -1)]
    while places:
        node, above = places.pop()
        order.append(node)
        parent.append(above)
        first.append(len(order) if node >= 0 else -1)
        if node >= 0:
            places += [(int(tree.columns[side][node]), len(order) - 1) for side in ("right_child", "left_child")]
    return np.array(order), np.array(first), np.array(parent)


def test_stumps_and_weights(data, tmp_path):
    X, rng = data[0], np.random.default_rng(3)
    stumps = Stumps(
        rng.integers(0, 6, 20), rng.normal(size=20).astype(np.float32), rng.normal(size=20), rng.random(20) < 0.5
    )
    names = [str(i) for i in range(1, 7)]
    model = Model("RankBoost", {}, "ndcg@10", stumps, 6)
    rw.export(model, "xgboost", tmp_path / "s.json")
    np.testing.assert_allclose(score(tmp_path / "s.json", X, names), model.predict(X), atol=2e-6)
    linear = Model("Regression", {}, "ndcg@10", Linear(rng.normal(size=6), 0.3), 6)
    rw.export(linear, "xgboost", tmp_path / "l.json", names={"1": "bm25"})
    full = np.nan_to_num(X)
    np.testing.assert_allclose(score(tmp_path / "l.json", full, ["bm25", *names[1:]]), linear.predict(full), atol=2e-6)
    single = Model("Regression", {}, "ndcg@10", Linear(np.float32(rng.normal(size=6)).astype(float), 0.25), 6)
    rw.export(single, "xgboost", tmp_path / "x.json")
    again = rw.import_model(tmp_path / "x.json").scorer
    assert (again.coef.tolist(), again.intercept) == (single.scorer.coef.tolist(), 0.25)


def test_names_in_any_script(tmp_path):
    names = ("bm25 ü", 'a"b', "c\\d", "日本", "g/h")
    model = Model("Regression", {}, "ndcg@10", Linear(np.arange(5.0)), 5, names)
    rw.export(model, "xgboost", tmp_path / "m.json")
    assert score(tmp_path / "m.json", np.ones((1, 5), np.float32), names) == 10.0
    assert rw.import_model(tmp_path / "m.json").features == names
    booster = xgboost.train({"nthread": 1}, xgboost.DMatrix(np.eye(5), np.arange(5), feature_names=list(names)), 1)
    for form in ("json", "ubj"):
        booster.save_model(tmp_path / f"theirs.{form}")
        assert rw.import_model(tmp_path / f"theirs.{form}").features == names


def test_a_constant_is_a_model_of_one_leaf(data, tmp_path):
    model = Model("LambdaMART", {}, "ndcg@10", Trees(Forest.constant(6, 1.5)), 6)
    rw.export(model, "xgboost", tmp_path / "m.json")
    content = json.loads((tmp_path / "m.json").read_text())
    assert content["learner"]["gradient_booster"]["model"]["trees"] != []
    found = score(tmp_path / "m.json", data[0], [str(i) for i in range(1, 7)])
    assert set(found.tolist()) == {1.5}


@pytest.mark.parametrize(
    ("scorer", "names", "message"),
    [
        (Trees(Forest.constant(2, 1e39)), None, "too large for XGBoost's single precision"),
        (Linear(np.array([1e39, 0.0])), None, "too large for XGBoost's single precision"),
        (Linear(np.ones(2)), {"1": "a[0]"}, r"XGBoost refuses the name 'a\[0\]'"),
        (Linear(np.ones(2)), {"1": "a\x01"}, "XGBoost refuses the name"),
    ],
)
def test_what_xgboost_cannot_hold_is_refused(scorer, names, message, tmp_path):
    with pytest.raises(rw.InputError, match=message):
        rw.export(Model("X", {}, "ndcg@10", scorer, 2), "xgboost", tmp_path / "m.json", names=names)
    assert not list(tmp_path.iterdir())
