"""SVMMap and SVMNDCG: the objective against listing all rankings, its minimum, paths over C and selection."""

from __future__ import annotations

import json

import numpy as np
import pytest
from tests.conftest import data_folder, random_queries
from tests.reference import bounds as reference
from tests.warned import may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.analysis import selection
from rankwright.objectives import rankings as searching
from rankwright.objectives.upper_bounds import Basic
from rankwright.scorers.linear import StandardScaling

#: Rankers, the measure that they train on, and which rankings are perfect.
TRAINED = {
    "map": (rw.SVMMap(tol=1e-6), "map", "measure"),
    "map(rel=2)": (rw.SVMMap(tol=1e-6, measure="map(rel=2)"), "map(rel=2)", "measure"),
    "ndcg": (rw.SVMNDCG(tol=1e-6), "ndcg", "grades"),
    "ndcg@3": (rw.SVMNDCG(tol=1e-6, k=3), "ndcg@3", "grades"),
}
trained = pytest.mark.parametrize(("ranker", "name", "perfect"), TRAINED.values(), ids=TRAINED)
both = pytest.mark.parametrize("kind", [rw.SVMMap, rw.SVMNDCG])


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(40, n_docs=15, n_features=8, random_state=0)


@pytest.fixture(scope="module")
def short():
    """Lists of which all rankings can be listed, with weights."""
    rng = np.random.default_rng(3)
    found = random_queries(rng, m=14, most=5)
    return rw.Queries(found.X, found.y, found.indptr, found.qid, weight=rng.uniform(0.2, 2.0, 14))


def mean_bound(queries, coef, name, perfect):
    """The mean over queries of eq. (10), every ranking listed."""
    values = [
        reference.type_two(name, tuple(queries.y[r].tolist()), queries.X[r].astype(float) @ coef, "margin", "max", "pairs", perfect)
        for r in queries
    ]  # fmt: skip
    return float(np.average(values, weights=queries.query_weight))


def objective(queries, coef, factor, C, name, perfect):
    w = np.divide(coef, factor, out=np.zeros_like(coef), where=factor > 0)
    return 0.5 * w @ w + C * mean_bound(queries, coef, name, perfect)


@trained
@pytest.mark.parametrize("C", [0.1, 3.0, 100.0])
@pytest.mark.parametrize("scale", ["standard", None])
def test_the_objective_is_the_bound_of_all_rankings_and_nothing_near_is_lower(short, ranker, name, perfect, C, scale):
    fitted = type(ranker)(**{**ranker.get_params(), "C": C, "scale": scale}).fit(short)
    factor = StandardScaling.fit(short).factor if scale == "standard" else np.ones(4)
    last, coef = fitted.history_[-1], fitted.coef_
    assert last["loss"] == pytest.approx(mean_bound(short, coef, name, perfect), rel=1e-9)
    assert last["objective"] == pytest.approx(objective(short, coef, factor, C, name, perfect), rel=1e-9)
    assert 0 <= last["gap"] <= 1e-6 * last["objective"]
    lowest, rng = last["objective"] - last["gap"], np.random.default_rng(0)
    sizes = (1e-3, 0.03, 0.3, 1.0)
    others = [coef + size * rng.normal(size=4) * max(np.abs(coef).max(), 0.01) for size in sizes for _ in range(4)]
    for other in [*others, 0 * coef, 0.9 * coef, 1.1 * coef]:
        assert objective(short, other, factor, C, name, perfect) >= lowest * (1 - 1e-9)


@trained
def test_the_loss_bounds_what_is_lost(queries, ranker, name, perfect):
    """Theorem 2 at the solution."""
    for C in (0.1, 10.0):
        fitted = type(ranker)(**{**ranker.get_params(), "C": C}).fit(queries)
        basic = Basic(rw.parse_measure(name)).prepare(queries).at(fitted.predict(queries)).values
        assert fitted.history_[-1]["loss"] >= basic.mean()


