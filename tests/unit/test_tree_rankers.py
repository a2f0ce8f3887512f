"""MART, LambdaMART, DirectRankTrees and BoostedTrees: against LightGBM, against slow twins, and on awkward data."""

from __future__ import annotations

import json
import warnings
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise, product

import lightgbm as lgb
import numpy as np
import pytest
from tests.reference import line_search as lines
from tests.reference import trees as twin
from tests.reference.measures import BY_NAME
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.objectives import Lambdas
from rankwright.objectives.objective_names import OBJECTIVES
from rankwright.rankers.trees import tree_boosting as tree_stages
from rankwright.rankers.trees.lambdamart import make_lambdarank_options
from rankwright.scorers import Trees
from rankwright.scorers.lightgbm_text import Forest

ALL = {
    "MART": lambda **more: rw.MART(**more),
    "native": lambda **more: rw.LambdaMART(lambdas="lightgbm", **more),
    "exact": lambda **more: rw.LambdaMART(**more),
    "DirectRankTrees": lambda **more: rw.DirectRankTrees(**more),
    "unclipped": lambda **more: rw.DirectRankTrees(weight_range=None, **more),
    "BoostedTrees": lambda **more: rw.BoostedTrees(**more),
    "sampled": lambda **more: rw.BoostedTrees(objective="expected", **more),
}
every = pytest.mark.parametrize("make", ALL.values(), ids=ALL)
NATIVE = pytest.mark.parametrize("make", [ALL["MART"], ALL["native"]], ids=["MART", "native"])


