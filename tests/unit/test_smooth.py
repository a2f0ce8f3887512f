"""Smooth measures: against the paper's equations term by term, and the paper's propositions as properties."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import approx_fprime
from tests.conftest import ranked_lists
from tests.reference import measures, smooth
from tests.reference.derivatives import gradient as exact
from tests.scored import grades_of, problems, scores_of

import rankwright as rw
from rankwright.kernels.measures.discounts import GEOMETRIC, HARMONIC, LOGARITHMIC, DiscountFunction, compute_discount
from rankwright.kernels.objectives import exponentials
from rankwright.kernels.objectives.smooth_measures import _soften
from rankwright.measures.definitions import tabulate_discounts
from rankwright.objectives.smooth_objectives import APPROXIMATIONS, SigmoidRanks, SoftPositions, default_approximation

NAMES = (
    "ndcg@3", "ndcg", "ndcg@10", "dcg", "dcg@2", "p@2", "p", "recall@2", "rbp", "rbp@3", "wta", "map", "ap@2", "ap@2(norm=min)", "err",
    "err@2", "mrr", "rr@2", "ndcg@3(discount=letor)", "ndcg@3(empty=skip)", "map(empty=skip)",
)  # fmt: skip
DIALECTS = ("ndcg@3(dialect=letor3)", "ndcg(dialect=letor3)", "map(dialect=letor3)")


def forms(name):
    """Those that a measure has."""
    return [form for form in APPROXIMATIONS if form == "positions" or rw.parse_measure(name).family != "cascade"]


CASES = [(name, form) for name in (*NAMES, *DIALECTS) for form in forms(name)]
of_every_kind = pytest.mark.parametrize(("name", "form"), CASES)


def bound_to(name, form, queries, sigma=1.0):
    return APPROXIMATIONS[form](rw.parse_measure(name), sigma).prepare(queries)


def compare(name, form, queries, scores, sigma):
    found = bound_to(name, form, queries, sigma)(scores)
    loss, slopes = smooth.loss(name, form, queries, scores, sigma)
    size = 1 + np.abs(slopes).max() + abs(loss)
    assert found.loss == pytest.approx(loss, rel=1e-11, abs=1e-11)
    assert found.curvature is None
    if not at_kink(name, form, queries, scores, sigma):
        assert found.gradient == pytest.approx(slopes, rel=1e-9, abs=1e-10 * size)


def at_kink(name, form, queries, scores, sigma):
    """Whether a document is at the soft rank 2, where LETOR's discount has two derivatives."""
    if form == "positions" or "letor" not in name or name.startswith("map"):
        return False
    ranks = [smooth.smooth_rank(scores[rows], i, sigma) for rows in queries for i in range(rows.stop - rows.start)]
    return bool((np.abs(np.array(ranks) - 2.0) < 1e-9).any())


def lists(rng, kind, sizes=(6, 1, 3, 8), weight=None, top=2):
    """Queries of one kind, with scores."""
    grades, scores = {
        "random": ("graded", "random"),
        "tied": ("graded", "integer"),
        "equal scores": ("graded", "constant"),
        "none relevant": ("none", "random"),
        "all relevant": ("equal", "random"),
    }[kind]
    y = [np.minimum(grades_of(grades, n, rng), top) for n in sizes]
    s = [scores_of(scores, each, rng) for each in y]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    queries = rw.Queries.from_arrays(np.zeros((len(qid), 1)), np.concatenate(y), qid, weight=weight)
    return queries, np.concatenate(s)


