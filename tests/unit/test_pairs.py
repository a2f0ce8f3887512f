"""Pair sums against all pairs written out, and minima against scikit-learn and their own certificates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from sklearn.svm import LinearSVC
from tests.reference.pairwise import differences, pair_sums

import rankwright as rw
from rankwright.kernels.objectives import hinge_pairs as kernels
from rankwright.kernels.objectives.hinge_pairs import multiply_query_hessian
from rankwright.kernels.optimisers.linear_systems import factorise_shifted, solve_factorised
from rankwright.objectives.pairwise_objectives import Hinge, SquaredHinge, count_query_pairs
from rankwright.optimisers.newton import minimise_by_newton
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.scorers.linear import StandardScaling


@st.composite
def scored(draw):
    """Scores, grades, costs and weights of a few queries: random, tied, constant, single documents, many grades."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    sizes = draw(st.lists(st.integers(1, 15), min_size=1, max_size=4))
    indptr = np.concatenate([[0], np.cumsum(sizes)])
    n = int(indptr[-1])
    scores = {
        "random": rng.normal(size=n) * draw(st.sampled_from([0.1, 1.0, 30.0])),
        "tied": rng.integers(-2, 3, n) * 0.5,
        "constant": np.full(n, 3.0),
    }[draw(st.sampled_from(["random", "tied", "constant"]))]
    y = rng.integers(0, draw(st.sampled_from([1, 2, 3, 40])), n) / 2.0
    cost = rng.random(n) if draw(st.booleans()) else np.ones(n)
    return scores, y, indptr, cost, rng.random(len(sizes))


def labelled(problem):
    _, y, indptr, cost, weight = problem
    return kernels.PairLabels(kernels.find_grade_places(y, indptr), cost, weight, indptr)


def ranked(scores, order=None):
    n = len(scores)
    return kernels.RankedScores(scores, np.arange(n) if order is None else order, np.full(n, 9.0), np.full(n, 9.0))


def product(labels, here, delta, v):
    """The second derivative of the sum of h by the scores, times ``v``, query by query."""
    out, space = np.full(len(v), 9.0), kernels.make_pair_workspace(labels.indptr)
    for q in range(len(labels.weight)):
        multiply_query_hessian(labels, here, q, delta, space, v, out)
    return out


DELTAS = [0.0, 1e-3, 0.3, 1.0, 4.0, np.inf]


@settings(max_examples=150)
@given(problem=scored(), delta=st.sampled_from(DELTAS), seed=st.integers(0, 99))
def test_sums_and_products_equal_all_pairs(problem, delta, seed):
    scores, n = problem[0], len(problem[0])
    labels, here, gradient = labelled(problem), ranked(scores), np.full(n, 9.0)
    totals = kernels.sum_pairs(labels, here, delta, gradient)
    expected, slopes, hessian = pair_sums(*problem, delta)
    scale = 1.0 + 1.0 / delta if delta > 0 else 1.0  # of rounding
    assert totals == pytest.approx(expected[1:], rel=1e-9, abs=1e-11 * scale)
    assert gradient == pytest.approx(slopes, rel=1e-9, abs=1e-11 * scale)
    weight = np.repeat(labels.weight, np.diff(labels.indptr))
    assert weight * here.curvature == pytest.approx(np.diag(hessian), rel=1e-9, abs=1e-11 * scale)
    v = np.random.default_rng(seed).normal(size=n)
    assert product(labels, here, delta, v) == pytest.approx(hessian @ v, rel=1e-9, abs=1e-10 * scale)
    for a, b in zip(labels.indptr, labels.indptr[1:]):
        assert sorted(here.order[a:b]) == list(range(a, b))
        assert (np.diff(scores[here.order[a:b]]) <= 0).all()


@given(problem=scored())
def test_weights_of_pairs(problem):
    _, y, indptr, cost, weight = problem
    by_query, by_document = kernels.sum_pair_costs(labelled(problem))
    totals, _, hessian = pair_sums(np.zeros(len(y)), y, indptr, cost, weight, np.inf)
    assert (by_query * weight).sum() == pytest.approx(2 * totals[1])  # u = 1 everywhere
    assert by_document * np.repeat(weight, np.diff(indptr)) == pytest.approx(np.diag(hessian))


