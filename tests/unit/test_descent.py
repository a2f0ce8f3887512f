"""Descent by gradients: that it finds minima, how its steps look, annealing and reweighing."""

from __future__ import annotations

from itertools import islice, pairwise
from typing import NamedTuple

import numpy as np
import pytest
from scipy.optimize import minimize

from rankwright.optimisers.descent import L2Penalty, anneal, descend, descend_reweighted
from rankwright.optimisers.descent_methods import DESCENT_METHODS, ConjugateGradient

every_method = pytest.mark.parametrize("method", DESCENT_METHODS)


class Place(NamedTuple):
    w: np.ndarray
    way: np.ndarray | None = None


class Function:
    """A loss that is any function of weights; places are the weights themselves."""

    def __init__(self, function, n_features):
        self.function, self.n_features, self.calls = function, n_features, 0

    def evaluate(self, w):
        return Place(w)

    def move(self, place, way):
        return Place(place.w + way, way)

    def interpolate(self, place, other, t):
        return Place(place.w + t * other.way, other.way)

    def loss(self, place):
        self.calls += 1
        return float(self.function(place.w)[0])

    def directional_derivative(self, place):
        return float(self.function(place.w)[1] @ place.way)

    def gradient(self, place):
        return self.function(place.w)[1]


def quadratic(rng, n, spread):
    """x' A x / 2 - b' x with eigenvalues from 1 to ``spread``."""
    Q = np.linalg.qr(rng.normal(size=(n, n)))[0]
    A, b = Q @ np.diag(np.geomspace(1.0, spread, n)) @ Q.T, rng.normal(size=n)
    return lambda w: (0.5 * w @ A @ w - b @ w, A @ w - b)


def logistic(rng, n, rows=40):
    X, y = rng.normal(size=(rows, n)), rng.choice([-1.0, 1.0], rows)

    def function(w):
        o = y * (X @ w)
        return np.logaddexp(0, -o).sum(), -X.T @ (y * np.exp(-np.logaddexp(0, o)))

    return function


def rosenbrock(w):
    a, b = w[:-1], w[1:]
    slopes = np.zeros(len(w))
    slopes[:-1] += -400 * a * (b - a**2) - 2 * (1 - a)
    slopes[1:] += 200 * (b - a**2)
    return (100 * (b - a**2) ** 2 + (1 - a) ** 2).sum(), slopes


def exponentials(w):
    """Steep on both sides: far from the start it is not finite."""
    with np.errstate(over="ignore"):
        return np.exp(300 * w).sum() - 600 * w.sum() + np.exp(-w).sum(), 300 * np.exp(300 * w) - 600 - np.exp(-w)


def cases():
    rng = np.random.default_rng(0)
    return {
        "round": (quadratic(rng, 5, 1.0), L2Penalty(0.0, np.zeros(5)), rng.normal(size=5)),
        "quadratic": (quadratic(rng, 8, 100.0), L2Penalty(0.5, rng.normal(size=8)), rng.normal(size=8)),
        "stretched": (quadratic(rng, 6, 1e5), L2Penalty(0.0, np.zeros(6)), 10 * rng.normal(size=6)),
        "one weight": (quadratic(rng, 1, 1.0), L2Penalty(1.0, np.ones(1)), np.full(1, 50.0)),
        "logistic": (logistic(rng, 6), L2Penalty(0.1, np.zeros(6)), np.zeros(6)),
        "logistic from afar": (logistic(rng, 6), L2Penalty(0.01, np.ones(6)), np.full(6, 30.0)),
        "rosenbrock": (rosenbrock, L2Penalty(0.0, np.zeros(2)), np.array([-1.2, 1.0])),
    }


def whole(function, penalty):
    """With the penalty."""

    def value(w):
        loss, slopes = function(w)
        return loss + penalty(w), slopes + penalty.gradient(w)

    return value


def points_of(name, method, **options):
    function, penalty, start = cases()[name]
    return list(descend(Function(function, len(start)), start, penalty, DESCENT_METHODS[method](), **options))