class TestTwins:
    @of_every_kind
    @pytest.mark.parametrize("kind", ["random", "tied", "equal scores", "none relevant", "all relevant"])
    def test_values_and_gradients_equal_the_papers_sums(self, name, form, kind):
        rng = np.random.default_rng(NAMES.index(name) if name in NAMES else 99)
        queries, scores = lists(rng, kind, weight=[1.0, 2.0, 0.0, 0.3])
        for sigma in (0.1, 1.0, 30.0):
            compare(name, form, queries, scores, sigma)

    @pytest.mark.parametrize(("name", "form"), [case for case in CASES if case[0] not in DIALECTS])
    @settings(max_examples=8)
    @given(problem=problems(most=5), sigma=st.sampled_from([0.02, 0.5, 4.0]))
    def test_on_small_lists_of_any_kind(self, name, form, problem, sigma):
        compare(name, form, *problem, sigma)

    @of_every_kind
    def test_huge_scores(self, name, form):
        queries, scores = lists(np.random.default_rng(3), "random")
        with np.errstate(all="raise", under="ignore"):
            for factor in (1e4, -1e4):
                found = bound_to(name, form, queries)(factor * scores)
                expected = sum(w * (1 - v) for w, v in zip(*values(name, queries, factor * scores), strict=True))
                assert found.loss == pytest.approx(expected, abs=1e-9)
                assert found.gradient == pytest.approx(np.zeros(len(scores)), abs=1e-9)

    @given(data=ranked_lists(top=2), sigma=st.sampled_from([0.3, 2.0, 1e3]))
    def test_eq_8_with_the_gradients_as_printed(self, data, sigma):
        grades, scores = data
        scores = np.minimum(scores, 5.0)
        G, D = [measures.gain(l) for l in grades], [measures.discount(r) for r in range(1, len(grades) + 1)][:4]
        queries = rw.Queries.from_arrays(np.zeros((len(grades), 1)), grades, np.zeros(len(grades)))
        found = bound_to("dcg@4", "positions", queries, sigma)(scores)
        assert 1 - found.loss == pytest.approx(smooth.A(scores, G, D, sigma), rel=1e-12, abs=1e-12)
        by_h = np.einsum("i,j,ijp->p", G, np.pad(D, (0, len(grades) - len(D))), smooth.dh(scores, sigma))  # Eq. (12)
        assert -found.gradient == pytest.approx(by_h, rel=1e-9, abs=1e-10)
        assert -found.gradient == pytest.approx(smooth.dA(scores, G, D, sigma), rel=1e-9, abs=1e-10)

    def test_precision_by_h_is_that_of_section_4_2(self):
        queries, f = lists(np.random.default_rng(4), "random", sizes=(7,))
        l = (queries.y >= 1).tolist()
        for k in (1, 3, 7, 12):
            found = bound_to(f"p@{k}", "positions", queries, 0.4)(f)
            assert 1 - found.loss == pytest.approx(smooth.precision(f, l, k, 0.4), rel=1e-12)

    def test_a_long_list_is_sorted_and_cut_like_a_short_one(self):
        """Beyond 256 documents another sort runs, and most documents are out of reach of a position."""
        rng = np.random.default_rng(5)
        n, sigma = 300, 0.01
        queries = rw.Queries.from_arrays(np.zeros((n, 1)), rng.integers(0, 3, n), np.zeros(n))
        f = rng.normal(size=n).round(2)  # some ties
        order = np.argsort(-f, kind="stable")
        E = np.exp(-((f[:, None] - f[order]) ** 2) / sigma)
        soft = ((2.0**queries.y - 1) @ E / E.sum(axis=0))[:20]
        found = bound_to("dcg@20", "positions", queries, sigma)(f)
        assert 1 - found.loss == pytest.approx(soft @ (1 / np.log2(2 + np.arange(20))), rel=1e-12)
        assert found.gradient.sum() == pytest.approx(0, abs=1e-9)


def values(name, queries, scores):
    """The weights and values of the queries that count."""
    found = rw.parse_measure(name).for_training().values(queries, scores)
    counted = ~np.isnan(found)
    return queries.query_weight[counted], found[counted]


class TestGradients:
    @of_every_kind
    @pytest.mark.parametrize("sigma", [0.3, 3.0])
    def test_finite_differences(self, name, form, sigma):
        queries, scores = lists(np.random.default_rng(6), "random", weight=[1.0, 0.5, 2.0, 1.0])
        bound = bound_to(name, form, queries, sigma)
        slopes = approx_fprime(scores, lambda s: bound(s).loss, 1e-7)
        assert bound(scores).gradient == pytest.approx(slopes, abs=2e-5 * (1 + np.abs(slopes).max()))

    @of_every_kind
    def test_moving_all_scores_of_a_query_changes_nothing(self, name, form):
        rng = np.random.default_rng(7)
        for kind in ("random", "tied"):
            queries, scores = lists(rng, kind)
            bound = bound_to(name, form, queries, 0.7)
            found = bound(scores)
            sums = np.add.reduceat(found.gradient, queries.indptr[:-1])
            assert sums == pytest.approx(np.zeros(4), abs=1e-12 * (1 + np.abs(found.gradient).max()) * 8)
            moved = scores + np.repeat([4.0, -1.0, 0.5, 256.0], queries.sizes)
            assert bound(moved).loss == pytest.approx(found.loss, rel=1e-10)

    @given(st.integers(0, 2**32), st.integers(2, 6), st.sampled_from([0.05, 0.5, 5.0]), st.sampled_from([0.5, 3.0]))
    @settings(max_examples=25)
    def test_section_5_2_bounds_the_derivatives_of_h(self, seed, n, sigma, size):
        f = np.random.default_rng(seed).uniform(-size, size, n)
        found = smooth.dh(f, sigma)
        assert np.abs(found).max() <= 8 * size / sigma
        assert found.sum(axis=2) == pytest.approx(np.zeros((n, n)), abs=1e-12 / sigma)
        queries = rw.Queries.from_arrays(np.zeros((n, 1)), np.arange(n) % 3, np.zeros(n))
        slopes = bound_to("ndcg", "positions", queries, sigma)(f).gradient
        assert np.linalg.norm(slopes) <= 8 * size / sigma * n**1.5  # the Lipschitz constant of section 5.2

    def test_the_gradient_of_h_is_that_of_eq_10(self):
        f = np.random.default_rng(8).normal(size=5)
        found = smooth.dh(f, 0.6)
        for i in range(5):
            for j in range(5):
                assert found[i, j] == pytest.approx(exact(lambda x, i=i, j=j: smooth.h(x, 0.6)[i, j], f), abs=1e-13)


