"""The fidelity loss: derivatives, sums over pairs against all pairs written out, and bounds on what stumps gain."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.graded import documents, some_documents
from tests.reference import frank as twin

from rankwright.kernels.objectives.graded_pairs import FIDELITY, LOGISTIC, GradedDocuments, sum_pair_losses
from rankwright.kernels.optimisers.feature_bins import accumulate_bins
from rankwright.kernels.optimisers.fidelity_sums import (
    _WIDE,
    FLATTER,
    HEAVIER,
    LIGHTER,
    LOSS,
    WEIGHT,
    compute_fidelity_gains,
    compute_fidelity_state,
    compute_fresh_bounds,
    compute_stale_bounds,
    sum_split_pairs,
)

PLACES = {"loss": LOSS, "weight": WEIGHT, "lighter": LIGHTER, "heavier": HEAVIER, "flatter": FLATTER}
FINE = np.linspace(-40, 40, 800_001)


def pairs_of(docs):
    return twin.all_pairs(docs.y, docs.indptr, docs.graded.weight)


class TestOnePair:
    def test_the_weight_is_equation_4(self):
        o = np.linspace(-30, 30, 301)
        assert twin.W(o) == pytest.approx(np.exp(o / 2) / (1 + np.exp(o)) ** 1.5, rel=1e-12)

    def test_derivatives_by_finite_differences(self):
        o, step = np.linspace(-20, 20, 401), 1e-5
        chain = (twin.F, lambda o: -twin.W(o) / 2, twin.second, twin.third, twin.fourth)
        for f, derivative in pairwise(chain):
            assert derivative(o) == pytest.approx((f(o + step) - f(o - step)) / (2 * step), abs=1e-9)

    def test_bounds_on_derivatives(self):
        """What Taylor's formula in ``compute_stale_bounds`` and ``compute_fresh_bounds`` rests on."""
        w = twin.W(FINE)
        assert (twin.third(FINE) / w).min() >= -0.5 - 1e-12
        assert (twin.third(FINE) / w).max() <= 0.175 + 1e-12
        assert -0.2434 <= (twin.fourth(FINE) / w).min() < -0.243

    @pytest.mark.parametrize("a", [1e-3, 0.1, 1.0, 5.0, 14.0])
    def test_bounds_on_changes(self, a):
        """F(o + a) - F(o) is at least -W (e^(a/2) - 1), at most (W/2) (e^-a - 1), for steps of both signs."""
        o = FINE[::100]
        for step in (a, -a):
            change = -np.expm1(np.log1p(np.exp(-o)) / 2 - np.log1p(np.exp(-o - step)) / 2) * np.sqrt(twin.P(o))
            assert change == pytest.approx(twin.F(o + step) - twin.F(o), abs=1e-15)
            assert (change >= -twin.W(o) * np.expm1(step / 2) * (1 + 1e-9 * np.sign(step)) - 1e-18).all()
            assert (change <= twin.W(o) / 2 * np.expm1(-step) * (1 - 1e-9 * np.sign(step)) + 1e-18).all()

    @pytest.mark.parametrize("a", [1e-3, 0.1, 1.0, 5.0, 14.0])
    def test_how_fast_the_weight_grows(self, a):
        o = FINE[::100]
        assert (twin.W(o + a) <= twin.W(o) * np.exp(a / 2) * (1 + 1e-12)).all()
        assert (twin.W(o - a) <= twin.W(o) * np.exp(a) * (1 + 1e-12)).all()


