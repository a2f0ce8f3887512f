"""Expected measures under Plackett-Luce, exactly: against all rankings, the paper's equations, and limits.

Those of more than two ranks are estimates from drawn rankings. With every draw there is, each weighted by its
probability, their mean is exact too: an estimate without bias agrees to the last digits.
"""

from __future__ import annotations

from functools import partial
from itertools import product
from math import factorial

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.conftest import ranked_lists
from tests.reference import measures, plackett_luce
from tests.scored import problems

import rankwright as rw
from rankwright.kernels.objectives.plackett_luce import _select_highest
from rankwright.objectives import listwise_objectives as listwise
from rankwright.objectives.listwise_objectives import ExpectedMeasure

TOP_TWO = {
    **{f"ndcg@{k}": partial(measures.ndcg, k=k) for k in (1, 2)},
    **{f"ap@{k}": partial(measures.average_precision, k=k) for k in (1, 2)},
    **{f"err@{k}": partial(measures.err, k=k) for k in (1, 2)},
    **{f"rr@{k}": partial(measures.reciprocal_rank, k=k) for k in (1, 2)},
    **{f"p@{k}": partial(measures.precision, k=k) for k in (1, 2)},
    **{f"recall@{k}": partial(measures.recall, k=k) for k in (1, 2)},
    **{f"rbp@{k}": partial(measures.rbp, k=k) for k in (1, 2)},
    "ndcg@2(gain=pow2)": partial(measures.ndcg, k=2, gains="pow2"),
    "ndcg@2(gain=linear)": partial(measures.ndcg, k=2, gains="linear"),
    "ndcg@2(discount=letor)": partial(measures.ndcg, k=2, discounts="letor"),
    "ap@2(norm=min)": partial(measures.average_precision, k=2, norm="min"),
    "dcg@2": partial(measures.dcg, k=2),
    "wta": measures.wta,
}
MORE = {
    "ndcg@3": partial(measures.ndcg, k=3),
    "ndcg": measures.ndcg,
    "map": measures.average_precision,
    "ap@3": partial(measures.average_precision, k=3),
    "err": measures.err,
    "err@3": partial(measures.err, k=3),
    "mrr": measures.reciprocal_rank,
    "p@3": partial(measures.precision, k=3),
    "p": measures.precision,
    "recall@3": partial(measures.recall, k=3),
    "rbp": measures.rbp,
}
FIRST = rw.make_measure(lambda ranked: float(ranked[0] > 0), name="first")
of_two = pytest.mark.parametrize("name", TOP_TWO)
of_more = pytest.mark.parametrize("name", MORE)
of_all = pytest.mark.parametrize("name", [*TOP_TWO, *MORE])


def queries_of(y, **more):
    return rw.Queries.from_arrays(np.zeros((len(y), 1)), y, np.zeros(len(y)), **more)


def agree(found, loss, slopes, exact=1e-11):
    assert found.loss == pytest.approx(loss, rel=exact, abs=exact)
    assert found.gradient == pytest.approx(slopes, rel=100 * exact, abs=10 * exact * (1 + np.abs(slopes).max()))


