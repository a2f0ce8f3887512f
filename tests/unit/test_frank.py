"""FRank: the search against trying every stump on every pair, round by round."""

from __future__ import annotations

import json
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.conftest import random_queries
from tests.reference import frank as twin
from tests.warned import may_learn_nothing

import rankwright as rw
from rankwright.optimisers.weak.fidelity_stumps import FidelityStumpSearch
from rankwright.optimisers.weak.threshold_stumps import FeatureBins
from rankwright.rankers.stumps.frank import _FidelityStages
from rankwright.runtime import backends


def twin_pairs(queries):
    return twin.by_query(queries.y, queries.indptr, queries.query_weight)


def cuts_of(queries, bins):
    """The thresholds of these bins, each with the neighbouring values of the feature."""
    cut = FeatureBins.of(queries, bins, rw.Serial())
    found = []
    for f in range(queries.n_features):
        values = np.unique(queries.X[:, f])
        for threshold in cut.thresholds[cut.starts[f] : cut.starts[f + 1] - 2]:
            found.append((f, values[values <= threshold].max(), values[values > threshold].min()))
    return found


def check_rounds(queries, n_estimators, *, smoothing, bins=255, cuts=None):
    """Every round of FRank is that of the full search, to the last one."""
    ranker = rw.FRank(n_estimators=n_estimators, max_bins=bins, smoothing=smoothing).fit(queries)
    expected = list(twin.frank(queries.X, twin_pairs(queries), n_estimators, smoothing, cuts))
    assert len(ranker.history_) == len(expected)
    for t, (record, best) in enumerate(zip(ranker.history_, expected, strict=True)):
        assert record["round"] == t + 1
        assert record["feature"] == best.feature, t
        assert best.low <= record["threshold"] < best.high, t
        assert record["alpha"] == pytest.approx(best.alpha, abs=1e-9), t
        assert record["loss"] == pytest.approx(best.loss, abs=1e-12), t
        assert record["missing"] is False
    return ranker


def kinds_of_features(rng, kind, n, y):
    """Columns that lead to every kind of tie between stumps."""
    real = rng.normal(size=(n, 3)) + rng.choice([0.0, 0.5, 2.0]) * y[:, None]
    whole = np.round(1.5 * real)
    return {
        "real": real,
        "whole": whole,
        "few": np.column_stack([whole[:, 0] > 0, real[:, 1] > 0.5, np.zeros(n)]),
        "copies": np.column_stack([whole[:, 0], real[:, 0], whole[:, 0], -real[:, 0], 3 * real[:, 0]]),
        "constant": np.column_stack([np.ones(n), real[:, 0]]),
    }[kind]


