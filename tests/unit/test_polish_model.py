"""polish_model: exact weights for the trees of models that other libraries, or we, have trained."""

from __future__ import annotations

import json
import pickle
import subprocess
import sys
import warnings

import lightgbm as lgb
import numpy as np
import pandas as pd
import pytest
from sklearn.exceptions import NotFittedError
from tests.warned import may_be_ineffective
from threadpoolctl import threadpool_limits

import rankwright as rw
from rankwright.optimisers import polishing as climbing
from rankwright.scorers import Feature, Network, Trees, WeightedSum, merge_scorers
from rankwright.scorers.lightgbm_text import Forest
from rankwright.tuning import model_polishing as polishing
from rankwright.tuning.tree_ensembles import make_ensemble

try:
    import xgboost as xgb
except ImportError:
    xgb = None

needs_xgboost = pytest.mark.skipif(xgb is None, reason="XGBoost is not installed (the extra `xgboost`)")
MEASURE = rw.parse_measure("ndcg@10")
GBM = {
    "objective": "lambdarank", "num_leaves": 5, "min_data_in_leaf": 5, "learning_rate": 0.3, "verbose": -1, "num_threads": 1,
}  # fmt: skip
XGB = {"objective": "rank:ndcg", "max_depth": 3, "eta": 0.3, "nthread": 1}
BAGGED = {"bagging_freq": 1, "bagging_fraction": 0.6}


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    """For small models: threads of OpenMP that wait for each other take longer where cores are busy."""
    with threadpool_limits(1, user_api="openmp"):
        yield


@pytest.fixture(scope="module")
def sets():
    queries = rw.make_queries(60, n_docs=14, n_features=8, noise=1.2, random_state=3)
    return queries.take(range(35)), queries.take(range(35, 60))


def with_codes(queries):
    """The same with a first feature whose numbers are categories, which tell something together only."""
    codes = np.random.default_rng(0).integers(0, 12, queries.n_docs)
    X = queries.X.copy()
    X[:, 0] = codes
    y = np.clip(queries.y + 2 * np.isin(codes, (1, 4, 6, 11)), 0, 4)
    return rw.Queries.from_arrays(X, y, group=queries.sizes)


def with_missing(queries):
    """The same with values missing."""
    X = queries.X.copy()
    X[np.random.default_rng(1).random(X.shape) < 0.3] = np.nan
    return rw.Queries.from_arrays(X, queries.y, group=queries.sizes)


def gbm(train, valid=None, n=8, dataset=None, **params):
    data = lgb.Dataset(train.X, train.y, group=train.sizes, **(dataset or {}))
    if valid is None:
        return lgb.train(GBM | params, data, n)
    other = lgb.Dataset(valid.X, valid.y, group=valid.sizes, reference=data)
    stop = lgb.early_stopping(3, verbose=False)
    return lgb.train(GBM | params | {"metric": "ndcg"}, data, 50, valid_sets=[other], callbacks=[stop])