def judged(seed=0, m=24, n=15, d=4, *, missing=0.0, whole=False, grades=4, weight=None):
    """Queries whose grades depend on the features, one of them through a product."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(2, 2 * n, m)
    X = rng.normal(size=(int(sizes.sum()), d))
    if whole:
        X = np.round(1.5 * X)
    y = X[:, 0] + 0.7 * X[:, 1] * X[:, 2] + 0.5 * rng.normal(size=len(X)) + 0.7
    X[rng.random(X.shape) < missing] = np.nan
    y = np.clip(np.round(y), 0, grades - 1)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(m), sizes), weight=weight)


def theirs(ranker, queries, n_estimators):
    """LightGBM itself, told what our ranker told it; on one thread, for threads wait for each other by spinning."""
    params = {**ranker.lightgbm_params_, "num_threads": 1}
    weight = None if queries.weight is None else np.repeat(queries.weight, queries.sizes)
    data = lgb.Dataset(queries.X, queries.y, group=queries.sizes, weight=weight, params=params)
    return lgb.train(params, data, n_estimators)


def kept(ranker):
    [row] = [row for row in ranker.history_ if row.get("kept")]
    return row


def held_back():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 2))
    y = np.clip(np.round(X[:, 1] - X[:, 0] + 1), 0, 3)
    return rw.Queries.from_arrays(X, y, np.repeat(np.arange(20), 20))


class TestNativeIsLightGBM:
    @NATIVE
    @pytest.mark.parametrize(
        "kind",
        [{}, {"missing": 0.3}, {"whole": True}, {"weight": np.arange(24) + 0.5}],
        ids=["", "nan", "whole", "weight"],
    )
    def test_the_same_bits(self, make, kind):
        queries, other = judged(**kind), judged(1, missing=0.2)
        ranker = make(n_estimators=12, num_leaves=7, min_child_samples=5).fit(queries)
        booster = theirs(ranker, queries, 12)
        for each in (queries, other):
            np.testing.assert_array_equal(ranker.predict(each), booster.predict(each.X))
        assert len(np.unique(ranker.predict(queries))) > 20
        plain = theirs(make(n_estimators=2, num_leaves=7, min_child_samples=5).fit(judged(2)), queries, 2)
        assert not np.array_equal(plain.predict(queries.X), booster.predict(queries.X))

    @NATIVE
    def test_weights_make_a_difference(self, make):
        queries, weighted = judged(), judged(weight=np.arange(24) + 0.5)
        found = [
            make(n_estimators=3, num_leaves=7, min_child_samples=5).fit(each).predict(queries)
            for each in (queries, weighted)
        ]
        assert not np.allclose(*found)

    @NATIVE
    def test_query_ids_in_any_order_and_of_any_kind(self, make):
        queries = judged()
        expected = make(n_estimators=5, num_leaves=7).fit(queries)
        rows = np.argsort(np.random.default_rng(0).random(queries.n_docs), kind="stable")
        rows = rows[np.argsort(queries.row_qid[rows] % 3, kind="stable")]  # queries apart, in pieces
        names = np.array([f"q{q:03d}" for q in queries.row_qid])
        shuffled = make(n_estimators=5, num_leaves=7).fit(queries.X[rows], queries.y[rows], qid=names[rows])
        grouped = rw.Queries.from_arrays(queries.X[rows], queries.y[rows], names[rows]).grouped()
        booster = theirs(shuffled, grouped, 5)
        np.testing.assert_array_equal(shuffled.predict(queries.X[rows]), booster.predict(queries.X[rows]))
        if isinstance(expected, rw.MART):  # lambdarank breaks ties by the order of the rows
            np.testing.assert_allclose(shuffled.predict(queries), expected.predict(queries), atol=1e-9)

    @NATIVE
    @pytest.mark.parametrize(
        "params",
        [
            {"bagging_fraction": 0.6, "bagging_freq": 1},
            {"feature_fraction": 0.5},
            {"lambda_l1": 0.1, "lambda_l2": 2.0, "max_depth": 3},
            {"monotone_constraints": [1, 0, 0, -1]},
            {"data_sample_strategy": "goss"},
            {"extra_trees": True},
        ],
        ids=str,
    )
    def test_with_parameters(self, make, params):
        queries = judged(missing=0.1)
        ranker = make(n_estimators=8, num_leaves=6, min_child_samples=5, lightgbm_params=params, random_state=3).fit(
            queries
        )
        booster = theirs(ranker, queries, 8)
        np.testing.assert_array_equal(ranker.predict(queries), booster.predict(queries.X))
        assert ranker.lightgbm_params_.items() >= params.items()

    @NATIVE
    def test_a_round_without_a_split_is_not_the_end(self, make):
        """Where features are drawn by chance: the first one may go up only, and is good where it goes down."""
        queries = held_back()
        params = {"feature_fraction": 0.5, "monotone_constraints": [1, 0]}
        ranker = make(n_estimators=12, num_leaves=4, lightgbm_params=params).fit(queries)
        booster = theirs(ranker, queries, 12)
        assert 1 < booster.num_trees() < 12
        np.testing.assert_array_equal(ranker.predict(queries), booster.predict(queries.X))

    @NATIVE
    def test_stopped_early_it_is_their_best_iteration(self, make):
        queries, valid = judged(), judged(7)
        ranker = make(
            n_estimators=40, num_leaves=8, min_child_samples=3, learning_rate=0.3, early_stopping_rounds=3
        ).fit(queries, valid=valid)
        best, rows = len(ranker.scorer_), ranker.history_
        booster = theirs(ranker, queries, 40)
        np.testing.assert_array_equal(ranker.predict(valid), booster.predict(valid.X, num_iteration=best))
        measure = rw.parse_measure("ndcg@10")
        values = [measure.mean(valid, booster.predict(valid.X, num_iteration=t)) for t in range(1, 41)]
        assert [row["valid"] for row in rows] == pytest.approx(values[: len(rows)], abs=1e-12)
        assert len(rows) == best + 3 < 40
        assert kept(ranker)["round"] == best == int(np.argmax(values[: len(rows)])) + 1

    def test_the_truncation_level(self):
        queries = judged()
        longest = int(queries.sizes.max())
        assert make_lambdarank_options(rw.parse_measure("ndcg@10"), queries)["lambdarank_truncation_level"] == 13
        assert make_lambdarank_options(rw.parse_measure("ndcg"), queries)["lambdarank_truncation_level"] == longest
        ranker = rw.LambdaMART(
            lambdas="lightgbm", n_estimators=1, lightgbm_params={"lambdarank_truncation_level": 4}
        ).fit(queries)
        assert ranker.lightgbm_params_["lambdarank_truncation_level"] == 4

    @pytest.mark.parametrize(
        ("name", "highest", "gains"),
        [
            ("ndcg@10", 3, None),
            ("ndcg@10(gain=linear)", 3, [0, 1, 2, 3]),
            ("ndcg@10(gain=pow2)", 3, [1, 2, 4, 8]),
            ("ndcg@10", 40, [2.0**g - 1 for g in range(41)]),
            ("ndcg@10(gain=linear)", 40, list(range(41))),
        ],
    )
    def test_gains(self, name, highest, gains):
        queries = judged()
        y = np.where(queries.y == 3, highest, queries.y)
        found = make_lambdarank_options(rw.parse_measure(name), rw.Queries.from_arrays(queries.X, y, queries.row_qid))
        assert found.get("label_gain") == gains
        ranker = rw.LambdaMART(lambdas="lightgbm", measure=name, n_estimators=3).fit(queries.X, y, qid=queries.row_qid)
        again = rw.Queries.from_arrays(queries.X, y, queries.row_qid)
        np.testing.assert_array_equal(ranker.predict(again), theirs(ranker, again, 3).predict(queries.X))

    @pytest.mark.parametrize(
        "measure", ["map", "err@10", "mrr", "p@5", "dcg@10", rw.make_measure(lambda g: float(g[0]), "top")]
    )
    def test_measures_that_lightgbm_has_not(self, measure):
        with pytest.raises(rw.InputError, match="lambdas='exact'"):
            rw.LambdaMART(lambdas="lightgbm", measure=measure).fit(judged())

    @pytest.mark.parametrize("top", [0.5, 1e9, 1e30])
    def test_grades_that_lightgbm_has_not(self, top):
        queries = judged()
        y = np.where(queries.y > 1, top, queries.y)
        ranker = rw.LambdaMART(lambdas="lightgbm", measure="ndcg@10(gain=linear)")
        with pytest.raises(rw.InputError, match=r"lambdas='exact'|grade"):
            ranker.fit(queries.X, y, qid=queries.row_qid)


class TestLambdasAreThoseOfLightGBM:
    """Where the definitions coincide, LightGBM's gradients and curvatures are ours.

    The conditions: NDCG without a cut-off; ``lambdarank_norm=False``; ``sigmoid=1``; a truncation level of at least the
    longest list; no two documents of a query with equal scores. What is left is LightGBM's table of the sigmoid, whose
    steps are 50 / 2^20 wide, and single precision.

    LightGBM does not tell its gradients, but one tree with a leaf for (nearly) every document does: a leaf has the
    value -g/h, and the weight h. Where documents share a leaf, sums are compared.
    """

    STEP = 50 / 2**20

    def _sums(self, queries, scores, **changed):
        """By leaf LightGBM's sums of gradients and curvatures, and ours."""
        n = queries.n_docs
        params = {
            "objective": "lambdarank",
            "num_leaves": n,
            "min_data_in_leaf": 1,
            "min_sum_hessian_in_leaf": 1e-3,
            "min_data_in_bin": 1,
            "max_bin": n + 1,
            "learning_rate": 1.0,
            "lambdarank_norm": False,
            "sigmoid": 1.0,
            "lambdarank_truncation_level": int(queries.sizes.max()),
            "num_threads": 1,
            "verbosity": -1,
            **changed,
        }
        data = lgb.Dataset(queries.X, queries.y, group=queries.sizes, init_score=scores, params=params)
        booster = lgb.Booster(params, data)
        booster.update()
        forest = Forest.from_text(booster.model_to_string())
        leaf, tree = Trees(forest).leaves(queries.X)[0], forest.trees[0]
        assert len(tree.values) > 0.6 * n
        h = tree.columns["leaf_weight"]
        ours = Lambdas("ndcg").prepare(queries)(scores)
        return (-tree.values * h, h), (np.bincount(leaf, ours.gradient), np.bincount(leaf, ours.curvature))

    def _problem(self, seed=0, m=10, n=12, *, ties=False):
        rng = np.random.default_rng(seed)
        X = rng.permutation(m * n)[:, None]
        queries = rw.Queries.from_arrays(X, rng.integers(0, 4, m * n), np.repeat(np.arange(m), n))
        scores = rng.permutation(m * n) / (m * n) * 4 - 2
        return queries, np.round(scores) if ties else scores

    @pytest.mark.parametrize("seed", range(5))
    def test_they_are_the_same(self, seed):
        queries, scores = self._problem(seed)
        (g, h), (our_g, our_h) = self._sums(queries, scores)
        np.testing.assert_allclose(g, our_g, atol=2 * self.STEP)
        np.testing.assert_allclose(h, our_h, atol=2 * self.STEP)
        assert np.abs(our_g).max() > 0.1

    @pytest.mark.parametrize(
        "changed", [{"lambdarank_norm": True}, {"sigmoid": 2.0}, {"lambdarank_truncation_level": 3}, "ties"], ids=str
    )
    def test_and_differ_where_a_condition_is_dropped(self, changed):
        queries, scores = self._problem(ties=changed == "ties")
        (g, h), (our_g, our_h) = self._sums(queries, scores, **({} if changed == "ties" else changed))
        assert np.abs(g - our_g).max() > 100 * self.STEP
        assert np.abs(h - our_h).max() > 20 * self.STEP

    def test_ours_are_those_of_the_definition(self):
        queries, scores = self._problem()
        ours = Lambdas("ndcg").prepare(queries)(scores)
        g, h = twin.lambdas(BY_NAME["ndcg"], queries, scores)
        np.testing.assert_allclose(ours.gradient, g, atol=1e-12)
        np.testing.assert_allclose(ours.curvature, h, atol=1e-12)


def first_gain(grades):
    return float(grades[0]) / 4


ANY_MEASURE = {**{name: BY_NAME[name] for name in ("map", "err", "mrr", "ndcg@3", "ndcg@10")}, "own": first_gain}