@given(problem=scored())
def test_the_start_of_the_order_does_not_matter(problem):
    scores, labels = problem[0], labelled(problem)
    found = []
    for reverse in (False, True):
        order = np.arange(len(scores))
        if reverse:
            for a, b in zip(labels.indptr, labels.indptr[1:]):
                order[a:b] = order[a:b][::-1]
        gradient = np.empty(len(scores))
        found.append((kernels.sum_pairs(labels, ranked(scores, order), 0.3, gradient), gradient))
    assert found[0][0] == pytest.approx(found[1][0], rel=1e-12, abs=1e-12)
    assert found[0][1] == pytest.approx(found[1][1], rel=1e-12, abs=1e-12)


def test_long_queries_of_many_grades():
    rng = np.random.default_rng(0)
    n = 700
    problem = rng.normal(size=n), rng.permutation(n).astype(float), np.array([0, n]), rng.random(n), np.ones(1)
    gradient = np.empty(n)
    totals = kernels.sum_pairs(labelled(problem), ranked(problem[0]), 0.5, gradient)
    u = 1.0 - (problem[0][:, None] - problem[0])
    counts = (problem[1][:, None] > problem[1]) * problem[3]
    alpha = np.clip(u / 0.5 + 0.5, 0.0, 1.0) * counts
    assert totals[kernels.SLOPE] == pytest.approx(alpha.sum())
    assert gradient == pytest.approx(alpha.sum(axis=0) - alpha.sum(axis=1))


@pytest.mark.parametrize("delta", [0.3, 1.0, 4.0])
def test_drift_is_the_derivative_by_the_smoothing(delta):
    rng, n, step = np.random.default_rng(0), 40, 1e-6
    problem = rng.normal(size=n), rng.integers(0, 4, n) * 1.0, np.array([0, 15, n]), rng.random(n), rng.random(2)
    here, gradients = ranked(problem[0]), []
    for change in (-step, step):
        gradients.append(np.empty(n))
        kernels.sum_pairs(labelled(problem), ranked(problem[0]), delta + change, gradients[-1])
    kernels.sum_pairs(labelled(problem), here, delta, np.empty(n))
    assert here.gradient_by_delta == pytest.approx((gradients[1] - gradients[0]) / (2 * step), abs=1e-4)


@pytest.mark.parametrize("objective", [Hinge, SquaredHinge])
@pytest.mark.parametrize("per", ["pair", "query"])
def test_objectives(objective, per):
    rng = np.random.default_rng(1)
    y, qid = rng.integers(0, 3, 40), np.repeat(np.arange(5), 8)
    y[:8] = 1  # no pairs
    queries = rw.Queries.from_arrays(np.zeros((40, 1)), y, qid, weight=rng.random(5))
    scores, bound = rng.normal(size=40), objective(per).prepare(queries)
    found = bound(scores)
    counts = count_query_pairs(queries.y, queries.indptr)
    weight = queries.query_weight / np.maximum(counts, 1) if per == "query" else queries.query_weight
    delta, times = (0.0, 1) if objective is Hinge else (np.inf, 2)
    totals, gradient, hessian = pair_sums(scores, queries.y, queries.indptr, np.ones(40), weight, delta)
    assert counts[0] == 0
    assert found.loss == pytest.approx(times * totals[1])
    assert found.gradient == pytest.approx(times * gradient)
    assert found.gradient == pytest.approx(approx_fprime(scores, lambda s: bound(s).loss, 1e-7), abs=1e-4)
    if objective is SquaredHinge:
        assert found.curvature == pytest.approx(2 * np.diag(hessian))


def test_an_unknown_kind_of_mean():
    with pytest.raises(rw.InputError, match="pair_weighting='document'"):
        Hinge("document").prepare(rw.make_queries(2, random_state=0))