class TestTies:
    @pytest.mark.parametrize("name", NAMES)
    def test_proposition_1_values_meet_at_a_tie(self, name):
        """Approached from both sides, and on it; not even the tied documents' order in the data matters."""
        y, s = np.array([2, 0, 1, 0, 2]), np.array([0.3, 1.0, 0.3, -0.4, 0.3])
        for order in ([0, 1, 2, 3, 4], [2, 1, 4, 3, 0]):
            queries = rw.Queries.from_arrays(np.zeros((5, 1)), y[order], np.zeros(5))
            bound = bound_to(name, "positions", queries, 0.2)
            at = bound(s[order]).loss
            for way in np.random.default_rng(9).normal(size=(4, 5)):
                for near in (1e-3, 1e-6, 1e-9):
                    assert bound(s[order] + near * way).loss == pytest.approx(at, abs=50 * near)
                    assert bound(s[order] - near * way).loss == pytest.approx(at, abs=50 * near)
            assert at == pytest.approx(bound_to(name, "positions", queries_of(y), 0.2)(s).loss, rel=1e-12)

    def test_h_is_continuous_where_d_is_not(self):
        s = np.array([0.3, 1.0, 0.3, -0.4])
        for way in ([1, 0, -1, 0], [-1, 0, 1, 0]):
            moved = s + 1e-9 * np.array(way)
            assert smooth.d(moved) == ([1, 0, 2, 3] if way[0] > 0 else [1, 2, 0, 3])
            assert smooth.h(moved, 0.2) == pytest.approx(smooth.h(s, 0.2), abs=1e-7)

    def test_equal_scores_are_one_mean(self):
        queries = queries_of([2, 0, 1, 0, 3])
        soft = np.full(5, (3 + 0 + 1 + 0 + 7) / 5)
        found = bound_to("dcg", "positions", queries, 1e-9)(np.full(5, 0.1))
        assert 1 - found.loss == pytest.approx(soft @ [measures.discount(r) for r in range(1, 6)], rel=1e-12)


def queries_of(y):
    return rw.Queries.from_arrays(np.zeros((len(y), 1)), y, np.zeros(len(y)))