class TestDescent:
    @every_method
    @pytest.mark.parametrize("name", cases())
    def test_it_finds_the_minimum(self, name, method):
        function, penalty, start = cases()[name]
        best = minimize(whole(function, penalty), start, jac=True, method="BFGS", options={"gtol": 1e-9})
        points = points_of(name, method, tol=1e-15, max_iter=2000)
        assert points[-1].value == pytest.approx(best.fun, rel=1e-8, abs=1e-9)
        assert points[-1].w == pytest.approx(best.x, rel=1e-3, abs=1e-3)
        assert np.linalg.norm(points[-1].gradient) <= 1e-4 * np.linalg.norm(points[0].gradient)

    @every_method
    @pytest.mark.parametrize("name", cases())
    def test_points_are_what_they_say_and_fall(self, name, method):
        function, penalty, start = cases()[name]
        points = points_of(name, method, tol=1e-10, max_iter=500)
        assert points[0].w.tolist() == start.tolist()
        for point in points:
            assert point.loss == pytest.approx(function(point.w)[0], rel=1e-9, abs=1e-9)
            assert point.value == pytest.approx(point.loss + penalty(point.w), rel=1e-12)
            slopes = whole(function, penalty)(point.w)[1]
            assert point.gradient == pytest.approx(slopes, rel=1e-6, abs=1e-7 * np.linalg.norm(points[0].gradient))
        assert all(after.value <= before.value for before, after in pairwise(points))

    @every_method
    @pytest.mark.parametrize("name", ["quadratic", "stretched", "logistic", "logistic from afar", "rosenbrock"])
    def test_steps_are_wolfes(self, name, method):
        """The strong conditions, but where rounding is all that is left."""
        points = points_of(name, method, tol=1e-9, max_iter=200)
        least = points[-1].value
        for before, after in pairwise(points):
            if before.value - least < 1e-8 * (1 + abs(least)):
                break
            step = after.w - before.w
            slope, then = float(step @ before.gradient), float(step @ after.gradient)
            assert slope < 0.0
            assert after.value <= before.value + 1e-4 * slope + 1e-12 * abs(before.value)
            assert abs(then) <= DESCENT_METHODS[method].slope_ratio * -slope * (1 + 1e-9)

    @every_method
    def test_a_round_quadratic_takes_few_steps(self, method):
        assert len(points_of("round", method, tol=1e-12)) <= 6

    def test_conjugate_directions_end_a_quadratic_in_about_as_many_steps_as_weights(self):
        """With exact line searches it would be n; steepest descent takes hundreds."""
        points = points_of("quadratic", "cg", tol=1e-12, max_iter=100)
        assert len(points) <= 4 * 8

    @every_method
    def test_the_most_steps(self, method):
        for most in (0, 1, 3):
            assert len(points_of("rosenbrock", method, tol=0.0, max_iter=most)) == most + 1

    def test_conjugate_gradients_end_after_a_step_that_gains_little(self):
        points = points_of("stretched", "cg", tol=1e-3, max_iter=500)
        gains = [(a.value - b.value) / abs(b.value) for a, b in pairwise(points)]
        assert gains[-1] <= 1e-3
        assert all(gain > 1e-3 for gain in gains[:-1])
        assert len(points) < len(points_of("stretched", "cg", tol=1e-9, max_iter=500))

    @pytest.mark.parametrize("name", ["quadratic", "logistic", "logistic from afar", "rosenbrock"])
    @pytest.mark.parametrize("tol", [1e-4, 1e-8, 1e-11])
    def test_quasi_newton_ends_where_the_value_is_within_the_tolerance_of_the_minimum(self, name, tol):
        function, penalty, start = cases()[name]
        best = minimize(whole(function, penalty), start, jac=True, method="BFGS", options={"gtol": 1e-10}).fun
        last = points_of(name, "lbfgs", tol=tol, max_iter=500)[-1]
        assert last.has_converged(tol)
        assert last.value - best <= 10 * tol * abs(last.value) + 1e-14
        assert last.steps == len(points_of(name, "lbfgs", tol=tol, max_iter=500)) - 1

    @pytest.mark.parametrize("name", ["stretched", "logistic", "rosenbrock"])
    def test_a_descent_that_is_cut_short_has_not_converged(self, name):
        assert not points_of(name, "lbfgs", tol=1e-10, max_iter=2)[-1].has_converged(1e-10)

    @every_method
    def test_a_start_at_the_minimum(self, method):
        function, penalty = (lambda w: (float(w @ w), 2 * w)), L2Penalty(3.0, np.zeros(4))
        [only] = descend(Function(function, 4), np.zeros(4), penalty, DESCENT_METHODS[method]())
        assert only.value == 0.0
        near = points_of("logistic", method, tol=1e-15, max_iter=500)[-1].w
        function, penalty, _ = cases()["logistic"]
        again = list(descend(Function(function, 6), near, penalty, DESCENT_METHODS[method](), tol=1e-9))
        assert len(again) <= 3  # L-BFGS wants to see it twice
        assert again[-1].w == pytest.approx(near, abs=1e-5)

    @every_method
    def test_the_start_is_copied(self, method):
        start = np.ones(8)
        function, penalty, _ = cases()["quadratic"]
        list(descend(Function(function, 8), start, penalty, DESCENT_METHODS[method]()))
        assert start.tolist() == [1.0] * 8

    @every_method
    def test_a_loss_that_is_not_finite_far_away_is_survived(self, method):
        """The first step is one of length 1, where exp(212) and exp(510) are large, and exp(3000) has no value."""
        for n, scale in ((2, 1.0), (1, 10.0), (1, 1.7)):

            def function(w, scale=scale):
                value, slopes = exponentials(scale * w)
                return value, scale * slopes

            start = np.zeros(n)
            points = list(
                descend(Function(function, n), start, L2Penalty(0.0, start), DESCENT_METHODS[method](), max_iter=300)
            )
            assert all(np.isfinite(point.value) for point in points)
            assert scale * points[-1].w == pytest.approx(np.full(n, np.log(2) / 300), rel=1e-2)

    @every_method
    def test_a_loss_that_is_not_a_number_somewhere_is_survived(self, method):
        def function(w):
            with np.errstate(invalid="ignore"):
                return float(np.sqrt(w[0]) - np.log(w[0])), np.array([0.5 / np.sqrt(w[0]) - 1 / w[0]])  # least at 4

        start = np.array([0.05])
        *_, last = descend(Function(function, 1), start, L2Penalty(0.0, start), DESCENT_METHODS[method](), tol=1e-10)
        assert last.w == pytest.approx([4.0], rel=1e-3)

    @every_method
    def test_only_one_product_a_step(self, method):
        """The end of a way is found once; the other points of the line are mixed."""

        class Counted(Function):
            made = 0

            def evaluate(self, w):
                Counted.made += 1
                return super().evaluate(w)

            def move(self, place, way):
                Counted.made += 1
                return super().move(place, way)

        function, penalty, start = cases()["rosenbrock"]
        loss = Counted(function, len(start))
        steps = len(list(islice(descend(loss, start, penalty, DESCENT_METHODS[method](), tol=0.0), 20))) - 1
        assert Counted.made <= steps + 2  # the start, and a step that led nowhere before a fresh start
        assert loss.calls > Counted.made

    def test_conjugate_gradients_restart(self):
        """After as many steps as weights, and where beta is negative."""
        method, g = ConjugateGradient(), np.array([1.0, 0.0])
        assert method.find_direction(g).tolist() == [-1.0, 0.0]
        method.update(np.array([-1.0, 0.0]), g, np.array([0.0, 2.0]))
        assert method.beta == 4.0  # after . (after - before) / before . before
        assert method.find_direction(np.array([0.0, 2.0])).tolist() == [-4.0, -2.0]
        method.update(np.array([-4.0, -2.0]), np.array([0.0, 2.0]), np.array([1.0, 2.5]))
        assert method.beta == 0.0  # the second of two steps
        method.find_direction(np.array([1.0, 2.5]))
        method.update(np.array([-1.0, -2.5]), np.array([1.0, 2.5]), np.array([0.5, 1.0]))
        assert method.beta == 0.0  # the slopes have not reverse
        method.restart()
        assert method.find_direction(g).tolist() == [-1.0, 0.0]

    def test_a_direction_that_leads_up_is_not_taken(self):
        method = ConjugateGradient()
        method.last, method.beta = np.array([5.0, 0.0]), 1.0
        assert method.find_direction(np.array([1.0, 1.0])).tolist() == [-1.0, -1.0]

    def test_quasi_newton_directions_know_the_curvature(self):
        """On a quadratic, after as many steps as weights, the direction is Newton's."""
        rng = np.random.default_rng(1)
        A, method = np.diag([1.0, 4.0, 25.0]), DESCENT_METHODS["lbfgs"]()
        for step in np.eye(3):
            method.update(step, np.zeros(3), A @ step)
        g = rng.normal(size=3)
        assert method.find_direction(g) == pytest.approx(-np.linalg.solve(A, g), rel=1e-9)
        method.restart()
        assert method.find_direction(g).tolist() == (-g).tolist()

    def test_a_step_along_which_the_slope_falls_is_not_remembered(self):
        method = DESCENT_METHODS["lbfgs"]()
        method.update(np.array([1.0, 0.0]), np.array([0.0, 0.0]), np.array([-1.0, 0.0]))
        assert method.find_direction(np.array([3.0, 4.0])).tolist() == [-3.0, -4.0]


