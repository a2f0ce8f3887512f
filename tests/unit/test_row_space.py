"""More features than documents: weights are looked for among weighted sums of the documents."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from tests.warned import may_not_converge

import rankwright as rw
from rankwright.objectives.pairwise_objectives import compute_pair_weights
from rankwright.optimisers import newton
from rankwright.optimisers.pair_loss import PairLoss
from rankwright.optimisers.weight_space import WeightSpace
from rankwright.rankers.bounds import permurank, ranksvm
from rankwright.scorers.linear import StandardScaling


def wide_queries(n_docs=60, n_features=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_docs, n_features)) * rng.lognormal(size=n_features) + 3.0
    X[:, 5] = 2.0  # a constant feature
    X[7] = X[3]  # two documents alike
    y = np.clip(np.round(X[:, 0] - 3.0 + rng.normal(size=n_docs)), 0, 2)
    return rw.Queries.from_arrays(X, y, qid=np.repeat(np.arange(6), n_docs // 6))


@pytest.mark.parametrize("scale", ["standard", None])
def test_coordinates_keep_scores_and_lengths(scale):
    queries = wide_queries()
    standard = StandardScaling.fit(queries)
    factor = standard.factor_for(scale)
    space = WeightSpace.of(queries, standard.mean, factor)
    z = np.random.default_rng(1).normal(size=len(space.factor))
    w = space.weights(z)
    scaled = (queries.X - standard.mean) * factor
    np.testing.assert_allclose(space.queries.X @ z, scaled @ w, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(w @ w, z @ z)
    np.testing.assert_allclose(space.coordinates(w), z, atol=1e-12)


def test_features_are_kept_where_documents_are_not_fewer():
    queries = wide_queries(n_docs=60, n_features=60)
    standard = StandardScaling.fit(queries)
    space = WeightSpace.of(queries, standard.mean, standard.factor)
    assert space.queries is queries
    w = np.arange(60.0)
    assert space.weights(w) is w
    assert space.coordinates(w) is w


@pytest.mark.parametrize("scale", ["standard", None])
@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_ranksvm_finds_the_minimum_over_all_weights(loss, scale):
    queries = wide_queries()
    ranker = rw.RankSVM(C=0.3, loss=loss, scale=scale, tol=1e-8).fit(queries)
    standard = StandardScaling.fit(queries)
    factor = standard.factor_for(scale)
    weight = compute_pair_weights(queries, "pair")
    whole = PairLoss(queries, None, weight, factor, standard.mean)
    found = newton.minimise_by_newton(whole, 0.3, squared=loss == "squared_hinge", tol=1e-8)
    last = ranker.history_[-1]
    assert last["objective"] == pytest.approx(found.primal, rel=2e-8)
    assert last["gap"] <= 1e-8 * last["objective"]
    np.testing.assert_allclose(ranker.coef_, found.w * factor, rtol=1e-3, atol=2e-3 * np.abs(ranker.coef_).max())
    assert ranker.coef_[5] == 0.0


@may_not_converge
@pytest.mark.parametrize("start", ["zero", "adarank"])
def test_permurank_finds_what_it_finds_among_all_weights(start, monkeypatch):
    queries = wide_queries()
    ranker = rw.PermuRank(measure="map", max_iter=5, start=start, tol=1e-9)
    few = clone(ranker).fit(queries)
    monkeypatch.setattr(WeightSpace, "of", classmethod(lambda cls, queries, mean, factor: cls(queries, mean, factor)))
    all_weights = clone(ranker).fit(queries)
    assert [row["imperfect"] for row in few.history_] == [row["imperfect"] for row in all_weights.history_]
    for one, other in zip(few.history_, all_weights.history_, strict=True):
        assert one["objective"] == pytest.approx(other["objective"], rel=1e-8)
        assert one["train"] == pytest.approx(other["train"])


@pytest.mark.parametrize("alpha", [1e-6, 1.0, 1000.0])
def test_regression_solves_the_normal_equations_of_all_weights(alpha):
    queries = wide_queries()
    ranker = rw.Regression(alpha=alpha).fit(queries)
    standard = StandardScaling.fit(queries)
    Z = (queries.X - standard.mean) * standard.factor
    relevant = queries.y > 0
    c = np.where(relevant, 1.0 / relevant.sum(), 1.0 / (~relevant).sum())
    w = ranker.coef_ * standard.deviation
    error = ranker.predict(queries) - (2.0**queries.y - 1.0)
    scale = np.abs(Z.T @ (c * (2.0**queries.y - 1.0))).max()
    np.testing.assert_allclose(Z.T @ (c * error) + alpha * w, 0.0, atol=1e-12 * scale)
    assert abs((c * error).sum()) < 1e-12


def test_regression_solves_no_system_larger_than_the_documents(monkeypatch):
    sizes = []

    def noted(matrix):
        sizes.append(len(matrix))
        return eigh(matrix)

    eigh = np.linalg.eigh
    monkeypatch.setattr(np.linalg, "eigh", noted)
    rw.Regression().fit(wide_queries(n_docs=60, n_features=400))
    assert sizes == [60]


@may_not_converge
@pytest.mark.parametrize(("module", "ranker"), [(ranksvm, rw.RankSVM()), (permurank, rw.PermuRank(max_iter=3))])
def test_problems_have_no_more_dimensions_than_documents(module, ranker, monkeypatch):
    sizes = []

    def noted(problem, *args, **options):
        sizes.append(problem.n_features)
        return newton.minimise_by_newton(problem, *args, **options)

    monkeypatch.setattr(module, "minimise_by_newton", noted)
    ranker.fit(wide_queries(n_docs=60, n_features=400))
    assert sizes
    assert max(sizes) <= 60


@pytest.mark.parametrize("ranker", [rw.RankSVM, rw.PermuRank, rw.Regression])
def test_threads_give_the_same_bits(ranker):
    queries = wide_queries()
    serial, threads = (ranker(backend=backend).fit(queries) for backend in (rw.Serial(), rw.Threads(2)))
    np.testing.assert_array_equal(serial.coef_, threads.coef_)
