"""SoftRank: its objective against the paper's recursion and against every outcome, its limits, and the ranker."""

from __future__ import annotations

import json
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from scipy.special import ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from tests.reference import softrank
from tests.scored import grades_of, problems, scores_of
from tests.warned import may_be_ineffective

import rankwright as rw
from rankwright.kernels.objectives.rank_distributions import expect_discount
from rankwright.measures.definitions import tabulate_discounts
from rankwright.objectives import NoisyRanks
from rankwright.objectives.objective_names import as_objective

NAMES = (
    "ndcg@3", "ndcg", "ndcg@10", "dcg", "dcg@2", "p@2", "p", "recall@2", "rbp", "rbp@3", "wta", "ndcg@3(discount=letor)",
    "ndcg@3(empty=skip)", "ndcg@3(dialect=letor3)", "ndcg(dialect=letor3)",
)  # fmt: skip
KINDS = {
    "random": ("graded", "random"),
    "tied": ("graded", "integer"),
    "equal scores": ("graded", "constant"),
    "none relevant": ("none", "random"),
    "all relevant": ("equal", "random"),
}
of_every_measure = pytest.mark.parametrize("name", NAMES)


def queries_of(y, weight=None):
    return rw.Queries.from_arrays(np.zeros((len(y), 1)), y, np.zeros(len(y)), weight=weight)


def lists(rng, kind, sizes=(6, 1, 3, 8), weight=None):
    """Queries of one kind, with scores."""
    grades, scores = KINDS[kind]
    y = [np.minimum(grades_of(grades, n, rng), 2) for n in sizes]
    s = [scores_of(scores, each, rng) for each in y]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    queries = rw.Queries.from_arrays(np.zeros((len(qid), 1)), np.concatenate(y), qid, weight=weight)
    return queries, np.concatenate(s)


def compare(name, queries, scores, sigma):
    found = NoisyRanks(name, sigma).prepare(queries)(scores)
    loss, slopes = softrank.loss(name, queries, scores, sigma)
    assert found.loss == pytest.approx(loss, rel=1e-12, abs=1e-12)
    assert found.gradient == pytest.approx(slopes, rel=1e-10, abs=1e-12 * (1 + np.abs(slopes).max()))
    assert found.curvature is None


class TestObjective:
    @of_every_measure
    @pytest.mark.parametrize("kind", KINDS)
    def test_values_and_gradients_are_the_papers(self, name, kind):
        queries, scores = lists(np.random.default_rng(NAMES.index(name)), kind, weight=[1.0, 2.0, 0.0, 0.3])
        for sigma in (0.03, 0.5, 20.0):
            compare(name, queries, scores, sigma)

    @of_every_measure
    @settings(max_examples=8)
    @given(problem=problems(most=5), sigma=st.sampled_from([0.02, 0.5, 4.0]))
    def test_small_lists_of_any_kind(self, name, problem, sigma):
        queries, scores = problem
        compare(name, queries.replace(y=np.minimum(queries.y, 2)), scores, sigma)

    @pytest.mark.parametrize("name", ["ndcg@3", "dcg", "recall@2"])
    def test_the_recursion_adds_up_every_outcome(self, name):
        y, s = [2, 0, 1, 0, 2, 1], np.random.default_rng(1).normal(size=6)
        for sigma in (0.1, 1.0):
            expected = softrank.value(name, y, s, sigma, softrank.enumerated_distribution)
            assert 1 - NoisyRanks(name, sigma).prepare(queries_of(y))(s).loss == pytest.approx(expected, rel=1e-13)

    def test_two_documents_are_the_mean_over_their_orders(self):
        """The one case in which trials are independent: it is the expectation itself."""
        y, s, sigma = [0, 2], np.array([0.7, 0.2]), 0.4
        first = ndtr((s[1] - s[0]) / (np.sqrt(2) * sigma))
        expected = first + (1 - first) / np.log2(3)
        assert 1 - NoisyRanks("ndcg", sigma).prepare(queries_of(y))(s).loss == pytest.approx(expected, rel=1e-14)

    @of_every_measure
    @pytest.mark.parametrize("sigma", [0.2, 3.0])
    def test_finite_differences(self, name, sigma):
        queries, scores = lists(np.random.default_rng(6), "random", weight=[1.0, 0.5, 2.0, 1.0])
        prepared = NoisyRanks(name, sigma).prepare(queries)
        slopes = approx_fprime(scores, lambda s: prepared(s).loss, 1e-7)
        assert prepared(scores).gradient == pytest.approx(slopes, abs=1e-5 * (1 + np.abs(slopes).max()))

    @of_every_measure
    def test_moving_all_scores_changes_nothing(self, name):
        queries, scores = lists(np.random.default_rng(7), "random")
        prepared = NoisyRanks(name, 0.7).prepare(queries)
        found = prepared(scores)
        assert np.add.reduceat(found.gradient, queries.indptr[:-1]) == pytest.approx(np.zeros(4), abs=1e-14)
        moved = scores + np.repeat([4.0, -1.0, 0.5, 256.0], queries.sizes)
        assert prepared(moved).loss == pytest.approx(found.loss, rel=1e-12)

    def test_sigma_is_in_units_of_scores(self):
        queries, scores = lists(np.random.default_rng(8), "random")
        one, other = (NoisyRanks("ndcg@3", 0.4 * c).prepare(queries)(c * scores) for c in (1.0, 8.0))
        assert one.loss == pytest.approx(other.loss, rel=1e-14)
        assert one.gradient == pytest.approx(8.0 * other.gradient, rel=1e-13)

    def test_a_cut_off_beyond_the_list_is_none(self):
        queries, scores = lists(np.random.default_rng(9), "random")
        one, other = (NoisyRanks(name, 0.4).prepare(queries)(scores) for name in ("ndcg@30", "ndcg"))
        assert one.loss == other.loss
        assert one.gradient.tolist() == other.gradient.tolist()