@st.composite
def small_sets(draw, kind):
    """Judged queries, some without pairs, some of weight 0."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 8), min_size=1, max_size=6))
    n, weight = sum(sizes), rng.choice([0.0, 0.5, 1.0, 3.0], len(sizes))
    weight[0] += weight.sum() == 0
    y = rng.integers(0, draw(st.sampled_from([1, 2, 3, 5])), n)
    X = kinds_of_features(rng, kind, n, y)
    return rw.Queries.from_arrays(X, y, group=sizes, weight=weight)


class TestTheWinnerIsThatOfTheFullSearch:
    @may_learn_nothing
    @pytest.mark.parametrize("kind", ["real", "whole", "few", "copies", "constant"])
    def test_small_sets(self, kind):
        @settings(max_examples=50)
        @given(
            queries=small_sets(kind),
            smoothing=st.sampled_from([1e-6, 1e-4, 1e-2, 0.3]),
            bins=st.sampled_from([255, None]),
        )
        def check(queries, smoothing, bins):
            check_rounds(queries, 8, smoothing=smoothing, bins=bins)

        check()

    @pytest.mark.parametrize("smoothing", [1e-5, 1e-3, 0.1])
    @pytest.mark.parametrize("whole", [False, True])
    def test_many_rounds(self, whole, smoothing):
        queries = rw.make_queries(10, n_docs=10, n_features=4, random_state=int(whole))
        if whole:
            queries = queries.with_X(np.round(2 * queries.X / queries.X.std(axis=0)))
        ranker = check_rounds(queries, 30, smoothing=smoothing)
        assert len(ranker.history_) == 30

    @pytest.mark.parametrize("bins", [2, 3, 7])
    def test_few_bins(self, bins):
        queries = rw.make_queries(10, n_docs=10, n_features=5, random_state=bins)
        check_rounds(queries, 15, smoothing=1e-3, bins=bins, cuts=cuts_of(queries, bins))

    @pytest.mark.parametrize("seed", range(4))
    def test_more_features_than_are_looked_at_first(self, seed):
        queries = random_queries(np.random.default_rng(seed), m=10, most=8, d=50)
        ranker = check_rounds(queries, 30, smoothing=[1e-3, 0.1][seed % 2])
        assert any(record["scanned"] < 40 for record in ranker.history_)  # the bounds do rule features out

    @pytest.mark.parametrize("n_before", [8, 24])
    def test_the_best_feature_comes_last(self, n_before):
        """Of all features W+ - W- is largest where W+ + W- is too, and that is not known yet: so others look better."""
        rng, m = np.random.default_rng(n_before), 100
        for right, smoothing in product((20, 23, 26, 27), (0.01, 0.1, 0.3, 1.0)):
            way = np.zeros((m, n_before + 1))  # of each feature in each pair
            for f in range(n_before):
                way[:, f] = rng.permutation(np.repeat([1, -1], [64, 36]))
            way[:right, -1] = 1
            X = np.stack([way > 0, way < 0], axis=1).reshape(2 * m, -1).astype(float)  # a pair a query
            queries = rw.Queries.from_arrays(X, np.tile([1, 0], m), group=[2] * m)
            check_rounds(queries, 4, smoothing=smoothing)

    def test_pruning_prunes(self):
        queries = rw.make_queries(60, n_docs=20, n_features=30, random_state=0)
        rows = rw.FRank(n_estimators=30).fit(queries).history_
        stumps = FeatureBins.of(queries, 255, rw.Serial()).n_slots
        assert all(row["tried"] < stumps / 10 for row in rows)
        assert all(row["tried"] < 10 and row["scanned"] < 30 for row in rows[10:])

    def test_in_several_parts(self, monkeypatch):
        queries = rw.make_queries(40, n_docs=12, n_features=6, random_state=3)
        whole = rw.FRank(n_estimators=20).fit(queries)
        monkeypatch.setattr(backends, "_DOCS_PER_SHARD", 50)
        found = [rw.FRank(n_estimators=20, backend=b).fit(queries) for b in (rw.Serial(), rw.Threads(2), rw.Threads(3))]
        assert found[0].history_ == found[1].history_ == found[2].history_
        for record, expected in zip(found[0].history_, whole.history_, strict=True):
            assert (record["feature"], record["threshold"]) == (expected["feature"], expected["threshold"])
            assert record["alpha"] == pytest.approx(expected["alpha"], abs=1e-9)
            assert record["loss"] == pytest.approx(expected["loss"], abs=1e-12)

    def test_many_slots_are_gone_through_in_groups(self, monkeypatch):
        queries = rw.make_queries(10, n_docs=10, n_features=9, random_state=5)
        expected = rw.FRank(n_estimators=10).fit(queries).history_
        monkeypatch.setattr("rankwright.optimisers.weak.threshold_stumps._SLOTS_AT_A_TIME", 150)
        assert rw.FRank(n_estimators=10).fit(queries).history_ == expected


def stump_sums(stages, pairs, slot):
    """The sums of the stump of a slot, pair by pair."""
    (part,) = stages.parts.handles
    f = int(stages.bins.find_features(slot))
    h = (part.binned.codes[f] > slot - stages.bins.starts[f]).astype(float)
    return twin.sums(pairs, part.scores, h)


@pytest.mark.parametrize("seed", range(3))
def test_what_is_known_of_old_sums_holds_as_rounds_go_by(seed):
    queries = rw.make_queries(6, n_docs=9, n_features=12, random_state=seed)
    stages = _FidelityStages(queries, None, rw.parse_measure("ndcg@10"), 6, 1e-3, rw.Serial())
    binned = stages.parts.handles[0].binned
    pairs = twin.by_query(queries.y[binned.rows], queries.indptr, queries.query_weight)
    search, stale = stages.search, 0
    for _ in range(15):
        stages.add(stages.choose())
        for slot in np.flatnonzero(search.possible):
            s = stump_sums(stages, pairs, slot)
            assert search.lower[slot] <= s.right + s.wrong + 1e-15
            assert search.upper[slot] >= s.right + s.wrong - 1e-15
            assert search.curvature[slot] <= s.bend + 1e-15
            stale += np.isfinite(search.upper[slot])
    assert stale > 0


class TestTheEquations:
    def test_three_documents_by_hand(self):
        """Grades 2, 1, 0 and values 3, 1, 2: the feature puts the first first, and confuses the others."""
        queries = rw.Queries.from_arrays([[3.0], [1.0], [2.0]], [2, 1, 0], qid=[7, 7, 7])
        e = 1e-4
        rows = rw.FRank(n_estimators=2, smoothing=e).fit(queries).history_
        w = 1 / 3 / 2**1.5  # of each of the three pairs: D = 1/3, o = 0
        alpha = 0.5 * np.log((2 * w + e) / e)  # above 2.5 is the first: two pairs right, none wrong

        def F(o):
            return 1 - (1 + np.exp(-o)) ** -0.5

        assert rows[0]["threshold"] == 2.5
        assert rows[0]["alpha"] == pytest.approx(alpha, abs=2**-32)
        assert rows[0]["loss"] == pytest.approx((2 * F(alpha) + F(0)) / 3, abs=1e-9)
        light = (
            np.exp(alpha / 2) / (1 + np.exp(alpha)) ** 1.5 / 3
        )  # now above 1.5: that of (1, 2) right, w of (2, 3) wrong
        step = 0.5 * np.log((light + e) / (w + e))
        assert step < 0
        assert rows[1]["threshold"] == 1.5
        assert rows[1]["alpha"] == pytest.approx(step, abs=2**-31)
        assert rows[1]["loss"] == pytest.approx((F(alpha) + F(alpha + step) + F(-step)) / 3, abs=1e-9)

    @pytest.mark.parametrize("seed", range(5))
    def test_alpha_is_equation_3_as_smoothing_vanishes(self, seed):
        queries = random_queries(np.random.default_rng(seed), m=20)
        pairs = twin_pairs(queries)
        (record,) = rw.FRank(n_estimators=1, smoothing=1e-9).fit(queries).history_
        h = (queries.X[:, record["feature"]] > record["threshold"]).astype(float)
        s = twin.sums(pairs, np.zeros(queries.n_docs), h)
        assert s.right > 0 < s.wrong
        assert record["alpha"] == pytest.approx(0.5 * np.log(s.right / s.wrong), abs=1e-7)
        assert record["gain"] >= (np.sqrt(s.right) - np.sqrt(s.wrong)) ** 2 / 2 - 1e-12
        step = 1e-6  # dJ / d alpha = -(W+ - W-) / 2
        slope = (twin.J(pairs, step * h) - twin.J(pairs, -step * h)) / (2 * step)
        assert slope == pytest.approx((s.wrong - s.right) / 2, abs=1e-9)

    @may_learn_nothing
    def test_queries_count_alike(self):
        """D = 1 / #_q: a query of many pairs weighs as much as one of a single pair; weights multiply."""
        y, X, sizes = [1, 0, 1, 0, 0, 0, 0], [[0.0], [1], [1], [0], [0], [0], [0]], [2, 5]
        for weight, sign in (([1.0, 1.0], 0), ([1.0, 1.1], 1), ([1.1, 1.0], -1), ([0.0, 1.0], 1)):
            queries = rw.Queries.from_arrays(X, y, group=sizes, weight=weight)
            rows = rw.FRank(n_estimators=1).fit(queries).history_
            assert np.sign(sum(row["alpha"] for row in rows)) == sign