class TestState:
    @settings(max_examples=200)
    @given(docs=some_documents())
    def test_sums_and_potentials_equal_all_pairs(self, docs):
        potentials = np.full((2, len(docs.y)), 9.0)
        found = compute_fidelity_state(docs.graded, docs.before, docs.scores, potentials)
        expected, by_document = twin.state(pairs_of(docs), docs.before, docs.scores)
        for name, place in PLACES.items():
            assert found[place] == pytest.approx(expected[name], rel=1e-10, abs=1e-12), name
        assert potentials == pytest.approx(by_document, rel=1e-10, abs=1e-12)

    @given(docs=some_documents(("zero", "tied", "random")))
    def test_potentials_are_the_gradient(self, docs):
        pairs, potentials = pairs_of(docs), np.empty((2, len(docs.y)))
        compute_fidelity_state(docs.graded, docs.scores, docs.scores, potentials)
        slopes = approx_fprime(docs.scores, lambda s: twin.J(pairs, s), 1e-7)
        assert -potentials[0] / 2 == pytest.approx(slopes, abs=1e-6)  # F' = -W / 2

    @pytest.mark.parametrize("span", [_WIDE - 1e-9, _WIDE + 1e-9])
    def test_both_sides_of_a_wide_span(self, span):
        docs = documents(np.random.default_rng(0), [40], 3)
        scores = np.sort(docs.rng.normal(size=40))[docs.rng.permutation(40)]
        scores[np.argmax(scores)], scores[np.argmin(scores)] = span / 2, -span / 2
        expected, by_document = twin.state(pairs_of(docs), docs.before, scores)
        potentials = np.empty((2, 40))
        found = compute_fidelity_state(docs.graded, docs.before, scores, potentials)
        assert found[LOSS] == pytest.approx(expected["loss"], rel=1e-12)
        assert found[WEIGHT] == pytest.approx(expected["weight"], rel=1e-12)
        assert potentials == pytest.approx(by_document, rel=1e-10, abs=1e-13)


class TestLossesWithTargets:
    """The general form: P* may be any probability; the cross entropy beside it."""

    @pytest.mark.parametrize("target", [0.0, 0.3, 0.5, 0.9, 1.0])
    @pytest.mark.parametrize("kind", [FIDELITY, LOGISTIC])
    def test_sums_equal_all_pairs(self, kind, target):
        @settings(max_examples=30)
        @given(docs=some_documents())
        def check(docs):
            pairs, n = pairs_of(docs), len(docs.y)
            gradient, curvature = np.full((2, n), 9.0)
            found = sum_pair_losses(docs.graded, docs.scores, kind, target, gradient, curvature)
            o = docs.scores[pairs.i] - docs.scores[pairs.j]
            P, Q = twin.P(o), twin.P(-o)
            if kind == FIDELITY:
                losses = 1 - np.sqrt(target * P) - np.sqrt((1 - target) * Q)  # the paper's F_ij
                slopes = -(np.sqrt(target * P) * Q - np.sqrt((1 - target) * Q) * P) / 2
                bends = np.sqrt(target) * twin.second(o) + np.sqrt(1 - target) * twin.second(-o)
            else:
                losses = target * np.logaddexp(0, -o) + (1 - target) * np.logaddexp(0, o)
                slopes, bends = P - target, P * Q
            assert found == pytest.approx((pairs.D * losses).sum(), rel=1e-10, abs=1e-12)
            by_document = np.zeros((2, n))
            for row, values, sign in ((0, slopes, -1), (1, bends, 1)):
                np.add.at(by_document[row], pairs.i, pairs.D * values)
                np.add.at(by_document[row], pairs.j, sign * pairs.D * values)
            assert gradient == pytest.approx(by_document[0], rel=1e-9, abs=1e-12)
            assert curvature == pytest.approx(by_document[1], rel=1e-9, abs=1e-12)

        check()

    @pytest.mark.parametrize("kind", [FIDELITY, LOGISTIC])
    def test_the_gradient_by_finite_differences(self, kind):
        docs = documents(np.random.default_rng(0), [9, 6, 1], 3)
        gradient, curvature, ahead, behind = np.empty((4, 16))

        def loss(scores, out):
            return sum_pair_losses(docs.graded, scores, kind, 0.8, out, np.empty(16))

        sum_pair_losses(docs.graded, docs.scores, kind, 0.8, gradient, curvature)
        for i, step in enumerate(1e-5 * np.eye(16)):
            difference = loss(docs.scores + step, ahead) - loss(docs.scores - step, behind)
            assert gradient[i] == pytest.approx(difference / 2e-5, abs=1e-8)
            assert curvature[i] == pytest.approx((ahead[i] - behind[i]) / 2e-5, abs=1e-8)


