"""Each ranker against its slow twin and its theory."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.conftest import random_queries
from tests.reference import adarank as reference
from tests.reference import measures

import rankwright as rw
from rankwright.scorers.linear import StandardScaling


class TestAdaRank:
    @pytest.mark.parametrize(
        ("name", "plain"), [("map", measures.average_precision), ("ndcg@3", lambda g: measures.ndcg(g, 3))]
    )
    @pytest.mark.parametrize("seed", range(4))
    @pytest.mark.parametrize("scale", ["standard", None])
    def test_equals_figure_6(self, name, plain, seed, scale):
        queries = random_queries(np.random.default_rng(seed), most=5)
        factor = StandardScaling.fit(queries).factor if scale else np.ones(queries.n_features)
        fitted = rw.AdaRank(measure=name, scale=scale, n_estimators=12).fit(queries)
        twin = list(reference.adarank(queries, plain, 12, factor))
        assert len(fitted.history_) == len(twin)
        for record, (feature, alpha, _, _, E) in zip(fitted.history_, twin, strict=True):
            assert record["feature"] == feature
            assert record["alpha"] == pytest.approx(alpha)
            assert record["train"] == pytest.approx(np.mean(E))
            assert record["loss"] == pytest.approx(np.mean(np.exp(-np.array(E))))
        best = int(np.argmax([np.mean(E) for *_, E in twin]))
        assert fitted.coef_ == pytest.approx(twin[best][2])

    @pytest.mark.parametrize("measure", ["map", "ndcg@10", "err", "wta", "mrr"])
    @pytest.mark.parametrize("weighted", [False, True])
    def test_theorem_4_factor_by_factor(self, measure, weighted):
        """Z_t <= Z_{t-1} exp(-delta_min) sqrt(1 - phi^2), Z_0 = 1 in the mean: the final inequality alone is vacuous."""
        queries = rw.make_queries(40, n_docs=12, random_state=3)
        if weighted:
            weight = np.random.default_rng(0).random(len(queries))
            queries = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=weight)
        history = rw.AdaRank(measure=measure, n_estimators=40).fit(queries).history_
        assert len(history) > 3
        z, log_bound = 1.0, 0.0
        for record in history:
            factor = np.exp(-record["delta_min"]) * np.sqrt(1 - record["phi"] ** 2)
            assert record["loss"] <= z * factor * (1 + 1e-9)
            z, log_bound = record["loss"], log_bound + np.log(factor)
            assert record["log_bound"] == pytest.approx(log_bound)
            assert record["train"] >= 1 - record["loss"]
            assert np.log(1 - record["train"]) <= record["log_bound"] + 1e-9

    def test_is_not_stuck(self):
        """The figure's own loop chooses one feature for ever."""
        queries = rw.make_queries(60, random_state=0)
        history = rw.AdaRank(measure="map").fit(queries).history_
        assert len({record["feature"] for record in history[:4]}) > 1
        assert max(record["train"] for record in history) > history[0]["train"] + 0.01

    def test_stops_when_every_feature_was_tried_in_vain(self):
        queries = rw.make_queries(30, n_features=6, random_state=0)
        history = rw.AdaRank(measure="map", n_estimators=10_000).fit(queries).history_
        best = int(np.argmax([record["train"] for record in history]))
        assert len(history) - 1 - best <= 5  # five of six features vary

    def test_a_perfect_feature_is_the_model(self):
        queries = random_queries(np.random.default_rng(0))
        relevant = queries.take([q for q, rows in enumerate(queries) if queries.y[rows].any()])
        perfect = relevant.with_X(np.column_stack([relevant.X[:, 0], relevant.y]).astype(np.float32))
        fitted = rw.AdaRank(measure="ndcg@10").fit(perfect)
        assert fitted.coef_[0] == 0
        assert fitted.coef_[1] > 0
        assert fitted.score(perfect) == 1
        assert len(fitted.history_) == 1

    def test_signed_features(self):
        queries = rw.make_queries(50, random_state=0)
        negated = queries.with_X(-queries.X)
        plain = rw.AdaRank(measure="map").fit(queries)
        signed = rw.AdaRank(measure="map", nonnegative=False).fit(negated)
        assert (signed.coef_ < 0).any()
        assert signed.score(negated) >= plain.score(queries) - 0.02
        assert rw.AdaRank(measure="map").fit(negated).score(negated) < plain.score(queries) - 0.1

    def test_a_users_measure(self):
        top = rw.make_measure(lambda grades: float(grades[0] >= 1), name="first_is_relevant")
        queries = rw.make_queries(40, random_state=0)
        fitted = rw.AdaRank(measure=top).fit(queries)
        assert fitted.score(queries) >= rw.SingleFeature(measure=top).fit(queries).score(queries)

    def test_more_rounds_only_continue(self):
        queries = rw.make_queries(40, random_state=0)
        few, many = (rw.AdaRank(n_estimators=n).fit(queries).history_ for n in (5, 30))
        assert many[:5] == [{name: row[name] for name in row if name != "kept"} for row in few]

    def test_bad_parameters(self):
        for rounds in (0, -1, 2.5, None, "10", True):
            with pytest.raises(rw.InputError, match=r"n_estimators=.* whole number of at least 1"):
                rw.AdaRank(n_estimators=rounds).fit(rw.make_queries(3, random_state=0))
        with pytest.raises(rw.InputError, match="nonnegative='no'"):
            rw.AdaRank(nonnegative="no").fit(rw.make_queries(3, random_state=0))
        with pytest.raises(rw.InputError, match="dcg@5 is not one"):
            rw.AdaRank(measure="dcg@5").fit(rw.make_queries(3, random_state=0))
        with pytest.raises(rw.InputError, match="scale='log'"):
            rw.AdaRank(scale="log").fit(rw.make_queries(3, random_state=0))