class TestExactLambdas:
    @pytest.mark.parametrize("name", ANY_MEASURE)
    @pytest.mark.parametrize("weight", [None, np.arange(8) + 0.5], ids=["", "weight"])
    def test_trees_are_steps_along_the_lambdas_of_any_measure(self, name, weight):
        """By tree and leaf: -rate (sum of g) / (sum of h), with g and h from every swap of every pair."""
        queries = judged(3, m=8, n=8, grades=5, weight=weight)
        measure = rw.make_measure(first_gain, "own") if name == "own" else name
        if name == "err":
            assert queries.y.max() == 4
        forest = (
            rw.LambdaMART(measure=measure, n_estimators=3, num_leaves=4, min_child_samples=6)
            .fit(queries)
            .scorer_.forest
        )
        scores = np.zeros(queries.n_docs)
        for tree in forest.trees:
            g, h = (twin.shared(v, queries, scores) for v in twin.lambdas(ANY_MEASURE[name], queries, scores))
            alone = Trees(Forest(forest.header, (tree,)))
            leaf = alone.leaves(queries.X)[0]
            np.testing.assert_allclose(tree.values, twin.steps(leaf, g, h, 0.1), rtol=2e-5, atol=1e-7)
            scores += alone(queries.X)
        assert len(forest) == 3

    def test_the_first_split_is_the_best(self):
        queries = judged(4, m=8, n=8, whole=True)
        params = {"min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
        ranker = rw.LambdaMART(
            measure="map", n_estimators=1, num_leaves=2, min_child_samples=5, lightgbm_params=params
        ).fit(queries)
        zero = np.zeros(queries.n_docs)
        g, h = (twin.shared(v, queries, zero) for v in twin.lambdas(BY_NAME["map"], queries, zero))
        f, low, high, _ = twin.best_stump(queries.X, g, h, 5)
        nodes = ranker.scorer_.forest.nodes
        assert nodes.feature[0] == f
        assert low <= nodes.threshold[0] < high

    def test_the_measure_makes_a_difference(self):
        queries = judged()
        found = [
            rw.LambdaMART(measure=m, n_estimators=3).fit(queries).predict(queries)
            for m in ("map", "ndcg", "err", "mrr")
        ]
        assert len({tuple(each) for each in found}) == 4

    def test_the_loss_is_that_of_the_lambdas(self):
        queries = judged()
        ranker = rw.LambdaMART(measure="map", n_estimators=6).fit(queries)
        bound = Lambdas("map").prepare(queries)
        for t, row in enumerate(ranker.history_):
            scores = Trees(ranker.scorer_.forest.take_first(t))(queries.X)
            assert row["loss"] == pytest.approx(bound(scores).loss, rel=1e-9)


class TestDirectRankTrees:
    @pytest.mark.parametrize("name", ["ndcg@3", "map", "err@2(max=3)", "p@2"])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_weight_is_the_best_of_all_intervals(self, name, seed):
        queries = judged(seed, m=6, n=6, whole=seed == 1)
        measure = rw.parse_measure(name).for_training()
        ranker = rw.DirectRankTrees(
            measure=name, weight_range=None, n_estimators=4, num_leaves=4, min_child_samples=4
        ).fit(queries)
        forest, scores = ranker.scorer_.forest, np.zeros(queries.n_docs)
        for t, row in enumerate(ranker.history_):
            values = Trees(Forest(forest.header, forest.trees[t : t + 1]))(queries.X) / row["weight"]
            points = lines.inner_points(lines.crossings(queries, scores, values))
            found = lines.values_along(queries, measure, scores, values, points)
            assert row["searched"] == row["weight"]
            assert row["train"] == pytest.approx(found.max(), abs=1e-12)
            assert row["loss"] == pytest.approx(1 - measure.mean(queries, scores), abs=1e-12)
            scores = scores + row["weight"] * values
            assert row["train"] == pytest.approx(
                measure.mean(queries, Trees(forest.take_first(t + 1))(queries.X)), abs=1e-12
            )
        assert ranker.history_

    @pytest.mark.parametrize("point", ["middle", "likelihood"])
    @pytest.mark.parametrize("name", ["ndcg@10", "map", "err", "mrr"])
    def test_unclipped_the_training_measure_never_decreases(self, name, point):
        for seed in range(4):
            queries = judged(seed, whole=seed % 2 == 0)
            if seed == 3:  # every document three times
                rows = np.repeat(np.arange(queries.n_docs), 3)
                queries = rw.Queries.from_arrays(queries.X[rows], queries.y[rows], queries.row_qid[rows])
            ranker = rw.DirectRankTrees(
                measure=name, weight_range=None, interval_point=point, n_estimators=25, num_leaves=5
            ).fit(queries)
            values = [row["train"] for row in ranker.history_]
            start = rw.parse_measure(name).for_training().mean(queries, np.zeros(queries.n_docs))
            assert (np.diff([start, *values]) >= 0).all()
            assert values[-1] > start + 0.05
            assert ranker.score(queries) == pytest.approx(values[-1], abs=1e-12)

    def test_unclipped_it_ends_where_nothing_is_gained(self):
        """No tree is grown again and again with hardly a weight."""
        for seed in range(6):
            history = rw.DirectRankTrees(weight_range=None, n_estimators=40, num_leaves=5).fit(judged(seed)).history_
            idle = [abs(b["weight"]) < 1e-6 and b["train"] <= a["train"] for a, b in pairwise(history)]
            assert not any(idle)

    @pytest.mark.parametrize("weights", [(0.1, 0.5), (0.3, 0.3), (0.01, 5.0), [0.2, 0.4]])
    def test_clipped_weights_are_in_their_range(self, weights):
        queries = judged()
        ranker = rw.DirectRankTrees(weight_range=weights, n_estimators=15, num_leaves=5).fit(queries)
        low, high = weights
        for row in ranker.history_:
            assert low <= row["weight"] <= high
            assert row["weight"] == np.clip(row["searched"], low, high)
        assert len(ranker.history_) == len(ranker.scorer_) == 15
        if weights == (0.1, 0.5):
            assert any(row["weight"] != row["searched"] for row in ranker.history_)

    @pytest.mark.parametrize("weight", [None, np.arange(24) + 0.5], ids=["", "weight"])
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_trees_are_mean_residuals(self, weight, missing):
        queries = judged(weight=weight, missing=missing)
        ranker = rw.DirectRankTrees(n_estimators=5, num_leaves=6).fit(queries)
        scores = np.zeros(queries.n_docs)
        for tree, row in zip(ranker.scorer_.forest.trees, ranker.history_, strict=True):
            alone = Trees(Forest(ranker.scorer_.forest.header, (tree,)))
            expected = twin.residual_means(alone.leaves(queries.X)[0], queries, scores)
            np.testing.assert_allclose(tree.values / row["weight"], expected, rtol=1e-4, atol=1e-5)
            scores += alone(queries.X)

    def test_a_users_measure(self):
        queries = judged(m=8)
        own = rw.DirectRankTrees(measure=rw.make_measure(BY_NAME["ndcg@3"], "mine"), n_estimators=4, num_leaves=4).fit(
            queries
        )
        named = rw.DirectRankTrees(measure="ndcg@3", n_estimators=4, num_leaves=4, interval_point="likelihood").fit(
            queries
        )
        assert own.history_[0]["train"] == pytest.approx(named.history_[0]["train"], abs=1e-12)  # the same first tree
        assert own.history_[-1]["train"] > 1.0 - own.history_[0]["loss"]  # than without trees


class TestBoostedTrees:
    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_every_objective_by_name_is_lowered(self, name):
        queries = judged()
        ranker = rw.BoostedTrees(objective=name, n_estimators=15, num_leaves=5, min_child_samples=5).fit(queries)
        losses = [row["loss"] for row in ranker.history_]
        assert len(losses) == 15
        assert losses[-1] < 0.97 * losses[0]
        assert ranker.score(queries) > rw.parse_measure("ndcg@10").mean(queries, np.zeros(queries.n_docs)) + 0.1

    def test_a_users_function(self):
        """Squares, written by hand: without curvature the step of a leaf is how far its documents agree."""

        def squares(scores, part):
            return float(((scores - part.y) ** 2).sum() / 2), scores - part.y

        queries = judged()
        ranker = rw.BoostedTrees(objective=squares, n_estimators=4, num_leaves=5, learning_rate=0.2).fit(queries)
        scores = np.zeros(queries.n_docs)
        for tree, row in zip(ranker.scorer_.forest.trees, ranker.history_, strict=True):
            g = scores - queries.y
            assert row["loss"] == pytest.approx((g**2).sum() / 2)
            alone = Trees(Forest(ranker.scorer_.forest.header, (tree,)))
            leaf = alone.leaves(queries.X)[0]
            expected = twin.steps(leaf, *twin.agreement(g, np.ones(len(g))), 0.2)
            np.testing.assert_allclose(tree.values, expected, rtol=1e-4, atol=1e-6)
            assert np.abs(tree.values).max() <= 0.2
            scores += alone(queries.X)

    def test_without_curvature_the_size_of_the_loss_does_not_matter(self):
        queries = judged()

        def times(factor):
            def loss(scores, part):
                return factor * float(((scores - part.y) ** 2).sum()), factor * 2 * (scores - part.y)

            return loss

        one, other = (rw.BoostedTrees(objective=times(f), n_estimators=5).fit(queries) for f in (1.0, 2.0**30))
        np.testing.assert_array_equal(one.predict(queries), other.predict(queries))

    @pytest.mark.parametrize("returned", [(1.0, None), 3.0, (1.0, [1.0]), (np.nan, 0.0)])
    def test_functions_that_return_something_else(self, returned):
        with pytest.raises(rw.InputError, match="the objective returned"):
            rw.BoostedTrees(objective=lambda scores, part: returned, n_estimators=2).fit(judged())

    def test_a_function_without_slopes_starts_from_the_grades(self):
        queries = judged()
        ranker = rw.BoostedTrees(objective=lambda s, part: (1.0, np.zeros(len(s))), n_estimators=2).fit(queries)
        tree = ranker.scorer_.forest.trees[0]
        alone = Trees(Forest(ranker.scorer_.forest.header, (tree,)))
        expected = twin.residual_means(alone.leaves(queries.X)[0], queries, np.zeros(queries.n_docs))
        np.testing.assert_allclose(tree.values, 0.1 * expected, rtol=1e-4, atol=1e-6)

    @pytest.mark.parametrize("name", ["positions", "logistic"])
    def test_a_start_by_least_squares(self, name):
        queries = judged()
        start = rw.BoostedTrees(objective=name, n_warmup_trees=3, n_estimators=5, num_leaves=5, learning_rate=0.3).fit(
            queries
        )
        forest, scores = start.scorer_.forest, np.zeros(queries.n_docs)
        means = []
        for tree in forest.trees:
            alone = Trees(Forest(forest.header, (tree,)))
            expected = 0.3 * twin.residual_means(alone.leaves(queries.X)[0], queries, scores)
            means.append(np.allclose(tree.values, expected, rtol=1e-4, atol=1e-5))
            scores += alone(queries.X)
        assert means == [True] * 3 + [False] * 2
        for wrong in (-1, 0.5, "a"):
            with pytest.raises(rw.InputError, match="n_warmup_trees"):
                rw.BoostedTrees(n_warmup_trees=wrong).fit(queries)

    @pytest.mark.parametrize("name", ["positions", "ranks", "noisy_ranks", "expected"])
    def test_smooth_measures_get_started_from_equal_scores(self, name):
        queries = judged()
        ranker = rw.BoostedTrees(objective=name, n_estimators=10, num_leaves=6).fit(queries)
        assert len(ranker.scorer_) == 10
        assert np.unique(ranker.predict(queries)).size > 5

    def test_what_is_drawn_is_drawn_from_the_seed(self):
        queries = judged()
        found = [
            rw.BoostedTrees(objective="expected", n_estimators=4, random_state=seed).fit(queries).predict(queries)
            for seed in (0, 0, 1)
        ]
        np.testing.assert_array_equal(found[0], found[1])
        assert not np.array_equal(found[0], found[2])

    def test_objectives_that_there_are_not(self):
        for objective in ("nothing", 3, None, rw.BoostedTrees):
            with pytest.raises(rw.InputError, match="objective="):
                rw.BoostedTrees(objective=objective).fit(judged())


class TestHistory:
    @every
    def test_rounds_are_what_the_trees_so_far_are_worth(self, make):
        queries, valid = judged(whole=True), judged(5, whole=True)
        ranker = make(n_estimators=8, num_leaves=5).fit(queries, valid=valid)
        full = make(n_estimators=8, num_leaves=5).fit(queries)
        training, measure = rw.parse_measure("ndcg@10").for_training(), rw.parse_measure("ndcg@10")
        for t, (row, other) in enumerate(zip(ranker.history_, full.history_, strict=True)):
            trees = Trees(full.scorer_.forest.take_first(t + 1))
            assert row["round"] == other["round"] == t + 1
            assert row["train"] == other["train"] == pytest.approx(training.mean(queries, trees(queries.X)), abs=1e-12)
            assert row["valid"] == pytest.approx(measure.mean(valid, trees(valid.X)), abs=1e-12)
            assert "loss" in row
        best = max(row["valid"] for row in ranker.history_)
        assert kept(ranker)["valid"] == best == pytest.approx(ranker.score(valid), abs=1e-12)
        assert kept(ranker)["train"] == pytest.approx(ranker.score(queries), abs=1e-12)
        assert kept(ranker)["round"] == len(ranker.scorer_)
        assert kept(full)["round"] == len(full.history_) == len(full.scorer_) >= 5
        np.testing.assert_array_equal(
            ranker.predict(valid), Trees(full.scorer_.forest.take_first(len(ranker.scorer_)))(valid.X)
        )

    @NATIVE
    @pytest.mark.parametrize("judges", [True, False])
    def test_on_large_data_some_rounds_are_judged_and_the_kept_one_always(self, make, judges, monkeypatch):
        queries, valid = judged(), judged(5) if judges else None
        expected = make(n_estimators=11, num_leaves=5).fit(queries, valid=valid)
        monkeypatch.setattr(tree_stages, "_MANY", 0)
        ranker = make(n_estimators=11, num_leaves=5).fit(queries, valid=valid)
        np.testing.assert_array_equal(ranker.predict(queries), expected.predict(queries))
        rounds = {1, 2, 4, 8, len(ranker.scorer_)}
        assert {row["round"] for row in ranker.history_ if "train" in row} == rounds
        for row, full in zip(ranker.history_, expected.history_, strict=True):
            assert row.items() <= full.items()
        assert kept(ranker)["train"] == pytest.approx(ranker.score(queries), abs=1e-12)

    @every
    def test_patience(self, make):
        queries, valid = judged(), judged(5)
        long = make(n_estimators=40, num_leaves=8, min_child_samples=3).fit(queries, valid=valid)
        ranker = make(n_estimators=40, num_leaves=8, min_child_samples=3, early_stopping_rounds=2).fit(
            queries, valid=valid
        )
        rows = ranker.history_
        assert [row["valid"] for row in rows] == [row["valid"] for row in long.history_[: len(rows)]]
        best = int(np.argmax([row["valid"] for row in rows]))
        assert len(rows) == min(best + 3, len(long.history_))
        assert len(ranker.scorer_) == best + 1

    @every
    def test_patience_without_validation_queries_is_an_error(self, make):
        with pytest.raises(rw.InputError, match=r"early_stopping_rounds=1 without validation queries.* pass valid="):
            make(n_estimators=6, num_leaves=4, early_stopping_rounds=1).fit(judged())


class TestPolish:
    @every
    def test_the_training_measure_rises_and_nothing_else_changes(self, make):
        queries = judged(m=12)
        plain, polished = (make(n_estimators=6, num_leaves=5, polish_rounds=n).fit(queries) for n in (0, 4))
        assert polished.score(queries) >= plain.score(queries)
        assert polished.score(queries) == pytest.approx(kept(polished)["train"], abs=1e-12)
        values = [row["train"] for row in polished.history_[len(plain.history_) - 1 :]]
        assert (np.diff(values) >= 0).all()
        for one, other in zip(plain.scorer_.forest.trees, polished.scorer_.forest.trees, strict=True):
            for name in ("split_feature", "threshold", "left_child", "right_child"):
                np.testing.assert_array_equal(one.columns[name], other.columns[name])
            at = np.argmax(np.abs(one.values))
            np.testing.assert_allclose(other.values, one.values * (other.values[at] / one.values[at]), rtol=1e-12)

    @every
    @pytest.mark.parametrize("seed", range(3))
    def test_with_validation_queries_it_is_never_worse_on_them(self, make, seed):
        queries, valid = judged(seed, m=12), judged(seed + 10, m=12)
        plain, polished = (
            make(n_estimators=6, num_leaves=5, polish_rounds=n).fit(queries, valid=valid) for n in (0, 3)
        )
        assert polished.score(valid) >= plain.score(valid)
        row = kept(polished)
        assert row["valid"] == pytest.approx(polished.score(valid), abs=1e-12)
        assert row["valid"] >= max(each["valid"] for each in polished.history_) - 1e-12
        assert row["train"] == pytest.approx(polished.score(queries), abs=1e-12)
        if polished.score(valid) == plain.score(valid):
            assert "polish" not in row
            np.testing.assert_array_equal(polished.predict(valid), plain.predict(valid))
        else:
            assert row["polish"] >= 1

    def test_trees_of_many_leaves(self):
        rng = np.random.default_rng(0)
        X, y = rng.normal(size=(1200, 4)), rng.integers(0, 3, 1200)
        queries = rw.Queries.from_arrays(X, y, np.arange(1200) // 20)
        plain, polished = (
            rw.MART(n_estimators=3, num_leaves=300, min_child_samples=1, polish_rounds=n).fit(queries) for n in (0, 2)
        )
        assert plain.scorer_.leaves(queries.X).max() > 256
        assert polished.score(queries) >= plain.score(queries)
        np.testing.assert_array_equal(polished.predict(queries), polished.booster_.predict(queries.X))

    def test_polishing_gains_something(self):
        gains = []
        for make, seed in product(ALL.values(), range(3)):
            queries, valid = judged(seed, m=12), judged(10 + seed, m=12)
            plain, polished = (
                make(n_estimators=6, num_leaves=5, polish_rounds=n).fit(queries, valid=valid) for n in (0, 3)
            )
            gains.append(polished.score(valid) - plain.score(valid))
        assert min(gains) >= 0.0
        assert max(gains) > 0.005

    @every
    def test_rows_of_the_history(self, make):
        queries = judged(m=12)
        plain, polished = (make(n_estimators=6, num_leaves=5, polish_rounds=n).fit(queries) for n in (0, 3))
        n = len(plain.history_)
        grown, rows = polished.history_[:n], polished.history_[n:]
        assert [row["round"] for row in polished.history_] == list(range(1, len(polished.history_) + 1))
        for before, after in zip(plain.history_, grown, strict=True):
            assert {k: v for k, v in before.items() if k != "kept"} == {k: v for k, v in after.items() if k != "kept"}
        numbers = [row["polish"] for row in rows]
        assert rows
        assert numbers == sorted(numbers)
        assert set(numbers) <= {1, 2, 3}
        for row in rows:
            assert row["loss"] == pytest.approx(1 - row["train"])
        json.dumps(polished.history_)

    @every
    def test_monotone_constraints_hold(self, make):
        """Within queries the first feature is bad, and between them it is good: weights would like to be negative."""
        rng = np.random.default_rng(0)
        level, e = np.repeat(rng.integers(0, 4, 30), 15), rng.normal(size=450)
        X = np.column_stack([level + e, rng.normal(size=450), rng.normal(size=450)])
        y = np.clip(np.round(2 * level - e + X[:, 1]), 0, 6)
        queries = rw.Queries.from_arrays(X, y, np.repeat(np.arange(30), 15))
        params = {"monotone_constraints": [1, 0, -1]}
        grid = np.repeat(X[:20], 60, axis=0).reshape(20, 60, 3)
        for polish in (0, 3):
            ranker = make(n_estimators=8, num_leaves=8, lightgbm_params=params, polish_rounds=polish).fit(queries)
            for column, sign in ((0, 1), (2, -1)):
                moved = grid.copy()
                moved[:, :, column] = np.linspace(-4, 8, 60)
                scores = ranker.predict(moved.reshape(-1, 3)).reshape(20, 60)
                assert (sign * np.diff(scores, axis=1) >= -1e-12).all()


class TestGoingOn:
    @every
    @pytest.mark.parametrize("missing", [0.0, 0.3])
    def test_the_same_bits_as_one_long_fit(self, make, missing, tmp_path):
        queries, other = judged(missing=missing), judged(1)
        long = make(n_estimators=12, num_leaves=6).fit(queries)
        ranker = make(n_estimators=5, num_leaves=6, warm_start=True).fit(queries)
        rw.save(ranker, tmp_path / "model.json")
        ranker.booster_.save_model(tmp_path / "model.txt")
        half = ranker.predict(other)
        again = ranker.set_params(n_estimators=12).fit(queries)
        saved = make(n_estimators=12, num_leaves=6, init_model=tmp_path / "model.json").fit(queries)
        text = make(n_estimators=12, num_leaves=6, init_model=str(tmp_path / "model.txt")).fit(queries)
        assert (half != long.predict(other)).any()
        for each in (again, saved, text):
            np.testing.assert_array_equal(each.predict(other), long.predict(other))
            assert [row["train"] for row in each.history_] == [row["train"] for row in long.history_]
        assert again.history_ == saved.history_ == long.history_

    @every
    def test_with_validation_queries(self, make):
        queries, valid = judged(), judged(5)
        long = make(n_estimators=10, num_leaves=6).fit(queries, valid=valid)
        ranker = make(n_estimators=4, num_leaves=6, warm_start=True).fit(queries)
        ranker.set_params(n_estimators=10).fit(queries, valid=valid)
        np.testing.assert_array_equal(ranker.predict(valid), long.predict(valid))
        assert [row["valid"] for row in ranker.history_] == [row["valid"] for row in long.history_]

    @every
    def test_fewer_rounds_than_there_are(self, make):
        queries = judged()
        ranker = make(n_estimators=6, num_leaves=6, warm_start=True).fit(queries)
        ranker.set_params(n_estimators=3).fit(queries)
        np.testing.assert_array_equal(
            ranker.predict(queries), make(n_estimators=3, num_leaves=6).fit(queries).predict(queries)
        )

    def test_without_it_a_fit_begins_anew(self):
        queries = judged()
        ranker = rw.MART(n_estimators=4, num_leaves=6).fit(queries)
        before = ranker.predict(queries)
        np.testing.assert_array_equal(ranker.fit(queries).predict(queries), before)

    def test_after_polishing(self):
        queries = judged(m=12)
        ranker = rw.LambdaMART(n_estimators=4, num_leaves=5, polish_rounds=2, warm_start=True).fit(queries)
        first = ranker.scorer_.forest
        ranker.set_params(n_estimators=6, polish_rounds=0).fit(queries)
        for one, other in zip(first.trees, ranker.scorer_.forest.trees, strict=False):
            np.testing.assert_array_equal(one.values, other.values)
        assert len(ranker.history_) == len(ranker.scorer_) == 6
        assert kept(ranker)["train"] == pytest.approx(ranker.score(queries), abs=1e-12)

    def test_after_the_trees_of_another_ranker(self, tmp_path):
        queries = judged()
        rw.save(rw.MART(n_estimators=3, num_leaves=5).fit(queries), tmp_path / "mart.json")
        ranker = rw.LambdaMART(n_estimators=6, num_leaves=5, init_model=tmp_path / "mart.json").fit(queries)
        start = rw.load(tmp_path / "mart.json").scorer.forest
        np.testing.assert_array_equal(Trees(ranker.scorer_.forest.take_first(3))(queries.X), Trees(start)(queries.X))
        assert len(ranker.scorer_) == 6

    def test_what_it_cannot_go_on_from(self, tmp_path):
        queries, wide = judged(), judged(d=6)
        rw.save(rw.MART(n_estimators=2).fit(wide), tmp_path / "wide.json")
        rw.MART(n_estimators=2).fit(wide).booster_.save_model(tmp_path / "wide.txt")
        rw.save(rw.Regression().fit(queries), tmp_path / "linear.json")
        rw.save(rw.MART(n_estimators=2, scale="query").fit(queries), tmp_path / "scaled.json")
        (tmp_path / "broken.txt").write_text("tree\nversion=v4\n")
        (tmp_path / "broken.json").write_text("{")
        named = rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid, features=["a", "b", "c", "d"])
        rw.save(rw.MART(n_estimators=2).fit(named), tmp_path / "named.json")
        for start, text in (
            ("wide.json", "trained on 6"),
            ("wide.txt", "trained on 6"),
            ("linear.json", "expected one of trees"),
            ("scaled.json", "scale"),
            ("broken.txt", r"broken\.txt"),
            ("broken.json", r"broken\.json"),
        ):
            with pytest.raises(rw.InputError, match=text) as error:
                rw.MART(n_estimators=4, init_model=tmp_path / start).fit(queries)
            assert "\n" not in str(error.value)
        others = rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid, features=["a", "b", "d", "c"])
        with pytest.raises(rw.InputError, match="feature 3"):
            rw.MART(init_model=tmp_path / "named.json").fit(others)
        with pytest.raises((rw.InputError, OSError), match=r"nothere"):
            rw.MART(init_model=tmp_path / "nothere.json").fit(queries)
        for wrong in (3, ["a"]):
            with pytest.raises(rw.InputError, match="init_model="):
                rw.MART(init_model=wrong).fit(queries)


