"""SmoothRank, ListNet, ListMLE, RankNet, RankCosine, LambdaRank and LinearRanker: what they minimise, and that they do."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning
from tests.warned import may_be_ineffective, may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.objectives.listwise_objectives import Cosine
from rankwright.objectives.objective_names import OBJECTIVES
from rankwright.objectives.smooth_objectives import APPROXIMATIONS, SigmoidRanks
from rankwright.objectives.swap_lambdas import Lambdas
from rankwright.scorers.linear import StandardScaling


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(30, n_docs=12, n_features=5, random_state=0)


@pytest.fixture(scope="module")
def easy():
    """Grades by a linear function of features of wild spread, in which a regression is misled by outliers."""
    rng = np.random.default_rng(1)
    X = rng.standard_t(1.5, size=(40 * 12, 4))
    ranks = (X @ [1.0, 0.5, -0.5, 0.1]).reshape(40, 12).argsort(axis=1).argsort(axis=1)
    return rw.Queries.from_arrays(X, np.digitize(ranks, [6, 9, 11]).ravel(), np.repeat(np.arange(40), 12))


def logsumexp(values, axis=-1):
    return np.logaddexp.reduce(values, axis=axis)


def standardised(queries):
    standard = StandardScaling.fit(queries)
    return (queries.X - standard.mean) * standard.factor, standard.deviation


def cross_entropy(s, y):
    p = np.exp(y - logsumexp(y))
    return logsumexp(s) - p @ s


def list_mle(s, y):
    return logsumexp(np.where(y <= y[:, None], s, -np.inf), axis=1).sum() - s.sum()


def pair_mean(s, y):
    pairs = np.logaddexp(0.0, -(s[:, None] - s))[y[:, None] > y]
    return pairs.mean() if len(pairs) else 0.0


def pair_sum(s, y):
    return np.logaddexp(0.0, -(s[:, None] - s))[y[:, None] > y].sum()


CONVEX = {
    "ListNet": (rw.ListNet, cross_entropy),
    "ListMLE": (rw.ListMLE, list_mle),
    "RankNet": (rw.RankNet, pair_mean),
    "RankNet by pair": (lambda **options: rw.RankNet(pair_weighting="pair", **options), pair_sum),
}


def objective_of(of_query, queries, alpha):
    """The loss with the penalty as a function of weights of standardised features, and those weights."""
    X, _ = standardised(queries)

    def value(w):
        s = X @ w
        losses = [of_query(s[rows], queries.y[rows]) for rows in queries]
        return queries.query_weight @ losses + alpha * w @ w

    return value


class TestConvex:
    @pytest.mark.parametrize("name", CONVEX)
    @pytest.mark.parametrize("alpha", [0.01, 10.0])
    def test_the_minimum_is_found(self, queries, name, alpha):
        make, of_query = CONVEX[name]
        weighted = rw.Queries(
            queries.X, queries.y, queries.indptr, queries.qid, weight=np.random.default_rng(0).random(30)
        )
        ranker = make(alpha=alpha, tol=1e-12).fit(weighted)
        value, w = objective_of(of_query, weighted, alpha), ranker.coef_ * standardised(weighted)[1]
        assert ranker.history_[-1]["objective"] == pytest.approx(value(w), rel=1e-6)
        assert ranker.history_[-1]["loss"] == pytest.approx(value(w) - alpha * w @ w, rel=1e-6)
        slopes = [(value(w + m) - value(w - m)) / 2e-5 for m in 1e-5 * np.eye(5)]
        assert slopes == pytest.approx(np.zeros(5), abs=1e-3 * np.abs(value(np.zeros(5))) / 30)
        best = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-6})
        assert value(w) == pytest.approx(best.fun, rel=1e-7)
        assert w == pytest.approx(best.x, abs=1e-3 * (1 + np.abs(best.x).max()))
        rng = np.random.default_rng(1)
        for size in (1e-2, 0.1, 1.0):  # nothing near is lower
            assert value(w + size * rng.normal(size=5)) > value(w)

    @pytest.mark.parametrize("name", CONVEX)
    def test_the_history(self, queries, name):
        ranker = CONVEX[name][0](alpha=1e-3).fit(queries, valid=queries)
        rows = ranker.history_
        rounds = [row["round"] for row in rows]
        assert rounds[:3] == [1, 2, 4]
        assert all(step & (step - 1) == 0 for step in rounds[:-1])
        assert all(after["objective"] < before["objective"] for before, after in pairwise(rows))
        assert set(rows[0]) == {"round", "loss", "objective", "train", "valid"}
        assert rows[-1]["valid"] == pytest.approx(ranker.score(queries), abs=1e-12)

    @pytest.mark.parametrize("name", CONVEX)
    def test_a_path_equals_fits_one_by_one(self, queries, name):
        make, values = CONVEX[name][0], (1.0, 1e-3, 100.0, 0.1)  # any order
        path = make().fit_path(values, queries)
        assert [ranker.alpha for ranker in path] == list(values)
        for ranker in path:
            alone = make(alpha=ranker.alpha).fit(queries)
            assert ranker.history_[-1]["objective"] == pytest.approx(alone.history_[-1]["objective"], rel=1e-5)
            scores = alone.predict(queries)
            assert ranker.predict(queries) == pytest.approx(scores, abs=0.02 * np.abs(scores).max())

    @may_learn_nothing
    def test_the_most_steps(self, queries):
        with pytest.warns(
            ConvergenceWarning, match="ListNet did not converge: stopped at max_iter=0 .* raise max_iter"
        ):
            assert len(rw.ListNet(max_iter=0).fit(queries).history_) == 1
        with pytest.warns(ConvergenceWarning, match=r"max_iter=3 where the objective is about \S+ of its value above"):
            assert rw.ListNet(max_iter=3, tol=0.0).fit(queries).history_[-1]["round"] == 3

    @pytest.mark.parametrize("name", CONVEX)
    def test_a_tolerance_that_rounding_does_not_allow(self, queries, name):
        with pytest.warns(ConvergenceWarning, match="no step lowers the objective any more.*rounding is the limit"):
            found = CONVEX[name][0](tol=0.0).fit(queries)
        assert found.history_[-1]["round"] < 200

    def test_more_strength_means_less_weight(self, queries):
        for make, _ in CONVEX.values():
            fits = [make(alpha=alpha).fit(queries) for alpha in (1e-3, 1.0, 1e3, 1e6)]
            sizes = [np.linalg.norm(ranker.coef_ * standardised(queries)[1]) for ranker in fits]
            assert sizes == sorted(sizes, reverse=True)
            assert sizes[-1] < 1e-2


class TestRankCosine:
    @pytest.mark.parametrize("target", ["gains", "ndcg"])
    def test_it_descends_from_the_regression(self, queries, target):
        ranker = rw.RankCosine(target=target, alpha=1e-3, tol=1e-12).fit(queries)
        X, deviation = standardised(queries)
        w, w0 = (each.coef_ * deviation for each in (ranker, rw.Regression(alpha=1.0).fit(queries)))
        bound = Cosine(target).prepare(queries)

        def value(w):
            return bound(X @ w).loss + 1e-3 * (w - w0) @ (w - w0)

        with pytest.warns(ConvergenceWarning, match="max_iter=0"):
            start = rw.RankCosine(target=target, alpha=1e-3, max_iter=0).fit(queries)
        assert start.history_[0]["objective"] == pytest.approx(value(w0), rel=1e-6)
        assert ranker.history_[-1]["objective"] == pytest.approx(value(w), rel=1e-6)
        slopes = [(value(w + m) - value(w - m)) / 2e-5 for m in 1e-5 * np.eye(5)]
        assert slopes == pytest.approx(np.zeros(5), abs=1e-4)
        assert value(w) < value(w0)

    def test_strength_holds_it_to_the_regression(self, queries):
        held, regression = rw.RankCosine(alpha=1e12).fit(queries), rw.Regression(alpha=1.0).fit(queries)
        assert held.coef_ == pytest.approx(regression.coef_, rel=1e-6)


ONCE = {"first_sigma": 1.0, "last_sigma": 1.0}


def test_smoothrank_says_that_its_last_descent_was_cut_short(queries):
    with pytest.warns(
        ConvergenceWarning, match=r"SmoothRank did not converge: stopped at max_iter=1 .* raise max_iter"
    ):
        rw.SmoothRank(max_iter=1, tol=1e-9, alpha=1e-3).fit(queries)


class TestSmoothRank:
    def test_so_much_smoothing_leaves_the_start(self, queries):
        """Section 5.3."""
        regression = rw.Regression(alpha=1.0).fit(queries).coef_
        for optimiser in ("cg", "lbfgs"):
            smooth = rw.SmoothRank(first_sigma=1e12, last_sigma=1e12, optimiser=optimiser).fit(queries)
            assert smooth.coef_ == pytest.approx(regression, rel=1e-5)
        start = np.arange(5.0)
        smooth = rw.SmoothRank(first_sigma=1e12, last_sigma=1e12, start=start).fit(queries)
        assert smooth.coef_ == pytest.approx(start, rel=1e-5, abs=1e-6)
        assert len(smooth.history_) == 1

    def test_so_much_strength_leaves_the_start(self, queries):
        regression = rw.Regression(alpha=1.0).fit(queries).coef_
        assert rw.SmoothRank(alpha=1e12).fit(queries).coef_ == pytest.approx(regression, rel=1e-6)
        start = [3.0, -1.0, 2.0, 0.0, 0.5]
        assert rw.SmoothRank(alpha=1e12, start=start).fit(queries).coef_ == pytest.approx(start, rel=1e-6, abs=1e-9)
        assert rw.SmoothRank(alpha=1e12, prior="zero").fit(queries).coef_ == pytest.approx(np.zeros(5), abs=1e-9)

    @pytest.mark.parametrize(("form", "power"), [("positions", 1.0), ("ranks", 0.5)])
    def test_lemma_1(self, queries, form, power):
        """Without w0 alpha and sigma are one parameter; sigma is of scores, not their squares, for soft ranks."""
        regression, c = rw.Regression().fit(queries).coef_, 16.0

        def fitted(alpha, sigma, start):
            options = {"first_sigma": sigma, "last_sigma": sigma, "tol": 1e-10, "max_iter": 500}
            return (
                rw.SmoothRank(approximation=form, prior="zero", alpha=alpha, start=start, **options).fit(queries).coef_
            )

        plain = fitted(0.05, 2.0, regression)
        other = fitted(0.05 * c, 2.0 / c**power, regression / np.sqrt(c))
        assert other * np.sqrt(c) == pytest.approx(plain, abs=1e-3 * np.abs(plain).max())
        assert np.abs(plain).max() > 0.01

    @may_not_converge
    def test_the_history_is_the_annealing(self, queries):
        ranker = rw.SmoothRank(alpha=0.1, first_sigma=10.0, last_sigma=0.6, max_iter=5).fit(queries, valid=queries)
        rows = ranker.history_
        assert [row["sigma"] for row in rows] == [10.0, 5.0, 2.5, 1.25, 0.625]
        assert [row["round"] for row in rows] == [0, 1, 2, 3, 4]
        assert all(0 <= row["steps"] <= 5 for row in rows)
        assert set(rows[0]) == {"round", "sigma", "loss", "objective", "steps", "train", "valid"}
        assert rows[-1]["valid"] == pytest.approx(ranker.score(queries), abs=1e-12)

    @pytest.mark.parametrize(
        ("measure", "form", "k", "trained"),
        [
            ("ndcg@10", "positions", 50, "ndcg@50"),
            ("ndcg@10", "positions", None, "ndcg@10"),
            ("ndcg@3(dialect=letor3)", "positions", 5, "ndcg@5"),  # with the discount that tells ranks apart
            ("ndcg@3", "ranks", 50, "ndcg"),  # soft ranks count the whole list
            ("map", "ranks", 50, "map"),
            ("map", "positions", 50, "ap@50"),
            ("err", "positions", 50, "err@50"),
            ("p@3", "positions", 50, "p@3"),  # of all ranks alike more are another measure
            ("recall@3", "ranks", 50, "recall@3"),
        ],
    )
    def test_what_is_minimised(self, queries, measure, form, k, trained):
        if "letor3" in measure:
            queries = rw.Queries(queries.X, np.minimum(queries.y, 2), queries.indptr, queries.qid)
        ranker = rw.SmoothRank(measure=measure, approximation=form, k=k, alpha=0.1, tol=1e-9, max_iter=500, **ONCE).fit(
            queries
        )
        X, deviation = standardised(queries)
        w, w0 = (each.coef_ * deviation for each in (ranker, rw.Regression(alpha=1.0).fit(queries)))
        bound = APPROXIMATIONS[form](rw.parse_measure(trained), 1.0).prepare(queries)

        def value(w):
            return bound(X @ w).loss + 0.1 * (w - w0) @ (w - w0)

        assert ranker.history_[-1]["objective"] == pytest.approx(value(w), rel=1e-6)
        assert value(w) < value(w0)
        found = bound(X @ w)
        slopes = X.T @ found.gradient + 0.2 * (w - w0)
        assert slopes == pytest.approx(np.zeros(5), abs=1e-2)

    @may_not_converge
    @pytest.mark.parametrize("measure", ["ndcg@5", "map", "err", "p@3(rel=2)"])
    def test_the_measure_rises_along_the_annealing(self, easy, measure):
        rows = rw.SmoothRank(measure=measure, alpha=1e-3, max_iter=20).fit(easy).history_
        start = rw.Regression(measure=measure).fit(easy).history_[-1]["train"]
        assert rows[-1]["train"] > start + 0.02
        assert rows[-1]["train"] >= rows[0]["train"] - 1e-9
        assert rows[-1]["loss"] < rows[0]["loss"]

    @may_be_ineffective
    @may_not_converge
    def test_stopping_by_validation_keeps_the_best_stage(self, queries):
        train, valid = queries.take(range(15)), queries.take(range(15, 30))
        options = {"alpha": 1e-2, "max_iter": 10}
        to_end = rw.SmoothRank(**options).fit(train, valid=valid)
        values = [row["valid"] for row in to_end.history_]
        best = values.index(max(values))
        assert best < len(values) - 1  # or else this shows nothing
        stopped = rw.SmoothRank(keep="best", **options).fit(train, valid=valid)
        assert stopped.history_ == [*to_end.history_[:best], to_end.history_[best] | {"kept": True}]
        assert stopped.score(valid) == pytest.approx(max(values), abs=1e-12)
        without = rw.SmoothRank(keep="best", **options).fit(train)
        assert len(without.history_) == len(values)

    @may_be_ineffective
    @may_not_converge
    def test_k_and_form_have_their_effect(self, queries):
        def coef(**options):
            return rw.SmoothRank(alpha=0.1, max_iter=5, **ONCE, **options).fit(queries).coef_.tolist()

        assert coef(k=1) != coef(k=50) != coef(k=3)
        assert coef(k=None) == coef(k=10)  # the measure's own
        assert coef(k=50) == coef(k=int(queries.sizes.max()))  # no list is longer
        assert coef() == coef(approximation="positions") != coef(approximation="ranks")
        assert (
            coef(measure="map")
            == coef(measure="map", approximation="ranks")
            != coef(measure="map", approximation="positions")
        )
        assert coef(measure="map", k=1) == coef(measure="map", k=50)  # soft ranks have no positions
        assert coef(optimiser="cg") != coef(optimiser="lbfgs")

    @may_not_converge
    def test_a_path_is_in_the_order_of_its_values(self, queries):
        values = (1.0, 1e6, 1e-2)
        path = rw.SmoothRank(max_iter=5).fit_path(values, queries)
        assert [ranker.alpha for ranker in path] == list(values)
        start = rw.Regression(alpha=1.0).fit(queries).coef_ * standardised(queries)[1]
        away = [np.linalg.norm(ranker.coef_ * standardised(queries)[1] - start) for ranker in path]
        assert away[1] < away[0] < away[2]
        [alone] = rw.SmoothRank(max_iter=5).fit_path([1e6], queries)  # the largest comes first
        assert path[1].coef_.tolist() == alone.coef_.tolist()

    @may_not_converge
    def test_a_path_has_the_same_bits_on_every_backend(self, queries):
        values, options = (1e-3, 1.0, 10.0, 1e-6, 100.0, 0.1), {"max_iter": 5, "measure": "map"}
        paths = [
            rw.SmoothRank(backend=backend, **options).fit_path(values, queries, valid=queries)
            for backend in (rw.Serial(), rw.Threads(2), rw.Threads(4))
        ]
        for path in paths[1:]:
            for found, expected in zip(path, paths[0], strict=True):
                assert found.coef_.tobytes() == expected.coef_.tobytes()
                assert found.history_ == expected.history_

    def test_the_start_is_chosen_by_validation(self, queries):
        train, valid = queries.take(range(10)), queries.take(range(10, 30))
        held = rw.SmoothRank(alpha=1e12).fit(train, valid=valid)
        ridges = rw.Regression().fit_path(rw.Regression.default_grid["alpha"], train)
        values = [ranker.score(valid) for ranker in ridges]
        assert held.coef_ == pytest.approx(ridges[int(np.argmax(values))].coef_, rel=1e-5)

    def test_grades_above_4_are_brought_down_in_the_start(self, queries):
        """So that sigma means the same on all data: 2^l would be too high."""
        high = rw.Queries(queries.X, queries.y * 12, queries.indptr, queries.qid)
        low = rw.Queries(queries.X, queries.y * 2, queries.indptr, queries.qid)
        held = rw.SmoothRank(measure="ndcg(gain=linear)", alpha=1e12).fit(high)
        assert held.coef_ == pytest.approx(rw.Regression(alpha=1.0).fit(low).coef_, rel=1e-6)

    @may_not_converge
    def test_weights_of_constant_features_stay_zero(self, queries):
        more = rw.Queries(
            np.column_stack([queries.X, np.full(queries.n_docs, 7.0)]), queries.y, queries.indptr, queries.qid
        )
        assert rw.SmoothRank(max_iter=3).fit(more).coef_[-1] == 0.0
        assert rw.SmoothRank(max_iter=3, start=np.ones(6)).fit(more).coef_[-1] == 0.0

    @pytest.mark.parametrize(
        ("name", "value"),
        [
            ("alpha", -1), ("alpha", "x"), ("k", 0), ("k", 2.5), ("approximation", "rank"), ("start", "regresion"), ("prior", "none"),
            ("first_sigma", "x"), ("first_sigma", np.inf), ("keep", "end"), ("optimiser", "adam"), ("tol", -1), ("max_iter", 0), ("scale", "max"),
        ],
    )  # fmt: skip
    def test_bad_parameters(self, queries, name, value):
        with pytest.raises(rw.InputError, match=rf"{name}={value!r}; expected"):
            rw.SmoothRank(**{name: value}).fit(queries)

    def test_bad_parameters_of_several_values(self, queries):
        for sigmas in ((0, 0), (64, 0), (1, 2), (64, 1e-320)):
            with pytest.raises(rw.InputError, match=r"sigma.*; expected"):
                rw.SmoothRank(first_sigma=sigmas[0], last_sigma=sigmas[1]).fit(queries)
        for start in ([1, 2], 3.0, None, np.ones((5, 1)), [1, 2, 3, 4, np.nan], ["a"] * 5, [[1], [2, 3]]):
            with pytest.raises(rw.InputError, match="start"):
                rw.SmoothRank(start=start).fit(queries)
        with pytest.raises(rw.InputError, match="err has no approximation by soft ranks"):
            rw.SmoothRank(measure="err", approximation="ranks").fit(queries)
        with pytest.raises(rw.InputError, match="is a function of ranked grades"):
            rw.SmoothRank(measure=rw.make_measure(lambda grades: 0.5, name="own")).fit(queries)


def first_is_top(grades):
    """A user's measure: how near the first two grades are to the highest."""
    return float(grades[:2].sum() / max(2 * grades.max(), 1e-9))