class TestRegression:
    @pytest.mark.parametrize("scale", ["standard", "query", None])
    @pytest.mark.parametrize("alpha", [0.0, 1e-3, 1.0, 1e3])
    def test_equals_the_normal_equations(self, scale, alpha):
        queries = rw.make_queries(40, n_features=5, random_state=0)
        scaled = queries if scale is None else rw.scale_features(queries, scale)
        relevant = queries.y > 0
        c = np.where(relevant, 1 / relevant.sum(), 1 / (~relevant).sum())
        Z = np.column_stack([scaled.X.astype(float), np.ones(queries.n_docs)])
        ridge = np.diag([alpha] * 5 + [0.0])
        solution = np.linalg.lstsq(Z.T @ (c[:, None] * Z) + ridge, Z.T @ (c * (2**queries.y - 1)), rcond=None)[0]
        fitted = rw.Regression(alpha=alpha, scale=scale).fit(queries)
        assert fitted.predict(queries) == pytest.approx(Z @ solution, rel=1e-5, abs=1e-5)

    @pytest.mark.parametrize("alpha", [1e-4, 1.0])
    def test_offsets_and_wild_scales_lose_no_precision(self, alpha):
        """Weights against an orthogonal factorisation of the centred columns, without normal equations."""
        rng = np.random.default_rng(0)
        X = (rng.normal(size=(400, 3)) * [1.0, 1e8, 1e-4] + [1e3, 0.0, 0.0]).astype(np.float32)
        y = rng.integers(0, 3, 400)
        c = np.where(y > 0, 1 / (y > 0).sum(), 1 / (y == 0).sum())
        g, Z = 2.0**y - 1, X.astype(float)
        centred, target = Z - np.average(Z, axis=0, weights=c), g - np.average(g, weights=c)
        rows = np.vstack([np.sqrt(c)[:, None] * centred, np.sqrt(alpha) * np.eye(3)])
        size = np.linalg.norm(rows, axis=0)
        expected = np.linalg.lstsq(rows / size, np.append(np.sqrt(c) * target, np.zeros(3)), rcond=None)[0] / size
        fitted = rw.Regression(alpha=alpha, scale=None).fit(X, y, qid=np.arange(400) // 10)
        assert fitted.coef_ == pytest.approx(expected, rel=1e-7)

    def test_query_weights(self):
        queries = rw.make_queries(10, random_state=0)
        doubled = queries.take([0, 0, *range(1, 10)])
        weighted = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=np.array([2.0] + [1.0] * 9))
        assert rw.Regression(scale=None).fit(weighted).coef_ == pytest.approx(
            rw.Regression(scale=None).fit(doubled).coef_, rel=1e-6, abs=1e-9
        )

    def test_a_feature_that_varies_only_where_nothing_counts(self):
        rng = np.random.default_rng(0)
        X, qid = rng.normal(size=(60, 2)), np.repeat(np.arange(6), 10)
        X[:, 1] = np.where(qid == 5, X[:, 1], 0.1)
        data = rw.Queries.from_arrays(X, rng.integers(0, 3, 60), qid, weight=[1, 1, 1, 1, 1, 0])
        assert rw.Regression(alpha=0.0).fit(data).coef_[1] == 0

    def test_bad_alpha(self):
        for alpha in (-1.0, np.inf, np.nan, None, "1", True):
            with pytest.raises(rw.InputError, match="alpha="):
                rw.Regression(alpha=alpha).fit(rw.make_queries(3, random_state=0))