class TestSmoothing:
    """What sigma does, section 5."""

    @of_every_kind
    def test_without_smoothing_it_is_the_measure(self, name, form):
        rng = np.random.default_rng(10)
        for kind in ("random", "none relevant", "all relevant"):
            queries, scores = lists(rng, kind, sizes=(6, 1, 12, 8), weight=[1.0, 0.5, 2.0, 1.0])
            bound = bound_to(name, form, queries).with_sigma(1e-9)
            weight, found = values(name, queries, scores)
            assert bound(scores).loss == pytest.approx((weight * (1 - found)).sum(), abs=1e-12)

    @pytest.mark.parametrize("form", APPROXIMATIONS)
    def test_the_error_falls_as_section_5_1_says(self, form):
        """Squares of differences for positions, differences for ranks: the error is at most C exp(-mu / sigma)."""
        queries, f = queries_of([0, 2, 1, 0, 2, 1, 1]), np.array([3.0, 2.0, 1.0, 0.0, -0.3, -1.3, -2.3])
        n, D, gains = len(f), tabulate_discounts(rw.NDCG().discount_function, len(f)), 2.0**queries.y - 1
        gap = np.abs(f[:, None] - f)[~np.eye(n, dtype=bool)].min()
        mu, scale = gap**2 if form == "positions" else gap, 1 / (np.sort(gains)[::-1] @ D)
        if form == "positions":  # |m_j - g_d(j)| <= sum over i != d(j) of h_ij |g_i - g_d(j)|
            C = scale * D.sum() * (n - 1) * np.ptp(gains)
        else:  # |r - rank| <= (n - 1) exp(-mu / sigma), and |D'| <= |D'(1)| = 1 / (2 ln 2)
            C = scale * gains.sum() * (n - 1) / (2 * np.log(2))
        bound, exact_value = bound_to("ndcg", form, queries), rw.NDCG().mean(queries, f)
        ratios = []
        for sigma in mu / np.array([0.5, 1, 2, 5, 10, 15, 20]):
            error = abs(1 - bound.with_sigma(sigma)(f).loss - exact_value)
            assert error <= C * np.exp(-mu / sigma) + 1e-15
            ratios.append(error / np.exp(-mu / sigma))
        assert ratios[-1] > 1e-2  # the rate is no better: the nearest documents differ in grade
        assert ratios[-1] == pytest.approx(ratios[-2], rel=1e-3)

    @of_every_kind
    def test_with_much_smoothing_it_is_constant(self, name, form):
        queries, scores = lists(np.random.default_rng(11), "random")
        bound = bound_to(name, form, queries, 1e12)
        for other in (-scores, 0 * scores, 3 * scores):
            assert bound(other).loss == pytest.approx(bound(scores).loss, abs=1e-9)
        assert bound(scores).gradient == pytest.approx(np.zeros(len(scores)), abs=1e-9)
        if form == "positions":  # h_ij = 1 / m: everything is worth its mean
            total, _ = smooth.loss(name, form, queries, 0 * scores, 1.0)
            assert bound(scores).loss == pytest.approx(total, abs=1e-9)

    def test_sigma_is_in_squares_of_scores_for_positions_and_in_scores_for_ranks(self):
        queries, f = lists(np.random.default_rng(12), "random")
        for form, power in (("positions", 2), ("ranks", 1)):
            found = [bound_to("ndcg", form, queries, 0.5 * c**power)(c * f).loss for c in (1.0, 10.0)]
            assert found[0] == pytest.approx(found[1], rel=1e-12)

    def test_smoothed_shares_what_was_bound(self):
        queries = queries_of([1, 0])
        for form in APPROXIMATIONS.values():
            bound = form(rw.NDCG(), 1.0).prepare(queries)
            other = bound.with_sigma(0.25)
            assert (bound.sigma, other.sigma) == (1.0, 0.25)
            assert other.data is bound.data


class TestRefusals:
    @pytest.mark.parametrize("sigma", [0.0, -1.0, np.inf, np.nan, 1e-310, "1"])
    def test_sigma(self, sigma):
        for form in APPROXIMATIONS.values():
            with pytest.raises(rw.InputError, match=r"sigma=.*expected"):
                form(rw.NDCG(), sigma).prepare(queries_of([1, 0]))
            with pytest.raises(rw.InputError, match=r"sigma=.*expected"):
                form(rw.NDCG()).prepare(queries_of([1, 0])).with_sigma(sigma)

    def test_measures_without_such_a_form(self):
        own = rw.make_measure(lambda grades: float(grades[0] > 0), name="first")
        for form in APPROXIMATIONS.values():
            with pytest.raises(rw.InputError, match="first is a function of ranked grades"):
                form(own).prepare(queries_of([1, 0]))
        for name in ("err", "mrr"):
            with pytest.raises(rw.InputError, match=f"{name} has no approximation by soft ranks"):
                SigmoidRanks(rw.parse_measure(name)).prepare(queries_of([1, 0]))

    def test_the_usual_form_is_the_papers(self):
        found = {
            name: default_approximation(rw.parse_measure(name)) for name in ("ndcg@10", "p@5", "map", "ap@10", "err")
        }
        assert found == {
            "ndcg@10": "positions",
            "p@5": "positions",
            "map": "ranks",
            "ap@10": "ranks",
            "err": "positions",
        }
        assert SoftPositions(rw.NDCG(10), 2.0) == APPROXIMATIONS["positions"](rw.NDCG(10), 2.0)


