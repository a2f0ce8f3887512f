"""Fidelity, logistic and exponential loss of pairs: values and derivatives, and that models can be trained on them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize
from tests.reference.pairwise import pairs

import rankwright as rw
from rankwright.objectives.pairwise_objectives import Exponential, Fidelity, Logistic


def sigmoid(o):
    return 1 / (1 + np.exp(-o))


def fidelity(o, target):
    """Tsai et al., section 3.2."""
    return 1 - np.sqrt(target * sigmoid(o)) - np.sqrt((1 - target) * (1 - sigmoid(o)))


def cross_entropy(o, target):
    """Burges et al.: -P* log P - (1 - P*) log(1 - P)."""
    return -target * np.log(sigmoid(o)) - (1 - target) * np.log(1 - sigmoid(o))


def enumerated(loss, queries, scores, per, target):
    """The loss pair by pair."""
    total = 0.0
    for q, rows in enumerate(queries):
        found = list(pairs(queries.y[rows], [0, rows.stop - rows.start]))
        weight = queries.query_weight[q] / (max(len(found), 1) if per == "query" else 1)
        total += sum(weight * loss(scores[rows][i] - scores[rows][j], target) for i, j in found)
    return total


OBJECTIVES = {
    "fidelity": (Fidelity, fidelity),
    "logistic": (Logistic, cross_entropy),
    "exponential": (lambda per, target: Exponential(per), lambda o, target: np.exp(-o)),
}


@st.composite
def judged(draw):
    sizes = draw(st.lists(st.integers(1, 6), min_size=1, max_size=3))
    n = sum(sizes)
    y = draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    scores = draw(st.lists(st.integers(-8, 8).map(lambda s: s / 4), min_size=n, max_size=n))
    weight = draw(st.lists(st.sampled_from([0.0, 0.5, 1.0, 2.0]), min_size=len(sizes), max_size=len(sizes)))
    weight = weight if sum(weight) else None
    return rw.Queries.from_arrays(np.zeros((n, 1)), y, group=sizes, weight=weight), np.array(scores)


@pytest.mark.parametrize("name", OBJECTIVES)
@pytest.mark.parametrize("per", ["pair", "query"])
@pytest.mark.parametrize("target", [1.0, 0.5, 0.0, 0.8])
@settings(max_examples=20)
@given(data=judged())
def test_losses_and_derivatives_equal_the_sum_over_pairs(name, per, target, data):
    (make, loss), (queries, scores) = OBJECTIVES[name], data
    bound = make(per, target).prepare(queries)
    found = bound(scores)
    assert found.loss == pytest.approx(enumerated(loss, queries, scores, per, target), rel=1e-12, abs=1e-12)
    assert found.gradient.sum() == pytest.approx(0.0, abs=1e-12)
    step = 1e-5
    for i in range(len(scores)):
        moved = np.eye(len(scores))[i] * step
        slope = (bound(scores + moved).loss - bound(scores - moved).loss) / (2 * step)
        assert found.gradient[i] == pytest.approx(slope, rel=1e-6, abs=1e-8)
        if found.curvature is not None:
            bend = (bound(scores + moved).gradient[i] - bound(scores - moved).gradient[i]) / (2 * step)
            assert found.curvature[i] == pytest.approx(bend, rel=1e-6, abs=1e-8)


def test_the_papers_properties_of_the_fidelity_loss():
    pair = rw.Queries.from_arrays(np.zeros((2, 1)), [1, 0], qid=[1, 1])

    def at(o, target):
        return Fidelity(target=target).prepare(pair)(np.array([o, 0.0])).loss

    for target in (0.2, 0.5, 0.7):  # property 1: zero where P = P*
        assert at(np.log(target / (1 - target)), target) == pytest.approx(0.0, abs=1e-15)
    assert at(0.0, 0.5) == pytest.approx(0.0, abs=1e-15)
    for o in np.linspace(-50, 50, 11):  # property 2: between 0 and 1
        assert all(-1e-15 <= at(o, target) <= 1 for target in (0.0, 0.5, 1.0))
    assert at(-1e4, 1.0) == 1.0
    assert at(1e4, 1.0) == 0.0


@pytest.mark.parametrize("objective", [Fidelity(), Logistic(), Fidelity(target=0.9), Logistic(target=0.9)])
def test_scores_of_any_size_are_safe(objective):
    queries = rw.Queries.from_arrays(np.zeros((4, 1)), [2, 1, 1, 0], qid=[1, 1, 1, 1])
    with np.errstate(all="raise"):
        for scores in ([1e4, -1e4, 0, 1e4], [-1e4, 1e4, 1e300, 0], [0, 0, 0, 0]):
            found = objective.prepare(queries)(np.array(scores, dtype=float))
            assert np.isfinite(found.loss)
            assert np.isfinite(found.gradient).all()
            assert np.isfinite(found.curvature).all()


def test_each_query_loses_at_most_one():
    queries = rw.make_queries(20, random_state=0)
    worst = Fidelity().prepare(queries)(-1e4 * queries.y)
    with_pairs = sum(len(np.unique(queries.y[rows])) > 1 for rows in queries)
    assert worst.loss == pytest.approx(with_pairs)


@pytest.mark.parametrize("target", [-0.1, 1.1, np.nan])
def test_a_target_is_a_probability(target):
    with pytest.raises(rw.InputError, match=r"target=.*expected a probability"):
        Fidelity(target=target).prepare(rw.make_queries(2, random_state=0))


@pytest.mark.parametrize("objective", [Fidelity(), Logistic(), Exponential()])
def test_a_linear_model_can_be_trained_on_it(objective):
    """The chain rule is all it takes: the gradient by weights is X' times the gradient by scores."""
    queries = rw.scale_features(rw.make_queries(60, n_docs=15, n_features=8, random_state=0), "standard")
    X, bound = queries.X.astype(float), objective.prepare(queries)

    def loss(w):
        found = bound(X @ w)
        return found.loss + 0.5 * w @ w, X.T @ found.gradient + w

    result = minimize(loss, np.zeros(X.shape[1]), jac=True, method="L-BFGS-B", options={"gtol": 1e-5})
    assert result.success
    assert result.fun < loss(np.zeros(X.shape[1]))[0]
    measure = rw.parse_measure("ndcg@10")
    assert measure.mean(queries, X @ result.x) > 0.95 * rw.RankSVM().fit(queries).score(queries)
