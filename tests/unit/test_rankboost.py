"""RankBoost: sums over pairs and every round against D_t written out for all pairs."""

from __future__ import annotations

import json
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.graded import documents, some_documents
from tests.reference import rankboost as twin
from tests.reference.pairwise import pairs
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.kernels.objectives.graded_pairs import GradedDocuments, find_grade_order, sum_exponential_pairs
from rankwright.objectives.pairwise_objectives import count_query_pairs
from rankwright.runtime import backends

MOST = 1 - 1e-9  # of |r|: the step is finite


def exponentials(y, indptr, weight, scores):
    """The sum over pairs of exp(s_j - s_i), and the gradient."""
    query, gradient, loss = np.repeat(np.arange(len(weight)), np.diff(indptr)), np.zeros(len(scores)), 0.0
    for i, j in pairs(y, indptr):
        term = weight[query[i]] * np.exp(scores[j] - scores[i])
        loss += term
        gradient[i] -= term
        gradient[j] += term
    return loss, gradient


class TestGradedPairs:
    @settings(max_examples=150)
    @given(y=st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0, -1.0]), min_size=1, max_size=20), seed=st.integers(0, 2**32))
    def test_the_order_of_grades(self, y, seed):
        y, n = np.array(y), len(y)
        cuts = np.random.default_rng(seed).choice(n, size=min(n - 1, 3), replace=False)
        indptr = np.unique(np.concatenate([[0], cuts, [n]])).astype(np.int64)
        rows, lower = find_grade_order(y, indptr)
        for a, b in pairwise(indptr):
            assert rows[a:b].tolist() == sorted(range(a, b), key=lambda i: -y[i])  # stable
            for i in range(a, b):
                below = [j for j in range(a, b) if y[rows[j]] < y[rows[i]]]
                assert list(range(lower[i], b)) == below
        counts = [sum(1 for _ in pairs(y[a:b], [0, b - a])) for a, b in pairwise(indptr)]
        assert count_query_pairs(y, indptr).tolist() == counts

    @settings(max_examples=150)
    @given(docs=some_documents(("zero", "tied", "random", "far")))
    def test_sums_equal_all_pairs(self, docs):
        gradient = np.full(len(docs.y), 9.0)
        loss = sum_exponential_pairs(docs.graded, docs.scores, gradient)
        expected, slopes = exponentials(docs.y, docs.indptr, docs.graded.weight, docs.scores)
        assert loss == pytest.approx(expected, rel=1e-12)
        assert gradient == pytest.approx(slopes, rel=1e-10, abs=1e-12 * expected)

    @given(docs=some_documents(("zero", "tied", "random")))
    def test_the_gradient_by_finite_differences(self, docs):
        n = len(docs.y)
        gradient = np.empty(n)
        sum_exponential_pairs(docs.graded, docs.scores, gradient)
        slopes = approx_fprime(docs.scores, lambda s: sum_exponential_pairs(docs.graded, s, np.empty(n)), 1e-7)
        assert gradient == pytest.approx(slopes, rel=1e-4, abs=1e-4)

    def test_scores_far_apart(self):
        """A relevant document far ahead, or all scores far from 0, cost no precision."""
        graded = GradedDocuments(np.array([0, 3]), np.array([1, 2, 3]), np.array([1.0]))
        gradient = np.empty(3)
        scores = np.array([1300.0, 0.5, 0.0])
        assert sum_exponential_pairs(graded, scores, gradient) == pytest.approx(np.exp(-0.5), rel=1e-12)
        assert gradient == pytest.approx([0, -np.exp(-0.5), np.exp(-0.5)], rel=1e-12)
        moved = np.empty(3)
        sum_exponential_pairs(graded, scores - 1e6, moved)
        assert moved == pytest.approx(gradient, rel=1e-9)

    def test_potentials_are_what_a_stump_gets(self):
        """r is the sum over documents of h times minus the gradient."""
        docs = documents(np.random.default_rng(0), [9, 7, 1, 5], 3)
        gradient, h = np.empty(len(docs.y)), docs.rng.integers(0, 2, len(docs.y))
        sum_exponential_pairs(docs.graded, docs.scores, gradient)
        query = np.repeat(np.arange(4), np.diff(docs.indptr))
        r = sum(
            docs.graded.weight[query[i]] * np.exp(docs.scores[j] - docs.scores[i]) * (h[i] - h[j])
            for i, j in pairs(docs.y, docs.indptr)
        )
        assert -gradient @ h == pytest.approx(r, rel=1e-12)