@may_not_converge
@both
def test_the_history(queries, kind):
    ranker = kind(C=10.0).fit(queries, valid=queries)
    rows = ranker.history_
    assert [row["round"] for row in rows] == list(range(len(rows)))
    assert set(rows[0]) == {"round", "loss", "objective", "gap", "planes", "train", "valid"}
    assert (np.diff([row["objective"] for row in rows]) <= 0).all()
    assert rows[-1]["gap"] <= ranker.tol * rows[-1]["objective"]
    assert all(row["gap"] > ranker.tol * row["objective"] for row in rows[:-1])
    assert rows[-1]["train"] == pytest.approx(ranker.score(queries), abs=1e-12)
    json.dumps(rows, allow_nan=False)
    assert len(kind(C=10.0, max_iter=2).fit(queries).history_) == 3


@both
@pytest.mark.parametrize("C", [0.03, 1.0, 100.0])
def test_starting_at_adarank_ends_at_the_same_value(queries, kind, C):
    found = [kind(C=C, start=start).fit(queries) for start in ("zero", "adarank")]
    zero, adarank = (ranker.history_[-1] for ranker in found)
    assert adarank["objective"] == pytest.approx(zero["objective"], abs=max(zero["gap"], adarank["gap"]) + 1e-12)
    first = found[1].history_[0]
    assert first["objective"] <= found[0].history_[0]["objective"] * (1 + 1e-6)  # no worse than nothing


def test_adarank_is_trained_on_what_the_bound_is_of(queries, monkeypatch):
    asked = []
    fit = rw.AdaRank.fit
    monkeypatch.setattr(rw.AdaRank, "fit", lambda self, *a, **k: asked.append(str(self.measure)) or fit(self, *a, **k))
    rw.SVMMap(start="adarank", measure="ndcg@5").fit(queries)
    rw.SVMMap(start="adarank", measure="map(rel=2)").fit(queries)
    rw.SVMNDCG(start="adarank", measure="map").fit(queries)
    rw.SVMNDCG(start="adarank", k=3).fit(queries)
    assert [each.split("(")[0] for each in asked] == ["map", "map", "ndcg", "ndcg@3"]
    assert "rel=2" in asked[1]


class TestMeasure:
    def test_what_is_relevant_is_the_measures_choice(self, queries):
        by_rel = {rel: rw.SVMMap(C=1.0, measure=f"map(rel={rel})").fit(queries) for rel in (1, 2)}
        y = (queries.y >= 2).astype(float)
        binary = rw.Queries(queries.X, y, queries.indptr, queries.qid)
        assert by_rel[2].coef_ == pytest.approx(rw.SVMMap(C=1.0).fit(binary).coef_, rel=1e-3, abs=1e-6)
        assert by_rel[1].coef_.tobytes() == rw.SVMMap(C=1.0).fit(queries).coef_.tobytes()
        assert by_rel[1].coef_ != pytest.approx(by_rel[2].coef_, rel=0.01)

    def test_other_measures_report_and_select(self, queries):
        """A cut-off, and NDCG, change what is reported and nothing of what is learned."""
        plain = rw.SVMMap(C=1.0).fit(queries, valid=queries)
        for name in ("ndcg@10", "ap@5", "mrr"):
            other = rw.SVMMap(C=1.0, measure=name).fit(queries, valid=queries)
            assert other.coef_.tobytes() == plain.coef_.tobytes()
            assert other.history_[-1]["valid"] == pytest.approx(
                rw.parse_measure(name).mean(queries, plain.predict(queries))
            )
            assert other.history_[-1]["loss"] == plain.history_[-1]["loss"]
        plain = rw.SVMNDCG(C=1.0).fit(queries)
        assert rw.SVMNDCG(C=1.0, measure="map").fit(queries).coef_.tobytes() == plain.coef_.tobytes()
        assert rw.SVMNDCG(C=1.0, k=3).fit(queries).coef_.tobytes() != plain.coef_.tobytes()

    def test_a_users_measure_reports(self, queries):
        own = rw.make_measure(lambda grades: float(grades[0] > 0), name="first_is_relevant")
        ranker = rw.SVMMap(C=1.0, measure=own).fit(queries)
        assert ranker.coef_.tobytes() == rw.SVMMap(C=1.0).fit(queries).coef_.tobytes()


