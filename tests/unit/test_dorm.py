"""DORM: its bound against listing all rankings, the stages of its search, measures, starts and parameters."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from scipy.optimize import linear_sum_assignment
from tests.conftest import random_queries
from tests.reference import bounds
from tests.reference import dorm as twin
from tests.scored import by_query, problems
from tests.warned import may_learn_nothing, may_not_converge

import rankwright as rw
from rankwright.objectives.position_bound import PositionBound
from rankwright.objectives.upper_bounds import Basic, UpperBound
from rankwright.optimisers.convex_stages import minimise_in_stages
from rankwright.optimisers.cutting_plane import minimise_by_cutting_planes
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.scorers.linear import StandardScaling

SUMS = ["ndcg", "ndcg@1", "ndcg@3", "dcg@2", "p@2", "recall@2", "rbp@3", "ndcg@3(gain=pow2)"]
SHAPES = [(0.25, None), (1.0, None), (0.25, 2), (1.0, 3)]


@pytest.fixture(scope="module")
def queries():
    return rw.make_queries(40, n_docs=15, n_features=8, random_state=0)


def make_risk(queries, bound):
    backend, factor = rw.Serial(), StandardScaling.fit(queries).factor
    return LinearRisk(bound, backend.scatter(queries), factor, float(queries.query_weight.sum()), backend), factor


class TestBound:
    @pytest.mark.parametrize("name", SUMS)
    @settings(max_examples=25, deadline=None)
    @given(problem=problems(most=6))
    def test_it_is_that_of_all_rankings(self, name, problem):
        queries, scores = problem
        measure = rw.parse_measure(name)
        for decay, k in SHAPES:
            found = PositionBound(measure, decay, k).prepare(queries).at(scores)
            assert found.exact.all()
            for q, (_, grades, s) in enumerate(by_query(queries, scores)):
                near = pytest.approx(twin.bound(name, grades, s, decay, k), rel=1e-9, abs=1e-9 * max(1, *np.abs(s)))
                assert found.values[q] == near

    @pytest.mark.parametrize("name", ["ndcg", "ndcg@3", "p@2"])
    def test_seven_documents_with_ties(self, name):
        rng = np.random.default_rng(1)
        for _ in range(3):
            y, s = rng.integers(0, 3, 7), rng.integers(-2, 3, 7) / 2
            queries = rw.Queries.from_arrays(np.zeros((7, 1)), y, np.zeros(7))
            found = PositionBound(rw.parse_measure(name)).prepare(queries).at(s).values
            assert found == pytest.approx([twin.bound(name, y.tolist(), s)], abs=1e-9)

    @pytest.mark.parametrize("name", ["ndcg", "ndcg@10", "rbp"])
    @pytest.mark.parametrize("k", [None, 10])
    def test_long_lists_against_scipy(self, name, k):
        rng = np.random.default_rng(0)
        sizes = [30, 45, 60]
        y = rng.integers(0, 4, sum(sizes)) * (rng.random(sum(sizes)) < 0.5)
        queries = rw.Queries.from_arrays(np.zeros((len(y), 1)), y, np.repeat(np.arange(3), sizes))
        prepared = PositionBound(rw.parse_measure(name), 0.25, k).prepare(queries)
        arrays = prepared.rankings.arrays
        for size in (0.0, 0.02, 0.3, 1.0, 30.0):
            scores = np.round(size * rng.normal(size=len(y)), 2)
            found = prepared.at(scores).values
            for q, rows in enumerate(queries):
                g, s, n = arrays.gain[rows], scores[rows], rows.stop - rows.start
                d, c = np.append(arrays.discount[:n], np.zeros(n))[:n], twin.weights(n, 0.25, k)
                worth = np.outer(s, c) - np.outer(g, d / (np.sort(g)[::-1] @ d))
                best = worth[linear_sum_assignment(worth, maximize=True)].sum()
                expected = 1 + best - c @ s[np.lexsort((-s, -g))]
                assert found[q] == pytest.approx(expected, abs=1e-9)

    @settings(max_examples=25, deadline=None)
    @given(problem=problems(most=8))
    def test_it_bounds_the_loss_and_a_fixed_reference_bounds_it(self, problem):
        queries, scores = problem
        rng = np.random.default_rng(0)
        prepared = PositionBound(rw.parse_measure("ndcg@3")).prepare(queries)
        values = prepared.at(scores).values
        assert (values >= Basic(rw.parse_measure("ndcg@3")).prepare(queries).at(scores).values - 1e-9).all()
        assert prepared.fix_ranking(scores).at(scores).values == pytest.approx(values, abs=1e-9)
        other = rng.normal(size=len(scores))
        fixed = prepared.fix_ranking(other)
        assert (fixed.at(scores).values >= values - 1e-9).all()
        middle = fixed.at(0.5 * (scores + other)).values
        assert (middle <= 0.5 * (fixed.at(scores).values + fixed.at(other).values) + 1e-9).all()  # convex

    def test_a_fixed_reference_against_all_rankings(self):
        rng = np.random.default_rng(2)
        for _ in range(10):
            y, s, other = rng.integers(0, 3, 5), rng.normal(size=5), rng.normal(size=5)
            queries = rw.Queries.from_arrays(np.zeros((5, 1)), y, np.zeros(5))
            fixed = PositionBound(rw.parse_measure("ndcg")).prepare(queries).fix_ranking(other)
            expected = twin.bound("ndcg", y.tolist(), s, reference=other)
            assert fixed.at(s).values == pytest.approx([expected], abs=1e-9)

    def test_the_gradient(self):
        rng = np.random.default_rng(0)
        y, scores = rng.integers(0, 3, 40), rng.normal(size=40)
        queries = rw.Queries.from_arrays(np.zeros((40, 1)), y, np.repeat(np.arange(4), 10), weight=rng.random(4))
        bound = PositionBound(rw.parse_measure("ndcg@5")).prepare(queries)
        step = 1e-6
        slopes = [(bound(scores + step * e).loss - bound(scores - step * e).loss) / (2 * step) for e in np.eye(40)]
        assert bound(scores).gradient == pytest.approx(slopes, abs=1e-6)

    @pytest.mark.parametrize("name", ["map", "err", "mrr"])
    def test_other_measures_are_refused(self, name):
        with pytest.raises(rw.InputError, match="not a sum over ranks"):
            PositionBound(rw.parse_measure(name))


class TestSearch:
    @pytest.mark.parametrize("C", [0.1, 3.0, 100.0])
    @pytest.mark.parametrize("k", [None, 3])
    def test_the_objective_is_the_bound_of_all_rankings(self, C, k):
        """At the end; and with the last reference nothing near is lower."""
        rng = np.random.default_rng(3)
        found = random_queries(rng, m=14, most=5)
        short = rw.Queries(found.X, found.y, found.indptr, found.qid, weight=rng.uniform(0.2, 2.0, 14))
        name = "ndcg" if k is None else "ndcg@3"
        ranker = rw.DORM(C=C, k=k, tol=1e-6, measure="ndcg").fit(short)
        factor, last = StandardScaling.fit(short).factor, ranker.history_[-1]

        def objective(coef, reference=None):
            values = []
            for rows in short:
                s = short.X[rows].astype(float) @ coef
                b = None if reference is None else short.X[rows].astype(float) @ reference
                values.append(twin.bound(name, short.y[rows].tolist(), s, 0.25, k, b))
            w = np.divide(coef, factor, out=np.zeros_like(coef), where=factor > 0)
            return 0.5 * w @ w + C * np.average(values, weights=short.query_weight)

        coef = ranker.coef_
        assert objective(coef) <= last["objective"] * (1 + 1e-9)
        assert objective(coef) >= last["objective"] * (1 - 1e-5)
        lowest = last["objective"] - last["gap"]
        for size in (1e-3, 0.03, 0.3):
            for _ in range(4):
                other = coef + size * rng.normal(size=4) * max(np.abs(coef).max(), 0.01)
                assert objective(other, coef) >= min(lowest, objective(coef)) * (1 - 1e-5)

    def test_stages_never_rise(self, queries):
        rows = rw.DORM(C=10.0).fit(queries, valid=queries).history_
        assert set(rows[0]) == {"round", "loss", "objective", "gap", "planes", "stage", "train", "valid"}
        assert (np.diff([row["objective"] for row in rows]) <= 1e-12).all()
        stages = [row["stage"] for row in rows]
        assert stages[-1] >= 2
        assert set(np.diff(stages)) <= {0, 1}
        for last in (rows[i] for i in range(len(rows)) if i + 1 == len(rows) or stages[i + 1] > stages[i]):
            assert last["gap"] <= 1e-4 * last["objective"]

    def test_a_path_is_one_fit_for_each_value(self, queries):
        values = (10.0, 0.1, 1.0)
        for ranker in rw.DORM().fit_path(values, queries):
            assert ranker.coef_.tobytes() == rw.DORM(C=ranker.C).fit(queries).coef_.tobytes()

    def test_the_scale_of_the_start_does_not_matter(self, queries):
        risk, factor = make_risk(queries, PositionBound(rw.parse_measure("ndcg")))
        start = np.random.default_rng(0).normal(size=len(factor))
        ends = [list(minimise_in_stages(risk, 1.0, scale * start, tol=1e-6))[-1].primal for scale in (1e-3, 1.0, 1e3)]
        assert ends == pytest.approx([ends[1]] * 3, rel=1e-4)

    def test_an_arbitrary_order_of_equal_grades_leaves_less_to_learn(self):
        """As the docstring says of the paper's fixed ranking: its least loss is nearer to w = 0, and higher."""
        queries = rw.make_queries(30, n_docs=40, n_features=6, random_state=0)
        fixed, factor = make_risk(queries, _Arbitrary(rw.parse_measure("ndcg")))
        arbitrary = list(minimise_by_cutting_planes(fixed, 1.0))[-1]
        best = rw.DORM(C=1.0).fit(queries)
        assert best.history_[-1]["objective"] < 0.95 * arbitrary.primal
        assert np.linalg.norm(arbitrary.w) < 0.5 * np.linalg.norm(best.coef_ / factor)


