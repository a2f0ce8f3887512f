"""Significance against definitions, closed forms and scipy, with ties, noise, skipped queries and too few of them."""

from __future__ import annotations

import doctest
import subprocess
import sys
from dataclasses import asdict
from math import atan, comb, inf, isnan, pi, sqrt

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats
from tests.conftest import ROOT
from tests.reference import significance as reference

from rankwright.analysis.significance import (
    Comparison,
    bootstrap_interval,
    cohen_d,
    compare,
    holm,
    paired_t,
    randomisation,
    rank_biserial,
    resampling,
    simultaneous_intervals,
    wilcoxon,
    winning_number,
)
from rankwright.basics.errors import InputError

TESTS = [paired_t, wilcoxon, randomisation]


@st.composite
def paired_sevenths(draw, most=10):
    """Two columns of whole sevenths (None: skipped): many ties, and sums that floats do not hold."""
    value = st.one_of(st.integers(0, 7), st.just(None)) if draw(st.booleans()) else st.integers(0, 7)
    rows = draw(st.lists(st.tuples(value, value), max_size=most))
    return [a for a, _ in rows], [b for _, b in rows]


def floats(column):
    return np.array([np.nan if value is None else value / 7 for value in column], dtype=float)


def same(value, expected):
    return value == pytest.approx(float(expected), abs=1e-9, nan_ok=True)


# Tests


@given(paired_sevenths())
def test_randomisation_equals_enumeration(case):
    assert same(randomisation(*map(floats, case)), reference.randomisation(reference.paired(*case)))


@given(paired_sevenths())
def test_wilcoxon_equals_enumeration(case):
    assert same(wilcoxon(*map(floats, case)), reference.wilcoxon(reference.paired(*case)))


@given(paired_sevenths(most=30))
def test_tests_are_symmetric(case):
    a, b = map(floats, case)
    for test in TESTS:
        assert same(test(a, b), test(b, a))


@given(paired_sevenths(most=20), st.sampled_from([1e-100, 1e-9, 3.0, 1e9]))
def test_the_scale_of_a_measure_does_not_matter(case, scale):
    a, b = map(floats, case)
    for function in (*TESTS, cohen_d, rank_biserial):
        assert function(a * scale, b * scale) == pytest.approx(function(a, b), rel=1e-6, nan_ok=True)


def test_t_of_two_pairs_is_cauchy():
    t = 2.0  # differences 1 and 3: mean 2, standard error 1
    assert paired_t([0, 0], [1, 3]) == pytest.approx(1 - 2 / pi * atan(t))


def test_t_of_three_pairs():
    t = 2 * sqrt(3)  # differences 1, 2, 3: mean 2, standard deviation 1
    assert paired_t([0, 0, 0], [1, 2, 3]) == pytest.approx(1 - t / sqrt(2 + t**2))


def test_many_pairs_equal_scipy():
    rng = np.random.default_rng(1)
    a, b = rng.random((2, 300))
    b += 0.05
    assert paired_t(a, b) == pytest.approx(stats.ttest_rel(a, b).pvalue)
    assert wilcoxon(a, b) == pytest.approx(stats.wilcoxon(b - a).pvalue)
    drawn = stats.permutation_test((b - a,), np.mean, permutation_type="samples", vectorized=True, rng=0)
    assert 0.01 < drawn.pvalue < 0.2
    error = sqrt(2 * drawn.pvalue / 10_000)
    assert abs(randomisation(a, b) - drawn.pvalue) < 4 * error


def test_wilcoxon_of_equal_ranks_is_the_sign_test():
    d = np.repeat([1, -1], [13, 3]) / 7
    assert wilcoxon(np.zeros(16), d) == pytest.approx(2 * sum(comb(16, wins) for wins in range(13, 17)) / 2**16)


@pytest.mark.parametrize("n", [16, 17, 50, 51])
def test_wilcoxon_without_ties_equals_scipy(n):
    d = np.random.default_rng(n).permutation(np.arange(1, n + 1)) * np.resize([1, -1, 1], n)
    assert wilcoxon(np.zeros(n), d) == pytest.approx(stats.wilcoxon(d).pvalue)


@pytest.mark.parametrize("seed", range(5))
def test_random_flips_approach_all_flips(seed):
    rng = np.random.default_rng(seed)
    a, b = np.zeros(16), rng.choice([-2, 1, 2, 3], 16) / 7
    exact, drawn = randomisation(a, b, n=2**16), randomisation(a, b, n=2**16 - 1)
    assert exact != drawn
    assert abs(exact - drawn) < 4 * sqrt(exact * (1 - exact) / 2**16)


