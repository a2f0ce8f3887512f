"""RankSVM: the objective, the path over C, and selection along it."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.reference.pairwise import differences
from tests.warned import may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.analysis import selection
from rankwright.objectives.pairwise_objectives import count_query_pairs
from rankwright.rankers import PathRanker
from rankwright.scorers.linear import StandardScaling

CS = (0.1, 1.0, 10.0, 100.0)


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(60, n_docs=20, n_features=10, random_state=0)


def objective(ranker, queries, deviation):
    """Recomputed from the raw weights, pair by pair."""
    D = differences(queries.X, queries.y, queries.indptr)
    u = np.maximum(1.0 - D @ ranker.coef_, 0.0) ** (2 if ranker.loss == "squared_hinge" else 1)
    pairs = count_query_pairs(queries.y, queries.indptr)
    weight = np.repeat(
        queries.query_weight / (np.maximum(pairs, 1) if ranker.pair_weighting == "query" else 1), pairs.astype(int)
    )
    w = ranker.coef_ * deviation
    return 0.5 * w @ w + ranker.C * (weight * u).sum() / weight.sum()


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("per", ["pair", "query"])
@pytest.mark.parametrize("scale", ["standard", None])
def test_the_objective_is_what_the_history_says(queries, loss, per, scale):
    weighted = rw.Queries(
        queries.X, queries.y, queries.indptr, queries.qid, weight=np.random.default_rng(0).random(len(queries))
    )
    ranker = rw.RankSVM(C=3.0, loss=loss, pair_weighting=per, scale=scale).fit(weighted)
    deviation = StandardScaling.fit(weighted).deviation if scale == "standard" else np.ones(10)
    last = ranker.history_[-1]
    assert last["objective"] == pytest.approx(objective(ranker, weighted, deviation), rel=1e-9)
    assert 0.0 <= last["gap"] <= 1e-6 * last["objective"]
    assert last["train"] == pytest.approx(ranker.score(weighted), abs=1e-12)
    rng = np.random.default_rng(1)
    for size in (1e-3, 1e-2, 0.1):  # a minimum: nothing near is lower
        other = rw.RankSVM(C=3.0, loss=loss, pair_weighting=per, scale=scale).fit(weighted)
        other.scorer_.coef[:] += size * rng.normal(size=10) * np.abs(ranker.coef_)
        assert objective(other, weighted, deviation) > last["objective"] - last["gap"]


@may_not_converge
def test_the_history(queries):
    for loss in ("hinge", "squared_hinge"):
        ranker = rw.RankSVM(C=100.0, loss=loss).fit(queries, valid=queries)
        rows = ranker.history_
        assert [row["round"] for row in rows] == list(range(len(rows)))
        names = {"round", "loss", "objective", "gap", "train", "valid"}
        assert set(rows[0]) == (names | {"smoothing"} if loss == "hinge" else names)
        assert all(row["objective"] >= rows[-1]["objective"] for row in rows)
        json.dumps(rows, allow_nan=False)
    assert len(rw.RankSVM(max_iter=1).fit(queries).history_) <= 3


def test_query_weights_and_per_query_means(queries):
    """Under pair_weighting="query" a query and its copies in one query's guise do not count more."""
    copied = queries.take(np.repeat(np.arange(len(queries)), 2))
    weighted = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=np.full(len(queries), 2.0))
    for per in ("pair", "query"):
        fits = [rw.RankSVM(pair_weighting=per, tol=1e-10).fit(each).coef_ for each in (queries, copied, weighted)]
        assert fits[1] == pytest.approx(fits[0], rel=1e-3, abs=1e-9)
        assert fits[2] == pytest.approx(fits[0], rel=1e-3, abs=1e-9)
    by_pair, by_query = rw.RankSVM(pair_weighting="pair").fit(queries), rw.RankSVM(pair_weighting="query").fit(queries)
    assert by_pair.coef_ != pytest.approx(by_query.coef_, rel=0.01)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
def test_a_path_equals_cold_fits(queries, loss):
    values = (10.0, 0.1, 100.0, 1.0)  # any order
    path = rw.RankSVM(loss=loss).fit_path(values, queries, valid=queries)
    assert [ranker.C for ranker in path] == list(values)
    for ranker in path:
        cold = rw.RankSVM(loss=loss, C=ranker.C).fit(queries, valid=queries)
        assert ranker.history_[-1]["objective"] == pytest.approx(cold.history_[-1]["objective"], rel=2e-6)
        scale = np.abs(cold.predict(queries)).max()
        assert ranker.predict(queries) == pytest.approx(cold.predict(queries), abs=0.01 * scale)
        assert ranker.to_model().params["C"] == ranker.C
        assert (ranker.n_features_in_, ranker.n_queries_) == (10, 60)


def test_a_path_from_arrays(queries):
    ranker = rw.RankSVM(scale="query")
    path = ranker.fit_path([1.0, 2.0], queries.X, queries.y, qid=queries.row_qid)
    assert not hasattr(ranker, "model_")
    assert isinstance(ranker, PathRanker)
    for each in path:
        expected = rw.RankSVM(scale="query", C=each.C).fit(queries).predict(queries)
        found = each.predict(queries.X, qid=queries.row_qid)
        assert found == pytest.approx(expected, abs=0.01 * np.abs(expected).max())
    assert ranker.fit_path([], queries) == []
    with pytest.raises(rw.InputError, match="C=-1"):
        ranker.fit_path([1.0, -1], queries)