class _Arbitrary(UpperBound):
    """The bound that compares with one arbitrary order of equal grades."""

    label = "arbitrary"

    def __init__(self, measure):
        self.measure = measure

    def prepare(self, part):
        scores = np.random.default_rng(0).normal(size=part.n_docs)
        return PositionBound(self.measure).prepare(part).fix_ranking(scores)


class TestMeasure:
    def test_what_is_trained_on(self):
        bound_of = {
            ("ndcg@10", None): "ndcg",
            ("ndcg@10", 5): "ndcg@5",
            ("p@5", None): "p@5",
            ("rbp", 3): "rbp@3",
            ("map", None): "ndcg",
            ("err@10", 3): "ndcg@3",
        }
        for (name, k), trained in bound_of.items():
            bound = rw.DORM(k=k).find_minimised_bound(rw.parse_measure(name))
            assert str(bound.measure).partition("(")[0] == trained
            assert bound.k == k

    def test_precision_is_learned_for_precision(self, queries):
        found = {name: rw.DORM(measure=name, C=1.0).fit(queries) for name in ("p@3", "ndcg", "map")}
        assert found["p@3"].coef_.tobytes() != found["ndcg"].coef_.tobytes()
        assert found["map"].coef_.tobytes() == found["ndcg"].coef_.tobytes()

    def test_the_loss_bounds_what_is_lost(self, queries):
        for k in (None, 3):
            ranker = rw.DORM(C=1.0, k=k).fit(queries)
            basic = Basic(rw.DORM(k=k).find_minimised_bound(ranker.measure_).measure).prepare(queries)
            assert ranker.history_[-1]["loss"] >= basic.at(ranker.predict(queries)).values.mean() - 1e-12

    def test_it_learns_a_ranking(self, queries):
        assert rw.DORM(C=1.0).fit(queries).score(queries) > rw.SingleFeature().fit(queries).score(queries)


