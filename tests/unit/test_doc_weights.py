"""Document weights: sums over documents and pairs use them, other losses refuse them."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import rankwright as rw
from rankwright.basics.errors import InputError
from rankwright.data.queries import Queries
from rankwright.data.row_hashes import sort_by_content
from rankwright.objectives.objective_names import OBJECTIVES
from rankwright.objectives.pairwise_objectives import count_query_pairs, sort_by_grade
from rankwright.optimisers.weak import long_fidelity
from rankwright.rankers import RANKERS
from rankwright.runtime.backends import Serial

WEIGHTED = ("hinge", "squared_hinge", "squares", "logistic", "exponential", "fidelity")
RANKERS_WITH = ("FRank", "GBRank", "MART", "RankBoost", "RankNet", "RankSVM", "Regression")


def make(seed: int, n_queries: int = 6, scale: int = 3) -> tuple[Queries, Any]:
    """Return queries whose documents have the weights 0, 1, 2, ..., and scores."""
    queries = rw.make_queries(n_queries, n_docs=9, n_features=4, random_state=seed)
    rng = np.random.default_rng(seed)
    weight = rng.integers(0, scale, queries.n_docs).astype(float)
    return queries.replace(doc_weight=weight), rng.normal(size=queries.n_docs)


def repeat_documents(queries: Queries) -> tuple[Queries, Any]:
    """Return each document as often as its weight says, without weights, and the row that each is a copy of."""
    rows = np.repeat(np.arange(queries.n_docs), queries.doc_weight.astype(int))
    return Queries.from_arrays(queries.X[rows], queries.y[rows], queries.row_qid[rows]), rows


@pytest.mark.parametrize("name", WEIGHTED)
@pytest.mark.parametrize("seed", range(4))
def test_a_weight_of_two_is_a_document_twice_and_of_zero_none(name: str, seed: int) -> None:
    """A pair has the product of its documents' weights, as often as copies of the two make pairs."""
    queries, scores = make(seed)
    objectives = [OBJECTIVES[name]()]
    if name != "squares":
        objectives = [OBJECTIVES[name](way) for way in ("pair", "query")]  # type: ignore[call-arg]
    copies, rows = repeat_documents(queries)
    for objective in objectives:
        found = objective.prepare(queries)(scores)
        expected = objective.prepare(copies)(scores[rows])
        assert found.loss == pytest.approx(expected.loss, rel=1e-9)
        gradient = np.bincount(rows, expected.gradient, queries.n_docs)
        np.testing.assert_allclose(found.gradient, gradient, rtol=1e-9, atol=1e-12)
        if expected.curvature is not None:
            curvature = np.bincount(rows, expected.curvature, queries.n_docs)
            np.testing.assert_allclose(found.curvature, curvature, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", WEIGHTED)
def test_weights_of_one_change_nothing(name: str) -> None:
    queries, scores = make(0)
    plain, ones = queries.replace(doc_weight=None), queries.replace(doc_weight=np.ones(queries.n_docs))
    found, expected = OBJECTIVES[name]().prepare(ones)(scores), OBJECTIVES[name]().prepare(plain)(scores)
    np.testing.assert_allclose(found.gradient, expected.gradient, rtol=1e-14, atol=1e-15)
    assert found.loss == pytest.approx(expected.loss, rel=1e-14)


def test_a_document_without_weight_may_have_any_score() -> None:
    queries, scores = make(1)
    [none, *_] = np.flatnonzero(queries.doc_weight == 0.0)
    far = scores.copy()
    far[none] = 5000.0
    for name in ("exponential", "logistic", "hinge"):
        prepared = OBJECTIVES[name]().prepare(queries)
        if name != "exponential":  # whose sums are relative to the middle of the scores
            assert prepared(far).loss == pytest.approx(prepared(scores).loss, rel=1e-9)
        assert prepared(far).gradient[none] == 0.0


def test_pairs_are_counted_by_the_product_of_weights() -> None:
    found = count_query_pairs(np.array([0.0, 1.0, 1.0]), np.array([0, 3]), np.array([3.0, 0.5, 2.0]))
    assert found.tolist() == [3.0 * 0.5 + 3.0 * 2.0]


PARAMS: dict[str, dict[str, Any]] = {
    "Regression": {"scale": None},
    "RankSVM": {"scale": None, "tol": 1e-9},
    "RankNet": {"scale": None},
    "RankBoost": {"n_estimators": 10, "max_bins": None},
    "FRank": {"n_estimators": 6, "max_bins": None},
}


@pytest.mark.parametrize("name", PARAMS)
def test_rankers_learn_from_weights_as_from_copies(name: str) -> None:
    queries, _ = make(3, n_queries=20)
    copies, _ = repeat_documents(queries)
    cls, params = getattr(rw, name), PARAMS[name]
    weighted, repeated = cls(**params).fit(queries), cls(**params).fit(copies)
    if name in ("RankBoost", "FRank"):  # a document without weight may move a threshold
        rows = queries.doc_weight > 0
        steps = [[row["alpha"] for row in ranker.history_] for ranker in (weighted, repeated)]
        np.testing.assert_allclose(*steps, rtol=1e-6)
        np.testing.assert_allclose(weighted.predict(queries)[rows], repeated.predict(queries)[rows], rtol=1e-6)
    else:
        np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-7)
    assert (
        weighted.predict(queries).tolist()
        != cls(**params).fit(queries.replace(doc_weight=None)).predict(queries).tolist()
    )