class TestPaths:
    @both
    def test_a_path_equals_cold_fits(self, queries, kind):
        values = (10.0, 0.1, 100.0, 1.0)  # any order
        path = kind().fit_path(values, queries, valid=queries)
        assert [ranker.C for ranker in path] == list(values)
        for ranker in path:
            cold = kind(C=ranker.C).fit(queries, valid=queries)
            warm, last = ranker.history_[-1], cold.history_[-1]
            assert warm["gap"] <= ranker.tol * warm["objective"]
            assert warm["objective"] == pytest.approx(last["objective"], abs=max(warm["gap"], last["gap"]) + 1e-12)
            w, v = (each.coef_ / StandardScaling.fit(queries).factor.clip(1e-12) for each in (ranker, cold))
            assert np.linalg.norm(w - v) <= np.sqrt(2 * warm["gap"]) + np.sqrt(2 * last["gap"]) + 1e-9
            assert ranker.to_model().params["C"] == ranker.C
        assert sum(len(ranker.history_) for ranker in path) <= sum(
            len(kind(C=C).fit(queries).history_) for C in values
        )  # warm starts save rounds

    def test_selection_follows_the_path(self, queries, monkeypatch):
        train, valid = queries.take(range(25)), queries.take(range(25, 40))
        grid, calls = {"C": [0.03, 1.0, 30.0]}, []
        fit_path = rw.SVMMap.fit_path

        def counted(self, values, *args, **kwargs):
            calls.append(tuple(values))
            return fit_path(self, values, *args, **kwargs)

        monkeypatch.setattr(rw.SVMMap, "fit_path", counted)
        chosen = rw.select(rw.SVMMap(tol=1e-7), grid, train, valid)
        assert calls == [(0.03, 1.0, 30.0)]
        monkeypatch.setattr(selection, "_find_path", lambda ranker, combinations, at: [at])
        one_by_one = rw.select(rw.SVMMap(tol=1e-7), grid, train, valid)
        assert chosen.C == one_by_one.C
        found, expected = ([row["value"] for row in each.selection_] for each in (chosen, one_by_one))
        assert found == pytest.approx(expected, abs=0.01)
        assert chosen.selection_[found.index(max(found))]["C"] == chosen.C
        assert chosen.score(valid) == pytest.approx(max(found))

    @may_learn_nothing
    def test_larger_C_has_a_lower_loss(self, queries):
        path = rw.SVMMap().fit_path([0.0, 0.01, 0.1, 1.0, 10.0, 100.0], queries)
        losses = [ranker.history_[-1]["loss"] for ranker in path]
        slack = [ranker.history_[-1]["gap"] / ranker.C for ranker in path[1:]]
        assert all(b <= a + s for a, b, s in zip(losses[:-1], losses[1:], slack, strict=True))
        assert losses[-1] < losses[0]
        assert path[0].coef_.tolist() == [0.0] * 8


class TestSearches:
    """The most violated ranking under NDCG, by lattice and by assignment."""

    def test_assignments_and_lattices_end_at_the_same_value(self, queries, monkeypatch):
        last = {}
        for name, few in (("lattice", 1 << 30), ("assignment", 0), ("both", 1 << 8)):
            monkeypatch.setattr(searching, "_FEW_NODES", few)
            last[name] = rw.SVMNDCG(C=10.0).fit(queries).history_[-1]
        for name in ("assignment", "both"):
            slack = last[name]["gap"] + last["lattice"]["gap"]
            assert last[name]["objective"] == pytest.approx(last["lattice"]["objective"], abs=slack)

    def test_both_are_used(self, queries, monkeypatch):
        calls = []
        assign = searching.assign_ranks
        monkeypatch.setattr(searching, "assign_ranks", lambda *a: calls.append(len(a[7])) or assign(*a))
        monkeypatch.setattr(searching, "_FEW_NODES", 1 << 8)
        rw.SVMNDCG(C=1.0).fit(queries)
        assert calls
        assert max(calls) < len(queries)

    @may_learn_nothing
    def test_a_short_cut_off_has_its_least_bound_at_zero(self):
        """As the docstring warns: the first documents' pairs hardly move F."""
        queries = rw.make_queries(30, n_docs=60, n_features=6, random_state=0)
        assert np.abs(rw.SVMNDCG(C=0.1, k=1).fit(queries).predict(queries)).max() < 1e-6
        assert np.abs(rw.SVMNDCG(C=0.1).fit(queries).predict(queries)).max() > 1e-3

    def test_zero_is_certified_for_every_C_and_the_warning_has_the_way_out(self):
        """No weights put relevant documents above the ten best others, in the mean; DORM learns from them."""
        queries = rw.make_queries(40, n_docs=120, n_features=10, noise=2.0, random_state=0)
        for C in (0.1, 1e5):
            with pytest.warns(rw.DegenerateModelWarning, match=r"leave k out, or try DORM\(k=10\)"):
                ranker = rw.SVMNDCG(C=C, k=10).fit(queries)
            last = ranker.history_[-1]
            assert not ranker.coef_.any()
            assert last["gap"] <= 1e-4 * last["objective"]
        assert rw.DORM(C=10.0, k=10).fit(queries).score(queries) > rw.SVMNDCG().fit(queries).score(queries)


