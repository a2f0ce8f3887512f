"""Losses of lists, of weighted pairs, and objectives by name: against their definitions, and by finite differences."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.graded import documents
from tests.reference import listwise, measures
from tests.scored import problems

import rankwright as rw
from rankwright.objectives.listwise_objectives import Cosine, Likelihood, TopOne
from rankwright.objectives.objective_names import OBJECTIVES, as_objective
from rankwright.objectives.pairwise_objectives import Fidelity, Logistic
from rankwright.objectives.smooth_objectives import SoftPositions
from rankwright.objectives.swap_lambdas import Lambdas, PreparedLambdas, PreparedSwapLambdas

LISTWISE = {
    "top one": (TopOne(), lambda q, s, y: listwise.cross_entropy(s, y)),
    "likelihood": (Likelihood(), lambda q, s, y: listwise.list_mle(s, y)),
    "cosine": (Cosine(), lambda q, s, y: listwise.cosine(s, y)),
    "cosine for ndcg": (Cosine("ndcg"), lambda q, s, y: listwise.cosine(s, y, "ndcg")),
}
of_lists = pytest.mark.parametrize("name", LISTWISE)
MEASURES = ("ndcg@3", "ndcg", "dcg", "p@2", "recall@2", "rbp", "wta", "map", "ap@2", "err", "err@3", "mrr", "rr@2")
DIALECTS = ("ndcg@3(dialect=letor3)", "ndcg@3(empty=skip)", "map(dialect=trec_eval)")


def mixed(rng, sizes=(6, 1, 3, 8, 5), top=3):
    """Queries of several kinds with weights: graded, one document, none and all relevant."""
    y = rng.integers(0, top, sum(sizes))
    ends = np.cumsum(sizes)
    y[ends[1] : ends[2]], y[ends[3] : ends[4]] = 0, 2
    docid = [f"d{i}" for i in range(len(y))]
    return rw.Queries.from_arrays(np.zeros((len(y), 1)), y, group=sizes, weight=[1.0, 2.0, 0.5, 0.3, 1.5], docid=docid)


SCORES = {
    "random": lambda rng, n: rng.normal(size=n),
    "tied": lambda rng, n: rng.integers(-1, 2, n).astype(float),
    "equal": lambda rng, n: np.full(n, 0.1),
    "wide": lambda rng, n: 40 * rng.normal(size=n),
}


def agree(found, loss, slopes):
    assert found.loss == pytest.approx(loss, rel=1e-11, abs=1e-11)
    assert found.gradient == pytest.approx(slopes, rel=1e-9, abs=1e-10 * (1 + np.abs(slopes).max()))


def bends(bound, scores, step=1e-5):
    """The diagonal of the second derivative by differences of gradients."""
    moves = step * np.eye(len(scores))
    return np.array([(bound(scores + m).gradient - bound(scores - m).gradient) @ m for m in moves]) / (2 * step**2)


class TestLists:
    @of_lists
    @pytest.mark.parametrize("kind", SCORES)
    def test_values_and_gradients_equal_the_definition(self, name, kind):
        objective, of_query = LISTWISE[name]
        for seed in range(3):
            rng = np.random.default_rng(seed)
            queries = mixed(rng)
            scores = SCORES[kind](rng, queries.n_docs)
            agree(objective.prepare(queries)(scores), *listwise.loss(of_query, queries, scores))

    @of_lists
    @given(problem=problems(most=5))
    def test_on_small_lists_of_any_kind(self, name, problem):
        objective, of_query = LISTWISE[name]
        queries, scores = problem
        agree(objective.prepare(queries)(scores), *listwise.loss(of_query, queries, scores))

    @of_lists
    def test_derivatives_by_finite_differences(self, name):
        objective, rng = LISTWISE[name][0], np.random.default_rng(1)
        queries = mixed(rng)
        bound, scores = objective.prepare(queries), rng.normal(size=queries.n_docs)
        found = bound(scores)
        slopes = approx_fprime(scores, lambda s: bound(s).loss, 1e-7)
        assert found.gradient == pytest.approx(slopes, abs=3e-6)
        if found.curvature is not None:
            assert found.curvature == pytest.approx(bends(bound, scores), abs=1e-8)
        assert (found.curvature is None) == name.startswith("cosine")

    @of_lists
    def test_moving_all_scores_of_a_query_changes_nothing(self, name):
        objective, rng = LISTWISE[name][0], np.random.default_rng(2)
        queries = mixed(rng)
        bound, scores = objective.prepare(queries), rng.normal(size=queries.n_docs)
        found = bound(scores)
        assert np.add.reduceat(found.gradient, queries.indptr[:-1]) == pytest.approx(np.zeros(5), abs=1e-13)
        moved = scores + np.repeat([3.0, -50.0, 0.0, 7.0, 1.0], queries.sizes)
        assert bound(moved).loss == pytest.approx(found.loss, rel=1e-12)

    @of_lists
    def test_huge_scores_are_safe(self, name):
        objective, rng = LISTWISE[name][0], np.random.default_rng(3)
        queries = mixed(rng)
        bound, scores = objective.prepare(queries), rng.normal(size=queries.n_docs)
        for factor in (1e4, -1e4, 1e100):
            found = bound(factor * scores)
            assert np.isfinite(found.loss)
            assert np.isfinite(found.gradient).all()
            assert found.curvature is None or np.isfinite(found.curvature).all()
        assert bound(1e4 * scores).loss == pytest.approx(
            listwise.loss(LISTWISE[name][1], queries, 1e4 * scores)[0], rel=1e-12
        )

    @of_lists
    def test_one_document_and_one_grade(self, name):
        """One document is always first; where all grades are equal, equal scores are right, and the cosine has no say."""
        objective = LISTWISE[name][0]
        alone = objective.prepare(rw.Queries.from_arrays(np.zeros((1, 1)), [2], [1]))(np.array([3.0]))
        assert alone.loss == pytest.approx(0.0, abs=1e-12)
        assert alone.gradient == pytest.approx([0.0], abs=1e-12)
        for grade in (0, 1, 0.1):
            bound = objective.prepare(rw.Queries.from_arrays(np.zeros((3, 1)), [grade] * 3, [1] * 3))
            assert bound(np.zeros(3)).gradient == pytest.approx(np.zeros(3), abs=1e-12)
            if name.startswith("cosine"):
                assert bound(np.array([1.0, 2.0, 4.0])).loss == 0.0

    def test_the_scores_that_are_best_are_the_grades(self):
        """Of ListNet; and what is left is the entropy of the grades' probabilities."""
        queries = mixed(np.random.default_rng(4))
        bound, rng = TopOne().prepare(queries), np.random.default_rng(5)
        best = bound(queries.y)
        assert best.gradient == pytest.approx(np.zeros(queries.n_docs), abs=1e-15)
        entropies = [-sum(p * np.log(p) for p in listwise.softmax(queries.y[rows])) for rows in queries]
        assert best.loss == pytest.approx(queries.query_weight @ entropies, rel=1e-12)
        for _ in range(5):
            assert bound(queries.y + rng.normal(size=queries.n_docs)).loss > best.loss

    def test_the_likelihood_is_a_probability(self):
        """Without ties of grades the probabilities of all orders add up to 1."""
        s = np.array([0.3, -1.0, 2.0, 0.1])
        total = 0.0
        for order in [(a, b, c, d) for a in range(4) for b in range(4) for c in range(4) for d in range(4)]:
            if len(set(order)) == 4:
                queries = rw.Queries.from_arrays(np.zeros((4, 1)), order, [1] * 4)
                total += np.exp(-Likelihood().prepare(queries)(s).loss)
        assert total == pytest.approx(1.0, rel=1e-12)

    @given(st.integers(0, 2**32))
    @settings(max_examples=20)
    def test_the_order_of_the_rows_does_not_matter(self, seed):
        rng = np.random.default_rng(seed)
        y, s, rows = rng.integers(0, 3, 7), rng.normal(size=7), rng.permutation(7)
        for objective, _ in LISTWISE.values():
            plain, shuffled = (
                objective.prepare(rw.Queries.from_arrays(np.zeros((7, 1)), y[at], [1] * 7))(s[at])
                for at in (np.arange(7), rows)
            )
            assert shuffled.loss == pytest.approx(plain.loss, rel=1e-12, abs=1e-13)
            assert shuffled.gradient == pytest.approx(plain.gradient[rows], rel=1e-9, abs=1e-12)

    def test_what_the_cosine_sees(self):
        """The direction of centred scores alone: 0 for the gains themselves, 1 for their opposite."""
        queries = mixed(np.random.default_rng(6))
        bound, gains = Cosine().prepare(queries), 2.0**queries.y - 1
        varied = [rows for rows in queries if len(set(queries.y[rows].tolist())) > 1]
        weight = sum(w for w, rows in zip(queries.query_weight, queries, strict=True) if rows in varied)
        assert bound(5 * gains + 3).loss == pytest.approx(0.0, abs=1e-12)
        assert bound(-gains).loss == pytest.approx(weight, rel=1e-12)
        s = np.random.default_rng(7).normal(size=queries.n_docs)
        assert bound(1e-3 * s + 1).loss == pytest.approx(bound(s).loss, rel=1e-9)
        assert 0.0 <= bound(s).loss <= weight
        assert bound(s).gradient @ s == pytest.approx(0.0, abs=1e-12)  # a longer vector is no better

    def test_the_form_for_ndcg_weighs_queries_by_what_they_are_worth(self):
        queries = mixed(np.random.default_rng(8))
        s = np.random.default_rng(9).normal(size=queries.n_docs)
        plain, consistent = (Cosine(target).prepare(queries) for target in ("gains", "ndcg"))
        for rows in queries:
            y = queries.y[rows]
            if len(set(y.tolist())) == 1:
                assert consistent(s).gradient[rows].tolist() == [0.0] * len(y)
                continue
            worth = listwise.length(listwise.centred(2.0**y - 1)) / measures.dcg(sorted(y.tolist(), reverse=True))
            assert consistent(s).gradient[rows] == pytest.approx(worth * plain(s).gradient[rows], rel=1e-9)

    def test_a_target_that_there_is_not(self):
        with pytest.raises(rw.InputError, match="target='gain'; expected 'gains' or 'ndcg'"):
            Cosine("gain").prepare(mixed(np.random.default_rng(0)))


