"""Models of XGBoost score as XGBoost does: the same leaves, and sums to single precision."""

import json

import numpy as np
import pytest
import xgboost

import rankwright as rw
from rankwright.models.imports import parse_file
from rankwright.models.imports.ubjson import parse_ubjson
from rankwright.scorers import Linear, Trees

Q = np.repeat(np.arange(40), 15)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 6)).astype(np.float32)
    X[:, 3] = np.round(X[:, 3])
    X[:, 4] *= 1e-20
    y = np.digitize(X[:, 0] + X[:, 3] + rng.normal(size=600), [0.5, 1.5])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def train(data, rounds=8, **params):
    params = {"objective": "rank:ndcg", "max_depth": 4, "nthread": 1, **params}
    return xgboost.train(params, xgboost.DMatrix(data[0], data[1], qid=Q), rounds)


def make_hard_rows(booster, X):
    """Return documents with features on thresholds and beside them, 0, tiny, huge and missing."""
    trees = json.loads(booster.save_raw("json"))["learner"]["gradient_booster"]
    trees = (trees.get("gbtree") or trees)["model"]["trees"]
    splits = [(f, t) for tree in trees for f, t, l in zip(*_list_nodes(tree)) if l != -1]
    rng = np.random.default_rng(1)
    rows = [X]
    for feature, threshold in splits:
        near = np.float32(threshold)
        own = X[rng.integers(0, len(X), 3)].copy()
        own[:, feature] = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
        rows.append(own)
    extremes = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-36, -1e-36, 3e38, -3e38, np.nan])
    rows.append(rng.choice(extremes, (200, X.shape[1])))
    return np.concatenate(rows).astype(np.float32)


def _list_nodes(tree):
    return tree["split_indices"], tree["split_conditions"], tree["left_children"]


def check(model, booster, X, n_trees=None):
    """Check leaf by leaf, and the sums: those of the leaves in double against XGBoost's in single precision."""
    matrix = xgboost.DMatrix(X, nthread=1)
    rounds = (0, n_trees or 0)
    expected = booster.predict(matrix, output_margin=True, iteration_range=rounds)
    found = model.predict(X)
    scale = sum(np.abs(tree.values).max() for tree in model.scorer.forest.trees)
    np.testing.assert_allclose(found, expected, atol=3e-7 * scale, rtol=0)
    nodes = booster.predict(matrix, pred_leaf=True, iteration_range=rounds).reshape(len(X), -1)
    own = model.scorer.leaves(X)[-nodes.shape[1] :]
    for leaf, node in zip(own, nodes.T, strict=True):  # numbered differently: they must correspond one to one
        pairs = set(zip(leaf.tolist(), node.tolist(), strict=True))
        assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"objective": "rank:pairwise", "base_score": 0.7},
        {"objective": "reg:squarederror", "num_parallel_tree": 3, "subsample": 0.7},
        {"objective": "binary:logistic", "base_score": 0.3},
        {"objective": "binary:logitraw", "base_score": 0.3},
        {"objective": "count:poisson"},
        {"objective": "reg:tweedie"},
        {"booster": "dart", "rate_drop": 0.5, "seed": 1},
        {"tree_method": "exact"},
        {"grow_policy": "lossguide", "max_leaves": 9, "max_depth": 0},
        {"gamma": 2.0, "tree_method": "exact"},
    ],
    ids=str,
)
def test_a_booster_scores_the_same(data, params):
    X, y = data
    booster = train((X, y > 0) if "binary" in params.get("objective", "") else data, **params)
    model = rw.import_model(booster)
    check(model, booster, make_hard_rows(booster, X))
    assert model.params["objective"] == params.get("objective", "rank:ndcg")
    assert model.ranker == "XGBoost"


@pytest.mark.parametrize("form", ["json", "ubj"])
def test_a_file_is_the_booster(data, form, tmp_path):
    booster = train(data)
    booster.save_model(tmp_path / f"m.{form}")
    model = rw.import_model(tmp_path / f"m.{form}")
    assert np.array_equal(model.predict(data[0]), rw.import_model(booster).predict(data[0]))
    assert len(model.scorer.forest) in (8, 9)


def test_an_estimator_stops_at_its_best_iteration_and_a_booster_does_not(data, tmp_path):
    X, y = data
    options = {"learning_rate": 0.9, "num_parallel_tree": 2, "max_depth": 3, "n_jobs": 1}
    ranker = xgboost.XGBRanker(n_estimators=60, early_stopping_rounds=5, **options)
    ranker.fit(X[:300], y[:300], qid=Q[:300], eval_set=[(X[300:], y[300:])], eval_qid=[Q[300:]], verbose=False)
    best = ranker.best_iteration
    assert best + 1 < ranker.get_booster().num_boosted_rounds()
    model = rw.import_model(ranker)
    assert model.params["n_estimators"] == 2 * (best + 1)
    check(model, ranker.get_booster(), X, best + 1)
    np.testing.assert_allclose(model.predict(X), ranker.predict(X), atol=1e-5)
    check(rw.import_model(ranker.get_booster()), ranker.get_booster(), X)
    ranker.save_model(tmp_path / "m.json")
    assert np.array_equal(rw.import_model(tmp_path / "m.json").predict(X), model.predict(X))