class TestDegenerate:
    @may_learn_nothing
    @both
    def test_without_a_query_that_counts(self, kind):
        X = np.random.default_rng(0).normal(size=(6, 3))
        for y, qid in ((np.ones(6), np.zeros(6)), (np.arange(6), np.arange(6)), (np.zeros(6), [0, 0, 0, 1, 1, 1])):
            for start in ("zero", "adarank"):
                ranker = kind(C=10.0, start=start).fit(X, y, qid=qid)
                assert ranker.coef_.tolist() == [0.0, 0.0, 0.0]
                assert (ranker.history_[-1]["objective"], ranker.history_[-1]["gap"]) == (0.0, 0.0)

    @may_learn_nothing
    @both
    @pytest.mark.parametrize("start", ["zero", "adarank"])
    def test_no_weight_of_the_loss(self, queries, kind, start):
        ranker = kind(C=0.0, start=start).fit(queries)
        assert ranker.coef_.tolist() == [0.0] * 8
        assert ranker.history_[-1]["gap"] == 0.0

    @both
    @pytest.mark.parametrize("scale", ["standard", None, "query"])
    def test_constant_features_get_no_weight(self, kind, scale):
        rng = np.random.default_rng(0)
        y = rng.integers(0, 3, 30)
        X = np.column_stack([y + rng.normal(size=30), np.full(30, 7.3)])
        ranker = kind(C=10.0, scale=scale).fit(X, y, qid=np.repeat(np.arange(3), 10))
        assert ranker.coef_[1] == 0.0
        assert ranker.coef_[0] > 0.0

    @may_learn_nothing
    @both
    def test_features_that_are_constant_within_queries(self, kind):
        """They rank nothing: 0 is the optimum, and certified."""
        rng = np.random.default_rng(0)
        X, y = np.repeat(rng.normal(size=(8, 2)), 6, axis=0), rng.integers(0, 3, 48)
        ranker = kind(C=10.0).fit(X, y, qid=np.repeat(np.arange(8), 6))
        assert ranker.coef_ == pytest.approx([0, 0], abs=1e-6)
        assert ranker.history_[-1]["gap"] <= ranker.tol * ranker.history_[-1]["objective"]

    def test_a_query_that_does_not_count_weakens_the_others(self, queries):
        """The mean is over all queries, as in the paper: one more of no loss is a smaller C."""
        few = queries.take(range(10))
        X, y = np.concatenate([few.X, few.X[:4]]), np.concatenate([few.y, np.zeros(4)])
        more = rw.Queries.from_arrays(X, y, np.concatenate([few.row_qid, np.full(4, 999)]))
        found, expected = rw.SVMMap(C=11.0, scale=None).fit(more), rw.SVMMap(C=10.0, scale=None).fit(few)
        last, other = found.history_[-1], expected.history_[-1]
        assert last["objective"] == pytest.approx(other["objective"], abs=last["gap"] + other["gap"])

    def test_perfectly_separable(self):
        """Every pair of a relevant and an irrelevant document 2 apart; the hardest ranking swaps all: F falls by 4 w."""
        queries = rw.Queries.from_arrays([[3.0], [1.0], [2.0], [0.0]], [1, 0, 1, 0], qid=[1, 1, 2, 2])
        ranker = rw.SVMMap(C=1e3, scale=None, tol=1e-6).fit(queries)
        assert ranker.coef_ == pytest.approx([0.5 / 4], rel=1e-3)  # 1 - AP = 1/2 = F(b) - F(c) = 2 * 2 w
        assert ranker.history_[-1]["loss"] == pytest.approx(0.0, abs=1e-6)

    @both
    def test_bad_parameters(self, queries, kind):
        cases = {"C": -1.0, "tol": "x", "max_iter": 0, "start": "regression", "scale": "max"}
        for name, value in cases.items():
            with pytest.raises(rw.InputError, match=f"{name}="):
                kind(**{name: value}).fit(queries)
        with pytest.raises(rw.InputError, match="k=0"):
            rw.SVMNDCG(k=0).fit(queries)