def bins_of(rng, n_docs, n_features, most=6):
    """Codes at random: the last slot of a feature, for missing values, stays empty."""
    sizes = rng.integers(2, most + 2, n_features)
    codes = np.array([rng.integers(0, size - 1, n_docs) for size in sizes]).astype(np.uint8)
    return codes, np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)


def check_splits(docs, codes, starts, features):
    """``sum_split_pairs``, and ``compute_fidelity_gains`` of all thresholds, against all pairs."""
    sizes, pairs = np.diff(starts)[features], pairs_of(docs)
    out = np.zeros((2, int(sizes.sum())))
    sum_split_pairs(docs.graded, docs.scores, codes, starts, features, out)
    for row in out:
        accumulate_bins(row, starts, features)
    ends = np.cumsum(sizes)
    assert out[:, ends - 2] == pytest.approx(0.0, abs=1e-11)  # no threshold is above the last bin
    stumps = [(f, cut, end - size + cut) for f, size, end in zip(features, sizes, ends) for cut in range(size - 2)]
    alphas = docs.rng.normal(size=len(stumps)) * docs.rng.choice([0.01, 1.0, 10.0])
    gains = np.zeros(len(stumps))
    if stumps:
        which, cuts, _ = np.array(stumps).T
        compute_fidelity_gains(docs.graded, docs.scores, codes, which, cuts, alphas, gains)
    for (f, cut, column), alpha, gain in zip(stumps, alphas, gains):
        h = (codes[f] > cut).astype(float)
        expected = twin.sums(pairs, docs.scores, h)
        assert out[0, column] == pytest.approx(expected.right + expected.wrong, rel=1e-10, abs=1e-11)
        assert out[1, column] == pytest.approx(expected.bend, rel=1e-10, abs=1e-11)
        assert gain == pytest.approx(twin.gain(pairs, docs.scores, h, alpha), rel=1e-9, abs=1e-11)


class TestSplits:
    @settings(max_examples=100)
    @given(docs=some_documents(), n_features=st.integers(1, 10))
    def test_small_queries(self, docs, n_features):
        codes, starts = bins_of(docs.rng, len(docs.y), n_features)
        features = docs.rng.permutation(n_features)[: docs.rng.integers(1, n_features + 1)]
        check_splits(docs, codes, starts, features)

    @pytest.mark.parametrize("n_features", [7, 8, 9, 63, 64, 65, 71, 130])
    def test_numbers_of_features(self, n_features):
        docs = documents(np.random.default_rng(n_features), [9, 1, 6], 3)
        codes, starts = bins_of(docs.rng, 16, n_features, 3)
        check_splits(docs, codes, starts, np.arange(n_features))

    @pytest.mark.parametrize("kind", ["random", "wide"])
    def test_more_pairs_than_are_held_at_a_time(self, kind):
        docs = documents(np.random.default_rng(1), [5, 230, 3], 4, (kind, "zero"))
        assert len(pairs_of(docs).i) > 2 * 8192
        codes, starts = bins_of(docs.rng, 238, 3)
        check_splits(docs, codes, starts, np.arange(3))

    def test_a_document_with_more_pairs_than_are_held_at_a_time(self):
        n, rng = 9000, np.random.default_rng(2)
        graded = GradedDocuments(np.array([0, n]), np.append(2, np.full(n - 1, n)), np.array([1 / n]))
        graded.lower[1] = 2  # two relevant documents
        scores, potentials = rng.normal(size=n), np.empty((2, n))
        i, j = np.repeat([0, 1], n - 2), np.tile(np.arange(2, n), 2)
        pairs = twin.Pairs(i, j, np.full(len(i), 1 / n))
        codes, starts, out, gains = (
            rng.integers(0, 3, (1, n)).astype(np.uint8),
            np.array([0, 4]),
            np.zeros((2, 4)),
            np.zeros(2),
        )
        sum_split_pairs(graded, scores, codes, starts, np.array([0]), out)
        compute_fidelity_gains(graded, scores, codes, np.array([0, 0]), np.array([0, 1]), np.array([1.0, -1.0]), gains)
        for cut, alpha in ((0, 1.0), (1, -1.0)):
            h = (codes[0] > cut).astype(float)
            expected = twin.sums(pairs, scores, h)
            assert out[0].cumsum()[cut] == pytest.approx(expected.right + expected.wrong, rel=1e-9)
            assert out[1].cumsum()[cut] == pytest.approx(expected.bend, rel=1e-9)
            assert gains[cut] == pytest.approx(twin.gain(pairs, scores, h, alpha), rel=1e-9)
        found = compute_fidelity_state(graded, scores, scores, potentials)
        assert found[WEIGHT] == pytest.approx(twin.state(pairs, scores, scores)[0]["weight"], rel=1e-9)