def test_random_flips_count_the_observed_one():
    assert randomisation(np.zeros(60), np.arange(1, 61), n=999) == 1 / 1000


def test_flips_are_exact_as_soon_as_they_can_be():
    a, b = np.zeros(40), np.zeros(40)
    b[:5] = 1  # 35 queries that do not differ add no way to flip
    assert randomisation(a, b, n=32) == 2 / 32
    assert randomisation(a, b, n=31) != 2 / 32


@pytest.mark.parametrize("test", TESTS)
def test_equal_values_are_no_evidence(test):
    assert test([0.5, 0.1, 0.7], [0.5, 0.1, 0.7]) == 1.0
    assert test([0.1 + 0.2, 0.3, 0.7], [0.3, 0.1 * 3, 0.7]) == 1.0


@pytest.mark.parametrize("function", [*TESTS, cohen_d, rank_biserial])
@pytest.mark.parametrize(
    ("a", "b"), [([], []), ([0.1], [0.2]), ([0.1, np.nan, 0.3], [0.2, 0.4, np.nan]), ([np.nan], [np.nan])]
)
def test_fewer_than_two_pairs_say_nothing(function, a, b):
    assert isnan(function(a, b))


def test_noise_is_neither_ranked_nor_counted():
    a = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    b = a + np.array([0.1, 0.2, -0.3, 0.4, 1e-16])
    assert wilcoxon(a, b) == wilcoxon(a[:4], b[:4])
    [found] = compare({"a": a, "b": b})
    assert (found.wins, found.ties, found.losses) == (3, 1, 1)


def test_a_constant_difference_is_certain_for_t_alone():
    a, b = np.array([0.1, 0.2, 0.4]), np.array([0.2, 0.3, 0.5])  # the floats differ by 0.1 but for the last bits
    assert paired_t(a, b) == 0.0
    assert randomisation(a, b) == wilcoxon(a, b) == 2 / 8


def test_a_constant_difference_has_no_width():
    [found] = compare({"a": np.arange(9) / 7, "b": np.arange(9) / 7 + 0.1}, n=300)
    assert found.low == found.high == found.difference == pytest.approx(0.1)
    assert found.effect == inf


# Holm


p_values = st.lists(st.one_of(st.floats(0, 1), st.sampled_from([0.0, 0.01, 0.05, 1.0, np.nan])), max_size=7)


@given(p_values)
def test_holm_equals_closed_testing(p):
    assert holm(p) == pytest.approx(reference.holm(p), nan_ok=True)


@given(p_values)
def test_holm_only_raises_and_keeps_the_order(p):
    p = [x for x in p if x == x]
    adjusted = holm(p)
    assert (adjusted >= p).all()
    assert (adjusted <= 1).all()
    assert (np.diff(adjusted[np.argsort(p)]) >= 0).all()


@pytest.mark.parametrize("p", [[0.5, 1.5], [-0.1], ["x"], [[0.5]], [inf]])
def test_holm_refuses_what_is_no_p_value(p):
    with pytest.raises(InputError, match="p_values"):
        holm(p)


# Effects


@given(paired_sevenths())
def test_effects_equal_their_definitions(case):
    d, (a, b) = reference.paired(*case), map(floats, case)
    assert same(cohen_d(a, b), reference.cohen_d(d))
    assert same(rank_biserial(a, b), reference.rank_biserial(d))


@given(paired_sevenths())
def test_effects_change_sign_when_swapped(case):
    a, b = map(floats, case)
    assert same(cohen_d(a, b), -cohen_d(b, a))
    assert same(rank_biserial(a, b), -rank_biserial(b, a))


# Intervals


@pytest.mark.parametrize("confidence", [0.5, 0.95, 0.999])
@pytest.mark.parametrize("values", [[0, 1], [1, 2, 4, 8, 64], [0, 0, 0, 0, 1], list(range(40)), [3, 3, 3, 5] * 20])
def test_intervals_equal_those_of_scipy(values, confidence):
    values = np.array(values) / 8
    found = bootstrap_interval(values, confidence, n=2000, random_state=3)
    expected = stats.bootstrap((values,), np.mean, n_resamples=2000, confidence_level=confidence, rng=3)
    assert found == pytest.approx(tuple(expected.confidence_interval), abs=1e-9)