@may_learn_nothing
@both
@pytest.mark.parametrize("seed", [32, 38, 58])
def test_few_queries_reach_the_gap_too(kind, seed):
    """One query or three, where the loss has few and sharp kinks."""
    for n_queries, n_docs in ((1, 4), (2, 6), (3, 5)):
        queries = rw.make_queries(n_queries, n_docs=n_docs, n_features=6, random_state=seed)
        for C in (1.0, 10.0, 100.0, 1e4):
            last = kind(C=C, max_iter=150).fit(queries).history_[-1]
            assert last["gap"] <= kind().tol * last["objective"]


@may_not_converge
@both
def test_bits_do_not_depend_on_threads(kind):
    queries = rw.make_queries(250, n_docs=50, n_features=6, random_state=1)
    assert len(rw.Serial().scatter(queries)) > 1
    found = [kind(C=1.0, max_iter=4, backend=backend).fit(queries) for backend in (rw.Serial(), rw.Threads(3))]
    assert found[0].coef_.tobytes() == found[1].coef_.tobytes()
    assert found[0].history_ == found[1].history_


def test_real_data():
    """OHSUMED's first fold is a matter of seconds."""
    fold = rw.read_folds(data_folder("OHSUMED"))[0]
    ranker = rw.select(rw.SVMMap(measure="map(dialect=letor3)"), {"C": [0.1, 1.0]}, fold.train, fold.valid)
    last = ranker.history_[-1]
    assert last["gap"] <= 1e-4 * last["objective"]
    assert ranker.score(fold.test) > 0.3


def test_gains_are_the_measures():
    queries = rw.make_queries(10, n_docs=10, random_state=0)
    exp, linear = (rw.SVMNDCG(measure=m).fit(queries) for m in ("ndcg@5", "ndcg@5(gain=linear)"))
    assert not np.allclose(exp.coef_, linear.coef_, rtol=1e-3)
    high = rw.Queries.from_arrays(queries.X, queries.y * 50, queries.row_qid)
    with pytest.raises(rw.InputError, match="use gain=linear"):
        rw.SVMNDCG(measure="map").fit(high)
    assert rw.SVMNDCG(measure="ndcg@5(gain=linear)").fit(high).coef_.any()


def test_a_path_has_one_answer_for_a_value():
    queries = rw.make_queries(10, n_docs=10, random_state=0)
    first, small, again = rw.SVMNDCG().fit_path((C for C in (1.0, 0.1, 1.0)), queries)
    assert first.coef_.tobytes() == again.coef_.tobytes()
    assert (first.C, small.C, again.C) == (1.0, 0.1, 1.0)


@pytest.mark.parametrize(
    "C",
    [
        pytest.param(10**400, id="huge"),
        pytest.param(-(10**5000), id="longer"),
        float("inf"),
        float("nan"),
        -1,
        "much",
        None,
        True,
    ],
)
def test_strengths_that_are_none(C):
    with pytest.raises(rw.InputError, match="expected a finite number of at least 0"):
        rw.SVMMap(C=C).fit(rw.make_queries(3, random_state=0))


@may_not_converge
def test_features_of_any_size_end():
    """Raw features of 1e8 make C = 0.1 next to endless: whatever is certified, it ends."""
    queries = rw.make_queries(6, n_docs=10, n_features=4, random_state=0)
    history = rw.SVMMap(scale=None, C=0.1).fit(queries.with_X(queries.X * 1e8)).history_
    assert len(history) < 200
    assert history[-1]["objective"] < history[0]["objective"]