def test_a_linear_booster_becomes_weights(data):
    X, y = np.nan_to_num(data[0]), data[1]
    booster = train((X, y), booster="gblinear", max_depth=None)
    model = rw.import_model(booster)
    assert isinstance(model.scorer, Linear)
    np.testing.assert_allclose(model.predict(X), booster.predict(xgboost.DMatrix(X), output_margin=True), atol=2e-6)
    with pytest.raises(rw.InputError, match="this XGBoost model takes complete features only"):
        model.predict(data[0])


def test_names_of_features_are_kept(data):
    matrix = xgboost.DMatrix(data[0], data[1], qid=Q, feature_names=list("abcdef"))
    assert rw.import_model(xgboost.train({"nthread": 1}, matrix, 2)).features == tuple("abcdef")
    assert rw.import_model(train(data, 2)).features is None
    assert rw.import_model(train(data, 2), features=list("uvwxyz")).features == tuple("uvwxyz")
    with pytest.raises(rw.InputError, match="2 names of features; the model has 6"):
        rw.import_model(train(data, 2), features=["a", "b"])


def test_forms_of_base_score(data):
    content = json.loads(train(data, 2, base_score=0.25).save_raw("json"))
    for found in ("[2.5E-1]", "2.5E-1", 0.25):
        content["learner"]["learner_model_param"]["base_score"] = found
        model = parse_file(json.dumps(content).encode(), "m.json")
        assert model.scorer.forest.trees[0].values.tolist() == [0.25]
    content["learner"]["learner_model_param"]["base_score"] = "[1E0,2E0]"
    with pytest.raises(rw.InputError, match=r"m\.json: an XGBoost model with several scores"):
        parse_file(json.dumps(content).encode(), "m.json")


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: xgboost.XGBRanker(), "this XGBRanker is not fitted"),
        (
            lambda X, y: xgboost.XGBRegressor(n_estimators=1, n_jobs=1, missing=-1.0).fit(X, y),
            "takes -1 for a missing value",
        ),
        (lambda X, y: xgboost.XGBClassifier(n_estimators=1, n_jobs=1).fit(X, y), "several scores a document"),
        (lambda X, y: xgboost.DMatrix(X), "found a DMatrix of XGBoost"),
        (
            lambda X, y: xgboost.XGBRegressor(n_estimators=1, n_jobs=1, multi_strategy="multi_output_tree").fit(
                X, np.stack([y, y], 1)
            ),
            "several scores a document",
        ),
    ],
    ids=["unfitted", "missing", "classes", "matrix", "targets"],
)
def test_what_cannot_be_represented_is_refused(data, make, message):
    with pytest.raises(rw.InputError, match=message):
        rw.import_model(make(*data))


def try_to_parse(data):
    """Return the model, or the text of the error."""
    try:
        return parse_file(data, "m.json"), ""
    except rw.InputError as error:
        return None, str(error)


def test_damaged_files_are_one_line(data, tmp_path):
    booster = train(data, 2)
    rng = np.random.default_rng(0)
    texts = [bytes(booster.save_raw("json")), bytes(booster.save_raw("ubj"))]
    for text in texts:
        variants = [text[: int(n)] for n in rng.integers(0, len(text), 150)]
        for at in rng.integers(0, len(text), 400).tolist():
            variants.append(text[:at] + bytes([int(rng.integers(0, 256))]) + text[at + 1 :])
            variants.append(text[:at] + text[at + int(rng.integers(1, 9)) :])
        for variant in variants:
            model, problem = try_to_parse(variant)
            assert model is not None or problem.startswith("m.json")
            assert "\n" not in problem
            if model is not None:
                assert isinstance(model.scorer, Trees)
                model.scorer(np.zeros((2, model.n_features), np.float32))
    with pytest.raises(rw.InputError, match=r"m\.model: XGBoost's old binary form"):
        parse_file(b"binf\0\0", "m.model")


def test_ubjson_is_json(data):
    booster = train(data, 2)

    def plain(value):
        if isinstance(value, dict):
            return {name: plain(own) for name, own in value.items()}
        return [plain(own) for own in value] if isinstance(value, (list, np.ndarray)) else value

    found, expected = (
        plain(parse_ubjson(bytes(booster.save_raw("ubj")), "XGBoost")),
        json.loads(booster.save_raw("json")),
    )
    tree, other = (own["learner"]["gradient_booster"]["model"]["trees"][1] for own in (found, expected))
    assert found["learner"]["learner_model_param"] == expected["learner"]["learner_model_param"]
    assert tree["left_children"] == other["left_children"]
    np.testing.assert_array_equal(np.float32(tree["split_conditions"]), np.float32(other["split_conditions"]))
    assert parse_ubjson(b"{U\x01a[TFZSU\x02hiCx]i\x01b[#i\x02i\x01i\x02}", "XGBoost") == {
        "a": [True, False, None, "hi", "x"],
        "b": [1, 2],
    }
    for damaged in (
        b"{",
        b"{i\x01a",
        b"[",
        b"{i\x01aSL\xff" + bytes(7),
        b"{i\x01a[$d#L\x7f" + bytes(7),
        b"{i\x01a" * 99,
    ):
        with pytest.raises(rw.InputError, match="damaged XGBoost model: not whole UBJSON"):
            parse_ubjson(damaged, "XGBoost")


def test_a_dump_for_people_is_refused(data, tmp_path):
    booster = train(data, 2)
    booster.dump_model(tmp_path / "m.json", dump_format="json")
    with pytest.raises(rw.InputError, match=r"m\.json: the JSON of XGBoost's dump_model, .*save_model"):
        rw.import_model(tmp_path / "m.json")
