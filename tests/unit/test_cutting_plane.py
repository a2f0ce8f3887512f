"""Cutting planes against independent solutions: a QP over all rankings, SciPy's minimisers, formulas."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize, minimize_scalar
from tests.conftest import random_queries
from tests.reference.permurank import Query

import rankwright as rw
from rankwright.objectives.upper_bounds import TypeTwo
from rankwright.optimisers import cutting_plane as module
from rankwright.optimisers.cutting_plane import find_best_scale, minimise_by_cutting_planes
from rankwright.optimisers.linear_risk import LinearRisk
from rankwright.optimisers.loss_protocols import CuttingPlane
from rankwright.scorers.linear import StandardScaling

STRENGTHS = [1e-3, 0.1, 1.0, 30.0, 1e4]


class Simple:
    """A risk of which a place is its weights."""

    def evaluate(self, w):
        return np.array(w)

    def interpolate(self, place, other, t):
        return place + t * (other - place)

    def derivative_between(self, place, start, end):
        return float(self.linearise(place).slope @ (end - start))


class Highest(Simple):
    """The mean over groups of the highest of some planes, or of 0: any piecewise linear loss, plane by plane."""

    def __init__(self, offsets, slopes, weight):
        self.offsets, self.slopes, self.weight = offsets, slopes, np.asarray(weight) / np.sum(weight)
        self.n_features = slopes[0].shape[1]

    def loss(self, w):
        return float(sum(v * max((b + A @ w).max(), 0) for b, A, v in self._groups))

    def linearise(self, w):
        offset, slope = 0.0, np.zeros(self.n_features)
        for b, A, v in self._groups:
            at = int(np.argmax(b + A @ w))
            if b[at] + A[at] @ w > 0:
                offset, slope = offset + v * b[at], slope + v * A[at]
        return CuttingPlane(offset, slope)

    @property
    def _groups(self):
        return zip(self.offsets, self.slopes, self.weight, strict=True)

    def minimum(self, C):
        """By a QP with a slack a group and every plane a constraint: w and the value there, and what bounds it."""
        m, d = len(self.weight), self.n_features
        size = 1 / max(1.0, C)  # of the objective, for the solver's tolerances
        A = np.vstack([np.column_stack([-A, np.tile(np.eye(m)[i], (len(A), 1))]) for i, A in enumerate(self.slopes)])
        b = np.concatenate(self.offsets)
        gradient = np.concatenate([np.zeros(d), C * self.weight])
        start = np.concatenate([np.zeros(d), [max(own.max(), 0) for own in self.offsets]])
        found = minimize(
            lambda x: size * (0.5 * x[:d] @ x[:d] + gradient @ x),
            start,
            jac=lambda x: size * (np.append(x[:d], np.zeros(m)) + gradient),
            method="SLSQP",
            bounds=[(None, None)] * d + [(0, None)] * m,
            constraints={"type": "ineq", "fun": lambda x: A @ x - b, "jac": lambda x: A},
            options={"maxiter": 500, "ftol": 1e-14},
        )
        return found.x[:d], value(self, C, found.x[:d])


class Logistic(Simple):
    """A smooth loss: one plane where it is least is enough."""

    def __init__(self, rng, n=30, d=4):
        self.X, self.n_features = rng.normal(size=(n, d)) + 0.3, d

    def loss(self, w):
        return float(np.logaddexp(0, -self.X @ w).mean())

    def linearise(self, w):
        slope = -(self.X / (1 + np.exp(self.X @ w))[:, None]).mean(axis=0)
        return CuttingPlane(self.loss(w) - slope @ w, slope)

    def minimum(self, C):
        found = minimize(
            lambda w: value(self, C, w), np.zeros(self.n_features), jac=lambda w: w + C * self.linearise(w).slope,
            method="BFGS", options={"gtol": 1e-11},
        )  # fmt: skip
        return found.x, value(self, C, found.x)


def value(risk, C, w):
    return 0.5 * w @ w + C * risk.loss(w)


def planes(seed, d=4, groups=3):
    """Random planes, some equal, parallel or flat."""
    rng = np.random.default_rng(seed)
    slopes = [rng.normal(size=(rng.integers(2, 9), d)) for _ in range(groups)]
    offsets = [rng.normal(size=len(A)) for A in slopes]
    slopes[0][1], slopes[1][-1] = slopes[0][0], 0.0
    return Highest(offsets, slopes, rng.uniform(0.5, 2, groups))


def all_rankings(queries, name, factor, perfect="measure"):
    """The margin bound with every ranking a plane."""
    offsets, slopes, weight = [], [], []
    for rows, own in zip(queries, queries.query_weight, strict=True):
        query = Query(name, queries.y[rows].tolist(), queries.X[rows] * factor, "pairs", perfect == "grades")
        b = query.Phi[query.perfect]
        assert np.ptp(b, axis=0) == pytest.approx(0, abs=1e-9)  # any will do
        weight.append(own)
        if len(query.imperfect):
            _, at = np.unique(query.by_document[query.imperfect].round(12), axis=0, return_index=True)
            c = query.imperfect[at]
            offsets.append(1 - query.listed.E[c])
            slopes.append(query.Phi[c] - b[0])
        else:
            offsets.append(np.zeros(1))
            slopes.append(np.zeros((1, queries.n_features)))
    return Highest(offsets, slopes, weight)


def run(risk, C, **options):
    rounds = list(minimise_by_cutting_planes(risk, C, **options))
    assert all(after.primal <= before.primal for before, after in pairwise(rounds))
    assert all(after.gap <= before.gap + 1e-9 * before.primal for before, after in pairwise(rounds))
    return rounds


def check(risk, C, lowest, **options):
    """A minimum within the gap, and no bound above what some weights reach."""
    tol = options.get("tol", 1e-4)
    rounds = run(risk, C, **options)
    last = rounds[-1]
    assert last.gap <= tol * last.primal
    assert last.primal == pytest.approx(value(risk, C, last.w))
    assert last.primal <= lowest + last.gap + 1e-9 * lowest
    for each in rounds:
        assert each.primal - each.gap <= lowest * (1 + 1e-9) + 1e-15
    return rounds


class TestMinimum:
    @pytest.mark.parametrize("C", STRENGTHS)
    @pytest.mark.parametrize("seed", range(5))
    def test_piecewise_linear(self, seed, C):
        risk = planes(seed)
        lowest = risk.minimum(C)[1]
        last = check(risk, C, lowest, tol=1e-8)[-1]
        assert last.primal == pytest.approx(lowest, rel=1e-6)

    @pytest.mark.parametrize("C", STRENGTHS)
    @pytest.mark.parametrize("seed", range(3))
    def test_smooth(self, seed, C):
        risk = Logistic(np.random.default_rng(seed))
        w, lowest = risk.minimum(C)
        last = check(risk, C, lowest, tol=1e-6)[-1]
        assert np.abs(last.w - w).max() <= np.sqrt(2 * 1.01 * last.gap)  # strong convexity

    @pytest.mark.parametrize("C", [1e-2, 1.0, 100.0])
    @pytest.mark.parametrize("name", ["map", "ndcg"])
    @pytest.mark.parametrize("seed", range(3))
    def test_all_rankings_of_short_lists(self, seed, name, C):
        """The whole way: kernels, shards and planes against a QP of every ranking."""
        queries = random_queries(np.random.default_rng(seed), m=6, most=5, d=3)
        factor = np.array([1.0, 0.5, 2.0])
        twin = all_rankings(queries, name, factor)
        risk = linear(queries, name, factor)
        w, lowest = twin.minimum(C)
        rounds = check_linear(risk, twin, C, lowest)
        assert rounds[-1].primal == pytest.approx(lowest, rel=1e-5)
        assert np.linalg.norm(rounds[-1].w - w) <= np.sqrt(2 * (rounds[-1].gap + 1e-6 * lowest)) * 1.01

    @pytest.mark.parametrize("C", [1e-3, 0.1, 10.0, 1e4])
    @pytest.mark.parametrize("seed", range(3))
    def test_the_gap_is_reached_on_longer_lists(self, seed, C):
        queries = rw.make_queries(15, n_docs=20, n_features=10, random_state=seed)
        factor = StandardScaling.fit(queries).factor
        for name, tol in (("map", 1e-4), ("ndcg@5", 1e-3)):
            risk = linear(queries, name, factor, perfect="grades")
            last = run(risk, C, tol=tol)[-1]
            assert last.gap <= tol * last.primal
            rng = np.random.default_rng(seed)
            for size in (1e-3, 0.03, 1.0):
                other = last.w + size * rng.normal(size=10) * max(np.abs(last.w).max(), 1e-3)
                assert 0.5 * other @ other + C * risk.loss(risk.evaluate(other)) >= last.primal - last.gap


def linear(queries, name, factor, perfect="measure", backend=None):
    backend = backend or rw.Serial()
    bound = TypeTwo(rw.parse_measure(name), "margin", perfect=perfect)
    return LinearRisk(bound, backend.scatter(queries), factor, float(queries.query_weight.sum()), backend)


def check_linear(risk, twin, C, lowest):
    rounds = run(risk, C, tol=1e-6)
    assert rounds[-1].gap <= 1e-6 * rounds[-1].primal
    for each in rounds:
        assert each.loss == pytest.approx(twin.loss(each.w), rel=1e-9, abs=1e-12)
        assert each.primal - each.gap <= lowest * (1 + 1e-7)
    return rounds


class TestRounds:
    def test_from_the_solution_a_smooth_loss_stops_at_once(self):
        for C in STRENGTHS:
            risk = Logistic(np.random.default_rng(0))
            w, lowest = risk.minimum(C)
            rounds = run(risk, C, start=w, tol=1e-6)
            assert len(rounds) == 2
            assert rounds[-1].primal == pytest.approx(lowest)

    @pytest.mark.parametrize("C", STRENGTHS)
    @pytest.mark.parametrize("seed", range(3))
    def test_from_the_solution_of_a_loss_with_kinks_it_takes_no_longer(self, seed, C):
        risk = planes(seed)
        cold = run(risk, C, tol=1e-6)
        warm = run(risk, C, start=cold[-1].w, tol=1e-6)
        assert len(warm) <= len(cold) + 1
        assert warm[0].primal == cold[-1].primal
        assert warm[-1].primal <= cold[-1].primal

    def test_from_anywhere_it_ends_at_the_same_value(self):
        risk = planes(0)
        for C in STRENGTHS:
            lowest = risk.minimum(C)[1]
            for size in (1e-3, 1.0, 1e3):
                check(risk, C, lowest, start=size * np.ones(4), tol=1e-6)

    @pytest.mark.parametrize("idle", [1, 2])
    def test_dropping_planes_early_costs_rounds_and_no_more(self, idle, monkeypatch):
        risk = Logistic(np.random.default_rng(1), d=8)
        lowest = risk.minimum(100.0)[1]
        kept = check(risk, 100.0, lowest, tol=1e-8)
        monkeypatch.setattr(module, "_MAX_IDLE", idle)
        dropped = check(risk, 100.0, lowest, tol=1e-8)
        assert max(each.n_planes for each in dropped) < max(each.n_planes for each in kept)
        assert dropped[-1].n_planes < len(dropped)

    def test_planes_are_dropped(self):
        """After twenty idle rounds, so that the QP stays small."""
        rounds = run(Logistic(np.random.default_rng(1), d=8), 1e5, tol=1e-12, max_iter=150)
        assert len(rounds) > 40
        assert rounds[-1].n_planes < len(rounds) - 10

    def test_the_most_rounds(self):
        risk = planes(1)
        rounds = run(risk, 100.0, tol=1e-12, max_iter=2)
        assert len(rounds) == 3
        assert rounds[-1].gap > 1e-12 * rounds[-1].primal
        assert rounds[-1].primal - rounds[-1].gap <= risk.minimum(100.0)[1]

    def test_improved_says_whether_the_weights_are_new(self):
        for seed in range(4):
            rounds = run(planes(seed), 30.0, tol=1e-8)
            assert rounds[0].improved
            for before, after in pairwise(rounds):
                assert after.improved == (after.w.tolist() != before.w.tolist())


class TestDegenerate:
    def test_no_weight_of_the_loss(self):
        rounds = run(planes(0), 0.0)
        assert len(rounds) == 1
        assert rounds[0].w.tolist() == [0.0] * 4
        assert (rounds[0].primal, rounds[0].gap) == (0.0, 0.0)
        assert rounds[0].loss > 0

    def test_a_loss_of_nothing(self):
        """Queries of one document, and of one grade: 0 is the minimum, and known to be."""
        X = np.random.default_rng(0).normal(size=(6, 3))
        for y, qid in ((np.arange(6), np.arange(6)), (np.ones(6), np.zeros(6)), (np.zeros(6), [0, 0, 0, 1, 1, 1])):
            risk = linear(rw.Queries.from_arrays(X, y, qid), "map", np.ones(3))
            rounds = run(risk, 10.0)
            assert len(rounds) == 1
            assert (rounds[0].loss, rounds[0].gap) == (0.0, 0.0)

    def test_constant_features(self):
        """Nothing can be learned: 0 is the minimum, which takes one plane to know."""
        queries = rw.Queries.from_arrays(np.full((6, 2), 3.0), [0, 1, 2, 0, 1, 0], qid=[0, 0, 0, 1, 1, 1])
        risk = linear(queries, "map", np.ones(2))
        rounds = run(risk, 10.0)
        assert len(rounds) <= 3
        assert rounds[-1].w == pytest.approx([0, 0], abs=1e-6)
        assert rounds[-1].loss == pytest.approx(0.5 * (1 - (1 / 2 + 2 / 3) / 2) + 0.5 * (1 - 1 / 3), abs=1e-4)

    def test_a_loss_that_is_flat_at_its_least(self):
        """With C so large that a loss of 0 is reached: the shortest w that separates."""
        risk = Highest([np.array([1.0])], [np.array([[-2.0, 0.0]])], [1.0])
        last = run(risk, 1e4, tol=1e-6)[-1]
        assert last.w == pytest.approx([0.5, 0.0], abs=1e-4)
        assert last.primal == pytest.approx(1 / 8)


def dual_value(offsets, slopes, C, x):
    w = slopes.T @ x
    return offsets @ x - 0.5 * w @ w


class TestModel:
    @pytest.mark.parametrize("C", STRENGTHS)
    @pytest.mark.parametrize("seed", range(4))
    def test_the_quadratic_programme(self, seed, C):
        """Against SciPy's SLSQP on the same dual, with duplicate and parallel planes."""
        rng = np.random.default_rng(seed)
        m, d = int(rng.integers(1, 12)), 3
        slopes, offsets = rng.normal(size=(m, d)) * 10.0 ** rng.integers(-2, 3), rng.normal(size=m)
        if m > 3:
            slopes[1], offsets[1] = slopes[0], offsets[0]
            slopes[2], slopes[3] = 2 * slopes[0], 0.0
        model = module.CuttingPlaneModel(d)
        for offset, slope in zip(offsets, slopes, strict=True):
            model.add(CuttingPlane(offset, slope))
        w, lowest = model.minimise(C)
        highest = max(0.0, float((offsets + slopes @ w).max()))
        assert lowest <= 0.5 * w @ w + C * highest + 1e-12
        assert 0.5 * w @ w + C * highest == pytest.approx(lowest, rel=1e-5, abs=1e-9 * C)
        size = np.abs(offsets).max() * C
        found = minimize(
            lambda z: -dual_value(offsets, slopes, C, C * z) / size,
            np.full(m, 0.5 / m),
            method="SLSQP",
            bounds=[(0, 1)] * m,
            constraints={"type": "ineq", "fun": lambda z: 1 - z.sum()},
            options={"maxiter": 1000, "ftol": 1e-15},
        )
        assert lowest >= -found.fun * size - 1e-6 * size
        if found.success:
            assert lowest == pytest.approx(-found.fun * size, rel=1e-4, abs=1e-6 * size)

    def test_products_stay_those_of_the_planes(self):
        """Adding and dropping."""
        rng = np.random.default_rng(0)
        model = module.CuttingPlaneModel(3)
        for _ in range(60):
            model.add(CuttingPlane(float(rng.normal()), rng.normal(size=3)))
            model.minimise(1.0)
            assert model.products == pytest.approx(model.slopes @ model.slopes.T)
        assert len(model) < 50