class TestLambdaRank:
    @pytest.mark.parametrize("measure", ["err", "map", "ndcg@5", rw.make_measure(first_is_top, name="first_two")])
    def test_it_raises_the_measure_over_its_start(self, easy, measure):
        ranker = rw.LambdaRank(measure=measure, alpha=1e-3, max_iter=5).fit(easy.take(range(20)))
        start = rw.Regression(measure=measure).fit(easy.take(range(20))).history_[-1]["train"]
        assert max(row["train"] for row in ranker.history_) > start + 0.01
        assert ranker.score(easy.take(range(20))) == pytest.approx(ranker.history_[-1]["train"], abs=1e-12)

    def test_a_round_minimises_with_the_weights_of_the_ranking_before(self, queries):
        """The first with those of the regression."""
        X, deviation = standardised(queries)
        w0 = rw.Regression(alpha=1.0).fit(queries).coef_ * deviation
        ranker = rw.LambdaRank(measure="ndcg@5", alpha=0.5, max_iter=1, tol=1e-12, max_inner_iter=500).fit(queries)
        assert len(ranker.history_) == 1
        w, frozen = ranker.coef_ * deviation, Lambdas(rw.NDCG(5)).prepare(queries).fix_ranking(X @ w0)
        assert ranker.history_[0]["objective"] == pytest.approx(frozen(X @ w).loss + 0.5 * w @ w, rel=1e-6)
        best = minimize(lambda w: frozen(X @ w).loss + 0.5 * w @ w, np.zeros(5), method="BFGS")
        assert w == pytest.approx(best.x, abs=1e-4)

    def test_the_round_that_is_best_on_validation_queries(self, queries):
        train, valid = queries.take(range(10)), queries.take(range(10, 30))
        ranker = rw.LambdaRank(alpha=1e-3, max_iter=6).fit(train, valid=valid)
        assert ranker.score(valid) == pytest.approx(max(row["valid"] for row in ranker.history_), abs=1e-12)
        assert 1 <= len(ranker.history_) <= 6

    def test_a_path_equals_fits_one_by_one(self, queries):
        for ranker in rw.LambdaRank(max_iter=3).fit_path([1.0, 100.0, 0.1], queries):
            alone = rw.LambdaRank(max_iter=3, alpha=ranker.alpha).fit(queries)
            assert ranker.coef_.tolist() == alone.coef_.tolist()

    def test_letors_discount_is_not_trained_on(self, queries):
        binary = rw.Queries(queries.X, np.minimum(queries.y, 2), queries.indptr, queries.qid)
        options = {"alpha": 0.1, "max_iter": 2}
        found = [
            rw.LambdaRank(measure=measure, **options).fit(binary).history_[0]["loss"]
            for measure in ("ndcg(dialect=letor3)", "ndcg")
        ]
        assert found[0] == found[1]