LAWS = [
    DiscountFunction(LOGARITHMIC), DiscountFunction(LOGARITHMIC, cut_off=3.0), DiscountFunction(LOGARITHMIC, 1.0), DiscountFunction(LOGARITHMIC, 1.0, cut_off=5.0),
    DiscountFunction(GEOMETRIC, 0.8, 0.2), DiscountFunction(GEOMETRIC, 0.5, 0.5, 4.0), DiscountFunction(GEOMETRIC, 1.0, 1.0, 2.0), DiscountFunction(HARMONIC), DiscountFunction(HARMONIC, cut_off=1.0),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS)
class TestDiscounts:
    def test_at_whole_ranks_it_is_the_table(self, law):
        table = tabulate_discounts(law, 12)
        for r in range(1, 13):
            assert compute_discount(law, float(r))[0] == pytest.approx(
                table[r - 1] if r <= len(table) else 0.0, rel=1e-15
            )

    def test_it_is_continuous_and_never_rises(self, law):
        ranks = np.linspace(1.0, 12.0, 2201)
        found = np.array([compute_discount(law, r)[0] for r in ranks])
        steps = np.diff(found)
        assert steps.max() <= 0.0
        assert steps.min() >= -2.0 * (ranks[1] - ranks[0]) * found[0]  # no jump
        for r in range(1, 12):
            assert compute_discount(law, r - 1e-12)[0] == pytest.approx(compute_discount(law, r + 1e-12)[0], abs=1e-10)

    def test_its_derivative(self, law):
        step = 1e-6
        for r in np.arange(1.05, 12.0, 0.1):  # between the kinks, which are at whole ranks
            slope = (compute_discount(law, r + step)[0] - compute_discount(law, r - step)[0]) / (2 * step)
            assert compute_discount(law, r)[1] == pytest.approx(slope, abs=1e-8)


def ulps(found, expected):
    return np.abs(found - expected) / np.spacing(np.abs(expected))


class TestExponentials:
    def test_exp(self):
        x = np.concatenate([[-708.0, 700.0, 0.0, -0.0, np.log(2) / 2, -np.log(2) / 2], np.linspace(-708, 700, 4001)])
        tiny = np.concatenate([-np.logspace(-300, 0, 300), np.logspace(-300, 0, 300)])
        halves = (np.arange(-1000, 1000, 7) + 0.5) * np.log(2)  # where the reduced argument changes sign
        for each in (x, tiny, halves):
            assert ulps(np.array([exponentials.exp(v) for v in each]), np.exp(each)).max() <= 4
        assert exponentials.exp(0.0) == 1.0

    def test_exp_stays_at_its_least_value(self):
        least = exponentials.exp(-708.0)
        assert 0.0 < least < 4e-308
        for x in (-708.0001, -1e3, -1e10, -1e300, -np.inf):
            assert exponentials.exp(x) == least

    def test_exp_of_many_at_a_time(self):
        """As loops compute it, several at once and a rest."""
        for n in (1, 7, 1003):
            x = np.linspace(0.0, 20.0, n)
            e = np.empty(n)
            total, gains = _soften(x, np.ones(n), 0.0, -1.0, e)
            assert ulps(e, np.exp(-(x * x))).max() <= 4
            assert total == pytest.approx(gains, rel=1e-14)
            assert total == pytest.approx(np.exp(-(x * x)).sum(), rel=1e-14)

    def test_log1p(self):
        x = np.concatenate([[0.0, 1.0, 0.5, 5e-324, 1e-308], np.linspace(0, 1, 4001), np.logspace(-300, 0, 601)])
        found = np.array([exponentials.log1p(v) for v in x])
        assert ulps(found, np.log1p(x)).max() <= 4
        assert found[0] == 0.0

    def test_whoever_compiles_them_first(self):
        """Numba hands what a caller may reorder down to what it calls, if that says nothing itself; exp must not be."""
        script = """
import numpy as np
from rankwright.kernels import caching
caching._folders = tuple  # nothing that was compiled before
from rankwright.kernels.objectives.list_losses import softmax
softmax(np.zeros(2), np.empty(2))
from rankwright.kernels.objectives.exponentials import exp
print(exp(-1.0))
"""
        found = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
        assert float(found.stdout) == pytest.approx(np.exp(-1.0), rel=1e-15)


def test_scores_that_are_not_finite_are_infinitely_bad():
    queries = rw.make_queries(3, random_state=0)
    for form in (SoftPositions, SigmoidRanks):
        for value in (np.nan, np.inf, -np.inf):
            scores = np.zeros(queries.n_docs)
            scores[1] = value
            found = form(rw.NDCG(5), 1.0).prepare(queries)(scores)
            assert found.loss == np.inf
            assert not found.gradient.any()