def least_along(risk, C, w):
    """The least value of any multiple of w from 0 up."""
    unit = 1 / np.abs(w).max()
    found = [
        minimize_scalar(lambda s: value(risk, C, s * w), bounds=(0, high * unit), method="bounded").fun
        for high in (1e-3, 0.1, 1.0, 10.0, 100.0)
    ]
    return min(*found, value(risk, C, 0 * w))


class TestBestScale:
    @pytest.mark.parametrize("C", STRENGTHS)
    @pytest.mark.parametrize("size", [1e-6, 1.0, 1e6])
    def test_against_a_search_of_scipy(self, size, C):
        for seed in range(4):
            risk = planes(seed)
            w = size * run(risk, 1.0)[-1].w
            t = find_best_scale(risk, C, w)
            assert value(risk, C, t * w) <= least_along(risk, C, w) * (1 + 1e-3)

    def test_zero_where_the_way_leads_up(self):
        risk = planes(0)
        w = run(risk, 1.0)[-1].w
        assert find_best_scale(risk, 1.0, -w) == 0.0
        assert find_best_scale(risk, 1.0, np.zeros(4)) == 0.0
        assert find_best_scale(risk, 0.0, w) == 0.0


class TestLinearRisk:
    @pytest.mark.parametrize("name", ["map", "ndcg"])
    def test_places_mix_and_planes_touch(self, name):
        rng = np.random.default_rng(0)
        weight = rng.uniform(0, 2, 12)
        queries = random_queries(rng, most=5)
        queries = rw.Queries(queries.X, queries.y, queries.indptr, queries.qid, weight=weight)
        factor = np.array([1.0, 0.0, 2.0, 0.3])
        risk, twin = linear(queries, name, factor), all_rankings(queries, name, factor)
        one, other = rng.normal(size=(2, 4))
        for t in (0.0, 0.3, 1.0, 1.7):
            w = one + t * (other - one)
            place = risk.interpolate(risk.evaluate(one), risk.evaluate(other), t)
            assert risk.loss(place) == pytest.approx(twin.loss(w))
            plane = risk.linearise(place)
            assert plane.offset + plane.slope @ w == pytest.approx(twin.loss(w))
            assert risk.derivative_between(place, risk.evaluate(one), risk.evaluate(other)) == pytest.approx(
                plane.slope @ (other - one)
            )
            for _ in range(20):  # nowhere above
                v = 3 * rng.normal(size=4)
                assert plane.offset + plane.slope @ v <= twin.loss(v) + 1e-9

    def test_the_bits_are_those_of_one_thread(self):
        queries = rw.make_queries(300, n_docs=60, n_features=8, random_state=0)
        factor = StandardScaling.fit(queries).factor
        found = [
            [
                (each.w.tobytes(), each.primal, each.gap)
                for each in run(linear(queries, "map", factor, "measure", b), 10.0)
            ]
            for b in (rw.Serial(), rw.Threads(3))
        ]
        assert len(rw.Serial().scatter(queries)) > 1
        assert found[0] == found[1]