class TestWhatUsersOfLightGBMKeep:
    @every
    def test_missing_values(self, make):
        queries, other = judged(missing=0.3), judged(1, missing=0.5)
        ranker = make(n_estimators=5, num_leaves=6).fit(queries)
        np.testing.assert_array_equal(ranker.predict(other), ranker.booster_.predict(other.X))
        filled = rw.Queries.from_arrays(np.nan_to_num(queries.X), queries.y, queries.row_qid)
        assert (ranker.predict(filled) != ranker.predict(queries)).any()

    @pytest.mark.parametrize("name", ["exact", "DirectRankTrees", "MART", "BoostedTrees"])
    def test_a_query_of_weight_two_is_the_query_twice(self, name):
        """For trees whose leaves stay large, so that no two splits part the documents alike."""
        sizes = np.full(12, 20)
        rng = np.random.default_rng(0)
        X = rng.permutation(240 * 3).reshape(240, 3) % 251
        y = np.clip(np.round(X[:, 0] / 60 + rng.normal(size=240)), 0, 4)
        qid = np.repeat(np.arange(12), sizes)
        weighted = rw.Queries.from_arrays(X, y, qid, weight=np.where(np.arange(12) < 4, 2.0, 1.0))
        rows = np.concatenate([np.arange(240), np.arange(80)])
        twice = rw.Queries.from_arrays(X[rows], y[rows], np.concatenate([qid, qid[:80] + 100]))
        params = {"min_data_in_bin": 1, "min_sum_hessian_in_leaf": 0.0}
        once = rw.Queries.from_arrays(X, y, qid)
        one, other, plain = (
            ALL[name](n_estimators=3, num_leaves=3, min_child_samples=1, lightgbm_params=params).fit(each)
            for each in (weighted, twice, once)
        )
        np.testing.assert_allclose(one.predict(X), other.predict(X), atol=1e-5)
        assert one.score(weighted) == pytest.approx(other.score(twice), abs=1e-12)
        assert np.abs(one.predict(X) - plain.predict(X)).max() > 1e-3

    @every
    def test_the_scale_of_the_weights_does_not_matter(self, make):
        """But to LightGBM's own objectives, where it is too small for LightGBM's limits on sums of curvatures."""
        weight, is_native = np.arange(24) + 1.0, make in (ALL["MART"], ALL["native"])
        queries = judged(weight=weight)
        expected = make(n_estimators=4, num_leaves=5).fit(queries).predict(queries)
        for scale in (2.0**10, 1.0 if is_native else 2.0**-30):
            found = make(n_estimators=4, num_leaves=5).fit(judged(weight=scale * weight))
            np.testing.assert_allclose(found.predict(queries), expected, atol=1e-5)

    @every
    def test_importances(self, make):
        queries = judged(d=5)
        X = queries.X.copy()
        X[:, 4] = 1.0
        ranker = make(n_estimators=6, num_leaves=6).fit(X, queries.y, qid=queries.row_qid)
        shares = ranker.feature_importances_
        assert shares.shape == (5,)
        assert shares.sum() == pytest.approx(1)
        assert shares[4] == 0
        assert (shares >= 0).all()
        assert shares.argmax() == 0
        theirs = ranker.booster_.feature_importance("gain")
        np.testing.assert_allclose(shares, theirs / theirs.sum(), rtol=1e-5)

    @every
    def test_contributions_add_up_to_the_scores(self, make):
        queries = judged(missing=0.2)
        ranker = make(n_estimators=6, num_leaves=6, polish_rounds=1).fit(queries)
        for found in (ranker.contributions(queries), ranker.contributions(queries.X)):
            assert found.shape == (queries.n_docs, 5)
            np.testing.assert_allclose(found.sum(axis=1), ranker.predict(queries), atol=1e-9)
            assert np.ptp(found[:, -1]) == 0
            assert (np.abs(found[:, :-1]).max(axis=0) > 0).sum() >= 2

    def test_contributions_with_scaling_within_queries(self):
        queries = judged()
        ranker = rw.MART(n_estimators=4, num_leaves=6, scale="query").fit(queries)
        rows = np.random.default_rng(0).permutation(queries.n_docs)
        X, qid = queries.X[rows], queries.row_qid[rows]
        expected = ranker.contributions(queries)
        np.testing.assert_allclose(expected.sum(axis=1), ranker.predict(queries), atol=1e-9)
        np.testing.assert_allclose(ranker.contributions(X, qid=qid), expected[rows], atol=1e-9)
        with pytest.raises(rw.InputError, match="qid"):
            ranker.contributions(X)

    def test_contributions_of_other_features(self):
        ranker = rw.MART(n_estimators=2).fit(judged())
        with pytest.raises(ValueError, match="features"):
            ranker.contributions(judged(d=6))
        with pytest.raises(ValueError, match="features"):
            ranker.contributions(judged(d=6).X)

    @every
    def test_a_draw_of_features_that_grows_no_tree_is_not_the_end(self, make):
        queries = held_back()
        params = {"feature_fraction": 0.5, "monotone_constraints": [1, 0]}
        found = [
            len(make(n_estimators=12, num_leaves=4, lightgbm_params=params, random_state=s).fit(queries).history_)
            for s in range(4)
        ]
        assert min(found) > 1

    @every
    def test_the_booster_predicts_the_same_bits(self, make, tmp_path):
        queries, other = judged(missing=0.1), judged(1, missing=0.3)
        ranker = make(n_estimators=5, num_leaves=6, polish_rounds=1).fit(queries)
        np.testing.assert_array_equal(ranker.booster_.predict(other.X), ranker.predict(other))
        rw.save(ranker, tmp_path / "model.json")
        np.testing.assert_array_equal(rw.load(tmp_path / "model.json").predict(other), ranker.predict(other))

    @every
    def test_parameters_of_lightgbm_are_refused_by_name(self, make):
        for params, text in (({"num_leaves": 3}, "num_leaves"), ({"lamda_l2": 1.0}, "lambda_l2"), (5, "mapping")):
            with pytest.raises(rw.InputError, match=text):
                make(lightgbm_params=params).fit(judged())
        for signs in ([1], [1, 0, 0, 2], [1, 0, 0, 0, 0], "1"):
            with pytest.raises(rw.InputError, match="monotone_constraints"):
                make(lightgbm_params={"monotone_constraints": signs}).fit(judged())

    @every
    def test_parameters_of_lightgbm_make_a_difference(self, make):
        queries = judged()
        plain = make(n_estimators=3, num_leaves=6).fit(queries).predict(queries)
        for params in ({"lambda_l2": 50.0}, {"max_depth": 2}, {"extra_trees": True}, {"max_bin": 4}):
            found = make(n_estimators=3, num_leaves=6, lightgbm_params=params).fit(queries)
            assert (found.predict(queries) != plain).any(), params
            assert found.lightgbm_params_.items() >= params.items()