SMOOTHINGS = [1e-12, 1e-6, 1e-4, 1e-2, 1.0]


def stumps_at_random(docs, n=6):
    """Weak learners of every bias: many pairs right, many wrong, few split."""
    leaning = docs.y + docs.rng.choice([0.1, 1.0, 10.0]) * docs.rng.normal(size=len(docs.y))
    for _ in range(n):
        cut, sign = docs.rng.choice(leaning), docs.rng.choice([-1, 1])
        yield (sign * leaning > sign * cut).astype(float)


class TestBounds:
    @settings(max_examples=120)
    @given(docs=some_documents(), smoothing=st.sampled_from(SMOOTHINGS))
    def test_fresh_bounds_hold(self, docs, smoothing):
        pairs, found = pairs_of(docs), np.empty((1, 2))
        for h in stumps_at_random(docs):
            s = twin.sums(pairs, docs.scores, h)
            r, split = np.array([s.right - s.wrong]), np.array([s.right + s.wrong])
            compute_fresh_bounds(r, split, np.array([s.bend]), np.array([s.third]), smoothing, found)
            alpha, bound = found[0]
            assert alpha == pytest.approx(twin.alpha(s.right, s.wrong, smoothing), abs=1e-9 + 1e-15 / smoothing)
            gain = twin.gain(pairs, docs.scores, h, alpha)
            assert gain <= bound + 1e-13
            helped, harmed = (s.right, s.wrong) if alpha >= 0 else (s.wrong, s.right)
            assert gain >= (-helped * np.expm1(-abs(alpha)) - harmed * np.expm1(abs(alpha))) / 2 - 1e-13 >= -2e-13
            if abs(alpha) < 0.1:
                assert bound - gain <= 0.04 * split[0] * alpha**4 + 1e-13  # Taylor's formula knows it well

    @settings(max_examples=120)
    @given(docs=some_documents(), smoothing=st.sampled_from(SMOOTHINGS), slack=st.sampled_from([0.0, 0.01, 0.3, 2.0]))
    def test_stale_bounds_hold(self, docs, smoothing, slack):
        pairs, bound, rng = pairs_of(docs), np.empty(1), docs.rng
        for h in stumps_at_random(docs):
            s = twin.sums(pairs, docs.scores, h)
            gain = twin.gain(pairs, docs.scores, h, twin.alpha(s.right, s.wrong, smoothing))
            least, most = s.right + s.wrong - slack * rng.random(), s.right + s.wrong + slack * rng.random()
            knowledge = [(least, most, s.bend - slack * rng.random()), (least, np.inf, -np.inf), (0.0, np.inf, -np.inf)]
            for least, most, bend in knowledge:
                inputs = (np.array([value]) for value in (s.right - s.wrong, least, most, bend))
                compute_stale_bounds(*inputs, smoothing, bound)
                assert gain <= bound[0] + 1e-12

    @pytest.mark.parametrize("sign", [1, -1])
    @pytest.mark.parametrize("smoothing", [1e-3, 0.1, 1.0, 10.0])
    def test_where_the_bounds_are_tight(self, sign, smoothing):
        """A pair that gains and one that loses, each anywhere: derivatives at their extremes, steps large and small."""
        places, indptr = (-9.0, -2.0, -0.5, 0.0, 0.7, 2.0, 9.0), np.array([0, 2, 4])
        fresh, stale = np.empty((1, 2)), np.empty(1)
        for o, other, share in product(places, places, (0.0, 0.1, 0.5, 0.9)):
            size = np.array([1.0, share * twin.W(o) / twin.W(other)])
            pairs = twin.all_pairs(np.array([1, 0, 1, 0]), indptr, size / twin.W(o))  # W+ = 1, W- = share
            scores, h = np.array([o, 0.0, other, 0.0]), np.array([1.0, 0.0, 0.0, 1.0])
            h = h if sign > 0 else 1 - h
            s = twin.sums(pairs, scores, h)
            r, total, bend, third = (np.array([v]) for v in (s.right - s.wrong, s.right + s.wrong, s.bend, s.third))
            compute_fresh_bounds(r, total, bend, third, smoothing, fresh)
            gain = twin.gain(pairs, scores, h, fresh[0, 0])
            rounding = 1e-15 * size.max() / twin.W(o)
            assert gain <= fresh[0, 1] + rounding
            for least, most, less in product((1.0, 0.8), (1.0, 2.0), (0.0, 0.1)):
                compute_stale_bounds(r, least * total, most * total, bend - less, smoothing, stale)
                assert gain <= stale[0] + rounding + 1e-9 * r[0] * sign

    @given(r=st.floats(1e-9, 0.5), smoothing=st.sampled_from([*SMOOTHINGS, 100.0]), ratio=st.floats(1e-9, 1e3))
    def test_the_crude_bound_falls_with_the_weight(self, r, smoothing, ratio):
        """As W+ + W- grows and W+ - W- stays: for the formula, and for the kernel."""

        def crude(total):
            right, wrong = (total + r) / 2, (total - r) / 2
            alpha = 0.5 * np.log((right + smoothing) / (wrong + smoothing))
            return right * np.expm1(alpha / 2) + wrong * np.expm1(-alpha / 2)

        totals = r * (1 + np.append(0.0, np.geomspace(1e-9, ratio + 1e-6, 50)))
        assert (np.diff(crude(totals)) <= 1e-15 * totals[1:]).all()
        unknown, bounds = np.full(51, np.inf), np.empty(51)
        compute_stale_bounds(np.full(51, r), totals, unknown, -unknown, smoothing, bounds)
        assert bounds == pytest.approx(crude(totals), rel=1e-9, abs=1e-9 * r + 1e-15 * ratio)

    def test_tight_knowledge_is_as_good_as_fresh_to_third_order(self):
        """Without slack the stale bound leaves only the third order open, so that it can rule anything out."""
        docs = documents(np.random.default_rng(3), [30, 30], 3, ("tied", "zero"), np.array([1e-3, 1e-3]))
        pairs, fresh, stale = pairs_of(docs), np.empty((1, 2)), np.empty(1)
        for h in stumps_at_random(docs, 50):
            s = twin.sums(pairs, docs.scores, h)
            r, split, bend = (np.array([v]) for v in (s.right - s.wrong, s.right + s.wrong, s.bend))
            compute_fresh_bounds(r, split, bend, np.array([s.third]), 1e-2, fresh)
            compute_stale_bounds(r, split, split, bend, 1e-2, stale)
            alpha = abs(fresh[0, 0])
            assert stale[0] - twin.gain(pairs, docs.scores, h, fresh[0, 0]) <= 0.2 * split[0] * np.exp(alpha) * alpha**3