def test_intervals_do_not_depend_on_batches(monkeypatch):
    values = np.random.default_rng(0).normal(size=50)
    whole = bootstrap_interval(values, n=500)
    monkeypatch.setattr(resampling, "BATCH", 333)
    assert bootstrap_interval(values, n=500) == whole


def test_intervals_cover_the_mean_as_often_as_they_say():
    rng = np.random.default_rng(0)
    samples = [rng.exponential(size=60) for _ in range(300)]
    intervals = [bootstrap_interval(sample, 0.9, n=400) for sample in samples]
    covered = sum(low <= 1 <= high for low, high in intervals)
    assert 0.9 - 4 * sqrt(0.9 * 0.1 / 300) < covered / 300 < 0.9 + 4 * sqrt(0.9 * 0.1 / 300)


def test_intervals_of_awkward_values():
    assert bootstrap_interval([0.1] * 3) == (0.1, 0.1)
    assert bootstrap_interval([0.1, np.nan, 0.1]) == (0.1, 0.1)
    for few in ([], [0.5], [np.nan, 0.5]):
        assert all(map(isnan, bootstrap_interval(few)))


def test_intervals_are_plain_where_bca_is_not_defined():
    values = np.array([0.0] * 50 + [1.0])
    n, confidence = 200, 1 - 1e-15  # so far out, the correction for skew turns around
    plain = stats.bootstrap((values,), np.mean, n_resamples=n, confidence_level=confidence, method="percentile", rng=0)
    assert bootstrap_interval(values, confidence, n) == pytest.approx(tuple(plain.confidence_interval), abs=1e-9)


@pytest.mark.parametrize("seed", range(8))
def test_intervals_of_one_resample_are_its_mean(seed):
    values = np.array([0.0] * 50 + [1.0])
    only = values[np.random.default_rng(seed).integers(0, 51, 51)].mean()  # all resampled means on one side, or at it
    assert bootstrap_interval(values, n=1, random_state=seed) == pytest.approx((only, only))


@pytest.mark.parametrize("confidence", [0.0, 1.0, 95, np.nan])
def test_confidence_is_between_0_and_1(confidence):
    with pytest.raises(InputError, match="confidence"):
        bootstrap_interval([0.1, 0.2], confidence)
    with pytest.raises(InputError, match="confidence"):
        compare({}, confidence=confidence)


def test_there_is_at_least_one_resample():
    for call in (
        lambda: bootstrap_interval([1, 2], n=0),
        lambda: randomisation([1], [2], n=0),
        lambda: compare({}, n=0),
    ):
        with pytest.raises(InputError, match="n is 0"):
            call()


# Winning number


tables = st.dictionaries(
    st.sampled_from(["d1", "d2", "d3"]), st.dictionaries(st.sampled_from("ABCD"), st.integers(0, 4), max_size=4)
)


@given(tables)
def test_winning_number_equals_its_definition(case):
    found = winning_number({name: {m: v / 7 for m, v in table.items()} for name, table in case.items()})
    assert {method: tuple(number) for method, number in found.items()} == reference.winning_number(case)
    assert list(found) == list(reference.winning_number(case))  # in order of first appearance


@given(tables)
def test_comparisons_are_won_lost_or_tied(case):
    found = winning_number(case)
    assert sum(number.comparisons for number in found.values()) == sum(len(t) * (len(t) - 1) for t in case.values())
    assert all(number.wins <= number.comparisons for number in found.values())


def test_a_method_without_a_value_neither_wins_nor_loses():
    found = winning_number({"d": {"A": 0.5, "B": np.nan}, "e": {"A": 0.1, "B": 0.2}})
    assert (found["A"], found["B"]) == ((0, 1), (1, 1))
    assert isnan(winning_number({"d": {"A": 0.5}})["A"].normalised)


def test_noise_does_not_win():
    assert winning_number({"d": {"A": 0.1 + 0.2, "B": 0.3}})["A"].wins == 0


# Comparisons


def some_values(n_methods=4, n_queries=30, seed=0):
    rng = np.random.default_rng(seed)
    return {f"m{i}": rng.integers(0, 8, n_queries) / 7 + 0.1 * i for i in range(n_methods)}