class TestHistory:
    @pytest.mark.parametrize("smoothing", [1e-9, 1e-4, 1.0])
    @pytest.mark.parametrize("whole", [False, True])
    def test_the_loss_falls_every_round(self, smoothing, whole):
        queries = rw.make_queries(40, n_docs=15, n_features=10, random_state=1)
        if whole:
            queries = queries.with_X(np.round(queries.X / queries.X.std(axis=0)))
        rows = rw.FRank(n_estimators=60, smoothing=smoothing).fit(queries).history_
        losses = [1 - np.sqrt(0.5), *(row["loss"] for row in rows)]
        for row, before, after in zip(rows, losses, losses[1:], strict=False):
            assert 0 < after < before
            assert before - after == pytest.approx(row["gain"], abs=1e-12)

    def test_what_is_recorded(self):
        queries, valid = (rw.make_queries(30, n_docs=10, n_features=5, random_state=seed) for seed in (0, 1))
        ranker = rw.FRank(n_estimators=25, measure="map").fit(queries, valid=valid)
        scores, check = np.zeros(queries.n_docs), np.zeros(valid.n_docs)
        for row in ranker.history_:
            scores += row["alpha"] * (queries.X[:, row["feature"]] > np.float32(row["threshold"]))
            check += row["alpha"] * (valid.X[:, row["feature"]] > np.float32(row["threshold"]))
            assert row["train"] == pytest.approx(rw.parse_measure("map").mean(queries, scores), abs=1e-12)
            assert row["valid"] == rw.parse_measure("map").mean(valid, check)
            assert row["alpha"] * 2**32 == round(row["alpha"] * 2**32)
        assert twin.J(twin_pairs(queries), scores) == pytest.approx(ranker.history_[-1]["loss"], abs=1e-12)
        values = [row["valid"] for row in ranker.history_]
        assert ranker.score(valid) == max(values)
        assert len(ranker.scorer_) == values.index(max(values)) + 1
        json.dumps(ranker.history_, allow_nan=False)