class TestTopTwo:
    @of_two
    @settings(max_examples=12)
    @given(problem=problems(most=6, many=2))
    def test_value_and_gradient_are_those_of_all_rankings(self, name, problem):
        queries, scores = problem
        bound = ExpectedMeasure(name).prepare(queries)
        assert not bound.is_sampled
        agree(bound(scores), *plackett_luce.loss(TOP_TWO[name], queries, scores))

    @of_two
    def test_every_length(self, name):
        """From one document, where nothing can be ranked, over as many as the cut-off, to more."""
        rng = np.random.default_rng(1)
        for n in range(1, 7):
            queries, scores = queries_of(rng.permutation(n) % 3, weight=[0.7]), rng.normal(size=n)
            agree(ExpectedMeasure(name).prepare(queries)(scores), *plackett_luce.loss(TOP_TWO[name], queries, scores))

    @pytest.mark.parametrize("k", [1, 2])
    @given(data=st.lists(ranked_lists(most=5, top=2), min_size=1, max_size=3))
    @settings(max_examples=20)
    def test_eq_10_and_the_gradient_as_printed(self, k, data):
        """With eq. (7)'s gains 2^r; lists without a relevant document count 1 there, and 0 in measures."""
        grades = [[*y.astype(int).tolist(), 1] for y, _ in data]
        scores = [[*np.minimum(s, 3.0).tolist(), 0.25] for _, s in data]
        queries = rw.Queries.from_arrays(
            np.zeros((sum(map(len, grades)), 1)), np.concatenate(grades), group=[len(y) for y in grades]
        )
        found = ExpectedMeasure(f"ndcg@{k}(gain=pow2)").prepare(queries)(np.concatenate(scores))
        m = len(grades)
        assert found.loss / m - 1 == pytest.approx(plackett_luce.R(k, grades, scores), rel=1e-12)
        assert found.gradient / m == pytest.approx(plackett_luce.dR(k, grades, scores), rel=1e-9, abs=1e-13)

    def test_the_reference_itself(self):
        """Eq. (5) sums to 1, eq. (11) is its sum over the rest, eq. (14) its derivative."""
        g = [0.3, -1.0, 2.0, 0.1]
        orders, chances = plackett_luce.probabilities(np.array(g))
        assert chances.sum() == pytest.approx(1.0, rel=1e-14)
        assert chances == pytest.approx([plackett_luce.p(order, g) for order in orders], rel=1e-13)
        for top in ((2,), (1, 3), (0, 2, 3)):
            same = sum(chance for order, chance in zip(orders, chances) if tuple(order[: len(top)]) == top)
            assert plackett_luce.p_k(top, g) == pytest.approx(same, rel=1e-13)
            slopes = approx_fprime(np.array(g), lambda x, top=top: plackett_luce.p_k(top, x), 1e-7)
            assert [plackett_luce.dp_k(top, g, d) for d in range(4)] == pytest.approx(slopes, abs=1e-6)

    def test_skipped_queries_do_not_count(self):
        queries = rw.Queries.from_arrays(np.zeros((5, 1)), [1, 0, 0, 0, 2], group=[2, 2, 1])
        scores = np.array([0.1, 0.4, 1.0, 0.0, 3.0])
        reference = plackett_luce.loss(TOP_TWO["ndcg@2"], queries, scores, skip=True)
        agree(ExpectedMeasure("ndcg@2(empty=skip)").prepare(queries)(scores), *reference)
        agree(ExpectedMeasure("ndcg@9(empty=skip)").prepare(queries)(scores), *reference)


def by_every_draw(objective, y, s, n_samples, weight=1.0):
    """The mean of an estimate over every choice of rankings: a copy of the query for each, weighted by its probability."""
    orders, chances = plackett_luce.probabilities(s)
    choices = list(product(range(len(orders)), repeat=n_samples))
    copies, n = len(choices), len(s)
    weights = weight * np.array([chances[list(choice)].prod() for choice in choices])
    queries = rw.Queries.from_arrays(np.zeros((copies * n, 1)), np.tile(y, copies), group=[n] * copies, weight=weights)
    noise = np.empty((n_samples, copies, n))
    for copy, choice in enumerate(choices):
        for sample, ranking in enumerate(choice):
            noise[sample, copy, orders[ranking]] = -5.0 * np.arange(n) - s[orders[ranking]]
    scores, noise = np.tile(s, copies), noise.reshape(n_samples, -1)
    bound = objective.prepare(queries)
    if hasattr(bound, "estimate"):
        found = bound.estimate(scores, noise)
    else:  # a user's measure
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(listwise, "draw_gumbel_noise", lambda rng, *shape: noise)
            found = bound(scores)
    return found._replace(gradient=found.gradient.reshape(copies, n).sum(axis=0))