def check_alone(found: Comparison, a, b, n=300):
    """A comparison says what the single functions say."""
    both = ~np.isnan(a) & ~np.isnan(b)
    assert found.n == both.sum() == found.wins + found.ties + found.losses
    assert same(found.difference, np.mean((b - a)[both]) if both.any() else np.nan)
    assert same(found.p.t, paired_t(a, b))
    assert same(found.p.wilcoxon, wilcoxon(a, b))
    assert found.p.randomisation == pytest.approx(randomisation(a, b, n), abs=0, nan_ok=True)
    assert same(found.effect, cohen_d(a, b))
    assert same(found.rank_biserial, rank_biserial(a, b))
    low, high = bootstrap_interval(b - a, n=n)
    assert same(found.low, low)
    assert same(found.high, high)


def test_comparisons_say_what_the_single_functions_say():
    values = some_values()
    values["m1"][3] = values["m2"][7] = values["m3"][3] = np.nan
    values["m4"] = np.full(30, np.nan)
    values["m5"] = np.append(values["m0"][:1], np.full(29, np.nan))
    found = compare(values, n=300)
    names = list(values)
    assert [(c.first, c.second) for c in found] == [(a, b) for i, a in enumerate(names) for b in names[i + 1 :]]
    for comparison in found:
        check_alone(comparison, values[comparison.first], values[comparison.second])


def test_comparisons_do_not_depend_on_how_many_there_are(monkeypatch):
    values = some_values()
    together = compare(values, n=300)
    monkeypatch.setattr("rankwright.analysis.significance.comparison.TOGETHER", 2)
    assert compare(values, n=300) == together
    [alone] = compare({name: values[name] for name in ("m1", "m3")}, n=300)
    [among] = [c for c in together if (c.first, c.second) == ("m1", "m3")]
    assert {**asdict(alone), "adjusted": among.adjusted} == asdict(among)
    assert alone.adjusted == alone.p


@pytest.mark.parametrize("baseline", [None, "m2"])
def test_each_test_is_adjusted_over_the_family(baseline):
    values = some_values()
    values["skipped"] = np.full(30, np.nan)
    found = compare(values, baseline=baseline, n=300)
    for test in ("t", "wilcoxon", "randomisation"):
        raw = [getattr(c.p, test) for c in found]
        assert [getattr(c.adjusted, test) for c in found] == pytest.approx(reference.holm(raw), nan_ok=True)


def test_a_baseline_comes_first():
    found = compare(some_values(), baseline="m2", n=300)
    assert [(c.first, c.second) for c in found] == [("m2", "m0"), ("m2", "m1"), ("m2", "m3")]


@given(paired_sevenths(most=25))
def test_swapping_turns_everything_around(case):
    a, b = map(floats, case)
    [one], [two] = compare({"a": a, "b": b}, n=200), compare({"b": b, "a": a}, n=200)
    assert (one.n, one.wins, one.ties, one.losses) == (two.n, two.losses, two.ties, two.wins)
    for name in ("difference", "effect", "rank_biserial"):
        assert same(getattr(one, name), -getattr(two, name))
    assert one.p == pytest.approx(two.p, nan_ok=True)
    assert (one.low, one.high) == pytest.approx((-two.high, -two.low), abs=1e-9, nan_ok=True)


def test_the_seed_decides():
    values = some_values()
    assert compare(values, n=300, random_state=5) == compare(values, n=300, random_state=5)
    assert compare(values, n=300, random_state=5) != compare(values, n=300, random_state=6)


def test_fewer_than_two_methods_have_nothing_to_compare():
    assert compare({}) == compare({"a": [0.1, 0.2]}) == compare({"a": [0.1, 0.2]}, baseline="a") == []


@pytest.mark.parametrize(
    ("values", "baseline", "message"),
    [
        ({"bm25": [0.1], "mine": [0.2]}, "bm52", "no method 'bm52' .* did you mean bm25?"),
        ({"a": [0.1], "b": [0.2], "c": [0.2, 0.3]}, None, "'c' has 2 values and 'a' has 1; expected the same queries"),
        ({"a": [[0.1]], "b": [0.2]}, None, r"'a' has shape \(1, 1\)"),
        ({"a": ["x"], "b": [0.2]}, None, "'a' is not numeric"),
        ({"a": [0.2, -inf], "b": [0.2, 0.1]}, None, r"'a'\[1\] is infinite"),
    ],
)
def test_bad_values_are_refused(values, baseline, message):
    with pytest.raises(InputError, match=message):
        compare(values, baseline=baseline)


def test_columns_of_different_queries_are_refused():
    with pytest.raises(InputError, match="a has 1 values and b has 2"):
        paired_t([0.1], [0.2, 0.3])


# The module