class TestTheSameBits:
    @every
    @pytest.mark.parametrize("params", [None, {"bagging_fraction": 0.7, "bagging_freq": 1, "feature_fraction": 0.6}])
    def test_on_one_thread_and_on_many(self, make, params):
        queries = judged(m=300, n=20)  # more than one shard
        found = [
            make(n_estimators=3, num_leaves=6, lightgbm_params=params, polish_rounds=1, backend=backend).fit(queries)
            for backend in (rw.Serial(), rw.Threads(3))
        ]
        np.testing.assert_array_equal(found[0].predict(queries), found[1].predict(queries))
        assert found[0].history_ == found[1].history_

    @every
    def test_whatever_threads_lightgbm_has(self, make, monkeypatch):
        monkeypatch.setattr(tree_stages, "_LARGE", 0)  # threads for little work, too
        queries = judged(m=40)
        params = {"bagging_fraction": 0.7, "bagging_freq": 1}
        found = [
            make(n_estimators=3, num_leaves=8, lightgbm_params=params, backend=backend).fit(queries).predict(queries)
            for backend in (rw.Serial(), rw.Threads(2), rw.Threads(3))
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[0], found[2])

    @every
    def test_by_the_seed(self, make):
        queries = judged()
        params = {"bagging_fraction": 0.5, "bagging_freq": 1}
        found = [
            make(n_estimators=3, num_leaves=6, lightgbm_params=params, random_state=seed).fit(queries).predict(queries)
            for seed in (0, 0, 1, np.random.default_rng(5), np.random.default_rng(5))
        ]
        np.testing.assert_array_equal(found[0], found[1])
        np.testing.assert_array_equal(found[3], found[4])
        assert not np.array_equal(found[0], found[2])

    @pytest.mark.parametrize("name", ["exact", "DirectRankTrees", "unclipped", "MART", "BoostedTrees"])
    def test_in_any_order_of_the_rows(self, name):
        queries = judged(whole=True)
        rows = np.random.default_rng(0).permutation(queries.n_docs)
        one = ALL[name](n_estimators=4, num_leaves=5).fit(queries)
        other = ALL[name](n_estimators=4, num_leaves=5).fit(queries.X[rows], queries.y[rows], qid=queries.row_qid[rows])
        found, expected = other.predict(queries), one.predict(queries)
        if name in ("unclipped", "MART"):  # LightGBM's mean, and where in an interval
            np.testing.assert_allclose(found, expected, atol=1e-9)
        else:
            np.testing.assert_array_equal(found, expected)

    def test_going_on_and_patience(self, tmp_path):
        queries, valid = judged(seed=1), judged(seed=2)
        rw.save(rw.LambdaMART(n_estimators=20, num_leaves=4).fit(queries), tmp_path / "old.json")
        path = tmp_path / "old.json"
        ranker = rw.LambdaMART(n_estimators=40, num_leaves=4, early_stopping_rounds=2, init_model=path).fit(
            queries, valid=valid
        )
        assert len(ranker.history_) > 20

    def test_polishing_what_goes_on_from_a_monotone_model(self, tmp_path):
        rng = np.random.default_rng(0)
        X, qid = rng.normal(size=(400, 2)), np.repeat(np.arange(20), 20)
        y = np.clip(np.round(X[:, 0] + X[:, 1] + rng.normal(size=400)), 0, 3)
        queries = rw.Queries.from_arrays(X, y, qid)
        held = rw.MART(n_estimators=6, num_leaves=6, lightgbm_params={"monotone_constraints": [1, 0]}).fit(queries)
        rw.save(held, tmp_path / "held.json")
        ranker = rw.MART(n_estimators=6, num_leaves=6, init_model=tmp_path / "held.json", polish_rounds=5).fit(queries)
        grid = np.column_stack([np.repeat(np.linspace(-3, 3, 60), 5), np.tile(np.linspace(-2, 2, 5), 60)])
        steps = np.diff(ranker.predict(grid).reshape(60, 5), axis=0)
        assert ranker.scorer_.forest.is_monotone
        assert steps.min() >= -1e-12

    def test_an_optimum_is_not_left(self):
        """The hinge of scores has a loss of 0 and no slope once all margins are wide."""
        queries = rw.Queries.from_arrays(np.arange(40.0)[:, None], np.arange(40) % 2, np.repeat([0, 1], 20))

        def hinge(scores, part):
            sign = np.where(part.y > 0, 1.0, -1.0)
            rest = np.maximum(1.0 - sign * scores, 0.0)
            return float(rest.sum()), -sign * (rest > 0)

        params = {"min_data_in_bin": 1}
        ranker = rw.BoostedTrees(
            objective=hinge, num_leaves=64, min_child_samples=1, learning_rate=2.0, lightgbm_params=params
        ).fit(queries)
        assert len(ranker.history_) == 1
        assert hinge(ranker.predict(queries), queries)[0] == 0.0

    @may_learn_nothing
    def test_no_pairs_no_trees(self):
        queries = rw.Queries.from_arrays(
            np.random.default_rng(0).normal(size=(60, 2)), np.repeat([0, 1, 2], 20), qid=np.repeat([0, 1, 2], 20)
        )
        assert rw.LambdaMART(n_estimators=3, min_child_samples=2).fit(queries).history_ == []

    def test_threads_leave_the_filters_of_warnings_alone(self):
        queries = judged()
        before = list(warnings.filters)
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(lambda seed: rw.LambdaMART(n_estimators=3, random_state=seed).fit(queries), range(8)))
        assert list(warnings.filters) == before