class TestEstimates:
    @of_more
    @pytest.mark.parametrize(
        ("n", "n_samples"), [(1, 1), (1, 3), (2, 1), (2, 3), (3, 1), (3, 2), (3, 3), (4, 2), (5, 1), (6, 1)]
    )
    def test_their_mean_over_every_draw_is_the_expectation(self, name, n, n_samples):
        rng = np.random.default_rng(n)
        for s in (rng.normal(size=n), rng.integers(0, 2, n).astype(float)):
            y = rng.permutation(n)[::-1] % 3
            found = by_every_draw(ExpectedMeasure(name, n_samples), y, s, n_samples, weight=0.6)
            agree(found, *plackett_luce.loss(MORE[name], queries_of(y, weight=[0.6]), s))

    @pytest.mark.parametrize(("n", "n_samples"), [(1, 2), (3, 1), (3, 2), (4, 1), (5, 1)])
    def test_of_a_users_measure(self, n, n_samples):
        def judge(ranked):  # no sum over ranks, and of one grade next to another
            return float(ranked[0] > 0) / (1 + abs(ranked[0] - ranked[-1]))

        rng = np.random.default_rng(n)
        y, s = rng.permutation(n) % 3, rng.normal(size=n)
        found = by_every_draw(
            ExpectedMeasure(rw.make_measure(judge, name="own"), n_samples), y, s, n_samples, weight=2.0
        )
        agree(found, *plackett_luce.loss(judge, queries_of(y, weight=[2.0]), s))

    def test_what_comes_to_a_rank_is_not_drawn(self):
        """A value is the sum over ranks of the mean gain of all that is left there; only what is left is drawn."""
        rng = np.random.default_rng(3)
        y, s, noise = rng.integers(0, 3, 7), rng.normal(size=7), rng.gumbel(size=(2, 7))
        values = []
        for keys in s + noise:
            order = np.argsort(-keys)
            left = [np.array(order[rank:]) for rank in range(4)]
            means = [np.exp(s[rows]) @ (2.0 ** y[rows] - 1) / np.exp(s[rows]).sum() for rows in left]
            values.append(sum(mean * measures.discount(r) for r, mean in enumerate(means, 1)))
        found = ExpectedMeasure("dcg@4", 2).prepare(queries_of(y)).estimate(s, noise)
        assert 1 - found.loss == pytest.approx(np.mean(values), rel=1e-12)

    @of_more
    def test_lists_with_one_value(self, name):
        """Nothing relevant, or all alike: nothing to gain whatever is drawn, and samples that serve each other know it."""
        rng = np.random.default_rng(2)
        for y, n_samples in (([0] * 5, 1), ([0] * 5, 4), ([1] * 5, 2), ([2], 1)):
            found = ExpectedMeasure(name, n_samples).prepare(queries_of(y))(rng.normal(size=len(y)), rng)
            assert found.loss == pytest.approx(1 - MORE[name](y), abs=1e-12)
            assert found.gradient == pytest.approx(np.zeros(len(y)), abs=1e-12)

    def test_refusals(self):
        for n_samples in (0, -1, 2.0, True, None):
            with pytest.raises(rw.InputError, match=r"n_samples=.*expected a whole number"):
                ExpectedMeasure("ndcg", n_samples).prepare(queries_of([1, 0]))

    @given(st.integers(0, 2**32), st.integers(1, 40) | st.just(400), st.integers(1, 45) | st.just(300))
    def test_the_highest_keys_are_found_in_order(self, seed, n, depth):
        rng = np.random.default_rng(seed)
        keys = rng.choice([rng.normal(size=n), rng.integers(0, 4, n).astype(float)])
        chosen = np.empty(min(depth, n), np.int64)
        _select_highest(keys, len(chosen), chosen)
        assert chosen.tolist() == np.argsort(-keys, kind="stable")[:depth].tolist()


def estimate(name, y, s, seed=0, n_samples=3):
    """At fixed noise, be it used or not."""
    bound = ExpectedMeasure(name, n_samples).prepare(queries_of(y))
    return bound(s, np.random.default_rng(seed))