class TestLinearRanker:
    @pytest.mark.parametrize(
        ("objective", "twin"),
        [
            ("top_one", lambda: rw.ListNet(tol=1e-10)),
            ("likelihood", lambda: rw.ListMLE(tol=1e-10)),
            ("logistic", lambda: rw.RankNet(pair_weighting="pair", tol=1e-10)),
        ],
    )
    def test_by_name_it_is_the_ranker_of_that_objective(self, queries, objective, twin):
        found, expected = rw.LinearRanker(objective=objective, tol=1e-10).fit(queries), twin().fit(queries)
        assert found.history_[-1]["objective"] == pytest.approx(expected.history_[-1]["objective"], rel=1e-8)
        scores = expected.predict(queries)
        assert found.predict(queries) == pytest.approx(scores, abs=1e-3 * np.abs(scores).max())

    def test_a_users_function_equals_its_built_in_twin(self, queries):
        def own(scores, part):
            loss, gradient = 0.0, np.empty(len(scores))
            for q, rows in enumerate(part):
                p, s, w = np.exp(part.y[rows] - logsumexp(part.y[rows])), scores[rows], part.query_weight[q]
                loss += w * (logsumexp(s) - p @ s)
                gradient[rows] = w * (np.exp(s - logsumexp(s)) - p)
            return loss, gradient

        found = rw.LinearRanker(objective=own, alpha=0.1, tol=1e-10).fit(queries)
        expected = rw.ListNet(alpha=0.1, tol=1e-10).fit(queries)
        scores = expected.predict(queries)
        assert found.predict(queries) == pytest.approx(scores, abs=1e-3 * np.abs(scores).max())
        assert found.history_[-1]["loss"] == pytest.approx(expected.history_[-1]["loss"], rel=1e-6)

    def test_a_pointwise_function_is_a_ridge_regression(self, queries):
        """Scores have the mean 0: the intercept is not learned, and the grades' mean is not reached."""

        def squares(scores, part):
            rest = scores - part.y
            return (rest**2).sum(), 2 * rest

        X, deviation = standardised(queries)
        expected = np.linalg.solve(X.T @ X + 3.0 * np.eye(5), X.T @ queries.y)
        found = rw.LinearRanker(objective=squares, alpha=3.0, tol=1e-12).fit(queries)
        assert found.coef_ * deviation == pytest.approx(expected, rel=1e-3, abs=1e-5)

    @may_be_ineffective
    @pytest.mark.parametrize("objective", OBJECTIVES)
    @may_not_converge  # the hinge has kinks
    def test_every_name_learns_an_easy_ranking(self, easy, objective):
        ranker = rw.LinearRanker(objective=objective, measure="ndcg@5", alpha=0.01, tol=1e-6).fit(easy)
        regression = rw.Regression(measure="ndcg@5").fit(easy)
        assert ranker.score(easy) > regression.score(easy) - 0.02
        if objective != "lambdas":  # whose rounds have losses of different rankings
            assert ranker.history_[-1]["objective"] <= ranker.history_[0]["objective"]

    def test_an_objective_itself(self, easy):
        for objective in (SigmoidRanks(rw.NDCG(5), 0.5), SigmoidRanks("ndcg@5", 0.5), Lambdas(rw.AP()), Lambdas("map")):
            ranker = rw.LinearRanker(objective=objective, measure="ndcg@5", alpha=1e-3, max_iter=50).fit(easy)
            assert ranker.score(easy) > rw.Regression(measure="ndcg@5").fit(easy).score(easy)

    def test_features_of_a_size_that_overflows(self, queries):
        """At the first trial of a line the loss is about e^700, or not finite: it is survived."""
        values = []
        for factor in (1.0, 100.0, 300.0, 1e4):
            wild = queries.with_X(queries.X * np.float32(factor))
            ranker = rw.LinearRanker(objective="exponential", scale=None, alpha=1e-6, max_iter=1000, tol=1e-8)
            values.append(ranker.fit(wild).history_[-1]["objective"])
        assert values == pytest.approx([values[0]] * 4, rel=1e-2)

    def test_a_function_is_saved_by_its_name(self, queries, tmp_path):
        def squares(scores, part):
            return ((scores - part.y) ** 2).sum(), 2 * (scores - part.y)

        ranker = rw.LinearRanker(objective=squares).fit(queries)
        rw.save(ranker, tmp_path / "model.json")
        model = rw.load(tmp_path / "model.json")
        assert model.params["objective"].endswith("squares")
        assert model.predict(queries).tolist() == ranker.predict(queries).tolist()

    def test_what_is_not_an_objective(self, queries):
        with pytest.raises(rw.InputError, match="objective='logistik'"):
            rw.LinearRanker(objective="logistik").fit(queries)
        with pytest.raises(rw.InputError, match="expected a pair"):
            rw.LinearRanker(objective=lambda scores, part: 1.0).fit(queries)