@st.composite
def small_sets(draw, kind):
    """Judged queries with ties, missing values, queries without pairs, weights of 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=6))
    n, weight = sum(sizes), rng.choice([0.0, 0.5, 1.0, 3.0], len(sizes))
    weight[0] += weight.sum() == 0
    y = rng.integers(0, draw(st.sampled_from([1, 2, 3, 5])), n)
    X = rng.normal(size=(n, 4)) + rng.choice([0.0, 0.5, 2.0]) * y[:, None]
    X[:, 1:] = np.round(X[:, 1:])
    if kind == "copies":
        X = np.column_stack([X, X[:, 2], -X[:, 0]])
    if kind == "missing":
        X[rng.random(X.shape) < 0.3] = np.nan
        X[y > 0, 1] = np.nan  # to lack it tells something
        X[:, 3] = np.nan
    return rw.Queries.from_arrays(X, y, group=sizes, weight=weight)


def check_rounds(queries, n_estimators, *, per="pair", bins=255, cuts=None):
    """Every round of RankBoost is that of the twin, to the last one."""
    ranker = rw.RankBoost(n_estimators=n_estimators, pair_weighting=per, max_bins=bins).fit(queries)
    expected = list(twin.rankboost(queries.X, queries.y, queries.indptr, queries.query_weight, per, n_estimators, cuts))
    rows, product = ranker.history_, 1.0
    assert len(rows) == len(expected)
    for t, (row, best) in enumerate(zip(rows, expected, strict=True)):
        assert (row["feature"], row["missing"]) == (best.feature, bool(best.missing)), t
        assert best.low <= row["threshold"] < best.high, t
        assert row["r"] == pytest.approx(best.r, abs=1e-10), t
        assert row["alpha"] == pytest.approx(best.alpha, abs=1e-9 / (1 - min(abs(best.r), MOST) ** 2)), t
        assert row["z"] == pytest.approx(best.Z, rel=1e-9), t
        assert row["loss"] == pytest.approx(best.loss, rel=1e-8), t
        bounded = min(abs(row["r"]), MOST)
        assert row["z"] <= np.sqrt(1 - bounded**2) + 1e-12, t
        product *= row["z"]
        assert row["loss"] == pytest.approx(product, rel=1e-12), t
    return ranker


class TestRoundByRound:
    @may_learn_nothing
    @pytest.mark.parametrize("per", ["pair", "query"])
    @pytest.mark.parametrize("kind", ["plain", "copies", "missing"])
    def test_small_sets(self, kind, per):
        @settings(max_examples=40)
        @given(queries=small_sets(kind), bins=st.sampled_from([255, None]))
        def check(queries, bins):
            check_rounds(queries, 8, per=per, bins=bins)

        check()

    @pytest.mark.parametrize("missing", [False, True])
    def test_many_rounds(self, missing):
        queries = rw.make_queries(12, n_docs=10, n_features=4, random_state=2)
        X = queries.X.copy()
        if missing:
            X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
        ranker = check_rounds(queries.with_X(X), 50)
        assert len(ranker.history_) == 50
        assert {row["missing"] for row in ranker.history_} == ({False, True} if missing else {False})

    def test_in_several_parts(self, monkeypatch):
        queries = rw.make_queries(40, n_docs=12, n_features=6, random_state=3)
        whole = rw.RankBoost(n_estimators=20).fit(queries)
        monkeypatch.setattr(backends, "_DOCS_PER_SHARD", 50)
        found = [
            rw.RankBoost(n_estimators=20, backend=b).fit(queries) for b in (rw.Serial(), rw.Threads(2), rw.Threads(3))
        ]
        assert found[0].history_ == found[1].history_ == found[2].history_
        for row, expected in zip(found[0].history_, whole.history_, strict=True):
            assert row == pytest.approx(expected, abs=1e-9)

    def test_many_slots_are_gone_through_in_groups(self, monkeypatch):
        queries = rw.make_queries(10, n_docs=10, n_features=9, random_state=5)
        expected = rw.RankBoost(n_estimators=10).fit(queries).history_
        monkeypatch.setattr("rankwright.optimisers.weak.threshold_stumps._SLOTS_AT_A_TIME", 150)
        assert rw.RankBoost(n_estimators=10).fit(queries).history_ == expected


class TestByHand:
    def test_three_documents(self):
        """Grades 2, 1, 0 and values 3, 1, 2: the feature puts the first first, and confuses the others."""
        queries = rw.Queries.from_arrays([[3.0], [1.0], [2.0]], [2, 1, 0], qid=[7, 7, 7])
        rows = rw.RankBoost(n_estimators=2).fit(queries).history_
        first, second = rows  # D = 1/3 each; above 2.5 is the first: r = 2/3, alpha = ln(5) / 2
        assert (first["threshold"], first["r"]) == (2.5, pytest.approx(2 / 3))
        assert first["alpha"] == pytest.approx(np.log(5) / 2, abs=2**-32)
        z = (1 + 2 / np.sqrt(5)) / 3  # the pairs it splits become lighter by sqrt(5)
        assert (first["z"], first["loss"]) == (pytest.approx(z), pytest.approx(z))
        light, heavy = 1 / np.sqrt(5) / (3 * z), 1 / (3 * z)
        assert 2 * light + heavy == pytest.approx(1)
        assert 2 * light > heavy - light  # so the same stump again, r = 2 light
        assert (second["threshold"], second["r"]) == (2.5, pytest.approx(2 * light))
        assert second["alpha"] == pytest.approx(0.5 * np.log((1 + 2 * light) / (1 - 2 * light)), abs=2**-31)

    def test_a_missing_value_on_the_better_side(self):
        """Values 0, 1 and none: above 0.5 is right for the second; so is to lack the feature, or it is not."""
        for grade, side in ((1, True), (0, False)):
            queries = rw.Queries.from_arrays([[0.0], [1.0], [np.nan]], [0, 1, grade], qid=[1, 1, 1])
            ranker = rw.RankBoost(n_estimators=1).fit(queries)
            (row,) = ranker.history_
            assert (row["missing"], row["r"]) == (side, pytest.approx(1.0))
            assert ranker.predict([[0.2], [0.9], [np.nan]]).tolist() == [0.0, row["alpha"], side * row["alpha"]]

    def test_a_feature_that_is_never_missing_in_training(self):
        ranker = rw.RankBoost(n_estimators=30).fit(rw.make_queries(20, n_features=3, random_state=0))
        assert not any(row["missing"] for row in ranker.history_)
        low = np.full((1, 3), -1e30, dtype=np.float32)
        assert ranker.predict(np.full((1, 3), np.nan)).tolist() == ranker.predict(low).tolist() == [0.0]

    @may_learn_nothing
    def test_pairs_count_alike_or_queries(self):
        y, X = [1, 0, 1, 0, 0, 0, 0], [[0.0], [1], [1], [0], [0], [0], [0]]
        for per, weight, r in (
            ("pair", [1, 1], (4 - 1) / 5),
            ("query", [1, 1], 0.0),
            ("query", [1, 3], 0.5),
            ("pair", [4, 2], (8 - 4) / 12),
            ("pair", [0, 1], 1.0),
        ):
            rows = (
                rw.RankBoost(n_estimators=1, pair_weighting=per)
                .fit(rw.Queries.from_arrays(X, y, group=[2, 5], weight=weight))
                .history_
            )
            assert sum(row["r"] for row in rows) == pytest.approx(r)


class TestHistory:
    def test_what_is_recorded(self):
        queries, valid = (rw.make_queries(30, n_docs=10, n_features=5, random_state=seed) for seed in (0, 1))
        ranker = rw.RankBoost(n_estimators=25, measure="map").fit(queries, valid=valid)
        scores, check = np.zeros(queries.n_docs), np.zeros(valid.n_docs)
        for row in ranker.history_:
            scores += row["alpha"] * (queries.X[:, row["feature"]] > np.float32(row["threshold"]))
            check += row["alpha"] * (valid.X[:, row["feature"]] > np.float32(row["threshold"]))
            assert row["train"] == pytest.approx(rw.parse_measure("map").mean(queries, scores), abs=1e-12)
            assert row["valid"] == rw.parse_measure("map").mean(valid, check)
            assert row["alpha"] * 2**32 == round(row["alpha"] * 2**32)
        values = [row["valid"] for row in ranker.history_]
        assert ranker.score(valid) == max(values)
        assert len(ranker.scorer_) == values.index(max(values)) + 1
        json.dumps(ranker.history_, allow_nan=False)

    @pytest.mark.parametrize("per", ["pair", "query"])
    def test_the_bound_on_z(self, per):
        queries = rw.make_queries(40, n_docs=15, n_features=10, random_state=1)
        rows, loss = rw.RankBoost(n_estimators=100, pair_weighting=per).fit(queries).history_, 1.0
        for row in rows:
            assert row["z"] <= np.sqrt(1 - row["r"] ** 2) + 1e-12 < 1 + 1e-12
            assert row["loss"] <= loss
            loss = row["loss"]


class TestDegenerate:
    @may_learn_nothing
    @pytest.mark.parametrize(
        ("X", "y", "qid"),
        [
            ([[1.0], [2.0]], [1, 1], [1, 1]),
            ([[1.0], [2.0]], [1, 0], [1, 2]),
            ([[1.0], [1.0]], [1, 0], [1, 1]),
            ([[np.nan], [np.nan]], [1, 0], [1, 1]),
            ([[1.0]], [1], [1]),
        ],
    )
    def test_nothing_to_learn(self, X, y, qid):
        ranker = rw.RankBoost().fit(X, y, qid=qid)
        assert ranker.history_ == []
        assert ranker.predict(X).tolist() == [0.0] * len(y)

    def test_a_perfect_feature_ends_training(self):
        queries = rw.Queries.from_arrays([[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
        ranker = rw.RankBoost(n_estimators=100).fit(queries)
        rows = ranker.history_
        assert len(rows) < 5
        assert rows[0]["r"] == 1.0
        assert rows[0]["alpha"] == pytest.approx(0.5 * np.log((1 + MOST) / (1 - MOST)), rel=1e-6)
        assert ranker.score(queries) == 1.0
        assert len(ranker.scorer_) == len(rows)

    def test_bad_parameters(self):
        for name, value in {
            "pair_weighting": "document",
            "max_bins": 1,
            "n_estimators": 0,
            "scale": "max",
            "warm_start": 3,
            "init_model": 3,
        }.items():
            with pytest.raises(rw.InputError, match=f"{name}="):
                rw.RankBoost(**{name: value}).fit(rw.make_queries(3, random_state=0))


def test_whether_a_feature_is_known_is_a_stump():
    """Known documents of one value, or several: that they are known may say more than any value."""
    rng = np.random.default_rng(0)
    y, qid = rng.integers(0, 2, 400), np.repeat(np.arange(20), 20)
    known = rng.random(400) < 0.2 + 0.6 * y
    for values in (np.ones(400), rng.normal(size=400)):
        X = np.column_stack([np.where(known, values, np.nan), rng.normal(size=400)])
        ranker = rw.RankBoost(n_estimators=1).fit(X, y, qid=qid)
        assert ranker.history_[0]["feature"] == 0
        assert ranker.history_[0]["r"] > 0.5
        assert (ranker.predict(X) > 0).tolist() == known.tolist()