def test_trees_take_the_weights_of_documents() -> None:
    queries, _ = make(0, n_queries=40)
    ranker = rw.MART(n_estimators=5).fit(queries)
    import lightgbm as lgb

    data = lgb.Dataset(queries.X, queries.y, group=queries.sizes, weight=queries.doc_weight)
    booster = lgb.train(ranker.lightgbm_params_, data, 5)
    assert ranker.predict(queries).tolist() == booster.predict(queries.X).tolist()
    plain = queries.replace(doc_weight=None)
    for objective in ("logistic", "exponential", "squares"):
        params: dict[str, Any] = {"objective": objective, "n_estimators": 5, "min_child_samples": 5}
        weighted = rw.BoostedTrees(**params).fit(queries)
        assert weighted.predict(queries).tolist() != rw.BoostedTrees(**params).fit(plain).predict(queries).tolist()
        tripled = rw.BoostedTrees(**params).fit(queries.replace(doc_weight=3.0 * queries.doc_weight))
        np.testing.assert_allclose(tripled.predict(queries), weighted.predict(queries), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("cls", RANKERS, ids=lambda cls: cls.__name__)
def test_rankers_of_other_losses_refuse_weights_with_the_reason(cls: type[Any]) -> None:
    queries, _ = make(0)
    ranker = cls()
    takes = ranker.takes_doc_weight(rw.NDCG(10))
    assert takes == (cls.__name__ in (*RANKERS_WITH, "AutoRanker", "Blend", "LinearRanker"))
    if not takes:
        with pytest.raises(InputError, match=f"the documents have weights; {cls.__name__}.*takes none: its loss"):
            ranker.fit(queries)


def test_an_objective_of_ones_own_says_whether_it_takes_weights() -> None:
    queries, _ = make(0)

    def squares(scores: Any, queries: Queries) -> Any:
        rest = queries.doc_weight * (scores - queries.y)
        return float((rest * (scores - queries.y)).sum()), 2.0 * rest

    with pytest.raises(InputError, match="takes_doc_weight"):
        rw.LinearRanker(objective=squares).fit(queries)
    squares.takes_doc_weight = True  # type: ignore[attr-defined]
    assert rw.LinearRanker(objective=squares).fit(queries).coef_.any()
    for name in set(OBJECTIVES) - set(WEIGHTED):
        with pytest.raises(InputError, match="takes none"):
            rw.LinearRanker(objective=name).fit(queries)


def test_long_queries_sum_weighted_pairs_by_modes() -> None:
    rng = np.random.default_rng(0)
    n = 2500
    queries = Queries.from_arrays(
        rng.normal(size=(n, 1)), rng.integers(0, 3, n), np.zeros(n, int), doc_weight=rng.random(n)
    )
    _, graded = sort_by_grade(queries, "query")
    before, moved = rng.integers(-64, 64, n) / 32.0, rng.random(n) < 0.5
    scores, codes = before + 0.25 * moved, rng.integers(0, 6, (1, n)).astype(np.uint8)
    starts, features = np.array([0, 8]), np.array([0])
    assert long_fidelity._find_long(graded, before, scores) == [0]
    potentials, direct = np.empty((2, n)), np.empty((2, n))
    totals = long_fidelity.sum_state(graded, before, scores, potentials)
    expected = long_fidelity.compute_fidelity_state(graded, before, scores, direct)
    np.testing.assert_allclose(totals[:2], expected[:2], rtol=1e-9)
    assert (totals[2:] >= expected[2:]).all()
    assert (totals[2:] <= 1.2 * expected[2:] + 1e-9).all()
    np.testing.assert_allclose(potentials, direct, atol=1e-12)
    out, other = np.zeros((2, 8)), np.zeros((2, 8))
    long_fidelity.sum_splits(graded, scores, codes, starts, features, out)
    long_fidelity.sum_split_pairs(graded, scores, codes, starts, features, other)
    np.testing.assert_allclose(out.cumsum(axis=1), other.cumsum(axis=1), atol=1e-10)
    stumps = np.zeros(3, int), np.array([1, 2, 4]), np.array([0.4, -0.2, 1.0])
    gains, slow = np.zeros(3), np.zeros(3)
    long_fidelity.sum_gains(graded, scores, codes, *stumps, gains)
    long_fidelity.compute_fidelity_gains(graded, scores, codes, *stumps, slow)
    np.testing.assert_allclose(gains, slow, atol=1e-10)


def test_the_order_of_rows_by_content_sees_weights() -> None:
    y, qid = [0, 0, 1], [1, 1, 1]
    X = np.ones((3, 1))
    one = Queries.from_arrays(X, y, qid, doc_weight=[1.0, 2.0, 3.0])
    other = Queries.from_arrays(X[:, :], [1, 0, 0], qid, doc_weight=[3.0, 2.0, 1.0])
    first, second = (sort_by_content(each, Serial()) for each in (one, other))
    assert first.doc_weight.tolist() == second.doc_weight.tolist()


def test_torch_losses_follow() -> None:
    rt = pytest.importorskip("rankwright.torch")
    import torch

    from rankwright.torch.batches import DeviceLabels, QueryRows

    queries, scores = make(2)
    for name in WEIGHTED:
        objective = OBJECTIVES[name]()
        loss = rt.make_loss(objective)
        assert loss is not None
        at = torch.arange(len(queries))
        rows, mask = QueryRows(queries.indptr, "cpu").pad(at, int(queries.sizes.max()))
        labels = DeviceLabels(loss.compute_labels(queries), "cpu", torch.float64)
        batch = labels.gather(at, rows, mask, labels.max_width(np.arange(len(queries))))
        values, slopes = loss.evaluate_in_parts(torch.as_tensor(scores)[rows], batch)
        expected = objective.prepare(queries)(scores)
        assert float(values.sum()) == pytest.approx(expected.loss, rel=1e-9)
        np.testing.assert_allclose(slopes[mask].numpy(), expected.gradient, rtol=1e-8, atol=1e-10)


def test_fit_names_the_way_to_weight_documents() -> None:
    queries, _ = make(0)
    with pytest.raises(InputError, match="fit takes no sample_weight; documents are weighted by"):
        rw.RankNet().fit(queries.X, queries.y, qid=queries.row_qid, sample_weight=queries.doc_weight)
    with pytest.raises(TypeError, match="unexpected keyword argument 'groups'"):
        rw.RankNet().fit(queries.X, queries.y, qid=queries.row_qid, groups=queries.row_qid)