ALL = {
    "SmoothRank": lambda **options: rw.SmoothRank(max_iter=10, first_sigma=8.0, last_sigma=0.5, **options),
    "ListNet": rw.ListNet,
    "ListMLE": rw.ListMLE,
    "RankNet": rw.RankNet,
    "RankCosine": rw.RankCosine,
    "LambdaRank": lambda **options: rw.LambdaRank(max_iter=3, **options),
    "LinearRanker": rw.LinearRanker,
}
every_ranker = pytest.mark.parametrize("name", ALL)


class TestAll:
    @every_ranker
    def test_columns_of_wild_scales(self, queries, name):
        """Standardised, they are the same but for the rounding of float32."""
        factors = 10.0 ** np.random.default_rng(2).uniform(-6, 6, 5)
        wild = queries.with_X((queries.X * factors).astype(np.float32))
        plain, scaled = (ALL[name](alpha=1.0).fit(each).predict(each) for each in (queries, wild))
        assert np.corrcoef(plain, scaled)[0, 1] > 0.9999
        assert scaled == pytest.approx(plain, abs=0.02 * np.abs(plain).max())

    @every_ranker
    def test_high_grades(self, queries, name):
        high = rw.Queries(queries.X, queries.y * 12, queries.indptr, queries.qid)
        assert high.y.max() == 24
        ranker = ALL[name](measure="ndcg@10(gain=linear)").fit(high)
        assert np.isfinite(ranker.coef_).all()
        assert ranker.score(high) > rw.SingleFeature(measure="ndcg@10(gain=linear)").fit(high).score(high) - 0.1

    @every_ranker
    def test_the_same_bits_every_time_and_on_every_backend(self, easy, name):
        fits = [ALL[name](backend=backend).fit(easy) for backend in (rw.Serial(), rw.Threads(2), rw.Serial())]
        for other in fits[1:]:
            assert other.coef_.tobytes() == fits[0].coef_.tobytes()
            assert other.history_ == fits[0].history_

    @pytest.mark.parametrize(
        ("name", "parameter", "value"),
        [
            ("ListNet", "alpha", -1), ("ListNet", "alpha", np.nan), ("ListMLE", "tol", None), ("ListNet", "max_iter", -1), ("RankNet", "pair_weighting", "x"),
            ("RankCosine", "target", "x"), ("LambdaRank", "alpha", "x"), ("LinearRanker", "max_iter", 1.5), ("ListMLE", "scale", "max"),
        ],
    )  # fmt: skip
    def test_bad_parameters(self, queries, name, parameter, value):
        with pytest.raises(rw.InputError, match=rf"{parameter}={value!r}; expected"):
            ALL[name](**{parameter: value}).fit(queries)

    def test_bad_rounds(self, queries):
        for value in (0, 1.5):
            with pytest.raises(rw.InputError, match=f"max_iter={value}; expected a whole number"):
                rw.LambdaRank(max_iter=value).fit(queries)