def problem_of(queries, dtype=np.float32, backend=None):
    standard = StandardScaling.fit(queries)
    typed = queries.with_X(queries.X.astype(dtype))
    return PairLoss(typed, None, queries.query_weight, standard.factor, standard.mean, backend)


def explicit(queries):
    """The differences of all pairs, standardised."""
    standard = StandardScaling.fit(queries)
    return differences((queries.X - standard.mean) * standard.factor, queries.y, queries.indptr)


@pytest.mark.parametrize("smoothing", [0.2, 2.0, np.inf])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_derivatives_of_the_problem(smoothing, dtype):
    problem = problem_of(rw.make_queries(10, n_docs=12, n_features=7, random_state=3), dtype)
    rng = np.random.default_rng(0)
    w, direction = 0.3 * rng.normal(size=(2, 7))
    point, step = problem.evaluate(w, smoothing), 1e-6
    ahead, behind = (problem.evaluate(w + t * direction, smoothing) for t in (step, -step))
    assert (ahead.smoothed_loss - behind.smoothed_loss) / (2 * step) == pytest.approx(
        point.gradient @ direction, rel=1e-6
    )
    change = (ahead.gradient - behind.gradient) / (2 * step)
    assert problem.hessian_product(point, direction) == pytest.approx(change, rel=1e-3, abs=1e-4)
    loss, slope = problem.evaluate_on_line(problem.prepare_line(point, direction), 0.7)
    there = problem.evaluate(w + 0.7 * direction, smoothing, point)
    assert (loss, slope) == pytest.approx((there.smoothed_loss, there.gradient @ direction), rel=1e-9)
    hessian = problem.approximate_hessian(point)
    assert hessian == pytest.approx(hessian.T)
    assert np.linalg.eigvalsh(hessian).min() > -1e-12
    u = 1.0 - explicit(rw.make_queries(10, n_docs=12, n_features=7, random_state=3)) @ w
    exact = np.maximum(u, 0) ** (2 if smoothing == np.inf else 1)
    assert point.loss == pytest.approx(exact.mean(), rel=1e-9)


def value_of(D, w, C, squared):
    u = np.maximum(1.0 - D @ w, 0.0)
    return 0.5 * w @ w + C * np.mean(u**2 if squared else u)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("C", [0.1, 3.0, 300.0])
def test_the_minimum_is_that_of_scikit_learn(C, squared):
    queries = rw.make_queries(12, n_docs=12, n_features=6, random_state=2)
    D = explicit(queries)
    signs = np.where(np.arange(len(D)) % 2, 1.0, -1.0)  # two classes, the same problem
    loss = "squared_hinge" if squared else "hinge"
    peer = LinearSVC(
        C=C / len(D), loss=loss, dual=True, fit_intercept=False, tol=1e-9, max_iter=10_000_000, random_state=0
    )
    peer.fit(D * signs[:, None], signs)
    found = minimise_by_newton(problem_of(queries), C, squared=squared)
    assert value_of(D, found.w, C, squared) == pytest.approx(found.primal, rel=1e-9)
    assert found.primal == pytest.approx(value_of(D, peer.coef_[0], C, squared), rel=1e-5)


@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e2, 1e5])
@pytest.mark.parametrize("seed", range(4))
def test_the_gap_closes(C, seed, squared):
    queries = rw.make_queries(15 + 20 * seed, n_docs=15, n_features=5 + 6 * seed, random_state=seed)
    found = minimise_by_newton(problem_of(queries), C, squared=squared)
    assert found.gap <= 1e-6 * found.primal
    last = found.history[-1]
    assert (last.w.tolist(), last.primal, last.gap) == (found.w.tolist(), found.primal, found.gap)
    better = minimise_by_newton(problem_of(queries), C, squared=squared, tol=1e-9)  # the gap is no empty promise
    assert found.primal - found.gap <= better.primal <= found.primal * (1 + 1e-12)