def of_measure(name, queries, scores):
    """The twin of the lambdas of a measure at the ranking by these scores."""
    bound = rw.parse_measure(name).for_training().prepare(queries)
    deltas = [np.nan_to_num(bound.compute_swap_deltas(scores, q)) for q in range(len(queries))]
    return lambda q, s, y: listwise.lambdas(s, y, deltas[q])


class TestLambdas:
    @pytest.mark.parametrize("name", [*MEASURES, *DIALECTS])
    @pytest.mark.parametrize("kind", SCORES)
    def test_the_sum_over_pairs(self, name, kind):
        rng = np.random.default_rng(10)
        queries = mixed(rng)
        scores, elsewhere = SCORES[kind](rng, queries.n_docs), rng.normal(size=queries.n_docs)
        bound, of_query = Lambdas(rw.parse_measure(name)).prepare(queries), of_measure(name, queries, scores)
        for at in (scores, elsewhere):  # the changes are kept, wherever it is evaluated
            agree(bound.fix_ranking(scores)(at), *listwise.loss(of_query, queries, at))
        same, own = bound(scores), bound.fix_ranking(scores)(scores)
        assert same.loss == own.loss
        assert same.gradient.tolist() == own.gradient.tolist()

    @pytest.mark.parametrize("name", MEASURES)
    @given(problem=problems(most=5))
    @settings(max_examples=15)
    def test_on_small_lists_of_any_kind(self, name, problem):
        queries, scores = problem
        assume("err" not in name or queries.y.max() <= 4)
        of_query = of_measure(name, queries, scores)
        agree(Lambdas(rw.parse_measure(name)).prepare(queries)(scores), *listwise.loss(of_query, queries, scores))

    @pytest.mark.parametrize("name", MEASURES)
    def test_derivatives_by_finite_differences(self, name):
        rng = np.random.default_rng(11)
        queries = mixed(rng)
        scores, ranked = rng.normal(size=(2, queries.n_docs))
        frozen = Lambdas(rw.parse_measure(name)).prepare(queries).fix_ranking(ranked)
        found = frozen(scores)
        assert found.gradient == pytest.approx(approx_fprime(scores, lambda s: frozen(s).loss, 1e-7), abs=1e-5)
        assert found.curvature == pytest.approx(bends(frozen, scores), abs=1e-8)
        assert np.add.reduceat(found.gradient, queries.indptr[:-1]) == pytest.approx(np.zeros(5), abs=1e-13)
        assert (found.curvature >= 0).all()

    @pytest.mark.parametrize("name", MEASURES)
    def test_pairs_weigh_what_a_swap_would_change(self, name):
        """At equal scores the mixed second derivative of a pair is -1/4 of its weight."""
        rng = np.random.default_rng(12)
        y, ranked, step = np.array([2, 0, 1, 0, 2, 1]), rng.normal(size=6), 1e-3
        queries = rw.Queries.from_arrays(np.zeros((6, 1)), y, [1] * 6)
        frozen = Lambdas(rw.parse_measure(name)).prepare(queries).fix_ranking(ranked)
        seconds = np.array([frozen(m).gradient - frozen(-m).gradient for m in step * np.eye(6)]) / (2 * step)
        weights = np.where(
            y[:, None] != y, np.abs(rw.parse_measure(name).prepare(queries).compute_swap_deltas(ranked, 0)), 0.0
        )
        off = ~np.eye(6, dtype=bool)
        assert -4 * seconds[off] == pytest.approx(weights[off], abs=1e-6)

    @pytest.mark.parametrize(
        ("name", "function"),
        [
            ("ndcg@3", lambda g: measures.ndcg(g, 3)),
            ("map", measures.average_precision),
            ("err", measures.err),
            ("p@2", lambda g: measures.precision(g, 2)),
        ],
    )
    @pytest.mark.parametrize("kind", SCORES)
    def test_a_users_measure_gives_the_same(self, name, function, kind):
        rng = np.random.default_rng(13)
        queries = mixed(rng)
        scores, elsewhere = SCORES[kind](rng, queries.n_docs), rng.normal(size=queries.n_docs)
        table = Lambdas(rw.parse_measure(name)).prepare(queries)
        own = Lambdas(rw.make_measure(lambda grades: function(grades.tolist()), name="own")).prepare(queries)
        assert (type(table), type(own)) == (PreparedLambdas, PreparedSwapLambdas)
        for ranked, at in ((scores, scores), (scores, elsewhere)):
            found, expected = own.fix_ranking(ranked)(at), table.fix_ranking(ranked)(at)
            agree(found, expected.loss, expected.gradient)
            assert found.curvature == pytest.approx(expected.curvature, rel=1e-9, abs=1e-12)

    def test_huge_scores_are_safe(self):
        rng = np.random.default_rng(14)
        queries = mixed(rng)
        own = rw.make_measure(lambda grades: measures.ndcg(grades.tolist()), name="own")
        for measure in (rw.NDCG(), own):
            bound = Lambdas(measure).prepare(queries)
            for scores in (1e4 * rng.normal(size=queries.n_docs), -1e4 * queries.y):
                found = bound(scores)
                of_query = of_measure("ndcg", queries, scores)
                agree(found, *listwise.loss(of_query, queries, scores))

    def test_a_perfect_ranking_by_far_leaves_nothing(self):
        queries = mixed(np.random.default_rng(15))
        found = Lambdas(rw.NDCG()).prepare(queries)(1e3 * queries.y)
        assert found.loss < 1e-300
        assert np.abs(found.gradient).max() < 1e-300