class TestSelection:
    def test_along_a_path_it_chooses_as_one_by_one(self, queries, monkeypatch):
        train, valid = queries.take(range(40)), queries.take(range(40, 60))
        grid = {"C": list(CS), "loss": ["squared_hinge", "hinge"], "pair_weighting": ["query", "pair"]}
        calls = []
        fit_path = rw.RankSVM.fit_path

        def counted(self, values, *args, **kwargs):
            calls.append((self.loss, self.pair_weighting, tuple(values)))
            return fit_path(self, values, *args, **kwargs)

        monkeypatch.setattr(rw.RankSVM, "fit_path", counted)
        chosen = rw.select(rw.RankSVM(), grid, train, valid, measure="map")
        assert sorted(calls) == sorted((loss, each, CS) for loss in grid["loss"] for each in grid["pair_weighting"])
        with monkeypatch.context() as patch:
            patch.setattr(selection, "_find_path", lambda ranker, combinations, at: [at])
            one_by_one = rw.select(rw.RankSVM(), grid, train, valid, measure="map")
        assert len(calls) == 4
        assert [{**row, "value": 0} for row in chosen.selection_] == [
            {**row, "value": 0} for row in one_by_one.selection_
        ]
        found, expected = ([row["value"] for row in each.selection_] for each in (chosen, one_by_one))
        assert found == pytest.approx(expected, abs=0.01)
        assert (chosen.C, chosen.loss, chosen.pair_weighting) == (
            one_by_one.C,
            one_by_one.loss,
            one_by_one.pair_weighting,
        )
        assert chosen.selection_[found.index(max(found))]["C"] == chosen.C

    def test_several_grids_and_one_value(self, queries):
        grids = [{"C": [1.0, 10.0]}, {"loss": ["squared_hinge"]}, {"C": [5.0], "pair_weighting": ["query"]}]
        chosen = rw.select(rw.RankSVM(), grids, queries, queries)
        tried = [{name: row[name] for name in row if name != "value"} for row in chosen.selection_]
        assert tried == [{"C": 1.0}, {"C": 10.0}, {"loss": "squared_hinge"}, {"C": 5.0, "pair_weighting": "query"}]

    def test_the_first_of_equals(self, queries):
        chosen = rw.select(rw.RankSVM(), {"C": [3.0, 1e-9, 1e-10, 3.0]}, queries, queries)
        values = [row["value"] for row in chosen.selection_]
        assert values[1] == values[2]  # both are the mean difference of pairs, whatever its size
        assert chosen.selection_[values.index(max(values))]["C"] == chosen.C


class TestDegenerate:
    @may_learn_nothing
    def test_without_pairs_the_weights_are_zero(self):
        rng = np.random.default_rng(0)
        for y, qid in ((np.ones(6), np.zeros(6)), (np.arange(6), np.arange(6))):
            ranker = rw.RankSVM().fit(rng.normal(size=(6, 3)), y, qid=qid)
            assert ranker.coef_.tolist() == [0.0, 0.0, 0.0]
            assert ranker.history_[-1]["gap"] == 0.0

    def test_constant_features_get_no_weight(self):
        rng = np.random.default_rng(0)
        X = np.column_stack([rng.normal(size=30), np.full(30, 7.3)])
        for scale in ("standard", None):
            ranker = rw.RankSVM(scale=scale).fit(X, rng.integers(0, 3, 30), qid=np.repeat(np.arange(3), 10))
            assert ranker.coef_[1] == 0.0
            assert ranker.coef_[0] != 0.0

    def test_a_query_without_pairs_changes_nothing(self, queries):
        few = queries.take(range(10))
        y = np.concatenate([few.y, np.full(4, 2.0)])
        X = np.concatenate([few.X, few.X[:4]])
        more = rw.Queries.from_arrays(X, y, np.concatenate([few.row_qid, np.full(4, 999)]))
        for per in ("pair", "query"):
            fits = [rw.RankSVM(pair_weighting=per, scale=None, C=1.0).fit(each) for each in (few, more)]
            assert fits[0].history_[-1]["objective"] == pytest.approx(fits[1].history_[-1]["objective"], rel=2e-6)

    def test_perfectly_separable(self):
        queries = rw.Queries.from_arrays([[3.0], [1.0], [2.0], [0.0]], [1, 0, 1, 0], qid=[1, 1, 2, 2])
        ranker = rw.RankSVM(C=1e5, scale=None).fit(queries)
        assert ranker.coef_ == pytest.approx([0.5], rel=1e-5)  # margins of exactly 1
        assert ranker.history_[-1]["loss"] == pytest.approx(0.0, abs=1e-6)

    def test_bad_parameters(self, queries):
        cases = {"C": -1.0, "tol": "x", "max_iter": 0, "loss": "logistic", "pair_weighting": "document", "scale": "max"}
        for name, value in cases.items():
            with pytest.raises(rw.InputError, match=f"{name}="):
                rw.RankSVM(**{name: value}).fit(queries)