class TestParameters:
    def test_starts(self, queries):
        ends = [
            rw.DORM(C=1.0, start=start).fit(queries).history_[-1]["objective"] for start in ("regression", "adarank")
        ]
        assert ends[0] == pytest.approx(ends[1], rel=0.05)
        with pytest.raises(rw.InputError, match="start='zero'"):
            rw.DORM(start="zero").fit(queries)

    def test_bad_parameters(self, queries):
        for name, value in {"C": -1.0, "tol": "x", "max_iter": 0, "k": 0, "decay": 0.0}.items():
            with pytest.raises(rw.InputError, match=f"{name}="):
                rw.DORM(**{name: value}).fit(queries)

    @may_learn_nothing
    def test_no_weight_of_the_loss(self, queries):
        assert not rw.DORM(C=0.0).fit(queries).coef_.any()

    @may_not_converge
    def test_few_rounds(self, queries):
        rows = rw.DORM(C=10.0, max_iter=2).fit(queries).history_
        assert len(rows) == 3
        with pytest.warns(match="max_iter=2"):
            rw.DORM(C=10.0, max_iter=2).fit(queries)

    @may_learn_nothing
    def test_without_a_query_that_counts(self):
        X = np.random.default_rng(0).normal(size=(6, 3))
        for y, qid in ((np.ones(6), np.zeros(6)), (np.arange(6), np.arange(6)), (np.zeros(6), [0, 0, 0, 1, 1, 1])):
            for start in ("regression", "adarank"):
                assert rw.DORM(C=10.0, start=start).fit(X, y, qid=qid).coef_.tolist() == [0.0, 0.0, 0.0]

    def test_weights_of_positions(self):
        listed = bounds.listing("ndcg", (1.0, 0.0, 2.0))
        assert twin.F(listed, [0.0, 0.0, 1.0], twin.weights(3, 1.0)).max() == 0.5
        assert twin.weights(3, 1.0, 2).tolist() == [1 / 2, 1 / 3, 0.0]

    def test_a_measure_that_hardly_tells_rankings_apart(self):
        """The start has no loss, and so do weights of 0: the cutting planes are flat."""
        queries = rw.make_queries(12, n_docs=8, n_features=4, random_state=0)
        ranker = rw.DORM(measure="rbp(p=0.999999)").fit(queries)
        assert ranker.history_[-1]["objective"] <= 1e-7