class TestLimits:
    @of_every_measure
    def test_without_noise_it_is_the_measure(self, name):
        for kind in ("random", "none relevant", "all relevant"):
            queries, scores = lists(np.random.default_rng(10), kind, (6, 1, 12, 8), weight=[1.0, 0.5, 2.0, 1.0])
            values = rw.parse_measure(name).for_training().values(queries, scores)
            counted = ~np.isnan(values)
            expected = (queries.query_weight[counted] * (1 - values[counted])).sum()
            for sigma in (1e-5, 1e-300):
                found = NoisyRanks(name, sigma).prepare(queries)(scores)
                assert found.loss == pytest.approx(expected, abs=1e-12)
                assert not found.gradient.any()

    @pytest.mark.parametrize("n", [1, 2, 3, 9])
    def test_with_much_noise_every_rank_is_binomial(self, n):
        """Not equally probable, but for two documents: trials are taken for independent."""
        y, discount = np.arange(n) % 3, tabulate_discounts(rw.NDCG().discount_function, n)
        p = np.array([comb(n - 1, r) for r in range(n)]) / 2.0 ** (n - 1)
        found = NoisyRanks("dcg", 1e12).prepare(queries_of(y))(np.random.default_rng(n).normal(size=n))
        mean = (2.0**y - 1).sum() * (discount @ p)
        assert 1 - found.loss == pytest.approx(mean, rel=1e-10)
        if n == 2:
            assert p @ discount == discount.mean()

    def test_tied_documents_share_their_ranks_evenly(self):
        """Two documents without noise beside others: each is as probable at both ranks."""
        y, s = [1, 0, 2, 0], np.array([0.5, 2.0, 0.5, -1.0])
        for order in ([0, 1, 2, 3], [2, 3, 0, 1]):
            found = NoisyRanks("dcg", 1e-9).prepare(queries_of(np.array(y)[order]))(s[order])
            assert 1 - found.loss == pytest.approx((1 + 3) * (1 / np.log2(3) + 1 / 2) / 2, rel=1e-12)

    def test_huge_scores(self):
        queries, scores = lists(np.random.default_rng(3), "random")
        with np.errstate(all="raise", under="ignore"):
            for factor in (1e4, 1e300, -1e4):
                found = NoisyRanks("ndcg@3", 1.0).prepare(queries)(factor * scores)
                assert found.loss == pytest.approx(4 * (1 - rw.NDCG(3).mean(queries, factor * scores)), abs=1e-12)
                assert not found.gradient.any()

    def test_scores_that_are_not_finite_are_infinitely_bad(self):
        queries = rw.make_queries(3, random_state=0)
        for value in (np.nan, np.inf, -np.inf):
            scores = np.zeros(queries.n_docs)
            scores[1] = value
            found = NoisyRanks("ndcg@5").prepare(queries)(scores)
            assert found.loss == np.inf
            assert not found.gradient.any()