class TestPairs:
    """Logistic and fidelity, whose pairs are taken several at a time: lists that are longer than one such batch."""

    @pytest.mark.parametrize("objective", [Logistic(), Logistic("query", 0.7), Fidelity(), Fidelity("pair", 0.7)])
    @pytest.mark.parametrize("sizes", [(1,), (33, 2, 70)])
    @pytest.mark.parametrize("kind", ["random", "tied", "far", "wide", "zero"])
    def test_sums_over_pairs(self, objective, sizes, kind):
        made = documents(np.random.default_rng(16), sizes, 3, (kind, kind))
        queries = rw.Queries.from_arrays(np.zeros((len(made.y), 1)), made.y, group=sizes, weight=made.graded.weight)
        found = objective.prepare(queries)(made.scores)
        loss, slopes, curves = 0.0, np.zeros(queries.n_docs), np.zeros(queries.n_docs)
        for q, rows in enumerate(queries):
            i, j = (rows.start + at for at in np.nonzero(queries.y[rows][:, None] > queries.y[rows]))
            w = queries.query_weight[q] / (max(len(i), 1) if objective.pair_weighting == "query" else 1)
            values, first, second = self.derivatives(objective, made.scores[i] - made.scores[j])
            loss += w * values.sum()
            for at, sign in ((i, 1), (j, -1)):
                np.add.at(slopes, at, sign * w * first)
                np.add.at(curves, at, w * second)
        assert found.loss == pytest.approx(loss, rel=1e-11, abs=1e-12)
        assert found.gradient == pytest.approx(slopes, rel=1e-10, abs=1e-12)
        assert found.curvature == pytest.approx(curves, rel=1e-9, abs=1e-11)

    def derivatives(self, objective, o):
        """Value, first and second derivative by o = s_i - s_j."""
        target, p, other = objective.target, np.exp(-np.logaddexp(0, -o)), np.exp(-np.logaddexp(0, o))
        if isinstance(objective, Logistic):
            return np.logaddexp(0, o) - target * o, p - target, p * other
        agree, differ = np.sqrt(target * p), np.sqrt((1 - target) * other)
        first = (differ * p - agree * other) / 2
        # sqrt(P)' = sqrt(P) (1 - P) / 2, sqrt(1 - P)' = -sqrt(1 - P) P / 2, P' = P (1 - P)
        second = (-differ * p * p / 2 + differ * p * other - agree * other * other / 2 + agree * other * p) / 2
        return 1 - agree - differ, first, second


