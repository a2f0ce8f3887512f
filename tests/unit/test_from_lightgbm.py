"""Models of LightGBM score as LightGBM does, to the bit, and go back to it."""

import json

import lightgbm
import numpy as np
import pandas
import pytest

import rankwright as rw
from rankwright.models.imports import parse_file
from rankwright.models.model import Model
from rankwright.scorers import Stumps

GROUP = np.full(40, 15)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(600, 5)).astype(np.float32)
    X[:, 3] = np.round(np.abs(X[:, 3]) * 3)
    X[:, 4] = rng.integers(0, 9, 600)
    y = np.digitize(X[:, 0] + X[:, 3] / 3 + np.isin(X[:, 4], [1, 4, 5]) + rng.normal(size=600), [0.5, 1.5])
    X[rng.random(X.shape) < 0.1] = np.nan
    return X, y


def train(data, rounds=8, categorical=(), names="auto", **params):
    params = {"objective": "lambdarank", "num_leaves": 9, "verbosity": -1, "num_threads": 1, **params}
    params |= {"min_data_per_group": 5, "cat_smooth": 1.0, "min_data_in_leaf": 5, "max_cat_to_onehot": 1}
    dataset = lightgbm.Dataset(
        data[0], data[1], group=GROUP, categorical_feature=list(categorical), feature_name=names, params=params
    )
    return lightgbm.train(params, dataset, rounds)


def make_hard_rows(booster, X):
    """Return documents on thresholds and beside them, with 0, tiny, huge and missing values."""
    rng = np.random.default_rng(1)
    rows = [X]
    for tree in rw.import_model(booster).scorer.forest.trees:
        for feature, threshold in zip(tree.columns["split_feature"], tree.columns["threshold"], strict=True):
            near = np.float32(min(threshold, 3e38))
            own = X[rng.integers(0, len(X), 3)].copy()
            own[:, feature] = [near, np.nextafter(near, np.float32(-np.inf)), np.nextafter(near, np.float32(np.inf))]
            rows.append(own)
    extremes = np.float32([0.0, -0.0, 1e-45, -1e-45, 1e-36, 3e38, -3e38, 5.0, 40.0, np.nan])
    return np.concatenate([*rows, rng.choice(extremes, (200, X.shape[1]))]).astype(np.float32)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"boosting": "dart", "drop_rate": 0.5},
        {"objective": "binary", "sigmoid": 2.0},
        {"objective": "regression"},
        {"extra_trees": True, "data_sample_strategy": "goss"},
        {"use_missing": False},
        {"categorical": [4, 3]},
        {"objective": "poisson"},
        {"monotone_constraints": [1, 0, 0, 0, -1]},
    ],
    ids=str,
)
def test_a_booster_scores_the_same_and_goes_back(data, options, tmp_path):
    X, y = data
    booster = train((X, y > 0) if options.get("objective") == "binary" else data, **options)
    rows = make_hard_rows(booster, X)
    for column in options.get("categorical", ()):
        rows[:, column] = np.floor(rows[:, column])
    model = rw.import_model(booster)
    expected = booster.predict(rows, raw_score=True)
    assert np.array_equal(model.predict(rows), expected)
    rw.save(model, tmp_path / "m.json")
    assert np.array_equal(rw.load(tmp_path / "m.json").predict(rows), expected)
    rw.export(model, "lightgbm", tmp_path / "m.txt", names={str(i): f"f{i}" for i in range(1, 6)})
    assert np.array_equal(lightgbm.Booster(model_file=tmp_path / "m.txt").predict(rows, raw_score=True), expected)
    assert model.params["objective"] == options.get("objective", "lambdarank")
    assert model.params["boosting"] == options.get("boosting", "gbdt")
    assert model.features is None


def test_a_random_forest_is_a_mean(data, tmp_path):
    booster = train(data, objective="regression", boosting="rf", bagging_fraction=0.5, bagging_freq=1)
    booster.save_model(tmp_path / "m.txt")
    rows = make_hard_rows(booster, data[0])
    expected = booster.predict(rows)  # with raw_score=True LightGBM returns the sum
    for source in (booster, tmp_path / "m.txt"):
        np.testing.assert_allclose(rw.import_model(source).predict(rows), expected, rtol=1e-13)


def test_an_estimator_and_a_booster_stop_at_their_best_iteration(data, tmp_path):
    X, y = data
    own, others = lightgbm.Dataset(X[:300], y[:300], group=GROUP[:20]), (X[300:], y[300:])
    valid = own.create_valid(*others, group=GROUP[20:])
    stop = lightgbm.early_stopping(5, verbose=False)
    params = {"objective": "lambdarank", "learning_rate": 0.9, "verbosity": -1, "min_data_in_leaf": 5, "num_threads": 1}
    booster = lightgbm.train(params, own, 80, [valid], callbacks=[stop], keep_training_booster=True)
    assert booster.best_iteration < booster.num_trees()
    model = rw.import_model(booster)
    assert model.params["n_estimators"] == booster.best_iteration
    assert np.array_equal(model.predict(X), booster.predict(X, raw_score=True))
    booster.save_model(tmp_path / "m.txt")
    assert np.array_equal(rw.import_model(tmp_path / "m.txt").predict(X), model.predict(X))
    ranker = lightgbm.LGBMRanker(n_estimators=5, verbosity=-1, min_child_samples=5, n_jobs=1).fit(X, y, group=GROUP)
    assert np.array_equal(rw.import_model(ranker).predict(X), ranker.predict(X, raw_score=True))