def distribute(above, size):
    """The distribution of the number of trials that succeed, by the kernel, and its derivatives by each."""
    m = len(above)
    width = (m + 1 + 15) // 16 * 16
    table, starts = np.full((size + 1, width + 1), np.nan), np.full((m // size + 1, width + 1), np.nan)
    c, cost, p, slopes = np.empty(width + 1), np.empty(m), np.empty(m + 1), np.empty((m + 1, m))
    for r in range(m + 1):
        p[r] = expect_discount(above, np.eye(m + 1)[r], table, starts, c, cost)
        slopes[r] = -cost
    return p, slopes


class TestDistributions:
    @pytest.mark.parametrize("m", [1, 2, 15, 16, 17, 40])
    def test_they_sum_to_one_in_blocks_of_any_size(self, m):
        above = np.random.default_rng(m).random(m)
        above[: m // 3] = np.array([0.0, 1.0, 0.5, 1e-17])[np.arange(m // 3) % 4]
        expected = [1.0]
        for a in above:
            expected = np.append(expected, 0.0) * (1 - a) + np.append(0.0, expected) * a
        for size in {1, 2, min(m, 7), m, m + 3}:
            p, slopes = distribute(above, size)
            assert p == pytest.approx(expected, abs=1e-15)
            assert p.sum() == pytest.approx(1.0, rel=1e-14)
            assert p @ np.arange(m + 1) == pytest.approx(above.sum(), rel=1e-13)
            assert slopes.sum(axis=0) == pytest.approx(np.zeros(m), abs=1e-14)
            assert np.arange(m + 1) @ slopes == pytest.approx(np.ones(m), rel=1e-12)  # of the mean

    def test_all_documents_take_all_ranks(self):
        """Precision of a whole list of relevant documents is 1 only if each is at one rank, surely."""
        queries, scores = queries_of(np.ones(150)), np.random.default_rng(2).normal(size=150)
        found = NoisyRanks("p@150", 0.5).prepare(queries)(scores)
        assert found.loss == pytest.approx(0.0, abs=1e-13)
        assert found.gradient == pytest.approx(np.zeros(150), abs=1e-13)

    @pytest.mark.parametrize(("n", "k", "sigma"), [(700, None, 0.2), (700, 10, 0.2), (400, 5, 3.0), (700, 300, 0.01)])
    def test_long_lists(self, n, k, sigma):
        """Blocks of trials, and documents that cannot reach the ranks that count, change nothing."""
        rng = np.random.default_rng(n)
        y, s = rng.integers(0, 3, n) * (rng.random(n) < 0.1), rng.normal(size=n)
        discount = tabulate_discounts(rw.NDCG(k).discount_function, n)[: k or n]

        def dcg(s):
            total = 0.0
            for j in np.flatnonzero(y):
                p = np.zeros(len(discount))
                p[0] = 1.0
                for a in ndtr((np.delete(s, j) - s[j]) / (np.sqrt(2) * sigma)):
                    p = p * (1 - a) + np.append(0.0, p[:-1]) * a
                total += (2.0 ** y[j] - 1) * (p @ discount)
            return total

        found = NoisyRanks(rw.parse_measure("dcg" if k is None else f"dcg@{k}"), sigma).prepare(queries_of(y))(s)
        assert 1 - found.loss == pytest.approx(dcg(s), rel=1e-12, abs=1e-14)
        way, step = rng.normal(size=n), 1e-5 * sigma
        slope = (dcg(s + step * way) - dcg(s - step * way)) / (2 * step)
        assert -found.gradient @ way == pytest.approx(slope, rel=1e-5, abs=1e-8)


class TestRefusals:
    @pytest.mark.parametrize("sigma", [0.0, -1.0, np.inf, np.nan, 1e-310, "1"])
    def test_sigma(self, sigma):
        with pytest.raises(rw.InputError, match=r"sigma=.*expected"):
            NoisyRanks("ndcg", sigma).prepare(queries_of([1, 0]))
        with pytest.raises(rw.InputError, match=r"sigma=.*expected"):
            NoisyRanks("ndcg").prepare(queries_of([1, 0])).with_sigma(sigma)
        with pytest.raises(rw.InputError, match=r"sigma=.*expected"):
            rw.SoftRank(sigma=sigma).fit(rw.make_queries(5))

    @pytest.mark.parametrize("name", ["map", "err", "mrr", "ap@3"])
    def test_measures_that_are_no_sums(self, name):
        with pytest.raises(rw.InputError, match=r"is no sum over documents .*; expected one that is, such as NDCG"):
            NoisyRanks(name).prepare(queries_of([1, 0]))
        with pytest.raises(rw.InputError, match="is no sum over documents"):
            rw.LinearRanker(objective="noisy_ranks", measure=name).fit(rw.make_queries(5))

    def test_a_users_measure(self):
        own = rw.make_measure(lambda grades: float(grades[0] > 0), name="first")
        with pytest.raises(rw.InputError, match="first is a function of ranked grades"):
            NoisyRanks(own).prepare(queries_of([1, 0]))

    @pytest.mark.parametrize("k", [0, -1, 2.5, "3"])
    def test_k(self, k):
        with pytest.raises(rw.InputError, match="k="):
            rw.SoftRank(k=k).fit(rw.make_queries(5))


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(60, n_docs=15, n_features=6, random_state=0)


class TestRanker:
    def test_it_minimises_the_objective_with_the_penalty(self, queries):
        ranker = rw.SoftRank(alpha=0.5, sigma=0.4, tol=1e-12, max_iter=2000).fit(queries)
        deviation = queries.X.astype(float).std(axis=0)
        start = rw.Regression(alpha=1.0).fit(queries).coef_ * deviation
        X = queries.X.astype(float) / deviation
        prepared = NoisyRanks("ndcg@10", 0.4).prepare(queries)

        def value(w):
            return prepared(X @ w).loss + 0.5 * ((w - start) ** 2).sum()

        w = ranker.coef_ * deviation
        assert ranker.history_[-1]["objective"] == pytest.approx(value(w), rel=1e-6)
        assert value(w) < value(start)
        slope = X.T @ prepared(X @ w).gradient + (w - start)
        assert np.abs(slope).max() < 1e-3 * np.abs(X.T @ prepared(X @ start).gradient).max()

    def test_it_is_better_than_its_start_by_what_it_maximises(self, queries):
        start = rw.Regression().fit(queries)
        for measure in ("ndcg@10", "ndcg", "p@3", "rbp", "recall@5", "wta"):
            ranker = rw.SoftRank(measure=measure, alpha=0.01).fit(queries)
            prepared = NoisyRanks(rw.parse_measure(measure), 0.3).prepare(queries)
            assert prepared(ranker.predict(queries)).loss < prepared(start.predict(queries)).loss

    def test_a_large_alpha_is_the_regression(self, queries):
        ranker, start = rw.SoftRank(alpha=1e9).fit(queries), rw.Regression(alpha=1.0).fit(queries)
        assert ranker.coef_ == pytest.approx(start.coef_, rel=1e-5, abs=1e-7)

    def test_a_path_is_every_fit_alone(self, queries):
        for ranker in rw.SoftRank(measure="ndcg@5").fit_path([0.01, 10.0, 1.0], queries):
            alone = rw.SoftRank(measure="ndcg@5", alpha=ranker.alpha).fit(queries)
            assert ranker.predict(queries).tobytes() == alone.predict(queries).tobytes()

    def test_k_is_the_cut_off_of_training(self, queries):
        given, own = rw.SoftRank(measure="ndcg@3", k=5).fit(queries), rw.SoftRank(measure="ndcg@5").fit(queries)
        assert given.predict(queries).tobytes() == own.predict(queries).tobytes()
        with pytest.warns(
            rw.IneffectiveParameterWarning, match="k has no effect here: p@3 counts the ranks of its own"
        ):
            precise = rw.SoftRank(measure="p@3", k=5).fit(queries)
        assert precise.coef_.tolist() == rw.SoftRank(measure="p@3").fit(queries).coef_.tolist()

    def test_noise_that_hides_the_ranking_is_warned_about(self):
        """Under a small cut-off the first ranks of a long list are out of reach, and the start is all there is."""
        long = rw.make_queries(10, n_docs=150, n_features=4, random_state=0)
        with pytest.warns(
            ConvergenceWarning, match=r"noise of sigma=30 hides the ranking, .*; lower sigma, or raise k"
        ):
            rw.SoftRank(measure="ndcg@5", sigma=30.0).fit(long)
        assert rw.SoftRank(measure="ndcg@5").fit(long).fit_warnings_ == []
        assert rw.SoftRank(measure="ndcg@5", sigma=30.0, k=300).fit(long).fit_warnings_ == []

    @pytest.mark.parametrize(("measure", "trained"), [("map", "ndcg"), ("err@5", "ndcg@5"), ("mrr", "ndcg")])
    def test_measures_that_are_no_sums_are_trained_by_ndcg(self, queries, measure, trained):
        one, other = (rw.SoftRank(measure=name).fit(queries) for name in (measure, trained))
        assert one.predict(queries).tobytes() == other.predict(queries).tobytes()
        assert one.history_[-1]["train"] == pytest.approx(one.score(queries), rel=1e-12)
        assert one.score(queries) != other.score(queries)

    def test_a_users_measure_is_trained_by_ndcg(self, queries):
        own = rw.make_measure(lambda grades: float(grades[0] > 0), name="first")
        ranker = rw.SoftRank(measure=own).fit(queries)
        assert ranker.predict(queries).tobytes() == rw.SoftRank(measure="ndcg").fit(queries).predict(queries).tobytes()

    def test_grades_above_4_are_brought_down_in_the_regression(self, queries):
        """So that sigma means the same on all data."""
        wide = queries.replace(y=queries.y * 5)
        start = rw.SoftRank(measure="p@5(rel=1)", alpha=1e9).fit(wide)
        assert np.ptp(start.predict(wide)) < 3 * 4

    def test_select_chooses_both_parameters(self, queries):
        train, valid = queries.take(range(40)), queries.take(range(40, 60))
        chosen = rw.select(rw.SoftRank(measure="ndcg@5"), rw.SoftRank.default_grid, train, valid)
        assert len(chosen.selection_) == len(ParameterGrid(dict(rw.SoftRank.default_grid)))
        best = max(chosen.selection_, key=lambda row: row["value"])
        assert {"sigma": chosen.sigma, "alpha": chosen.alpha} == {name: best[name] for name in ("sigma", "alpha")}


class TestNetwork:
    def test_a_quarter_of_the_epochs_is_a_regression(self, queries):
        pytest.importorskip("torch")
        ranker = rw.SoftRank(hidden=(4,), training={"n_epochs": 10}, sigma=0.5).fit(queries)
        assert [row["sigma"] for row in ranker.history_] == [None] * 2 + [0.5] * 8
        prepared = NoisyRanks("ndcg@10", 0.5).prepare(queries)
        assert ranker.history_[-1]["loss"] < ranker.history_[2]["loss"]
        assert ranker.history_[-1]["loss"] == pytest.approx(prepared(ranker.predict(queries)).loss, rel=0.05)

    def test_few_epochs_have_none(self, queries):
        pytest.importorskip("torch")
        ranker = rw.SoftRank(hidden=(4,), training={"n_epochs": 3}).fit(queries)
        assert [row["sigma"] for row in ranker.history_] == [0.3] * 3

    def test_it_learns(self, queries):
        pytest.importorskip("torch")
        ranker = rw.SoftRank(hidden=(8,), alpha=0.0, training={"n_epochs": 60, "learning_rate": 0.02}).fit(queries)
        assert ranker.score(queries) > rw.Regression().fit(queries).score(queries)


class TestOtherRankers:
    def test_by_name_the_whole_list_counts(self):
        assert as_objective("noisy_ranks", rw.NDCG(5)) == NoisyRanks(rw.NDCG())
        assert as_objective("noisy_ranks", rw.parse_measure("p@5")) == NoisyRanks(rw.parse_measure("p@5"))

    @may_be_ineffective
    def test_trees_with_the_objective_and_a_cut_off(self, queries):
        trees = rw.BoostedTrees(objective=NoisyRanks("ndcg@5", 0.2), n_estimators=40, num_leaves=5).fit(queries)
        losses = [row["loss"] for row in trees.history_]
        assert losses[-1] < 0.9 * losses[20]  # after the trees of least squares
        by_name = rw.BoostedTrees(objective="noisy_ranks", n_estimators=25, num_leaves=5).fit(queries)
        given = rw.BoostedTrees(objective=NoisyRanks("ndcg", 0.1), n_estimators=25, num_leaves=5).fit(queries)
        assert json.dumps(by_name.history_) == json.dumps(given.history_)