def gbm_estimator(kind, train, valid=None, **params):
    estimator = kind(n_estimators=8 if valid is None else 50, num_leaves=5, min_child_samples=5, learning_rate=0.3,
                     n_jobs=1, verbose=-1, **params)  # fmt: skip
    group = {"group": train.sizes} if kind is lgb.LGBMRanker else {}
    if valid is None:
        return estimator.fit(train.X, train.y, **group)
    stop = {"callbacks": [lgb.early_stopping(3, verbose=False)], "eval_set": [(valid.X, valid.y)]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what LightGBM will one day call these arguments
        return estimator.fit(train.X, train.y, **group, **stop, eval_group=[valid.sizes])


def dmatrix(queries):
    data = xgb.DMatrix(queries.X, queries.y)
    data.set_group(queries.sizes)
    return data


def xgbooster(train, valid=None, n=8, **params):
    more = {}
    if valid is not None:
        n, more = 50, {"evals": [(dmatrix(valid), "v")], "early_stopping_rounds": 3, "verbose_eval": False}
    return xgb.train(XGB | params, dmatrix(train), n, **more)


def xgb_estimator(kind, train, valid=None, **params):
    group = {"group": train.sizes} if kind == "XGBRanker" else {}
    n = 8
    if valid is not None:
        n, params = 50, params | {"early_stopping_rounds": 3}
        group |= {"eval_set": [(valid.X, valid.y)], "eval_group": [valid.sizes], "verbose": False}
    estimator = getattr(xgb, kind)(n_estimators=n, max_depth=3, learning_rate=0.3, n_jobs=1, **params)
    return estimator.fit(train.X, train.y, **group)


SMALL = {"n_estimators": 8, "num_leaves": 5, "min_child_samples": 5}
MODELS = {
    "lgb": lambda t, v: gbm(t),
    "lgb stopped": lambda t, v: gbm(t, v),
    "lgb regression": lambda t, v: gbm(t, objective="regression"),
    "lgb dart": lambda t, v: gbm(t, boosting="dart", drop_rate=0.5),
    "lgb goss": lambda t, v: gbm(t, data_sample_strategy="goss"),
    "lgb forest": lambda t, v: gbm(t, boosting="rf", objective="regression", **BAGGED),
    "LGBMRanker": lambda t, v: gbm_estimator(lgb.LGBMRanker, t),
    "LGBMRanker stopped": lambda t, v: gbm_estimator(lgb.LGBMRanker, t, v),
    "LGBMRegressor": lambda t, v: gbm_estimator(lgb.LGBMRegressor, t),
    "xgb": lambda t, v: xgbooster(t),
    "xgb stopped": lambda t, v: xgbooster(t, v),
    "xgb forests": lambda t, v: xgbooster(t, n=3, num_parallel_tree=3, subsample=0.6),
    "XGBRanker": lambda t, v: xgb_estimator("XGBRanker", t),
    "XGBRanker stopped": lambda t, v: xgb_estimator("XGBRanker", t, v),
    "XGBRegressor": lambda t, v: xgb_estimator("XGBRegressor", t),
    "LambdaMART": lambda t, v: rw.LambdaMART(**SMALL, learning_rate=0.3).fit(t),
    "MART": lambda t, v: rw.MART(**SMALL).fit(t).to_model(),
    "DirectRankTrees": lambda t, v: rw.DirectRankTrees(**SMALL).fit(t),
}


@pytest.fixture(scope="module")
def made(sets):
    """Models by name, trained once."""
    kept = {}

    def of(name):
        if name.lower().startswith("xgb") and xgb is None:
            pytest.skip("XGBoost is not installed (the extra `xgboost`)")
        if name not in kept:
            kept[name] = MODELS[name](*sets)
        return kept[name]

    return of


def predicted(model, queries):
    """What a user of the model gets."""
    if xgb is not None and isinstance(model, xgb.Booster):
        return model.predict(xgb.DMatrix(queries.X))
    return model.predict(queries if isinstance(model, (rw.Ranker, rw.Model)) else queries.X)


def judged(model, queries, measure=MEASURE):
    return measure.mean(queries, predicted(model, queries))


def trees(model):
    """By tree, its structure as text and the values of its leaves, from the library's own tables."""
    if isinstance(model, (rw.Ranker, rw.Model)):
        model = model.to_model().scorer.booster()
    model = getattr(model, "booster_", model)
    table = (model.get_booster() if hasattr(model, "get_booster") else model).trees_to_dataframe()
    if "tree_index" in table:
        key, value, leaf = "tree_index", "value", table["left_child"].isna()
        shape = ["left_child", "right_child", "split_feature", "threshold", "decision_type", "missing_direction"]
    else:
        key, value, leaf = "Tree", "Gain", table["Feature"] == "Leaf"
        shape = ["Node", "Feature", "Split", "Yes", "No", "Missing"]
    return [
        (table.loc[table[key] == t, shape].to_csv(), table.loc[(table[key] == t) & leaf, value].to_numpy())
        for t in table[key].unique()
    ]


def multiples(before, after):
    """The number by which the values of each tree were multiplied; the structures must be the same."""
    old, new = trees(before), trees(after)
    assert [shape for shape, _ in new] == [shape for shape, _ in old][: len(new)]
    found = []
    for (_, old_values), (_, new_values) in zip(old, new, strict=False):
        at = np.argmax(np.abs(old_values))
        weight = new_values[at] / old_values[at] if old_values[at] else 1.0
        np.testing.assert_allclose(new_values, weight * old_values, rtol=2e-6, atol=1e-12)
        found.append(weight)
    return np.array(found)


@pytest.mark.parametrize("name", MODELS)
class TestEveryKind:
    def test_the_same_trees_with_better_weights(self, sets, made, name):
        train = sets[0]
        model = made(name)
        before = [predicted(model, queries) for queries in sets]
        polished = rw.polish_model(model, train)
        assert judged(polished, train) > judged(model, train)
        assert polished is not model
        assert type(polished) is (rw.Model if isinstance(model, rw.Ranker) else type(model))
        weights = multiples(model, polished)
        assert not np.allclose(weights, weights[0], rtol=1e-3)
        for queries, scores in zip(sets, before, strict=True):
            assert predicted(model, queries).tobytes() == scores.tobytes()

    def test_never_worse_on_validation_queries(self, sets, made, name):
        train, valid = sets
        model = made(name)
        guarded = rw.polish_model(model, train, valid=valid)
        assert guarded is model or judged(guarded, valid) > judged(model, valid)

    def test_never_negative(self, sets, made, name):
        polished = rw.polish_model(made(name), sets[0], nonnegative=True)
        assert multiples(made(name), polished).min() >= 0.0
        assert judged(polished, sets[0]) >= judged(made(name), sets[0])

    def test_the_same_again(self, sets, made, name):
        found = [rw.polish_model(made(name), sets[0], backend=backend) for backend in (rw.Serial(), rw.Threads(2))]
        assert predicted(found[0], sets[1]).tobytes() == predicted(found[1], sets[1]).tobytes()

    def test_kept_by_its_own_library(self, sets, made, name, tmp_path):
        polished = rw.polish_model(made(name), sets[0])
        expected = predicted(polished, sets[1])
        assert predicted(pickle.loads(pickle.dumps(polished)), sets[1]).tobytes() == expected.tobytes()
        if isinstance(polished, rw.Model):
            rw.save(polished, tmp_path / "m.json")
            loaded = rw.load(tmp_path / "m.json")
        elif name.startswith("lgb"):
            polished.save_model(tmp_path / "m.txt")
            loaded = lgb.Booster(model_file=tmp_path / "m.txt")
        elif name.startswith("xgb"):
            polished.save_model(tmp_path / "m.ubj")
            loaded = xgb.Booster(model_file=tmp_path / "m.ubj")
        elif name.startswith("LGBM"):
            polished.booster_.save_model(tmp_path / "m.txt")
            loaded = lgb.Booster(model_file=tmp_path / "m.txt")
        else:
            polished.save_model(tmp_path / "m.json")
            loaded = type(polished)()
            loaded.load_model(tmp_path / "m.json")
        assert predicted(loaded, sets[1]).tobytes() == expected.tobytes()


class TestWhatIsJudged:
    def test_weights_are_those_of_polish(self, sets, made):
        """Trees as the columns of rw.polish give the same measure: two ways to the same landscape."""
        train, _ = sets
        model = made("lgb")
        leaves = model.predict(train.X, pred_leaf=True)
        columns = np.column_stack([[model.get_leaf_output(t, leaf) for leaf in row] for t, row in enumerate(leaves.T)])
        polished = rw.polish(columns, train)
        found = rw.polish_model(model, train)
        assert judged(found, train) == pytest.approx(polished.after, abs=1e-12)
        weights = multiples(model, found)
        np.testing.assert_allclose(weights / weights[0], polished.weights / polished.weights[0], rtol=1e-9)

    @pytest.mark.parametrize("measure", ["map", "err@5", "mrr", "p@3", "ndcg@3(gain=linear)"])
    def test_any_measure(self, sets, made, measure):
        wanted = rw.parse_measure(measure)
        polished = rw.polish_model(made("lgb"), sets[0], measure)
        assert judged(polished, sets[0], wanted) > judged(made("lgb"), sets[0], wanted)

    def test_a_measure_of_the_users_own(self, sets, made):
        wanted = rw.make_measure(lambda grades: float(grades[:2].sum() / 8), name="two_first_of_a_model")
        polished = rw.polish_model(made("lgb"), sets[0], wanted, max_iter=2)
        assert judged(polished, sets[0], wanted) > judged(made("lgb"), sets[0], wanted)

    def test_query_weights_count(self, sets, made):
        train = sets[0]
        heavy = np.where(np.arange(len(train)) < 5, 1000.0, 1.0)
        weighted = rw.Queries.from_arrays(train.X, train.y, group=train.sizes, weight=heavy)
        few = train.take(range(5))
        found = [rw.polish_model(made("lgb"), queries) for queries in (weighted, train)]
        assert judged(found[0], few) > judged(found[1], few)

    @pytest.mark.parametrize("name", ["lgb", "LGBMRanker", "xgb", "XGBRanker", "LambdaMART"])
    @pytest.mark.parametrize("held_out", [False, True])
    def test_real_predictions_have_the_last_word(self, sets, made, monkeypatch, name, held_out):
        """Whatever the climb believes to have found."""

        def mistaken(train, held_out, start, rules, rng):
            return climbing.polish_weights(train, held_out, start, rules, rng)._replace(weights=-start, after=1.0)

        monkeypatch.setattr(polishing, "polish_weights", mistaken)
        valid = {"valid": sets[1]} if held_out else {}
        assert rw.polish_model(made(name), sets[0], **valid) is made(name)

    def test_validation_queries_have_the_last_word(self, sets, made, monkeypatch):
        """Though a climb that does not look at them was better on the training queries."""

        def careless(train, held_out, start, rules, rng):
            return climbing.polish_weights(train, None, start, rules, rng)

        names = ["lgb", "lgb dart", "lgb goss", "lgb forest", "LGBMRegressor", "LambdaMART", "MART"]
        names += [] if xgb is None else ["xgb", "XGBRanker"]
        better = {
            name: judged(rw.polish_model(made(name), sets[0]), sets[1]) > judged(made(name), sets[1]) for name in names
        }
        assert set(better.values()) == {True, False}
        monkeypatch.setattr(polishing, "polish_weights", careless)
        for name in names:
            found = rw.polish_model(made(name), sets[0], valid=sets[1])
            assert (found is not made(name)) == better[name]

    @needs_xgboost
    def test_single_precision(self, sets):
        """XGBoost adds a base score in single precision: with a huge one all documents tie, whatever the weights."""
        model = xgbooster(sets[0])
        content = json.loads(model.save_raw("json"))
        content["learner"]["learner_model_param"]["base_score"] = "1E10"
        model.load_model(bytearray(json.dumps(content).encode()))
        assert len(np.unique(predicted(model, sets[0]))) == 1
        assert rw.polish_model(model, sets[0]) is model

    def test_nothing_to_gain(self, sets):
        train, valid = sets
        perfect = rw.Queries.from_arrays(np.c_[train.y, train.X[:, 1:]], train.y, group=train.sizes)
        model = gbm(perfect, min_data_in_leaf=1, num_leaves=6)
        assert judged(model, perfect) == MEASURE.mean(perfect, perfect.y)
        assert rw.polish_model(model, perfect) is model
        flat = gbm(train, min_data_in_leaf=10_000)  # leaves without splits
        assert rw.polish_model(flat, train) is flat
        assert rw.polish_model(flat, train, valid=valid) is flat
        nothing = rw.Queries.from_arrays(train.X, 0 * train.y, group=train.sizes)
        model = gbm(train)
        assert rw.polish_model(model, nothing) is model

    def test_one_tree(self, sets):
        model = gbm(sets[0], n=1)
        assert (
            rw.polish_model(model, sets[0]) is model
        )  # the one that there is ranks as it does with any weight above 0
        backwards = gbm(rw.Queries.from_arrays(sets[0].X, 4 - sets[0].y, group=sets[0].sizes), n=1)
        polished = rw.polish_model(backwards, sets[0])
        assert multiples(backwards, polished)[0] < 0
        assert judged(polished, sets[0]) > judged(backwards, sets[0])
        assert rw.polish_model(backwards, sets[0], nonnegative=True) is backwards

    def test_limits(self, sets, made):
        train, model = sets[0], made("lgb")
        assert rw.polish_model(model, train, max_seconds=0) is model
        values = [judged(rw.polish_model(model, train, max_iter=n), train) for n in (1, 2, 100)]
        assert judged(model, train) < values[0] <= values[1] <= values[2]
        assert rw.polish_model(model, train, max_seconds=600) is not model

    def test_random_state_is_the_order_of_the_trees(self, sets, made):
        def scores(seed):
            return predicted(rw.polish_model(made("lgb"), sets[0], random_state=seed), sets[0]).tobytes()

        assert scores(0) == scores(0)
        assert len({scores(seed) for seed in range(4)}) > 1


class TestSize:
    """A ranking says nothing of the size of scores; users of probabilities, margins and sums do."""

    def test_probabilities_do_not_saturate(self, sets):
        train = sets[0]
        model = lgb.LGBMClassifier(n_estimators=8, num_leaves=5, n_jobs=1, verbose=-1).fit(train.X, train.y > 0)
        polished = rw.polish_model(model, train)
        before, after = (each.predict_proba(train.X)[:, 1] for each in (model, polished))
        assert MEASURE.mean(train, after) > MEASURE.mean(train, before)
        assert 0.0 < after.min() < after.max() < 1.0

    @pytest.mark.parametrize("name", ["lgb", "XGBRanker", "LambdaMART"])
    def test_scores_spread_as_before(self, sets, made, name):
        train = sets[0]
        before, after = (predicted(each, train) for each in (made(name), rw.polish_model(made(name), train)))
        ranges = [np.mean([np.ptp(scores[rows]) for rows in train]) for scores in (before, after)]
        assert 0.3 < ranges[1] / ranges[0] < 3.0


class TestSums:
    @staticmethod
    def make(train, weights=(1.0, 0.5, 0.25), **params):
        """A sum of trees, stumps, a linear scorer and a network."""
        n = train.n_features
        rankers = [rw.MART(n_estimators=8, num_leaves=4, **params), rw.RankBoost(n_estimators=8), rw.CoordinateAscent()]
        rng = np.random.default_rng(0)
        network = Network(
            np.zeros(n), np.ones(n), [rng.normal(size=(n, 2)), rng.normal(size=(2, 1))], [np.zeros(2), np.zeros(1)]
        )
        scorers = [*(ranker.fit(train).to_model().scorer for ranker in rankers), network]
        return rw.Model("Blend", {}, "ndcg@10", merge_scorers(scorers, [*weights, 0.01], 0.5), n)

    def test_trees_and_other_parts_get_weights(self, sets):
        train, valid = sets
        model = self.make(train)
        polished = rw.polish_model(model, train, MEASURE)
        assert MEASURE.mean(train, polished.predict(train)) > MEASURE.mean(train, model.predict(train))
        assert [part.kind for part in polished.scorer.scorers] == ["linear", "trees", "network"]
        before, after = ({part.kind: part for part in each.scorer.scorers} for each in (model, polished))
        used = before["linear"].coef != 0.0
        ratios = after["linear"].coef[used] / before["linear"].coef[used]
        assert np.allclose(ratios, ratios[0])
        for old, new in zip(before["trees"].forest.trees, after["trees"].forest.trees, strict=True):
            used = old.values != 0.0
            assert np.allclose((new.values[used] / old.values[used]), (new.values[used] / old.values[used])[0])
        assert polished.scorer.intercept == model.scorer.intercept
        held_out = rw.polish_model(model, train, MEASURE, valid=valid)
        assert MEASURE.mean(valid, held_out.predict(valid)) >= MEASURE.mean(valid, model.predict(valid))

    def test_weights_are_those_of_polish(self, sets):
        train = sets[0]
        model = self.make(train)
        linear, trees, network = model.scorer.scorers
        single = [Trees(Forest(trees.forest.header, (tree,))) for tree in trees.forest.trees]
        columns = [each(train.X) for each in single] + [linear(train.X), 0.01 * network(train.X)]
        expected = rw.polish(np.column_stack(columns), train, MEASURE)
        polished = rw.polish_model(model, train, MEASURE)
        assert MEASURE.mean(train, polished.predict(train)) == pytest.approx(expected.after)

    def test_nonnegative_and_monotone(self, sets):
        train = sets[0]
        constraints = [1] + [0] * (train.n_features - 1)
        model = self.make(train, weights=(1.0, 0.0, 0.25), lightgbm_params={"monotone_constraints": constraints})
        assert model.scorer.scorers[1].forest.is_monotone
        polished = rw.polish_model(model, train, MEASURE)
        old, new = model.scorer.scorers[1].forest.trees, polished.scorer.scorers[1].forest.trees
        assert all((a.values * b.values >= 0.0).all() for a, b in zip(old, new, strict=True))

    def test_a_sum_of_trees_is_polished_as_one_forest(self, sets):
        train = sets[0]
        trees = [rw.MART(n_estimators=4, num_leaves=n).fit(train).to_model().scorer for n in (3, 5)]
        total = rw.Model("Blend", {}, "ndcg@10", WeightedSum(trees, np.array([1.0, 0.5])), train.n_features)
        polished = rw.polish_model(total, train, MEASURE)
        assert isinstance(polished.scorer, Trees)
        assert MEASURE.mean(train, polished.predict(train)) >= MEASURE.mean(train, total.predict(train))

    def test_a_sum_without_trees_is_refused(self, sets):
        scorer = WeightedSum([Feature(0), Feature(1)], np.ones(2), 1.0)
        with pytest.raises(rw.InputError, match="expected one of trees"):
            rw.polish_model(rw.Model("Blend", {}, "map", scorer, sets[0].n_features), sets[0], MEASURE)


class TestLightGBM:
    def test_early_stopping(self, sets, made):
        model = made("lgb stopped")
        assert 1 < model.best_iteration < 50
        polished = rw.polish_model(model, sets[0])
        assert (polished.best_iteration, polished.num_trees()) == (model.best_iteration,) * 2
        polished = rw.polish_model(made("LGBMRanker stopped"), sets[0])
        assert polished.best_iteration_ == made("LGBMRanker stopped").best_iteration_
        assert polished.get_params() == made("LGBMRanker stopped").get_params()

    def test_more_trees_than_the_best(self, sets):
        """Trees after the best iteration predict nothing, and have no part in it."""
        model = gbm(sets[0], n=8)
        model.best_iteration = 3
        expected = rw.polish_model(gbm(sets[0], n=3), sets[0])
        polished = rw.polish_model(model, sets[0])
        np.testing.assert_array_equal(polished.predict(sets[0].X), expected.predict(sets[0].X))
        assert judged(polished, sets[0]) > judged(model, sets[0])

    def test_missing_values(self, sets):
        train, valid = (with_missing(queries) for queries in sets)
        model = gbm(train)
        polished = rw.polish_model(model, train)
        assert judged(polished, train) > judged(model, train)
        scores = polished.predict(valid.X)
        assert polished.predict(np.nan_to_num(valid.X)).tolist() != scores.tolist()

    def test_categories(self, sets):
        train = with_codes(sets[0])
        options = {"min_data_per_group": 2, "cat_smooth": 1, "cat_l2": 0.1, "max_cat_to_onehot": 1}
        model = gbm(train, **options, dataset={"categorical_feature": [0]})
        assert "num_cat=1" in model.model_to_string()
        polished = rw.polish_model(model, train)
        assert judged(polished, train) > judged(model, train)
        multiples(model, polished)

    def test_data_frames(self, sets):
        train = sets[0]
        frame = pd.DataFrame(train.X, columns=[f"feature {i}" for i in range(8)])
        model = lgb.train(GBM, lgb.Dataset(frame, train.y, group=train.sizes), 6)
        polished = rw.polish_model(model, train)
        assert polished.feature_name() == model.feature_name()
        assert MEASURE.mean(train, polished.predict(frame)) > MEASURE.mean(train, model.predict(frame))
        estimator = lgb.LGBMRanker(n_estimators=6, num_leaves=5, n_jobs=1, verbose=-1)
        estimator.fit(frame, train.y, group=train.sizes)
        polished = rw.polish_model(estimator, train)
        assert polished.feature_name_ == estimator.feature_name_
        assert MEASURE.mean(train, polished.predict(frame)) > MEASURE.mean(train, estimator.predict(frame))

    def test_categories_of_a_data_frame(self, sets):
        train = with_codes(sets[0])
        frame = pd.DataFrame(train.X, columns=[f"f{i}" for i in range(8)])
        frame["f0"] = pd.Categorical(["abcdefghijkl"[int(code)] for code in train.X[:, 0]])
        options = {"min_data_per_group": 2, "cat_smooth": 1, "cat_l2": 0.1, "max_cat_to_onehot": 1}
        model = lgb.train(GBM | options, lgb.Dataset(frame, train.y, group=train.sizes), 6)
        assert "num_cat=1" in model.model_to_string()
        polished = rw.polish_model(model, train)
        assert MEASURE.mean(train, polished.predict(frame)) > MEASURE.mean(train, model.predict(frame))

    @pytest.mark.parametrize("sign", [1, -1])
    def test_monotone_constraints_hold(self, sets, sign):
        train = flipped(sets[0], sign)
        model = gbm(train, monotone_constraints=[sign] * 8)
        polished = rw.polish_model(model, train)
        assert polished is not model
        steps = monotone_steps(polished.predict, train)
        assert (sign * steps >= 0).all()
        assert steps.any()
        again = rw.polish_model(lgb.Booster(model_str=model.model_to_string()), train)
        assert again.predict(train.X).tobytes() == polished.predict(train.X).tobytes()

    def test_contributions_add_up(self, sets, made):
        polished = rw.polish_model(made("lgb"), sets[0])
        shares = polished.predict(sets[0].X, pred_contrib=True)
        np.testing.assert_allclose(shares.sum(axis=1), polished.predict(sets[0].X), atol=1e-10)

    def test_objectives_of_ones_own(self, sets):
        train = sets[0]

        def squares(scores, data):
            return scores - data.get_label(), np.ones(len(scores))

        model = gbm(train, objective=squares)
        assert judged(rw.polish_model(model, train), train) > judged(model, train)

    def test_zeros_as_missing_values(self, sets):
        train = with_codes(sets[0])
        model = gbm(train, zero_as_missing=True)
        assert judged(rw.polish_model(model, train), train) > judged(model, train)

    def test_more_leaves_than_a_byte_counts(self):
        train = rw.make_queries(60, n_docs=30, n_features=8, noise=2.0, random_state=0)
        model = gbm(train, n=3, num_leaves=600, min_data_in_leaf=1, objective="regression")
        assert max(len(values) for _, values in trees(model)) > 256
        leaves = make_ensemble(model, "ndcg@10", 1).make_columns(train)
        np.testing.assert_allclose(leaves.scores(np.ones(3)), model.predict(train.X), atol=1e-12)

    def test_training_goes_on(self, sets, made):
        train = sets[0]
        polished = rw.polish_model(made("lgb"), train)
        data = lgb.Dataset(train.X, train.y, group=train.sizes)
        longer = lgb.train(GBM, data, 2, init_model=polished)
        assert longer.num_trees() == polished.num_trees() + 2


def flipped(queries, sign):
    """The same with features that all have this sign."""
    return rw.Queries.from_arrays(sign * queries.X, queries.y, group=queries.sizes)


class OwnRanker(lgb.LGBMRanker):
    """As users write them."""


def test_subclasses_of_estimators(sets):
    train = sets[0]
    estimators = [OwnRanker(n_estimators=6, num_leaves=5, min_child_samples=5, n_jobs=1, verbose=-1)]
    if xgb is not None:
        estimators.append(type("OwnRanker", (xgb.XGBRanker,), {})(n_estimators=6, max_depth=3, n_jobs=1))
    for estimator in estimators:
        estimator.fit(train.X, train.y, group=train.sizes)
        polished = rw.polish_model(estimator, train)
        assert type(polished) is type(estimator)
        assert judged(polished, train) > judged(estimator, train)


def monotone_steps(predict, queries, n=12):
    """What each step of one feature, upwards, changes the scores of some documents by."""
    some, changes = queries.X[:15], []
    for feature in range(queries.n_features):
        documents = np.tile(some, (n, 1))
        documents[:, feature] = np.repeat(np.quantile(queries.X[:, feature], np.linspace(0, 1, n)), len(some))
        changes.append(np.diff(predict(documents).reshape(n, len(some)), axis=0))
    return np.concatenate(changes)


@needs_xgboost
class TestXGBoost:
    def test_early_stopping(self, sets, made):
        """An estimator predicts with its best rounds, a Booster with all: so are they polished."""
        estimator, booster = made("XGBRanker stopped"), made("xgb stopped")
        n = estimator.best_iteration + 1
        assert 1 < n < estimator.get_booster().num_boosted_rounds()
        polished = rw.polish_model(estimator, sets[0])
        assert polished.best_iteration == estimator.best_iteration
        assert polished.get_params() == estimator.get_params()
        weights = multiples(estimator, polished)
        assert (weights[n:] == 1.0).all()
        assert (weights[:n] != 1.0).any()
        polished = rw.polish_model(booster, sets[0])
        assert polished.best_iteration == booster.best_iteration
        assert polished.num_boosted_rounds() == booster.num_boosted_rounds()

    def test_missing_values(self, sets):
        train = with_missing(sets[0])
        model = xgbooster(train)
        assert judged(rw.polish_model(model, train), train) > judged(model, train)

    def test_another_sign_of_missing_values(self, sets):
        train = with_codes(sets[0])
        estimator = xgb.XGBRanker(n_estimators=6, max_depth=3, n_jobs=1, missing=4.0)
        estimator.fit(train.X, train.y, group=train.sizes)
        assert judged(rw.polish_model(estimator, train), train) > judged(estimator, train)

    def test_categories(self, sets):
        train = with_codes(sets[0])
        types = ["c"] + ["q"] * 7
        data = xgb.DMatrix(train.X, train.y, feature_types=types, enable_categorical=True)
        data.set_group(train.sizes)
        model = xgb.train(XGB | {"max_cat_to_onehot": 1, "min_child_weight": 0.01}, data, 6)
        assert any(
            tree["categories"]
            for tree in json.loads(model.save_raw("json"))["learner"]["gradient_booster"]["model"]["trees"]
        )
        polished = rw.polish_model(model, train)
        assert MEASURE.mean(train, polished.predict(data)) > MEASURE.mean(train, model.predict(data))

    def test_data_frames(self, sets):
        train = sets[0]
        frame = pd.DataFrame(train.X, columns=[f"feature {i}" for i in range(8)])
        estimator = xgb.XGBRanker(n_estimators=6, max_depth=3, n_jobs=1).fit(frame, train.y, group=train.sizes)
        polished = rw.polish_model(estimator, train)
        assert polished.feature_names_in_.tolist() == frame.columns.tolist()
        assert MEASURE.mean(train, polished.predict(frame)) > MEASURE.mean(train, estimator.predict(frame))
        booster = rw.polish_model(estimator.get_booster(), train)
        assert booster.feature_names == frame.columns.tolist()

    @pytest.mark.parametrize(("signs", "sign"), [((1,) * 8, 1), ("(-1,-1,-1,-1,-1,-1,-1,-1)", -1)])
    def test_monotone_constraints_hold(self, sets, signs, sign):
        train = flipped(sets[0], sign)
        model = xgbooster(train, monotone_constraints=signs)
        polished = rw.polish_model(model, train)
        assert polished is not model
        steps = monotone_steps(lambda X: polished.predict(xgb.DMatrix(X)).astype(float), train)
        assert (sign * steps >= -1e-6).all()
        assert steps.any()

    @pytest.mark.parametrize("kind", ["XGBRFRegressor", "XGBRFClassifier", "XGBClassifier"])
    def test_other_estimators(self, sets, kind):
        train = sets[0]
        model = getattr(xgb, kind)(n_estimators=8, max_depth=3, n_jobs=1).fit(train.X, np.minimum(train.y, 1))
        predict = (lambda each: each.predict_proba(train.X)[:, 1]) if "Classifier" in kind else (
            lambda each: each.predict(train.X))  # fmt: skip
        polished = rw.polish_model(model, train)
        assert type(polished) is type(model)
        assert MEASURE.mean(train, predict(polished)) > MEASURE.mean(train, predict(model))

    def test_loaded_and_cut(self, sets, made, tmp_path):
        train, model = sets[0], made("xgb")
        model.save_model(tmp_path / "m.json")
        estimator = xgb.XGBRanker()
        estimator.load_model(tmp_path / "m.json")
        assert judged(rw.polish_model(estimator, train), train) > judged(estimator, train)
        cut = model[2:6]
        assert rw.polish_model(cut, train).num_boosted_rounds() == 4

    def test_contributions_add_up(self, sets, made):
        polished, data = rw.polish_model(made("xgb"), sets[0]), xgb.DMatrix(sets[0].X)
        shares = polished.predict(data, pred_contribs=True)
        np.testing.assert_allclose(shares.sum(axis=1), polished.predict(data), atol=1e-4)

    @pytest.mark.parametrize(
        ("params", "message"),
        [
            ({"booster": "dart"}, "of dart; expected gbtree"),
            ({"booster": "gblinear", "objective": "reg:squarederror"}, "of gblinear; expected gbtree"),
            ({"objective": "multi:softprob", "num_class": 5}, "several scores a document"),
        ],
    )
    def test_other_models_are_refused(self, sets, params, message):
        params = {key: value for key, value in XGB.items() if key != "max_depth"} | params
        model = xgb.train(params, dmatrix(sets[0]), 2)
        with pytest.raises(rw.InputError, match=message):
            rw.polish_model(model, sets[0])


class TestOurs:
    def test_a_model_says_what_became_of_it(self, sets, made, tmp_path):
        """The row `kept` of the history is that of the model, by which diagnose knows the training queries."""
        ranker = made("LambdaMART")
        polished = rw.polish_model(ranker, sets[0])
        [kept] = [row for row in polished.history if row.get("kept")]
        assert kept["train"] == pytest.approx(polished.score(sets[0]), abs=1e-12)
        assert "These seem to be the training queries" in str(rw.diagnose(polished, sets[0]))
        assert "kept" in ranker.history_[-1]

    def test_for_another_measure(self, sets, made):
        """The model is of the measure that it was polished for."""
        polished = rw.polish_model(made("LambdaMART"), sets[0], "map")
        [kept] = [row for row in polished.history if row.get("kept")]
        assert polished.measure == "map"
        assert kept["train"] == pytest.approx(judged(polished, sets[0], rw.parse_measure("map")), abs=1e-12)
        assert made("LambdaMART").to_model().measure == "ndcg@10"

    def test_monotone_constraints_hold(self, sets):
        ranker = rw.LambdaMART(**SMALL, lightgbm_params={"monotone_constraints": [1] * 8}).fit(sets[0])
        polished = rw.polish_model(ranker, sets[0])
        assert polished is not ranker
        steps = monotone_steps(polished.predict, sets[0])
        assert (steps >= 0).all()

    def test_a_model_is_gone_on_from(self, sets, made, tmp_path):
        polished = rw.polish_model(made("LambdaMART"), sets[0])
        rw.save(polished, tmp_path / "m.json")
        longer = rw.LambdaMART(**SMALL | {"n_estimators": 10}, init_model=tmp_path / "m.json").fit(sets[0])
        assert len(longer.to_model().scorer) == 10
        np.testing.assert_array_equal(
            Trees(longer.to_model().scorer.forest.take_first(8))(sets[0].X), polished.predict(sets[0])
        )

    @may_be_ineffective
    def test_scaling(self, sets):
        train = sets[0]
        ranker = rw.MART(**SMALL, scale="standard").fit(train)
        assert rw.polish_model(ranker, train).score(train) > ranker.score(train)
        with pytest.raises(rw.InputError, match="scales features within each query"):
            rw.polish_model(rw.MART(**SMALL, scale="query").fit(train), train)

    def test_stopped_on_validation_queries(self, sets):
        train, valid = sets
        ranker = rw.MART(n_estimators=30, num_leaves=5, min_child_samples=5, early_stopping_rounds=3).fit(
            train, valid=valid
        )
        polished = rw.polish_model(ranker, train, valid=valid)
        assert polished.score(valid) >= ranker.score(valid)

    def test_other_rankers_are_refused(self, sets):
        with pytest.raises(rw.InputError, match=r"a model of Regression; expected one of trees \(rw.polish takes any"):
            rw.polish_model(rw.Regression().fit(sets[0]), sets[0])
        with pytest.raises(NotFittedError):
            rw.polish_model(rw.MART(), sets[0])


class TestWhatIsRefused:
    @pytest.mark.parametrize("model", [5, None, "model.txt", lgb.Booster, np.ones(3), rw.MART])
    def test_no_model_at_all(self, sets, model):
        with pytest.raises(rw.InputError, match="expected a fitted ranker"):
            rw.polish_model(model, sets[0])

    def test_other_things_of_the_libraries(self, sets):
        others = [lgb.Dataset(sets[0].X)] + ([] if xgb is None else [xgb.DMatrix(sets[0].X)])
        for other in others:
            with pytest.raises(rw.InputError, match=f"a {type(other).__name__}.* expected a Booster"):
                rw.polish_model(other, sets[0])

    @pytest.mark.parametrize("kind", [lgb.LGBMRanker, lgb.LGBMRegressor])
    def test_estimators_that_are_not_fitted(self, sets, kind):
        with pytest.raises(NotFittedError):
            rw.polish_model(kind(), sets[0])

    @needs_xgboost
    def test_xgboost_estimators_that_are_not_fitted(self, sets):
        with pytest.raises(NotFittedError):
            rw.polish_model(xgb.XGBRanker(), sets[0])

    def test_models_without_trees(self, sets):
        train = sets[0]
        models = [lgb.Booster(GBM, lgb.Dataset(train.X, train.y, group=train.sizes))]
        models += [] if xgb is None else [xgbooster(train, n=0), xgb.Booster()]
        for model in models:
            with pytest.raises(rw.InputError, match=r"no trees|without trees"):
                rw.polish_model(model, train)

    def test_other_models_of_lightgbm(self, sets):
        train = sets[0]
        for params, message in [
            ({"objective": "multiclass", "num_class": 5}, "several scores a document"),
            ({"objective": "regression", "linear_tree": True}, "linear leaves"),
        ]:
            with pytest.raises(rw.InputError, match=message):
                rw.polish_model(lgb.train(GBM | params, lgb.Dataset(train.X, train.y), 2), train)

    @pytest.mark.parametrize("name", ["lgb", "LGBMRanker", "xgb", "XGBRanker", "LambdaMART", "MART"])
    def test_other_features(self, sets, made, name):
        other = rw.make_queries(5, n_features=7, random_state=0)
        with pytest.raises(rw.InputError, match=r"the documents have 7 features; the model (takes|was trained on) 8"):
            rw.polish_model(made(name), other)
        with pytest.raises(rw.InputError, match="the documents have 7 features"):
            rw.polish_model(made(name), sets[0], valid=other)

    def test_features_of_other_names(self, sets):
        train = sets[0]
        names = [f"f{i}" for i in range(8)]
        ours, backwards = (
            rw.Queries.from_arrays(train.X, train.y, group=train.sizes, features=each) for each in (names, names[::-1])
        )
        frame = pd.DataFrame(train.X, columns=names)
        models = [rw.MART(**SMALL).fit(ours), lgb.train(GBM, lgb.Dataset(frame, train.y, group=train.sizes), 2)]
        if xgb is not None:
            models.append(xgb.XGBRanker(n_estimators=2, n_jobs=1).fit(frame, train.y, group=train.sizes))
        for model in models:
            rw.polish_model(model, ours)
            with pytest.raises(rw.InputError, match="feature 1 is called 'f7'"):
                rw.polish_model(model, backwards)

    def test_options(self, sets, made):
        train, valid = sets
        for arguments, options, message in [
            ((train.X,), {}, "the training queries are a ndarray; expected a Queries"),
            ((train,), {"valid": valid.X}, "the validation queries are a ndarray; expected a Queries"),
            ((train,), {"valid": (valid.X, valid)}, "the validation queries are a tuple"),
            ((train, "nothing"), {}, "unknown measure 'nothing'"),
            ((train,), {"max_iter": 0}, "max_iter=0"),
            ((train,), {"max_iter": 2.5}, "max_iter=2.5"),
            ((train,), {"max_seconds": -1}, "max_seconds=-1"),
            ((train,), {"random_state": "a"}, "random_state='a'"),
            ((train,), {"backend": "a"}, "backend='a'"),
        ]:
            with pytest.raises(rw.InputError, match=message):
                rw.polish_model(made("lgb"), *arguments, **options)

    def test_labels_that_no_query_has(self, sets, made):
        """A measure that counts no query has no mean."""
        train = sets[0]
        nothing = rw.Queries.from_arrays(train.X, 0 * train.y, group=train.sizes)
        with pytest.raises(rw.InputError, match="training"):
            rw.polish_model(made("lgb"), nothing, "map(empty=skip)")


def test_without_xgboost(tmp_path):
    """Nothing of it needs XGBoost where the model is of LightGBM; what is missing is named where it is not."""
    script = """
import sys
sys.modules["xgboost"] = None
import lightgbm as lgb
import rankwright as rw
from rankwright.basics.optional_imports import require
queries = rw.make_queries(12, random_state=0)
data = lgb.Dataset(queries.X, queries.y, group=queries.sizes)
model = lgb.train({"objective": "lambdarank", "num_leaves": 4, "verbose": -1, "num_threads": 1}, data, 3)
assert isinstance(rw.polish_model(model, queries), lgb.Booster)
try:
    require("xgboost")
except ImportError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=100, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "this needs xgboost; install it with: pip install 'rankwright[xgboost]'\n"