def test_names_are_kept(data):
    assert rw.import_model(train(data, names=list("abcde"))).features == tuple("abcde")


@pytest.fixture(scope="module")
def frame(data):
    rng = np.random.default_rng(2)
    frame = pandas.DataFrame(data[0], columns=list("abcde"))
    frame["d"] = pandas.Categorical.from_codes(
        np.nan_to_num(data[0][:, 3], nan=-1).astype(int).clip(-1, 3), ["u", "v", "w", "ü"]
    )
    frame["e"] = pandas.Categorical.from_codes(np.nan_to_num(data[0][:, 4], nan=-1).astype(int), list("rstuvwxyz"))
    frame["constant"] = pandas.Categorical(np.full(len(frame), "same"))
    frame["last"] = rng.normal(size=len(frame)).astype(np.float32)
    return frame


def test_categories_of_a_data_frame(data, frame, tmp_path):
    booster = train((frame, data[1]), 20, categorical=["d", "e", "constant"])
    booster.save_model(tmp_path / "m.txt")
    expected = booster.predict(frame, raw_score=True)
    model = rw.import_model(booster)
    assert model.scorer.forest.categorical == {3, 4}
    assert model.categories == (None, None, None, ("u", "v", "w", "ü"), tuple("rstuvwxyz"), ("same",), None)
    assert np.array_equal(model.predict(frame), expected)
    assert np.array_equal(rw.import_model(tmp_path / "m.txt").predict(frame), expected)
    unseen = frame.assign(e=frame["e"].cat.set_categories([*"zyxwv", "new"]).fillna("new"))
    assert np.array_equal(model.predict(unseen), booster.predict(unseen, raw_score=True))
    rw.export(model, "lightgbm", tmp_path / "back.txt")
    again = lightgbm.Booster(model_file=tmp_path / "back.txt")
    assert np.array_equal(again.predict(unseen, raw_score=True), model.predict(unseen))
    assert rw.import_model(tmp_path / "back.txt").categories == model.categories


def test_categories_that_belong_to_no_column_are_refused(data, frame):
    ordered = frame.assign(e=frame["e"].cat.as_ordered())
    booster = train((ordered, data[1]), 3, categorical=["d", "constant"])
    with pytest.raises(rw.InputError, match=r"the values of 3 columns of categories .* 2 categorical features"):
        rw.import_model(booster)


def test_zero_for_missing_is_taken_where_it_changes_nothing(data):
    X, y = np.nan_to_num(data[0]), data[1]
    booster = train((X, y), 3, zero_as_missing=True)
    with pytest.raises(rw.InputError, match="zero_as_missing=false"):
        rw.import_model(booster)
    taken = 0
    for seed in range(20):
        booster = train((X[:, 3:4], y), 1, zero_as_missing=True, num_leaves=3, seed=seed, extra_trees=True)
        try:
            model = rw.import_model(booster)
        except rw.InputError:
            continue
        taken += 1
        rows = make_hard_rows(booster, X[:, 3:4])
        assert np.array_equal(model.predict(rows), booster.predict(rows, raw_score=True))
    assert taken


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda X, y: lightgbm.LGBMRanker(), "this LGBMRanker is not fitted; call fit first"),
        (
            lambda X, y: lightgbm.LGBMClassifier(n_estimators=1, verbosity=-1, n_jobs=1).fit(X, y),
            "expected one score a document",
        ),
        (lambda X, y: train((X, y), 2, linear_tree=True), "linear_tree=false"),
        (lambda X, y: lightgbm.Dataset(X), "found a Dataset of LightGBM"),
    ],
    ids=["unfitted", "classes", "linear", "dataset"],
)
def test_what_cannot_be_represented_is_refused(data, make, message):
    with pytest.raises(rw.InputError, match=message):
        rw.import_model(make(*data))


def test_damaged_texts_are_one_line(data, frame):
    rng = np.random.default_rng(0)
    text = train((frame, data[1]), 2, categorical=["d", "e", "constant"]).model_to_string().encode()
    for at in rng.integers(0, len(text), 600).tolist():
        byte = bytes([int(rng.integers(0, 256))])
        for variant in (text[:at], text[:at] + byte + text[at + 1 :], text[:at] + text[at + 5 :]):
            try:
                model = parse_file(variant, "m.txt")
            except rw.InputError as error:
                problem = str(error)
            else:
                problem = ""
                model.scorer(np.zeros((2, model.n_features), np.float32))
            assert "\n" not in problem


def test_values_that_lightgbm_takes_for_0_are_named(tmp_path):
    stumps = Stumps(np.array([0, 1]), np.float32([0.0, -1e-40]), np.array([1.0, 2.0]), np.array([False, True]))
    model = Model("RankBoost", {}, "ndcg@10", stumps, 2)
    rw.export(model, "lightgbm", tmp_path / "m.txt")
    booster = lightgbm.Booster(model_file=tmp_path / "m.txt")
    rows = np.float32([[0.0, 0.0], [2e-35, -2e-35], [-2e-35, 2e-35], [np.nan, np.nan]])
    assert np.array_equal(booster.predict(rows), model.predict(rows))
    tiny = np.float32([[1e-36, -1e-36]])
    assert booster.predict(tiny) != model.predict(tiny)


def test_a_dump_for_people_is_refused(data, tmp_path):
    (tmp_path / "m.json").write_text(json.dumps(train(data, 2).dump_model()))
    with pytest.raises(rw.InputError, match=r"m\.json: the JSON of LightGBM's dump_model; .*save_model"):
        rw.import_model(tmp_path / "m.json")