def test_costs_and_weights_are_repeated_pairs():
    """A document of cost 2 stands for two documents, a query of weight 3 for three queries."""
    rng = np.random.default_rng(4)
    X, y, indptr = rng.normal(size=(20, 4)), np.tile([1.0, 0, 0, 0, 0], 4), np.arange(5) * 5
    cost = np.where(np.arange(20) % 5 == 2, 2.0, 1.0)
    weighted = minimise_by_newton(
        PairLoss(rw.Queries(X, y, indptr, np.arange(4)), cost, np.array([1.0, 1, 1, 3])), 50.0, tol=1e-9
    )
    rows = [i for q in (0, 1, 2, 3, 3, 3) for k in (0, 1, 2, 2, 3, 4) for i in (5 * q + k,)]
    repeated = minimise_by_newton(
        PairLoss(rw.Queries(X[rows], y[rows], np.arange(7) * 6, np.arange(6))), 50.0, tol=1e-9
    )
    assert weighted.primal == pytest.approx(repeated.primal, rel=1e-8)
    assert weighted.w == pytest.approx(repeated.w, abs=1e-3)


def test_a_warm_start_ends_at_the_same_minimum():
    problem = problem_of(rw.make_queries(40, n_docs=30, n_features=12, random_state=0))
    cold = minimise_by_newton(problem, 100.0)
    far = minimise_by_newton(problem, 100.0, start=np.full(12, 50.0))
    assert far.primal == pytest.approx(cold.primal, rel=2e-6)
    again = minimise_by_newton(problem, 100.0, start=cold.w)
    assert again.gap <= 1e-6 * again.primal
    assert again.n_evaluations + again.n_products < cold.n_evaluations + cold.n_products


def test_few_steps_end_with_an_honest_gap():
    problem = problem_of(rw.make_queries(40, n_docs=30, n_features=12, random_state=0))
    best, hasty = minimise_by_newton(problem, 1000.0), minimise_by_newton(problem, 1000.0, max_iter=2)
    assert hasty.gap > 1e-6 * hasty.primal
    assert hasty.primal - hasty.gap <= best.primal <= hasty.primal


def test_no_pairs():
    problem = PairLoss(rw.Queries(np.ones((3, 2)), np.array([1.0, 1.0, 0.0]), np.array([0, 2, 3]), np.arange(2)))
    assert problem.total == 0.0
    for squared in (False, True):
        for start in (None, np.ones(2)):
            found = minimise_by_newton(problem, 5.0, start=start, squared=squared)
            assert found.w == pytest.approx(0.0, abs=1e-6)
            assert found.primal == pytest.approx(0.0, abs=1e-9)


def test_a_large_mean_costs_no_precision():
    queries = rw.make_queries(20, n_docs=20, n_features=6, random_state=0)
    X, standard = queries.X.astype(np.float64), StandardScaling.fit(queries)
    X = (X - standard.mean) * standard.factor
    found = [minimise_by_newton(PairLoss(queries.with_X(X + shift)), 10.0).primal for shift in (0.0, 1e7)]
    assert found[0] == pytest.approx(found[1], rel=2e-6)


def test_small_systems():
    rng = np.random.default_rng(0)
    for d, rank in ((1, 1), (7, 7), (30, 4)):
        half, r = rng.normal(size=(d, rank)), rng.normal(size=d)
        z = solve_factorised(factorise_shifted(half @ half.T, 2.5), r)
        assert (np.eye(d) + 2.5 * half @ half.T) @ z == pytest.approx(r)
    huge = np.outer(np.arange(1.0, 6), np.arange(1.0, 6))
    assert np.isfinite(solve_factorised(factorise_shifted(huge, 1e30), np.ones(5))).all()


@pytest.mark.parametrize("squared", [False, True])
def test_the_same_bits_on_every_backend(squared):
    queries = rw.make_queries(400, n_docs=40, n_features=9, random_state=0)
    found = [
        minimise_by_newton(problem_of(queries, backend=b), 10.0, squared=squared)
        for b in (rw.Serial(), rw.Threads(2), rw.Threads(3))
    ]
    assert len({each.w.tobytes() for each in found}) == 1
    assert len({(each.primal, each.gap) for each in found}) == 1