class TestAnnealing:
    """On |w - c|^2 made smooth by sigma, whose minimum moves with it."""

    def smoothed(self, sigma):
        self.made.append(sigma)
        center = np.array([sigma, 1.0])
        return Function(lambda w: (float((w - center) @ (w - center)), 2 * (w - center)), 2)

    @every_method
    def test_a_stage_for_every_sigma(self, method):
        self.made = []
        sigmas = [8.0, 4.0, 2.0, 1.0]
        stages = list(
            anneal(self.smoothed, sigmas, np.zeros(2), L2Penalty(1e-9, np.zeros(2)), DESCENT_METHODS[method], tol=1e-14)
        )
        assert [stage.sigma for stage in stages] == self.made == sigmas
        for stage in stages:
            assert stage.point.w == pytest.approx([stage.sigma, 1.0], abs=1e-5)
            assert stage.steps >= 1

    @every_method
    def test_each_begins_where_the_last_ended(self, method):
        self.made, starts = [], []

        class Noted(Function):
            def evaluate(self, w):
                starts.append(w.tolist())
                return super().evaluate(w)

        def smoothed(sigma):
            return Noted(self.smoothed(sigma).function, 2)

        start = np.array([3.0, 4.0])
        stages = list(
            anneal(smoothed, [4.0, 2.0, 1.0], start, L2Penalty(0.0, start), DESCENT_METHODS[method], max_iter=2)
        )
        ends = [stage.point.w.tolist() for stage in stages]
        assert starts[0] == [3.0, 4.0]
        for end in ends[:-1]:
            assert end in starts

    def test_a_start_at_the_minimum_takes_no_step(self):
        self.made = []
        start = np.array([2.0, 1.0])
        [stage] = anneal(self.smoothed, [2.0], start, L2Penalty(0.0, start), DESCENT_METHODS["cg"])
        assert (stage.steps, stage.point.w.tolist()) == (0, [2.0, 1.0])

    def test_whoever_takes_the_stages_may_stop(self):
        self.made = []
        stages = anneal(
            self.smoothed, iter([8.0, 4.0, 2.0, 1.0]), np.zeros(2), L2Penalty(0.0, np.zeros(2)), DESCENT_METHODS["cg"]
        )
        assert next(stages).sigma == 8.0
        assert next(stages).sigma == 4.0
        stages.close()
        assert self.made == [8.0, 4.0]  # nothing was computed ahead

    def test_the_penalty_holds(self):
        self.made = []
        held = L2Penalty(1e9, np.array([7.0, 7.0]))
        *_, last = anneal(self.smoothed, [8.0, 4.0], np.array([7.0, 7.0]), held, DESCENT_METHODS["lbfgs"])
        assert last.point.w == pytest.approx([7.0, 7.0], abs=1e-6)