class TestSingleFeature:
    def test_finds_the_best_of_all_signed_features(self):
        queries = random_queries(np.random.default_rng(1), m=20)
        fitted = rw.SingleFeature(measure="map").fit(queries)
        best = max(
            (rw.parse_measure("map").mean(queries, sign * queries.X[:, k].astype(float)), -k, sign)
            for k in range(queries.n_features)
            for sign in (1, -1)
        )
        assert fitted.score(queries) == best[0]

    def test_a_given_feature_and_sign(self):
        queries = rw.make_queries(10, random_state=0)
        assert (
            rw.SingleFeature(feature=4, sign=-1).fit(queries).predict(queries).tolist() == (-queries.X[:, 4]).tolist()
        )

    def test_by_name(self):
        queries = rw.Queries.from_arrays([[1.0, 5.0], [2.0, 4.0]], [0, 1], [1, 1], features=["age", "bm25"])
        fitted = rw.SingleFeature(feature="bm25").fit(queries)
        assert fitted.scorer_.index == 1
        assert fitted.scorer_.sign == -1
        with pytest.raises(rw.InputError, match="no feature is called 'pagerank'; the names are: age, bm25"):
            rw.SingleFeature(feature="pagerank").fit(queries)

    def test_by_the_name_of_a_column(self):
        frame = pd.DataFrame({"age": [1.0, 2.0], "bm25": [5.0, 4.0]})
        assert rw.SingleFeature(feature="bm25").fit(frame, [0, 1], qid=[1, 1]).scorer_.index == 1

    def test_bad_parameters(self):
        queries = rw.make_queries(3, random_state=0)
        for feature in (2.7, [1], True, -1):
            with pytest.raises(rw.InputError, match="feature="):
                rw.SingleFeature(feature=feature).fit(queries)
        with pytest.raises(
            rw.InputError, match=r"no feature 21 \(in Python column 20\); the documents have 20 features"
        ):
            rw.SingleFeature(feature=20).fit(queries)
        with pytest.raises(rw.InputError, match="sign=2"):
            rw.SingleFeature(sign=2).fit(queries)


class TestSelection:
    def test_takes_the_best_on_validation(self):
        queries = rw.make_queries(60, random_state=0)
        train, valid = queries.take(range(40)), queries.take(range(40, 60))
        alphas = [1e-3, 1.0, 1e3]
        chosen = rw.select(rw.Regression(), {"alpha": alphas}, train, valid, measure="map")
        values = [rw.evaluate(rw.Regression(alpha=a).fit(train), valid, "map")["map"] for a in alphas]
        assert [row["value"] for row in chosen.selection_] == values
        assert chosen.alpha == alphas[int(np.argmax(values))]

    def test_a_measure_that_skips_every_validation_query(self):
        queries = rw.make_queries(5, random_state=0)
        with pytest.raises(rw.InputError, match="skips every validation query"):
            rw.select(rw.Regression(), {}, queries, queries, measure="map(rel=9,empty=skip)")

    def test_an_empty_grid(self):
        queries = rw.make_queries(3, random_state=0)
        with pytest.raises(rw.InputError, match="grid is empty"):
            rw.select(rw.Regression(), [], queries, queries)

    def test_query_k_fold_never_parts_a_query(self):
        rng = np.random.default_rng(0)
        qid = rng.integers(0, 30, 200)
        for cv in (rw.QueryKFold(4), rw.QueryKFold(4, shuffle=True, random_state=1)):
            tests = []
            for train, test in cv.split(np.zeros((200, 1)), qid=qid):
                assert not set(qid[train]) & set(qid[test])
                assert sorted([*train, *test]) == list(range(200))
                tests.extend(test)
            assert sorted(tests) == list(range(200))
            assert cv.get_n_splits() == 4
        with pytest.raises(rw.InputError, match="2 queries cannot make 5 folds"):
            list(rw.QueryKFold().split(np.zeros((4, 1)), qid=[1, 1, 2, 2]))


class TestEvaluate:
    def test_evaluations(self):
        queries = rw.make_queries(8, random_state=0)
        scores = np.random.default_rng(0).normal(size=queries.n_docs)
        result = rw.evaluate(scores, queries, "ndcg@1, ndcg@10(gain=linear,empty=skip), map")
        assert result.measures == ("ndcg@1", "ndcg@10(gain=linear,empty=skip)", "map")
        assert result["MAP"] == result.means["map"] == np.mean(result.per_query["map"])
        frame = result.to_pandas()
        assert frame.shape == (8, 3)
        assert frame.index.tolist() == queries.qid.tolist()
        assert "map=" in repr(result)
        with pytest.raises(KeyError, match="was not evaluated"):
            result["err"]
        with pytest.raises(rw.InputError, match="no measure"):
            rw.evaluate(scores, queries, [])
