"""Preconditioners: what they invert, and that descents with them reach the minimum that SciPy finds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import rankwright as rw
from rankwright.objectives.objective_names import OBJECTIVES
from rankwright.optimisers import preconditioner as module
from rankwright.optimisers.descent import L2Penalty, descend
from rankwright.optimisers.descent_methods import LBFGS
from rankwright.optimisers.preconditioner import Preconditioner
from rankwright.rankers.listwise.descent_ranker import LinearProblem

SMOOTH_CONVEX = ("squared_hinge", "squares", "logistic", "exponential", "top_one", "likelihood")


def correlated(n_queries=40, n_features=12, seed=0):
    """Queries whose features are nearly the same, as those of LETOR data are."""
    rng = np.random.default_rng(seed)
    queries = rw.make_queries(n_queries, n_docs=15, n_features=n_features, random_state=seed)
    shared = rng.normal(size=(queries.n_docs, 1))
    X = shared + 0.02 * rng.normal(size=queries.X.shape) + 0.05 * queries.X
    return rw.Queries.from_arrays(X, queries.y, queries.row_qid)


def problem_of(objective, queries):
    measure = rw.parse_measure("ndcg@5")
    return LinearProblem.of(OBJECTIVES[objective].for_measure(measure), queries, None, measure, "standard", rw.Serial())


def least(problem, alpha):
    """The minimum by SciPy, to the last digits."""

    def value(w):
        place = problem.risk.evaluate(w)
        return problem.risk.loss(place) + alpha * w @ w, problem.risk.gradient(place) + 2 * alpha * w

    start = np.zeros(problem.risk.n_features)
    options = {
        "maxiter": 20000,
        "maxfun": 10**6,
        "ftol": 0.0,
        "gtol": 1e-9 * np.abs(value(start)[1]).max(),
        "maxcor": 50,
    }
    return minimize(value, start, jac=True, method="L-BFGS-B", options=options)


@pytest.mark.parametrize("alpha", [1e-3, 1.0])
@pytest.mark.parametrize("objective", SMOOTH_CONVEX)
def test_descents_reach_the_minimum_in_few_steps_however_features_are_correlated(objective, alpha):
    problem = problem_of(objective, correlated())
    penalty, start = L2Penalty(alpha, np.zeros(12)), np.zeros(12)
    *_, last = descend(problem.risk, start, penalty, LBFGS(Preconditioner()), tol=1e-10, max_iter=60)
    best = least(problem, alpha)
    assert last.has_converged(1e-10)
    assert last.value - best.fun <= 1e-9 * abs(best.fun)
    *_, plain = descend(problem.risk, start, penalty, LBFGS(), tol=1e-10, max_iter=last.steps)
    assert plain.value - best.fun > 10 * (last.value - best.fun)


@pytest.mark.parametrize("objective", SMOOTH_CONVEX)
def test_the_estimated_distance_to_the_minimum_is_about_right(objective):
    problem = problem_of(objective, correlated(seed=1))
    best = least(problem, 0.1).fun
    points = descend(problem.risk, np.zeros(12), L2Penalty(0.1, np.zeros(12)), LBFGS(Preconditioner()), tol=1e-9)
    for point in list(points)[2:]:
        if point.value - best > 1e-11 * best:
            assert 0.1 < point.suboptimality / (point.value - best) < 10


@pytest.mark.parametrize("shift", [1e-6, 1.0, 1e6])
def test_both_forms_solve_their_systems(shift):
    rng = np.random.default_rng(0)
    rows, r = rng.normal(size=(7, 20)), rng.normal(size=20)
    system = 3.0 * rows.T @ rows + shift * np.eye(20)
    expected = np.linalg.solve(system, r)
    rounding = 100 * np.linalg.cond(system) * np.finfo(float).eps  # of any solver, as a share of the largest entry
    for form in (module._DenseHessian(rows.T @ rows), module._LowRankHessian(rows)):
        form.factorise(3.0, shift)
        assert form.solve(r) == pytest.approx(expected, rel=0.0, abs=rounding * np.abs(expected).max())
        assert form.quadratic_form(r) == pytest.approx(np.sum((rows @ r) ** 2))
        assert form.mean_diagonal == pytest.approx(np.trace(rows.T @ rows) / 20)


def test_rows_of_all_documents_make_the_second_derivative():
    problem = problem_of("top_one", correlated(seed=2))
    place = problem.risk.evaluate(np.full(12, 0.1))
    rows = problem.risk.hessian_factor(place, 10**6)
    assert rows.T @ rows == pytest.approx(problem.risk.approximate_hessian(place), rel=1e-4, abs=1e-4)
    assert len(problem.risk.hessian_factor(place, 50)) <= 50


def test_with_many_features_a_sample_of_the_documents_is_enough(monkeypatch):
    problem = problem_of("logistic", correlated())
    monkeypatch.setattr(module, "_MAX_FEATURES", 5)
    monkeypatch.setattr(module, "_MAX_ROWS", 100)
    *_, last = descend(
        problem.risk, np.zeros(12), L2Penalty(1.0, np.zeros(12)), LBFGS(Preconditioner()), tol=1e-10, max_iter=60
    )
    assert last.has_converged(1e-10)
    assert last.value == pytest.approx(least(problem, 1.0).fun, rel=1e-9)
