"""Sums over the pairs of long lists by Fourier modes, against going through the pairs."""

from __future__ import annotations

import numpy as np
import pytest
from tests.reference import frank as twin

import rankwright as rw
from rankwright.kernels.objectives.graded_pairs import GradedDocuments, find_grade_order
from rankwright.kernels.optimisers.fidelity_sums import (
    FLATTER,
    HEAVIER,
    LIGHTER,
    LOSS,
    WEIGHT,
    compute_fidelity_gains,
    sum_split_pairs,
)
from rankwright.optimisers.weak import long_fidelity
from rankwright.optimisers.weak.long_fidelity import sum_gains, sum_splits, sum_state

N = 120


@pytest.fixture(autouse=True)
def _every_list_is_long(monkeypatch):
    monkeypatch.setattr(long_fidelity, "_MIN_DOCS", 1)
    monkeypatch.setattr(long_fidelity, "_MIN_PAIRS", 0)


def make_query(span, seed=0, n_grades=4):
    """Two queries in order of grades, scores before and after a stump was added, and bins of three features."""
    rng = np.random.default_rng(seed)
    indptr = np.array([0, N, 2 * N])
    y = np.concatenate([np.sort(rng.integers(0, n_grades, N))[::-1] for _ in range(2)]).astype(float)
    graded = GradedDocuments(indptr, find_grade_order(y, indptr)[1], np.array([1e-4, 3e-4]))
    before = np.round(rng.uniform(-span / 2, span / 2, 2 * N) * 2.0**32) / 2.0**32
    codes = rng.integers(0, 20, (3, 2 * N)).astype(np.uint8)
    return y, graded, before, before + 0.375 * (codes[0] > 8), codes


@pytest.mark.parametrize("span", [0.0, 0.5, 8.0, 40.0, 150.0])
def test_the_state_is_that_of_all_pairs(span):
    y, graded, before, scores, _ = make_query(span)
    pairs = twin.all_pairs(y, graded.indptr, graded.weight)
    potentials = np.empty((2, 2 * N))
    totals = sum_state(graded, before, scores, potentials)
    expected, worths = twin.state(pairs, before, scores)
    total = pairs.D.sum()
    assert totals[LOSS] == pytest.approx(expected["loss"], abs=1e-13 * total)
    assert totals[WEIGHT] == pytest.approx(expected["weight"], abs=1e-13 * total)
    np.testing.assert_allclose(potentials, worths, atol=1e-13 * total)


@pytest.mark.parametrize("span", [0.0, 0.5, 8.0, 40.0])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_what_weights_have_lost_is_bounded_closely(span, sign):
    y, graded, before, scores, _ = make_query(span)
    scores = before + sign * (scores - before)
    expected = twin.state(twin.all_pairs(y, graded.indptr, graded.weight), before, scores)[0]
    totals = sum_state(graded, before, scores, np.empty((2, 2 * N)))
    for name, at in (("lighter", LIGHTER), ("heavier", HEAVIER), ("flatter", FLATTER)):
        assert totals[at] >= expected[name] - 1e-15
        assert totals[at] == pytest.approx(expected[name], rel=0.5, abs=1e-4)


def test_changes_by_more_than_a_stump_go_through_the_pairs():
    y, graded, before, scores, codes = make_query(3.0)
    scores = scores + 0.25 * (codes[1] > 4)
    expected = twin.state(twin.all_pairs(y, graded.indptr, graded.weight), before, scores)[0]
    totals = sum_state(graded, before, scores, np.empty((2, 2 * N)))
    assert totals.tolist() == pytest.approx([expected[name] for name in twin.STATE])


@pytest.mark.parametrize("span", [0.0, 0.5, 8.0, 40.0, 150.0])
def test_splits_and_gains_are_those_of_all_pairs(span):
    _, graded, _, scores, codes = make_query(span)
    starts, features = np.array([0, 22, 44, 66]), np.array([0, 2])
    found, expected = np.zeros((2, 44)), np.zeros((2, 44))
    sum_splits(graded, scores, codes, starts, features, found)
    sum_split_pairs(graded, scores, codes, starts, features, expected)
    for slots in (slice(0, 22), slice(22, 44)):
        np.testing.assert_allclose(found[:, slots].cumsum(axis=1), expected[:, slots].cumsum(axis=1), atol=1e-13)
    stumps = np.array([0, 1, 2, 2]), np.array([3, 10, 15, 7]), np.array([0.3, -0.7, 0.01, 2.0])
    gains, direct = np.zeros(4), np.zeros(4)
    sum_gains(graded, scores, codes, *stumps, gains)
    compute_fidelity_gains(graded, scores, codes, *stumps, direct)
    np.testing.assert_allclose(gains, direct, atol=1e-13)


def test_the_model_is_that_of_all_pairs(monkeypatch):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(400, 6))
    X[:, 3] = np.round(X[:, 3])
    y = np.clip(np.round(X[:, 0] + 0.5 * X[:, 1] + rng.normal(size=400)), 0, 3)
    queries = rw.Queries.from_arrays(X, y, qid=np.repeat([0, 1], [300, 100]))
    by_modes = rw.FRank(n_estimators=40).fit(queries)
    monkeypatch.setattr(long_fidelity, "_MIN_DOCS", 10**9)
    by_pairs = rw.FRank(n_estimators=40).fit(queries)
    for one, other in zip(by_modes.history_, by_pairs.history_, strict=True):
        assert {name: one[name] for name in ("feature", "threshold", "alpha")} == {
            name: other[name] for name in ("feature", "threshold", "alpha")
        }
        assert one["loss"] == pytest.approx(other["loss"], abs=1e-13)


def test_lists_of_thousands_do_not_go_through_their_pairs(monkeypatch):
    monkeypatch.undo()
    rng = np.random.default_rng(0)
    y = np.sort(rng.integers(0, 4, 2500))[::-1].astype(float)
    graded = GradedDocuments(np.array([0, 2500]), find_grade_order(y, np.array([0, 2500]))[1], np.ones(1))
    scores = rng.normal(size=2500)
    assert long_fidelity._find_long(graded, scores, scores) == [0]
    short = GradedDocuments(np.array([0, 500]), find_grade_order(y[::5].copy(), np.array([0, 500]))[1], np.ones(1))
    assert long_fidelity._find_long(short, scores[:500], scores[:500]) == []