class TestReweighing:
    """Weights of |w - x_i| by 1 / the distance at the last place: the geometric median (Weiszfeld)."""

    X = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [5.0, 5.0]])

    def frozen(self, at):
        self.seen.append(at.copy())
        weight = 1 / np.maximum(np.linalg.norm(self.X - at, axis=1), 1e-9)

        def function(w):
            away = w - self.X
            return float(weight @ (away**2).sum(axis=1)) / 2, weight @ away

        return Function(function, 2)

    @every_method
    def test_it_comes_to_what_the_weights_are_for(self, method):
        self.seen = []
        start = np.array([3.0, 3.0])
        points = list(
            descend_reweighted(
                self.frozen, start, L2Penalty(0.0, start), DESCENT_METHODS[method], rounds=200, tol=1e-14, max_iter=50
            )
        )
        distances = [np.linalg.norm(self.X - w, axis=1).sum() for w in (start, *(point.w for point in points))]
        assert all(after <= before + 1e-9 for before, after in pairwise(distances))
        best = minimize(lambda w: np.linalg.norm(self.X - w, axis=1).sum(), [0.3, 0.4], method="Nelder-Mead")
        assert distances[-1] == pytest.approx(best.fun, abs=1e-6)

    def test_each_round_has_the_weights_of_the_last_minimum(self):
        self.seen = []
        start = np.array([3.0, 3.0])
        points = list(descend_reweighted(self.frozen, start, L2Penalty(0.0, start), DESCENT_METHODS["lbfgs"], rounds=4))
        assert len(points) == 4
        assert self.seen[0].tolist() == start.tolist()
        assert [w.tolist() for w in self.seen[1:]] == [point.w.tolist() for point in points[:-1]]

    def test_it_ends_where_nothing_moves(self):
        def frozen(at):
            return Function(lambda w: (float(w @ w), 2 * w), 2)

        points = list(
            descend_reweighted(frozen, np.zeros(2), L2Penalty(0.0, np.zeros(2)), DESCENT_METHODS["lbfgs"], rounds=10)
        )
        assert len(points) == 1