def few(X, y, qid=None):
    X = np.asarray(X, dtype=float)
    return rw.Queries.from_arrays(X, y, np.zeros(len(X), int) if qid is None else qid)


def degenerate():
    rng = np.random.default_rng(0)
    X, by_ten = rng.random((60, 2)), np.arange(60) // 10
    thirds = np.arange(60) % 3
    return {
        "one document": few([[1.0, 2.0]], [1]),
        "two documents": few([[1.0, 2.0], [2.0, 1.0]], [1, 0]),
        "no relevant document": few(X, np.zeros(60), by_ten),
        "relevant documents alone": few(X, np.ones(60), by_ten),
        "constant features": few(np.ones((60, 2)), thirds, by_ten),
        "nothing but missing values": few(np.full((60, 2), np.nan), thirds, by_ten),
        "a feature that is missing": few(np.column_stack([np.full(60, np.nan), X[:, 0]]), thirds, by_ten),
        "fewer documents than a leaf has": few(X[:15], thirds[:15], by_ten[:15]),
        "one query": few(X, thirds),
        "queries of one document": few(X, thirds, np.arange(60)),
        "huge grades": few(X, 20.0 * thirds, by_ten),
        "tiny grades": few(X, 1e-30 * thirds, by_ten),
        "huge features": few(1e37 * X, thirds, by_ten),
        "one relevant document": few(X, np.arange(60) == 7, by_ten),
    }