class TestEverywhere:
    @of_all
    @given(problem=problems(most=12, many=4), n_samples=st.integers(1, 4))
    @settings(max_examples=10)
    def test_moving_all_scores_of_a_query_changes_nothing(self, name, problem, n_samples):
        queries, scores = problem
        bound = ExpectedMeasure(name, n_samples).prepare(queries)
        found = bound(scores)
        sums = np.add.reduceat(found.gradient, queries.indptr[:-1])
        size = 1 + np.abs(found.gradient).max()
        assert sums == pytest.approx(np.zeros(len(queries)), abs=1e-12 * size)
        moved = bound(scores + np.repeat(np.resize([4.0, -1.0, 256.0], len(queries)), queries.sizes))
        agree(moved, found.loss, found.gradient)

    @of_all
    def test_permuting_documents_permutes_the_gradient(self, name):
        rng = np.random.default_rng(4)
        y, s, noise, rows = rng.integers(0, 3, 9), rng.normal(size=9), rng.gumbel(size=(2, 9)), rng.permutation(9)

        def at(rows):
            bound = ExpectedMeasure(name, 2).prepare(queries_of(y[rows]))
            return bound.estimate(s[rows], np.ascontiguousarray(noise[:, rows])) if bound.is_sampled else bound(s[rows])

        plain, shuffled = at(np.arange(9)), at(rows)
        agree(shuffled, plain.loss, plain.gradient[rows], 1e-13)

    @of_all
    @pytest.mark.parametrize(("dtype", "far"), [(np.float64, 1e4), (np.float32, 1e4), (np.float64, 1e300)])
    def test_far_scores_are_their_limit(self, name, dtype, far):
        """Documents far apart have one order, those at one score have every one."""
        function, y = {**TOP_TWO, **MORE}[name], [1, 0, 2, 0, 1]
        is_sampled = ExpectedMeasure(name).prepare(queries_of(y)).is_sampled
        for steps in ([0, 3, 1, -2, -1], [0, 0, -1, 0, -2], [0, -1, -1, -1, -1], [1, 0, 0, 0, 0], [-1, -1, 0, 0, 0]):
            below = [step for step in steps if step < max(steps)]
            if is_sampled and far > 1e4 and len(set(below)) < len(below):
                continue  # so far below the highest, noise is nothing beside the scores
            found, near = estimate(name, y, np.array(steps, dtype=dtype) * dtype(far)), 40.0 * np.array(steps)
            if is_sampled:
                same = estimate(name, y, near)
                agree(found, same.loss, same.gradient)
            if not is_sampled or len(set(steps)) == len(steps):
                agree(found, *plackett_luce.loss(function, queries_of(y), near))
            assert found.gradient.sum() == pytest.approx(0.0, abs=1e-12)

    @pytest.mark.parametrize("name", [*TOP_TWO, *MORE, "own"])
    @pytest.mark.parametrize("height", [1e4, -1e6, 1e16, 1e300])
    def test_equal_scores_anywhere(self, name, height):
        y = [1, 0, 2, 0, 1]
        measure = FIRST if name == "own" else name
        same = estimate(measure, y, np.zeros(5))
        agree(estimate(measure, y, np.full(5, height)), same.loss, same.gradient, 1e-13)

    @pytest.mark.parametrize("name", ["ndcg@2", "ndcg", "own"])
    @pytest.mark.parametrize("wrong", [np.nan, np.inf, -np.inf])
    def test_scores_that_are_not_finite_are_infinitely_bad(self, name, wrong):
        found = ExpectedMeasure(FIRST if name == "own" else name).prepare(queries_of([1, 0, 2]))(
            np.array([0.0, wrong, 1.0])
        )
        assert (found.loss, found.gradient.tolist()) == (np.inf, [0.0, 0.0, 0.0])


class TestTheorems:
    def test_the_most_probable_ranking_is_by_score(self):
        rng = np.random.default_rng(5)
        for n in range(1, 7):
            s = rng.normal(size=n)
            orders, chances = plackett_luce.probabilities(s)
            assert orders[chances.argmax()].tolist() == np.argsort(-s).tolist()
            assert orders[chances.argmin()].tolist() == np.argsort(s).tolist()

    @pytest.mark.parametrize("name", ["ndcg@1", "ndcg@2", "ap@2", "err@2", "ndcg@3", "map", "err"])
    @given(problem=problems(most=4, many=4))
    @settings(max_examples=12)
    def test_theorem_1_with_the_loss_1_less_E(self, name, problem):
        """The sum over queries of 1 - E of the most probable ranking is at most max n! times m R, R the mean of 1 - E."""
        queries, scores = problem
        queries = rw.Queries.from_arrays(queries.X, queries.y, group=queries.sizes)
        expected, _ = plackett_luce.loss({**TOP_TWO, **MORE}[name], queries, scores)
        if name in TOP_TWO:
            assert ExpectedMeasure(name).prepare(queries)(scores).loss == pytest.approx(expected, rel=1e-10)
        R, m = expected / len(queries), len(queries)
        worst = (
            1 - rw.parse_measure(name).for_training().values(queries, scores)
        ).sum()  # of equally probable ones the worst
        assert worst <= factorial(queries.sizes.max()) * m * R + 1e-12

    def test_theorem_1_is_tight_and_needs_the_number_of_queries(self):
        queries = rw.Queries.from_arrays(np.zeros((6, 1)), [1, 0] * 3, group=[2, 2, 2])
        R = ExpectedMeasure("ndcg@1").prepare(queries)(np.zeros(6)).loss / 3
        worst = (1 - rw.NDCG(1).for_training().values(queries, np.zeros(6))).sum()
        assert worst == pytest.approx(2 * 3 * R, rel=1e-14)
        assert worst > 2 * R  # as it is printed

    def test_theorem_1_fails_with_the_loss_of_eq_6(self):
        grades, scores = [[1, 0]], [[20.0, 0.0]]
        error = -plackett_luce.G((0, 1), grades[0])  # of the most probable ranking
        assert error > 2 * plackett_luce.R(2, grades, scores)
