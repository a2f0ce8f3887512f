"""On OHSUMED: that convex rankers reach their minimum, and what the order of the training rows changes."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from tests.conftest import data_folder
from tests.warned import may_not_converge

import rankwright as rw
from rankwright.measures import parse_measure
from rankwright.rankers.listwise.descent_ranker import LinearProblem

CONVEX = {
    "ListNet": rw.ListNet,
    "ListMLE": rw.ListMLE,
    "RankNet": rw.RankNet,
    "LinearRanker": rw.LinearRanker,
    "squared hinge": lambda: rw.LinearRanker(objective="squared_hinge"),
}
FEW = {"n_epochs": 2}
RANKERS = {
    **CONVEX,
    "RankCosine": rw.RankCosine,
    "LambdaRank": rw.LambdaRank,
    "SmoothRank": rw.SmoothRank,
    "Regression": rw.Regression,
    "RankSVM": rw.RankSVM,
    "AdaRank": rw.AdaRank,
    "NeuralRanker": lambda: rw.NeuralRanker(training=FEW),
    "ListNet network": lambda: rw.ListNet(hidden=(8,), training=FEW),
    "BayesRank": lambda: rw.BayesRank(training=FEW),
}


@pytest.fixture(scope="module")
def train():
    return rw.read_folds(data_folder("OHSUMED"))[0].train


def shuffled(queries, seed):
    rows = np.random.default_rng(seed).permutation(queries.n_docs)
    return rw.Queries.from_arrays(queries.X[rows], queries.y[rows], queries.row_qid[rows])


@pytest.mark.parametrize("name", CONVEX)
def test_convex_rankers_reach_the_minimum_that_scipy_finds(train, name):
    ranker = CONVEX[name]()
    problem = LinearProblem.of(
        ranker._objective(parse_measure("ndcg@10")), train, None, parse_measure("ndcg@10"), "standard", rw.Serial()
    )

    def value(w):
        place = problem.risk.evaluate(w)
        return problem.risk.loss(place) + w @ w, problem.risk.gradient(place) + 2 * w

    found = ranker.fit(train)
    w = np.divide(found.coef_, problem.factor, out=np.zeros(train.n_features), where=problem.factor > 0)
    gtol = 1e-9 * np.abs(value(np.zeros(train.n_features))[1]).max()
    options = {"maxiter": 20000, "maxfun": 10**6, "ftol": 0.0, "gtol": gtol, "maxcor": 50}
    best = minimize(value, w, jac=True, method="L-BFGS-B", options=options)
    assert found.history_[-1]["objective"] == pytest.approx(value(w)[0], rel=1e-12)
    assert value(w)[0] - best.fun <= 1e-9 * best.fun
    mine, theirs = problem.scorer(w)(train.X), problem.scorer(best.x)(train.X)
    assert mine == pytest.approx(theirs, abs=1e-4 * np.ptp(theirs))


def test_the_minimum_of_listmle(train):
    assert rw.ListMLE().fit(train).history_[-1]["objective"] == pytest.approx(44114.3937, abs=1e-3)


@may_not_converge
@pytest.mark.parametrize("name", RANKERS)
def test_shuffled_rows_give_the_same_bits(train, name):
    plain, other = (RANKERS[name]().fit(each).predict(train) for each in (train, shuffled(train, 0)))
    assert other.tobytes() == plain.tobytes()


@pytest.mark.parametrize("name", [*CONVEX, "RankCosine"])
def test_where_rows_are_not_sorted_a_minimum_is_the_same_to_1e4_of_the_range(train, name, monkeypatch):
    monkeypatch.setattr(rw.Ranker, "_sorts_rows", lambda self: False)
    plain, other = (RANKERS[name]().fit(each).predict(train) for each in (train, shuffled(train, 0)))
    assert other == pytest.approx(plain, abs=1e-4 * np.ptp(plain))


@pytest.mark.parametrize("make", [rw.MART, rw.LambdaMART, rw.BoostedTrees])
def test_trees_are_the_same_but_for_rounding(train, make):
    plain, other = (make(n_estimators=5).fit(each).predict(train) for each in (train, shuffled(train, 0)))
    assert other == pytest.approx(plain, abs=1e-6 * np.ptp(plain))