class TestDegenerate:
    @may_learn_nothing
    @pytest.mark.parametrize(
        ("X", "y", "qid"),
        [
            ([[1.0], [2.0]], [1, 1], [1, 1]),
            ([[1.0], [2.0]], [1, 0], [1, 2]),
            ([[1.0], [1.0]], [1, 0], [1, 1]),
            ([[1.0]], [1], [1]),
        ],
    )
    def test_nothing_to_learn(self, X, y, qid):
        ranker = rw.FRank().fit(X, y, qid=qid)
        assert ranker.history_ == []
        assert ranker.predict(X).tolist() == [0.0] * len(y)

    def test_a_perfect_feature(self):
        queries = rw.Queries.from_arrays([[0.0], [1.0], [0.0], [1.0]], [0, 1, 0, 1], qid=[1, 1, 2, 2])
        rows = rw.FRank(n_estimators=100, smoothing=1e-3).fit(queries).history_
        assert [row["train"] for row in rows] == [1.0] * len(rows)
        assert all(row["alpha"] > 0 for row in rows)
        assert rows[-1]["loss"] < rows[0]["loss"] < 0.1

    def test_a_query_without_pairs_or_weight_changes_nothing(self):
        few = rw.make_queries(8, n_docs=8, n_features=3, random_state=0)
        X, y = np.concatenate([few.X, few.X[:9]]), np.concatenate([few.y, [2, 2, 2, 0, 1, 0, 1, 0, 1]])
        more = rw.Queries.from_arrays(X, y, group=[*few.sizes, 3, 6], weight=[1.0] * 9 + [0.0])
        for row, other in zip(*(rw.FRank(n_estimators=15).fit(q).history_ for q in (few, more)), strict=True):
            assert {**row, "train": 0} == pytest.approx({**other, "train": 0}, abs=1e-12)

    def test_missing_values_are_refused(self):
        X = [[np.nan], [1.0]]
        with pytest.raises(ValueError, match="NaN"):
            rw.FRank().fit(X, [1, 0], qid=[1, 1])
        ranker = rw.FRank().fit([[0.0], [1.0]], [0, 1], qid=[1, 1])
        with pytest.raises(ValueError, match="NaN"):
            ranker.predict(X)

    @pytest.mark.parametrize(
        "bad",
        [
            {"smoothing": 0.0},
            {"smoothing": "x"},
            {"max_bins": 1},
            {"max_bins": 2.5},
            {"n_estimators": 0},
            {"scale": "max"},
        ],
    )
    def test_bad_parameters(self, bad):
        (name,) = bad
        with pytest.raises(rw.InputError, match=f"{name}="):
            rw.FRank(**bad).fit(rw.make_queries(3, random_state=0))


@may_learn_nothing
def test_where_nothing_can_be_gained_nothing_is_tried(monkeypatch):
    """Every document twice, relevant and not: no stump can gain, and that costs no pass over the pairs for each."""
    tried = []
    gains = FidelityStumpSearch.compute_gains
    monkeypatch.setattr(FidelityStumpSearch, "compute_gains", lambda *given: tried.append(given) or gains(*given))
    X = np.repeat(np.random.default_rng(0).normal(size=(200, 5)), 2, axis=0)
    queries = rw.Queries.from_arrays(X, np.tile([0, 1], 200), np.repeat(np.arange(20), 20))
    assert rw.FRank().fit(queries).history_ == []
    assert tried == []