def test_importing_brings_in_neither_scipy_nor_scikit_learn():
    code = "import sys, rankwright.analysis.significance; print(*{'scipy', 'sklearn'} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout.split() == []


def test_the_page_runs():
    page = ROOT / "docs" / "significance.md"
    tried = doctest.testfile(str(page), module_relative=False, optionflags=doctest.NORMALIZE_WHITESPACE)
    assert tried.attempted > 0
    assert tried.failed == 0


def test_turned_is_the_comparison_the_other_way():
    rng = np.random.default_rng(3)
    a, b = rng.random(9), rng.random(9)
    [found], [other] = compare({"a": a, "b": b}), compare({"b": b, "a": a})
    reverse = found.swap_methods()
    for field in ("first", "second", "n", "wins", "ties", "losses", "p", "adjusted"):
        assert getattr(reverse, field) == getattr(other, field)
    for field in ("difference", "effect", "rank_biserial"):
        assert getattr(reverse, field) == pytest.approx(getattr(other, field))
    assert reverse.swap_methods() == found


def test_many_comparisons_leave_room_for_small_p():
    rng = np.random.default_rng(0)
    values = {f"m{i}": rng.random(40) + 3 * i for i in range(33)}
    assert max(found.adjusted.randomisation for found in compare(values)) < 0.05


def slow_simultaneous(values, names, n, seed, weight, fold):
    """The intervals of all pairs from single bootstrap samples, one after the other."""
    rng = np.random.default_rng(seed)
    n_queries = len(weight)
    drawn = rng.integers(0, n_queries, (n, n_queries))
    share = np.zeros(n_queries)
    for each in np.unique(fold):
        share[fold == each] = weight[fold == each] / weight[fold == each].sum() / len(np.unique(fold))
    rows = {
        (a, b): n_queries * share * (np.array(values[b]) - values[a])
        for i, a in enumerate(names)
        for b in names[i + 1 :]
    }
    errors = {pair: row.std(ddof=1) / np.sqrt(n_queries) for pair, row in rows.items()}
    largest = [
        max(abs(row[sample].mean() - row.mean()) / errors[pair] for pair, row in rows.items()) for sample in drawn
    ]
    reach = np.quantile(largest, 0.95)
    return {pair: (row.mean() - reach * errors[pair], row.mean() + reach * errors[pair]) for pair, row in rows.items()}


class TestSimultaneousIntervals:
    def make(self, n_queries=24, n_methods=4):
        rng = np.random.default_rng(3)
        return {name: rng.random(n_queries) + 0.1 * i for i, name in enumerate("abcdefgh"[:n_methods])}

    def test_they_are_those_of_the_largest_deviation(self):
        values = self.make()
        weight, fold = np.random.default_rng(0).uniform(1, 2, 24), np.arange(24) % 3
        found = simultaneous_intervals(values, weight=weight, fold=fold, n=400, random_state=5)
        expected = slow_simultaneous(values, list(values), 400, 5, weight, fold)
        assert found.keys() == expected.keys()
        for pair, ends in expected.items():
            assert found[pair] == pytest.approx(ends, abs=1e-9)

    def test_they_hold_all_differences_at_once(self):
        """Of many samples of a known population, about 95% have every true difference in its interval."""
        rng = np.random.default_rng(0)
        held = alone = 0
        for _ in range(150):
            sample = dict(zip("abcde", rng.normal(0.0, 1.0, (5, 60)), strict=True))  # all differences are 0
            held += all(low <= 0.0 <= high for low, high in simultaneous_intervals(sample, n=400).values())
            alone += all(found.low <= 0.0 <= found.high for found in compare(sample, n=400))
        assert 0.88 <= held / 150 <= 1.0
        assert alone < held  # intervals of one pair each miss more often, together

    def test_queries_that_a_method_skips(self):
        values = self.make()
        values["b"][3] = np.nan
        found = simultaneous_intervals(values, baseline="a")
        assert list(found) == [("a", "b"), ("a", "c"), ("a", "d")]
        without = {name: np.delete(row, 3) for name, row in values.items()}
        [single] = simultaneous_intervals({"a": without["a"], "b": without["b"]}).values()
        low, high = found["a", "b"]
        assert (low + high) / 2 == pytest.approx((single.low + single.high) / 2)
        few = simultaneous_intervals({"a": [0.1, np.nan], "b": [0.2, 0.3]})
        assert np.isnan(few["a", "b"]).all()
        assert simultaneous_intervals({"a": [0.1, 0.2]}) == {}