class TestNames:
    def queries(self):
        return mixed(np.random.default_rng(17))

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_every_name_makes_an_objective(self, name):
        queries = self.queries()
        bound = as_objective(name, rw.NDCG(5)).prepare(queries)
        found = bound(np.random.default_rng(0).normal(size=queries.n_docs))
        assert found.gradient.shape == (queries.n_docs,)
        assert np.isfinite(found.loss)

    def test_an_objective_is_itself(self):
        objective = Cosine("ndcg")
        assert as_objective(objective, rw.NDCG()) is objective

    def test_a_function_is_wrapped(self):
        queries, seen = self.queries(), []

        def squares(scores, given):
            seen.append(given)
            return ((scores - given.y) ** 2).sum(), 2 * (scores - given.y)

        found = as_objective(squares, rw.NDCG()).prepare(queries)(np.zeros(queries.n_docs))
        assert found.loss == (queries.y**2).sum()
        assert found.gradient.tolist() == (-2 * queries.y).tolist()
        assert found.curvature is None
        assert seen == [queries]

    def test_lists_and_numbers_of_any_kind_will_do(self):
        queries = self.queries()
        found = as_objective(lambda s, q: (np.float32(2), [1] * len(s)), rw.NDCG()).prepare(queries)(queries.y)
        assert (found.loss, found.gradient.dtype) == (2.0, np.float64)

    @pytest.mark.parametrize(
        ("returned", "text"),
        [
            (lambda s: 1.0, r"returned a float; expected a pair \(loss, gradient\)"),
            (lambda s: None, "returned a NoneType; expected a pair"),
            (lambda s: [1.0, s], "returned a list; expected a pair"),
            (lambda s: (1.0, s, s), "returned a tuple; expected a pair"),
            (lambda s: (s, s), r"a loss of shape \(23,\); expected one number, the sum over the queries"),
            (lambda s: (np.ones(1), s), r"a loss of shape \(1,\); expected one number"),
            (lambda s: ("low", s), "'low' as a loss; expected numbers"),
            (lambda s: (None, s), "a loss that is NaN; expected a number"),
            (lambda s: (np.nan, s), "a loss that is NaN; expected a number"),
            (lambda s: (1.0, s[:-1]), r"a gradient of shape \(22,\); expected \(23,\)"),
            (lambda s: (1.0, s[:, None]), r"a gradient of shape \(23, 1\); expected \(23,\)"),
            (lambda s: (1.0, 0.0), r"a gradient of shape \(\); expected \(23,\)"),
            (lambda s: (1.0, ["up"] * 23), "as a gradient; expected numbers"),
            (lambda s: (1.0, [[1.0], [2.0, 3.0]]), "as a gradient; expected numbers"),
            (lambda s: (1.0, np.where(np.arange(23) == 4, np.nan, s)), "returned nan as its derivative by score 4"),
        ],
    )
    def test_functions_that_return_something_else(self, returned, text):
        queries = self.queries()
        bound = as_objective(lambda scores, given: returned(scores), rw.NDCG()).prepare(queries)
        with pytest.raises(rw.InputError, match=text):
            bound(np.zeros(queries.n_docs))

    def test_what_is_too_large_is_infinitely_bad(self):
        queries = self.queries()
        for function in (lambda s, given: (1.0, s + np.inf), lambda s, given: (np.inf, s)):
            bound = as_objective(function, rw.NDCG()).prepare(queries)
            found = bound(np.zeros(queries.n_docs))
            assert found.loss == np.inf
            assert not found.gradient.any()

    def test_a_descent_survives_values_that_are_too_large(self):
        queries = rw.make_queries(20, n_docs=10, n_features=4, random_state=0)
        far = queries.with_X(queries.X * np.float32(300.0))

        def exponential(scores, given):
            with np.errstate(over="ignore"):
                wanted = np.where(given.y > 0, 1.0, -1.0)
                each = np.exp(-wanted * scores)
            return each.sum(), -wanted * each

        fitted = rw.LinearRanker(objective=exponential, scale=None, alpha=1e-6).fit(far)
        assert fitted.history_[-1]["objective"] < fitted.history_[0]["objective"]
        with pytest.raises(rw.InputError, match="where the descent begins"):
            rw.LinearRanker(objective=lambda s, q: (np.inf, s)).fit(queries)

    @pytest.mark.filterwarnings("ignore:LinearRanker did not converge")  # of three steps
    def test_a_measure_that_asks_for_the_highest_grade_gets_that_of_all_parts(self):
        queries = rw.make_queries(300, n_docs=30, n_features=3, random_state=0)
        y = queries.y.copy()
        y[queries.indptr[-2] :] = 5.0
        queries = queries.replace(y=y)
        assert len(rw.Serial().scatter(queries)) > 1
        objective, name = SoftPositions(rw.parse_measure("err@10(max=data)")), "err@10(max=data)"
        by_object = rw.LinearRanker(objective=objective, measure=name, max_iter=3).fit(queries)
        by_name = rw.LinearRanker(objective="positions", measure=name, max_iter=3).fit(queries)
        assert by_object.history_ == by_name.history_

    def test_lists_shorter_than_the_cut_off_are_learned_from(self):
        """LETOR 4.0 counts them 0, whatever their order."""
        queries = rw.make_queries(30, n_docs=8, n_features=5, random_state=0)
        for ranker in (rw.LambdaRank, rw.SmoothRank):
            theirs, plain = (ranker(measure=name).fit(queries) for name in ("ndcg@30(dialect=letor4)", "ndcg@30"))
            assert [row["loss"] for row in theirs.history_] == [row["loss"] for row in plain.history_]
            assert plain.history_[0]["loss"] > 0.0

    def test_a_function_cannot_change_the_scores(self):
        def in_place(scores, given):
            scores -= given.y
            return (scores**2).sum(), 2 * scores

        queries = self.queries()
        with pytest.raises(ValueError, match="read-only"):
            as_objective(in_place, rw.NDCG()).prepare(queries)(np.zeros(queries.n_docs))

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_scores_of_another_number(self, name):
        bound = as_objective(name, rw.NDCG(5)).prepare(self.queries())
        for scores in (np.zeros(22), np.zeros(24), np.zeros((23, 1)), 0.0):
            with pytest.raises(rw.InputError, match=r"scores have shape .*; there are 23 documents"):
                bound(scores)

    @pytest.mark.parametrize("name", OBJECTIVES)
    def test_scores_of_any_type(self, name):
        bound, scores = as_objective(name, rw.NDCG(5)).prepare(self.queries()), np.arange(23) % 5
        expected = bound(scores.astype(float))
        for other in (scores, scores.tolist(), scores.astype(np.float32), np.repeat(scores.astype(float), 2)[::2]):
            found = bound(other)
            assert found.loss == expected.loss
            assert found.gradient.tolist() == expected.gradient.tolist()

    def test_names_that_there_are_not(self):
        with pytest.raises(rw.InputError, match=r"objective='logistik'.*logistic"):
            as_objective("logistik", rw.NDCG())
        for value in (3, None, Cosine, [1.0]):
            with pytest.raises(rw.InputError, match=r"objective=.*; expected a name, an instance of .*, or a function"):
                as_objective(value, rw.NDCG())