class TestDegenerateData:
    @may_learn_nothing
    @every
    @pytest.mark.parametrize("what", degenerate())
    def test_there_is_a_model_and_a_history_of_it(self, make, what, tmp_path):
        queries = degenerate()[what]
        if what == "tiny grades" and make is ALL["native"]:
            with pytest.raises(rw.InputError, match="lambdas='exact'"):
                make().fit(queries)
            return
        for more in ({}, {"min_child_samples": 1, "num_leaves": 4}, {"polish_rounds": 2}):
            for valid in (None, queries):
                ranker = make(n_estimators=4, **more).fit(queries, valid=valid)
                scores = ranker.predict(queries)
                assert np.isfinite(scores).all()
                assert len(ranker.scorer_) >= 1
                assert not ranker.history_ or kept(ranker)["train"] == pytest.approx(ranker.score(queries), abs=1e-12)
                if valid is not None and ranker.history_ and not more.get("polish"):
                    values = [row["valid"] for row in ranker.history_]
                    assert kept(ranker)["round"] == values.index(max(values)) + 1  # the first of equals
                assert ranker.feature_importances_.shape == (2,)
                assert ranker.history_ or not ranker.feature_importances_.any()
        np.testing.assert_allclose(ranker.contributions(queries).sum(axis=1), scores, rtol=1e-9, atol=1e-9)
        rw.save(ranker, tmp_path / "model.json")
        np.testing.assert_array_equal(rw.load(tmp_path / "model.json").predict(queries), scores)

    @may_learn_nothing
    def test_where_there_is_something_to_learn_it_is_learned(self):
        learned = [
            what
            for what, queries in degenerate().items()
            if rw.LambdaMART(n_estimators=2, min_child_samples=1).fit(queries).history_
        ]
        assert {"one query", "huge grades", "a feature that is missing", "one relevant document"} <= set(learned)
        assert not {"one document", "constant features", "no relevant document"} & set(learned)

    @every
    def test_grades_beyond_single_precision(self, make):
        queries = judged()
        for top in (1e30, 1e300):
            with pytest.raises(rw.InputError, match="grade"):
                make(measure="ndcg@10(gain=linear)").fit(queries.X, queries.y * top, qid=queries.row_qid)

    @every
    def test_queries_of_weight_zero_teach_nothing(self, make):
        queries = judged()
        weight = np.where(np.arange(24) < 12, 1.0, 0.0)
        zero = rw.Queries.from_arrays(queries.X, queries.y, queries.row_qid, weight=weight)
        upside = np.where(np.repeat(weight, queries.sizes) > 0, queries.y, 3 - queries.y)
        other = rw.Queries.from_arrays(queries.X, upside, queries.row_qid, weight=weight)
        one, two = (make(n_estimators=3, num_leaves=5).fit(each) for each in (zero, other))
        np.testing.assert_allclose(one.predict(queries), two.predict(queries), atol=1e-6)
